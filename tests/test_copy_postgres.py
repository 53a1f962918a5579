"""Copying a library from SQLite to PostgreSQL and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quire
from quire.errors import LibraryError
from quire.ingest.prepare import prepare
from quire.library import Library
from quire.result import Result
from quire.stores import MAX_CHUNKS, Filters, Prepared, Store
from quire.stores.postgres import PostgresStore
from quire.stores.sqlite import SqliteStore
from tests import postgres
from tests.words import WORDS

pytestmark = postgres.needs_postgres

GUIDE = "# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n\n## Straße\n\nEine Überschrift.\n"
ODD = b"\xef\xbb\xbf# Odd\r\n\r\nA bad byte \xff and \xf0\x9f\x90\xa7.\r\n\r\n## Odd\r\n\r\nAgain.\r\n"
ZOO = {
    "birds.md": "# Birds\n\nPenguins swim in cold water.\n\n## Owls\n\nThey hunt at night.\n",
    "cars.md": "# Cars\n\nA car has four wheels and an engine.\n",
    "empty.md": "",
    "zh.md": "# 检索\n\n检索文档的系统。文档很好。\n",
}
QUERIES = ("birds in water", "install", '"package manager"', "water -engine", "文档", "heading:owls", "odd")
Url = str | Path


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a new and empty PostgreSQL database."""
    made = postgres.fresh_url()
    yield made
    postgres.drop(made)


