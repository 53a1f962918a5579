"""The file of a SQLite library: opening it, and whether it is still the one at its path.

Input: a path and the state that a connection sees. Output: whether the connection may be used. Always:
the file is read only through SQLite, because closing another descriptor of it would drop all locks that
this process has on it; files that are not libraries stay unchanged; nothing here writes.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
import urllib.parse
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quire import later
from quire.errors import LibraryError, LibraryHeld
from quire.stores import migrate

GONE = "is gone: it was deleted or moved while it was open. Nothing was written."
EMPTY = "is empty: it was emptied while it was open. Nothing was written."
REPLACED = (
    "was replaced, moved or deleted during this work. Do it again, so that it goes into what is there now."
)
_MENDED = (
    "Close every program that has it open, delete {name}-wal and {name}-shm, and restore the backup again."
)
_OVERWRITTEN = f"was overwritten while {{name}}-wal held changes to it. Nothing was written. {_MENDED}"
_MIXED = f"was replaced, but {{name}}-wal has changes to the file before it. Nothing was written. {_MENDED}"
_LOST = "has lost {name}-wal, deleted while it held changes. Nothing was written. Start this program again."
_HELD = (
    "was restored, and files beside it deleted, while this program has it open elsewhere. Nothing was"
    " written. Close it there, or start the program again."
)

# One more write, named by its number and a random word. SQLite reads the number before the colon.
ADD_WRITE = (
    "UPDATE facts SET value = substr((CAST(value AS INTEGER) + 1) || ':' || lower(hex(randomblob(4)))"
    " || ' ' || value, 1, 900) WHERE name = 'history'"  # longer ones would need a page of their own
)
_WRITE = later.pattern(r"[0-9]+(:|$)")  # the beginning of each in a history; the last may be cut off
_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # the beginning of a journal
_SMALLEST = 512  # bytes of a database: a page. SQLite takes a file of one byte for an empty one
READ_ONLY = "the file or its folder is read-only"
_FULL = "the disk is full. Make room, then do it again"
_ROOM = 1_000_000  # bytes that even a small write may need
APPLICATION_ID = 0x51756972  # "Quir"
BUSY_SECONDS = 30.0
_CACHE = 16_000  # kB of pages at most, of which a small library takes little
_TICK_NS = 20_000_000  # file systems may give two writes this close the same time
_PAUSES = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # seconds until another process is done

Place = tuple[int, int]  # device and inode
Beside = tuple[Place | None, Place | None]  # of -wal and -shm


@dataclass(frozen=True, slots=True)
class State:
    """The identity and version of a library. Two files of the same state are the same, page by page."""

    id: str
    history: tuple[str, ...]  # its last writes, the newest first
    layout: tuple[int, int]  # schema cookie, which VACUUM changes, and number of pages

    def follows(self, other: State) -> bool:
        """Whether this state comes from the other one."""
        return self.id == other.id and other.history[0] in self.history

    def may_follow(self, other: State) -> bool:
        """Whether this state may come from the other one. Histories are cut, and older schemas have no id."""
        if not (self.id and other.id):
            return not other.id
        return self.follows(other) or (self.id == other.id and _number(other, 0) < _number(self, -2))


def _number(state: State, at: int) -> int:
    """The number of a write. The last of a history may be cut off."""
    return int(state.history[max(at, -len(state.history))].partition(":")[0])


def state_of(db: sqlite3.Connection) -> State:
    """The state that a connection sees. Raises DatabaseError if it was written only in part."""
    facts = dict(db.execute("SELECT name, value FROM facts WHERE name IN ('id', 'history')").fetchall())
    layout = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("schema_version", "page_count"))
    id, history = str(facts.get("id", "")), str(facts.get("history", "")).split()
    if id and not (history and all(map(_WRITE.match, history))):
        raise sqlite3.DatabaseError("the history of its writes is damaged")
    return State(id, tuple(history), (next(layout), next(layout)))


def uri_of(path: str, mode: str) -> str:
    """The URI by which SQLite opens a file."""
    return f"file:{urllib.parse.quote(os.path.abspath(path))}?mode={mode}"


def _state_at(path: str) -> State | None:
    """The state of the file alone, without its log; None if it is no library, or half written."""
    try:
        with closing(sqlite3.connect(uri_of(path, "ro&immutable=1"), uri=True)) as db:
            # A log that is folded in only in part may leave fewer pages than the header says.
            db.execute("PRAGMA writable_schema = ON")
            return state_of(db)
    except sqlite3.OperationalError as problem:
        return State("", (), (0, 0)) if "no such table" in str(problem) else None
    except sqlite3.DatabaseError:
        return None


def is_disk_fault(problem: sqlite3.Error) -> bool:
    """Whether the disk did not take what SQLite wrote."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def told(problem: BaseException, path: str) -> str:
    """What SQLite says; of a full disk, also what to do."""
    if not (isinstance(problem, sqlite3.Error) and is_disk_fault(problem)):
        return str(problem)
    import shutil

    room = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
    is_full = problem.sqlite_errorcode == sqlite3.SQLITE_FULL or room < _ROOM
    return _FULL if is_full else f"{problem}: the disk fails, or files may not be larger (ulimit -f)"


