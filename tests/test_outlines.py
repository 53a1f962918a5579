"""The headings of reStructuredText, compared with docutils, and the unmistakable ones of plain text."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from docutils import core, nodes
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire import numerals, plain, rst
from quire.config import STRATEGIES
from quire.errors import BrokenInvariant
from tests.markdowns import SHARED, needs_shared
from tests.test_invariants import check_chunks, check_tree

Titles = list[tuple[int, str]]

SETTINGS = {
    "doctitle_xform": False,
    "docinfo_xform": False,
    "sectsubtitle_xform": False,
    "report_level": 5,
    "halt_level": 6,
    "file_insertion_enabled": False,
    "_disable_config": True,
}


def rst_titles(text: str) -> Titles:
    return [(heading.level, rst.title(text, heading)) for heading in rst.scan(text).headings]


def plain_titles(text: str) -> Titles:
    return [(heading.level, plain.title(text, heading)) for heading in plain.scan(text).headings]


def opaque(text: str) -> list[str]:
    return [text[start:end] for start, end in rst.scan(text).opaque]


def by_docutils(text: str) -> Titles | None:
    """Levels and titles; None if docutils refuses some of them because they skip a level."""
    tree = core.publish_doctree(text, settings_overrides=SETTINGS)
    if any("Inconsistent title style" in told.astext() for told in tree.findall(nodes.system_message)):
        return None
    sections = list(tree.findall(nodes.section))
    return [
        (_depth(one), " ".join(next(iter(one.findall(nodes.title))).astext().split())) for one in sections
    ]


def _depth(node: nodes.Node | None) -> int:
    return isinstance(node, nodes.section) + _depth(node.parent) if node is not None else 0


# ---------------------------------------------------------------------------- reStructuredText

GUIDE = """\
.. _guide:

=======
 Guide
=======

Welcome to ``Guide``::

    Not a title
    ===========

Install
=======

* Use pip.

  Not one either
  --------------

* Or a package.
Linux
-----
:Author: nobody
.. note::

   Inside
   ------

   Text::

     code

   more

+------+
| Cell |
+------+

======  ======
Column  Other
======  ======
a       b
======  ======

The :class:`~pkg.Reader` *and* `its site <https://example.com>`_
-----------------------------------------------------------------

Term
    Definition

----

1. Overview
===========

>>> print("Title")
Title
=====

