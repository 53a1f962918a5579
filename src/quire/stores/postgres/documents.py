"""Documents in a PostgreSQL library, with their sections and chunks.

Always: one transaction covers text, sections, chunks, terms and what becomes of vectors; writers of the
same document wait for one another, in an order that all keep to; a document's number comes from its id, in
any process; a later version has a later time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, cast

from quire import analyze
from quire.address import key_of_id, of_document
from quire.errors import Damaged
from quire.progress import Progress, Silent
from quire.result import Node
from quire.stores.checks import is_intact
from quire.stores.filters import Filters, Slice
from quire.stores.ids import with_id
from quire.stores.postgres import pieces, terms, versions
from quire.stores.postgres.database import (
    CHUNK_COLUMNS,
    CHUNKS_BY_ID,
    Connection,
    next_generation,
    split_ids,
)
from quire.stores.postgres.filters import conditions
from quire.stores.postgres.ids import ID_PLACES
from quire.stores.postgres.links import PostgresLinks
from quire.stores.postgres.originals import PostgresOriginals
from quire.stores.postgres.vectors import PostgresVectors
from quire.stores.postgres.words import PostgresWords
from quire.stores.postgres.writing import SOME, Identity, Latest, add_words, write_batch
from quire.stores.rows import ChunkRow, DocumentRow, Prepared, SectionRow, SourceRow, Version, storable
from quire.stores.texts import ChunkWords, passage_of

_DOCUMENT = ", ".join(f"d.{field.name}" for field in fields(DocumentRow))
_SECTION = ", ".join(f's."{field.name}"' for field in fields(SectionRow))
_SHOWN = 100  # chunks that may be about to be shown
_CHUNK_WIDTH = len(fields(ChunkRow))
_SHOWN_CHUNKS = (
    f"SELECT {CHUNK_COLUMNS}, {_SECTION}, {pieces.BEGINNING}, CASE WHEN c.byte_end - c.byte_start < 20000"
    f" THEN {pieces.holding('c.byte_start', 'c.byte_end')} END FROM {CHUNKS_BY_ID}"
    " JOIN quire.documents AS d ON d.seq = c.document LEFT JOIN quire.sections AS s"
    " ON s.document = c.document AND s.position = c.section"
)


class PostgresDocuments(PostgresWords, PostgresVectors, PostgresLinks, PostgresOriginals):
    """The documents of a PostgreSQL library."""

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents in one transaction, and remove what is gone; for each, whether it replaced one."""
        latest = Latest(batch)

        def action(db: Connection) -> set[Identity]:
            if gone:
                self._leave(db, source, gone)
            then = partial(self._add_instant, db)
            replaced, chunks = write_batch(db, latest, source.seq if source else 0, then)
            if replaced:
                self.vectors.let_go(db, [row for row, _ in replaced.values()])
            next_generation(db, chunks)
            self.words.grown(db)
            return set(replaced)

        seen, answers = self.db.write(action), list[bool]()
        for identity in latest.order:
            answers.append(identity in seen)
            seen.add(identity)
        return answers

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents and all that belongs to them, in one transaction."""

        def action(db: Connection) -> None:
            self._remove(db, rows)
            next_generation(db)

        self.db.write(action)

    def _remove(self, db: Connection, rows: Sequence[int]) -> None:
        wanted = (list(rows),)
        db.execute("SELECT 1 FROM quire.documents WHERE seq = ANY (%s) ORDER BY seq FOR UPDATE", wanted)
        self.vectors.let_go(db, rows, all=True)
        db.execute("DELETE FROM quire.documents WHERE seq = ANY (%s)", wanted)

    def _leave(self, db: Connection, source: SourceRow | None, rows: Sequence[int]) -> int:
        """Take documents from a source and delete those that no other source holds; how many."""
        held = "SELECT seq FROM quire.documents WHERE seq = ANY (%s) ORDER BY seq FOR UPDATE"
        rows = [row[0] for row in db.execute(held, (list(rows),)).fetchall()]  # others wait with theirs
        if source:
            db.execute(
                "DELETE FROM quire.members WHERE source = %s AND document = ANY (%s)",
                (source.seq, list(rows)),
            )
        others = db.execute("SELECT document FROM quire.members WHERE document = ANY (%s)", (list(rows),))
        kept = {row[0] for row in others}
        left = [row for row in rows if row not in kept]
        if left:
            self._remove(db, left)
        return len(left)

    def promote(self, row: int, level: str) -> None:
        """Set the promotion of a document, and with it of all its chunks, which have none of their own."""

        def action(db: Connection) -> None:
            db.execute("UPDATE quire.documents SET promotion = %s WHERE seq = %s", (level, row))
            next_generation(db)

        self.db.write(action)

    def promoted(self, level: str) -> list[int]:
        """The rows of the documents that are important, or critical."""
        found = (
            "SELECT seq FROM quire.documents WHERE promotion = %s AND promotion <> 'standard' ORDER BY seq"
        )
        return list(self.db.once(("promoted", level), lambda: [r[0] for r in self.db.rows(found, [level])]))

    def remake_words(self, progress: Progress | None = None) -> int:
        """Remake terms that another analyzer made, some documents at a time; returns how many documents."""
        done, shown, mine = 0, progress or Silent(), analyze.fingerprint()
        other = "FROM quire.documents WHERE terms <> %s"
        shown.begin("remaking words", self.db.value(f"SELECT count(*) {other}", mine), "documents")
        while some := self.db.rows(f"SELECT seq, collection, kind {other} LIMIT {SOME}", [mine]):
            self.db.write(partial(self._remake, documents=some))
            done += len(some)
            shown.advance(len(some))
        return done

    def _remake(self, db: Connection, documents: Sequence[tuple[Any, ...]]) -> None:
        rows = [row for row, _, _ in documents]
        held = "SELECT seq FROM quire.documents WHERE seq = ANY (%s) ORDER BY seq FOR UPDATE"
        there = {row[0] for row in db.execute(held, (rows,))}
        db.execute("DELETE FROM quire.words WHERE document = ANY (%s)", (rows,))
        for row, collection, kind in documents:
            made = list(self._words_of(row)) if row in there else []
            add_words(db, [(row, collection, kind, made)])
            db.execute(
                "UPDATE quire.documents SET terms = %s, term_count = %s WHERE seq = %s",
                (analyze.fingerprint(), terms.size_of(made), row),
            )
        next_generation(db)

    def _words_of(self, row: int) -> Iterator[ChunkWords]:
        """The terms of each chunk of a stored document."""
        texts = self._texts(row)
        chunks = f"SELECT {CHUNK_COLUMNS} FROM quire.chunks AS c WHERE c.document = %s ORDER BY c.index"
        return (texts.words(ChunkRow(*found)) for found in self.db.rows(chunks, (row,)))

    # ---------------------------------------------------------------------------------- reading

    def documents(self, filters: Filters, page: Slice | None = None) -> list[DocumentRow]:
        """Documents by collection and path, or one page of them."""
        (where, args), order = conditions(filters), "d.collection, d.path, d.kind"
        where = where or "true"
        if page:
            where += f" AND d.collection = %s AND d.kind = %s AND d.path {'>='[: 1 + page.has_path]} %s"
            args, order = [*args, *page[:3], page.limit], "d.path LIMIT %s"
        rows = self.db.rows(
            f"SELECT {_DOCUMENT} FROM quire.documents AS d WHERE {where} ORDER BY {order}", args
        )
        return [DocumentRow(*row) for row in rows]

    def document(self, collection: str | None, path: str) -> DocumentRow | None:
        """One document by its path, in any collection if none is named."""
        rows = self.db.rows(
            f"SELECT {_DOCUMENT} FROM quire.documents AS d WHERE d.path = %s"
            " AND (%s::text IS NULL OR d.collection = %s) ORDER BY d.collection, d.kind LIMIT 1",
            [storable(path), *[None if collection is None else storable(collection)] * 2],
        )
        return DocumentRow(*rows[0]) if rows else None

    def by_id(self, id: str) -> tuple[DocumentRow, str] | None:
        """The document that an id leads to, and what follows the # of the id's address."""
        rows = self.db.rows(
            f"SELECT {_DOCUMENT}, p.slug, p.part FROM {ID_PLACES} AS p"
            " JOIN quire.documents AS d ON d.seq = p.document",
            {"key": key_of_id(id)},
        )
        return with_id(id, ((DocumentRow(*row[:-2]), *row[-2:]) for row in rows))

    def documents_by_row(self, rows: Iterable[int]) -> dict[int, DocumentRow]:
        """Documents by their rows. A snapshot caches the last answer: a search asks twice for the same."""
        wanted = set(rows)
        with self.db.reading():
            kept: dict[int, DocumentRow] = self.db.snapshot.get("documents", {})
            if not wanted <= kept.keys():
                statement = f"SELECT {_DOCUMENT} FROM quire.documents AS d WHERE d.seq = ANY (%s)"
                kept = {row[0]: DocumentRow(*row) for row in self.db.rows(statement, [list(wanted)])}
                self.db.snapshot["documents"] = kept
            return {row: kept[row] for row in wanted if row in kept}

    def source(self, row: int) -> bytes:
        """The exact bytes of a document. Raises Damaged if they are not those that were written."""
        found = "SELECT pieces, checksum, collection, path FROM quire.documents WHERE seq = %s"
        for stored, checksum, collection, path in self.db.rows(found, [row]):
            source = pieces.unpack(stored)
            if is_intact(source, checksum):
                return source
            raise Damaged(self.db.name, of_document(collection, path))
        raise Damaged(self.db.name, f"document {row}")

    def passage(self, row: int, start: int, end: int) -> str:
        """The text between two byte offsets of a document, without reading the rest."""
        if (text := self.db.snapshot.get("passages", {}).get((row, start, end))) is not None:
            return str(text)
        beginning, some = self.db.rows(
            f"SELECT {pieces.BEGINNING}, {pieces.holding('%(start)s', '%(end)s')}"
            " FROM quire.documents AS d WHERE d.seq = %(row)s",
            {"row": row, "start": start, "end": end},
        )[0]
        return passage_of(pieces.part_of(some, start, end), beginning)

    def earlier_versions(self, row: int) -> list[Version]:
        """The earlier texts of an entry, newest first."""
        return [Version(*found) for found in self.db.rows(versions.ALL, (row,))]

    def sections(self, row: int) -> list[SectionRow]:
        """The sections of a document, in order."""
        rows = self.db.rows(
            f"SELECT {_SECTION} FROM quire.sections AS s WHERE s.document = %s ORDER BY s.position", (row,)
        )
        return [SectionRow(*found) for found in rows]

    def section(self, row: int, position: int) -> SectionRow:
        """One section."""
        if known := self.db.snapshot.get("sections", {}).get((row, position)):
            return cast(SectionRow, known)
        rows = self.db.rows(
            f"SELECT {_SECTION} FROM quire.sections AS s WHERE s.document = %s AND s.position = %s",
            (row, position),
        )
        return SectionRow(*rows[0])

    def lineages(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], SectionRow]:
        """Sections by (document, position), with all their ancestors."""
        wanted = list(keys)
        rows = self.db.rows(
            "WITH RECURSIVE up (document, position, parent) AS (SELECT s.document, s.position, s.parent"
            " FROM unnest(%s::bigint[], %s::integer[]) AS k (document, position)"
            " JOIN quire.sections AS s USING (document, position)"
            " UNION SELECT s.document, s.position, s.parent FROM up"
            " JOIN quire.sections AS s ON s.document = up.document AND s.position = up.parent"
            f") SELECT {_SECTION} FROM up JOIN quire.sections AS s USING (document, position)",
            ([key[0] for key in wanted], [key[1] for key in wanted]),
        )
        return {(row[0], row[1]): SectionRow(*row) for row in rows}

    def titles(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The titles of sections by (document, position)."""
        wanted = list(keys)
        rows = self.db.rows(
            "SELECT s.document, s.position, s.title FROM unnest(%s::bigint[], %s::integer[])"
            " AS k (document, position) JOIN quire.sections AS s USING (document, position)",
            ([key[0] for key in wanted], [key[1] for key in wanted]),
        )
        return {(document, position): title for document, position, title in rows}

    def nodes(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Node]:
        """Sections by (document, position), with all their ancestors."""
        wanted = list(keys)
        rows = self.db.rows(
            "WITH RECURSIVE up (document, position, parent, level, children, tokens) AS ("
            " SELECT s.document, s.position, s.parent, s.level, s.children, s.tokens"
            " FROM unnest(%s::bigint[], %s::integer[]) AS k (document, position)"
            " JOIN quire.sections AS s USING (document, position)"
            " UNION SELECT s.document, s.position, s.parent, s.level, s.children, s.tokens FROM up"
            " JOIN quire.sections AS s ON s.document = up.document AND s.position = up.parent"
            ") SELECT * FROM up",
            ([key[0] for key in wanted], [key[1] for key in wanted]),
        )
        return {(row[0], row[1]): Node(*row) for row in rows}

    def chunks(self, ids: Iterable[int]) -> dict[int, ChunkRow]:
        """Chunks by their ids. A snapshot caches the sections and texts of a few, which are shown next."""
        wanted = list(ids)
        if len(wanted) <= _SHOWN and self.db.is_reading:
            return self._shown(wanted)
        rows = self.db.rows(f"SELECT {CHUNK_COLUMNS} FROM {CHUNKS_BY_ID}", split_ids(wanted))
        return {row[0]: ChunkRow(*row) for row in rows}

    def _shown(self, ids: list[int]) -> dict[int, ChunkRow]:
        """Chunks, with their sections and texts in the same statement, which saves a round trip for each."""
        chunks: dict[int, ChunkRow] = {}
        sections, passages = dict[tuple[int, int], SectionRow](), dict[tuple[int, int, int], str]()
        for row in self.db.rows(_SHOWN_CHUNKS, split_ids(ids)):
            chunk, (beginning, some) = ChunkRow(*row[:_CHUNK_WIDTH]), row[-2:]
            chunks[chunk.id] = chunk
            if some is not None:
                place = chunk.byte_start, chunk.byte_end
                passages[chunk.document, *place] = passage_of(pieces.part_of(some, *place), beginning)
            if row[_CHUNK_WIDTH] is not None:
                sections[chunk.document, chunk.section] = SectionRow(*row[_CHUNK_WIDTH:-2])
        self.db.snapshot |= {"sections": sections, "passages": passages}
        return chunks

    def tags(self, rows: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """The tags of documents, in order. Documents without tags are left out."""
        found: dict[int, list[str]] = {}
        statement = "SELECT document, tag FROM quire.tags WHERE document = ANY (%s) ORDER BY tag"
        for row, tag in self.db.rows(statement, [list(rows)]):
            found.setdefault(row, []).append(tag)
        return {row: tuple(tags) for row, tags in found.items()}
