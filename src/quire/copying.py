"""One store to another, of the same database or the other.

Always: a document is copied whole or not at all, with its id, times, tags, links and vectors; existing
documents are skipped, so an interrupted copy can resume; the copy is compared with the original. Instant
vectors come with their documents, others after them.
"""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass

from quire.embed.base import STATIC, packed
from quire.errors import Damaged, LibraryError
from quire.plural import counted
from quire.progress import Progress, Silent
from quire.sources.entries import KINDS
from quire.stores import (
    BATCH_BYTES,
    MAX_CHUNKS,
    ChunkTexts,
    DocumentRow,
    Filters,
    Model,
    Prepared,
    Sighting,
    Store,
    Unembedded,
    Version,
    active_model,
    digest_of,
    link_of,
)

_BATCH_VECTORS = 1000


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did."""

    documents: int
    unchanged: int
    vectors: int
    seconds: float
    damaged: tuple[str, ...] = ()  # addresses of documents that are not what was written: they stay behind


def copy(source: Store, target: Store, name: str, progress: Progress | None = None) -> Copied:
    """Copy what a target does not have. Raises LibraryError if something is then still missing.

    Documents that are damaged stay behind, and are named.
    """
    started, progress = time.monotonic(), progress or Silent()
    there, rows = _facts(target), source.documents(Filters())
    facts = _facts(source)
    missing = [row for row in rows if there.get(row.id) != facts[row.id]]
    progress.begin(
        f"copying {counted(len(missing), 'document')}", sum(row.length for row in missing), "bytes"
    )
    damaged = dict[str, str]()
    for batch in _batches(missing):
        target.write(list(_readable(source, batch, damaged)))
        progress.advance(sum(row.length for row in batch))
    rows = [row for row in rows if row.id not in damaged]
    copy_sources(source, target, rows)
    vectors = copy_vectors(source, target, rows, progress)
    _compare(source, target, rows, name)
    copied, seconds = len(missing) - len(damaged), time.monotonic() - started
    return Copied(copied, len(rows) - copied, vectors, seconds, tuple(damaged.values()))


def _readable(source: Store, rows: Iterable[DocumentRow], damaged: dict[str, str]) -> Iterator[Prepared]:
    """Those documents that are what was written; the addresses of others are added to `damaged`, by id."""
    for row in rows:
        try:
            yield prepared_again(source, row)
        except Damaged:
            damaged[row.id] = row.address


def _facts(store: Store) -> dict[str, tuple[object, ...]]:
    """The facts that must be equal in both libraries after a copy, by document id."""
    rows = store.documents(Filters())
    tags, said = store.tags(row.seq for row in rows), store.fetched(row.seq for row in rows)
    originals, places = (find(row.seq for row in rows) for find in (store.original_checksums, store.places))
    return {
        row.id: (
            *(row.checksum, row.made_by, row.title, row.promotion, row.chunk_count),
            *(tags.get(row.seq), said.get(row.seq), _versions(store, row)),
            *(originals.get(row.seq), places.get(row.seq)),
        )
        for row in rows
    }


def _versions(store: Store, row: DocumentRow) -> tuple[Version, ...]:
    """The earlier texts of a document, as far as they are sound; only entries have any."""
    try:
        return tuple(store.earlier_versions(row.seq)) if row.kind in KINDS else ()
    except Damaged:
        return ()


def _batches(rows: Iterable[DocumentRow]) -> Iterator[list[DocumentRow]]:
    batch, size = list[DocumentRow](), 0
    for row in rows:
        batch.append(row)
        size += row.length
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def prepared_again(source: Store, row: DocumentRow) -> Prepared:
    """A stored document as it was when it was written."""
    content, sections = source.source(row.seq), source.sections(row.seq)
    first = row.seq * MAX_CHUNKS
    chunks = sorted(source.chunks(range(first, first + row.chunk_count)).values(), key=lambda c: c.id)
    texts = ChunkTexts(content, {section.position: section.trail for section in sections})
    etag, last_modified = source.fetched([row.seq]).get(row.seq, (None, None))
    return Prepared(
        collection=row.collection,
        kind=row.kind,
        path=row.path,
        url=row.url,
        root=row.root,
        format=row.format,
        title=row.title,
        source=content,
        checksum=row.checksum,
        size=row.size,
        mtime_ns=row.mtime_ns,
        made_by=row.made_by,
        sections=tuple(astuple(section)[1:] for section in sections),
        chunks=tuple(astuple(chunk)[2:] for chunk in chunks),
        words=tuple(map(texts.words, chunks)),
        digests=tuple(digest_of(texts.embedded(chunk)) for chunk in chunks),
        instant=_instant(source, [chunk.id for chunk in chunks]),
        tags=source.tags([row.seq]).get(row.seq, ()),
        links=tuple(map(link_of, source.links(row.seq))),
        fields=tuple(source.fields(row.seq)),
        etag=etag,
        last_modified=last_modified,
        original=source.original_checksums([row.seq]).get(row.seq, ""),
        places=source.places([row.seq]).get(row.seq),
        promotion=row.promotion,
        created_at=row.created_at,
        updated_at=row.updated_at,
        versions=tuple(source.earlier_versions(row.seq)) if row.kind in KINDS else None,
    )


def _instant(source: Store, chunks: list[int]) -> bytes:
    """The instant vectors of chunks, packed; empty if any is missing."""
    import numpy as np

    model = active_model(source.models(), instant=True)
    found = source.vectors_of(model, chunks) if model and model.name == STATIC else {}
    is_whole = chunks and len(found) == len(chunks)
    return packed(np.stack([found[chunk] for chunk in chunks])) if is_whole else b""


def copy_sources(source: Store, target: Store, rows: list[DocumentRow]) -> None:
    """Copy the sources, and which documents each of them holds."""
    ids = {row.seq: row.id for row in rows}
    there = {row.id: row for row in target.documents(Filters())}
    target.put_sources(source.sources())
    held: dict[int, list[Sighting]] = {}
    for collection, kind in sorted({(row.collection, row.kind) for row in rows}):
        for member in source.members(collection, kind):
            if member.document not in ids:
                continue
            row = there[ids[member.document]]
            seen = Sighting(row.seq, row.size, row.mtime_ns, member.seen)
            held.setdefault(member.source, []).append(seen)
    for one in source.sources():
        if one.seq in held:
            target.sight(one, held[one.seq])


def copy_vectors(source: Store, target: Store, rows: list[DocumentRow], progress: Progress) -> int:
    """Copy the vectors of the active models that the target does not have; returns how many."""
    active = [model for model in source.models() if model.active]
    return sum(_copy_vectors(source, target, model, rows, progress) for model in active)


def _copy_vectors(
    source: Store, target: Store, ours: Model, rows: list[DocumentRow], progress: Progress
) -> int:
    model = target.model(ours.name, ours.dimension)
    there = {row.id: row.seq for row in target.documents(Filters())}
    here = {there[row.id]: row.seq for row in rows}
    progress.begin("copying vectors", target.count_unembedded(model), "chunks")
    copied, after = 0, -1
    while some := target.unembedded(model, _BATCH_VECTORS, after):
        copied += _copy_some(source, target, ours, model, {c.chunk: c for c in some}, here)
        after = some[-1].chunk
        progress.advance(len(some))
    if not model.active and not target.count_unembedded(model):
        target.activate(model)
    return copied


def _copy_some(
    source: Store, target: Store, ours: Model, model: Model, some: dict[int, Unembedded], here: dict[int, int]
) -> int:
    import numpy as np

    place = {
        here[chunk // MAX_CHUNKS] * MAX_CHUNKS + chunk % MAX_CHUNKS: chunk
        for chunk in some
        if chunk // MAX_CHUNKS in here
    }
    found = source.vectors_of(ours, place)
    if found:
        chunks = [some[place[chunk]] for chunk in found]
        target.write_vectors(model, chunks, np.stack(list(found.values())))
    return len(found)


def _compare(source: Store, target: Store, rows: Iterable[DocumentRow], name: str) -> None:
    """Compare the facts of documents, and the checksums of the bytes."""
    facts, there = _facts(source), _facts(target)
    arrived = {row.id: row for row in target.documents(Filters())}
    for row in rows:
        found = arrived.get(row.id)
        same = found and hashlib.sha256(target.source(found.seq)).hexdigest() == row.checksum
        if not same or there[row.id] != facts[row.id]:
            again = f"To copy it again: quire copy --to {shlex.quote(name)}"
            raise LibraryError(name, f"{row.address} did not arrive as it was sent. {again}")
