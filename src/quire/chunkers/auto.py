"""Each section is a chunk, and long ones are cut where their meaning changes: the default.

Chunks join to the text. Front matter, and a heading without its own text, join the section after them.
Text is packed to half of `max_tokens`: between blocks, then list items, table rows and sentences,
then words. A code block or table row is split only if it alone exceeds `max_tokens`. No chunk
exceeds `max_tokens`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from quire import markdown, sentences
from quire.chunkers.base import Cut, pack_spans
from quire.config import AutoSettings
from quire.markdown import Block
from quire.tokens import Counter
from quire.tree import Section, Tree


def split(tree: Tree, settings: AutoSettings, counter: Counter) -> Iterator[Cut]:
    """Cuts in document order."""
    cutter, context = _Cutter(tree, settings.max_tokens, counter), tree.document.description
    for start, end, section in _spans(tree):
        for a, b in pairwise((start, *cutter.pieces(start, end))):
            own = section if section.start < b else tree.at(a)  # so many headings that they are cut
            yield Cut(a, b, own, context or cutter.context(a))
            context = ""


def _spans(tree: Tree) -> Iterator[tuple[int, int, Section]]:
    """The sections with text of their own, each with the headings before it."""
    size, start, shown = len(tree.document.text), 0, tree.document.shown_from
    spoken = [
        s for s in tree.sections if not s.is_blank and tree.has_text(max(shown, s.body_start), s.body_end)
    ]
    if not spoken and tree.has_text(0, size):  # nothing but headings and front matter
        spoken = [tree.root]
    for number, section in enumerate(spoken, 1):
        end = section.own_end if number < len(spoken) else size
        yield start, end, section
        start = end


class _Cutter:
    """Cut one span after another, in document order."""

    def __init__(self, tree: Tree, limit: int, counter: Counter) -> None:
        self.tree, self.counter = tree, counter
        self.limit, self.target = limit, limit // 2
        self.little = self.target // 4  # a shorter rest is too short for its own chunk
        self.text, self.markup = tree.document.text, tree.document.markup
        self.opaque = {start for start, _ in tree.opaque}
        self.tables: list[tuple[int, int, str]] = []  # those cut so far: rows' span, header
        header = next((span for span in pairwise(tree.rows) if tree.has_text(*span)), None)
        if header and self._fits(*header, self.target):
            self.tables.append((header[0], len(self.text), self.text[slice(*header)]))

    def context(self, start: int) -> str:
        """The header of the table that `start` is inside of."""
        for first, end, header in reversed(self.tables):
            if first < start < end:
                return header
            if end <= start:
                break
        return ""

    def pieces(self, start: int, end: int) -> list[int]:
        """Ends of the pieces of a span; of one within the target, its own end."""
        if self._fits(start, end, self.target):
            return [end]
        ends: list[int] = []
        first = start
        for piece in self._packed(first, end, self.tree.breaks(first, end)):
            if self._fits(first, piece, self.target):
                ends.append(piece)
            else:
                ends += self._packed_inside(first, piece)
            first = piece
        return self._joined(start, ends)

    def _packed(self, start: int, end: int, places: list[int]) -> Iterator[int]:
        """Ends of pieces as long as the target allows."""
        reach, text, target = self.counter.reach, self.text, self.target
        return pack_spans(start, end, places, lambda at: reach(text, at, end, target))

    def _packed_inside(self, start: int, end: int) -> Iterator[int]:
        """Ends of the pieces of one block over the target."""
        for piece in self._packed(start, end, list(self._inside(start, end))):
            yield from self._words(start, piece)
            start = piece

    def _joined(self, start: int, ends: list[int]) -> list[int]:
        """The ends, without those that would leave too little for a chunk before or after them."""
        kept: list[int] = []
        first = last = start
        for end in ends:
            little = self._fits(last, end, self.little) or self._fits(first, last, self.little)
            if kept and little and self._fits(first, end, self.target + self.little):
                kept[-1] = end
            else:
                first = last
                kept.append(end)
            last = end
        return kept

    def _fits(self, start: int, end: int, budget: int) -> bool:
        return self.counter.fits(self.text, start, end, budget)

    def _inside(self, start: int, end: int) -> Iterator[int]:
        """The places where one block, or a run of blocks without blank lines, can be cut."""
        if start in self.opaque:
            if not self._fits(start, end, self.limit):
                yield from self._lines(start, end)
        elif self.tree.document.format in ("rst", "asciidoc", "org"):
            yield from self._paragraphs(start, end)
        elif self.tree.document.format in ("text", "csv"):
            yield from self._sentences(start, end)
        elif rows := markdown.table_rows(self.markup, start, end):
            header = self.text[start : rows[0]] if self._fits(start, rows[0], self.target) else ""
            self.tables.append((rows[0], end, header))
            yield from rows
        else:
            for item in (*markdown.items(self.markup, start, end), end):
                if not self._fits(start, item, self.target):
                    yield from self._blocks(markdown.blocks(self.markup[start:item]), start, item)
                if item < end:
                    yield item
                start = item

    def _paragraphs(self, start: int, end: int) -> Iterator[int]:
        """The starts of indented paragraphs, and places inside those over the target."""
        for place in (*markdown.paragraphs(self.markup, start, end), end):
            if not self._fits(start, place, self.target):
                yield from self._sentences(start, place)
            if place < end:
                yield place
            start = place

    def _blocks(self, blocks: tuple[Block, ...], shift: int, end: int) -> Iterator[int]:
        """The starts of blocks, and places inside those over the target."""
        if not blocks:  # only definitions of links
            yield from self._lines(shift, end)
            return
        starts = [self._line(block.start + shift, shift) for block in blocks]
        for block, start, after in zip(blocks, starts, [*starts[1:], end], strict=True):
            if start > shift:
                yield start
            if not self._fits(start, after, self.target):
                yield from self._block(block, shift, start, after)

    def _line(self, at: int, low: int) -> int:
        return max(low, self.markup.rfind("\n", 0, at) + 1)

    def _block(self, block: Block, shift: int, start: int, end: int) -> Iterator[int]:
        if block.kind == "table":
            self._note_table(block, shift, end)
        if block.kind in ("list", "item", "quote", "table") and block.children:
            yield from (p for p in self._blocks(block.children, shift, end) if p > start)
        elif block.kind in ("paragraph", "heading", "item", "quote"):
            yield from self._sentences(start, end)
        elif not self._fits(start, end, self.limit):
            yield from self._lines(start, end)

    def _note_table(self, table: Block, shift: int, end: int) -> None:
        if len(table.children) > 1:
            start, first = table.start + shift, table.children[1].start + shift
            self.tables.append((first, end, self.text[start:first]))

    def _sentences(self, start: int, end: int) -> Iterator[int]:
        yield from (place for place in sentences.ends(self.markup, start, end) if place < end)

    def _lines(self, start: int, end: int) -> Iterator[int]:
        while 0 < (start := self.markup.find("\n", start, end) + 1) < end:
            yield start

    def _words(self, start: int, end: int) -> Iterator[int]:
        """Ends of pieces of a span within the limit."""
        while not self._fits(start, end, self.limit):
            reach = self.counter.reach(self.text, start, end, self.target)
            start = sentences.word_edge(self.text, start, max(reach, start + 1))
            yield start
        yield end
