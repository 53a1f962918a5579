"""Fusing and weighing hits: pure functions, so their promises hold for any lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.fusion import fuse, with_document_evidence, with_neighbours
from quire.result import Hit
from quire.stores import MAX_CHUNKS

Scores = dict[int, float]
Weigh = Callable[[Sequence[Hit], float], list[Hit]]

CHUNK = st.builds(lambda document, index: document * MAX_CHUNKS + index, st.integers(1, 3), st.integers(0, 9))
BY_WORDS = st.dictionaries(CHUNK, st.integers(1, 3000).map(lambda number: number / 100))
COSINES = st.dictionaries(CHUNK, st.integers(-100, 100).map(lambda number: number / 100))
WEIGHT = st.sampled_from([0.0, 0.3, 1.0, 1.5, 7.0])
SHARE = st.sampled_from([0.0, 0.05, 0.1, 0.5])
weighers = pytest.mark.parametrize("weigh", [with_neighbours, with_document_evidence])


def hit(chunk: int, score: float, match: str = "keyword") -> Hit:
    """A hit in the section that its place in its document says: three chunks make one."""
    document, index = divmod(chunk, MAX_CHUNKS)
    return Hit(chunk, document, index // 3, score, match)


def ranked(scores: Scores, match: str = "keyword") -> list[Hit]:
    """Hits best first, as a store gives them."""
    hits = [hit(chunk, score, match) for chunk, score in scores.items()]
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk))


def fused(words: Scores, near: Scores, others: Scores, weight: float) -> list[Hit]:
    return fuse(ranked(words), ranked(near, "semantic"), others, weight)


def order(hits: Sequence[Hit]) -> list[int]:
    return [hit.chunk for hit in hits]


# ------------------------------------------------------------------------------------- words and meaning


def test_a_hit_scores_its_share_of_the_best_words_and_its_weighted_cosine() -> None:
    """What both halves found is `both`; each hit shows what it owes to either."""
    words, near = ranked({1: 8.0, 2: 4.0}), ranked({2: 0.6, 3: 0.5}, "semantic")
    assert fuse(words, near, {1: 0.1}, 2.0) == [
        hit(2, 0.5 + 2 * 0.6, "both")._replace(words=0.5, meaning=0.6),
        hit(1, 1.0 + 2 * 0.1, "keyword")._replace(words=1.0, meaning=0.1),
        hit(3, 2 * 0.5, "semantic")._replace(words=0.0, meaning=0.5),
    ]


@given(BY_WORDS, COSINES, COSINES, WEIGHT, st.randoms(use_true_random=False))
def test_the_order_of_the_lists_changes_nothing(
    words: Scores, near: Scores, others: Scores, weight: float, chance: Random
) -> None:
    """Issue: fusion looks at scores, so how a store breaks ties does not matter."""
    first, second = ranked(words), ranked(near, "semantic")
    chance.shuffle(first)
    chance.shuffle(second)
    assert fuse(first, second, others, weight) == fused(words, near, others, weight)


@given(BY_WORDS, COSINES, COSINES, WEIGHT)
def test_every_hit_comes_out_once_with_its_match_type(
    words: Scores, near: Scores, others: Scores, weight: float
) -> None:
    """No hit is lost or doubled; semantic, keyword or both says which lists it was in."""
    hits = fused(words, near, others, weight)
    assert sorted(order(hits)) == sorted({*words, *near})
    assert all(math.isfinite(hit.score) and hit.score >= 0 for hit in hits)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.chunk))
    for found in hits:
        lists = ("keyword" if found.chunk in words else "", "semantic" if found.chunk in near else "")
        assert found.match == ("both" if all(lists) else "".join(lists))


@given(BY_WORDS, COSINES, COSINES)
def test_with_no_weight_on_meaning_the_words_decide(words: Scores, near: Scores, others: Scores) -> None:
    """Issue: hybrid is not worse than its better half; weight 0 is the other half alone."""
    hits = fused(words, near, others, 0.0)
    assert order(hits)[: len(words)] == order(ranked(words))
    assert all(hit.score == 0 for hit in hits[len(words) :])


@given(COSINES, COSINES, st.sampled_from([0.3, 1.5]))
def test_with_no_words_the_meaning_decides(near: Scores, others: Scores, weight: float) -> None:
    """Issue: a question of which no word is in the library is answered by meaning alone."""
    positive = {chunk: cosine for chunk, cosine in near.items() if cosine > 0}
    assert order(fused({}, positive, others, weight)) == order(ranked(positive))


@given(BY_WORDS, COSINES, COSINES, WEIGHT, st.data())
def test_a_better_score_never_lowers_a_hit(
    words: Scores, near: Scores, others: Scores, weight: float, data: st.DataObject
) -> None:
    """Issue: fusion is monotonic in both halves."""
    lists = [scores for scores in (words, near) if scores]
    if not lists:
        return
    chosen = data.draw(st.sampled_from(lists))
    chunk = data.draw(st.sampled_from(sorted(chosen)))
    before = order(fused(words, near, others, weight)).index(chunk)
    chosen[chunk] += data.draw(st.sampled_from([0.01, 0.5, 40.0]))
    assert order(fused(words, near, others, weight)).index(chunk) <= before


def test_a_cosine_below_zero_counts_as_none() -> None:
    """Issue: a chunk of the opposite meaning does not lose what its words are worth."""
    (found,) = fuse(ranked({1: 3.0}), [], {1: -0.9}, 5.0)
    assert (found.score, found.meaning) == (1.0, -0.9)


# ---------------------------------------------------------------------------- neighbours and the document


def test_neighbours_count_up_to_two_chunks_away() -> None:
    """Issue: in a section that was cut, the parts around one tell what it is about."""
    hits = [Hit(chunk, 1, 0, score) for chunk, score in ((10, 1.0), (11, 8.0), (12, 4.0), (14, 100.0))]
    scores = {hit.chunk: hit.score for hit in with_neighbours(hits, 0.1)}
    assert scores[10] == pytest.approx(1.0 + 0.1 * (8.0 + 0.5 * 4.0))
    assert scores[11] == pytest.approx(8.0 + 0.1 * (1.0 + 4.0))
    assert scores[12] == pytest.approx(4.0 + 0.1 * (8.0 + 0.5 * 1.0 + 0.5 * 100.0))


def test_the_four_best_hits_of_a_document_are_its_evidence() -> None:
    """The whole document is evidence for each of its chunks."""
    hits = [Hit(chunk, 1, chunk, score) for chunk, score in enumerate((12.0, 6.0, 3.0, 8.0, 1.0))]
    lone = Hit(99, 2, 0, 5.0)
    scores = {hit.chunk: hit.score for hit in with_document_evidence([*hits, lone], 0.1)}
    assert scores[4] == pytest.approx(1.0 + 0.1 * (12.0 + 8.0 / 2 + 6.0 / 3 + 3.0 / 4))
    assert scores[99] == pytest.approx(5.0 + 0.1 * 5.0)


@given(BY_WORDS, SHARE)
def test_only_a_section_raises_its_chunks(scores: Scores, share: float) -> None:
    """Issue: neighbours count within a section, whatever else was found."""
    hits = ranked(scores)
    for place in {(hit.document, hit.section) for hit in hits}:
        own = [hit for hit in hits if (hit.document, hit.section) == place]
        among = [hit for hit in with_neighbours(hits, share) if (hit.document, hit.section) == place]
        assert among == with_neighbours(own, share)


@given(BY_WORDS, SHARE)
def test_only_a_document_is_evidence_for_its_chunks(scores: Scores, share: float) -> None:
    """Other documents neither help nor harm."""
    hits = ranked(scores)
    for document in {hit.document for hit in hits}:
        own = [hit for hit in hits if hit.document == document]
        among = [hit for hit in with_document_evidence(hits, share) if hit.document == document]
        assert among == with_document_evidence(own, share)


@weighers
@given(scores=BY_WORDS, share=SHARE, chance=st.randoms(use_true_random=False))
def test_weighing_keeps_every_hit_and_only_raises(
    weigh: Weigh, scores: Scores, share: float, chance: Random
) -> None:
    """Issue: evidence moves hits; it loses, doubles and lowers none, in whatever order they come."""
    hits = ranked(scores)
    weighed = weigh(hits, share)
    assert {found._replace(score=scores[found.chunk]) for found in weighed} == set(hits)
    assert len(weighed) == len(hits)
    assert all(math.isfinite(found.score) and found.score >= scores[found.chunk] for found in weighed)
    chance.shuffle(hits)
    assert weigh(hits, share) == weighed
    assert weigh(hits, 0.0) == ranked(scores)


@weighers
@given(scores=BY_WORDS.filter(bool), share=SHARE, data=st.data())
def test_weighing_never_lowers_a_hit_that_scores_better(
    weigh: Weigh, scores: Scores, share: float, data: st.DataObject
) -> None:
    """Issue: what a hit lends to others is never more than what it gains."""
    chunk = data.draw(st.sampled_from(sorted(scores)))
    before = order(weigh(ranked(scores), share)).index(chunk)
    scores[chunk] += data.draw(st.sampled_from([0.01, 0.5, 40.0]))
    assert order(weigh(ranked(scores), share)).index(chunk) <= before
