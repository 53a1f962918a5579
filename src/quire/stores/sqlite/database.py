"""A SQLite database: its connection and transactions, and what all parts of a store use.

Input: a path. Output: a connection and transactions on it. Always: a transaction is on the file that is at
the path, and a file that was replaced is never written to; the schema is upgraded after a backup.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from typing import Any

from quire.address import of_document
from quire.errors import Damaged, LibraryError, NoResults
from quire.stores import migrate
from quire.stores.checks import row_check
from quire.stores.rows import ChunkRow
from quire.stores.sqlite import file as files
from quire.stores.sqlite import ids
from quire.stores.sqlite.file import (
    ADD_WRITE,
    APPLICATION_ID,
    REPLACED,
    FileOpener,
    OpenFile,
    State,
    state_of,
)
from quire.stores.texts import ChunkTexts

log = logging.getLogger("quire")
_FAULTS = (sqlite3.OperationalError, sqlite3.DatabaseError)  # of the file; others are mistakes of ours
SURPRISES = (LookupError, TypeError, ValueError)  # perhaps something is not there, or is not what it was
_PATIENCE = 5.0  # seconds to wait for others who use the log of a replaced file
CHUNK_COLUMNS = ", ".join(f'"{field.name}"' for field in fields(ChunkRow))
# The first libraries of schema 1 lack the first fact, some of schema 5 the others.
_ADD_FACTS = (
    "INSERT OR IGNORE INTO facts SELECT 'terms', iif(count(*), 'unknown', '0') FROM documents",
    "INSERT OR IGNORE INTO facts VALUES ('id', lower(hex(randomblob(16))))",
    "INSERT OR IGNORE INTO facts VALUES ('history', '0:' || lower(hex(randomblob(4))))",
)
# Of a library that was made with secure_delete, or rewritten since: nothing deleted is left in its pages.
NOTHING_TO_ERASE = "INSERT OR REPLACE INTO facts VALUES ('erased', '1')"
USE_AUTO_VACUUM = "PRAGMA auto_vacuum = INCREMENTAL"  # for a file that is empty, or about to be rewritten
_REPAIR = "To find out more, and to repair it: quire doctor"
_MOST_OPEN = 16  # texts of a snapshot
_REPLACEMENTS = 20  # of the file while a transaction is begun


@dataclass(slots=True)
class _Work:
    """Writing in progress."""

    depth: int = 0  # how often it was begun within itself
    is_bound: bool = False  # to the file that it began with
    has_written: bool = False


class FileConnection(FileOpener):
    """A connection to a file, which another file may replace at its path at any time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._work, self._is_closed = _Work(), False
        self.read_only, self._is_open = "", False
        self._is_reading, self._texts_open = False, dict[int, sqlite3.Blob]()  # by the row of a document
        self._file: OpenFile | None = None  # None also while it is being opened, and where there is no file
        self._db: sqlite3.Connection

    def _forget(self) -> None:
        """Drop what is cached of the content."""
        self._known: State | None = None

    def _text(self, row: int) -> sqlite3.Blob:
        """A handle of a document's text, which stays open until the snapshot ends.

        SQLite walks through a text to a place in it; a handle knows the way that it has gone.
        """
        if row not in self._texts_open:
            if len(self._texts_open) == _MOST_OPEN:
                self._texts_open.pop(next(iter(self._texts_open))).close()
            self._texts_open[row] = self._db.blobopen("documents", "source", row, readonly=True)
        return self._texts_open[row]

    def _close_texts(self) -> None:
        while self._texts_open:
            self._texts_open.popitem()[1].close()

    def _roll_back(self) -> None:
        if self._is_open and self._db.in_transaction:  # a full disk has rolled back already
            self._db.execute("ROLLBACK")

    def _checked(self, row: tuple[Any, ...] | None, document: int) -> tuple[Any, ...]:
        """A row of a document without the checksum at its end. Raises Damaged if that does not fit."""
        if row is None or row_check(*row[:-1]) != row[-1]:
            raise self._damaged(document)
        return row[:-1]

    def _damaged(self, document: int) -> Damaged:
        names = self._db.execute("SELECT collection, path FROM documents WHERE seq = ?", (document,))
        found = names.fetchone()
        return Damaged(self.path, of_document(*found) if found else f"document {document}")

    def _is_current(self) -> bool:
        """Whether the transaction that has begun is on the file that is at the path."""
        if self._file is None:
            return True
        view = self._view()  # before the file is looked at: what is checked is what will be read
        if not (self._file.is_there() and self._file.has_its_own()):
            return False
        # Work that is bound to a file has looked at its content when it began.
        is_known = self._file.is_untouched() if self._work.is_bound else self._file.is_as_seen()
        if not is_known and not self._file.is_same(view):
            return False
        if view:
            self._recognize(view)
        return view is not None

    def _view(self) -> State | None:
        """What the transaction sees; None where its pages are of two files."""
        try:
            return state_of(self._db)
        except sqlite3.DatabaseError:
            return None

    def _recognize(self, view: State) -> None:
        """Drop what is cached if the content does not follow from what it was."""
        if self._known and not view.follows(self._known):
            self._forget()
        self._known = view

    def _is_log_in_the_way(self) -> bool:
        """Whether the log of a replaced file has changes that would be applied to the new file.

        Changes to the old file go into the old file. Others are from a process that has opened the new one.
        """
        if self._file is None or self.read_only:
            return False
        self._db.execute("BEGIN IMMEDIATE")  # waits until nobody writes to the old file; nobody begins to now
        self._db.execute("ROLLBACK")
        if self._file.has_changes():
            self._checkpoint(_PATIENCE)
        return self._file.is_log_in_the_way()

    def _drop(self) -> None:
        """Close the connection, unless that would harm a file that replaced its own."""
        self._is_open, file = False, self._file
        self._close_texts()
        if file is None:
            self._db.close()
        elif self._may_close(file):
            self._db.close()
            file.leave()
        else:
            file.abandon(self._db)

    def _may_close(self, file: OpenFile) -> bool:
        """Whether closing changes no other file, and deletes no log of another file."""
        try:
            if not file.is_there():
                return False
            return file.has_empty_log() or (file.has_its_own() and self._is_ours(file))
        except LibraryError:
            return False

    def _is_ours(self, file: OpenFile) -> bool:
        """Whether the file at the path will be what the connection sees, after a checkpoint."""
        if file.is_untouched():
            return True
        self._db.execute("BEGIN")
        try:
            return file.is_same(self._view())
        finally:
            self._db.execute("ROLLBACK")

    def settle(self) -> None:
        """Checkpoint, so that the file alone is the library; not while others read it."""
        if not self._is_open or self._file is None or self._db.in_transaction or self._work.depth:
            return
        if not self.read_only and self._file.is_at_path():
            self._fold()

    def _fold(self) -> None:
        """Checkpoint without waiting. What cannot be written to the file now stays in the log.

        If the file was replaced meanwhile, what a transaction has just written goes into that file at once:
        from the log it would be applied to the new one.
        """
        file = self._file
        if file is None or file.has_empty_log():
            return
        if not file.is_at_path():
            if file.has_changes():
                self._checkpoint(_PATIENCE)
        elif self._is_ours(file):
            self._checkpoint(0)

    def _checkpoint(self, seconds: float) -> None:
        """Write the log into the connection's file, waiting at most so long for others who use it."""
        try:
            with self.waiting(seconds):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError as problem:
            log.debug("%s: the log is not folded in yet: %s", self.path, problem)

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """What is inside waits at most so long for other processes."""
        (before,) = self._db.execute("PRAGMA busy_timeout").fetchone()
        self._db.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
        try:
            yield
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {before}")


