"""The rows that go into a store and come out of it, the same for every database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from quire import later
from quire.address import of_document
from quire.document import SOURCE_TYPES
from quire.embed.base import STATIC
from quire.links import WrittenLink
from quire.location import Places
from quire.sources.entries import Version as Version
from quire.sources.names import REPOSITORY
from quire.sources.paths import unprintable
from quire.stores import texts

if TYPE_CHECKING:
    from quire.chunkers.base import Chunk
    from quire.tree import Section, Tree

CHUNK_BITS = 20  # the row of a chunk is its document's row, shifted by these, plus its index
MAX_CHUNKS = 1 << CHUNK_BITS  # of one document
_UNSTORABLE = later.pattern(r"[\x00\ud800-\udfff]")  # no database takes NUL or half a surrogate pair


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
    size: int  # of the file, in bytes
    length: int  # of the text, in bytes: another one if it was converted
    mtime_ns: int
    made_by: str
    promotion: str
    chunk_count: int
    created_at: int
    updated_at: int

    @property
    def address(self) -> str:
        """`collection:path`."""
        return of_document(self.collection, self.path)

    @property
    def file(self) -> str | None:
        """The file it was read from."""
        if self.root is None or self.url is not None or self.root.startswith(REPOSITORY):
            return None
        return unprintable(f"{self.root}/{self.path}")

    @property
    def source_type(self) -> str:
        """The type of its source: url for a page, else md, rst or txt."""
        return "url" if self.url is not None else SOURCE_TYPES[self.format]

    @property
    def is_chunked(self) -> bool:
        """Whether it has more than one chunk."""
        return self.chunk_count > 1


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How to read a source. Patterns are as in .gitignore."""

    include: tuple[str, ...] = ()  # take only these, whatever their ending; () is every kind that is read
    exclude: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # paths of documents that were removed one by one
    keep: bool = False  # documents stay when their files are gone
    project: str = ""  # the folder of the quire.toml that narrows it further, wherever one works
    only: tuple[str, ...] = ()  # what that includes
    never: tuple[str, ...] = ()  # what that excludes
    commit: str = ""  # of a repository, that its documents are of

    @classmethod
    @lru_cache(maxsize=256)  # most sources have the same
    def from_json(cls, text: str) -> SourceOptions:
        """The options that `to_json` wrote."""
        read: dict[str, Any] = json.loads(text)
        options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in read.items()}
        return cls(**options)

    def to_json(self) -> str:
        """The options that are not the default."""
        return json.dumps({name: value for name, value in asdict(self).items() if value})


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source that a person added. Times are in milliseconds."""

    type: str  # file, folder, repository, page, site or text
    place: str  # an absolute path, a URL, or the path of a text
    root: str | None  # the folder or URL that its documents' paths start from; None for a text
    collection: str
    kind: str
    options: SourceOptions = SourceOptions()
    added_at: int = 0
    checked_at: int = 0
    problem: str = ""  # what was wrong when it was last read
    documents: int = 0  # that it holds

    @property
    def seq(self) -> int:
        """Its number: the same for the same source, in any process, on either database."""
        told = "\0".join((self.type, self.collection, self.kind, self.place))
        return int.from_bytes(hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=8).digest()) >> 1

    @property
    def name(self) -> str:
        """What people call it: its place, or the address of a text."""
        return of_document(self.collection, self.place) if self.type == "text" else self.place


def source_values(row: SourceRow) -> tuple[int | str | None, ...]:
    """A source as a row of its table."""
    about = (row.seq, row.type, storable(row.place), row.root, row.collection, row.kind)
    return (*about, row.options.to_json(), row.added_at, row.checked_at, storable(row.problem))


def source_row(values: Sequence[Any]) -> SourceRow:
    """The source in a row of its table."""
    _, type, place, root, collection, kind, options, *rest = values
    return SourceRow(type, place, root, collection, kind, SourceOptions.from_json(options), *rest)


class Member(NamedTuple):  # a tuple, because a folder has one for each of its files
    """A document that a source holds."""

    document: int
    source: int
    seen: int  # ctime of the file when it was read, in nanoseconds; below 0 if it may have changed since


@dataclass(frozen=True, slots=True)
class Sighting:
    """A file as it was seen, whose document is stored already."""

    document: int
    size: int
    mtime_ns: int
    seen: int
    path: str = ""  # its new path, if it was renamed
    checksum: str = ""  # of the version that was seen; "" is any


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
        return texts.titles_of(self.trail)


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
    headings: str  # in it besides its section's, one on a line


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A link: see `quire.links.WrittenLink`."""

    document: int
    number: int
    section: int
    start: int
    line: int
    form: str
    target: str
    fragment: str
    text: str
    anchor: str
    key: str


