"""A sitemap's bytes to its entries: XML, an index of sitemaps, or plain text; each may be gzip.

Nothing is fetched here. Always: a document type is refused, so no entity is ever expanded or loaded; no more
than the given number of bytes is decompressed; no more entries are read than the protocol allows in a file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING

from quire.sources.web.decompress import Decompressor

if TYPE_CHECKING:
    from xml.parsers.expat import XMLParserType

NAME = "sitemap.xml"
MOST = 50_000  # entries of one sitemap, as the protocol says
_GZIP = b"\x1f\x8b"
_PIECE = 1 << 16  # bytes
_LONGEST = 2048  # characters of a URL, as the protocol says
_LINES = re.compile(r"https?://\S+", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?")


class BadSitemap(ValueError):
    """The bytes are no sitemap that Quire reads; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A page or a sitemap that a sitemap lists."""

    url: str  # as written
    modified: datetime | None = None  # `lastmod`, if it can be read


@dataclass(slots=True)
class Sitemap:
    """What one sitemap lists."""

    is_index: bool = False  # the entries are sitemaps
    entries: list[Listed] = field(default_factory=list)
    is_cut: bool = False  # it lists more
    size: int = 0  # bytes, decompressed


def read_sitemap(content: bytes, max_bytes: int) -> Sitemap:
    """The entries of a sitemap. Raises BadSitemap."""
    found = Sitemap()
    for entry in _entries(_unpacked(content, max_bytes, found), found):
        if len(found.entries) == MOST:
            found.is_cut = True
            break
        found.entries.append(entry)
    return found


def _unpacked(content: bytes, max_bytes: int, found: Sitemap) -> Iterator[bytes]:
    """The content in pieces, decompressed if it is gzip. Raises BadSitemap over `max_bytes`."""
    decompressor = Decompressor("gzip" if content.startswith(_GZIP) else "")
    try:
        for at in range(0, len(content), _PIECE):
            for piece in decompressor.feed(content[at : at + _PIECE]):
                found.size += len(piece)
                if found.size > max_bytes:
                    raise BadSitemap(f"is over web.max_bytes = {max_bytes:,} with the sitemaps before it")
                yield piece
    except zlib.error as problem:
        raise BadSitemap(f"is not valid gzip: {problem}") from None
    if not decompressor.is_whole:
        raise BadSitemap("ends in the middle")


def _entries(pieces: Iterator[bytes], found: Sitemap) -> Iterator[Listed]:
    first = next(pieces, b"")
    if first.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        yield from _xml(first, pieces, found)
    else:
        yield from _lines(first, pieces)


def _lines(first: bytes, pieces: Iterator[bytes]) -> Iterator[Listed]:
    """The URLs of a plain-text sitemap, one in a line."""
    whole = BytesIO(first + b"".join(pieces))
    for line in whole:
        text = line[: _LONGEST + 1].decode("utf-8-sig", "replace").strip()
        if len(text) <= _LONGEST and _LINES.fullmatch(text):
            yield Listed(text)


# ------------------------------------------------------------------------------------------- XML


def _xml(first: bytes, pieces: Iterator[bytes], found: Sitemap) -> Iterator[Listed]:
    from xml.parsers.expat import ExpatError

    reader = _Reader()
    try:
        for piece in chain((first,), pieces):
            reader.parser.Parse(piece)
            found.is_index = reader.is_index
            yield from reader.take()
        reader.parser.Parse(b"", True)
    except ExpatError as problem:
        raise BadSitemap(f"is not valid XML: {problem}") from None
    yield from reader.take()


class _Reader:
    """Collects `loc` and `lastmod` of each `url` or `sitemap` element as the parser passes them."""

    def __init__(self) -> None:
        from xml.parsers import expat

        self.parser: XMLParserType = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = _refuse
        self.is_index = False
        self._depth = 0
        self._field = ""
        self._values: dict[str, str] = {}
        self._found: list[Listed] = []

    def take(self) -> list[Listed]:
        """The entries since the last call."""
        found, self._found = self._found, []
        return found

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._depth += 1
        tag = name.rpartition(" ")[2].lower()
        if self._depth == 1:
            if tag not in ("urlset", "sitemapindex"):
                raise BadSitemap(f"is no sitemap: it begins with <{tag[:40]}>")
            self.is_index = tag == "sitemapindex"
        elif self._depth == 2:
            self._values = {}
        elif self._depth == 3:  # loc of an image or a video is deeper
            self._field = tag if tag in ("loc", "lastmod") and tag not in self._values else ""

    def _text(self, text: str) -> None:
        if self._field and self._depth == 3:
            known = self._values.get(self._field, "")
            self._values[self._field] = known + text[: _LONGEST + 1 - len(known)]

    def _end(self, _: str) -> None:
        self._depth -= 1
        if self._depth == 2:
            self._field = ""
        elif self._depth == 1:
            url = self._values.pop("loc", "").strip()
            if url and len(url) <= _LONGEST:
                self._found.append(Listed(url, time_of(self._values.get("lastmod", ""))))
            self._values = {}


def _refuse(*_: object) -> None:
    raise BadSitemap("has a document type, which can define entities; no sitemap needs one")


def time_of(text: str) -> datetime | None:
    """A `lastmod`, in UTC if it names no zone; None if it is no W3C date."""
    if not (found := _TIME.fullmatch(text.strip())):
        return None
    try:
        if len(found[0]) == len("2026-01-01"):
            day = date.fromisoformat(found[0])
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        time = datetime.fromisoformat(found[0])
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
