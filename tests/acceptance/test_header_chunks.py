"""H1–H20: chunks of long documents by their headings, one test for each number."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pydoc_data.topics import topics

import pytest

import quire
from tests import postgres
from tests.acceptance import meaning
from tests.acceptance.conftest import cli, config
from tests.models_server import Models

HEADERS = {"chunk": {"strategy": "headers"}}


def lines(count: int, text: str = "line") -> str:
    return f"{text}\n" * count


# 604 lines: an introduction, two sections with two parts each.
LONG = (
    "# Handbook\n\nWelcome to the handbook.\n\n"
    f"## Birds\n\nBirds of all kinds.\n\n### Penguins\n\nPenguins swim.\n\n{lines(250)}\n"
    "### Owls\n\nOwls hunt at night.\n\n"
    f"## Mammals\n\n### Zebras\n\nZebras run.\n\n{lines(330)}\n### Whales\n\nWhales swim.\n"
)
PARTS = [
    "# Handbook",
    "## Birds",
    "## Birds > ### Penguins",
    "## Birds > ### Owls",
    "## Mammals > ### Zebras",
    "## Mammals > ### Whales",
]


@pytest.fixture
def library(library: quire.Library) -> quire.Library:
    """A library that cuts by headings."""
    library.config = config(HEADERS)
    return library


@contextmanager
def asking(models: Models, url: str) -> Iterator[quire.Library]:
    """A library that cuts by headings and embeds."""
    with quire.Library.open(url, create=True, config=meaning.config(models, HEADERS)) as library:
        yield library


def chunked(text: str) -> list[quire.Chunk]:
    return quire.chunk(text, "headers")


def document(library: quire.Library, address: str) -> quire.DocumentRow:
    """A document that is there."""
    row = library.document(address)
    assert row is not None
    return row


def paths(found: quire.Found) -> list[str]:
    return [result.header_path for result in found.results]


# ------------------------------------------------------------------------------------- cutting


def test_h1_documents_over_500_lines_are_chunked() -> None:
    """H1: A document of 500 lines is one chunk, whatever its headings; one of 501 lines is cut."""
    head = "# T\n\n## A\n\na\n\n## B\n\n"
    for text in (head + lines(491) + "last\n", head + lines(491) + "last"):
        assert len(text.splitlines()) == 500
        assert [chunk.text for chunk in chunked(text)] == [text]
    for text in (head + lines(492) + "last\n", head + lines(492) + "last"):
        assert [chunk.header_path for chunk in chunked(text)] == ["## A", "## B"]


def test_h2_chunks_begin_at_h2_and_h3() -> None:
    """H2: Every H2 and H3 begins a chunk, deeper headings begin none, and nothing is left out."""
    text = (
        f"intro\n\n# T\n\nt\n\n## A\n\na\n\n### B\n\nb\n\n#### C\n\n{lines(500)}"
        "##### D\n\nd\n\n# U\n\nu\n\n### E\n\n```\n## not a heading\n```\n\nSetext\n------\n\nf\n"
    )
    chunks = chunked(text)
    assert [(chunk.text.splitlines()[0], chunk.start_line, chunk.end_line) for chunk in chunks] == [
        ("intro", 1, 6),
        ("## A", 7, 10),
        ("### B", 11, 520),
        ("# U", 521, 524),
        ("### E", 525, 530),
        ("Setext", 531, 534),
    ]
    assert "".join(chunk.text for chunk in chunks) == text


def test_h3_header_paths_keep_their_markers_and_filter_by_hierarchy(library: quire.Library) -> None:
    """H3: A chunk has the path of its headings with their markers, and a search can keep to one branch."""
    assert [chunk.header_path for chunk in chunked(LONG)] == PARTS
    strange = LONG.replace("## Birds\n", "## A > B\n").replace("### Owls\n", "### `x` **y**\n")
    assert chunked(strange)[3].header_path == "## A > B > ### x y"
    assert chunked(strange)[3].trail == ("Handbook", "A > B", "x y")  # a list, so that > is safe
    library.add(content=LONG, path="long.md", collection="c")
    assert set(paths(library.search("swim"))) == {"## Birds > ### Penguins", "## Mammals > ### Whales"}
    assert paths(library.search("swim title:mammals")) == [
        "## Mammals > ### Whales",
        "## Mammals > ### Zebras",
    ]
    assert paths(library.search("swim -title:mammals")) == ["## Birds > ### Penguins"]


def test_h4_the_source_file_is_never_modified(library: quire.Library, tmp_path: Path) -> None:
    """H4: Indexing, promoting, refreshing and removing leave the bytes and times of a file as they are."""
    folder = tmp_path / "docs"
    folder.mkdir()
    file, source = folder / "long.md", b"\xef\xbb\xbf" + LONG.replace("\n", "\r\n").encode() + b"\xff"
    file.write_bytes(source)
    os.utime(file, ns=(1_000_000_000, 1_000_000_000))
    file.chmod(0o444)
    folder.chmod(0o555)
    before = file.stat()
    library.add(folder)
    row = document(library, "docs:long.md")
    assert row.chunk_count == len(PARTS)
    library.promote(row.id, "critical")
    library.refresh()
    assert library.source(row.id) == source
    library.remove(row.id)
    folder.chmod(0o755)
    after = file.stat()
    assert file.read_bytes() == source
    assert [after.st_mtime_ns, after.st_ctime_ns, after.st_ino] == [
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_ino,
    ]
    assert list(folder.iterdir()) == [file]


def test_h5_a_document_says_whether_it_is_chunked(library: quire.Library) -> None:
    """H5: A document has is_chunked and chunk_count: not chunked is one chunk, or none if it is empty."""
    for path, text in {"long": LONG, "short": "# A\n\n## B\n\nb\n", "empty": "", "plain": lines(700)}.items():
        library.add(content=text, path=f"{path}.md", collection="c")
    counts = {row.path: (row.is_chunked, row.chunk_count) for row in library.documents()}
    assert counts == {
        "long.md": (True, len(PARTS)),
        "short.md": (False, 1),
        "empty.md": (False, 0),
        "plain.md": (False, 1),
    }
    shown = {
        one["path"]: one for one in map(json.loads, cli("list", "-L", library.url, "--json")[0].splitlines())
    }
    assert {path: (one["is_chunked"], one["chunk_count"]) for path, one in shown.items()} == counts


def test_h6_a_chunk_has_its_place_text_embedding_and_promotion(library_url: str) -> None:
    """H6: A chunk has an id, its document's id, header path, lines, text, vector and promotion level."""
    with meaning.knowing("owls") as models, asking(models, library_url) as library:
        library.add(content=LONG, path="long.md", collection="c")
        row = document(library, "c:long.md")
        library.promote(row.id, "important")
        chunks = library.chunks(row.id)
        assert [chunk.header_path for chunk in chunks] == PARTS
        assert len({uuid.UUID(chunk.id) for chunk in chunks}) == len(PARTS)
        numbered = LONG.splitlines(keepends=True)
        for chunk in chunks:
            assert (chunk.document_id, chunk.promotion, chunk.embedded) == (row.id, "important", True)
            assert "".join(numbered[chunk.start_line - 1 : chunk.end_line]) == chunk.text
            assert LONG.encode()[chunk.byte_start : chunk.byte_end].decode() == chunk.text
            vector = library.vector(chunk.id)
            assert vector is not None
            assert (len(vector), vector[0] > 0.9) == (2, "Owls" in chunk.text)
        assert [chunk.start_line for chunk in chunks] == [1, 5, 9, 264, 270, 605]


