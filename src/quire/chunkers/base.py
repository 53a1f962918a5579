"""Cuts to chunks. `text[chunk.start:chunk.end]` is the chunk, always; so are its bytes and lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from quire.address import id_of, of_part
from quire.document import Document, Ruler
from quire.tokens import Counter
from quire.tree import Section, Tree


class Cut(NamedTuple):
    """A span that a strategy chose, the section it belongs to, and text to show before it."""

    start: int
    end: int
    section: Section
    context: str = ""


@dataclass(slots=True, eq=False, repr=False)  # a frozen one takes five times as long to make
class Chunk:
    """A unit of retrieval: a span of the source, and its place. Offsets are characters."""

    index: int
    start: int
    end: int
    section: Section
    part: int  # from 1 if several chunks belong to one section, else 0
    context: str  # for embedding and display: the header of a table that began earlier, or a description
    headings: tuple[str, ...]  # that are in it besides its section's, or have no chunk of their own
    measure: Measure

    def __repr__(self) -> str:
        return f"<Chunk {self.index} {self.address} {self.start}:{self.end}>"

    @property
    def text(self) -> str:
        """The chunk itself."""
        return self.measure.document.text[self.start : self.end]

    @property
    def tokens(self) -> int:
        """Its number of tokens."""
        return self.measure.counter.count(self.measure.document.text, self.start, self.end)

    @property
    def byte_start(self) -> int:
        """Byte offset in the source."""
        return self.measure.bytes[self.start]

    @property
    def byte_end(self) -> int:
        """Byte offset after it."""
        return self.measure.bytes[self.end]

    @property
    def start_line(self) -> int:
        """Its first line, from 1."""
        return self.measure.lines[self.start]

    @property
    def end_line(self) -> int:
        """Its last line."""
        return self.measure.lines[self.end - 1]

    @property
    def address(self) -> str:
        """`collection:path#slug`, with `~2` for the second chunk of a section."""
        return of_part(self.section.address, self.part, is_root=not self.section.slug)

    @property
    def id(self) -> UUID:
        """Derived from the address."""
        return UUID(id_of("document", self.address))

    @property
    def trail(self) -> tuple[str, ...]:
        """Titles from the document's to its section's."""
        return self.section.trail

    @property
    def header_path(self) -> str:
        """`## A > ### B`."""
        return self.section.header_path

    @property
    def breadcrumb(self) -> str:
        """`> Document › Parent › Title`."""
        return self.section.breadcrumb


class Chunker(Protocol):
    """A strategy: pure, and linear in the length of the text."""

    def split(self, tree: Tree, settings: Any, counter: Counter) -> Iterable[Cut]:
        """The cuts, in order of their starts."""
        ...


def pack_spans(start: int, end: int, places: Sequence[int], reach: Callable[[int], int]) -> Iterator[int]:
    """Ends of pieces of `[start, end)`: each goes as far as `reach` allows, and ends at a given place."""
    index = 0
    while index < len(places) and (limit := reach(start)) < end:
        index = max(index + 1, bisect_right(places, limit, index))
        start = places[index - 1]
        yield start
    yield end


class Measure(Ruler):
    """Measure the chunks of one document, all together on first use."""

    def __init__(self, document: Document, cuts: list[Cut], counter: Counter) -> None:
        self.document, self.cuts, self.counter = document, cuts, counter

    def places(self) -> Iterator[int]:
        """Where chunks begin and end, and their last characters."""
        for start, end, _, _ in self.cuts:
            yield from (start, end - 1, end)


def assemble(tree: Tree, cuts: Iterable[Cut], counter: Counter) -> list[Chunk]:
    """Chunks of cuts that are in order of their sections."""
    cuts = list(cuts)
    measure = Measure(tree.document, cuts, counter)
    found = zip(cuts, _parts(cuts), _headings(tree, cuts), strict=True)
    return [
        Chunk(index, start, end, section, part, context, headings, measure)
        for index, ((start, end, section, context), part, headings) in enumerate(found)
    ]


def _headings(tree: Tree, cuts: Sequence[Cut]) -> list[tuple[str, ...]]:
    """For each cut, other titles to find it by: of the headings in it, and of the document for the first.

    A heading in no cut counts for the one after it if there are sections below it, else for the one before.
    """
    found: list[list[str]] = [[] for _ in cuts]
    if cuts:
        found[0] += tree.document.aliases
    starts, own = [cut.start for cut in cuts], {cut.section.heading for cut in cuts}
    kept = {section.heading for section in tree.sections}
    for number, heading in enumerate(tree.headings if cuts else ()):
        if number not in own:
            place = max(0, bisect_right(starts, heading.start) - 1)
            is_before = number in kept and heading.start >= cuts[place].end
            found[min(place + is_before, len(cuts) - 1)].append(tree.names.titles[number])
    return [tuple(filter(None, titles)) for titles in found]


def _parts(cuts: Sequence[Cut]) -> list[int]:
    """The number of each cut in its section; 0 if it is the only one."""
    parts, last = [], None
    for cut in cuts:
        if cut.section is last:
            parts[-1] = parts[-1] or 1
            parts.append(parts[-1] + 1)
        else:
            parts.append(0)
        last = cut.section
    return parts
