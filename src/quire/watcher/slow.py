"""What takes long, in a thread of its own: read pages and sites again, embed chunks, give back space."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from quire import sync
from quire.errors import QuireError
from quire.ingest.report import Report
from quire.stores import Store
from quire.watcher.telling import Embed, Problems, Reporter, Voice, Watched
from quire.workers import lower_priority

log = logging.getLogger("quire")
_IDLE = 60.0  # seconds until an unused model is closed
_END = 10.0  # seconds that the end waits for the work at hand


class Slow:
    """A thread with its own connection, so that changed files do not wait for it."""

    def __init__(self, watched: Watched, voice: Voice) -> None:
        self._another, self._config, self._voice = watched.another, watched.config, voice
        self._ended, self._wanted = threading.Event(), threading.Event()
        self._reporter, self._problems = Reporter(voice, lambda: not self._ended.is_set()), Problems(voice)
        self._thread = threading.Thread(target=self._run, name="watch-slow", daemon=True)

    def wake(self) -> None:
        """Have it look for work."""
        self._wanted.set()
        if not self._thread.ident:
            self._thread.start()

    def end(self) -> None:
        """Stop it between two transactions."""
        self._ended.set()
        self._wanted.set()
        if self._thread.ident:
            self._thread.join(_END)

    def _run(self) -> None:
        lower_priority()
        while not self._ended.is_set():
            self._wanted.wait()
            with self._survived(), self._another() as (store, embed):
                while self._wanted.is_set() and not self._ended.is_set():
                    self._wanted.clear()
                    self._work(store, embed)
                    if not self._wanted.wait(_IDLE):
                        self._give_back(store)

    @contextmanager
    def _survived(self) -> Iterator[None]:
        """An error ends the work at hand, which is tried again when there is more."""
        try:
            yield
        except QuireError as problem:
            self._voice.note(problem.message)
        except Exception:
            if not self._ended.is_set():
                log.exception("watching goes on, but this failed")

    def _work(self, store: Store, embed: Embed) -> None:
        with store.writing():
            due, report = self._due(store), Report()
            if due:
                report = sync.refresh(store, self._config, only=due, progress=self._reporter)
            embed(report, self._reporter)
        self._problems.tell(report, is_whole=True)

    def _give_back(self, store: Store) -> None:
        """Give back the space of what was deleted, if there is much."""
        with store.writing():
            done = store.optimize(idle=True)
        if done.freed:
            log.info("%d bytes of deleted documents were given back", done.freed)

    def _due(self, store: Store) -> set[int]:
        """The pages, sites and repositories that were not read for long."""
        web = (source for source in store.sources() if source.type in ("page", "site", "repository"))
        return {source.seq for source in web if is_due(source.checked_at, self._config.watch.pages)}


def is_due(checked_at: int, seconds: float) -> bool:
    """Whether something was not checked for so long. A time to come is from before the clock was set back."""
    return not 0 <= time.time_ns() // 1_000_000 - checked_at <= 1000 * seconds
