"""A document to its tree (R), and the outline and sections by name (T2, T8–T10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire.config import TreeSettings
from quire.errors import NoResults
from quire.tree import Section, Tree, slugify
from tests.markdowns import markdown

GUIDE = """\
---
title: The Guide
---
Preamble.

# Guide

Welcome.

## Install

Use pip.

### Linux

apt.

## Empty

## Use

Run it.

# Appendix

End.
"""


def build(text: str, path: str = "guide.md", **settings: str) -> Tree:
    return Tree(quire.Document.from_text(text, path, collection="docs"), TreeSettings(**settings))


def titles(text: str) -> list[str]:
    return [section.title for section in build(text).sections[1:]]


def draw(tree: Tree) -> str:
    """The tree as people would draw it."""
    return "\n".join(f"{'  ' * len(s.lineage)}{s.title}: {' '.join(s.body.split())}" for s in tree.sections)


def test_a_hash_inside_a_fence_is_not_a_heading() -> None:
    """R1: only headings open sections."""
    assert titles("# A\n```\n# not me\n```\n") == ["A"]


def test_a_heading_has_level_text_and_the_bytes_of_its_line() -> None:
    """R1: level, text with inline code, start and end of the heading line."""
    tree = build("é\n\n## The `run` *loop* ##\n\ntext\n")
    section = tree.sections[1]
    assert (section.level, section.title) == (2, "The run loop")
    assert tree.document.source[section.span_start : section.byte_start] == b"## The `run` *loop* ##\n"


def test_the_tree_of_a_guide() -> None:
    """R2–R8: preamble, spans, parents and bodies; a heading with nothing under it is discarded."""
    assert draw(build(GUIDE)) == "\n".join(
        [
            "The Guide: --- title: The Guide --- Preamble.",
            "  Guide: Welcome.",
            "    Install: Use pip.",
            "      Linux: apt.",
            "    Use: Run it.",
            "  Appendix: End.",
        ]
    )


def test_the_root_is_the_document() -> None:
    """R3: depth 0, slug "", span of the whole text."""
    root = build(GUIDE).root
    assert (root.level, root.slug, root.start, root.end, root.parent) == (0, "", 0, len(GUIDE), None)
    assert (root.span_start, root.span_end) == (0, len(GUIDE.encode()))


@pytest.mark.parametrize(
    ("text", "path", "title"),
    [
        ("---\ntitle: F\n---\n# H\n\nx\n", "a/b.md", "F"),
        ("## Two\n\nx\n\n# One\n\ny\n", "a/b.md", "One"),
        ("```\n# code\n```\n", "a/b.md", "b"),
        ("text", "a/b.txt", "b"),
        ("\n\n  First line of text. \nsecond\n", "", "First line of text."),
        ("x" * 300, "", "x" * 100),
        ("", "", ""),
        ("---\ntitle: 5\n---\n# H\n\nx\n", "", "H"),
    ],
)
def test_where_the_title_comes_from(text: str, path: str, title: str) -> None:
    """R3, R11, D16: front matter, first H1 that is a heading, file name, first line of at most 100."""
    assert build(text, path).title == title


def test_a_given_title_wins() -> None:
    """D16: the title given comes first."""
    assert Tree(quire.Document.from_text("# H\n\nx\n", "a.md", title="Mine")).title == "Mine"


def test_depth_is_the_heading_level_and_parents_are_the_nearest_above() -> None:
    """R4, R7: depth = level; a heading hangs on the nearest one before it of lower depth."""
    tree = build("### deep\n\na\n\n# top\n\nb\n\n#### four\n\nc\n\n## two\n\nd\n")
    parents = {s.title: s.parent.title if s.parent and s.parent.level else None for s in tree.sections[1:]}
    assert parents == {"deep": None, "top": None, "four": "top", "two": "top"}
    assert [s.level for s in tree.sections] == [0, 3, 1, 4, 2]


def test_a_span_runs_to_the_next_heading_of_the_same_or_lower_depth() -> None:
    """R5: spans, and R15: a parent is rebuilt in full by reading its range."""
    tree = build(GUIDE)
    install, _ = tree.find("Install")
    assert install.text == "## Install\n\nUse pip.\n\n### Linux\n\napt.\n\n"
    assert tree.document.source[install.span_start : install.span_end].decode() == install.text


def test_only_a_heading_with_neither_text_nor_children_is_discarded() -> None:
    """R6 and its ruling: children make a span non-empty."""
    assert titles("# A\n## B\ntext\n# C\n\n   \n# D\n## E\n") == ["A", "B", "D"]


def test_discarding_a_heading_never_renumbers_slugs() -> None:
    """R ruling: slugs are numbered before discarding."""
    tree = build("# Foo\n\n# Foo\n\ntext\n")
    assert [s.slug for s in tree.sections] == ["", "foo-1"]


def test_every_byte_is_in_at_most_one_body_and_heading_lines_in_none() -> None:
    """R8, R9: bodies leave out children and heading lines."""
    bodies = [s.body for s in build(GUIDE).sections]
    assert not any(line.startswith("#") for body in bodies for line in body.splitlines())
    kept = GUIDE.replace("## Empty\n\n", "")  # what follows a discarded heading is in no body either
    assert "".join(bodies) == "".join(line for line in kept.splitlines(True) if not line.startswith("#"))


def test_a_document_without_headings_is_its_own_body() -> None:
    """R8, R11: no headings → the whole file; plain text never has any."""
    assert build("just text\n").root.body == "just text\n"
    plain = build("# a comment\n\ncode\n", "notes.txt")
    assert (len(plain.sections), plain.root.body, plain.title) == (1, "# a comment\n\ncode\n", "notes")
    assert plain.root.address == "docs:notes.txt"


def test_ids_name_tree_path_and_slug() -> None:
    """R12: ids, doc_id, parent_id, and position in document order from 0."""
    tree = build(GUIDE, "a/guide.md")
    assert [(s.position, s.address, s.parent_id) for s in tree.sections[:4]] == [
        (0, "docs:a/guide.md", None),
        (1, "docs:a/guide.md#guide", "docs:a/guide.md"),
        (2, "docs:a/guide.md#install", "docs:a/guide.md#guide"),
        (3, "docs:a/guide.md#linux", "docs:a/guide.md#install"),
    ]
    assert {s.document.address for s in tree.sections} == {"docs:a/guide.md"}


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Getting Started", "getting-started"),
        ("C++ & C#", "c-c"),
        ("  a -- b_c  ", "a-b_c"),
        ("Straße 文档", "strae"),
        ("文档", "heading"),
        ("", "heading"),
        ("-- --", "heading"),
        ("What's new in 2.0?", "whats-new-in-20"),
    ],
)
def test_slugs(title: str, slug: str) -> None:
    """R13: lower case, ASCII letters, digits and underscores, single hyphens, trimmed, never empty."""
    assert slugify(title, "ascii") == slug


def test_repeated_slugs_are_numbered_and_never_collide() -> None:
    """R13 and its ruling: Foo, Foo, "Foo 1" never collide."""
    tree = build("# Foo\na\n# Foo\nb\n# Foo 1\nc\n# Foo\nd\n")
    assert [s.slug for s in tree.sections[1:]] == ["foo", "foo-1", "foo-1-1", "foo-2"]


def test_github_slugs_keep_letters_of_every_script() -> None:
    """R ruling: slug_style github, for documents that are not English."""
    tree = build("# 安装 指南\n\nx\n\n# A - B!\n\ny\n", slug_style="github")
    assert [s.slug for s in tree.sections[1:]] == ["安装-指南", "a---b"]


def test_body_offsets_are_bytes() -> None:
    """R14: byte_start and byte_end are the body's."""
    tree = build("# Ä\n\nö\n\n## B\n\nü\n")
    section = tree.sections[1]
    assert tree.document.source[section.byte_start : section.byte_end].decode() == "\nö\n\n"


