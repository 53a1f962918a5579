"""The map of a library: its documents, placed by meaning.

Input: documents and their vectors. Output: a Map. Always: the same documents give the same map; a document
without a vector is counted in a note and not shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from quire import projection, regions
from quire.plural import counted
from quire.projection import Floats, Neighbours
from quire.regions import Label
from quire.stores import DocumentRow

MOST_POINTS = 10_000  # documents of a map
TWINS = 0.95  # the cosine from which on two documents say nearly the same: see bench/README.md
_MOST_TWINS = 8  # of a document
_TOKENS = 0.35  # of a byte of text: about right for English, and for scripts of three bytes a character


@dataclass(frozen=True, slots=True)
class Point:
    """A document on a map. Places are in the square from -1 to 1; those of alike documents are near."""

    address: str
    title: str
    collection: str
    x: float
    y: float
    chunks: int
    tokens: int  # estimated by its length
    twins: tuple[str, ...]  # addresses of documents that say nearly the same, at most 8


@dataclass(frozen=True, slots=True)
class Map:
    """The documents of a library by meaning, labels for its regions, and what to know about it."""

    points: tuple[Point, ...] = ()
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()


def sampled(rows: Sequence[DocumentRow]) -> list[DocumentRow]:
    """As many documents as a map shows, in the same order. Their ids choose them, so most stay the same."""
    if len(rows) <= MOST_POINTS:
        return list(rows)
    kept = {row.seq for row in sorted(rows, key=lambda row: row.id)[:MOST_POINTS]}
    return [row for row in rows if row.seq in kept]


def draw_map(rows: Sequence[DocumentRow], vectors: Mapping[int, Floats], among: int) -> Map:
    """The map of documents that were sampled among so many."""
    shown = [row for row in rows if row.seq in vectors]
    notes = _notes(len(shown), len(rows), among)
    if not shown:
        return Map(notes=notes)
    found = projection.project(np.stack([vectors[row.seq] for row in shown]))
    twins = _twins(shown, found.near)
    points = tuple(_point(*one) for one in zip(shown, found.places, twins, strict=True))
    return Map(points, regions.labels(found.places, [(row.title, row.path) for row in shown]), notes)


def _notes(shown: int, rows: int, among: int) -> tuple[str, ...]:
    notes = []
    if among > rows:
        notes.append(f"The map shows {rows:,} of {among:,} documents, chosen by their ids.")
    if not shown:
        notes.append("Nothing is embedded, so there is no map. Embed the library with: quire embed")
    elif left := rows - shown:
        what = counted(left, "document is", "documents are")
        notes.append(f"{what} not shown: without text, or not embedded yet.")
    return tuple(notes)


def _point(row: DocumentRow, place: Floats, twins: tuple[str, ...]) -> Point:
    x, y = projection.rounded(place)
    tokens = ceil(_TOKENS * row.length)
    return Point(row.address, row.title, row.collection, x, y, row.chunk_count, tokens, twins)


def _twins(rows: Sequence[DocumentRow], near: Neighbours) -> list[tuple[str, ...]]:
    """The twins of each document: first those with the same bytes, then the nearest."""
    found: list[dict[int, None]] = [{} for _ in rows]
    for one, other in (*_same_bytes(rows), *_near_pairs(near)):
        for at, twin in ((one, other), (other, one)):
            if len(found[at]) < _MOST_TWINS:
                found[at][twin] = None
    return [tuple(rows[twin].address for twin in twins) for twins in found]


def _same_bytes(rows: Sequence[DocumentRow]) -> Iterable[tuple[int, int]]:
    """Pairs of documents with the same bytes; of many, those that are listed together."""
    alike: dict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        alike[row.checksum].append(at)
    for places in alike.values():
        for number, at in enumerate(places):
            yield from ((at, other) for other in places[number + 1 : number + 1 + _MOST_TWINS])


def _near_pairs(near: Neighbours) -> Iterable[tuple[int, int]]:
    """Pairs of documents whose vectors are nearly the same, nearest first."""
    ones, columns = np.nonzero(near.cosines >= TWINS)
    others, cosines = near.rows[ones, columns], near.cosines[ones, columns]
    order = np.lexsort((others, ones, -cosines))
    return zip(ones[order].tolist(), others[order].tolist(), strict=True)
