"""What a document says of itself: headings without text, and the fields of front matter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import Document, Tree, chunkers
from quire.config import DEFAULT, override
from quire.document import shown_from
from quire.errors import SettingError
from quire.library import Library
from tests.commands import run

PAGE = """\
---
title: Rollouts
description: How a new version reaches every node, and how it goes back.
aliases: [Deploying, Shipping releases]
tags:
  - operations
  - "#draft"
author: Ada Lovelace
---

The first paragraph is about quokkas.

## Pausing

Pause with one command.
"""
ZEBRAS = """\
# Animals

All about them.

## Zebra

## Lion

### Manes

Lions have manes.

# Plants

## Oak
"""


@pytest.fixture(params=["auto", "nodes", "sections", "windows", "headers"])
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=override(DEFAULT, {"embed": {"model": "none"}})) as it:
        yield it


def added(library: Library, path: str, text: str) -> None:
    library.add(content=text, path=path, collection="docs")


@pytest.mark.parametrize("word", ["zebra", "lion", "oak", "plants", "manes"])
@pytest.mark.parametrize("query", ["{}", "heading:{}"])
def test_headings_without_text_are_found_by_every_strategy(
    tmp_path: Path, word: str, query: str, strategy: str
) -> None:
    """Issue: a heading without text of its own is found by its words, by both strategies."""
    config = override(DEFAULT, {"embed": {"model": "none"}, "chunk": {"strategy": strategy}})
    with Library.open(f"{tmp_path}/library.db", create=True, config=config) as library:
        added(library, "animals.md", ZEBRAS)
        found = library.search(query.format(word)).results
        assert found
        assert found[0].path == "animals.md"
        library.add(content=ZEBRAS.replace("Oak", "Elm"), path="animals.md", collection="docs")
        assert not library.store.check()  # terms were removed as they were added
        assert bool(library.search(query.format(word)).results) == (word != "oak")


@pytest.mark.parametrize("strategy", ["auto", "nodes"])
def test_a_document_of_nothing_but_headings_is_found(tmp_path: Path, strategy: str) -> None:
    config = override(DEFAULT, {"embed": {"model": "none"}, "chunk": {"strategy": strategy}})
    with Library.open(f"{tmp_path}/library.db", create=True, config=config) as library:
        added(library, "a.md", "# Zebra\n\n## Okapi\n")
        assert [r.path for r in library.search("heading:okapi").results] == ["a.md"]


def test_a_heading_without_text_belongs_to_what_is_below_it() -> None:
    document = Document.from_text("# Top\n\nText.\n\n## Group\n\n### One\n\nText of one.\n\n## Alone\n")
    tree = Tree(document)
    for name in ("auto", "nodes"):
        chunks = chunkers.split(tree, name, DEFAULT.chunk.named(name), DEFAULT.tokens)
        assert [(chunk.section.title, chunk.headings) for chunk in chunks] == [
            ("Top", ()),
            ("One", ("Group", "Alone")),
        ]


def test_front_matter_is_in_no_snippet_and_in_no_result(library: Library) -> None:
    """Issue: front matter is not in snippets; its title, description, aliases and tags can be searched."""
    added(library, "rollouts.md", PAGE)
    (result,) = library.search("quokkas").results
    assert result.snippet.startswith("The first paragraph")
    text = library.read("docs:rollouts.md").text
    assert text[result.start : result.end].startswith("\nThe first paragraph")
    assert text.encode()[result.byte_start : result.byte_end].decode() == text[result.start : result.end]
    assert text.split("\n")[result.start_line].startswith("The first paragraph")
    assert result.title == "Rollouts"


@pytest.mark.parametrize(
    "query", ["rollouts", "reaches every node", "title:shipping", "deploying", "lovelace", "operations"]
)
def test_what_front_matter_says_is_searched(library: Library, query: str) -> None:
    added(library, "rollouts.md", PAGE)
    added(library, "other.md", "# Other\n\nNothing of that.\n")
    found = library.search(query).results
    assert [result.path for result in found][:1] == ["rollouts.md"]
    assert "---" not in found[0].snippet


def test_tags_filter(library: Library) -> None:
    """Issue: `tag:` and `--tag`."""
    added(library, "a.md", PAGE)
    added(library, "b.md", "---\ntags: draft, 2024\n---\n\nA paragraph.\n")
    added(library, "c.md", "A paragraph without tags.\n")

    def paths(query: str, *tags: str) -> list[str]:
        return sorted({result.path for result in library.search(query, tags=tags).results})

    assert paths("paragraph") == ["a.md", "b.md", "c.md"]
    assert paths("paragraph tag:draft") == ["a.md", "b.md"]
    assert paths("paragraph tag:#draft") == ["a.md", "b.md"]
    assert paths("paragraph tag:draft tag:operations") == ["a.md"]
    assert paths("paragraph -tag:draft") == ["c.md"]
    assert paths("paragraph", "draft", "2024") == ["b.md"]
    assert paths('paragraph tag:"draft"', "operations") == ["a.md"]
    assert paths("paragraph tag:nowhere") == []
    assert paths("paragraph tag:DRAFT") == paths("paragraph", "#Draft") == ["a.md", "b.md"]
    assert paths("paragraph tag:draft path:b") == ["b.md"]
    with pytest.raises(SettingError, match="only filters"):
        library.search("tag:draft")
    assert library.context("paragraph", tags=["2024"]).passages[0].address == "docs:b.md"


@pytest.mark.parametrize(
    ("block", "tags"),
    [
        ("tags: a b", ("a", "b")),
        ("tags: a, b c", ("a", "b c")),
        ("tags: [a, '#b', a, 7, null, [x], {y: z}]", ("a", "b", "7")),
        ("tags: {a: 1}", ()),
        ("tags:", ()),
        ("tags: 2024-01-02", ("2024-01-02",)),
        ("tags: ['#', '']", ()),
    ],
)
def test_tags_are_read_as_they_are_written(block: str, tags: tuple[str, ...]) -> None:
    assert Document.from_text(f"---\n{block}\n---\n\nText.\n").tags == tags


def test_a_document_of_nothing_but_front_matter_shows_what_it_says(library: Library) -> None:
    added(library, "a.md", "---\ntitle: Issues\ndescription: Where to report a kumquat.\n---\n")
    added(library, "b.md", "---\ntitle: Kumquats\nweight: 7\n---\n")
    shown = {result.path: result.snippet for result in library.search("kumquat").results}
    assert shown == {"a.md": "Where to report a kumquat.", "b.md": "Kumquats"}


@given(st.text(alphabet="-+\n:a[]{}\"' \ufeff", max_size=60))
def test_what_is_shown_is_never_nothing(text: str) -> None:
    """A document of nothing but front matter is shown with it; broken front matter is text."""
    start = shown_from(text)
    assert 0 <= start <= len(text)
    assert text[start:].strip() or not start


def test_the_command_line_filters_by_tag(tmp_path: Path) -> None:
    """Issue: `--tag`."""
    (tmp_path / "a.md").write_text(PAGE)
    run(tmp_path, "add", "a.md")
    run(tmp_path, "search", "quokkas", "--tag", "draft")
    run(tmp_path, "search", "quokkas", "--tag", "final", code=1)
    run(tmp_path, "context", "quokkas", "--tag", "draft")
