"""Sources in a PostgreSQL library, and which documents each of them holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quire.stores.postgres.database import Connection, next_generation
from quire.stores.postgres.documents import PostgresDocuments
from quire.stores.postgres.writing import add_members, rename
from quire.stores.rows import Member, Sighting, SourceRow, source_row, source_values, storable


class PostgresSources(PostgresDocuments):
    """The sources of a PostgreSQL library."""

    def sources(self) -> list[SourceRow]:
        """All sources, by collection, type and place."""
        rows = self.db.rows(
            "SELECT s.*, (SELECT count(*) FROM quire.members AS m WHERE m.source = s.seq)"
            " FROM quire.sources AS s ORDER BY s.collection, s.type, s.place, s.kind"
        )
        return [source_row(row) for row in rows]

    def put_sources(self, sources: Sequence[SourceRow]) -> None:
        """Add sources, or update those that are stored."""
        self.db.write(lambda db: _put_sources(db, sources))

    def source_now(self, source: SourceRow) -> SourceRow | None:
        """A source as it is stored now; None if it was removed."""
        rows = self.db.rows("SELECT * FROM quire.sources WHERE seq = %s", (source.seq,))
        return source_row(rows[0]) if rows else None

    def note_checked(self, sources: Sequence[SourceRow]) -> None:
        """Store when sources were checked, and their problems."""
        rows = [(source.checked_at, storable(source.problem), source.seq) for source in sources]

        def action(db: Connection) -> None:
            with db.cursor() as cursor:
                cursor.executemany(
                    "UPDATE quire.sources SET checked_at = %s, problem = %s WHERE seq = %s", rows
                )

        self.db.write(action)

    def drop_sources(self, sources: Sequence[SourceRow]) -> int:
        """Remove sources, and the documents that no other source holds; how many documents."""

        def action(db: Connection) -> int:
            removed = 0
            for source in sources:
                rows = db.execute("SELECT document FROM quire.members WHERE source = %s", (source.seq,))
                removed += self._leave(db, source, [row[0] for row in rows.fetchall()])
                db.execute("DELETE FROM quire.sources WHERE seq = %s", (source.seq,))
            next_generation(db)
            return removed

        return self.db.write(action)

    def move_source(self, old: SourceRow, new: SourceRow) -> None:
        """Move a source to another place; its documents stay its own."""

        def action(db: Connection) -> None:
            _move_source(db, old, new)
            next_generation(db)

        self.db.write(action)

    def members(self, collection: str, kind: str, source: SourceRow | None = None) -> list[Member]:
        """Which sources hold the documents of a collection, or of one source."""
        columns = "SELECT m.document, m.source, m.seen FROM quire.members AS m"
        if source:
            only = "WHERE m.document IN (SELECT document FROM quire.members WHERE source = %s)"
            return [Member(*row) for row in self.db.rows(f"{columns} {only}", (source.seq,))]
        rows = self.db.rows(
            f"{columns} JOIN quire.documents AS d ON d.seq = m.document"
            " WHERE d.collection = %s AND d.kind = %s",
            (storable(collection), kind),
        )
        return [Member(*row) for row in rows]

    def holders(self, documents: Iterable[int]) -> list[Member]:
        """Which sources hold these documents."""
        statement = "SELECT document, source, seen FROM quire.members WHERE document = ANY (%s)"
        return [Member(*row) for row in self.db.rows(statement, [list(documents)])]

    def leave(self, source: SourceRow, documents: Sequence[int]) -> int:
        """Take documents from a source, and delete those that no other source holds; how many."""

        def action(db: Connection) -> int:
            removed = self._leave(db, source, documents)
            next_generation(db)
            return removed

        return self.db.write(action)

    def join(self, members: Sequence[Member]) -> None:
        """Add documents to sources, in one transaction."""

        def action(db: Connection) -> None:
            for number in {member.source for member in members}:
                seen = {member.document: member.seen for member in members if member.source == number}
                add_members(db, number, seen)

        self.db.write(action)

    def sight(self, source: SourceRow, seen: Sequence[Sighting]) -> list[int]:
        """Note that stored documents are a source's and unchanged; those that could not be renamed."""

        def action(db: Connection) -> list[int]:
            renamed = {one.document: one.path for one in seen if one.path}
            refused = _changed(db, seen)
            renamed = {document: path for document, path in renamed.items() if document not in refused}
            refused |= rename(db, renamed) if renamed else set()
            kept = [one for one in seen if one.document not in refused]
            if kept:
                _sight(db, source.seq, kept)
            if renamed:
                next_generation(db)
            return list(refused)

        return self.db.write(action)

    def fetched(self, rows: Iterable[int]) -> dict[int, tuple[str | None, str | None]]:
        """The etag and last-modified of documents. Those that came without either are left out."""
        found = self.db.rows(
            "SELECT document, etag, last_modified FROM quire.fetches WHERE document = ANY (%s)", [list(rows)]
        )
        return {row: (etag, modified) for row, etag, modified in found}

    def note_fetched(self, validators: Mapping[int, tuple[str | None, str | None]]) -> None:
        """Store the new etag and last-modified of documents, by row, whose content is unchanged."""
        rows = [(etag, modified, row) for row, (etag, modified) in validators.items() if etag or modified]

        def action(db: Connection) -> None:
            with db.cursor() as cursor:
                cursor.execute("DELETE FROM quire.fetches WHERE document = ANY (%s)", [list(validators)])
                cursor.executemany(
                    "INSERT INTO quire.fetches (document, collection, etag, last_modified)"
                    " SELECT seq, collection, %s, %s FROM quire.documents WHERE seq = %s",
                    rows,
                )

        self.db.write(action)

    def adopted(self) -> bool:
        """Whether every document has its source. Only the owner can change that."""
        return self.db.is_scoped or self.db.value("SELECT 1 FROM quire.facts WHERE name = 'adopt'") is None

    def note_adopted(self) -> None:
        """Note that every document has its source."""

        def action(db: Connection) -> None:
            db.execute("DELETE FROM quire.facts WHERE name = 'adopt'")

        self.db.write(action)


