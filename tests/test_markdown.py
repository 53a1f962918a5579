"""Text to headings and blocks: the scanner against the parser, and both against the specification."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from quire import markdown
from quire.document import Document
from tests.markdowns import SHARED, corpus_files, needs_shared
from tests.markdowns import markdown as documents

LINES = st.sampled_from(
    "# a|## b #|###|#no|   # c|    # d|\t# e|```|````|~~~|``` py|```x`|   ```|  ~~~~|\t```|```\t|- item"
    "|- |-|1. one|2) two|   cont|  two|> q|> # qh|> ```|text|text *b*|===|---|  ---|- - -|***|=|--|<div>"
    "|</div>|<!-- c -->|<!--|-->|<script>|</script>|<a>|<b attr>|</b>|  <div>|  <!--| <x>|<?php|?>|<!X"
    "|<![CDATA[|]]>|a - b|--- x|[r]: /u|[r]: /u 'ti|tle'|||| |\t|    code|<https://x.y>|<!-->|<!--->|-->x"
    "|- ```|- # x|* <div>|1. ```sh|   ```  |é中 # x|&amp;|<div|\\|a\\|`c|`".split("|")
)


def headings(text: str) -> list[tuple[int, str]]:
    tree = quire.tree(text)
    return list(zip([h.level for h in tree.headings], tree.names.titles, strict=True))


@settings(max_examples=10 * settings.default.max_examples)  # type: ignore[union-attr]
@given(st.lists(LINES, max_size=14), st.sampled_from(["", "\n", "\n\n"]))
def test_the_scanner_agrees_with_the_parser_on_hard_lines(lines: list[str], end: str) -> None:
    """The fast way and the plain way find the same headings."""
    text = "\n".join(lines) + end
    assert markdown.scan(text).headings == markdown.parse_markdown(text).headings


@given(documents())
def test_the_scanner_agrees_with_the_parser_on_documents(text: str) -> None:
    """Also after front matter, and whatever ends the lines."""
    document = Document.from_text(text)
    args = document.markup, document.content_start
    assert markdown.scan(*args).headings == markdown.parse_markdown(*args).headings


@needs_shared
def test_the_scanner_agrees_with_the_parser_on_every_real_document() -> None:
    """Equal to the plain parser on the corpora."""
    wrong, seen = [], 0
    for path in corpus_files():
        document = Document.from_bytes(path.read_bytes(), format="markdown")
        args = document.markup, document.content_start
        found = markdown.parse_markdown(*args).headings
        seen += len(found)
        if markdown.scan(*args).headings != found:
            wrong.append(path)
    assert wrong == []
    assert seen > 20_000


class TopLevelHeadings(HTMLParser):
    """The headings of a page that stand in no list and no quote."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.inside, self.found = 0, False, list[tuple[int, str]]()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.depth += tag in ("ul", "ol", "blockquote")
        if re.fullmatch("h[1-6]", tag) and not self.depth:
            self.inside = True
            self.found.append((int(tag[1]), ""))

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in ("ul", "ol", "blockquote")
        self.inside = self.inside and not re.fullmatch("h[1-6]", tag)

    def handle_data(self, data: str) -> None:
        if self.inside:
            level, text = self.found[-1]
            self.found[-1] = level, text + data


def spec_examples() -> list[tuple[str, str]]:
    text = (SHARED / "large_inputs" / "weird" / "commonmark-spec.txt").read_text("utf-8").replace("→", "\t")
    fence = "`" * 32
    return re.findall(rf"^{fence} example\n(.*?)^\.\n(.*?)^{fence}$", text, re.DOTALL | re.MULTILINE)


