"""PDF files to markdown, with their pages.

Always: each page begins where its own text does; lines stay lines, so that code keeps its shape; what looks
like markdown in the text of a page is escaped. Headers and footers that pages repeat are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quire.config import DocumentSettings
from quire.errors import NotPrepared
from quire.location import Places
from quire.readers.base import Converted, clean

_SCANNED = "has no text, so it may be a scan. Quire does not recognise text in pictures (OCR)"
_ENCRYPTED = re.compile(r"password|encrypt", re.IGNORECASE)
_LEAST = 3  # pages that repeat a header or footer
_GAP = 2  # pages from one to the next
_ABOUT = 8  # points of height that may differ
_NO_SHAPE = "", 0
_MOST_RUNNING = 120  # characters of a header or footer
_NUMBERS = re.compile(r"[0-9]+|\b[ivxlc]+\b")
_HYPHEN = re.compile(r"(?<=[a-zà-ÿ])[-\u00ad]\n(?=[a-zà-ÿ])")
# What begins a block in markdown: a heading, a quote, an item, a fence, a table, HTML, an underline.
_OPENING = re.compile(
    r"(?m)^([ \t]*)(?=(?:#{1,6}(?:[ \t]|$)|>|[-+*][ \t]|`{3}|~{3}|\||<|=+[ \t]*$|-+[ \t]*$))"
)
_NUMBERED = re.compile(r"(?m)^([ \t]*\d{1,9})(?=[.)][ \t])")
_SECTION = re.compile(r"(\d+(?:\.\d+)*)\.?\s+\D")
_NOT_HEADING = re.compile(
    r"^(?:Figure|Fig\.|Table|Listing) \d|^-|^\d+[A-Za-z]|[;{},=]$|^[^a-zA-Z\u00c0-\uffff]*$"
)
_FEW_WORDS, _MOST_WORDS = 4, 14  # of a sentence, of a heading
_INDENT = re.compile(r"(?m)^[ \t]+")
_LEADERS = re.compile(r"(?:[ \t]*[.·…]){4,}")  # dots between a title and its page in a table of contents
_RUN = re.compile(r"`+")


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of a page."""

    page: int
    kind: str
    text: str
    level: int = 0
    height: int = 0  # where it is on its page, roughly


def read(source: bytes, name: str, settings: DocumentSettings) -> Converted:  # noqa: ARG001
    """The text of a PDF file. Raises NotPrepared if it has none, or is encrypted."""
    try:
        found = extract(source)
    except Exception as error:
        if _ENCRYPTED.search(str(error)):
            raise NotPrepared(name, "is encrypted. Save it again without a password") from None
        raise
    pages = len(found.pages or ())
    blocks = _with_levels(_without_running(list(_blocks(found.document or {}))))
    blocks = _with_lines(blocks, {page["page_number"]: page["content"] for page in found.pages or ()})
    if not any(block.text.strip() for block in blocks):
        raise NotPrepared(name, _SCANNED if pages else "has no pages that can be read")
    empty = pages - len({block.page for block in blocks})
    warning = f"{empty:,} of its {pages:,} pages have no text; they may be scans" if 2 * empty > pages else ""
    return _joined(blocks, pages, (warning,) if warning else ())


def extract(source: bytes) -> Any:
    """What kreuzberg makes of a file: its structure, without pictures, nothing cached, nothing recognised."""
    from kreuzberg import ExtractionConfig, PageConfig, extract_bytes_sync

    wanted: dict[str, Any] = {"use_cache": False, "disable_ocr": True, "include_document_structure": True}
    config = ExtractionConfig(output_format="markdown", pages=PageConfig(extract_pages=True), **wanted)
    return extract_bytes_sync(source, "application/pdf", config=config)


def _joined(blocks: Sequence[_Block], pages: int, warnings: tuple[str, ...]) -> Converted:
    parts, starts, size = list[str](), list[int](), 0
    for block in blocks:
        starts += [size] * (block.page - len(starts))
        parts.append(f"{_markdown(block)}\n\n")
        size += len(parts[-1])
    starts += [size] * (pages - len(starts))
    return Converted("".join(parts), Places("page", tuple(starts)), warnings=warnings)


def _blocks(document: dict[str, Any]) -> Iterator[_Block]:
    page = 1
    for node in document.get("nodes", ()):
        page = max(page, node.get("page") or 0)
        content = node.get("content") or {}
        kind = content.get("node_type", "")
        text = _table(content) if kind == "table" else content.get("text") or ""
        if kind != "group" and text.strip():
            text = _LEADERS.sub(" …", clean(text.replace("\r\n", "\n"))).strip("\n")
            top = (node.get("bbox") or {}).get("y1") or 0
            yield _Block(page, kind, text, content.get("level") or 0, round(top / _ABOUT))


