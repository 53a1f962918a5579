"""Which requests are taken: by the name they ask for, the page they come from, their size and their pace.

Always: a page of another site can neither read nor change anything, whatever name it asks for (DNS
rebinding), unless its origin is allowed; only proxies that are trusted can say whom a request is from.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quire.config import ServeSettings
from quire.errors import RequestRefused, SettingError

_FORWARDED = (
    *("forwarded", "via", "x-forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port"),
    *("x-forwarded-proto", "x-forwarded-server", "x-real-ip", "x-client-ip", "true-client-ip"),
    *("cf-connecting-ip", "cf-ray", "tailscale-user-login"),
)
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_CALLERS = 10_000  # whose pace is remembered
_WRONG_KEYS = 5.0  # a second, from one address
_BURST = 2.0  # seconds of requests that may come at once
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Asking:
    """Whom a request is from, as far as it can be believed."""

    client: str  # its address
    scheme: str  # http or https
    is_relayed: bool  # it came through a proxy


class HostNames:
    """The names that this server goes by, and the sites whose pages may call it."""

    def __init__(self, settings: ServeSettings, host: str) -> None:
        own = [] if is_local(host) else [_bracketed(host), socket.gethostname()]
        # Any port: a tunnel or a container may have another one, and no page can choose the name it asks for.
        self._hosts = {_without_port(name) for name in (*_LOCAL_NAMES, *own, *settings.allowed_hosts)}
        self.origins = {origin.rstrip("/") for origin in settings.allowed_origins}
        self._proxies = [_network(one) for one in settings.trusted_proxies]
        self.is_public = bool(settings.allowed_hosts or settings.trusted_proxies) or not is_local(host)

    def asking(self, client: str, scheme: str, headers: Mapping[str, str]) -> Asking:
        """Whom a request is from. A proxy that is trusted says it."""
        is_relayed = any(name in headers for name in _FORWARDED)
        if not self._is_proxy(client):
            return Asking(client, scheme, is_relayed)
        passed = [one.strip() for one in headers.get("x-forwarded-for", "").split(",") if one.strip()]
        outside = [one for one in reversed(passed) if not self._is_proxy(one)]
        told = headers.get("x-forwarded-proto", scheme)
        return Asking(outside[0] if outside else client, "https" if told == "https" else "http", True)

    def _is_proxy(self, client: str) -> bool:
        try:
            address = ipaddress.ip_address(client)
        except ValueError:
            return False
        return any(address in network for network in self._proxies)

    def check_host(self, host: str) -> None:
        """Raise RequestRefused for a name that is not this server's."""
        if _without_port(host) not in self._hosts:
            how = "Whoever runs it can allow it with: QUIRE_SERVE_ALLOWED_HOSTS"
            raise RequestRefused(f"This server is not called {host[:200]!r}. {how}", 421)

    def check_site(self, asking: Asking, headers: Mapping[str, str], *, is_page: bool) -> None:
        """Raise RequestRefused for what a page of another site sends. It may lead people to a page."""
        origin = headers.get("origin", "")
        if origin and origin != f"{asking.scheme}://{headers.get('host', '').lower()}":
            if origin not in self.origins:
                raise RequestRefused(f"Pages of {origin[:200]} may not call this server", 403)
        elif not origin and _is_elsewhere(headers) and not (is_page and _is_visit(headers)):
            raise RequestRefused("Pages of other sites may not call this server", 403)


def _is_elsewhere(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that another site sends a request."""
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _is_visit(headers: Mapping[str, str]) -> bool:
    """Whether a person follows a link."""
    return headers.get("sec-fetch-mode") == "navigate"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _without_port(host: str) -> str:
    """A name in lower case, without its port; an address of IPv6 keeps its brackets."""
    return re.sub(r":\d*$", "", host.lower())


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        problem = f"{text!r} is no address or network. Write it as in 10.0.0.5 or 10.0.0.0/8"
        raise SettingError("serve.trusted_proxies", problem) from None


class Pace:
    """How fast each caller may ask: a bucket that fills at a rate, and holds twice as many."""

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(1.0, rate * _BURST)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when

    def take(self, caller: str) -> None:
        """Count a request. Raises RequestRefused if it comes too soon."""
        now = time.monotonic()
        left, then = self._left.pop(caller, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        self._left[caller] = max(left - 1, 0.0) if left >= 1 else left, now
        while len(self._left) > _CALLERS:
            self._left.popitem(last=False)
        if left < 1:
            seconds = max(1, round((1 - left) / self._rate))
            raise RequestRefused("Too many requests. Ask again later", 429, retry_after=seconds)


class Paces:
    """The paces of keys, and of those who try wrong ones."""

    def __init__(self, settings: ServeSettings) -> None:
        self.keys, self.wrong = Pace(settings.rate), Pace(_WRONG_KEYS)


def check_size(length: str, most: int) -> None:
    """Raise RequestRefused if a request says that it is too large."""
    if length.isdigit() and int(length) > most:
        raise too_large(most)


def too_large(most: int) -> RequestRefused:
    """The error of a request that is too large."""
    how = f"The most is serve.max_bytes = {most:,} bytes. Send less, or let the server read it from a URL"
    return RequestRefused(f"The request is too large. {how}", 413)


def header_values(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names; of several, the first. Proxies may add a line to those they pass on."""
    found = dict[str, str]()
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name == "x-forwarded-for" and name in found:
            found[name] += f",{value}"
        found.setdefault(name, value)
    return found
