"""PDF files to markdown, with their pages.

The text is that of the pages, line by line, so nothing of it is lost and code keeps its shape. The structure
that kreuzberg finds says which lines are headings and where paragraphs begin; its own texts are not used,
because it mends ligatures that are none (`UseMethod` becomes `Usettiethod`). Always: each page begins where
its own text does; what looks like markdown on a page is escaped. Page numbers, and lines that pages in a row
repeat at their top or bottom, are kept once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from quire.config import DocumentSettings
from quire.errors import NotPrepared
from quire.location import Places
from quire.readers.base import Converted, clean, escaped

_SCANNED = "has no text, so it may be a scan. Quire does not recognise text in pictures (OCR)"
_ENCRYPTED = re.compile(r"password|encrypt", re.IGNORECASE)
_LEAST, _GAP = 3, 2  # pages that repeat a line, and from one to the next: left and right pages may differ
_NUMBER = re.compile(
    r"(?P<before>\d{1,5})\s+(?P<text>\D.*)|(?P<said>.*\D)\s+(?P<after>\d{1,5})|\W*(?P<alone>\d{1,5})\W*"
)
_SECTION = re.compile(r"(\d+(?:\.\d+)*)\.?\s+\D")
_NOT_HEADING = re.compile(
    r"^(?:Figure|Fig\.|Table|Listing) \d|^[-–•◦▪‣●]|^\d+[A-Za-z]|[;{},=]$|[.…]\s*\d+$|^[ivxlc]+$"
    r"|^[^a-zA-Z\u00c0-\uffff]*$"
)
_TITLE_PAGE = 12  # lines at most
_FEW_WORDS, _MOST_WORDS = 4, 14  # of a sentence, of a heading
_LINES = 3  # that a heading may have
_ALIKE = 0.8  # how alike a line and a heading are that kreuzberg has changed
_OPENING = 12  # letters and digits by which the beginning of a paragraph is found
_LEADERS = re.compile(r"(?:[ \t]*[.·…]){4,}")  # dots between a title and its page in a table of contents
_BULLET = re.compile(r"(?m)^[ \t]*[•◦▪‣●][ \t]+")
_HYPHEN = re.compile(r"(\w*[^\W\d_])(-|\u00ad)\n([^\W\d_]\w*)")
_BROKEN = re.compile("\x02\n?")  # what stands for a hyphen at the end of a line
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class _Node:
    """What kreuzberg says of a part of a page."""

    kind: str
    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading or a paragraph of a page."""

    page: int
    text: str
    level: int = 0  # of a heading; 0 for a paragraph


def read(source: bytes, name: str, settings: DocumentSettings) -> Converted:  # noqa: ARG001
    """The text of a PDF file. Raises NotPrepared if it has none, or is encrypted."""
    try:
        found = extract(source)
    except Exception as error:
        if _ENCRYPTED.search(str(error)):
            raise NotPrepared(name, "is encrypted. Save it again without a password") from None
        raise
    texts = {page["page_number"]: _text_of(page["content"]) for page in found.pages or ()}
    if not any(texts.values()):
        raise NotPrepared(name, _SCANNED if texts else "has no pages that can be read")
    nodes = _nodes(found.document or {})
    titles = {key for some in nodes.values() for one in some if one.level and len(key := _key(one.text)) > 5}
    pages = _without_running({page: text.split("\n") for page, text in texts.items() if text}, titles)
    blocks = [block for page, lines in pages.items() for block in _blocks(page, lines, nodes.get(page, []))]
    joined = _joined(_with_levels(blocks), len(texts), _warnings(texts))
    return replace(joined, title=_title(found.metadata, blocks))


def _title(metadata: Mapping[str, Any], blocks: Sequence[_Block]) -> str:
    """The title that the file names, if its first page says it; else the first line of a title page."""
    first = [block for block in blocks if block.page == blocks[0].page]
    named = " ".join(str(metadata.get("title") or "").split())
    if named and _key(named) in _key(" ".join(block.text for block in first)):
        return named
    lines = [line for block in first for line in block.text.split("\n")]
    is_title_page = len(lines) <= _TITLE_PAGE and not any(block.level for block in first)
    return lines[0].strip() if is_title_page else ""


