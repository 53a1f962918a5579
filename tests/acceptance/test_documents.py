"""D1–D25: documents, their chunks and their updates, one test for each number."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.config import override
from tests.acceptance import meaning
from tests.acceptance.conftest import cli, config
from tests.commands import run
from tests.web_server import Site, reply, site

LOOPBACK = {"web": {"allow_hosts": ["127.0.0.1"], "retries": 0}}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of three documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text("# Guide\n\nThe zebra runs.\n")
    (folder / "faq.md").write_text("# FAQ\n\nPenguins swim.\n")
    (folder / "notes.txt").write_text("A note about the okapi.\n")
    return folder


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as served:
        yield served


def texts(text: str, **settings: Any) -> list[str]:
    return [chunk.text for chunk in quire.chunk(text, "windows", **settings)]


def tokens(length: int) -> int:
    return -(-length // 4)


def document(library: quire.Library, address: str) -> quire.DocumentRow:
    """A document that is there."""
    row = library.document(address)
    assert row is not None
    return row


def paths(found: quire.Found) -> list[str]:
    return [result.path for result in found.results]


def test_d1_a_document_has_its_source_type_title_content_checksum_and_times(
    library: quire.Library, docs: Path, web: Site
) -> None:
    """D1: A document has an id, project, path or URL, type, title, content, checksum and times."""
    library.config = config(LOOPBACK)
    before = time.time_ns() // 1_000_000
    library.add(docs, collection="proj1")
    url = web.page("/page.md", b"# Page\n\nText.\n")
    library.add(url, collection="proj2")
    library.add(content="# Own\n\nText.\n", path="own.md", collection="proj3")
    after = time.time_ns() // 1_000_000
    told = {
        row.address: (row.collection, row.file, row.url, row.source_type, row.title)
        for row in library.documents()
    }
    assert told == {
        "proj1:guide.md": ("proj1", f"{docs}/guide.md", None, "md", "Guide"),
        "proj1:faq.md": ("proj1", f"{docs}/faq.md", None, "md", "FAQ"),
        "proj1:notes.txt": ("proj1", f"{docs}/notes.txt", None, "txt", "notes"),
        "proj2:page.md": ("proj2", None, url, "url", "Page"),
        "proj3:own.md": ("proj3", None, None, "md", "Own"),
    }
    contents = {row.address: library.source(row.id) for row in library.documents()}
    assert contents["proj1:guide.md"] == (docs / "guide.md").read_bytes()
    assert (contents["proj2:page.md"], contents["proj3:own.md"]) == (
        b"# Page\n\nText.\n",
        b"# Own\n\nText.\n",
    )
    for row in library.documents():
        assert str(uuid.UUID(row.id)) == row.id
        assert before <= row.created_at == row.updated_at <= after
        assert row.checksum == hashlib.sha256(contents[row.address]).hexdigest()
    assert len({row.id for row in library.documents()}) == 5


def test_d2_a_chunk_has_id_document_index_text_offsets_and_tokens(library: quire.Library) -> None:
    """D2: A chunk has an id, its document's id, an index, its text, start and end, and its tokens."""
    library.config = config({"chunk": {"strategy": "windows"}})
    text = "Ünder the bridge. " * 500
    library.add(content=text, path="a.txt", collection="c")
    row = document(library, "c:a.txt")
    chunks = library.chunks(row.id)
    expected = quire.chunk(text, "windows", path="a.txt")
    assert len(chunks) == row.chunk_count == len(expected) == 4
    for index, (chunk, cut) in enumerate(zip(chunks, expected, strict=True)):
        assert (chunk.document_id, chunk.index) == (row.id, index)
        assert (chunk.start, chunk.end, chunk.text) == (cut.start, cut.end, text[cut.start : cut.end])
        assert chunk.tokens == tokens(chunk.end - chunk.start)
        assert text.encode()[chunk.byte_start : chunk.byte_end].decode() == chunk.text
        assert library.chunk(chunk.id) == chunk
    assert len({chunk.id for chunk in chunks}) == 4
    assert library.chunk(str(uuid.uuid4())) is None