def test_h7_without_h2_and_h3_a_document_is_one_chunk() -> None:
    """H7: A long document with other headings only is one chunk: all of it."""
    text = f"# T\n\n{lines(600)}\n#### D\n\nx\n\n# U\n\ny\n"
    assert [chunk.text for chunk in chunked(text)] == [text]
    assert [chunk.text for chunk in chunked(lines(900))] == [lines(900)]


def test_h8_sections_over_1000_lines_are_cut_at_paragraphs() -> None:
    """H8: A section of 1,000 lines is one chunk; a longer one is cut between paragraphs, headings or not."""
    paragraph = lines(9) + "\n"
    for head, first in (("## A\n\n", 992), ("# T\n\n", 992), ("", 1000)):
        text = head + paragraph * 250
        chunks = chunked(text)
        assert [chunk.text.count("\n") for chunk in chunks] == [first, 1000, text.count("\n") - first - 1000]
        assert "".join(chunk.text for chunk in chunks) == text
        assert all(chunk.text.endswith("line\n\n") for chunk in chunks)
    exact = "## A\n" + lines(499) + "\n" + lines(499)
    assert len(exact.splitlines()) == 1000
    assert len(chunked(exact + "## B\n\nb\n")) == 2
    assert len(chunked(exact + "more\n## B\n\nb\n")) == 3


