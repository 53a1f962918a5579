"""PostgreSQL as a library's database: SQLite's answers, tenants, many writers, a server that goes away."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

import quire
from quire import embedding, query, searcher
from quire.address import id_of
from quire.config import DEFAULT, override
from quire.errors import ConnectionLost, LibraryError, MissingExtra, NoResults, SettingError
from quire.ingest.prepare import prepare
from quire.library import Library
from quire.meaning import Meaning
from quire.query import Query
from quire.stores import (
    MAX_CHUNKS,
    Filters,
    Model,
    Prepared,
    Sighting,
    SourceRow,
    Store,
    Version,
    migrate,
    open_store,
)
from quire.stores.matching import Phrase
from quire.stores.postgres import PostgresStore, pieces, terms
from quire.stores.postgres import database as postgres_database
from quire.stores.postgres import vectors as postgres_vectors
from quire.stores.postgres import words as postgres_words
from quire.stores.postgres.database import is_transient
from quire.stores.postgres.schema import wrong_version
from tests import postgres
from tests.test_embedding import forget_instant
from tests.words import WORDS, rename

if TYPE_CHECKING:
    from quire.embed.base import Vectors

ROOT = Path(__file__).parents[1]
pytestmark = postgres.needs_postgres

QUERIES = [
    "install",
    "how do I search the library for a phrase",
    '"a library"',
    "search -window",
    '"markdown" -"a document"',
    "chunk*",
    "heading:search",
    'title:"what goes in"',
    "title:chunk* size",
    "setting OR settings",
    'words OR "a phrase"',
    "the",
    "to be of the",
    "文档",
    "検索する",
    "don't naïve",
]


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a new and empty PostgreSQL database."""
    made = postgres.borrow()
    yield made
    postgres.give_back(made)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with opened(url, create=True) as made:
        yield made


@contextmanager
def opened(url: str, **options: Any) -> Iterator[PostgresStore]:
    store = PostgresStore(url, **options)
    try:
        yield store
    finally:
        store.close()


def prepared(text: str, path: str = "a.md", collection: str = "c", **config: Any) -> Prepared:
    document = quire.Document.from_text(text, path, collection=collection)
    return prepare(document, override(WORDS, config))


def found(store: Store, text: str, limit: int = 100, **filters: Any) -> list[str]:
    """The paths of the documents whose chunks match, best first."""
    hits = store.search_words(query.parse(text), Filters(**filters), limit)
    rows = store.documents_by_row({hit.document for hit in hits})
    return [rows[hit.document].path for hit in hits]


# ----------------------------------------------------------------------------------- like SQLite


def scores(store: Store, asked: Query) -> dict[tuple[str, int], float]:
    hits = store.search_words(asked, Filters(), 1000)
    rows = store.documents_by_row({hit.document for hit in hits})
    return {(rows[hit.document].address, hit.chunk % MAX_CHUNKS): hit.score for hit in hits}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Library, Library]]:
    """This repository's documentation, and some other languages, on both databases."""
    url = postgres.fresh_url()
    with (
        Library.open(tmp_path_factory.mktemp("both") / "l.db", create=True, config=WORDS) as one,
        Library.open(url, create=True, config=WORDS) as other,
    ):
        for library in (one, other):
            library.add(ROOT / "docs", collection="docs")
            library.add(content="# 检索\n\n检索文档的系统。文档很好。\n", path="zh.md", collection="more")
            library.add(content="# X\n\nドキュメントを検索する\n", path="ja.md", collection="more")
            library.add(
                content="# Don't\n\nIt isn't naive, naïve or naïveté.\n", path="en.md", collection="more"
            )
        yield one, other
    postgres.drop(url)


def test_ids_and_addresses_are_those_of_sqlite(both: tuple[Library, Library]) -> None:
    """DESIGN §1 (6): the same input gives the same ids, in any process, on either database."""
    one, other = both
    assert [(d.id, d.address, d.checksum) for d in one.documents()] == [
        (d.id, d.address, d.checksum) for d in other.documents()
    ]
    for text in ("install", "search the library"):
        results = [
            [(r.address, r.document_id, r.chunk_ids, r.snippet) for r in library.search(text).results]
            for library in both
        ]
        assert results[0] == results[1]
        assert results[0]


@pytest.mark.parametrize("text", QUERIES)
def test_scores_are_those_of_sqlite(both: tuple[Library, Library], text: str) -> None:
    """Issue: BM25-equal ranking."""
    one, other = (scores(library.store, query.parse(text)) for library in both)
    assert one.keys() == other.keys()
    assert all(other[key] == pytest.approx(score, rel=1e-3) for key, score in one.items())


def test_most_of_these_queries_find_something(both: tuple[Library, Library]) -> None:
    """The test above would pass on empty answers."""
    assert sum(bool(scores(both[1].store, query.parse(text))) for text in QUERIES) >= 12


def test_a_term_counts_as_often_as_it_stands_there(store: PostgresStore) -> None:
    """The server counts as Quire does, up to 255."""
    texts = [f"# T\n\n{'okapi ' * times}{'filler ' * (300 - times)}\n" for times in (1, 2, 3, 17, 100, 250)]
    whole = {"strategy": "nodes"}
    store.write([prepared(text, f"{n}.md", chunk=whole) for n, text in enumerate(texts)])
    store.write([prepared(f"# Okapi {'x' * n}\n\nokapi\n", f"h{n}.md") for n in range(2)])
    okapi, phrases = Phrase(("okapi",)), store.words.phrases
    rows = store.db.rows(
        f"SELECT d.path, {phrases.frequency(okapi)}, w.terms, w.places FROM quire.words AS w"
        " JOIN quire.documents AS d ON d.seq = w.document"
    )
    assert len(rows) == len(texts) + 2
    assert all(counted == phrases.count(okapi, terms, places) for _, counted, terms, places in rows)
    assert {path: counted for path, counted, *_ in rows} == {
        **{f"{n}.md": times for n, times in enumerate((1, 2, 3, 17, 100, 250))},
        "h0.md": 12,  # in the heading, in that of its document, and in the text
        "h1.md": 12,
    }