# ------------------------------------------------------------------------------------- cutting


def test_d3_text_is_cut_to_768_tokens_with_ten_percent_overlap_and_at_least_100_characters() -> None:
    """D3: The sizes are 768 tokens, 10 % overlap and 100 characters; four characters are a token."""
    sentences = [f"Sentence {number:04} is forty characters long. " for number in range(200)]
    text = "".join(sentences)
    chunks = quire.chunk(text, "windows")
    # 76 sentences of ten tokens fit into 768, and seven of them into the overlap of 76.
    assert [(c.start, c.end, c.tokens) for c in chunks] == [
        (0, 3040, 760),
        (2760, 5800, 760),
        (5520, 8000, 620),
    ]
    assert [c.text for c in chunks] == [text[c.start : c.end] for c in chunks]
    for more, cut in ((100, 3040), (99, 3000)):  # a tail below the minimum takes a sentence more
        parts = quire.chunk(text[:3040] + "x" * more, "windows", overlap=0)
        assert [(c.start, c.end) for c in parts] == [(0, cut), (cut, 3040 + more)]
    assert [c.tokens for n in range(1, 10) for c in quire.chunk("x" * n, "windows")] == [1] * 4 + [2] * 4 + [
        3
    ]
    given = quire.chunk(text, "windows", max_tokens=100, overlap=0.5, min_chars=0)
    assert [(c.start, c.end) for c in given][:3] == [(0, 400), (200, 600), (400, 800)]


def test_d4_small_text_is_one_verbatim_chunk() -> None:
    """D4: Text that fits is one chunk, exactly as it stands, white space included."""
    for text in ("Short text that fits in one chunk.", "  Two.\n\n\n lines.\t\n", "x" * 4 * 768):
        chunks = quire.chunk(text, "windows")
        assert [(c.text, c.start, c.end) for c in chunks] == [(text, 0, len(text))]
        assert chunks[0].tokens == tokens(len(text))


def test_d5_text_without_boundaries_is_cut() -> None:
    """D5: 5,000 times A gives two chunks, none over 768 tokens, that hold all of it."""
    text = "A" * 5000
    chunks = quire.chunk(text, "windows", overlap=0)
    assert "".join(chunk.text for chunk in chunks) == text
    assert [chunk.tokens for chunk in chunks] == [768, 482]
    assert len(texts(text)) == 2


def test_d6_neighbours_overlap() -> None:
    """D6: With 100 tokens and 0.2, each chunk begins with about the last twenty tokens of the one before."""
    text = "First sentence. Second sentence. Third sentence. Fourth sentence. Fifth sentence." * 50
    chunks = quire.chunk(text, "windows", max_tokens=100, overlap=0.2)
    assert len(chunks) > 10
    for before, after in pairwise(chunks):
        shared = before.end - after.start
        assert 40 <= shared <= 80  # at most a fifth of 400 characters, and no sentence is longer than 40
        assert before.text[-shared:] == after.text[:shared]
        end, start = before.text[-50:], after.text[:100]
        assert end[-20:] in start or start[:20] in end


def test_d7_no_chunk_is_below_the_minimum() -> None:
    """D7: Every chunk has at least min_chars characters; a shorter tail joins its neighbour."""
    assert all(len(text) >= 50 for text in texts("Word. " * 100, min_chars=50))
    for length in range(600, 700, 7):
        text = ("Word. " * 200)[:length]
        found = texts(text, max_tokens=20, overlap=0, min_chars=50)
        assert len(found) > 5
        assert min(map(len, found)) >= 50
        assert "".join(found) == text