def test_h9_an_empty_section_has_no_chunk() -> None:
    """H9: A heading with nothing but white space before the next one has no chunk of its own."""
    text = f"## A\n\n### B\n\n{lines(600)}\n## C\n\n \t\n## D\n\nd\n\n### E\n"
    assert [chunk.header_path for chunk in chunked(text)] == ["## A > ### B", "## D"]


def test_h10_a_code_block_is_never_split() -> None:
    """H10: A fence is in one chunk, blank lines and all, also where it is longer than the limit."""
    for size in (150, 800):  # 300 lines, and 1,600, which is over the limit
        fence = "```\n" + "code\n\n" * size + "```\n"
        text = f"## A\n\n{(lines(9) + chr(10)) * 85}{fence}\n{(lines(9) + chr(10)) * 20}## B\n\nb\n"
        chunks = [chunk.text for chunk in chunked(text)]
        assert "".join(chunks) == text
        assert len(chunks) > 2
        assert sum(fence in chunk for chunk in chunks) == 1


# ------------------------------------------------------------------------------------- searching


def test_h11_a_search_returns_chunks_with_scores_and_the_path_of_their_document(
    library: quire.Library,
) -> None:
    """H11: Results are chunks with a score and their document's path; one document may have several."""
    library.add(content=LONG, path="guides/long.md", collection="c")
    library.add(content="# Sea\n\nWhales swim in the sea.\n", path="sea.md", collection="c")
    found = library.search("whales swim").results
    assert {(result.path, result.header_path) for result in found} == {
        ("sea.md", ""),
        ("guides/long.md", "## Mammals > ### Whales"),
        ("guides/long.md", "## Birds > ### Penguins"),
    }
    scores = [result.score for result in found]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3
    assert scores[-1] > 0
    chunks = {chunk.header_path: chunk for chunk in chunked(LONG)}
    for result in found:
        if result.path == "guides/long.md":
            chunk = chunks[result.header_path]
            assert (result.start, result.end, len(result.chunk_ids)) == (chunk.start, chunk.end, 1)
            assert (result.start_line, result.end_line) == (chunk.start_line, chunk.end_line)


def test_h12_the_source_the_relevant_chunks_or_all_chunks_can_be_loaded(library: quire.Library) -> None:
    """H12: A caller loads the whole source, only the chunks that match, or all chunks of a document."""
    library.add(content=LONG, path="long.md", collection="c")
    (found,) = library.search("owls").results
    assert library.read(found.document_id).text == library.source(found.document_id).decode() == LONG
    (chunk_id,) = found.chunk_ids
    chunk = library.chunk(chunk_id)
    assert chunk is not None
    assert chunk.text == "### Owls\n\nOwls hunt at night.\n\n"
    (passage,) = library.context("owls", include="chunks").passages
    assert passage.text == chunk.text.rstrip()
    chunks = library.chunks(found.document_id)
    assert library.chunks("c:long.md") == chunks
    assert [(one.index, one.header_path) for one in chunks] == list(enumerate(PARTS))
    assert "".join(one.text for one in chunks) == LONG.replace("## Mammals\n\n", "")  # which says nothing


def test_h13_a_context_has_the_parents_of_its_chunks(library: quire.Library) -> None:
    """H13: Each chunk over the threshold comes with what opens its document, and weaker ones are left out."""
    library.add(content=LONG, path="long.md", collection="c")
    weak = "".join(f"Weak words of page {n} that only mention an owl once. " for n in range(40))
    library.add(content=f"# Weak\n\n{weak}", path="weak.md", collection="c")
    passages = library.context("owls hunt at night").passages
    assert [(passage.path, passage.reason, passage.text.splitlines()[0]) for passage in passages] == [
        ("long.md", "parent", "# Handbook"),
        ("long.md", "match", "### Owls"),
    ]
    assert passages[0].text == "# Handbook\n\nWelcome to the handbook.\n\n## Birds\n\nBirds of all kinds."
    assert passages[1].breadcrumb == "> Handbook › Birds › Owls"
    library.config = config(HEADERS | {"context": {"threshold": 0.0}})
    assert "weak.md" in {passage.path for passage in library.context("owls hunt at night").passages}


# ------------------------------------------------------------------------------------- external, promotion


