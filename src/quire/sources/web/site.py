"""A site without llms.txt to its pages: those that its sitemaps list, then those that pages link.

Always: only pages under the named path of one host are stored; robots.txt, noindex and nofollow are obeyed;
what a limit cut off is said. A page that is held already is asked for whether it has changed; only if some
page has changed are the links of the others read again, to see which pages nothing links any more.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from quire.errors import NotFound, NotText, Refused, SourceError, TooLarge
from quire.plural import counted
from quire.progress import Progress, Silent
from quire.readers import CONVERTED
from quire.sources.files import Skipped
from quire.sources.web.listing import Listing
from quire.sources.web.pool import in_thread, run_each
from quire.sources.web.reader import UNREAD, PageReader, links_of, without_validators
from quire.sources.web.response import Response
from quire.sources.web.scope import Scope, is_twin, key_of
from quire.sources.web.urls import same_site, target_of
from quire.sources.web.visit import Validators

_OUT = "outside {scope}"
_BROKEN = "no such page, or not shown"
_DISALLOWED = "disallowed by robots.txt"
_UNINDEXED = "the page asks not to be indexed (noindex)"
_NO_TEXT = "not text"


class SiteCrawler(PageReader):
    """Reads the pages under one path of a site, whose first page is its `place`."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.scope = Scope.of("https://example.invalid/")  # until the site is known
        self._forms = {key_of(url): url for url in sorted(self.held)}  # a page keeps the URL it is known by
        self._queued: dict[str, str] = {}  # pages that were or will be asked for, by their keys
        self._graph: dict[str, list[str]] = {}  # what each page that was read links to
        self._pages: dict[str, str] = {}  # links as written, and the pages they lead to: most come many times
        self._modified: dict[str, datetime] = {}  # as sitemaps say
        self._unindexed: set[str] = set()
        self._cut = ""  # the limit that ended the crawl early

    async def crawl(self, place: str, progress: Progress | None = None) -> None:
        """Read a site and pass its pages on. Raises SourceError if nothing is there."""
        self.place = place
        self.scope = Scope.of(place)
        problem = await self._home(place)
        listed = await self._listed()
        if problem and not listed and not self.held:
            raise problem
        held = [url for url in sorted(self.held) if self.scope.page(url)]
        await self._levels([*self._new(listed), *self._new(held)], progress or Silent())
        if not self._graph and not self.visit.missing:  # nothing has changed, so neither have the links
            self.visit.present |= self.held
        elif self.held - self._reached(listed):
            await self._reread(progress or Silent())
        self._conclude(listed)

    async def _home(self, place: str) -> SourceError | None:
        """Read the page that a person named. If it leads elsewhere on the site, that is the site's path."""
        if not await self.robots.allows(place):
            raise Refused(place, "disallowed by robots.txt. One page can be added by itself: quire add URL")
        (url,) = self._new([place])
        try:
            response = await self._get(url)
            if not self.scope.page(response.final_url):
                self._move(place, response.final_url)
            await self._take(url, response)
        except (NotFound, NotText) as problem:
            self.fail(place, problem)
            return problem
        return None

    def _move(self, place: str, end: str) -> None:
        if not same_site(place, end):
            add = f"To add that: quire add --site {shlex.quote(end)}"
            raise Refused(place, f"leads to another site, {end}. {add}")
        self.scope = Scope.of(end)
        self.visit.notes.append(f"{place} leads to {end}, so the pages under {self.scope} were read.")

    async def _listed(self) -> list[str]:
        """The pages that sitemaps list."""
        listing = Listing(self.fetcher, self.robots, self.scope, self.config.web)
        await listing.read()
        self._modified = listing.pages
        self.visit.notes += listing.notes
        self.visit.unsure = self.visit.unsure or listing.unsure
        return list(listing.pages)

    # ------------------------------------------------------------------------------------ pages

    def _validators(self, url: str) -> Validators:
        """The validators to ask with; none if a sitemap says that the page is newer than they are.

        A `lastmod` never lets a request be left out: many sites forget to raise it, or write the time of the
        last build. The server says whether a page has changed.
        """
        etag, last_modified = self.known.get(url, (None, None))
        now, then = self._modified.get(url), _time_of(last_modified)
        return (None, None) if now and then and now > then else (etag, last_modified)

    async def _read(self, url: str) -> None:
        """Read a page, pass it on, and remember its links. Raises SourceError."""
        if not await self.robots.allows(url):
            self.left[_DISALLOWED].append(url)
            return
        await self._take(url, await self._get(url))

    async def _get(self, url: str) -> Response:
        """The response for a page; 304 only if it is the same page that has not changed."""
        etag, last_modified = self._validators(url)
        response = await self.fetcher.get(url, etag=etag, last_modified=last_modified)
        moved = response.status == 304 and response.final_url != url
        return await self.fetcher.get(url) if moved else response

    async def _take(self, url: str, response: Response) -> None:
        page = self.scope.page(response.final_url)
        if not page:
            self.left[_OUT.format(scope=self.scope)].append(url)
        elif response.status == 304:
            self.visit.unchanged[url] = (response.etag, response.last_modified)
        elif self._claims(url, page):
            await self._store(page, response)

    def _claims(self, url: str, page: str) -> bool:
        """Whether a URL is the first to lead to a page. The others are other names of it."""
        if url == page:
            return True
        led_back = self.ends.get(page) == url
        if led_back:  # it calls itself by a URL that leads to it
            del self.ends[page]
        self.ends[url] = page
        if led_back:
            return True
        if key_of(page) in self._queued and key_of(page) != key_of(url):
            return False
        self._queued[key_of(page)] = page
        return True

    async def _store(self, page: str, response: Response) -> None:
        if response.kind != "html":
            self._graph[page] = await self._links(page, response)
            await self.hand_on(page, self._sent_again(page, response))
            return
        article = await self.article(page, response, links=True)
        own = self.scope.page(article.canonical) if article.canonical and page not in self.held else ""
        if own and own not in self.ends and is_twin(page, own) and not self._claims(page, own):
            return
        page = self.ends.get(page, page)
        self._graph[page] = [] if "nofollow" in article.robots else self._in_scope(article.links)
        if "noindex" in article.robots:
            self._unindexed.add(page)
            self.left[_UNINDEXED].append(page)
        else:
            await self.hand_on_article(page, self._sent_again(page, response), article)

    def _sent_again(self, page: str, response: Response) -> Response:
        """A page without validators if it links files that are left: its links are needed once more."""
        files = [url for url in self._graph[page] if _ending(url)]
        waits = any(self.lacks(url, _ending(url)) for url in files)
        return without_validators(response) if waits else response

    async def _links(self, url: str, response: Response) -> list[str]:
        """The pages of the site that a page leads to. A file leads nowhere."""
        if response.kind == "html":
            article = await self.article(url, response, links=True)
            return [] if "nofollow" in article.robots else self._in_scope(article.links)
        return self._in_scope(await in_thread(links_of, response) if response.kind == "markdown" else [])

    def _in_scope(self, links: Iterable[str]) -> list[str]:
        """The pages of the site that links lead to, each once."""
        for link in links:
            if link not in self._pages:
                self._pages[link] = self.scope.page(link)
        return list(dict.fromkeys(filter(None, map(self._pages.__getitem__, links))))

    # ----------------------------------------------------------------------------------- levels

    async def _levels(self, level: list[str], progress: Progress) -> None:
        """Read pages, then what they link to, level by level, within the limits."""
        left, depth = self.config.web.max_pages - 1, self.config.web.site_depth
        seen = set[str]()
        level += self._next(seen)
        while level:
            some = level[:left]
            left -= len(some)
            if len(some) < len(level):
                self._tell_over(len(level) - len(some))
            if not some:
                return
            progress.begin(f"reading {target_of(self.place).host}", len(some), "pages")
            await self._level(some, progress)
            level = self._next(seen)
            depth -= 1
            if level and depth < 0:
                self._too_deep(level)
                return

    def _next(self, seen: set[str]) -> list[str]:
        """The pages that newly read pages link to. Those with a query come last: they may be endless."""
        pages = [page for page in self._graph if page not in seen]
        seen.update(pages)
        return sorted(
            self._new(link for page in pages for link in self._graph[page]), key=lambda url: "?" in url
        )

    async def _level(self, urls: Iterable[str], progress: Progress) -> None:
        async def read(url: str) -> None:
            problem = None
            try:
                await self._read(url)
            except SourceError as error:
                problem = error
                self._note_problem(url, error)
            progress.advance(1, problem is not None)

        await run_each(read, urls, self.config.web.concurrency)

    def _note_problem(self, url: str, problem: SourceError) -> None:
        """A page of the library that fails is named; a link of the site that is broken is counted."""
        if url in self.held or not isinstance(problem, NotFound | NotText):
            self.fail(url, problem)
        else:
            self.left[_BROKEN if isinstance(problem, NotFound) else _NO_TEXT].append(url)

    def _new(self, urls: Iterable[str]) -> list[str]:
        """The pages that were not asked for yet, each once, by the URL that the library knows."""
        found = []
        for url in urls:
            key = key_of(url)
            if key not in self._queued:
                page = self._queued[key] = self._forms.get(key, url)
                if not self.leaves_file(page, _ending(page)):
                    found.append(page)
        return found

    def _tell_over(self, number: int) -> None:
        cap = f"web.max_pages = {self.config.web.max_pages:,}"
        reason = f"{number:,} or more pages are over {cap}. Raise [web] max_pages in quire.toml"
        self.visit.failed["limit"] = Skipped(str(self.scope), reason, TooLarge.code)
        self._cut = cap

    def _too_deep(self, level: list[str]) -> None:
        cap = f"web.site_depth = {self.config.web.site_depth}"
        deeper = counted(len(level), "page is", "pages are")
        self.visit.notes.append(f"{deeper} deeper than {cap} and not read, such as {level[0]}.")
        self._cut = cap

    # ------------------------------------------------------------------------------ what is gone

    async def _reread(self, progress: Progress) -> None:
        """Read the links of pages that have not changed: others may have lost their last link."""
        urls = sorted(self.visit.unchanged)

        async def read(url: str) -> None:
            try:
                response = await self.fetcher.get(url)
                self._graph[url] = await self._links(url, response)
            except SourceError:
                self.visit.unsure = UNREAD
            progress.advance(1)

        progress.begin("reading links", len(urls), "pages")
        await run_each(read, urls, self.config.web.concurrency)

    def _reached(self, listed: Iterable[str]) -> set[str]:
        """The pages that sitemaps list or that can be reached by links, read or not."""
        reached, waiting = set[str](), [self.place, *listed]
        while waiting:
            page = self._current(waiting.pop())
            if page not in reached:
                reached.add(page)
                waiting += self._graph.get(page, ())
        return reached

    def _current(self, url: str) -> str:
        """The URL that a page is stored under: as first asked for, after redirects, as it calls itself."""
        url = self._queued.get(key_of(url), url)
        for _ in range(len(self.ends)):  # never in a circle
            end = self.ends.get(url, url)
            if end == url or end in self.visit.failed:
                break
            url = end
        return url

    def _conclude(self, listed: Iterable[str]) -> None:
        """Record which pages exist, and what was left."""
        self.visit.present |= self._reached(listed) - self._unindexed
        failed = self.visit.failed.keys() - self.visit.gone - {"limit"}
        if self._cut:
            self.visit.unsure = f"the crawl was cut at {self._cut}"
        elif failed or self.place in self.visit.failed:
            self.visit.unsure = UNREAD
        self.tell_left()


def _ending(url: str) -> str:
    """The ending of a file that a reader converts, by the name in a URL; "" for a page."""
    path = url.partition("?")[0].lower()
    return next((ending for ending in CONVERTED if path.endswith(ending)), "")


def _time_of(http_date: str | None) -> datetime | None:
    """The time in a Last-Modified header; None if there is none, or none that can be read."""
    try:
        found = parsedate_to_datetime(http_date) if http_date else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)
