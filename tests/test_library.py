"""The library end to end: add, search, read, outline, remove, refresh (T, D, H, R)."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quire
from quire import analyze, fusion
from quire.address import id_of
from quire.config import DEFAULT, override
from quire.errors import LibraryError, NoResults, NotText, SettingError
from quire.ingest.prepare import prepare
from quire.library import Library
from quire.result import Hit
from quire.snippet import snippet
from quire.stores.sqlite import SqliteStore
from quire.surfaces import render
from tests.markdowns import SHARED, needs_shared
from tests.words import WORDS

GUIDE = """\
# Guide

Welcome to the guide.

## Install

Use the package manager.

### Linux

Type apt install quire.

### Windows

Type winget install quire.

## Use

Run the command with a folder.
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "faq.md").write_text("# FAQ\n\n## Why penguins?\n\nPenguins cannot fly, yet they swim.\n")
    (folder / "notes.txt").write_text("# plain\n\nA note about zebras in plain text.\n")
    return folder


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        yield opened


@pytest.fixture
def filled(library: Library, docs: Path) -> Library:
    library.add(docs)
    return library


def addresses(library: Library, query: str, **options: object) -> list[str]:
    return [result.address for result in library.search(query, **options).results]  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------- adding


def test_a_folder_is_indexed_under_its_name(filled: Library) -> None:
    """Documents with id, collection, path, checksum and times."""
    rows = {row.path: row for row in filled.documents()}
    assert set(rows) == {"faq.md", "guide.md", "notes.txt"}
    guide = rows["guide.md"]
    assert (guide.collection, guide.kind, guide.title) == ("docs", "document", "Guide")
    assert guide.checksum == hashlib.sha256(GUIDE.encode()).hexdigest()
    assert guide.created_at == guide.updated_at > 1_600_000_000_000
    assert guide.id == id_of("document", "docs:guide.md")
    assert filled.store.check() == []


def test_a_file_that_was_only_touched_is_not_written_again(filled: Library, docs: Path) -> None:
    """Issue: mtime and size compared for inequality, then hash."""
    os.utime(docs / "guide.md", ns=(1, 1))
    assert filled.add(docs).unchanged == 3
    assert filled.document("docs:guide.md").mtime_ns == 1  # type: ignore[union-attr]


def test_a_changed_file_keeps_its_identity(filled: Library, docs: Path) -> None:
    """Same id and created_at, later updated_at, chunks replaced."""
    old = filled.document("docs:guide.md")
    (docs / "guide.md").write_text(GUIDE.replace("package manager", "unicorn"))
    report = filled.add(docs)
    new = filled.document("docs:guide.md")
    assert old
    assert new
    assert (report.updated, report.unchanged) == (1, 2)
    assert (new.id, new.created_at) == (old.id, old.created_at)
    assert new.updated_at > old.updated_at
    assert addresses(filled, "unicorn") == ["docs:guide.md#install~0"]
    assert addresses(filled, '"package manager"') == []
    assert filled.store.check() == []


