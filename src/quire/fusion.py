"""Fuse ranked lists into one. Scores in, scores out; higher is better.

Measured on nine sets (bench/README.md): adding keyword and semantic scores keeps what ranks discard, how
much better the first hit is than the second. If the model does not know the language, both lose to keywords
alone in some languages: then cosines are left out, or count less (`search.meaning_unknown`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from quire.result import Hit

# How much a cosine counts, by model, where the best match by words counts 1: chosen by bench/weights.py
WEIGHTS = {"static": 1.5, "deep": 2.0}
OTHER_WEIGHT = 1.5
_RANKS = 60  # the constant in reciprocal rank fusion, as in the original paper
_NEXT = ((1, 1.0), (-1, 1.0), (2, 0.5), (-2, 0.5))  # distance of a neighbour, and its weight


def fuse(words: Sequence[Hit], near: Sequence[Hit], cosines: Mapping[int, float], weight: float) -> list[Hit]:
    """Hits by words and by meaning as one list.

    A hit scores its share of the best score by words plus `weight` times its cosine. `cosines` has the
    cosines of hits that are not in `near`.
    """
    best = max((hit.score for hit in words), default=0.0) or 1.0
    by_words = {hit.chunk: hit for hit in words}
    by_meaning = {hit.chunk: hit for hit in near}
    fused = []
    for chunk, hit in (by_words | by_meaning).items():
        share = by_words[chunk].score / best if chunk in by_words else 0.0
        cosine = by_meaning[chunk].score if chunk in by_meaning else cosines.get(chunk, 0.0)
        match = _match(chunk in by_words, chunk in by_meaning)
        score = share + weight * max(cosine, 0.0)
        fused.append(Hit(chunk, hit.document, hit.section, score, match, share, cosine))
    return sorted(fused, key=lambda hit: (-hit.score, hit.chunk))


def weight_of(model: str) -> float:
    """How much the cosine of a model counts; the best match by words counts 1."""
    return WEIGHTS.get(model, OTHER_WEIGHT)


def shares(words: Sequence[Hit]) -> list[Hit]:
    """Hits by words that score their share of the best score."""
    best = max((hit.score for hit in words), default=0.0) or 1.0
    found = ((hit, hit.score / best) for hit in words)
    return [Hit(hit.chunk, hit.document, hit.section, share, hit.match, share) for hit, share in found]


def fuse_ranks(words: Sequence[Hit], near: Sequence[Hit], weight: float) -> list[Hit]:
    """Hits by words and by meaning as one list, by reciprocal ranks: Σ w/(60 + rank)."""
    found: dict[int, Hit] = {}
    for ranked, times, name in ((words, 1.0, "keyword"), (near, weight, "semantic")):
        for rank, hit in enumerate(ranked, 1):
            old = found.get(hit.chunk)
            score = (old.score if old else 0.0) + times / (_RANKS + rank)
            cosine = hit.meaning or (old.meaning if old else 0.0)
            found[hit.chunk] = hit._replace(score=score, match="both" if old else name, meaning=cosine)
    return sorted(found.values(), key=lambda hit: (-hit.score, hit.chunk))


def _match(by_words: bool, by_meaning: bool) -> str:
    return "both" if by_words and by_meaning else "keyword" if by_words else "semantic"


def with_neighbours(hits: Sequence[Hit], share: float) -> list[Hit]:
    """Hits raised by the chunks right before and after them in the same section.

    The place where a long section is cut means little; the text around a chunk tells its subject.
    """
    found = {hit.chunk: hit for hit in hits}
    raised = []
    for hit in hits:
        around = ((found.get(hit.chunk + step), part) for step, part in _NEXT)
        more = sum(part * it.score for it, part in around if it and it.section == hit.section)
        raised.append(hit.scoring(hit.score + share * more) if more else hit)
    return sorted(raised, key=lambda hit: (-hit.score, hit.chunk))


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
    raised = [hit.scoring(hit.score + share * evidence[hit.document]) for hit in hits]
    return sorted(raised, key=lambda hit: (-hit.score, hit.chunk))
