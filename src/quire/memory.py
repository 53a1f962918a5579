"""Memories and knowledge to a store, and back: entries of their own kinds, cut as memories are.

Always: an entry is kept even if it cannot be cut; a text is kept once, however it is spelled; a text that
another replaces becomes an earlier version; kinds do not share a collection, because one address would then
name two documents.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import accumulate, chain, count, permutations
from math import ceil
from typing import TextIO

from quire import address
from quire.config import DEFAULT, Config, WindowsSettings
from quire.document import Document
from quire.errors import Damaged, SettingError
from quire.ingest.prepare import prepare_alone
from quire.ingest.report import Report
from quire.query import Query, Term
from quire.result import Result
from quire.snippet import snippet
from quire.sources import entries
from quire.sources.entries import Entry
from quire.stores import MAX_CHUNKS, DocumentRow, Filters, Model, Prepared, Store, Version

log = logging.getLogger("quire")
_SHORT = 200  # characters: an entry that is not longer is one chunk
_MOST_WORDS, _CANDIDATES = 64, 20  # of a text, and entries that may say the same
_CLOSE = 0.05  # scores of results that answer alike: then the later one is first
_MOST_SIMILAR = 3  # entries to show
_ONE_CHUNK = WindowsSettings(max_tokens=100_000_000, overlap=0, min_chars=0)


def check_collection(store: Store, collection: str, kind: str) -> None:
    """Refuse an invalid name, and a collection of another kind: one address would name two documents.

    The collections that entries go to by default are theirs, even before there are any.
    """
    address.check_collection_name(collection)
    is_taken = kind not in entries.KINDS and collection in entries.KINDS
    if is_taken and not store.documents(Filters(collection, (kind,))):
        for_entries = f"{collection!r} is where Quire keeps what it is told to remember"
        raise SettingError("collection", f"{for_entries}. Name another for documents: -c NAME")
    others = tuple(store.kinds() - {kind})
    if others and (rows := store.documents(Filters(collection, others))):
        is_of = f"{collection!r} is a collection of kind {rows[0].kind}, and this is {kind}"
        raise SettingError("collection", f"{is_of}: each kind has collections of its own. Name another")


@dataclass(frozen=True, slots=True)
class Similar:
    """Another entry that says the same as one, or nearly."""

    address: str
    text: str
    updated_at: int  # milliseconds
    cosine: float  # of their vectors; 1 if they say the same in the same words


@dataclass(frozen=True, slots=True, eq=False)
class Kept(DocumentRow):
    """An entry that was remembered, and what was known before. It equals the row of its document."""

    outcome: str = "added"  # "replaced" if the name had another text, "known" if it said the same already
    similar: tuple[Similar, ...] = ()  # other entries that say the same, or nearly

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DocumentRow) and all(
            getattr(self, one.name) == getattr(other, one.name) for one in fields(DocumentRow)
        )

    __hash__ = DocumentRow.__hash__


def keep(
    store: Store, entry: Entry, config: Config, report: Report, *, confirm: bool = False
) -> tuple[DocumentRow, str]:
    """Write an entry; its row, and whether it was added, replaced or known.

    One that is known stays as it is spelled. If `confirm` is set, its time becomes now.
    """
    started = time.monotonic()
    check_collection(store, entry.collection, entry.kind)
    old = _named(store, entry) if entry.path else _known(store, entry)
    source = store.source(old.seq) if old and not entry.path else entry.text.encode()
    had = store.tags([old.seq]).get(old.seq, ()) if old else ()
    is_known = old is not None and old.checksum == hashlib.sha256(source).hexdigest()
    document = Document.from_bytes(
        source,
        old.path if old else entry.path or _new_name(store, entry),
        collection=entry.collection,
        title=entry.title or (old and _title_given(store, old, is_known)) or entries.entry_title(entry.text),
        settings=config.document,
    )
    new = _prepared(document, entry, entry.tags or had, config)
    new = replace(new, versions=_versions(store, entry, old, is_known), keeps_replaced=True)
    same = old and is_known and (old.title, old.made_by, had) == (new.title, new.made_by, new.tags)
    if old and same and new.versions is None and not confirm:
        report.unchanged += 1
        log.debug("skipped %s: unchanged", old.address)
        return old, "known"
    report.count(new, store.write([new])[0])
    log.info("saved %s in %.0f ms", document.address, (time.monotonic() - started) * 1000)
    row = next(row for row in _alike(store, entry, new.path) if row.path == new.path)
    return row, "known" if is_known else "replaced" if old else "added"


def _title_given(store: Store, old: DocumentRow, is_known: bool) -> str | None:
    """The title of an entry that goes on having it: one that was not made from a text that is replaced."""
    try:
        is_made = not is_known and old.title == entries.entry_title(store.source(old.seq).decode())
    except Damaged:
        is_made = False
    return None if is_made else old.title


def _versions(
    store: Store, entry: Entry, old: DocumentRow | None, is_known: bool
) -> tuple[Version, ...] | None:
    """The earlier texts of an entry that brings some; None if that adds nothing to those that are stored."""
    stored = store.earlier_versions(old.seq) if old else []
    if set(entry.history) <= set(stored):
        return None
    replaced = [Version(old.updated_at, store.source(old.seq).decode())] if old and not is_known else []
    every = {one.written_at: one for one in (*entry.history, *stored, *replaced)}
    return tuple(every[at] for at in sorted(every, reverse=True))


def _prepared(document: Document, entry: Entry, tags: tuple[str, ...], config: Config) -> Prepared:
    """An entry cut as memories are. A short entry, or one that cannot be cut, is one chunk."""
    chunk = replace(config.chunk, strategy="memory")
    facts = {"tags": tags, "created_at": entry.created_at, "updated_at": entry.updated_at}
    if len(document.text) > _SHORT:
        try:
            return prepare_alone(document, replace(config, chunk=chunk), entry.kind, **facts)
        except Exception as problem:  # a memory is kept even if it cannot be cut
            log.warning("%s is kept as one chunk, because it cannot be cut: %s", document.address, problem)
    one = replace(chunk, memory=_ONE_CHUNK)
    whole = replace(DEFAULT, chunk=one, tree=config.tree, embed=config.embed)
    return prepare_alone(document, whole, entry.kind, **facts)


def _named(store: Store, entry: Entry) -> DocumentRow | None:
    rows = _alike(store, entry, entry.path or "")
    return next((row for row in rows if row.path == entry.path), None)


def _known(store: Store, entry: Entry) -> DocumentRow | None:
    """The entry of the same kind and collection that says the same."""
    return next(iter(same(store, entry.text, Filters(entry.collection, (entry.kind,)))), None)


def same(store: Store, text: str, within: Filters) -> list[DocumentRow]:
    """The entries that say the same as a text, however that is spelled."""
    wanted = entries.normal(text)
    rows = store.documents(replace(within, paths=tuple(f"*{end}" for end in entries.endings(text))))
    words = tuple((Term(word),) for word in wanted.split()[:_MOST_WORDS])
    hits = store.search_words(Query(wanted, words, (), (), ()), within, _CANDIDATES) if words else []
    found = {row.seq: row for row in rows} | store.documents_by_row({hit.document for hit in hits})
    return [row for row in found.values() if _says(store, row, wanted)]


def _says(store: Store, row: DocumentRow, wanted: str) -> bool:
    try:
        return entries.normal(store.source(row.seq).decode()) == wanted
    except Damaged:
        return False


def _new_name(store: Store, entry: Entry) -> str:
    """A name from the text. The usual one is taken if its entry says something else now."""
    name = entries.named(entry.text, datetime.now(UTC).date())
    taken = {row.path for row in _alike(store, entry, f"*{name}")}
    return next(one for one in chain([name], (f"{n}-{name}" for n in count(2))) if one not in taken)


def _alike(store: Store, entry: Entry, path: str) -> list[DocumentRow]:
    return store.documents(Filters(entry.collection, (entry.kind,), (path,)))


def near(store: Store, row: DocumentRow, model: Model, least: float) -> list[Similar]:
    """The other entries of one chunk whose vectors are near that of an entry of one chunk, nearest first."""
    chunk = row.seq * MAX_CHUNKS
    vector = store.vectors_of(model, [chunk]).get(chunk) if row.chunk_count == 1 else None
    if vector is None:
        return []
    hits = store.search_vectors(model, vector, Filters(kinds=entries.KINDS), _MOST_SIMILAR + 1)
    cosines = {hit.document: hit.score for hit in hits if hit.score >= least and hit.document != row.seq}
    rows = store.documents_by_row(cosines)
    return [
        similar(store, rows[seq], cosine) for seq, cosine in cosines.items() if rows[seq].chunk_count == 1
    ]


def similar(store: Store, row: DocumentRow, cosine: float = 1.0) -> Similar:
    """An entry as one that is similar."""
    return Similar(row.address, store.source(row.seq).decode(), row.updated_at, cosine)


def export(store: Store, stream: TextIO) -> int:
    """Write all memories and knowledge as JSON lines; returns how many."""
    with store.reading():
        rows = store.documents(Filters(kinds=entries.KINDS))
        tags = store.tags(row.seq for row in rows)
        for row in rows:
            text, own = store.source(row.seq).decode(), tags.get(row.seq, ())
            times = row.created_at, row.updated_at
            history = tuple(store.earlier_versions(row.seq))
            entry = Entry(row.kind, row.collection, row.path, row.title, own, *times, text, history)
            stream.write(entries.to_line(entry, row.id))
    return len(rows)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A result that is one chunk, and the row of that chunk."""

    chunk: int
    result: Result


