"""Spans of a text to places in the original that it was made from: pages, slides, cells, rows, anchors.

Always: the starts are ascending character offsets of the text; a place ends where the next one starts.
"""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from quire import later

_ANCHOR = "anchor"  # the unit of a web page: ids of its headings
_ESCAPED = later.pattern(r"[^\w!$&'()*+,;=:@/?.~-]", re.ASCII)  # what a fragment of a URL does not hold
_LINKED = ("page",)  # units that viewers open as `file.pdf#page=12`


@dataclass(frozen=True, slots=True)
class Places:
    """The places of an original, in order. Without names they are counted from 1."""

    unit: str  # page, slide, cell, row, chapter or anchor
    starts: tuple[int, ...]
    names: tuple[str, ...] = ()  # of anchors

    def location(self, start: int, end: int) -> str:
        """Where a span is, such as `page 12` or `row 40–60`; "" if that has no name that people use."""
        if not self.starts or self.unit == _ANCHOR:
            return ""
        first = self._number(start)
        last = max(first, bisect_left(self.starts, end))
        return f"{self.unit} {first}" if first == last else f"{self.unit} {first}–{last}"

    def fragment(self, start: int) -> str:
        """What follows the # of a link to a place; "" if no viewer would understand it."""
        if self.unit in _LINKED:
            return f"{self.unit}={self._number(start)}"
        found = bisect_right(self.starts, start)
        return _ESCAPED.sub(_code, self.names[found - 1]) if self.unit == _ANCHOR and found else ""

    def span(self, number: int, length: int) -> tuple[int, int] | None:
        """Where a place begins and ends in a text of some length, such as page 12; None if there is none."""
        if self.unit == _ANCHOR or not 1 <= number <= len(self.starts):
            return None
        return self.starts[number - 1], (*self.starts, length)[number]

    def _number(self, char: int) -> int:
        return max(1, bisect_right(self.starts, char))

    def pack(self) -> bytes:
        """The places as a store keeps them."""
        steps = [after - before for before, after in pairwise((0, *self.starts))]
        told = [self.unit, steps, self.names]
        return zlib.compress(json.dumps(told, separators=(",", ":")).encode())

    @classmethod
    def unpack(cls, packed: bytes) -> Places:
        """The places that `pack` wrote. Raises ValueError if something else did."""
        try:
            unit, steps, names = json.loads(zlib.decompress(packed))
        except zlib.error as error:
            raise ValueError(str(error)) from None
        return cls(unit, tuple(accumulate(steps)), tuple(names))


def link_to(places: Places | None, start: int, url: str | None, file: str | None) -> str | None:
    """A link that opens an original at a place: its address on the web, or a PDF file at a page."""
    fragment = places.fragment(start) if places else ""
    if url is not None:
        return f"{url.partition('#')[0]}#{fragment}" if fragment else url
    return f"{Path(file).as_uri()}#{fragment}" if file and fragment else None


def anchors(found: Iterable[tuple[int, str]]) -> Places | None:
    """The places of a web page, from the offsets and ids of its headings; None if it has none."""
    pairs = sorted(found)
    return Places(_ANCHOR, tuple(at for at, _ in pairs), tuple(name for _, name in pairs)) if pairs else None


def _code(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace"))
