"""How sure Quire can be of an answer: fit the constants of confidence.py, and judge them on sets left out.

    python -m bench.confidence [--data FOLDER] [--cache FOLDER] [--write]

Every set is asked its own questions, questions of sets about other subjects, and questions about everyday
things that no set is about, in the ways of bench/quality.py. Two things are fitted for each way, by logistic
regression: the chance that a result answers (on the first five results of all questions), and whether a
result has to do with the question at all (on the best result; own questions against all others). Out comes a
table of each set, judged by constants that were fitted on all the others, and bench/confidence.svg: the
number that a result has, against the share of such results that answer. --write puts the constants into
src/quire/confidence.py.

alarms   the share of a set's own questions that are told "No good match"; the aim is 2 % at most
seen     the share of other sets' questions, and of everyday questions, that are told so
error    the mean distance between the number and the share that answers, over ten steps
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench import quality
from bench.quality import SETS, Question
from bench.sizes import STYLE, _rule, _text
from quire import confidence
from quire.confidence import Evidence, relation
from quire.config import Config, override
from quire.evaluation import measures
from quire.evaluation.measures import TextSpan, outside
from quire.library import Library
from quire.result import Result

SUBJECTS = {
    "docs_links_kubernetes": "software",
    "docs_links_rust": "software",
    "codebase_chunks": "software",
    "emanual": "phones",
    "scifact": "medicine",
    "cranfield": "flight",
    "multilingual/en": "encyclopedia",
    "chroma_chunking": "",  # of many subjects: no questions of others
}
EVERYDAY = """\
best pizza in naples
how to train a puppy not to bite
what is the capital of mongolia
symptoms of vitamin d deficiency in toddlers
who won the world cup in 1998
qwrtp lkjhg vbnm
recipe for chicken tikka masala
how long should I boil eggs
cheap flights to lisbon in october
how to knit a scarf for beginners
tomato plant leaves turning yellow
what year did the berlin wall fall
piano chords for let it be
how to fix a leaking kitchen faucet
wedding anniversary gift ideas for parents
difference between a viola and a violin
treatment of plantar fasciitis
average rainfall in the atacama desert
flibbertigibbet snorkblatt
how do bees make honey
famous paintings by vermeer
mortgage refinance calculator fixed rate
stretching exercises for lower back pain
do cats dream
tax deduction for home office in canada
how to remove red wine stains from carpet
ukulele tuning for left handed players
migration route of arctic terns
""".splitlines()
WAYS = {"words": "WORDS", "static": "STATIC", "deep": "DEEP", "reranked": "RERANKED"}  # and their judges
OWN, OTHERS, TOP = 80, 12, 5  # questions of a set; of each other set; results that are judged
ALARMS = 0.015  # of a set's own questions: the aim is at most 0.02
STEPS = 10
SEED = 7

Array = NDArray[np.float64]


class Judged(NamedTuple):
    """A result, and whether it answers."""

    evidence: Evidence
    answers: bool


class Asked(NamedTuple):
    """A question that was asked of a set."""

    set: str
    mode: str
    kind: str  # own, other or everyday
    results: tuple[Judged, ...]


class Fitted(NamedTuple):
    """The constants of one mode."""

    answers: tuple[float, ...]
    related: tuple[float, float, float]

    def chance(self, found: Evidence) -> float:
        return float(_logistic(np.array([_row(found)]) @ np.array(self.answers))[0])

    def is_alarm(self, asked: Asked) -> bool:
        least = self.related[2]
        return all(relation(result.evidence, self.related[1]) < least for result in asked.results)


# ---------------------------------------------------------------------------------------------- asking


def ask(name: str, url: str, config: Config, questions: dict[str, list[Question]]) -> Iterator[Asked]:
    """Ask a set its own questions, those of sets about other subjects, and everyday ones, in each way."""
    draw = random.Random(SEED)
    asked = [("own", question) for question in _some(draw, questions[name], OWN)]
    for other, subject in SUBJECTS.items():
        if subject and SUBJECTS[name] not in ("", subject):
            asked += [("other", question) for question in _some(draw, questions[other], OTHERS)]
    asked += [("everyday", Question(text)) for text in EVERYDAY]
    for way in WAYS:
        with Library.open(url, config=override(config, quality.WAYS[way])) as library:
            for kind, question in asked:
                limit = quality.ASKED if question.exclude else measures.TOP
                found = library.search(question.text, limit=limit, explain=True).results
                yield Asked(name, way, kind, tuple(_judged(found, question, kind))[:TOP])


def _some(draw: random.Random, questions: list[Question], limit: int) -> list[Question]:
    return draw.sample(questions, min(limit, len(questions)))


def _judged(found: Iterable[Result], question: Question, kind: str) -> Iterator[Judged]:
    """Results elsewhere than where the question was taken from, as if there were no others."""
    kept = [result for result in found if outside([quality._span(result)], question.exclude)]
    words = len(kept[0].explain["terms"]) if kept else 0
    told = confidence.evidence([_told(result) for result in kept], [result.score for result in kept], words)
    for result, evidence in zip(kept, told, strict=True):
        yield Judged(evidence, kind == "own" and _answers(quality._span(result), question))


def _told(result: Result) -> tuple[float, float]:
    """What a result covers, and its cosine."""
    hits = result.explain["hits"]
    return max(hit["covers"] for hit in hits), max(hit["meaning"] for hit in hits)


def _answers(span: TextSpan, question: Question) -> bool:
    """Whether a result answers as the strict measure has it, or holds a whole answer."""
    if question.gold:
        return any(span.is_answer(gold) or _holds(span, gold) for gold in question.gold)
    return question.grades.get(Path(span.document).stem, 0) > 0


def _holds(span: TextSpan, gold: TextSpan) -> bool:
    return span.document == gold.document and span.start <= gold.start and gold.end <= span.end


# --------------------------------------------------------------------------------------------- fitting


def fit(asked: Sequence[Asked], mode: str) -> Fitted:
    """The constants for one mode."""
    own = [one for one in asked if one.mode == mode]
    judged = [result for one in own for result in one.results]
    answers = _regress(
        np.array([_row(result.evidence) for result in judged]),
        np.array([float(result.answers) for result in judged]),
    )
    return Fitted(tuple(answers.round(2)), _related(own))


def _related(asked: Sequence[Asked]) -> tuple[float, float, float]:
    """The weights of covers and meaning, and the least sum that keeps alarms rare in every set."""
    with_results = [one for one in asked if one.results]
    told = np.array([[1.0, *_best(one)] for one in with_results])
    _, covers, meaning = _regress(told, np.array([float(one.kind == "own") for one in with_results]))
    ratio = round(float(max(0.0, meaning) / covers), 2)
    least = []
    for name in {one.set for one in with_results}:
        sums = [_sum(one, ratio) for one in with_results if one.set == name and one.kind == "own"]
        least.append(float(np.quantile(sums, ALARMS)))
    return 1.0, ratio, round(min(least), 3)


def _best(asked: Asked) -> tuple[float, float]:
    """The evidence of the result that has most to do with a question."""
    best = max((result.evidence for result in asked.results), key=lambda it: it.covers + it.meaning)
    return best.covers, best.meaning


def _sum(asked: Asked, ratio: float) -> float:
    return max(relation(result.evidence, ratio) for result in asked.results)


def _row(found: Evidence) -> list[float]:
    return [1.0, *found[:-1]]


def _regress(told: Array, true: Array, ridge: float = 1.0) -> Array:
    """Logistic regression by Newton's method."""
    weights, keep = np.zeros(told.shape[1]), np.diag([1e-6, *[ridge] * (told.shape[1] - 1)])
    for _ in range(50):
        chance = _logistic(told @ weights)
        slope = told.T @ (true - chance) - keep @ weights
        bend = (told * (chance * (1 - chance))[:, None]).T @ told + keep
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _logistic(values: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-values)), np.float64)


