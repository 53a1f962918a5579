"""How good the answers are: keyword search on documents and questions that other people wrote.

    python bench/quality.py [--data FOLDER] [--set NAME ...] [--limit-queries N]
    python bench/quality.py --set emanual --setting search.document_evidence=0.1

In come folders of documents with questions and the places that answer them; out comes one Markdown
table. Each set is indexed into a library file of its own, which is thrown away afterwards. Always:
the same sets, settings and number of queries give the same figures, times apart.

section nDCG@10  a result counts if it overlaps the section that answers. docs_links: 30 results are
                 asked for, those that overlap the section that the question was taken from are
                 dropped, ten are kept, and a section ends where its first subsection begins
page nDCG@10     the same results as documents, each where it first appears
document nDCG@10 each entry of the corpus is a text file: its title, a blank line, its text
found@10         the share of the answering spans that the first ten results overlap
found@10, chunks the same of ten chunks as the store ranks them, before documents are weighed and
                 sections merged: what other people's figures for chunks compare with
recall, precision, IoU
                 of five such chunks: the share of the answer they cover, the share of them that is
                 the answer, and what both share of what either holds; a character counts once

The interval holds 95 % of 1,000 means over queries drawn again with replacement. ms is the mean time
of a query, snippets included. Characters is the mean length of the answers to a query, the first ten
at most: a long result overlaps more than a short one, so a better figure can be a longer answer.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

from quire import query
from quire.config import DEFAULT, Config, override
from quire.errors import SettingError
from quire.library import Library
from quire.result import Result
from quire.stores.base import Filters

TOP = 10
ASKED = 30  # results, where some will be dropped
RESAMPLES = 1000
SEED = 20

Figures = dict[str, float]  # a value for each metric, of one query


class Span(NamedTuple):
    """A piece of a document, in characters."""

    doc: str
    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        return self.doc == other.doc and self.start < other.end and other.start < self.end


class Question(NamedTuple):
    """A query and what answers it: spans, or grades of documents."""

    text: str
    gold: tuple[Span, ...] = ()
    exclude: tuple[Span, ...] = ()
    grades: dict[str, int] = {}  # noqa: RUF012  never written to


class Reference(NamedTuple):
    """A figure to compare with, and whose it is."""

    figure: str
    source: str


class Measure(NamedTuple):
    """What is timed, and what is then made of it."""

    retrieve: Callable[[Library, Question], list[Span]]
    judge: Callable[[list[Span], Question], Figures]


class Set(NamedTuple):
    """A set of documents and questions: how it is read and measured, and what others got."""

    documents: str  # the folder to index; "" where the documents are lines of a corpus
    questions: Callable[[Path], list[Question]]
    measures: tuple[Measure, ...]
    references: dict[str, Reference]


# ------------------------------------------------------------------------------------------ reading


def read_spans(folder: Path) -> list[Question]:
    return [_question(line) for line in _lines(folder / "queries.jsonl")]


def _question(line: dict[str, Any]) -> Question:
    gold = (Span(g["doc"], g["start"], g.get("own_end", g["end"])) for g in line["gold"])
    exclude = (Span(e["doc"], e["section_start"], e["section_end"]) for e in line.get("exclude", ()))
    return Question(line["query"], tuple(gold), tuple(exclude))


def read_beir(folder: Path) -> list[Question]:
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    _, *rows = (folder / "qrels.tsv").read_text("utf-8").splitlines()
    for row in rows:
        question, document, grade = row.split("\t")
        grades[question][document] = int(grade)
    lines = _lines(folder / "queries.jsonl")
    return [Question(line["text"], grades=grades[line["_id"]]) for line in lines if line["_id"] in grades]


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_corpus(folder: Path, target: Path) -> Path:
    """The documents of a corpus as files."""
    target.mkdir()
    for line in _lines(folder / "corpus.jsonl"):
        text = f"{line['title']}\n\n{line['text']}\n"
        (target / f"{line['_id']}.txt").write_text(text, encoding="utf-8", newline="")
    return target


# --------------------------------------------------------------------------------------- retrieving


def first_results(library: Library, question: Question) -> list[Span]:
    return _results(library, question, TOP)


def results_elsewhere(library: Library, question: Question) -> list[Span]:
    """Results that do not show where the question was taken from."""
    return [span for span in _results(library, question, ASKED) if not _hits(span, question.exclude)]


def _results(library: Library, question: Question, limit: int) -> list[Span]:
    return [_span(result) for result in library.search(question.text, limit=limit).results]


def _span(result: Result) -> Span:
    return Span(f"{result.collection}/{result.path}", result.start, result.end)


def first_chunks(library: Library, question: Question, limit: int = TOP) -> list[Span]:
    asked, filters = query.parse(question.text), Filters(kinds=("document", "external"))
    hits = library.store.search_words(asked, filters, limit)
    rows = library.store.documents_by_row({hit.document for hit in hits})
    chunks = library.store.chunks([hit.chunk for hit in hits])
    names = {seq: f"{row.collection}/{row.path}" for seq, row in rows.items()}
    return [Span(names[hit.document], chunks[hit.chunk].start, chunks[hit.chunk].end) for hit in hits]


# ------------------------------------------------------------------------------------------ judging


def judge_links(found: list[Span], question: Question) -> Figures:
    pages = dict.fromkeys((gold.doc for gold in question.gold), 1)
    return {
        **judge_sections(found, question),
        "page nDCG@10": ndcg([span.doc for span in found], pages),
    }


def judge_sections(found: list[Span], question: Question) -> Figures:
    return {"section nDCG@10": section_ndcg(found, question.gold)}


def judge_found(found: list[Span], question: Question) -> Figures:
    return {"found@10": statistics.fmean(bool(_hits(gold, found)) for gold in question.gold)}


def judge_found_chunks(found: list[Span], question: Question) -> Figures:
    return {f"{metric}, chunks": value for metric, value in judge_found(found, question).items()}


def judge_documents(found: list[Span], question: Question) -> Figures:
    return {"document nDCG@10": ndcg([Path(span.doc).stem for span in found], question.grades)}


def judge_characters(found: list[Span], question: Question) -> Figures:
    got, gold = _characters(found), _characters(question.gold)
    both = len(got & gold)
    return {
        "recall": both / len(gold),
        "precision": both / len(got) if got else 0.0,
        "IoU": both / len(got | gold),
    }


def _hits(span: Span, others: Iterable[Span]) -> list[Span]:
    return [other for other in others if span.overlaps(other)]


def _characters(spans: Iterable[Span]) -> set[tuple[str, int]]:
    return {(span.doc, at) for span in spans for at in range(span.start, span.end)}


def section_ndcg(found: Sequence[Span], gold: Sequence[Span]) -> float:
    """nDCG of the first ten; a section that was found before counts no more."""
    left, gains = list(gold), list[int]()
    for span in found[:TOP]:
        hits = _hits(span, left)
        gains.append(bool(hits))
        left = [section for section in left if section not in hits]
    return _dcg(gains) / _dcg([1] * min(TOP, len(gold)))


def ndcg(names: Iterable[str], grades: dict[str, int]) -> float:
    """nDCG of the first ten documents, each where it first appears."""
    ranked = list(dict.fromkeys(names))[:TOP]
    ideal = sorted(grades.values(), reverse=True)[:TOP]
    return _dcg([grades.get(name, 0) for name in ranked]) / _dcg(ideal)


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


# --------------------------------------------------------------------------------------------- sets

_README = "the sets' README"
_TEST_HALF = f"BM25, for the test queries, and these are the train queries; {_README}"
_MINILM = f"MiniLM, Recursive 250/0, five corpora; {_README}"


def _links(section: str, page: str) -> Set:
    references = {
        "section nDCG@10": Reference(section, f"FTS5, {_README}"),
        "page nDCG@10": Reference(page, f"FTS5, {_README}"),
    }
    return Set("docs", read_spans, (Measure(results_elsewhere, judge_links),), references)


def _beir(figure: str, source: str) -> Set:
    references = {"document nDCG@10": Reference(figure, source)}
    return Set("", read_beir, (Measure(first_results, judge_documents),), references)


SETS = {
    "docs_links_kubernetes": _links("0.408", "0.669"),
    "docs_links_rust": _links("0.480", "0.649"),
    "emanual": Set(
        "docs",
        read_spans,
        (Measure(first_results, judge_sections),),
        {"section nDCG@10": Reference("0.836", f"FTS5, {_README}")},
    ),
    "chroma_chunking": Set(
        "corpora",
        read_spans,
        (Measure(partial(first_chunks, limit=5), judge_characters),),
        {
            "recall": Reference(
                "0.929 / 0.856", f"FTS5, 1,200 characters / BM25, 200 tokens, five corpora; {_README}"
            ),
            "precision": Reference("0.054", _MINILM),
            "IoU": Reference("0.054", _MINILM),
        },
    ),
    "codebase_chunks": Set(
        "docs",
        read_spans,
        (Measure(first_results, judge_found), Measure(first_chunks, judge_found_chunks)),
        {
            "found@10": Reference("–", "none given for results, which are longer than chunks"),
            "found@10, chunks": Reference("0.752", f"FTS5, {_README}"),
        },
    ),
    "scifact": _beir("0.679", _TEST_HALF),
    "cranfield": _beir("0.515", f"FTS5, {_README}"),
    "multilingual/en": _beir("–", "none given"),
    "multilingual/zh": _beir("0.884", f"FTS5 trigram, {_README}"),
}


# ---------------------------------------------------------------------------------------- measuring


class Row(NamedTuple):
    """One line of the table."""

    set: str
    metric: str
    mean: float
    low: float
    high: float
    reference: Reference
    milliseconds: float
    characters: float


def index(name: str, data: Path, temporary: Path, config: Config) -> Library:
    """A new library with the documents of a set; raises OSError where one of them was left out."""
    folder = data / name
    inside = SETS[name].documents
    documents = folder / inside if inside else write_corpus(folder, temporary / "corpus")
    library = Library.open(temporary / "library.db", create=True, config=config)
    report = library.add(documents, collection=documents.name)
    if left_out := [*report.skipped, *report.failed]:
        library.close()
        raise OSError(f"{name}: {len(left_out)} documents were not indexed, the first: {left_out[0]}")
    return library


def measure(name: str, library: Library, questions: Sequence[Question]) -> list[Row]:
    """Ask every question of a set; a row for each metric."""
    return [row for way in SETS[name].measures for row in _rows(name, way, library, questions)]


def _rows(name: str, way: Measure, library: Library, questions: Sequence[Question]) -> list[Row]:
    started = time.perf_counter()
    found = [way.retrieve(library, question) for question in questions]
    each = 1000 * (time.perf_counter() - started) / len(questions)
    size = sum(span.end - span.start for spans in found for span in spans[:TOP]) / len(questions)
    figures = list(map(way.judge, found, questions))
    rows = []
    for metric in figures[0]:
        values = [figure[metric] for figure in figures]
        reference = SETS[name].references[metric]
        rows.append(Row(name, metric, statistics.fmean(values), *interval(values), reference, each, size))
    return rows


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where 95 % of the means of resamples lie."""
    draw = random.Random(SEED)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def some(questions: list[Question], limit: int | None) -> list[Question]:
    """As many questions as wanted, from all over the set, in order."""
    if limit is None or limit >= len(questions):
        return questions
    kept = sorted(random.Random(SEED).sample(range(len(questions)), limit))
    return [questions[at] for at in kept]


