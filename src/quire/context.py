"""Results to a pack of passages within a token budget, each with its citation.

Input: documents as trees: the critical ones, and those with matches, best first. Output: passages, grouped
by document and in its order. Always: a passage is an exact span of its source; no byte is in two of them;
`markdown(passages)` is within the budget; the same input gives the same pack.

    critical documents   whole; if one does not fit, its best sections or its beginning
    matches, best first  the section; if it does not fit, the chunks that match
    parents              the text that opens the document, and the one that opens the section above
    neighbours           the text around the chunks of sections that did not fit
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from quire import later, sentences
from quire.config import ContextSettings
from quire.errors import SettingError, nearest
from quire.location import Places, link_to
from quire.plural import counted
from quire.tokens import Counter

if TYPE_CHECKING:
    from quire.tree import Section, Tree

INCLUDES = ("sections", "chunks", "documents")
REASONS = ("critical", "match", "parent", "neighbour")  # a passage with several reasons has the first of them
NO_GOOD_MATCH = "No good match. Nearest:"
_NEAREST = 2  # matches to pack if none is good
_PARENTS = 0.15  # share of the budget: opening texts must not crowd out matches
_CUT = 0.5  # share of the rest: a critical document that does not fit leaves room for the answer
_LEAST = 16  # tokens: a shorter beginning says nothing
_LARGEST = 999  # the passage number used for measuring
_BLANK_LINES = later.pattern(r"(?:[^\S\n]*\n)*")
# Characters that could move a cursor, change a terminal, reverse text or hide in it: control characters,
# line separators, zero-width and bidirectional ones, tags, and those that XML or UTF-8 cannot hold.
_UNSAFE = later.pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufffe\uffff\U000e0000-\U000e0fff]"
)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A document that passages are taken from. One document is one Source."""

    tree: Tree
    url: str | None = None
    promotion: str = "standard"
    places: Places | None = None  # where parts of it are in the original

    @property
    def address(self) -> str:
        """`collection:path`."""
        return self.tree.document.address

    @property
    def text(self) -> str:
        """All of it."""
        return self.tree.document.text


@dataclass(frozen=True, slots=True)
class Match:
    """A span that answers, and the chunks in it that match, best first. Offsets are characters."""

    source: Source
    address: str
    start: int
    end: int
    hits: tuple[tuple[int, int], ...]
    score: float
    strength: str = "none"


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a source, exactly as it stands, with its citation; lines count from 1."""

    number: int
    address: str
    breadcrumb: str
    path: str
    url: str | None
    text: str
    start: int
    end: int
    byte_start: int
    byte_end: int
    start_line: int
    end_line: int
    tokens: int  # of the text alone
    promotion: str
    reason: str  # critical, match or parent; neighbours join the passage beside them
    verified: bool = True  # the whole document was compared with its checksum
    strength: str = "none"  # of the best match in it: strong, weak or none
    location: str | None = None  # where it is in the original, such as `page 12`; None if lines say it
    link: str | None = None  # of a page on the web: opens it there


@dataclass(frozen=True, slots=True)
class Context:
    """The passages worth reading before answering a query."""

    query: str
    tokens: int  # of the passages as Markdown, with their citations
    max_tokens: int
    passages: tuple[Passage, ...]
    left_out: tuple[str, ...]  # addresses of what did not fit
    notes: tuple[str, ...]
    good_match: bool = True  # False if no passage has to do with the query


def pack(
    query: str,
    critical: Iterable[Source],
    matches: Sequence[Match],
    settings: ContextSettings,
    counter: Counter,
    *,
    include: str = "sections",
    notes: Iterable[str] = (),
    good_match: bool = True,
) -> Context:
    """The passages for a query, within `settings.max_tokens`.

    Matches that score less than `settings.threshold` of the best are skipped. `include` is sections,
    chunks (those that match and nothing else) or documents (whole, where they fit). If there is no good
    match, the pack begins with that, and has only the nearest chunks.
    """
    if not good_match:
        matches, include = [replace(match, hits=match.hits[:1]) for match in matches[:_NEAREST]], "chunks"
    if include not in INCLUDES:
        raise SettingError("include", f"there is no {include!r}. {nearest(include, INCLUDES)}")
    floor = settings.threshold * max((match.score for match in matches), default=0.0)
    wanted = [match for match in matches if match.score >= floor]
    room = settings.max_tokens - (0 if good_match else _count(counter, NO_GOOD_MATCH))
    packing = _Packing(counter, max(0, room), wanted)
    for source in critical:
        packing.add_critical(source)
    for match in wanted:
        packing.add_match(match, include)
    for match in wanted if include == "sections" else ():
        packing.add_neighbours(match)
    passages = packing.finish()
    tokens = _count(counter, markdown(passages, good_match))
    said, left = (*notes, *packing.notes), tuple(packing.left_out)
    return Context(query, tokens, settings.max_tokens, passages, left, said, good_match)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A span that is or could be in the pack; `name` is what it was added for."""

    source: Source
    start: int
    end: int
    reason: str
    name: str = ""


