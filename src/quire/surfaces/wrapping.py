"""Texts to lines that fit a terminal, with an indent. In a pipe there is no width: a text stays one line.

Always: the pieces of a line are pieces of its text, so highlights stay where they are.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from unicodedata import combining, east_asian_width

from quire.context import safe

_NARROWEST = 20  # columns of text, however narrow the terminal is
_WORD = re.compile(r"\S+")
_Span = tuple[int, int]


def width() -> int | None:
    """The columns of the terminal on stdout; None in a pipe or a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def has_colour() -> bool:
    """Whether stdout shows colours: it is a terminal, and NO_COLOR is not set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def filled(text: str, columns: int | None, indent: int) -> str:
    """A safe text in lines of at most so many columns, the indent included; only the first is not indented.

    A word that is wider than a line stays whole, so that an address can be copied.
    """
    room = _room(columns, indent)
    spans = list(_lines(text, list(_edges(text)), room)) if room else [(0, len(text))]
    return f"\n{' ' * indent}".join(text[start:end] for start, end in spans)


def drawn(text: str, highlights: Iterable[_Span], columns: int | None = None, indent: int = 0) -> str:
    """A text in lines with its highlights in bold, as terminals draw it. Only the first is not indented."""
    if (room := _room(columns, indent)) is None:
        return _drawn(text, (0, len(text)), list(highlights))
    edges, spans = list(_edges(text)), list(highlights)
    lines = (one for line in _lines(text, edges, room) for one in _broken(line, edges, room))
    return f"\n{' ' * indent}".join(_drawn(text, line, spans) for line in lines)


def _room(columns: int | None, indent: int) -> int | None:
    return None if columns is None else max(columns - indent, _NARROWEST)


def _edges(text: str) -> Iterator[int]:
    """The column at which each character begins, and the one at which the text ends."""
    return accumulate(map(_columns, text), initial=0)


def _columns(character: str) -> int:
    if character.isascii() and character.isprintable():
        return 1
    if (shown := safe(character)) != character:
        return len(shown)
    return 0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1


def _lines(text: str, edges: list[int], room: int) -> Iterator[_Span]:
    """Where each line starts and ends: as many words as have room."""
    start = end = None
    for word in _WORD.finditer(text):
        if start is None or edges[word.end()] - edges[start] > room:
            if start is not None and end is not None:
                yield start, end
            start = word.start()
        end = word.end()
    if start is not None and end is not None:
        yield start, end


def _broken(line: _Span, edges: list[int], room: int) -> Iterator[_Span]:
    """A line that is one word too wide, in pieces."""
    start, end = line
    while edges[end] - edges[start] > room:
        cut = max(start + 1, bisect_right(edges, edges[start] + room) - 1)
        yield start, cut
        start = cut
    yield start, end


def _drawn(text: str, line: _Span, highlights: list[_Span]) -> str:
    start, end = line
    inside = [(max(a, start), min(b, end)) for a, b in highlights if a < end and b > start]
    edges = pairwise([start, *(place for span in inside for place in span), end])
    pieces = (safe(text[a:b]) for a, b in edges)
    return "".join(f"\033[1;33m{piece}\033[0m" if at % 2 else piece for at, piece in enumerate(pieces))
