"""What is watched, and how its changes and problems are told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from quire.config import Config
from quire.ingest.report import Report
from quire.progress import DocumentChange, Progress, Silent
from quire.stores import Store

Embed = Callable[[Report, Progress], None]  # embeds what is new, and reports what failed
Another = Callable[[], AbstractContextManager[tuple[Store, Embed]]]  # opens the library once more


@dataclass(frozen=True, slots=True)
class Watched:
    """A library to watch, and whom to tell."""

    store: Store
    url: str
    config: Config
    another: Another  # for another thread
    on_change: Callable[[DocumentChange], None]
    on_note: Callable[[str], None]


class Voice:
    """Tells of changes and of what a person should know, from one thread at a time."""

    def __init__(self, watched: Watched) -> None:
        self._watched, self._lock, self._told = watched, threading.Lock(), set[str]()

    def change(self, change: DocumentChange) -> None:
        """Tell of a change."""
        with self._lock:
            self._watched.on_change(change)

    def note(self, text: str) -> None:
        """Tell a person something."""
        with self._lock:
            self._watched.on_note(text)

    def once(self, text: str) -> None:
        """Tell a person something, unless it was told before."""
        if text not in self._told:
            self._told.add(text)
            self.note(text)


class Problems:
    """Tells what runs could not do, each problem once until it is mended."""

    def __init__(self, voice: Voice) -> None:
        self._voice, self._known = voice, set[str]()

    def tell(self, report: Report, *, is_whole: bool) -> None:
        """Tell what is new. A whole run shows what is mended, too."""
        now = [f"{one.source}: {one.reason}" for one in report.failed]
        now += [f"skipped {one.source}: {one.reason}" for one in report.skipped]
        now += report.warnings
        for text in now:
            if text not in self._known:
                self._voice.note(text)
        self._known = set(now) if is_whole else self._known | set(now)


class Ended(Exception):
    """The work is to end: a person stopped it, or another process has the lease."""


class Reporter(Silent):
    """Progress that tells of changes, and ends work that is not to go on."""

    def __init__(self, voice: Voice, goes_on: Callable[[], bool]) -> None:
        self._voice, self._goes_on = voice, goes_on

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work."""
        self.advance(0)

    def advance(self, amount: int, failed: int = 0) -> None:
        """Go on, or raise Ended."""
        if not self._goes_on():
            raise Ended

    def changed(self, change: DocumentChange) -> None:
        """Tell of a change."""
        self._voice.change(change)
