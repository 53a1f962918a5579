"""The record of a visit to a page or a site, and the pages that it hands on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quire.errors import NotFound, SourceError

Validators = tuple[str | None, str | None]  # of a page: its etag, and when it was last modified


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text that can be indexed."""

    url: str
    title: str | None  # None: its text says
    content: bytes | str  # the bytes as they came where they are UTF-8
    format: str
    validators: Validators = (None, None)
    warnings: tuple[str, ...] = ()


Take = Callable[[WebPage], Awaitable[None]]


@dataclass(slots=True)
class Visit:
    """What reading a page or a site brought, besides the pages that were handed on."""

    present: set[str] = field(default_factory=set)  # URLs of all pages that there are, read or not
    unchanged: dict[str, Validators] = field(default_factory=dict)  # those that are as they were
    missing: set[str] = field(default_factory=set)  # those that their server does not have
    failed: dict[str, str] = field(default_factory=dict)  # what could not be read, and why
    notes: list[str] = field(default_factory=list)
    unsure: str = ""  # why there may be pages that are not among those present

    def fail(self, url: str, problem: SourceError) -> None:
        """Note that a page could not be read."""
        self.failed[url] = problem.reason
        if isinstance(problem, NotFound):
            self.missing.add(url)