def test_other_settings_cut_a_document_anew(library_url: str, docs: Path) -> None:
    """Chunks go by the strategy that made them."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        library.add(docs)
    nodes = override(WORDS, {"chunk": {"strategy": "nodes"}})
    with Library.open(library_url, config=nodes) as library:
        assert library.add(docs).updated == 3
        assert library.store.check() == []


def test_content_is_a_document_of_its_own(library: Library) -> None:
    """Content wins over a path; without anything to add the message says so."""
    library.add(content="# My Document\n\nSome content here.", path="a.md", collection="notes")
    row = library.document("notes:a.md")
    assert row
    assert (row.title, row.root) == ("My Document", None)
    assert library.add(
        content="# My Document\n\nSome content here.", path="a.md", collection="notes"
    ).unchanged
    assert library.add(content="# Other\n\nText.", path="a.md", collection="notes").updated == 1
    with pytest.raises(SettingError, match="Must provide path, url, or content"):
        library.add()


def test_empty_content_is_a_valid_document(library: Library) -> None:
    """D ruling, BAD_INPUTS: an empty file is a document with 0 chunks."""
    library.add(content="", path="empty.md", collection="c")
    row = library.document("c:empty.md")
    assert row
    assert row.chunk_count == 0
    assert library.read("c:empty.md").text == ""


def test_a_bad_file_never_stops_the_rest(library: Library, docs: Path) -> None:
    """BAD_INPUTS: report, go on."""
    (docs / "bad.md").write_bytes(b"a\0b")
    report = library.add(docs)
    assert report.added == 3
    assert [(f.source, "NUL" in f.reason) for f in report.failed] == [("bad.md", True)]


def test_a_bad_new_version_keeps_the_old_one(filled: Library, docs: Path) -> None:
    """BAD_INPUTS: nothing may lose an earlier good version."""
    (docs / "guide.md").write_bytes(b"\0\0")
    assert len(filled.add(docs).failed) == 1
    assert addresses(filled, "winget") == ["docs:guide.md#windows"]


def test_vanished_files_stay_until_pruned(filled: Library, docs: Path) -> None:
    """BAD_INPUTS: adding removes nothing, and an emptied folder loses nothing, without --prune."""
    (docs / "faq.md").unlink()
    report = filled.add(docs)
    assert (report.removed, report.missing) == (0, ["docs:faq.md"])
    assert filled.add(docs, prune=True).removed == 1
    assert filled.document("docs:faq.md") is None
    for path in docs.iterdir():
        path.unlink()
    assert filled.refresh().removed == 0
    assert len(filled.documents()) == 2
    assert filled.add(docs, prune=True).removed == 2


def test_a_renamed_file_keeps_what_is_known(filled: Library, docs: Path) -> None:
    """Issue: rename detection."""
    old = filled.document("docs:guide.md")
    (docs / "guide.md").rename(docs / "manual.md")
    report = filled.add(docs)
    new = filled.document("docs:manual.md")
    assert old
    assert new
    assert (new.seq, new.created_at, report.added, report.missing) == (old.seq, old.created_at, 0, [])
    assert addresses(filled, "winget") == ["docs:manual.md#windows"]


def test_one_file_is_filed_under_its_folder(library: Library, docs: Path) -> None:
    """Ingest by path; a single file leaves its neighbours alone."""
    assert library.add(docs / "guide.md").added == 1
    assert [row.address for row in library.documents()] == ["docs:guide.md"]


def test_two_folders_cannot_claim_one_path(library: Library, docs: Path, tmp_path: Path) -> None:
    """Nothing is lost: a second folder does not overwrite the first one's documents."""
    other = tmp_path / "other" / "docs"
    other.mkdir(parents=True)
    (other / "guide.md").write_text("# Other\n\ntext\n")
    library.add(docs)
    report = library.add(other)
    assert "Name another collection" in report.failed[0].reason
    assert library.document("docs:guide.md").title == "Guide"  # type: ignore[union-attr]


# ----------------------------------------------------------------------------------- searching


def test_results_are_sections_with_exact_spans(filled: Library) -> None:
    """Heading, path, breadcrumb, snippet, score, match type and spans."""
    (result, *_) = filled.search("apt").results
    assert result.address == "docs:guide.md#linux"
    assert result.breadcrumb == "> Guide › Install › Linux"
    assert (result.heading, result.path, result.collection) == ("Linux", "guide.md", "docs")
    assert result.header_path == "## Install > ### Linux"
    assert result.match == "keyword"
    assert GUIDE[result.start : result.end] == "### Linux\n\nType apt install quire.\n\n"
    assert GUIDE.encode()[result.byte_start : result.byte_end].decode() == GUIDE[result.start : result.end]
    assert (result.start_line, result.end_line, result.depth) == (9, 12, 3)
    assert (result.snippet, result.highlights) == ("### Linux Type apt install quire.", ((15, 18),))
    assert result.document_id == filled.document("docs:guide.md").id  # type: ignore[union-attr]


def test_results_come_best_first_and_within_the_limit(filled: Library) -> None:
    """Rank descending, limit 10 by default; BAD_INPUTS: a wrong limit names the range."""
    scores = [result.score for result in filled.search("guide install quire penguins").results]
    assert scores == sorted(scores, reverse=True)
    assert len(filled.search("install", limit=1).results) == 1
    for limit in (0, -1, 10**9):
        with pytest.raises(SettingError, match=r"limit: .* is outside 1 to 1,000"):
            filled.search("install", limit=limit)


def test_a_search_keeps_to_its_collection_and_paths(filled: Library) -> None:
    """Ruling: filters apply before the cut; one collection never returns another's text."""
    filled.add(content="# Guide\n\ninstall install install\n", path="guide.md", collection="other")
    assert {a.partition(":")[0] for a in addresses(filled, "install", collection="docs")} == {"docs"}
    assert addresses(filled, "install", collection="other", limit=1) == ["other:guide.md#guide"]
    assert addresses(filled, "install path:gui", collection="docs")
    assert addresses(filled, "install", paths=["faq"]) == []
    assert addresses(filled, "install", paths=["*.md"], collection="other")