def test_breadcrumbs() -> None:
    """R16: document › parents › title; the first heading is left out where it repeats the title."""
    tree = build("# Guide\n\na\n\n## Install\n\nb\n\n# Other\n\nc\n")
    assert [s.breadcrumb for s in tree.sections] == [
        "> Guide",
        "> Guide",
        "> Guide › Install",
        "> Guide › Other",
    ]
    titled = build(GUIDE)
    assert titled.sections[3].breadcrumb == "> The Guide › Guide › Install › Linux"


def test_header_paths_keep_their_markers() -> None:
    """H3: `## A > ### B`; a heading that holds ` > ` is safe, since the path is a list."""
    tree = build("# T\n\nx\n\n## A > B\n\ny\n\n### C\n\nz\n")
    assert [s.header_path for s in tree.sections] == ["", "# T", "## A > B", "## A > B > ### C"]
    assert tree.sections[3].headers == ("## A > B", "### C")


def test_the_outline_is_built_even_for_a_document_that_fits_one_chunk() -> None:
    """T2, T8 and ruling: the heading tree is always built; level 0 is the text before the first heading."""
    tree = build(GUIDE)
    assert [(s.level, s.title) for s in tree.sections] == [
        (0, "The Guide"),
        (1, "Guide"),
        (2, "Install"),
        (3, "Linux"),
        (2, "Use"),
        (1, "Appendix"),
    ]
    assert [s.title for s in tree.children(tree.root)] == ["Guide", "Appendix"]
    assert [s.title for s in tree.descendants(tree.sections[1])] == ["Install", "Linux", "Use"]


