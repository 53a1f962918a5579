"""Tables of comma- or tab-separated values to their rows, as character spans.

Input: text whose lines end in line feeds (`Document.markup`). Always: rows join to the text. A line feed in
quotes does not end a row.
"""

from __future__ import annotations

import re

from quire.markdown import Heading, Outline

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_MOST_LINES = 200  # of a row: with more, a quote was not meant as one


def scan(text: str, start: int = 0) -> Outline:  # noqa: ARG001  every format has the same parameters
    """The outline of a table: it has no headings."""
    return Outline([], [])


def title(text: str, heading: Heading) -> str:  # noqa: ARG001
    """A table has no headings, so none has a title."""
    return ""


def rows(text: str) -> list[int]:
    """Where each row begins. Blank lines belong to the row before them."""
    starts, lines, is_open = list[int](), list[int](), False
    for line in _LINE.finditer(text):
        if not is_open:
            lines = []
        lines.append(line.start())
        is_open ^= line[0].count('"') % 2 == 1
        if is_open and len(lines) > _MOST_LINES:
            starts += lines[1:] if starts and starts[-1] == lines[0] else lines
            is_open = False
        elif len(lines) == 1 and (line[0].strip() or not starts):
            starts.append(line.start())
    return starts
