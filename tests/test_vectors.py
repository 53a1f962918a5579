"""Vectors in a library: what is nearest, what an edit keeps, what is remembered, what is checked."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from quire import analyze, embedding
from quire.address import id_of, of_document
from quire.config import DEFAULT, override
from quire.document import Document
from quire.embed.static import Static
from quire.embedding import Embedded
from quire.ingest.prepare import prepare
from quire.library import Library
from quire.result import Hit
from quire.stores import MAX_CHUNKS, Filters, Model, Prepared, Store, Unembedded, migrate, open_store
from quire.stores.postgres import PostgresStore
from quire.stores.postgres import vectors as postgres_vectors
from quire.stores.sqlite import SqliteStore
from quire.stores.sqlite import vectors as index
from quire.stores.sqlite.file import APPLICATION_ID
from tests import postgres
from tests.postgres import DATABASES
from tests.test_embedding import Tiny
from tests.words import rename

if TYPE_CHECKING:
    from quire.embed.base import Vectors

NODES = override(DEFAULT, {"chunk": {"strategy": "nodes"}})  # one chunk for each section
EVERYTHING = Filters()
FEW = 12  # examples for PostgreSQL
INSTANT = Static()
NOBODY = Model(0, "nobody", 1, active=False)  # has no vectors: every chunk is unembedded to it


def prepared(path: str, *bodies: str, collection: str = "c") -> Prepared:
    """A document with a section for each text, named by its first word."""
    sections = "".join(f"## {body.split()[0]}\n\n{body}\n\n" for body in bodies)
    document = Document.from_text(f"# Title\n\n{sections}", path, collection=collection)
    return prepare(document, NODES)


def texts_of(store: Store) -> dict[int, str]:
    """What is embedded of each chunk."""
    return {chunk.chunk: chunk.text for chunk in store.unembedded(NOBODY, 100_000)}


def embed(store: Store, tiny: Tiny) -> Embedded:
    return embedding.embed(store, tiny)


def remembered(store: Store) -> int:
    """How many vectors are kept of texts that are gone. Instant ones are not kept, but written over."""
    if isinstance(store, SqliteStore):
        instant = ", ".join(str(model.id) for model in store.models() if model.is_instant)
        of_chunks = "SELECT count(*) - count(chunk) FROM vectors WHERE slot >> 52 = 0"
        return int(store.db.execute(f"{of_chunks} AND slot >> 32 NOT IN ({instant})").fetchone()[0])
    assert isinstance(store, PostgresStore)
    return int(store.db.value("SELECT count(*) FROM quire.remembered"))


def row_of(store: Store, path: str) -> int:
    (row,) = (row.seq for row in store.documents(EVERYTHING) if row.path == path)
    return row


def nearest(store: Store, tiny: Tiny, text: str, limit: int = 1) -> list[Hit]:
    return store.search_vectors(store.models()[0], tiny.embed_query(text), EVERYTHING, limit)


def assert_own_vectors(store: Store, tiny: Tiny) -> None:
    """Every chunk has one vector, and it is that of its text."""
    model, texts = store.models()[0], texts_of(store)
    assert store.check() == []
    assert store.unembedded(model, 10) == []
    assert store.count_unembedded(model) == 0
    assert len(store.vectors_of(model, texts)) == store.counts().embedded == len(texts)
    for chunk, text in texts.items():
        assert store.cosines(model, tiny.embed_query(text), [chunk])[chunk] == pytest.approx(1, abs=0.02)
    assert_own_means(store, model)


def assert_own_means(store: Store, model: Model) -> None:
    """Every document of several chunks, and no other, has a vector, and it is their mean."""
    of_document: dict[int, list[Vectors]] = {}
    for chunk, vector in store.vectors_of(model, texts_of(store)).items():
        of_document.setdefault(chunk // MAX_CHUNKS, []).append(vector)
    several = {row: np.sum(vectors, axis=0) for row, vectors in of_document.items() if len(vectors) > 1}
    for row, mean in several.items():
        found = dict(store.search_documents(model, mean / np.linalg.norm(mean), EVERYTHING, 100))
        assert found.keys() == several.keys()
        assert found[row] == pytest.approx(1, abs=0.02)


def assert_instant_vectors(store: Store) -> None:
    """Every chunk has the instant vector of its text, and every document of several chunks their mean."""
    texts = texts_of(store)
    vectors = dict(zip(texts, INSTANT.embed_documents(list(texts.values())), strict=True))
    for model in (model for model in store.models() if model.is_instant):
        assert (model.name, model.active, store.count_unembedded(model)) == ("static", True, 0)
        for chunk, vector in vectors.items():
            assert store.cosines(model, vector, [chunk])[chunk] == pytest.approx(1, abs=0.005)
        assert_own_means(store, model)
    assert store.counts().instant == len(texts)


@pytest.fixture
def store(library_url: str) -> Iterator[Store]:
    with closing(open_store(library_url, create=True)) as store:
        yield store


@pytest.fixture
def tiny() -> Tiny:
    return Tiny()


# ---------------------------------------------------------------------------------------------- searching


@pytest.fixture(scope="module", params=DATABASES)
def large(request: pytest.FixtureRequest) -> Iterator[Store]:
    """3,000 chunks, of which 30 are in a collection of their own."""
    url = ":memory:" if request.param == "sqlite" else postgres.borrow()
    with closing(open_store(url, create=True)) as store:
        write_large(store)
        yield store
    if request.param != "sqlite":
        postgres.give_back(url)


def write_large(store: Store) -> None:
    store.write([prepared("big.md", *(f"w{number}" for number in range(2970)), collection="big")])
    store.write([prepared("small.md", *(f"w{number}" for number in range(30)), collection="small")])


_NUMBERS = itertools.count()


def stored(store: Store, vectors: Vectors) -> tuple[Model, list[Unembedded]]:
    """Vectors for the first chunks of the large store, under a model of their own."""
    model = store.model(f"model{next(_NUMBERS)}", vectors.shape[1])
    chunks = store.unembedded(model, len(vectors))
    store.write_vectors(model, chunks, vectors)
    return model, chunks


def units(vectors: Any) -> Vectors:
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)
    return unit


def clustered(count: int, dimension: int, seed: int) -> Vectors:
    """Vectors as models make them: in heaps."""
    chance = np.random.default_rng(seed)
    heaps = chance.normal(size=(max(1, count // 100), dimension))
    noise = 0.7 * chance.normal(size=(count, dimension))
    return units(heaps[chance.integers(0, len(heaps), count)] + noise)


def near_some(vectors: Vectors, count: int) -> Vectors:
    """Questions, each not far from a vector."""
    chance = np.random.default_rng(7)
    asked = vectors[chance.integers(0, len(vectors), count)]
    return units(asked + 0.03 * chance.normal(size=asked.shape))


def test_ten_of_thousands_are_those_that_brute_force_finds(large: Store) -> None:
    """Issue: recall@10 of the signatures and their rescoring, against exact float32 cosines."""
    vectors = clustered(3000, 384, seed=1)
    model, chunks = stored(large, vectors)
    found = 0
    for question in near_some(vectors, 25):
        best = {chunks[place].chunk for place in np.argsort(-(vectors @ question))[:10]}
        found += len(best & {hit.chunk for hit in large.search_vectors(model, question, EVERYTHING, 10)})
    assert found / 250 >= 0.95


def test_fewer_than_are_rescored_are_ranked_exactly(large: Store) -> None:
    """Issue: any dimension, a multiple of 64 or not; no score is off by more than eight bits lose."""

    @effort(max_examples=60 if isinstance(large, SqliteStore) else FEW)
    @given(
        st.integers(1, 60),
        st.one_of(st.sampled_from([1, 2, 63, 64, 65, 100, 384]), st.integers(1, 200)),
        st.integers(0, 2**32),
        st.integers(1, 70),
    )
    def holds(count: int, dimension: int, seed: int, limit: int) -> None:
        assert_ranked_exactly(large, count, dimension, seed, limit)

    holds()


def assert_ranked_exactly(store: Store, count: int, dimension: int, seed: int, limit: int) -> None:
    vectors = clustered(count, dimension, seed)
    model, chunks = stored(store, vectors)
    question = near_some(vectors, 1)[0]
    cosines = dict(zip((chunk.chunk for chunk in chunks), (vectors @ question).tolist(), strict=True))
    lost = float(np.abs(vectors).max() / 254 * np.abs(question).sum()) + 1e-5
    hits = store.search_vectors(model, question, EVERYTHING, limit)
    assert len({hit.chunk for hit in hits}) == len(hits) == min(limit, count)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.chunk))
    assert all(hit.score == pytest.approx(cosines[hit.chunk], abs=lost) for hit in hits)
    left = sorted(cosines.values(), reverse=True)[len(hits) - 1]
    assert all(cosines[hit.chunk] >= left - 2 * lost for hit in hits)
    assert store.cosines(model, question, cosines) == pytest.approx(cosines, abs=lost)


def test_a_filter_applies_before_the_cut(large: Store) -> None:
    """D rulings: a collection of one chunk in a hundred gets its own ten best, however far they are."""
    vectors = clustered(3000, 96, seed=2)
    is_small = [chunk.document == row_of(large, "small.md") for chunk in large.unembedded(NOBODY, 3000)]
    vectors[is_small] *= -1
    model, chunks = stored(large, vectors)
    small = {chunk.chunk: vectors[place] for place, chunk in enumerate(chunks) if is_small[place]}
    for question in near_some(vectors[~np.array(is_small)], 5):
        hits = large.search_vectors(model, question, Filters("small"), 10)
        best = sorted(small, key=lambda chunk: -float(small[chunk] @ question))[:10]
        assert len({hit.chunk for hit in hits} & set(best)) >= 9
        assert len(hits) == 10
        assert {hit.document for hit in hits} == {row_of(large, "small.md")}
    assert large.search_vectors(model, question, Filters("absent"), 10) == []
    assert len(large.search_vectors(model, question, Filters(not_paths=("big",)), 100)) == 30


def test_hits_name_their_document_and_section(store: Store, tiny: Tiny) -> None:
    """A hit is a chunk with a score, found by meaning."""
    store.write([prepared("a.md", "one fish", "two birds"), prepared("b.md", "red cars")])
    embed(store, tiny)
    (hit,) = nearest(store, tiny, "Title birds birds two")
    assert (hit.document, hit.chunk - hit.document * MAX_CHUNKS) == (row_of(store, "a.md"), 1)
    assert hit.match == "semantic"
    assert store.section(hit.document, hit.section).title == "two"


def test_a_document_is_found_as_a_whole(store: Store, tiny: Tiny) -> None:
    """Its vector is between those of its chunks; filters apply; a document of one chunk needs none."""
    store.write([prepared("a.md", "red apple", "red pear"), prepared("b.md", "blue sky", "blue sea")])
    store.write([prepared("c.md", "red apple", "red pear", collection="other"), prepared("d.md", "red")])
    embed(store, tiny)
    model, vector = store.models()[0], tiny.embed_query("red")
    rows = [row_of(store, path) for path in ("a.md", "c.md")]
    assert {row for row, _ in store.search_documents(model, vector, EVERYTHING, 2)} == set(rows)
    assert [row for row, _ in store.search_documents(model, vector, Filters("other"), 2)] == rows[1:]


def test_a_document_has_a_vector_once_all_its_chunks_have_one(store: Store, tiny: Tiny) -> None:
    store.write([prepared("a.md", "red apple", "red pear")])
    model = store.model(tiny.name, tiny.dimension)
    chunks = store.unembedded(model, 10)
    vectors = tiny.embed_documents([chunk.text for chunk in chunks])
    store.write_vectors(model, chunks[:1], vectors[:1])
    assert store.search_documents(model, vectors[0], EVERYTHING, 2) == []
    store.write_vectors(model, chunks[1:], vectors[1:])
    assert_own_means(store, model)
    store.write([prepared("a.md", "red apple")])  # the other chunk is gone, and nothing is embedded
    assert store.check() == []
    assert_own_means(store, model)


def test_a_store_without_vectors_finds_nothing(store: Store, tiny: Tiny) -> None:
    """Chunks come before their vectors."""
    store.write([prepared("a.md", "one fish")])
    model = store.model("tiny", 16)
    assert store.search_vectors(model, tiny.embed_query("fish"), EVERYTHING, 5) == []
    assert store.cosines(model, tiny.embed_query("fish"), texts_of(store)) == {}
    assert store.count_unembedded(model) == 1


# ----------------------------------------------------------------------------- edits, and what is remembered


def test_an_edit_keeps_the_vectors_of_what_it_left(store: Store, tiny: Tiny) -> None:
    """DESIGN §5: an edit re-embeds only what changed, even where it moved."""
    store.write([prepared("a.md", "one fish", "two birds", "three cars")])
    embed(store, tiny)
    store.write([prepared("a.md", "three cars", "four suns", "one fish")])
    model = store.models()[0]
    assert [chunk.text.split()[-1] for chunk in store.unembedded(model, 10)] == ["suns"]
    assert {hit.chunk % MAX_CHUNKS for hit in nearest(store, tiny, "two birds", 10)} == {0, 2}
    assert store.check() == []
    tiny.texts.clear()
    assert embed(store, tiny).embedded == 1
    assert len(tiny.texts) == 1
    assert_own_vectors(store, tiny)


def test_undoing_an_edit_embeds_nothing(store: Store, tiny: Tiny) -> None:
    """Issue: cache by (model, text hash)."""
    first, second = prepared("a.md", "one fish", "two birds"), prepared("a.md", "one fish", "two cars")
    for version in (first, second):
        store.write([version])
        embed(store, tiny)
    tiny.texts.clear()
    store.write([first])
    done = embed(store, tiny)
    assert (done.embedded, done.reused, tiny.texts) == (0, 1, [])
    assert_own_vectors(store, tiny)


def test_a_renamed_document_keeps_its_vectors(store: Store, tiny: Tiny) -> None:
    """SEEDS H: rename keeps embeddings; so does removing a document and adding it under another path."""
    store.write([prepared("a.md", "one fish", "two birds")])
    embed(store, tiny)
    tiny.texts.clear()
    rename(store, row_of(store, "a.md"), "moved.md")
    assert_own_vectors(store, tiny)
    store.remove([row_of(store, "moved.md")])
    assert nearest(store, tiny, "fish") == []
    assert store.check() == []
    store.write([prepared("again.md", "two birds", "one fish")])
    assert (embed(store, tiny).reused, tiny.texts) == (2, [])
    assert_own_vectors(store, tiny)


def test_the_same_text_is_embedded_once(store: Store, tiny: Tiny) -> None:
    """Issue: in one batch, in one document, and in documents that come later."""
    store.write([prepared("a.md", "one fish", "one fish"), prepared("b.md", "one fish")])
    assert embed(store, tiny).embedded == 3
    store.write([prepared("c.md", "one fish", "one fish")])
    assert embed(store, tiny).reused == 2
    assert len(tiny.texts) == 1
    assert len(nearest(store, tiny, "one fish", 10)) == 5
    assert_own_vectors(store, tiny)
    store.remove([row_of(store, "a.md"), row_of(store, "b.md")])
    assert len(nearest(store, tiny, "one fish", 10)) == 2
    assert_own_vectors(store, tiny)


BODIES = st.lists(st.sampled_from(["one a", "two b", "three c", "four d", "five e"]), min_size=1, max_size=5)
STEP = st.one_of(
    st.tuples(st.sampled_from(["a.md", "b.md"]), BODIES),
    st.sampled_from(["a.md", "b.md"]),  # is removed
    st.just(None),  # all is embedded
)


@contextmanager
def after(
    steps: Sequence[tuple[str, list[str]] | str | None], tiny: Tiny, database: str, most: int
) -> Iterator[Store]:
    """A store with a history, which was sound at each step and never remembered more than that."""
    url = ":memory:" if database == "sqlite" else postgres.borrow()
    with closing(open_store(url, create=True)) as store:
        go_through(store, steps, tiny, most)
        yield store
    if database != "sqlite":
        postgres.give_back(url)


def go_through(store: Store, steps: Sequence[Any], tiny: Tiny, most: int) -> None:
    peak = 0
    for step in [*steps, None]:
        if step is None:
            embed(store, tiny)
            embedded = store.counts().embedded
            peak = max(peak, embedded)
            assert embedded + remembered(store) <= peak + most
        elif isinstance(step, str):
            store.remove([row.seq for row in store.documents(EVERYTHING) if row.path == step])
        else:
            store.write([prepared(step[0], *step[1])])
        assert_instant_vectors(store)
        assert store.check() == []


@pytest.mark.parametrize("database", DATABASES)
def test_after_any_history_each_chunk_has_the_vector_of_its_text(database: str) -> None:
    """DESIGN §5: writing, removing and embedding in any order; no text is ever embedded twice.

    Instant vectors are there after each step, and are those of the texts that are there.
    """

    @effort(max_examples=40 if database == "sqlite" else FEW)
    @given(st.lists(STEP, max_size=10))
    def holds(steps: list[Any]) -> None:
        tiny = Tiny()
        with after(steps, tiny, database, index.REMEMBERED) as store:
            assert len(tiny.texts) == len(set(tiny.texts))
            assert_own_vectors(store, tiny)

    holds()


@pytest.mark.parametrize("database", DATABASES)
def test_what_is_remembered_is_bounded(database: str) -> None:
    """Issue: bounded; a vector without a chunk makes room for one that has one."""

    @effort(max_examples=40 if database == "sqlite" else FEW)
    @given(st.lists(STEP, max_size=10), st.integers(0, 2))
    def holds(steps: list[Any], most: int) -> None:
        tiny = Tiny()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(index, "REMEMBERED", most)
            patch.setattr(postgres_vectors, "REMEMBERED", most)
            with after(steps, tiny, database, most) as store:
                assert_own_vectors(store, tiny)

    holds()


def test_a_failed_write_leaves_the_vectors_as_they_were(store: Store, tiny: Tiny) -> None:
    """DESIGN §5: one transaction covers vectors and what is kept beside them."""
    store.write([prepared("a.md", "one fish", "two birds")])
    model = store.model("tiny", 16)
    chunks = store.unembedded(model, 10)
    with pytest.raises((IndexError, ValueError)):
        store.write_vectors(model, chunks, tiny.embed_documents(["only one"]))
    assert (store.counts().embedded, store.check(), store.count_unembedded(model)) == (0, [], 2)
    assert store.vectors_of(model, [chunk.chunk for chunk in chunks]) == {}


# --------------------------------------------------------------------------------------------- two at once


@pytest.fixture
def two(library_url: str) -> Iterator[tuple[Store, Store]]:
    """One library, opened twice."""
    with closing(open_store(library_url, create=True)) as one, closing(open_store(library_url)) as other:
        yield one, other


def test_another_reader_sees_vectors_come_and_go(two: tuple[Store, Store], tiny: Tiny) -> None:
    """Issue: arrays are cached in each process, and refreshed when the library's generation moves."""
    one, other = two
    one.write([prepared("a.md", "one fish"), prepared("b.md", "two birds")])
    embed(one, tiny)
    assert len(nearest(other, tiny, "one fish", 10)) == 2
    one.write([prepared("c.md", "one fish again")])
    embed(one, tiny)
    assert len(nearest(other, tiny, "one fish", 10)) == 3
    b, c = row_of(one, "b.md"), row_of(one, "c.md")
    one.remove([row_of(one, "a.md")])
    assert {hit.document for hit in nearest(other, tiny, "one fish", 10)} == {b, c}
    one.write([prepared("b.md", "three cars")])
    assert {hit.document for hit in nearest(other, tiny, "one fish", 10)} == {c}
    assert other.counts().embedded == 1


