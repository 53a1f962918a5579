"""Files that are not text: PDF, Word, PowerPoint, OpenDocument, EPUB, RTF, notebooks; and their places."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire import readers
from quire.config import DEFAULT, DocumentSettings, IngestSettings, override
from quire.document import Document, format_of
from quire.errors import NotPrepared, NotText, SourceError, TooLarge
from quire.library import Library
from quire.location import Places
from quire.readers import Converted, base
from quire.readers.blocks import Blocks
from quire.stores import postgres, sqlite
from quire.surfaces import render
from quire.surfaces.mcp import reading
from quire.tree import Tree
from tests.commands import run
from tests.test_web import Versioned
from tests.web_server import Site, site
from tests.words import WORDS

FILES = Path(__file__).parent / "fixtures" / "documents"
WORD_SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
HANDBOOK = ["Pump handbook", "Install", "Tools", "Operate", "Maintain"]


def converted(path: Path, settings: DocumentSettings = DEFAULT.document) -> Converted:
    return readers.convert(path.read_bytes(), path.name, settings)


def titles(text: str) -> list[str]:
    return [section.title for section in Tree(Document.from_text(text)).sections[1:]]


def place_of(found: Converted, words: str) -> str:
    at = found.text.index(words)
    assert found.places
    return found.places.location(at, at + len(words))


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        yield opened


# ------------------------------------------------------------------------------- each format, as it is


@pytest.mark.parametrize("ending", ["docx", "odt", "rtf", "epub"])
def test_a_handbook_keeps_its_headings_lists_tables_code_and_notes(ending: str) -> None:
    """Issue: a real file of every format; reading order and headings are checked."""
    found = converted(FILES / f"handbook.{ending}")
    assert list(dict.fromkeys(titles(found.text))) == HANDBOOK
    order = ["40 kg", "Close the valve", "a spirit level", "| bolt | 40 Nm |", "pumpctl start", "graphite"]
    assert sorted(order, key=found.text.index) == order
    assert "1. Close the valve." in found.text
    assert "pumpctl start --slowly" in found.text.split("\n") or ending == "rtf"
    assert "[the maker](https://example.com/oil)" in found.text


def test_a_book_names_its_chapters() -> None:
    """Issue: `chapter 2`; the title is the book's."""
    found = converted(FILES / "handbook.epub")
    assert (found.title, place_of(found, "Close the valve")) == ("Pump handbook", "chapter 3")
    assert place_of(found, "graphite") == "chapter 4"


@pytest.mark.parametrize("ending", ["docx", "odt", "rtf"])
def test_a_text_without_pages_is_counted_in_paragraphs(ending: str) -> None:
    """Issue: a location for every span."""
    found = converted(FILES / f"handbook.{ending}")
    first, later = (place_of(found, words) for words in ("40 kg", "500 hours"))
    assert first.startswith("paragraph ")
    assert int(first.split()[1]) < int(later.split()[1])


def test_a_word_document_has_the_pages_that_word_noted(tmp_path: Path) -> None:
    """Issue: `page 12`. Word writes where pages began when it last showed them."""

    def noted(xml: bytes) -> bytes:
        return xml.replace(b"Operate</w:t>", b"<w:lastRenderedPageBreak/><w:t>Operate</w:t>").replace(
            b'<w:t xml:space="preserve"><w:lastRenderedPageBreak/>', b"<w:lastRenderedPageBreak/>"
        )

    path = tmp_path / "paged.docx"
    rewrite(FILES / "handbook.docx", path, "word/document.xml", noted)
    found = converted(path)
    assert place_of(found, "Close the valve") == "page 1"
    assert place_of(found, "### Operate") == "page 2"
    assert place_of(found, "500 hours") == "page 2"


