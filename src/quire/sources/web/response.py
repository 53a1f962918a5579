"""The type and encoding of a response, and its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import PurePosixPath
from urllib.parse import unquote

from quire.errors import NotText, Refused
from quire.readers import CONVERTED
from quire.sources.web.urls import absolute, normalise_url

_PIECE = 1 << 14  # characters


@dataclass(frozen=True, slots=True)
class Response:
    """The response for a URL. With status 304 it has no content, and its kind means nothing."""

    url: str  # as asked, normalised
    final_url: str  # after redirects
    status: int  # 200, or 304 for an unchanged page
    content: bytes
    kind: str  # "markdown", "html" or "text"; "data" for a download; of a file its ending, such as ".pdf"
    charset: str  # content.decode(charset, "replace") is the text
    warning: str  # about its charset: it was guessed, or another is declared; empty if there is none
    etag: str | None
    last_modified: str | None
    links: tuple[str, ...]  # the same page as markdown, by its Link headers

    @property
    def is_file(self) -> bool:
        """Whether it is a file that a reader converts: it has no text and no links before that."""
        return self.kind.startswith(".")


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


_OFFICE = "application/vnd.openxmlformats-officedocument"
_FILES = {
    "application/pdf": ".pdf",
    f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.presentationml.presentation": ".pptx",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/epub+zip": ".epub",
    "application/rtf": ".rtf",
    "text/rtf": ".rtf",
    "application/x-ipynb+json": ".ipynb",
}
_STARTS = {b"%PDF-": ".pdf", b"{\\rtf": ".rtf"}  # the first bytes of files that nothing else begins with


def file_ending(media: str, path: str, content: bytes = b"") -> str:
    """The ending of a file that a reader converts; "" for a page.

    Its type tells it, else its name, else its first bytes: many servers give a download neither.
    """
    if media in (*_HTML_MEDIA, *_MARKDOWN_MEDIA):
        return ""
    ending = PurePosixPath(unquote(path.partition("?")[0])).suffix.lower()
    return _FILES.get(media, "") or (ending if ending in CONVERTED else _ending_by_start(content))


def _ending_by_start(content: bytes) -> str:
    return next((ending for start, ending in _STARTS.items() if content.startswith(start)), "")


def media_of(fields: Mapping[str, str]) -> str:
    """The media type in a Content-Type header."""
    return re.split("[;,]", fields.get("content-type", ""))[0].strip().lower()


def kind_of(head: str, media: str, path: str) -> str:
    """markdown, html or text: by its beginning, its type, its name."""
    name = unquote(path.partition("?")[0])
    if _HTML.match(head) or media in _HTML_MEDIA:
        return "html"
    if media in _MARKDOWN_MEDIA or _MARKDOWN_PATH.fullmatch(name):
        return "markdown"
    return "html" if media != "text/plain" and _HTML_PATH.fullmatch(name) else "text"


_PARAMETER = r"\s*+;\s*+([^\s=;,]++)\s*+(?:=\s*+(?:\"([^\"]*+)\"|([^\s;,\"]*+)))?"
_LINK = re.compile(rf"<([^<>]*+)>((?:{_PARAMETER})*+)")


def markdown_links(header: str, base: str) -> tuple[str, ...]:
    """The URLs of the page as markdown, by its Link header."""
    found = []
    for link in _LINK.finditer(header):
        said = {name.lower(): (a or b).lower() for name, a, b in re.findall(_PARAMETER, link[2])}
        media = said.get("type", "").partition(";")[0].strip()
        if "alternate" in said.get("rel", "").split() and media == "text/markdown":
            with suppress(Refused):
                found.append(normalise_url(absolute(base, link[1])))
    return tuple(found)


def decoded(response: Response) -> str:
    """The whole text. Raises NotText for a file, which must be converted first."""
    _check_text(response)
    return response.content.decode(response.charset, "replace")


def _check_text(response: Response) -> None:
    if response.is_file:
        raise NotText(response.url, f"is a {response.kind} file, not text")


class Decoder:
    """Decode a response piece by piece, forward only. The whole text is never in memory.

    Raises NotText for a file.
    """

    def __init__(self, response: Response) -> None:
        _check_text(response)
        # newline="" keeps line ends unchanged.
        self._rest = TextIOWrapper(BytesIO(response.content), response.charset, "replace", newline="")
        self._at = 0

    def __call__(self, start: int, end: int) -> str:
        """The text between two places. The first must not be before the end of the last read."""
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
