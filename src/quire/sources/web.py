"""URLs and sites to pages of text.

`Reader.page` reads one page; `Reader.site` reads what a site says of itself in llms.txt: the pages of
its llms-full.txt where that is whole, else the documents that llms.txt links. Always: a page that
cannot be read is named with its reason and the rest goes on; only pages of the same site are read; what
has not changed since it was last read is not sent again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from quire import html
from quire.config import Config
from quire.errors import NotFound, QuireError, Refused, SourceError, TransientError
from quire.progress import Progress, Silent
from quire.sources import llmstxt
from quire.sources.files import Skipped
from quire.sources.names import FULL, INDEX
from quire.sources.page import Page
from quire.sources.urls import is_address, normalise, target_of

if TYPE_CHECKING:
    from quire.sources.fetch import Fetcher

T = TypeVar("T")
_LITTLE = 2000  # characters: a page with more says more than that there is none
_GUESSES = 3  # markdown twins that may be missing before no more are looked for
_GONE = re.compile(
    r"\W*(?:(?:error )?404\b.*|(?:page|document|file) (?:was )?not found\W*.*|not found\W*)", re.I
)

Seen = Mapping[str, tuple[str | None, str | None]]  # a URL to the etag and time of what is known of it


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text that can be indexed."""

    url: str
    title: str | None  # None: its text says
    content: bytes | str  # the bytes as they came where they are UTF-8
    format: str
    etag: str | None
    last_modified: str | None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Visit:
    """What reading a page or a site brought."""

    read: int = 0
    unchanged: set[str] = field(default_factory=set)  # URLs of pages that are as they were
    failed: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Take = Callable[[WebPage], None]  # called in a worker thread


def home(source: str) -> str:
    """The URL that a site's llms.txt stands right under."""
    return normalise(urljoin(normalise(source), "."))


@cache
def _suffixes() -> Any:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def same_site(url: str, other: str) -> bool:
    """Whether one owner has both: their hosts end in the same name that can be bought."""
    a, b = target_of(url).host, target_of(other).host
    if a == b or is_address(a) or is_address(b):
        return a == b
    owner = _suffixes().privatesuffix(a)
    return owner is not None and owner == _suffixes().privatesuffix(b)


