"""The keyword index of SQLite against FTS5: the same chunks and the same scores, whatever was changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import analyze
from quire.query import parse
from quire.stores import matching, migrate
from quire.stores.matching import COLUMN_WEIGHTS, Phrase, WordQuery
from quire.stores.rows import CHUNK_BITS
from quire.stores.sqlite import indexing, segments, words
from quire.stores.sqlite.index_check import check_index
from quire.stores.sqlite.indexing import IndexWriter
from quire.stores.sqlite.postings import PostingReader
from quire.stores.sqlite.segments import ChunkTerms
from quire.stores.sqlite.words import Keywords

Chunks = list[tuple[str, str, str]]
VOCABULARY = "pod pods port node of the updat roll config cron a kubelet caf 数据".split()
TEXTS = st.lists(st.sampled_from(VOCABULARY), max_size=12).map(" ".join)
CHUNKS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=3)
CHANGES = st.lists(st.tuples(st.integers(1, 8), st.one_of(st.none(), CHUNKS)), min_size=1, max_size=25)
QUERIES = (
    *("pod port node", "the pod of a node", "of the", "pod OR cron config", "数据 pod", "nothing"),
    *('"rolling update"', '"the pod" "of the"', "po*", "title:pod heading:no*", "title:po*"),
    *("update -node", 'rolling -"of the"', "heading:config the"),
)


@contextmanager
def index() -> Iterator[sqlite3.Connection]:
    """An empty index, as the schema makes it."""
    script = dict(migrate.steps("sqlite"))[16]
    tables = [made for made in migrate.statements(script) if "CREATE TABLE" in made]
    with closing(sqlite3.connect(":memory:")) as db:
        for made in (*tables, "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)"):
            db.execute(made)
        db.execute("INSERT INTO facts VALUES ('last_segment', '0')")
        db.execute("CREATE TABLE chunks (id INTEGER PRIMARY KEY)")
        db.execute("CREATE VIRTUAL TABLE words USING fts5 (title, trail, body, tokenize = 'ascii')")
        yield db


def change(db: sqlite3.Connection, writer: IndexWriter, document: int, chunks: Chunks | None) -> None:
    """Replace a document in the index and in FTS5; None removes it."""
    first = document << CHUNK_BITS
    span = first, (document + 1) << CHUNK_BITS
    rows = [(first + number, *texts) for number, texts in enumerate(chunks or ())]
    writer.remove(document)
    if rows:
        writer.add(document, rows)
    db.execute("DELETE FROM words WHERE rowid >= ? AND rowid < ?", span)
    db.execute("DELETE FROM chunks WHERE id >= ? AND id < ?", span)
    db.executemany("INSERT INTO words (rowid, title, trail, body) VALUES (?, ?, ?, ?)", rows)
    db.executemany("INSERT INTO chunks VALUES (?)", [(row[0],) for row in rows])


def by_fts5(db: sqlite3.Connection, match: WordQuery) -> dict[int, float]:
    """The scores of FTS5 for a query, as it writes it."""
    must = [f"({either(group)})" for group in (*match.needed, match.rare) if group]
    expression = " AND ".join(must)
    if match.others:  # FTS5 counts a phrase as often as it is written
        expression = (
            f"({expression}) AND ({' OR '.join([*must, either(match.others), either(match.others)])})"
        )
    if match.without:
        expression = f"({expression}) NOT ({either(match.without)})"
    score = f"-bm25(words, {', '.join(map(str, COLUMN_WEIGHTS))}) / {2 if match.others else 1}"
    return dict(db.execute(f"SELECT rowid, {score} FROM words WHERE words MATCH ?", (expression,)).fetchall())


def either(phrases: tuple[Phrase, ...]) -> str:
    columns = {(0,): "title : ", (0, 1): "{title trail} : "}
    return " OR ".join(
        f'{columns.get(one.columns, "")}"{" ".join(one.terms)}"{" *" if one.prefix else ""}'
        for one in phrases
    )


def assert_equal(db: sqlite3.Connection, generation: int, reader: PostingReader) -> None:
    keywords = Keywords(reader, reader.snapshot(generation))
    for text in QUERIES:
        match = matching.word_query(parse(text), analyze.STOP)
        known = by_fts5(db, match)
        for limit in (100, 3):
            found = keywords.best(match, None, limit)
            assert len(found) == min(limit, len(known)), text
            assert found == pytest.approx({chunk: known[chunk] for chunk in found}, rel=1e-4), text
            worst = min(found.values(), default=0.0)
            assert all(score <= worst * 1.001 for chunk, score in known.items() if chunk not in found), text


@given(changes=CHANGES, sizes=st.sampled_from([(1, 2, 4, 8), (2, 6, 20, 40)]))
def test_the_index_ranks_as_fts5_does_after_any_changes(
    changes: list[tuple[int, Chunks | None]], sizes: tuple[int, ...]
) -> None:
    """Ranking is exact: also while segments are merged, and while some chunks of them are removed."""
    with pytest.MonkeyPatch.context() as patch, index() as db:
        patch.setattr(indexing, "_TIERS", sizes)
        patch.setattr(segments, "_BLOCK_TERMS", 3)
        writer, reader = IndexWriter(db), PostingReader(db)
        for document, chunks in changes:
            change(db, writer, document, chunks)
            writer.flush()
            assert check_index(db) == []
        assert_equal(db, 1, reader)
        writer.compact(fully=True)
        assert check_index(db) == []
        assert db.execute("SELECT count(*) FROM word_segments").fetchone()[0] <= 1
        assert_equal(db, 2, reader)


def test_a_segment_is_never_too_large_for_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places take two bytes: what does not fit is in another segment."""
    monkeypatch.setattr(segments, "LARGEST", 10)
    with index() as db:
        writer = IndexWriter(db)
        for document in range(1, 40):
            change(db, writer, document, [("pod", "", "node of the pod")] * 3)
            writer.flush()
        sizes = [row[0] for row in db.execute("SELECT count FROM word_segments")]
        assert max(sizes) <= 10
        assert sum(sizes) == 117
        assert_equal(db, 1, PostingReader(db))


