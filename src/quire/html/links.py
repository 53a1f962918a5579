"""The links of a page: absolute addresses, and none that leads to a script."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, urljoin, urlsplit

from quire.html.elements import Element

_ON_THE_WEB = re.compile(r"https?://[^/?#]", re.IGNORECASE)
_HARMLESS = frozenset({"", "http", "https", "mailto", "tel", "ftp"})  # without one it is relative
# What browsers ignore around an address, and anywhere in it.
_AROUND, _ANYWHERE = "".join(map(chr, range(33))), str.maketrans("", "", "\t\n\r")
_UNSAFE = re.compile(r"[\s<>\"\\^`{|}\x00-\x1f]")


class Addresses:
    """Make the addresses on a page absolute. One that is malformed or might run a script becomes ""."""

    def __init__(self, url: str, bases: list[Element]) -> None:
        self.base = next((_absolute(url, base.get("href")) for base in bases), "") or url
        self._known: dict[str, str] = {}

    def resolve(self, address: str) -> str:
        """The absolute address."""
        if address not in self._known:
            self._known[address] = _absolute(self.base, address)
        return self._known[address]

    def found(self, elements: Iterable[Element]) -> tuple[str, ...]:
        """The web addresses that elements link to, without fragments, each once."""
        every = (self.resolve(e.get("href")).partition("#")[0] for e in elements if e.get("href").strip())
        return tuple(dict.fromkeys(filter(_ON_THE_WEB.match, every)))


def _absolute(base: str, address: str) -> str:
    try:
        address = urljoin(base, address.strip(_AROUND).translate(_ANYWHERE))
        scheme = urlsplit(address).scheme
    except ValueError:  # such as http://[
        return ""
    return _UNSAFE.sub(lambda found: quote(found[0]), address) if scheme in _HARMLESS else ""


def rel_of(link: Element) -> list[str]:
    """The `rel` values of a link: next, alternate and the like."""
    return link.get("rel").lower().split()


def is_markdown_twin(link: Element) -> bool:
    """Whether a link leads to the same page as markdown."""
    kind = link.get("type").partition(";")[0].strip().lower()
    return "alternate" in rel_of(link) and kind in ("text/markdown", "text/x-markdown")


def robots_of(metas: Iterable[Element]) -> frozenset[str]:
    """What a page asks of crawlers in its meta elements: noindex, nofollow. `none` is both."""
    said = [meta.get("content").lower() for meta in metas if meta.get("name").lower() in ("robots", "quire")]
    asked = frozenset(re.findall(r"[a-z]+", " ".join(said)))
    return asked | {"noindex", "nofollow"} if "none" in asked else asked
