"""An open library: its store, its settings, and how an address or an id finds its document."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial, wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from quire import address as addresses
from quire import disks, places
from quire.config import DEFAULT, Config
from quire.embed.base import Embedder
from quire.embed.cross import CrossEncoder
from quire.errors import ConnectionLost, LibraryError, NoResults, SettingError, nearest
from quire.library.arguments import checks_arguments
from quire.library.connections import Connections
from quire.stores import DocumentRow, Filters, Store, open_store

log = logging.getLogger("quire")
P = ParamSpec("P")
T = TypeVar("T")
L = TypeVar("L", bound="OpenLibrary")
_PAUSES = (0.1, 0.5, 2.0)  # seconds until what was interrupted is read again
_APART = ("watch",)  # has connections of its own, and closing the library does not wait for it


def writes(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """Make a method write to one library only, even if its file is replaced; one thread after the other."""

    @wraps(method)
    def wrapped(self: L, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._connections.writing(), self.store.writing():
            return method(self, *args, **kwargs)

    return wrapped


def embeds(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """Make a method write vectors to one library only. It takes long: other threads may write beside it."""

    @wraps(method)
    def wrapped(self: L, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._connections.note_write()
        with self.store.writing():
            return method(self, *args, **kwargs)

    return wrapped


def reads(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """Make a method read one snapshot. It is run again if the connection to a server is lost meanwhile."""

    @wraps(method)
    def wrapped(self: L, /, *args: P.args, **kwargs: P.kwargs) -> T:
        for seconds in _PAUSES:
            try:
                with self.store.reading():
                    return method(self, *args, **kwargs)
            except ConnectionLost as problem:
                log.info("reading again in %.1f s: %s", seconds, problem)
                time.sleep(seconds)
        with self.store.reading():
            return method(self, *args, **kwargs)

    return wrapped


def _called(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """Make a method a call, which closing the library waits for."""

    @wraps(method)
    def wrapped(self: L, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._connections.call(partial(method, self, *args, **kwargs))

    return wrapped


def given_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Names that choose documents. Raises SettingError for an empty one, which would mean everything."""
    found = tuple(names)
    if "" in found:
        raise SettingError(what, "has an empty name, which would mean everything. Leave it out instead")
    return found


def _scope_of(collections: Iterable[str]) -> tuple[str, ...]:
    """The collections that a library is limited to. Raises SettingError if there are none."""
    found = tuple(dict.fromkeys(collections))
    if not found or not all(found):
        raise SettingError("collections", "names none. Name at least one, or leave it out for all")
    return found


class Answering(threading.local):
    """The answer that a thread is making: whether it is, and the documents cited whose files have changed."""

    def __init__(self) -> None:
        self.is_begun, self.changed = False, set[str]()


class OpenLibrary:
    """An open library, which any thread may use. The arguments of all public methods are checked."""

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            if not name.startswith("_") and callable(method):
                setattr(cls, name, checks_arguments(method if name in _APART else _called(method)))

    def __init__(
        self, store: Store, url: str, config: Config = DEFAULT, scope: tuple[str, ...] | None = None
    ) -> None:
        self.url, self.config, self._scope = url, config, scope
        place = url if "://" in url or url == ":memory:" else os.path.abspath(url)  # noqa: PTH100
        self._connections = Connections(url, store, partial(open_store, place, collections=scope))
        self._embedders: dict[str, Embedder | None] = {}
        self._loading, self._cross = threading.Lock(), CrossEncoder()
        self._answering = Answering()

    @property
    def store(self) -> Store:
        """The store of the calling thread."""
        return self._connections.store

    @classmethod
    @checks_arguments
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        create: bool = False,
        config: Config = DEFAULT,
        collections: Iterable[str] | None = None,
    ) -> Self:
        """The library at a path or postgresql:// URL. Raises NoResults if there is none to open.

        With `collections`, it is as if the library had only these: others are neither seen nor written.
        """
        name, scope = os.fspath(url), None if collections is None else _scope_of(collections)
        is_new = create and not os.path.lexists(name)
        library = cls(open_store(name, create=create, collections=scope), name, config, scope)
        if is_new and not library.store.is_shared and name != ":memory:":
            places.hide_from_git(name)
            if why := disks.why_unsafe(name):
                log.warning("%s", why)
        return library

    def close(self) -> None:
        """Close the database and the models, once the calls of other threads have ended.

        Calls that begin later raise LibraryError.
        """
        self._connections.close()
        self._cross.close()
        for embedder in self._embedders.values():
            if embedder:
                embedder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _purge(self) -> None:
        """Erase what removed documents left behind in the library's files."""
        try:
            for left in self.store.purge():
                log.warning("%s", left)
        except LibraryError as problem:
            why = problem.details["problem"].removeprefix("nothing was written: ")
            how = "To erase it once that is repaired: quire remove --purge"
            raise LibraryError(self.url, f"it was removed, but is not erased yet: {why}. {how}") from problem

    def _document(self, address: str) -> tuple[DocumentRow, str]:
        """The document of an address or id, and what follows the # of the address.

        Raises NoResults, naming the nearest address.
        """
        for wanted in dict.fromkeys((address, addresses.meant(address))):
            for collection, path, rest in addresses.readings(wanted):
                if found := self.store.document(collection, path):
                    return found, rest
        if (id := addresses.parse_id(address)) and self.store.collections():
            return self._by_id(id)
        known = [row.address for row in self.store.documents(Filters())]
        if not known:
            raise NoResults("The library is empty. Add documents with: quire add ./docs", missing="documents")
        wanted = addresses.without_section(address)
        names = [name for one in known for name in addresses.names_of(one)]
        close = nearest(wanted, names) if len(known) < 5000 else ""
        said = close if close.startswith("Did") else "See what there is with: quire list"
        raise NoResults(f"No document {wanted!r} is indexed. {said}", missing="document", name=wanted)

    def _by_id(self, id: str) -> tuple[DocumentRow, str]:
        if found := self.store.by_id(id):
            return found
        said = f"No document or section has the id {id}. See what there is with: quire list"
        raise NoResults(said, missing="id", name=id)
