"""Searching a library against its own database and another engine, in one run on the same chunks.

    pip install -e . tantivy
    python -m bench.search [--chunks 10000 100000] [--data FOLDER] [--queries N]

The libraries are those of bench/index.py. The queries are drawn, as a seed decides, from sentences of
the documents in them:

one rare word      the rarest word of a sentence
three mixed words  the rarest, the middle and the commonest of its words that are no stop words
seven words        seven in a row, stop words and all
a phrase           three in a row, in quotes

Each query is asked in three rounds; its median counts. Times are milliseconds of processor time:

hybrid             ten results by words and by instant meaning: parsed, found, merged, cited, with snippets
words              the same by words alone
store.search_words the hundred chunks that this begins with
raw FTS5           a plain OR of all terms in a full-text table, bm25 of the same weights, a hundred rows
tantivy            the same terms, fields and weights, a hundred documents

overlap@10 is the share of the ten best of raw FTS5 that are among the ten best of search_words, without what
adjacent words add. Copies of a document may score alike; the order of the chunks decides in both.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bench import index
from quire import analyze, query
from quire.library import Library
from quire.stores import Filters, matching
from quire.stores.matching import COLUMN_WEIGHTS
from quire.stores.sqlite import SqliteStore

CANDIDATES = 100
ROUNDS = 3
STARTS = 7  # of a process; the fastest counts
FILTERS = Filters(None, ("document", "external"))  # as library.search has them
_SENTENCE = re.compile(r"[A-Z][a-z]+(?:,? [A-Za-z]+){8,24}\.")
Ask = Callable[[str], object]


# --------------------------------------------------------------------------------------- the queries


def queries(store: SqliteStore, corpus: index.Corpus, count: int) -> dict[str, list[str]]:
    """So many queries of each form."""
    draw = random.Random(index.SEED)
    sentences = draw.sample(sorted(_sentences(corpus)), count)
    return {
        "one rare word": [_by_rarity(store, words)[0] for words in sentences],
        "three mixed words": [" ".join(_mixed(_by_rarity(store, words))) for words in sentences],
        "seven words": [" ".join(_run(draw, words, 7)) for words in sentences],
        "a phrase": [f'"{" ".join(_run(draw, words, 3))}"' for words in sentences],
    }


def _sentences(corpus: index.Corpus) -> set[tuple[str, ...]]:
    """Sentences of nothing but words, with three or more that are no stop words."""
    found: set[tuple[str, ...]] = set()
    for batch in corpus.batches():
        for _, prepared in batch:
            found.update(map(_words, _SENTENCE.findall(prepared.source.decode())))
    return {words for words in found if len(set(map(_term, words)) - analyze.STOP) >= 3}


def _words(sentence: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[A-Za-z]+", sentence))


def _term(word: str) -> str:
    return analyze.terms(word)[0]


def _by_rarity(store: SqliteStore, words: tuple[str, ...]) -> list[str]:
    """The words that are no stop words, each term once, the rarest first."""
    by_term = {_term(word): word for word in words}
    counts = store.term_counts(by_term.keys() - analyze.STOP)
    return [by_term[term] for term in sorted(counts, key=lambda term: (counts[term], term))]


def _mixed(words: list[str]) -> tuple[str, str, str]:
    return words[0], words[len(words) // 2], words[-1]


def _run(draw: random.Random, words: tuple[str, ...], size: int) -> tuple[str, ...]:
    start = draw.randrange(len(words) - size + 1)
    return words[start : start + size]


# ------------------------------------------------------------------------------------ ways to answer


def ways(
    library: Library, store: SqliteStore, fts5: sqlite3.Connection, place: Path | None
) -> dict[str, Ask]:
    """Each way to answer a query; tantivy only where there is an index of it."""
    found: dict[str, Ask] = {
        "hybrid": lambda text: library.search(text, limit=10),
        "words": lambda text: library.search(text, limit=10, mode="keyword"),
        "store.search_words": lambda text: search_words(store, text),
        "raw FTS5": lambda text: raw_fts5(fts5, text),
    }
    return found | ({"tantivy": _tantivy(place)} if place else {})


def search_words(store: SqliteStore, text: str) -> list[int]:
    """The chunks that Quire finds for a query."""
    return [hit.chunk for hit in store.search_words(query.parse(text), FILTERS, CANDIDATES)]


def raw_fts5(db: sqlite3.Connection, text: str) -> list[int]:
    """The chunks that hold any of the terms, or the phrase."""
    rank = f"bm25(words, {', '.join(map(str, COLUMN_WEIGHTS))})"
    rows = db.execute(
        f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY {rank}, rowid LIMIT {CANDIDATES}",
        (_expression(text, " OR "),),
    )
    return [row for (row,) in rows]


def _expression(text: str, either: str) -> str:
    """A query's terms, each in quotes; those of a phrase together."""
    terms = analyze.terms(text)
    if text.startswith('"'):
        return f'"{" ".join(terms)}"'
    return either.join(f'"{term}"' for term in dict.fromkeys(terms))


def _tantivy(place: Path) -> Ask:
    opened: Any = import_module("tantivy").Index.open(str(place))
    searcher, names = opened.searcher(), ["title", "trail", "body"]
    boosts = dict(zip(names, COLUMN_WEIGHTS, strict=True))

    def ask(text: str) -> object:
        parsed = opened.parse_query(_expression(text, " "), names, field_boosts=boosts)
        # Counting every match would keep it from passing over those that cannot be among the best.
        return searcher.search(parsed, CANDIDATES, count=False).hits

    return ask


