"""Writing documents to a PostgreSQL library: batches of rows, sent with COPY.

Always: writers of the same document wait for one another, in an order that all keep to; a document's
number comes from its id, in any process; a later version has a later time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from quire import analyze
from quire.address import id_of, of_document
from quire.links import tag_key
from quire.stores.ids import chunk_keys, section_keys
from quire.stores.postgres import terms
from quire.stores.postgres.database import Connection, array_of, copy_rows
from quire.stores.postgres.ids import remake_keys
from quire.stores.postgres.links import add_links, rename_links
from quire.stores.postgres.pieces import pieces_of
from quire.stores.postgres.versions import add_versions, keep_replaced
from quire.stores.rows import Prepared, storable
from quire.stores.texts import ChunkWords

Identity = tuple[str, str, str]  # collection, kind, path
Numbered = tuple[int, Prepared]  # a document and its row
Stored = tuple[int, int]  # a document's row, and when it was last written
SOME, BATCH_BYTES = 256, 4_000_000  # documents, and bytes of their text
_NUMBER_BITS = 43  # of a document: shifted for its chunks, it is still a positive bigint
_TAG_TYPES = ("int8", "text", "text", "text")
_PARTS = ("sections", "chunks", "words", "fetches", "tags", "originals", "links", "names", "fields")
_SECTION_TYPES = ("int8", "int4", "text", *["int4"] * 3, *["text"] * 4, *["int4"] * 10, "int8")
_CHUNK_TYPES = ("int8", "int4", "text", *["int4"] * 9, "text", "bytea", "text", "int8")
_DOCUMENT_TYPES = (
    *("int8", *["text"] * 9, "int8", "int8", "text", "text"),
    *("int4", "int4", "int8", "int8", "int8", "text", "bytea", "int4[]", "bytea", "int8"),
)


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
    db: Connection, batch: Mapping[Identity, Prepared], source: int, then: Callable[[list[Numbered]], None]
) -> tuple[dict[Identity, Stored], int]:
    """Replace documents by their new versions; the old versions, and how many chunks the new ones have.

    They become members of the source, unless it is 0. Only some documents are in memory at once; `then` gets
    those that were written.
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
        keep_replaced(db, {old[identity][0]: new for identity, new in some.items() if identity in old})
        for identity in some.keys() & old.keys():
            row, updated_at = old[identity]
            _update(db, row, some[identity], max(some[identity].updated_at or now, updated_at + 1))
        _add(db, [(rows[identity], new, identity in old) for identity, new in some.items()], now)
        then([(rows[identity], new) for identity, new in some.items()])
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
        if size >= BATCH_BYTES or len(some) >= SOME:
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
    add_words(db, ((row, new.collection, new.kind, new.words) for row, new in numbered))
    copy_rows(db, "tags", _TAG_TYPES, (part for pair in numbered for part in _tags(*pair)))
    copy_rows(
        db, "fetches", ("int8", "text", "text", "text"), (part for pair in numbered for part in _fetch(*pair))
    )
    copy_rows(
        db,
        "originals",
        ("int8", "text", "text", "bytea"),
        (part for pair in numbered for part in _original(*pair)),
    )
    add_links(db, numbered)
    add_versions(db, numbered)


def add_words(db: Connection, documents: Iterable[tuple[int, str, str, Iterable[ChunkWords]]]) -> None:
    """Store the terms of documents: of each its row, collection, kind, and the terms of its chunks.

    No writer waits for another, and so a term may be in a vocabulary twice.
    """
    spelled = set[tuple[str, str]]()
    rows = (row for document in documents for row in terms.rows_of(*document, spelled))
    copy_rows(db, "words", terms.TYPES, rows)
    known = "SELECT 1 FROM quire.vocabulary AS v WHERE v.term = n.term AND v.collection = n.collection"
    new = ((collection, term, terms.number(term)) for collection, term in spelled)
    copy_rows(db, "vocabulary", terms.VOCABULARY_TYPES, new, f"AS n WHERE NOT EXISTS ({known})")


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
    remake_keys(db, list(new))
    rename_links(db, {row: (identity[0], identity[2]) for row, identity in new.items()})
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


def _stored(db: Connection, wanted: Iterable[Identity]) -> dict[Identity, Stored]:
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
    db: Connection, batch: Iterable[Identity], old: Mapping[Identity, Stored]
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
        " updated_at = %s, terms = %s, pieces = %b, ends = %s, pieces_sum = %b, length = %s,"
        " promotion = coalesce(nullif(%s, ''), promotion) WHERE seq = %s",
        (
            *(*_facts(new), new.size, new.mtime_ns, new.made_by, *_sizes(new), now),
            *(*_content(new), new.promotion, row),
        ),
    )


def _values(row: int, new: Prepared, now: int) -> tuple[Any, ...]:
    """A new document as a row of its table."""
    identity = identity_of(new)
    about = (row, _id(identity), *identity, *_facts(new), new.size, new.mtime_ns, new.made_by)
    times = new.created_at or now, new.updated_at or now
    return (*about, new.promotion or "standard", *_sizes(new), *times, *_content(new))


def _content(new: Prepared) -> tuple[Any, ...]:
    """What made the terms of a document, and its bytes."""
    stored, ends, digest = pieces_of(new.source)
    return analyze.fingerprint(), stored, array_of(ends), digest, len(new.source)


def _facts(new: Prepared) -> tuple[str | None, ...]:
    return new.url, new.root, new.format, new.title, new.checksum


def _sizes(new: Prepared) -> tuple[int, int, int]:
    return len(new.chunks), len(new.sections), terms.size_of(new.words)


def _sections(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    for section, key in zip(new.sections, section_keys(new), strict=True):
        yield (row, section[0], new.collection, *section[1:], key)


def _chunks(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    parts = zip(new.chunks, new.digests, chunk_keys(new), strict=True)
    for index, (chunk, digest, key) in enumerate(parts):
        *before, headings = chunk
        yield (row, index, new.collection, *before, digest, headings, key)


def _tags(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    return ((row, new.collection, storable(tag), tag_key(storable(tag))) for tag in set(new.tags))


def _fetch(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    if new.etag or new.last_modified:
        yield row, new.collection, new.etag, new.last_modified


def _original(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    if new.original or new.places:
        yield row, new.collection, new.original, new.places.pack() if new.places else None
