"""A document to its links, tags and fields."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire import links
from quire.links import WrittenLink


def links_in(text: str, path: str = "note.md", url: str | None = None) -> tuple[WrittenLink, ...]:
    return links.of_tree(quire.tree(text, path), url).links


def tags_in(text: str) -> tuple[str, ...]:
    return links.of_tree(quire.tree(text, "note.md")).tags


def told(text: str) -> list[tuple[str, str, str, str]]:
    return [(link.form, link.target, link.fragment, link.text) for link in links_in(text)]


def test_wikilinks_embeds_and_markdown_links_are_links() -> None:
    """Vaults: `[[Page#Heading|text]]` and Markdown links of every form count."""
    assert told("[[Page#Heading|text]] [[Page]] ![[Other]] [[#Own]]\n") == [
        ("wikilink", "Page", "Heading", "text"),
        ("wikilink", "Page", "", ""),
        ("embed", "Other", "", ""),
        ("wikilink", "", "Own", ""),
    ]
    text = "[a *b*](x%20y.md#z 'title') [r][ref] [ref] <https://example.com/p#q>\n\n[ref]: foo.md\n"
    assert told(text) == [
        ("markdown", "x y.md", "z", "a b"),
        ("markdown", "foo.md", "", "r"),
        ("markdown", "foo.md", "", "ref"),
        ("markdown", "https://example.com/p", "q", ""),
    ]


@pytest.mark.parametrize("text", ["[a\nb](x.md)", "[a  \nb](x.md)", "[a\\\nb](x.md)", "[[x.md|a\nb]]"])
def test_a_line_break_in_a_link_text_is_a_space(text: str) -> None:
    """Vaults: the words around a soft or hard break stay words."""
    assert [(link.target, link.text, link.anchor) for link in links_in(text)] == [("x.md", "a b", "b")]


def test_the_size_of_what_is_embedded_is_no_text() -> None:
    """Vaults: `![[Page|300]]` is 300 pixels wide."""
    assert [text for *_, text in told("![[a|300]] ![[a|300x200]] ![[a|300 years]] [[a|300]]\n")] == [
        "",
        "",
        "300 years",
        "300",
    ]


def test_prices_are_no_formulas() -> None:
    """Vaults: a dollar sign before a space, or alone, begins no formula."""
    assert told("It costs $5, see [[a]], or $6. [the $x$ rule](b.md) $ [[c]] $\n") == [
        ("wikilink", "a", "", ""),
        ("markdown", "b.md", "", "the x rule"),
        ("wikilink", "c", "", ""),
    ]


def test_a_bar_that_a_table_escapes_is_a_bar() -> None:
    """Vaults: in a table, Obsidian writes `[[Page\\|text]]`."""
    assert told("| a |\n|---|\n| [[Page\\|text]] |\n") == [("wikilink", "Page", "", "text")]


@pytest.mark.parametrize(
    "text",
    [
        "`[[Page]] #tag`\n",
        "```\n[[Page]] #tag\n```\n",
        "    [[Page]] #tag\n",
        "- a\n\n  ```\n  [[Page]] #tag\n  ```\n",
        "<!-- [[Page]] #tag -->\n",
        "%%[[Page]] #tag%%\n",
        "%%\n[[Page]]\n\n #tag\n%%\n",
        "\\[[Page]] \\#tag\n",
        "---\nkey: '[[Page]] #tag'\n---\n",
        "Let $a[[Page]] #tag b$ be.\n",
        "$$\n[[Page]] #tag\n$$\n",
        "[write](mailto:a@example.com) ![picture](a.png)\n",
    ],
)
def test_code_comments_and_escapes_hold_no_links_and_no_tags(text: str) -> None:
    """Vaults: nothing inside code or comments is a link or a tag."""
    assert links_in(text) == ()
    assert tags_in(text) == ()


def test_tags_are_read_by_obsidians_rules() -> None:
    """Vaults: letters, digits, _ - /; not only digits; a tag begins after white space."""
    text = "#one #two/three, #1984 #y1984 a#b (#no) #über-uns #a_b. C# #🌱\n\n# Heading #four\n"
    assert tags_in(text) == ("one", "two/three", "y1984", "über-uns", "a_b", "🌱", "four")


def test_tags_of_front_matter_and_text_are_one_list() -> None:
    """Vaults: `tags` and `tag` of front matter, and #tags."""
    assert tags_in("---\ntags: [a, '#b']\ntag: c\n---\n#d and #a\n") == ("a", "b", "c", "d")


def test_fields_have_numbers_and_dates() -> None:
    """Vaults: any front-matter field is a filter; lists are several values, maps are joined by dots."""
    text = "---\nStatus: Draft\nn: 5\nwhen: 2026-01-02\nlist: [a, B]\nmap: {x: 1}\nalias: Other\nnone:\n---\n"
    found = {(one.name, one.value, one.number, one.date) for one in links.of_tree(quire.tree(text)).fields}
    assert found == {
        ("status", "draft", None, None),
        ("n", "5", 5.0, None),
        ("when", "2026-01-02", None, "2026-01-02"),
        ("list", "a", None, None),
        ("list", "b", None, None),
        ("map.x", "1", 1.0, None),
        ("aliases", "other", None, None),
    }


