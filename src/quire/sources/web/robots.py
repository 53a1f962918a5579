"""The rules of robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from quire.errors import SourceError, TransientError
from quire.sources.web.response import decoded
from quire.sources.web.urls import normalise_url

if TYPE_CHECKING:
    from anyio import Lock

    from quire.sources.web.fetch import Fetcher


class Robots:
    """The rules of each server, each fetched once."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, Any] = {}  # by origin
        self._asking: dict[str, Lock] = {}

    async def allows(self, url: str) -> bool:
        """Whether a page may be read."""
        return bool((await self._of(url)).can_fetch(url, "quire"))

    async def sitemaps(self, url: str) -> list[str]:
        """The sitemaps that the server of a page names."""
        return [str(named) for named in (await self._of(url)).sitemaps]

    async def _of(self, url: str) -> Any:
        """The rules for a page."""
        from anyio import Lock

        origin = normalise_url(urljoin(url, "/"))
        async with self._asking.setdefault(origin, Lock()):
            if origin not in self._rules:
                self._rules[origin] = await self._fetch(origin)
        return self._rules[origin]

    async def _fetch(self, origin: str) -> Any:
        """The rules of a server. If it has none, all may be read; if they cannot be fetched, nothing."""
        from protego import Protego

        try:
            rules = decoded(await self._fetcher.get(urljoin(origin, "robots.txt")))
        except TransientError:
            rules = "User-agent: *\nDisallow: /"
        except SourceError:
            rules = ""
        return Protego.parse(rules)