# ---------------------------------------------------------------------------------------------- judging


class Line(NamedTuple):
    """What constants that were fitted without a set do on that set."""

    set: str
    mode: str
    alarms: float
    seen_other: float | None
    seen_everyday: float
    mean: float  # the mean number of the results
    true: float  # the share that answers
    error: float
    curve: list[tuple[float, float, int]]  # number, share that answers, results


def left_out(asked: Sequence[Asked], mode: str) -> Iterator[Line]:
    """Each set, judged by what was fitted on all the others."""
    for name in dict.fromkeys(one.set for one in asked):
        fitted = fit([one for one in asked if one.set != name], mode)
        of_set = [one for one in asked if one.set == name and one.mode == mode]
        own = [one for one in of_set if one.kind == "own"]
        told = [(fitted.chance(r.evidence), r.answers) for one in own for r in one.results]
        curve = list(_curve(told))
        error = sum(abs(number - true) * count for number, true, count in curve) / len(told)
        means = statistics.fmean(number for number, _ in told), statistics.fmean(true for _, true in told)
        other = _alarms(fitted, of_set, "other")
        alarms, seen = _alarms(fitted, own, "own") or 0.0, _alarms(fitted, of_set, "everyday") or 0.0
        yield Line(name, mode, alarms, other, seen, *means, error, curve)


def _alarms(fitted: Fitted, asked: Iterable[Asked], kind: str) -> float | None:
    some = [fitted.is_alarm(one) for one in asked if one.kind == kind]
    return statistics.fmean(some) if some else None


def _curve(told: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, float, int]]:
    """The mean number, the share that answers and the count of results, in steps of the number."""
    for step in range(STEPS):
        some = [pair for pair in told if step <= STEPS * pair[0] < step + 1]
        if some:
            number = statistics.fmean(chance for chance, _ in some)
            yield number, statistics.fmean(answers for _, answers in some), len(some)


