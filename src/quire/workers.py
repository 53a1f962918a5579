"""Run work in worker processes, each connected by its own pipe.

Always: workers share nothing, so a worker that dies loses only its own work; an interrupt from the
terminal does not reach them; they end with the process that started them, however it ended.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

from quire.config import IngestSettings
from quire.errors import WorkerDied

log = logging.getLogger("quire")
COUNT = 2
_LOW = 10  # niceness of work that can wait
TOGETHER = 16  # items in one message: a message costs 0.1 ms
_AHEAD = 32  # messages in progress, or done but not yet consumed: bounds memory
_START = (
    "import sys; sys.path[:] = sys.argv[2:];"
    " from quire.workers import serve_calls; serve_calls(int(sys.argv[1]))"
)
T = TypeVar("T")
R = TypeVar("R")


class Workers:
    """Processes that run functions of modules; calls may come from any thread."""

    def __init__(self, count: int = COUNT, limits: IngestSettings | None = None, *warming: Any) -> None:
        """`warming` is a call that a new process makes first, without a time limit, to load modules."""
        self._closing = False
        self._warming = warming
        self._seconds, self._memory = (limits.max_seconds, limits.max_memory) if limits else (0.0, 0)
        self._all = [_Worker(self._memory) for _ in range(count)]
        self._free = SimpleQueue[_Worker]()
        for worker in self._all:
            self._free.put(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        for worker in self._all:
            worker.end()

    def call(self, function: Callable[..., R], *arguments: object) -> R:
        """The result of a function, run in the next free process, or its error. Raises WorkerDied."""
        worker = self._free.get()
        try:
            if worker.is_new and self._warming:
                worker.ask(self._warming[0], self._warming[1:], 0)
            good, answer = worker.ask(function, arguments, self._seconds)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):  # ValueError: closed meanwhile
            worker.end()
            slow = worker.is_late
            if not self._closing:
                self._all.remove(worker)
                worker = _Worker(self._memory)
                self._all.append(worker)
            if slow:
                raise WorkerDied(
                    f"took longer than {self._seconds:g} s. If the file is fine, raise"
                    " [ingest] max_seconds in your quire.toml"
                ) from None
            raise WorkerDied from None
        finally:
            self._free.put(worker)
        if good:
            return answer  # type: ignore[no-any-return]
        raise answer


def spread(
    function: Callable[[list[T]], list[R]],
    items: Iterable[T],
    lost: Callable[[T, WorkerDied], R],
    *,
    count: int = COUNT,
    limits: IngestSettings | None = None,
) -> Iterator[R]:
    """The results of a function, which takes some items at a time, in order.

    An item that exceeds the limits of time or memory ends its process; `lost` gives its result.
    """
    workers = started(function, [], count=count, limits=limits)
    rest = iter(items)
    if workers is None:
        while some := list(islice(rest, TOGETHER)):
            yield from function(some)
        return
    waiting = deque[Future[list[R]]]()
    threads = ThreadPoolExecutor(COUNT)
    try:
        with workers:
            while some := list(islice(rest, TOGETHER)):
                waiting.append(threads.submit(_several, workers, function, some, lost))
                if len(waiting) == _AHEAD:
                    yield from waiting.popleft().result()
            while len(waiting) > 1:
                yield from waiting.popleft().result()
            last = waiting.popleft().result() if waiting else []
        yield from last  # the workers have ended: what they took is free for what is done with this
    finally:
        threads.shutdown(cancel_futures=True)


def started(
    function: Callable[..., object],
    *arguments: object,
    count: int = COUNT,
    limits: IngestSettings | None = None,
) -> Workers | None:
    """Workers that have each run a test call; None if no worker can be started."""
    count = min(count, os.cpu_count() or 1)
    if count < COUNT and limits is None:
        return None
    with ExitStack() as stack:
        try:
            workers = stack.enter_context(Workers(count, limits, function, *arguments))
            for _ in range(count):  # each worker once: free ones are taken in turn
                workers.call(function, *arguments)
        except (OSError, WorkerDied) as problem:
            log.warning("no worker process starts (%s): this process reads alone", problem)
            return None
        stack.pop_all()
        return workers


def _several(
    workers: Workers,
    function: Callable[[list[T]], list[R]],
    items: list[T],
    lost: Callable[[T, WorkerDied], R],
) -> list[R]:
    try:
        return workers.call(function, items)
    except WorkerDied as error:
        if len(items) == 1:
            return [lost(items[0], error)]
        return [answer for item in items for answer in _several(workers, function, [item], lost)]


class _Worker:
    """A process that answers calls, one at a time."""

    def __init__(self, memory: int) -> None:
        self.is_new = True
        self.is_late = False  # it was ended because it took too long
        # -P: nothing is imported from the folder that Quire happens to be started in.
        command = [sys.executable, "-P", "-c", _START, str(memory), *sys.path]
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if memory else None,  # a library that runs out of memory prints a lot
            # and may wait forever for memory to print. Workers are the threads.
            env={**os.environ, "RUST_BACKTRACE": "0", "OPENBLAS_NUM_THREADS": "1"},
            process_group=0,
        )

    def ask(
        self, function: Callable[..., object], arguments: tuple[object, ...], seconds: float
    ) -> tuple[bool, Any]:
        """Whether a call returned, and what it returned or raised. A time limit of 0 is none."""
        self.is_new = False
        assert self._process.stdin  # noqa: S101
        assert self._process.stdout  # noqa: S101
        with self._timer(seconds):
            pickle.dump((function, arguments), self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)  # type: ignore[no-any-return]  # noqa: S301

    @contextmanager
    def _timer(self, seconds: float) -> Iterator[None]:
        """End the process if the block takes too long."""
        if not seconds:
            yield
            return
        timer = threading.Timer(seconds, self._end_late)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _end_late(self) -> None:
        self.is_late = True
        self._process.kill()

    def end(self) -> None:
        """Kill the process. It holds nothing that could be left half done."""
        with suppress(OSError), self._process as process:  # unsent data is lost
            process.kill()


def _limit_memory(most: int) -> None:
    """Limit the data size of this process, if the system supports it."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    except (ImportError, AttributeError, OSError, ValueError):
        return


def lower_priority() -> None:
    """Give this thread, and those that it starts, less of the processor than others, if the system can."""
    with suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOW)


def serve_calls(max_memory: int = 0) -> None:
    """Answer calls from standard input until it ends: the main loop of a worker."""
    if max_memory:
        _limit_memory(max_memory)
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    sys.stdout = sys.stderr
    while True:
        try:
            function, arguments = pickle.load(calls)  # noqa: S301
        except EOFError:
            return
        answer: tuple[bool, object]
        try:
            answer = True, function(*arguments)
        except Exception as error:
            error.add_note(traceback.format_exc())
            answer = False, error
        pickle.dump(answer, answers)  # dumps() would hold all of it once more
        answers.flush()
        del answer, arguments