def test_d8_offsets_are_those_of_the_text() -> None:
    """D8: 0 ≤ start < end ≤ length, and the text between them is the chunk, by any strategy."""
    text = "First part. Second part. Third part.\n\nÜber 🙂 e\u0301. Ende.\n"
    for strategy in ("windows", "memory", "auto", "nodes", "sections", "headers"):
        for chunk in quire.chunk(text, strategy):
            assert 0 <= chunk.start < chunk.end <= len(text)
            assert text[chunk.start : chunk.end] == chunk.text
    found = quire.chunk(text, "windows", max_tokens=5, min_chars=0, overlap=0)
    assert len(found) > 2
    assert [chunk.start for chunk in found] == [0, *(chunk.end for chunk in found[:-1])]
    assert found[-1].end == len(text)


def test_d9_tokens_are_estimated() -> None:
    """D9: 100 times "Word " are 125 tokens, between 80 and 150 in all."""
    assert [chunk.tokens for chunk in quire.chunk("Word " * 100, "windows")] == [125]


def test_d19_many_sentences_are_several_chunks(library: quire.Library) -> None:
    """D19: 500 times "Paragraph. " is a document of more than one chunk."""
    library.config = config({"chunk": {"strategy": "windows"}})
    library.add(content="Paragraph. " * 500, path="long.txt", collection="proj1")
    row = document(library, "proj1:long.txt")
    assert row.chunk_count == len(texts("Paragraph. " * 500)) == 2
    assert row.is_chunked


# ------------------------------------------------------------------------------------- the service


def test_d10_the_service_ingests_gets_deletes_lists_searches_and_checks(
    library: quire.Library, docs: Path
) -> None:
    """D10: Documents are added, got by id and path, listed, searched by project, checked and deleted."""
    library.add(docs, collection="one")
    for number in range(12):
        library.add(content=f"# Zebra {number}\n\nzebra zebra\n", path=f"{number}.md", collection="two")
    row = document(library, "one:guide.md")
    assert library.document(row.id) == row
    assert [one.path for one in library.documents("one")] == ["faq.md", "guide.md", "notes.txt"]
    assert len(library.documents()) == 15
    assert len(library.search("zebra").results) == 10
    assert len(library.search("zebra", limit=3).results) == 3
    # The project counts before the limit: those of the other are better, and more.
    assert paths(library.search("zebra", collection="one", limit=1)) == ["guide.md"]
    (docs / "guide.md").write_text("# Guide\n\nThe lion runs.\n")
    assert [one.id for one in library.check("one").changed] == [row.id]
    assert library.check("two").changed == ()
    assert [one.id for one in library.remove(row.id)] == [row.id]
    assert library.document(row.id) is None
    assert library.search("zebra", collection="one").results == ()


