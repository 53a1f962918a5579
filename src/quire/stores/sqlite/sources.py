"""Sources in a SQLite library, and which documents each of them holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quire.address import id_of, of_document
from quire.stores.rows import Member, Sighting, SourceRow, source_row, source_values, storable
from quire.stores.sqlite.documents import ADD_MEMBER, SqliteDocuments
from quire.stores.sqlite.ids import remake_keys


class SqliteSources(SqliteDocuments):
    """The sources of a SQLite library."""

    def sources(self) -> list[SourceRow]:
        """All sources, by collection, type and place."""
        rows = self.db.execute(
            "SELECT s.*, (SELECT count(*) FROM members AS m WHERE m.source = s.seq) FROM sources AS s"
            " ORDER BY s.collection, s.type, s.place, s.kind"
        )
        return [source_row(row) for row in rows]

    def put_sources(self, sources: Sequence[SourceRow]) -> None:
        """Add sources, or update those that are stored."""
        with self._transaction():
            self._put_sources(sources)

    def _put_sources(self, sources: Iterable[SourceRow]) -> None:
        self.db.executemany(
            "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (seq) DO UPDATE SET"
            " root = excluded.root, options = excluded.options, checked_at = excluded.checked_at,"
            " problem = excluded.problem",
            map(source_values, sources),
        )

    def source_now(self, source: SourceRow) -> SourceRow | None:
        """A source as it is stored now; None if it was removed."""
        row = self.db.execute("SELECT * FROM sources WHERE seq = ?", (source.seq,)).fetchone()
        return source_row(row) if row else None

    def note_checked(self, sources: Sequence[SourceRow]) -> None:
        """Store when sources were checked, and their problems."""
        with self._transaction():
            self.db.executemany(
                "UPDATE sources SET checked_at = ?, problem = ? WHERE seq = ?",
                ((source.checked_at, storable(source.problem), source.seq) for source in sources),
            )

    def drop_sources(self, sources: Sequence[SourceRow]) -> int:
        """Remove sources, and the documents that no other source holds; how many documents."""
        removed = 0
        with self._writing_words():
            for source in sources:
                held = self.db.execute("SELECT document FROM members WHERE source = ?", (source.seq,))
                removed += self._leave(source, [row[0] for row in held.fetchall()])
                self.db.execute("DELETE FROM sources WHERE seq = ?", (source.seq,))
            self._next_generation()
        return removed

    def move_source(self, old: SourceRow, new: SourceRow) -> None:
        """Move a source to another place; its documents stay its own."""
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

    def members(self, collection: str, kind: str, source: SourceRow | None = None) -> list[Member]:
        """Which sources hold the documents of a collection, or of one source."""
        columns = "SELECT m.document, m.source, m.seen FROM members AS m"
        if source:
            only = "WHERE m.document IN (SELECT document FROM members WHERE source = ?)"
            return [Member(*row) for row in self.db.execute(f"{columns} {only}", (source.seq,))]
        rows = self.db.execute(
            f"{columns} JOIN documents AS d ON d.seq = m.document WHERE d.collection = ? AND d.kind = ?",
            (collection, kind),
        )
        return [Member(*row) for row in rows]

    def holders(self, documents: Iterable[int]) -> list[Member]:
        """Which sources hold these documents."""
        found = self._in("SELECT document, source, seen FROM members WHERE document", documents)
        return [Member(*row) for row in found]

    def leave(self, source: SourceRow, documents: Sequence[int]) -> int:
        """Take documents from a source, and delete those that no other source holds; how many."""
        with self._writing_words():
            removed = self._leave(source, documents)
            self._next_generation()
        return removed

    def join(self, members: Sequence[Member]) -> None:
        """Add documents to sources, in one transaction."""
        with self._transaction():
            self.db.executemany(ADD_MEMBER, ((one.source, one.document, one.seen) for one in members))

    def sight(self, source: SourceRow, seen: Sequence[Sighting]) -> list[int]:
        """Note that stored documents are a source's and unchanged; those that could not be renamed."""
        refused, number = list[int](), source.seq
        with self._transaction():
            for one in seen:
                if not self._is_version(one) or (one.path and not self._rename(one.document, one.path)):
                    refused.append(one.document)
                    continue
                self.db.execute(
                    "UPDATE documents SET size = ?, mtime_ns = ? WHERE seq = ?",
                    (one.size, one.mtime_ns, one.document),
                )
                self.db.execute(ADD_MEMBER, (number, one.document, one.seen))
            if any(one.path for one in seen):
                self._next_generation()
        return refused

    def _is_version(self, one: Sighting) -> bool:
        """Whether the stored version of a document is the one that was seen."""
        same = "SELECT 1 FROM documents WHERE seq = ? AND ? IN ('', checksum)"
        return self.db.execute(same, (one.document, one.checksum)).fetchone() is not None

    def _rename(self, row: int, path: str) -> bool:
        """Give a document another path and other ids; False if it is gone or the path is taken."""
        found = self.db.execute("SELECT kind, collection FROM documents WHERE seq = ?", (row,)).fetchone()
        if found is None:
            return False
        kind, collection = found
        id = id_of(kind, of_document(collection, path))
        if self.db.execute("SELECT 1 FROM documents WHERE id = ? AND seq != ?", (id, row)).fetchone():
            return False
        self.db.execute("UPDATE documents SET path = ?, id = ? WHERE seq = ?", (path, id, row))
        remake_keys(self.db, row, kind, collection, path)
        self._rename_links(row, path)
        return True

    def fetched(self, rows: Iterable[int]) -> dict[int, tuple[str | None, str | None]]:
        """The etag and last-modified of documents. Those that came without either are left out."""
        found = self._in("SELECT document, etag, last_modified FROM fetches WHERE document", rows)
        return {row: (etag, modified) for row, etag, modified in found}

    def note_fetched(self, validators: Mapping[int, tuple[str | None, str | None]]) -> None:
        """Store the new etag and last-modified of documents, by row, whose content is unchanged."""
        with self._transaction():
            self.db.executemany("DELETE FROM fetches WHERE document = ?", ((row,) for row in validators))
            self.db.executemany(
                "INSERT INTO fetches SELECT seq, ?, ? FROM documents WHERE seq = ?",
                ((etag, modified, row) for row, (etag, modified) in validators.items() if etag or modified),
            )

    def adopted(self) -> bool:
        """Whether every document has its source, or the file is read-only."""
        waiting = self.db.execute("SELECT 1 FROM facts WHERE name = 'adopt'").fetchone()
        return bool(self.read_only) or waiting is None

    def note_adopted(self) -> None:
        """Note that every document has its source."""
        with self._transaction():
            self.db.execute("DELETE FROM facts WHERE name = 'adopt'")