def test_a_path_in_a_query_only_narrows_the_paths_of_a_search(library: Library) -> None:
    """Whoever sets `paths` sets a limit: no query reaches beyond it. Several path: terms are alternatives."""
    for path in ("a/one.md", "a/two.md", "b/three.md"):
        library.add(content=f"# {path}\n\nZebras live here.\n", path=path, collection="docs")

    def paths(query: str, *within: str) -> set[str]:
        found = {result.path for result in library.search(query, paths=within).results}
        assert {passage.path for passage in library.context(query, paths=within).passages} == found
        return found

    assert paths("zebras path:b/", "a/") == set()
    assert paths("zebras path:b/ path:a/one", "a/") == {"a/one.md"}
    assert paths("zebras path:a/one", "a/", "b/") == {"a/one.md"}
    assert paths("zebras path:a/one path:b/") == {"a/one.md", "b/three.md"}
    assert paths("zebras -path:a/one path:a/", "a/", "b/") == {"a/two.md"}


def test_a_thousand_paths_and_tags_are_as_good_as_one(filled: Library) -> None:
    """BAD_INPUTS: 1,000 paths are answered, and never with an error of the database."""
    assert addresses(filled, "penguins", paths=[*("none/" for _ in range(999)), "faq"])
    assert addresses(filled, "penguins", paths=["none/"] * 1000) == []
    tags = [f"tag{number}" for number in range(1000)]
    filled.remember("Penguins are kept here.", tags=tags)
    assert filled.recall("penguins", tags=tags).results
    assert filled.recall("penguins", tags=tags[:3]).results
    assert not filled.recall("penguins", tags=[*tags, "more"]).results


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("penguin", "docs:faq.md#why-penguins"),
        ('"swim"', "docs:faq.md#why-penguins"),
        ("PENGUINS", "docs:faq.md#why-penguins"),
        ("heading:penguins", "docs:faq.md#why-penguins"),
        ("title:faq swim", "docs:faq.md#why-penguins"),
        ("peng*", "docs:faq.md#why-penguins"),
        ("install -apt -command -package", "docs:guide.md#windows"),
        ("xyzzy OR zebras", "docs:notes.txt"),
        ("plain guide -path:guide", "docs:notes.txt"),
    ],
)
def test_the_query_language(filled: Library, query: str, expected: str) -> None:
    """DESIGN §6: web-search syntax."""
    assert addresses(filled, query)[0] == expected


@pytest.mark.parametrize(
    "query",
    [
        '"unbalanced',
        "AND",
        "NEAR(",
        "C++",
        "don't",
        "a:b",
        "a\0b",
        "🙂",
        "OR OR",
        "word*",
        "^x",
        "{a}:b",
    ],
)
def test_any_text_is_a_query(filled: Library, query: str) -> None:
    """BAD_INPUTS: an answer or a clear message, never a database error."""
    assert filled.search(query).query


@pytest.mark.parametrize("query", ["", "  ", "*", "-only", '""', "("])
def test_a_query_without_words_says_so(filled: Library, query: str) -> None:
    """BAD_INPUTS: empty → a clear message."""
    with pytest.raises(SettingError, match="query: "):
        filled.search(query)


@given(st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_query_breaks_the_index(filled: Library, query: str) -> None:
    """BAD_INPUTS: any input is a valid query or a SettingError."""
    with suppress(SettingError):
        filled.search(query)


def test_a_megabyte_of_words_is_answered_in_bounded_time(filled: Library) -> None:
    """BAD_INPUTS: 1 MB of words."""
    started = time.process_time()
    found = filled.search("penguins " + "word filler " * 90_000)
    assert time.process_time() - started < 5
    assert "first 64 terms" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("检索文档的系统能够找到答案。", "文档"),
        ("ドキュメントを検索するシステム", "検索"),
        ("문서를 검색하는 시스템", "검색"),
        ("Система поиска документов", "документы"),
        ("نظام البحث في الوثائق", "البحث"),
        ("Die Straße ist naïve", "naive"),
    ],
)
def test_other_languages_have_hits(library: Library, text: str, query: str) -> None:
    """BAD_INPUTS: CJK, Cyrillic, Arabic → hits."""
    library.add(content=f"# X\n\n{text}\n", path="a.md", collection="c")
    library.add(content="# Y\n\nsomething else\n", path="b.md", collection="c")
    assert addresses(library, query) == ["c:a.md#x"]


