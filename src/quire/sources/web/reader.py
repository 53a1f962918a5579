"""Pages to text, for every way of reading a site: fetched, converted and passed on.

Always: a page that has a markdown version is taken as that; a page whose only message is that it was not
found counts as missing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from quire import html, readers
from quire.config import Config
from quire.errors import NotFound, SourceError
from quire.plural import counted
from quire.sources.web import llmstxt
from quire.sources.web.fetch import CHECK_URL, Fetcher
from quire.sources.web.pool import PagePool
from quire.sources.web.response import Response, decoded
from quire.sources.web.robots import Robots
from quire.sources.web.urls import same_site, twins_of
from quire.sources.web.visit import Take, Validators, Visit, WebPage

UNREAD = "pages that may link to them could not be read"
_PRUNE = "Its document stays. To remove it: quire refresh --prune"
_LITTLE = 2000  # characters: a longer page is more than a "not found" message
_GUESSES = 3  # missing markdown twins after which the crawler stops looking for them
_GONE = re.compile(
    r"\W*(?:(?:error )?404\b.*|(?:page|document|file) (?:was )?not found\W*.*|not found\W*)", re.I
)


class PageReader:
    """Reads pages with one fetcher.

    `known` has the validators of the stored pages, `held` the URLs of those that its source holds. Pages that
    were read are passed to `take`, several in parallel.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        config: Config,
        known: Mapping[str, Validators],
        take: Take,
        pool: PagePool,
        held: Set[str] = frozenset(),
    ) -> None:
        self.fetcher, self.config, self.known, self.take, self.pool = fetcher, config, known, take, pool
        self.held = held
        self.visit = Visit()
        self.place = ""  # of the site; "" for a page that a person named
        self.robots = Robots(fetcher)
        self.ends: dict[str, str] = {}  # where redirects lead
        self.left: defaultdict[str, list[str]] = defaultdict(list)  # links that were not followed, by reason
        self._missing_twins = 0

    def fail(self, url: str, problem: SourceError) -> None:
        """Record that a page of the site could not be read, and what to do if it is gone."""
        if isinstance(problem, NotFound):
            problem = not_typed(problem, _PRUNE if url in self.held else "")
        self.visit.fail(url, problem)

    def leaves_file(self, url: str, ending: str) -> bool:
        """Whether a linked file is left, because what would read it is not installed."""
        if how := self.lacks(url, ending):
            self.left[f"{ending} files need an optional part ({how})"].append(url)
        return bool(how)

    def lacks(self, url: str, ending: str) -> str:
        """What to install before a linked file can be read; "" for one whose failure is told: it is held."""
        is_own = url in self.held or url == self.place
        return "" if is_own else readers.missing_extra(ending)

    def tell_left(self) -> None:
        """Note how many links were not followed, by reason."""
        for why, found in self.left.items():
            urls = list(dict.fromkeys(found))
            links = counted(len(urls), "link was", "links were")
            self.visit.notes.append(f"{links} not followed: {why}, such as {urls[0]}")

    async def article(self, url: str, response: Response, *, links: bool) -> html.Article:
        """The content of a page in HTML. Raises NotFound if all it says is that there is no such page."""
        article = await self.pool.do(url, len(response.content), _article, response, links)
        if _GONE.fullmatch(article.title.strip()) and len(article.text) < _LITTLE:
            raise NotFound(url, f"says {article.title.strip()!r}, though its status is 200", 200)
        return article

    async def hand_on_article(self, url: str, response: Response, article: html.Article) -> None:
        """Pass on a page in HTML: its markdown version if there is one, else its article."""
        if twin := await self._twin((*response.links, *article.alternates), response):
            await self.hand_on(url, without_validators(twin))
        else:
            plain = replace(response, kind="markdown", charset="utf-8", content=article.text.encode())
            await self.hand_on(url, plain, article.title, anchors=article.anchors)

    async def _twin(self, named: Iterable[str], response: Response) -> Response | None:
        """The first twin that exists and is markdown. After several misses, the crawler stops guessing."""
        for url in dict.fromkeys(named):
            if found := await self._markdown_at(url, response):
                return found
        if self._missing_twins < _GUESSES:
            for url in twins_of(response.final_url):
                if found := await self._markdown_at(url, response):
                    self._missing_twins = 0
                    return found
            self._missing_twins += 1
        return None

    async def _markdown_at(self, url: str, response: Response) -> Response | None:
        try:
            if not same_site(url, response.final_url) or (self.place and not await self.robots.allows(url)):
                return None
            found = await self.fetcher.get(url)
        except SourceError:
            return None
        return found if found.kind == "markdown" and same_site(found.final_url, response.final_url) else None

    async def hand_on(
        self,
        url: str,
        response: Response,
        title: str = "",
        *,
        is_searched: bool = True,
        anchors: tuple[html.Anchor, ...] = (),
    ) -> None:
        """Pass on a page as text."""
        warnings = (response.warning,) if response.warning else ()
        is_kept = response.is_file or response.charset in ("utf-8", "utf-8-sig")
        content = response.content if is_kept else decoded(response)
        format = response.kind if response.is_file or response.kind == "text" else "markdown"
        validators = (response.etag, response.last_modified)
        about = (validators, warnings, is_searched, anchors)
        await self.take(WebPage(url, title or None, content, format, *about))


def not_typed(problem: NotFound, how: str = "") -> NotFound:
    """The error of a page whose URL nobody typed just now, and what to do if the page is gone."""
    reason = problem.reason.removesuffix(CHECK_URL)
    advice = f"{'' if reason.endswith(('.', '?')) else '.'} {how}" if how and problem.is_gone else ""
    return NotFound(problem.source, f"{reason}{advice}", problem.status)


def _article(response: Response, links: bool) -> html.Article:
    return html.to_markdown(decoded(response), response.final_url, links=links)


def links_of(response: Response) -> list[str]:
    """The links of an llms.txt, or of another page in markdown. A file has none."""
    if response.is_file:
        return []
    return [link.url for link in llmstxt.links(decoded(response), response.final_url)]


def without_validators(response: Response) -> Response:
    """A response without validators: a twin is another URL, and llms.txt is always sent."""
    return replace(response, etag=None, last_modified=None)
