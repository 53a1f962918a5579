"""Tables: their cells, and which tables are only layout."""

from __future__ import annotations

import re

from quire.html.code import code_of
from quire.html.elements import HEADINGS, Element, words

GROUPS = words("thead tbody tfoot colgroup form")
SPANS = ("colspan", "rowspan")
_SPARSE = 1000  # how many cells a table may lack before it is no table
_SMALL_NUMBER = re.compile(r"[1-9][0-9]?")


def shows(child: Element | str) -> bool:
    """Whether a child of a row is an element or text, not just white space."""
    return bool(child.strip()) if isinstance(child, str) else True


def cell_of(child: Element | str) -> Element:
    """A child of a row as a cell."""
    if isinstance(child, Element) and child.tag in ("td", "th"):
        return child
    cell = Element("td", {}, None)
    cell.children = [child]
    return cell


def is_layout(table: Element, rows: list[list[Element]]) -> bool:
    """Whether a table is only layout, or holds what a markdown cell cannot."""
    inner = {tag for row in rows for cell in row for tag in cell.holds}
    if (
        table.get("role") in ("presentation", "none")
        or table.means("codetable")
        or inner & (HEADINGS | {"table"})
    ):
        return True
    if "pre" in inner and any("\n" in code_of(e).strip("\n") for e in table.elements() if e.tag == "pre"):
        return True
    widths = [sum(span_of(cell, "colspan") for cell in row) for row in rows]
    return max(widths, default=0) * len(rows) - sum(widths) > _SPARSE + sum(widths)


def grid_rows(grid: Element) -> list[list[Element]]:
    """The rows of a table that is made of boxes: as many in a row as there are boxes in the header."""
    boxes = [child for child in grid.children if isinstance(child, Element)]
    width = sum(1 for box in boxes if "table-header" in box.names)
    for box in boxes:
        box.tag = "th" if "table-header" in box.names else "td"
    return [boxes[at : at + width] for at in range(0, len(boxes), width)] if width else []


def span_of(cell: Element, name: str) -> int:
    """How many columns or rows a cell covers; an implausible number counts as one."""
    return int(cell.get(name)) if _SMALL_NUMBER.fullmatch(cell.get(name)) else 1