def rewrite(source: Path, target: Path, member: str, change: Any) -> None:
    """A copy of an archive with one member changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name == member else old.read(name))


def word_with(body: str, space: str = WORD_SPACE, main: str = "word/document.xml") -> bytes:
    """A Word document with this body."""
    xml = f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
    return bomb(main, xml.encode(), 1)


def paragraph(text: str, style: str = "") -> str:
    about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{about}<w:r><w:t>{text}</w:t></w:r></w:p>"


def test_text_of_a_word_document_never_becomes_markdown() -> None:
    """Issue: what a person typed is text: a hash opens no section, backticks swallow nothing."""
    lines = ["# literal", "```", "&gt; quoted", "- item", "====", "| a |"]
    body = (
        "".join(map(paragraph, lines))
        + '<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Real</w:t></w:r></w:p>'
    )
    found = readers.convert(word_with(f"{body}{paragraph('last words')}"), "x.docx", DEFAULT.document)
    assert titles(found.text) == ["Real"]
    assert all(words in found.text for words in ("literal", "quoted", "item", "last words"))


def test_strict_office_files_are_read_and_others_are_refused() -> None:
    """Issue: nothing is stored empty: a strict Word file has other names, a presentation is no document."""
    strict = word_with(paragraph("strict words"), "http://purl.oclc.org/ooxml/wordprocessingml/main")
    assert readers.convert(strict, "x.docx", DEFAULT.document).text == "strict words\n"
    for name, wrong in (("handbook.pptx", "x.docx"), ("handbook.docx", "x.pptx"), ("handbook.epub", "x.odt")):
        with pytest.raises(SourceError):
            readers.convert((FILES / name).read_bytes(), wrong, DEFAULT.document)


def test_nested_lists_stay_nested() -> None:
    """Issue: lists of lists keep their shape."""
    blocks = Blocks("paragraph")
    for text, depth in (("a", 0), ("b", 1), ("c", 1), ("d", 0)):
        blocks.item(text, depth, is_ordered=False)
    assert [line[0] == " " for line in blocks.markdown()[0].splitlines()] == [False, True, True, False]


def test_an_rtf_file_leaves_out_deleted_text_and_pictures() -> None:
    """Issue: nothing that a reader of the file does not see is stored."""
    source = rb"{\rtf1 {\deleted gone}kept{\pict\bin5 ABCDE}{\*\unknown no}\par}"
    assert readers.convert(source, "x.rtf", DEFAULT.document).text == "kept\n"


PROSE = (
    "FileMaker met McMaster at host:port with UseMethod, a*b, foo!bar and #include.",
    "Invoice 101",
    "Total due 17 EUR",
    "42",
    "The last line of the page.",
)


def test_a_pdf_keeps_every_word_and_number_as_it_is(tmp_path: Path) -> None:
    """Issue: no word is changed, no line is lost: not at the top, not a number, not one that repeats."""
    pages = [
        PROSE,
        *((f"Invoice {n}", f"Total due {17 * n} EUR", "at the acme shop") for n in (102, 103, 104)),
    ]
    found = readers.convert(written(pages), "x.pdf", DEFAULT.document)
    for line in {line for page in pages for line in page}:
        assert line in found.text
    assert place_of(found, "Invoice 103") == "page 3"
    assert found.text.count("at the acme shop") == 1  # what pages in a row repeat is kept once


def test_a_page_without_text_is_named(tmp_path: Path) -> None:
    """Issue: a scanned page inside of a text is said."""
    found = readers.convert(written([("one word",), (), ("three words",)]), "x.pdf", DEFAULT.document)
    assert found.warnings == ("page 2 has no text: blank, or a picture such as a scan",)


def test_hyphens_at_line_ends_go_unless_the_word_has_one() -> None:
    """Issue: a hyphenated word is found; a word with a hyphen keeps it."""
    lines = ("A well-known rule: the super-", "visor reads E-", "Mail on well-", "known screens.")
    text = readers.convert(written([lines]), "x.pdf", DEFAULT.document).text
    assert "supervisor" in text
    assert "E-Mail" in text
    assert text.count("well-known") == 2


def written(pages: Sequence[Sequence[str]]) -> bytes:
    """A PDF with these lines on its pages, in Helvetica."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", font]
    for lines in pages:
        told = (line.replace("\\", "").replace("(", "").replace(")", "") for line in lines)
        stream = "BT /F1 11 Tf 14 TL 60 760 Td " + " ".join(f"({line}) Tj T*" for line in told) + " ET"
        content = b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream.encode("cp1252"))
        about = b"/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R" % (len(objects) + 2)
        objects += [b"<</Type/Page/Parent 2 0 R%s>>" % about, content]
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids)
    return pdf_of(objects)


def test_slides_are_sections_with_their_numbers_and_notes() -> None:
    """Issue: `slide 3`."""
    found = converted(FILES / "handbook.pptx")
    assert place_of(found, "Close the valve") == "slide 4"
    assert place_of(found, "500 hours") == "slide 6"
    assert "| bolt | 40 Nm |" in found.text
    assert [title for title in titles(found.text) if title in HANDBOOK[1:]] == [
        "Install",
        "Operate",
        "Maintain",
    ]


def test_a_tagged_pdf_keeps_headings_order_lines_and_pages() -> None:
    """Issue: headings, reading order, tables, code; a header on every page is no text."""
    found = converted(FILES / "handbook.pdf")
    assert titles(found.text) == [
        *("1 Pump handbook", "1.1 Install", "1.1.1 Tools", "1.2 Operate", "1.3 Maintain", "2 Index")
    ]
    assert "pumpctl start --slowly\n\\# not a heading\npumpctl status" in found.text
    assert "bolt 40 Nm\nnut 25 Nm" in found.text
    assert found.text.index("left column ends") < found.text.index("Right column comes second")
    assert place_of(found, "40 kg") == "page 1"
    assert place_of(found, "pumpctl status") == "page 2"
    assert place_of(found, "zebra") == "page 4"
    assert found.text.count("Pump handbook") == 2  # the heading, and once the header of all pages