@pytest.mark.parametrize("title", ["a\0b", "a\ud800b"])
def test_what_no_database_stores_is_cleaned_the_same_way(library_url: str, title: str) -> None:
    """PostgreSQL's text holds no NUL: titles and trails are the same on both."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        text = "# H\0I\n\nokapi\0 text\n"  # no file has it, but a caller's document may
        document = quire.Document.from_text(text, "a.md", collection="c", title=title)
        library.store.write([prepare(document, WORDS)])
        row = library.document("c:a.md")
        assert row
        assert row.title == "a\ufffdb"
        (result,) = library.search("okapi").results
        assert result.trail == ("a\ufffdb", "H\ufffdI")
        assert library.source("c:a.md") == b"# H\0I\n\nokapi\0 text\n"
        assert library.document("c:a\0.md") is None
        assert library.store.check() == []


# ---------------------------------------------------------------------------------- opening


def test_a_database_without_a_library_is_told_and_left_alone(url: str) -> None:
    """As for a file that is not there."""
    with pytest.raises(NoResults, match=r"No library at .*quire add"):
        open_store(url)
    assert postgres.execute(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'quire'") == []


def test_other_tables_of_a_database_are_not_touched(url: str) -> None:
    """Our tables live in a schema of their own."""
    postgres.execute(url, "CREATE SCHEMA shop")
    postgres.execute(url, "CREATE TABLE shop.documents (id int)")
    with opened(url, create=True) as store:
        store.write([prepared("# A\n\ntext\n")])
    assert postgres.execute(url, "SELECT count(*) FROM shop.documents") == [(0,)]
    schemas = postgres.execute(
        url, "SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname !~ '^(pg_|information)' ORDER BY 1"
    )
    assert schemas == [("quire",), ("shop",)]


def test_a_newer_schema_is_refused(url: str) -> None:
    """BAD_INPUTS: refused and left untouched."""
    with opened(url, create=True):
        pass
    postgres.execute(url, "INSERT INTO quire.migrations VALUES (999, now())")
    with pytest.raises(LibraryError, match="written by a newer Quire"):
        open_store(url, create=True)


def test_a_schema_of_our_name_that_is_not_ours_is_refused(url: str) -> None:
    """BAD_INPUTS: another program's is left as it is."""
    postgres.execute(url, "CREATE SCHEMA quire")
    with pytest.raises(LibraryError, match="another program's"):
        open_store(url, create=True)
    assert postgres.execute(url, "SELECT 1 FROM pg_tables WHERE schemaname = 'quire'") == []


def test_a_database_without_pgvector_says_what_to_do() -> None:
    """Errors say what, where, and what to do next."""
    url = postgres.fresh_url(vector=False)
    with pytest.raises(LibraryError, match=r"has no pgvector.*CREATE EXTENSION vector"):
        open_store(url, create=True)
    assert postgres.execute(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'quire'") == []
    postgres.drop(url)


def test_what_is_too_old_is_named_with_what_to_do() -> None:
    """Required: PostgreSQL 15 and pgvector 0.7."""
    assert wrong_version(150_000, "0.7.0") is None
    assert wrong_version(180_004, "0.10.1") is None
    assert "is PostgreSQL 14.9, and Quire needs 15" in (wrong_version(140_009, "0.8.5") or "")
    assert "has pgvector 0.6.2, and Quire needs 0.7" in (wrong_version(160_000, "0.6.2") or "")


def test_many_who_make_the_same_library_at_once_all_get_it(url: str) -> None:
    """Migrations run under a lock."""
    ready = threading.Barrier(4)

    def make(number: int) -> None:
        ready.wait()
        with opened(url, create=True) as store:
            store.write([prepared("# A\n\ntext\n", f"{number}.md")])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(4)))
    done = postgres.execute(url, "SELECT number FROM quire.migrations ORDER BY number")
    assert [number for (number,) in done] == [number for number, _ in migrate.steps("postgres")]
    with opened(url) as store:
        assert len(store.documents(Filters())) == 4


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    """Stages raise errors of ours; secrets stay out of them."""
    with pytest.raises(LibraryError, match="cannot be opened") as told:
        open_store("postgresql://me:secret@localhost:1/x?password=secret&connect_timeout=2", create=True)
    assert "secret" not in str(told.value)


def test_a_missing_package_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """MissingExtra names the extra; other kinds of URL are refused."""
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    with pytest.raises(MissingExtra, match=r"quire-docs\[postgres\]"):
        open_store("postgres://x/y")
    with pytest.raises(SettingError, match="mysql:// is not supported"):
        open_store("mysql://x/y")


# ------------------------------------------------------------------------------------- storing


def test_a_number_that_another_document_has_is_passed_over(store: PostgresStore) -> None:
    """A document keeps its number when it moves; the next at its old path takes another."""
    store.write([prepared("# A\n\nfirst\n")])
    (first,) = store.documents(Filters())
    assert first.seq == int(id_of("document", "c:a.md").replace("-", ""), 16) >> 85
    rename(store, first.seq, "b.md")
    assert store.write([prepared("# A\n\nsecond\n")]) == [False]
    a, b = store.documents(Filters())
    assert (a.seq, b.seq) == (first.seq + 1, first.seq)
    assert found(store, "second") == ["a.md"]
    assert rename(store, a.seq, "b.md") == [a.seq]
    assert store.check() == []


def test_a_document_twice_in_a_batch_is_there_once(library_url: str) -> None:
    """The last one wins, on both databases."""
    store = open_store(library_url, create=True)
    assert store.write([prepared("# A\n\nfirst\n"), prepared("# A\n\nsecond\n")]) == [False, True]
    assert found(store, "second") == ["a.md"]
    assert found(store, "first") == []
    assert store.check() == []
    store.close()