def test_not_indexed_is_told_from_no_match(filled: Library, fresh_url: Callable[[], str]) -> None:
    """NoResults for what was never indexed, an empty result with a note for no match."""
    found = filled.search("xyzzy")
    assert found.results == ()
    assert found.notes[0].startswith("No match in 3 documents")
    with pytest.raises(NoResults, match=r"No collection 'doc'\. Did you mean 'docs'\?"):
        filled.search("install", collection="doc")
    with pytest.raises(
        NoResults, match=r"No document 'docs:guid.md' is indexed\. Did you mean 'docs:guide.md'"
    ):
        filled.read("docs:guid.md")
    with (
        Library.open(fresh_url(), create=True) as empty,
        pytest.raises(NoResults, match="is empty"),
    ):
        empty.search("x")
    with pytest.raises(NoResults, match=r"No library at .*quire add"):
        Library.open(fresh_url())


def test_changed_files_are_marked_stale(filled: Library, docs: Path) -> None:
    """DESIGN §6: stale marking by stat at query time."""
    assert not filled.search("penguins").results[0].stale
    (docs / "faq.md").write_text("# FAQ\n\nshorter\n")
    found = filled.search("penguins")
    assert found.results[0].stale
    assert "quire refresh" in found.notes[-1]


def test_a_file_whose_name_is_not_utf8_is_indexed_and_not_stale(library: Library, docs: Path) -> None:
    """BAD_INPUTS: indexed under an escaped name, printable."""
    Path(os.fsdecode(os.fsencode(docs) + b"/caf\xe9.md")).write_text("# Okapi\n\nokapi\n")
    library.add(docs)
    (result,) = library.search("okapi").results
    assert result.path == "caf\\xe9.md"
    assert not result.stale
    assert library.add(docs).unchanged == 4


def test_a_collection_has_no_colon(library: Library, tmp_path: Path) -> None:
    """Every result can be read by its address, which a colon divides."""
    with pytest.raises(SettingError, match="'a:b' has a colon"):
        library.add(content="# Hello\n", path="x.md", collection="a:b")
    with pytest.raises(SettingError, match="'a:b' has a colon"):
        library.remember("hello", collection="a:b")
    folder = tmp_path / "c:d"
    folder.mkdir()
    (folder / "x.md").write_text("# Hello\n")
    library.add(folder)
    (result,) = library.search("hello").results
    assert result.address == "c-d:x.md"
    assert library.read(result.address).text == "# Hello\n"


@pytest.mark.parametrize("content", ["a\0b", b"a\0b"])
def test_content_that_is_no_text_is_refused(library: Library, content: str | bytes) -> None:
    """BAD_INPUTS: what could not be read again is not taken in, as text or as bytes."""
    with pytest.raises(NotText, match=r"x\.md: holds NUL bytes"):
        library.add(content=content, path="x.md", collection="c")
    assert library.store.counts().documents == 0


def test_matching_siblings_are_returned_as_their_parent(library: Library) -> None:
    """More than half of a parent's children match → the parent, spanning them all."""
    library.add(
        content="# T\n\n## P\n\n### A\n\nzebra one\n\n### B\n\nzebra two\n\n### C\n\nlion\n\n## Q\n\ncow\n",
        path="a.md",
        collection="c",
    )
    library.add(content="".join(f"# {n}\n\ncow\n\n" for n in range(9)), path="b.md", collection="c")
    library.config = override(library.config, {"search": {"merge_from": 0.7}})
    (result,) = library.search("zebra", explain=True).results
    assert result.address == "c:a.md#p"
    assert result.merged_from == ("c:a.md#a", "c:a.md#b")
    best = max(hit["score"] for hit in cast("list[dict[str, float]]", result.explain["hits"]))
    assert best < result.score <= 1.1 * best  # siblings tell more than one, not twice as much
    assert library.read(result.address).text.endswith("lion\n\n")


def test_a_large_section_is_returned_in_parts_that_do_not_overlap(library: Library) -> None:
    """Issue: what is larger stands as its parts; by the founding rules a section is returned once."""
    text = "# A\n\n" + "".join(
        f"Sentence {n} of zebra. " + "filler words here. " * (n % 7) for n in range(300)
    )
    library.add(content=text + "\n\n# B\n\nzebra\n", path="a.md", collection="c")
    results = library.search("zebra sentence", limit=30).results
    spans = sorted((result.start, result.end) for result in results)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert max(result.end - result.start for result in results) <= 4 * 800
    library.config = override(library.config, {"search": {"merging": "ra"}})
    found = [result.address.partition("~")[0] for result in library.search("zebra sentence").results]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("strategy", ["auto", "nodes", "windows"])