def _with_levels(blocks: list[_Block]) -> list[_Block]:
    """Blocks whose numbered headings are as deep as their numbers, and whose false headings are text."""
    blocks = [replace(block, kind="paragraph") if _is_no_heading(block) else block for block in blocks]
    numbers = [_SECTION.match(block.text) if block.kind == "heading" else None for block in blocks]
    depths = [number[1].count(".") if number else -1 for number in numbers]
    tops = [block.level for block, depth in zip(blocks, depths, strict=True) if depth == 0]
    top = min(tops, default=0)
    return [
        replace(block, level=max(block.level, top + depth)) if depth > 0 and top else block
        for block, depth in zip(blocks, depths, strict=True)
    ]


def _is_no_heading(block: _Block) -> bool:
    """Whether what looks like a heading is a sentence, a line of code or the caption of a picture."""
    if block.kind != "heading":
        return False
    text, words = block.text.strip(), len(block.text.split())
    is_sentence = words > _FEW_WORDS and (text.endswith(".") or text[0].islower())
    return words > _MOST_WORDS or is_sentence or bool(_NOT_HEADING.search(text))


def _with_lines(blocks: list[_Block], pages: Mapping[int, str]) -> list[_Block]:
    """Blocks with the lines that they have on their pages: code and tables need them.

    A paragraph of a tagged file comes as one line. It is found again on its page, whatever the spaces.
    """
    compact = dict[int, tuple[str, list[int], str]]()
    found = []
    for block in blocks:
        if block.kind == "paragraph" and "\n" not in block.text and block.page in pages:
            if block.page not in compact:
                text = clean(pages[block.page].replace("\r\n", "\n"))
                places = [at for at, char in enumerate(text) if not char.isspace()]
                compact[block.page] = "".join(text[at] for at in places), places, text
            block = replace(block, text=_as_on_page(block.text, *compact[block.page]))
        found.append(block)
    return found


def _as_on_page(line: str, compact: str, places: Sequence[int], page: str) -> str:
    wanted = "".join(line.split())
    at = compact.find(wanted) if wanted else -1
    return page[places[at] : places[at + len(wanted) - 1] + 1] if at >= 0 else line


def _table(content: dict[str, Any]) -> str:
    """A table as markdown."""
    grid = content.get("grid") or {}
    rows = [[""] * int(grid.get("cols") or 0) for _ in range(int(grid.get("rows") or 0))]
    for cell in grid.get("cells", ()):
        if cell["row"] < len(rows) and cell["col"] < len(rows[cell["row"]]):
            rows[cell["row"]][cell["col"]] = " ".join(str(cell["content"]).split()).replace("|", "\\|")
    if not any(any(row) for row in rows):
        return ""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join((lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]))


def _without_running(blocks: list[_Block]) -> list[_Block]:
    """Blocks without the headers and footers that pages repeat, whatever numbers are in them.

    A paragraph is one if it is the first or last of its page, and at least two pages near it have the same
    at the same height. Headings stay: each chapter may begin on a page of its own.
    """
    by_page = dict[int, list[_Block]]()
    for block in blocks:
        by_page.setdefault(block.page, []).append(block)
    pages_of = dict[tuple[str, int], list[int]]()
    for page, inside in by_page.items():
        for shape in {shape for block in (inside[0], inside[-1]) if (shape := _shape(block))}:
            pages_of.setdefault(shape, []).append(page)
    repeated = {shape: _runs(pages) for shape, pages in pages_of.items()}
    edges = {id(block) for inside in by_page.values() for block in (inside[0], inside[-1])}
    return [
        block
        for block in blocks
        if id(block) not in edges or block.page not in repeated.get(_shape(block) or _NO_SHAPE, ())
    ]


def _runs(pages: list[int]) -> set[int]:
    """The pages that are near enough to others of the list: left and right pages may alternate."""
    found, run = set[int](), pages[:1]
    for page in pages[1:]:
        run = [*run, page] if page - run[-1] <= _GAP else [page]
        if len(run) >= _LEAST:
            found.update(run)
    return found


def _shape(block: _Block) -> tuple[str, int] | None:
    """What a header or footer has in common with that of other pages; None if it can be none."""
    if block.kind != "paragraph" or len(block.text) > _MOST_RUNNING:
        return None
    return _NUMBERS.sub("0", " ".join(block.text.split())), block.height


def _markdown(block: _Block) -> str:
    if block.kind == "heading":
        return f"{'#' * min(6, max(1, block.level))} {_line(block.text)}"
    if block.kind == "table":
        return block.text
    if block.kind == "code":
        fence = "`" * (1 + max((len(run) for run in _RUN.findall(block.text)), default=2))
        return f"{fence}\n{block.text}\n{fence}"
    text = _HYPHEN.sub("", block.text)
    if block.kind == "list_item":
        return f"- {escaped(_INDENT.sub('', text))}".replace("\n", "\n  ")
    return escaped(text)


def _line(text: str) -> str:
    return escaped(" ".join(text.split())).replace("#", "\\#")


def escaped(text: str) -> str:
    """Lines of a text that is not markdown, so that none of them opens a block."""
    text = _OPENING.sub(r"\1\\", _INDENT.sub(_shallow, text))
    return _NUMBERED.sub(r"\1\\", text)


def _shallow(indent: re.Match[str]) -> str:
    """An indent that does not make code."""
    return " " * min(3, len(indent[0].expandtabs()))
