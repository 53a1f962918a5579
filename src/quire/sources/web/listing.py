"""The pages of a scope that its site's sitemaps list.

The sitemaps are those that robots.txt names, else `sitemap.xml` in the named folder or at the root. Always:
sitemaps of other sites are left; an index that leads back to itself is read once; their number, their
nesting and their bytes are bounded.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from urllib.parse import urljoin

from quire.config import WebSettings
from quire.errors import NotFound, Refused, SourceError
from quire.sources.web.fetch import Fetcher
from quire.sources.web.pool import in_thread
from quire.sources.web.response import kind_of
from quire.sources.web.robots import Robots
from quire.sources.web.scope import Scope
from quire.sources.web.sitemap import MOST, NAME, BadSitemap, Sitemap, read_sitemap
from quire.sources.web.urls import normalise_url, same_site

_FILES = 100  # sitemaps of one site
_NESTED = 3  # indexes inside indexes
_HEAD = 2000  # bytes that tell a web page from a sitemap
NEVER = datetime.min.replace(tzinfo=UTC)  # of a page whose sitemap does not say when it changed


class Listing:
    """Reads the sitemaps of a site. What it finds is in `pages`: each URL, and when it was modified."""

    def __init__(self, fetcher: Fetcher, robots: Robots, scope: Scope, settings: WebSettings) -> None:
        self._fetcher, self._robots, self._scope, self._settings = fetcher, robots, scope, settings
        self.pages: dict[str, datetime] = {}
        self.notes: list[str] = []
        self.unsure = ""  # why pages may be missing
        self._bytes = 0
        self._seen: set[str] = set()

    async def read(self) -> None:
        """Read the sitemaps."""
        home = str(self._scope)
        named = await self._robots.sitemaps(home)
        if named:
            await self._read_all(named)
            return
        for folder in dict.fromkeys((home, urljoin(home, "/"))):
            if await self._read_all([urljoin(folder, NAME)], guessed=True):
                return

    async def _read_all(self, urls: list[str], *, guessed: bool = False) -> bool:
        """Read sitemaps and those that they name; returns whether there was one."""
        waiting = deque((url, 0) for url in urls)
        found = False
        while waiting and len(self.pages) <= self._settings.max_pages:
            url, depth = waiting.popleft()
            sitemap = await self._sitemap(url, quiet=guessed and not depth)
            if sitemap is None:
                continue
            found = True
            if not sitemap.is_index:
                self._keep(sitemap, url)
            elif depth < _NESTED:
                waiting += [(entry.url, depth + 1) for entry in sitemap.entries]
            else:
                self._leave(url, f"is nested deeper than {_NESTED} indexes")
        return found

    async def _sitemap(self, url: str, *, quiet: bool) -> Sitemap | None:
        """A sitemap; None if it is left, and a note says why, unless it is only guessed that there is one."""
        try:
            place = normalise_url(url)
            if place in self._seen:
                return None
            self._seen.add(place)
            self._check(place)
            response = await self._fetcher.download(place)
            if quiet and kind_of(response.content[:_HEAD].decode("latin-1"), "", "") == "html":
                return None
            sitemap = await in_thread(read_sitemap, response.content, self._settings.max_bytes - self._bytes)
        except (SourceError, BadSitemap) as problem:
            if not (quiet and isinstance(problem, NotFound)):
                self._leave(url, problem.reason if isinstance(problem, SourceError) else str(problem))
            return None
        self._bytes += sitemap.size
        return sitemap

    def _check(self, url: str) -> None:
        if not same_site(url, str(self._scope)):
            raise Refused(url, "is of another site")
        if len(self._seen) > _FILES:
            raise Refused(url, f"is one of more than {_FILES} sitemaps")

    def _keep(self, sitemap: Sitemap, url: str) -> None:
        for entry in sitemap.entries:
            if page := self._scope.page(entry.url):
                self.pages[page] = entry.modified or NEVER
        if sitemap.is_cut:
            self._leave(url, f"lists more than {MOST:,} pages, so the rest of it")

    def _leave(self, url: str, why: str) -> None:
        if len(self._seen) <= _FILES + 1:  # one line for all that are over
            self.notes.append(f"The sitemap {url} {why}, and was left.")
        self.unsure = "a sitemap could not be read"
