"""Library.map: the documents of a library placed by meaning."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from quire import Library, Map, NoResults, mapping
from quire.config import DEFAULT, override
from quire.mapping import Point
from quire.stores import active_model

TOPICS = {
    "Bread": "Knead the dough of flour, water and yeast. Bake the loaf in a hot oven until it is brown.",
    "Databases": "An index makes queries fast. Transactions commit rows to tables, or roll them back.",
    "Football": "The goalkeeper stops the ball. A striker scores in the match, and the referee whistles.",
}


def text(topic: str, number: int) -> str:
    """A document about a topic, unlike the others about it."""
    said, also = TOPICS[topic].split(". "), "Also. " * number
    return f"# {topic} {number}\n\n{said[number % 2]}.\n\n## More\n\nPart {number}: {TOPICS[topic]} {also}\n"


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    """Ten documents about each of three topics, and two with the same bytes."""
    with Library.open(library_url, create=True) as library:
        for topic in TOPICS:
            for number in range(10):
                library.add(
                    content=text(topic, number), path=f"{topic.lower()}/{number}.md", collection="notes"
                )
        library.add(content=text("Bread", 3), path="copies/same.md", collection="notes")
        library.add(
            content="# Bread\n\nOne chunk only: dough, yeast and flour.\n", path="one.md", collection="other"
        )
        library.remember("Sam bakes bread on Sundays.")
        yield library


def middles(found: Map) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The middle of the documents in each folder."""
    return {
        topic: np.mean([(p.x, p.y) for p in found.points if f":{topic.lower()}/" in p.address], axis=0)
        for topic in TOPICS
    }


def test_documents_are_placed_by_meaning(library: Library) -> None:
    """Map: every document is shown once, nearer to those about the same; memories are not."""
    found = library.map()
    assert [point.address for point in found.points] == [
        row.address for row in library.documents() if row.kind == "document"
    ]
    at = middles(found)
    for point in found.points:
        topic = next((name for name in TOPICS if f":{name.lower()}/" in point.address), None)
        distances = {name: float(np.hypot(*(at[name] - (point.x, point.y)))) for name in TOPICS}
        assert topic is None or min(distances, key=lambda name: distances[name]) == topic
    assert found.notes == ()


def test_a_point_tells_of_its_document(library: Library) -> None:
    """Map: address, title, collection and size, for a picture to show."""
    row = library.document("notes:football/4.md")
    assert row is not None
    (point,) = (point for point in library.map().points if point.address == row.address)
    assert (point.title, point.collection, point.chunks) == (row.title, "notes", row.chunk_count)
    assert 0.2 * row.length < point.tokens < 0.5 * row.length


def test_documents_that_say_the_same_are_twins(library: Library) -> None:
    """Map: people see duplicates. Twins are mutual, and never a document itself."""
    points = {point.address: point for point in library.map().points}
    assert "notes:bread/3.md" in points["notes:copies/same.md"].twins
    assert "notes:copies/same.md" in points["notes:bread/3.md"].twins
    assert all(address not in point.twins for address, point in points.items())
    assert all(len(point.twins) <= 8 and set(point.twins) <= points.keys() for point in points.values())


def test_labels_name_the_topics(library: Library) -> None:
    """Map: a person knows from the labels what is where."""
    said = " ".join(label.text for label in library.map().labels).lower()
    assert all(topic.lower() in said for topic in TOPICS)


def test_a_collection_has_a_map_of_its_own(library: Library) -> None:
    """Map: only the documents of the collection; an unknown one is an error that names the nearest."""
    (point,) = library.map("other").points
    assert (point.address, point.x, point.y, point.twins) == ("other:one.md", 0, 0, ())
    with pytest.raises(NoResults, match="notes"):
        library.map("note")


def test_the_newest_version_is_shown(library_url: str) -> None:
    """Map: as a search, it keeps to the newest version, and says so."""
    with Library.open(library_url, create=True) as library:
        for version in ("1.0", "2.0"):
            library.add(content=text("Bread", 1), path="a.md", collection=f"book@{version}")
        for found in (library.map(), library.map("book")):
            assert [point.collection for point in found.points] == ["book@2.0"]
            assert "book@" in " ".join(found.notes)
        assert [point.collection for point in library.map("book@1.0").points] == ["book@1.0"]
        twins = {point.collection: point.twins for point in library.map("book@*").points}
        assert twins == {"book@1.0": ("book@2.0:a.md",), "book@2.0": ("book@1.0:a.md",)}


def test_a_second_call_is_instant_and_a_write_makes_a_new_map(library: Library) -> None:
    """Map: the last pictures are kept, each for its version of the library."""
    first = library.map()
    start = time.perf_counter()
    assert library.map() is first
    assert time.perf_counter() - start < 0.05
    library.add(content=text("Bread", 30), path="bread/30.md", collection="notes")
    second = library.map()
    assert len(second.points) == len(first.points) + 1
    library.remove("notes:bread/30.md")
    assert library.map() == first


def test_a_library_without_documents_or_vectors_says_so(library_url: str) -> None:
    """Map: never an error, but an empty map and a note."""
    without = override(DEFAULT, {"embed": {"model": "none"}})
    with Library.open(library_url, create=True, config=without) as library:
        assert library.map().points == library.map("anything").points == ()
        assert "no documents" in library.map().notes[0]
        library.add(content=text("Bread", 1), path="a.md", collection="notes")
        found = library.map()
        assert (found.points, found.labels) == ((), ())
        assert "quire embed" in found.notes[0]


def test_a_document_without_text_is_counted_in_a_note(library: Library) -> None:
    """Map: what cannot be placed is not hidden."""
    library.add(content="", path="empty.md", collection="notes")
    found = library.map("notes")
    assert "notes:empty.md" not in {point.address for point in found.points}
    assert found.notes == ("1 document is not shown: without text, or not embedded yet.",)


def test_a_large_library_is_sampled(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Map: above the most, a sample that stays the same, and a note."""
    monkeypatch.setattr(mapping, "MOST_POINTS", 20)
    found = library.map("notes")
    assert len(found.points) == 20
    assert found.notes == ("The map shows 20 of 31 documents, chosen by their ids.",)
    library.remove(found.points[0].address)
    again = library.map("notes")
    assert len({point.address for point in again.points} & {point.address for point in found.points}) == 19


def test_document_vectors_are_means_or_those_of_the_only_chunk(library: Library) -> None:
    """Map: one vector for each document, on both databases; unknown rows are left out."""
    store = library.store
    rows = [row for row in library.documents() if row.kind == "document"]
    model = active_model(store.models(), instant=True)
    assert model is not None
    found = store.document_vectors(model, [*(row.seq for row in rows), 999_999_999])
    assert found.keys() == {row.seq for row in rows}
    assert {row.chunk_count > 1 for row in rows} == {True, False}
    for row in rows:
        chunks = store.vectors_of(model, [(row.seq << 20) + index for index in range(row.chunk_count)])
        mean = np.sum(list(chunks.values()), axis=0)
        assert found[row.seq] @ mean / np.linalg.norm(mean) == pytest.approx(1, abs=0.01)
    assert store.document_vectors(model, []) == {}


def test_a_point_is_frozen() -> None:
    """HABITS 3: frozen, slotted dataclasses cross every boundary."""
    assert Point.__slots__
    with pytest.raises(AttributeError):
        Point("a", "b", "c", 0, 0, 1, 1, ()).x = 1  # type: ignore[misc]
