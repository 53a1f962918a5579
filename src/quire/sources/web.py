"""URLs and sites to pages of text.

`Reader.page` reads one page; `Reader.site` reads what a site says of itself in llms.txt: the pages of
its llms-full.txt where that is whole, else the documents that llms.txt links. Always: a page that
cannot be read is named with its reason and the rest goes on; only pages of the same site are read; what
has not changed since it was last read is not sent again, except where its links are followed.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urljoin, urlsplit

from quire import html
from quire.config import Config
from quire.errors import NotFound, Refused, SourceError, TransientError
from quire.progress import Progress, Silent
from quire.sources import llmstxt
from quire.sources.names import FULL, INDEX
from quire.sources.page import Page, Reading
from quire.sources.urls import is_address, normalise, target_of

if TYPE_CHECKING:
    from anyio import CapacityLimiter, Lock

    from quire.sources.fetch import Fetcher
    from quire.workers import Workers

T = TypeVar("T")
log = logging.getLogger("quire")
_MANY, _LONG = 16, 0.5  # pieces of work, and seconds: before, starting processes costs more than they save
_AT_ONCE = 4  # pages of an llms-full.txt that are worked on: two processes, and what waits for them
_LITTLE = 2000  # characters: a page with more says more than that there is none
_GUESSES = 3  # markdown twins that may be missing before no more are looked for
_GONE = re.compile(
    r"\W*(?:(?:error )?404\b.*|(?:page|document|file) (?:was )?not found\W*.*|not found\W*)", re.I
)

Said = tuple[str | None, str | None]  # what a server says of a page: its etag, and when it was last modified


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text that can be indexed."""

    url: str
    title: str | None  # None: its text says
    content: bytes | str  # the bytes as they came where they are UTF-8
    format: str
    said: Said = (None, None)
    warnings: tuple[str, ...] = ()


Take = Callable[[WebPage], Awaitable[None]]


@dataclass(slots=True)
class Visit:
    """What reading a page or a site brought, besides the pages that were handed on."""

    present: set[str] = field(default_factory=set)  # URLs of all pages that there are, read or not
    unchanged: dict[str, Said] = field(default_factory=dict)  # those that are as they were
    missing: set[str] = field(default_factory=set)  # those that their server does not have
    failed: dict[str, str] = field(default_factory=dict)  # what could not be read, and why
    notes: list[str] = field(default_factory=list)
    unsure: str = ""  # why there may be pages that are not among those present

    def fail(self, url: str, problem: SourceError) -> None:
        """Note that a page could not be read."""
        self.failed[url] = problem.reason
        if isinstance(problem, NotFound):
            self.missing.add(url)


def index_of(source: str) -> str:
    """The URL of a site's llms.txt."""
    return normalise(urljoin(normalise(source), INDEX))


@cache
def _suffixes() -> Any:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def same_site(url: str, other: str) -> bool:
    """Whether one owner has both: their hosts end in the same name that can be bought."""
    return _same_owner(target_of(url).host, target_of(other).host)


def _same_owner(host: str, other: str) -> bool:
    if host == other or is_address(host) or is_address(other):
        return host == other
    owner = _suffixes().privatesuffix(host)
    return owner is not None and owner == _suffixes().privatesuffix(other)


class Desk:
    """Where pages are worked on beside the network: in a thread, or in processes once that took a while."""

    def __init__(self) -> None:
        self._starter = ThreadPoolExecutor(1)
        self._workers: Future[Workers | None] | None = None
        self._done, self._seconds = 0, 0.0  # pieces of work that a thread did, and what they took
        self._thread: CapacityLimiter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._starter.shutdown()
        if self._workers and (workers := self._workers.result()):
            workers.__exit__(None, None, None)

    async def do(self, url: str, work: Callable[..., T], *args: Any) -> T:
        """What a function of a module makes of a page. Raises SourceError if it ends its process."""
        if workers := self._ready():
            return await in_thread(_called, workers, url, work, *args)
        from anyio import CapacityLimiter
        from anyio.to_thread import run_sync

        # Several threads would be no faster, and each would have memory of its own.
        self._thread = self._thread or CapacityLimiter(1)
        answer, seconds = await run_sync(_timed, work, *args, limiter=self._thread)
        self._done, self._seconds = self._done + 1, self._seconds + seconds
        return answer

    def _ready(self) -> Workers | None:
        """Processes, if there are some; they are started where there seems to be much to do."""
        if self._workers is None:
            if self._done >= _MANY and self._seconds >= _LONG:
                self._workers = self._starter.submit(_workers)
            return None
        return self._workers.result() if self._workers.done() else None


