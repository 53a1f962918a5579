"""Ranked lists to one. Scores in, scores out; a larger one is better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from quire.result import Hit


def with_document_evidence(hits: Sequence[Hit], share: float) -> list[Hit]:
    """Hits raised by how well the rest of their document matches.

    A document's evidence is the sum of its four best scores, each divided by its rank.
    """
    scores: dict[int, list[float]] = defaultdict(list)
    for hit in sorted(hits, key=lambda hit: -hit.score):
        scores[hit.document].append(hit.score)
    evidence = {
        document: sum(score / rank for rank, score in enumerate(best[:4], 1))
        for document, best in scores.items()
    }
    raised = [replace(hit, score=hit.score + share * evidence[hit.document]) for hit in hits]
    return sorted(raised, key=lambda hit: (-hit.score, hit.chunk))
