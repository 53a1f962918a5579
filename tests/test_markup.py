"""AsciiDoc, Org and CSV: texts that are their own source, with exact spans."""

from __future__ import annotations

import csv
import io
import re
import time
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire import table
from quire.chunkers import split
from quire.config import DEFAULT
from quire.document import Document
from quire.library import Library
from quire.tree import Tree
from tests.words import WORDS


def outline(text: str, path: str) -> list[tuple[int, str]]:
    tree = Tree(Document.from_bytes(text.encode(), path))
    return [(section.level, section.title) for section in tree.sections[1:]]


ADOC = """= Guide to *pumps*
:toc:

Intro text.

== Install the `pump`

[source,sh]
----
== not a heading
----

[discrete]
=== No section

Text
== not one either

Old style
~~~~~~~~~

More.

====
== in an example
====

=== See xref:a.adoc[the other]

|===
|a |b
|===
"""


def test_asciidoc_titles_are_those_that_asciidoctor_sees() -> None:
    """Issue: AsciiDoc; titles in blocks, in paragraphs and discrete ones open no section."""
    assert outline(ADOC, "a.adoc") == [
        *((1, "Guide to pumps"), (2, "Install the pump"), (3, "Old style"), (3, "See the other"))
    ]
    tree = Tree(Document.from_text(ADOC, "a.adoc"))
    assert [ADOC[start:end].split("\n")[0] for start, end in tree.opaque] == ["----", "|==="]


ORG = """#+TITLE: Garden notes
#+AUTHOR: someone

Before the first headline.
* TODO [#A] Plan the beds :spring:work:
:PROPERTIES:
:ID: 7
:END:
Text with [[file:a.org][a link]].
** Sow *early* [[https://example.com][peas]]
#+BEGIN_SRC sh
echo 1
#+END_SRC
*not a headline
* DONE Water
daily
"""


def test_org_headlines_lose_their_state_priority_tags_and_markup() -> None:
    """Issue: Org; the title is the keyword's."""
    assert outline(ORG, "a.org") == [(1, "Plan the beds"), (2, "Sow early peas"), (1, "Water")]
    tree = Tree(Document.from_text(ORG, "a.org"))
    assert tree.title == "Garden notes"
    assert [ORG[start:end].split("\n")[0] for start, end in tree.opaque] == [":PROPERTIES:", "#+BEGIN_SRC sh"]


LINES = st.sampled_from(
    [
        *(
            "= A",
            "== B",
            "=== C *b*",
            "----",
            "====",
            "|===",
            "[discrete]",
            ".T",
            "text",
            "",
            "~~~~",
            "Title",
        ),
        *("* H", "** TODO h :t:", ":X:", ":END:", "#+begin_src", "#+END_SRC", ": fixed", 'a,"b', 'c"', "d,e"),
    ]
)


@pytest.mark.parametrize("path", ["a.adoc", "a.org", "a.csv"])
@given(lines=st.lists(LINES, max_size=30))
def test_sections_and_chunks_join_to_the_source(path: str, lines: list[str]) -> None:
    """DESIGN: sections join to the source bytes; text[start:end] is the chunk."""
    text = "\n".join(lines)
    document = Document.from_text(text, path)
    tree = Tree(document)
    assert "".join(text[section.start : section.own_end] for section in tree.sections) == text
    chunks = split(tree, "auto", DEFAULT.chunk.named("auto"), DEFAULT.tokens)
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks).strip() == (text.strip() if chunks else "")


