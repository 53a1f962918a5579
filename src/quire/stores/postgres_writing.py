"""Writing documents to a PostgreSQL library, a batch in one transaction.

In go prepared documents, out goes which of them replaced others. Always: writers of the same document wait
for one another, in an order that all keep to; a document's number comes from its id; a later version has
a later time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from quire.address import id_of, of_document
from quire.stores import postgres_words
from quire.stores.postgres_database import Connection, copy
from quire.stores.rows import Prepared, Sighting, SourceRow, source_values, storable

Identity = tuple[str, str, str]  # collection, kind, path
Version = tuple[int, int]  # a document's row, and when it was last written

_SOME, _SOME_BYTES = 256, 4_000_000  # documents, and bytes of their text
_NUMBER_BITS = 43  # of a document: shifted for its chunks, it is still a positive bigint
_PARTS = ("sections", "chunks", "words", "fetches", "tags")
_SECTION_TYPES = ("int8", "int4", "text", *["int4"] * 3, *["text"] * 4, *["int4"] * 10)
_CHUNK_TYPES = ("int8", "int4", "text", *["int4"] * 9, "text", "bytea")
_DOCUMENT_TYPES = (
    *("int8", *["text"] * 9, "int8", "int8", "text", "text"),
    *("int4", "int4", "int8", "int8", "int8", "bytea"),
)


class Latest(Mapping[Identity, Prepared]):
    """Documents by what makes them the same, each looked up when asked for; of the same ones, the last."""

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


def write(
    db: Connection, batch: Mapping[Identity, Prepared], source: int = 0
) -> tuple[dict[Identity, Version], int]:
    """Swap in the new versions of documents; the old ones, and how many chunks the new ones have.

    They become those of a source, if one is named. No more than some documents are held at once.
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
            join(db, source, {rows[identity]: new.seen for identity, new in some.items()})
        chunks += sum(len(new.chunks) for new in some.values())
    return old, chunks


def _some(batch: Mapping[Identity, Prepared]) -> Iterator[dict[Identity, Prepared]]:
    """Documents, as many at once as the indexer writes."""
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
    """Add what documents consist of, and themselves where they replace none."""
    numbered = [(row, new) for row, new, _ in documents]
    added = [(row, new) for row, new, replaces in documents if not replaces]
    copy(db, "documents", _DOCUMENT_TYPES, (_values(row, new, now) for row, new in added))
    copy(db, "sections", _SECTION_TYPES, (part for pair in numbered for part in _sections(*pair)))
    copy(db, "chunks", _CHUNK_TYPES, (part for pair in numbered for part in _chunks(*pair)))
    copy(db, "words", postgres_words.TYPES, (part for pair in numbered for part in _words(*pair)))
    copy(db, "tags", ("int8", "text", "text"), (part for pair in numbered for part in _tags(*pair)))
    copy(
        db, "fetches", ("int8", "text", "text", "text"), (part for pair in numbered for part in _fetch(*pair))
    )


def join(db: Connection, source: int, seen: Mapping[int, int]) -> None:
    """Make documents those of a source, with when their files were seen."""
    db.execute(
        "INSERT INTO quire.members (document, source, collection, seen)"
        " SELECT d.seq, %s, d.collection, n.seen"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS n (document, seen)"
        " JOIN quire.documents AS d ON d.seq = n.document"
        " ON CONFLICT (document, source) DO UPDATE SET seen = excluded.seen",
        (source, list(seen), list(seen.values())),
    )


def sight(db: Connection, source: int, seen: Sequence[Sighting]) -> None:
    """Note sizes and times of files whose documents are unchanged, and whose they are."""
    columns = zip(*sorted((one.document, one.size, one.mtime_ns) for one in seen), strict=True)
    db.execute(
        "UPDATE quire.documents AS d SET size = n.size, mtime_ns = n.mtime FROM"
        " unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS n (document, size, mtime)"
        " WHERE d.seq = n.document",
        [list(column) for column in columns],
    )
    join(db, source, {one.document: one.seen for one in seen})