class Reader:
    """Reads pages with one fetcher; `seen` is what is known of them."""

    def __init__(self, fetcher: Fetcher, config: Config, seen: Seen, take: Take) -> None:
        self.fetcher, self.config, self.seen, self.take = fetcher, config, seen, take
        self.visit = Visit()
        self._robots: dict[str, Any] = {}
        self._missing_twins = 0

    # ------------------------------------------------------------------------------------- a page

    async def page(self, url: str, site: str | None = None) -> tuple[str, ...]:
        """Read one page and hand it on; the links in it. Raises SourceError."""
        etag, last_modified = self.seen.get(url, (None, None))
        page = await self.fetcher.get(url, etag=etag, last_modified=last_modified)
        if site is not None and not same_site(page.final_url, site):
            raise Refused(url, f"leads to another site, {page.final_url}")
        if page.status == 304:
            self.visit.unchanged.add(url)
            return ()
        if page.kind != "html":
            await _in_thread(self._hand_on, url, page)
            return ()
        article = await _in_thread(html.to_markdown, _text(page), page.final_url)
        if _GONE.fullmatch(article.title.strip()) and len(article.text) < _LITTLE:
            raise NotFound(url, f"says {article.title.strip()!r}, though its status is 200", 404)
        twin = await self._twin((*page.links, *article.alternates), page)
        plain = replace(page, kind="markdown", charset="utf-8", content=article.text.encode())
        await _in_thread(self._hand_on, url, twin or plain, None if twin else article.title)
        links: tuple[str, ...] = article.links
        return links

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
            if not same_site(url, page.final_url):
                return None
            found = await self.fetcher.get(url)
        except SourceError:
            return None
        return found if found.kind == "markdown" else None

    def _hand_on(self, url: str, page: Page, title: str | None = None) -> None:
        warnings = (f"its encoding was guessed to be {page.charset}",) if page.guessed else ()
        content = page.content if page.charset in ("utf-8", "utf-8-sig") else _text(page)
        format = "text" if page.kind == "text" else "markdown"
        self.take(WebPage(url, title or None, content, format, page.etag, page.last_modified, warnings))
        self.visit.read += 1

    # ------------------------------------------------------------------------------------- a site

    async def site(self, source: str, progress: Progress | None = None) -> None:
        """Read what a site says of itself and hand its pages on. Raises SourceError if that is nothing."""
        start = home(source)
        index, full = await self._said(start)
        links = llmstxt.parse(_text(index), index.final_url).links if index else ()
        wanted = [link.url for link in links if same_site(link.url, start)]
        if len(wanted) < len(links):
            self.visit.notes.append(f"{len(links) - len(wanted):,} links lead to other sites and were left.")
        if index:
            await _in_thread(self._hand_on, normalise(urljoin(start, INDEX)), index)
        if full and await _in_thread(self._pages_of, full, wanted):
            return
        if not index:
            raise NotFound(source, f"has no {INDEX}, and its {FULL} is empty", 404)
        await self._crawl(wanted, start, progress or Silent())

    async def _said(self, start: str) -> tuple[Page | None, Page | None]:
        """Its llms.txt and its llms-full.txt, as far as they are there."""
        found: list[Page | None] = []
        problems: list[SourceError] = []
        for name in (INDEX, FULL):
            try:
                page = await self.fetcher.get(urljoin(start, name))
                found.append(None if page.kind == "html" else page)  # a server that has a page for everything
            except SourceError as problem:
                problems.append(problem)
                found.append(None)
        if not any(found):
            passing = next((p for p in problems if isinstance(p, TransientError | Refused)), None)
            how = "Add a page by its URL, such as quire add https://example.com/guide"
            raise passing or NotFound(start, f"has neither {INDEX} nor {FULL}. {how}", 404)
        if found[0] and len(problems) == 1 and isinstance(problems[0], TransientError):
            self.visit.notes.append(f"{FULL} could not be read: {problems[0].reason}")
        return found[0], found[1]

    def _pages_of(self, full: Page, wanted: list[str]) -> bool:
        """Hand on the pages of an llms-full.txt, if it is whole: it has most of what llms.txt links."""
        text = _text(full)
        pages = [page for page in llmstxt.pages(text) if text[page.start : page.end].strip()]
        if not pages or 2 * len(pages) < len(wanted):
            if pages:
                short = f"{FULL} has {len(pages):,} pages for {len(wanted):,} links"
                self.visit.notes.append(f"{short}, so the links were read instead.")
            return False
        taken: set[str] = set()
        for page in self._capped(pages, self.config.web.max_pages):
            slug = re.sub(r"[^\w.-]+", "-", page.title).strip("-") or "page"
            url = _unused(urljoin(full.final_url, page.url or f"#{slug}"), taken)
            self.take(WebPage(url, page.title or None, text[page.start : page.end], "markdown", None, None))
            self.visit.read += 1
        return True

    def _capped(self, pages: list[T], most: int) -> list[T]:
        """As many as may be read; it is said if there are more."""
        if len(pages) > most:
            cap = f"web.max_pages = {self.config.web.max_pages:,}"
            reason = f"{len(pages) - most:,} pages are over {cap}. Raise [web] max_pages in quire.toml"
            self.visit.failed.append(Skipped(INDEX, reason))
        return pages[:most]

    async def _crawl(self, wanted: list[str], start: str, progress: Progress) -> None:
        """Read pages and what they link to, level by level."""
        from anyio import CapacityLimiter, create_task_group

        limit, done, level = CapacityLimiter(self.config.web.concurrency), set[str](), list(wanted)
        for depth in range(1, self.config.web.max_depth + 1):
            level = self._capped(level, self.config.web.max_pages - len(done))
            done |= set(level)
            progress.begin(f"reading {target_of(start).host}", len(level), "pages")
            found: list[str] = []
            async with create_task_group() as tasks:
                for url in level:
                    await limit.acquire_on_behalf_of(url)
                    tasks.start_soon(self._one, url, start, found, limit, progress)
            if depth == self.config.web.max_depth:
                return
            level = [url for url in dict.fromkeys(found) if url not in done and same_site(url, start)]

    async def _one(self, url: str, start: str, found: list[str], limit: Any, progress: Progress) -> None:
        """Read a page of a crawl; what goes wrong with it is noted."""
        failed = 0
        try:
            if not await self._may(url):
                raise Refused(url, "is not for robots, says robots.txt")
            found += await self.page(url, start)
        except QuireError as problem:
            reason = problem.reason if isinstance(problem, SourceError) else str(problem)
            self.visit.failed.append(Skipped(url, reason))
            failed = 1
        finally:
            limit.release_on_behalf_of(url)
        progress.advance(1, failed)

    async def _may(self, url: str) -> bool:
        """Whether robots.txt lets a page be read: all if there is none, nothing if it cannot be had."""
        from protego import Protego

        origin = normalise(urljoin(url, "/"))
        if origin not in self._robots:
            try:
                said = _text(await self.fetcher.get(urljoin(origin, "robots.txt")))
            except TransientError:
                said = "User-agent: *\nDisallow: /"
            except SourceError:
                said = ""
            self._robots[origin] = Protego.parse(said)
        return bool(self._robots[origin].can_fetch(url, "quire"))


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


async def _in_thread(work: Callable[..., Any], *args: Any) -> Any:
    """Done beside the network, as it takes the processor."""
    from anyio.to_thread import run_sync

    return await run_sync(work, *args)
