"""What a server sent, told apart: what kind of text it is, and how to read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Page:
    """What a server sent for a URL. With status 304 there is no content, and its kind says nothing."""

    url: str  # as asked, normalised
    final_url: str  # after redirects
    status: int  # 200, or 304 for a page that is as it was
    content: bytes
    kind: str  # "markdown", "html" or "text"
    charset: str  # content.decode(charset, "replace") is the text
    guessed: bool  # nobody said what the charset is, and it is not UTF-8
    etag: str | None
    last_modified: str | None
    links: tuple[str, ...]  # the same page as markdown, by its Link headers


_HTML_MEDIA = ("text/html", "application/xhtml+xml")
_MARKDOWN_MEDIA = ("text/markdown", "text/x-markdown")
BINARY = re.compile(r"(?:image|audio|video|font)/|application/(?:pdf|wasm|msword|x-tar|vnd\.|.*zip)")
DATA = re.compile(r".*[/+](?:json|xml)")
_HTML = re.compile(
    r"(?:\s|<!--.*?-->|<\?xml.*?\?>)*+<(?:!doctype\s+html|html|head|body)(?=[\s/>])",
    re.IGNORECASE | re.DOTALL,
)
_MARKDOWN_PATH = re.compile(r".*(?:\.md|\.markdown|\.mdx|/llms[^/]*\.txt)", re.IGNORECASE | re.DOTALL)
_HTML_PATH = re.compile(r".*\.x?html?", re.IGNORECASE | re.DOTALL)


def media_of(fields: Mapping[str, str]) -> str:
    """The type of a content, as its header says."""
    return re.split("[;,]", fields.get("content-type", ""))[0].strip().lower()


def kind_of(head: str, media: str, path: str) -> str:
    """markdown, html or text: by how it begins, by its type, by its name."""
    name = unquote(path.partition("?")[0])
    if _HTML.match(head) or media in _HTML_MEDIA:
        return "html"
    if media in _MARKDOWN_MEDIA or _MARKDOWN_PATH.fullmatch(name):
        return "markdown"
    return "html" if media != "text/plain" and _HTML_PATH.fullmatch(name) else "text"


_PIECE = 1 << 14
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,>]+)", re.IGNORECASE)
_META = re.compile(r"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([^\s\"';,/>]+)", re.IGNORECASE)
# What browsers read under these names, since pages that bear them mean it (the Encoding standard).
_MEANT = {
    "ascii": "windows-1252",
    "cp1252": "windows-1252",
    "iso8859-1": "windows-1252",
    "gb2312": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
# Python's own, which no page is written in.
_NOT_CHARSETS = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7", "mbcs", "oem")


def declared_charset(content: bytes, fields: Mapping[str, str]) -> str | None:
    """The charset by byte order mark or header."""
    for mark, charset in _BOMS:
        if content.startswith(mark):
            return charset
    said = _CHARSET.search(fields.get("content-type", ""))
    return _known(said[1]) if said else None


def likely_charset(content: bytes, kind: str) -> tuple[str, bool]:
    """The charset by <meta>, else UTF-8 if it fits, else a guess; and whether it is a guess."""
    said = _META.search(content[:1024].decode("latin-1")) if kind == "html" else None
    known = _known(said[1]) if said else None
    if known and not known.startswith("utf-16"):  # one that could be read to here is not in UTF-16
        return known, False
    return ("utf-8", False) if _is_utf8(content) else ("windows-1252", True)


def _is_utf8(content: bytes) -> bool:
    """Whether bytes are UTF-8, told piece by piece: as text they can take four times the memory."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _PIECE):
            decoder.decode(content[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


class Reading:
    """The text of a page, read from place to place, forward only: it is never there as a whole."""

    def __init__(self, page: Page) -> None:
        # newline="" leaves line ends as they are.
        self._rest = TextIOWrapper(BytesIO(page.content), page.charset, "replace", newline="")
        self._at = 0

    def __call__(self, start: int, end: int) -> str:
        """The text between two places, of which the first is not before the last that was read."""
        while self._at < start and self._next(min(start - self._at, _PIECE)):
            pass
        return self._next(end - start)

    def pieces(self) -> Iterator[str]:
        """The rest of the text."""
        while piece := self._next(_PIECE):
            yield piece

    def _next(self, size: int) -> str:
        found = self._rest.read(size)
        self._at += len(found)
        return found


def _known(name: str) -> str | None:
    """The charset that a page means by a name; None if there is none."""
    import codecs

    try:
        found = codecs.lookup(name).name
        b"a".decode(found, "replace")  # refuses base64 and other codecs that give no text
    except (LookupError, ValueError):
        return None
    return None if found in _NOT_CHARSETS else _MEANT.get(found, found)