def run(name: str, data: Path, config: Config, limit: int | None) -> list[Row]:
    """Index a set, ask its questions, and throw the library away."""
    questions = some(SETS[name].questions(data / name), limit)
    with tempfile.TemporaryDirectory() as temporary, index(name, data, Path(temporary), config) as library:
        return measure(name, library, questions)


def show(rows: Iterable[Row]) -> None:
    columns = "set|metric|Quire|95 % interval|reference|whose|ms|characters".split("|")
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    for row in rows:
        between = f"{row.low:.3f}–{row.high:.3f}"
        whose = f"{row.reference.figure} | {row.reference.source}"
        cost = f"{row.milliseconds:.1f} | {row.characters:,.0f}"
        print(f"| {row.set} | {row.metric} | {row.mean:.3f} | {between} | {whose} | {cost} |")


def changed(config: Config, setting: str) -> Config:
    """Settings with one of them changed, as in `search.limit=5`."""
    name, equals, value = setting.partition("=")
    if not equals:
        raise SettingError(setting, "has no value. Give one, as in search.document_evidence=0.1")
    change: Any = value
    for key in reversed(name.split(".")):
        change = {key: change}
    return override(config, change)


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    beside = Path(__file__).parents[2] / "shared" / "eval"
    parser.add_argument("--data", type=Path, default=beside, help="the folder with the sets")
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", dest="sets")
    parser.add_argument("--limit-queries", type=int, metavar="N", help="ask only so many of each set")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="repeatable")
    args = parser.parse_args()
    if not args.data.is_dir():
        parser.error(f"no sets in {args.data}; name their folder with --data")
    if args.limit_queries is not None and args.limit_queries < 1:
        parser.error("--limit-queries must be at least 1")
    try:
        config = reduce(changed, args.setting, DEFAULT)
    except SettingError as problem:
        parser.error(str(problem))
    rows: list[Row] = []
    for name in args.sets:
        print(f"{name} …", file=sys.stderr)
        rows += run(name, args.data, config, args.limit_queries)
    show(rows)


if __name__ == "__main__":
    main()
