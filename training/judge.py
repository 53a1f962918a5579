"""Judge models by hybrid search on whole sets: words as a share of the best, plus a weight times the cosine.

A result counts as in bench/quality.py: a chunk that starts in the answering text, or half of which is it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

TOP, MIN_COSINE, RANKED = 10, 0.2, 100


def answers(chunk: tuple[str, int, int], gold: tuple[str, int, int]) -> bool:
    """Whether a chunk starts in the answering text, or at least half of it is that text."""
    if chunk[0] != gold[0]:
        return False
    inside = min(chunk[2], gold[2]) - max(chunk[1], gold[1])
    return gold[1] <= chunk[1] < gold[2] or 2 * inside >= chunk[2] - chunk[1] > 0


def _overlap(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


def _dcg(gains: list[float]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def judged(dev: dict[str, Any], question: dict[str, Any], order: list[int]) -> float:
    """nDCG@10 of chunks in an order."""
    spans, gains = dev["spans"], list[float]()
    if question["grades"]:
        seen = set[str]()
        for chunk in order:
            name = spans[chunk][0].removesuffix(".txt")
            if name not in seen:
                seen.add(name)
                gains.append(question["grades"].get(name, 0))
        best = _dcg(sorted(question["grades"].values(), reverse=True)[:TOP])
        return _dcg(gains[:TOP]) / best if best else 0.0
    left, kept = list(question["gold"]), 0
    for chunk in order:
        if any(_overlap(spans[chunk], other) for other in question["exclude"]):
            continue
        hit = next((gold for gold in left if answers(spans[chunk], gold)), None)
        gains.append(float(hit is not None))
        if hit:
            left.remove(hit)
        kept += 1
        if kept == TOP:
            break
    return _dcg(gains) / _dcg([1.0] * min(TOP, len(question["gold"])))


def ranked(
    question: dict[str, Any], cosines: np.ndarray | None, weight: float, words: float = 1.0
) -> list[int]:
    """Chunks by words and meaning, best first."""
    best = max((score for _, score in question["words"]), default=1.0) or 1.0
    scores = {chunk: words * score / best for chunk, score in question["words"]} if words else {}
    if cosines is not None and weight:
        near = np.argpartition(-cosines, min(RANKED, len(cosines) - 1))[:RANKED]
        for chunk in {*near.tolist(), *scores}:
            if cosines[chunk] >= MIN_COSINE:
                scores[chunk] = scores.get(chunk, 0.0) + weight * float(cosines[chunk])
    return sorted(scores, key=lambda chunk: -scores[chunk])[:RANKED]


def hybrid(dev: dict[str, Any], cosines: np.ndarray | None, weight: float, words: float = 1.0) -> float:
    """The mean over the questions of a set; `cosines` has a row for each question."""
    each = [
        judged(dev, question, ranked(question, None if cosines is None else cosines[at], weight, words))
        for at, question in enumerate(dev["questions"])
    ]
    return float(np.mean(each))