class NamedDocument(NamedTuple):
    """A document that has a name."""

    name: str
    document: int
    collection: str
    kind: str
    path: str
    url: str | None
    is_alias: int  # 1 if it is another name, from front matter


@dataclass(frozen=True, slots=True)
class Model:
    """A model that made vectors for a library."""

    id: int
    name: str
    dimension: int
    active: bool  # of its sort, searches use this one

    @property
    def is_instant(self) -> bool:
        """Whether its vectors are written with the words; the other sort takes its time."""
        return self.name.startswith(STATIC)

    def order(self) -> tuple[bool, bool, int]:
        """What sorts models: active ones first, and the instant one last of them."""
        return not self.active, self.is_instant, self.id


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk that a model has no vector for."""

    chunk: int
    document: int
    version: int  # of the document: a vector for another version is of another text
    text: str  # the text to embed

    @property
    def digest(self) -> bytes:
        """The digest by which the vector of the text is cached."""
        return texts.digest_of(self.text)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document ready to write: only its row numbers are still unknown."""

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
    sections: Sequence[tuple[int | str, ...]]  # SectionRow without the document
    chunks: Sequence[tuple[int | str, ...]]  # ChunkRow without id and document
    words: Sequence[tuple[str, str, str]]  # terms of each chunk: title, trail, body
    digests: Sequence[bytes]  # of what is embedded of each chunk
    instant: bytes = b""  # the static vectors of the chunks, packed; empty if none are wanted
    warnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    links: Sequence[tuple[int | str, ...]] = ()  # LinkRow without the document
    fields: tuple[tuple[str | float | None, ...], ...] = ()  # name, value, number and date of each
    etag: str | None = None  # of a page
    last_modified: str | None = None
    original: str = ""  # SHA-256 of what it was converted from; "" if its source is the original
    places: Places | None = None  # where its parts are in the original
    promotion: str = ""  # "" keeps the stored one, or standard
    created_at: int = 0  # milliseconds; 0 is now
    updated_at: int = 0
    seen: int = 0  # see Member
    versions: tuple[Version, ...] | None = None  # earlier texts; None keeps those that are stored
    keeps_replaced: bool = False  # whether a text that it replaces becomes an earlier one

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", storable(self.title))


def active_model(models: Iterable[Model], *, instant: bool = False) -> Model | None:
    """The active model of a sort."""
    return next((model for model in models if model.active and model.is_instant == instant), None)


def link_of(row: LinkRow) -> WrittenLink:
    """A stored link, as it was written."""
    return WrittenLink(*astuple(row)[1:])


def storable(text: str) -> str:
    """A title or a name that every database can store."""
    return _UNSTORABLE.sub("\ufffd", text)


def section_rows(tree: Tree, tokens: Callable[[Section], int]) -> Iterator[tuple[int | str, ...]]:
    """The sections of a tree, in order."""
    names, size = tree.names, len(tree.document.text)
    children = [0] * len(tree.sections)
    for section in tree.sections[1:]:
        children[section.parent.position] += 1  # type: ignore[union-attr]
    last_lines = _last_lines(tree)
    return (
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
            tokens(section),
        )
        for section in tree.sections
        if size or section.position == 0
    )


def _last_lines(tree: Tree) -> dict[int, int]:
    """The line of the last character before each edge."""
    edges = sorted({edge for s in tree.sections for edge in (s.own_end, s.end) if edge})
    return dict(zip(edges, tree.document.lines_at([edge - 1 for edge in edges]), strict=True))


def chunk_rows(chunks: list[Chunk]) -> Iterator[tuple[int | str, ...]]:
    """Chunks as rows, in order."""
    return (
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
            storable("\n".join(chunk.headings)),
        )
        for chunk in chunks
    )