def test_no_result_is_larger_than_asked_for(library: Library, strategy: str) -> None:
    """Issue: a result is never more than search.max_result_tokens; what is around it is named."""
    text = "word " * 20_000 + "The zebra sleeps. " + "word " * 20_000
    library.config = override(library.config, {"chunk": {"strategy": strategy}})
    library.add(content=text, path="long.txt", collection="c")
    library.add(content=f"# Top\n\n## Zebras\n\n{text}\n\n## Other\n\nx\n", path="long.md", collection="c")
    results = {result.path: result for result in reversed(library.search("sleeps").results)}
    assert results.keys() == {"long.md", "long.txt"}
    for result in results.values():
        assert result.end - result.start <= 4 * 800
        source = library.source(f"c:{result.path}")
        part = source[result.byte_start : result.byte_end].decode()
        assert part == source.decode()[result.start : result.end]
        assert [result.snippet[a:b] for a, b in result.highlights] == ["sleeps"]
        assert "zebra sleeps" in part
        assert result.parent
        assert result.parent_tokens > 10_000
        assert len(library.read(result.parent).text) > len(part)
        assert part in library.read(result.address).text


def test_results_name_the_next_larger_place(library: Library) -> None:
    """Issue: the parent's address, title and size, so that a reader can widen with one call."""
    library.add(content="# Top\n\n## Zebra\n\nstripes\n\n## Lion\n\nmane\n", path="a.md", collection="c")
    (result,) = library.search("stripes").results
    assert (result.address, result.parent, result.parent_title) == ("c:a.md#zebra", "c:a.md#top", "Top")
    assert 0 < result.tokens < result.parent_tokens


def test_neighbouring_parts_are_one_result_with_an_address(library: Library) -> None:
    """Issue: a run of neighbouring chunks is a place, and can be read by its address."""
    filler = "".join(f"Filler number {n} says nothing of them. " for n in range(300))
    zebras = "".join(f"Zebra fact {n} is about stripes. " for n in range(80))
    library.add(content=f"# A\n\n{filler}\n\n{zebras}\n\n{filler}\n", path="a.md", collection="c")
    result = library.search("zebra stripes").results[0]
    assert re.search(r"~\d+-\d+$", result.address)
    reading = library.read(result.address)
    assert reading.text == library.source("c:a.md").decode()[result.start : result.end]
    assert (reading.address, reading.start, reading.end) == (result.address, result.start, result.end)
    with pytest.raises(NoResults, match="has no part 98-99"):
        library.read("c:a.md#a~98-99")


def test_ranks_can_be_fused(library: Library) -> None:
    """DESIGN §6: search.fusion = "rrf" gives Σ w/(60 + rank)."""
    words = [Hit(1, 1, 0, 9.0), Hit(2, 1, 0, 5.0)]
    near = [Hit(2, 1, 0, 0.9, "semantic"), Hit(3, 1, 0, 0.8, "semantic")]
    fused = fusion.fuse_ranks(words, near, 1.5)
    assert [(hit.chunk, hit.match) for hit in fused] == [(2, "both"), (3, "semantic"), (1, "keyword")]
    assert fused[0].score == pytest.approx(1 / 62 + 1.5 / 61)


def test_a_result_can_be_explained(filled: Library) -> None:
    """DESIGN §6: ranks, scores and merges on demand."""
    explained = filled.search("penguins swim", explain=True).results[0].explain
    assert explained["terms"] == ["penguin", "swim"]
    assert explained["hits"][0]["rank"] == 1
    assert filled.search("penguins").results[0].explain == {}


def test_snippets_have_at_most_fifty_words_and_mark_whole_words() -> None:
    """Around the match; highlights never in the lines that open or close code."""
    text = "filler " * 200 + "the needle is here " + "filler " * 200
    shown, highlights = snippet(text, {"needl"})
    assert len(shown.replace("… ", "").replace(" …", "").split()) <= 50
    assert [shown[a:b] for a, b in highlights] == ["needle"]
    assert snippet("```needle\nneedle\n```\n", {"needl"}) == ("```needle needle ```", ((10, 16),))
    assert snippet("haystacks", {"hay"}) == ("haystacks", ())
    assert snippet("Set LAMP_PORT.", {"port"}) == ("Set LAMP_PORT.", ((9, 13),))