def _called(workers: Workers, url: str, work: Callable[..., T], *args: Any) -> T:
    from quire.workers import WorkerDied

    try:
        return workers.call(work, *args)
    except WorkerDied as error:
        raise SourceError(url, str(error)) from None


def _timed(work: Callable[..., T], *args: Any) -> tuple[T, float]:
    """What a function returns, and the seconds of the processor that it took."""
    began = time.thread_time()
    return work(*args), time.thread_time() - began


def _workers() -> Workers | None:
    from quire.workers import started

    return started(html.to_markdown, "")


class Reader:
    """Reads a page or a site with one fetcher.

    `known` is what servers said of the pages that are stored; pages that are read are handed to `take`,
    several at once.
    """

    def __init__(
        self, fetcher: Fetcher, config: Config, known: Mapping[str, Said], take: Take, desk: Desk
    ) -> None:
        self.fetcher, self.config, self.known, self.take, self.desk = fetcher, config, known, take, desk
        self.visit = Visit()
        self._site = ""  # its llms.txt; "" for a page that a person named
        self._rules: dict[str, Any] = {}  # of robots.txt, by origin
        self._asking: dict[str, Lock] = {}
        self._asked: set[str] = set()  # pages of the site
        self._ends: dict[str, str] = {}  # where redirects lead
        self._missing_twins = 0
        self._over = 0  # pages that are too many

    # ------------------------------------------------------------------------------------- a page

    async def page(self, url: str) -> None:
        """Read the page that a person named and hand it on. Raises SourceError."""
        self.visit.present.add(url)
        await self._page(url, follow=False)

    async def _page(self, url: str, *, follow: bool) -> Iterable[str]:
        """Read a page and hand it on; the links in it if they are to be followed."""
        etag, last_modified = (None, None) if follow else self.known.get(url, (None, None))
        page = await self.fetcher.get(url, etag=etag, last_modified=last_modified)
        if self._site and not same_site(page.final_url, self._site):
            raise Refused(url, f"leads to another site, {page.final_url}")
        if page.final_url != url:
            self._ends[url] = page.final_url
        if url in self._ends and page.final_url in self._asked:
            return ()  # that page is read by itself
        if page.status == 304:
            self.visit.unchanged[url] = (page.etag, page.last_modified)
            return ()
        if page.kind == "html":
            return await self._html(url, page, follow)
        await self._hand_on(url, page)
        return await in_thread(_links, page) if follow and page.kind == "markdown" else ()

    async def _html(self, url: str, page: Page, follow: bool) -> Iterable[str]:
        article = await self.desk.do(url, _article, page, follow)
        if _GONE.fullmatch(article.title.strip()) and len(article.text) < _LITTLE:
            raise NotFound(url, f"says {article.title.strip()!r}, though its status is 200", 404)
        if twin := await self._twin((*page.links, *article.alternates), page):
            await self._hand_on(url, _unsaid(twin))
        else:
            plain = replace(page, kind="markdown", charset="utf-8", content=article.text.encode())
            await self._hand_on(url, plain, article.title)
        return article.links

    async def _twin(self, named: Iterable[str], page: Page) -> Page | None:
        """The first twin that is there and is markdown; guesses are given up where there is none."""
        for url in dict.fromkeys(named):
            if found := await self._markdown_at(url, page):
                return found
        if self._missing_twins < _GUESSES:
            for url in _twins(page.final_url):
                if found := await self._markdown_at(url, page):
                    self._missing_twins = 0
                    return found
            self._missing_twins += 1
        return None

    async def _markdown_at(self, url: str, page: Page) -> Page | None:
        try:
            if not same_site(url, page.final_url) or (self._site and not await self._may(url)):
                return None
            found = await self.fetcher.get(url)
        except SourceError:
            return None
        return found if found.kind == "markdown" and same_site(found.final_url, page.final_url) else None

    async def _hand_on(self, url: str, page: Page, title: str = "") -> None:
        warnings = (f"its encoding was guessed to be {page.charset}",) if page.guessed else ()
        content = page.content if page.charset in ("utf-8", "utf-8-sig") else _text(page)
        format = "text" if page.kind == "text" else "markdown"
        said = (page.etag, page.last_modified)
        await self.take(WebPage(url, title or None, content, format, said, warnings))

    # ------------------------------------------------------------------------------------- a site

    async def site(self, source: str, progress: Progress | None = None) -> None:
        """Read what a site says of itself and hand its pages on. Raises SourceError if that is nothing."""
        self._site = index_of(source)
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

    async def _file(self, name: str) -> Page | SourceError:
        """One of the two files in which a site speaks of itself."""
        url = urljoin(self._site, name)
        try:
            page = await self.fetcher.get(url)
        except SourceError as problem:
            return problem
        return NotFound(url, "is a web page", 404) if page.kind == "html" else page

    def _nothing(self, *problems: SourceError) -> SourceError:
        """Why there is nothing to read of a site."""
        how = "Add a page by its URL, such as quire add https://example.com/guide"
        neither = NotFound(urljoin(self._site, "."), f"has neither {INDEX} nor {FULL}. {how}", 404)
        return next((problem for problem in problems if not isinstance(problem, NotFound)), neither)

    async def _index(self, index: Page | SourceError) -> list[str]:
        """Hand on an llms.txt; the pages of the site that it links."""
        if isinstance(index, NotFound):
            return []
        self.visit.present.add(self._site)
        if isinstance(index, SourceError):
            self.visit.fail(self._site, index)
            self.visit.unsure = f"{INDEX} could not be read"
            return []
        self._asked.add(self._site)
        await self._hand_on(self._site, _unsaid(index))
        wanted, elsewhere = self._new(_links(index))
        if elsewhere:
            self.visit.notes.append(f"{elsewhere:,} links lead to other sites and were left.")
        return wanted

    async def _full(self, full: Page | SourceError, links: int) -> bool:
        """Hand on the pages of an llms-full.txt, if it is whole: it has most of what llms.txt links."""
        if isinstance(full, SourceError):
            if not isinstance(full, NotFound):
                self.visit.notes.append(f"{FULL} could not be read: {full.reason}")
                self.visit.unsure = f"{FULL} could not be read"
            return False
        pages = await in_thread(_filled, full)
        if not pages:
            self.visit.unsure = f"{FULL} is empty"
        elif 2 * len(pages) < links:
            short = f"{FULL} has {len(pages):,} pages for {links:,} links"
            self.visit.notes.append(f"{short}, so the links were read instead.")
        else:
            await self._pages(full, pages)
            return True
        return False

    async def _pages(self, full: Page, pages: list[llmstxt.FullPage]) -> None:
        taken = set(self.visit.present)
        urls = [_unused(_own_url(page, full.final_url), taken) for page in pages]
        self.visit.present |= taken
        some = self._capped(list(zip(urls, pages, strict=True)), self.config.web.max_pages)
        read = Reading(full)
        await _each(
            self.take,
            (WebPage(url, page.title or None, read(page.start, page.end), "markdown") for url, page in some),
            _AT_ONCE,
        )

    def _capped(self, pages: list[T], most: int) -> list[T]:
        """As many as may be read; it is said if there are more."""
        self._over += max(len(pages) - most, 0)
        if self._over:
            cap = f"web.max_pages = {self.config.web.max_pages:,}"
            reason = f"{self._over:,} pages are over {cap}. Raise [web] max_pages in quire.toml"
            self.visit.failed[INDEX] = reason
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
            progress.begin(f"reading {target_of(self._site).host}", len(some), "pages")
            found = await self._level(some, progress, follow=depth > 0)
            if depth and any(url in self.known and url not in found for url in level):
                self.visit.unsure = "pages that may link to them could not be read"
            level, _ = self._new(link for url in some for link in found.get(url, ()))
        read = self._asked - self.visit.failed.keys()
        self.visit.present -= {url for url, end in self._ends.items() if end in read}

    async def _level(self, urls: list[str], progress: Progress, *, follow: bool) -> dict[str, Iterable[str]]:
        """Read pages, a few at once; the links of those that could be read."""
        found: dict[str, Iterable[str]] = {}

        async def read(url: str) -> None:
            try:
                if not await self._may(url):
                    raise Refused(url, "is not for robots, says robots.txt")
                found[url] = await self._page(url, follow=follow)
            except SourceError as problem:
                self.visit.fail(url, problem)
            progress.advance(1, url not in found)

        await _each(read, urls, self.config.web.concurrency)
        return found

    def _new(self, links: Iterable[str]) -> tuple[list[str], int]:
        """Pages of the site that links lead to and that are not known yet; how many lead elsewhere."""
        host, found, elsewhere = target_of(self._site).host, dict[str, None](), 0
        known = {*self.visit.present, *self._ends.values()}
        for link in dict.fromkeys(links):
            try:
                target = target_of(link)
            except Refused as problem:
                self.visit.fail(problem.source, problem)
                continue
            if not _same_owner(target.host, host):
                elsewhere += 1
            elif str(target) not in known:
                found[str(target)] = None
        return list(found), elsewhere

    async def _may(self, url: str) -> bool:
        """Whether robots.txt lets a page be read."""
        from anyio import Lock

        origin = normalise(urljoin(url, "/"))
        async with self._asking.setdefault(origin, Lock()):
            if origin not in self._rules:
                self._rules[origin] = await self._robots(origin)
        return bool(self._rules[origin].can_fetch(url, "quire"))

    async def _robots(self, origin: str) -> Any:
        """The rules of a robots.txt: all may be read if there is none, nothing if it cannot be had."""
        from protego import Protego

        try:
            said = _text(await self.fetcher.get(urljoin(origin, "robots.txt")))
        except TransientError:
            said = "User-agent: *\nDisallow: /"
        except SourceError:
            said = ""
        return Protego.parse(said)


