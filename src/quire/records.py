"""What a library stores of sections and chunks, as records with ids and times, for programs.

Always: the texts of a document's sections, in order, join to its text; a chunk's text is the span that it
names. Times are those of the document: its parts are written with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice

from quire.address import id_of, is_in_collection, of_part, of_section
from quire.cite import whereabouts
from quire.document import text_of
from quire.location import Places
from quire.stores import (
    MAX_CHUNKS,
    ChunkRow,
    DocumentRow,
    Filters,
    SectionRow,
    Slice,
    Store,
    active_model,
)


@dataclass(frozen=True, slots=True)
class StoredSection:
    """A section of a stored document. Its text ends where its first subsection begins."""

    id: str
    document_id: str
    parent_id: str | None  # None for the root, which holds what is before the first heading
    address: str
    heading: str | None  # None for the root
    level: int  # 0 for the root, 1 to 6 for headings
    position: int  # in the document, from 0
    text: str
    tokens: int  # with its subsections
    start: int
    end: int
    byte_start: int
    byte_end: int
    start_line: int
    end_line: int
    created_at: int  # milliseconds: when its document was first stored
    updated_at: int  # and when this version of it was
    location: str | None = None  # where it is in the original, such as `page 12`; None if lines say it


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk of a stored document."""

    id: str
    document_id: str
    address: str
    kind: str  # document, external, memory or knowledge
    index: int  # in the document, from 0
    text: str
    tokens: int
    start: int
    end: int
    byte_start: int
    byte_end: int
    start_line: int
    end_line: int
    header_path: str
    promotion: str  # of its document
    embedded: bool  # whether it has a vector of the model that searches use
    created_at: int  # milliseconds: when its document was first stored
    updated_at: int  # and when this version of it was
    location: str | None = None  # where it is in the original, such as `page 12`; None if lines say it


def stored_sections(store: Store, row: DocumentRow) -> list[StoredSection]:
    """The sections of a document, in order."""
    text, rows = text_of(store.source(row.seq)), store.sections(row.seq)
    ids = [id_of(row.kind, of_section(row.address, section.slug)) for section in rows]
    places = store.places([row.seq]).get(row.seq)
    return [_section(row, section, ids, text, places) for section in rows]


def _section(
    row: DocumentRow, section: SectionRow, ids: Sequence[str], text: str, places: Places | None
) -> StoredSection:
    return StoredSection(
        ids[section.position],
        row.id,
        ids[section.parent] if section.position else None,
        of_section(row.address, section.slug),
        section.title if section.position else None,
        section.level,
        section.position,
        text[section.start : section.own_end],
        section.tokens,
        section.start,
        section.own_end,
        section.byte_start,
        section.byte_own_end,
        section.start_line,
        section.own_end_line,
        row.created_at,
        row.updated_at,
        whereabouts(row, places, section.start, section.own_end)[0],
    )


def stored_chunks(store: Store, row: DocumentRow, start: int, end: int) -> list[StoredChunk]:
    """The chunks of a document that begin between two places of its text, in order."""
    rows = [chunk for chunk in _rows(store, row) if start <= chunk.start < end or chunk.start == start]
    return _chunks(store, row, rows)


def stored_chunk(store: Store, row: DocumentRow, id: str) -> StoredChunk | None:
    """The chunk of a document that has an id; None for the id of a section of several chunks."""
    slugs = [section.slug for section in store.sections(row.seq)]
    found = [one for one in _rows(store, row) if id_of(row.kind, _address(row, slugs, one)) == id]
    return next(iter(_chunks(store, row, found)), None)


def row_of(row: DocumentRow, record: StoredChunk) -> int:
    """The number by which a store knows a chunk."""
    return row.seq * MAX_CHUNKS + record.index


def _rows(store: Store, row: DocumentRow) -> list[ChunkRow]:
    first = row.seq * MAX_CHUNKS
    return list(store.chunks(range(first, first + row.chunk_count)).values())


def _chunks(store: Store, row: DocumentRow, rows: Collection[ChunkRow]) -> list[StoredChunk]:
    if not rows:
        return []
    text, sections = text_of(store.source(row.seq)), store.sections(row.seq)
    embedded = _embedded(store, [chunk.id for chunk in rows])
    slugs = [section.slug for section in sections]
    places = store.places([row.seq]).get(row.seq)
    found = []
    for one in sorted(rows, key=lambda chunk: chunk.id):
        address = _address(row, slugs, one)
        header_path, is_embedded = sections[one.section].header_path, one.id in embedded
        stored = _chunk(row, one, address, text[one.start : one.end], header_path, is_embedded)
        found.append(replace(stored, location=whereabouts(row, places, one.start, one.end)[0]))
    return found


def _chunk(
    row: DocumentRow, chunk: ChunkRow, address: str, text: str, header_path: str, embedded: bool
) -> StoredChunk:
    return StoredChunk(
        id_of(row.kind, address),
        row.id,
        address,
        row.kind,
        chunk.id % MAX_CHUNKS,
        text,
        chunk.tokens,
        chunk.start,
        chunk.end,
        chunk.byte_start,
        chunk.byte_end,
        chunk.start_line,
        chunk.end_line,
        header_path,
        row.promotion,
        embedded,
        row.created_at,
        row.updated_at,
    )


def _embedded(store: Store, chunks: Iterable[int]) -> Collection[int]:
    """Those of the chunks that have a vector of the model that searches use."""
    models = store.models()
    active = active_model(models) or active_model(models, instant=True)
    return store.vectors_of(active, chunks).keys() if active else ()


def _address(row: DocumentRow, slugs: Sequence[str], chunk: ChunkRow) -> str:
    slug = slugs[chunk.section]
    return of_part(of_section(row.address, slug), chunk.part, is_root=not slug)


def documents_after(
    store: Store, filters: Filters, after: DocumentRow | None, limit: int
) -> list[DocumentRow]:
    """So many documents by collection, path and kind, from the first or after one, found along an index."""
    start = (after.collection, after.path, after.kind) if after else ("", "", "")
    wanted = filters.collection
    names = [name for name in store.collections() if wanted is None or is_in_collection(name, wanted)]
    found = list[DocumentRow]()
    for name in sorted(name for name in names if name >= start[0]):
        path, kind = start[1:] if name == start[0] else ("", "")
        found += islice(_of_collection(store, filters, name, path, kind, limit - len(found)), limit)
        if len(found) >= limit:
            break
    return found[:limit]


def _of_collection(
    store: Store, filters: Filters, name: str, path: str, kind: str, limit: int
) -> Iterator[DocumentRow]:
    """The documents of a collection after a path and kind, so many of each kind at most."""
    kinds = sorted(filters.kinds or store.kinds())
    pages = (store.documents(filters, Slice(name, one, path, one > kind, limit)) for one in kinds)
    return merge(*pages, key=lambda row: (row.path, row.kind))
