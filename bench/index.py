"""Indexing, end to end, against the bare database and other engines, in one run on the same chunks.

    pip install -e . tantivy lancedb llama-index-retrievers-bm25
    python -m bench.index [--chunks 10000 100000] [--data FOLDER] [--repeat N]

The documents are those of the sets, in an order that a seed decides, until there are enough chunks.
Copy 0 is as it is; in every further copy about 2 % of the words of each document are other words of
its set, drawn as often as they occur there. All contenders get the same terms of the same chunks:

Library.add       the folder: read, parse, cut, analyse and write
… with meaning    the same with the instant vectors (embed.model = static)
prepare           the same without reading and writing, in one process
store.write       the same documents, already prepared, in the batches of the row below
bare FTS5         executemany of the terms alone, a transaction for each 256 documents, WAL, synchronous=FULL
bare, all rows    executemany of all that a library holds into its own schema, likewise
tantivy           the terms alone, with positions, until its one commit returns
lancedb           a table of the terms, added in the same batches, then its full-text index of each column,
                  with positions
llama_index       nodes of the terms, joined, in its document store and its BM25 retriever, both built in
                  memory and saved; without positions, and one text where the others have three

What is not Library.add gets its rows ready-made: only the database is on the clock, closing included. CPU
seconds are those of all processes, what a contender does off the clock included.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import re
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from quire.address import id_of, of_document
from quire.config import DEFAULT, Config, override
from quire.document import Document
from quire.ingest.prepare import prepare
from quire.library import Library
from quire.stores import MAX_CHUNKS, ChunkRow, Prepared, SectionRow
from quire.stores.checks import row_check
from quire.stores.ids import chunk_keys, section_keys
from quire.stores.sqlite import SqliteStore

WORDS = override(DEFAULT, {"embed": {"model": "none"}})
MEANING = override(DEFAULT, {"embed": {"model": "static"}})
SEED = 20
SALT = 0.02  # the share of words that are others in a copy
BATCH = 256  # documents in a transaction of the bare database
COLLECTION = "bench"
SETS = {
    "kubernetes": "docs_links_kubernetes/docs/**/*.md",
    "rust": "docs_links_rust/docs/**/*.md",
    "llms": "large_inputs/llms/*.txt",
}
COLUMNS = ("title", "trail", "body")
FTS5 = "CREATE VIRTUAL TABLE words USING fts5 (title, trail, body, content = '', tokenize = 'ascii')"
_WORD = re.compile(r"([^\W\d_]{2,})")
Load = list[tuple[str, list[tuple[Any, ...]]]]  # statements, each with its rows


# ------------------------------------------------------------------------------------- the documents


class Original(NamedTuple):
    """A document of a set, cut at its words: every second piece is one."""

    set: str
    path: str
    pieces: list[str]

    def copy(self, number: int, words: list[str]) -> str:
        """The text of a copy; words of the set take the place of some of its own."""
        if not number:
            return "".join(self.pieces)
        draw, pieces = random.Random(f"{SEED} {number} {self.path}"), self.pieces[:]
        places = range(1, len(pieces), 2)
        for place in draw.sample(places, round(SALT * len(places))):
            pieces[place] = draw.choice(words)
        return "".join(pieces)


class Originals:
    """The documents of the sets, in an order that the seed decides."""

    def __init__(self, data: Path) -> None:
        self.documents = [
            Original(name, f"{name}/{path.relative_to(data)}", _WORD.split(path.read_bytes().decode()))
            for name, pattern in SETS.items()
            for path in sorted(data.glob(pattern))
        ]
        random.Random(SEED).shuffle(self.documents)

    @cached_property
    def words(self) -> dict[str, list[str]]:
        """The words of each set, as often as they occur."""
        return {name: [w for d in self.documents if d.set == name for w in d.pieces[1::2]] for name in SETS}

    def texts(self) -> Iterator[tuple[str, str]]:
        """Path and text of every document of every copy, without end."""
        number = 0
        while True:
            for document in self.documents:
                yield f"copy{number}/{document.path}", document.copy(number, self.words[document.set])
            number += 1


@dataclass(slots=True)
class Corpus:
    """A folder of documents, and beside it what Quire makes of them."""

    folder: Path
    prepared: Path
    documents: int = 0
    chunks: int = 0
    bytes: int = 0
    seconds: float = 0.0  # that preparing them took in one process

    def batches(self) -> Iterator[list[tuple[int, Prepared]]]:
        """The prepared documents with their rows, some at a time: a million chunks do not fit in memory."""
        row = 1
        with self.prepared.open("rb") as file:
            while batch := _next_batch(file):
                yield list(enumerate(batch, row))
                row += len(batch)


def _next_batch(file: Any) -> list[Prepared]:
    try:
        batch: list[Prepared] = pickle.load(file)
    except EOFError:
        return []
    return batch


def make_corpus(data: Path, place: Path, chunks: int) -> Corpus:
    """Write documents under a place until they have so many chunks."""
    corpus = Corpus(place / "documents", place / "prepared")
    texts, batch = Originals(data).texts(), list[Prepared]()
    with corpus.prepared.open("wb") as file:
        while corpus.chunks < chunks:
            batch.append(_add(corpus, *next(texts)))
            if len(batch) == BATCH or corpus.chunks >= chunks:
                pickle.dump(batch, file, pickle.HIGHEST_PROTOCOL)
                batch = []
    return corpus


def _add(corpus: Corpus, path: str, text: str) -> Prepared:
    """Write a document and prepare it as indexing the folder will."""
    file, source = corpus.folder / path, text.encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(source)
    mtime = file.stat().st_mtime_ns
    started = time.perf_counter()
    document = Document.from_bytes(source, path, collection=COLLECTION)
    prepared = prepare(document, WORDS, root=corpus.folder.as_posix(), mtime_ns=mtime)
    corpus.seconds += time.perf_counter() - started
    corpus.documents += 1
    corpus.chunks += len(prepared.chunks)
    corpus.bytes += len(source)
    return prepared


# ----------------------------------------------------------------------------------- the contenders


@dataclass(slots=True)
class Clock:
    """Adds up the seconds of what is done with it."""

    seconds: float = 0.0
    _started: float = field(default=0.0)

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._started


def add_folder(corpus: Corpus, place: Path, config: Config = WORDS) -> float:
    """Seconds of Library.add."""
    clock = Clock()
    with clock, Library.open(place / "library.db", create=True, config=config) as library:
        report = library.add(corpus.folder, collection=COLLECTION)
    if report.chunks != corpus.chunks:
        raise SystemExit(f"not the same chunks: {report.chunks:,} indexed, {corpus.chunks:,} prepared")
    return clock.seconds


def write_prepared(corpus: Corpus, place: Path) -> float:
    """Seconds of store.write."""
    clock, store = Clock(), SqliteStore(str(place / "library.db"), create=True)
    for batch in corpus.batches():
        documents = [prepared for _, prepared in batch]
        with clock:
            store.write(documents)
    with clock:
        store.close()
    return clock.seconds


def bare_fts5(corpus: Corpus, place: Path) -> float:
    """Seconds of inserting the terms."""
    db = _connect(place / "words.db")
    db.execute(FTS5)
    return _insert(db, ([_words(batch)] for batch in corpus.batches()))


def bare_rows(corpus: Corpus, place: Path) -> float:
    """Seconds of inserting all rows into the schema of a library."""
    path = place / "library.db"
    SqliteStore(str(path), create=True).close()
    db = _connect(path)
    db.execute(FTS5)
    return _insert(db, map(_all_rows, corpus.batches()))


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def _insert(db: sqlite3.Connection, loads: Iterable[Load]) -> float:
    clock = Clock()
    for load in loads:
        with clock:
            db.execute("BEGIN IMMEDIATE")
            for statement, rows in load:
                db.executemany(statement, rows)
            db.execute("COMMIT")
    with clock:
        db.close()
    return clock.seconds


def _words(batch: list[tuple[int, Prepared]]) -> tuple[str, list[tuple[Any, ...]]]:
    rows = [
        (row * MAX_CHUNKS + index, *words)
        for row, prepared in batch
        for index, words in enumerate(prepared.words)
    ]
    return "INSERT INTO words (rowid, title, trail, body) VALUES (?, ?, ?, ?)", rows


def _all_rows(batch: list[tuple[int, Prepared]]) -> Load:
    sections = [
        (row, *section, key, row_check(row, *section))
        for row, new in batch
        for section, key in zip(new.sections, section_keys(new), strict=True)
    ]
    chunks = [
        (row * MAX_CHUNKS + at, row, *chunk, key, row_check(row * MAX_CHUNKS + at, row, *chunk))
        for row, new in batch
        for at, (chunk, key) in enumerate(zip(new.chunks, chunk_keys(new), strict=True))
    ]
    return [
        _documents(batch),
        (f"INSERT INTO sections VALUES ({_marks(len(fields(SectionRow)) + 2)})", sections),
        (f"INSERT INTO chunks VALUES ({_marks(len(fields(ChunkRow)) + 2)})", chunks),
        _words(batch),
    ]


def _documents(batch: list[tuple[int, Prepared]]) -> tuple[str, list[tuple[Any, ...]]]:
    names = "collection kind path url root format title source checksum size mtime_ns made_by".split()
    columns = ["seq", "id", *names, "chunk_count", "created_at", "updated_at"]
    rows = [
        (
            row,
            id_of(new.kind, of_document(new.collection, new.path)),
            *(getattr(new, name) for name in names),
            len(new.chunks),
            0,
            0,
        )
        for row, new in batch
    ]
    return f"INSERT INTO documents ({', '.join(columns)}) VALUES ({_marks(len(columns))})", rows


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def tantivy_index(corpus: Corpus, place: Path) -> float:
    """Seconds until tantivy has committed the terms; raises ImportError where it is not installed."""
    tantivy: Any = import_module("tantivy")
    index = tantivy.Index(_tantivy_schema(tantivy), path=str(place))
    writer, clock = index.writer(heap_size=256_000_000), Clock()
    for batch in corpus.batches():
        _, rows = _words(batch)
        with clock:
            for row, title, trail, body in rows:
                writer.add_document(tantivy.Document(row=row, title=title, trail=trail, body=body))
    with clock:
        writer.commit()
    writer.wait_merging_threads()  # off the clock: what is committed is found before it is merged
    return clock.seconds


def _tantivy_schema(tantivy: Any) -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("row", stored=True)
    for name in COLUMNS:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="position")
    return builder.build()


def lancedb_index(corpus: Corpus, place: Path) -> float:
    """Seconds until LanceDB holds the terms and has indexed them; raises ImportError likewise."""
    lancedb: Any = import_module("lancedb")
    arrow: Any = import_module("pyarrow")
    columns = arrow.schema([("row", arrow.int64()), *((name, arrow.string()) for name in COLUMNS)])
    table, clock = lancedb.connect(str(place)).create_table("words", schema=columns), Clock()
    for batch in corpus.batches():
        _, rows = _words(batch)
        ready = arrow.table(list(zip(*rows, strict=True)), schema=columns) if rows else columns.empty_table()
        with clock:
            table.add(ready)
    with clock:
        _lancedb_full_text(table)
    return clock.seconds


def _lancedb_full_text(table: Any) -> None:
    """Index each column, one at a time as it demands; the terms are taken as they are."""
    for name in COLUMNS:
        table.create_fts_index(
            name,
            use_tantivy=False,
            with_position=True,
            base_tokenizer="whitespace",
            max_token_length=None,
            lower_case=False,
            stem=False,
            remove_stop_words=False,
            ascii_folding=False,
        )


def llama_index_bm25(corpus: Corpus, place: Path) -> float:
    """Seconds until LlamaIndex has saved its document store and BM25 index; raises ImportError likewise."""
    node: Any = import_module("llama_index.core.schema").TextNode
    bm25: Any = import_module("llama_index.retrievers.bm25").BM25Retriever
    store: Any = import_module("llama_index.core.storage.docstore").SimpleDocumentStore()
    clock = Clock()
    for batch in corpus.batches():
        _, rows = _words(batch)
        with clock:
            store.add_documents([node(id_=str(row), text=" ".join(words)) for row, *words in rows])
    with clock:
        # an empty list in place of a language: no stop words, as for the others
        retriever = bm25.from_defaults(docstore=store, language=[], skip_stemming=True, token_pattern=r"\S+")
        retriever.persist(str(place / "bm25"), show_progress=False)
        store.persist(str(place / "docstore.json"))
    return clock.seconds


CONTENDERS: dict[str, Callable[[Corpus, Path], float]] = {
    "quire Library.add": add_folder,
    "quire Library.add with meaning": partial(add_folder, config=MEANING),
    "quire store.write": write_prepared,
    "bare FTS5": bare_fts5,
    "bare, all rows": bare_rows,
    "tantivy": tantivy_index,
    "lancedb": lancedb_index,
    "llama_index docstore + BM25": llama_index_bm25,
}


# ---------------------------------------------------------------------------------------- the table


class Row(NamedTuple):
    """One line of the table."""

    name: str
    seconds: float
    cpu: float  # seconds of all processes
    size: int  # bytes of its files; 0 where it makes none


def measure(corpus: Corpus, place: Path, repeat: int) -> list[Row]:
    """Every contender that is installed, the best of its rounds."""
    rows = [Row("quire prepare, one process", corpus.seconds, corpus.seconds, 0)]
    for name, contender in CONTENDERS.items():
        try:
            rounds = [_round(contender, corpus, place / "index") for _ in range(repeat)]
        except ImportError as problem:
            print(f"not installed: {problem.name}", file=sys.stderr)
        else:
            rows.append(Row(name, *min(rounds)))
            print(f"{name}: {rows[-1].seconds:.1f} s", file=sys.stderr)
    return rows


def _round(
    contender: Callable[[Corpus, Path], float], corpus: Corpus, place: Path
) -> tuple[float, float, int]:
    """Seconds, CPU seconds and bytes of one round, in a new folder."""
    place.mkdir()
    os.sync()  # what the round before left to be written is not this one's work
    before = cpu_seconds()
    try:
        seconds = contender(corpus, place)
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        return seconds, cpu_seconds() - before, size
    finally:
        shutil.rmtree(place)


def cpu_seconds() -> float:
    """The processor time that this process and those that it has waited for have taken."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def show(corpus: Corpus, rows: list[Row]) -> None:
    """A table, with the time of each against the bare full-text table."""
    bare = next(row.seconds for row in rows if row.name == "bare FTS5")
    print(f"\n{corpus.chunks:,} chunks of {corpus.documents:,} documents, {corpus.bytes / 1e6:.1f} MB\n")
    print("| what | seconds | CPU seconds | chunks/s | MB/s | × time of bare FTS5 | bytes per source byte |")
    print("|---" * 7 + "|")
    for name, seconds, cpu, size in rows:
        speed = f"{corpus.chunks / seconds:,.0f} | {corpus.bytes / seconds / 1e6:.1f}"
        share = f"{size / corpus.bytes:.2f}" if size else "–"
        times = f"{seconds:.2f} | {cpu:.2f} | {speed} | {seconds / bare:.2f}"
        print(f"| {name} | {times} | {share} |", flush=True)


def arguments(about: str | None) -> argparse.ArgumentParser:
    """What the benchmarks of a library have in common."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=about, formatter_class=layout)
    beside = Path(__file__).parents[2] / "shared" / "eval"
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000, 100_000], help="sizes of libraries")
    parser.add_argument("--data", type=Path, default=beside, help="the folder with the document sets")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments; a folder without documents is an error."""
    args = parser.parse_args()
    if not any(path for pattern in SETS.values() for path in args.data.glob(pattern)):
        parser.error(f"no document sets in {args.data}; name their folder with --data")
    return args


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the best one counts")
    args = parse(parser)
    for chunks in args.chunks:
        with tempfile.TemporaryDirectory() as folder:
            corpus = make_corpus(args.data, Path(folder), chunks)
            show(corpus, measure(corpus, Path(folder), args.repeat))


if __name__ == "__main__":
    main()
