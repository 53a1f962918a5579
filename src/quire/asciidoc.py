"""AsciiDoc to its section titles and delimited blocks, as character spans.

Input: text whose lines end in line feeds (`Document.markup`). Output: a markdown.Outline. `scan` reads line
by line, as Asciidoctor does: a title begins a block, so it follows a blank line, another title, the end of
a block, or lines that describe the block. Titles in delimited blocks, and discrete ones, open no section.
Opaque are blocks whose lines are no prose: listings, literals, passthroughs, comments and tables.
"""

from __future__ import annotations

import re
from itertools import accumulate

from quire.markdown import Heading, Outline

_TITLE = re.compile(r"(={1,6}|#{1,6})[ \t]+\S")
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|={4,}|\*{4,}|_{4,}|--|`{3,}|[|,:!]={3,})")
_OPAQUE = ("----", "....", "++++", "////", "```", "|===", ",===", ":===", "!===")
_UNDERLINES = "=-~^+"  # of the levels 1 to 5, in the older style
_ABOUT = re.compile(r"\[.*\]$|\.[^\s.]|//(?!/)|:!?[\w-]+!?:(?:\s|$)|ifn?def::|ifeval::|endif::|include::")
_DISCRETE = re.compile(r"\[(?:discrete|float)\b")
_MAX_RAW = 2000  # characters of a title that are read
_INLINE = re.compile(
    r"(?:link|xref|mailto):[^\s\[]*\[(?P<linked>[^\]]*)\]"
    r"|https?://[^\s\[]+\[(?P<named>[^\]]+)\]"
    r"|<<[^<>,]+,(?P<reference>[^<>]+)>>"
    r"|\[\[[^\]]*\]\]|\[#[^\]]*\](?=[#*_`])"
    r"|(?<!\w)([*_`+#])(?=\S)(?P<marked>[^*_`+#]+)(?<=\S)\4(?!\w)"
)


def scan(text: str, start: int = 0) -> Outline:
    """The outline of `text[start:]`."""
    return _Scanner(text, start).run()


class _Scanner:
    """One pass over the lines of a text."""

    def __init__(self, text: str, start: int) -> None:
        self.lines = [line.rstrip() for line in text[start:].split("\n")]
        self.starts = [*accumulate((len(line) + 1 for line in text[start:].split("\n")), initial=start)]
        self.starts[-1] = len(text)  # no line feed ends the last line
        self.outline = Outline([], [])

    def run(self) -> Outline:
        at, opens, discrete = 0, True, False  # whether a block may open here
        while at < len(self.lines):
            line = self.lines[at]
            if not line:
                at, opens = at + 1, True
            elif opens and _ABOUT.match(line):
                discrete, at = discrete or bool(_DISCRETE.match(line)), at + 1
            elif after := self._title(at, line, is_section=not discrete) if opens else 0:
                at, discrete = after, False
            elif _DELIMITER.fullmatch(line):
                at, opens, discrete = self._block(at, line), True, False
            else:
                at, opens, discrete = at + 1, False, False
        return self.outline

    def _title(self, at: int, line: str, *, is_section: bool) -> int:
        """The line after a title; 0 if there is none here."""
        found = _TITLE.match(line)
        level, after = (len(found[1]), at + 1) if found else (self._underlined(at, line), at + 2)
        if level and is_section:
            self.outline.headings.append(Heading(level, self.starts[at], self.starts[after]))
        return after if level else 0

    def _underlined(self, at: int, line: str) -> int:
        """The level of a title that has a line of its own length under it; 0 if it has none."""
        under = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        alike = len(under) > 1 and under == under[0] * len(under) and under[0] in _UNDERLINES
        is_title = alike and abs(len(under) - len(line)) < 2 and any(map(str.isalnum, line))
        return _UNDERLINES.index(under[0]) + 1 if is_title else 0

    def _block(self, at: int, delimiter: str) -> int:
        """The line after a delimited block. One that is never closed goes on to the end of the text."""
        try:
            after = self.lines.index(delimiter[:3] if delimiter[0] == "`" else delimiter, at + 1) + 1
        except ValueError:
            after = len(self.lines)
        if delimiter.startswith(_OPAQUE):
            self.outline.opaque.append((self.starts[at], self.starts[after]))
        return after


def title(text: str, heading: Heading) -> str:
    """The text of a heading, markup removed, white space folded."""
    line = text[heading.start : heading.end].split("\n", 1)[0].strip()[:_MAX_RAW]
    marked = _TITLE.match(line)
    line = line[len(marked[1]) :] if marked else line
    return " ".join(_INLINE.sub(_plain, line).split())


def _plain(found: re.Match[str]) -> str:
    return next((found[name] for name in ("linked", "named", "reference", "marked") if found[name]), "")
