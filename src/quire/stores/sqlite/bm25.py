"""Rank chunks by the terms that they have: BM25, exactly. No database here.

Input: for each term or phrase the places of the chunks that have it, in order, with weights. Output: the best
places with their scores. Scores are those of SQLite's bm25() with the same weights of columns.

Lists are added from the rarest on. Once the rest cannot bring another chunk among the best, only chunks that
may still be among them are looked up in it: that makes common words cheap, and the ranking stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

    Numbers = NDArray[Any]
    Scores = NDArray[float32]

_K1, _B = 1.2, 0.75
_LEAST = 1e-6  # what a term counts that is in more than half of the chunks
_ROUNDING = 1e-5  # of scores: sums of the same numbers may differ by this share


@dataclass(frozen=True, slots=True)
class Postings:
    """The places of the chunks that have a term, in order, and how much each has it."""

    places: Numbers
    weights: Numbers
    count: int = -1  # of all chunks that have it, if some were left out

    @property
    def chunks(self) -> int:
        """How many chunks have it."""
        return len(self.places) if self.count < 0 else self.count

    def within(self, allowed: NDArray[Any] | None) -> Postings:
        """Those of the places that are allowed; None allows all."""
        if allowed is None:
            return self
        left = allowed[self.places]
        return Postings(self.places[left], self.weights[left], self.chunks)

    def at(self, places: NDArray[int64]) -> Numbers:
        """How much chunks at some places have it."""
        import numpy as np

        found = np.zeros(len(places), np.float32)
        if len(self.places):
            near = np.minimum(self.places.searchsorted(places), len(self.places) - 1)
            found[:] = np.where(self.places[near] == places, self.weights[near], 0)
        return found


def norms(sizes: Numbers, average: float) -> Scores:
    """What the length of each chunk does to its scores."""
    found: Scores = (_K1 * (1 - _B + _B * sizes / (average or 1.0))).astype("float32")
    return found


def worth(has: int, chunks: int) -> float:
    """What a term counts that so many of the chunks have."""
    return (_K1 + 1) * max(_LEAST, log((chunks - has + 0.5) / (has + 0.5)))


def best(
    deciding: Sequence[Postings],
    ranking: Sequence[Postings],
    lengths: Scores,
    chunks: int,
    limit: int,
    required: NDArray[Any] | None = None,
) -> tuple[NDArray[int64], Scores]:
    """The places of the best chunks and their scores, in no order; more than `limit` if the last are equal.

    A chunk must have one of the deciding lists, or be required if some are; all lists count. `chunks` is how
    many chunks there are.
    """
    import numpy as np

    lists = [(worth(found.chunks, chunks), found.within(required)) for found in deciding]
    lists.sort(key=lambda pair: -pair[0])
    others = sorted(((worth(found.chunks, chunks), found) for found in ranking), key=lambda pair: -pair[0])
    scores = np.zeros(len(lengths), np.float32)
    rest = [*lists, *others]
    places: NDArray[int64] | None = None
    for number, (value, found) in enumerate(lists):
        places = _contenders(scores, limit, sum(value for value, _ in rest[number:])) if number else None
        if places is not None:
            rest = rest[number:]
            break
        _add(scores, value, found, lengths)
    else:
        rest = others
    if places is None:
        places = np.flatnonzero(scores)
        places = _narrowed(places, scores[places], limit, sum(value for value, _ in rest))
    totals = scores[places]
    for value, found in rest:
        totals += _shares(found.at(places), lengths[places], value)
    kept = _narrowed(np.arange(len(places)), totals, limit, 0.0)
    return places[kept], totals[kept]


def _add(scores: Scores, value: float, found: Postings, lengths: Scores) -> None:
    scores[found.places] += _shares(found.weights.astype("float32"), lengths[found.places], value)


def _shares(weights: Scores, lengths: Scores, value: float) -> Scores:
    """What a term adds to chunks."""
    return weights / (weights + lengths) * lengths.dtype.type(value)


def _contenders(scores: Scores, limit: int, rest: float) -> NDArray[int64] | None:
    """The places that can still be among the best, if that leaves out those that have no score yet."""
    import numpy as np

    scored = scores[scores > 0]
    if len(scored) < limit:
        return None
    least = float(np.partition(scored, len(scored) - limit)[-limit])
    return np.flatnonzero(scores >= _floor(least, rest)) if rest < least else None


def _narrowed(places: NDArray[int64], scores: Scores, limit: int, rest: float) -> NDArray[int64]:
    """Those of the places that can still be among the best."""
    import numpy as np

    if len(places) <= limit:
        return places
    least = float(np.partition(scores, len(scores) - limit)[-limit])
    return places[scores >= _floor(least, rest)]


def _floor(least: float, rest: float) -> float:
    """The score from which on a chunk may be among the best, if the rest may add so much."""
    return least * (1 - _ROUNDING) - rest
