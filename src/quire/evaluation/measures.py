"""What was found and what answers to figures: nDCG, the share that was found, and intervals.

Input: spans of documents, those found best first. Output: figures from 0 to 1. Always: an answer counts once;
the same values give the same interval.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

TOP = 10  # results that count
RESAMPLES = 1000  # of the questions, for an interval
_SEED = 20


class TextSpan(NamedTuple):
    """A piece of a document, in characters."""

    document: str
    start: int
    end: int

    def overlaps(self, other: TextSpan) -> bool:
        """Whether they have a character in common."""
        return self.document == other.document and self.start < other.end and other.start < self.end

    def is_answer(self, gold: TextSpan) -> bool:
        """Whether this result starts in the answering text, or at least half of it is that text."""
        if not self.overlaps(gold):
            return False
        shared = min(self.end, gold.end) - max(self.start, gold.start)
        return gold.start <= self.start < gold.end or 2 * shared >= self.end - self.start


def outside(found: Iterable[TextSpan], places: Sequence[TextSpan]) -> list[TextSpan]:
    """The results that do not overlap some places, such as where a question was taken from."""
    return [span for span in found if not any(span.overlaps(place) for place in places)]


def span_ndcg(
    found: Sequence[TextSpan],
    gold: Sequence[TextSpan],
    counts: Callable[[TextSpan, TextSpan], bool] = TextSpan.is_answer,
) -> float:
    """The nDCG of the first ten; an answer that was found before counts no more."""
    left, gains = list(gold), list[int]()
    for span in found[:TOP]:
        hits = [answer for answer in left if counts(span, answer)]
        gains.append(bool(hits))
        left = [answer for answer in left if answer not in hits]
    return _dcg(gains) / _dcg([1] * min(TOP, len(gold)))


def graded_ndcg(names: Iterable[str], grades: Mapping[str, int]) -> float:
    """The nDCG of the first ten documents, each where it first appears."""
    ranked = list(dict.fromkeys(names))[:TOP]
    ideal = sorted(grades.values(), reverse=True)[:TOP]
    return _dcg([grades.get(name, 0) for name in ranked]) / _dcg(ideal)


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def found_share(found: Sequence[TextSpan], gold: Sequence[TextSpan]) -> float:
    """The share of the answers that the first ten results overlap."""
    return statistics.fmean(any(answer.overlaps(span) for span in found[:TOP]) for answer in gold)


def first_rank(found: Sequence[TextSpan], gold: Sequence[TextSpan]) -> int | None:
    """The rank of the first result that answers, from 1; None if none of the first ten does."""
    ranks = (n for n, span in enumerate(found[:TOP], 1) if any(map(span.is_answer, gold)))
    return next(ranks, None)


def shown_characters(found: Sequence[TextSpan]) -> int:
    """How many characters the first ten results have."""
    return sum(span.end - span.start for span in found[:TOP])


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where 95 % of the means of resamples lie."""
    draw = random.Random(_SEED)  # noqa: S311  not for secrets
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]
