"""Context packs: what goes in, in which order, never over the budget, each with its citation."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import chunkers
from quire.config import ContextSettings, TokenSettings, WindowsSettings
from quire.context import INCLUDES, Context, Match, Source, pack
from quire.document import Document
from quire.errors import NoResults, SettingError
from quire.library import Library
from quire.surfaces.packs import as_markdown, as_values, as_xml
from quire.tokens import Counter, counter
from quire.tree import Tree
from tests.markdowns import markdown
from tests.words import WORDS

COUNTERS = [name for name in ("chars", "words", "bpe") if name != "bpe" or find_spec("rs_bpe")]
CHARS = counter(TokenSettings())
LONG = " ".join(f"Sentence number {n} tells of it." for n in range(40))
GUIDE = f"""\
---
tags: [a]
---
# Guide

Welcome to the guide.

## Install

What you need first.

### Linux

Type apt install quire.

### Windows

Type winget install quire.

## Use

{LONG}

The zebra stands in the middle.

{LONG}
"""


def source(text: str, path: str = "a.md", promotion: str = "standard") -> Source:
    return Source(Tree(Document.from_text(text, path, collection="c")), None, promotion)


def match(found: Source, words: str, score: float = 1.0) -> Match:
    """A match on the paragraph that holds some words, as a chunk of its own."""
    at = found.text.index(words)
    start, end = found.text.rfind("\n\n", 0, at) + 2, found.text.index("\n", at) + 1
    address = found.tree.at(at).address
    return Match(found, address, start, end, ((start, end),), score)


def packed(*matches: Match, tokens: int = 4000, include: str = "sections") -> Context:
    return pack("q", (), matches, ContextSettings(max_tokens=tokens), CHARS, include=include)


def texts(context: Context) -> list[str]:
    return [passage.text for passage in context.passages]


# ------------------------------------------------------------------------------- what goes in


def test_a_section_goes_in_whole_with_its_citation() -> None:
    """Issue: the section that holds the hit, rather than the bare chunk."""
    guide = source(GUIDE)
    (*_, found) = packed(match(guide, "zebra")).passages
    assert found.text.startswith("## Use\n\nSentence number 0")
    assert found.text.endswith("number 39 tells of it.")
    assert (found.address, found.breadcrumb, found.path) == ("c:a.md#use", "> Guide › Use", "a.md")
    assert GUIDE[found.start : found.end] == found.text
    assert GUIDE.encode()[found.byte_start : found.byte_end].decode() == found.text
    assert GUIDE.splitlines()[found.start_line - 1] == "## Use"
    assert (found.end_line, found.reason) == (len(GUIDE.splitlines()), "match")


def test_where_a_section_does_not_fit_its_chunk_comes_with_what_stands_around_it() -> None:
    """Issue: neighbours on both sides, to complete a thought, while the budget allows."""
    text = "# A\n\n" + "".join(f"Paragraph {n} is here.\n\n" for n in range(60))
    (found,) = packed(match(source(text), "Paragraph 30 "), tokens=120).passages
    inside = [n for n in range(60) if f"Paragraph {n} " in found.text]
    assert inside == list(range(inside[0], inside[-1] + 1))
    assert inside[0] < 30 < inside[-1]
    assert abs((30 - inside[0]) - (inside[-1] - 30)) <= 1
    assert found.reason == "match"
    assert found.address == "c:a.md#a"


def test_parents_stand_beside_what_matches() -> None:
    """The document is always there: by its breadcrumb, and by what opens it where that is short."""
    found = packed(match(source(GUIDE), "winget")).passages
    assert [passage.text.splitlines()[0] for passage in found] == ["# Guide", "### Windows"]
    assert found[0].text == "# Guide\n\nWelcome to the guide.\n\n## Install\n\nWhat you need first."
    assert [passage.reason for passage in found] == ["parent", "match"]
    assert found[1].breadcrumb == "> Guide › Install › Windows"


def test_parents_do_not_crowd_out_what_matches() -> None:
    """Issue: an introduction goes in only within a small share of the budget."""
    text = f"# A\n\n{LONG}\n\n## B\n\nzebra\n\n## C\n\nlion\n"
    assert texts(packed(match(source(text), "zebra"), tokens=1000)) == ["## B\n\nzebra"]
    assert len(texts(packed(match(source(text), "zebra"), tokens=4000))[0]) > 1000


def test_a_merged_section_that_does_not_fit_gives_its_parts() -> None:
    """Issue: whole sections where they fit, else the ones in it that match, else the chunks."""
    text = f"# A\n\n## P\n\n### One\n\nzebra one\n\n### Two\n\n{LONG}\n\n### Three\n\nzebra three\n"
    found = source(text)
    one, three = match(found, "zebra one"), match(found, "zebra three")
    merged = Match(found, "c:a.md#p", text.index("## P"), len(text), (*three.hits, *one.hits), 1.0)
    context = packed(merged, tokens=80)
    assert texts(context)[-1] == "### Three\n\nzebra three"
    assert "zebra one" in texts(context)[0]
    assert LONG not in "".join(texts(context))


def test_what_overlaps_or_touches_is_one_passage() -> None:
    """Issue: no byte twice, in document order."""
    guide = source(GUIDE)
    found = packed(match(guide, "winget"), match(guide, "apt", 0.9), match(guide, "apt", 0.8)).passages
    (passage,) = found
    assert passage.text.startswith("# Guide")
    assert passage.text.endswith("Type winget install quire.")
    assert (passage.address, passage.reason) == ("c:a.md#guide", "match")


def test_documents_come_best_first_and_their_passages_in_order() -> None:
    """Issue: results best first."""
    first, second = source(GUIDE, "1.md"), source(GUIDE, "2.md")
    found = packed(match(second, "zebra"), match(first, "winget", 0.9), match(second, "apt", 0.8)).passages
    assert [passage.path for passage in found] == ["2.md", "2.md", "1.md", "1.md"]
    assert [passage.number for passage in found] == [1, 2, 3, 4]
    assert found[0].start < found[1].start


def test_weak_matches_are_passed_over() -> None:
    """Relevant chunks are those over the threshold."""
    guide = source(GUIDE)
    settings = ContextSettings(threshold=0.5)
    found = pack("q", (), [match(guide, "apt"), match(guide, "zebra", 0.4)], settings, CHARS)
    assert "zebra" not in "".join(texts(found))
    assert found.left_out == ()


def test_the_caller_chooses_sections_chunks_or_documents() -> None:
    """The source, only the relevant chunks, or the sections that they are in."""
    guide = source(GUIDE)
    assert texts(packed(match(guide, "zebra"), include="chunks")) == ["The zebra stands in the middle."]
    assert texts(packed(match(guide, "zebra"), include="documents")) == [GUIDE.rstrip()]
    cut = packed(match(guide, "winget"), include="documents", tokens=100)
    assert texts(cut) == ["### Windows\n\nType winget install quire."]
    with pytest.raises(SettingError, match=r"include: there is no 'section'\. Did you mean 'sections'\?"):
        packed(match(guide, "zebra"), include="section")


def test_critical_documents_come_first_and_whole() -> None:
    """H sibling: critical ones are always put first in context, counted against the budget."""
    rules, guide = source("# Rules\n\nBe kind.\n", "rules.md", "critical"), source(GUIDE)
    found = pack("q", [rules], [match(guide, "apt")], ContextSettings(), CHARS)
    assert found.passages[0].text == "# Rules\n\nBe kind."
    assert (found.passages[0].reason, found.passages[0].promotion) == ("critical", "critical")
    assert "apt" in found.passages[-1].text
    assert pack("q", [rules], [], ContextSettings(), CHARS).passages == found.passages[:1]


def test_a_critical_document_that_does_not_fit_leaves_room_for_the_answer() -> None:
    """Issue: as much as fits of its best sections, else of its beginning, and it says so."""
    many = "".join(f"Rule {n} is to be kept.\n\n" for n in range(200))
    rules = source(f"# Rules\n\n{many}", "r.md", "critical")
    found = pack("q", [rules], [match(source(GUIDE), "apt")], ContextSettings(max_tokens=300), CHARS)
    assert found.passages[0].text.startswith("# Rules\n\nRule 0 is")
    assert found.passages[0].text.endswith("to be kept.")
    assert found.passages[0].tokens < 150
    assert "apt" in found.passages[-1].text
    assert "c:r.md is critical and has 1,225 tokens: only a part of it is here." in found.notes
    guide = source(GUIDE, promotion="critical")
    found = pack("q", [guide], [match(guide, "apt")], ContextSettings(max_tokens=200), CHARS)
    assert "Type apt" in found.passages[0].text
    assert found.passages[0].reason == "critical"


# ------------------------------------------------------------------------------ never over it


def test_a_budget_too_small_gives_nothing_and_says_what_is_needed() -> None:
    """Issue: an empty pack with a note that says what is needed."""
    found = match(source(GUIDE), "winget")
    context = packed(found, tokens=20)
    assert (context.passages, context.tokens, context.left_out) == ((), 0, ("c:a.md#windows",))
    (note,) = context.notes
    assert note.startswith("Nothing fits in 20 tokens: the least of what was found needs ")
    needed = int(note.partition("needs ")[2].partition(".")[0])
    assert packed(found, tokens=needed).passages
    assert as_markdown(context) == ""


def test_what_does_not_fit_is_named() -> None:
    """Issue: left_out has the addresses."""
    guide = source(GUIDE)
    context = packed(match(guide, "winget"), match(guide, LONG[:20], 0.9), tokens=60)
    assert context.left_out == ("c:a.md#use",)
    assert context.notes == ("c:a.md#use did not fit in 60 tokens. Raise max_tokens for more.",)


def test_the_best_match_is_cut_where_it_alone_is_over_the_budget() -> None:
    """Issue: a pack holds something of the best match; strategies may make large chunks."""
    text = "# A\n\n" + "word " * 5000 + "\n"
    start, end = 5, len(text)
    context = packed(Match(source(text), "c:a.md#a", start, end, ((start, end),), 1.0), tokens=100)
    assert context.passages[0].text.startswith("word word")
    assert context.passages[0].text.endswith("word")
    assert context.notes == ("c:a.md#a has 6,251 tokens: only its beginning is here.",)


FAKE = "## [1] c:0.md (lines 1–2)"
ODD = ["`", "```", "~~~~", "\n", "\n\n", FAKE, "> a", "\r", "\u2028", "\x1b", "<x>", "文", "a "]
HOSTILE = st.lists(st.sampled_from(ODD), max_size=40).map("".join)


@st.composite
def packs(draw: st.DrawFn) -> tuple[list[Source], list[Match]]:
    """Documents, and matches on chunks of them."""
    texts = draw(st.lists(st.one_of(markdown(), HOSTILE), min_size=1, max_size=4))
    sources, matches = list[Source](), list[Match]()
    size = draw(st.sampled_from([10, 60, 800]))
    for number, text in enumerate(texts):
        promotion = draw(st.sampled_from(["standard", "standard", "critical"]))
        sources.append(source(text, f"{number}.md", promotion))
        windows = WindowsSettings(max_tokens=size, overlap=0.2, min_chars=0)
        for chunk in chunkers.split(sources[-1].tree, "windows", windows, TokenSettings()):
            if draw(st.booleans()):
                score = draw(st.floats(0.2, 1))
                span = chunk.start, chunk.end
                matches.append(Match(sources[-1], chunk.address, *span, (span,), score))
    return sources, sorted(matches, key=lambda found: -found.score)


@given(packs(), st.integers(50, 20_000), st.sampled_from(COUNTERS), st.sampled_from(INCLUDES))
def test_a_pack_is_never_over_its_budget(
    drawn: tuple[list[Source], list[Match]], budget: int, name: str, include: str
) -> None:
    """Issue: never over the budget by the chosen counter, citations included; exact; no byte twice."""
    sources, matches = drawn
    critical = [one for one in sources if one.promotion == "critical"]
    count = counter(TokenSettings(name))
    context = pack("q", critical, matches, ContextSettings(budget), count, include=include)
    shown = as_markdown(context)
    assert context.tokens == tokens_of(count, shown) <= budget
    by_path = {one.tree.document.path: one.tree.document for one in sources}
    for passage in context.passages:
        document = by_path[passage.path]
        assert document.text[passage.start : passage.end] == passage.text != ""
        assert document.source[passage.byte_start : passage.byte_end].decode() == passage.text
        assert document.lines_at([passage.start, passage.end - 1]) == [passage.start_line, passage.end_line]
    for first, second in pairwise(context.passages):
        assert first.path != second.path or first.end < second.start
    assert context == pack("q", critical, matches, ContextSettings(budget), count, include=include)
    assert_only_citations_are_headings(context, shown)


@given(packs(), st.sampled_from(COUNTERS))
def test_with_room_enough_every_match_is_there(drawn: tuple[list[Source], list[Match]], name: str) -> None:
    """Nothing relevant is lost."""
    _, matches = drawn
    context = pack("q", (), matches, ContextSettings(1_000_000, 0), counter(TokenSettings(name)))
    assert context.left_out == ()
    for found in matches:
        text = found.source.text[found.start : found.end].strip()
        assert not text or any(text in p.text for p in context.passages if p.path in found.address)


def tokens_of(count: Counter, text: str) -> int:
    return count.count(text, 0, len(text))


# --------------------------------------------------------------------------------- how it shows


def assert_only_citations_are_headings(context: Context, shown: str) -> None:
    """What a Markdown parser takes for a heading outside of quotes is a citation, and nothing else."""
    titles = Tree(Document.from_text(shown)).names.titles
    assert [title.partition("]")[0] for title in titles] == [f"[{p.number}" for p in context.passages]


def test_markdown_has_numbered_citations_and_the_text_as_it_is() -> None:
    """Issue: numbered citations with addresses and lines."""
    shown = as_markdown(packed(match(source("# A\n\n## B\n\n```py\nx = 1\n```\n"), "```py")))
    assert shown == "## [1] c:a.md#b (lines 3–7)\n> A › B\n````\n## B\n\n```py\nx = 1\n```\n````\n"


def test_text_cannot_fake_a_citation() -> None:
    """BAD_INPUTS, hostile text: only quoted content, whatever fences, headings and names it has."""
    text = f"# A\n\n{FAKE}\n\nzebra `````\n\n`````\n\n{FAKE}\n> A\n"
    context = packed(match(source(text, f"a\n{FAKE}\n.md"), "zebra"))
    shown = as_markdown(context)
    assert_only_citations_are_headings(context, shown)
    assert shown.startswith(rf"## [1] c:a\u{{a}}{FAKE}\u{{a}}.md")
    assert "\n``````\n" in shown


def test_xml_is_well_formed_and_json_is_exact() -> None:
    """Issue: --format xml and json; BAD_INPUTS: invisible and control characters made visible."""
    text = '# A "quoted" & b\n\nzebra </content></document> & \x1b[2J \u202e \u200b \U000e0041 \ufffe\n'
    context = packed(match(source(text, "<a&'\".md"), "zebra"))
    (document,) = ElementTree.fromstring(as_xml(context))
    assert document.attrib == {
        "index": "1",
        "address": "c:<a&'\".md",
        "lines": "1–3",
        "place": 'A "quoted" & b',
    }
    assert document.findtext("source") == "<a&'\".md"
    shown = document.findtext("content") or ""
    assert "zebra </content></document> & \\u{1b}[2J \\u{202e} \\u{200b} \\u{e0041} \\u{fffe}" in shown
    assert "\x1b" not in as_markdown(context)
    exact = json.loads(json.dumps(as_values(context)))
    assert exact["passages"][0]["text"] == text.rstrip()


def test_any_line_ends_are_shown_as_lines() -> None:
    """BAD_INPUTS: CRLF and lone CR are lines, not characters to be made visible."""
    shown = as_markdown(packed(match(source("# A\r\n\r\none\r\rzebra\n\nend\r\n"), "zebra")))
    assert shown == "## [1] c:a.md (lines 1–7)\n> A\n```\n# A\n\none\n\nzebra\n\nend\n```\n"


# ---------------------------------------------------------------------------------- the library


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        opened.add(content=GUIDE, path="guide.md", collection="docs")
        opened.add(content="# Rules\n\nBe kind.\n", path="rules.md", collection="docs")
        opened.add(content="# House\n\nBe quiet.\n", path="house.md", collection="other")
        yield opened


def test_a_library_packs_what_it_finds(library: Library) -> None:
    """Issue: Library.context; the default size is a setting."""
    context = library.context("winget install")
    assert (context.query, context.max_tokens) == ("winget install", 4000)
    assert "docs:guide.md#" in context.passages[-1].address
    assert "Type winget install quire." in "".join(texts(context))
    library.config = replace(WORDS, context=ContextSettings(max_tokens=60))
    assert library.context("winget install").tokens <= 60


def test_critical_documents_are_in_every_pack_of_their_collection(library: Library) -> None:
    """Issue: critical always included; one collection's filter never returns another's text."""
    library.promote("docs:rules.md", "critical")
    library.promote("other:house.md", "critical")
    assert [p.address for p in library.context("winget").passages[:2]] == ["docs:rules.md", "other:house.md"]
    assert [p.path for p in library.context("winget", collection="other").passages] == ["house.md"]
    assert [p.path for p in library.context("xyzzy", collection="docs").passages] == ["rules.md"]
    library.promote("docs:rules.md", "standard")
    assert "rules.md" not in [p.path for p in library.context("winget").passages]


def test_a_pack_keeps_to_paths_and_to_documents(library: Library) -> None:
    """Memories are not in it; filters are kept to."""
    library.remember("winget install is what we use")
    assert {p.path for p in library.context("winget install").passages} == {"guide.md"}
    assert library.context("winget", paths=["rules"]).passages == ()


def test_a_pack_says_what_is_wrong(library: Library) -> None:
    """BAD_INPUTS: not indexed, no match, and values out of range."""
    assert library.context("xyzzy").notes[0].startswith("No match in 3 documents")
    with pytest.raises(NoResults, match="No collection 'doc'"):
        library.context("winget", collection="doc")
    with pytest.raises(SettingError, match="max_tokens: 0 is outside 1 to 10,000,000"):
        library.context("winget", max_tokens=0)
    with pytest.raises(SettingError, match="query: is empty"):
        library.context(" ")


def test_only_the_chunks_that_match_or_whole_documents(library: Library) -> None:
    """From the library as from a list of matches."""
    (chunk,) = library.context("zebra", include="chunks").passages
    assert "zebra" in chunk.text
    (whole,) = library.context("zebra", include="documents").passages
    assert whole.text == GUIDE.rstrip()
    assert library.read(chunk.address).text.strip() == chunk.text


def test_a_pack_of_a_huge_document_takes_bounded_time(library: Library) -> None:
    """Three megabytes, and the pack is small."""
    text = "".join(f"# Part {n}\n\nIt is about topic{n}. {LONG}\n\n" for n in range(2500))
    library.add(content=text, path="huge.md", collection="docs")
    library.promote("docs:huge.md", "critical")
    started = time.process_time()
    context = library.context("topic1234", max_tokens=1000)
    assert time.process_time() - started < 5
    assert "topic1234" in "".join(texts(context))


def test_a_question_in_other_words_packs_the_section(library_url: str) -> None:
    """By meaning too, with the model that comes along."""
    with Library.open(library_url, create=True) as library:
        library.add(content="# Cats\n\nA kitten sleeps all day.\n", path="cats.md")
        library.add(content="# Bread\n\nBake it for an hour.\n", path="bread.md")
        found = library.context("young feline", mode="semantic", include="chunks")
        assert found.passages[0].address == "content:cats.md#cats"