def test_a_phrase_of_common_words_is_read_in_the_best_chunks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading all of a million chunks for “of the” would take seconds."""
    monkeypatch.setattr(words, "_READ", 5)
    with index() as db:
        writer = IndexWriter(db)
        change(db, writer, 1, [("", "", "the pod of")] * 20 + [("", "", "of the of the of the")] * 3)
        writer.flush()
        reader = PostingReader(db)
        match = matching.word_query(parse('"of the"'), analyze.STOP)
        found = Keywords(reader, reader.snapshot(1)).best(match, None, 10)
        assert sorted(found) == [(1 << CHUNK_BITS) + number for number in (20, 21, 22)]


DAMAGE = (
    "UPDATE word_blocks SET ordinals = zeroblob(length(ordinals))",
    "UPDATE word_blocks SET terms = replace(terms, 'node', 'zzzz')",
    "UPDATE word_blocks SET weights = x'01'",
    "DELETE FROM word_blocks",
    "UPDATE word_segments SET chunks = zeroblob(length(chunks))",
    "DELETE FROM word_segments",
    "DELETE FROM word_orders WHERE chunk = (SELECT max(chunk) FROM word_orders)",
    "INSERT INTO word_removed VALUES (1, 1, x'80')",
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_found_by_its_check(damage: str) -> None:
    """States: damaged pages are named, and never an answer."""
    with index() as db:
        writer = IndexWriter(db)
        change(db, writer, 1, [("pod", "node", "of the pod"), ("port", "", "config a node")])
        writer.flush()
        assert check_index(db) == []
        db.execute(damage)
        assert check_index(db) != []


def rows_of(*bodies: str) -> list[ChunkTerms]:
    return [(number, "", "", body) for number, body in enumerate(bodies)]


def test_a_term_is_at_most_so_heavy() -> None:
    """A weight takes one byte."""
    terms, keys = segments._decoded(segments.build(rows_of("pod " * 400)).blocks)
    assert terms == ["pod"]
    assert [int(key) & 0xFF for key in keys] == [255]
