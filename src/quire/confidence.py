"""How likely it is that a result answers the query, and whether anything in the library does.

Input: what a result was found by. Output: a number from 0 to 1, and strong, weak or none. The constants are
fitted by bench/confidence.py, and judged on sets that were left out. Answers that nobody marked as such
count as wrong there, so the number is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from quire.result import Merged

STRONG = 0.5  # a number from here on is strong
UNRELATED = 0.05  # the most that a result gets if it has little to do with the query
LEAST_COVERS = 0.2  # of the words, weighted, that a result has to have
FEW, LEAST_OF_FEW = 3, 0.34  # of so few words, found by words alone, it has to have more than one
CLOSE = 0.5  # or a cosine of this size: gibberish comes near it
_COMPARED = 5  # results that the best is compared with


class Judge(Enum):
    """What tells how sure a result is."""

    WORDS = "words"
    STATIC = "words, and cosines of static"
    DEEP = "words, and cosines of deep"
    RERANKED = "words, and cosines of deep, where the best were read again"
    UNKNOWN = "what is not known to tell anything: cosines of other models, and pairs of characters"


JUDGES = {"static": Judge.STATIC, "deep": Judge.DEEP}  # by model
# Written by bench/confidence.py --write
# Weights of 1 and of each part of the evidence
ANSWERS = {
    Judge.WORDS: (-9.33, 4.03, 0, 4.64, 2.26, 3.14),
    Judge.STATIC: (-11.03, 2.81, 4.82, 5.13, 3.03, 2.24),
    Judge.DEEP: (-11.77, 2.1, 6.18, 5.7, 3.36, 2.19),
    Judge.RERANKED: (-11.49, 2.08, 5.96, 5.56, 3.1, 2.19),
}
# Weights of covers and meaning, and the least sum of a result that has to do with the query
RELATED = {
    Judge.WORDS: (1, 0, 0.251),
    Judge.STATIC: (1, 1.3, 0.623),
    Judge.DEEP: (1, 1.7, 0.662),
    Judge.RERANKED: (1, 1.7, 0.687),
}


class Evidence(NamedTuple):
    """What a result was found by."""

    covers: float  # the share of the query's words that it has, rare ones counting more
    meaning: float  # its cosine; 0 if meaning was not searched
    share: float  # its score, as a share of the best
    lead: float  # how far it is before the next result
    spread: float  # how far the best is before the fifth
    words: int = FEW + 1  # of the query, without stop words


def evidence(
    told: Sequence[tuple[float, float]], scores: Sequence[float], words: int = FEW + 1
) -> list[Evidence]:
    """The evidence for results, best first: what each covers, its cosine and its score."""
    best = max(scores, default=0.0)
    shares = [score / best if best > 0 else 1.0 for score in scores]
    spread = 1 - min(shares[:_COMPARED], default=1.0)
    after = [*shares[1:], 0.0][: len(shares)]
    found = zip(told, shares, after, strict=True)
    return [Evidence(*known, share, share - behind, spread, words) for known, share, behind in found]


def evidence_of(results: Sequence[Merged], words: int) -> list[Evidence]:
    """The evidence for merged results, best first."""
    told = [
        (max(min(1.0, h.covers + h.whole) for h in it.hits), max(h.meaning for h in it.hits))
        for it in results
    ]
    return evidence(told, [it.score for it in results], words)


def confidence(found: Evidence, judge: Judge) -> tuple[float, str]:
    """The chance that a result answers, and strong, weak, or none if it has little to do with the query."""
    weights = ANSWERS.get(judge, ANSWERS[Judge.WORDS])
    sum_of = weights[0] + sum(w * told for w, told in zip(weights[1:], found[:-1], strict=True))
    chance = 1 / (1 + math.exp(-sum_of))
    if not is_related(found, judge):
        return min(chance, UNRELATED), "none"
    return chance, "strong" if chance >= STRONG else "weak"


def is_related(found: Evidence, judge: Judge) -> bool:
    """Whether a result has to do with the query, as far as that can be told."""
    if judge is Judge.UNKNOWN:
        return True
    _, ratio, least = RELATED[judge]
    return relation(found, ratio) >= least


def relation(found: Evidence, ratio: float) -> float:
    """How much a result has to do with a query, its meaning counting `ratio` times; 0 for noise.

    Without any of the words, only a very close meaning counts.
    """
    least = LEAST_OF_FEW if found.words <= FEW and not ratio else LEAST_COVERS
    is_near = found.covers >= least or (ratio > 0 and found.meaning >= CLOSE)
    return found.covers + ratio * found.meaning if is_near else 0.0
