"""A document to its tree, and the outline and sections by name."""

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
    """Only headings open sections."""
    assert titles("# A\n```\n# not me\n```\n") == ["A"]


def test_the_tree_of_a_guide() -> None:
    """Preamble, spans, parents and bodies; a heading with nothing under it is discarded."""
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
    """Front matter, first H1 that is a heading, file name, first line of at most 100."""
    assert build(text, path).title == title


def test_a_given_title_wins() -> None:
    """The title given comes first."""
    assert Tree(quire.Document.from_text("# H\n\nx\n", "a.md", title="Mine")).title == "Mine"


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
    """Lower case, ASCII letters, digits and underscores, single hyphens, trimmed, never empty."""
    assert slugify(title, "ascii") == slug


def test_github_slugs_keep_letters_of_every_script() -> None:
    """R ruling: slug_style github, for documents that are not English."""
    tree = build("# 安装 指南\n\nx\n\n# A - B!\n\ny\n", slug_style="github")
    assert [s.slug for s in tree.sections[1:]] == ["安装-指南", "a---b"]


def test_header_paths_keep_their_markers() -> None:
    """`## A > ### B`; a heading that holds ` > ` is safe, since the path is a list."""
    tree = build("# T\n\nx\n\n## A > B\n\ny\n\n### C\n\nz\n")
    assert [s.header_path for s in tree.sections] == ["", "# T", "## A > B", "## A > B > ### C"]
    assert tree.sections[3].headers == ("## A > B", "### C")


def test_the_outline_is_built_even_for_a_document_that_fits_one_chunk() -> None:
    """Ruling: the heading tree is always built; level 0 is the text before the first heading."""
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
    """The root is the whole document."""
    assert build(GUIDE).root.text == GUIDE


@pytest.mark.parametrize(
    "name", ["linux", "#linux", "Linux", "linuX", "### Linux", "Install > Linux", "Guide > Linux"]
)
def test_a_section_is_found_by_slug_heading_or_path(name: str) -> None:
    """By slug, heading text or path `A > B`."""
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
    """BAD_INPUTS: unknown heading → NoResults that names the nearest."""
    with pytest.raises(NoResults, match=r"No heading 'Instal' in guide.md. Did you mean 'Install'\?"):
        build(GUIDE).find("Instal")


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