# --------------------------------------------------------------------------------------- the figures


class Row(NamedTuple):
    """One line of the table."""

    form: str
    way: str
    milliseconds: list[float]  # of each query
    overlap: float | None


def measure(
    asked: dict[str, list[str]], answers: dict[str, Ask], store: SqliteStore, fts5: sqlite3.Connection
) -> Iterator[Row]:
    """Each form in each way."""
    for form, texts in asked.items():
        for way, ask in answers.items():
            shared = _overlap(store, fts5, texts) if way == "store.search_words" else None
            yield Row(form, way, _times(ask, texts), shared)


def _times(ask: Ask, texts: list[str]) -> list[float]:
    """Milliseconds of each query. Rounds go through all of them, so that none is warmed by itself."""
    rounds = [[_milliseconds(ask, text) for text in texts] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def _milliseconds(ask: Ask, text: str) -> float:
    started = time.process_time()
    ask(text)
    return (time.process_time() - started) * 1000


def _overlap(store: SqliteStore, fts5: sqlite3.Connection, texts: list[str]) -> float:
    shares = []
    for text in texts:
        best = set(raw_fts5(fts5, text)[:10])
        if best:
            shares.append(len(best.intersection(_without_pairs(store, text)[:10])) / len(best))
    return statistics.mean(shares)


def _without_pairs(store: SqliteStore, text: str) -> list[int]:
    """The chunks that match the words of a query, in order."""
    match = matching.word_query(query.parse(text), analyze.STOP)
    with store.reading():
        return list(store._keywords().best(match, None, CANDIDATES))


def show(rows: Iterator[Row]) -> None:
    print("| query | way | p50 | p95 | max | overlap@10 |")
    print("|---" * 6 + "|")
    for form, way, times, overlap in rows:
        p95 = statistics.quantiles(times, n=20, method="inclusive")[-1]
        shared = "–" if overlap is None else f"{overlap:.3f}"
        print(
            f"| {form} | {way} | {statistics.median(times):.2f} | {p95:.2f} | {max(times):.2f} | {shared} |"
        )


# ------------------------------------------------------------------------------------ from the start


def show_cold(path: Path, text: str) -> None:
    """What a search costs from the start of a process."""
    search = [sys.executable, "-c", "from quire.surfaces.cli import main; main()", "search"]
    if _code([*search, "--help"], path):
        print("\nfrom process start: the command line has no search yet")
        return
    bare = _start([sys.executable, "-c", "import sqlite3"], path)
    hybrid, words = (_start([*search, text, *more], path) for more in ([], ["--mode", "keyword"]))
    print(
        f"\nfrom process start, processor time: quire search {hybrid:.0f} ms,"
        f" with --mode keyword {words:.0f} ms, python -c 'import sqlite3' {bare:.0f} ms"
    )


def _start(command: list[str], library: Path) -> float:
    """Milliseconds of processor time that a command takes at least."""
    if code := _code(command, library):
        raise SystemExit(f"exit code {code} from: {' '.join(command)}")
    times = []
    for _ in range(STARTS):
        before = index.cpu_seconds()
        _code(command, library)
        times.append(index.cpu_seconds() - before)
    return 1000 * min(times)


def _code(command: list[str], library: Path) -> int:
    environ = os.environ | {"QUIRE_LIBRARY": str(library)}
    return subprocess.run(command, env=environ, capture_output=True, check=False).returncode


# ---------------------------------------------------------------------------------------------------


def run(data: Path, place: Path, chunks: int, count: int) -> None:
    """Build what is searched, search it, print."""
    corpus = index.make_corpus(data, place, chunks)
    peer = _built_tantivy(corpus, place / "tantivy")
    (place / "library").mkdir()
    index.add_folder(corpus, place / "library", index.MEANING)
    path = place / "library" / "library.db"
    with (
        Library.open(path, config=index.MEANING) as library,
        closing(sqlite3.connect(place / "fts5.db")) as fts5,
    ):
        store = library.store
        assert isinstance(store, SqliteStore)
        _fill(fts5, store)
        asked = queries(store, corpus, count)
        print(f"\n{corpus.chunks:,} chunks of {corpus.documents:,} documents, {count} queries of each form\n")
        show(measure(asked, ways(library, store, fts5, peer), store, fts5))
        show_cold(path, asked["three mixed words"][0])


def _fill(fts5: sqlite3.Connection, store: SqliteStore) -> None:
    """Put the terms of a library's chunks into a full-text table."""
    fts5.execute(index.FTS5)
    add = "INSERT INTO words (rowid, title, trail, body) VALUES (?, ?, ?, ?)"
    for (row,) in store.db.execute("SELECT seq FROM documents ORDER BY seq").fetchall():
        fts5.executemany(add, store._words_of(row))
    fts5.commit()


def _built_tantivy(corpus: index.Corpus, place: Path) -> Path | None:
    place.mkdir()
    try:
        index.tantivy_index(corpus, place)
    except ImportError as problem:
        print(f"not installed: {problem.name}", file=sys.stderr)
        return None
    return place


def main() -> None:
    parser = index.arguments(__doc__)
    parser.add_argument("--queries", type=int, default=50, help="of each form")
    args = index.parse(parser)
    for chunks in args.chunks:
        with tempfile.TemporaryDirectory() as folder:
            run(args.data, Path(folder), chunks, args.queries)


if __name__ == "__main__":
    main()
