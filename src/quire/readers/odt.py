"""OpenDocument texts (.odt) to markdown, counted in paragraphs.

The page breaks in such a file are not used: a program that converts one writes only some of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.config import DocumentSettings
from quire.errors import NotPrepared
from quire.readers.archive import Archive
from quire.readers.base import Converted
from quire.readers.blocks import Blocks, link

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_NS = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE, _OFFICE, _DRAW, _STYLE = (
    _NS % name for name in ("text", "table", "office", "drawing", "style")
)
_HREF = "{http://www.w3.org/1999/xlink}href"
_NOT_SHOWN = frozenset(
    f"{_TEXT}{name}" for name in ("tracked-changes", "sequence-decls", "note-citation", "bookmark-ref")
) | {f"{_OFFICE}annotation", f"{_OFFICE}forms"}
_MOST_REPEATED = 100  # cells or spaces that one element stands for
_CODE = ("preformatted", "source")


def read(source: bytes, name: str, settings: DocumentSettings) -> Converted:
    """The text of a document."""
    archive = Archive(source, name, settings)
    manifest = archive.read("META-INF/manifest.xml") if archive.has("META-INF/manifest.xml") else b""
    if b"encryption-data" in manifest:
        raise NotPrepared(name, "is encrypted. Save it again without a password")
    found = _Odt(archive.xml("content.xml"), archive.optional_xml("styles.xml"))
    if found.body is None:
        raise NotPrepared(name, "holds no text document, whatever its name says")
    return found.read()


class _Odt:
    """One document."""

    def __init__(self, content: Element, styles: Element | None) -> None:
        self.body = content.find(f"{_OFFICE}body/{_OFFICE}text")
        known = [root for root in (styles, content) if root is not None]
        self.blocks = Blocks("paragraph")
        self.parents = {
            style.get(f"{_STYLE}name", ""): style.get(f"{_STYLE}parent-style-name", "")
            for root in known
            for style in root.iter(f"{_STYLE}style")
        }
        self.ordered = {
            style.get(f"{_STYLE}name", "")
            for root in known
            for style in root.iter(f"{_TEXT}list-style")
            if (first := next(iter(style), None)) is not None
            and first.tag == f"{_TEXT}list-level-style-number"
        }
        self.notes: list[Element] = []

    def read(self) -> Converted:
        assert self.body is not None  # noqa: S101
        titles = [p for p in self.body.iter(f"{_TEXT}p") if self._style(p) == "title"]
        self.below_title = int(any("".join(p.itertext()).strip() for p in titles))
        self._blocks(self.body)
        text, places = self.blocks.markdown()
        return Converted(text, places)

    def _style(self, element: Element) -> str:
        """The name of the style that a paragraph has, or that its own style is made from."""
        name = element.get(f"{_TEXT}style-name", "")
        return (self.parents.get(name) or name).replace("_20_", " ").lower()

    def _blocks(self, element: Element) -> None:
        for child in element:
            if child.tag not in _NOT_SHOWN:
                self._block(child)
            notes, self.notes = self.notes, []
            for note in notes:
                self._blocks(note)

    def _block(self, element: Element) -> None:
        self.blocks.begin_place()
        name = element.tag.removeprefix(_TEXT)
        if name == "h":
            level = element.get(f"{_TEXT}outline-level", "1")
            self.blocks.heading(
                (int(level) if level.isdecimal() else 1) + self.below_title, self._inline(element)
            )
        elif name == "p":
            self._paragraph(element)
        elif name == "list":
            self._list(element, 0, is_ordered=element.get(f"{_TEXT}style-name", "") in self.ordered)
        elif element.tag == f"{_TABLE}table":
            self.blocks.table(self._row(row) for row in _rows(element))
        else:
            self._blocks(element)

    def _paragraph(self, element: Element) -> None:
        style = self._style(element)
        if style == "title":
            self.blocks.heading(1, self._inline(element))
        elif any(word in style for word in _CODE):
            self.blocks.code(_with_spaces(element))
        else:
            self.blocks.paragraph(self._inline(element))

    def _list(self, element: Element, depth: int, *, is_ordered: bool) -> None:
        for item in element:
            for block in item:
                if block.tag == f"{_TEXT}list":
                    self._list(block, depth + 1, is_ordered=is_ordered)
                elif block.tag in (f"{_TEXT}p", f"{_TEXT}h"):
                    self.blocks.begin_place()
                    self.blocks.item(self._inline(block), depth, is_ordered=is_ordered)

    def _row(self, row: Element) -> list[str]:
        cells = list[str]()
        for cell in row:
            inside = (self._inline(p) for p in cell.iter(f"{_TEXT}p"))
            shown = "<br>".join(part for part in inside if part.strip())
            repeated = cell.get(f"{_TABLE}number-columns-repeated", "1")
            times = int(repeated) if repeated.isdecimal() else 1
            cells += [shown] * (min(times, _MOST_REPEATED) if shown else 1)
        return cells

    def _inline(self, element: Element) -> str:
        parts = [self.blocks.text(element.text or "")]
        for child in element:
            parts.append(self._piece(child))
            parts.append(self.blocks.text(child.tail or ""))
        return "".join(parts)

    def _piece(self, piece: Element) -> str:
        name = piece.tag.removeprefix(_TEXT)
        if name in ("s", "tab"):
            return " "
        if name == "line-break":
            return "<br>"
        if name == "a":
            return link(piece.get(_HREF, ""), self._inline(piece))
        if name == "note":
            self.notes += piece.findall(f"{_TEXT}note-body")
            return "*"
        if piece.tag.startswith(_DRAW):
            self.notes += piece.iter(f"{_DRAW}text-box")
        elif piece.tag not in _NOT_SHOWN:
            return self._inline(piece)
        return ""


def _rows(table: Element) -> Iterator[Element]:
    """The rows of a table, those in groups of rows too, and none of tables in its cells."""
    for child in table:
        if child.tag == f"{_TABLE}table-row":
            yield child
        elif child.tag in (f"{_TABLE}table-header-rows", f"{_TABLE}table-rows", f"{_TABLE}table-row-group"):
            yield from _rows(child)


def _with_spaces(element: Element) -> str:
    """The text of a line of code, with its spaces and tabs."""
    parts = [element.text or ""]
    for child in element:
        name = child.tag.removeprefix(_TEXT)
        times = child.get(f"{_TEXT}c", "1")
        count = min(int(times) if times.isdecimal() else 1, _MOST_REPEATED)
        parts.append({"s": " " * count, "tab": "\t", "line-break": "\n"}.get(name) or _with_spaces(child))
        parts.append(child.tail or "")
    return "".join(parts)
