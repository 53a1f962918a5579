"""The connections of one library: each thread has its own, and one thread at a time writes.

Input: the first connection, and how to open another. Output: the store of the calling thread. Always: a store
is used by one thread at a time; a thread that ends leaves its store to another; closing waits for the calls
that are running, and later ones get an error. A library in memory has one store, which threads share in turn.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from quire.errors import LibraryError, LibraryHeld, NoResults
from quire.stores import Store

log = logging.getLogger("quire")
T = TypeVar("T")
_FREE = 8  # the most stores that are kept for threads to come
_CLOSED = "is closed. Open it again with Library.open"
_IN_USE = "cannot be closed within one of its own calls. Close it when that has returned"
_GONE = "is gone: it was deleted or moved while it was open."
_OF_PARENTS = list[Any]()  # kept, so that nothing of it is closed


class _Stores:
    """What the threads share: the stores that are open, those that nobody holds, and the running calls."""

    def __init__(self, *stores: Store) -> None:
        self.changed = threading.Condition()
        self.open, self.free = {*stores}, [*stores]
        self.calls, self.has_written = set[int](), False  # the threads that are in a call
        self.is_closed, self.is_paused = False, False  # no calls begin; or they wait until all others ended

    def put_back(self, store: Store) -> None:
        """Leave a store to another thread, or close it if there are enough."""
        with self.changed:
            if store not in self.open:  # it was closed
                return
            if len(self.free) < _FREE:
                self.free.append(store)
                return
            self.open.discard(store)
        store.close()

    def take_all(self) -> list[Store]:
        """Wait until no call is running, and take all stores to close them."""
        self.changed.wait_for(lambda: not self.calls)
        taken = list(self.open)
        self.open.clear()
        self.free.clear()
        return taken


class _Held:
    """The store of one thread, put back when the thread ends, because nothing else holds this object."""

    def __init__(self, store: Store, stores: _Stores) -> None:
        self.store, self._stores = store, stores

    def __del__(self) -> None:
        self._stores.put_back(self.store)


class _Thread(threading.local):
    """What each thread has of its own."""

    held: _Held | None = None


class Connections:
    """The stores of a library, by thread."""

    def __init__(self, url: str, first: Store, open_another: Callable[[], Store]) -> None:
        self._url, self._another = url, open_another
        self._only = first if url == ":memory:" else None
        self._begin_with(first)

    def _begin_with(self, *stores: Store) -> None:
        self._process = os.getpid()
        self._turn: AbstractContextManager[object] = threading.RLock() if self._only else nullcontext()
        self._stores, self._mine, self._writer = _Stores(*stores), _Thread(), threading.RLock()

    def _check_process(self) -> None:
        """Begin anew in a process that was forked: it has neither the other threads nor their locks.

        What its parent opened is left alone: a database must not be used by both, or closed here.
        """
        if os.getpid() != self._process:
            _OF_PARENTS.append((self._stores, self._mine))
            self._begin_with(*([self._only] if self._only else []))

    def __del__(self) -> None:
        if getattr(self, "_process", 0) == os.getpid() and self._stores.open and not self._only:
            log.debug("%s was dropped without being closed", self._url)
            with suppress(Exception):
                _close(list(self._stores.open))

    @property
    def store(self) -> Store:
        """The store of the calling thread, opened if it has none. Raises LibraryError once it is closed."""
        self._check_process()
        held = self._only or (self._mine.held and self._mine.held.store)
        return held if held in self._stores.open else self._taken()

    def _taken(self) -> Store:
        with self._stores.changed:
            self._check_open()
            store = self._stores.free.pop() if self._stores.free else None
        store = store or self._opened()
        self._mine.held = _Held(store, self._stores)
        return store

    def _opened(self) -> Store:
        try:
            store = self._another()
        except NoResults:  # which would mean that nothing was found
            raise LibraryError(self._url, _GONE) from None
        with self._stores.changed:
            if not self._stores.is_closed:
                self._stores.open.add(store)
                return store
        store.close()
        raise self._error(_CLOSED)

    def _check_open(self) -> None:
        if self._stores.is_closed:
            raise self._error(_CLOSED)

    def _error(self, problem: str) -> LibraryError:
        return LibraryError(self._url, problem)

    # ------------------------------------------------------------------------------------- calls

    def call(self, work: Callable[[], T]) -> T:
        """Run a call, which closing waits for. If the library was restored, it is opened again for it."""
        self._check_process()
        try:
            with self._entered():
                return work()
        except LibraryHeld:
            if self._is_calling:
                raise
        self._let_go()
        with self._entered():
            return work()

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """A call within another is part of it."""
        if self._is_calling:
            yield
            return
        try:
            self._begin()
            with self._turn:
                yield
        finally:  # also after Ctrl-C at any moment
            if self._end():
                self._settle()

    @property
    def _is_calling(self) -> bool:
        return threading.get_ident() in self._stores.calls

    def _begin(self) -> None:
        with self._stores.changed:
            self._stores.changed.wait_for(lambda: not self._stores.is_paused)
            self._check_open()
            self._stores.calls.add(threading.get_ident())

    def _end(self) -> bool:
        """End a call; returns whether it is for this thread to settle: then the call goes on for that."""
        stores, me = self._stores, threading.get_ident()
        with stores.changed:
            if stores.has_written and stores.calls == {me} and not stores.is_closed:
                stores.has_written = False
                return True
            stores.calls.discard(me)
            stores.changed.notify_all()
        return False

    def _settle(self) -> None:
        """Checkpoint what a writer could not, because other threads were reading."""
        try:
            self.store.settle()
        except Exception as problem:
            log.debug("%s: the log is not folded in yet: %s", self._url, problem)
        finally:
            with self._stores.changed:
                self._stores.calls.discard(threading.get_ident())
                self._stores.changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One thread at a time gets here. One inside another is part of it."""
        with self._writer:
            self.note_write()
            yield

    def note_write(self) -> None:
        """Remember that the log may have to be folded in."""
        self._stores.has_written = True

    # ----------------------------------------------------------------------------------- closing

    def _let_go(self) -> None:
        """Close all stores, once no call is running; those that begin meanwhile wait."""
        with self._stores.changed:
            self._stores.is_paused = True
            try:
                _close(self._stores.take_all())
            finally:
                self._stores.is_paused = False
                self._stores.changed.notify_all()

    def close(self) -> None:
        """Let no call begin, wait for those that are running, and close all stores."""
        self._check_process()
        if self._is_calling:
            raise self._error(_IN_USE)
        with self._stores.changed:
            self._stores.is_closed = True
            taken = self._stores.take_all()
        _close(taken)


def _close(stores: Iterable[Store]) -> None:
    """Close stores, also if one of them fails."""
    with ExitStack() as stack:
        for store in stores:
            stack.callback(store.close)