def extract(source: bytes) -> Any:
    """What kreuzberg makes of a file: pages and structure, nothing cached, no pictures, no OCR."""
    from kreuzberg import ExtractionConfig, PageConfig, extract_bytes_sync

    wanted: dict[str, Any] = {"use_cache": False, "disable_ocr": True, "include_document_structure": True}
    config = ExtractionConfig(output_format="markdown", pages=PageConfig(extract_pages=True), **wanted)
    return extract_bytes_sync(source, "application/pdf", config=config)


def _text_of(content: str) -> str:
    """The text of a page, without white space at the ends of lines and without blank ones."""
    text = _BROKEN.sub("-\n", clean(content.replace("\r\n", "\n").replace("\r", "\n")))
    text = _LEADERS.sub(" …", text)
    return "\n".join(line for one in text.split("\n") if (line := one.rstrip()))


def _warnings(texts: Mapping[int, str]) -> tuple[str, ...]:
    empty = [page for page, text in texts.items() if not text]
    if not empty:
        return ()
    some = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
    which = f"page {some} has" if len(empty) == 1 else f"pages {some} have"
    return (f"{which} no text: blank, or a picture such as a scan",)


def _nodes(document: dict[str, Any]) -> dict[int, list[_Node]]:
    """The parts of each page, in order."""
    found, page = defaultdict[int, list[_Node]](list), 1
    for node in document.get("nodes", ()):
        page = max(page, node.get("page") or 0)
        content = node.get("content") or {}
        text, kind = content.get("text") or "", content.get("node_type", "")
        if text.strip():
            is_heading = kind == "heading" and not _is_no_heading(text)
            found[page].append(_Node(kind, text, content.get("level") or 1 if is_heading else 0))
    return found


def _is_no_heading(text: str) -> bool:
    """Whether what looks like a heading is a sentence, a line of code or the caption of a picture."""
    text, words = text.strip(), len(text.split())
    is_sentence = words > _FEW_WORDS and (text.endswith(".") or text[0].islower())
    return words > _MOST_WORDS or is_sentence or bool(_NOT_HEADING.search(text))


# ------------------------------------------------------------------------------------ lines to blocks


def _blocks(page: int, lines: Sequence[str], nodes: Sequence[_Node]) -> Iterator[_Block]:
    """The headings and paragraphs of a page: all its lines, in order."""
    headings, starts = _headings(lines, nodes), _starts(lines, nodes)
    at, begun = 0, 0
    while at < len(lines):
        if at in headings or at in starts:
            if begun < at:
                yield _Block(page, "\n".join(lines[begun:at]))
            begun = at
        if at in headings:
            level, count = headings[at]
            yield _Block(page, " ".join(" ".join(lines[at : at + count]).split()), level)
            at = begun = at + count
        else:
            at += 1
    if begun < len(lines):
        yield _Block(page, "\n".join(lines[begun:]))


def _headings(lines: Sequence[str], nodes: Sequence[_Node]) -> dict[int, tuple[int, int]]:
    """The lines that are headings: of each the level, and how many lines it has."""
    keys, found = [_key(line) for line in lines], dict[int, tuple[int, int]]()
    for node in nodes:
        place = _place_of(_key(node.text), keys, found) if node.level else None
        if place:
            found[place[0]] = node.level, place[1]
    return found


def _place_of(wanted: str, keys: Sequence[str], taken: Mapping[int, object]) -> tuple[int, int] | None:
    """Where a heading is, and how many lines it has: by its letters, else by likeness."""
    for count in range(1, _LINES + 1):
        for at in range(len(keys) - count + 1):
            if at not in taken and "".join(keys[at : at + count]) == wanted:
                return at, count
    for at, key in enumerate(keys):
        alike = at not in taken and abs(len(key) - len(wanted)) <= len(wanted) // 2
        if alike and key[:2] == wanted[:2] and SequenceMatcher(None, key, wanted).ratio() >= _ALIKE:
            return at, 1
    return None


def _starts(lines: Sequence[str], nodes: Iterable[_Node]) -> set[int]:
    """The lines with which a paragraph begins."""
    first = {key for node in nodes if len(key := _key(node.text)[:_OPENING]) == _OPENING}
    return {at for at, line in enumerate(lines) if _key(line)[:_OPENING] in first}


