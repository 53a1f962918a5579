"""Bytes to a document."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire.document import Document
from quire.errors import NotText, SettingError, TooLarge


def read(source: bytes, path: str = "a.md") -> Document:
    return Document.from_bytes(source, path)


def test_the_source_bytes_are_kept_whatever_they_are() -> None:
    """DESIGN §1: the source bytes are returned exactly."""
    for source in (b"", b"a\r\nb\rc\n", b"\xef\xbb\xbf# A\n", b"caf\xe9", "é\n".encode("utf-16")):
        assert read(source).source == source


def test_the_checksum_is_sha256_of_the_source() -> None:
    """SHA-256 checksum."""
    assert read(b"caf\xe9").checksum == hashlib.sha256(b"caf\xe9").hexdigest()


def test_a_byte_order_mark_is_kept_and_not_parsed() -> None:
    """BAD_INPUTS: a UTF-8 BOM is decoded, and a heading after it is a heading."""
    tree = quire.tree(b"\xef\xbb\xbf# A\n\ntext\n")
    assert [s.title for s in tree.sections] == ["A", "A"]
    assert tree.sections[1].span_start == 3


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_with_a_byte_order_mark_is_read(codec: str) -> None:
    """BAD_INPUTS: UTF-16 with BOM is decoded; offsets are of the stored bytes."""
    source = "\ufeff# Ä\n\n🙂 text\n\n## B\n\nmore\n".encode(codec)
    chunks = quire.chunk(source, "nodes")
    assert [c.text for c in chunks] == ["\n🙂 text\n\n", "\nmore\n"]
    assert all(source[c.byte_start : c.byte_end].decode(codec) == c.text for c in chunks)


def test_utf16_with_half_a_character_at_its_end_is_read() -> None:
    """BAD_INPUTS: what cannot be decoded is replaced and counted."""
    document = read("\ufeff# A\n".encode("utf-16-le") + b"x")
    assert document.text == "\ufeff# A\n\ufffd"
    assert document.bytes_at([5, 6]) == [10, 11]
    assert "1 byte is not utf-16-le" in document.warnings[0]


def test_invalid_utf8_is_replaced_byte_for_byte_and_said() -> None:
    """BAD_INPUTS: invalid UTF-8 is replaced, warned of, and offsets refer to the stored bytes."""
    source = b"# A\n\ncaf\xe9 \xff\xfe na\xc3\xafve \xef\xbf\xbd\n\n## B\n\nok\n"
    document = read(source)
    assert document.text == "# A\n\ncaf\ufffd \ufffd\ufffd naïve \ufffd\n\n## B\n\nok\n"
    assert document.warnings == ("3 bytes are not utf-8; shown as \ufffd",)
    last = quire.chunk(document, "nodes")[-1]
    assert source[last.byte_start : last.byte_end] == b"\nok\n"


def test_halves_of_surrogate_pairs_in_a_string_are_replaced() -> None:
    """Any input is valid: text that no file can hold keeps its length."""
    document = Document.from_text("a\ud83d b")
    assert document.text == "a\ufffd b"
    assert document.source == "a\ufffd b".encode()


def test_nul_bytes_are_refused() -> None:
    """BAD_INPUTS: binary named .md is refused with the reason."""
    with pytest.raises(NotText, match=r"a\.md: holds NUL bytes"):
        read(b"PNG\0\x1a")


def test_a_source_over_the_cap_is_refused_by_the_caps_name() -> None:
    """BAD_INPUTS: over the size cap is a clear error with the cap's name."""
    small = quire.config.DocumentSettings(max_bytes=10)
    with pytest.raises(TooLarge, match=r"11 bytes is over max_bytes = 10"):
        Document.from_bytes(b"x" * 11, "a.md", settings=small)


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\r\nb\r\n", 2), ("a\rb\rc", 3), ("\n\n", 2)],
)
def test_lines_are_counted_whatever_ends_them(text: str, lines: int) -> None:
    """BAD_INPUTS: CRLF and lone CR count right."""
    assert Document.from_text(text).lines == lines