def _put_sources(db: Connection, sources: Iterable[SourceRow]) -> None:
    """Add sources, or update those that are stored."""
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO quire.sources VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (seq)"
            " DO UPDATE SET root = excluded.root, options = excluded.options,"
            " checked_at = excluded.checked_at, problem = excluded.problem",
            [source_values(source) for source in sources],
        )


def _move_source(db: Connection, old: SourceRow, new: SourceRow) -> None:
    """Move a source to another place; its documents stay its own."""
    _put_sources(db, [new])
    db.execute(
        "UPDATE quire.documents SET root = %s WHERE root = %s AND url IS NULL AND seq IN"
        " (SELECT document FROM quire.members WHERE source = %s)",
        (new.root, old.root, old.seq),
    )
    db.execute("UPDATE quire.members SET source = %s WHERE source = %s", (new.seq, old.seq))
    if new.seq != old.seq:
        db.execute("DELETE FROM quire.sources WHERE seq = %s", (old.seq,))


def _sight(db: Connection, source: int, seen: Sequence[Sighting]) -> None:
    """Store sizes and times of files whose documents are unchanged, and make them members."""
    columns = zip(*sorted((one.document, one.size, one.mtime_ns) for one in seen), strict=True)
    db.execute(
        "UPDATE quire.documents AS d SET size = n.size, mtime_ns = n.mtime FROM"
        " unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS n (document, size, mtime)"
        " WHERE d.seq = n.document",
        [list(column) for column in columns],
    )
    add_members(db, source, {one.document: one.seen for one in seen})


def _changed(db: Connection, seen: Sequence[Sighting]) -> set[int]:
    """The documents that are gone, or of which another version is stored than was seen."""
    known = [one for one in seen if one.checksum]
    same = db.execute(
        "SELECT d.seq FROM unnest(%s::bigint[], %s::text[]) AS n (document, checksum)"
        " JOIN quire.documents AS d ON d.seq = n.document AND d.checksum = n.checksum FOR UPDATE OF d",
        ([one.document for one in known], [one.checksum for one in known]),
    )
    return {one.document for one in known} - {row[0] for row in same.fetchall()}
