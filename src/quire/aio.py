"""AsyncLibrary: Library for programs with an event loop, with the same names and arguments.

async with AsyncLibrary.open("docs.db") as library:
    found = await library.search("how do I install it")

Always: nothing here blocks the event loop, work is done in threads of the library's own; some read at the
same time, and one writes; a cancelled write has ended when its task has, and what it wrote before is whole.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from quire.config import DEFAULT, Config
from quire.errors import LibraryError
from quire.library import Library
from quire.progress import DocumentChange, Progress, Silent, Stopped

__all__ = ["AsyncLibrary"]

_P = ParamSpec("_P")
T = TypeVar("T")
_A = TypeVar("_A", bound="AsyncLibrary")
_READERS = 8  # threads; each has a connection
_SLOW = 4  # threads for what takes minutes and lets others write
_STOPPED = "was closed before this had ended. What was written is whole"
_Method = Callable[Concatenate[Library, _P], T]
_Coroutine = Callable[Concatenate["AsyncLibrary", _P], Coroutine[Any, Any, T]]


class _Stopping:
    """Progress that stops the work once nobody wants it any more."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self.stop = progress or Silent(), threading.Event()

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work."""
        self._go_on()
        self._progress.begin(work, total, unit)

    def advance(self, amount: int, failed: int = 0) -> None:
        """Report `amount` more units; `failed` of them failed."""
        self._progress.advance(amount, failed)
        self._go_on()

    def changed(self, change: DocumentChange) -> None:
        """Report a change to a document."""
        self._progress.changed(change)

    def _go_on(self) -> None:
        if self.stop.is_set():
            raise Stopped


class _Threads:
    """The threads that work for a library."""

    def __init__(self) -> None:
        self.read = ThreadPoolExecutor(_READERS, "quire-read")
        self.write = ThreadPoolExecutor(1, "quire-write")
        self.slow = ThreadPoolExecutor(_SLOW, "quire-slow")
        self.is_ended, self.stops = False, set[threading.Event]()  # what stops the work that is going on

    def stop(self) -> None:
        """Stop the work that reports its progress."""
        for stop in list(self.stops):
            stop.set()

    def close(self) -> None:
        """End the threads when their work is done."""
        self.is_ended = True
        for pool in (self.read, self.write, self.slow):
            pool.shutdown(wait=False)


def _submitted(pool: ThreadPoolExecutor, work: Callable[[], T]) -> Future[T]:
    """Work in a thread, with the context variables of the task that wants it."""
    return pool.submit(contextvars.copy_context().run, work)


async def _ended(work: Future[T], stop: Callable[[], None]) -> T:
    """The result of work. If the task is cancelled, the work is stopped, and its end is awaited."""
    waiting = asyncio.wrap_future(work)
    try:
        await asyncio.wait([waiting])  # which does not cancel it
    except asyncio.CancelledError:
        stop()
        waiting.add_done_callback(_take_error)
        if not work.cancel():  # it has begun
            await asyncio.wait([waiting])
        raise
    return waiting.result()


def _take_error(work: asyncio.Future[Any]) -> None:
    """Take the error of work that nobody wants, so that asyncio does not report it."""
    if not work.cancelled():
        work.exception()


def _reads(method: _Method[_P, T]) -> _Coroutine[_P, T]:
    """A coroutine that reads. If it is cancelled, it ends at once."""

    @wraps(method)
    async def wrapped(self: AsyncLibrary, /, *args: _P.args, **kwargs: _P.kwargs) -> T:
        work = partial(method, self._library, *args, **kwargs)
        return await asyncio.wrap_future(_submitted(self._running.read, work))

    return wrapped


def _writes(method: _Method[_P, T]) -> _Coroutine[_P, T]:
    """A coroutine that writes, after those before it."""

    @wraps(method)
    async def wrapped(self: AsyncLibrary, /, *args: _P.args, **kwargs: _P.kwargs) -> T:
        return await self._stoppable(self._running.write, method, *args, **kwargs)

    return wrapped


def _works(method: _Method[_P, T]) -> _Coroutine[_P, T]:
    """A coroutine that takes long, and lets others write."""

    @wraps(method)
    async def wrapped(self: AsyncLibrary, /, *args: _P.args, **kwargs: _P.kwargs) -> T:
        return await self._stoppable(self._running.slow, method, *args, **kwargs)

    return wrapped


class _Opening(Generic[_A]):
    """A library that is being opened: to be awaited, or entered with `async with`."""

    def __init__(self, cls: type[_A], open_library: Callable[[], Library]) -> None:
        self._cls, self._open = cls, open_library

    if not TYPE_CHECKING:  # which finds the mistake by itself

        def __getattr__(self, name: str) -> Any:
            how = "await AsyncLibrary.open(…), or use it with `async with`"
            raise AttributeError(f"the library is not open yet: {how}", name=name, obj=self)

    def __await__(self) -> Generator[Any, None, _A]:
        return self._opened().__await__()

    async def _opened(self) -> _A:
        threads = _Threads()
        opening = _submitted(threads.write, self._open)
        try:
            return self._cls(await _ended(opening, lambda: None), threads)
        except BaseException:
            opening.add_done_callback(_close_unwanted)
            threads.close()
            raise

    async def __aenter__(self) -> _A:
        self._library = await self
        return self._library

    async def __aexit__(self, *_: object) -> None:
        await self._library.close()


def _close_unwanted(opening: Future[Library]) -> None:
    if not opening.cancelled() and not opening.exception():
        opening.result().close()


class AsyncLibrary:
    """A Library for programs with an event loop: the same names and arguments, each a coroutine."""

    def __init__(self, library: Library, threads: _Threads) -> None:
        self._library, self._threads = library, threads

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        create: bool = False,
        config: Config = DEFAULT,
        collections: Iterable[str] | None = None,
    ) -> _Opening[Self]:
        """The library at a path or postgresql:// URL, or only some collections of it, as `Library.open` does.

        Use it with `async with`, or await it and await `close` at the end. Raises NoResults if there is none.
        """
        given: Any = {"create": create, "config": config, "collections": collections}
        return _Opening(cls, partial(Library.open, url, **given))

    @property
    def url(self) -> str:
        """Where the library is."""
        return self._library.url

    @property
    def config(self) -> Config:
        """Its settings."""
        return self._library.config

    @property
    def _running(self) -> _Threads:
        """The threads. Raises LibraryError if the library is closed."""
        if self._threads.is_ended:
            _ = self._library.store
        return self._threads

    async def _stoppable(
        self, pool: ThreadPoolExecutor, method: Callable[..., T], *args: Any, **kwargs: Any
    ) -> T:
        """The result of a method. Cancelling stops one that reports its progress, and so does closing."""
        signature = inspect.signature(method)
        call = signature.bind(self._library, *args, **kwargs)
        progress = _Stopping(call.arguments.get("progress"))
        if "progress" in signature.parameters:
            call.arguments["progress"] = progress
        self._threads.stops.add(progress.stop)
        try:
            work = _submitted(pool, partial(method, *call.args, **call.kwargs))
            return await _ended(work, progress.stop.set)
        except Stopped:
            raise LibraryError(self.url, _STOPPED) from None
        finally:
            self._threads.stops.discard(progress.stop)

    async def close(self) -> None:
        """Close the database and the models. Work that reports its progress is stopped; the rest is awaited.

        Calls that are stopped or wait for their turn, and calls that begin later, raise LibraryError.
        """
        self._threads.stop()
        await asyncio.to_thread(self._library.close)
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def watch(
        self,
        on_change: Callable[[DocumentChange], None] | None = None,
        *,
        on_note: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Keep the library up to date until the task is cancelled, or `stop` is set, as `Library.watch` does.

        `on_change` and `on_note` are called in the event loop.
        """
        ended = stop or threading.Event()
        work = partial(self._library.watch, _in_loop(on_change), on_note=_in_loop(on_note), stop=ended)
        with closing(_Threads()) as own:
            await _ended(_submitted(own.slow, work), ended.set)

    @classmethod
    async def restore(cls, url: str | os.PathLike[str], backup: str | os.PathLike[str]) -> str | None:
        """Put a backup in the place of a library, as `Library.restore` does."""
        return await asyncio.to_thread(Library.restore, url, backup)

    add = _writes(Library.add)
    backup = _works(Library.backup)
    check = _reads(Library.check)
    chunk = _reads(Library.chunk)
    chunks = _reads(Library.chunks)
    collections = _reads(Library.collections)
    context = _reads(Library.context)
    copy = _works(Library.copy)
    damaged = _works(Library.damaged)
    deepen = _works(Library.deepen)
    document = _reads(Library.document)
    documents = _reads(Library.documents)
    embed = _works(Library.embed)
    evaluate = _works(Library.evaluate)
    export = _works(Library.export)
    forget = _writes(Library.forget)
    grant = _writes(Library.grant)
    history = _reads(Library.history)
    import_ = _writes(Library.import_)
    keys = _reads(Library.keys)
    learn = _writes(Library.learn)
    links = _reads(Library.links)
    make_key = _writes(Library.make_key)
    map = _reads(Library.map)
    model_problem = _reads(Library.model_problem)
    move_source = _writes(Library.move_source)
    optimize = _works(Library.optimize)
    plan = _reads(Library.plan)
    promote = _writes(Library.promote)
    read = _reads(Library.read)
    recall = _reads(Library.recall)
    refresh = _writes(Library.refresh)
    remember = _writes(Library.remember)
    remove = _writes(Library.remove)
    remove_source = _writes(Library.remove_source)
    search = _reads(Library.search)
    sections = _reads(Library.sections)
    set_vector = _writes(Library.set_vector)
    source = _reads(Library.source)
    sources = _reads(Library.sources)
    status = _reads(Library.status)
    toc = _reads(Library.toc)
    unembeddable = _reads(Library.unembeddable)
    vector = _reads(Library.vector)
    withdraw_key = _writes(Library.withdraw_key)


def _in_loop(tell: Callable[[T], None] | None) -> Callable[[T], None] | None:
    """A function that is called in this event loop, from wherever it is called."""
    if tell is None:
        return None
    loop = asyncio.get_running_loop()

    def told(what: T) -> None:
        loop.call_soon_threadsafe(tell, what)

    return told
