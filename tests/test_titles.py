"""Titles are capped, so that a library stays about the size of its text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import quire
from quire.config import AutoSettings, TreeSettings
from quire.document import MAX_TITLE, Document
from quire.errors import NoResults
from quire.tree import Tree
from tests.commands import run

LONG = "word " * 220_000  # 1.1 MB
SECTIONS = "".join(f"## Section {i}\n\nSome words about item {i}.\n\n" for i in range(1000))


def long(number: int) -> str:
    """A heading of 100 KB."""
    return f"{'#' * min(6, number + 1)} {f'word{number} ' * 14_000}\n\nText.\n\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}\n===\n\n{SECTIONS}",
        "".join(map(long, range(30))) + SECTIONS.replace("##", "######"),
        "".join(long(number % 6) for number in range(60)),
    ],
    ids=["setext", "nested", "many"],
)
def test_a_library_of_long_headings_is_about_the_size_of_its_text(text: str, tmp_path: Path) -> None:
    """BAD_INPUTS: a setext heading of 1.1 MB made a library of 262 MB."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(text)
    run(tmp_path, "add", "docs", "-L", "library.db")
    size = sum(file.stat().st_size for file in tmp_path.glob("library.db*"))
    assert size < 6 * len(text)


def test_every_kind_of_title_is_capped() -> None:
    """Given, from front matter, from a heading or from a file's name."""
    trees = [
        Tree(Document.from_text("# A\n\ntext", title=LONG)),
        quire.tree(f"---\ntitle: {'word ' * 5000}\n---\n\ntext\n"),
        quire.tree(f"# {LONG}\n\ntext\n"),
        quire.tree("text\n", "word " * 1000),
    ]
    for tree in trees:
        assert len(tree.title) <= MAX_TITLE
        assert tree.title.startswith("word word ")
        assert tree.title.endswith("word…")


def test_a_given_title_is_storable() -> None:
    """No database takes NUL or half a surrogate pair."""
    assert Document.from_text("x", title="a\0b\ud800c").title == "a\ufffdb\ufffdc"
    assert quire.tree('---\ntitle: "a\\0b"\n---\n').title == "a\ufffdb"


def test_what_is_made_of_titles_is_bounded_and_the_text_is_whole() -> None:
    """Trail, breadcrumb, header path and slug; spans are as they were."""
    text = "".join(map(long, range(6)))
    tree = quire.tree(text)
    last = tree.sections[-1]
    assert max(map(len, last.trail)) == MAX_TITLE
    assert len(last.breadcrumb) < 7 * (MAX_TITLE + 10)
    assert len(last.header_path) < 6 * (MAX_TITLE + 10)
    assert len(last.slug) <= 200
    assert "".join(text[section.start : section.own_end] for section in tree.sections) == text


@pytest.mark.parametrize("length", [299, 300])
def test_a_title_that_fits_is_whole(length: int) -> None:
    """The text of the heading."""
    assert quire.tree(f"# {'a' * length}\n\ntext\n").title == "a" * length


def test_a_section_is_found_by_its_whole_long_heading() -> None:
    """By heading text, and by a path of headings."""
    first, second = f"first {'a b ' * 400}".strip(), f"Second {'c d ' * 400}".strip()
    tree = quire.tree(f"# {first}\n\ntext\n\n## {second}\n\nmore\n")
    assert tree.find(second)[0] is tree.sections[2]
    assert tree.find(second.upper())[0] is tree.sections[2]
    assert tree.find(f"{first} > {second}")[0] is tree.sections[2]
    assert tree.find(tree.sections[2].title)[0] is tree.sections[2]


def test_an_error_does_not_repeat_a_long_name() -> None:
    """Errors stay short."""
    with pytest.raises(NoResults) as error:
        quire.tree("# A\n\ntext\n").find(LONG)
    assert len(str(error.value)) < 2 * MAX_TITLE


@pytest.mark.parametrize("style", ["ascii", "github"])
def test_long_slugs_are_cut_before_repeats_are_numbered(style: str) -> None:
    """Repeats loop until unused."""
    text = "".join(f"# {'same title ' * 90}{end}\n\ntext\n\n" for end in "abc")
    tree = Tree(Document.from_text(text), TreeSettings(slug_style=style))
    first, *others = [section.slug for section in tree.sections[1:]]
    assert len(first) <= 200
    assert first.startswith("same-title-same-")
    assert others == [f"{first}-1", f"{first}-2"]


def test_a_long_anchor_is_cut_too() -> None:
    """An anchor is a slug."""
    assert len(quire.tree(f"# A {{#{'a' * 100_000}}}\n\ntext\n").sections[1].slug) == 200


def test_many_long_headings_of_one_title_take_linear_time() -> None:
    """To try each number anew for every heading would take minutes."""
    tree = quire.tree(f"# {'same title ' * 91}\n\nx\n\n" * 20_000)
    started = time.process_time()
    assert len(set(tree.names.slugs)) == 20_000
    assert time.process_time() - started < 15


def test_a_table_header_larger_than_a_chunk_is_not_repeated() -> None:
    """The context of chunks is bounded as their titles are."""
    table = f"| {'word ' * 20_000} | b |\n|---|---|\n" + "| some words here | more words here |\n" * 3000
    limit = AutoSettings().max_tokens * 4
    assert all(len(chunk.context) <= limit for chunk in quire.chunk(table))
