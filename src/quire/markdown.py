"""Text to headings, fences and blocks, as character spans. The only file that knows the parser.

Input: text whose lines end in line feeds (`Document.markup`). Output: spans into it. Only a
top-level heading opens a section: one in a list or a block quote does not.

`scan` is fast and `parse_markdown` is simple. They agree except for raw `<pre>`, `<script>`, `<style>` and
`<textarea>`: the specification ends these at any of their closing tags, the parser only at their own. There
the scanner follows the specification. The scanner decides every line whose meaning depends only on the
fence or HTML block around it, and gives the parser the others, each with the paragraphs around it. It
relies on one fact: a blank line followed by a line that is not indented ends every paragraph, list and
quote, so the text after it can be read alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from quire import later

if TYPE_CHECKING:
    import pyromark
else:
    pyromark = later.module("pyromark")


class Heading(NamedTuple):
    """A top-level heading: its level and the span of its line or lines, line end included."""

    level: int
    start: int
    end: int


class Outline(NamedTuple):
    """The top level of a document: headings, and spans that hold none, whatever their lines look like."""

    headings: list[Heading]
    opaque: list[tuple[int, int]]  # fences, and the HTML blocks that a blank line does not end


class Block(NamedTuple):
    """A block and the blocks in it.

    Kinds: heading, paragraph, code, table, head, row, list, item, quote, html, rule.
    """

    kind: str
    start: int
    end: int
    children: tuple[Block, ...] = ()


# ------------------------------------------------------------------------------ the scanner

# The lines that may be a heading or hide one. Searching for a literal line feed first makes this
# fast: that is why the scanner puts one before the text.
_CANDIDATE = later.pattern(
    r"\n(?= {0,3}(?:[#`~<=]|--|-[ \t]*(?:\n|\Z)))(?:"  # most lines go no further than this
    r"(#{1,6})(?![^ \t\n])"  # 1: a heading
    r"|(`{3,}(?![^`\n]*`)|~{3,})"  # 2: a fence
    r"|(<[!?/a-zA-Z])"  # 3: perhaps HTML
    r"|( {1,3}(?:#{1,6}(?![^ \t\n])|```|~~~|<[!?/a-zA-Z]))"  # 4: one of these, indented
    r"|( {0,3}(?:=+|-+)[ \t]*(?![^\n]))"  # 5: perhaps the underline of a heading
    r")"
)
_HEADING, _FENCE, _HTML, _INDENTED, _UNDERLINE = range(1, 6)
_BLANK = later.pattern(r"\n[ \t]*(?=\n|\Z)")
_PARAGRAPH = later.pattern(r"(?:\n[A-Za-z][^\n|]*)+")  # a line with a bar may be the head of a table
_LIST_ITEM = later.pattern(r"\n(?:[-+*]|\d{1,9}[.)]) {1,4}(?![-*_ \t\n])")

# The seven kinds of HTML block, in the order of the CommonMark specification (section 4.6).
_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details"
    "|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head"
    "|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p"
    "|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
_HTML_START = later.pattern(
    r"[\n ]<(?:(?:(script|pre|style|textarea)(?=[ \t\n>]|\Z))"
    r"|(!--)|(\?)|(![a-z])|(!\[CDATA\[)"
    rf"|(/?(?:{_TAGS})(?=[ \t\n]|/?>|\Z))"
    r"|([/a-z][^\n]*>[ \t]*(?=\n|\Z)))",
    re.IGNORECASE,
)
_HTML_END = {
    1: re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    2: re.compile("-->"),
    3: re.compile(r"\?>"),
    4: re.compile(">"),
    5: re.compile(r"\]\]>"),
}
_UNTIL_BLANK, _PERHAPS = 6, 7


class _Closing(dict[str, re.Pattern[str]]):
    """The pattern that closes a fence, by its opening marker."""

    def __missing__(self, marker: str) -> re.Pattern[str]:
        found = re.compile(rf"\n {{0,3}}{marker[0]}{{{len(marker)},}}[ \t]*(?![^\n])")
        if len(marker) < 32:  # longer ones are rare, and their number has no bound
            self[marker] = found
        return found


_CLOSING = _Closing()


def scan(text: str, start: int = 0) -> Outline:
    """The outline of `text[start:]`, found by reading as little as possible."""
    if "\0" in text or "\x0b" in text or "\x0c" in text:  # white space only to some readers
        return parse_markdown(text, start)
    return _Scanner(text, start).run()


class _Scanner:
    """One pass over a text, with a line feed added before its first line and after its last.

    A position is that of the line feed before a line, so in the text itself it is the place
    where the line begins.
    """

    def __init__(self, text: str, start: int) -> None:
        self.text = f"\n{text[start:]}\n"
        self.shift = start
        self.headings: list[Heading] = []
        self.opaque: list[tuple[int, int]] = []
        self.sync = 0  # the last known position from which text can be read alone
        self.item = (0, 0)  # the least end of the last list item read, and its indent

    def run(self) -> Outline:
        at, text, shift = 0, self.text, self.shift
        search, find, add, hide = _CANDIDATE.search, text.find, self.headings.append, self.opaque.append
        while found := search(text, at):
            kind = found.lastindex
            line, after = found.span()
            if kind == _HEADING:
                self.sync = at = find("\n", after)
                add(Heading(after - line - 1, line + shift, at + shift))
            elif kind == _FENCE:
                closing = _CLOSING[found[_FENCE]].search(text, after)
                self.sync = at = closing.end() if closing else len(text) - 1
                hide((line + shift, at + shift))
            elif kind == _HTML:
                at = self._html(line)
            elif kind == _INDENTED:
                at = self._indented(line, after)
            else:
                at = self._underline(line, after)
        return self._within(shift + len(text) - 2)

    def _within(self, size: int) -> Outline:
        """The outline, without the line feed that was added after the last line."""
        if self.headings and self.headings[-1].end > size:
            self.headings[-1] = self.headings[-1]._replace(end=size)
        if self.opaque and self.opaque[-1][1] > size:
            self.opaque[-1] = (self.opaque[-1][0], size)
        return Outline(self.headings, self.opaque)

    def _close(self, line: int, end: int) -> int:
        self.opaque.append((line + self.shift, end + self.shift))
        self.sync = end
        return end

    def _html(self, line: int) -> int:
        kind = 2 if self.text.startswith("!--", line + 2) else _html_kind(self.text, line)
        if kind == 0:
            return line + 1
        if kind < _UNTIL_BLANK:
            closing = _HTML_END[kind].search(self.text, line)
            end = self.text.find("\n", closing.end()) if closing else len(self.text) - 1
            return self._close(line, end)
        if kind == _PERHAPS:
            return self._perhaps(line)
        self.sync = self._until_blank(line)
        return self.sync

    def _until_blank(self, line: int) -> int:
        blank = _BLANK.search(self.text, line + 1)
        return blank.start() if blank else len(self.text) - 1

    def _perhaps(self, line: int) -> int:
        """Skip to a blank line if it makes no difference whether the lines are HTML or text."""
        end = self._until_blank(line)
        return self._parse_around(line) if self._matters(line + 1, end) else end

    def _matters(self, start: int, end: int) -> bool:
        """Whether a line in between means one thing inside an HTML block and another outside."""
        for found in _CANDIDATE.finditer(self.text, start, end):
            tag = found.end() - 2
            if self.text[tag] != "<" or 0 < _html_kind(self.text, tag - 1) < _PERHAPS:
                return True
        return False

    def _indented(self, line: int, after: int) -> int:
        """Skip lines that are clearly inside a list item or clearly make no difference; parse the rest."""
        if self.text[after - 2] == "<" and _html_kind(self.text, after - 3) in (0, _PERHAPS):
            return self._perhaps(line)
        known, width = self.item
        if not width or self._outside(known, line, width):
            self.sync = known = self._sync_before(line)
            item = _LIST_ITEM.match(self.text, known)
            width = item.end() - known - 1 if item else 0
            if not width or self._outside(known + 1, line, width):
                return self._parse_around(line)
        self.item = (line, width)
        inside = self.text.startswith(" " * width, line + 1)
        return after if inside else self._parse_around(line)

    def _outside(self, start: int, end: int, width: int) -> bool:
        """Whether a line in between does not belong to a list item indented by `width`."""
        return _dedent(width).search(self.text, start, end) is not None

    def _underline(self, line: int, after: int) -> int:
        if line == self.sync or self.text[line - 1 : line] == "\n":  # nothing above it
            if self.text.startswith("---", line + 1):
                self.sync = after
            return after
        start = self._sync_before(line)
        if not _PARAGRAPH.fullmatch(self.text, start, line):
            return self._parse_around(line)
        level = 1 if "=" in self.text[line:after] else 2
        self.headings.append(Heading(level, start + self.shift, after + self.shift))
        self.sync = after
        return after

    def _parse_around(self, line: int) -> int:
        start, end, last = self._sync_before(line), self._sync_after(line), len(self.text) - 1
        while True:
            found, open_ended = _parse(self.text[start + 1 : end + 1])
            if end == last or not open_ended:
                break
            end = self._sync_after(min(last, 2 * end - start))
        by = start + self.shift
        self.headings.extend(Heading(level, a + by, b + by) for level, a, b in found.headings)
        self.opaque.extend((a + by, b + by) for a, b in found.opaque)
        self.sync, self.item = end, (0, 0)
        return end

    def _sync_before(self, line: int) -> int:
        at = line + 1
        while (at := self.text.rfind("\n\n", self.sync, at)) >= 0:
            if self.text[at + 2] not in " \t\n":
                return at + 1
            at += 1
        return self.sync

    def _sync_after(self, line: int) -> int:
        at = line
        while (at := self.text.find("\n\n", at)) >= 0:
            if self.text[at + 2 : at + 3] not in (" ", "\t", "\n"):
                return at + 1
            at += 1
        return len(self.text) - 1


def _html_kind(text: str, line: int) -> int:
    """Which of the seven kinds of HTML block a line may open; 0 if none."""
    found = _HTML_START.match(text, line)
    return found.lastindex or 0 if found else 0


@lru_cache(maxsize=64)
def _dedent(width: int) -> re.Pattern[str]:
    return re.compile(rf"\n {{0,{width - 1}}}[^ \n]")


# ------------------------------------------------------------------------------- the parser

_KINDS = {
    "Heading": "heading",
    "Paragraph": "paragraph",
    "CodeBlock": "code",
    "HtmlBlock": "html",
    "Table": "table",
    "TableHead": "head",
    "TableRow": "row",
    "List": "list",
    "Item": "item",
    "BlockQuote": "quote",
}
# The parser does not close a fence on a line that ends in a tab (pulldown-cmark 0.13).
_TAB_AFTER_FENCE = later.pattern(r"(?<=[`~])[ \t]*\t[ \t]*$", re.MULTILINE)


def parse_markdown(text: str, start: int = 0) -> Outline:
    """The outline of `text[start:]`, by the parser alone."""
    outline, _ = _parse(text[start:])
    headings = [Heading(level, a + start, b + start) for level, a, b in outline.headings]
    return Outline(headings, [(a + start, b + start) for a, b in outline.opaque])


def _parse(text: str) -> tuple[Outline, bool]:
    """The outline, and whether its last block would go on if the text did."""
    outline, open_ended = Outline([], []), False
    found = list(_top_level(text))
    edges = iter(_to_chars(text, [edge for _, _, a, b in found for edge in (a, b)]))
    for (kind, level, _, _), start, end in zip(found, edges, edges, strict=True):
        span = _whole_lines(text, start, end)
        open_ended = False
        if kind == "heading":
            outline.headings.append(Heading(level, *span))
        elif kind in ("code", "html"):
            outline.opaque.append(span)
            open_ended = _never_closed(f"\n{text[slice(*span)].lstrip(' ')}")
    return outline, open_ended


def _never_closed(block: str) -> bool:
    if (fence := _CANDIDATE.match(block)) and (marker := fence[_FENCE]):
        return not _CLOSING[marker].search(block, fence.end())
    kind = _html_kind(block, 0)
    return 0 < kind < _UNTIL_BLANK and not _HTML_END[kind].search(block)


def _top_level(text: str) -> Iterator[tuple[str, int, int, int]]:
    """Kind, level, and byte span of each top-level block."""
    depth = 0
    for event, span in _events(text):
        if type(event) is not dict:
            continue
        if (tag := event.get("Start")) is not None:
            depth += 1
            name = _tag(tag)
            if depth == 1:
                level = int(tag["Heading"]["level"][1]) if name == "Heading" else 0
                yield _KINDS.get(name, name), level, span["start"], span["end"]
        elif "End" in event:
            depth -= 1


def _events(text: str, references: Callable[[str], bool] | None = None) -> Iterator[tuple[Any, Any]]:
    if "\t" in text:
        text = _TAB_AFTER_FENCE.sub(lambda tabs: " " * len(tabs[0]), text)
    resolve = None if references is None else _Resolver(references)
    return pyromark.events_with_range(text, options=_options(), merge_text=True, broken_link_callback=resolve)


class _Resolver:
    """Tell the parser that a link is defined elsewhere in the document."""

    def __init__(self, references: Callable[[str], bool]) -> None:
        self.references = references

    def __call__(self, link: Any) -> tuple[str, str] | None:
        return ("", "") if self.references(link["reference"]) else None


def _to_chars(text: str, offsets: list[int]) -> list[int]:
    """Character offsets of byte offsets, given in any order."""
    if text.isascii():
        return offsets
    source, chars, seen, at = text.encode(), {}, 0, 0
    for offset in sorted(set(offsets)):
        at += len(source[seen:offset].decode())
        seen = offset
        chars[offset] = at
    return [chars[offset] for offset in offsets]


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """A span widened to the lines it touches, line ends included."""
    start = text.rfind("\n", 0, start) + 1
    if end and text[end - 1 : end] != "\n":
        end = text.find("\n", end) + 1 or len(text)
    return start, end


# -------------------------------------------------------------------------- what is in a line

_PLAIN_TITLE = later.pattern(r" {0,3}#{1,6}(?:[ \t]+([^\\`*_\[\]<&#\n]*))?(?:[ \t]#+[ \t]*)?\n?")
_ANCHOR = later.pattern(r"\s*\{#([\w.:-]+)\}\s*$")


def title(text: str, heading: Heading, references: Callable[[str], bool]) -> str:
    """The text of a heading, markup removed, white space folded."""
    line = text[heading.start : heading.end]
    if plain := _PLAIN_TITLE.fullmatch(line):
        return " ".join((plain[1] or "").split())
    parts = []
    for event, _ in _events(line, references):
        if type(event) is dict:
            parts.append(event.get("Text") or event.get("Code") or "")
        elif event in ("SoftBreak", "HardBreak"):
            parts.append(" ")
    return " ".join("".join(parts).split())


def split_anchor(title: str) -> tuple[str, str | None]:
    """A title without the `{#anchor}` at its end, which many documentation tools read, and that anchor."""
    found = _ANCHOR.search(title) if title.endswith("}") else None
    return (title[: found.start()], found[1]) if found else (title, None)


def references(text: str) -> Callable[[str], bool]:
    """A test whether `text` defines a link by some label."""
    defined = pyromark.reference_definitions(text, options=_options()) if "]:" in text else {}
    known = {_label(label) for label in defined}
    return lambda label: _label(label) in known


def _label(label: str) -> str:
    return " ".join(label.casefold().split())


# --------------------------------------------------------------------------------- the blocks

_MAX_NESTING = 50  # a deeper block is part of the one around it
_BLANK_LINES = later.pattern(r"(?:[ \t]*\n)*")
_ITEM = later.pattern(r"\n(?=(?:[-+*]|\d{1,9}[.)])[ \t])")
_TABLE = later.pattern(r"\|[^\n]*\|[ \t]*\n\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\n")
_NOT_A_ROW = later.pattern(r"\n[^|\n]")
_ROW = later.pattern(r"\n(?=\|)")
_GAP = later.pattern(r"\n(?:[ \t]*\n)+")
_BREAK = later.pattern(r"\n[ \t]*\n(?![ \t\n])")


def breaks(text: str, start: int, end: int, opaque: list[tuple[int, int]]) -> list[int]:
    """The places where a top-level block begins after a blank line, or an opaque one begins or ends.

    Blank lines belong to the block before them.
    """
    places, at = [start], start
    for first, after in opaque:
        places += [gap.end() for gap in _BREAK.finditer(text, at, first)]
        at = _BLANK_LINES.match(text, after, end).end()  # type: ignore[union-attr]  # always matches
        places += [first, at] if places[-1] < first else [at]
    places += [gap.end() for gap in _BREAK.finditer(text, at, end)]
    return places[1:-1] if len(places) > 1 and places[-1] == end else places[1:]


def paragraphs(text: str, start: int, end: int) -> list[int]:
    """The starts of the lines that follow a blank line, indented or not."""
    return [gap.end() for gap in _GAP.finditer(text, start, end) if gap.end() < end]


def items(text: str, start: int, end: int) -> list[int]:
    """The starts of list items that are not indented. Such a line is never in a code block of a list."""
    return [marker.end() for marker in _ITEM.finditer(text, start, end)]


def table_rows(text: str, start: int, end: int) -> list[int]:
    """Where the rows of a plain table begin, after its header; [] for anything else."""
    if not _TABLE.match(text, start, end) or _NOT_A_ROW.search(text, start, end):
        return []
    return [line.end() for line in _ROW.finditer(text, start, end)][1:]


def blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a text, nested, by the parser."""
    found: list[tuple[str, int, int, int]] = []  # kind, start, end, number of blocks before its end
    path: list[int] = []  # the open blocks; -1 for one that is nested too deep
    for event, span in _events(text):
        if "Start" in event:
            if kind := _KINDS.get(_tag(event["Start"])):
                deep = len(path) >= _MAX_NESTING
                path.append(-1 if deep else len(found))
                if not deep:
                    found.append((kind, span["start"], span["end"], 0))
        elif "End" in event:
            if _tag(event["End"]) in _KINDS and (index := path.pop()) >= 0:
                found[index] = (*found[index][:3], len(found))
        elif event == "Rule" and len(path) < _MAX_NESTING:
            found.append(("rule", span["start"], span["end"], len(found) + 1))
    edges = _to_chars(text, [edge for _, a, b, _ in found for edge in (a, b)])
    return _nest(found, edges, 0, len(found))


def _tag(tag: str | dict[str, Any]) -> str:
    return tag if type(tag) is str else next(iter(tag))


def _nest(
    found: list[tuple[str, int, int, int]], edges: list[int], first: int, last: int
) -> tuple[Block, ...]:
    nested = []
    while first < last:
        kind, _, _, after = found[first]
        children = _nest(found, edges, first + 1, after)
        nested.append(Block(kind, edges[2 * first], edges[2 * first + 1], children))
        first = after
    return tuple(nested)


@cache
def _options() -> pyromark.Options:
    return pyromark.Options.ENABLE_TABLES
