"""Every strategy: nodes, sections, windows, headers and auto."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import quire
from quire import markdown as md
from quire.chunkers.base import pack_spans
from quire.errors import BrokenInvariant, SettingError
from tests.markdowns import markdown


def texts(text: str, strategy: str, **settings: Any) -> list[str]:
    return [chunk.text for chunk in quire.chunk(text, strategy, **settings)]


def words(tokens: int) -> str:
    """Text of exactly so many tokens, four characters each."""
    return ("abc " * tokens)[: 4 * tokens - 2] + "\n\n"


# ------------------------------------------------------------------------------ sections


@given(markdown(), st.integers(200, 2000))
def test_sections_join_to_the_text(text: str, limit: int) -> None:
    """T ruling: sections in order of position join to the exact source."""
    try:
        found = texts(text, "sections", max_tokens=limit)
    except BrokenInvariant:
        return
    assert "".join(found) == text or not text.strip(" \r\n\ufeff")


# --------------------------------------------------------------------------- windows (B and D)


def test_empty_content_has_no_chunks() -> None:
    """D ruling, BAD_INPUTS: an empty file is a valid document with 0 chunks, by every strategy."""
    for strategy in quire.config.STRATEGIES:
        assert texts("", strategy) == []
        assert texts(" \n\n", strategy) == []


PROSE = st.lists(
    st.sampled_from(
        [
            "Hello there. ",
            "One",
            " ",
            "\n\n",
            "x" * 50,
            "Dr. No said so! ",
            "检索文档。",
            "🙂",
            "e\u0301",
            "a b c d. ",
        ]
    ),
    max_size=200,
).map("".join)


@given(
    PROSE,
    st.integers(1, 80),
    st.floats(0, 0.9),
    st.integers(0, 60),
    st.sampled_from(["chars", "words", "bpe"]),
)
def test_windows_cover_the_text_and_keep_to_their_budget(
    text: str, budget: int, overlap: float, least: int, counter: str
) -> None:
    """B and D rulings: the budget holds for what is stored, overlap included; without overlap chunks join."""
    assume(text.strip())
    config = quire.config.override(quire.Config(), {"tokens": {"counter": counter}})
    chunks = quire.chunk(text, "windows", max_tokens=budget, overlap=overlap, min_chars=least, config=config)
    assert chunks[0].start == 0
    assert chunks[-1].end == len(text)
    for before, after in pairwise(chunks):
        assert before.start < after.start <= before.end < after.end
        assert after.start == before.end or overlap > 0
    for chunk in chunks:
        assert len(chunk.text) >= min(least, len(text))
        if counter == "chars" and 4 * budget >= 2 * least:
            assert chunk.tokens <= budget
        if least == 0 and budget > 12:  # one character may be many tokens to a BPE
            assert chunk.tokens <= budget


@given(PROSE, st.integers(8, 60))
def test_no_visible_character_is_halved(text: str, budget: int) -> None:
    """FIELD_NOTES, qmd 777: no halves of emoji, accents or flags."""
    for strategy in ("windows", "auto"):
        for chunk in quire.chunk(text + "🇫🇷" * 40 + "👍🏽" * 40, strategy, max_tokens=budget):
            assert not chunk.text.startswith(("\u0301", "🏽", "\u200d"))
            flags = re.match("[\U0001f1e6-\U0001f1ff]*", chunk.text)
            assert flags
            assert len(flags[0]) % 2 == 0


def test_a_bad_setting_is_refused_by_name() -> None:
    """BAD_INPUTS: out of range names the range, an unknown key the nearest."""
    with pytest.raises(SettingError, match=r"overlap: 1.5 is outside 0 to 0.9"):
        quire.chunk("x", "windows", overlap=1.5)
    with pytest.raises(
        SettingError, match=r"windows.overlapp: there is no such setting. Did you mean 'overlap'"
    ):
        quire.chunk("x", "windows", overlapp=0.1)
    with pytest.raises(SettingError, match=r"strategy: there is no 'window'. Did you mean 'windows'"):
        quire.chunk("x", "window")
    with pytest.raises(SettingError, match=r"max_tokens: 0 is outside"):
        quire.chunk("x", "auto", max_tokens=0)


# ------------------------------------------------------------------------------- headers (H)


def lines(count: int, text: str = "line") -> str:
    return f"{text}\n" * count


def test_long_documents_are_split_at_h2_and_h3() -> None:
    """At H2 and H3 only, with the path of their headings; deeper headings stay inside."""
    text = (
        "intro\n\n# T\n\nt\n\n## A\n\na\n\n### B\n\nb\n\n#### C\n\n" + lines(500) + "# U\n\nu\n\n### D\n\nd\n"
    )
    chunks = quire.chunk(text, "headers")
    assert [(c.header_path, c.text.splitlines()[0], c.start_line) for c in chunks] == [
        ("# T", "intro", 1),
        ("## A", "## A", 7),
        ("## A > ### B", "### B", 11),
        ("# U", "# U", 517),
        ("### D", "### D", 521),
    ]
    assert chunks[2].end_line == 516
    assert "".join(c.text for c in chunks) == text


def test_text_before_the_first_h2_without_an_h1_has_no_path() -> None:
    """H ruling: the preamble is a chunk with header_path of its H1, or ""."""
    chunks = quire.chunk("hello\n\n## A\n\n" + lines(600), "headers")
    assert [c.header_path for c in chunks] == ["", "## A"]


@pytest.mark.parametrize("gap", ["", "\n", "\n\n\n"])
def test_a_heading_stays_with_the_code_block_under_it(gap: str) -> None:
    """Never-split wins, so the heading of a long fence is no chunk of its own."""
    fence = "```\n" + lines(1500, "code") + "```\n"
    text = f"## A\n{gap}{fence}\n## B\n\n{lines(10)}\n#### C\n{gap}{fence}\n## D\n{gap}"
    text += f"#### E\n{gap}{fence}\n{lines(5)}"
    chunks = quire.chunk(text, "headers")
    assert [(c.text.split("\n")[0], c.text.count("code")) for c in chunks] == [
        ("## A", 1500),
        ("## B", 0),
        ("#### C", 1500),
        ("## D", 1500),
        ("line", 0),
    ]
    assert "".join(c.text for c in chunks) == text


def test_a_heading_stays_with_the_paragraph_under_it() -> None:
    """A section is cut between paragraphs, never after a heading."""
    text = "## A\n\n" + lines(996) + "\n#### B\n\n" + lines(996) + "\n"
    assert [t.split("\n")[0] for t in texts(text, "headers")] == ["## A", "#### B"]
    setext = "## A\n\n" + lines(996) + "\nB\n-\n\n" + lines(1200)
    assert [t.split("\n")[0] for t in texts(setext, "headers")] == ["## A", "B"]


# -------------------------------------------------------------------------------------- auto


def test_auto_gives_each_section_a_chunk_with_its_heading() -> None:
    """DESIGN §4: the heading tree gives the chunks; a heading without text goes with what follows."""
    assert texts("# A\n\n## B\n\nb\n\n## C\n\nc\n", "auto") == ["# A\n\n## B\n\nb\n\n", "## C\n\nc\n"]
    assert texts("# A\n\n# B\n", "auto") == ["# A\n\n# B\n"]


def test_a_long_section_is_cut_between_blocks() -> None:
    """DESIGN §4: block boundaries first; chunks of one section are numbered."""
    paragraph = "Some words that make a paragraph of some length. " * 6 + "\n\n"
    chunks = quire.chunk("# A\n\n" + paragraph * 12, "auto", path="a.md")
    assert [c.address for c in chunks] == [f"local:a.md#a~{n}" for n in range(1, len(chunks) + 1)]
    assert len(chunks) > 2
    assert all(c.text.endswith("length. \n\n") for c in chunks)
    assert all(c.tokens <= 500 for c in chunks)


def test_a_long_section_of_the_root_is_numbered_without_a_slug() -> None:
    """DESIGN §2: a window inside a large section is `path#slug~2`."""
    chunks = quire.chunk("Some words. " * 800, "auto", path="a.md")
    assert [c.address for c in chunks][:2] == ["local:a.md#~1", "local:a.md#~2"]


def test_auto_splits_lists_between_items_and_paragraphs_between_sentences() -> None:
    """DESIGN §4: list items, then sentences."""
    items = texts("".join(f"- item {n} with some words in it\n" for n in range(200)), "auto")
    assert len(items) > 2
    assert all(re.fullmatch(r"(- item \d+ with some words in it\n)+", item) for item in items)
    sentences = texts("This is a sentence with words. " * 200, "auto")
    assert all(s.endswith("words. ") for s in sentences)


def test_auto_repeats_the_header_of_a_split_table_as_context_only() -> None:
    """DESIGN §4: a split table repeats its header for embedding and display, never in the span."""
    head = "| name | what it does |\n|------|--------------|\n"
    text = (
        "Intro.\n\n" + head + "".join(f"| n{n} | something or other |\n" for n in range(200)) + "\nAfter.\n"
    )
    chunks = quire.chunk(text, "auto")
    middle = [c for c in chunks if re.match(r"\| n\d", c.text)]
    assert len(middle) > 2
    assert {c.context for c in middle} == {head}
    assert {c.context for c in chunks if c not in middle} == {""}
    assert "".join(c.text for c in chunks) == text
    assert chunks[0].text.startswith("Intro.\n\n| name")  # too little for a chunk of its own
    assert chunks[-1].text.endswith("|\n\nAfter.\n")


def test_a_table_in_the_middle_of_a_paragraph_is_split_by_rows_too() -> None:
    """DESIGN §4: also a table without outer bars, found by the parser."""
    text = "name | what\n---|---\n" + "".join(f"n{n} | something or other\n" for n in range(300))
    chunks = quire.chunk(text, "auto")
    assert len(chunks) > 3
    assert {c.context for c in chunks[1:]} == {"name | what\n---|---\n"}
    assert all(c.text.startswith("n") and c.text.endswith("other\n") for c in chunks[1:])


def test_auto_never_cuts_a_fence_that_is_within_the_limit() -> None:
    """DESIGN §4: never inside a fence unless it alone exceeds the hard cap; then between lines."""
    fence = "```py\n" + "x = 1\n\n" * 400 + "```\n"
    assert any(fence in t for t in texts("# A\n\n" + words(300) + fence + "\n" + words(300), "auto"))
    long = "```py\n" + "x = 1\n\n" * 900 + "```\n"
    pieces = texts(long, "auto")
    assert len(pieces) > 1
    assert all(piece.endswith("\n") for piece in pieces)


@given(markdown(), st.integers(20, 100))
def test_auto_keeps_every_fence_that_fits(text: str, limit: int) -> None:
    """DESIGN §4, as a property, the parser being the judge."""
    tree = quire.tree(text)
    document = tree.document
    chunks = quire.chunk(tree, "auto", max_tokens=limit)
    cuts = {chunk.start for chunk in chunks}
    stack = list(md.blocks(document.markup[document.content_start :]))
    while stack:
        block = stack.pop()
        stack.extend(block.children)
        start, end = block.start + document.content_start, block.end + document.content_start
        if block.kind == "code" and (end - start + 3) // 4 <= limit // 2 - 2:
            assert not [cut for cut in cuts if start < cut < end], (block, document.markup[start:end])


def test_plain_text_is_cut_between_sentences_and_no_markdown_is_seen() -> None:
    """A # in plain text is a #."""
    chunks = quire.chunk("# not a heading\n\nText of a book. " * 200, path="book.txt")
    assert {c.address.partition("#")[0] for c in chunks} == {"local:book.txt"}
    assert len(chunks) > 3


def test_pack_goes_as_far_as_it_can_reach() -> None:
    """Pieces end at the last place within reach, or at the first one beyond it."""
    assert list(pack_spans(0, 10, [2, 4, 9], lambda at: at + 5)) == [4, 9, 10]
    assert list(pack_spans(0, 20, [15], lambda at: at + 5)) == [15, 20]
    assert list(pack_spans(0, 3, [1, 2], lambda at: at + 5)) == [3]


def test_headings_that_fill_a_chunk_are_not_cited_as_a_section_after_them() -> None:
    """Invariant 2: a chunk is part of its section, or of the headings directly before it."""
    text = "".join(f"## Heading {number:03}\n" for number in range(300)) + "\nAt last, text.\n"
    chunks = quire.chunk(text, "auto", path="a.md")
    assert len(chunks) > 2
    assert all(chunk.section.start < chunk.end for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks) == text
    assert chunks[-1].section.title == "Heading 299"