@pytest.fixture(params=["to PostgreSQL", "to SQLite"])
def ends(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> tuple[Url, Url, type[Any]]:
    """Where a library is, where it goes to, and the store there."""
    if request.param == "to PostgreSQL":
        return tmp_path / "a.db", url, PostgresStore
    return url, tmp_path / "b.db", SqliteStore


def prepared(text: str | bytes, path: str, collection: str = "docs", **facts: Any) -> Prepared:
    source = text if isinstance(text, bytes) else text.encode()
    document = quire.Document.from_bytes(source, path, collection=collection)
    return replace(prepare(document, WORDS), **facts)


def fill(library: Library) -> None:
    """Documents of every sort: tagged, promoted, from a server, old, odd, empty; all embedded."""
    then: dict[str, Any] = {"created_at": 1_600_000_000_000, "updated_at": 1_700_000_000_000}
    library.store.write(
        [
            prepared(GUIDE, "guide.md", tags=("blue", "naïve"), **then),
            prepared(ODD, "a folder/odd.md", tags=("blue",), promotion="important"),
            prepared(GUIDE, "page", "web", kind="external", url="https://x.org/page", etag='"1"'),
            prepared("Tea at four.\n", "tea", "notes", kind="memory", tags=("habit",)),
            *(prepared(text, path) for path, text in ZOO.items()),
        ]
    )
    library.promote("docs:guide.md", "critical")
    library.embed()


def facts(store: Store) -> list[tuple[object, ...]]:
    """All that is stored of documents but their rows and vectors."""
    found = []
    for row in store.documents(Filters()):
        first = row.seq * MAX_CHUNKS
        chunks = store.chunks(range(first, first + row.chunk_count))
        found.append(
            (
                *astuple(row)[1:],
                store.source(row.seq),
                store.tags([row.seq]).get(row.seq, ()),
                store.fetched([row.seq]).get(row.seq),
                [astuple(section)[1:] for section in store.sections(row.seq)],
                [astuple(chunks[chunk])[2:] for chunk in sorted(chunks)],
            )
        )
    return found


def vectors(store: Store) -> dict[tuple[str, str, int], np.ndarray[Any, Any]]:
    """The vectors of chunks, by their models, the ids of their documents and their places in them."""
    ids = {row.seq: row.id for row in store.documents(Filters())}
    chunks = [row.seq * MAX_CHUNKS + n for row in store.documents(Filters()) for n in range(row.chunk_count)]
    return {
        (model.name, ids[chunk // MAX_CHUNKS], chunk % MAX_CHUNKS): vector
        for model in store.models()
        for chunk, vector in store.vectors_of(model, chunks).items()
    }


def answers(library: Library) -> list[list[Result]]:
    """What is found for each query in each mode, without scores: vectors are rounded differently."""
    return [
        [replace(result, score=0.0, confidence=0.0) for result in library.search(text, mode=mode).results]
        for text in QUERIES
        for mode in ("keyword", "semantic", "hybrid")
    ]


def interrupted(times: int, action: Callable[..., Any]) -> Callable[..., Any]:
    """The same action, until it was done so many times."""
    left = iter(range(times))

    def failing(*args: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return action(*args)

    return failing


@pytest.fixture(scope="module")
def trip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Library, Library, Library]]:
    """A library in SQLite, its copy in PostgreSQL, and the copy of that in SQLite."""
    folder, url = tmp_path_factory.mktemp("trip"), postgres.fresh_url()
    with Library.open(folder / "a.db", create=True) as first:
        fill(first)
        first.copy(url)
        with Library.open(url) as second:
            second.copy(folder / "b.db")
            with Library.open(folder / "b.db") as third:
                yield first, second, third
    postgres.drop(url)


def test_a_library_goes_to_postgres_and_back(trip: tuple[Library, Library, Library]) -> None:
    """Issue 5: `quire copy --to` both ways; ids, addresses, checksums, times, tags and promotion arrive."""
    first, second, third = (library.store for library in trip)
    assert len(facts(first)) == 8
    assert facts(second) == facts(first)
    assert facts(third) == facts(first)
    assert second.counts() == third.counts() == first.counts()
    assert [second.check(), third.check()] == [[], []]


def test_vectors_go_to_postgres_and_back(trip: tuple[Library, Library, Library]) -> None:
    """Issue 5: vectors arrive, as exact as each database keeps them."""
    ours, *copies = (vectors(library.store) for library in trip)
    assert {key[0] for key in ours} == {"deep", "static"}
    assert len(ours) == 2 * trip[0].status().chunks
    for copied in copies:
        assert copied.keys() == ours.keys()
        assert all(np.allclose(copied[chunk], ours[chunk], atol=0.002) for chunk in ours)


def test_what_was_copied_answers_alike(trip: tuple[Library, Library, Library]) -> None:
    """Issue 5: the same questions find the same results, by words, by meaning and by both."""
    first, second, third = map(answers, trip)
    assert all(first[::3])  # by words
    assert second == first
    assert third == first


def test_a_copy_that_was_cut_off_goes_on(
    ends: tuple[Url, Url, type[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5: resumable both ways; what arrived before is whole, and is not sent again."""
    source, target, store = ends
    monkeypatch.setattr("quire.copying.BATCH_BYTES", 1)
    with Library.open(source, create=True) as library:
        fill(library)
        with monkeypatch.context() as patch:
            patch.setattr(store, "write", interrupted(3, store.write))
            with pytest.raises(KeyboardInterrupt):
                library.copy(target)
        with Library.open(target) as copy:
            assert (len(copy.documents()), copy.store.check()) == (3, [])
            assert copy.status().instant == copy.status().chunks
            assert [row for row in facts(library.store) if row in facts(copy.store)] == facts(copy.store)
        done = library.copy(target)
        assert (done.documents, done.unchanged) == (5, 3)
        with Library.open(target) as copy:
            assert facts(copy.store) == facts(library.store)
            assert copy.store.check() == []


def test_vectors_that_were_cut_off_go_on(
    ends: tuple[Url, Url, type[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5: resumable both ways; vectors that arrived are not sent again, and none is missing."""
    source, target, store = ends
    monkeypatch.setattr("quire.copying._BATCH_VECTORS", 2)
    with Library.open(source, create=True) as library:
        fill(library)
        with monkeypatch.context() as patch:
            patch.setattr(store, "write_vectors", interrupted(2, store.write_vectors))
            with pytest.raises(KeyboardInterrupt):
                library.copy(target)
        chunks = library.status().chunks
        with Library.open(target) as copy:
            there = copy.status().embedded
            assert 0 < there < chunks
        done = library.copy(target)
        assert (done.documents, done.unchanged, done.vectors) == (0, 8, chunks - there)
        with Library.open(target) as copy:
            assert copy.status() == library.status()
            assert vectors(copy.store).keys() == vectors(library.store).keys()
            assert copy.store.check() == []


def test_only_what_changed_is_sent_again(ends: tuple[Url, Url, type[Any]]) -> None:
    """Issue 5: resumable both ways; a new text takes the place of the old, with its vectors."""
    source, target, _ = ends
    with Library.open(source, create=True) as library:
        fill(library)
        library.copy(target)
        library.add(content="# Cars\n\nA submarine dives.\n", path="cars.md", collection="docs")
        done = library.copy(target)
        assert (done.documents, done.unchanged, done.vectors) == (1, 7, 1)
        assert library.copy(target).documents == 0
        with Library.open(target) as copy:
            assert copy.source("docs:cars.md") == b"# Cars\n\nA submarine dives.\n"
            assert answers(copy) == answers(library)
            assert copy.store.check() == []


def test_what_is_lost_or_damaged_on_the_way_is_noticed(
    ends: tuple[Url, Url, type[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5: verified by counts, and by checksums of the bytes that arrived."""
    source, target, store = ends
    write, read = store.write, store.source
    with Library.open(source, create=True, config=WORDS) as library:
        library.store.write([prepared(GUIDE, "a.md"), prepared(GUIDE, "b.md")])
        with monkeypatch.context() as patch:
            patch.setattr(store, "write", lambda self, batch, remove=(): write(self, batch[:1], remove))
            with pytest.raises(LibraryError, match=r"docs:b\.md did not arrive as it was sent"):
                library.copy(target)
        with monkeypatch.context() as patch:
            patch.setattr(store, "source", lambda self, row: read(self, row)[::-1])
            with pytest.raises(LibraryError, match=r"docs:a\.md did not arrive as it was sent"):
                library.copy(target)
        assert library.copy(target).unchanged == 2