def show(lines: Sequence[Line]) -> None:
    print("| set left out | mode | alarms | other sets' seen | everyday seen | mean | true | error |")
    print("|---|---|---|---|---|---|---|---|")
    for line in lines:
        other = "–" if line.seen_other is None else f"{line.seen_other:.1%}"
        print(
            f"| {line.set} | {line.mode} | {line.alarms:.1%} | {other} | {line.seen_everyday:.1%} |"
            f" {line.mean:.2f} | {line.true:.2f} | {line.error:.3f} |"
        )


# ---------------------------------------------------------------------------------------------- drawing

SIZE, LEFT, TOP_EDGE = 420, 60, 64


def draw(lines: Sequence[Line]) -> str:
    """The reliability of search with deep on each set, as SVG: points on the diagonal are right."""
    some = [line for line in lines if line.mode == "deep"]
    height = TOP_EDGE + SIZE + 60 + 18 * len(some)
    parts = [f'<rect width="{LEFT + SIZE + 40}" height="{height}" class="paper"/>']
    parts += [_text(LEFT, 28, "Confidence against the share of results that answer", "title")]
    parts += [
        _text(LEFT, 47, "Search with deep; each set judged by constants fitted on the others", "soft small")
    ]
    for step in range(0, 11, 2):
        x, y = _place(step / 10, 0)[0], _place(0, step / 10)[1]
        parts += [_rule(x, TOP_EDGE, x, TOP_EDGE + SIZE), _rule(LEFT, y, LEFT + SIZE, y)]
        parts += [_text(x, TOP_EDGE + SIZE + 18, f"{step / 10:g}", "soft small", "middle")]
        parts += [_text(LEFT - 8, y + 4, f"{step / 10:g}", "soft small", "end")]
    parts += [_rule(*_place(0, 0), *_place(1, 1), "peer")]
    for number, line in enumerate(some):
        parts += _drawn(number, line)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + SIZE + 40} {height}" role="img">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


def _place(number: float, true: float) -> tuple[float, float]:
    return LEFT + SIZE * number, TOP_EDGE + SIZE * (1 - true)


def _drawn(number: int, line: Line) -> Iterator[str]:
    kind, dash = number % 5, ' stroke-dasharray="5 4"' if number >= 5 else ""
    path = " ".join("{:.1f},{:.1f}".format(*_place(x, y)) for x, y, _ in line.curve)
    yield f'<polyline points="{path}" class="line n{kind}"{dash}/>'
    for told, true, count in line.curve:
        x, y = _place(told, true)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="dot{kind}"><title>{count}</title></circle>'
    y = TOP_EDGE + SIZE + 48 + 18 * number
    yield f'<polyline points="{LEFT},{y - 4} {LEFT + 26},{y - 4}" class="line n{kind}"{dash}/>'
    yield _text(LEFT + 34, y, line.set, "small")


# ---------------------------------------------------------------------------------------------- writing


def write(fitted: dict[str, Fitted]) -> None:
    """Put the constants into the product."""
    place = Path(confidence.__file__)
    head, answers, related = re.split(
        r"^(?=ANSWERS = |RELATED = )", place.read_text("utf-8"), flags=re.MULTILINE
    )
    for way, name in WAYS.items():
        answers = _with(answers, name, fitted[way].answers)
        related = _with(related, name, fitted[way].related)
    place.write_text(head + answers + related, "utf-8")


def _with(text: str, name: str, values: Sequence[float]) -> str:
    """A table of constants with those of one judge."""
    line = f"    Judge.{name}: ({', '.join(f'{float(value):g}' for value in values)}),"
    return re.sub(rf"^    Judge\.{name}: .*$", line, text, count=1, flags=re.MULTILINE)


def _ask_all(data: Path, folder: Path, config: Config) -> Iterator[Asked]:
    questions = {name: SETS[name].questions(data / name) for name in SUBJECTS}
    for name in SUBJECTS:
        quality.index(name, data, folder, override(config, {"embed": {"model": "deep"}})).close()
        yield from ask(name, quality.url_of(name, folder), config, questions)


def main() -> None:
    parser = quality.arguments(__doc__ or "")
    parser.add_argument("--write", action="store_true", help="put the constants into src/quire/confidence.py")
    args, config = quality.parsed(parser)
    with quality.place(args.cache) as folder:
        report(list(_ask_all(args.data, folder, config)), args.write)


def report(asked: Sequence[Asked], writes: bool) -> None:
    """Judge, draw, fit on all sets, and write the constants if that is wanted."""
    lines: list[Any] = [line for mode in WAYS for line in left_out(asked, mode)]
    show(lines)
    Path(__file__).with_name("confidence.svg").write_text(draw(lines), encoding="utf-8")
    fitted = {mode: fit(asked, mode) for mode in WAYS}
    print(f"\nFitted on all sets: {fitted}")
    if writes:
        write(fitted)


if __name__ == "__main__":
    main()