@needs_shared
def test_headings_are_right_on_every_example_of_the_specification() -> None:
    """Top-level headings of all CommonMark 0.31 examples, by both ways."""
    examples = spec_examples()
    assert len(examples) > 640
    wrong = list[tuple[str, object, object]]()
    with_headings = 0
    for source, html in examples:
        page = TopLevelHeadings()
        page.feed(html)
        expected = [(level, " ".join(text.split())) for level, text in page.found]
        with_headings += bool(expected)
        document = Document.from_text(source)
        if document.front_matter:
            continue
        if headings(source) != expected:
            wrong.append((source, expected, headings(source)))
        if markdown.scan(source).headings != markdown.parse_markdown(source).headings:
            wrong.append((source, "parser", "scanner"))
    assert wrong == []
    assert with_headings >= 35


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A", [(1, "A")]),
        ("#A", []),
        ("####### seven\n", []),
        ("# A #\n## B ## \n", [(1, "A"), (2, "B")]),
        ("#\n", [(1, "")]),
        ("   # A\n    # B\n", [(1, "A")]),
        ("A\nB\n===\n", [(1, "A B")]),
        ("A\n---\n", [(2, "A")]),
        ("\n---\n", []),
        ("# C#\n", [(1, "C#")]),
        ("# `a` *b* [c](d) ![e](f) <g>h &amp; \\*\n", [(1, "a b c e h & *")]),
        ("# snake_case_name\n", [(1, "snake_case_name")]),
        ("```\n# A\n```\n# B\n", [(1, "B")]),
        ("~~~~\n# A\n~~~\n# B\n~~~~\n# C\n", [(1, "C")]),
        ("```\n# A\n```\t\n# B\n", [(1, "B")]),
        ("```\n# A\n", []),
        ("<!--\n\n# A\n\n-->\n# B\n", [(1, "B")]),
        ("<div>\n# A\n\n# B\n", [(1, "B")]),
        ("> # A\n\n- # B\n\n# C\n", [(1, "C")]),
        ("- a\n\n  # B\n\n# C\n", [(1, "C")]),
        ("1. a\n\n   ```\n   # B\n\n   # C\n   ```\n\n# D\n", [(1, "D")]),
        ("# A\r\n\r\nB\r\n===\r\n# C\r", [(1, "A"), (1, "B"), (1, "C")]),
        ("# A\x0b\n\x0c# B\n# C\n", [(1, "A"), (1, "C")]),
    ],
)
def test_what_is_a_heading(text: str, expected: list[tuple[int, str]]) -> None:
    """h1–h6 in order, inline code included; headings in quotes and lists open no section."""
    assert headings(text) == expected


def test_a_reference_in_a_heading_is_read_with_its_definition() -> None:
    """The text of a heading is what a reader sees."""
    assert headings("## [1.0.0] - today\n\ntext\n\n[1.0.0]: https://x.y\n") == [(2, "1.0.0 - today")]
    assert headings("## [1.0.0] - today\n\ntext\n") == [(2, "[1.0.0] - today")]


def test_an_anchor_in_a_heading_names_it_and_is_not_shown() -> None:
    """Documentation tools read `{#name}` as the heading's own anchor."""
    tree = quire.tree("# Pod lifecycle {#pods}\n\ntext\n")
    assert (tree.sections[1].title, tree.sections[1].slug) == ("Pod lifecycle", "pods")


def test_blocks_nest_and_keep_their_places() -> None:
    """DESIGN §4: the blocks that the chunkers need."""
    text = "pára\n\n- a\n  - b\n\n| x |\n|---|\n| y |\n\n```\ncode\n```\n"
    text += "\n> q\n\n<div>\n</div>\n\n***\n\n    indented\n"
    found = markdown.blocks(text)
    assert [block.kind for block in found] == [
        "paragraph",
        "list",
        "table",
        "code",
        "quote",
        "html",
        "rule",
        "code",
    ]
    items = found[1].children
    assert [item.kind for item in items] == ["item"]
    assert [block.kind for block in items[0].children] == ["list"]
    assert [row.kind for row in found[2].children] == ["head", "row"]
    assert text[found[3].start : found[3].end].startswith("```\ncode\n```")


def test_breaks_never_fall_inside_code() -> None:
    """A blank line in a fence or a comment is no place to cut."""
    text = "a\n\nb\n\n```\nx\n\ny\n```\nc\n\n<!-- \n\nz -->\n\n- i\n\n  j\n\nk\n"
    outline = markdown.scan(text)
    places = [0, *markdown.breaks(text, 0, len(text), outline.opaque), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert pieces == [
        "a\n\n",
        "b\n\n",
        "```\nx\n\ny\n```\n",
        "c\n\n",
        "<!-- \n\nz -->\n\n",
        "- i\n\n  j\n\n",
        "k\n",
    ]


@needs_shared
def test_corpus_fences_are_opaque_to_the_scanner_too() -> None:
    """The scanner knows every fence at the top level that the parser knows."""
    for path in [*(SHARED / "docs_links_rust").rglob("*.md")][:200]:
        text = Document.from_bytes(Path(path).read_bytes()).markup
        fences = {
            s
            for s in markdown.parse_markdown(text).opaque
            if text[s[0] :].lstrip(" ").startswith(("```", "~~~"))
        }
        assert fences <= set(markdown.scan(text).opaque), path
