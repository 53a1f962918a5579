"""Memories and knowledge to a store, and back: entries of their own kinds, cut as memories are.

Always: an entry is kept even if it cannot be cut; the same text is kept once; kinds do not share a
collection, because one address would then name two documents.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from typing import TextIO

from quire import address
from quire.config import DEFAULT, Config, WindowsSettings
from quire.document import Document
from quire.errors import SettingError
from quire.ingest.prepare import prepare_alone
from quire.ingest.report import Report
from quire.result import Result
from quire.snippet import snippet
from quire.sources import entries
from quire.sources.entries import Entry
from quire.stores import DocumentRow, Filters, Prepared, Store

log = logging.getLogger("quire")
_SHORT = 200  # characters: an entry that is not longer is one chunk
_ONE_CHUNK = WindowsSettings(max_tokens=100_000_000, overlap=0, min_chars=0)


def check_collection(store: Store, collection: str, kind: str) -> None:
    """Refuse an invalid name, and a collection of another kind: one address would name two documents."""
    address.check_collection_name(collection)
    others = tuple(store.kinds() - {kind})
    if others and (rows := store.documents(Filters(collection, others))):
        is_of = f"{collection!r} is a collection of kind {rows[0].kind}, and this is {kind}"
        raise SettingError("collection", f"{is_of}: each kind has collections of its own. Name another")


def keep(store: Store, entry: Entry, config: Config, report: Report) -> DocumentRow:
    """Write an entry, unless it exists already."""
    started = time.monotonic()
    check_collection(store, entry.collection, entry.kind)
    old, source = _known(store, entry), entry.text.encode()
    had = store.tags([old.seq]).get(old.seq, ()) if old else ()
    is_new = old is None or old.checksum != hashlib.sha256(source).hexdigest()
    document = Document.from_bytes(
        source,
        old.path if old else entry.path or entries.named(entry.text, datetime.now(UTC).date()),
        collection=entry.collection,
        title=entry.title or (old.title if old and not is_new else entries.entry_title(entry.text)),
        settings=config.document,
    )
    new = _prepared(document, entry, entry.tags or had, config)
    if old and not is_new and (old.title, old.made_by, had) == (new.title, new.made_by, new.tags):
        report.unchanged += 1
        log.debug("skipped %s: unchanged", old.address)
        return old
    report.count(new, store.write([new])[0])
    log.info("saved %s in %.0f ms", document.address, (time.monotonic() - started) * 1000)
    return next(row for row in _alike(store, entry, new.path) if row.path == new.path)


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


def _known(store: Store, entry: Entry) -> DocumentRow | None:
    """The entry of the same name, or of the same text if no name is given."""
    rows = _alike(store, entry, entry.path or f"*{entries.ending(entry.text)}")
    return next((row for row in rows if entry.path in (None, row.path)), None)


def _alike(store: Store, entry: Entry, path: str) -> list[DocumentRow]:
    return store.documents(Filters(entry.collection, (entry.kind,), (path,)))


def export(store: Store, stream: TextIO) -> int:
    """Write all memories and knowledge as JSON lines; returns how many."""
    with store.reading():
        rows = store.documents(Filters(kinds=entries.KINDS))
        tags = store.tags(row.seq for row in rows)
        for row in rows:
            text, own = store.source(row.seq).decode(), tags.get(row.seq, ())
            times = row.created_at, row.updated_at
            entry = Entry(row.kind, row.collection, row.path, row.title, own, *times, text)
            stream.write(entries.to_line(entry, row.id))
    return len(rows)


def by_chunk(store: Store, result: Result) -> list[Result]:
    """A result for each chunk that a merged result contains."""
    hits = result.explain["hits"]
    if len(hits) == 1:
        return [replace(result, explain={})]
    chunks, found = store.chunks(hit["chunk"] for hit in hits), list[Result]()
    for chunk_id, hit in zip(result.chunk_ids, hits, strict=True):
        chunk = chunks[hit["chunk"]]
        text = store.passage(chunk.document, chunk.byte_start, chunk.byte_end)
        brief, highlights = snippet(text, result.explain["terms"])
        found.append(
            replace(
                result,
                address=address.of_part(result.address, chunk.part, is_root=result.heading is None),
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
        )
    return found
