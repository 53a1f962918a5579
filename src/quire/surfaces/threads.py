"""The threads behind a server: some read and one writes.

Always: a long add delays no search, and no search another; the library is opened on first use; who may see
some collections has a library of these alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from quire.config import Config
from quire.errors import NoResults, QuireError, RequestRefused
from quire.progress import Stopped
from quire.surfaces.jobs import Job, Jobs, Nothing, Unasked
from quire.workers import lower_priority

if TYPE_CHECKING:
    from quire.library import Library

log = logging.getLogger("quire")
T = TypeVar("T")
_Scope = tuple[str, ...] | None  # collections; None is all
_BEFORE_WATCHING = 1.0  # seconds: a client has connected by then, or made a library
_END = 5.0  # seconds that the end of the server waits for that of watching
_READERS = 20  # the most calls that are answered at the same time; each has a connection
_SERVING = min(4, max(2, os.cpu_count() or 2))  # the same of `quire serve`: more only wait for each other
_SLOW = 2  # calls that take long, such as a map, are answered apart from the others
_PLANS = 4  # plans that are made at the same time: they may wait for web servers
_SCOPES = 8  # libraries of some collections that stay open


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
        self._url, self._config, self.show = url, config, show
        self._job = Unasked("embedding", self._told)
        self._wanted, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="deepen", daemon=True)

    def _told(self, job: Job) -> None:
        self.show(job)

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
            job = self._job = Unasked("embedding", self._told)
            if not self._ended.is_set():
                self._embed(job)

    def _embed(self, job: Job) -> None:
        from quire.library import Library

        try:
            with Library.open(self._url, config=self._config) as library:
                library.deepen(progress=job)
                job.state = "done"
                with suppress(QuireError):  # another program may be writing: then the next time
                    library.optimize(idle=True)
        except Stopped:
            job.state = "stopped"
        except NoResults:  # no library yet: an agent may make one
            job.state = "done"
        except QuireError as problem:
            job.state, job.result = "failed", str(problem)
            log.info("not embedded: %s", problem)


class Pools:
    """Threads that read, some for what takes long, and one that writes."""

    def __init__(self, readers: int = _READERS) -> None:
        self.readers = ThreadPoolExecutor(readers, "read")
        self.slow = ThreadPoolExecutor(_SLOW, "slow")
        self.plans = ThreadPoolExecutor(_PLANS, "plan")
        self.writer = ThreadPoolExecutor(1, "write")

    def close(self) -> None:
        """End them, after the current work."""
        for pool in (self.readers, self.slow, self.plans, self.writer):
            pool.shutdown()


class Threads:
    """A library that is opened when it is first needed, the threads that use it, and their jobs."""

    def __init__(
        self,
        url: str,
        config: Config,
        after_write: Callable[[], None] = lambda: None,
        *,
        pools: Pools | None = None,
        scope: _Scope = None,
    ) -> None:
        self.url, self.config, self.scope, self.jobs = url, config, scope, Jobs()
        self._after_write, self._pools, self._own = after_write, pools or Pools(), pools is None
        self._library: Library | None = None
        self._opening, self.running = threading.Lock(), 0  # calls that run or wait
        self._planning = False

    def _submitted(self, pool: ThreadPoolExecutor, run: Callable[[], T]) -> asyncio.Future[T]:
        self.running += 1
        work = asyncio.get_running_loop().run_in_executor(pool, run)
        work.add_done_callback(self._ended)
        return work

    def _ended(self, _: asyncio.Future[Any]) -> None:
        self.running -= 1

    def read(self, work: Callable[[Library], T], *, is_slow: bool = False) -> asyncio.Future[T]:
        """Run a read on a library that others may be writing to. Raises Nothing if there is none.

        What is slow does not keep others waiting.
        """

        def run() -> T:
            library = self._opened(create=False)
            return library.fresh(partial(work, library))

        return self._submitted(self._pools.slow if is_slow else self._pools.readers, run)

    async def plan(self, work: Callable[[Library], T]) -> T:
        """Run a plan, which reads files and pages. Raises RequestRefused if one is being made already."""
        if self._planning:
            raise RequestRefused("A plan is being made. Ask again when it is done.", 429, retry_after=1)
        self._planning = True
        try:
            return await self._submitted(self._pools.plans, lambda: work(self._opened(create=False)))
        finally:
            self._planning = False

    def write(self, work: Callable[[Library], T], *, create: bool) -> asyncio.Future[T]:
        """Run a write, after all earlier ones."""

        def run() -> T:
            try:
                return work(self._opened(create))
            finally:
                self._after_write()

        return self._submitted(self._pools.writer, run)

    def _opened(self, create: bool) -> Library:
        from quire.library import Library

        with self._opening:
            try:
                self._library = self._library or Library.open(
                    self.url, create=create, config=self.config, collections=self.scope
                )
            except NoResults:
                raise Nothing from None
            return self._library

    def close(self) -> None:
        """Close the library, after the current work. If it is used once more, it is opened again."""
        if self._own:
            self._pools.close()
        with self._opening:
            library, self._library = self._library, None
        if library:
            library.close()


class Scopes:
    """The libraries of a server: the whole one, and those of the collections that some may see."""

    def __init__(self, url: str, config: Config, after_write: Callable[[], None] = lambda: None) -> None:
        self.pools = Pools(_SERVING)
        self._make = partial(Threads, url, config, after_write, pools=self.pools)
        self.whole = self._make()
        self._scoped: OrderedDict[tuple[str, ...], Threads] = OrderedDict()

    def threads(self, scope: _Scope) -> Threads:
        """The library of a scope. The one that was used longest ago is closed if there are many."""
        if scope is None:
            return self.whole
        found = self._scoped.pop(scope, None) or self._make(scope=scope)
        self._scoped[scope] = found
        if len(self._scoped) > _SCOPES:
            oldest = self._idle()
            if oldest is not None:  # closing waits for calls: in another thread
                threading.Thread(target=self._scoped.pop(oldest).close, daemon=True).start()
        return found

    def _idle(self) -> tuple[str, ...] | None:
        """The scope that was used longest ago and has nothing to do; never the last one."""
        others = list(self._scoped.items())[:-1]
        return next((scope for scope, one in others if not one.running), None)

    def all(self) -> list[Threads]:
        """The libraries that are open."""
        return [self.whole, *self._scoped.values()]

    def close(self) -> None:
        """Close all libraries, after the current work."""
        for one in self.all():
            one.jobs.stop()
        self.pools.close()
        for one in self.all():
            one.close()