def test_h14_external_documents_are_chunked_alike_and_never_promoted(
    library: quire.Library, tmp_path: Path
) -> None:
    """H14: External documents are cut by the same rules, have collections of their own and no promotion."""
    vendor = tmp_path / "vendor"
    vendor.mkdir()
    (vendor / "long.md").write_text(LONG)
    library.add(vendor, external=True)
    library.add(content="# Own\n\nWhales.\n", path="own.md", collection="own")
    row = document(library, "vendor:long.md")
    assert (row.kind, row.is_chunked, row.chunk_count) == ("external", True, len(PARTS))
    assert {(result.path, result.kind) for result in library.search("whales").results} == {
        ("long.md", "external"),
        ("own.md", "document"),
    }
    for level in ("important", "critical", "standard"):
        with pytest.raises(quire.SettingError, match="is external"):
            library.promote(row.id, level)
    assert document(library, "vendor:long.md").promotion == "standard"
    with pytest.raises(quire.SettingError, match="collection of kind external"):
        library.add(content="x", path="x.md", collection="vendor")
    with pytest.raises(quire.SettingError, match="collection of kind document"):
        library.add(content="x", path="x.md", collection="own", external=True)
    assert (vendor / "long.md").read_text() == LONG


def test_h15_a_promotion_is_of_a_document_and_all_its_chunks(library: quire.Library) -> None:
    """H15: Promoting a document changes it and all its chunks at once; no chunk is promoted alone."""
    library.add(content=LONG, path="long.md", collection="c")
    library.add(content="# Other\n\nOwls.\n", path="other.md", collection="c")
    row = document(library, "c:long.md")
    for level in ("important", "critical", "standard", "critical"):
        assert library.promote(row.id, level).promotion == level
        assert document(library, row.id).promotion == level
        assert [chunk.promotion for chunk in library.chunks(row.id)] == [level] * len(PARTS)
        found = {result.path: result.promotion for result in library.search("owls").results}
        assert found == {"long.md": level, "other.md": "standard"}
    for chunk in library.chunks(row.id):
        for name in (chunk.id, chunk.address):
            with pytest.raises(quire.SettingError, match="applies to whole documents"):
                library.promote(name, "standard")
    with pytest.raises(quire.SettingError, match="there is no 'urgent'"):
        library.promote(row.id, "urgent")
    assert [chunk.promotion for chunk in library.chunks(row.id)] == ["critical"] * len(PARTS)
    library.add(
        content=LONG + "More.\n", path="long.md", collection="c"
    )  # it is in the database, not the file
    assert {chunk.promotion for chunk in library.chunks(row.id)} == {"critical"}


# ------------------------------------------------------------------------------------- lifecycle


def test_h16_chunks_appear_on_index_on_re_index_and_on_reconciling(
    library: quire.Library, tmp_path: Path
) -> None:
    """H16: A document over 500 lines is cut when it is new, has grown, or is found by a refresh."""
    folder = tmp_path / "docs"
    folder.mkdir()

    def counts() -> dict[str, int]:
        return {row.path: row.chunk_count for row in library.documents()}

    (folder / "new.md").write_text(LONG)
    (folder / "grown.md").write_text("# A\n\n## B\n\nb\n")
    library.add(folder)
    assert counts() == {"new.md": len(PARTS), "grown.md": 1}
    (folder / "grown.md").write_text(LONG)
    library.add(folder)
    assert counts() == {"new.md": len(PARTS), "grown.md": len(PARTS)}
    (folder / "later.md").write_text(LONG)
    (folder / "new.md").write_text(LONG + "\n### Seals\n\nSeals bark.\n")
    library.refresh()
    assert counts() == {"new.md": len(PARTS) + 1, "grown.md": len(PARTS), "later.md": len(PARTS)}
    assert [result.path for result in library.search("seals").results] == ["new.md"]


def test_h17_all_chunks_are_regenerated_when_content_changes(library_url: str, tmp_path: Path) -> None:
    """H17: After a change, all chunks have the lines and vectors of the new text, and none of the old."""
    file = tmp_path / "docs" / "long.md"
    file.parent.mkdir()
    file.write_text(LONG)
    with meaning.knowing("owls", "seals") as models, asking(models, library_url) as library:
        library.add(file.parent)
        row = document(library, "docs:long.md")
        old = library.chunks(row.id)
        changed = LONG.replace("Welcome", "Greetings and welcome\n").replace("Owls", "Seals")
        file.write_text(changed)
        library.refresh()
        new = library.chunks(row.id)
        assert [(c.header_path, c.text, c.start_line) for c in new] == [
            (c.header_path, c.text, c.start_line) for c in chunked(changed)
        ]
        assert {chunk.embedded for chunk in new} == {True}
        assert min(chunk.updated_at for chunk in new) > max(chunk.updated_at for chunk in old)
        for mode in ("keyword", "semantic"):
            assert library.search("owls", mode=mode).results == ()
            assert paths(library.search("seals", mode=mode)) == ["## Birds > ### Seals"]


