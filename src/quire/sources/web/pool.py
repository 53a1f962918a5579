"""Process pages while others are fetched: in a thread, or in worker processes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar

from quire import html
from quire.errors import NotPrepared, WorkerDied

if TYPE_CHECKING:
    from anyio import CapacityLimiter

    from quire.config import IngestSettings
    from quire.workers import Workers

T = TypeVar("T")
_MANY, _LONG = 16, 0.5  # calls, and seconds: for less, starting processes costs more than they save


class PagePool:
    """Process pages in a thread, or in worker processes once that has taken a while."""

    def __init__(self, limits: IngestSettings) -> None:
        self._limits = limits
        self._starter = ThreadPoolExecutor(1)
        self._workers: Future[Workers | None] | None = None
        self._done, self._seconds = 0, 0.0  # calls that a thread did, and their time
        self._thread: CapacityLimiter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._starter.shutdown()
        if self._workers and (workers := self._workers.result()):
            workers.__exit__(None, None, None)

    async def do(self, url: str, size: int, work: Callable[..., T], *args: Any) -> T:
        """The result of a function of a module for a page of `size` bytes.

        Raises SourceError if the call ends its process or exceeds the limits.
        """
        if workers := await self._ready(size):
            return await in_thread(_called, workers, url, work, *args)
        from anyio import CapacityLimiter
        from anyio.to_thread import run_sync

        # Several threads would be no faster, and each would need its own memory.
        self._thread = self._thread or CapacityLimiter(1)
        answer, seconds = await run_sync(_timed, work, *args, limiter=self._thread)
        self._done, self._seconds = self._done + 1, self._seconds + seconds
        return answer

    async def _ready(self, size: int) -> Workers | None:
        """The worker processes, if any. They are started when there seems to be much work."""
        is_large = not self._limits.are_far(size)
        if self._workers is None:
            if not is_large and (self._done < _MANY or self._seconds < _LONG):
                return None
            self._workers = self._starter.submit(_workers, self._limits)
        if is_large:  # it must be read within limits
            return await in_thread(self._workers.result)
        return self._workers.result() if self._workers.done() else None


def _called(workers: Workers, url: str, work: Callable[..., T], *args: Any) -> T:
    try:
        return workers.call(work, *args)
    except WorkerDied as error:
        raise NotPrepared(url, str(error)) from None


def _timed(work: Callable[..., T], *args: Any) -> tuple[T, float]:
    """The result of a function, and its processor time in seconds."""
    began = time.thread_time()
    return work(*args), time.thread_time() - began


def _workers(limits: IngestSettings) -> Workers | None:
    from quire.workers import started

    return started(html.to_markdown, "", limits=limits)


async def run_each(work: Callable[[T], Awaitable[None]], items: Iterable[T], most: int) -> None:
    """Do something with every item, a limited number in parallel."""
    from anyio import Semaphore, create_task_group

    free = Semaphore(most)

    async def one(item: T) -> None:
        try:
            await work(item)
        finally:
            free.release()

    async with create_task_group() as tasks:
        for item in items:
            await free.acquire()
            tasks.start_soon(one, item)


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Run CPU-bound work in a thread, so that the network does not wait."""
    from anyio.to_thread import run_sync

    return await run_sync(work, *args)
