"""A library in one SQLite file: the default."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable

from quire.errors import LibraryError
from quire.stores.base import Counts
from quire.stores.checks import VERIFIED_BYTES, is_intact
from quire.stores.filters import Filters
from quire.stores.rows import DocumentRow, active_model
from quire.stores.sqlite.backups import SqliteBackups
from quire.stores.sqlite.database import CHUNK_COLUMNS, SURPRISES
from quire.stores.sqlite.documents import SECTION_COLUMNS
from quire.stores.sqlite.filters import conditions
from quire.stores.sqlite.ids import count_wrong_keys
from quire.stores.sqlite.index_check import check_index, finds
from quire.stores.sqlite.keys import SqliteKeys
from quire.stores.sqlite.links import LINK_COLUMNS
from quire.stores.sqlite.postings import IndexTables
from quire.stores.sqlite.purging import SqlitePurging
from quire.stores.sqlite.versions import VERSION_COLUMNS

__all__ = ["SqliteStore"]
_CHECKED = {
    "sections": SECTION_COLUMNS,
    "chunks": CHUNK_COLUMNS,
    "versions": VERSION_COLUMNS,
    "links": LINK_COLUMNS,
}
_NUMBERS = ("generation", "last_segment")  # of the facts


class SqliteStore(SqlitePurging, SqliteBackups, SqliteKeys):
    """A library in one SQLite file."""

    is_shared = False

    def _forget(self) -> None:
        super()._forget()
        self._kinds: tuple[int, frozenset[str]] = (-1, frozenset())  # with their generation
        self._intact: dict[tuple[int, str], bool] = {}  # by document and checksum

    def library_id(self) -> str:
        """The random id of the library, which a copy of the file shares."""
        return str(self._value("SELECT value FROM facts WHERE name = 'id'"))

    def version(self) -> str:
        """A string that changes with every write, and that no other or restored library has."""
        history = self._value("SELECT value FROM facts WHERE name = 'history'")
        return f"{self.library_id()}:{history.partition(' ')[0]}"

    def intact(self, rows: Iterable[DocumentRow]) -> dict[int, bool]:
        """Whether the texts of documents are those that were written, compared once; not of large ones."""
        room, found = VERIFIED_BYTES, dict[int, bool]()
        for row in rows:
            key = row.seq, row.checksum
            if key not in self._intact and row.length <= room:
                room -= row.length
                source = self._value("SELECT source FROM documents WHERE seq = ?", row.seq)
                self._intact[key] = is_intact(source, row.checksum)
            if key in self._intact:
                found[row.seq] = self._intact[key]
        return found

    def kinds(self) -> frozenset[str]:
        """The kinds of documents in the library."""
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
        models = self.models()
        active, instant = active_model(models), active_model(models, instant=True)
        embedded, name = (self.vectors.count(active), active.name) if active else (0, "")
        vectors = embedded, name, self.vectors.count(instant) if instant else 0
        return Counts(documents, sections, chunks, int(size), dict(collections.fetchall()), *vectors)

    def count_sections(self, filters: Filters) -> int:
        """How many sections the documents within filters have."""
        where, args = conditions(filters)
        among = f"WHERE {' AND '.join(where)}" if where else ""
        return int(
            self._value(
                f"SELECT count(*) FROM sections AS s JOIN documents AS d ON d.seq = s.document {among}", *args
            )
        )

    def versions(self) -> str:
        """The versions of the database and of the schema, in words."""
        return f"SQLite {sqlite3.sqlite_version}, schema {self._value('PRAGMA user_version')}"

    def lease(self, name: str) -> tuple[str, int]:
        """What is stored of a lease, "" if nothing is, and the time in milliseconds."""
        row = self.db.execute("SELECT value FROM facts WHERE name = ?", (f"lease:{name}",)).fetchone()
        return row[0] if row else "", time.time_ns() // 1_000_000

    def swap_lease(self, name: str, old: str, new: str) -> bool:
        """Replace the text of a lease, "" for none, if it is still the old one; returns whether it was."""
        with self._transaction(is_counted=False):
            if self.lease(name)[0] != old:
                return False
            self.db.execute("DELETE FROM facts WHERE name = ?", (f"lease:{name}",))
            if new:
                self.db.execute("INSERT INTO facts VALUES (?, ?)", (f"lease:{name}", new))
        return True

    def check(self) -> list[str]:
        """Problems with the library; empty if there are none."""
        try:
            return self._check()
        except (sqlite3.DatabaseError, *SURPRISES) as problem:
            return [f"cannot be checked: {problem}"]

    def _lost_words(self) -> list[str]:
        """Whether the index finds some documents by one of their words."""
        rows = self.db.execute("SELECT document FROM chunks GROUP BY document ORDER BY random() LIMIT 20")
        for (document,) in rows.fetchall():
            words = next((" ".join(words[1:]).split() for words in self._words_of(document)), [])
            if words and not finds(self.db, words[-1], document):
                return [f"full text: a word of document {document} is not found"]
        return []

    def _wrong_sources(self) -> list[str]:
        self.sources()  # raises ValueError for options that are none
        return []

    def _as_far_as_possible(self, look: Callable[[], list[str]]) -> list[str]:
        """What is wrong with a part, or why that cannot be told."""
        try:
            return look()
        except (sqlite3.DatabaseError, *SURPRISES, LibraryError) as problem:
            return [f"cannot be checked: {problem}"]

    def _wrong_facts(self) -> list[str]:
        """The numbers and names that a library must have, and that are not there or are none."""
        facts = dict(self.db.execute("SELECT name, value FROM facts").fetchall())
        wrong = [name for name in _NUMBERS if not str(facts.get(name)).isdecimal()]
        wrong += [name for name in ("id", "history", "terms") if not facts.get(name)]
        return [f"facts: {name} is not there, or is damaged" for name in wrong]

    def _wrong_rows(self) -> list[str]:
        """Rows with checksums that something other than Quire changed."""
        wrong = []
        for table, columns in _CHECKED.items():
            sql = f"SELECT count(*) FROM {table} WHERE crc IS NOT row_check({columns})"
            if number := self._value(sql):
                wrong.append(f"{number:,} {table} are not what was written")
        titles = "SELECT count(*) FROM documents WHERE title_crc IS NOT row_check(checksum, title)"
        if number := self._value(titles):
            wrong.append(f"{number:,} of the titles are not what was written")
        return wrong

    def _check(self) -> list[str]:
        wrong = super().check()
        wrong += [*self._wrong_facts(), *self._wrong_rows()]
        wrong += [f"foreign key: {row}" for row in self.db.execute("PRAGMA foreign_key_check")]
        wrong += check_index(self.db)
        wrong += self.vectors.check(self.models())
        if ids := count_wrong_keys(self.db):
            wrong.append(f"ids that lead nowhere: {ids:,}")
        terms, chunks = IndexTables(self.db).size(), self._value("SELECT count(*) FROM chunks")
        counted = self._value("SELECT total(chunk_count) FROM documents")
        if not terms == chunks == counted:
            wrong.append(f"{chunks} chunks, {terms} with terms, {int(counted)} counted in documents")
        for look in (self._wrong_sources, self._lost_words):
            wrong += self._as_far_as_possible(look)
        return wrong