def test_the_whole_document_is_the_root() -> None:
    """T9: get(collection, path) is the whole document."""
    assert build(GUIDE).root.text == GUIDE


@pytest.mark.parametrize(
    "name", ["linux", "#linux", "Linux", "linuX", "### Linux", "Install > Linux", "Guide > Linux"]
)
def test_a_section_is_found_by_slug_heading_or_path(name: str) -> None:
    """T10: get(collection, path, heading), by slug, heading text or path `A > B`."""
    section, others = build(GUIDE).find(name)
    assert (section.title, others) == ("Linux", 0)


def test_a_name_that_occurs_twice_gives_the_first_and_says_so() -> None:
    """T ruling: the first in document order, and how many others there are."""
    tree = build("# A\n\n## Notes\n\n1\n\n# B\n\n## Notes\n\n2\n")
    section, others = tree.find("Notes")
    assert (section.body.strip(), others) == ("1", 1)
    section, others = tree.find("B > Notes")
    assert (section.body.strip(), others) == ("2", 0)


def test_a_heading_that_is_not_there_names_the_nearest() -> None:
    """T14, BAD_INPUTS: unknown heading → NoResults that names the nearest."""
    with pytest.raises(NoResults, match=r"No heading 'Instal' in guide.md. Did you mean 'Install'\?"):
        build(GUIDE).find("Instal")


def test_ids_stay_when_text_changes_and_structure_does_not() -> None:
    """R24: ids are stable across edits that do not change structure."""
    edited = GUIDE.replace("Use pip.", "Use pip or uv, whichever you like. " * 40)
    assert [s.address for s in build(edited).sections] == [s.address for s in build(GUIDE).sections]


@given(markdown(), st.integers(0, 10_000))
def test_every_character_is_in_one_section(text: str, place: int) -> None:
    """Invariant 3: the section at a character is the one whose own range holds it."""
    tree = build(text)
    if text:
        place %= len(text)
        holders = [s for s in tree.sections if s.start <= place < s.own_end]
        assert holders[-1:] == [tree.at(place)]
        assert len(holders) == 1


def test_sections_are_themselves_and_no_other() -> None:
    """Two trees of one text have different sections; a section can be a key."""
    first, second = build(GUIDE).root, build(GUIDE).root
    assert first == first
    assert first != second
    assert isinstance(first, Section)
    assert {first: 1}[first] == 1
    assert repr(first) == f"<Section docs:guide.md 0:{len(GUIDE)}>"