TERMS = frozenset({"needl", "port", "斑马", "马斑", "don't", "straße", "3"})
PIECES = [
    *"needle Needles LAMP_PORT 斑马斑马 斑马。 'needle' don't Straße 3 x ** ` ~ … é ports-needle".split(),
    *(" ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "\n```needle\n", "\n~~~\n", "y" * 45),
]


@given(st.lists(st.sampled_from(PIECES), max_size=200).map("".join), st.integers(1, 50))
def test_highlights_are_matches_in_a_snippet_of_the_source(text: str, words: int) -> None:
    """Issue: snippets are plain; highlights are offsets, in range, sorted and apart."""
    shown, highlights = snippet(text, TERMS, words)
    assert all(0 <= a < b <= len(shown) for a, b in highlights)
    assert all(before[1] <= after[0] for before, after in pairwise(highlights))
    assert all(analyze.matches(shown[a:b], TERMS) for a, b in highlights)
    plain = shown.removeprefix("… ").removesuffix(" …")
    assert plain in " ".join(text.split())
    assert bool(shown) == bool(text.strip())


def test_a_terminal_draws_the_highlights_and_a_pipe_does_not(filled: Library) -> None:
    """Issue: terminals draw highlights; nothing of that enters the text."""
    (result, *_) = filled.search("apt quire").results
    assert render.result_lines(1, result)[2] == "     ### Linux Type apt install quire."
    drawn = render.result_lines(1, result, colour=True)[2]
    assert drawn == "     ### Linux Type \033[1;33mapt\033[0m install \033[1;33mquire\033[0m."
    escape = dataclasses.replace(result, snippet="\033[2J apt", highlights=((5, 8),))
    assert render.result_lines(1, escape, colour=True)[2] == "     \\u{1b}[2J \033[1;33mapt\033[0m"


# ------------------------------------------------------------------------------------- reading


def test_a_document_and_its_sections_read_exactly(filled: Library) -> None:
    """The whole document, or a section with all below it, by slug, heading or path."""
    assert filled.read("docs:guide.md").text == GUIDE
    assert filled.read("guide.md").text == GUIDE
    section = GUIDE[GUIDE.index("## Install") : GUIDE.index("## Use")]
    for args in (("docs:guide.md#install",), ("docs:guide.md", "Install"), ("guide.md", "Guide > Install")):
        found = filled.read(*args)
        assert found.text == section
        assert found.breadcrumb == "> Guide › Install"
        assert filled.source("guide.md")[found.byte_start : found.byte_end].decode() == section
    assert [s.title for s in filled.toc("docs:guide.md").sections] == [
        "Guide",
        "Guide",
        "Install",
        "Linux",
        "Windows",
        "Use",
    ]
    with pytest.raises(NoResults, match="Did you mean 'Install'"):
        filled.read("docs:guide.md", "Instal")


def test_reading_stops_at_a_budget_and_says_what_is_left(filled: Library) -> None:
    """Issue: --max-tokens with a notice of what was left out and how to get it."""
    found = filled.read("docs:guide.md", max_tokens=10)
    assert found.tokens <= 10
    assert GUIDE.startswith(found.text)
    assert "were left out, from line" in found.notes[0]


def test_a_part_of_a_long_section_reads_by_its_address(library: Library) -> None:
    """DESIGN §2: a window inside a large section is `#slug~2`."""
    text = "# A\n\n" + "".join(f"Sentence number {n} is about topic{n}. " for n in range(400))
    library.add(content=text, path="a.md", collection="c")
    (result,) = library.search("topic200").results
    assert "#a~" in result.address
    assert library.read(result.address).text == text[result.start : result.end]


def test_a_missing_document_is_none(filled: Library) -> None:
    """An address that nothing has is None."""
    assert filled.document("docs:nothing.md") is None


# ------------------------------------------------------------------------------------ lifecycle


def test_promotion_is_of_the_document_and_raises_its_sections(library: Library) -> None:
    """One change for a document and all its chunks; a chunk cannot be promoted alone."""
    library.add(content="# A\n\nzebra with words\n", path="a.md", collection="c")
    library.add(content="# B\n\nzebra with more words\n", path="b.md", collection="c")
    assert addresses(library, "zebra") == ["c:a.md#a", "c:b.md#b"]
    assert library.promote("c:b.md", "important").promotion == "important"
    assert addresses(library, "zebra") == ["c:b.md#b", "c:a.md#a"]
    assert library.search("zebra").results[0].promotion == "important"
    with pytest.raises(SettingError, match="applies to whole documents"):
        library.promote("c:b.md#b", "important")
    with pytest.raises(SettingError, match="there is no 'urgent'"):
        library.promote("c:b.md", "urgent")


def test_memories_are_kept_apart_from_documents(filled: Library) -> None:
    """What is of another kind is not among the documents that a search finds."""
    memory = quire.Document.from_text("# M\n\npenguins remembered\n", "m.md", collection="docs")
    filled.store.write([prepare(memory, WORDS, "memory")])
    assert addresses(filled, "penguins") == ["docs:faq.md#why-penguins"]


def test_removing_leaves_nothing_behind(filled: Library) -> None:
    """By address or by collection; with dry_run nothing happens."""
    assert [row.path for row in filled.remove(collection="docs", dry_run=True)] == [
        "faq.md",
        "guide.md",
        "notes.txt",
    ]
    assert len(filled.documents()) == 3
    filled.remove("docs:faq.md")
    assert addresses(filled, "penguins") == []
    filled.remove(collection="docs")
    assert filled.status().chunks == filled.status().sections == 0
    assert filled.store.check() == []
    with pytest.raises(NoResults):
        filled.remove("docs:faq.md")


def test_changed_and_missing_files_are_told_apart(filled: Library, docs: Path) -> None:
    """Check for updates; content with no file is skipped; a touched file is not changed."""
    filled.add(content="x", path="x.md", collection="c")
    (docs / "guide.md").write_text("# New\n\ntext\n")
    (docs / "faq.md").unlink()
    os.utime(docs / "notes.txt", ns=(1, 1))
    changes = filled.check()
    assert [row.path for row in changes.changed] == ["guide.md"]
    assert [row.path for row in changes.missing] == ["faq.md"]


def test_refresh_brings_every_folder_up_to_date(filled: Library, docs: Path) -> None:
    """Reconcile; new files come in, and gone ones go while most are there."""
    (docs / "new.md").write_text("# New\n\nokapi\n")
    (docs / "faq.md").unlink()
    report = filled.refresh()
    assert (report.added, report.removed, report.missing) == (1, 1, [])
    assert addresses(filled, "okapi") == ["docs:new.md#new"]


@needs_shared
def test_the_last_paragraph_of_a_huge_llms_full_is_found(library: Library) -> None:
    """A 1.1 MB llms-full.txt ingests whole; nothing fails silently."""
    source = SHARED / "large_inputs" / "llms" / "wormhole-llms-full.txt"
    library.add(
        content=source.read_bytes() + b"\n\nThe xylophone quokka stands last.\n",
        path="llms-full.txt",
        collection="w",
    )
    (result,) = library.search("xylophone quokka").results
    assert library.read(result.address).text.endswith("The xylophone quokka stands last.\n")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """BAD_INPUTS: refused and left untouched."""
    path = tmp_path / "l.db"
    with Library.open(path, create=True, config=WORDS) as library:
        library.store.db.execute("PRAGMA user_version = 999")  # type: ignore[attr-defined]
    with pytest.raises(LibraryError, match="written by a newer Quire"):
        Library.open(path)


def test_what_a_server_now_says_of_a_page_is_noted(library: Library) -> None:
    """Of URLs: an unchanged page is not written again, but asked for with its new etag."""
    document = quire.Document.from_text("# Page\n", "page", collection="site")
    library.store.write([prepare(document, WORDS, url="https://a/page", etag='"1"')])
    row = library.documents()[0]
    library.store.note_fetched({row.seq: ('"2"', "yesterday")})
    assert library.store.fetched([row.seq]) == {row.seq: ('"2"', "yesterday")}
    library.store.note_fetched({row.seq: (None, None), row.seq + 1: ('"3"', None)})
    assert library.store.fetched([row.seq, row.seq + 1]) == {}
    assert library.documents()[0].updated_at == row.updated_at


def test_what_is_excluded_is_said_and_what_nothing_has_is_not(library: Library) -> None:
    """Issue: a minus excludes what some document has, and a note says what was excluded."""
    library.add(content="# A\n\nzebra docker\n", path="a.md", collection="c")
    library.add(content="# B\n\nzebra\n", path="b.md", collection="c")
    found = library.search("zebra -docker -unicorn")
    assert [result.path for result in found.results] == ["b.md"]
    assert found.notes[0].startswith("Excluded: docker.")


def test_a_phrase_that_leaves_nothing_is_a_boost(library: Library) -> None:
    """Issue: a phrase that would leave nothing is a boost, and a note says so."""
    library.add(content="# A\n\nthe zebra that sleeps\n", path="a.md", collection="c")
    found = library.search('"zebra sleeps"')
    assert [result.path for result in found.results] == ["a.md"]
    assert "in quotes" in found.notes[0]
    assert library.search('"zebra that"').notes == ()


def test_a_path_in_a_query_is_a_pattern(library: Library) -> None:
    """Issue: `path:*x*` does what `--path '*x*'` does."""
    library.add(content="# A\n\nzebra\n", path="docs/guide.md", collection="c")
    library.add(content="# B\n\nzebra\n", path="notes.md", collection="c")
    asked = [library.search("zebra path:*uid*"), library.search("zebra", paths=["*uid*"])]
    assert [[result.path for result in found.results] for found in asked] == [["docs/guide.md"]] * 2


def test_an_index_is_merged_once_more_was_removed_than_is_left() -> None:
    """What remains of removed chunks takes room and time."""
    with Library.open(":memory:", create=True, config=WORDS) as library:
        for version in range(12):
            text = "".join(f"## Part {part}\n\nversion{version} of text {part}\n\n" for part in range(8))
            library.add(content=text, path="a.md")
        assert isinstance(library.store, SqliteStore)
        counts = "SELECT (SELECT total(count) FROM word_segments), (SELECT total(count) FROM word_removed)"
        held, removed = library.store.db.execute(counts).fetchone()
        assert held - removed == 8
        assert 2 * removed <= held
        assert library.store.check() == []
        assert len(library.search("version11").results) > 0
        assert library.search("version10").results == ()


def test_few_results_are_the_first_of_many(tmp_path: Path) -> None:
    """A small limit changes no result: neither what is merged, nor how sure it is."""
    config = override(DEFAULT, {"embed": {"model": "none"}})
    with Library.open(tmp_path / "l.db", create=True, config=config) as library:
        library.add(Path(__file__).parents[1] / "docs")
        for query in ("settings of a project", "how do I remove a document", "vectors of a model", "memory"):
            many = library.search(query).results
            for limit in (1, 3, 6):
                assert library.search(query, limit=limit).results == many[:limit]


def test_reading_a_result_gives_its_text(tmp_path: Path) -> None:
    """The address of a result leads to what was found: of a section with subsections, its own text."""
    config = override(DEFAULT, {"embed": {"model": "none"}})
    with Library.open(tmp_path / "l.db", create=True, config=config) as library:
        library.add(Path(__file__).parents[1] / "docs")
        found = [library.search(query) for query in ("agent", "library", "settings", "MCP server", "chunk")]
        results = [result for one in found for result in one.results]
        assert [result.read().text for result in results] == [result.text for result in results]
        assert any(result.address.endswith("~0") for result in results)


def test_a_heading_that_is_a_number_has_its_own_address(library: Library) -> None:
    """Its slug is no part of a section: `#2024` and `#2` are read, whatever else is cut into parts."""
    opening = "This introduction speaks of apples and pears. " * 200
    text = f"{opening}\n\n# 1\n\nA zebra.\n\n# 2\n\nA giraffe.\n\n## 2024\n\nA penguin.\n"
    library.add(content=text, path="log.md", collection="docs")
    for word, slug in (("zebra", "1"), ("giraffe", "2~0"), ("penguin", "2024")):
        result = library.search(word).results[0]
        assert result.address == f"docs:log.md#{slug}"
        assert word in result.read().text
    assert library.read("docs:log.md", "2024").text == "## 2024\n\nA penguin.\n"
    assert library.read("docs:log.md#~2").start > 0


def test_what_is_no_progress_or_no_config_is_named(library: Library, tmp_path: Path) -> None:
    """And a budget of nothing."""
    with pytest.raises(SettingError, match="progress: must be an object with the methods of"):
        library.add(tmp_path, progress=print)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"config: must be a quire\.Config, not dict"):
        Library.open(":memory:", create=True, config={})  # type: ignore[arg-type]
    for number in (0, -1):
        with pytest.raises(SettingError, match="max_tokens: must be at least 1"):
            library.read("docs:a.md", max_tokens=number)
