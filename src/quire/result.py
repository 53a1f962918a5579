"""What a search returns: hits from the store, results from merging, and the trace of how they came about.

And what reading returns, because a result can be read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

from quire.errors import LibraryError


class OnTheWeb(Protocol):
    """Something that may come from a page."""

    @property
    def url(self) -> str | None: ...  # noqa: D102


def link_of(found: OnTheWeb) -> str:
    """The address on the web that leads to a result or a passage; "" if it comes from a file."""
    return found.url or ""


class Hit(NamedTuple):
    """A ranked chunk. A larger score is better. A search makes hundreds, and tuples are fast."""

    chunk: int  # the chunk's row
    document: int  # the document's row
    section: int  # the section's position in its document
    score: float
    match: str = "keyword"  # keyword, semantic or both
    words: float = 0.0  # its share of the best score by words
    meaning: float = 0.0  # its cosine
    covers: float = 0.0  # the share of the query's words that it has, rare ones counting more
    heading: float = 0.0  # how much of its heading the query asks for
    whole: float = 0.0  # the share of the words that its document has beyond what any chunk has
    logit: float = 0.0  # how well it answers, where hits were read again
    added: float = 0.0  # to its score, by its logit

    def scoring(self, score: float) -> Hit:
        """The same hit with another score."""
        place = self.chunk, self.document, self.section
        told = self.words, self.meaning, self.covers, self.heading, self.whole
        return Hit(*place, score, self.match, *told, self.logit, self.added)

    def judged(self, score: float, covers: float, heading: float, whole: float) -> Hit:
        """The same hit with another score, and what it was judged by."""
        place = self.chunk, self.document, self.section
        told = self.words, self.meaning, covers, heading, whole
        return Hit(*place, score, self.match, *told, self.logit, self.added)

    def reread(self, logit: float, added: float) -> Hit:
        """The same hit with its logit, and what that adds to its score."""
        return self._replace(score=self.score + added, logit=logit, added=added)


@dataclass(frozen=True, slots=True)
class Node:
    """A section as merging sees it: where it hangs, and how many sections hang on it."""

    document: int
    position: int
    parent: int  # position of its parent; -1 for the root
    level: int
    children: int
    tokens: int = 0  # of all its text, its subsections' too


@dataclass(frozen=True, slots=True)
class Merged:
    """A section that answers a query, and the hits that it stands for, best first."""

    document: int
    section: int
    score: float
    hits: tuple[Hit, ...]
    merged_from: tuple[int, ...] = ()  # positions of the sections it replaced
    is_run: bool = False  # it is not the section but the chunks of its hits, which are neighbours


@dataclass(frozen=True, slots=True)
class Reading:
    """A passage, exactly as it stands in its source, with its citation."""

    address: str
    breadcrumb: str
    text: str
    start: int
    end: int
    byte_start: int
    byte_end: int
    start_line: int
    end_line: int
    tokens: int
    others: int  # sections of the same name
    stale: bool
    notes: tuple[str, ...]
    verified: bool = True  # the whole document was compared with its checksum


class Origin(Protocol):
    """The library that made a result."""

    def _text_of(self, result: Result) -> str: ...

    def _reading_of(self, result: Result, max_tokens: int | None) -> Reading: ...


class _Bound:
    """What knows its library. That is no field, so it is not compared, printed, copied or stored."""

    __slots__ = ("_origin",)
    _origin: Origin


@dataclass(frozen=True, slots=True)
class Result(_Bound):
    """A section with its citation. Offsets are characters and bytes of the source; lines count from 1."""

    address: str
    collection: str
    kind: str
    path: str
    url: str | None
    title: str
    heading: str | None
    trail: tuple[str, ...]
    breadcrumb: str
    header_path: str
    snippet: str  # plain text
    highlights: tuple[tuple[int, int], ...]  # where its matches are: start and end, in characters
    score: float
    match: str
    start: int
    end: int
    byte_start: int
    byte_end: int
    start_line: int
    end_line: int
    tokens: int  # that reading it takes, about
    parent: str | None  # the address of the next larger place, to read more
    parent_title: str | None
    parent_tokens: int  # that reading that place takes, about
    depth: int
    document_id: str
    chunk_ids: tuple[str, ...]
    merged_from: tuple[str, ...]
    promotion: str
    stale: bool
    verified: bool = False  # whether its document was compared with its checksum, and is what was written
    confidence: float = 0.0  # the chance that it answers, from 0 to 1: a lower bound
    strength: str = "none"  # strong, weak, or none if it has little to do with the query
    tags: tuple[str, ...] = ()  # of its document
    updated_at: int = 0  # milliseconds: when this version of its document was stored
    checksum: str = field(default="", repr=False)  # of its document, as it was found
    explain: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def text(self) -> str:
        """The exact text of the result: the characters from `start` to `end` of its document.

        It is read from the library when it is asked for. Raises NoResults if the document has changed since.
        """
        return self._library._text_of(self)

    def read(self, *, max_tokens: int | None = None) -> Reading:
        """The passage at the result's address, as `Library.read` returns it.

        Raises NoResults if the document has changed since.
        """
        return self._library._reading_of(self, max_tokens)

    @property
    def _library(self) -> Origin:
        try:
            return self._origin
        except AttributeError:
            problem = "this copy of a result has no library. Read it there: library.read(result.address)"
            raise LibraryError(self.address, problem) from None

    def bound_to(self, origin: Origin) -> Self:
        """The same result, which can be read from now on."""
        object.__setattr__(self, "_origin", origin)
        return self
