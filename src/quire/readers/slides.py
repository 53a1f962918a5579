"""PowerPoint presentations (.pptx) to markdown, slide by slide, with their notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.config import DocumentSettings
from quire.errors import NotPrepared
from quire.readers.archive import Archive
from quire.readers.base import Converted
from quire.readers.blocks import Blocks, link, styled

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_TITLES = ("title", "ctrTitle")
_NOT_CONTENT = ("dt", "ftr", "sldNum", "sldImg", "hdr")  # date, footer, number, picture of the slide
_HEADING = 2  # every slide is a section of the presentation
Relations = dict[str, tuple[str, str, bool]]


def read(source: bytes, name: str, settings: DocumentSettings) -> Converted:
    """The text of a presentation."""
    archive, blocks = Archive(source, name, settings), Blocks("slide")
    main = next((p for t, p, _ in archive.relations("").values() if t == "officeDocument"), "")
    main = main or "ppt/presentation.xml"
    known, root = archive.relations(main), archive.xml(main)
    if root.tag != f"{_P}presentation":
        raise NotPrepared(name, "holds no PowerPoint presentation, whatever its name says")
    for number, one in enumerate(root.iter(f"{_P}sldId"), 1):
        _, path, _ = known.get(one.get(_R, ""), ("", "", False))
        if archive.has(path):
            _Slide(archive, path, blocks).write(number)
    text, places = blocks.markdown()
    return Converted(text, places)


class _Slide:
    """One slide."""

    def __init__(self, archive: Archive, path: str, blocks: Blocks) -> None:
        self.archive, self.blocks = archive, blocks
        self.relations = archive.relations(path)
        self.shapes = list(_shapes(archive.xml(path)))

    def write(self, number: int) -> None:
        self.blocks.begin_place(number)
        titles = [shape for shape in self.shapes if _role(shape) in _TITLES]
        inline = " ".join(self._line(p) for shape in titles for p in shape.iter(f"{_A}p"))
        self.blocks.heading(_HEADING, inline if inline.strip() else self.blocks.text(f"Slide {number}"))
        for shape in self.shapes:
            if shape not in titles:
                self._shape(shape)
        self._notes()

    def _shape(self, shape: Element) -> None:
        if shape.tag == f"{_P}graphicFrame":
            for table in shape.iter(f"{_A}tbl"):
                rows = ([self._cell(cell) for cell in row.iter(f"{_A}tc")] for row in table.iter(f"{_A}tr"))
                self.blocks.table(rows)
        elif _role(shape) not in _NOT_CONTENT:
            is_list = _role(shape) in ("body", "obj", "")  # "": a placeholder without a type has bullets
            for paragraph in shape.iter(f"{_A}p"):
                self._paragraph(paragraph, is_list=is_list and shape.find(f".//{_P}ph") is not None)

    def _paragraph(self, paragraph: Element, *, is_list: bool) -> None:
        properties = paragraph.find(f"{_A}pPr")
        numbered = properties is not None and properties.find(f"{_A}buAutoNum") is not None
        plain = properties is not None and properties.find(f"{_A}buNone") is not None
        depth = properties.get("lvl", "0") if properties is not None else "0"
        inline = self._line(paragraph)
        if (is_list or numbered) and not plain:
            self.blocks.item(inline, int(depth) if depth.isdecimal() else 0, is_ordered=numbered)
        else:
            self.blocks.paragraph(inline)

    def _cell(self, cell: Element) -> str:
        lines = (self._line(p) for p in cell.iter(f"{_A}p"))
        return "<br>".join(line for line in lines if line.strip())

    def _line(self, paragraph: Element) -> str:
        parts = []
        for piece in paragraph:
            if piece.tag == f"{_A}br":
                parts.append("<br>")
            elif piece.tag in (f"{_A}r", f"{_A}fld"):
                parts.append(self._run(piece))
        return "".join(parts)

    def _run(self, run: Element) -> str:
        properties, text = run.find(f"{_A}rPr"), run.find(f"{_A}t")
        shown = self.blocks.text(text.text or "") if text is not None else ""
        if properties is None:
            return shown
        clicked = properties.find(f"{_A}hlinkClick")
        _, target, outside = (
            self.relations.get(clicked.get(_R, ""), _NOWHERE) if clicked is not None else _NOWHERE
        )
        shown = link(target, shown) if outside else shown
        return styled(shown, "strong", wanted=properties.get("b") == "1")

    def _notes(self) -> None:
        """What the speaker says, as quotes."""
        for kind, path, _ in self.relations.values():
            if kind == "notesSlide" and self.archive.has(path):
                shapes = [s for s in _shapes(self.archive.xml(path)) if _role(s) == "body"]
                for paragraph in (p for shape in shapes for p in shape.iter(f"{_A}p")):
                    self.blocks.paragraph(self._line(paragraph), "blockquote")


_NOWHERE = ("", "", False)


def _shapes(root: Element) -> Iterator[Element]:
    """The shapes and tables of a slide, those in groups too, in order."""
    for child in root:
        if child.tag in (f"{_P}sp", f"{_P}graphicFrame"):
            yield child
        elif child.tag in (f"{_P}cSld", f"{_P}spTree", f"{_P}grpSp"):
            yield from _shapes(child)


def _role(shape: Element) -> str:
    """What a shape is for: title, body and so on; "" if it does not say."""
    found = shape.find(f".//{_P}ph")
    return found.get("type", "") if found is not None else ""
