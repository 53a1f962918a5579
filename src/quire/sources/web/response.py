"""What a server sent: what kind of text it is, and how to read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from urllib.parse import unquote

from quire.errors import Refused
from quire.sources.web.urls import absolute, normalise_url

_PIECE = 1 << 14  # characters


@dataclass(frozen=True, slots=True)
class Response:
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


_PARAMETER = r"\s*+;\s*+([^\s=;,]++)\s*+(?:=\s*+(?:\"([^\"]*+)\"|([^\s;,\"]*+)))?"
_LINK = re.compile(rf"<([^<>]*+)>((?:{_PARAMETER})*+)")


def markdown_links(header: str, base: str) -> tuple[str, ...]:
    """Where a Link header says that the page is to be had as markdown."""
    found = []
    for link in _LINK.finditer(header):
        said = {name.lower(): (a or b).lower() for name, a, b in re.findall(_PARAMETER, link[2])}
        media = said.get("type", "").partition(";")[0].strip()
        if "alternate" in said.get("rel", "").split() and media == "text/markdown":
            with suppress(Refused):
                found.append(normalise_url(absolute(base, link[1])))
    return tuple(found)


def decoded(response: Response) -> str:
    """The whole text."""
    return response.content.decode(response.charset, "replace")


class Decoder:
    """Decodes a response from place to place, forward only: its text is never there as a whole."""

    def __init__(self, response: Response) -> None:
        # newline="" leaves line ends as they are.
        self._rest = TextIOWrapper(BytesIO(response.content), response.charset, "replace", newline="")
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
