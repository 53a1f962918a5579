"""A library in one SQLite file: the default.

Always: one transaction covers text, sections, chunks, terms and what becomes of vectors, so a crash
cannot part them. The full-text table is contentless: a chunk's terms are worked out again from its
text to take it out.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire import analyze
from quire.document import encoding_of, text_of
from quire.errors import LibraryError, NoResults
from quire.query import Query
from quire.result import Hit, Node
from quire.stores.base import Counts, Filters
from quire.stores.keywords import Fts5, Keywords
from quire.stores.rows import (
    MAX_CHUNKS,
    ChunkRow,
    DocumentRow,
    Member,
    Model,
    Prepared,
    SectionRow,
    Sighting,
    SourceRow,
    Unembedded,
    embedded,
    row_id,
    source_of,
    source_values,
    words_of,
)
from quire.stores.sqlite_file import (
    ADD_WRITE,
    EMPTY,
    GONE,
    REPLACED,
    OpenFile,
    State,
    abandon,
    address,
    place_of,
    state_of,
)
from quire.stores.vectors import VectorIndex, unpacked

if TYPE_CHECKING:
    from quire.embed.base import Vectors

log = logging.getLogger("quire")
_TERMS = str(analyze.VERSION)
_SMALLEST = 512  # bytes of a database: a page. SQLite takes a file of one byte for an empty one
APPLICATION_ID = 0x51756972  # "Quir"
BUSY_SECONDS = 30.0
_FAULTS = (sqlite3.OperationalError, sqlite3.DatabaseError)  # of the file; others are mistakes of ours
_PATIENCE = 5.0  # seconds to wait for others who use the log of a replaced file
_REPLACEMENTS = 20  # of the file while a transaction is begun
_SHIFT = MAX_CHUNKS.bit_length() - 1
_CACHE = 16_000  # kB of pages at most, of which a small library takes little
_DOCUMENT = ", ".join(field.name for field in fields(DocumentRow))
_SECTION = ", ".join(f'"{field.name}"' for field in fields(SectionRow))
_CHUNK = ", ".join(f'"{field.name}"' for field in fields(ChunkRow))
_NO_VECTOR = "NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.chunk = chunks.id AND v.slot >> 32 = ?)"
_ADD_SECTION = f"INSERT INTO sections VALUES (?{', ?' * (len(fields(SectionRow)) - 1)})"
_ADD_MEMBER = (
    "INSERT INTO members VALUES (?, ?, ?) ON CONFLICT (source, document) DO UPDATE SET seen = excluded.seen"
)
_ADD_CHUNK = f"INSERT INTO chunks VALUES (?{', ?' * (len(fields(ChunkRow)) - 1)})"


@dataclass(slots=True)
class _Work:
    """Writing that is under way."""

    depth: int = 0  # how often it was begun within itself
    is_bound: bool = False  # to the file that it began with
    has_written: bool = False


class SqliteStore:
    """One open file. It is identified before it is opened for writing: what is not ours stays as it is."""

    def __init__(self, path: str, *, create: bool = False) -> None:
        self.path = path
        self._work, self._is_closed = _Work(), False
        if not self._exists() and not create:
            raise NoResults(f"No library at {path}. Make one with: quire add ./docs")
        self._start(create)

    def _start(self, create: bool = False) -> None:
        """Open what is at the path now."""
        if self._is_closed:
            raise self._error("was closed")
        self.read_only, self._is_open = False, False
        self._file: OpenFile | None = None  # None also while it is being opened, and where there is no file
        try:
            self._db = self._open(create)
        except (sqlite3.Error, OSError) as problem:
            raise self._error(f"cannot be opened: {problem}") from problem
        self._is_open = True
        self._forget()
        try:
            self._file = self._prepare()
        except BaseException as problem:
            self._is_open = False
            self._db.close()
            if isinstance(problem, sqlite3.Error):
                raise self._error(f"cannot be opened: {problem}") from problem
            raise
        if self._work.has_written:
            self.settle()

    def _prepare(self) -> OpenFile | None:
        """Bring what was opened up to date; its file."""
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
        self._renew_terms()

    def _forget(self) -> None:
        """Forget what was found out about the content."""
        self._known: State | None = None
        self._kinds: tuple[int, frozenset[str]] = (-1, frozenset())
        self._unembedded: tuple[tuple[int, int], int] = ((-1, -1), 0)
        self._keywords: Keywords = Fts5(self._db, _SHIFT)
        self._vectors = VectorIndex(self._db)

    def _error(self, problem: str) -> LibraryError:
        return LibraryError(self.path, problem)

    # ------------------------------------------------------------------------ the file itself

    def _exists(self) -> bool:
        return self.path != ":memory:" and os.path.exists(self.path) and os.path.getsize(self.path) > 0

    def _open(self, create: bool) -> sqlite3.Connection:
        """A connection to the file that is at the path, also after it was opened."""
        if self.path == ":memory:":
            return sqlite3.connect(":memory:", isolation_level=None)
        before, db = place_of(self.path), self._open_file(create)
        while before and before != place_of(self.path):
            abandon(db)
            before, db = place_of(self.path), self._open_file(create)
        return db

    def _open_file(self, create: bool) -> sqlite3.Connection:
        """For writing if the file allows it, else for reading, even from a medium that cannot be written."""
        if not self._exists():
            if not create:
                raise self._error(EMPTY if os.path.exists(self.path) else GONE)
            Path(self.path).absolute().parent.mkdir(parents=True, exist_ok=True)
            return self._connect("rwc")
        self._identify()
        folder = os.path.dirname(os.path.abspath(self.path))
        if os.access(self.path, os.W_OK) and os.access(folder, os.W_OK):
            return self._connect("rw")
        self.read_only = True
        try:
            return self._connect("ro")
        except sqlite3.OperationalError:
            return self._connect("ro&immutable=1")

    def _connect(self, mode: str) -> sqlite3.Connection:
        if "immutable" in mode and os.path.exists(f"{self.path}-wal") and os.path.getsize(f"{self.path}-wal"):
            raise self._error("has a log beside it that cannot be read here. Copy both to a folder of yours.")
        name = address(self.path, mode)
        db = sqlite3.connect(name, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA cache_size = -{_CACHE}")
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _identify(self) -> None:
        """Refuse a file that is no database, another program's, or a newer Quire's, without writing to it."""
        # Through SQLite alone: whoever closes a file that was opened in another way drops the locks that all
        # of this process's connections have on it. Then another process may delete their log.
        # Only a file with a log beside it needs more than itself to be read; opened otherwise, it gets one.
        foreign = self._error("is not a library. It was left as it is; name another file.")
        if os.path.getsize(self.path) < _SMALLEST:
            raise foreign
        try:
            db = self._connect("ro" if os.path.exists(f"{self.path}-wal") else "ro&immutable=1")
        except sqlite3.DatabaseError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
            raise foreign from problem
        with closing(db):
            self._check_ids(db)

    def _check_ids(self, db: sqlite3.Connection) -> None:
        application, version, tables = db.execute(
            "SELECT (SELECT application_id FROM pragma_application_id),"
            " (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if application != APPLICATION_ID and (application or version or tables):
            raise self._error("is another program's database. It was left as it is; name another file.")
        if version > _newest():
            raise self._error(
                f"was written by a newer Quire (schema {version}, this one knows {_newest()}). "
                "It was left as it is; install a newer Quire."
            )

    def _migrate(self) -> None:
        """Bring the schema up to date in a transaction, after a copy has been made."""
        version = self._value("PRAGMA user_version")
        if version == _newest():
            return
        if self.read_only:
            raise self._error("needs an upgrade and cannot be written to")
        if version:
            with closing(sqlite3.connect(f"{self.path}.schema-{version}.backup")) as copy:
                self.db.backup(copy)  # a copy of the file alone would lack what is still in the log
        self._use_log()
        with self._transaction():
            self._check_ids(self.db)
            done = self._value("PRAGMA user_version")  # another process may have been quicker
            for number, step in _migrations():
                for statement in _statements(step) if number > done else ():
                    self.db.execute(statement)
            self.db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.db.execute(f"PRAGMA user_version = {_newest()}")

    def _renew_terms(self) -> None:
        """Make the keyword index anew if other rules made its terms: it could not take them out again."""
        if self.read_only or self._value("SELECT value FROM facts WHERE name = 'terms'") == _TERMS:
            return
        with self._transaction():
            self.keywords.clear()
            for (row,) in self.db.execute("SELECT seq FROM documents").fetchall():
                self.keywords.add(self._words_of(row))
            self.db.execute("UPDATE facts SET value = ? WHERE name = 'terms'", (_TERMS,))
            self._next_generation()

    def _use_log(self) -> None:
        """Write-ahead logging, which the file remembers. SQLite does not wait for a lock here: we do."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as problem:
                if "locked" not in str(problem) or time.monotonic() > until:
                    raise self._error(f"nothing was written: {problem}") from problem
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

    @property
    def keywords(self) -> Keywords:
        """The keyword index of the file that is at the path now."""
        self._look()
        return self._keywords

    @property
    def vectors(self) -> VectorIndex:
        """The vectors of the file that is at the path now."""
        self._look()
        return self._vectors

    def _look(self) -> None:
        """Open what is at the path now, if it is another file; never within a transaction."""
        if self._is_open and (self._file is None or self._work.depth or self._db.in_transaction):
            return
        if not (self._is_open and self._file and self._file.is_as_seen()):
            with self.reading():
                pass

    def _begin(self, statement: str) -> None:
        """Begin a transaction on the file that is at the path, which may be replaced at any moment."""
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
        """Forget what is known of the content if it has not come of what it was, by other programs."""
        if self._known and not view.follows(self._known):
            self._forget()
        self._known = view

    def _change(self) -> None:
        """Let go of a file that was replaced, and open what is at its path."""
        assert self._file  # noqa: S101 - only a file is replaced
        self._file.check_log()
        if self._work.is_bound:
            raise self._error(REPLACED)
        if not self._file.is_there():
            self._file.wait_for_log(self._is_log_in_the_way)
        self._drop()
        self._start()

    def _is_log_in_the_way(self) -> bool:
        """Whether the log of a file that was replaced has changes which the new one would be taken to have.

        Changes to the old file go into the old file. Others are of a process that has opened the new one.
        """
        if self._file is None or self.read_only:
            return False
        self._db.execute("BEGIN IMMEDIATE")  # until nobody writes to the old file, which none begins to now
        self._db.execute("ROLLBACK")
        if self._file.has_changes():
            self._checkpoint(_PATIENCE)
        return self._file.is_log_in_the_way()

    def _drop(self) -> None:
        """Close the connection, unless that would harm the file that has taken the place of its own."""
        self._is_open, file = False, self._file
        if file is None:
            self._db.close()
        elif self._may_close(file):
            self._db.close()
            file.leave()
        else:
            file.abandon(self._db)

    def _may_close(self, file: OpenFile) -> bool:
        """Whether closing folds nothing into another file, and deletes no log that belongs to one."""
        try:
            if not file.is_there():
                return False
            return file.has_empty_log() or (file.has_its_own() and self._is_ours(file))
        except LibraryError:
            return False

    def _is_ours(self, file: OpenFile) -> bool:
        """Whether the file at the path will be what the connection sees, once its log is folded in."""
        if file.is_untouched():
            return True
        self._db.execute("BEGIN")
        try:
            return file.is_same(self._view())
        finally:
            self._db.execute("ROLLBACK")

    # --------------------------------------------------------------------------------- transactions

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see one snapshot. One inside another is part of it."""
        if self._is_open and self._db.in_transaction:
            yield
            return
        try:
            self._begin("BEGIN")
            yield
        except sqlite3.DatabaseError as problem:
            if type(problem) not in _FAULTS:
                raise
            raise self._error(f"cannot be read: {problem}") from problem
        finally:
            self._roll_back()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All writes inside go into one library. Raises LibraryError if another takes its place."""
        with self.reading():  # opens what is at the path now
            pass
        with self._working(is_bound=True):
            yield

    @contextmanager
    def _working(self, *, is_bound: bool) -> Iterator[None]:
        """At the end of the outermost, what was written is in the file, and the file is at its path."""
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
    def _transaction(self) -> Iterator[None]:
        """All or nothing. Says why where the file cannot be written."""
        with self._working(is_bound=False):
            try:
                self._begin_writing()
                yield
                self._commit()
            except BaseException as error:
                self._roll_back()
                if type(error) in _FAULTS:
                    raise self._error(f"nothing was written: {error}") from error
                raise

    def _begin_writing(self) -> None:
        if not self._is_open:
            self._start()
        if self.read_only:
            raise self._error("cannot be written to: the file or its folder is read-only")
        self._begin("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        """Commit, if the file is still the one that the transaction began on."""
        self._db.execute(ADD_WRITE)
        file = self._file
        if file and not (file.is_untouched() or (file.is_at_path() and file.is_same(self._known))):
            raise self._error(REPLACED)
        self._db.execute("COMMIT")
        self._work.has_written = True
        if file:
            file.note_changes()

    def _roll_back(self) -> None:
        if self._is_open and self._db.in_transaction:  # a full disk has rolled back already
            self._db.execute("ROLLBACK")

    def settle(self) -> None:
        """Fold the log into the file, so that the file alone is the library; not while others read it."""
        if not self._is_open or self._file is None or self._db.in_transaction or self._work.depth:
            return
        if not self.read_only and self._file.is_at_path():
            self._fold()

    def _fold(self) -> None:
        """Fold the log in, without waiting. What cannot be folded in now is kept by the log.

        What a transaction has just written to a file that was replaced meanwhile goes into that file, and
        soon: in the log it would be taken for changes to the new one.
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
        """Fold the log into the connection's file, waiting so long for others who use it."""
        try:
            self._db.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError as problem:
            log.debug("%s: the log is not folded in yet: %s", self.path, problem)
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")

    def _value(self, sql: str, *args: Any) -> Any:
        return self.db.execute(sql, args).fetchone()[0]

    # ---------------------------------------------------------------------------------- writing

    def library_id(self) -> str:
        """The random id of the library, which a copy of the file shares."""
        return str(self._value("SELECT value FROM facts WHERE name = 'id'"))

    def version(self) -> str:
        """A word that no other content of any library has."""
        history = self._value("SELECT value FROM facts WHERE name = 'history'")
        return f"{self.library_id()}:{history.partition(' ')[0]}"

    def generation(self) -> int:
        """A number that moves whenever anything is written."""
        return int(self._value("SELECT value FROM facts WHERE name = 'generation'"))

    def _next_generation(self) -> None:
        self.db.execute("UPDATE facts SET value = value + 1 WHERE name = 'generation'")

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents in one transaction, and remove some; for each, whether it replaced one."""
        replaced, chunks = list[bool](), 0
        with self._transaction():
            self._leave(source, gone)
            for prepared in batch:
                row, replaces = self._write_one(prepared)
                replaced.append(replaces)
                chunks += len(prepared.chunks)
                if source:
                    self.db.execute(_ADD_MEMBER, (source.seq, row, prepared.seen))
            self._next_generation()
            self.keywords.grown(chunks)
        return replaced

    def _write_one(self, new: Prepared) -> tuple[int, bool]:
        """The row of a document that was written, and whether it replaced one."""
        identity = (new.collection, new.kind, new.path)
        old = self.db.execute(
            "SELECT seq, updated_at FROM documents WHERE (collection, kind, path) = (?, ?, ?)", identity
        ).fetchone()
        now = time.time_ns() // 1_000_000
        values = (new.url, new.root, new.format, new.title, new.source, new.checksum, new.size, new.mtime_ns)
        values += (new.made_by, len(new.chunks))  # type: ignore[assignment]
        updated = new.updated_at or now
        if old:
            row = old[0]
            self._drop_parts(row)
            self.vectors.rebind(row, new.digests, self.generation() + 1)
            self.db.execute(
                "UPDATE documents SET url = ?, root = ?, format = ?, title = ?, source = ?, checksum = ?,"
                " size = ?, mtime_ns = ?, made_by = ?, chunk_count = ?, updated_at = ?,"
                " promotion = coalesce(nullif(?, ''), promotion) WHERE seq = ?",
                (*values, max(updated, old[1] + 1), new.promotion, row),
            )
        else:
            cursor = self.db.execute(
                "INSERT INTO documents (id, collection, kind, path, url, root, format, title, source,"
                " checksum, size, mtime_ns, made_by, chunk_count, created_at, updated_at, promotion)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    row_id(new.kind, f"{new.collection}:{new.path}"),
                    *identity,
                    *values,
                    new.created_at or now,
                    updated,
                    new.promotion or "standard",
                ),
            )
            row = cursor.lastrowid or 0
        self._add_parts(row, new)
        return row, old is not None

    def _add_parts(self, row: int, new: Prepared) -> None:
        first = row << _SHIFT
        self.db.executemany(
            _ADD_SECTION,
            ((row, *section) for section in new.sections),
        )
        self.db.executemany(
            _ADD_CHUNK,
            ((first + index, row, *chunk) for index, chunk in enumerate(new.chunks)),
        )
        self.keywords.add((first + index, *words) for index, words in enumerate(new.words))
        self.db.executemany("INSERT INTO tags VALUES (?, ?)", ((row, tag) for tag in set(new.tags)))
        if new.etag or new.last_modified:
            self.db.execute("INSERT INTO fetches VALUES (?, ?, ?)", (row, new.etag, new.last_modified))

    def _drop_parts(self, row: int) -> None:
        """Take out sections, chunks and terms of a document."""
        self.keywords.remove(list(self._words_of(row)))
        for table in ("chunks", "tags", "fetches"):
            self.db.execute(f"DELETE FROM {table} WHERE document = ?", (row,))
        self.db.execute("DELETE FROM sections WHERE document = ?", (row,))

    def _words_of(self, row: int) -> Iterator[tuple[int, str, str, str]]:
        """The terms of each chunk of a document, worked out from what is stored."""
        text = text_of(self.source(row))
        trails = {section.position: section.titles for section in self.sections(row)}
        for chunk in self._chunk_rows("document = ?", (row,)):
            yield chunk.id, *words_of(trails[chunk.section], text[chunk.start : chunk.end])

    def fetched(self, rows: Iterable[int]) -> dict[int, tuple[str | None, str | None]]:
        """What a server said of documents: etag and last modified; nothing of those it did not send."""
        found = self._in("SELECT document, etag, last_modified FROM fetches WHERE document", rows)
        return {row: (etag, modified) for row, etag, modified in found}

    def note_fetched(self, said: Mapping[int, tuple[str | None, str | None]]) -> None:
        """Note what a server now says of documents, by row, whose content is unchanged."""
        with self._transaction():
            self.db.executemany("DELETE FROM fetches WHERE document = ?", ((row,) for row in said))
            self.db.executemany(
                "INSERT INTO fetches SELECT seq, ?, ? FROM documents WHERE seq = ?",
                ((etag, modified, row) for row, (etag, modified) in said.items() if etag or modified),
            )

    def tags(self, rows: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """The tags of documents, in order; nothing of those without."""
        found: dict[int, list[str]] = {}
        for row, tag in self._in("SELECT document, tag FROM tags WHERE document", rows):
            found.setdefault(row, []).append(tag)
        return {row: tuple(sorted(tags)) for row, tags in found.items()}

    def sight(self, source: SourceRow, seen: Sequence[Sighting]) -> None:
        """Note that stored documents are a source's and unchanged; one with another path is renamed."""
        with self._transaction():
            for one in seen:
                if one.path:
                    self._rename(one.document, one.path)
                self.db.execute(
                    "UPDATE documents SET size = ?, mtime_ns = ? WHERE seq = ?",
                    (one.size, one.mtime_ns, one.document),
                )
                self.db.execute(_ADD_MEMBER, (source.seq, one.document, one.seen))
            if any(one.path for one in seen):
                self._next_generation()

    def _rename(self, row: int, path: str) -> None:
        """Give a document another path, and so another id. Raises LibraryError if the path is taken."""
        kind, collection = self.db.execute(
            "SELECT kind, collection FROM documents WHERE seq = ?", (row,)
        ).fetchone()
        id = row_id(kind, f"{collection}:{path}")
        if self.db.execute("SELECT 1 FROM documents WHERE id = ? AND seq != ?", (id, row)).fetchone():
            raise self._error(f"nothing was renamed: there is a document {collection}:{path} already")
        self.db.execute("UPDATE documents SET path = ?, id = ? WHERE seq = ?", (path, id, row))

    def promote(self, row: int, level: str) -> None:
        """Set the promotion of a document, and with it of all its chunks, which have none of their own."""
        with self._transaction():
            self.db.execute("UPDATE documents SET promotion = ? WHERE seq = ?", (level, row))
            self._next_generation()

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents and all that belongs to them, in one transaction."""
        with self._transaction():
            for row in rows:
                self._remove_one(row)
            self._next_generation()

    def _leave(self, source: SourceRow | None, rows: Iterable[int]) -> int:
        """Take documents from a source and delete those that no other source holds; how many."""
        removed = 0
        for row in rows:
            if source:
                self.db.execute("DELETE FROM members WHERE source = ? AND document = ?", (source.seq, row))
            if not self.db.execute("SELECT 1 FROM members WHERE document = ?", (row,)).fetchone():
                self._remove_one(row)
                removed += 1
        return removed

    def _remove_one(self, row: int) -> None:
        self._drop_parts(row)
        self.vectors.rebind(row, (), self.generation() + 1)
        self.db.execute("DELETE FROM documents WHERE seq = ?", (row,))

    # ---------------------------------------------------------------------------------- sources

    def sources(self) -> list[SourceRow]:
        """All sources, by collection, type and place."""
        rows = self.db.execute(
            "SELECT s.*, (SELECT count(*) FROM members AS m WHERE m.source = s.seq) FROM sources AS s"
            " ORDER BY s.collection, s.type, s.place, s.kind"
        )
        return [source_of(row) for row in rows]

    def put_sources(self, sources: Sequence[SourceRow]) -> None:
        """Remember sources, or what is new of them."""
        with self._transaction():
            self._put_sources(sources)

    def _put_sources(self, sources: Iterable[SourceRow]) -> None:
        self.db.executemany(
            "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (seq) DO UPDATE SET"
            " root = excluded.root, options = excluded.options, checked_at = excluded.checked_at,"
            " problem = excluded.problem",
            map(source_values, sources),
        )

    def drop_source(self, source: SourceRow) -> int:
        """Let go of a source; documents that no other source holds are deleted. How many these were."""
        with self._transaction():
            held = self.db.execute("SELECT document FROM members WHERE source = ?", (source.seq,)).fetchall()
            removed = self._leave(source, [row[0] for row in held])
            self.db.execute("DELETE FROM sources WHERE seq = ?", (source.seq,))
            self._next_generation()
        return removed

    def move_source(self, old: SourceRow, new: SourceRow) -> None:
        """Put a source at another place, with all that is known of its documents."""
        with self._transaction():
            self._put_sources([new])
            self.db.execute(
                "UPDATE documents SET root = ? WHERE root = ? AND url IS NULL AND seq IN"
                " (SELECT document FROM members WHERE source = ?)",
                (new.root, old.root, old.seq),
            )
            self.db.execute("UPDATE members SET source = ? WHERE source = ?", (new.seq, old.seq))
            if new.seq != old.seq:
                self.db.execute("DELETE FROM sources WHERE seq = ?", (old.seq,))
            self._next_generation()

    def members(self, collection: str, kind: str) -> list[Member]:
        """Which sources hold the documents of a collection."""
        rows = self.db.execute(
            "SELECT m.document, m.source, m.seen FROM members AS m JOIN documents AS d ON d.seq = m.document"
            " WHERE d.collection = ? AND d.kind = ?",
            (collection, kind),
        )
        return [Member(*row) for row in rows]

    def leave(self, source: SourceRow, documents: Sequence[int]) -> int:
        """Take documents from a source; those that no other holds are deleted. How many these were."""
        with self._transaction():
            removed = self._leave(source, documents)
            self._next_generation()
        return removed

    def adopted(self) -> bool:
        """Whether all documents have the sources that they came from, or nothing can be done about it."""
        waiting = self.db.execute("SELECT 1 FROM facts WHERE name = 'adopt'").fetchone()
        return self.read_only or waiting is None

    def note_adopted(self) -> None:
        """Note that they have."""
        with self._transaction():
            self.db.execute("DELETE FROM facts WHERE name = 'adopt'")

    # ---------------------------------------------------------------------------------- reading

    def documents(self, filters: Filters, *, root: str | None = None) -> list[DocumentRow]:
        """Documents by collection and path."""
        where, args = _where(filters)
        if root is not None:
            where.append("d.root = ?")
            args.append(root)
        condition = f"WHERE {' AND '.join(where)}" if where else ""
        rows = self.db.execute(
            f"SELECT {_DOCUMENT} FROM documents AS d {condition} ORDER BY collection, path, kind", args
        )
        return [DocumentRow(*row) for row in rows]

    def document(self, collection: str | None, path: str) -> DocumentRow | None:
        """One document by its path, in any collection if none is named."""
        row = self.db.execute(
            f"SELECT {_DOCUMENT} FROM documents WHERE path = ? AND (? IS NULL OR collection = ?)"
            " ORDER BY collection LIMIT 1",
            (path, collection, collection),
        ).fetchone()
        return DocumentRow(*row) if row else None

    def documents_by_row(self, rows: Iterable[int]) -> dict[int, DocumentRow]:
        """Documents by their rows."""
        found = self._in(f"SELECT {_DOCUMENT} FROM documents WHERE seq", rows)
        return {row[0]: DocumentRow(*row) for row in found}

    def _in(self, sql: str, values: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        wanted = list(values)
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            yield from self.db.execute(f"{sql} IN ({', '.join('?' * len(some))})", some)

    def source(self, row: int) -> bytes:
        """The exact bytes of a document."""
        return bytes(self._value("SELECT source FROM documents WHERE seq = ?", row))

    def passage(self, row: int, start: int, end: int) -> str:
        """The text of some bytes of a document, without reading the rest."""
        with self.db.blobopen("documents", "source", row, readonly=True) as source:
            beginning = source.read(2)
            source.seek(start)
            return text_of(source.read(end - start), encoding_of(beginning))

    def sections(self, row: int) -> list[SectionRow]:
        """The sections of a document, in order."""
        rows = self.db.execute(
            f"SELECT {_SECTION} FROM sections WHERE document = ? ORDER BY position", (row,)
        )
        return [SectionRow(*found) for found in rows]

    def section(self, row: int, position: int) -> SectionRow:
        """One section."""
        found = self.db.execute(
            f"SELECT {_SECTION} FROM sections WHERE document = ? AND position = ?", (row, position)
        ).fetchone()
        return SectionRow(*found)

    def nodes(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Node]:
        """Sections by (document, position), with all their ancestors."""
        found: dict[tuple[int, int], Node] = {}
        for document, position in keys:
            while position >= 0 and (document, position) not in found:
                parent, level, children = self.db.execute(
                    "SELECT parent, level, children FROM sections WHERE document = ? AND position = ?",
                    (document, position),
                ).fetchone()
                found[document, position] = Node(document, position, parent, level, children)
                position = parent
        return found

    def chunks(self, ids: Iterable[int]) -> dict[int, ChunkRow]:
        """Chunks by their ids."""
        return {row[0]: ChunkRow(*row) for row in self._in(f"SELECT {_CHUNK} FROM chunks WHERE id", ids)}

    def _chunk_rows(self, where: str, args: tuple[Any, ...]) -> list[ChunkRow]:
        return [ChunkRow(*row) for row in self.db.execute(f"SELECT {_CHUNK} FROM chunks WHERE {where}", args)]

    def kinds(self) -> frozenset[str]:
        """The kinds of documents there are."""
        generation = self.generation()
        if self._kinds[0] != generation:
            rows = self.db.execute("SELECT DISTINCT kind FROM documents")
            self._kinds = generation, frozenset(row[0] for row in rows)
        return self._kinds[1]

    def collections(self) -> list[str]:
        """The names of the collections, each found by a step along the index."""
        rows = self.db.execute(
            "WITH RECURSIVE names (name) AS (SELECT min(collection) FROM documents UNION ALL"
            " SELECT (SELECT min(collection) FROM documents WHERE collection > name) FROM names"
            " WHERE name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL"
        )
        return [row[0] for row in rows]

    def counts(self) -> Counts:
        """What is in the library."""
        documents, size = self.db.execute("SELECT count(*), total(length(source)) FROM documents").fetchone()
        sections = self._value("SELECT count(*) FROM sections")
        chunks = self._value("SELECT count(*) FROM chunks")
        collections = self.db.execute("SELECT collection, count(*) FROM documents GROUP BY 1 ORDER BY 1")
        active = next((model for model in self.models() if model.active), None)
        embedded, name = (self.vectors.count(active), active.name) if active else (0, "")
        return Counts(documents, sections, chunks, int(size), dict(collections.fetchall()), embedded, name)

    def check(self) -> list[str]:
        """What is wrong with the library; empty if all is well."""
        wrong = [row[0] for row in self.db.execute("PRAGMA integrity_check") if row[0] != "ok"]
        wrong += [f"foreign key: {row}" for row in self.db.execute("PRAGMA foreign_key_check")]
        wrong += [] if self.read_only else self.keywords.check()
        wrong += self.vectors.check(self.models())
        terms, chunks = self.keywords.size(), self._value("SELECT count(*) FROM chunks")
        counted = self._value("SELECT total(chunk_count) FROM documents")
        if not terms == chunks == counted:
            wrong.append(f"{chunks} chunks, {terms} with terms, {int(counted)} counted in documents")
        return wrong

    # -------------------------------------------------------------------------------- embedding

    def models(self) -> list[Model]:
        """The models that made vectors, the active one first."""
        rows = self.db.execute("SELECT id, name, dimension, active FROM models ORDER BY active DESC, id")
        return [Model(number, name, dimension, bool(active)) for number, name, dimension, active in rows]

    def model(self, name: str, dimension: int) -> Model:
        """A model by its name and dimension, made known if it is new; the first is active."""
        found = next((m for m in self.models() if (m.name, m.dimension) == (name, dimension)), None)
        if found:
            return found
        with self._transaction():
            self.db.execute(
                "INSERT OR IGNORE INTO models (name, dimension, active)"
                " VALUES (?, ?, NOT EXISTS (SELECT 1 FROM models))",
                (name, dimension),
            )
        return self.model(name, dimension)

    def activate(self, model: Model) -> None:
        """Search with this model from now on, and forget the vectors of all others."""
        with self._transaction():
            for other in self.models():
                if other.id != model.id:
                    self.vectors.forget(other)
                    self.db.execute("DELETE FROM models WHERE id = ?", (other.id,))
            self.db.execute("UPDATE models SET active = 1 WHERE id = ?", (model.id,))
            self._next_generation()

    def unembedded(self, model: Model, limit: int, after: int = -1) -> list[Unembedded]:
        """Chunks that have no vector of a model, in order, from behind one on."""
        rows = self.db.execute(
            f"SELECT {_CHUNK} FROM chunks WHERE id > ? AND {_NO_VECTOR} ORDER BY id LIMIT ?",
            (after, model.id, limit),
        )
        chunks = [ChunkRow(*row) for row in rows]
        found: list[Unembedded] = []
        for document in dict.fromkeys(chunk.document for chunk in chunks):
            version = self._value("SELECT updated_at FROM documents WHERE seq = ?", document)
            text = text_of(self.source(document))
            trails = {section.position: section.titles for section in self.sections(document)}
            for chunk in chunks:
                if chunk.document == document:
                    own = embedded(trails[chunk.section], chunk.context, text[chunk.start : chunk.end])
                    found.append(Unembedded(chunk.id, document, version, own))
        return found

    def count_unembedded(self, model: Model) -> int:
        """How many chunks have no vector of a model, counted once in each generation."""
        key = model.id, self.generation()
        if self._unembedded[0] != key:
            chunks = self._value("SELECT count(*) FROM chunks")
            self._unembedded = key, int(chunks) - self.vectors.count(model)
        return self._unembedded[1]

    def reuse(self, model: Model, chunks: Sequence[Unembedded]) -> set[int]:
        """Give chunks the vectors that are remembered for their texts; which have got one."""
        with self._transaction():
            wanted = {chunk.chunk: chunk.digest for chunk in self._still_without(model, chunks)}
            given = self.vectors.reuse(model, wanted, self.generation() + 1)
            self._next_generation()
        return given

    def write_vectors(self, model: Model, chunks: Sequence[Unembedded], vectors: Vectors) -> None:
        """Store vectors in one transaction. A chunk whose document has changed since gets none."""
        with self._transaction():
            without = set(self._still_without(model, chunks))
            places = [place for place, chunk in enumerate(chunks) if chunk in without]
            rows = [(chunks[place].chunk, chunks[place].digest) for place in places]
            self.vectors.add(model, rows, vectors[places], self.generation() + 1)
            self._next_generation()

    def _still_without(self, model: Model, chunks: Sequence[Unembedded]) -> list[Unembedded]:
        """Chunks of the versions that are stored which no one else has embedded meanwhile."""
        sql = "SELECT seq, updated_at FROM documents WHERE seq"
        versions = dict(self._in(sql, {chunk.document for chunk in chunks}))
        ids = (chunk.chunk for chunk in chunks if versions.get(chunk.document) == chunk.version)
        sql = f"SELECT id FROM chunks WHERE {_NO_VECTOR.replace('?', str(model.id))} AND id"
        without = {row[0] for row in self._in(sql, ids)}
        return [chunk for chunk in chunks if chunk.chunk in without]

    def embedding_failures(self) -> dict[int, str]:
        """Documents that could not be embedded, and why."""
        return dict(self.db.execute("SELECT document, reason FROM embedding_failures").fetchall())

    def note_failures(self, failures: Mapping[int, str]) -> None:
        """Remember why documents could not be embedded, in place of what was remembered before."""
        with self._transaction():
            self.db.execute("DELETE FROM embedding_failures")
            self.db.executemany(
                "INSERT INTO embedding_failures SELECT seq, ? FROM documents WHERE seq = ?",
                ((reason, document) for document, reason in failures.items()),
            )

    # -------------------------------------------------------------------------------- searching

    def search_vectors(self, model: Model, vector: Vectors, filters: Filters, limit: int) -> list[Hit]:
        """The chunks whose vectors are nearest to one, best first; the score is the cosine."""
        where, args = _where(filters)
        documents = None
        if where:
            rows = self.db.execute(f"SELECT seq FROM documents AS d WHERE {' AND '.join(where)}", args)
            documents = [row[0] for row in rows]
        found = self.vectors.search(model, vector, documents, limit)
        sections = dict(self._in("SELECT id, section FROM chunks WHERE id", (chunk for chunk, _ in found)))
        return [Hit(chunk, chunk >> _SHIFT, sections[chunk], score, "semantic") for chunk, score in found]

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of some chunks that have all that a query demands, and nothing that it leaves out."""
        return self.keywords.allowed(query, list(chunks))

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """How near chunks are to a vector; those without one are left out."""
        held = f"SELECT chunk, slot FROM vectors WHERE slot >> 32 = {model.id} AND chunk"
        slots = {slot: chunk for chunk, slot in self._in(held, chunks)}
        scores = self.vectors.cosines(model, vector, list(slots))
        return dict(zip(slots.values(), scores.tolist(), strict=True))

    def vectors_of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks; those without one are left out."""
        held = f"SELECT chunk, vector FROM vectors WHERE slot >> 32 = {model.id} AND chunk"
        return {chunk: unpacked(vector, model.dimension) for chunk, vector in self._in(held, chunks)}

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        where, args = _where(filters)
        scores = self.keywords.search(query, where, args, limit)
        sections = {
            row[0]: row[1:] for row in self._in("SELECT id, document, section FROM chunks WHERE id", scores)
        }
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Hit(chunk, sections[chunk][0], sections[chunk][1], score) for chunk, score in best]


def _where(filters: Filters) -> tuple[list[str], list[Any]]:
    """SQL conditions on documents `d`, and their values."""
    where, args = list[str](), list[Any]()
    if filters.collection is not None:
        where.append("d.collection = ?")
        args.append(filters.collection)
    if filters.kinds:
        where.append(f"d.kind IN ({', '.join('?' * len(filters.kinds))})")
        args += filters.kinds
    for paths in filter(None, (filters.paths, filters.query_paths)):
        # Not joined by OR: SQLite takes expressions of at most 1,000 levels.
        where.append(f"EXISTS (SELECT 1 FROM (VALUES {_rows(paths)}) WHERE d.path GLOB column1)")
        args += [_glob(path) for path in paths]
    for path in filters.not_paths:
        where.append("d.path NOT GLOB ?")
        args.append(_glob(path))
    if filters.tags:
        has = "EXISTS (SELECT 1 FROM tags AS t WHERE t.document = d.seq AND t.tag = column1)"
        where.append(f"NOT EXISTS (SELECT 1 FROM (VALUES {_rows(filters.tags)}) WHERE NOT {has})")
        args += filters.tags
    for condition, moment in (("d.updated_at >= ?", filters.since), ("d.updated_at < ?", filters.until)):
        if moment is not None:
            where.append(condition)
            args.append(moment)
    return where, args


def _rows(values: tuple[str, ...]) -> str:
    return ", ".join(["(?)"] * len(values))


def _glob(path: str) -> str:
    """The beginning of a path as a pattern; only * means something in it."""
    escaped = path.replace("[", "[[]").replace("?", "[?]")
    return escaped if "*" in path else f"{escaped}*"


def _migrations() -> list[tuple[int, str]]:
    """The numbered scripts."""
    folder = files("quire.stores").joinpath("sql/sqlite")
    return sorted(
        (int(f.name[:3]), f.read_text("utf-8")) for f in folder.iterdir() if f.name.endswith(".sql")
    )


@cache
def _newest() -> int:
    return _migrations()[-1][0]


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one at a time: executescript() would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