def put_sources(db: Connection, sources: Iterable[SourceRow]) -> None:
    """Remember sources, or what is new of them."""
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO quire.sources VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (seq)"
            " DO UPDATE SET root = excluded.root, options = excluded.options,"
            " checked_at = excluded.checked_at, problem = excluded.problem",
            [source_values(source) for source in sources],
        )


def move_source(db: Connection, old: SourceRow, new: SourceRow) -> None:
    """Put a source at another place, with all that is known of its documents."""
    put_sources(db, [new])
    db.execute(
        "UPDATE quire.documents SET root = %s WHERE root = %s AND url IS NULL AND seq IN"
        " (SELECT document FROM quire.members WHERE source = %s)",
        (new.root, old.root, old.seq),
    )
    db.execute("UPDATE quire.members SET source = %s WHERE source = %s", (new.seq, old.seq))
    if new.seq != old.seq:
        db.execute("DELETE FROM quire.sources WHERE seq = %s", (old.seq,))


def changed(db: Connection, seen: Sequence[Sighting]) -> set[int]:
    """The documents that are gone, or stored in another version than was seen."""
    known = [one for one in seen if one.checksum]
    same = db.execute(
        "SELECT d.seq FROM unnest(%s::bigint[], %s::text[]) AS n (document, checksum)"
        " JOIN quire.documents AS d ON d.seq = n.document AND d.checksum = n.checksum FOR UPDATE OF d",
        ([one.document for one in known], [one.checksum for one in known]),
    )
    return {one.document for one in known} - {row[0] for row in same.fetchall()}


def rename(db: Connection, paths: Mapping[int, str]) -> set[int]:
    """Give documents other paths; those that are gone, or whose new path is taken, are left as they are."""
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


def next_generation(db: Connection, chunks: int = 0) -> None:
    """Note that something was written, so many chunks among it. Another writer may wait for the slot."""
    db.execute(
        "UPDATE quire.writes SET generation = generation + 1, chunks = chunks + %s"
        " WHERE slot = pg_backend_pid() %% 32",
        (chunks,),
    )


def identity_of(new: Prepared) -> Identity:
    """What makes it the same document as another."""
    return new.collection, new.kind, new.path


def _id(identity: Identity) -> str:
    collection, kind, path = identity
    return id_of(kind, of_document(collection, path))


def _number(id: str) -> int:
    """The number that a document gets, unless another has it."""
    return max(1, UUID(id).int >> 128 - _NUMBER_BITS)


def _lock(db: Connection, ids: Iterable[str]) -> None:
    """Wait for other writers of documents, in an order that all keep to."""
    keys = sorted({_number(id) for id in ids})
    db.execute("SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key", (keys,))


def _stored(db: Connection, wanted: Iterable[Identity]) -> dict[Identity, Version]:
    """Row and version of the documents that are there, which no one else can change until the end."""
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
    """The row of each document; a new one has that of its id, or the next that is free."""
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
        " updated_at = %s, source = %b, promotion = coalesce(nullif(%s, ''), promotion) WHERE seq = %s",
        (
            *(*_facts(new), new.size, new.mtime_ns, new.made_by, *_sizes(new), now),
            *(new.source, new.promotion, row),
        ),
    )


def _values(row: int, new: Prepared, now: int) -> tuple[Any, ...]:
    """A new document as a row of its table."""
    identity = identity_of(new)
    about = (row, _id(identity), *identity, *_facts(new), new.size, new.mtime_ns, new.made_by)
    times = new.created_at or now, new.updated_at or now
    return (*about, new.promotion or "standard", *_sizes(new), *times, new.source)


def _facts(new: Prepared) -> tuple[str | None, ...]:
    return new.url, new.root, new.format, new.title, new.checksum


def _sizes(new: Prepared) -> tuple[int, int, int]:
    return len(new.chunks), len(new.sections), postgres_words.size_of(new.words)


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
    return postgres_words.rows_of(row, new.collection, new.kind, new.words)