class SqliteDatabase(FileConnection):
    """One open file, used by one thread at a time."""

    def __init__(self, path: str, *, create: bool = False) -> None:
        super().__init__(path)
        if not self._exists() and not create:
            raise NoResults(
                f"No library at {path}. Make one with: quire add ./docs", missing="library", name=path
            )
        self._start(create)

    def _start(self, create: bool = False) -> None:
        """Open what is at the path now."""
        if self._is_closed:
            raise self._error("was closed")
        self.read_only, self._is_open = "", False
        self._file = None
        try:
            self._db = self._open(create)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as problem:
            raise self._error(f"cannot be opened: {files.told(problem, self.path)}") from problem
        self._is_open = True
        ids.add_key_function(self._db)
        self._db.create_function("row_check", -1, row_check, deterministic=True)
        self._forget()
        try:
            self._file = self._prepare()
        except BaseException as problem:
            self._is_open = False
            self._db.close()
            if isinstance(problem, (sqlite3.Error, *SURPRISES)):
                raise self._error(f"cannot be opened: {files.told(problem, self.path)}") from problem
            raise
        if self._work.has_written:
            self.settle()

    def _prepare(self) -> OpenFile | None:
        """Bring the opened file up to date, and return it."""
        if self.path == ":memory:":
            self._bring_up()
            return None
        file = OpenFile(self.path)
        try:
            self._bring_up()
        except BaseException:
            file.leave()
            raise
        file.note_log()
        return file

    def _bring_up(self) -> None:
        self._work.has_written = False
        self._migrate()
        self._renew()

    def _renew(self) -> None:
        """Bring the content up to date, after the schema."""

    def _migrate(self) -> None:
        """Bring the schema up to date in a transaction, after a backup."""
        version = self._value("PRAGMA user_version")
        if version == migrate.newest("sqlite"):
            return
        if self.read_only:
            raise self._error(f"needs an upgrade and cannot be written to: {self.read_only}")
        if version:
            with closing(sqlite3.connect(f"{self.path}.schema-{version}.backup")) as copy:
                self.db.backup(copy)  # a copy of the file alone would lack what is still in the log
        self._use_log(is_new=not version)
        with self._transaction():
            self._check_ids(self.db)
            done = self._value("PRAGMA user_version")  # another process may have been quicker
            for number, step in migrate.steps("sqlite"):
                for statement in migrate.statements(step) if number > done else ():
                    self.db.execute(statement)
            for statement in _ADD_FACTS if done else (*_ADD_FACTS, NOTHING_TO_ERASE):
                self.db.execute(statement)
            self.db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.db.execute(f"PRAGMA user_version = {migrate.newest('sqlite')}")

    def _use_log(self, *, is_new: bool) -> None:
        """Switch the file to write-ahead logging. SQLite does not wait for a lock here, so we do.

        A new file can give back pages. That must be said before anything else is written.
        """
        until = time.monotonic() + files.BUSY_SECONDS
        while True:
            try:
                if is_new:
                    self.db.execute(USE_AUTO_VACUUM)
                self.db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as problem:
                if "locked" not in str(problem) or time.monotonic() > until:
                    raise self._error(f"nothing was written: {files.told(problem, self.path)}") from problem
                time.sleep(0.02)
            else:
                return

    def close(self) -> None:
        """Close the file."""
        self._is_closed = True
        if self._is_open:
            self._roll_back()
            self._drop()

    # ------------------------------------------------------------- the file that stands at the path

    @property
    def db(self) -> sqlite3.Connection:
        """A connection to the file that is at the path now."""
        self._look()
        return self._db

    def _look(self) -> None:
        """Open what is at the path now, if it is another file; never inside a transaction."""
        if self._is_open and (self._file is None or self._work.depth or self._db.in_transaction):
            return
        if not (self._is_open and self._file and self._file.is_as_seen()):
            with self.reading():
                pass

    def _begin(self, statement: str) -> None:
        """Begin a transaction on the file that is at the path. It may be replaced at any time."""
        for _ in range(_REPLACEMENTS):
            if not self._is_open:
                self._start()
            self._db.execute(statement)
            try:
                if self._is_current():
                    return
            except BaseException:
                self._roll_back()
                raise
            self._roll_back()
            self._change()
        raise self._error("is replaced again and again. Nothing was written.")

    def _change(self) -> None:
        """Drop a file that was replaced, and open what is at its path."""
        assert self._file  # noqa: S101 - only a file is replaced
        self._file.check_log()
        if self._work.is_bound:
            raise self._error(REPLACED)
        if not self._file.is_there():
            self._file.wait_for_log(self._is_log_in_the_way)
        self._drop()
        self._start()

    # --------------------------------------------------------------------------------- transactions

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see one snapshot. One inside another is part of it."""
        if self._is_open and self._db.in_transaction:
            yield
            return
        try:
            self._begin("BEGIN")
            self._is_reading = True
            yield
        except sqlite3.DatabaseError as problem:
            if type(problem) not in _FAULTS:
                raise
            raise self._error(f"cannot be read: {problem}. {_REPAIR}") from problem
        except SURPRISES as problem:
            if not (wrong := self.check()):
                raise
            raise self._error(f"is damaged: {wrong[0]}. {_REPAIR}") from problem
        finally:
            self._is_reading = False
            self._close_texts()
            self._roll_back()

    def check(self) -> list[str]:
        """Problems with the library; empty if there are none."""
        return [row[0] for row in self.db.execute("PRAGMA integrity_check") if row[0] != "ok"]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All writes inside go into one library. Raises LibraryError if another takes its place."""
        with self.reading():  # opens what is at the path now
            pass
        with self._working(is_bound=True):
            yield

    @contextmanager
    def _working(self, *, is_bound: bool) -> Iterator[None]:
        """At the end of the outermost, all writes are in the file, and the file is at its path."""
        work = self._work
        if work.depth == 0:
            work.has_written, work.is_bound = False, is_bound
        work.depth += 1
        try:
            yield
        finally:
            work.depth -= 1
            if work.depth == 0:
                work.is_bound = False
                if work.has_written:
                    self._fold()
        if work.depth == 0 and work.has_written and self._file and not self._file.is_at_path():
            raise self._error(REPLACED)

    @contextmanager
    def _transaction(self, *, is_counted: bool = True) -> Iterator[None]:
        """A transaction, all or nothing. Raises LibraryError if the file cannot be written.

        One that is not counted leaves the version of the library as it is.
        """
        with self._working(is_bound=False):
            try:
                self._begin_writing()
                yield
                self._commit(is_counted)
            except BaseException as error:
                self._roll_back()
                if type(error) in _FAULTS:
                    raise self._error(f"nothing was written: {files.told(error, self.path)}") from error
                if isinstance(error, SURPRISES) and (wrong := self.check()):
                    raise self._error(f"is damaged: {wrong[0]}. Nothing was written. {_REPAIR}") from error
                raise

    def _begin_writing(self) -> None:
        if self._is_open and self.read_only not in ("", files.READ_ONLY):
            self._drop()  # there may be room by now
        if not self._is_open:
            self._start()
        if self.read_only:
            raise self._error(f"cannot be written to: {self.read_only}")
        self._begin("BEGIN IMMEDIATE")

    def _commit(self, is_counted: bool) -> None:
        """Commit, if the file is still the one that the transaction began on."""
        if is_counted:
            self._db.execute(ADD_WRITE)
        file = self._file
        if file and not (file.is_untouched() or (file.is_at_path() and file.is_same(self._known))):
            raise self._error(REPLACED)
        self._db.execute("COMMIT")
        self._work.has_written = True
        if file:
            file.note_changes()

    # ------------------------------------------------------------------- what all parts of a store use

    def _value(self, sql: str, *args: Any) -> Any:
        return self.db.execute(sql, args).fetchone()[0]

    def _in(self, sql: str, values: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        wanted = list(values)
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            yield from self.db.execute(f"{sql} IN ({', '.join('?' * len(some))})", some).fetchall()

    def generation(self) -> int:
        """A number that grows with every write."""
        with self.reading():
            return int(self._value("SELECT value FROM facts WHERE name = 'generation'"))

    def _next_generation(self) -> None:
        self.db.execute("UPDATE facts SET value = value + 1 WHERE name = 'generation'")

    def _texts(self, document: int) -> ChunkTexts:
        """The texts of a document's chunks."""
        source = bytes(self._value("SELECT source FROM documents WHERE seq = ?", document))
        trails = self.db.execute("SELECT position, trail FROM sections WHERE document = ?", (document,))
        return ChunkTexts(source, dict(trails.fetchall()))
