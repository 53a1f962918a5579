"""Bytes to a Document: the exact source, its text, and the mapping between their offsets.

Always: `text` has one character for each character of the source, so a span of characters is
a span of bytes; `source[a:b]` is what those characters were read from. A byte order mark is
the first character of `text` and front matter is its beginning, but neither is markdown:
markdown starts at `content_start`. Each byte that is invalid in the source's encoding becomes
one U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from quire import front_matter, later
from quire.address import of_document
from quire.config import DEFAULT, DocumentSettings
from quire.errors import NotText, SettingError, TooLarge, nearest

BOM = "\ufeff"
_UTF8_BOM = BOM.encode()
SOURCE_TYPES = {  # of each format
    "markdown": "md",
    "rst": "rst",
    "asciidoc": "adoc",
    "org": "org",
    "csv": "csv",
    "text": "txt",
}
FORMATS = tuple(SOURCE_TYPES)
MAX_TITLE = 300  # characters: titles are repeated in every section and chunk below them
_MARKDOWN_ENDINGS = (".md", ".markdown", ".mdx", ".html", ".htm")  # web pages are read as markdown
# Files of these kinds are converted to markdown.
_CONVERTED_ENDINGS = (".pdf", ".docx", ".pptx", ".odt", ".epub", ".rtf", ".ipynb")
_OTHER_ENDINGS = {
    **dict.fromkeys((".rst", ".rest", ".rst.txt"), "rst"),
    **dict.fromkeys((".adoc", ".asciidoc", ".asc"), "asciidoc"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    ".org": "org",
}
# The first bytes of files that are binary or for other programs. Some of them have no NUL byte.
_SIGNATURES = {
    b"%PDF-": "a PDF file",
    b"%!PS": "a PostScript file",
    b"{\\rtf": "an RTF file",
    b"PK\x03\x04": "a ZIP archive",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an older Office file (.doc, .xls or .ppt)",
    b"\x1f\x8b": "a gzip archive",
    b"\x89PNG": "a PNG image",
    b"GIF8": "a GIF image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\x7fELF": "a program",
    b"SQLite format 3\0": "a SQLite database",
}
_ENDINGS = {  # of the files of a kind that are converted
    "a PDF file": ".pdf",
    "an RTF file": ".rtf",
    "a ZIP archive": ".docx, .pptx, .odt or .epub",
}
_ADVICE = {  # other files are not read
    "a PDF file": ". Quire reads it if its name ends in .pdf",
    "an RTF file": ". Quire reads it if its name ends in .rtf",
    "a ZIP archive": (
        ". Quire reads these ZIP archives: Word documents (.docx), PowerPoint presentations (.pptx),"
        " OpenDocument texts (.odt) and EPUB books (.epub)"
    ),
    "an older Office file (.doc, .xls or .ppt)": ". Save it as .docx, .pptx or .csv",
}
_SAMPLE = 65_536  # characters that tell whether a source is text
_CONTROL = later.pattern(r"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_FEW_CONTROL, _MOST_CONTROL = 64, 0.05  # number and share of them in a text: logs of terminals have some
_ERRORS = {"utf-8": "surrogateescape", "utf-16-le": "surrogatepass", "utf-16-be": "surrogatepass"}
_ORG_TITLE = later.pattern(r"(?mi)^#\+title:[ \t]*(\S[^\n]*)")
_KEYWORDS_WITHIN = 4000  # characters from the start of an Org file
_SURROGATE = later.pattern("[\ud800-\udfff]")
_FENCES = ("---", "+++", f"{BOM}---", f"{BOM}+++")
_OPENING = later.pattern(r"(---|\+\+\+)[ \t]*\n")
_CLOSING = {
    "---": re.compile(r"\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)"),
    "+++": re.compile(r"\n\+\+\+[ \t]*(?:\n|\Z)"),
}
# A thematic break also opens with ---; what follows it is prose, not `key:`.
_FIRST_KEY = later.pattern(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?:[\w\"'$@.][^\n:]{0,200}:(?=[ \t\n])|---|\.\.\.)")


# A heading after a blank line, and before a blank line or the source of a page.
_HEADING = later.pattern(
    r"(?:\A|\n[ \t]*\r?\n)(#{1,6})[ \t]+[^\s#][^\n]*\n?(\r?\n|(?i:source|url):)?(?=[^\n]|\Z)"
)
# What only reStructuredText has: a directive, a target or a role; and an underlined title.
_EXPLICIT = later.pattern(
    r"^\.\. (?:[\w+.:-]+?::|_[^\n:]+:)(?:[ \t\r]|$)|:[a-z]\w{0,30}(?::\w{1,30}){0,3}:`[^\s`]", re.MULTILINE
)
_UNDERLINED = later.pattern(r"^(\S[^\n]{1,100})\n([=\-~^\"'#*+`:._])(\2{2,})[ \t\r]*$", re.MULTILINE)


class Document:
    """One immutable source. Make it with `from_bytes` or `from_text`."""

    def __init__(
        self,
        text: str,
        path: str,
        collection: str,
        format: str,
        title: str | None,
        settings: DocumentSettings,
        encoding: str = "utf-8",
        raw: str | None = None,
        source: bytes | None = None,
    ) -> None:
        self.text = text
        self.path = path
        self.collection = collection
        self.format = format
        self.encoding = encoding
        self._given_title = title
        self._raw = raw  # the text with invalid bytes as surrogates, if there are any
        self._source = source
        # The text as markdown reads it: the same offsets, every line ended by a line feed.
        self.markup = text
        if "\r" in text:  # a space before the end of a line means nothing to a block
            self.markup = text.replace("\r\n", " \n").replace("\r", "\n")
        # Where markdown begins: after a byte order mark and front matter.
        self.content_start = 1 if text.startswith(BOM) else 0
        if format == "markdown" and text.startswith(("---", "+++"), self.content_start):
            self.content_start = _front_matter_end(self.markup, self.content_start, settings.max_front_matter)

    def __repr__(self) -> str:
        return f"<Document {self.address} {len(self.text):,} characters>"

    @classmethod
    def from_bytes(
        cls,
        source: bytes,
        path: str = "",
        *,
        collection: str = "local",
        format: str | None = None,
        title: str | None = None,
        settings: DocumentSettings = DEFAULT.document,
    ) -> Document:
        """Decode a source. Raises TooLarge over `max_bytes`, NotText for binary data."""
        name = path or "content"
        if len(source) > settings.max_bytes:
            raise TooLarge(name, settings.over_cap(len(source)))
        if kind := _binary_kind(source):
            raise NotText(name, f"is {kind}{_ADVICE.get(kind, ', which Quire does not read')}")
        document = cls.restored(
            source, path, collection=collection, format=format, title=title, settings=settings
        )
        if "\0" in document.text:
            raise NotText(name, "holds NUL bytes, so it is not a text file")
        sample = document.text[:_SAMPLE]
        if len(_CONTROL.findall(sample)) > max(_FEW_CONTROL, _MOST_CONTROL * len(sample)):
            raise NotText(name, "holds control characters that no text has, so it is not a text file")
        return document

    @classmethod
    def restored(
        cls,
        source: bytes,
        path: str = "",
        *,
        collection: str = "local",
        format: str | None = None,
        title: str | None = None,
        settings: DocumentSettings = DEFAULT.document,
    ) -> Document:
        """Decode a stored source, without any checks."""
        encoding = encoding_of(source)
        raw = _decode(source, encoding)
        text = _whole_characters(raw)
        format = format_of(path, text) if format is None else _known_format(format)
        raw_text = None if text is raw else raw
        return cls(text, path, collection, format, title, settings, encoding, raw_text, source)

    @classmethod
    def from_text(
        cls,
        text: str,
        path: str = "",
        *,
        collection: str = "local",
        format: str | None = None,
        title: str | None = None,
        settings: DocumentSettings = DEFAULT.document,
    ) -> Document:
        """Use text unchanged; lone surrogates, which no file can hold, become U+FFFD."""
        text = _whole_characters(text)
        format = format_of(path, text) if format is None else _known_format(format)
        return cls(text, path, collection, format, title, settings)

    @cached_property
    def source(self) -> bytes:
        """The exact bytes."""
        return self.text.encode() if self._source is None else self._source

    @property
    def address(self) -> str:
        """`collection:path`, which names the document everywhere."""
        return of_document(self.collection, self.path)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the source, in hex."""
        import hashlib

        return hashlib.sha256(self.source).hexdigest()

    @property
    def front_matter(self) -> str:
        """Front matter with its fences; "" if there is none."""
        return self.text[: self.content_start].removeprefix(BOM)

    @cached_property
    def _metadata(self) -> tuple[Mapping[str, Any], str | None]:
        if not self.front_matter:
            return {}, None
        lines = self.markup[: self.content_start].removeprefix(BOM).rstrip().split("\n")
        block = "\n".join(lines[1:-1])
        read = front_matter.read_toml if lines[0].startswith("+++") else front_matter.read_yaml
        return read(block)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The values in front matter; empty if there is none or it cannot be read."""
        return self._metadata[0]

    @cached_property
    def title(self) -> str | None:
        """The title given, or the one in front matter. The tree knows more: `Tree.title`."""
        if self._given_title:
            return as_title(self._given_title)
        title = self.metadata.get("title") or self._keyword_title
        return as_title(title.strip()) or None if isinstance(title, str) else None

    @property
    def _keyword_title(self) -> str:
        """The title that a keyword of an Org file names; "" if there is none."""
        found = _ORG_TITLE.search(self.markup, 0, _KEYWORDS_WITHIN) if self.format == "org" else None
        return found[1] if found else ""

    @property
    def description(self) -> str:
        """The description in front matter, on one line; "" if there is none."""
        said = self.metadata.get("description")
        return " ".join(said.split()) if isinstance(said, str) else ""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other titles, from front matter."""
        return tuple(as_title(name) for name in front_matter.listed(self.metadata.get("aliases")))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags in front matter, without a leading #. In a string, they are apart by commas or spaces."""
        value = self.metadata.get("tags")
        found = value.split() if isinstance(value, str) and "," not in value else front_matter.listed(value)
        return tuple(dict.fromkeys(tag for name in found if (tag := as_title(name).lstrip("#"))))

    @property
    def shown_from(self) -> int:
        """Where the text that is shown begins: after front matter, if its values were read."""
        return self.content_start if self.metadata else 0

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Parts of the source that could not be read as intended."""
        found = []
        if self._raw is not None:
            count = len(_SURROGATE.findall(self._raw))
            are = "byte is" if count == 1 else "bytes are"
            found.append(f"{count:,} {are} not {self.encoding}; shown as \ufffd")
        if problem := self._metadata[1]:
            found.append(f"front matter is kept as text: {problem}")
        return tuple(found)

    @property
    def lines(self) -> int:
        """How many lines the text has."""
        return self.markup.count("\n") + (self.text != "" and not self.markup.endswith("\n"))

    @property
    def is_plain(self) -> bool:
        """Whether character and byte offsets are the same."""
        return self.text.isascii() and self.encoding == "utf-8"

    def bytes_at(self, chars: Sequence[int]) -> list[int]:
        """Byte offsets of ascending character offsets."""
        if self.is_plain:
            return list(chars)
        raw, size = self._raw or self.text, len(self.source)
        offsets, seen, at = [], 0, 0
        for char in chars:
            at += len(raw[seen:char].encode(self.encoding, _ERRORS[self.encoding]))
            seen = char
            offsets.append(min(at, size))  # half a UTF-16 unit at the end is only one byte
        return offsets

    def lines_at(self, chars: Sequence[int]) -> list[int]:
        """Line numbers, from 1, of ascending character offsets."""
        count = self.markup.count
        numbers, seen, line = [], 0, 1
        for char in chars:
            line += count("\n", seen, char)
            seen = char
            numbers.append(line)
        return numbers


class Ruler:
    """Byte offsets and lines of some places in a text, computed together on first use."""

    document: Document

    def places(self) -> Iterable[int]:
        """The places to measure."""
        raise NotImplementedError

    @cached_property
    def _sorted(self) -> list[int]:
        return sorted(set(self.places()))

    @cached_property
    def bytes(self) -> dict[int, int]:
        """The byte offset of each place."""
        return dict(zip(self._sorted, self.document.bytes_at(self._sorted), strict=True))

    @cached_property
    def lines(self) -> dict[int, int]:
        """The line, from 1, that each place is on."""
        return dict(zip(self._sorted, self.document.lines_at(self._sorted), strict=True))


def format_of(path: str, text: str = "") -> str:
    """One of FORMATS, by name, else by content; text without a name is markdown."""
    if not path:
        return "markdown"
    name = path.lower().rpartition("/")[2]
    is_markdown = (
        "." not in name or name.endswith((*_MARKDOWN_ENDINGS, *_CONVERTED_ENDINGS)) or name.startswith("llms")
    )
    if other := next((format for end, format in _OTHER_ENDINGS.items() if name.endswith(end)), None):
        return other
    if is_markdown or (name.endswith(".txt") and _has_headings(text)):
        return "markdown"
    return "rst" if name.endswith(".txt") and _is_rst(text) else "text"


def _has_headings(text: str) -> bool:
    """Whether a text has unmistakable Markdown headings: comments in a script look similar."""
    found = [(len(match[1]), bool(match[2])) for match in _HEADING.finditer(text)]
    deep = any(level > 1 for level, _ in found)
    return len(found) > 1 and (deep or sum(apart for _, apart in found) > 1)


def _is_rst(text: str) -> bool:
    """Whether a text is reStructuredText: it has a directive or a role, and an underlined title."""
    titles = _UNDERLINED.finditer(text) if _EXPLICIT.search(text) else ()
    return any(len(title[1].rstrip()) <= len(title[3]) + 1 for title in titles)


def as_title(text: str) -> str:
    """A title as it is stored and shown: storable, and at most MAX_TITLE characters."""
    if len(text) > MAX_TITLE:
        text = f"{text[: MAX_TITLE - 1].rstrip()}…"
    if text.isascii() and "\0" not in text:
        return text
    return _whole_characters(text).replace("\0", "\ufffd")


def text_of(source: bytes, encoding: str | None = None) -> str:
    """The text of a source, or of a part of one whose encoding is known."""
    return _whole_characters(_decode(source, encoding or encoding_of(source)))


def shown_from(beginning: str) -> int:
    """Where the beginning of a document is shown from: after front matter, unless nothing else is in it."""
    if not beginning.startswith(_FENCES):
        return 0
    start = Document.from_text(beginning).shown_from
    return start if beginning[start:].strip() else 0


def without_front_matter(beginning: str, title: str) -> str:
    """The beginning of a document as it is shown; of one with nothing but front matter, what that says."""
    if start := shown_from(beginning):
        return beginning[start:]
    has_only = beginning.startswith(_FENCES) and (document := Document.from_text(beginning)).metadata
    return (document.description or title) if has_only else beginning


def _front_matter_end(markup: str, start: int, limit: int) -> int:
    """The end of the front matter that opens at `start`; `start` if there is none."""
    opening = _OPENING.match(markup, start)
    if opening is None or (opening[1] == "---" and not _FIRST_KEY.match(markup, opening.end())):
        return start
    closing = _CLOSING[opening[1]].search(markup, opening.end() - 1, start + limit)
    return closing.end() if closing else start


def format_of_type(source_type: str) -> str:
    """The format of a source type. Raises SettingError if there is none."""
    known = {type: format for format, type in SOURCE_TYPES.items()}
    if source_type not in known:
        raise SettingError("source_type", f"there is no {source_type!r}. {nearest(source_type, known)}")
    return known[source_type]


def _known_format(format: str) -> str:
    if format not in FORMATS:
        raise SettingError("format", f"there is no {format!r}. Known: {', '.join(FORMATS)}.")
    return format


def encoding_of(source: bytes) -> str:
    """The encoding that a source's first bytes name."""
    if source.startswith(b"\xff\xfe"):
        return "utf-16-le"
    return "utf-16-be" if source.startswith(b"\xfe\xff") else "utf-8"


def _binary_kind(source: bytes) -> str | None:
    """The kind of a source that begins like a binary file; after a UTF-16 byte order mark, all is text."""
    if encoding_of(source) != "utf-8":
        return None
    start = len(_UTF8_BOM) if source.startswith(_UTF8_BOM) else 0
    return next((kind for sign, kind in _SIGNATURES.items() if source.startswith(sign, start)), None)


def unnamed_kind(source: bytes) -> tuple[str, str] | None:
    """The kind of a source that is converted if its name has one of some endings, and these endings."""
    kind = _binary_kind(source)
    return (kind, _ENDINGS[kind]) if kind in _ENDINGS else None


def _whole_characters(text: str) -> str:
    """The text itself, or with U+FFFD for each lone surrogate."""
    try:
        text.encode()  # much faster than searching for them
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def _decode(source: bytes, encoding: str) -> str:
    """Text with a lone surrogate for each byte (UTF-8) or unit (UTF-16) that is invalid."""
    odd = len(source) % 2 if encoding != "utf-8" else 0
    return source[: len(source) - odd].decode(encoding, _ERRORS[encoding]) + "\udc80" * odd