def test_h18_chunks_go_with_their_document_on_shrinking_and_with_their_tenant(
    library: quire.Library, tmp_path: Path
) -> None:
    """H18: Chunks go when their document goes or shrinks to 500 lines, and when its tenant is deleted."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.md").write_text(LONG)
    library.add(folder)
    library.add(content=LONG, path="e.md", collection="other")
    assert library.status().chunks == 5 * len(PARTS)
    (folder / "a.md").unlink()
    library.refresh()
    assert library.status().chunks == 4 * len(PARTS)
    library.remove("docs:b.md")
    assert library.status().chunks == 3 * len(PARTS)
    short = LONG.replace(lines(330), lines(330 - LONG.count("\n") + 500))
    assert short.count("\n") == 500
    (folder / "c.md").write_text(short)
    library.refresh()
    assert (document(library, "docs:c.md").is_chunked, library.status().chunks) == (False, 2 * len(PARTS) + 1)
    assert {result.path for result in library.search("zebras", collection="docs").results} == {"c.md", "d.md"}
    dry = library.remove(collection="docs", dry_run=True)
    assert [row.path for row in dry] == ["c.md", "d.md"]
    assert library.status().chunks == 2 * len(PARTS) + 1
    assert library.remove(collection="docs") == dry
    assert library.status().chunks == len(PARTS)
    assert {result.path for result in library.search("zebras").results} == {"e.md"}
    assert json.loads(cli("status", "--check", "-L", library.url, "--json")[0])["problems"] == []


def test_h19_embedding_is_parallel_and_bounded(tmp_path: Path) -> None:
    """H19: As many requests as are allowed are under way at once, and never more."""
    text = "".join(f"## Part {number}\n\n{lines(60)}Zebra {number}.\n\n" for number in range(12))
    for parallel in (1, 3):
        with meaning.answering_together(parallel) as models:
            chosen = meaning.config(models, HEADERS | {"embed": {"batch": 1, "parallel": parallel}})
            with quire.Library.open(tmp_path / f"{parallel}.db", create=True, config=chosen) as library:
                report = library.add(content=text, path="a.md", collection="c")
        assert report.failed == []
        assert len(models.inputs) == 1 + 12
        assert models.busiest == parallel


def test_h20_a_chunk_of_5_kb_with_1024_numbers_takes_about_10_kb(library_url: str, tmp_path: Path) -> None:
    """H20: A chunk of 5 KB with 1,024 numbers takes about 10 KB: 1,000 documents of five take 50 MB."""
    prose = " ".join(" ".join(topics.values()).replace("#", "").split())  # of Python's documentation
    numbers = random.Random(20)
    rows = [[numbers.gauss() for _ in range(1024)] for _ in range(7)]
    sizes = []
    with meaning.knowing() as models:
        models.always = lambda handler, texts: handler.send_rows([rows[len(text) % 7] for text in texts])
        chosen = meaning.config(models, HEADERS | {"embed": {"max_tokens": 8000}})
        for step in (0, 1):  # what an empty library and new words take does not count
            with quire.Library.open(library_url, create=True, config=chosen) as library:
                for number in range(8):
                    parts = range(25_000 * number + 2500 * step, 25_000 * (number + 1), 5000)
                    text = "".join(f"## Part {at}\n\n{prose[at : at + 5000]}{lines(100, '')}" for at in parts)
                    (tmp_path / f"{step}-{number}.md").write_text(text)
                library.add(tmp_path, include=["*.md"])
                chunks = 40 * (step + 1)
                assert (library.status().chunks, library.status().embedded) == (chunks, chunks)
            sizes.append(_size_of(library_url))
    each = (sizes[1] - sizes[0]) / 40
    assert 8_000 < each < 12_500


def _size_of(url: str) -> int:
    """The bytes that a closed library takes on disk."""
    if not url.startswith("postgresql:"):
        return Path(url).stat().st_size
    postgres.execute(url, "VACUUM")  # as the server does by itself, sooner or later
    sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
    return int(postgres.execute(url, f"{sizes} AND relnamespace = 'quire'::regnamespace")[0][0])
