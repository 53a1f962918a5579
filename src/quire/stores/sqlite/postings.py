"""Read the keyword index of a SQLite library: which chunks have which terms.

Output: places and weights. Always: a snapshot is of one generation of the library, and what was read is kept
for that alone.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from quire.stores.rows import CHUNK_BITS
from quire.stores.sqlite import bm25
from quire.stores.sqlite.bm25 import Postings
from quire.stores.sqlite.segments import HEADING, TRAIL, Segment, TermBlock

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

SEGMENT_BITS = 20  # the number of a block is that of its segment, shifted by these, plus its place
_KEPT = 4_000_000  # places that are kept for the next search
_LAST = "\U0010ffff"


@dataclass(slots=True)
class _Open:
    """A segment that is being read."""

    id: int
    begin: int  # the place of its first chunk among all
    chunks: NDArray[int64]
    sizes: Any
    firsts: list[str]
    removed: NDArray[Any] | None  # True for each chunk that is

    @property
    def live(self) -> NDArray[Any] | None:
        """Which of its chunks are left; None for all."""
        return None if self.removed is None else ~self.removed

    def block_of(self, term: str) -> int:
        """The number of the block that may have a term."""
        return (self.id << SEGMENT_BITS) + max(0, bisect_right(self.firsts, term) - 1)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All segments at one time."""

    generation: int
    opened: list[_Open]
    chunks: NDArray[int64]  # by place
    lengths: bm25.Scores
    live: NDArray[Any] | None  # by place; None if nothing was removed
    count: int  # chunks that are left

    @property
    def documents(self) -> NDArray[int64]:
        """The document of each chunk, by place."""
        return self.chunks >> CHUNK_BITS

    def places_of(self, chunks: Sequence[int]) -> NDArray[int64]:
        """The places of chunks, in order. Chunks that are not there are left out."""
        import numpy as np

        wanted, found = np.array(sorted(set(chunks)), np.int64), [np.empty(0, np.int64)]
        for one in self.opened:
            near = np.minimum(one.chunks.searchsorted(wanted), len(one.chunks) - 1)
            here = near[one.chunks[near] == wanted]
            found.append(here + one.begin if one.removed is None else here[~one.removed[here]] + one.begin)
        return np.sort(np.concatenate(found))


class IndexTables:
    """The tables of one index."""

    def __init__(self, db: sqlite3.Connection, suffix: str = "") -> None:
        self.db, self._suffix = db, suffix
        names = ("segments", "removed", "blocks", "orders")
        self._segments, self._dead, self._blocks, self._orders = (f"word_{name}{suffix}" for name in names)

    def read(self, id: int) -> Segment:
        """A segment with all its blocks."""
        import numpy as np

        get = f"SELECT chunks, sizes FROM {self._segments} WHERE id = ?"
        chunks, sizes = self.db.execute(get, (id,)).fetchone()
        span = id << SEGMENT_BITS, (id + 1) << SEGMENT_BITS
        columns = "SELECT terms, ends, ordinals, weights FROM"
        rows = self.db.execute(f"{columns} {self._blocks} WHERE id >= ? AND id < ? ORDER BY id", span)
        blocks = [TermBlock(*row) for row in rows]
        return Segment(np.frombuffer(chunks, np.int64), np.frombuffer(sizes, np.uint32), blocks)

    def _removed_of(self, segment: int, size: int) -> NDArray[Any] | None:
        import numpy as np

        row = self.db.execute(f"SELECT bits FROM {self._dead} WHERE segment = ?", (segment,)).fetchone()
        return np.unpackbits(np.frombuffer(row[0], np.uint8), count=size).astype(bool) if row else None

    def left_of(self, id: int) -> NDArray[Any] | None:
        """Which chunks of a segment are left; None for all."""
        size = self.db.execute(f"SELECT count FROM {self._segments} WHERE id = ?", (id,)).fetchone()[0]
        removed = self._removed_of(id, size)
        return None if removed is None else ~removed

    def size(self) -> int:
        """How many chunks are in the index."""
        total = f"SELECT coalesce(sum(count), 0) FROM {self._segments}"
        gone = f"SELECT coalesce(sum(count), 0) FROM {self._dead}"
        return int(self.db.execute(f"SELECT ({total}) - ({gone})").fetchone()[0])