@given(st.lists(st.lists(st.text(alphabet='ab",\n é', max_size=6), min_size=2, max_size=3), max_size=12))
def test_rows_are_those_that_a_csv_reader_sees(rows: list[list[str]]) -> None:
    """Issue: CSV tables by rows, quoted line ends included; rows join to the text."""
    told = io.StringIO()
    csv.writer(told, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    text = told.getvalue()
    starts = table.rows(text)
    assert len(starts) == len(rows)
    found = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    assert "".join(found) == text
    assert [next(csv.reader(io.StringIO(row))) for row in found] == rows


def _starts_by_csv(text: str, delimiter: str) -> list[int]:
    """Where the rows begin that Python's csv module reads."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    ends = [0, *accumulate(map(len, lines))]
    reader, starts = csv.reader(lines, delimiter=delimiter), [0]
    starts += [ends[reader.line_num] for _ in reader]
    return starts[:-1]


@given(delimiter=st.sampled_from(",;\t|"), text=st.text(alphabet='ab"",,;\n\n ', max_size=60))
def test_quotes_in_unquoted_fields_and_blank_lines_are_read_as_by_a_csv_reader(
    delimiter: str, text: str
) -> None:
    """Issue: row N is what a spreadsheet shows as row N; a quote inside an unquoted field is a character."""
    header = f"a{delimiter * 9}b\n"
    text = header + text.replace(",", delimiter)
    assert table.rows(text) == _starts_by_csv(text, delimiter)
    crlf = Document.from_text(text.replace("\n", "\r\n"), "a.csv")
    found = [crlf.text[a:b] for a, b in pairwise([*table.rows(crlf.markup), len(crlf.text)])]
    assert "".join(found) == crlf.text
    assert len(found) == len(table.rows(text))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ('1,5" pipe\n2,6" pipe\n3,x\n', [1, 2, 3]),
        ("a,b\n\n\n1,2", [1, 2, 3, 4]),
        ("\na,b\n", [1, 2]),
        ('"a; b; c",d\n1,"x\ny"\n2,3\n', [1, 2, 4]),
        ('a;b\n1,"x;2\n2;"x\n"\n', [1, 2, 3]),
        ('a|b\n1|"x\n""y\n"|3\n4|5\n', [1, 2, 5]),
        ('\ufeff"a\nb",c\n1,2\n', [1, 3]),
    ],
)
def test_rows_begin_at_these_lines(text: str, lines: list[int]) -> None:
    """Issue: a quote opens a field only at its start; blank lines are rows; the delimiter is guessed."""
    assert [text.count("\n", 0, start) + 1 for start in table.rows(text)] == lines


@pytest.mark.parametrize("blank", ["", "\n \n"])
def test_each_chunk_of_a_table_knows_its_header_and_ends_with_a_row(blank: str) -> None:
    """DESIGN: a split table repeats its header row as context, never in the span."""
    text = f"{blank}name,place,price\n" + "".join(f"thing {n},shelf {n % 7},{n}.50\n" for n in range(400))
    chunks = quire.chunk(text, path="stock.csv")
    assert len(chunks) > 3
    assert all(chunk.text.endswith("\n") for chunk in chunks)
    assert all(chunk.context == "name,place,price\n" for chunk in chunks[1:])
    assert "".join(chunk.text for chunk in chunks) == text


def test_a_lone_quote_does_not_swallow_a_table() -> None:
    """BAD_INPUTS: a quote that is never closed is a character."""
    text = 'size\n"5 pipe\n' + "".join(f"row {n}\n" for n in range(5000))
    assert len(table.rows(text)) == 5002


def test_tables_in_a_library_are_found_and_cited_by_rows(tmp_path: Path) -> None:
    """Issue: `row 40–60`; spans are those of the file."""
    path = tmp_path / "birds.tsv"
    path.write_text("bird\tcolour\n" + "".join(f"bird{n}\tcolour{n}\n" for n in range(300)) + "kea\tgreen\n")
    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        library.add(path)
        found = library.search("kea").results[0]
        assert (found.location or "").endswith("302")
        assert path.read_bytes()[found.byte_start : found.byte_end].decode() == found.text


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("a.adoc", "----\n-----\n"),
        ("a.org", "#+begin_x\n:a:\n"),
        ("a.csv", '"\n'),
        ("a.csv", ',""'),
        ("a.csv", ',"\n'),
        ("a.adoc", "= a\n=====\n"),
    ],
)
def test_hostile_markup_is_read_in_linear_time(path: str, unit: str) -> None:
    """BAD_INPUTS: a time limit, not a measure: quadratic time would take minutes."""
    started = time.monotonic()
    quire.chunk(unit * 50_000, path=path)
    assert time.monotonic() - started < 30