class _Cited(NamedTuple):
    """The fields of a passage that are shown."""

    address: str
    breadcrumb: str
    start_line: int
    end_line: int
    text: str
    location: str | None = None


class _Packing:
    """A pack being built. Its pieces fit, as far as the sum of the passages can tell."""

    def __init__(self, counter: Counter, budget: int, matches: Sequence[Match]) -> None:
        self.counter, self.budget, self.matches = counter, budget, matches
        self.pieces: list[_Piece] = []
        self.left_out: list[str] = []
        self.notes: list[str] = []
        self._needed: int | None = None  # tokens for the smallest piece that did not fit
        self._for_parents = int(_PARENTS * budget)
        self._costs: dict[tuple[Source, int, int], int] = {}
        self._names = {(match.source, match.start, match.end): match.address for match in matches}

    # -------------------------------------------------------------------------------- measuring

    def _cost(self, *more: _Piece) -> int:
        """The tokens of all pieces in the pack and some more, each passage counted alone."""
        return sum(self._cost_of(piece) for piece in _joined([*self.pieces, *more]))

    def _cost_of(self, piece: _Piece) -> int:
        key = piece.source, piece.start, piece.end
        if key not in self._costs:
            self._costs[key] = _count(self.counter, _block(_LARGEST, self._cited(piece)))
        return self._costs[key]

    def _take(self, piece: _Piece, budget: int) -> bool:
        """Add a piece if everything then fits. A piece without text needs no room."""
        if not piece.source.tree.has_text(piece.start, piece.end):
            return True
        reach = self.counter.reach(piece.source.text, piece.start, piece.end, budget)
        if reach < piece.end or self._cost(piece) > budget:  # a piece that is too long is not counted whole
            return False
        self.pieces.append(piece)
        return True

    def _furthest(self, places: Sequence[int], to: Callable[[int], _Piece], budget: int) -> int | None:
        """The last place up to which a piece still fits; pieces grow from place to place."""
        over = bisect_left(places, True, key=lambda place: self._cost(to(place)) > budget)
        return places[over - 1] if over else None

    def _covers(self, source: Source, start: int, end: int) -> bool:
        mine = _joined(piece for piece in self.pieces if piece.source is source)
        return any(piece.start <= start and end <= piece.end for piece in mine)

    # ------------------------------------------------------------------------------------ taking

    def add_critical(self, source: Source) -> None:
        """Add a whole document; if it does not fit, its best sections, else its beginning."""
        size, spent = len(source.text), self._cost()
        whole = _Piece(source, 0, size, "critical", source.address)
        if self._take(whole, self.budget):
            return
        budget = spent + int(_CUT * (self.budget - spent))
        best = [match for match in self.matches if match.source is source]
        took = [self._take(replace(_section(match), reason="critical"), budget) for match in best]
        if any(took) or self._take_beginning(whole, budget):
            tokens = self.counter.count(source.text, 0, size)
            self.notes.append(
                f"{source.address} is critical and has {counted(tokens, 'token')}: only a part of it is here."
            )
        else:
            self._leave_out(whole)

    def add_match(self, match: Match, include: str) -> None:
        """Add the document, section or chunks of a match: the largest that `include` allows and that fits."""
        chunks = [_Piece(match.source, *hit, "match", match.address) for hit in match.hits]
        if include == "documents" and self._take(_whole(match), self.budget):
            return
        took = include != "chunks" and self._take(_section(match), self.budget)
        if not took:
            took = sum(self._take_chunk(chunk, include) for chunk in chunks) > 0
        if not took and not any(piece.reason == "match" for piece in self.pieces):
            took = self._take_beginning(chunks[0], self.budget)
        if not took:
            self._leave_out(min(chunks, key=self._cost_of))
        elif include == "sections":
            self._add_parents(match)

    def _take_chunk(self, chunk: _Piece, include: str) -> bool:
        """Add a chunk with the rest of its section, or alone."""
        start, end = _around(chunk.source, chunk.start, chunk.end)
        section = replace(chunk, start=start, end=end)
        return (include != "chunks" and self._take(section, self.budget)) or self._take(chunk, self.budget)

    def _add_parents(self, match: Match) -> None:
        """Add the texts that open the document and the section above, within their share of the budget."""
        for start, end in _openings(match):
            piece = _Piece(match.source, start, end, "parent")
            before, after = self._cost(), self._cost(piece)
            if after - before <= self._for_parents and self._take(piece, self.budget):
                self._for_parents -= after - before

    def add_neighbours(self, match: Match) -> None:
        """Add as many blocks on both sides of the best chunk as fit, within its section."""
        source, (start, end) = match.source, match.hits[0]
        low, high = _around(source, start, end)
        if not self._covers(source, start, end) or self._covers(source, low, high):
            return
        edges = [low, *source.tree.breaks(low, high), high]
        left, right = bisect_right(edges, start) - 1, bisect_left(edges, end)

        def grown(steps: int) -> _Piece:
            span = edges[max(0, left - steps)], edges[min(len(edges) - 1, right + steps)]
            return _Piece(source, *span, "neighbour")

        steps = self._furthest(range(len(edges)), grown, self.budget)
        if steps is not None:
            self._take(grown(steps), self.budget)

    def _take_beginning(self, piece: _Piece, budget: int) -> bool:
        """Add as much of the beginning of a piece as fits: to the end of a block, else of a word."""
        text, start = piece.source.text, piece.start

        def to(end: int) -> _Piece:
            return replace(piece, end=end)

        reach = self.counter.reach(text, start, piece.end, budget)
        breaks = piece.source.tree.breaks(start, piece.end)
        end = self._furthest(breaks[: bisect_right(breaks, reach)], to, budget)
        if end is None or self._is_scant(to(end)):
            end = self._furthest(range(start + 1, reach + 1), to, budget) or start
            end = sentences.word_edge(text, start, end) if end > start else start
        if self._is_scant(to(end)) or not self._take(to(end), budget):
            return False
        if piece.reason == "match":
            tokens = self.counter.count(text, start, piece.end)
            self.notes.append(f"{piece.name} has {counted(tokens, 'token')}: only its beginning is here.")
        return True

    def _is_scant(self, piece: _Piece) -> bool:
        text = piece.source.text
        return self.counter.count(text, *_without_blank_edges(text, piece.start, piece.end)) < _LEAST

    def _leave_out(self, piece: _Piece) -> None:
        if piece.name not in self.left_out:
            self.left_out.append(piece.name)
        cost = self._cost_of(piece)
        self._needed = cost if self._needed is None else min(self._needed, cost)

    # --------------------------------------------------------------------------------- finishing

    def finish(self) -> tuple[Passage, ...]:
        """The passages, and a note of what is missing.

        Passages that fit one by one may exceed the budget together, because tokens may join differently
        where they meet. Then the pieces added last are dropped.
        """
        while _count(self.counter, markdown(passages := self._passages())) > self.budget:
            gone = self.pieces.pop()
            if gone.name:
                self._leave_out(gone)
        if self.left_out and not passages:
            least = f"the least of what was found needs {self._needed:,}"
            self.notes.append(f"Nothing fits in {counted(self.budget, 'token')}: {least}. Raise max_tokens.")
        elif self.left_out:
            number, first = len(self.left_out), self.left_out[0]
            what = f"{first} did" if number == 1 else f"{number:,} matches, {first} the first of them, did"
            self.notes.append(
                f"{what} not fit in {counted(self.budget, 'token')}. Raise max_tokens for more."
            )
        return passages

    def _passages(self) -> tuple[Passage, ...]:
        return tuple(self._passage(piece, number) for number, piece in enumerate(_joined(self.pieces), 1))

    def _passage(self, piece: _Piece, number: int) -> Passage:
        source, cited = piece.source, self._cited(piece)
        start, end = _without_blank_edges(source.text, piece.start, piece.end)
        byte_start, byte_end = source.tree.document.bytes_at([start, end])
        return Passage(
            number=number,
            **cited._asdict(),
            path=source.tree.document.path,
            url=source.url,
            start=start,
            end=end,
            byte_start=byte_start,
            byte_end=byte_end,
            tokens=self.counter.count(source.text, start, end),
            promotion=source.promotion,
            link=link_to(source.places, start, source.url, None),
            reason=piece.reason,
            strength=self._strength(piece),
        )

    def _strength(self, piece: _Piece) -> str:
        """That of the best match in a piece."""
        near = [match for match in self.matches if match.source is piece.source]
        found = {match.strength for match in near if match.start < piece.end and piece.start < match.end}
        return next((strength for strength in ("strong", "weak") if strength in found), "none")

    def _cited(self, piece: _Piece) -> _Cited:
        source = piece.source
        start, end = _without_blank_edges(source.text, piece.start, piece.end)
        first, last = source.tree.document.lines_at([start, max(start, end - 1)])
        section = _holder(source.tree, piece.start, piece.end)
        address = self._names.get((source, piece.start, piece.end), section.address)
        location = source.places.location(start, end) or None if source.places else None
        return _Cited(address, section.breadcrumb, first, last, source.text[start:end], location)


