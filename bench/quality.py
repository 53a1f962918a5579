"""How good the answers are, by words and with each model, on what other people wrote and asked.

    python bench/quality.py [--data FOLDER] [--set NAME ...] [--way WAY ...] [--limit-queries N]
    python bench/quality.py --set emanual --setting search.document_evidence=0.1
    python bench/quality.py --cache FOLDER --library 'postgresql://localhost/{set}'

In come folders of documents with questions and the places that answer them; out comes one Markdown
table. Each set is indexed and embedded once, into a library of its own, and asked in each way. The
libraries are thrown away afterwards, or kept in the folder that --cache names: then only what has
changed is indexed again. Those that --library names stay, and need --cache to be used again: some sets
are written out as files, which must be where they were. Always: the same sets, settings and number of
queries give the same figures, times apart.

words            by words alone
static, deep     by words and by meaning, with the instant model or the one that takes its time
reranked         the same with deep, and the best are read again (search.rerank)
static alone, deep alone
                 by meaning alone

strict nDCG@10   a result counts for an answer if it starts inside the answering section's own text, which
                 ends where its first subsection begins, or if at least half of it is that text; each
                 answer counts once. docs_links: 30 results are asked for, those that overlap the section
                 that the question was taken from are dropped, and ten are kept
share in 4,000   the share of the answers in the first 4,000 characters of the results
overlap nDCG@10  a result counts if it overlaps the section that answers: long results overlap more
page nDCG@10     the same results as documents, each where it first appears
document nDCG@10 each entry of the corpus is a text file: its title, a blank line, its text
found@10         the share of the answering spans that the first ten results overlap
found@10, chunks the same of ten chunks as they are ranked before documents are weighed and sections
                 merged: what other people's figures for chunks compare with
recall, precision, IoU
                 of five such chunks: the share of the answer they cover, the share of them that is
                 the answer, and what both share of what either holds; a character counts once
recall, IoU, results
                 the same of five results of Library.search
alarms           the share of the questions that are told "No good match" (lower is better)

The interval holds 95 % of 1,000 means over queries drawn again with replacement. ms is the mean time
of a query, its embedding and snippets included. Characters is the mean length of the answers to a
query, the first ten at most: a long result overlaps more than a short one, so a better figure can be a
longer answer. These three are of the last way that was asked for. The lines below the table compare each way
with the first by the first metric of each set, in points of 0.01; the interval is of the differences, drawn
as above, and a set is named as worse if all of it is below zero.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

from quire import query, searcher
from quire.address import of_document
from quire.config import DEFAULT, Config, override, with_setting
from quire.errors import SettingError
from quire.evaluation.hiding import asked_links
from quire.evaluation.measures import TOP, TextSpan, found_share, graded_ndcg, interval, outside, span_ndcg
from quire.evaluation.questions import EvalQuestion
from quire.library import Library
from quire.meaning import ready
from quire.rank import Ranking
from quire.result import Result
from quire.stores import Filters

ASKED = 30  # results, where some will be dropped
SHOWN = 4000  # characters of the first results
SEED = 20
WAYS: dict[str, dict[str, Any]] = {  # the columns, and the settings of each
    "words": {"embed": {"model": "none"}, "search": {"mode": "keyword"}},
    "static alone": {"embed": {"model": "static"}, "search": {"mode": "semantic"}},
    "deep alone": {"embed": {"model": "deep"}, "search": {"mode": "semantic"}},
    "static": {"embed": {"model": "static"}},
    "deep": {"embed": {"model": "deep"}},
    "reranked": {"embed": {"model": "deep"}, "search": {"rerank": True}},
}
USUAL = ("words", "static", "deep", "reranked")

Figures = dict[str, float]  # a value for each metric, of one query


class Spans(list[TextSpan]):
    """What was found, and whether any of it is a good match."""

    def __init__(self, spans: Iterable[TextSpan], good: bool) -> None:
        super().__init__(spans)
        self.good = good


class Question(NamedTuple):
    """A query and what answers it: spans, or grades of documents."""

    text: str
    gold: tuple[TextSpan, ...] = ()
    exclude: tuple[TextSpan, ...] = ()
    grades: dict[str, int] = {}  # noqa: RUF012  never written to


class Reference(NamedTuple):
    """A figure to compare with, and whose it is."""

    figure: str
    source: str


NOBODY = Reference("–", "none given")


class Measure(NamedTuple):
    """What is timed, and what is then made of it."""

    retrieve: Callable[[Library, Question], list[TextSpan]]
    judge: Callable[[list[TextSpan], Question], Figures]


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
    gold = (TextSpan(g["doc"], g["start"], g.get("own_end", g["end"])) for g in line["gold"])
    exclude = (TextSpan(e["doc"], e["section_start"], e["section_end"]) for e in line.get("exclude", ()))
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
    target.mkdir(exist_ok=True)
    for line in _lines(folder / "corpus.jsonl"):
        text = f"{line['title']}\n\n{line['text']}\n"
        (target / f"{line['_id']}.txt").write_text(text, encoding="utf-8", newline="")
    return target


# --------------------------------------------------------------------------------------- retrieving


def first_results(library: Library, question: Question, limit: int = TOP) -> list[TextSpan]:
    return _results(library, question, limit)


def results_elsewhere(library: Library, question: Question) -> list[TextSpan]:
    """Results that do not show where the question was taken from."""
    return _results(library, question, ASKED)


def _results(library: Library, question: Question, limit: int) -> Spans:
    found = library.search(question.text, limit=limit).results
    kept = [result for result in found if outside([_span(result)], question.exclude)]
    return Spans(map(_span, kept), any(result.strength != "none" for result in kept[:TOP]))


def _span(result: Result) -> TextSpan:
    return TextSpan(f"{result.collection}/{result.path}", result.start, result.end)


def first_chunks(library: Library, question: Question, limit: int = TOP) -> list[TextSpan]:
    """Chunks in the order in which the searcher has them before it weighs documents and merges."""
    settings, asked, notes = library.config.search, query.parse(question.text), list[str]()
    stored = library._meaning(settings.mode)
    meaning = ready(library.store, asked, Filters(), settings, stored, notes)
    ranking = Ranking(library.store, asked, Filters())
    hits, _ = searcher.ranked(ranking, settings, meaning, notes)
    hits = hits[:limit]
    rows = library.store.documents_by_row({hit.document for hit in hits})
    chunks = library.store.chunks([hit.chunk for hit in hits])
    names = {seq: f"{row.collection}/{row.path}" for seq, row in rows.items()}
    return [TextSpan(names[hit.document], chunks[hit.chunk].start, chunks[hit.chunk].end) for hit in hits]


# ------------------------------------------------------------------------------------------ judging


def judge_links(found: list[TextSpan], question: Question) -> Figures:
    pages = dict.fromkeys((gold.document for gold in question.gold), 1)
    return {
        **judge_sections(found, question),
        "found@10": found_share(found, question.gold),
        "page nDCG@10": graded_ndcg([span.document for span in found], pages),
    }


def _alarms(found: list[TextSpan]) -> Figures:
    return {"alarms": float(not found.good)} if isinstance(found, Spans) else {}


def judge_sections(found: list[TextSpan], question: Question) -> Figures:
    return {
        "strict nDCG@10": span_ndcg(found, question.gold),
        "share in 4,000": share_shown(found, question.gold),
        "overlap nDCG@10": span_ndcg(found, question.gold, TextSpan.overlaps),
        **_alarms(found),
    }


def share_shown(found: Sequence[TextSpan], gold: Sequence[TextSpan]) -> float:
    """The share of the answers that is in the first characters that are shown."""
    left, shown = SHOWN, list[TextSpan]()
    for span in found[:TOP]:
        shown.append(span._replace(end=min(span.end, span.start + left)))
        left -= shown[-1].end - shown[-1].start
        if left <= 0:
            break
    wanted = _characters(gold)
    return len(wanted & _characters(shown)) / len(wanted) if wanted else 0.0


def judge_found(found: list[TextSpan], question: Question) -> Figures:
    return {"found@10": found_share(found, question.gold), **_alarms(found)}


def judge_found_chunks(found: list[TextSpan], question: Question) -> Figures:
    return {f"{metric}, chunks": value for metric, value in judge_found(found, question).items()}


def judge_documents(found: list[TextSpan], question: Question) -> Figures:
    return {
        "document nDCG@10": graded_ndcg([Path(span.document).stem for span in found], question.grades),
        **_alarms(found),
    }


def judge_characters(found: list[TextSpan], question: Question) -> Figures:
    got, gold = _characters(found), _characters(question.gold)
    both = len(got & gold)
    return {
        "recall": both / len(gold),
        "precision": both / len(got) if got else 0.0,
        "IoU": both / len(got | gold),
    }


def judge_result_characters(found: list[TextSpan], question: Question) -> Figures:
    figures = judge_characters(found, question)
    return {**{f"{metric}, results": figures[metric] for metric in ("recall", "IoU")}, **_alarms(found)}


def _characters(spans: Iterable[TextSpan]) -> set[tuple[str, int]]:
    return {(span.document, at) for span in spans for at in range(span.start, span.end)}


# --------------------------------------------------------------------------------------------- sets

_README = "the sets' README"
_TEST_HALF = f"bge-base / BM25 / MiniLM, for the test queries, and these are the train queries; {_README}"
_CLUSTER = f"Cluster 200, text-embedding-3-large / MiniLM, five corpora; {_README}"


def _links(section: str, page: str) -> Set:
    references = {
        "strict nDCG@10": Reference("–", "none given"),
        "share in 4,000": Reference("–", "none given"),
        "overlap nDCG@10": Reference(section, f"FTS5, {_README}"),
        "page nDCG@10": Reference(page, f"FTS5, {_README}"),
    }
    return Set("docs", read_spans, (Measure(results_elsewhere, judge_links),), references)


def _beir(figure: str, source: str) -> Set:
    references = {"document nDCG@10": Reference(figure, source)}
    return Set("", read_beir, (Measure(first_results, judge_documents),), references)


MADE_FROM_LINKS = ("docs_links_kubernetes", "docs_links_rust")  # sets whose questions are links
SETS = {
    "docs_links_kubernetes": _links("0.408", "0.669"),
    "docs_links_rust": _links("0.480", "0.649"),
    "emanual": Set(
        "docs",
        read_spans,
        (Measure(first_results, judge_sections),),
        {
            "strict nDCG@10": Reference("–", "none given"),
            "share in 4,000": Reference("–", "none given"),
            "overlap nDCG@10": Reference("0.836", f"FTS5, {_README}"),
        },
    ),
    "chroma_chunking": Set(
        "corpora",
        read_spans,
        (
            Measure(partial(first_results, limit=5), judge_result_characters),
            Measure(partial(first_chunks, limit=5), judge_characters),
        ),
        {
            "recall, results": Reference("–", "none given for results"),
            "IoU, results": Reference("–", "none given for results"),
            "recall": Reference(
                "0.929 / 0.919 / 0.856",
                "FTS5, 1,200 characters / GPT-4o chunks, text-embedding-3-large, five corpora"
                f" / BM25, 200 tokens, five corpora; {_README}",
            ),
            "precision": Reference("0.080 / 0.072", _CLUSTER),
            "IoU": Reference("0.080 / 0.072", _CLUSTER),
        },
    ),
    "codebase_chunks": Set(
        "docs",
        read_spans,
        (Measure(first_chunks, judge_found_chunks), Measure(first_results, judge_found)),
        {
            "found@10, chunks": Reference(
                "0.928 / 0.872 / 0.752", f"embeddings with contextual text / embeddings / FTS5, {_README}"
            ),
            "found@10": Reference("–", "none given for results, which are longer than chunks"),
        },
    ),
    "scifact": _beir("0.744 / 0.679 / 0.645", _TEST_HALF),
    "cranfield": _beir("0.515", f"FTS5, {_README}"),
    "multilingual/en": _beir("–", "none given"),
    "multilingual/zh": _beir("0.884", f"FTS5 trigram, {_README}"),
}


# ---------------------------------------------------------------------------------------- measuring


class Asked(NamedTuple):
    """What came of asking every question of a set in one way."""

    figures: list[Figures]
    milliseconds: float
    characters: float


class Row(NamedTuple):
    """One line of the table; from the interval on, of the last way."""

    set: str
    metric: str
    values: dict[str, list[float]]  # of each way, a value for each question
    reference: Reference
    milliseconds: float
    characters: float

    @property
    def means(self) -> dict[str, float]:
        return {way: statistics.fmean(values) for way, values in self.values.items()}

    def gains(self, way: str) -> list[float]:
        """How much better each question is answered than in the first way, in points."""
        first = next(iter(self.values.values()))
        return [100 * (value - before) for value, before in zip(self.values[way], first, strict=True)]


@contextmanager
def place(cache: Path | None) -> Iterator[Path]:
    """The folder that keeps libraries, or one that will be gone."""
    if cache:
        cache.mkdir(parents=True, exist_ok=True)
        yield cache
    else:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)


def url_of(name: str, folder: Path, url: str | None = None) -> str:
    """Where the library of a set is."""
    return (url or f"{folder}/{{set}}.db").replace("{set}", name.replace("/", "_"))


def index(name: str, data: Path, folder: Path, config: Config, url: str | None = None) -> Library:
    """A library with the documents of a set; raises OSError where one of them was left out."""
    flat, inside = name.replace("/", "_"), SETS[name].documents
    documents = data / name / inside if inside else write_corpus(data / name, folder / flat)
    library = Library.open(url_of(name, folder, url), create=True, config=config)
    report = library.add(documents, collection=documents.name, prune=True, embed=False)
    if left_out := [*report.skipped, *report.failed]:
        library.close()
        raise OSError(f"{name}: {len(left_out)} documents were not indexed, the first: {left_out[0]}")
    if config.embed.model not in ("none", "static"):
        library.embed()
    if name in MADE_FROM_LINKS and not library.store.is_shared:
        delete_asked_links(library, data / name)
    return library


def delete_asked_links(library: Library, folder: Path) -> None:
    """Delete the links that the questions of a set were made from: the texts of links are searched, too."""
    gone = asked_links(library.store, map(_linked, _lines(folder / "queries.jsonl")))
    db: Any = library.store.db  # type: ignore[attr-defined]
    db.executemany("DELETE FROM links WHERE document = ? AND number = ?", sorted(gone))
    print(f"{folder.name}: deleted the {len(gone):,} links that questions were made from", file=sys.stderr)


def _linked(line: dict[str, Any]) -> EvalQuestion:
    """A question with the places of the links that it was made from, by the addresses of documents."""
    gold = tuple(TextSpan(_address(one["doc"]), one["start"], one["end"]) for one in line["gold"])
    beside = tuple(TextSpan(_address(one["doc"]), one["start"], one["end"]) for one in line["exclude"])
    return EvalQuestion(line["query"], gold, (), beside=beside)


def _address(name: str) -> str:
    return of_document(*name.split("/", 1))


def measure(
    name: str, url: str, questions: Sequence[Question], config: Config, ways: Sequence[str]
) -> list[Row]:
    """Ask every question of a set in each way; a row for each metric."""
    rows = []
    for measured in SETS[name].measures:
        asked = dict[str, Asked]()
        for way in ways:
            with Library.open(url, config=override(config, WAYS[way])) as library:
                asked[way] = ask(measured, library, questions)
        rows += [_row(name, metric, asked) for metric in asked[ways[-1]].figures[0]]
    return rows


def ask(way: Measure, library: Library, questions: Sequence[Question]) -> Asked:
    """Ask every question, after one that does not count: it may load the model."""
    way.retrieve(library, questions[0])
    started = time.perf_counter()
    found = [way.retrieve(library, question) for question in questions]
    each = 1000 * (time.perf_counter() - started) / len(questions)
    size = sum(span.end - span.start for spans in found for span in spans[:TOP]) / len(questions)
    return Asked(list(map(way.judge, found, questions)), each, size)


def _row(name: str, metric: str, asked: dict[str, Asked]) -> Row:
    values = {way: [figures[metric] for figures in one.figures] for way, one in asked.items()}
    last, reference = list(asked)[-1], SETS[name].references.get(metric, NOBODY)
    return Row(name, metric, values, reference, asked[last].milliseconds, asked[last].characters)


def some(questions: list[Question], limit: int | None) -> list[Question]:
    """As many questions as wanted, from all over the set, in order."""
    if limit is None or limit >= len(questions):
        return questions
    kept = sorted(random.Random(SEED).sample(range(len(questions)), limit))
    return [questions[at] for at in kept]


def show(rows: Sequence[Row]) -> None:
    ways = list(rows[0].values)
    columns = ["set", "metric", *ways, "95 % interval", "reference", "whose", "ms", "characters"]
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    for row in rows:
        means = " | ".join(f"{mean:.3f}" for mean in row.means.values())
        between = "–".join(f"{edge:.3f}" for edge in interval(row.values[ways[-1]]))
        whose = f"{row.reference.figure} | {row.reference.source}"
        cost = f"{row.milliseconds:.1f} | {row.characters:,.0f}"
        print(f"| {row.set} | {row.metric} | {means} | {between} | {whose} | {cost} |")


def show_gains(rows: Sequence[Row]) -> None:
    """Compare each way with the first, by the first metric of each set."""
    main = list({row.set: row for row in reversed(rows)}.values())[::-1]
    first, *others = main[0].values
    print(f"\nPoints over {first} ({statistics.fmean(row.means[first] for row in main):.3f} on the mean):\n")
    print("| way | mean of sets |" + "".join(f" {row.set} |" for row in main) + " worse |")
    print("|---" * (len(main) + 3) + "|")
    for way in others:
        gains = {row.set: row.gains(way) for row in main}
        worse = [name for name, values in gains.items() if interval(values)[1] < 0]
        cells = "".join(f" {statistics.fmean(values):+.1f} |" for values in gains.values())
        mean = statistics.fmean(map(statistics.fmean, gains.values()))
        print(f"| {way} | {mean:+.1f} |{cells} {', '.join(worse) or 'none'} |")


def main() -> None:
    args, config = _arguments()
    rows: list[Row] = []
    models = [model for model in ("deep", "static", "none") if any(_model(way) == model for way in args.ways)]
    with place(args.cache) as folder:
        for name in args.sets:
            print(f"{name} …", file=sys.stderr)
            questions = some(SETS[name].questions(args.data / name), args.limit_queries)
            embedded = override(config, {"embed": {"model": models[0]}})
            index(name, args.data, folder, embedded, args.library).close()
            rows += measure(name, url_of(name, folder, args.library), questions, config, args.ways)
    show(rows)
    if len(args.ways) > 1:
        show_gains(rows)


def _model(way: str) -> str:
    return str(WAYS[way]["embed"]["model"])


def _arguments() -> tuple[argparse.Namespace, Config]:
    parser = arguments(__doc__ or "")
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", dest="sets")
    parser.add_argument("--way", nargs="+", choices=WAYS, default=USUAL, metavar="WAY", dest="ways")
    parser.add_argument("--limit-queries", type=int, metavar="N", help="ask only so many of each set")
    parser.add_argument("--library", metavar="URL", help="of the libraries, {set} being the set's name")
    args, config = parsed(parser)
    if args.limit_queries is not None and args.limit_queries < 1:
        parser.error("--limit-queries must be at least 1")
    if args.library and "{set}" not in args.library and len(args.sets) > 1:
        parser.error("--library needs {set}, or all sets would share one library")
    args.ways = [way for way in WAYS if way in args.ways]
    return args, config


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser of what the benchmarks of finding have in common."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=layout)
    beside = Path(__file__).parents[2] / "shared" / "eval"
    parser.add_argument("--data", type=Path, default=beside, help="the folder with the sets")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep the libraries here")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="repeatable")
    return parser


def parsed(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, Config]:
    """The arguments, and the settings that they make."""
    args = parser.parse_args()
    if not args.data.is_dir():
        parser.error(f"no sets in {args.data}; name their folder with --data")
    try:
        return args, reduce(with_setting, args.setting, DEFAULT)
    except SettingError as problem:
        parser.error(str(problem))


if __name__ == "__main__":
    main()