def _key(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(char for char in text.lower() if char.isalnum())


def _with_levels(blocks: list[_Block]) -> list[_Block]:
    """Blocks whose numbered headings are as deep as their numbers."""
    numbers = [_SECTION.match(block.text) if block.level else None for block in blocks]
    depths = [number[1].count(".") if number else -1 for number in numbers]
    top = min((block.level for block, depth in zip(blocks, depths, strict=True) if depth == 0), default=0)
    return [
        replace(block, level=max(block.level, top + depth)) if depth > 0 and top else block
        for block, depth in zip(blocks, depths, strict=True)
    ]


# ------------------------------------------------------------------------- headers and page numbers

_Shape = tuple[str, int]  # a line without its page number, and how far that is from the number of the page


def _without_running(pages: Mapping[int, list[str]], titles: set[str]) -> dict[int, list[str]]:
    """The lines of each page, without first and last lines that pages before it have as well."""
    at_top = _repeated({page: lines[0] for page, lines in pages.items()}, titles)
    at_end = _repeated({page: lines[-1] for page, lines in pages.items()}, titles)
    found = {}
    for page, lines in pages.items():
        kept = lines[1:] if page in at_top and len(lines) > 1 else lines
        found[page] = kept[:-1] if page in at_end and len(kept) > 1 else kept
    return found


def _repeated(lines: Mapping[int, str], titles: set[str]) -> set[int]:
    """The pages whose line others near before them have; the first of them keeps it."""
    pages_of = defaultdict[_Shape, list[int]](list)
    for page, line in lines.items():
        if shape := _shape(line, page, titles):
            pages_of[shape].append(page)
    return {page for pages in pages_of.values() for run in _runs(pages) for page in run[1:]}


def _runs(pages: Sequence[int]) -> Iterator[list[int]]:
    run = list(pages[:1])
    for page in pages[1:]:
        if page - run[-1] > _GAP:
            if len(run) >= _LEAST:
                yield run
            run = []
        run.append(page)
    if len(run) >= _LEAST:
        yield run


def _shape(line: str, page: int, titles: set[str]) -> _Shape | None:
    """What a header or footer has in common with that of other pages; None if it can be none.

    A line with a number is one if it is only the number of the page, or names a heading beside it.
    """
    line = " ".join(line.split())
    found = _NUMBER.fullmatch(line)
    if not any(char.isdigit() for char in line):
        return line, 0
    if found is None:
        return None
    number = int(found["before"] or found["after"] or found["alone"])
    text = found["text"] or found["said"] or ""
    names_heading = (
        any(title in _key(text) or _key(text) in title for title in titles) if len(text) > 5 else False
    )
    return (text, number - page) if not text or names_heading else None


# --------------------------------------------------------------------------------------- markdown


def _joined(blocks: Sequence[_Block], pages: int, warnings: tuple[str, ...]) -> Converted:
    words = {word for block in blocks for word in _WORD.findall(block.text.lower())}
    parts, starts, size = list[str](), list[int](), 0
    for block in blocks:
        starts += [size] * (block.page - len(starts))
        parts.append(f"{_markdown(block, words)}\n\n")
        size += len(parts[-1])
    starts += [size] * (pages - len(starts))
    return Converted("".join(parts), Places("page", tuple(starts)), warnings=warnings)


def _markdown(block: _Block, words: set[str]) -> str:
    if block.level:
        return f"{'#' * min(6, block.level)} {escaped(block.text).replace('#', chr(92) + '#')}"
    text = _HYPHEN.sub(lambda found: _unbroken(found, words), block.text)
    return _BULLET.sub("- ", escaped(text))


def _unbroken(found: re.Match[str], words: set[str]) -> str:
    """A word that was hyphenated at the end of a line; one that has the hyphen elsewhere keeps it."""
    first, sign, last = found.groups()
    is_name = last[0].isupper() or first.isupper() or len(first) < 2
    if sign == "-" and (f"{first}-{last}".lower() in words or is_name):
        return f"{first}-{last}"
    return f"{first}{last}"