def each_once(
    store: Store, found: Iterable[Recalled], similar_by: tuple[Model, float] | None, limit: int
) -> list[Result]:
    """The best results, each fact once. The later of two that say nearly the same comes first."""
    placed, known = list[Recalled](), set[str]()
    for one in found:
        if len(placed) == limit:
            break
        said = entries.normal(
            store.passage(one.chunk // MAX_CHUNKS, one.result.byte_start, one.result.byte_end)
        )
        if said not in known:
            known.add(said)
            placed.append(one)
    if similar_by:
        placed = no_less_sure(_later_first(placed, _near_pairs(store, placed, *similar_by)))
    return [one.result for one in placed]


def no_less_sure(found: Sequence[Recalled]) -> list[Recalled]:
    """The same results, none of them with a lower confidence than one after it."""
    surest = [*accumulate((one.result for one in reversed(found)), _surer)]
    return [
        replace(one, result=replace(one.result, confidence=best.confidence, strength=best.strength))
        for one, best in zip(found, reversed(surest), strict=True)
    ]


def _surer(one: Result, other: Result) -> Result:
    return other if other.confidence >= one.confidence else one


def _later_first(found: Sequence[Recalled], near: set[tuple[int, int]]) -> list[Recalled]:
    """Results in which a later one is before earlier ones that are near and score hardly better."""
    placed = list[Recalled]()
    for one in found:
        now = one.result
        earlier = (
            at
            for at, other in enumerate(placed)
            if (other.chunk, one.chunk) in near
            and other.result.score - now.score <= _CLOSE
            and other.result.updated_at < now.updated_at
        )
        placed.insert(next(earlier, len(placed)), one)
    return placed


def _near_pairs(store: Store, found: Sequence[Recalled], model: Model, least: float) -> set[tuple[int, int]]:
    """The pairs of chunks whose vectors are near."""
    vectors = store.vectors_of(model, [one.chunk for one in found])
    return {(a, b) for a, b in permutations(vectors, 2) if float(vectors[a] @ vectors[b]) >= least}


def by_chunk(store: Store, result: Result) -> list[Recalled]:
    """A result for each chunk that a merged result contains."""
    hits = result.explain["hits"]
    if len(hits) == 1:
        return [Recalled(hits[0]["chunk"], replace(result, explain={}))]
    chunks, found = store.chunks(hit["chunk"] for hit in hits), list[Recalled]()
    for chunk_id, hit in zip(result.chunk_ids, hits, strict=True):
        chunk = chunks[hit["chunk"]]
        text = store.passage(chunk.document, chunk.byte_start, chunk.byte_end)
        brief, highlights = snippet(text, result.explain["terms"])
        one = replace(
            result,
            address=address.of_part(
                address.without_part(result.address), chunk.part, is_root=result.heading is None
            ),
            snippet=brief,
            highlights=highlights,
            score=hit["score"],
            match=hit["match"],
            start=chunk.start,
            end=chunk.end,
            byte_start=chunk.byte_start,
            byte_end=chunk.byte_end,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            tokens=ceil(result.tokens * (chunk.end - chunk.start) / max(1, result.end - result.start)),
            chunk_ids=(chunk_id,),
            explain={},
        )
        found.append(Recalled(hit["chunk"], one))
    return found
