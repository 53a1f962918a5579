"""Remake the terms of a SQLite library that another analyzer made.

Terms of two analyzers are never in one index, so nothing is written to a library before this analyzer has
made its terms. A new index is filled beside the old one, some documents in each transaction, and replaces it
at the end. Searches use the old one until then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from quire import analyze
from quire.fingerprint import difference
from quire.progress import Progress, Silent
from quire.stores.rows import ChunkRow
from quire.stores.sqlite.database import CHUNK_COLUMNS
from quire.stores.sqlite.indexing import IndexWriter
from quire.stores.sqlite.models import SqliteVectors
from quire.stores.sqlite.words import SqliteWords

log = logging.getLogger("quire")
_REMADE_AT_ONCE = 32  # documents in one transaction
_NO_WORDS = "0"  # instead of a fingerprint: nothing was ever written
_OLD_INDEX = ""  # instead of a fingerprint: the index was of another kind, and is to be made


class SqliteRemaking(SqliteWords, SqliteVectors):
    """A library whose terms another analyzer may have made."""

    def _words_of(self, row: int) -> Iterator[tuple[int, str, str, str]]:
        """The terms of each chunk of a stored document."""
        texts = self._texts(row)
        found = self.db.execute(f"SELECT {CHUNK_COLUMNS} FROM chunks WHERE document = ?", (row,)).fetchall()
        for chunk in (ChunkRow(*values) for values in found):
            yield chunk.id, *texts.words(chunk)

    @contextmanager
    def _writing_words(self) -> Iterator[None]:
        """A transaction that may change terms. Those of another analyzer are remade before it."""
        if self._made_by() != analyze.fingerprint():
            before = self._made_by()
            told = self.remake_words(), difference(before, analyze.fingerprint())
            log.warning("The words of %d documents were remade, because %s.", *told)
        with self._transaction():
            if self._made_by() != analyze.fingerprint():
                raise self._error("was remade by another version of Quire meanwhile. Nothing was written")
            try:
                yield
                self.index.flush()
            finally:
                self.index.drop_pending()

    def remake_words(self, progress: Progress | None = None) -> int:
        """Remake the terms of all documents, some documents at a time; returns how many documents.

        Until all are made, searches use the old terms.
        """
        done, shown = 0, progress or Silent()
        with self.writing():
            with self._transaction():
                self._begin_remake()
                total = self._value("SELECT count(*) FROM documents")
            shown.begin("remaking words", total, "documents")
            while (some := self._remake_some()) is not None:
                done += some
                shown.advance(some)
        return done

    def _remake_some(self) -> int | None:
        """Make the terms of a few documents; how many, or None once the new index is in place."""
        with self._transaction():
            tables = self._next()
            if self._made_by() == analyze.fingerprint():  # another process was quicker
                return None
            rows = self.db.execute(
                "SELECT seq, updated_at FROM documents WHERE seq NOT IN (SELECT document FROM remade)"
                " ORDER BY seq LIMIT ?",
                (_REMADE_AT_ONCE,),
            ).fetchall()
            if not rows:
                return None if self._end_remake() else 0
            for row, updated_at in rows:
                tables.add(row, self._words_of(row))
                self.db.execute("INSERT INTO remade VALUES (?, ?)", (row, updated_at))
            tables.flush()
            return len(rows)

    def _end_remake(self) -> bool:
        """Replace the old index with the new one; returns whether that was possible.

        It is not if a document has changed since its terms were made: then all are remade.
        """
        changed = self.db.execute(
            "SELECT 1 FROM remade AS r LEFT JOIN documents AS d ON d.seq = r.document"
            " WHERE d.updated_at IS NOT r.updated_at LIMIT 1"
        ).fetchone()
        self.db.execute("DELETE FROM remade")
        if changed:
            self._next().create()
            return False
        self._next().take_place()
        self._note_fact("terms", analyze.fingerprint())
        self.db.execute("DELETE FROM facts WHERE name = 'terms_next'")
        self._next_generation()
        return True

    def _begin_remake(self) -> None:
        """Begin a new index beside the old one, or continue one."""
        next_maker = self.db.execute("SELECT value FROM facts WHERE name = 'terms_next'").fetchone()
        if next_maker != (analyze.fingerprint(),):
            self._note_fact("terms_next", analyze.fingerprint())
            self.db.execute("DELETE FROM remade")
            self._next().create()

    def _next(self) -> IndexWriter:
        """The index that is made beside the one in use."""
        return IndexWriter(self.db, "_next")

    def _renew(self) -> None:
        super()._renew()
        if not self.read_only and self._made_by() == _NO_WORDS:
            with self._transaction():
                self._note_fact("terms", analyze.fingerprint())
        if not self.read_only and self._made_by() == _OLD_INDEX:
            self._index_all()

    def _index_all(self) -> None:
        """Make the index of a library that had one of another kind."""
        log.warning("%s: the words of all documents are indexed anew, once.", self.path)
        with self._transaction():
            if self._made_by() == _OLD_INDEX:  # else another process was quicker
                for number, (row,) in enumerate(self.db.execute("SELECT seq FROM documents").fetchall()):
                    self.index.add(row, self._words_of(row))
                    if number % _REMADE_AT_ONCE == 0:
                        self.index.flush()
                self.index.flush()
                self._note_fact("terms", analyze.fingerprint())
                self._next_generation()

    def _note_fact(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))
