"""The part of a site that lies under one path, and which URLs lead to the same page of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from quire.errors import Refused
from quire.sources.web.urls import PORTS, Target, target_of

_PAGE = re.compile(r"[^/]*\.(?:[xs]?html?|php|aspx?|jsp|mdx?|markdown|txt)", re.IGNORECASE)
_INDEX = re.compile(r"(?<=/)index\.(?:x?html?|md)", re.IGNORECASE)
_TRACKING = re.compile(r"utm_\w+|[fg]clid|msclkid|mc_[ce]id|igshid|_hs\w+", re.IGNORECASE)
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)  # a server may take them for a step up
# Files that hold no page: links to them need not be tried.
_NO_PAGE = re.compile(
    r".*\.(?:png|jpe?g|gif|svgz?|webp|avif|ico|bmp|mp[34]|webm|ogg|wav|mov|css|m?js|map|json|woff2?|ttf|otf|eot"
    r"|zip|gz|bz2|xz|zst|tar|tgz|7z|rar|jar|whl|exe|dmg|deb|rpm|apk|iso|bin|wasm|inv|xml|rss|atom)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Scope:
    """The pages under one path of one host."""

    home: Target  # the page that was named

    @classmethod
    def of(cls, url: str) -> Scope:
        """The scope of a page: its folder. A last part without the ending of a page is a folder itself."""
        return cls(target_of(url))

    @property
    def folder(self) -> str:
        """The path that all pages are under, with a slash at its end."""
        path = self.home.path.partition("?")[0]
        before, _, last = path.rpartition("/")
        return f"{before}/" if not last or _PAGE.fullmatch(last) else f"{path}/"

    @property
    def is_home(self) -> bool:
        """Whether the page that was named is the first of its folder, and not one among others."""
        return key_of(str(self.home)).partition("?")[0].rstrip("/") == str(self).rstrip("/")

    def __str__(self) -> str:
        return str(replace(self.home, path=self.folder))

    def page(self, url: str) -> str:
        """A URL as a page of this scope, in its normal form; "" if it is outside or no page."""
        try:
            target = self._like_home(target_of(url))
        except Refused:
            return ""
        path, mark, query = target.path.partition("?")
        under = (path.startswith(self.folder) or f"{path}/" == self.folder) and not _DOTS.search(path)
        if not under or not self._is_here(target) or _NO_PAGE.fullmatch(path):
            return ""
        kept = [part for part in query.split("&") if part and not _TRACKING.fullmatch(part.partition("=")[0])]
        return str(replace(target, path=f"{path}{mark if kept else ''}{'&'.join(kept)}"))

    def pages(self, urls: Iterable[str]) -> list[str]:
        """The URLs that are pages of this scope, each once."""
        return list(dict.fromkeys(filter(None, map(self.page, urls))))

    def _is_here(self, target: Target) -> bool:
        return (target.scheme, target.host, target.port) == (self.home.scheme, self.home.host, self.home.port)

    def _like_home(self, target: Target) -> Target:
        """The same page by the scheme of the home page: sitemaps are slow to learn of https."""
        if target.host != self.home.host or target.scheme == self.home.scheme:
            return target
        usual = target.port == PORTS[target.scheme] and self.home.port == PORTS[self.home.scheme]
        return replace(target, scheme=self.home.scheme, port=self.home.port) if usual else target


def key_of(url: str) -> str:
    """What URLs of one page have in common: `/guide/` and `/guide/index.html` are one page."""
    path, mark, query = url.partition("?")
    return f"{_INDEX.sub('', path)}{mark}{query}"


def is_twin(url: str, canonical: str) -> bool:
    """Whether a canonical URL is another spelling of a URL: they differ in query, ending or slash alone.

    A canonical URL that names another page is not followed: documentation names its newest version so.
    """
    return _spelling(url) == _spelling(canonical)


def _spelling(url: str) -> str:
    path = _INDEX.sub("", url.partition("?")[0]).rstrip("/")
    return re.sub(r"\.x?html?\Z", "", path, flags=re.IGNORECASE)