def test_an_untagged_pdf_keeps_headings_and_pages() -> None:
    """Issue: a file that an office program exported; a heading that repeats is not a running header."""
    found = converted(FILES / "plant.pdf")
    assert titles(found.text) == ["Plant manual", *(f"Chapter {n}: unit {n}" for n in range(1, 5))]
    assert [place_of(found, f"zebra{n}") for n in range(1, 5)] == ["page 3", "page 5", "page 6", "page 8"]
    assert found.places == Places("page", found.places.starts if found.places else ())
    assert found.places
    assert len(found.places.starts) == 8


def test_text_of_a_pdf_never_becomes_markdown() -> None:
    """Issue: what is on a page is text, whatever it looks like."""
    text = "# no\n> no\n- no\n1. no\n```\n| no |\n<b>\nno\n====\n    no"
    shown = base.escaped(text)
    tree = Tree(Document.from_text(f"{shown}\n"))
    assert (tree.headings, tree.opaque) == ([], [])


NOTEBOOK: dict[str, Any] = {
    "metadata": {"kernelspec": {"language": "python"}},
    "nbformat": 4,
    "cells": [
        {"cell_type": "markdown", "source": ["# Analysis\n", "\n", "Load the data. ```"]},
        {"cell_type": "markdown", "source": "~~~\nnever closed"},
        {
            "cell_type": "code",
            "source": "# not a heading\nprint(1)",
            "outputs": [
                {"output_type": "stream", "text": ["one\n", "two\n"]},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=" * 100}},
                {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["\x1b[31mno"]},
            ],
        },
        {"cell_type": "markdown", "source": "## Plot\n\nThe end."},
    ],
}


def test_cells_of_a_notebook_are_places_and_none_swallows_the_next(tmp_path: Path) -> None:
    """Issue: a notebook is read cell by cell: `cell 5`; what it prints is there, pictures are not."""
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(NOTEBOOK))
    found = converted(path)
    assert titles(found.text) == ["Analysis", "Plot"]
    assert "```python\n# not a heading\nprint(1)\n```" in found.text
    assert "one\ntwo" in found.text
    assert "KeyError: 'x'" in found.text
    assert "iVBOR" not in found.text
    assert [place_of(found, words) for words in ("Load", "never", "print(1)", "The end")] == [
        *("cell 1", "cell 2", "cell 3", "cell 4")
    ]


def test_every_converted_file_is_markdown_to_the_tree() -> None:
    """The endings that readers convert are those that documents are markdown by."""
    assert {format_of(f"x{ending}") for ending in readers.CONVERTED} == {"markdown"}


# ------------------------------------------------------------------------------------- the marks


@given(st.lists(st.text(alphabet="ab #\n-|", max_size=8), max_size=8))
def test_marks_leave_the_text_and_name_where_each_place_begins(parts: list[str]) -> None:
    """Issue: a map back to locations: every place starts where its text does."""
    marked = "".join(f"{base.mark(number)}{part}" for number, part in enumerate(parts, 1))
    text, places = base.found_marks(marked, "page")
    assert text == "".join(parts)
    starts = places.starts if places else ()
    assert len(starts) == len(parts)
    assert list(starts) == sorted(starts)
    for number, start in enumerate(starts):
        exact = sum(map(len, parts[:number]))
        assert text[start:exact].strip(" \n#>*+|.-0123456789") == ""


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 600), st.integers(0, 600))
def test_packed_places_are_the_same_and_every_span_has_one(steps: list[int], start: int, size: int) -> None:
    """Issue: a location for every span."""
    starts = tuple(sum(steps[: number + 1]) for number in range(len(steps)))
    places = Places("row", starts)
    assert Places.unpack(places.pack()) == places
    said = places.location(start, start + size)
    if not starts:
        assert said == ""
        return
    first, _, last = said.removeprefix("row ").partition("–")
    assert 1 <= int(first) <= int(last or first) <= max(1, len(starts))


# ------------------------------------------------------------------------------- in a library


def test_results_say_where_they_are_in_the_original(library: Library, tmp_path: Path) -> None:
    """Issue: location in results, citations, packs and records, on both databases, and a link."""
    folder = shutil.copytree(
        FILES, tmp_path / "files", ignore=shutil.ignore_patterns("scan*", "enc*", "*.md")
    )
    (folder / "prices.csv").write_text("item,price\n" + "".join(f"thing{n},{n}\n" for n in range(500)))
    report = library.add(folder)
    assert (report.added, report.failed) == (8, [])
    found = library.search('"zebra3"').results[0]
    assert (found.path, found.location) == ("plant.pdf", "page 6")
    assert found.link == f"{(folder / 'plant.pdf').as_uri()}#page=6"
    assert found.text.find("zebra3") >= 0
    assert library.read(found.address).location in ("page 6", "page 5–6")
    slide = library.search("oil bearing hours", paths=["handbook.pptx"]).results[0]
    assert (slide.location, slide.link) == ("slide 6", None)
    row = library.search("thing400").results[0]
    assert row.path == "prices.csv"
    first, last = (int(number) for number in (row.location or "").removeprefix("row ").split("–"))
    assert first <= 402 <= last
    assert "thing400" in row.text
    pack = library.context("zebra3 password", max_tokens=2000)
    assert any((passage.location or "").startswith("page") for passage in pack.passages)
    assert all(chunk.location for chunk in library.chunks(found.address))
    assert library.refresh().unchanged == 8


