"""Read a page, a site by its llms.txt, or a site by its sitemaps and links."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from functools import partial

from quire.config import Config
from quire.progress import Progress
from quire.sources.names import is_site
from quire.sources.web.crawl import Crawler
from quire.sources.web.fetch import Fetcher
from quire.sources.web.pool import PagePool
from quire.sources.web.site import SiteCrawler
from quire.sources.web.visit import Validators, Visit, WebPage


async def read_web(
    place: str,
    known: Mapping[str, Validators],
    take: Callable[[PagePool, WebPage], Awaitable[None]],
    config: Config,
    *,
    whole: bool,
    held: Set[str] = frozenset(),
    progress: Progress | None = None,
) -> Visit:
    """Read a page, or a `whole` site, and pass its pages to `take`. Raises SourceError.

    `held` are the URLs of the pages that the source holds.
    """
    with PagePool(config.ingest) as pool:
        async with Fetcher(config.web) as fetcher:
            given = (fetcher, config, known, partial(take, pool), pool, held)
            if whole and not is_site(place):
                site = SiteCrawler(*given)
                await site.crawl(place, progress)
                return site.visit
            crawler = Crawler(*given)
            await (crawler.site(place, progress) if whole else crawler.page(place))
            return crawler.visit
