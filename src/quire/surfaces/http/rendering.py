"""A stored document to safe HTML for the reader of the web page, and its sections for the outline.

Input: a tree, the places of its original, and where its links lead. Output: HTML. Always: it holds no script,
style, form, picture or frame, and loads nothing; every block says which lines of the document it shows; the
anchor of each section is in it once; characters that hide or reverse text are written as their codes; time is
linear in the length of the document. A document that would take long is shown as it was written.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import nh3

from quire.context import one_line, safe
from quire.document import BOM, MAX_TITLE, Document
from quire.location import Places
from quire.surfaces.http.destinations import LinkTargets, section_anchor
from quire.surfaces.http.markdown_html import (
    Part,
    Shown,
    TooMuch,
    attributes,
    blocks_of,
    remark,
    source_block,
)
from quire.tree import Tree

# Markdown is laid out up to these limits. Real documents take 0.2 to 0.9 s a megabyte. What takes time are
# the signs of markup: up to 10 µs each, an opening bracket up to 70 µs, a heading up to 30 µs. The worst
# documents within the limits that we found take less than three seconds.
_MAX_CHARACTERS = 2_000_000
_MAX_MARKS = 250_000
_MARKS = "\n|*_`~<>&!\\"
_BRACKET, _HEADING = 6, 4  # marks that an opening bracket or a heading counts for
_TOO_LONG = (
    "This document is too long, or has too much markup, to be laid out. It is shown as it was written."
)
_RUN = 100  # lines of a source in one block: the page can scroll to a block
_MAX_ROWS, _MAX_COLUMNS = 1000, 100  # of a table: more are shown as they were written
_DELIMITERS = ",;\t|"
_UNMARKED = ("anchor", "row")  # places that are not marked: people know neither ids nor single rows as such

_TAGS = {"a", "blockquote", "br", "code", "div", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong"}
_TAGS |= {"table", "tbody", "td", "th", "thead", "tr", "ul", *(f"h{level}" for level in range(1, 7))}
_ATTRIBUTES = {
    "*": {"class", "data-line", "data-end", "id"},
    "a": {"href", "rel", "target"},
    "div": {"data-place"},
    "ol": {"start"},
    "span": {"title"},
}
_VALUES = {  # what an attribute may be, whatever the text before said
    "href": re.compile(r"#s-|/read\?address=|https?://|mailto:", re.IGNORECASE),
    "id": re.compile(r"s-"),
    "class": re.compile(
        r"(?:center|dead|front-matter|language-[a-z0-9-]+|left|note|picture|place|right|source)\Z"
    ),
    "data-line": re.compile(r"\d+\Z"),
    "data-end": re.compile(r"\d+\Z"),
    "start": re.compile(r"\d+\Z"),
}


def rendered(tree: Tree, places: Places | None, targets: Mapping[str, str]) -> str:
    """A document as safe HTML. `targets` has the addresses that links lead to, by how they are written."""
    page = _Page(tree.document, _lines(tree.document), _starts(tree.document, places))
    shown = [*_front_matter(page), *_body(tree, page, LinkTargets(tree, targets))]
    root = f"<span{attributes(id=section_anchor(tree.root))}></span>\n"
    return _cleaner().clean(safe(root + "".join(_with_places(shown, page, places))))


def sections_of(tree: Tree, tokens: Mapping[int, int]) -> list[dict[str, Any]]:
    """The sections of a document, in order; `tokens` of each by its position."""
    line, last = tree.names.lines, max(1, tree.document.lines)
    size = len(tree.document.text)
    return [
        {
            "address": section.address,
            "title": one_line(section.title),
            "depth": section.level,
            "anchor": section_anchor(section),
            "start_line": line[section.start],
            "end_line": last if section.end == size else max(line[section.start], line[section.end] - 1),
            "tokens": tokens[section.position],
        }
        for section in tree.sections
    ]


class _Page(NamedTuple):
    """A document by lines."""

    document: Document
    lines: Sequence[str]
    starts: Sequence[int]  # the lines that places start in

    @property
    def first(self) -> int:
        """The first line after front matter."""
        return self.document.lines_at([self.document.content_start])[0]

    def text(self, first: int, last: int) -> str:
        """Some lines, the last included."""
        return "\n".join(self.lines[first - 1 : last])


def _lines(document: Document) -> list[str]:
    """The lines of a document, as it counts them."""
    text = document.text.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _starts(document: Document, places: Places | None) -> Sequence[int]:
    return document.lines_at(places.starts) if places and places.unit not in _UNMARKED else ()


def _front_matter(page: _Page) -> Iterator[Shown]:
    if text := page.document.front_matter.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n"):
        yield source_block(1, 1 + text.count("\n"), text, "front-matter")


def _body(tree: Tree, page: _Page, routes: LinkTargets) -> Iterable[Shown]:
    """The blocks of a document, after its front matter."""
    if tree.document.format == "csv":
        return _table(tree, page)
    parts = list(_parts(tree, page))
    if tree.document.format != "markdown":
        return _sources(parts, page)
    try:
        return blocks_of(parts, routes) if _is_short(tree) else _as_written(parts, page)
    except TooMuch:
        return _as_written(parts, page)


def _is_short(tree: Tree) -> bool:
    """Whether a document can be laid out in a few seconds."""
    text = tree.document.text
    if len(text) > _MAX_CHARACTERS:
        return False
    marks = sum(map(text.count, _MARKS)) + _BRACKET * text.count("[") + _HEADING * len(tree.headings)
    return marks <= _MAX_MARKS


def _parts(tree: Tree, page: _Page) -> Iterator[Part]:
    """The headings of a document, and what is between them."""
    anchors = {section.heading: section_anchor(section) for section in tree.sections[1:]}
    edges = [edge for h in tree.headings for edge in (h.start, max(h.start, h.end - 1))]
    numbers = iter(tree.document.lines_at(edges))
    at = page.first
    for index, (heading, first, last) in enumerate(zip(tree.headings, numbers, numbers, strict=True)):
        if first > at:
            yield Part(page.text(at, first - 1), at)
        title = tree.names.titles[index]
        yield Part(page.text(first, last), first, min(heading.level, 6), title, anchors.get(index, ""))
        at = last + 1
    if at <= len(page.lines):
        yield Part(page.text(at, len(page.lines)), at)


# ----------------------------------------------------------------------------- text as it was written


def _as_written(parts: Iterable[Part], page: _Page) -> Iterator[Shown]:
    """A document that cannot be laid out, after a note that says so."""
    yield Shown(page.first, page.first, remark(_TOO_LONG))
    yield from _sources(parts, page)


def _sources(parts: Iterable[Part], page: _Page) -> Iterator[Shown]:
    """Headings, and the text between them as it was written."""
    for part in parts:
        last = part.line + part.text.count("\n")
        if part.level:
            named = attributes(id=part.anchor, data_line=part.line, data_end=last)
            tag = f"h{part.level}"
            yield Shown(part.line, last, f"<{tag}{named}>{escape(part.title)}</{tag}>\n")
        if not part.level or len(part.title) >= MAX_TITLE:  # a longer title was cut
            yield from _runs(part.line, last, page)


def _runs(first: int, last: int, page: _Page) -> Iterator[Shown]:
    """Some lines, in blocks that are short enough to scroll to; a place begins a block."""
    cuts = {first, last + 1, *range(first, last + 1, _RUN)}
    cuts.update(page.starts[bisect_right(page.starts, first) : bisect_right(page.starts, last)])
    for start, after in pairwise(sorted(cuts)):
        if found := _trimmed(page.lines, start, after - 1):
            yield source_block(*found, page.text(*found))


def _trimmed(lines: Sequence[str], first: int, last: int) -> tuple[int, int] | None:
    """The first and the last line that are not blank; None if all are."""
    solid = [number for number in range(first, last + 1) if lines[number - 1].strip()]
    return (solid[0], solid[-1]) if solid else None


# ----------------------------------------------------------------------------- tables


def _table(tree: Tree, page: _Page) -> Iterator[Shown]:
    """The first rows of a table as one, and the others as they were written."""
    starts = [*tree.document.lines_at(tree.rows), len(page.lines) + 1]
    spans = [(first, after - 1) for first, after in pairwise(starts)]
    texts = [page.text(*span) for span in spans[:_MAX_ROWS]]
    rows = list(_fields(texts))
    is_wide = any(len(row) > _MAX_COLUMNS for row in rows)
    if rows and not is_wide:
        yield _rows(spans[: len(rows)], rows)
    if others := spans[0 if is_wide else len(rows) :]:
        yield Shown(others[0][0], others[0][0], remark(_why(is_wide, len(spans))))
        yield from _runs(others[0][0], others[-1][1], page)


def _why(is_wide: bool, count: int) -> str:
    if is_wide:
        return f"This table has more than {_MAX_COLUMNS:,} columns. It is shown as it was written."
    return f"The first {_MAX_ROWS:,} of {count:,} rows are shown as a table, the others as they were written."


def _fields(texts: Sequence[str]) -> Iterator[list[str]]:
    """The fields of rows. One that cannot be read is one field."""
    delimiter = max(_DELIMITERS, key=texts[0].count) if texts else ","
    for text in texts:
        try:
            yield next(csv.reader([text.rstrip("\n")], delimiter=delimiter), [])
        except csv.Error:  # a field is too long
            yield [text]


def _rows(spans: Sequence[tuple[int, int]], rows: Sequence[Sequence[str]]) -> Shown:
    lines = [
        _row(span, row, "td" if at else "th") for at, (span, row) in enumerate(zip(spans, rows, strict=True))
    ]
    first, last = spans[0][0], spans[-1][1]
    body = f"<thead>\n{lines[0]}</thead>\n<tbody>\n{''.join(lines[1:])}</tbody>\n"
    return Shown(first, last, f"<table{attributes(data_line=first, data_end=last)}>\n{body}</table>\n")


def _row(span: tuple[int, int], fields: Sequence[str], tag: str) -> str:
    cells = "".join(f"<{tag}>{escape(field)}</{tag}>" for field in fields)
    return f"<tr{attributes(data_line=span[0], data_end=span[1])}>{cells}</tr>\n"


# ----------------------------------------------------------------------------- places


def _with_places(shown: Iterable[Shown], page: _Page, places: Places | None) -> Iterator[str]:
    """The blocks, each after the places that start in it or in the blank lines before it."""
    told = 0
    for block in shown:
        reached = told
        while reached < len(page.starts) and page.starts[reached] <= block.last:
            reached += 1
        yield from _place(places, told, reached)
        yield block.html
        told = reached
    yield from _place(places, told, len(page.starts))


def _place(places: Places | None, told: int, reached: int) -> Iterator[str]:
    if places and reached > told:
        number = f"{told + 1}–{reached}" if reached > told + 1 else f"{reached}"
        name = f"{places.unit} {number}"
        yield f"<div{attributes(class_='place', data_place=name)}>{escape(name)}</div>\n"


# ----------------------------------------------------------------------------- the second wall


@cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_allowed,
        link_rel=None,  # links have their own
        url_schemes={"http", "https", "mailto"},
    )


def _allowed(tag: str, name: str, value: str) -> str | None:  # noqa: ARG001  nh3 gives it
    pattern = _VALUES.get(name)
    return value if pattern is None or pattern.match(value) else None