def test_the_size_of_a_converted_file_is_that_of_its_text(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: a presentation of 33 kB with 2 kB of text is short to read, on both databases."""
    library.add(FILES / "handbook.pptx")
    (row,) = library.documents()
    text, file = library.source(row.address), (FILES / "handbook.pptx").read_bytes()
    assert (row.size, row.length) == (len(file), len(text))
    assert len(file) > 10 * len(text)
    assert render.document_json(row)["tokens"] == (len(text) + 2) // 3
    (listed,) = (reading.list_documents(library, reading.List.checked({})).data or {})["documents"]
    assert (listed["bytes"], listed["tokens"]) == (len(text), (len(text) + 2) // 3)
    assert library.store.counts().bytes == len(text)
    for stores in (sqlite, postgres):  # a short text is compared with its checksum, however long its file is
        monkeypatch.setattr(stores, "VERIFIED_BYTES", len(text))
    assert library.search("valve").results[0].verified


def test_a_copy_and_a_rename_keep_places_and_convert_nothing_again(tmp_path: Path) -> None:
    """Issue: digest of the original: a renamed file keeps its document; a changed one is converted."""
    folder = tmp_path / "files"
    folder.mkdir()
    shutil.copy(FILES / "plant.pdf", folder / "plant.pdf")
    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        library.add(folder)
        before = library.documents()[0]
        (folder / "plant.pdf").rename(folder / "power.pdf")
        report = library.refresh()
        after = library.documents()[0]
        assert (report.moved, after.path, after.created_at) == (1, "power.pdf", before.created_at)
        assert library.search('"zebra1"').results[0].location == "page 2–3"
        (folder / "power.pdf").touch()
        assert library.refresh().updated == 0
        shutil.copy(FILES / "handbook.pdf", folder / "power.pdf")
        assert library.refresh().updated == 1
        assert library.search("zebra").results[0].location == "page 4"
        library.copy(tmp_path / "b.db")
    with Library.open(tmp_path / "b.db", config=WORDS) as copy:
        assert copy.search("zebra").results[0].location == "page 4"
        assert copy.refresh().unchanged == 1


def test_commands_show_pages_and_say_what_is_missing(tmp_path: Path) -> None:
    """Issue: shown in text and JSON; `quire chunk` and `toc` read such files, too."""
    shutil.copy(FILES / "plant.pdf", tmp_path)
    run(tmp_path, "add", "plant.pdf")
    out, _ = run(tmp_path, "search", "zebra3")
    assert "(page 6" in out
    assert "plant.pdf#page=6" in out
    out, _ = run(tmp_path, "context", "zebra3")
    assert "(page " in out
    out, _ = run(tmp_path, "toc", "plant.pdf")
    assert "Chapter 4: unit 4" in out
    assert json.loads(run(tmp_path, "chunk", "plant.pdf", "--json")[0])["document"]["title"] == "Plant manual"


def test_chunks_of_a_file_say_where_they_are_in_it(tmp_path: Path) -> None:
    """Issue: `quire chunk` names slides and rows, not lines of the converted text."""
    (tmp_path / "prices.csv").write_text("item,price\n\nthing,3\n")
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    shutil.copy(FILES / "handbook.pptx", tmp_path)
    shown = json.loads(run(tmp_path, "chunk", "handbook.pptx", "--json")[0])["chunks"]
    assert [chunk["location"] for chunk in shown][:2] == ["slide 1–3", "slide 4"]
    assert json.loads(run(tmp_path, "chunk", "a.md", "--json")[0])["chunks"][0]["location"] is None
    out, _ = run(tmp_path, "chunk", "handbook.pptx", "prices.csv", "a.md")
    assert "      slide 4, " in out
    assert "      row 1–3, 5 tokens: item,price" in out
    assert "      lines 1–3, 3 tokens: # A" in out
    run(tmp_path, "chunk", "handbook.pptx", "--html", "chunks.html")
    assert " · slide 4</span>" in (tmp_path / "chunks.html").read_text("utf-8")


def test_a_file_without_its_extra_is_counted_and_said_and_never_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: `skipped 14 .pdf: pip install …`, never garbage; what is held stays."""
    folder = tmp_path / "files"
    folder.mkdir()
    shutil.copy(FILES / "plant.pdf", folder / "a.pdf")
    shutil.copy(FILES / "handbook.docx", folder)
    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        library.add(folder)
        how = "pip install 'quire-docs[documents]'"
        monkeypatch.setattr(
            "quire.readers.missing_extra", lambda ending: how if ending == ".pdf" else "", raising=True
        )
        shutil.copy(FILES / "handbook.pdf", folder / "b.pdf")
        report = library.refresh()
        assert (report.kinds, report.removed, report.failed) == ({".pdf": 2}, 0, [])
        assert [row.path for row in library.documents()] == ["a.pdf", "handbook.docx"]
        from quire.surfaces import render

        assert render.skipped_line(report.kinds) == f"skipped 2 .pdf: {how}"


# ----------------------------------------------------------------------------------- hostile files


def bomb(member: str, content: bytes, times: int) -> bytes:
    """An archive whose member is much larger than it is."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(member, "w") as file:
        for _ in range(times):
            file.write(content)
    return packed.getvalue()


LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'
MAIN = {"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "odt": "content.xml"}


@pytest.mark.parametrize("ending", ["docx", "pptx", "odt", "epub"])
def test_archives_that_explode_are_stopped(ending: str) -> None:
    """Issue: zip bombs and XML bombs of every format are bounded."""
    member = MAIN.get(ending, "META-INF/container.xml")
    with pytest.raises(TooLarge, match=r": its unpacked content is over max_bytes = 64,000,000\. Raise"):
        readers.convert(bomb(member, b" " * 1_000_000, 70), f"x.{ending}", DEFAULT.document)
    with pytest.raises(NotPrepared, match="declares entities"):
        readers.convert(bomb(member, LAUGHS, 1), f"x.{ending}", DEFAULT.document)


@pytest.mark.parametrize("ending", ["docx", "pptx", "odt", "epub", "rtf", "pdf"])
@pytest.mark.parametrize("share", [0.03, 0.5, 0.95])
def test_a_truncated_file_fails_alone_or_gives_what_it_has(ending: str, share: float) -> None:
    """Issue: truncated files of every format: a reason on one line, or text; never a crash."""
    source = (FILES / f"handbook.{ending}").read_bytes()
    assert_read_or_refused(source[: int(len(source) * share)], f"x.{ending}")


def assert_read_or_refused(source: bytes, name: str) -> None:
    """A file gives text, or a SourceError whose reason is on one line."""
    try:
        shown = readers.convert(source, name, DEFAULT.document).text
    except SourceError as error:
        shown = error.reason.replace("\n", "\0")
    assert "\0" not in shown


def test_encrypted_and_scanned_files_say_so() -> None:
    """Issue: an encrypted file fails; a scan says that it has no text, and that OCR is out of scope."""
    with pytest.raises(NotPrepared, match="is encrypted"):
        converted(FILES / "encrypted.pdf")
    with pytest.raises(NotPrepared, match=r"may be a scan.*OCR"):
        converted(FILES / "scan.pdf")
    with pytest.raises(NotPrepared, match="is encrypted"):
        readers.convert(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "x.docx", DEFAULT.document)
    with pytest.raises(NotText, match="is not a PDF file"):
        readers.convert(b"hello", "x.pdf", DEFAULT.document)


def pages_declared(number: int, kids: bytes) -> bytes:
    """A PDF that says it has many pages."""
    tree = b"<</Type/Pages/Count %d/Kids[%s]>>" % (number, kids)
    return pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", tree])


def pdf_of(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects, the first of which is its catalog."""
    body, offsets = b"%PDF-1.4\n", list[int]()
    for index, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj%sendobj\n" % (index, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
    return body + end % (size, table, size, len(body))


@pytest.mark.parametrize("kids", [b"", b"2 0 R 2 0 R", b"9 0 R"])
def test_a_pdf_that_declares_many_pages_is_bounded(kids: bytes) -> None:
    """Issue: 100,000 pages declared, none there, or a loop of them."""
    with pytest.raises(SourceError):
        readers.convert(pages_declared(100_000, kids), "x.pdf", DEFAULT.document)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("deep.rtf", b"{\\rtf1" + b"{" * 200_000 + b"x" + b"}" * 200_000),
        ("odd.rtf", b"{\\rtf1\\u-1?\\u55357?\\'zz\\bin999999999 \\fldinst{\\*\\*}}}}} tail"),
        ("deep.ipynb", b"[" * 100_000),
        ("wrong.ipynb", b'{"cells": [1, null, {"source": 3}], "metadata": []}'),
        ("deep.docx", b""),
    ],
)
def test_odd_files_are_read_or_refused_in_a_sentence(name: str, source: bytes) -> None:
    """BAD_INPUTS: whatever one document does, it fails alone."""
    if name == "deep.docx":
        nested = b"<w:sdt><w:sdtContent>" * 5000 + b"</w:sdtContent></w:sdt>" * 5000
        space = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        source = bomb(
            "word/document.xml", b"<w:document %s><w:body>%s</w:body></w:document>" % (space, nested), 1
        )
    assert_read_or_refused(source, name)


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("x.ipynb", b" \n", "is empty"),
        ("x.ipynb", b"hello", "is not a notebook: it is not JSON"),
        ("x.ipynb", b"\xff\xff", "is not a notebook: it is not JSON"),
        ("x.ipynb", b"[]", "is not a notebook: it has no cells"),
        ("x.ipynb", b"{}", "is not a notebook: it has no cells"),
        ("x.ipynb", b'{"worksheets": [3]}', "is not a notebook: it has no cells"),
        (
            "x.ipynb",
            b'{"cells": [{}, {}, "text"]}',
            "is not a notebook: cell 3 is not as the format says",
        ),
        ("x.ipynb", b"[" * 100_000, "is nested too deeply"),
        ("x.pdf", b"%PDF-1.7\nnothing else", "is damaged, or not a PDF file (FormatError)"),
    ],
)
def test_the_reason_is_plain_english(name: str, source: bytes, reason: str) -> None:
    """HABITS: errors say what is wrong in the words of the reader, not those of a parser."""
    with pytest.raises(NotPrepared) as raised:
        readers.convert(source, name, DEFAULT.document)
    assert raised.value.reason == reason


