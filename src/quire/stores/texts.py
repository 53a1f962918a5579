"""The text of a chunk, and what is derived from it: its words, the text to embed, and its digest.

Input: a stored document, or a chunk that was just cut. The same chunk gives the same output before and
after it is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire import analyze
from quire.document import encoding_of, shown_from, text_of

if TYPE_CHECKING:
    from quire.stores.rows import ChunkRow

ChunkWords = tuple[str, str, str]  # the terms of a chunk's heading, of the headings above it, of its text


class ChunkTexts:
    """The texts of a stored document's chunks. `trails` are those of its sections, by position."""

    def __init__(self, source: bytes, trails: Mapping[int, str]) -> None:
        self._text, self._trails = text_of(source), trails

    def text(self, chunk: ChunkRow) -> str:
        """The text of a chunk."""
        return self._text[chunk.start : chunk.end]

    def words(self, chunk: ChunkRow) -> ChunkWords:
        """The terms of a chunk."""
        return words_of(self._titles(chunk), self.text(chunk), chunk.headings)

    def embedded(self, chunk: ChunkRow) -> str:
        """The text of a chunk that a model embeds."""
        return embedded_text(self._titles(chunk), chunk.context, self.text(chunk), chunk.start)

    def _titles(self, chunk: ChunkRow) -> tuple[str, ...]:
        return titles_of(self._trails[chunk.section])


def titles_of(trail: str) -> tuple[str, ...]:
    """The titles in a stored trail, from the document's to the section's own."""
    return tuple(json.loads(trail))


def words_of(trail: tuple[str, ...], text: str, headings: str = "") -> ChunkWords:
    """The terms of a chunk: of its heading and others in it, of the headings above it, of its text."""
    *above, own = trail
    return (
        " ".join(analyze.terms(f"{own}\n{headings}" if headings else own)),
        " ".join(analyze.terms(" ".join(above))),
        " ".join(analyze.terms(analyze.readable(text))),
    )


def embedded_text(trail: tuple[str, ...], context: str, text: str, start: int) -> str:
    """The text of a chunk that a model embeds: its headings, its context, and what is shown of it."""
    shown = text if start else text[shown_from(text) :]
    return "\n".join(filter(None, (" > ".join(trail), context, shown)))


def digest_of(text: str) -> bytes:
    """A digest of sixteen bytes, by which the vector of a text is found again."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def passage_of(part: bytes, beginning: bytes) -> str:
    """The text of part of a document. The first two bytes of the document tell its encoding."""
    return text_of(part, encoding_of(beginning))
