"""Sections and chunks by id, vectors of the caller's own, branches, source types and titles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from mcp import Client

from quire.config import override
from quire.errors import NoResults, SettingError
from quire.library import Library
from tests.commands import run
from tests.markdowns import markdown
from tests.mcp_client import ask, parameters, refused, some_docs, talk
from tests.test_embedding import forget_instant
from tests.words import WORDS

GUIDE = "# Guide\n\nIntro.\n\n## Install\n\nUse pip.\n\n## Use\n\n" + "Zebras eat grass. " * 400
NOBODY = "00000000-0000-5000-8000-000000000000"


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        opened.add(content=GUIDE, path="g.md", collection="docs")
        yield opened


def test_chunks_of_a_document_and_of_a_section(library: Library) -> None:
    found = library.chunks("docs:g.md")
    row = library.document("docs:g.md")
    assert row is not None
    assert [chunk.index for chunk in found] == list(range(row.chunk_count))
    assert all(chunk.text == GUIDE[chunk.start : chunk.end] for chunk in found)
    assert all(library.read(chunk.id).text.startswith(chunk.text) for chunk in found)
    assert all(library.chunk(chunk.id) == chunk for chunk in found)
    assert {(chunk.document_id, chunk.created_at, chunk.updated_at) for chunk in found} == {
        (row.id, row.created_at, row.updated_at)
    }
    assert [chunk.address for chunk in library.chunks("docs:g.md#install")] == ["docs:g.md#install"]
    assert library.chunks("docs:g.md#use") == [chunk for chunk in found if "#use" in chunk.address]
    assert library.chunks(found[-1].id) == found[-1:]
    assert library.chunks("docs:g.md#use~2-3") == [
        chunk for chunk in found if chunk.address in ("docs:g.md#use~2", "docs:g.md#use~3")
    ]
    assert {chunk.promotion for chunk in found} == {"standard"}
    library.promote(row.id, "critical")
    assert {chunk.promotion for chunk in library.chunks(row.id)} == {"critical"}


def test_what_has_no_chunk_is_none(library: Library) -> None:
    """A section of several chunks has an id, but no chunk has it."""
    section = next(one for one in library.sections("docs:g.md") if one.heading == "Use")
    assert [library.chunk(id) for id in (NOBODY, "no id", section.id)] == [None] * 3
    assert library.vector(NOBODY) is None
    with pytest.raises(NoResults, match="quire chunks"):
        library.set_vector(NOBODY, [1.0])


@given(markdown())
@settings(max_examples=40)
def test_sections_join_to_the_text_and_ids_lead_to_them(text: str) -> None:
    with Library.open(":memory:", create=True, config=WORDS) as library:
        library.add(content=text, path="a.md", collection="c")
        sections = library.sections("c:a.md")
        assert "".join(section.text for section in sections) == library.read("c:a.md").text
        assert [section.position for section in sections] == list(range(len(sections)))
        known = {section.id: section for section in sections}
        assert len(known) == len(sections)
        for section in sections[1:]:
            assert section.parent_id is not None
            assert known[section.parent_id].level < section.level
            assert library.read(section.id).address == section.address
        for chunk in library.chunks("c:a.md"):
            assert library.chunk(chunk.id) == chunk


# ------------------------------------------------------------------------------ vectors of one's own


def test_a_vector_of_ones_own_is_stored_replaced_and_searched_with(library: Library) -> None:
    chunks = library.chunks("docs:g.md")
    for number, chunk in enumerate(chunks):
        library.set_vector(chunk.id, [1, 0, 0] if number else [0, 2, 0])
    assert library.vector(chunks[0].id) == [0, 1, 0]
    assert all(chunk.embedded for chunk in library.chunks("docs:g.md"))
    assert library.search(vector=[0, 1, 0]).results[0].chunk_ids == (chunks[0].id,)
    library.set_vector(chunks[0].id, [1, 0, 0])
    library.set_vector(chunks[1].id, [0, 0, 3])
    best = library.search(vector=[0, 0, 1]).results[0]
    assert (best.address, best.match) == (chunks[1].address, "semantic")
    assert "keyword" in {result.match for result in library.search("zebras", vector=[0, 0, 1]).results}
    assert library.store.check() == []
    assert library.status().model == "custom"


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [float("nan"), 1.0], ["a", "b"], [[1.0], [2.0]], [1.0]])
def test_what_is_no_vector_is_refused(library: Library, vector: list[float]) -> None:
    chunk = library.chunks("docs:g.md")[0]
    library.set_vector(chunk.id, [0.6, 0.8])
    with pytest.raises(SettingError, match="vector"):
        library.set_vector(chunk.id, vector)
    with pytest.raises(SettingError, match="vector"):
        library.search(vector=vector)
    assert library.vector(chunk.id) == pytest.approx([0.6, 0.8], abs=0.01)


def test_a_library_with_vectors_of_ones_own_embeds_nothing(tmp_path: Path) -> None:
    """Adding goes on, and a search without a vector says why it is by words, or with static."""
    config = override(WORDS, {"embed": {"model": ""}})
    with Library.open(tmp_path / "own.db", create=True, config=WORDS) as library:
        library.add(content=GUIDE, path="g.md")
        library.set_vector(library.chunks("g.md")[0].id, [1.0, 2.0])
    with Library.open(tmp_path / "own.db", config=config) as library:
        report = library.add(content="# More\n\nOkapis.\n", path="m.md")
        assert (report.added, report.failed) == (1, [])
        found = library.search("okapis")
        assert (found.model, len(found.results)) == ("static", 1)
        assert any("search(vector=" in note for note in found.notes)
        forget_instant(library.store)
        found = library.search("okapis")
        assert (found.mode, len(found.results)) == ("keyword", 1)
        assert any("search(vector=" in note for note in found.notes)
        with pytest.raises(SettingError, match=r"embed\.model"):
            library.embed()


def test_without_vectors_one_finds_nothing(library: Library) -> None:
    with pytest.raises(NoResults, match="Nothing is embedded"):
        library.search(vector=[1.0])
    with pytest.raises(SettingError, match="is empty"):
        library.search("")


# ------------------------------------------------------------------- branches, source types and titles


def test_branches_are_searched_listed_and_removed_together(library: Library) -> None:
    for branch in ("main", "dev"):
        library.add(content=f"# Okapi\n\n{branch}\n", path="a/o.md", collection=f"zoo@{branch}")
    library.add(content="# Okapi\n\nplain\n", path="o.md", collection="zoo")
    library.add(content="# Okapi\n\nother\n", path="o.md", collection="zooA")
    assert {r.collection for r in library.search("okapi", collection="zoo@*").results} == {
        "zoo@main",
        "zoo@dev",
    }
    assert len(library.search("okapi", collection="zoo@dev").results) == 1
    assert [row.address for row in library.documents("zoo@*")] == ["zoo@dev:a/o.md", "zoo@main:a/o.md"]
    assert len(library.remove(collection="zoo@*", paths=["a/"], dry_run=True)) == 2
    assert [row.address for row in library.remove(collection="zoo@dev", paths=["a/"])] == ["zoo@dev:a/o.md"]
    assert [row.address for row in library.remove(collection="zoo@*")] == ["zoo@main:a/o.md"]
    assert {row.collection for row in library.documents()} == {"docs", "zoo", "zooA"}
    with pytest.raises(NoResults, match="No collection"):
        library.remove(collection="zoo@*")
    with pytest.raises(SettingError, match="stands for all branches"):
        library.add(content="x", path="x.md", collection="zoo@*")


def test_the_source_type_of_content(library: Library) -> None:
    text = "# Not a heading\n\ntext\n"
    library.add(content=text, path="a.md", collection="t", source_type="txt")
    library.add(content=text, path="b.txt", collection="t", source_type="md")
    rows = {row.path: row for row in library.documents("t")}
    assert {path: (row.source_type, row.title) for path, row in rows.items()} == {
        "a.md": ("txt", "a"),
        "b.txt": ("md", "Not a heading"),
    }
    assert len(library.sections("t:a.md")) == 1
    with pytest.raises(SettingError, match="source_type"):
        library.add(content=text, path="c.md", source_type="pdf")


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("first line\nsecond\n", "first line"),
        (f"{'long ' * 40}\n", ("long " * 20).strip()),
        ("text\n\n### Deep\n\ntext\n", "Deep"),
        ("## Two\n\n# One\n\ntext\n", "One"),
        ("---\ntitle: Told\n---\n\n# One\n", "Told"),
    ],
)
def test_content_without_a_name_has_a_title(library: Library, content: str, title: str) -> None:
    (address,) = library.add(content=content).addresses
    row = library.document(address)
    assert row is not None
    assert row.title == title
    assert library.add(content=content).unchanged == 1


# ------------------------------------------------------------------------------------------- surfaces


def test_chunks_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/g.md").write_text(GUIDE)
    run(tmp_path, "add", "docs")
    shown = [json.loads(line) for line in run(tmp_path, "chunks", "docs:g.md", "--json")[0].splitlines()]
    assert all(GUIDE[chunk["start"] : chunk["end"]] == chunk["text"] for chunk in shown)
    lines = run(tmp_path, "chunks", "g.md")[0].splitlines()
    assert [line.split()[:2] for line in lines] == [[chunk["id"], chunk["address"]] for chunk in shown]
    assert run(tmp_path, "chunks", shown[-1]["id"])[0].splitlines() == lines[-1:]
    assert "Did you mean" in run(tmp_path, "chunks", "docs:h.md", code=1)[1]
    assert run(tmp_path, "chunks", NOBODY, code=1)[0] == ""


def test_an_agent_promotes_refreshes_reads_chunks_and_removes_paths(tmp_path: Path) -> None:
    """Issue: 003's tools over MCP."""
    some_docs(tmp_path)

    async def work(client: Client) -> None:
        await ask(client, "add", sources=["."], collection="lamp@main", external=False)
        assert "is critical now" in await ask(
            client, "promote", address="lamp@main:guide.md", level="critical"
        )
        chunks = await ask(client, "read", address="lamp@main:guide.md", chunks=True)
        assert "lamp@main:guide.md#install (id " in chunks
        assert "All is up to date." in await ask(client, "refresh", check=True)
        guide = tmp_path / "docs/guide.md"
        guide.write_text(f"{guide.read_text()}\nOkapis.\n")
        assert "changed  lamp@main:guide.md" in await ask(client, "refresh", check=True)
        assert "1 updated" in await ask(client, "refresh")
        assert "guide.md" in await ask(client, "search", query="okapis")
        would = await ask(client, "remove", collection="lamp@*", paths=["guide"], dry_run=True)
        assert "Would remove 1 document." in would
        assert "Removed 1 document." in await ask(client, "remove", collection="lamp@main", paths=["guide"])
        await ask(client, "add", content="# Theirs\n\nText.\n", path="t.md", collection="ext", external=True)
        assert "external" in await refused(client, "promote", address="ext:t.md", level="critical")

    talk(parameters(tmp_path), work)