def test_a_notebook_with_odd_facts_about_itself_is_read() -> None:
    """BAD_INPUTS: what a notebook says of its language is not needed to read it."""
    source = b'{"metadata": {"language_info": "x"}, "cells": [{"cell_type": "markdown", "source": "Hello"}]}'
    assert readers.convert(source, "x.ipynb", DEFAULT.document).text == "Hello\n\n"


def test_a_file_on_standard_input_needs_a_name(tmp_path: Path) -> None:
    """Issue: no made-up name in the message; what to type is said."""
    source = (FILES / "handbook.docx").read_bytes()
    _, said = run(tmp_path, "add", "-", stdin=(FILES / "handbook.pdf").read_bytes(), code=4)
    assert "standard input: is a PDF file. Name it: --as NAME.pdf" in said
    _, said = run(tmp_path, "add", "-", stdin=source, code=4)
    assert "standard input: is a ZIP archive. Name it: --as NAME.docx, .pptx, .odt or .epub" in said
    run(tmp_path, "add", "-", "--as", "a.docx", stdin=source)
    with Library.open(":memory:", create=True, config=WORDS) as library:
        with pytest.raises(NotText, match=r"^content: is a ZIP archive"):
            library.add(content=source, collection="given")
        assert library.documents() == []


def test_hostile_files_in_a_folder_fail_alone(tmp_path: Path) -> None:
    """Issue: conversion runs in a worker with its limits; the rest of a folder is added."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nWords.\n")
    shutil.copy(FILES / "handbook.docx", folder)
    for name in ("encrypted.pdf", "scan.pdf"):
        shutil.copy(FILES / name, folder)
    (folder / "bomb.docx").write_bytes(bomb("word/document.xml", b" " * 1_000_000, 70))
    (folder / "pages.pdf").write_bytes(pages_declared(100_000, b"2 0 R 2 0 R"))
    (folder / "fake.pptx").write_text("no slides")
    (folder / "~$handbook.docx").write_bytes(b"\x05owner" * 20)  # Word writes this while a file is open
    limits = IngestSettings(max_seconds=60, max_memory=1_000_000_000)
    config = replace(WORDS, ingest=limits)
    with Library.open(tmp_path / "a.db", create=True, config=config) as library:
        report = library.add(folder)
        assert report.added == 2
        assert sorted(one.source for one in report.failed) == [
            *("bomb.docx", "encrypted.pdf", "fake.pptx", "pages.pdf", "scan.pdf")
        ]
        assert all("\n" not in one.reason for one in report.failed)
        assert library.search("valve").results


def test_bytes_of_a_file_can_be_given_with_its_name(tmp_path: Path) -> None:
    """Issue: the same file from a program: converted, with its places; text under such a name stays text."""
    source = (FILES / "plant.pdf").read_bytes()
    assert quire.tree(source, "plant.pdf").title == "Plant manual"
    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        library.add(content=source, path="plant.pdf", collection="given")
        assert library.search('"zebra4"').results[0].location == "page 8"
        assert library.add(content=source, path="plant.pdf", collection="given").unchanged == 1
        library.add(content="# Notes on a report", path="notes.pdf", collection="given")
        assert library.read("given:notes.pdf").text == "# Notes on a report"
        with pytest.raises(SourceError, match="is encrypted"):
            library.add(content=(FILES / "encrypted.pdf").read_bytes(), path="x.pdf", collection="given")


WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def test_a_file_on_the_web_is_read_as_one_on_disk(tmp_path: Path) -> None:
    """Issue: a PDF behind a URL has its pages, and a link that opens them; a broken one fails alone."""
    config = replace(WORDS, web=replace(WORDS.web, allow_hosts=("127.0.0.1",), retries=0))
    with site() as web, Library.open(tmp_path / "a.db", create=True, config=config) as library:
        url = web.page("/a/plant.pdf", (FILES / "plant.pdf").read_bytes(), content_type="application/pdf")
        other = web.page("/download/7", (FILES / "handbook.docx").read_bytes(), content_type=WORD)
        binary = "application/octet-stream"
        broken = web.page("/scan.pdf", (FILES / "scan.pdf").read_bytes(), content_type=binary)
        library.add(url)
        library.add(other)
        found = library.search('"zebra3"').results[0]
        assert (found.location, found.link) == ("page 6", f"{url}#page=6")
        assert (library.search("valve").results[0].location or "").startswith("paragraph")
        assert "may be a scan" in library.add(broken).failed[0].reason
        assert library.refresh().unchanged == 2


# ------------------------------------------------------------------------------- files that sites link


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[tuple[Site, Library]]:
    """A server on loopback, and a library that may read it."""
    config = replace(WORDS, web=replace(WORDS.web, allow_hosts=("127.0.0.1",), retries=0))
    with site() as web, Library.open(tmp_path / "a.db", create=True, config=config) as library:
        yield web, library


def linking(web: Site, *links: str, more: str = "", **headers: str) -> str:
    """The home page of a site, which links files; its URL."""
    menu = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    body = f"<!doctype html><html><body><main><h1>Home</h1><p>Welcome{more}.</p>{menu}</main></body></html>"
    return web.route("/docs/", Versioned(body.encode(), content_type="text/html", **headers))


def served(web: Site, name: str, path: str = "", **headers: str) -> str:
    """A file of the fixtures, with an etag that spares sending it again."""
    content = (FILES / name).read_bytes()
    return web.route(path or f"/docs/{name}", Versioned(content, etag=f'"{name}"', **headers))


PDF_OR_BOOK = ["plant.pdf", "handbook.epub", "handbook.docx"]


def test_the_files_that_a_site_links_are_read(linked: tuple[Site, Library]) -> None:
    """Issue: links to PDF files and books are followed as those to Word files are."""
    web, library = linked
    for name in PDF_OR_BOOK:
        served(web, name)
    report = library.add(linking(web, *PDF_OR_BOOK), site=True)
    assert (report.added, report.failed, report.warnings) == (4, [], [])
    assert library.search('"zebra3"').results[0].location == "page 6"


@pytest.mark.parametrize("name", ["plant.pdf", "handbook.docx", "notes.md"])
def test_a_changed_page_beside_a_file_is_refreshed(linked: tuple[Site, Library], name: str) -> None:
    """Issue: a file has no links and no text, so it is never decoded. Markdown has links."""
    web, library = linked
    if name == "notes.md":
        text = f"# Notes\n\nSee [a file]({web.url('/docs/handbook.docx')}).\n"
        served(web, "handbook.docx")
        web.route(f"/docs/{name}", Versioned(text.encode(), etag='"1"', content_type="text/markdown"))
    else:
        served(web, name)
    web.page("/docs/old.html", b"<html><body><h1>Old</h1><p>Old text.</p></body></html>")
    home = linking(web, name, "old.html")
    held = library.add(home, site=True).added
    linking(web, name, more=" again")  # nothing links the old page now
    report = library.refresh()
    assert (report.updated, report.removed, report.failed) == (1, 1, [])
    assert len(library.documents()) == held - 1


@pytest.mark.parametrize("media", ["", "application/octet-stream"])
@pytest.mark.parametrize(("name", "word"), [("plant.pdf", "zebra3"), ("handbook.rtf", "valve")])
def test_a_file_is_known_by_its_first_bytes(
    linked: tuple[Site, Library], media: str, name: str, word: str
) -> None:
    """Issue: a server may send a download without a type, under a URL without an ending."""
    web, library = linked
    library.add(served(web, name, "/download/7", **({"content_type": media} if media else {})))
    assert library.search(word).results[0].path == "download/7"


def without_pdf(monkeypatch: pytest.MonkeyPatch) -> str:
    """Take the optional part for PDF files away; how to install it."""
    how = "pip install 'quire-docs[documents]'"
    monkeypatch.setattr("quire.readers.missing_extra", lambda ending: how if ending == ".pdf" else "")
    return how


def test_the_pdf_files_of_a_site_wait_for_the_optional_part(
    linked: tuple[Site, Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: links to files that cannot be read yet are counted once, with what to install."""
    web, library = linked
    served(web, "plant.pdf")
    home = linking(web, "plant.pdf", "./plant.pdf#page=2", "other.pdf", etag='"1"')
    with monkeypatch.context() as patched:
        how = without_pdf(patched)
        report = library.add(home, site=True)
        assert (report.added, report.failed) == (1, [])
        assert [told for told in report.warnings if "not followed" in told] == [
            f"2 links were not followed: .pdf files need an optional part ({how}), such as {home}plant.pdf"
        ]
        assert "/docs/plant.pdf" not in web.paths()
    served(web, "plant.pdf", "/docs/other.pdf")
    assert library.refresh().added == 2  # though the page that links them has not changed


