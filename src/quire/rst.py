r"""reStructuredText to its section titles and literal blocks, as character spans.

Input: text whose lines end in line feeds (`Document.markup`). Output: a markdown.Outline. `scan` reads the
top level of a document as docutils does, element by element: a title is text with a line of punctuation
under it, and perhaps the same line over it. Levels are in the order in which these styles first appear.
Opaque are literal blocks, tables, comments and directives whose content is no prose.

A title that docutils reports as an error because it skips a level is a title here.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate

from quire.markdown import Heading, Outline
from quire.numerals import from_roman, to_roman

_LINE = re.compile(r"([!-/:-@\[-`{-~])\1*")
_COUNTED = r"[0-9]{1,9}|[a-zA-Z]|[ivxlcdm]+|[IVXLCDM]+|#"
_ENUMERATOR = re.compile(rf"(\(?)({_COUNTED})([.)])(?: |$)")
_ARGUMENT = r"(?:[a-zA-Z][a-zA-Z0-9_-]*|<[^<>]+>)"
_OPTION = rf"(?:[-+][a-zA-Z0-9](?: ?{_ARGUMENT})?|(?:--|/)[a-zA-Z0-9][a-zA-Z0-9_-]*(?:[ =]{_ARGUMENT})?)"
# The order is that of docutils: the first pattern that matches decides.
_ELEMENT = re.compile(
    r"(?P<item>[-+*•‣⁃](?: |$))"
    rf"|(?P<enumerator>(?:\((?:{_COUNTED})\)|(?:{_COUNTED})[.)])(?: |$))"
    r"|(?P<field>:(?![: ])(?:[^:\\]|\\.|:(?![ `]|$))*+(?<! ):(?: |$))"
    rf"|(?P<option>{_OPTION}(?:, {_OPTION})*(?:  +| ?$))"
    r"|(?P<doctest>>>>(?: |$))"
    r"|(?P<line_block>\|(?: |$))"
    r"|(?P<grid>\+-[-+]+-\+$)"
    r"|(?P<simple>=+(?: +=+)+$)"
    r"|(?P<explicit>\.\.(?: |$))"
    r"|(?P<anonymous>__(?: |$))"
    r"|(?P<line>(?P<mark>[!-/:-@\[-`{-~])(?P=mark)*$)"
)
_BORDER = re.compile(r"=+[ =]*")
_NAMED = re.compile(r"\.\. +(?:\[[^\]]+\]|_|\||[\w+.:-]+?::(?: |$))")  # no comment
_CODE = re.compile(
    r" *\.\. +(?:code|code-block|sourcecode|parsed-literal|literalinclude|math|raw|csv-table|list-table|table"
    r"|toctree|graphviz|digraph|doctest|testcode|testoutput|testsetup|testcleanup|productionlist|prompt"
    r"|highlight|ipython|plot|mermaid|uml|image|figure)::(?: |$)"
)
_MARKER = re.compile(r" *(?:(?:[-+*•‣⁃]|(?:\d{1,3}|[#a-zA-Z])[.)]) +)?")
_SPACES = str.maketrans("\v\f", "  ")


def scan(text: str, start: int = 0) -> Outline:
    """The outline of `text[start:]`."""
    return _Scanner(text, start).run()


class _Scanner:
    """One pass over the lines of a text. A method gets the number of a line and returns that of the next."""

    def __init__(self, text: str, start: int) -> None:
        lines = text[start:].split("\n")
        self.starts = [*accumulate((len(line) + 1 for line in lines), initial=start)]
        self.starts[-1] = len(text)  # no line feed ends the last line
        self.lines = [line.translate(_SPACES).expandtabs().rstrip() for line in lines]
        self.outline = Outline([], [])
        self.styles: dict[tuple[str, bool], int] = {}

    def run(self) -> Outline:
        at = 0
        while at < len(self.lines):
            line = self.lines[at]
            if not line:
                at += 1
            elif line[0] == " ":
                at = self._indented(at, at)
            else:
                at = self._element(at, line)
        return self.outline

    def _element(self, at: int, line: str) -> int:
        found = _ELEMENT.match(line)
        kind = found.lastgroup if found else None
        if kind in ("item", "field", "line_block", "anonymous"):
            return self._indented(at, at + 1)
        read = getattr(self, f"_{kind}") if kind else self._text
        return int(read(at))

    def _get(self, at: int) -> str:
        return self.lines[at] if at < len(self.lines) else ""

    def _add(self, first: int, after: int, style: tuple[str, bool]) -> int:
        level = self.styles.setdefault(style, len(self.styles) + 1)
        self.outline.headings.append(Heading(level, self.starts[first], self.starts[after]))
        return after

    def _hide(self, first: int, after: int) -> None:
        """Make lines opaque, without the blank ones at their end."""
        while after > first and not self.lines[after - 1]:
            after -= 1
        if after - first > 1:
            self.outline.opaque.append((self.starts[first], self.starts[after]))

    # ------------------------------------------------------------------------- what is indented

    def _deeper(self, at: int, indent: int, end: int) -> int:
        """The first line that is neither blank nor indented by more than `indent`."""
        inside = " " * (indent + 1)
        while at < end and (not self.lines[at] or self.lines[at].startswith(inside)):
            at += 1
        return at

    def _indented(self, first: int, at: int) -> int:
        """Skip indented lines from `at` on, hiding the literal blocks that begin after `first`."""
        end = self._deeper(at, 0, len(self.lines))
        while first < end:
            first = self._nested(first, end)
        return end

    def _nested(self, at: int, end: int) -> int:
        line = self.lines[at]
        is_code = _CODE.match(line)
        if not is_code and (not _opens_literal(line) or line.lstrip().startswith(".. ")):
            return at + 1
        after = self._deeper(at + 1, _MARKER.match(line).end(), end)  # type: ignore[union-attr]
        self._hide(at if is_code else self._said(at + 1), after)
        return after

    def _said(self, at: int) -> int:
        """The first line from `at` on that is not blank."""
        while at < len(self.lines) and not self.lines[at]:
            at += 1
        return at

    def _explicit(self, at: int) -> int:
        """A directive, comment, target, footnote or substitution."""
        line = self.lines[at]
        if not _CODE.match(line) and _NAMED.match(line):
            return self._indented(at + 1, at + 1)
        after = self._deeper(at + 1, 0, len(self.lines))
        self._hide(at, after)
        return after

    # -------------------------------------------------------------------------- lists and tables

    def _enumerator(self, at: int) -> int:
        following = self._get(at + 1)
        is_item = following[:1] in ("", " ") or following.startswith(_next_enumerators(self.lines[at]))
        return self._indented(at, at + 1) if is_item else self._text(at)

    def _option(self, at: int) -> int:
        following = self._get(self._said(at + 1))
        is_item = "  " in self.lines[at] or following.startswith(" ")
        return self._indented(at, at + 1) if is_item else self._text(at)

    def _doctest(self, at: int) -> int:
        first = at
        while self._get(at):
            at += 1
        self._hide(first, at)
        return at

    def _grid(self, at: int) -> int:
        first = at
        while self._get(at).lstrip()[:1] in ("+", "|"):
            at += 1
        self._hide(first, at)
        return at

    def _simple(self, at: int) -> int:
        """A table whose columns are under and over `==== ====`."""
        width, last, end = len(self.lines[at]), 0, len(self.lines)
        for number in range(at + 1, end):
            line = self.lines[number]
            if _BORDER.fullmatch(line):
                if last or len(line) != width or not self._get(number + 1):
                    self._hide(at, number + 1)
                    return number + 1
                last = number
        return last + 1 if last else end

    # ----------------------------------------------------------------------- titles and paragraphs

    def _line(self, at: int) -> int:
        """A line of punctuation: over a title, or between two parts of the text."""
        over, title, under = self.lines[at], self._get(at + 1), self._get(at + 2)
        is_mark = not title or _LINE.fullmatch(title)
        is_title = not is_mark and over == under
        if len(over) < 4 and (not is_title or _width(title) > len(over)):
            return self._text(at)
        if is_title:
            return self._add(at, at + 3, (over[0], True))
        return at + (1 if not title else 2 if is_mark else 3)

    def _text(self, at: int) -> int:
        under = self._get(at + 1)
        if under.startswith(" "):  # a definition
            return self._indented(at + 1, at + 1)
        if _LINE.fullmatch(under) and (len(under) > 3 or _width(self.lines[at]) <= len(under)):
            return self._add(at, at + 2, (under[0], False))
        while self._get(at)[:1] not in ("", " "):
            at += 1
        return self._literal(at) if _opens_literal(self.lines[at - 1]) else at

    def _literal(self, at: int) -> int:
        """The block after `::`: indented, or with the same punctuation before each line."""
        first = self._said(at)
        mark = self._get(first)[:1]
        if mark == " ":
            after = self._deeper(first, 0, len(self.lines))
        elif mark and _LINE.fullmatch(mark):
            after = first
            while self._get(after).startswith(mark):
                after += 1
        else:
            return first
        self._hide(first, after)
        return after


def _opens_literal(line: str) -> bool:
    """Whether a literal block follows a paragraph that ends with this line."""
    before = line[:-2]
    return line.endswith("::") and (len(before) - len(before.rstrip("\\"))) % 2 == 0


def _next_enumerators(line: str) -> tuple[str, ...]:
    """How the next item of a list begins, by the line that begins this one; () if it begins no item."""
    opening, counted, closing = _ENUMERATOR.match(line).groups()  # type: ignore[union-attr]
    after = _successor(counted)
    return tuple(f"{opening}{name}{closing} " for name in (after, "#") if name) if after else ()


def _successor(counted: str) -> str:
    if counted.isdecimal():
        return str(int(counted) + 1)
    if counted == "#" or (len(counted) == 1 and counted not in "iIzZ"):
        return counted if counted == "#" else chr(ord(counted) + 1)
    value = from_roman(counted.upper())
    after = to_roman(value + 1) if value and counted not in "zZ" else ""
    return after if counted.isupper() else after.lower()


def _width(title: str) -> int:
    """The columns that a title takes: some characters are two wide, and accents have no width."""
    if title.isascii():
        return len(title)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in title)
    return len(title) + wide - sum(unicodedata.combining(char) > 0 for char in title)


# -------------------------------------------------------------------------- what is in a title

_MAX_RAW = 2000  # characters of a title that are read
_INLINE = re.compile(
    r"\\(?P<escaped>.)"
    r"|``(?P<literal>[^`]+)``"
    r"|:[\w:.+-]+:`(?P<role>[^`]+)`"
    r"|`(?P<quoted>[^`]+)`(?::[\w:.+-]+:|_{0,2})"
    r"|(?<![\w*])\*\*(?=\S)(?P<strong>[^*]+)(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=\S)(?P<emphasis>[^*]+)(?<=\S)\*"
    r"|\|(?=\S)(?P<substitution>[^|]+)(?<=\S)\|_{0,2}"
    r"|(?P<note>\[[^\[\]]+\])_(?!\w)"
    r"|(?P<inner>_\w*)"
    r"|(?P<word>(?:(?!_)\w)+(?:[-._+:](?:(?!_)\w)+)*)(?:__?(?![\w<(\[{]))?"
)
_TARGET = re.compile(r"(?<=\S)\s*<[^<>]*>$")


def title(text: str, heading: Heading) -> str:
    """The text of a heading, markup removed, white space folded."""
    lines = text[heading.start : heading.end].rstrip("\n").split("\n")
    return " ".join(_INLINE.sub(_plain, lines[-2].strip()[:_MAX_RAW]).split())


def _plain(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    inside = found[kind]
    if kind == "escaped":
        return inside.strip()
    if kind not in ("role", "quoted"):
        return inside
    shown = _TARGET.sub("", inside)
    if kind == "role" and shown[0] in "!~":  # as Sphinx shows them
        return shown[1:] if shown[0] == "!" else shown.rpartition(".")[2]
    return shown.replace("\\", "")