def _joined(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Pieces as passages: grouped by document and in its order; pieces that overlap or touch are joined."""
    of_source: dict[Source, list[_Piece]] = {}
    for piece in pieces:
        of_source.setdefault(piece.source, []).append(piece)
    found: list[_Piece] = []
    for source, mine in of_source.items():
        mine.sort(key=lambda piece: (piece.start, piece.end))
        found.append(mine[0])
        for piece in mine[1:]:
            last = found[-1]
            if source.tree.has_text(last.end, max(last.end, piece.start)):
                found.append(piece)
            else:
                reason = min(last.reason, piece.reason, key=REASONS.index)
                found[-1] = _Piece(source, last.start, max(last.end, piece.end), reason)
    return found


def _whole(match: Match) -> _Piece:
    return _Piece(match.source, 0, len(match.source.text), "match", match.address)


def _section(match: Match) -> _Piece:
    return _Piece(match.source, *_around(match.source, match.start, match.end), "match", match.address)


def _around(source: Source, start: int, end: int) -> tuple[int, int]:
    """The own text of the sections that a span begins and ends in."""
    first, last = source.tree.at(start), source.tree.at(max(start, end - 1))
    return first.start, max(end, last.own_end)


def _holder(tree: Tree, start: int, end: int) -> Section:
    """The innermost section that holds a span; the document if the span is all of it."""
    if (start, end) == (0, len(tree.document.text)):
        return tree.root
    section = tree.at(start)
    while section.end < end and section.parent:
        section = section.parent
    return section


def _openings(match: Match) -> list[tuple[int, int]]:
    """The text that opens the document of a match, and the one that opens the section above it."""
    tree = match.source.tree
    content = tree.document.content_start
    above = [tree.root, *_holder(tree, match.start, match.end).lineage[:-1]]
    telling = [s for s in above if tree.has_text(max(s.body_start, content), s.body_end)]
    chosen = dict.fromkeys([*telling[:1], above[-1]] if telling else ())
    return [(max(section.start, content), section.own_end) for section in chosen if section in telling]


def _without_blank_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without leading blank lines and trailing white space."""
    last = start + len(text[start:end].rstrip())
    blank = _BLANK_LINES.match(text, start, last)
    return (blank.end() if blank else start), last


def _count(counter: Counter, text: str) -> int:
    return counter.count(text, 0, len(text))


# ------------------------------------------------------------------------------------- showing


def markdown(passages: Sequence[Passage], good_match: bool = True) -> str:
    """Passages as they are counted: each under its citation, in a fence that it cannot close."""
    shown = "\n".join(_block(passage.number, passage) for passage in passages)
    return f"{NO_GOOD_MATCH}\n\n{shown}" if passages and not good_match else shown


def _block(number: int, cited: _Cited | Passage) -> str:
    text = safe_lines(cited.text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    place = cited.location or f"lines {cited.start_line}–{cited.end_line}"
    where = f"{safe_name(cited.address)} ({place})"
    return f"## [{number}] {where}\n{one_line(cited.breadcrumb)}\n{fence}\n{text}\n{fence}\n"


def safe(text: str) -> str:
    """Text for people and models: characters that would act or hide are written as their codes."""
    return _UNSAFE.sub(lambda found: _code(ord(found[0])), text)


def _code(character: int) -> str:
    r"""`\\u{200b}`; for a byte of a name that is not UTF-8, `\\xff`."""
    is_byte = 0xDC80 <= character <= 0xDCFF
    return f"\\x{character - 0xDC00:02x}" if is_byte else f"\\u{{{character:x}}}"


def safe_name(name: str) -> str:
    """A safe name in one line, from which the name can be told."""
    return safe(name).replace("\n", _code(ord("\n")))


def safe_lines(text: str) -> str:
    """Safe text of several lines, each ended by a line feed."""
    return safe(text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """Safe text in one line, so that no name or heading can look like a citation."""
    return safe(" ".join(text.split()))
