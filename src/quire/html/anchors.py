"""Anchors: the ids on a page that lead to its headings and definitions, and where these are in the markdown.

While a page is written, a mark stands before each heading that has an id. The converter carries it along, and
`located` takes it out again. Always: the text is the same as without marks. Where a mark may change it, the
page is converted without marks too: both have the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from quire.html.content import is_container
from quire.html.elements import HEADINGS, Element

Anchor = tuple[int, str]  # the offset of a line in the text, in characters, and the id that leads to it

# Characters that no text uses; text.py takes them out of the page.
_OPEN, _CLOSE = "\ufdd2", "\ufdd3"
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
# Before anything but a letter or code, a mark may change what the converter escapes or trims.
_IN_THE_WAY = re.compile(rf"{_CLOSE}(?![^\W\d_]|`)")
_TAG = re.compile(r"\s*(?:<(?!(?:code|pre|img)\b)[^<>]*>\s*)*")
LONGEST = 200  # characters of an id


class Marks:
    """The ids that were met while a page is written, and the marks that stand for them."""

    def __init__(self) -> None:
        self.ids: list[str] = []  # by the number in the mark
        self._met: list[tuple[int, str]] = []  # ids since the last text: where they were written, and which

    def meet(self, element: Element, at: int) -> None:
        """Remember the id of an element, before what it holds is written as part number `at`."""
        if (id := own_id(element)) and not is_container(element):
            self._met.append((at, id))

    def before(self, element: Element, parts: list[str]) -> str:
        """The mark to write before the content of a heading or a definition; "" if no id leads to it."""
        if not element.size:
            return ""
        id = own_id(element) or _inner_id(element) or (self._near(parts) if element.tag in HEADINGS else "")
        self._met.clear()
        if not id or len(id) > LONGEST:
            return ""
        self.ids.append(id)
        return f"{_OPEN}{len(self.ids) - 1}{_CLOSE}"

    def _near(self, parts: list[str]) -> str:
        """The id of what begins with this heading: no text is between the two."""
        start = len(parts)
        while start and _TAG.fullmatch(parts[start - 1]):
            start -= 1
        return next((id for at, id in reversed(self._met) if at >= start), "")


def own_id(element: Element) -> str:
    """The id of an element; an old link has it as its name."""
    return element.get("id").strip() or (element.get("name").strip() if element.tag == "a" else "")


def _inner_id(element: Element) -> str:
    """The id that a permalink in a heading names, or that something in the heading has."""
    if element.anchor:
        return element.anchor
    return next((found for inner in element.elements() if (found := inner.anchor or own_id(inner))), "")


def located(html: str, ids: list[str], convert: Callable[[str], str]) -> tuple[str, tuple[Anchor, ...]]:
    """The markdown of a page without its marks, and the anchors: each at the start of its mark's line."""
    text = convert(html)
    if not ids:
        return text, ()
    if not _IN_THE_WAY.search(text):
        return _taken_out(text, ids)
    plain = convert(_MARK.sub("", html))
    starts = [0, *(found.end() for found in re.finditer("\n", plain))]
    lines = text.split("\n")
    if len(lines) != len(starts):
        return plain, ()
    marks = (
        (start, mark) for start, line in zip(starts, lines, strict=True) for mark in _MARK.finditer(line)
    )
    return plain, tuple((start, ids[int(mark[1])]) for start, mark in marks)


def _taken_out(text: str, ids: list[str]) -> tuple[str, tuple[Anchor, ...]]:
    found = [*_MARK.finditer(text)]
    edges = [(0, 0), *(mark.span() for mark in found), (len(text), len(text))]
    pieces = [text[end:start] for (_, end), (start, _) in pairwise(edges)]
    anchors, at, line = list[Anchor](), 0, 0
    for mark, piece in zip(found, pieces, strict=False):
        line = at + piece.rfind("\n") + 1 if "\n" in piece else line
        at += len(piece)
        anchors.append((line, ids[int(mark[1])]))
    return "".join(pieces), tuple(anchors)
