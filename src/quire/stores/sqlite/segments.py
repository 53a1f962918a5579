"""Segments of the keyword index: which chunks have which terms, as arrays. No database here.

Input: the terms of chunks, or segments. Output: one segment. Always: terms are in order, and so are the
chunks of each term; a place in a segment takes two bytes, so a segment has at most 65,536 chunks.

A term weighs in a chunk as often as it is there, times the weight of the column: heading, headings above,
text. The same term followed by HEADING or TRAIL has its weight in that column alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from quire.stores.matching import COLUMN_WEIGHTS

if TYPE_CHECKING:
    from numpy import int64, uint32
    from numpy.typing import NDArray

    Keys = NDArray[int64]  # number of a term << 24 | place of a chunk << 8 | weight

ChunkTerms = tuple[
    int, str, str, str
]  # a chunk, and the terms of its heading, of those above it, of its text
LARGEST = 1 << 16  # chunks of a segment
HEADING, TRAIL = "\x01", "\x02"
MOST_WEIGHT = 255  # a term that is there more often ranks the same, within a thousandth
_BLOCK_TERMS, _BLOCK_PLACES = 512, 4096


@dataclass(frozen=True, slots=True)
class TermBlock:
    """Some terms of a segment. A term of very many chunks has a block of its own."""

    terms: str  # joined by line feeds
    ends: bytes  # where the places of each term end
    ordinals: bytes
    weights: bytes

    @property
    def first(self) -> str:
        """The first of its terms."""
        return self.terms.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Segment:
    """Chunks in order, how many terms each has, and the blocks of their terms."""

    chunks: NDArray[int64]
    sizes: NDArray[uint32]
    blocks: list[TermBlock]


class _Numbers(dict[str, int]):
    """Terms numbered as they come."""

    def __missing__(self, term: str) -> int:
        self[term] = number = len(self)
        return number


def build(rows: Sequence[ChunkTerms]) -> Segment:
    """A segment of chunks, which are in order."""
    import numpy as np

    numbers = _Numbers()
    found: list[int] = []
    lengths: list[tuple[int, ...]] = []
    for _, *texts in rows:
        own, above, text = (terms.split() for terms in texts)
        places = own, above, text, [term + HEADING for term in own], [term + TRAIL for term in above]
        found += map(numbers.__getitem__, chain.from_iterable(places))
        lengths.append(tuple(map(len, places)))
    counts = np.array(lengths, np.int64).reshape(-1, 5)
    heading, trail, text_weight = (int(weight) for weight in COLUMN_WEIGHTS)
    weights = np.repeat(np.tile([heading, trail, text_weight, heading, trail], len(rows)), counts.ravel())
    terms, ranks = _ranked(numbers)
    ordinals = np.repeat(np.arange(len(rows)), counts.sum(axis=1))
    keys = _added_up(ranks[np.array(found, np.int64)] << 24 | ordinals << 8 | weights)
    chunks = np.array([row[0] for row in rows], np.int64)
    return Segment(chunks, counts[:, :3].sum(axis=1).astype(np.uint32), _blocks(terms, keys))


def _ranked(numbers: dict[str, int]) -> tuple[list[str], NDArray[int64]]:
    """Numbered terms in order, and the rank of each number."""
    import numpy as np

    terms = sorted(numbers)
    ranks = np.empty(len(terms), np.int64)
    ranks[np.fromiter(map(numbers.__getitem__, terms), np.int64, len(terms))] = np.arange(len(terms))
    return terms, ranks


def _added_up(keys: Keys) -> Keys:
    """Keys in order, with one for each term and chunk: its weights added up."""
    import numpy as np

    keys.sort()
    places = keys >> 8
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    totals = np.add.reduceat(keys & MOST_WEIGHT, starts) if len(keys) else keys
    return places[starts] << 8 | np.minimum(totals, MOST_WEIGHT)


def merged(parts: Iterable[tuple[Segment, NDArray[Any] | None]]) -> Segment:
    """One segment of the chunks that are left of others; with each comes which are, None for all."""
    import numpy as np

    some = [(part, np.ones(len(part.chunks), bool) if left is None else left) for part, left in parts]
    chunks = np.concatenate([part.chunks[left] for part, left in some])
    sizes = np.concatenate([part.sizes[left] for part, left in some])
    order = np.argsort(chunks, kind="stable")
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    decoded = [_decoded(part.blocks) for part, _ in some]
    terms = sorted(set().union(*(names for names, _ in decoded)))
    rank_of = dict(zip(terms, range(len(terms)), strict=True))
    keys, begin = [], 0
    for (names, old), (_, left) in zip(decoded, some, strict=True):
        places = np.zeros(len(left), np.int64)
        places[left] = place_of[begin : begin + int(left.sum())]
        begin += int(left.sum())
        ranks = np.fromiter(map(rank_of.__getitem__, names), np.int64, len(names))
        old = old[left[old >> 8 & 0xFFFF]]
        keys.append(ranks[old >> 24] << 24 | places[old >> 8 & 0xFFFF] << 8 | old & MOST_WEIGHT)
    together = np.concatenate(keys)
    together.sort()
    return Segment(chunks[order], sizes[order], _blocks(terms, together))


def _decoded(blocks: Sequence[TermBlock]) -> tuple[list[str], Keys]:
    """The terms of blocks, and their keys."""
    import numpy as np

    terms = [term for block in blocks for term in block.terms.split("\n")]
    ends = [np.frombuffer(block.ends, np.uint32).astype(np.int64) for block in blocks]
    counts = [np.empty(0, np.int64), *(np.diff(some, prepend=0) for some in ends)]
    numbers = np.repeat(np.arange(len(terms)), np.concatenate(counts))
    ordinals = np.frombuffer(b"".join(block.ordinals for block in blocks), np.uint16).astype(np.int64)
    weights = np.frombuffer(b"".join(block.weights for block in blocks), np.uint8)
    return terms, numbers << 24 | ordinals << 8 | weights


def _blocks(terms: Sequence[str], keys: Keys) -> list[TermBlock]:
    """The blocks of numbered terms. Terms that no chunk has are left out."""
    import numpy as np

    counts = np.bincount(keys >> 24, minlength=len(terms))
    names = [terms[number] for number in np.flatnonzero(counts).tolist()]
    ends = np.cumsum(counts[counts > 0])
    ordinals, weights = (keys >> 8).astype(np.uint16), keys.astype(np.uint8)
    return [_block(names, ends, ordinals, weights, *span) for span in _spans(ends)]


def _block(
    names: Sequence[str], ends: NDArray[Any], ordinals: NDArray[Any], weights: NDArray[Any], i: int, j: int
) -> TermBlock:
    """The block of the terms from one to another."""
    low, high = int(ends[i - 1]) if i else 0, int(ends[j - 1])
    own = (ends[i:j] - low).astype("uint32")
    return TermBlock(
        "\n".join(names[i:j]), own.tobytes(), ordinals[low:high].tobytes(), weights[low:high].tobytes()
    )


def _spans(ends: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Which terms are in one block each: from, to."""
    start = 0
    while start < len(ends):
        begun = int(ends[start - 1]) if start else 0
        fit = int(ends.searchsorted(begun + _BLOCK_PLACES, "right"))
        stop = max(start + 1, min(fit, start + _BLOCK_TERMS))
        yield start, stop
        start = stop
