"""URLs: their normal form, their parts, and which belong to the same site."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import urljoin, urlsplit

from quire import redact
from quire.errors import Refused
from quire.sources.names import INDEX

PORTS = {"http": 80, "https": 443}


def normalise_url(url: str) -> str:
    """A URL in its normal form, without a fragment; https if it has no scheme. Raises Refused."""
    return str(target_of(url))


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL. It is parsed once, so that the checked URL is the requested one."""

    scheme: str
    host: str  # ASCII in lower case; an IPv6 address has no brackets
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        """The host, and the port if it is not the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


# An origin, and a path that is in its normal form already.
PLAIN_URL = re.compile(r"(https?://[a-z0-9.-]+(?::\d+)?)((?:/[\w~-][\w~.-]*+)*+/?)", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d+(?:[/?#]|\Z))", re.IGNORECASE)  # but localhost:8000 has none
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_LONG = 2000  # characters of a URL whose length is left to the parser to judge


def target_of(url: str) -> Target:
    """A parsed URL. Raises Refused for one that Quire does not request."""
    plain = PLAIN_URL.fullmatch(url) if len(url) < _LONG else None
    if plain and (origin := _origin(plain[1])):
        return Target(origin.scheme, origin.host, origin.port, plain[2] or "/")
    return _parsed(url)


@lru_cache(maxsize=256)
def _origin(url: str) -> Target | None:
    """A parsed origin, which the links of a site have in common; None for one that is refused."""
    try:
        return _parsed(url)
    except Refused:
        return None


def _parsed(url: str) -> Target:
    from httpx2 import URL, InvalidURL

    text = url.strip()
    if not _SCHEME.match(text):
        text = f"https://{text.removeprefix('//')}"
    try:
        parsed = URL(text)
        if parsed.scheme not in PORTS:
            raise Refused(shown_url(url), f"is not an http or https URL{_other_way(parsed.scheme)}")
        if parsed.userinfo:
            raise Refused(shown_url(url), "holds a user name or password. Give the URL without it")
        port = PORTS[parsed.scheme] if parsed.port is None else parsed.port
        if not 1 <= port <= 65_535:
            raise ValueError(f"there is no port {port}")
        return Target(parsed.scheme, spelled_host(parsed.raw_host.decode()), port, parsed.raw_path.decode())
    except (InvalidURL, ValueError) as problem:
        raise Refused(shown_url(url), f"is not a URL: {problem}") from None


def _other_way(scheme: str) -> str:
    """How to name what a URL with another scheme may mean, as the end of a message."""
    if scheme.removeprefix("git+") == "file":
        return ". To add a file or folder, give its path"
    is_git = scheme in ("git", "ssh") or scheme.startswith("git+")
    how = ", nor an ssh URL of a git repository. Try https://HOST/NAME.git or git@HOST:NAME.git"
    return how if is_git else ""


def spelled_host(host: str) -> str:
    """A host in its normal form. Raises ValueError if it is invalid, and for 127.1, 0x7f.1 and the like."""
    if ":" in host and "%" not in host:
        return IPv6Address(host).compressed
    name = host.lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{host!r} is no host")
    # A resolver treats every name that ends in a number as an address.
    return str(IPv4Address(name)) if _NUMBER.fullmatch(name.rpartition(".")[2]) else name


def shown_url(url: str) -> str:
    """A refused URL for a message: short, printable and without a password."""
    text = url.strip() if "://" in url else f"https://{url.strip().lstrip('/')}"
    hidden = redact.url(text) if "://" in url else redact.url(text).removeprefix("https://")
    short = hidden if len(hidden) <= 200 else f"{hidden[:200]}…"
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in short)


def is_address(host: str) -> bool:
    """Whether a host is an IP address and not a name."""
    return ":" in host or host.rpartition(".")[2].isdecimal()


def absolute(base: str, link: str) -> str:
    """The absolute URL of a link in a header, which was decoded as Latin-1 but is mostly UTF-8."""
    try:
        return urljoin(base, link.encode("latin-1").decode("utf-8", "replace").strip())
    except ValueError:  # a bracket that is not closed
        raise Refused(base, f"leads to {shown_url(link)}, which is not a URL") from None


def index_of(source: str) -> str:
    """The URL of a site's llms.txt."""
    return normalise_url(urljoin(normalise_url(source), INDEX))


@cache
def _suffixes() -> Any:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def same_site(url: str, other: str) -> bool:
    """Whether two URLs have one owner: their hosts end in the same registered domain."""
    return same_owner(target_of(url).host, target_of(other).host)


def same_owner(host: str, other: str) -> bool:
    """Whether two hosts end in the same registered domain. An IP address only matches itself."""
    if host == other or is_address(host) or is_address(other):
        return host == other
    owner = _suffixes().privatesuffix(host)
    return owner is not None and owner == _suffixes().privatesuffix(other)


def twins_of(url: str) -> list[str]:
    """The usual URLs of a page's markdown."""
    parts = urlsplit(url)
    if parts.query:
        return []
    path = parts.path
    if path.endswith("/"):
        names = [f"{path}index.html.md", f"{path.rstrip('/')}.md"] if path != "/" else ["/index.html.md"]
    elif path.endswith((".html", ".htm")):
        names = [f"{path}.md", f"{path.rpartition('.')[0]}.md"]
    else:
        names = [f"{path}.md"]
    return [parts._replace(path=name).geturl() for name in names]
