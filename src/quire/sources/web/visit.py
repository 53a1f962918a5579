"""The record of a crawl of a page or a site, and the pages that it passes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quire.errors import NotFound, SourceError
from quire.sources.files import Skipped

Validators = tuple[str | None, str | None]  # of a page: its etag, and when it was last modified


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text that can be indexed, or a file that can be converted."""

    url: str
    title: str | None  # None: taken from its text
    content: bytes | str  # the original bytes if they are UTF-8
    format: str  # of a file that a reader converts its ending, such as ".pdf"
    validators: Validators = (None, None)
    warnings: tuple[str, ...] = ()
    is_searched: bool = True  # False: it can be read, and its parts are pages that are found
    anchors: tuple[tuple[int, str], ...] = ()  # see html.Article; of pages in HTML only

    @property
    def is_file(self) -> bool:
        """Whether it is a file that a reader converts."""
        return self.format.startswith(".")


Take = Callable[[WebPage], Awaitable[None]]


@dataclass(slots=True)
class Visit:
    """The outcome of reading a page or a site, besides the pages that were passed on."""

    present: set[str] = field(default_factory=set)  # URLs of all pages that exist, read or not
    unchanged: dict[str, Validators] = field(default_factory=dict)  # unchanged pages
    missing: set[str] = field(default_factory=set)  # pages that the server does not have or show
    gone: set[str] = field(default_factory=set)  # those of them that it says are gone: 404 or 410
    failed: dict[str, Skipped] = field(default_factory=dict)  # pages that could not be read, and why
    notes: list[str] = field(default_factory=list)
    unsure: str = ""  # why `present` may be incomplete

    def fail(self, url: str, problem: SourceError) -> None:
        """Record that a page could not be read."""
        self.failed[url] = Skipped(url, problem.reason, problem.code)
        if isinstance(problem, NotFound):
            self.missing.add(url)
            if problem.is_gone:
                self.gone.add(url)
