"""Ways of finding, asked all questions, to figures with intervals, and what two of them differ by.

Input: questions, and functions that find. Output: an Evaluation. Always: each way is asked the same
questions; the place that a question was taken from is removed from what it finds.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quire.evaluation import measures
from quire.evaluation.measures import TextSpan
from quire.evaluation.questions import EvalQuestion

ASKED = 30  # results, where some will be removed


class FoundSpans(NamedTuple):
    """What one way found for a question, best first."""

    spans: list[TextSpan]
    used: str = ""  # words, meaning or both, and the model
    notes: tuple[str, ...] = ()


class AskedWay(NamedTuple):
    """One way of finding: its name, and what finds at most so many spans for a question."""

    name: str
    find: Callable[[str, int], FoundSpans]

    def ask(self, question: EvalQuestion) -> FoundSpans:
        """What counts of the answer to a question."""
        found = self.find(question.text, ASKED if question.exclude else measures.TOP)
        return found._replace(spans=measures.outside(found.spans, question.exclude)[: measures.TOP])


@dataclass(frozen=True, slots=True)
class Score:
    """How well one way of finding answers. Intervals hold 95 % of the means of resampled questions."""

    name: str  # the settings, grep or BM25
    ndcg: float  # strict nDCG@10
    ndcg_interval: tuple[float, float]
    found: float  # the share of the answers that the first ten results overlap
    found_interval: tuple[float, float]
    characters: float  # that the first ten results have, on the mean
    milliseconds: float  # of a question, on the mean
    used: str = ""  # words, meaning or both, and the model
    notes: tuple[str, ...] = ()  # of most answers
    values: tuple[float, ...] = ()  # strict nDCG@10 of each question
    ranks: tuple[int | None, ...] = ()  # of the first result that answers each question


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better the second of two settings answers than the first, question by question."""

    first: str
    second: str
    points: float  # of strict nDCG@10, in hundredths
    interval: tuple[float, float]
    better: int  # questions that the second answers better
    worse: int

    @property
    def is_noise(self) -> bool:
        """Whether chance alone may explain it: the interval holds 0."""
        return self.interval[0] <= 0 <= self.interval[1]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well a library answers questions whose answers are known."""

    source: str  # links, log, or the name of a file
    questions: tuple[EvalQuestion, ...]
    scores: tuple[Score, ...]  # of the settings first, then of grep and BM25
    difference: Difference | None  # between the settings, if there are two
    problems: tuple[str, ...]  # questions that were skipped, and why
    notes: tuple[str, ...]


def score(way: AskedWay, questions: Sequence[EvalQuestion], advance: Callable[[], None]) -> Score:
    """Ask every question, after one that does not count: it may load a model."""
    way.ask(questions[0])
    found, started = list[FoundSpans](), time.perf_counter()
    for question in questions:
        found.append(way.ask(question))
        advance()
    spent = 1000 * (time.perf_counter() - started) / len(questions)
    pairs = list(zip((one.spans for one in found), (question.answers for question in questions), strict=True))
    values = tuple(measures.span_ndcg(*pair) for pair in pairs)
    shares = [measures.found_share(*pair) for pair in pairs]
    return Score(
        name=way.name,
        ndcg=statistics.fmean(values),
        ndcg_interval=measures.interval(values),
        found=statistics.fmean(shares),
        found_interval=measures.interval(shares),
        characters=statistics.fmean(measures.shown_characters(one.spans) for one in found),
        milliseconds=spent,
        used=Counter(one.used for one in found).most_common(1)[0][0],
        notes=_usual((note for one in found for note in one.notes), len(found)),
        values=values,
        ranks=tuple(measures.first_rank(*pair) for pair in pairs),
    )


def _usual(notes: Iterable[str], among: int) -> tuple[str, ...]:
    """What was said of more than half of the answers."""
    return tuple(note for note, count in Counter(notes).items() if 2 * count > among)


def compared(first: Score, second: Score) -> Difference:
    """What two settings differ by, on the same questions."""
    gains = [100 * (now - before) for before, now in zip(first.values, second.values, strict=True)]
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    mean, between = statistics.fmean(gains), measures.interval(gains)
    return Difference(first.name, second.name, mean, between, better, worse)
