"""Which hosts Quire may contact, and at which addresses.

Always: a connection goes to an address that was checked for this very connection, and only if every
address of the name is public or the name is allowed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from math import inf
from typing import TYPE_CHECKING, Any

from quire.errors import Refused, SettingError
from quire.sources.web.urls import PORTS, Target, is_address, spelled_host

if TYPE_CHECKING:
    from httpcore2 import AsyncNetworkBackend, AsyncNetworkStream

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # a name and a port to its addresses, else OSError

# All of IPv6 that is assigned to hosts: mapped, NAT64, local and multicast addresses are outside.
_UNICAST = ip_network("2000::/3")
_NOT_PUBLIC = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's own services
        "169.254.0.0/16",  # link-local, with the metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, with the metadata of Oracle's cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)


def is_public(address: str) -> bool:
    """Whether an IP address is public."""
    ip = ip_address(address)
    if ip.version == 6 and ip not in _UNICAST:
        return False
    return not any(ip in network for network in _NOT_PUBLIC)


class Guard:
    """Which hosts Quire may contact, on which ports, and at which addresses."""

    def __init__(self, allow_hosts: Iterable[str], resolve: Resolve) -> None:
        self.allowed = frozenset(map(_allowed, allow_hosts))
        self.resolve = resolve

    def check(self, target: Target) -> None:
        """Raise Refused for a port that is not allowed and for an address that is not public."""
        if self._allows(target.host, target.port):
            return
        if target.port not in PORTS.values():
            raise Refused(str(target), f"names port {target.port}, not 80 or 443. {_how(target.authority)}")
        if is_address(target.host) and not is_public(target.host):
            raise Refused(str(target), f"is not at a public address. {_how(target.host)}")

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host. Raises Refused if any of them is not public."""
        found = [host] if is_address(host) else await self._look_up(host, port)
        if not self._allows(host, port):
            for address in found:
                if not is_public(address):
                    raise Refused(host, f"is at {address}, which is not a public address. {_how(host)}")
        return found

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        try:
            found = await self.resolve(host, port)
        except OSError as problem:
            raise Retry(f"the name {host} cannot be looked up: {why(problem)}", retries=1) from None
        if not found:
            raise Retry(f"the name {host} has no address", retries=1)
        return found

    def _allows(self, host: str, port: int) -> bool:
        return (host, None) in self.allowed or (host, port) in self.allowed


def _allowed(entry: str) -> tuple[str, int | None]:
    """A host of `allow_hosts`, and its port if it names one."""
    from httpx2 import URL, InvalidURL

    host, _, port = entry.strip().rpartition(":")
    if not port.isdecimal() or (":" in host and not host.endswith("]")):  # ::1 has no port
        host, port = entry.strip(), ""
    try:
        return spelled_host(URL(scheme="http", host=host).raw_host.decode()), int(port) if port else None
    except (InvalidURL, ValueError):
        raise SettingError("web.allow_hosts", f"{entry!r} is neither a host nor host:port") from None


def _how(host: str) -> str:
    return f'If you trust it, add "{host}" to allow_hosts under [web] in ~/.config/quire/quire.toml'


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system knows them."""
    import socket

    from anyio import getaddrinfo

    found = await getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def checked_network(guard: Guard) -> AsyncNetworkBackend:
    """A network that reaches a host only at its checked addresses; TLS still gets the name."""
    from httpcore2 import AnyIOBackend, ConnectError, ConnectTimeout

    class Checked(AnyIOBackend):
        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> AsyncNetworkStream:
            *others, last = await guard.addresses(host, port)
            share = timeout and timeout / (len(others) + 1)
            for address in others:
                with suppress(ConnectError, ConnectTimeout):
                    return await super().connect_tcp(address, port, share, local_address, socket_options)
            return await super().connect_tcp(last, port, share, local_address, socket_options)

    return Checked()


class Retry(Exception):
    """A try failed, and another may succeed."""

    def __init__(self, reason: str, *, after: float | None = None, retries: float = inf) -> None:
        self.reason = reason
        self.after = after  # seconds that the server asks for
        self.retries = retries  # more would not help
        super().__init__(reason)


def why(problem: Exception) -> str:
    """The message of an error, or the name of its class."""
    return str(problem) or type(problem).__name__