After it.
"""


def test_the_titles_of_a_guide() -> None:
    """Issue: `.rst` has its sections; what is indented, quoted, literal or in a table is none."""
    assert rst_titles(GUIDE) == [
        (1, "Guide"),
        (2, "Install"),
        (3, "Linux"),
        (3, "The Reader and its site"),
        (2, "1. Overview"),
    ]
    levels = [(level, title) for level, title in by_docutils(GUIDE) or [] if "Reader" not in title]
    assert levels == [one for one in rst_titles(GUIDE) if "Reader" not in one[1]]


def test_literal_blocks_tables_and_comments_are_opaque() -> None:
    """Issue: what is no prose is not cut inside if it fits."""
    assert [block.split("\n")[0].strip() for block in opaque(GUIDE)] == [
        "Not a title",
        "+------+",
        "======  ======",
        '>>> print("Title")',
    ]
    code = ".. code-block:: sh\n\n   # a\n\n   b\n"
    comment = ".. nobody\n   reads this\n"
    quoted = "> one\n> two\n"
    nested = ".. note::\n\n   See::\n\n      a\n\n      b\n\n   end\n"
    assert opaque(f"{code}\ntext\n\n{comment}\nSee::\n\n{quoted}\n{nested}") == [
        code,
        comment,
        quoted,
        "      a\n\n      b\n",
    ]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("The ``run`` *loop* is **fast**", "The run loop is fast"),
        (":ref:`Names <names>` and :doc:`/intro`", "Names and /intro"),
        ("`Site <https://example.com>`__ and link_", "Site and link"),
        (r"Escaped \*stars\* and \`ticks\`", "Escaped *stars* and `ticks`"),
        ("CMAKE_<LANG>_FLAGS and __init__ and a_b", "CMAKE_<LANG>_FLAGS and __init__ and a_b"),
        ("2 * 3 * 4, *args and **kwargs", "2 * 3 * 4, *args and **kwargs"),
        ("文档 处理", "文档 处理"),
    ],
)
def test_titles_have_no_markup(line: str, title: str) -> None:
    """Issue: a title is plain text."""
    assert rst_titles(f"{line}\n{'=' * 80}\n\ntext\n") == [(1, title)]


def test_a_wide_character_takes_two_columns() -> None:
    """A short underline counts if it is as long as the title looks."""
    assert rst_titles("文\n==\n\nx\n") == [(1, "文")]
    assert rst_titles("文文\n===\n\nx\n") == []
    assert by_docutils("文文\n===\n\nx\n") == []


def test_levels_go_deeper_than_six() -> None:
    """Issue: nesting is right at any depth."""
    text = "".join(f"Title {mark}\n{mark * 9}\n\ntext\n\n" for mark in "=-~^\"'#*")
    tree = quire.tree(text, path="deep.rst")
    assert [section.level for section in tree.sections] == list(range(9))
    assert len(tree.sections[-1].lineage) == 8
    assert rst_titles(text) == by_docutils(text)


MARKS = st.sampled_from(["=", "-", "~", "=", "-"])
WORDS = st.sampled_from(
    ["Title", "A", "1. One", "2. Two", "(b) Or", "- item", "文档", "::", "-a", "x::", "Two words"]
)
UNDERLINED = st.builds(lambda w, m, n: f"{w}\n{m * max(1, len(w) + n)}", WORDS, MARKS, st.integers(-3, 4))
OVERLINED = st.builds(
    lambda w, m, n: f"{m * (len(w) + n)}\n{w}\n{m * (len(w) + n)}", WORDS, MARKS, st.integers(0, 4)
)
ODD = st.sampled_from(
    [
        "text\nmore text",
        "Example::\n\n    Title\n    =====",
        "Example::\n\n> quoted\n> more",
        "Example::\n\n=====",
        "* item\n\n  Title\n  =====",
        "1. one\n2. two",
        "I. one\nII. two",
        "#. one\n#. two",
        "term\n    definition\n    ===",
        ".. note::\n\n   Title\n   -----",
        ".. comment\n   Title",
        "..\n\n   quote",
        ".. _target:",
        "__ https://example.com",
        ":field: value\n  more",
        "-a  option\n--long=x",
        ">>> doctest\nTitle",
        "| line\n| block",
        "+---+\n| a |\n+---+",
        "==  ==\na   b\n==  ==",
        "==  ==\na   b",
        "----",
        "---",
        "==",
        "    quote\n    ====",
        "text\n  indented",
        "Title\t\n\x0c=====",
    ]
)


@given(
    st.lists(
        st.tuples(st.one_of(UNDERLINED, OVERLINED, ODD), st.sampled_from(["\n\n", "\n\n", "\n"])), max_size=12
    )
)
def test_titles_are_those_of_docutils(blocks: list[tuple[str, str]]) -> None:
    """Issue: the scanner agrees with docutils, whatever comes together."""
    text = "".join(block + gap for block, gap in blocks)
    theirs = by_docutils(text)
    if theirs is not None:
        assert [level for level, _ in rst_titles(text)] == [level for level, _ in theirs]


def test_rst_is_cut_between_paragraphs_and_not_in_code() -> None:
    """Issue: a literal block that fits stays whole; a long directive is cut between paragraphs."""
    code = "Run::\n\n" + "    step one\n    step two\n\n" * 20
    body = "".join(f"   Paragraph {n} of this long note goes on for a while.\n\n" for n in range(60))
    tree = quire.tree(
        f"Title\n=====\n\n{'Words come first. ' * 40}\n\n{code}.. note::\n\n{body}", path="a.rst"
    )
    chunks = quire.chunk(tree, "auto", max_tokens=400)
    assert "".join(chunk.text for chunk in chunks) == tree.document.text
    assert sum("step one" in chunk.text for chunk in chunks) == 1
    assert all(chunk.text.rstrip().endswith((".", "::", "step two")) for chunk in chunks)


# ---------------------------------------------------------------------------------- plain text


def test_underlined_lines_are_headings() -> None:
    """Issue: underlined headings of plain text, by the order in which their styles come."""
    text = "GUIDE\n=====\n\nWelcome.\n\nInstall\n-------\nUse pip.\n\n\n1.  Linux\n~~~~~~~~~\n\napt.\n"
    assert plain_titles(text) == [(1, "GUIDE"), (2, "Install"), (3, "1. Linux")]
    over = "*******\nWelcome\n*******\n\nHello.\n"
    assert plain_titles(over) == [(1, "Welcome")]
    assert plain_titles("Log\n===\n1.0\n---\nFirst.\n") == [(1, "Log"), (2, "1.0")]


@pytest.mark.parametrize(
    "text",
    [
        "text\n\nOnly one\n--------\n\ntext\n",  # and not at the top
        "Name   Size\n-----------\na      1\n\nName   Size\n-----------\nb      2\n",
        "Name  Size\n----  ----\na     1\n\nName  Size\n----  ----\nb     2\n",
        "Total\n-----\n100\n-----\n200\n-----\n\nTotal\n-----\n300\n-----\n",
        "a sentence that\ngoes on\n-------\n\nand another\nthat too\n--------\n",
        "Much longer than its line\n---\n\nAnother that is longer\n---\n",
        "- item\n------\n\n- other\n-------\n",
        " count\n-------\n    10\n\n count\n-------\n    20\n",
        "-----\n-----\n\n=====\n=====\n",
    ],
)
def test_tables_lists_and_sentences_are_not_headings(text: str) -> None:
    """Issue: in doubt a line is text."""
    assert plain_titles(text) == []


MEMO = """\
Network Notes                                                 A. Writer
Memo 17                                                        May 2020


                      How Messages Are Delivered

