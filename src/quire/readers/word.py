"""Word documents (.docx) to markdown, with their pages.

Pages are counted by the breaks that the program that wrote the file noted. A document without them is
counted in paragraphs: the breaks that its author made are not all. Deleted text of tracked changes is left
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quire.config import DocumentSettings
from quire.errors import NotPrepared
from quire.readers.archive import Archive
from quire.readers.base import Converted
from quire.readers.blocks import Blocks, link, styled

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_OFF = ("0", "false", "none", "off")
_WITHIN = frozenset(f"{_W}{name}" for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag"))
_NOTES = (("footnotes", "footnoteReference"), ("endnotes", "endnoteReference"))
_SPACES = {f"{_W}t": "", f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n"}
_NOT_SHOWN = frozenset(f"{_W}{name}" for name in ("del", "moveFrom", "rPr", "pPr", "instrText"))


def read(source: bytes, name: str, settings: DocumentSettings) -> Converted:
    """The text of a Word document."""
    return _Word(Archive(source, name, settings)).read()


@dataclass(frozen=True, slots=True)
class _Style:
    """What a paragraph style means."""

    level: int = 0  # of a heading; 0 if it is none
    is_title: bool = False
    is_code: bool = False
    list_id: str = ""
    is_list: bool = False
    is_ordered: bool = False
    depth: int = 0  # of its list


_PLAIN = _Style()


class _Word:
    """One document."""

    def __init__(self, archive: Archive) -> None:
        main = next((p for t, p, _ in archive.relations("").values() if t == "officeDocument"), "")
        main = main or "word/document.xml"
        folder = main.rpartition("/")[0]
        self.body = archive.xml(main)
        if self.body.tag != f"{_W}document":
            raise NotPrepared(archive.name, "holds no Word document, whatever its name says")
        self.relations = archive.relations(main)
        self.styles = dict(_styles(archive.optional_xml(f"{folder}/styles.xml")))
        self.ordered = _ordered_lists(archive.optional_xml(f"{folder}/numbering.xml"))
        self.notes = dict(_notes(archive, folder))
        self.is_rendered = self.body.find(f".//{_W}lastRenderedPageBreak") is not None
        self.blocks = Blocks("page" if self.is_rendered else "paragraph")
        self.asides: list[Element] = []  # notes and text boxes of the paragraph that is read
        titles = (p for p in self.body.iter(f"{_W}p") if self._style(p).is_title)
        self.below_title = int(any(_all_text(p).strip() for p in titles))

    def read(self) -> Converted:
        if self.is_rendered:
            self.blocks.begin_place()
        for block in _blocks_in(self.body):
            self._block(block)
        text, places = self.blocks.markdown()
        return Converted(text, places)

    def _block(self, element: Element) -> None:
        if not self.is_rendered:
            self.blocks.begin_place()
        if element.tag == f"{_W}tbl":
            self.blocks.table(self._row(row) for row in _children(element, "tr"))
        elif element.tag == f"{_W}p":
            self._paragraph(element)
        asides, self.asides = self.asides, []
        for aside in asides:
            for block in _blocks_in(aside):
                self._block(block)

    def _row(self, row: Element) -> list[str]:
        cells = list[str]()
        for cell in _children(row, "tc"):
            inside = (self._inline(p) for p in cell.iter(f"{_W}p"))
            cells.append("<br>".join(part for part in inside if part.strip()))
            span = cell.find(f"{_W}tcPr/{_W}gridSpan")
            cells += [""] * (min(_number(span), 100) - 1 if span is not None else 0)
        return cells

    def _paragraph(self, element: Element) -> None:
        style, properties = self._style(element), element.find(f"{_W}pPr")
        level = _outline_level(properties) or style.level
        if style.is_code:
            self.blocks.code(_all_text(element))
            return
        inline = self._inline(element, is_plain=bool(level or style.is_title))
        numbered = self._numbering(properties, style)
        if style.is_title:
            self.blocks.heading(1, inline)
        elif level:
            self.blocks.heading(level + self.below_title, inline)
        elif numbered:
            self.blocks.item(inline, numbered[0], is_ordered=numbered[1])
        else:
            self.blocks.paragraph(inline)

    def _style(self, paragraph: Element) -> _Style:
        found = paragraph.find(f"{_W}pPr/{_W}pStyle")
        return self.styles.get(_value(found), _PLAIN)

    def _numbering(self, properties: Element | None, style: _Style) -> tuple[int, bool] | None:
        """The depth of a list item and whether it is numbered; None if a paragraph is none."""
        found = properties.find(f"{_W}numPr") if properties is not None else None
        list_id, depth = style.list_id, style.depth
        if found is not None:
            list_id = _value(found.find(f"{_W}numId")) or list_id
            depth = _number(found.find(f"{_W}ilvl")) or depth
        if list_id == "0" or not (list_id or style.is_list):
            return None
        return depth, self.ordered.get((list_id, depth), style.is_ordered)

    def _inline(self, element: Element, *, is_plain: bool = False) -> str:
        """The runs of a paragraph as HTML."""
        parts = []
        for child in element:
            if child.tag == f"{_W}r":
                parts.append(self._run(child, is_plain))
            elif child.tag == f"{_W}hyperlink":
                _, target, outside = self.relations.get(child.get(_R, ""), ("", "", False))
                inline = self._inline(child, is_plain=is_plain)
                parts.append(link(target, inline) if outside and not is_plain else inline)
            elif child.tag not in _NOT_SHOWN:
                parts.append(self.blocks.text(child.text or "") if child.tag == _MATH else "")
                parts.append(self._inline(child, is_plain=is_plain))
        return "".join(parts)

    def _run(self, run: Element, is_plain: bool) -> str:
        properties = run.find(f"{_W}rPr")
        if _is_on(properties, "vanish"):
            return ""
        shown = "".join(self._piece(piece) for piece in run)
        shown = styled(shown, "em", wanted=not is_plain and _is_on(properties, "i"))
        return styled(shown, "strong", wanted=not is_plain and _is_on(properties, "b"))

    def _piece(self, piece: Element) -> str:
        """One piece of a run: text, white space, a break, or a note."""
        name = piece.tag.removeprefix(_W)
        if name == "t":
            return self.blocks.text(piece.text or "")
        if name in ("tab", "ptab"):
            return " "
        if name == "noBreakHyphen":
            return "-"
        if name == "lastRenderedPageBreak":
            self.blocks.begin_place()
        elif name in ("br", "cr"):
            return "" if piece.get(f"{_W}type") == "page" else "<br>"
        elif (name, piece.get(f"{_W}id")) in self.notes:
            self.asides.append(self.notes[name, piece.get(f"{_W}id") or ""])
            return "*"
        else:
            self.asides += _text_boxes(piece)
        return ""


def _blocks_in(element: Element) -> Iterator[Element]:
    """The paragraphs and tables of a part, those in frames around them too."""
    for child in element:
        if child.tag in (f"{_W}p", f"{_W}tbl"):
            yield child
        elif child.tag in _WITHIN or child.tag == f"{_W}body":
            yield from _blocks_in(child)


def _text_boxes(element: Element) -> Iterator[Element]:
    """The text boxes in a drawing, each once: a fallback repeats them."""
    if element.tag == f"{_W}txbxContent":
        yield element
    elif element.tag != _FALLBACK:
        for child in element:
            yield from _text_boxes(child)


def _styles(root: Element | None) -> Iterator[tuple[str, _Style]]:
    for style in root.iter(f"{_W}style") if root is not None else ():
        name = _value(style.find(f"{_W}name")).lower()
        properties = style.find(f"{_W}pPr")
        last = name.rpartition(" ")[2]
        level = int(last) if name.startswith("heading ") and last in "123456789" else 0
        yield (
            style.get(f"{_W}styleId", ""),
            _Style(
                level or _outline_level(properties),
                name == "title",
                name in ("html preformatted", "plain text", "macro text") or "code" in name.split(),
                _value(style.find(f"{_W}pPr/{_W}numPr/{_W}numId")),
                name.startswith(("list bullet", "list number")),
                name.startswith("list number"),
                int(last) - 1 if name.startswith("list ") and last in "23456789" else 0,
            ),
        )


def _ordered_lists(root: Element | None) -> dict[tuple[str, int], bool]:
    """Whether the items of each list are numbered, by list and depth."""
    if root is None:
        return {}
    kinds = dict[tuple[str, int], bool]()
    for abstract in root.iter(f"{_W}abstractNum"):
        for level in abstract.iter(f"{_W}lvl"):
            style = _value(level.find(f"{_W}numFmt"))
            key = abstract.get(f"{_W}abstractNumId", ""), int(level.get(f"{_W}ilvl", "0") or 0)
            kinds[key] = style not in ("bullet", "none", "")
    found = dict[tuple[str, int], bool]()
    for number in root.iter(f"{_W}num"):
        abstract_id = _value(number.find(f"{_W}abstractNumId"))
        for (known, depth), is_ordered in kinds.items():
            if known == abstract_id:
                found[number.get(f"{_W}numId", ""), depth] = is_ordered
    return found


def _notes(archive: Archive, folder: str) -> Iterator[tuple[tuple[str, str], Element]]:
    """The footnotes and endnotes, by the name of what refers to them and their ids."""
    for part, reference in _NOTES:
        root = archive.optional_xml(f"{folder}/{part}.xml")
        for note in root if root is not None else ():
            if note.get(f"{_W}type") is None:  # others are the lines between text and notes
                yield (reference, note.get(f"{_W}id", "")), note


def _outline_level(properties: Element | None) -> int:
    """The level of a heading by its outline, from 1; 0 if it is none."""
    found = properties.find(f"{_W}outlineLvl") if properties is not None else None
    number = _number(found) + 1 if found is not None else 0
    return number if number <= 9 else 0


def _all_text(element: Element) -> str:
    """The text of a paragraph without any markup, with its tabs and line ends."""
    return "".join(
        piece.text or _SPACES.get(piece.tag, "") for piece in element.iter() if piece.tag in _SPACES
    )


def _children(element: Element, name: str) -> Iterator[Element]:
    """The rows of a table or the cells of a row, those in frames around them too."""
    for child in element:
        if child.tag == f"{_W}{name}":
            yield child
        elif child.tag in _WITHIN:
            yield from _children(child, name)


def _is_on(properties: Element | None, name: str) -> bool:
    found = properties.find(f"{_W}{name}") if properties is not None else None
    return found is not None and found.get(f"{_W}val", "1").lower() not in _OFF


def _value(element: Element | None) -> str:
    return element.get(f"{_W}val", "") if element is not None else ""


def _number(element: Element | None) -> int:
    value = _value(element)
    return int(value) if value.isdecimal() else 0