def test_a_reader_sees_one_moment(two: tuple[Store, Store], tiny: Tiny) -> None:
    """Store: everything read within `reading` is of one moment, vectors too."""
    one, other = two
    one.write([prepared("a.md", "one fish")])
    embed(one, tiny)
    with other.reading():
        assert len(nearest(other, tiny, "one fish", 10)) == 1
        one.remove([row_of(one, "a.md")])
        assert len(nearest(other, tiny, "one fish", 10)) == 1
    assert nearest(other, tiny, "one fish", 10) == []


def test_another_reader_sees_a_switch_of_models(two: tuple[Store, Store], tiny: Tiny) -> None:
    """Only the active model is searched, in every process."""
    one, other = two
    one.write([prepared("a.md", "one fish", "two birds")])
    embed(one, tiny)
    nearest(other, tiny, "one fish")
    wide = Tiny("wide", 100)
    embed(one, wide)
    model, instant = other.models()
    assert (model.name, model.dimension, model.active, instant.name) == ("wide", 100, True, "static")
    assert len(nearest(other, wide, "one fish", 10)) == 2
    assert other.counts().model == "wide"


def test_a_model_does_not_inherit_what_another_left(store: Store) -> None:
    """The vectors of a model that was given up are not those of the next one.

    Two switches are begun, the first is completed; then comes a third, with vectors of another size.
    """
    store.write([prepared("a.md", *(f"w{number}" for number in range(1100)))])
    first, second, third = (store.model(name, 8) for name in ("first", "second", "third"))
    for model in (first, second, third):
        chunks = store.unembedded(model, 2000)
        store.write_vectors(model, chunks, clustered(1100, 8, model.id))
        assert store.count_unembedded(model) == 0
    store.activate(second)
    fourth = store.model("fourth", 70)
    assert store.count_unembedded(fourth) == 1100
    chunks, vectors = store.unembedded(fourth, 3), clustered(3, 70, 5)
    store.write_vectors(fourth, chunks, vectors)
    hits = store.search_vectors(fourth, vectors[0], EVERYTHING, 10)
    assert len(hits) == 3
    assert hits[0].chunk == chunks[0].chunk