def abandon(db: sqlite3.Connection) -> None:
    """Keep a connection open until the process ends, because its file was replaced.

    Closing it would delete the log at its path, and drop this process's locks on the -shm file there. Both
    may be in use with the new file by now. So nothing may close it, not even the end of the interpreter.
    """
    import ctypes  # takes longer than most searches

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(db))
    with suppress(sqlite3.Error):
        db.execute("PRAGMA shrink_memory")


# ------------------------------------------------------------------------------------------ one file


class OpenFile:
    """The file of one connection, and the files beside it, as they were when it was opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.place = place_of(path)
        _join(path, self.place)
        self._shm: Place | None = None
        self._log: int | None = None
        self._salt = b""  # of the log, when it was last seen to have changes to this file
        self._facts: tuple[int, ...] | None = None  # of the file, when its content was last looked at
        self._is_old = False  # whether it was old enough then that a later write has another time
        self._state: State | None = None  # what its content was

    def note_log(self) -> None:
        """Open the log that the connection uses. No lock is on it, so it may be opened."""
        with suppress(OSError):
            self._log = os.open(self._log_path, os.O_RDONLY | os.O_CLOEXEC)
        self._shm = _note_beside(self.path, self.place)[1]

    def leave(self) -> None:
        """Close the log, after the connection was closed."""
        self._let_log_go()
        _leave(self.place)

    def _let_log_go(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def abandon(self, db: sqlite3.Connection) -> None:
        """Give up a connection that must not be closed."""
        abandon(db)
        self._let_log_go()

    @property
    def _log_path(self) -> str:
        return f"{self.path}-wal"

    def _error(self, problem: str) -> LibraryError:
        return LibraryError(self.path, problem.format(name=os.path.basename(self.path)))

    # ------------------------------------------------------------------------- what is at its path

    def is_as_seen(self) -> bool:
        """Whether the file was certainly not written to since its content was looked at."""
        return self._is_old and self.is_untouched()

    def is_untouched(self) -> bool:
        """Whether the file has the time and size that it had when its content was looked at."""
        return self._facts == _facts(self.path)

    def is_at_path(self) -> bool:
        """Whether the path still leads to the file."""
        return place_of(self.path) == self.place

    def is_there(self) -> bool:
        """Whether the path still leads to the file. Raises LibraryError if it leads nowhere."""
        place = place_of(self.path)
        if place is None:
            raise self._error(GONE)
        return place == self.place

    def has_its_own(self) -> bool:
        """Whether the files beside it are those that the connection uses."""
        log = self._log is None or place_of(self._log) == place_of(self._log_path)
        return log and (self._shm is None or self._shm == place_of(f"{self.path}-shm"))

    def has_empty_log(self) -> bool:
        """Whether the log that the connection uses is empty, even if it was deleted."""
        return self._log is None or os.fstat(self._log).st_size == 0

    def is_same(self, view: State | None) -> bool:
        """Whether the file is what a connection sees in a transaction, or will be with its log.

        Raises LibraryError if it is not, and the log has what would be lost.
        """
        for pause in (*_PAUSES[:5], None):
            facts, now, state = _facts(self.path), time.time_ns(), _state_at(self.path)
            if self.has_empty_log():
                same = state is not None and state == view
            else:
                same = view is not None and self._goes_on(state, view)
            if same or self.has_empty_log():
                break
            if pause is None:
                raise self._error(_OVERWRITTEN)
            time.sleep(pause)  # another process may be in a checkpoint: then pages are of two versions
        if same:
            self.note_changes()
        if same and state and facts:
            self._state, self._facts, self._is_old = state, facts, abs(now - facts[-1]) > _TICK_NS
        return same

    def _goes_on(self, state: State | None, view: State) -> bool:
        """Whether a log can lead from the state of the file alone to what a connection sees."""
        if state is None:  # tables of a new library that are folded in only in part
            return self._state is None or not self._state.id
        return view.may_follow(state) and (self._state is None or state.may_follow(self._state))

    def check_log(self) -> None:
        """Raise LibraryError if a log with changes is no longer at its path."""
        if self.is_there() and not self.has_empty_log():
            raise self._error(_LOST)

    def note_changes(self) -> None:
        """Remember that the log now has changes to this file."""
        self._salt = self._salt_now()

    def has_changes(self) -> bool:
        """Whether the log certainly has changes to this file, even if the file was replaced."""
        return self._salt != b"" and self._salt == self._salt_now()

    def _salt_now(self) -> bytes:
        """The salt in the log's header, which changes whenever the log starts over after a checkpoint."""
        return b"" if self._log is None else os.pread(self._log, 8, 16)

    def is_log_in_the_way(self) -> bool:
        """Whether the log at the path is the connection's own, and not empty."""
        if self._log is None or self.has_empty_log():
            return False
        return place_of(self._log_path) == place_of(self._log)

    def wait_for_log(self, is_in_the_way: Callable[[], bool]) -> None:
        """Wait until the log at the path of a replaced file is not in the way. Raises LibraryError."""
        for pause in _PAUSES:
            if not is_in_the_way():
                return
            time.sleep(pause)  # another process may have just written, and will fold it in
        raise self._error(_MIXED)