def test_a_later_version_has_a_later_time(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rule as SQLite's: even when the clock goes back."""
    store.write([prepared("# A\n\nfirst\n")])
    (old,) = store.documents(Filters())
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    assert store.write([prepared("# A\n\nsecond\n")]) == [True]
    (new,) = store.documents(Filters())
    assert (new.seq, new.created_at, new.updated_at) == (old.seq, old.created_at, old.updated_at + 1)


def test_the_last_paragraph_of_a_megabyte_is_found(store: PostgresStore) -> None:
    """1.1 MB in one document never meets the limit of a tsvector."""
    text = "# Long\n\n" + "".join(f"Sentence {n} has word{n} in it.\n\n" for n in range(35_000))
    assert len(text) > 1_100_000
    store.write([prepared(text + "The xylophone quokka stands last.\n")])
    (hit,) = store.search_words(query.parse("xylophone quokka"), Filters(), 10)
    chunk = store.chunks([hit.chunk])[hit.chunk]
    assert store.passage(hit.document, chunk.byte_start, chunk.byte_end).endswith("quokka stands last.\n")
    assert store.check() == []


@pytest.mark.parametrize("word", ["{}word", "{}" + "\N{GOTHIC LETTER AHSA}" * 30, "{}" + "w" * 32])
def test_a_chunk_of_any_size_is_stored(store: PostgresStore, word: str) -> None:
    """Strategies that never cut give chunks that no tsvector holds whole."""
    text = "# Long\n\nokapi " + " ".join(word.format(n) for n in range(60_000))
    store.write([prepared(text, chunk={"strategy": "nodes"})])
    assert found(store, "okapi") == ["a.md"]
    assert found(store, word.format(1000)) == ["a.md"]
    assert store.check() == []


def test_headings_and_paths_may_be_long(store: PostgresStore) -> None:
    """BAD_INPUTS: bounded, never a database error."""
    path = f"{'long/' * 1000}a.md"
    store.write([prepared(f"# {'heading word ' * 5000}\n\nokapi\n\n## B\n\nbody\n", path, "c" * 3000)])
    assert found(store, "okapi", collection="c" * 3000) == [path]
    assert store.document(None, path)


def test_a_passage_is_read_without_the_rest_of_its_document(store: PostgresStore) -> None:
    """Pieces are stored out of line, and the server reads those that hold the passage."""
    for ending in ("", "!\n"):  # a document that replaces another goes another way
        text = "# A\n\n" + "".join(f"{n} äöü " for n in range(50_000)) + ending
        store.write([prepared(text)])
        (row,) = store.documents(Filters())
        assert store.db.value("SELECT pg_column_compression(pieces) FROM quire.documents") is None
        assert store.db.value("SELECT pg_column_size(pieces) FROM quire.documents") < len(text) / 2
        read = f"SELECT length({pieces.holding('300000', '300100')}) FROM quire.documents AS d"
        assert store.db.value(read) < pieces.PIECE
        source, last = text.encode(), len(text.encode())
        assert store.source(row.seq) == source
        for start in (0, pieces.PIECE - 1, pieces.PIECE, pieces.PIECE + 1, 300_000, last - 1, last):
            for end in (start, start + 1, start + pieces.PIECE, start + 2 * pieces.PIECE + 1, last):
                expected = source[start : max(start, min(end, last))].decode("utf-8", "replace")
                assert store.passage(row.seq, start, max(start, min(end, last))) == expected


@pytest.mark.parametrize("text", ["", "a", "é", "ab"])
def test_the_smallest_documents_are_read_as_they_are(store: PostgresStore, text: str) -> None:
    """The first two bytes are stored beside the pieces, and may not be there."""
    store.write([prepared(text)])
    (row,) = store.documents(Filters())
    assert store.source(row.seq) == text.encode()
    assert store.passage(row.seq, 0, len(text.encode())) == text
    assert store.counts().bytes == len(text.encode())


def test_the_generation_moves_with_every_write(library_url: str) -> None:
    """What is kept from one search to the next is of one generation."""
    store = open_store(library_url, create=True)
    seen = [store.generation()]
    store.write([prepared("# A\n\ntext\n")])
    seen.append(store.generation())
    (row,) = store.documents(Filters())
    store.promote(row.seq, "important")
    seen.append(store.generation())
    rename(store, row.seq, "b.md")
    seen.append(store.generation())
    store.remove([row.seq])
    seen.append(store.generation())
    assert seen == sorted(set(seen))
    store.close()


def test_a_check_finds_what_is_wrong(store: PostgresStore, url: str) -> None:
    """Counts agree, and nothing hangs in the air."""
    store.write([prepared("# A\n\ntext\n"), prepared("# B\n\nmore\n", "b.md")])
    assert store.check() == []
    postgres.execute(url, "DELETE FROM quire.words WHERE document = (SELECT min(seq) FROM quire.documents)")
    assert "chunks without terms, or terms without a chunk: 1" in store.check()
    postgres.execute(url, "UPDATE quire.documents SET chunk_count = 7")
    assert len(store.check()) == 3


TAMPERED = {
    "DELETE FROM quire.chunks WHERE index = 0": "chunks that documents do not count: 1",
    "DELETE FROM quire.sections WHERE position = 2": "documents whose sections are not those they count: 1",
    "UPDATE quire.chunks SET section = 9 WHERE index = 0": "chunks in a section that is not there: 1",
    "UPDATE quire.words SET size = size + 1": "documents whose terms are not those they count: 1",
    "DELETE FROM quire.words": "chunks without terms, or terms without a chunk: 2",
    "UPDATE quire.vectors SET digest = digest || 'x'": "vectors of texts that are not there: 2",
    "DELETE FROM quire.vectors": "documents whose embedded chunks are not those they count: 1",
    "DELETE FROM quire.embedded": "documents whose embedded chunks are not those they count: 1",
    "UPDATE quire.embedded SET chunks = 7": "documents whose embedded chunks are not those they count: 1",
    "INSERT INTO quire.documents SELECT (d).* FROM (SELECT jsonb_populate_record(d, '{\"seq\": 1}') AS d"
    " FROM quire.documents AS d) AS twin": "documents that share a path: 1",
}


@pytest.mark.parametrize("statement", TAMPERED)
def test_checking_names_what_was_tampered_with(store: PostgresStore, url: str, statement: str) -> None:
    """Issue: what is kept twice says the same, and `quire status` says where it does not."""
    store.write([prepared("# A\n\nfirst\n\n## B\n\nsecond\n", chunk={"strategy": "nodes"})])
    embedding.embed(store, Tiny())
    assert store.check() == []
    postgres.execute(url, statement)
    assert TAMPERED[statement] in store.check()


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("UPDATE quire.vectors SET model = 99", psycopg.errors.ForeignKeyViolation),
        ("UPDATE quire.vectors SET document = 1", psycopg.errors.ForeignKeyViolation),
        ("UPDATE quire.vectors SET vector = '[1, 2]'", psycopg.errors.DataException),
    ],
)
def test_the_database_itself_refuses_vectors_of_nothing(
    store: PostgresStore, url: str, statement: str, refused: type[psycopg.Error]
) -> None:
    """What SQLite only finds by checking cannot be written here: of no model, no document, another length."""
    store.write([prepared("# A\n\nfirst\n")])
    embedding.embed(store, Tiny())
    with pytest.raises(refused):
        postgres.execute(url, statement)
    assert store.check() == []


# ------------------------------------------------------------------------------------ searching


def test_a_small_collection_is_not_starved_by_a_large_one(store: PostgresStore) -> None:
    """Filters apply before the cut: a collection that has 1 % of the chunks."""
    store.write([prepared(f"# A\n\nzebra zebra zebra {n}\n", f"{n}.md", "large") for n in range(990)])
    store.write(
        [prepared(f"# B\n\nlong text about a zebra and more {n}\n", f"{n}.md", "small") for n in range(10)]
    )
    assert len(found(store, "zebra", 10)) == 10
    assert len(found(store, "zebra", 10, collection="small")) == 10
    assert found(store, "zebra", 5, paths=("97",), collection="large")[0].startswith("97")
    assert found(store, "zebra", 5, paths=("9*.md",), not_paths=("9",)) == []
    assert len(found(store, "zebra", 500, kinds=("document",))) == 500
    assert found(store, "zebra", 5, kinds=("memory",)) == []


@pytest.mark.parametrize("path", ["a_b.md", "a%b.md", "a\\b.md", "a[b].md", "a?.md"])
def test_only_a_star_means_something_in_a_path(library_url: str, path: str) -> None:
    """The same patterns on both databases."""
    store = open_store(library_url, create=True)
    store.write([prepared("# A\n\nokapi\n", name) for name in (path, "aXb.md", "aXXb.md", "A_B.md")])
    assert found(store, "okapi", paths=(path,)) == [path]
    assert {"aXb.md", "aXXb.md"} <= set(found(store, "okapi", paths=("a*b.md",)))
    assert "A_B.md" not in found(store, "okapi", paths=("a*b.md",))
    assert path not in found(store, "okapi", not_paths=(path,))
    store.close()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("okapi", {"a.md", "b.md", "c.md"}),
        ('"red okapi"', {"a.md"}),
        ("heading:okapi", {"b.md"}),
        ("okapi -zebra", {"a.md", "b.md"}),
        ('okapi -"red okapi"', {"b.md", "c.md"}),
        ('"red okapi" OR heading:okapi', {"a.md", "b.md"}),
        ('okapi "🙂"', set()),
    ],
)
def test_what_a_query_demands_is_told_of_any_chunk(library_url: str, asked: str, expected: set[str]) -> None:
    """Chunks that were found by meaning keep to phrases, fields and what is left out."""
    store = open_store(library_url, create=True)
    texts = {"a.md": "# A\n\nred okapi\n", "b.md": "# Okapi\n\nblue\n", "c.md": "# C\n\nokapi zebra\n"}
    store.write([prepared(text, path) for path, text in texts.items()])
    rows = store.documents(Filters())
    chunks = {row.seq * MAX_CHUNKS: row.path for row in rows}
    assert {chunks[chunk] for chunk in store.allowed(query.parse(asked), chunks)} == expected
    store.close()


