"""SQLite on files that note every write, truncation, sync and deletion: apsw behind sqlite3.connect."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import apsw

_NAME = "recording"


@dataclass(frozen=True)
class Event:
    """What happened to a file, or what was acknowledged to a person."""

    what: str  # write, truncate, sync, delete or acknowledge
    file: str = ""
    offset: int = 0  # or the new size; for a deletion, whether it is on the disk when it returns
    data: bytes = b""


class _Files(apsw.VFS):
    """The usual file system, under watch."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        super().__init__(_NAME, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        return _File(self.events, Path(path).name if path else "", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.events.append(Event("delete", Path(filename).name, int(syncdir)))


class _File(apsw.VFSFile):
    def __init__(self, events: list[Event], own: str, name: Any, flags: list[int]) -> None:
        self.events, self.own = events, own
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        super().xWrite(data, offset)
        self.events.append(Event("write", self.own, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self.events.append(Event("truncate", self.own, newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.events.append(Event("sync", self.own))


class _Cursor(apsw.Cursor):
    @property
    def lastrowid(self) -> int:
        return self.connection.last_insert_rowid()


class _Connection:
    """As much of sqlite3.Connection as Quire uses."""

    def __init__(self, path: str, *, uri: bool = False, timeout: float = 5.0, **_: Any) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | (apsw.SQLITE_OPEN_URI if uri else 0)
        with _as_sqlite3():
            self._db = apsw.Connection(str(path), flags=flags, vfs=_NAME)
            self._db.cursor_factory = _Cursor
            self._db.set_busy_timeout(round(1000 * timeout))

    def execute(self, sql: str, args: Iterable[Any] = ()) -> Any:
        with _as_sqlite3():
            return self._db.execute(sql, tuple(args))

    def executemany(self, sql: str, rows: Iterable[Iterable[Any]]) -> Any:
        with _as_sqlite3():
            return self._db.executemany(sql, (tuple(row) for row in rows))

    def create_function(
        self, name: str, number: int, function: Callable[..., Any], *, deterministic: bool = False
    ) -> None:
        self._db.create_scalar_function(name, function, number, deterministic=deterministic)

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def backup(self, target: _Connection) -> None:
        with self._db.backup("main", target._db, "main") as copy:
            while not copy.done:
                copy.step()

    def close(self) -> None:
        self._db.close()


@contextmanager
def _as_sqlite3() -> Iterator[None]:
    try:
        yield
    except apsw.ConstraintError as problem:
        raise sqlite3.IntegrityError(str(problem)) from problem
    except apsw.Error as problem:
        raise sqlite3.OperationalError(str(problem)) from problem


@contextmanager
def recorded() -> Iterator[list[Event]]:
    """All that happens to the files of libraries that are opened inside."""
    events = list[Event]()
    files = _Files(events)
    try:
        with mock.patch("sqlite3.connect", _Connection):
            yield events
    finally:
        files.unregister()
