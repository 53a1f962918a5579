"""Documents in a PostgreSQL library, with their sections and chunks.

Always: one transaction covers text, sections, chunks, terms and what becomes of vectors; writers of the
same document wait for one another, in an order that all keep to; a document's number comes from its id, in
any process; a later version has a later time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, cast
from uuid import UUID

from quire import analyze
from quire.address import id_of, of_document
from quire.progress import Progress, Silent
from quire.result import Node
from quire.stores.filters import Filters
from quire.stores.postgres import words
from quire.stores.postgres.database import (
    CHUNK_COLUMNS,
    CHUNKS_BY_ID,
    Connection,
    copy_rows,
    next_generation,
    split_ids,
)
from quire.stores.postgres.filters import conditions
from quire.stores.postgres.vectors import PostgresVectors
from quire.stores.postgres.words import PostgresWords
from quire.stores.rows import ChunkRow, DocumentRow, Prepared, SectionRow, SourceRow, storable
from quire.stores.texts import ChunkWords, passage_of

Identity = tuple[str, str, str]  # collection, kind, path
Version = tuple[int, int]  # a document's row, and when it was last written

_SOME, _SOME_BYTES = 256, 4_000_000  # documents, and bytes of their text
_NUMBER_BITS = 43  # of a document: shifted for its chunks, it is still a positive bigint
_PARTS = ("sections", "chunks", "words", "fetches", "tags")
_SECTION_TYPES = ("int8", "int4", "text", *["int4"] * 3, *["text"] * 4, *["int4"] * 10)
_CHUNK_TYPES = ("int8", "int4", "text", *["int4"] * 9, "text", "bytea")
_DOCUMENT_TYPES = (
    *("int8", *["text"] * 9, "int8", "int8", "text", "text"),
    *("int4", "int4", "int8", "int8", "int8", "bytea", "text"),
)
_DOCUMENT = ", ".join(f"d.{field.name}" for field in fields(DocumentRow))
_SECTION = ", ".join(f's."{field.name}"' for field in fields(SectionRow))
_SHOWN = 100  # chunks that may be about to be shown
_CHUNK_WIDTH = len(fields(ChunkRow))
_SHOWN_CHUNKS = (
    f"SELECT {CHUNK_COLUMNS}, {_SECTION}, substring(d.source, 1, 2),"
    " CASE WHEN c.byte_end - c.byte_start < 20000"
    f" THEN substring(d.source, c.byte_start + 1, c.byte_end - c.byte_start) END FROM {CHUNKS_BY_ID}"
    " JOIN quire.documents AS d ON d.seq = c.document LEFT JOIN quire.sections AS s"
    " ON s.document = c.document AND s.position = c.section"
)


class PostgresDocuments(PostgresWords, PostgresVectors):
    """The documents of a PostgreSQL library."""

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents in one transaction, and remove what is gone; for each, whether it replaced one."""
        latest = Latest(batch)

        def action(db: Connection) -> set[Identity]:
            if gone:
                self._leave(db, source, gone)
            replaced, chunks = write_batch(db, latest, source.seq if source else 0)
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

    def remake_words(self, progress: Progress | None = None) -> int:
        """Make terms again where another analyzer made them, some documents at a time; how many documents."""
        done, shown, mine = 0, progress or Silent(), analyze.fingerprint()
        other = "FROM quire.documents WHERE terms <> %s"
        shown.begin("remaking words", self.db.value(f"SELECT count(*) {other}", mine), "documents")
        while some := self.db.rows(f"SELECT seq, collection, kind {other} LIMIT {_SOME}", [mine]):
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
            copy_rows(db, "words", words.TYPES, words.rows_of(row, collection, kind, made))
            db.execute(
                "UPDATE quire.documents SET terms = %s, term_count = %s WHERE seq = %s",
                (analyze.fingerprint(), words.size_of(made), row),
            )
        next_generation(db)

    def _words_of(self, row: int) -> Iterator[ChunkWords]:
        """The terms of each chunk of a stored document."""
        texts = self._texts(row)
        chunks = f"SELECT {CHUNK_COLUMNS} FROM quire.chunks AS c WHERE c.document = %s ORDER BY c.index"
        return (texts.words(ChunkRow(*found)) for found in self.db.rows(chunks, (row,)))

    # ---------------------------------------------------------------------------------- reading

    def documents(self, filters: Filters) -> list[DocumentRow]:
        """Documents by collection and path."""
        where, args = conditions(filters)
        rows = self.db.rows(
            f"SELECT {_DOCUMENT} FROM quire.documents AS d WHERE {where or 'true'}"
            " ORDER BY d.collection, d.path, d.kind",
            args,
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
        """The exact bytes of a document."""
        return bytes(self.db.value("SELECT source FROM quire.documents WHERE seq = %s", row))

    def passage(self, row: int, start: int, end: int) -> str:
        """The text between two byte offsets of a document, without reading the rest."""
        if (text := self.db.snapshot.get("passages", {}).get((row, start, end))) is not None:
            return str(text)
        beginning, some = self.db.rows(
            "SELECT substring(source, 1, 2), substring(source, %s, %s) FROM quire.documents WHERE seq = %s",
            (start + 1, end - start, row),
        )[0]
        return passage_of(bytes(some), bytes(beginning))

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
                text = passage_of(bytes(some), bytes(beginning))
                passages[chunk.document, chunk.byte_start, chunk.byte_end] = text
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


# -------------------------------------------------------------------------------------------- writing


class Latest(Mapping[Identity, Prepared]):
    """Documents by their identity, each loaded when it is asked for. Of equal ones, the last counts."""

    def __init__(self, batch: Sequence[Prepared]) -> None:
        self._batch = batch
        self.order = [identity_of(new) for new in batch]
        self._places = {identity: place for place, identity in enumerate(self.order)}

    def __getitem__(self, identity: Identity) -> Prepared:
        return self._batch[self._places[identity]]

    def __iter__(self) -> Iterator[Identity]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def write_batch(
    db: Connection, batch: Mapping[Identity, Prepared], source: int = 0
) -> tuple[dict[Identity, Version], int]:
    """Replace documents by their new versions; the old versions, and how many chunks the new ones have.

    They become members of the source, if one is named. Only some documents are in memory at once.
    """
    if not batch:
        return {}, 0
    _lock(db, map(_id, batch))
    old = _stored(db, batch)
    rows = _numbers(db, batch, old)
    replaced = [row for row, _ in old.values()]
    for table in _PARTS if replaced else ():
        db.execute(f"DELETE FROM quire.{table} WHERE document = ANY (%s)", (replaced,))
    now, chunks = time.time_ns() // 1_000_000, 0
    for some in _some(batch):
        for identity in some.keys() & old.keys():
            row, updated_at = old[identity]
            _update(db, row, some[identity], max(some[identity].updated_at or now, updated_at + 1))
        _add(db, [(rows[identity], new, identity in old) for identity, new in some.items()], now)
        if source:
            add_members(db, source, {rows[identity]: new.seen for identity, new in some.items()})
        chunks += sum(len(new.chunks) for new in some.values())
    return old, chunks


def _some(batch: Mapping[Identity, Prepared]) -> Iterator[dict[Identity, Prepared]]:
    """Documents in batches as large as those of the indexer."""
    some, size = dict[Identity, Prepared](), 0
    for identity in batch:
        some[identity] = batch[identity]
        size += len(some[identity].source)
        if size >= _SOME_BYTES or len(some) >= _SOME:
            yield some
            some, size = {}, 0
    if some:
        yield some


def _add(db: Connection, documents: Sequence[tuple[int, Prepared, bool]], now: int) -> None:
    """Insert the parts of documents, and the documents that are new."""
    numbered = [(row, new) for row, new, _ in documents]
    added = [(row, new) for row, new, replaces in documents if not replaces]
    copy_rows(db, "documents", _DOCUMENT_TYPES, (_values(row, new, now) for row, new in added))
    copy_rows(db, "sections", _SECTION_TYPES, (part for pair in numbered for part in _sections(*pair)))
    copy_rows(db, "chunks", _CHUNK_TYPES, (part for pair in numbered for part in _chunks(*pair)))
    copy_rows(db, "words", words.TYPES, (part for pair in numbered for part in _words(*pair)))
    copy_rows(db, "tags", ("int8", "text", "text"), (part for pair in numbered for part in _tags(*pair)))
    copy_rows(
        db, "fetches", ("int8", "text", "text", "text"), (part for pair in numbered for part in _fetch(*pair))
    )


def add_members(db: Connection, source: int, seen: Mapping[int, int]) -> None:
    """Make documents members of a source, each with when its file was seen."""
    db.execute(
        "INSERT INTO quire.members (document, source, collection, seen)"
        " SELECT d.seq, %s, d.collection, n.seen"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS n (document, seen)"
        " JOIN quire.documents AS d ON d.seq = n.document"
        " ON CONFLICT (document, source) DO UPDATE SET seen = excluded.seen",
        (source, list(seen), list(seen.values())),
    )


def rename(db: Connection, paths: Mapping[int, str]) -> set[int]:
    """Rename documents; those that were not, because they are gone or the new path is taken."""
    found = db.execute(
        "SELECT seq, collection, kind, path FROM quire.documents WHERE seq = ANY (%s)", (list(paths),)
    ).fetchall()
    old = {row[0]: (row[1], row[2], row[3]) for row in found}
    new = {row: (identity[0], identity[1], paths[row]) for row, identity in old.items()}
    if new:
        _lock(db, map(_id, (*old.values(), *new.values())))
        taken = _stored(db, list(new.values()))
        new = {row: identity for row, identity in new.items() if identity not in taken}
    with db.cursor() as cursor:
        cursor.executemany(
            "UPDATE quire.documents SET path = %s, id = %s WHERE seq = %s",
            [(identity[2], _id(identity), row) for row, identity in new.items()],
        )
    return paths.keys() - new.keys()


def identity_of(new: Prepared) -> Identity:
    """The identity of a document."""
    return new.collection, new.kind, new.path


def _id(identity: Identity) -> str:
    collection, kind, path = identity
    return id_of(kind, of_document(collection, path))


def _number(id: str) -> int:
    """The number that a document gets, unless another has it."""
    return max(1, UUID(id).int >> 128 - _NUMBER_BITS)


def _lock(db: Connection, ids: Iterable[str]) -> None:
    """Wait for other writers of the same documents. All writers lock in the same order."""
    keys = sorted({_number(id) for id in ids})
    db.execute("SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key", (keys,))


def _stored(db: Connection, wanted: Iterable[Identity]) -> dict[Identity, Version]:
    """Row and version of the stored documents, locked until the transaction ends."""
    collections, kinds, paths = zip(*wanted, strict=True)
    rows = db.execute(
        "SELECT d.seq, d.updated_at, d.collection, d.kind, d.path FROM quire.documents AS d"
        " WHERE (d.collection, d.kind, d.path) IN (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[]))"
        " ORDER BY d.seq FOR UPDATE",
        (list(collections), list(kinds), list(paths)),
    )
    return {(row[2], row[3], row[4]): (row[0], row[1]) for row in rows}


def _numbers(
    db: Connection, batch: Iterable[Identity], old: Mapping[Identity, Version]
) -> dict[Identity, int]:
    """The row of each document. A new one gets that of its id, or the next that is free."""
    numbers = {identity: row for identity, (row, _) in old.items()}
    new = {identity: _number(_id(identity)) for identity in batch if identity not in old}
    taken = set(numbers.values())
    while new:
        rows = db.execute("SELECT seq FROM quire.documents WHERE seq = ANY (%s)", (list(new.values()),))
        taken |= {row[0] for row in rows}
        for identity, number in list(new.items()):
            if number in taken:
                new[identity] = number + 1
            else:
                taken.add(number)
                numbers[identity] = new.pop(identity)
    return numbers


def _update(db: Connection, row: int, new: Prepared, now: int) -> None:
    db.execute(
        "UPDATE quire.documents SET url = %s, root = %s, format = %s, title = %s, checksum = %s, size = %s,"
        " mtime_ns = %s, made_by = %s, chunk_count = %s, section_count = %s, term_count = %s,"
        " updated_at = %s, source = %b, terms = %s, promotion = coalesce(nullif(%s, ''), promotion)"
        " WHERE seq = %s",
        (
            *(*_facts(new), new.size, new.mtime_ns, new.made_by, *_sizes(new), now),
            *(new.source, analyze.fingerprint(), new.promotion, row),
        ),
    )


def _values(row: int, new: Prepared, now: int) -> tuple[Any, ...]:
    """A new document as a row of its table."""
    identity = identity_of(new)
    about = (row, _id(identity), *identity, *_facts(new), new.size, new.mtime_ns, new.made_by)
    times = new.created_at or now, new.updated_at or now
    return (*about, new.promotion or "standard", *_sizes(new), *times, new.source, analyze.fingerprint())


def _facts(new: Prepared) -> tuple[str | None, ...]:
    return new.url, new.root, new.format, new.title, new.checksum


def _sizes(new: Prepared) -> tuple[int, int, int]:
    return len(new.chunks), len(new.sections), words.size_of(new.words)


def _sections(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    return ((row, section[0], new.collection, *section[1:]) for section in new.sections)


def _chunks(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    for index, (chunk, digest) in enumerate(zip(new.chunks, new.digests, strict=True)):
        yield (row, index, new.collection, *chunk, digest)


def _tags(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    return ((row, new.collection, storable(tag)) for tag in set(new.tags))


def _fetch(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    if new.etag or new.last_modified:
        yield row, new.collection, new.etag, new.last_modified


def _words(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    return words.rows_of(row, new.collection, new.kind, new.words)