@given(st.text(alphabet="aé中🙂\r\n\ufeff", max_size=60), st.data())
def test_offsets_convert_there_and_back(text: str, data: st.DataObject) -> None:
    """DESIGN §1: byte, character and line offsets agree with the naive way."""
    document = Document.from_text(text)
    places = sorted(data.draw(st.sets(st.integers(0, len(text)))))
    offsets = document.bytes_at(places)
    assert offsets == [len(text[:place].encode()) for place in places]
    naive = [
        text[:p].replace("\r\n", " \n").replace("\r", "\n") for p in places if text[p - 1 : p + 1] != "\r\n"
    ]
    whole = [p for p in places if text[p - 1 : p + 1] != "\r\n"]
    assert document.lines_at(whole) == [t.count("\n") + 1 for t in naive]


def test_the_format_goes_by_the_name() -> None:
    """By the ending of a file; an llms.txt is markdown under another name."""
    formats = {
        name: quire.document.format_of(name)
        for name in ("a.md", "A.MD", "b.mdx", "c.markdown", "d.txt", "x/llms-full.txt", "README", "e.rst")
    }
    assert formats == {
        "a.md": "markdown",
        "A.MD": "markdown",
        "b.mdx": "markdown",
        "c.markdown": "markdown",
        "d.txt": "text",
        "x/llms-full.txt": "markdown",
        "README": "markdown",
        "e.rst": "rst",
    }
    with pytest.raises(SettingError, match="format: there is no 'pdf'"):
        Document.from_text("x", format="pdf")


# ------------------------------------------------------------------------------ front matter


def test_yaml_front_matter_gives_title_and_metadata() -> None:
    """The title is front matter's before the first heading's."""
    tree = quire.tree("---\ntitle: Given\ntags: [a, b]\n---\n# Heading\n\ntext\n")
    assert tree.title == "Given"
    assert tree.document.metadata == {"title": "Given", "tags": ["a", "b"]}


def test_toml_front_matter_gives_title_and_metadata() -> None:
    """TOML front matter too."""
    tree = quire.tree("+++\ntitle = 'Given'\nweight = 3\n+++\n\ntext\n")
    assert (tree.title, tree.document.metadata["weight"]) == ("Given", 3)


def test_front_matter_is_never_a_heading() -> None:
    """R ruling: front matter is recognised before markdown, so it is no setext heading."""
    tree = quire.tree("---\ntitle: A\n---\n\ntext\n")
    assert tree.headings == []
    assert tree.root.body == "---\ntitle: A\n---\n\ntext\n"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (b"%PDF-1.3\n1 0 obj\n", "a PDF file"),
        (b"\xef\xbb\xbf%PDF-1.3\n", "a PDF file"),
        (b"%!PS-Adobe-3.0\n", "a PostScript file"),
        (b"{\\rtf1\\ansi Hello}", "an RTF file"),
        (b"PK\x03\x04x", "a ZIP archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "an older Office file (.doc, .xls or .ppt)"),
        (b"\x1f\x8bx", "a gzip archive"),
        (b"\x89PNG\r\n", "a PNG image"),
        (b"GIF89a", "a GIF image"),
        (b"\xff\xd8\xffx", "a JPEG image"),
        (b"\x7fELF", "a program"),
        (b"SQLite format 3\0", "a SQLite database"),
    ],
)
def test_a_file_of_another_kind_is_not_text(source: bytes, kind: str) -> None:
    """A PDF without a NUL byte is no text either; the kind is named."""
    with pytest.raises(NotText) as raised:
        read(source)
    assert raised.value.reason.startswith((f"is {kind}, which Quire does not read", f"is {kind}. "))
    assert read(b"text " + source.replace(b"\0", b"")).text  # only the beginning counts


def test_advice_on_a_file_of_another_kind_is_right() -> None:
    """Issue: renaming a drawing to .docx does not help; saving an old Office file anew does."""
    with pytest.raises(NotText) as zipped:
        read(b"PK\x03\x04x")
    assert "ends in" not in zipped.value.reason
    assert all(f"({ending})" in zipped.value.reason for ending in (".docx", ".pptx", ".odt", ".epub"))
    with pytest.raises(NotText, match=r"Save it as \.docx, \.pptx or \.csv$"):
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)


def test_control_characters_are_not_text() -> None:
    """Issue: what is not text is never stored as text, even if it has no NUL byte and no known beginning."""
    noise = bytes(number % 31 + 1 for number in range(4000))
    with pytest.raises(NotText, match="control characters"):
        read(noise)
    assert read(b"\x1b[31mred\x1b[0m\n" * 500).text  # a log of a terminal