def place_of(path: str | int) -> Place | None:
    """Which file is at a path, or behind a descriptor; None if there is none."""
    facts = _facts(path)
    return facts[:2] if facts else None


def _facts(path: str | int) -> tuple[int, int, int, int, int] | None:
    """Device, inode, size and times of a file; None if there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


# ----------------------------------------------------------------------------- files of this process


@dataclass(slots=True)
class _Held:
    """How many connections of this process have a file open, and the files beside it that they share."""

    connections: int = 0
    beside: Beside = (None, None)


_held: dict[Place | None, _Held] = {}
_lock = threading.Lock()


def _beside(path: str) -> Beside:
    return place_of(f"{path}-wal"), place_of(f"{path}-shm")


def _join(path: str, place: Place | None) -> None:
    """Count one more connection. Raises LibraryHeld if the others share files that were deleted.

    SQLite gives all connections of a process to one file the same -shm file, even if another is at its path
    by now. Other processes use the new one: they and we would not see each other's locks.
    """
    for pause in _PAUSES:
        if _joined(path, place):
            return
        time.sleep(pause)  # another thread may be opening or closing it: then the files beside it are new
    raise LibraryHeld(path, _HELD)


def _joined(path: str, place: Place | None) -> bool:
    with _lock:
        held = _held.get(place) or _Held()
        if held.connections and any(held.beside) and held.beside != _beside(path):
            return False
        held.connections += 1
        _held[place] = held
        return True


def _note_beside(path: str, place: Place | None) -> Beside:
    with _lock:
        _held[place].beside = _beside(path)
        return _held[place].beside


def _leave(place: Place | None) -> None:
    with _lock:
        _held[place].connections -= 1
        if not _held[place].connections:
            del _held[place]


# ----------------------------------------------------------------------------------- opening a file


class FileOpener:
    """Opens the file at a path. Files that are not libraries stay unchanged."""

    path: str
    read_only: str  # why it cannot be written to; empty if it can

    def _error(self, problem: str) -> LibraryError:
        return LibraryError(self.path, problem)

    def _exists(self) -> bool:
        return self.path != ":memory:" and os.path.exists(self.path) and os.path.getsize(self.path) > 0

    def _open(self, create: bool) -> sqlite3.Connection:
        """A connection to the file that is still at the path after it was opened."""
        if self.path == ":memory:":
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        before, db = place_of(self.path), self._open_file(create)
        while before and before != place_of(self.path):
            abandon(db)
            before, db = place_of(self.path), self._open_file(create)
        return db

    def _open_file(self, create: bool) -> sqlite3.Connection:
        """Open for writing if the file allows it, else for reading, even from a read-only medium."""
        if not self._exists():
            if not create:
                raise self._error(EMPTY if os.path.exists(self.path) else GONE)
            Path(self.path).absolute().parent.mkdir(parents=True, exist_ok=True)
            return self._connect("rwc")
        self._identify()
        folder = os.path.dirname(os.path.abspath(self.path))
        self.read_only = READ_ONLY
        if os.access(self.path, os.W_OK) and os.access(folder, os.W_OK):
            self._unlock_log()
            try:
                db = self._connect("rw")
            except sqlite3.OperationalError as problem:  # a full disk has no room for the files beside it
                if not is_disk_fault(problem):
                    raise
                self.read_only = told(problem, self.path)
            else:
                self.read_only = ""
                return db
        return self._connect_to_read()

    def _unlock_log(self) -> None:
        """Make a log writable that was made while the library was read-only."""
        for path in (f"{self.path}-wal", f"{self.path}-shm"):
            if os.path.exists(path) and not os.access(path, os.W_OK):
                with suppress(OSError):  # another user's
                    os.chmod(path, stat.S_IMODE(os.stat(self.path).st_mode))

    def _connect_to_read(self) -> sqlite3.Connection:
        try:
            return self._connect("ro")
        except sqlite3.OperationalError as problem:
            if is_disk_fault(problem) and self._has_log():
                raise
            return self._connect("ro&immutable=1")

    def _has_log(self) -> bool:
        return os.path.exists(f"{self.path}-wal") and os.path.getsize(f"{self.path}-wal") > 0

    def _connect(self, mode: str) -> sqlite3.Connection:
        if "immutable" in mode and self._has_log():
            raise self._error("has a log beside it that cannot be read here. Copy both to a folder of yours.")
        # A store moves from a thread that ends to another, and any thread may close it.
        given: Any = {"isolation_level": None, "check_same_thread": False}
        db: sqlite3.Connection
        db = sqlite3.connect(uri_of(self.path, mode), uri=True, timeout=BUSY_SECONDS, **given)
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA secure_delete = ON")  # see purging.py
            db.execute(f"PRAGMA cache_size = -{_CACHE}")
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _identify(self) -> None:
        """Refuse a file that is no database, another program's, or a newer Quire's. Nothing is written."""
        # Only through SQLite: closing a file that was opened in another way drops the locks of all
        # connections of this process on it. Then another process may delete their log.
        # Only a file with a log beside it needs more than itself to be read; opened otherwise, it gets one.
        if self._is_half_made():
            return  # a writer makes it empty again
        foreign = self._error("is not a library. It was left as it is; name another file.")
        if os.path.isdir(self.path):
            raise self._error("is a folder. Name a file.")
        if os.path.getsize(self.path) < _SMALLEST:
            raise foreign
        try:
            has_log = os.path.exists(f"{self.path}-wal")
            db = self._connect_to_read() if has_log else self._connect("ro&immutable=1")
        except sqlite3.DatabaseError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
            raise foreign from problem
        with closing(db):
            self._check_ids(db)

    def _is_half_made(self) -> bool:
        """Whether the power failed while the file was made: its journal says that it was empty before."""
        try:
            with open(f"{self.path}-journal", "rb") as journal:
                begins, _, was = journal.read(8), journal.read(8), journal.read(4)  # its size, in pages
        except OSError:
            return False
        return begins == _JOURNAL and was == bytes(4)

    def _check_ids(self, db: sqlite3.Connection) -> None:
        application, version, tables = db.execute(
            "SELECT (SELECT application_id FROM pragma_application_id),"
            " (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if application != APPLICATION_ID and (application or version or tables):
            raise self._error("is another program's database. It was left as it is; name another file.")
        if problem := migrate.too_new(version, "sqlite"):
            raise self._error(problem)
