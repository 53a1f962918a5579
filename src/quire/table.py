"""Tables of comma- or tab-separated values to their rows, as character spans.

Input: text whose lines end in line feeds (`Document.markup`). Always: rows join to the text. A line feed in
quotes does not end a row. A quote opens a field only at its beginning; elsewhere it is a character.
"""

from __future__ import annotations

import re

from quire.document import BOM
from quire.markdown import Heading, Outline

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_MOST_LINES = 200  # of a row: with more, a quote was not meant as one
_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'(?:^|(?<=[,;\t|]))"[^"]*(?:""[^"]*)*"?')
_CLOSING = re.compile(r'[^"]*+(?:""[^"]*+)*+"')  # the rest of a quoted field


def scan(text: str, start: int = 0) -> Outline:  # noqa: ARG001  every format has the same parameters
    """The outline of a table: it has no headings."""
    return Outline([], [])


def title(text: str, heading: Heading) -> str:  # noqa: ARG001
    """A table has no headings, so none has a title."""
    return ""


def rows(text: str) -> list[int]:
    """Where each row begins. As in a spreadsheet, a blank line is a row, too."""
    starts, inside, is_open = list[int](), list[int](), False
    field = f'{_delimiter(text)}"'
    for line in _LINE.finditer(text):
        (inside if is_open else starts).append(line.start())
        is_open = _ends_in_quotes(line[0], is_open, field)
        if is_open and len(inside) >= _MOST_LINES:
            starts += inside
            is_open = False
        if not is_open:
            inside = []
    return starts


def _delimiter(text: str) -> str:
    """What is between the fields: the most frequent delimiter outside quotes in the first line."""
    first = text.lstrip(f"{BOM}\n ").partition("\n")[0]
    return max(_DELIMITERS, key=_QUOTED.sub("", first).count)  # of equally frequent ones, the first


def _ends_in_quotes(line: str, is_open: bool, field: str) -> bool:
    """Whether a line ends in a quoted field. `field` is a delimiter and the quote that opens a field."""
    if not is_open and '"' not in line:
        return False
    start = len(line) - len(line.lstrip(BOM))
    at, is_open = (start + 1, True) if not is_open and line.startswith('"', start) else (0, is_open)
    while True:
        if is_open:
            closing = _CLOSING.match(line, at)
            if closing is None:
                return True
            at = closing.end()
        opening = line.find(field, at)
        if opening < 0:
            return False
        at, is_open = opening + len(field), True
