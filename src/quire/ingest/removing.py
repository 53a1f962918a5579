"""Remove documents, collections and sources, and follow sources that moved.

Always: a document that a person removed stays removed; one that another source holds stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from quire.address import is_in_collection
from quire.ingest import named, repositories
from quire.stores import DocumentRow, SourceRow, Store

_SINGLE = ("file", "page", "text")  # sources of one document


def remove_documents(store: Store, rows: list[DocumentRow]) -> None:
    """Remove documents for good: no refresh brings back what a person removed."""
    known = {source.seq: source for source in store.sources()}
    single, without = list[SourceRow](), dict[int, list[str]]()
    for row, source in holders(store, rows, known):
        if source.type in _SINGLE:
            single.append(source)
        else:
            without.setdefault(source.seq, []).append(row.path)
    changed = [_without(store.source_now(known[seq]) or known[seq], paths) for seq, paths in without.items()]
    if changed:
        store.put_sources(changed)
    drop_sources(store, single)
    store.remove([row.seq for row in rows])


def holders(
    store: Store, rows: list[DocumentRow], known: dict[int, SourceRow]
) -> Iterator[tuple[DocumentRow, SourceRow]]:
    """Each document with each source that holds it."""
    by_number = {row.seq: row for row in rows}
    for member in store.holders(by_number):
        if member.source in known:
            yield by_number[member.document], known[member.source]


def _without(source: SourceRow, paths: list[str]) -> SourceRow:
    """A source without some documents."""
    left_out = tuple(sorted({*source.options.without, *paths}))
    return replace(source, options=replace(source.options, without=left_out))


def remove_collection(store: Store, collection: str, rows: list[DocumentRow]) -> None:
    """Remove a whole collection, or all branches of one, with its sources."""
    drop_sources(store, [it for it in store.sources() if is_in_collection(it.collection, collection)])
    store.remove([row.seq for row in rows])


def drop_sources(store: Store, sources: list[SourceRow]) -> None:
    """Remove sources, the documents that no other source holds, and clones that none needs."""
    store.drop_sources(sources)
    repositories.remove_unused(sources, store.sources())


def goes_with(store: Store, source: SourceRow) -> list[DocumentRow]:
    """The documents that no other source holds."""
    with store.reading():
        number, members = source.seq, store.members(source.collection, source.kind, source)
        shared = {member.document for member in members if member.source != number}
        return [row for row in named.members_of(store, source) if row.seq not in shared]


def follow(store: Store, moved: Sequence[tuple[SourceRow, SourceRow]]) -> None:
    """Move sources to their new places.

    If a larger source around one stays behind, it drops the documents that moved.
    """
    moving = {before.seq for before, _ in moved}
    for before, after in moved:
        _follow(store, before, after, moving)


def _follow(store: Store, before: SourceRow, after: SourceRow, moving: set[int]) -> None:
    if before.root != before.place and after.root in (after.place, after.place.rpartition("/")[0]):
        members = store.members(before.collection, before.kind, before)
        known = {source.seq: source for source in store.sources()}
        for other in {member.source for member in members} - moving:
            if other in known and known[other].root == before.root:
                held = [member.document for member in members if member.source == other]
                store.leave(known[other], held)
    store.move_source(before, after)