class PostingReader(IndexTables):
    """What searches read."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db)
        self._snapshot: Snapshot | None = None
        self._kept: dict[str, Postings] = {}

    def snapshot(self, generation: int) -> Snapshot:
        """All segments as they are in this generation of the library."""
        if self._snapshot is None or self._snapshot.generation != generation:
            self._kept.clear()
            self._snapshot = self._opened(generation)
        return self._snapshot

    def _opened(self, generation: int) -> Snapshot:
        import numpy as np

        known = {one.id: one for one in self._snapshot.opened} if self._snapshot else {}
        opened, begin = list[_Open](), 0
        for (id,) in self.db.execute(f"SELECT id FROM {self._segments} ORDER BY id").fetchall():
            one = known.get(id) or self._open(id)
            opened.append(_Open(id, begin, one.chunks, one.sizes, one.firsts, None))
            opened[-1].removed = self._removed_of(id, len(one.chunks))
            begin += len(one.chunks)
        chunks = np.concatenate([np.empty(0, np.int64), *(one.chunks for one in opened)])
        sizes = np.concatenate([np.empty(0, np.uint32), *(one.sizes for one in opened)])
        live = None
        if any(one.removed is not None for one in opened):
            live = np.concatenate(
                [np.ones(len(one.chunks), bool) if one.removed is None else ~one.removed for one in opened]
            )
        left = sizes if live is None else sizes[live]
        lengths = bm25.norms(sizes, float(left.mean()) if len(left) else 0.0)
        return Snapshot(generation, opened, chunks, lengths, live, len(left))

    def _open(self, id: int) -> _Open:
        import numpy as np

        get = f"SELECT chunks, sizes, firsts FROM {self._segments} WHERE id = ?"
        chunks, sizes, firsts = self.db.execute(get, (id,)).fetchone()
        arrays = np.frombuffer(chunks, np.int64), np.frombuffer(sizes, np.uint32)
        return _Open(id, 0, *arrays, firsts.split("\n") if firsts else [], None)

    def having(self, term: str) -> Postings:
        """The chunks that have a term, or a term with HEADING or TRAIL."""
        if (found := self._kept.get(term)) is None:
            found = self._joined(self._pieces(term))
            if sum(len(kept.places) for kept in self._kept.values()) > _KEPT:
                self._kept.clear()
            self._kept[term] = found
        return found

    def _pieces(self, term: str) -> Iterator[tuple[_Open, Any, Any]]:
        """The places and weights of a term in each segment that has it."""
        for one in self._snapshot.opened if self._snapshot else ():
            block = self._block(one.block_of(term))
            if block and (span := _span_of(term, block)):
                yield one, *_slice(block, *span)

    def _block(self, id: int) -> TermBlock | None:
        get = f"SELECT terms, ends, ordinals, weights FROM {self._blocks} WHERE id = ?"
        row = self.db.execute(get, (id,)).fetchone()
        return TermBlock(*row) if row else None

    def _joined(self, pieces: Iterable[tuple[_Open, Any, Any]]) -> Postings:
        """The places of pieces among all chunks, without those that were removed."""
        import numpy as np

        places, weights = [np.empty(0, np.int32)], [np.empty(0, np.uint8)]
        for one, ordinals, some in pieces:
            live = one.live
            left = slice(None) if live is None else live[ordinals]
            places.append(ordinals[left].astype(np.int32) + np.int32(one.begin))
            weights.append(some[left])
        return Postings(np.concatenate(places), np.concatenate(weights))

    def beginning(self, prefix: str, ending: str = "") -> Postings:
        """The chunks that have a term that begins so; with an ending, in that place alone."""
        if self._snapshot is None:
            return self._joined(())
        return self._joined(self._begun(one, prefix, ending) for one in self._snapshot.opened)

    def _begun(self, one: _Open, prefix: str, ending: str) -> tuple[_Open, Any, Any]:
        """The places of one segment whose terms begin so, with all their weights added up."""
        import numpy as np

        totals, last = np.zeros(len(one.chunks)), bisect_right(one.firsts, prefix + _LAST)
        for id in range(one.block_of(prefix), (one.id << SEGMENT_BITS) + last):
            block = self._block(id)
            if block:
                totals += _total(block, prefix, ending, len(one.chunks))
        places = np.flatnonzero(totals)
        return one, places, np.minimum(totals[places], 65535).astype(np.uint16)

    def counts(self, terms: Iterable[str]) -> dict[str, int]:
        """In how many chunks many terms are. Terms in none are left out."""
        found: dict[str, int] = {}
        wanted = sorted(set(terms))
        for one in self._snapshot.opened if self._snapshot else ():
            for id, some in _by_block(one, wanted):
                block = self._block(id)
                for term, chunks in _counted(block, some, one.live) if block else ():
                    found[term] = found.get(term, 0) + chunks
        return found

    def orders_of(self, chunks: Sequence[int]) -> dict[int, bytes]:
        """The codes of the terms of chunks, in their order."""
        found: dict[int, bytes] = {}
        for start in range(0, len(chunks), 500):
            some = chunks[start : start + 500]
            marks = ", ".join("?" * len(some))
            get = f"SELECT chunk, codes FROM {self._orders} WHERE chunk IN ({marks})"
            found.update(self.db.execute(get, some).fetchall())
        return found


def _span_of(term: str, block: TermBlock) -> tuple[int, int] | None:
    """Where the places of a term are in a block; None if it is not there."""
    terms = block.terms.split("\n")
    number = bisect_left(terms, term)
    if number == len(terms) or terms[number] != term:
        return None
    return _end(block, number - 1), _end(block, number)


def _end(block: TermBlock, number: int) -> int:
    return int.from_bytes(block.ends[4 * number : 4 * number + 4], "little") if number >= 0 else 0


def _slice(block: TermBlock, low: int, high: int) -> tuple[Any, Any]:
    import numpy as np

    ordinals = np.frombuffer(block.ordinals, np.uint16, high - low, 2 * low)
    return ordinals, np.frombuffer(block.weights, np.uint8, high - low, low)


def _total(block: TermBlock, prefix: str, ending: str, size: int) -> Any:
    """The weights of all terms of a block that begin so, added up for each of so many chunks."""
    import numpy as np

    terms = block.terms.split("\n")
    low, high = bisect_left(terms, prefix), bisect_right(terms, prefix + _LAST)
    if low == high:
        return 0
    begin = _end(block, low - 1)
    ordinals, weights = _slice(block, begin, _end(block, high - 1))
    lengths = [_end(block, number) - _end(block, number - 1) for number in range(low, high)]
    meant = [
        term.endswith(ending) if ending else term[-1] not in (HEADING, TRAIL) for term in terms[low:high]
    ]
    return np.bincount(ordinals, weights * np.repeat(meant, lengths), minlength=size)


def _by_block(one: _Open, wanted: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Each block that may have some of the terms, which are in order, and these terms."""
    starts = [0, *(bisect_left(wanted, first) for first in one.firsts[1:]), len(wanted)]
    for number, (low, high) in enumerate(pairwise(starts)):
        if low < high:
            yield one.id << SEGMENT_BITS | number, list(wanted[low:high])


def _counted(block: TermBlock, terms: Sequence[str], live: NDArray[Any] | None) -> Iterator[tuple[str, int]]:
    """In how many chunks of a block some terms are that it has."""
    for term in set(terms).intersection(block.terms.split("\n")):
        if span := _span_of(term, block):
            low, high = span
            yield term, high - low if live is None else int(live[_slice(block, low, high)[0]].sum())