# ------------------------------------------------------------------------------------------------ checking

Tamper = Callable[[sqlite3.Connection], object]


def statement(sql: str) -> Tamper:
    return lambda db: db.execute(sql)


def changed(table: str, column: str, change: Callable[[bytes], bytes]) -> Tamper:
    """Change what a column holds, in every row."""

    def tamper(db: sqlite3.Connection) -> None:
        for row, value in db.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (change(value), row))

    return tamper


def flipped(value: bytes) -> bytes:
    return bytes(255 - byte for byte in value)


TAMPERED: dict[str, Tamper] = {
    "a block is gone": statement("DELETE FROM blocks"),
    "a block names a chunk that is not there": changed("blocks", "chunks", lambda old: b"\x05" + old[1:]),
    "a block has lost a chunk": changed("blocks", "chunks", lambda old: bytes(8) + old[8:]),
    "the chunks of a block are cut short": changed("blocks", "chunks", lambda old: old[:4001]),
    "the chunks of a block are too many": changed("blocks", "chunks", lambda old: old + bytes(8)),
    "the signatures of a block are cut short": changed("blocks", "signatures", lambda old: old[:4001]),
    "the signatures of a block are others": changed("blocks", "signatures", flipped),
    "a vector is gone": statement("DELETE FROM vectors WHERE slot % 2 = 1"),
    "a vector is of a chunk that is not there": statement("UPDATE vectors SET chunk = 5 WHERE slot % 2 = 1"),
    "all vectors are of one chunk": statement("UPDATE vectors SET chunk = 1048576"),
    "a vector is of a model that is not there": statement(
        "UPDATE vectors SET slot = slot + (7 << 32) WHERE slot % 2 = 1"
    ),
    "a vector is cut short": changed("vectors", "vector", lambda old: old[:7]),
    "the numbers of a vector are others": changed(
        "vectors", "vector", lambda old: old[:4] + flipped(old[4:])
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_checking_names_what_was_tampered_with(tiny: Tiny, name: str) -> None:
    """Issue: blocks and vectors say the same, and `quire status` says where they do not."""
    store = SqliteStore(":memory:", create=True)
    store.write([prepared("a.md", "one fish", "two birds", "three cars")])
    embed(store, tiny)
    assert store.check() == []
    TAMPERED[name](store.db)
    assert any(said.startswith("vectors: ") for said in store.check())
    store.close()


# ----------------------------------------------------------------------------------------------- migrating


def schema_1(path: Path, document: Prepared) -> sqlite3.Connection:
    """A library as the first schema had it, with one document."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    for statement in migrate.statements(dict(migrate.steps("sqlite"))[1]):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("PRAGMA user_version = 1")
    db.execute("UPDATE facts SET value = ? WHERE name = 'terms'", (str(analyze.RULES),))
    values = {
        name: getattr(document, name)
        for name in "collection kind path format title source checksum size mtime_ns made_by".split()
    }
    values |= {"id": id_of(document.kind, of_document(document.collection, document.path)), "seq": 1}
    values |= {"chunk_count": len(document.chunks), "created_at": 1, "updated_at": 1}
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO documents ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))
    for section in document.sections:
        db.execute(f"INSERT INTO sections VALUES (1{', ?' * len(section)})", section)
    for number, (chunk, words) in enumerate(zip(document.chunks, document.words, strict=True), MAX_CHUNKS):
        *known, _ = chunk  # without headings
        db.execute(f"INSERT INTO chunks VALUES (?, 1{', ?' * len(known)})", (number, *known))
        db.execute("INSERT INTO words (rowid, title, trail, body) VALUES (?, ?, ?, ?)", (number, *words))
    return db


def test_a_library_of_the_first_schema_gets_vectors(tmp_path: Path, tiny: Tiny) -> None:
    """A schema change migrates, after a copy was made; nothing has to be indexed anew."""
    path = tmp_path / "library.db"
    schema_1(path, prepared("a.md", "one fish", "two birds")).close()
    with Library.open(path) as library:
        assert isinstance(library.store, SqliteStore)
        assert [result.path for result in library.search("birds").results] == ["a.md"]
        assert library.status().embedded == 0
        embed(library.store, tiny)
        assert_own_vectors(library.store, tiny)
    with closing(sqlite3.connect(tmp_path / "library.db.schema-1.backup")) as backup:
        assert backup.execute("PRAGMA user_version").fetchone() == (1,)
        assert backup.execute("SELECT path FROM documents").fetchall() == [("a.md",)]
        assert backup.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_copy_has_what_was_still_in_the_log(tmp_path: Path) -> None:
    """A process that was killed leaves its last writes in the log beside the file."""
    path = tmp_path / "library.db"
    with closing(schema_1(path, prepared("a.md", "one fish"))):  # closing it would empty the log
        with closing(SqliteStore(str(path))) as store:
            assert len(store.documents(EVERYTHING)) == 1
        with closing(sqlite3.connect(tmp_path / "library.db.schema-1.backup")) as backup:
            assert backup.execute("SELECT path FROM documents").fetchall() == [("a.md",)]