def test_tags_origins_and_times_are_kept(library_url: str) -> None:
    """A document's tags, what a server said of it, its promotion and its times."""
    store = open_store(library_url, create=True)
    facts: dict[str, Any] = {
        "tags": ("b", "a"),
        "etag": '"1"',
        "promotion": "important",
        "created_at": 5,
        "updated_at": 7,
    }
    store.write([replace(prepared("# A\n\nokapi\n"), **facts), prepared("# B\n\nokapi\n", "b.md")])
    a, b = store.documents(Filters())
    assert (a.promotion, a.created_at, a.updated_at, b.promotion) == ("important", 5, 7, "standard")
    assert store.tags([a.seq, b.seq]) == {a.seq: ("a", "b")}
    assert store.fetched([a.seq, b.seq]) == {a.seq: ('"1"', None)}
    assert found(store, "okapi", tags=("a", "b")) == ["a.md"]
    assert found(store, "okapi", tags=("a", "c")) == []
    assert found(store, "okapi", since=8) == ["b.md"]
    assert found(store, "okapi", until=8) == ["a.md"]
    assert store.write([prepared("# A\n\nother\n")], gone=[b.seq]) == [True]
    (row,) = store.documents(Filters())
    assert (row.path, row.promotion, store.tags([row.seq]), store.fetched([row.seq])) == (
        "a.md",
        "important",
        {},
        {},
    )
    assert store.check() == []
    store.close()


def test_common_words_rank_lower_and_are_found_all_the_same(store: PostgresStore) -> None:
    """DESIGN §6: words that are in most chunks do not decide."""
    batch = [prepared(f"# N {n}\n\ncommon filler{n % 97} text\n", f"{n}.md") for n in range(300)]
    store.write([*batch, prepared("# N\n\nrare common common\n", "r.md")])
    assert found(store, "rare common")[0] == "r.md"
    assert len(found(store, "rare common", 400)) == 301
    assert found(store, "rare with the") == ["r.md"]  # stop words never find anything beside others
    assert len(found(store, "common", 50)) == 50