def test_the_pdf_files_of_an_llms_txt_wait_too(
    linked: tuple[Site, Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: they do not fail one by one; files that are held are still asked for."""
    web, library = linked
    served(web, "plant.pdf")
    index = web.page("/docs/llms.txt", b"# Site\n\n- [a](plant.pdf)\n- [b](more.pdf)\n- [c](c.md)\n")
    web.page("/docs/c.md", b"# C\n\nText.\n")
    with monkeypatch.context() as patched:
        how = without_pdf(patched)
        report = library.add(index)
        assert (report.added, report.failed) == (2, [])
        (told,) = report.warnings
        assert told.startswith(f"2 links were not followed: .pdf files need an optional part ({how})")
    served(web, "plant.pdf", "/docs/more.pdf")
    assert library.refresh().added == 2
    without_pdf(monkeypatch)
    report = library.refresh()
    assert (report.unchanged, report.removed, report.failed) == (4, 0, [])


@pytest.mark.parametrize("path", ["/docs/llms.txt", "/docs/llms-full.txt", "/robots.txt"])
def test_a_file_in_place_of_a_list_is_no_list(linked: tuple[Site, Library], path: str) -> None:
    """BAD_INPUTS: a server may answer with anything."""
    web, library = linked
    index = web.page("/docs/llms.txt", b"# Site\n\n- [c](c.md)\n")
    web.page("/docs/c.md", b"# C\n\nText.\n")
    served(web, "plant.pdf", path, content_type="application/pdf")
    if path == "/docs/llms.txt":
        with pytest.raises(SourceError, match=r"is a \.pdf file, not text"):
            library.add(index)
    else:
        assert library.add(index).added == 2


def with_member(source: Path, member: str, content: bytes) -> bytes:
    """A copy of an archive with one more member."""
    packed = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != member:
                new.writestr(name, old.read(name))
        new.writestr(member, content)
    return packed.getvalue()


ENCRYPTION = '<encryption><EncryptedData><EncryptionMethod Algorithm="{}"/></EncryptedData></encryption>'


def test_encrypted_books_and_texts_say_so_and_hidden_fonts_do_not_matter() -> None:
    """Issue: encrypted files of every format: books with a lock, OpenDocument and members of archives."""
    book, text = FILES / "handbook.epub", FILES / "handbook.odt"
    locked = ENCRYPTION.format("http://www.w3.org/2001/04/xmlenc#aes256-cbc").encode()
    with pytest.raises(NotPrepared, match="is encrypted: only the program of its seller"):
        readers.convert(with_member(book, "META-INF/encryption.xml", locked), "x.epub", DEFAULT.document)
    fonts = ENCRYPTION.format("http://www.idpf.org/2008/embedding").encode()
    found = readers.convert(with_member(book, "META-INF/encryption.xml", fonts), "x.epub", DEFAULT.document)
    assert "Close the valve" in found.text
    manifest = b"<m><f><encryption-data/></f></m>"
    with pytest.raises(NotPrepared, match="is encrypted"):
        readers.convert(with_member(text, "META-INF/manifest.xml", manifest), "x.odt", DEFAULT.document)
    source = bytearray((FILES / "handbook.docx").read_bytes())
    at = source.index(b"PK\x01\x02")
    while at >= 0:  # the flag of each member in the directory of the archive
        source[at + 8] |= 1
        at = source.find(b"PK\x01\x02", at + 4)
    with pytest.raises(NotPrepared, match="is encrypted"):
        readers.convert(bytes(source), "x.docx", DEFAULT.document)


def test_a_file_whose_new_name_is_of_another_kind_is_read_again(tmp_path: Path) -> None:
    """Issue: what is converted depends on the name: a page that was called text is a page now."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "p.md").write_text("<main><h1>Zebra</h1><p>Stripes.</p></main>")
    (folder / "other.md").write_text("# Other\n")
    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        library.add(folder)
        (folder / "p.md").rename(folder / "p.html")
        assert library.refresh().moved == 1
        assert library.read("files:p.html").text == "# Zebra\n\nStripes.\n"


def test_a_given_file_keeps_its_places_when_it_is_cut_again(tmp_path: Path) -> None:
    """Issue: a location for every span, also after other settings cut the text."""
    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        library.add(content=(FILES / "plant.pdf").read_bytes(), path="plant.pdf", collection="given")
    changed = override(WORDS, {"chunk": {"strategy": "nodes"}})
    with Library.open(tmp_path / "a.db", config=changed) as library:
        assert library.refresh().updated == 1
        assert library.search('"zebra4"').results[0].location == "page 8"
