"""URLs and sites to pages of text.

`Crawler.page` reads one page. `Crawler.site` reads the pages of a site's llms-full.txt if that is complete,
else the documents that its llms.txt links. Always: a page that cannot be read is named with its reason and
the others go on; only pages of the same site are read; an unchanged page is not downloaded again, unless
its links are followed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, TypeVar
from urllib.parse import urljoin

from quire.errors import NotFound, NotText, Refused, SourceError, TooLarge
from quire.plural import counted
from quire.progress import Progress, Silent
from quire.sources.names import FULL, INDEX
from quire.sources.web import llmstxt
from quire.sources.web.full import pages_of, urls_of
from quire.sources.web.pool import in_thread, run_each
from quire.sources.web.reader import UNREAD, PageReader, links_of, without_validators
from quire.sources.web.response import Decoder, Response, file_ending
from quire.sources.web.scope import Scope, key_of
from quire.sources.web.urls import Target, index_of, same_owner, same_site, target_of
from quire.sources.web.visit import WebPage

T = TypeVar("T")
_AT_ONCE = 4  # pages of an llms-full.txt in progress: two processes, and what waits for them
_SEVERAL = 3  # pages under its own path that the first page of a site links to


class Crawler(PageReader):
    """Reads a page, or a site by its llms.txt, which is its `place`."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._asked: set[str] = set()  # pages of the site
        self._over = 0  # pages over the limit

    # ------------------------------------------------------------------------------------- a page

    async def page(self, url: str) -> None:
        """Read the page that a person named and pass it on. Raises SourceError."""
        self.visit.present.add(url)
        links = await self._page(url, follow=False)
        scope = Scope.of(url)
        below = {key_of(page) for page in scope.pages(links)} - {key_of(url)}
        if url not in self.known and scope.is_home and len(below) >= _SEVERAL:
            self.visit.notes.append(_one_page(scope, len(below)))

    async def _page(self, url: str, *, follow: bool) -> Iterable[str]:
        """Read a page and pass it on; returns its links if they are to be followed."""
        etag, last_modified = (None, None) if follow else self.known.get(url, (None, None))
        response = await self.fetcher.get(url, etag=etag, last_modified=last_modified)
        if self.place and not same_site(response.final_url, self.place):
            raise Refused(url, f"leads to another site, {response.final_url}")
        if response.final_url != url:
            self.ends[url] = response.final_url
        if url in self.ends and response.final_url in self._asked:
            return ()  # that page is read by itself
        if response.status == 304:
            self.visit.unchanged[url] = (response.etag, response.last_modified)
            return ()
        if response.kind == "html":
            return await self._html(url, response, follow)
        if self.place and self.leaves_file(url, response.kind):
            return ()
        await self.hand_on(url, response)
        return await in_thread(links_of, response) if follow and response.kind == "markdown" else ()

    async def _html(self, url: str, response: Response, follow: bool) -> Iterable[str]:
        article = await self.article(url, response, links=follow or not self.place)
        await self.hand_on_article(url, response, article)
        return article.links

    # ------------------------------------------------------------------------------------- a site

    async def site(self, source: str, progress: Progress | None = None) -> None:
        """Read a site's llms files and pass its pages on. Raises SourceError if there are none."""
        self.place = index_of(source)
        index, full = await self._file(INDEX), await self._file(FULL)
        if isinstance(index, SourceError) and isinstance(full, SourceError):
            raise self._nothing(index, full)
        wanted = await self._index(index)
        if await self._full(full, len(wanted)):
            return
        if isinstance(index, SourceError):
            raise self._nothing(index)
        if not wanted:
            self.visit.unsure = f"{INDEX} links to no page of the site"
        await self._crawl(wanted, progress or Silent())

    async def _file(self, name: str) -> Response | SourceError:
        """The response for llms.txt or llms-full.txt."""
        url = urljoin(self.place, name)
        try:
            response = await self.fetcher.get(url)
        except SourceError as problem:
            return problem
        if response.is_file:
            return NotText(url, f"is a {response.kind} file, not text")
        return NotFound(url, "is a web page", 404) if response.kind == "html" else response

    def _nothing(self, *problems: SourceError) -> SourceError:
        """Why there is nothing to read of a site."""
        home = urljoin(self.place, ".")
        how = f"To read it by its sitemap and links: quire add --site {shlex.quote(home)}"
        neither = NotFound(home, f"has neither {INDEX} nor {FULL}. {how}", 404)
        return next((problem for problem in problems if not isinstance(problem, NotFound)), neither)

    async def _index(self, index: Response | SourceError) -> list[str]:
        """Pass on an llms.txt; returns the pages of the site that it links."""
        if isinstance(index, NotFound):
            return []
        self.visit.present.add(self.place)
        if isinstance(index, SourceError):
            self.fail(self.place, index)
            self.visit.unsure = f"{INDEX} could not be read"
            return []
        self._asked.add(self.place)
        await self.hand_on(self.place, without_validators(index))
        wanted, elsewhere = self._new(await in_thread(links_of, index))
        if elsewhere:
            lead = counted(elsewhere, "link leads to another site", "links lead to other sites")
            self.visit.notes.append(f"{lead}: not followed.")
        return wanted

    async def _full(self, full: Response | SourceError, links: int) -> bool:
        """Pass on the pages of an llms-full.txt if it is complete: it has most of what llms.txt links."""
        if isinstance(full, SourceError):
            if not isinstance(full, NotFound):
                self.visit.notes.append(f"{FULL} could not be read: {full.reason}")
                self.visit.unsure = f"{FULL} could not be read"
            return False
        pages = await in_thread(pages_of, full)
        if not pages:
            self.visit.unsure = f"{FULL} is empty"
        elif 2 * len(pages) < links:
            short = f"{FULL} has {counted(len(pages), 'page')} for {counted(links, 'link')}"
            self.visit.notes.append(f"{short}, so the links were read instead.")
        else:
            await self._pages(full, pages)
            return True
        return False

    async def _pages(self, full: Response, pages: list[llmstxt.FullPage]) -> None:
        """Pass on an llms-full.txt as it is, to be read, and its pages, to be found."""
        self.visit.present.add(full.final_url)
        await self.hand_on(full.final_url, without_validators(full), is_searched=False)
        taken = set(self.visit.present)
        urls = urls_of(pages, full.final_url, taken)
        self.visit.present |= taken
        some = self._capped(list(zip(urls, pages, strict=True)), self.config.web.max_pages)
        read = Decoder(full)
        await run_each(
            self.take,
            (WebPage(url, page.title or None, read(page.start, page.end), "markdown") for url, page in some),
            _AT_ONCE,
        )

    def _capped(self, pages: list[T], most: int) -> list[T]:
        """As many pages as the limit allows; a note says if there are more."""
        self._over += max(len(pages) - most, 0)
        if self._over:
            cap = f"web.max_pages = {self.config.web.max_pages:,}"
            over = counted(self._over, "page is", "pages are")
            reason = f"{over} over {cap}. Raise [web] max_pages in quire.toml"
            self.fail(INDEX, TooLarge(INDEX, reason))
        return pages[:most]

    # ------------------------------------------------------------------------------------ a crawl

    async def _crawl(self, level: list[str], progress: Progress) -> None:
        """Read pages and what they link to, level by level."""
        left, depth = self.config.web.max_pages, self.config.web.max_depth
        while level and depth:
            depth -= 1
            self.visit.present.update(level)
            some = self._capped(level, left)
            left -= len(some)
            self._asked.update(some)
            progress.begin(f"reading {target_of(self.place).host}", len(some), "pages")
            found = await self._level(some, progress, follow=depth > 0)
            if depth and any(url in self.known and url not in found for url in level):
                self.visit.unsure = UNREAD
            level, _ = self._new(link for url in some for link in found.get(url, ()))
        read = self._asked - self.visit.failed.keys()
        self.visit.present -= {url for url, end in self.ends.items() if end in read}
        if self.visit.unsure == UNREAD:
            await self._ask_unlinked()
        self.tell_left()

    async def _ask_unlinked(self) -> None:
        """Ask for pages that may be unlinked, to know which of them are gone by their server's word."""
        urls = sorted(url for url in self.held - self.visit.present - self.ends.keys() if "#" not in url)

        async def ask(url: str) -> None:
            etag, last_modified = self.known.get(url, (None, None))
            try:
                await self.fetcher.get(url, etag=etag, last_modified=last_modified)
            except NotFound as problem:
                self.fail(url, problem)
            except SourceError:
                pass  # the note that it is kept says enough

        await run_each(ask, urls[: self.config.web.max_pages], self.config.web.concurrency)

    async def _level(self, urls: list[str], progress: Progress, *, follow: bool) -> dict[str, Iterable[str]]:
        """Read pages, a few in parallel; returns the links of those that could be read."""
        found: dict[str, Iterable[str]] = {}

        async def read(url: str) -> None:
            try:
                if not await self.robots.allows(url):
                    raise Refused(url, "disallowed by robots.txt")
                found[url] = await self._page(url, follow=follow)
            except SourceError as problem:
                self.fail(url, problem)
            progress.advance(1, url not in found)

        await run_each(read, urls, self.config.web.concurrency)
        return found

    def _new(self, links: Iterable[str]) -> tuple[list[str], int]:
        """New pages of the site that links lead to, and how many links lead elsewhere."""
        host, found, elsewhere = target_of(self.place).host, dict[str, None](), 0
        known = {*self.visit.present, *self.ends.values()}
        for link in dict.fromkeys(links):
            try:
                target = target_of(link)
            except Refused as problem:
                self.fail(problem.source, problem)
                continue
            if not same_owner(target.host, host):
                elsewhere += 1
            elif str(target) not in known and not self.leaves_file(str(target), _ending(target)):
                found[str(target)] = None
        return list(found), elsewhere


def _ending(target: Target) -> str:
    return file_ending("", target.path)


def _one_page(scope: Scope, below: int) -> str:
    site = f"quire add --site {shlex.quote(str(scope.home))}"
    return f"This is one page. It links to {below:,} more under {scope}. To add them all: {site}"