def test_odd_front_matter_has_bounded_fields() -> None:
    """BAD_INPUTS: front matter with odd keys, huge values and many of them."""
    many = "".join(f"key{n}: {n}\n" for n in range(1000))
    odd = f"1: one\ntrue: yes\n'a b': pair\n{'k' * 200}: long\nv: {'x' * 9000}\nnan: .nan\n"
    text = f"---\n{odd}{many}---\n"
    found = links.of_tree(quire.tree(text)).fields
    assert len(found) <= 500
    assert all(len(one.name) <= 100 and len(one.value) <= 200 for one in found)
    assert ("nan", "nan", None) in [(one.name, one.value, one.number) for one in found]


def test_what_is_left_out_is_said() -> None:
    """Vaults: no limit cuts in silence, and each is told with what there was."""
    values = "".join(f"key{n}: {n}\n" for n in range(600))
    names = ", ".join(f"n{n}" for n in range(600))
    body = " ".join(f"#tag{n}" for n in range(1001)) + " [[a]]" * 20_001
    found = links.of_tree(quire.tree(f"---\n{values}aliases: [{names}]\n---\n{body}\n", "note.md"))
    assert found.problems == (
        "only the first 20,000 of its 20,001 links are kept",
        "only the first 1,000 of its 1,001 tags are kept",
        "only the first 500 of its 600 aliases are kept",
        "front matter has 600 values; the first 500 can be searched",
    )
    assert (len(found.links), len(found.tags), len(found.fields)) == (20_000, 1000, 1000)
    values = "".join(f"key{n}: {n}\n" for n in range(500))
    assert links.of_tree(quire.tree(f"---\n{values}tags: [a]\naliases: b\nnone:\n---\n")).problems == ()


def test_tags_and_aliases_leave_room_for_other_fields() -> None:
    """Vaults: a note with 1,500 tags lost its status."""
    many = ", ".join(f"name{n}" for n in range(1500))
    found = links.of_tree(quire.tree(f"---\ntags: [{many}]\naliases: [{many}]\nstatus: draft\n---\n")).fields
    assert ("status", "draft") in [(one.name, one.value) for one in found]
    assert len(found) == 1501


def test_a_link_knows_its_section_and_line() -> None:
    """Vaults: what a section links to."""
    text = "# A\n\nä [[one]]\n\n## B\n\n[[two]]\n"
    first, second = links_in(text)
    assert (first.section, first.line, text[first.start :][:7]) == (1, 3, "[[one]]")
    assert (second.section, second.line, text[second.start :][:7]) == (2, 7, "[[two]]")


def test_links_of_a_page_begin_from_its_url() -> None:
    """Vaults: absolute URLs lead to pages of sites."""
    (link,) = links_in("[a](../b.html#c) #tag\n", url="https://example.com/x/y/")
    assert (link.target, link.fragment, link.key) == ("https://example.com/x/b.html", "c", "b")


HOSTILE = {
    "[[": 500_000,
    "#": 1_000_000,
    " #a": 300_000,
    "[": 1_000_000,
    "[[a|": 250_000,
    "](": 500_000,
    "%% ": 300_000,
    "[[a]] ": 100_000,
    "[a](b) ": 100_000,
    "<http://": 100_000,
    "#1": 500_000,
    "![[": 300_000,
    "$a ": 300_000,
    "$$": 500_000,
}


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    """BAD_INPUTS: 1 MB of brackets or signs, 10^5 links in a note."""
    started = time.process_time()
    found = links.of_tree(quire.tree(piece * HOSTILE[piece], "note.md"))
    assert time.process_time() - started < 5
    assert len(found.links) <= links.MAX_LINKS


def test_a_target_of_a_megabyte_is_no_link() -> None:
    """BAD_INPUTS: a link target of 1 MB."""
    assert links_in(f"[[{'x' * 1_000_000}]] [a](<{'y' * 1_000_000}>)\n") == ()


@given(st.text(alphabet="[]|#()!`%<>\\ \nab/^é\0"))
def test_any_text_gives_links_that_stand_in_it(text: str) -> None:
    """Always: offsets are within the text, in order, each in its section."""
    tree = quire.tree(text, "note.md")
    found = links.of_tree(tree).links
    assert [link.number for link in found] == list(range(len(found)))
    assert [link.start for link in found] == sorted(link.start for link in found)
    for link in found:
        assert tree.document.text[link.start] in "[!<"
        assert tree.at(link.start).position == link.section


@pytest.mark.parametrize(
    ("target", "source", "path"),
    [
        ("b.md", "x/a.md", "x/b.md"),
        ("../b.md", "x/a.md", "b.md"),
        ("/b.md", "x/a.md", "b.md"),
        ("../../b.md", "x/a.md", None),
        ("./b/../c", "x/a.md", "x/c"),
    ],
)
def test_a_path_is_taken_from_its_document(target: str, source: str, path: str | None) -> None:
    """BAD_INPUTS: `[[../../etc/passwd]]` is outside of the collection."""
    assert links.path_from(target, source) == path