def test_utf_16_that_looks_like_another_kind_is_text() -> None:
    """A byte order mark comes first."""
    assert read("%PDF-1.3".encode("utf-16")).text.endswith("%PDF-1.3")
    assert read(b"\xff\xfe%PDF-1.").text


def test_what_was_stored_is_given_out_again() -> None:
    """Reading back is not taking in: no check comes between people and their text."""
    assert Document.restored(b"%PDF-1.3", "a.md").text == "%PDF-1.3"


def test_broken_front_matter_is_kept_as_text_and_said() -> None:
    """BAD_INPUTS: broken YAML is kept as text and warned of."""
    tree = quire.tree("---\ntags: [a\n---\n# A\n\ntext\n")
    assert [s.title for s in tree.sections] == ["A", "A"]
    assert tree.document.metadata == {}
    assert tree.document.warnings[0].startswith("front matter is kept as text: broken YAML")


def test_a_yaml_bomb_is_refused() -> None:
    """BAD_INPUTS: billion-laughs YAML is refused."""
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    document = Document.from_text(f"---\n{bomb}---\ntext\n")
    assert document.metadata == {}
    assert "uses YAML aliases" in document.warnings[0]


def test_deep_yaml_and_foreign_tags_are_refused() -> None:
    """Front matter is read safely and within bounds."""
    deep = Document.from_text(f"---\na: {'[' * 3000}\n---\n")
    assert "nested more than" in deep.warnings[0] or "broken YAML" in deep.warnings[0]
    tagged = Document.from_text("---\na: !!python/object/apply:os.system [echo]\n---\n")
    assert "broken YAML" in tagged.warnings[0]


@pytest.mark.parametrize(
    "text",
    ["---\n\nA slide\n\n---\n\n# B\n\nx\n", "---\ntext here\n---\n", "---\na: 1\n", "--- \n- item\n---\n"],
)
def test_a_thematic_break_is_not_front_matter(text: str) -> None:
    """Slides and rules open with --- too."""
    assert Document.from_text(text).front_matter == ""


def test_front_matter_that_does_not_close_soon_is_text() -> None:
    """Front matter is bounded."""
    bounded = quire.config.DocumentSettings(max_front_matter=20)
    text = "---\na: " + "x" * 40 + "\n---\n"
    assert Document.from_text(text, settings=bounded).front_matter == ""
    assert Document.from_text(text).front_matter == text


def test_front_matter_is_read_after_a_byte_order_mark_and_with_crlf() -> None:
    """BAD_INPUTS: BOM, CRLF and front matter at once."""
    document = Document.from_text("\ufeff---\r\ntitle: A\r\n...\r\n# B\r\n")
    assert document.title == "A"
    assert document.text[document.content_start :] == "# B\r\n"


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("# Guide\n\nHello.\n\n## Install\n\nUse pip.\n", "markdown"),
        ("# One\nSource: https://a/one\n\ntext\n\n# Two\nSource: https://a/two\n\ntext\n", "markdown"),
        ("# One\r\n\r\ntext\r\n\r\n# Two\r\n\r\ntext\r\n", "markdown"),
        ("# only one\n\ntext\n", "text"),
        ("set -e\n\n# copy the files\ncp a b\n\n# and remove them\nrm a\n", "text"),
        ("plain\n\ntext\n", "text"),
        ("", "text"),
        (".. _intro:\n\n=====\nIntro\n=====\n\nHello.\n\n.. note:: Mind the gap.\n", "rst"),
        ("Intro\r\n=====\r\n\r\n.. code-block:: python\r\n\r\n   x\r\n", "rst"),
        ("Intro\n=====\n\nUse :class:`Reader`.\n", "rst"),
        ("Intro\n=====\n\nNo directive.\n", "text"),
        ("Wait\n.. for it:: \n\n.. note:: alone\n", "text"),
    ],
)
def test_headings_are_seen_by_content(text: str, format: str) -> None:
    """Issue: `.txt` with the headings of a format is cut as such, and a list of comments is not."""
    assert Document.from_text(text, "notes.txt").format == format
    assert Document.from_bytes(text.encode(), "notes.txt").format == format
    assert Document.from_text(text, "notes.md").format == "markdown"
    assert Document.from_text(text, "notes.py").format == "text"