Table of Contents

   1. Introduction ................................................ 1
   2. Delivery .................................................... 2
     2.1. Queues .................................................. 2
   3. Security .................................................... 3

1.  Introduction

   This memo says how messages are delivered. It is short.

   1. First they wait.

   2. Then they go.

2.  Delivery

2.1.  Queues

   A queue holds what waits. When it is full, nobody may add to it.

Writer                       Informational                      [Page 1]
\f
Memo 17                        Delivery                         May 2020

2.2.  Time

   Delivery takes at most a day, and mostly much less than that.

3.  Security

   Nobody reads what is not for them, except for those who can.

Appendix A.  History

   Earlier memos said less.
"""


def test_a_memo_with_numbered_sections() -> None:
    """Issue: numbered headings with indented text under them, page breaks, and a table of contents."""
    found = [
        (2, "1. Introduction"),
        (2, "2. Delivery"),
        (3, "2.1. Queues"),
        (3, "2.2. Time"),
        (2, "3. Security"),
        (2, "Appendix A. History"),
    ]
    assert plain_titles(MEMO) == found
    tree = quire.tree(MEMO.replace("\n", "\r\n"), path="memo.txt")
    assert [(section.level, section.title) for section in tree.sections[1:]] == found
    assert tree.title == "memo"
    check_tree(tree)


def book(*lines: str) -> str:
    return "".join(f"{line}\n\nIt was a long night, and nobody came to see them.\n\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("CHAPTER I", "CHAPTER II", "CHAPTER III"),
        ("Chapter One", "Chapter Two", "Chapter Three"),
        ("CHAPTER 1. Dawn.", "CHAPTER 2. Noon, and what\nthen came.", "CHAPTER 3. Dusk."),
        ("Article 1", "Article 2", "Article 4: Rights"),
        ("    Section 1", "    Section 2", "    Section 3"),
        ("1. Aims", "2. Means", "3. Is it done?"),
        ("1.1 Aims", "1.2 Means", "2.1 Ends"),
    ],
)
def test_numbered_lines_between_blank_lines_are_headings(lines: tuple[str, ...]) -> None:
    """Issue: numbers of all kinds, in sequence."""
    assert [title for _, title in plain_titles(book(*lines))] == [" ".join(line.split()) for line in lines]


def test_chapters_begin_again_in_each_book() -> None:
    """Issue: the parts of a book, and what has no number."""
    text = book("CHAPTER I", "CHAPTER II", "CHAPTER III")
    whole = f"BOOK ONE: 1805\n\n\n{text}BOOK TWO\n\n{text}FIRST EPILOGUE\n\n{text}"
    chapters = [(3, "CHAPTER I"), (3, "CHAPTER II"), (3, "CHAPTER III")]
    parts = ("BOOK ONE: 1805", "BOOK TWO", "FIRST EPILOGUE")
    assert plain_titles(whole) == [title for part in parts for title in ((2, part), *chapters)]


def test_a_table_of_contents_is_not_the_chapters() -> None:
    """Issue: the same titles without text between them are no sections."""
    lines = ("CHAPTER I. Dawn", "CHAPTER II. Noon", "CHAPTER III. Dusk")
    bare = ("CHAPTER I", "CHAPTER II", "CHAPTER III")
    for titles, gap in itertools.product((lines, bare), ("\n", "\n\n")):
        contents = f"CONTENTS\n\n{gap.join(titles)}\n\n"
        headings = plain.scan(contents + book(*titles)).headings
        assert len(headings) == 3
        assert headings[0].start == len(contents)


@pytest.mark.parametrize(
    "text",
    [
        "Buy:\n\n1. Milk\n\n2. Bread\n\n3. Butter\n\n4. Jam\n\nand come home.\n",
        "1. Milk\n2. Bread\n3. Butter\n",
        book("1. Aims", "2. Means"),
        book("3. Aims", "7. Means", "5. Ends"),
        book("1. This is a sentence.", "2. This is another.", "3. And a third one."),
        book("1. aims", "2. means", "3. ends"),
        book("1. Aims", "2. Means", "3. Ends", "1. Goals", "2. Ways", "3. Tools"),
        book("Section 3 of the act applies here", "Section 4 of it does not", "Section 5 is void"),
        book("Chapter 1,", "Chapter 2,", "Chapter 3,"),
        "CHAPTER I\n\nCHAPTER II\n\nCHAPTER III\n\nA list.\n",
        "1. " + "A" * 120 + "\n\ntext\n\n" * 3,
    ],
)
def test_lists_and_sentences_are_not_numbered_headings(text: str) -> None:
    """Issue: a numbered list must not become headings; in doubt a line is text."""
    assert plain_titles(text) == []


def test_a_list_inside_a_section_does_not_stop_the_sequence() -> None:
    """The numbers of a list in between do not belong to the sections."""
    lines = [f"{n}. Part" for n in range(1, 9)]
    text = book(*lines[:5]) + "1. Look\n\nFirst.\n\n2. Leap\n\nThen.\n\n" + book(*lines[5:])
    assert [title for _, title in plain_titles(text)] == lines


@needs_shared
@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("books/moby-dick.txt", {2: 136}),
        ("books/war_and_peace.txt", {2: 17, 3: 365}),
        ("weird/not-utf8.txt", {2: 4, 3: 21, 4: 82, 5: 158, 6: 58}),
    ],
)
def test_the_headings_of_real_books(name: str, levels: dict[int, int]) -> None:
    """Issue: chapters are found, not their contents lists."""
    path = SHARED / "large_inputs" / name
    tree = quire.tree(quire.Document.from_bytes(path.read_bytes(), Path(name).name))
    found = [heading.level for heading in tree.headings]
    assert {level: found.count(level) for level in sorted(set(found))} == levels
    check_tree(tree)


# ---------------------------------------------------------------------------------- both of them

LINES = st.sampled_from(
    [
        *("", "", "", "text", "=====", "-----", "Title", "1. One", "2. Two", "3. Three", "1.1 Deep", "\f"),
        *("CHAPTER I", "CHAPTER II", "CHAPTER III", "BOOK ONE", "Epilogue", "Appendix A", "    code"),
        *("More text that goes on for some time.", ".. note::", "See::", "* item", "==  ==", "文档", "***"),
    ]
)


@given(st.lists(LINES, max_size=60), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["rst", "text"]))
def test_every_tree_and_chunk_is_whole(lines: list[str], end: str, format: str) -> None:
    """Invariants 2 and 3: sections join to the text, and so do chunks, in every format."""
    tree = quire.tree(quire.Document.from_text(end.join(lines), "a", format=format))
    check_tree(tree)
    assert all(a[1] <= b[0] for a, b in zip(tree.opaque, tree.opaque[1:], strict=False))
    for strategy in STRATEGIES:
        try:
            check_chunks(tree, quire.chunk(tree, strategy), strategy)
        except BrokenInvariant:
            assert strategy == "sections"


@given(
    st.lists(
        st.sampled_from(["text", "", "1 of 2", "a - b", "= x", "Chapters", "1.", "--", "a\tb"]), max_size=40
    )
)
def test_text_without_headings_has_none(lines: list[str]) -> None:
    """Issue: a text without unmistakable headings is read as before."""
    assert plain_titles("\n".join(lines)) == []


HOSTILE = {
    "rules": "=====\n" * 200_000,
    "one line": "x" * 1_000_000,
    "one rule": "=" * 1_000_000,
    "numbers": "1.\n" * 300_000,
    "items": "1. Item\n\n" * 100_000,
    "chapters": "CHAPTER I\n\ntext\n\n" * 50_000,
    "tables": "== ==\n=====\nx\n\n" * 50_000,
    "literals": " a::\n\n  b\n\n" * 100_000,
    "options": "-a, " * 250_000,
    "fields": ":a" * 500_000,
    "blank lines": "-a\n" + "\n" * 1_000_000,
    "a title": "a-" * 500_000 + "\n" + "=" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("titles", [rst_titles, plain_titles], ids=["rst", "plain"])
def test_hostile_text_takes_little_time(name: str, titles: object) -> None:
    """BAD_INPUTS: a megabyte of anything takes linear time."""
    assert callable(titles)
    started = time.process_time()
    titles(HOSTILE[name])
    assert time.process_time() - started < 5  # a quadratic scanner takes minutes


@given(st.integers(1, 4999))
def test_roman_numerals_read_back(number: int) -> None:
    """Every number has one form, and no other text is a number."""
    assert numerals.from_roman(numerals.to_roman(number)) == number


def test_what_is_no_number() -> None:
    """Words and malformed numerals have no value."""
    assert [numerals.from_roman(text) for text in ("", "IIII", "VX", "MIX", "ABC")] == [
        None,
        None,
        None,
        1009,
        None,
    ]
    assert [numerals.from_word(text) for text in ("ONE", "twelfth", "Many")] == [1, 12, None]