def test_d11_content_wins_over_path_and_path_over_url(
    library: quire.Library, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D11: Content is used before a path, a path before a URL; .md is Markdown unless a type is given."""

    def added(*places: object, **given: Any) -> list[tuple[str, str, bytes]]:
        known = {row.id for row in library.documents()}
        library.add(*map(str, places), **given)
        new = [row for row in library.documents() if row.id not in known]
        return [(row.path, row.source_type, library.source(row.id)) for row in new]

    own = added(docs / "guide.md", "https://example.com/a.md", content="# Own\n", path="own.md")
    assert own == [("own.md", "md", b"# Own\n")]
    monkeypatch.chdir(docs.parent)
    (docs.parent / "example.com").mkdir()  # there is a site of this name, too
    (docs.parent / "example.com" / "a.md").write_text("# A\n")
    (docs.parent / "example.com" / "b.txt").write_text("# b\n")
    assert added("example.com") == [("a.md", "md", b"# A\n"), ("b.txt", "txt", b"# b\n")]
    assert added(content="# c\n", path="c.txt") == [("c.txt", "txt", b"# c\n")]
    assert added(content="# d\n", path="d.txt", source_type="md") == [("d.txt", "md", b"# d\n")]
    assert added(content="# e\n", path="e.md", source_type="txt") == [("e.md", "txt", b"# e\n")]
    assert [document(library, f"content:{name}").title for name in ("c.txt", "d.txt", "e.md")] == [
        "c",
        "d",
        "e",
    ]
    # Content without a name is named by its text.
    nameless = [added(content=text) for text in ("One text.", "Another text.", "One text.")]
    assert [[content for _, _, content in one] for one in nameless] == [
        [b"One text."],
        [b"Another text."],
        [],
    ]
    with pytest.raises(quire.SettingError, match="source_type"):
        library.add(content="x", source_type="pdf")


def test_d12_nothing_to_add_is_an_error(library: quire.Library) -> None:
    """D12: Without path, URL or content the error says so, and nothing is written."""
    with pytest.raises(quire.SettingError, match="Must provide path, url, or content"):
        library.add()
    with pytest.raises(quire.SettingError, match="Must provide path, url, or content"):
        library.add(collection="proj1", title="Nothing")
    assert library.documents() == []
    library.add(content="", path="empty.md")  # that is content
    assert [(row.chunk_count, row.size) for row in library.documents()] == [(0, 0)]


def test_d13_the_checksum_is_sha_256(library: quire.Library, docs: Path) -> None:
    """D13: The checksum of a document is the SHA-256 of its exact bytes."""
    source = b"\xef\xbb\xbf# \xc3\x9cber\r\n\r\nText \xff\r\n"
    (docs / "guide.md").write_bytes(source)
    library.add(docs)
    library.add(content="Same.", path="a.md", collection="c")
    assert document(library, "docs:guide.md").checksum == hashlib.sha256(source).hexdigest()
    assert document(library, "c:a.md").checksum == hashlib.sha256(b"Same.").hexdigest()


def test_d14_what_has_not_changed_is_not_processed(library_url: str, docs: Path, web: Site) -> None:
    """D14: Unchanged files, pages and content are the same documents, not written and not embedded again."""
    url = web.page("/page.md", b"# Page\n\nThe okapi sleeps.\n")
    with (
        meaning.knowing("zebra", "okapi") as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models, LOOPBACK)) as library,
    ):

        def add() -> list[quire.Report]:
            named = library.add(content="# Named\n\nzebra\n", path="named.md", collection="c")
            return [library.add(docs), library.add(url), named, library.add(content="No name, an okapi.")]

        assert [report.added for report in add()] == [3, 1, 1, 1]
        before, asked = library.documents(), len(models.asked)
        os.utime(docs / "faq.md", ns=(1, 1))
        for report in add():
            assert (report.added, report.updated, report.chunks, report.failed) == (0, 0, 0, [])
        assert [report.unchanged for report in add()] == [3, 1, 1, 1]
        known = {(row.id, row.checksum, row.created_at, row.updated_at) for row in before}
        assert {
            (row.id, row.checksum, row.created_at, row.updated_at) for row in library.documents()
        } == known
        assert len(models.asked) == asked
        (docs / "guide.md").write_text("# Guide\n\nThe okapi runs.\n")
        assert (library.add(docs).updated, len(models.asked)) == (1, asked + 1)


def test_d15_changed_content_replaces_chunks_and_vectors(library_url: str, docs: Path) -> None:
    """D15: A changed document keeps id and created_at, is later each time, and has only its new chunks."""
    with (
        meaning.knowing("zebra", "lion") as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models)) as library,
    ):
        library.add(docs)
        old = document(library, "docs:guide.md")
        (docs / "guide.md").write_text("# Guide\n\nThe lion runs.\n\n## More\n\nThe lion sleeps.\n")
        assert library.add(docs).updated == 1
        new = document(library, "docs:guide.md")
        assert (new.id, new.created_at) == (old.id, old.created_at)
        assert new.updated_at > old.updated_at
        assert (old.chunk_count, new.chunk_count) == (1, 2)
        for mode in ("keyword", "semantic"):
            assert paths(library.search("zebra", mode=mode)) == []
            assert set(paths(library.search("lion", mode=mode))) == {"guide.md"}
        assert (library.status().chunks, library.status().embedded) == (4, 4)
        later = time.time_ns() // 1_000_000 + 86_400_000  # of a clock that was a day ahead
        library.import_([json.dumps({"kind": "memory", "path": "m", "text": "Old.", "updated_at": later})])
        assert library.remember("New.", name="m").updated_at == later + 1


def test_d16_titles_are_given_or_taken_from_the_text(library: quire.Library, docs: Path) -> None:
    """D16: A title is given, else of front matter, else the first heading, else file name or first line."""
    head, fence = "---\ntitle: Front\n---\n\n", "```\n# code\n```\n\n"

    def title(content: str, **given: Any) -> str:
        (address,) = library.add(content=content, collection="c", **given).addresses
        return document(library, address).title

    assert title(f"{head}# Head\n\ntext\n", title="Given") == "Given"
    assert title(f"{head}# Head\n\nother\n") == "Front"
    assert title(f"{fence}# Head `x` *y*\n\ntext\n") == "Head x y"
    assert title("text\n\n### Deep\n\nmore\n", path="notes.md") == "Deep"
    assert title("First line here.\nSecond.\n") == "First line here."
    assert title("\n\n" + "word " * 40) == ("word " * 20).strip()
    (docs / "plain.txt").write_text("First line of a file.\n")
    (docs / "code.md").write_text(f"{fence}text\n")
    library.add(docs)
    titles = {row.path: row.title for row in library.documents("docs")}
    assert titles == {
        "guide.md": "Guide",
        "faq.md": "FAQ",
        "notes.txt": "notes",
        "plain.txt": "plain",
        "code.md": "code",
    }


def test_d17_only_vectors_of_the_active_model_are_searched(library_url: str) -> None:
    """D17: A vector belongs to a chunk and a model, with its dimension; searches use one model alone."""
    with (
        meaning.knowing("zebra", "lion") as first,
        meaning.knowing("lion", "zebra", dimension=8) as second,
        quire.Library.open(library_url, create=True, config=meaning.config(first)) as library,
    ):
        library.add(content="# A\n\nThe zebra runs.\n", path="a.md", collection="c")
        library.add(content="# B\n\nThe lion sleeps.\n", path="b.md", collection="c")
        assert (library.status().model, library.status().embedded) == ("ollama/words", 2)
        assert paths(library.search("zebra", mode="semantic")) == ["a.md"]
        library.config = override(library.config, {"embed": {"model": "", "url": second.url}})
        second.refuses = lambda text: "sleeps" in text
        done = library.embed("ollama/other")  # one is missing, so the first model goes on
        assert (done.embedded, len(done.failed), done.searched_with) == (1, 1, "ollama/words")
        assert (library.status().model, library.status().embedded) == ("ollama/words", 2)
        second.refuses = lambda text: False
        done = library.embed("ollama/other")
        assert (done.embedded, done.searched_with) == (1, "ollama/other")
        assert paths(library.search("zebra", mode="semantic")) == ["a.md"]
        assert second.inputs[-1] == ["zebra"]  # the question, too
        assert (library.status().model, library.status().embedded) == ("ollama/other", 2)


def test_d18_a_result_has_document_chunk_score_and_match_type(library_url: str) -> None:
    """D18: A result has its document, its chunk, a score, and whether words, meaning or both found it."""
    with (
        meaning.knowing("zebra", "tiger") as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models)) as library,
    ):
        text = "# A\n\nThe zebra is here.\n\n# B\n\nA lion and a tiger.\n"
        library.add(content=text, path="a.md", collection="c")
        row = document(library, "c:a.md")
        both, keyword, semantic = (
            library.search("zebra").results[0],
            library.search("lion").results[0],
            library.search("zebra", mode="semantic").results[0],
        )
        assert [result.match for result in (both, keyword, semantic)] == ["both", "keyword", "semantic"]
        for result, part in ((both, "zebra"), (keyword, "lion"), (semantic, "zebra")):
            assert (result.document_id, result.path, result.collection) == (row.id, "a.md", "c")
            assert part in text[result.start : result.end]
            (chunk_id,) = result.chunk_ids
            assert library.read(chunk_id).text == text[result.start : result.end]
            assert result.score > 0
        assert both.score > semantic.score


def test_d20_a_paraphrase_finds_what_it_means(library_url: str) -> None:
    """D20: The query "JavaScript UI framework" finds the sentence about React, also by meaning alone."""
    lines = (
        "React is a JavaScript library for building user interfaces.",
        "Soup wants carrots and an onion.",
        "The tide comes in twice a day.",
    )
    with quire.Library.open(library_url, create=True) as library:
        for line in lines:
            assert not library.add(content=line, collection="proj1").failed
        for mode in ("hybrid", "semantic"):
            best = library.search("JavaScript UI framework", collection="proj1", mode=mode).results[0]
            assert library.read(best.document_id).text == lines[0]
        best = library.search("vegetable broth", mode="semantic").results[0]  # with no word in common
        assert library.read(best.document_id).text == lines[1]


def test_d21_changed_and_missing_documents_are_told_apart(
    library: quire.Library, docs: Path, web: Site
) -> None:
    """D21: A check returns ids of changed and of missing files and pages, and skips what has no source."""
    library.config = config(LOOPBACK)
    library.add(docs)
    library.add(content="No file.", path="a.md", collection="c")
    library.remember("No file either.")
    old = [web.page(f"/{name}.md", b"# Old\n") for name in ("same", "changed", "gone")]
    library.add(*old)
    assert not library.check()
    ids = {row.path: row.id for row in library.documents()}
    (docs / "guide.md").write_text("# Guide\n\nNew.\n")
    (docs / "faq.md").unlink()
    (docs / "notes.txt").touch()
    web.page("/changed.md", b"# New\n")
    web.route("/gone.md", reply(404))
    before = library.documents()
    changes = library.check()
    assert {row.id for row in changes.changed} == {ids["guide.md"], ids["changed.md"]}
    assert {row.id for row in changes.missing} == {ids["faq.md"], ids["gone.md"]}
    assert [row.id for row in library.check("docs").changed] == [ids["guide.md"]]
    assert library.documents() == before  # a check only tells


def test_d22_a_missing_id_is_none(library: quire.Library, docs: Path) -> None:
    """D22: Getting an id that nothing has is None, and exit code 1 on the command line."""
    missing = str(uuid.uuid4())
    assert library.document(missing) is None
    library.add(docs)
    row = document(library, "docs:faq.md")
    assert library.document(row.id) == row
    assert library.document(row.id.upper()) == row
    near = row.id[:-1] + ("0" if row.id[-1] != "0" else "1")  # an index by the beginning is not enough
    assert [library.document(id) for id in (missing, near)] == [None, None]
    library.remove(row.id)
    assert library.document(row.id) is None
    assert f"has the id {missing}" in cli("read", "-L", library.url, missing, code=1)[1]


def test_d23_memories_are_kept_apart_from_documents(library: quire.Library, docs: Path) -> None:
    """D23: A search never returns memories, recall never documents, and neither deletes the other's."""
    library.add(docs)
    memory, fact = library.remember("Penguins were mentioned."), library.learn("Penguins are birds.")
    faq = document(library, "docs:faq.md")
    assert [result.document_id for result in library.search("penguins").results] == [faq.id]
    found = library.recall("penguins").results
    assert {result.document_id for result in found} == {memory.id, fact.id}
    assert {passage.path for passage in library.context("penguins").passages} == {"faq.md"}
    with pytest.raises(quire.SettingError):
        library.forget(faq.id)
    with pytest.raises(quire.SettingError):
        library.remember("Penguins.", collection="docs")
    assert library.document(faq.id) == faq
    library.remove(collection="docs")
    assert {row.id for row in library.documents()} == {memory.id, fact.id}


def test_d24_starts_skips_ends_searches_and_checks_are_logged(tmp_path: Path, docs: Path) -> None:
    """D24: --log-level shows when indexing starts and ends, skips, searches and checks, in milliseconds."""

    def told(*args: str, code: int = 0) -> list[str]:
        """The lines of the log, each with its time of day left out and 0 for every duration."""
        log = run(tmp_path, *args, "-L", "l.db", "--log-level", "debug", code=code)[1].splitlines()
        assert [line for line in log if not re.match(r"\d{4}-\d\d-\d\d [\d:]{8},\d{3} ", line)] == []
        return [re.sub(r"\b\d+ ms\b", "0 ms", line[24:]) for line in log]

    first = told("add", "docs")
    assert first[0] == f"INFO indexing {docs} as docs"
    assert f"INFO indexed {docs} in 0 ms: 3 added, 0 updated, 0 removed, 0 unchanged, 0 failed" in first
    (docs / "faq.md").write_text("# FAQ\n\nPenguins dive.\n")
    checked = told("refresh", "--check", code=1)
    assert checked[0] == "INFO checking for updates"
    assert checked[-1].startswith("INFO checked for updates in 0 ms: 1 changed, 0 missing")
    again = told("add", "docs")
    skipped = [f"DEBUG skipped docs:{name}: unchanged" for name in ("guide.md", "notes.txt")]
    assert [line for line in again if "skipped" in line] == skipped
    assert again.index(f"INFO indexing {docs} as docs") < again.index(skipped[0])
    assert again[-1] == f"INFO indexed {docs} in 0 ms: 0 added, 1 updated, 0 removed, 2 unchanged, 0 failed"
    searched = told("search", "penguins")
    assert any(re.match("DEBUG .*penguins", line) for line in searched)
    assert any(re.match("INFO search.* in 0 ms", line) for line in searched)
    assert run(tmp_path, "search", "penguins", "-L", "l.db")[1] == ""


def test_d25_all_ten_acceptance_boxes_hold(library: quire.Library, docs: Path, web: Site) -> None:
    """D25: Files, URLs and content are cut with overlap, titled, skipped, updated, found and checked."""
    windows = {"strategy": "windows", "windows": {"max_tokens": 50, "overlap": 0.2, "min_chars": 0}}
    library.config = config(LOOPBACK | {"chunk": windows})
    sentences = [f"Sentence number {number} ends here." for number in range(60)]
    (docs / "long.txt").write_text(" ".join(sentences[:30]) + "\n\n" + " ".join(sentences[30:]))
    url = web.page("/page.md", b"# Page\n\nA quagga on the web.\n")
    assert library.add(docs, collection="proj1").added == 4
    assert library.add(url, collection="proj2").added == 1
    assert (
        library.add(content="# My Document\n\nSome numbat here.", path="own.md", collection="proj3").added
        == 1
    )
    chunks = library.chunks("proj1:long.txt")
    assert len(chunks) > 10
    for one, after in pairwise(chunks):
        assert one.text.rstrip().endswith("ends here.")  # not inside of a sentence
        assert after.text.startswith("Sentence")
        assert 0 < one.end - after.start <= 40
    assert document(library, "proj3:own.md").title == "My Document"
    assert document(library, "proj2:page.md").title == "Page"
    assert paths(library.search("quagga")) == ["page.md"]
    assert paths(library.search("numbat")) == ["own.md"]
    found = library.search('"number 47"', collection="proj1").results
    assert all("number 47 ends" in library.source("proj1:long.txt").decode()[r.start : r.end] for r in found)
    assert {result.path for result in found} == {"long.txt"}
    before = library.documents()
    assert [
        library.add(docs, collection="proj1").unchanged,
        library.add(url, collection="proj2").unchanged,
    ] == [4, 1]
    assert library.documents() == before
    (docs / "long.txt").write_text("Nothing but an aardvark.")
    web.page("/page.md", b"# Page\n\nA tapir on the web.\n")
    assert [row.path for row in library.check().changed] == ["long.txt", "page.md"]
    library.refresh()
    assert [chunk.text for chunk in library.chunks("proj1:long.txt")] == ["Nothing but an aardvark."]
    assert (paths(library.search("aardvark")), paths(library.search("tapir"))) == (["long.txt"], ["page.md"])
    assert (library.search("quagga").results, library.search("numbers ends").results) == ((), ())
    assert not library.check()
