"""Cut long documents at their H2 and H3 headings; keep short ones whole (header chunks).

A section over the limit is cut between paragraphs; a code block is never cut, and a heading stays with what
follows it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from quire.chunkers.base import Cut, pack_spans
from quire.config import HeadersSettings
from quire.tokens import Counter
from quire.tree import Section, Tree

_LINE_END = re.compile("\n")


def split(tree: Tree, settings: HeadersSettings, counter: Counter) -> Iterator[Cut]:
    """Chunks of whole lines, each under its H2 or H3, or the H1 before them."""
    openers = _openers(tree, settings.threshold_lines)
    ends = [start for start, _, _ in openers[1:]] + [len(tree.document.text)]
    for (start, section, heading_end), end in zip(openers, ends, strict=True):
        if section is None or not _says_anything(tree, start, section, heading_end, end):
            continue
        for piece in _paragraphs(tree, start, end, settings.max_lines):
            yield Cut(start, piece, section)
            start = piece


def _openers(tree: Tree, threshold: int) -> list[tuple[int, Section | None, int]]:
    """The starts of chunks: start, section (None for a heading without content), end of the heading."""
    headings = tree.headings
    whole: list[tuple[int, Section | None, int]] = [(0, tree.root, 0)]
    if tree.document.lines <= threshold or not any(h.level in (2, 3) for h in headings):
        return whole
    kept = {section.heading: section for section in tree.sections}
    openers = [(h.start, kept.get(i), h.end) for i, h in enumerate(headings) if h.level <= 3]
    if headings[0].level == 1:  # text before the first H1 belongs to it
        return [(0, kept.get(0, tree.root), headings[0].end), *openers[1:]]
    return whole + openers


def _says_anything(tree: Tree, start: int, section: Section, heading_end: int, end: int) -> bool:
    before = tree.has_text(start, section.start)
    return before or tree.has_text(heading_end, end)


def _paragraphs(tree: Tree, start: int, end: int, max_lines: int) -> Iterator[int]:
    """Ends of pieces within the limit of lines, as far as paragraphs allow."""
    markup = tree.document.markup
    if markup.count("\n", start, end) <= max_lines:
        return iter((end,))
    lines = [found.end() for found in _LINE_END.finditer(markup, start, end)]

    def reach(at: int) -> int:
        last = bisect_right(lines, at) + max_lines - 1
        return lines[last] if last < len(lines) else end

    return pack_spans(start, end, _places(tree, start, end), reach)


def _places(tree: Tree, start: int, end: int) -> list[int]:
    """Where paragraphs begin, but for the first under each heading: it stays with its heading."""
    first, last = (bisect_left(tree.headings, at, key=lambda heading: heading.start) for at in (start, end))
    heads = [heading.end for heading in tree.headings[first:last]]

    def is_alone(place: int) -> bool:
        above = bisect_right(heads, place) - 1
        return above >= 0 and not tree.has_text(heads[above], place)

    return [place for place in tree.breaks(start, end) if not is_alone(place)]
