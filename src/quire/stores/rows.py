"""What goes into a store and comes out of it, the same for every database."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from uuid import uuid5

from quire import analyze
from quire.chunkers.base import NAMESPACE, Chunk
from quire.tree import Tree

_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")  # no database takes NUL or half a surrogate pair
MAX_CHUNKS = 1 << 20  # of one document: a chunk's row is the document's row times this, plus its index


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document without its text."""

    seq: int
    id: str
    collection: str
    kind: str
    path: str
    url: str | None
    root: str | None
    format: str
    title: str
    checksum: str
    size: int
    mtime_ns: int
    made_by: str
    promotion: str
    chunk_count: int
    created_at: int
    updated_at: int

    @property
    def address(self) -> str:
        """`collection:path`."""
        return f"{self.collection}:{self.path}"

    @property
    def file(self) -> str | None:
        """The file it was read from."""
        if self.root is None or self.url is not None:
            return None
        # Bytes of a name that are not UTF-8 are written \\xNN in a path.
        path = re.sub(r"\\x([0-9a-f]{2})", lambda byte: os.fsdecode(bytes.fromhex(byte[1])), self.path)
        return f"{self.root}/{path}"

    @property
    def is_chunked(self) -> bool:
        """Whether it has more than one chunk."""
        return self.chunk_count > 1


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A section; the first offsets are characters, lines count from 1."""

    document: int
    position: int
    parent: int
    level: int
    children: int
    title: str
    slug: str
    trail: str
    header_path: str
    start: int
    own_end: int
    end: int
    byte_start: int
    byte_own_end: int
    byte_end: int
    start_line: int
    own_end_line: int
    end_line: int
    tokens: int

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles from the document's to its own."""
        return tuple(json.loads(self.trail))


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as a span."""

    id: int
    document: int
    section: int
    part: int
    start: int
    end: int
    byte_start: int
    byte_end: int
    start_line: int
    end_line: int
    tokens: int
    context: str


@dataclass(frozen=True, slots=True)
class Model:
    """A model that made vectors for a library."""

    id: int
    name: str
    dimension: int
    active: bool  # searches use it


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk that a model has no vector for."""

    chunk: int
    document: int
    version: int  # of the document: a vector for another version is of another text
    text: str  # what is to be embedded

    @property
    def digest(self) -> bytes:
        """What a vector is remembered by."""
        return digest_of(self.text)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document ready to be written: everything but its row numbers is known."""

    collection: str
    kind: str
    path: str
    url: str | None
    root: str | None
    format: str
    title: str
    source: bytes
    checksum: str
    size: int
    mtime_ns: int
    made_by: str
    sections: tuple[tuple[int | str, ...], ...]  # SectionRow without the document
    chunks: tuple[tuple[int | str, ...], ...]  # ChunkRow without id and document
    words: tuple[tuple[str, str, str], ...]  # terms of each chunk: title, trail, body
    digests: tuple[bytes, ...]  # of what is embedded of each chunk
    warnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    etag: str | None = None  # what a server said of a page
    last_modified: str | None = None
    promotion: str = ""  # "" leaves it as it is, or standard
    created_at: int = 0  # milliseconds; 0 is now
    updated_at: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", storable(self.title))


def storable(text: str) -> str:
    """A title or a name as every database takes it."""
    return _UNSTORABLE.sub("\ufffd", text)


def row_id(kind: str, address: str) -> str:
    """The id of what has an address. Kinds do not share ids."""
    return str(uuid5(NAMESPACE, address if kind == "document" else f"{kind} {address}"))


def section_rows(tree: Tree, tokens: dict[int, int]) -> tuple[tuple[int | str, ...], ...]:
    """The sections of a tree, in order."""
    names, size = tree.names, len(tree.document.text)
    children = [0] * len(tree.sections)
    for section in tree.sections[1:]:
        children[section.parent.position] += 1  # type: ignore[union-attr]
    last_lines = _last_lines(tree)
    return tuple(
        (
            section.position,
            section.parent.position if section.parent else -1,
            section.level,
            children[section.position],
            storable(section.title),
            section.slug,
            json.dumps([storable(title) for title in section.trail], ensure_ascii=False),
            storable(section.header_path),
            section.start,
            section.own_end,
            section.end,
            names.bytes[section.start],
            names.bytes[section.own_end],
            names.bytes[section.end],
            names.lines[section.start],
            last_lines.get(section.own_end, 1),
            last_lines.get(section.end, 1),
            tokens[section.position],
        )
        for section in tree.sections
        if size or section.position == 0
    )


def _last_lines(tree: Tree) -> dict[int, int]:
    """The line of the last character before each edge."""
    edges = sorted({edge for s in tree.sections for edge in (s.own_end, s.end) if edge})
    return dict(zip(edges, tree.document.lines_at([edge - 1 for edge in edges]), strict=True))


def chunk_rows(chunks: list[Chunk]) -> tuple[tuple[int | str, ...], ...]:
    """Chunks as rows, in order."""
    return tuple(
        (
            chunk.section.position,
            chunk.part,
            chunk.start,
            chunk.end,
            chunk.byte_start,
            chunk.byte_end,
            chunk.start_line,
            chunk.end_line,
            chunk.tokens,
            storable(chunk.context),
        )
        for chunk in chunks
    )


def words_of(trail: tuple[str, ...], text: str) -> tuple[str, str, str]:
    """The terms of a chunk: of its heading, of the headings above it, of its text."""
    *above, own = trail
    return (
        " ".join(analyze.terms(own)),
        " ".join(analyze.terms(" ".join(above))),
        " ".join(analyze.terms(analyze.readable(text))),
    )


def embedded(trail: tuple[str, ...], context: str, text: str) -> str:
    """What a model is given of a chunk: where it stands, what it needs to be read, and its text."""
    return "\n".join(filter(None, (" > ".join(trail), context, text)))


def digest_of(text: str) -> bytes:
    """Sixteen bytes that tell texts apart."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