def _article(page: Page, links: bool) -> html.Article:
    return html.to_markdown(_text(page), page.final_url, links=links)


def _links(page: Page) -> list[str]:
    """The links of an llms.txt, or of another page in markdown."""
    return [link.url for link in llmstxt.parse(_text(page), page.final_url).links]


def _filled(full: Page) -> list[llmstxt.FullPage]:
    """The pages of an llms-full.txt that say something."""
    text = _narrow(full)
    return [page for page in llmstxt.pages(text, Reading(full)) if text[page.start : page.end].strip()]


def _narrow(full: Page) -> str:
    """The narrow form of a text, made without the text itself or as many pieces in memory."""
    narrow = BytesIO()
    for piece in Reading(full).pieces():
        narrow.write(llmstxt.narrow(piece))
    return narrow.getvalue().decode("latin-1")


def _own_url(page: llmstxt.FullPage, base: str) -> str:
    """The URL of a page of an llms-full.txt: as it says, else its title as a part of that file."""
    try:
        url, mark, part = urljoin(base, page.url or "").partition("#")
        if page.url:
            return f"{normalise(url)}{mark}{part}"
    except (ValueError, Refused):  # what it says is no URL
        pass
    slug = re.sub(r"[^\w.-]+", "-", page.title).strip("-") or "page"
    return f"{base}#{slug}"


def _unused(url: str, taken: set[str]) -> str:
    """A URL of its own for a page: several may name the same, or none."""
    found, number = url, 1
    while found in taken:
        number += 1
        found = f"{url}-{number}" if "#" in url else f"{url}#{number}"
    taken.add(found)
    return found


def _text(page: Page) -> str:
    return page.content.decode(page.charset, "replace")


def _unsaid(page: Page) -> Page:
    """A page without what its server says of it: a twin is another URL, and llms.txt is always sent."""
    return replace(page, etag=None, last_modified=None)


def _twins(url: str) -> list[str]:
    """Where a page's markdown usually is."""
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


async def _each(work: Callable[[T], Awaitable[None]], items: Iterable[T], most: int) -> None:
    """Do something with every item, so many at once."""
    from anyio import Semaphore, create_task_group

    free = Semaphore(most)

    async def one(item: T) -> None:
        try:
            await work(item)
        finally:
            free.release()

    async with create_task_group() as tasks:
        for item in items:
            await free.acquire()
            tasks.start_soon(one, item)


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Done beside the network, as it takes the processor."""
    from anyio.to_thread import run_sync

    return await run_sync(work, *args)
