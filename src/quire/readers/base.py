"""What every reader returns, and the marks by which readers find places again in the finished markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quire.location import Places

# Private characters around a number. `clean` keeps them out of what documents say.
_OPEN, _CLOSE = "\ue000", "\ue001"
_MARK = re.compile(f"{_OPEN}[0-9]+{_CLOSE}")
_MARKUP = re.compile(r"[\s#>*+|.\d-]*")  # that markdown puts before the first word of a line
# What begins a block in markdown: a heading, a quote, an item, a fence, a table, HTML, an underline.
_BLOCK_SIGN = re.compile(
    r"(?m)^([ \t]*)(?=(?:#{1,6}(?:[ \t]|$)|>|[-+*][ \t]|`{3}|~{3}|\||<|=+[ \t]*$|-+[ \t]*$))"
)
_NUMBERED = re.compile(r"(?m)^([ \t]*\d{1,9})(?=[.)](?:[ \t]|$))")
_INDENT = re.compile(r"(?m)^[ \t]+")
_RESERVED = str.maketrans(dict.fromkeys((_OPEN, _CLOSE, "\ue002", "\0"), "\ufffd"))


@dataclass(frozen=True, slots=True)
class Converted:
    """A file as markdown."""

    text: str
    places: Places | None = None  # where its parts are in the file
    title: str = ""  # that the file gives itself, outside of its text
    warnings: tuple[str, ...] = ()


def clean(text: str) -> str:
    """A text of a document without the characters that marks are made of."""
    return text.translate(_RESERVED)


def mark(number: int) -> str:
    """A mark for the beginning of a place, to put before its first word."""
    return f"{_OPEN}{number}{_CLOSE}"


def found_marks(text: str, unit: str) -> tuple[str, Places | None]:
    """A text without its marks, and the places that they named, counted from 1; None if there are no marks.

    A place without text begins where the next one does.
    """
    parts, starts, seen, size = list[str](), list[int](), 0, 0
    for found in _MARK.finditer(text):
        parts.append(text[seen : found.start()])
        size += found.start() - seen
        seen = found.end()
        number = int(found[0][1:-1])
        starts += [_line_start(parts[-1], size)] * (number - len(starts))
    parts.append(text[seen:])
    return "".join(parts), Places(unit, tuple(starts)) if starts else None


def _line_start(before: str, at: int) -> int:
    """The beginning of the line, if only markup is before a place in it."""
    line = before[before.rfind("\n") + 1 :]
    return at - len(line) if _MARKUP.fullmatch(line) else at


def escaped(text: str) -> str:
    """Lines of a text that is not markdown, so that none of them opens a block."""
    text = _BLOCK_SIGN.sub(r"\1\\", _INDENT.sub(_shallow, text))
    return _NUMBERED.sub(r"\1\\", text)


def _shallow(indent: re.Match[str]) -> str:
    """An indent that does not make code."""
    return " " * min(3, len(indent[0].expandtabs()))