def test_counts_of_common_terms_are_kept(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not counted for each query, and kept for each level."""
    batch = [prepared(f"# N {n}\n\ncommon filler{n % 97} text\n", f"{n}.md") for n in range(2100)]
    store.write([*batch, prepared("# N\n\nrare common common\n", "r.md")])
    kept = dict(store.db.rows("SELECT number, share FROM quire.common_terms"))
    common, rare = (
        [terms.key(terms.number(term), level) for level in range(terms.LEVEL_COUNT)]
        for term in ("common", "rare")
    )
    assert sum(kept.get(key, 0) for key in common) == pytest.approx(1.0)
    assert kept.keys().isdisjoint(rare)
    every = scores(store, query.parse("filler3 common"))
    monkeypatch.setattr(postgres_words, "COUNTED", 100)
    store.words._known.version = ""
    assert scores(store, query.parse("filler3 common")) == pytest.approx(every, rel=0.02)
    assert store.term_counts(["common", "rare", "nowhere"]) == {"common": 2101, "rare": 1}


@pytest.mark.parametrize("average", [10, 120, 2000])
def test_the_best_chunks_are_found_without_scoring_the_others(
    url: str, monkeypatch: pytest.MonkeyPatch, average: int
) -> None:
    """No better chunk is missed, whatever the levels were made for, and in filters and scopes as well."""
    monkeypatch.setattr(terms, "AVERAGE", average)
    draw = random.Random(average)
    vocabulary = [f"{a}{b}{c}" for a in "bdfgklmnprt" for b in "aeiou" for c in ("sk", "lp", "rd", "mt")]
    weights = [1 / (place + 1) for place in range(len(vocabulary))]
    batch = [
        prepared(
            f"# {' '.join(draw.choices(vocabulary, weights, k=2))}\n\n"
            f"{' '.join(draw.choices(vocabulary, weights, k=int(draw.expovariate(1 / 60)) + 1))}\n",
            f"{n}.md",
            draw.choice(["mine", "theirs"]),
        )
        for n in range(1500)
    ]
    with opened(url, create=True) as store, opened(url, tenant=["mine"]) as scoped:
        store.write(batch)
        matching_rows, looked_up = store.words._matching, list[int]()

        def counted(*args: Any) -> str:
            looked_up.append(store.db.value(f"SELECT count(*) FROM {matching_rows(*args)}"))
            return matching_rows(*args)

        monkeypatch.setattr(store.words, "_matching", counted)
        few, every = 0, 0
        for words in (draw.choices(vocabulary, weights, k=draw.choice([1, 2, 3, 5])) for _ in range(25)):
            asked = query.parse(" ".join([*words, "the"]))
            for one, filters in ((store, Filters()), (store, Filters("theirs")), (scoped, Filters())):
                monkeypatch.setattr(postgres_words, "AT_ONCE", 10**9)
                looked_up.clear()
                best = [hit.score for hit in one.search_words(asked, filters, 10)]
                every += sum(looked_up)
                monkeypatch.setattr(postgres_words, "AT_ONCE", 20)
                looked_up.clear()
                assert [hit.score for hit in one.search_words(asked, filters, 10)] == pytest.approx(best)
                few += sum(looked_up)
        assert few < every


def test_a_search_asks_the_server_few_times(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time is a round trip: so many whatever is found, and what is kept is asked for once."""
    text = "# Zebra {0}\n\nA red apple {0}.\n\n## Part\n\nThe zebra {0} eats a red apple.\n"
    store.write([prepared(text.format(n), f"{n}.md", chunk={"strategy": "nodes"}) for n in range(40)])
    embedding.embed(store, Tiny())
    (model,), asked, statements = store.models(), list[str](), store.db.rows

    def rows(sql: str, args: Any = ()) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return statements(sql, args)

    monkeypatch.setattr(store.db, "rows", rows)
    settings, meaning = replace(WORDS.search, limit=30), Meaning(model, Tiny(), "")
    for most in (25, 17):  # counted for the first, and kept for the next
        asked.clear()
        with store.reading():
            result = searcher.search(store, "red zebra apple", Filters(), settings, meaning)
        assert len(result.results) == 30
        assert all(found.highlights for found in result.results)
        assert len(asked) <= most, asked


def test_what_the_server_puts_off_is_done_after_a_write(url: str) -> None:
    """No search reads a list of terms that wait for the index, or a whole table for want of statistics."""
    with Library.open(url, create=True, config=WORDS) as library:
        library.store.write([prepared(f"# N\n\nred apple {n}\n", f"{n}.md") for n in range(300)])
        waiting = "SELECT gin_clean_pending_list('quire.words_terms')"
        assert postgres.execute(url, waiting) != [(0,)]
        library.remember("Zebras eat apples.")
        assert postgres.execute(url, waiting) == [(0,)]
    counted = "SELECT reltuples FROM pg_class WHERE oid = 'quire.documents'::regclass"
    assert postgres.execute(url, counted) == [(301,)]


def test_only_words_of_the_vocabulary_are_counted(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelled word has thousands of neighbours, and the library few of them."""
    store.write([prepared("# N\n\nThe installation of zebras.\n")])
    statements, looked_up = store.db.rows, list[int]()

    def rows(sql: str, args: Any = ()) -> list[tuple[Any, ...]]:
        if "count(*)" in sql and args:
            looked_up.append(len(args[0]))
        return statements(sql, args)

    monkeypatch.setattr(store.db, "rows", rows)
    result = searcher.search(store, "installtion", Filters(), WORDS.search, None)
    assert "installation" in result.notes[0]
    assert max(looked_up) < 5


# ------------------------------------------------------------------------------------- embedding


class Tiny:
    """A model that counts letters."""

    name, dimension, max_tokens = "tiny", 26, 1000

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        counts = [[text.lower().count(chr(97 + n)) + 0.01 for n in range(26)] for text in texts]
        return np.array([np.array(c) / np.linalg.norm(c) for c in counts], np.float32)

    def knows(self, text: str) -> bool:
        return True

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_documents([text])[0]
        return vector

    def close(self) -> None:
        pass


def near(store: Store, model: Model, text: str, limit: int = 10, **filters: Any) -> list[tuple[str, float]]:
    hits = store.search_vectors(model, Tiny().embed_query(text), Filters(**filters), limit)
    rows = store.documents_by_row({hit.document for hit in hits})
    assert all(hit.match == "semantic" for hit in hits)
    return [(rows[hit.document].path, hit.score) for hit in hits]


def test_vectors_are_written_found_and_kept_when_a_document_changes(library_url: str) -> None:
    """DESIGN §5: an edit embeds only what changed, and a text that comes back is not embedded again."""
    store, tiny = open_store(library_url, create=True), Tiny()
    first = "# A\n\nzzzz\n\n## B\n\nqqqq\n"
    store.write([prepared(first), prepared("# C\n\nkkkk\n", "b.md")])
    done = embedding.embed(store, tiny)
    (model,) = store.models()
    assert (done.embedded, model.active, store.count_unembedded(model)) == (3, True, 0)
    assert store.counts().embedded == 3
    assert near(store, model, "kkkk")[0][0] == "b.md"
    assert near(store, model, "kkkk", 1)[0][1] == pytest.approx(0.9, abs=0.1)
    store.write([prepared(first.replace("qqqq", "jjjj"))])
    assert store.count_unembedded(model) == 1
    assert len(embedding.embed(store, tiny).failed) == 0
    assert len(tiny.embedded) == 4
    store.write([prepared(first)])
    store.remove([row.seq for row in store.documents(Filters()) if row.path == "b.md"])
    store.write([prepared("# C\n\nkkkk\n", "b.md")])
    assert embedding.embed(store, tiny).reused == 2
    assert len(tiny.embedded) == 4
    assert store.check() == []
    store.close()


def test_vectors_can_be_read_and_compared(library_url: str) -> None:
    """What a copy and a blend of words and meaning need: vectors of chunks, and how near they are."""
    store, tiny = open_store(library_url, create=True), Tiny()
    store.write([prepared("# A\n\nzzzz\n"), prepared("# B\n\nqqqq\n", "b.md")])
    embedding.embed(store, tiny)
    (model,) = store.models()
    asked = tiny.embed_query("zzzz")
    ids = [hit.chunk for hit in store.search_vectors(model, asked, Filters(), 10)]
    held = store.vectors_of(model, [*ids, 5])
    near_by = store.cosines(model, asked, [*ids, 5])
    assert held.keys() == near_by.keys() == set(ids)
    assert near_by == pytest.approx({chunk: float(held[chunk] @ asked) for chunk in ids}, abs=0.02)
    assert max(near_by, key=lambda chunk: near_by[chunk]) == ids[0]
    store.close()


def test_chunks_of_one_text_share_a_vector(library_url: str) -> None:
    """A text is embedded once, and every chunk that has it is found."""
    store, tiny = open_store(library_url, create=True), Tiny()
    store.write([prepared("# A\n\nsame zzz\n", f"{n}.md") for n in range(3)])
    assert embedding.embed(store, tiny).embedded == 3
    assert len(tiny.embedded) == 1
    (model,) = store.models()
    assert sorted(path for path, _ in near(store, model, "zzz")) == ["0.md", "1.md", "2.md"]
    store.close()


def test_a_vector_of_an_older_version_is_not_stored(library_url: str) -> None:
    """A chunk whose document has changed since gets none."""
    store, tiny = open_store(library_url, create=True), Tiny()
    store.write([prepared("# A\n\nfirst\n")])
    model = store.model("tiny", 26)
    waiting = store.unembedded(model, 10)
    store.write([prepared("# A\n\nsecond\n")])
    store.write_vectors(model, waiting, tiny.embed_documents([chunk.text for chunk in waiting]))
    assert store.count_unembedded(model) == 1
    assert store.check() == []
    store.close()


def test_what_is_not_embedded_comes_in_order_and_from_a_place_on(library_url: str) -> None:
    """An interrupted run goes on where it stopped; one that a model refuses holds up no other."""
    store, tiny = open_store(library_url, create=True), Tiny()
    store.write([prepared(f"# A\n\none {n}\n\n## B\n\ntwo {n}\n", f"{n}.md") for n in range(5)])
    model = store.model("tiny", 26)
    every = store.unembedded(model, 100)
    assert len(every) == 10
    assert [c.chunk for c in every] == sorted(c.chunk for c in every)
    seen, after = [], -1
    while some := store.unembedded(model, 1, after):
        seen += some
        after = some[-1].chunk
    assert seen == every
    store.write_vectors(model, every[1:], tiny.embed_documents([c.text for c in every[1:]]))
    assert store.unembedded(model, 1, every[0].chunk) == []
    assert store.unembedded(model, 1) == every[:1]
    store.note_failures({every[0].document: "too odd"})
    assert store.embedding_failures() == {every[0].document: "too odd"}
    store.close()


def test_another_model_takes_over_once_it_has_all_vectors(library_url: str) -> None:
    """DESIGN §7: old vectors serve until the new set is complete."""
    store, tiny = open_store(library_url, create=True), Tiny()
    store.write([prepared("# A\n\nzzz\n")])
    embedding.embed(store, tiny)
    other = Tiny()
    other.name = "other"
    embedding.embed(store, other)
    (model,) = store.models()
    assert (model.name, model.active) == ("other", True)
    assert near(store, model, "zzz")
    assert store.check() == []
    store.close()


def test_few_vectors_of_texts_that_are_gone_are_remembered(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered is bounded."""
    monkeypatch.setattr(postgres_vectors, "REMEMBERED", 5)
    store.write([prepared(f"# A\n\n{'z' * n}\n", f"{n}.md") for n in range(1, 20)])
    embedding.embed(store, Tiny())
    store.remove([row.seq for row in store.documents(Filters())])
    assert store.db.value("SELECT count(*) FROM quire.remembered") == 5
    assert store.check() == []


def test_a_small_collection_has_its_nearest_vectors_and_a_large_one_nearly(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: a 1 % collection with recall of at least 0.98, by comparing all or by the index."""
    draw = np.random.default_rng(1)
    batch = [
        prepared(f"# {n}\n\n{n}\n", f"{n}.md", "small" if n % 100 == 0 else "large") for n in range(2000)
    ]
    store.write(batch)
    model = store.model("random", 32)
    chunks = store.unembedded(model, 10_000)
    vectors = draw.normal(size=(len(chunks), 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store.write_vectors(model, chunks, vectors)
    rows = store.documents_by_row({chunk.document for chunk in chunks})
    for exact in (20_000, 10):  # the second leaves the filtered ones to the index
        monkeypatch.setattr(postgres_vectors, "EXACT", exact)
        for collection in ("small", "large", None):
            places = [n for n, c in enumerate(chunks) if collection in (None, rows[c.document].collection)]
            right = total = 0
            for asked in draw.normal(size=(20, 32)).astype(np.float32):
                hits = store.search_vectors(model, asked, Filters(collection), 10)
                best = sorted(places, key=lambda n: -float(vectors[n] @ asked))[:10]
                right += len({hit.chunk for hit in hits} & {chunks[n].chunk for n in best})
                total += 10
                assert hits[0].score == pytest.approx(float(vectors[best[0]] @ asked), abs=0.02)
            assert right / total >= 0.98


# -------------------------------------------------------------------------------------- tenants


@pytest.fixture
def tenant(url: str) -> Iterator[str]:
    """A role that sees one of two collections, and cannot do more than others: it is no superuser."""
    admin, role = postgres.server().get_uri(), f"tenant_{url.rpartition('/')[0][-1:]}_{time.time_ns()}"
    postgres.execute(admin, f"CREATE ROLE {role} LOGIN")
    yield role
    database = re_database(url)
    for statement in (f"DROP OWNED BY {role}", f"DROP ROLE {role}"):
        postgres.execute(postgres.server().get_uri(database=database), statement)


def re_database(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


SECRET = "# Secret plans\n\nThe okapi launches at dawn.\n\n## Part\n\nMore okapi plans.\n"


@pytest.fixture
def shared(url: str, tenant: str) -> Iterator[tuple[PostgresStore, str]]:
    """A library of two tenants, embedded, and the URL of the one who sees only `mine`."""
    with opened(url, create=True) as store:
        store.write(
            [
                prepared("# Mine\n\nA zebra of mine.\n", "a.md", "mine"),
                replace(prepared(SECRET, "s.md", "theirs"), versions=(Version(1, SECRET),)),
            ]
        )
        embedding.embed(store, Tiny())
        store.grant(tenant, ["mine"])
        yield store, postgres.as_role(url, tenant)


def scoped(url: str, way: str) -> str:
    """Two ways to be kept to a collection: as a role that was granted it, or by the URL."""
    if way == "role":
        return url
    return f"{postgres.as_role(url, postgres.OWNER)}&collections=mine"


@pytest.mark.parametrize("way", ["role", "url"])
def test_a_tenant_sees_nothing_of_another(shared: tuple[PostgresStore, str], way: str) -> None:
    """Issue: read, search, merge, read by address and guess ids across tenants, and get nothing."""
    owner, url = shared
    theirs = next(row for row in owner.documents(Filters()) if row.collection == "theirs")
    first = theirs.seq * MAX_CHUNKS
    assert owner.earlier_versions(theirs.seq) == [Version(1, SECRET)]
    with Library.open(scoped(url, way), config=WORDS) as library:
        store = library.store
        assert [row.address for row in library.documents()] == ["mine:a.md"]
        assert store.collections() == ["mine"]
        assert library.status().collections == {"mine": 1}
        assert (store.counts().chunks, store.counts().embedded) == (1, 1)
        for text in ("okapi", '"okapi launches"', "oka*", "heading:secret", "zebra OR okapi -zebra"):
            assert library.search(text).results == ()
            assert store.search_words(query.parse(text), Filters(), 100) == []
        assert [r.address for r in library.search("zebra okapi").results] == ["mine:a.md#mine"]
        for filters in (Filters(), Filters("theirs"), Filters("mine"), Filters(paths=("s",))):
            hits = store.search_vectors(store.models()[0], Tiny().embed_query("okapi plans"), filters, 100)
            assert {hit.document for hit in hits}.isdisjoint({theirs.seq})
        for address in ("theirs:s.md", "s.md", "theirs:s.md#part"):
            with pytest.raises(NoResults):
                library.read(address)
        with pytest.raises(NoResults, match=r"No collection 'theirs'\. Known: mine\."):
            library.search("okapi", collection="theirs")
        assert store.documents_by_row([theirs.seq]) == {}
        assert store.chunks(range(first, first + 10)) == {}
        assert store.sections(theirs.seq) == []
        assert store.earlier_versions(theirs.seq) == []
        assert store.nodes([(theirs.seq, 0), (theirs.seq, 1)]) == {}
        for guess in (store.source, lambda row: store.passage(row, 0, 5), lambda row: store.section(row, 0)):
            with pytest.raises((LibraryError, TypeError, IndexError)):
                guess(theirs.seq)
        assert store.check() == []


@pytest.mark.parametrize("way", ["role", "url"])
def test_a_tenant_writes_nothing_of_another(shared: tuple[PostgresStore, str], way: str) -> None:
    """Issue: writing across tenants is refused or does nothing; within its own collection it works."""
    owner, url = shared
    before = owner.documents(Filters("theirs"))
    with opened(scoped(url, way)) as store:
        with pytest.raises(LibraryError, match=r"nothing was written: .*row-level security"):
            store.write([prepared("# New\n\ntext\n", "n.md", "theirs")])
        with pytest.raises(LibraryError, match="nothing was written"):
            store.write([prepared("# Over\n\ntext\n", "s.md", "theirs")])
        store.remove([before[0].seq])
        store.sight(SourceRow("folder", "/t", "/t", "theirs", "document"), [Sighting(before[0].seq, 1, 1, 1)])
        store.promote(before[0].seq, "critical")
        store.note_failures({before[0].seq: "x"})
        with pytest.raises(LibraryError, match=r"nothing was written: .*row-level security"):
            rename(store, before[0].seq, "moved.md", "theirs")
        assert rename(store, before[0].seq, "moved.md", "mine") == [before[0].seq]
        assert owner.documents(Filters("theirs")) == before
        assert owner.embedding_failures() == {}
        assert store.write([prepared("# New\n\nmy own\n", "n.md", "mine")]) == [False]
        assert store.write([prepared("# New\n\nmy own words\n", "n.md", "mine")]) == [True]
        assert found(store, "own") == ["n.md"]
        assert embedding.embed(store, Tiny()).embedded == 1
    assert owner.check() == []
    assert len(owner.documents(Filters())) == 3


def test_a_tenant_has_instant_meaning_of_its_own(shared: tuple[PostgresStore, str]) -> None:
    """A grant makes the model known, which a tenant may not; in older libraries words answer until then."""
    owner, url = shared
    config = override(DEFAULT, {"embed": {"model": "static"}})
    with Library.open(url, config=config) as library:
        assert (
            library.add(content="# Cars\n\nA car has four wheels.\n", path="f.md", collection="mine").failed
            == []
        )
        assert library.status().instant == library.status().chunks == 2
        found = library.search("automobile", mode="semantic")
        assert (found.model, found.results[0].path) == ("static", "f.md")
        forget_instant(owner)
        report = library.add(content="# More\n\nA dog barks.\n", path="m.md", collection="mine")
        assert (report.added, report.failed) == (1, [])
        assert [result.path for result in library.search("dog").results] == ["m.md"]
    with Library.open(url, config=override(DEFAULT, {"embed": {"model": "deep"}})) as library:
        owner.activate(owner.model("minilm", 384))
        report = library.add(content="# More\n\nA cat purrs.\n", path="m.md", collection="mine")
        assert report.updated == 1
        assert ["only the owner of the library can add it" in one.reason for one in report.failed] == [True]
    assert owner.check() == []


def test_a_tenant_who_types_sql_sees_no_more(shared: tuple[PostgresStore, str]) -> None:
    """Policies hold for any statement: nothing rests on what our own code asks for."""
    _, url = shared
    held = "documents sections chunks words vectors embedded remembered embedding_failures fetches tags"
    for table in [*held.split(), "vocabulary"]:
        assert postgres.execute(url, f"SELECT count(*) FROM quire.{table} WHERE collection <> 'mine'") == [
            (0,)
        ]
    with psycopg.connect(url) as db:
        # What a connection is kept to only ever narrows what its role was granted.
        db.execute("SELECT set_config('quire.collections', '{theirs,mine}', false)")
        for table in ("documents", "chunks", "words", "vectors"):
            assert db.execute(f"SELECT DISTINCT collection FROM quire.{table}").fetchall() == [("mine",)]
        counted = "SELECT count(*) FROM quire.matches(ARRAY[%s::integer])"
        assert db.execute(counted, (terms.number("okapi"),)).fetchone() == (0,)
        assert db.execute("SELECT quire.scope()").fetchone() == (["mine"],)
    for statement in (
        "SELECT * FROM quire.common_terms",
        "SELECT * FROM quire.grants",
        f"INSERT INTO quire.grants VALUES ({sql.Literal('x').as_string(None)}, 'theirs')",
        "ALTER TABLE quire.documents DISABLE ROW LEVEL SECURITY",
        "DROP POLICY granted ON quire.documents",
        "COPY quire.documents TO '/dev/null'",
        "SET ROLE librarian",
    ):
        with pytest.raises(psycopg.Error):
            postgres.execute(url, statement)
    statement = "UPDATE quire.documents SET collection = 'theirs'"
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        postgres.execute(url, statement)


def test_a_grant_is_widened_and_taken_away(shared: tuple[PostgresStore, str], tenant: str) -> None:
    """grant() says what a role sees from now on."""
    owner, url = shared
    owner.grant(tenant, ["mine", "theirs"])
    with opened(url) as store:
        assert store.collections() == ["mine", "theirs"]
        assert found(store, "okapi")[0] == "s.md"
    with opened(f"{url}&collections=theirs") as store:
        assert store.collections() == ["theirs"]
    with opened(url, tenant=["mine"]) as store:
        assert store.collections() == ["mine"]
    owner.grant(tenant, [])
    with opened(url) as store:
        assert store.collections() == []
        assert found(store, "zebra okapi") == []


def test_a_grant_is_seen_by_who_has_the_library_open(shared: tuple[PostgresStore, str], tenant: str) -> None:
    """What a tenant found before is no longer what it sees."""
    store, url = shared
    with opened(url) as mine:
        for collections in (["mine"], ["mine", "theirs"], ["theirs"], ["mine"]):
            store.grant(tenant, collections)
            assert mine.collections() == collections
            assert list(mine.counts().collections) == collections


def test_a_role_without_a_grant_cannot_open_a_library(url: str, tenant: str) -> None:
    """Nothing is seen by default."""
    with opened(url, create=True):
        pass
    with pytest.raises(LibraryError, match="permission denied"):
        open_store(postgres.as_role(url, tenant))


@pytest.mark.parametrize("name", ["it's", 'a "b"', "a\\b", "{x}", "ü", " ", "null", "%s"])
def test_a_scope_may_have_any_name(url: str, name: str) -> None:
    """Names are values, never part of a statement."""
    with opened(url, create=True) as store:
        store.write([prepared("# A\n\nokapi\n", "a.md", name), prepared("# B\n\nokapi\n", "b.md", "other")])
    with opened(url, tenant=[name]) as store:
        assert store.collections() == [name]
        assert found(store, "okapi") == ["a.md"]


def test_a_url_that_names_no_collection_is_refused(url: str) -> None:
    """An empty scope would show everything."""
    with pytest.raises(SettingError, match="names no collection"):
        open_store(f"{url}&collections=")


# ------------------------------------------------------------------------ many writers, lost servers


def folder(place: Path, count: int) -> Path:
    place.mkdir()
    for number in range(count):
        (place / f"doc{number:03}.md").write_text(
            f"# About {number}\n\ntopic{number:03} text.\n\n## More\n\nend\n"
        )
    return place


def test_two_who_index_the_same_folder_get_one_version_of_each(url: str, tmp_path: Path) -> None:
    """Issue: concurrent ingest of the same document by two workers gives one version."""
    docs = folder(tmp_path / "docs", 40)
    with Library.open(url, create=True, config=WORDS):
        pass

    def index(_: int) -> int:
        with Library.open(url, config=WORDS) as library:
            return len(library.add(docs).failed)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(index, range(3))) == [0, 0, 0]
    with Library.open(url, config=WORDS) as library:
        assert len(library.documents()) == 40
        assert library.store.check() == []
        assert [r.path for r in library.search("topic007").results] == ["doc007.md"]


def test_writers_of_overlapping_batches_in_any_order_all_finish(url: str) -> None:
    """Locks are taken in one order: no deadlock, and the last version of each is whole."""
    with opened(url, create=True):
        pass

    def write(writer: int) -> None:
        with opened(url) as store:
            order = range(20) if writer % 2 else range(19, -1, -1)
            for turn in range(5):
                store.write([prepared(f"# A\n\nby{writer} turn{turn}\n", f"{n}.md") for n in order])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    with opened(url) as store:
        assert len(store.documents(Filters())) == 20
        assert store.check() == []


def test_a_reader_sees_one_moment(store: PostgresStore, url: str) -> None:
    """DESIGN §1 (4): old or new, whole, never a mix."""
    store.write([prepared("# A\n\nfirst\n")])
    (row,) = store.documents(Filters())
    with opened(url) as other, store.reading():
        assert found(store, "first") == ["a.md"]
        other.write([prepared("# A\n\nsecond\n")])
        assert store.source(row.seq) == b"# A\n\nfirst\n"
        with store.reading():
            assert found(store, "second") == []
    assert found(store, "second") == ["a.md"]


def cut(url: str) -> int:
    """End every other connection to a database, as a network might."""
    admin = postgres.server().get_uri()
    ended = postgres.execute(
        admin,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
        (re_database(url),),
    )
    return len(ended)


def test_a_connection_that_is_cut_while_writing_is_tried_again(store: PostgresStore, url: str) -> None:
    """BAD_INPUTS: connection cut mid-ingest → retried, nothing half written."""
    tries = []

    def action(db: Any) -> None:
        tries.append(1)
        db.execute("INSERT INTO quire.facts VALUES (%s, 'x')", (f"try{len(tries)}",))
        if len(tries) == 1:
            assert cut(url)
        db.execute("SELECT 1")

    store.db.write(action)
    assert len(tries) == 2
    assert postgres.execute(url, "SELECT name FROM quire.facts WHERE value = 'x'") == [("try2",)]
    cut(url)
    assert store.documents(Filters()) == []  # a reader gets a connection that works


def test_connections_that_were_cut_while_idle_are_given_up_for_others(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAD_INPUTS: connection cut → the next reader and writer notice nothing, and need no patience."""
    monkeypatch.setattr(store.db, "patience", 0.0)
    for number in range(2):
        with store.reading():  # a second connection writes
            store.write([prepared(f"# A\n\nword{number}\n")])
        assert cut(url) >= 2
        assert found(store, f"word{number}") == ["a.md"]
        assert cut(url) >= 1
        store.write([prepared("# A\n\nlast\n")])
    assert found(store, "last") == ["a.md"]


def test_indexing_goes_on_while_connections_are_cut(url: str) -> None:
    """BAD_INPUTS: every batch is retried; nothing is lost."""
    cuts: list[int] = []
    stopped = threading.Event()

    def cut_often() -> None:
        while not stopped.wait(1.5):  # the pool waits for a second before it offers another connection
            cuts.append(cut(url))

    with opened(url, create=True) as store:
        cutter = threading.Thread(target=cut_often)
        cutter.start()
        written = 0
        try:
            while sum(map(bool, cuts)) < 3:
                store.write([prepared(f"# A\n\nword{written}n{n}\n", f"{written}-{n}.md") for n in range(10)])
                written += 10
        finally:
            stopped.set()
            cutter.join()
        assert len(store.documents(Filters())) == written
        assert store.check() == []


def test_what_is_acknowledged_survives_a_restart_of_the_server(url: str) -> None:
    """Issue: a restart mid-ingest loses nothing acknowledged; the batch is retried."""
    acknowledged: list[str] = []
    problems: list[Exception] = []

    def index() -> None:
        try:
            with opened(url, create=True) as store:
                for number in range(60):
                    store.write([prepared(f"# A\n\nword{number}\n", f"{number}.md")])
                    acknowledged.append(f"{number}.md")
        except Exception as problem:
            problems.append(problem)

    writer = threading.Thread(target=index)
    writer.start()
    for enough in (10, 30):
        while len(acknowledged) < enough and writer.is_alive():
            time.sleep(0.01)
        postgres.stop()
        seen = list(acknowledged)
        postgres.start()
        with opened(url) as store:
            assert {row.path for row in store.documents(Filters())} >= set(seen)
            assert store.check() == []
    writer.join()
    assert problems == []
    with opened(url) as store:
        assert len(store.documents(Filters())) == len(acknowledged) == 60
        assert store.check() == []


def test_a_search_whose_connection_is_cut_is_made_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: reads are retried as writes are, each on one snapshot."""
    ranked, asked = searcher.ranked, list[int]()

    def cut_once(*args: Any) -> Any:
        asked.append(1)
        if len(asked) == 1:
            assert cut(url)
        return ranked(*args)

    monkeypatch.setattr(searcher, "ranked", cut_once)
    with Library.open(url, create=True, config=WORDS) as library:
        library.add(content="# A\n\nokapi\n", path="a.md")
        assert [result.path for result in library.search("okapi").results] == ["a.md"]
        assert len(asked) == 2
        monkeypatch.setattr("quire.library.base._PAUSES", ())
        asked.clear()
        with pytest.raises(ConnectionLost, match="cannot be read"):
            library.search("okapi")
        assert library.read("content:a.md").text


def test_a_server_that_stays_away_is_reported(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAD_INPUTS: retried or reported; the error says what happened and that nothing was half written."""
    monkeypatch.setattr(postgres_database, "PATIENCE_SECONDS", 0.5)
    with opened(url, create=True) as store:
        store.write([prepared("# A\n\nfirst\n")])
        store.db._pool.timeout = 0.3
        postgres.stop()
        try:
            with pytest.raises(LibraryError, match="nothing was written, tried again for"):
                store.write([prepared("# A\n\nsecond\n")])
            with pytest.raises(LibraryError, match="cannot be read"):
                store.documents(Filters())
        finally:
            postgres.start()
        assert found(store, "first") == ["a.md"]


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (psycopg.errors.SerializationFailure, True),
        (psycopg.errors.DeadlockDetected, True),
        (psycopg.errors.AdminShutdown, True),
        (psycopg.errors.CannotConnectNow, True),
        (psycopg.errors.ConnectionFailure, True),
        (psycopg.errors.UniqueViolation, True),  # another writer was quicker to take a number
        (psycopg.OperationalError, True),  # a connection that is lost has no code
        (psycopg.errors.DiskFull, False),
        (psycopg.errors.InsufficientPrivilege, False),
        (psycopg.errors.UndefinedTable, False),
        (psycopg.ProgrammingError, False),
    ],
)
def test_only_what_another_try_may_mend_is_tried_again(problem: type[psycopg.Error], expected: bool) -> None:
    """FIELD_NOTES: 40001, 40P01, 08*, 57P0* and connection errors without a code."""
    assert is_transient(problem("x")) is expected


def test_an_action_that_fails_leaves_nothing(store: PostgresStore) -> None:
    """Whole or not at all, for errors of any kind."""

    def action(db: Any) -> None:
        db.execute("INSERT INTO quire.facts VALUES ('half', 'x')")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.db.write(action)
    with pytest.raises(LibraryError, match="nothing was written"):
        store.db.write(lambda db: db.execute("SELECT 1 FROM nowhere"))
    assert store.db.value("SELECT count(*) FROM quire.facts WHERE name = 'half'") == 0


def test_closing_lets_go_of_every_connection(url: str) -> None:
    """Nothing is left open."""
    with opened(url, create=True) as store:
        store.write([prepared("# A\n\ntext\n")])
        count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        assert postgres.execute(postgres.server().get_uri(), count, (re_database(url),))[0][0] >= 1
    until = time.monotonic() + 5
    while postgres.execute(postgres.server().get_uri(), count, (re_database(url),)) != [(0,)]:
        assert time.monotonic() < until
        time.sleep(0.02)
