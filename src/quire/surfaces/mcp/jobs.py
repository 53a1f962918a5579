"""The threads behind the MCP server: some read and one writes.

Always: a long add delays no search, and no search another; the library is opened on first use; a cancelled
job stops between two transactions.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from quire.config import Config
from quire.errors import NoResults, QuireError
from quire.progress import Silent, Stopped
from quire.surfaces.mcp.text import Answer, on_one_line
from quire.workers import lower_priority

if TYPE_CHECKING:
    from quire.library import Library

log = logging.getLogger("quire")
T = TypeVar("T")
CAN_GO_ON = "What was written before is whole; add again to go on."
_BEFORE_WATCHING = 1.0  # seconds: a client has connected by then, or made a library
_END = 5.0  # seconds that the end of the server waits for that of watching
_READERS = 20  # the most calls that are answered at the same time; each has a connection
_LONGEST = 200  # characters of each text in a job's status


class Nothing(Exception):
    """There is no library yet, or nothing in it."""


class Job(Silent):
    """One add and its progress: the library reports it, status shows it."""

    def __init__(self, what: str, *, is_awaited: bool = False) -> None:
        self.id, self.what, self._is_awaited = secrets.token_hex(4), what, is_awaited
        self.state, self.result = "waiting", ""
        self.work, self.unit, self.done, self.total, self.failed = "", "", 0, 0, 0
        self.before = 0  # done in earlier pieces of work: progress never decreases
        self.stop = threading.Event()

    def start(self) -> None:
        """Mark the job as started."""
        self._go_on()
        self.state = "running"

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work."""
        self._go_on()
        done, self.done = self.done, 0
        self.before += done
        self.work, self.unit, self.total = work, unit, total

    def advance(self, amount: int, failed: int = 0) -> None:
        """Report `amount` more units; `failed` of them failed."""
        self.done += amount
        self.failed += failed
        self._go_on()

    def _go_on(self) -> None:
        if self.stop.is_set():
            raise Stopped

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.state not in ("waiting", "running")

    @property
    def is_listed(self) -> bool:
        """Whether status shows it: whoever waited for its end was told."""
        return not (self.is_over and self._is_awaited)

    @property
    def so_far(self) -> str:
        """The progress, in words."""
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.work}: {self.done:,} of {self.total:,} {self.unit}{failed}" if self.work else ""

    def told(self) -> dict[str, str]:
        """A job as data, with the first line of its result."""
        shown = {"job": self.id, "state": self.state, "what": self.what}
        result = self.result.partition("\n")[0]
        shown |= {"progress": self.so_far} if self.state == "running" else {"result": result}
        return {name: on_one_line(value)[:_LONGEST] for name, value in shown.items() if value}

    def ended(self, work: asyncio.Future[Answer]) -> None:
        """Remember how it ended."""
        problem = None if work.cancelled() else work.exception()
        if work.cancelled() or isinstance(problem, Stopped):
            self.state, self.result = "stopped", CAN_GO_ON
        elif isinstance(problem, Nothing):
            self.state, self.result = "done", "Nothing is indexed yet."
        elif problem:
            known = isinstance(problem, QuireError)
            self.state, self.result = "failed", str(problem) if known else "The server's log says why."
            log.log(logging.INFO if known else logging.ERROR, "job %s failed", self.id, exc_info=problem)
        else:
            self.state = "failed" if work.result().error else "done"
            self.result = work.result().text


class Unasked(Job):
    """A job that nobody asked for: it is shown as soon as it has something to do."""

    def __init__(self, what: str, show: Callable[[Job], object]) -> None:
        super().__init__(what)
        self._show = show

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work, and show the job if that is more than to wait."""
        super().begin(work, total, unit)
        self.state = "running"
        if total:
            self._show(self)


class Watching:
    """A thread that keeps the library up to date while the server runs."""

    def __init__(self, url: str, config: Config) -> None:
        self._url, self._config, self._stop = url, config, threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Start it. The first requests come before its work."""
        self._thread.start()

    def stop(self) -> None:
        """Stop it between two transactions, unless that takes long."""
        self._stop.set()
        if self._thread.ident:
            self._thread.join(_END)

    def _run(self) -> None:
        while not self._stop.wait(_BEFORE_WATCHING):
            try:
                self._watch()
            except NoResults:  # no library yet: an agent may make one
                continue
            except QuireError as problem:
                log.warning("watching begins again: %s", problem)

    def _watch(self) -> None:
        from quire.library import Library

        with Library.open(self._url, config=self._config) as library:
            library.watch(on_note=log.info, stop=self._stop)


class Deepening:
    """A thread that embeds what was left to `quire embed`, while the server has nothing better to do.

    Each run is a job, which can be stopped; the next begins after the next write.
    """

    def __init__(self, url: str, config: Config, show: Callable[[Job], object] = lambda _: None) -> None:
        self._url, self._config, self._show = url, config, show
        self._job = Unasked("embedding", show)
        self._wanted, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="deepen", daemon=True)

    def start(self) -> None:
        """Start it. The first requests come before its work."""
        self._wanted.set()
        self._thread.start()

    def wake(self) -> None:
        """Have it look for work."""
        self._wanted.set()

    def stop(self) -> None:
        """Stop it between two transactions, unless that takes long."""
        self._ended.set()
        self._job.stop.set()
        self._wanted.set()
        if self._thread.ident:
            self._thread.join(_END)

    def _run(self) -> None:
        lower_priority()
        while not self._ended.wait(_BEFORE_WATCHING):
            self._wanted.wait()
            self._wanted.clear()
            job = self._job = Unasked("embedding", self._show)
            if not self._ended.is_set():
                self._embed(job)

    def _embed(self, job: Job) -> None:
        from quire.library import Library

        try:
            with Library.open(self._url, config=self._config) as library:
                library.deepen(progress=job)
            job.state = "done"
        except Stopped:
            job.state = "stopped"
        except NoResults:  # no library yet: an agent may make one
            job.state = "done"
        except QuireError as problem:
            job.state, job.result = "failed", str(problem)
            log.info("not embedded: %s", problem)


class Threads:
    """Threads that read and one that writes, all on one library, which is opened when it is first needed."""

    def __init__(self, url: str, config: Config, after_write: Callable[[], None] = lambda: None) -> None:
        self.url, self.config, self._after_write = url, config, after_write
        self._readers = ThreadPoolExecutor(_READERS, "read")
        self._writer = ThreadPoolExecutor(1, "write")
        self._library: Library | None = None
        self._opening = threading.Lock()

    def read(self, work: Callable[[Library], T]) -> asyncio.Future[T]:
        """Run a read on a library that others may be writing to. Raises Nothing if there is none."""

        def run() -> T:
            library = self._opened(create=False)
            return library.fresh(partial(work, library))

        return asyncio.get_running_loop().run_in_executor(self._readers, run)

    def write(self, work: Callable[[Library], T], *, create: bool) -> asyncio.Future[T]:
        """Run a write, after all earlier ones."""

        def run() -> T:
            try:
                return work(self._opened(create))
            finally:
                self._after_write()

        return asyncio.get_running_loop().run_in_executor(self._writer, run)

    def _opened(self, create: bool) -> Library:
        from quire.library import Library

        with self._opening:
            try:
                self._library = self._library or Library.open(self.url, create=create, config=self.config)
            except NoResults:
                raise Nothing from None
            return self._library

    def close(self) -> None:
        """Close the library, after the current work."""
        self._readers.shutdown()
        self._writer.shutdown()
        if self._library:
            self._library.close()
