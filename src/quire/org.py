"""Org files to their headlines and blocks, as character spans.

Input: text whose lines end in line feeds (`Document.markup`). Output: a markdown.Outline. A headline is a
line of stars, a space and its title, wherever it is: as in Org itself, no block hides one. Opaque are
blocks, drawers and fixed-width lines.
"""

from __future__ import annotations

import re

from quire.markdown import Heading, Outline

_HEADLINE = re.compile(r"(?m)^(\*+)[ \t]+\S[^\n]*\n?")
_BLOCK = re.compile(
    r"(?mi)^[ \t]*(?:#\+begin_(?P<name>\S+)[^\n]*\n(?s:.*?)(?:^[ \t]*#\+end_(?P=name)[ \t]*(?:\n|\Z)|\Z)"
    r"|:(?!end:)[\w-]+:[ \t]*\n(?:(?![ \t]*:end:)[^\n]*\n){0,200}?[ \t]*:end:[ \t]*(?:\n|\Z)"
    r"|(?:[ \t]*:(?: [^\n]*)?(?:\n|\Z)){2,})"
)
_MAX_RAW = 2000  # characters of a title that are read
_WORK = re.compile(r"(?:TODO|DONE|NEXT|WAITING|HOLD|CANCELL?ED|COMMENT)(?=\s|$)")
_PRIORITY = re.compile(r"\[#[A-Za-z0-9]\]")
TAGS = re.compile(r"[ \t]+:([\w@#%:]+):[ \t]*$")
_LINK = re.compile(r"\[\[(?:[^\]]*)\](?:\[([^\]]*)\])?\]")
_MARKED = re.compile(r"(?<!\w)([*/_=~+])(?=\S)([^*/_=~+]+)(?<=\S)\1(?!\w)")


def scan(text: str, start: int = 0) -> Outline:
    """The outline of `text[start:]`."""
    found = [Heading(len(line[1]), *line.span()) for line in _HEADLINE.finditer(text, start)]
    outline, at = Outline(found, []), start
    for heading in (*found, Heading(0, len(text), len(text))):
        outline.opaque.extend(block.span() for block in _BLOCK.finditer(text, at, heading.start))
        at = heading.end
    return outline


def title(text: str, heading: Heading) -> str:
    """The text of a headline, without its state, priority, tags and markup."""
    line = text[heading.start : heading.end].strip()[:_MAX_RAW].lstrip("*").strip()
    line = TAGS.sub("", f" {line}").strip()
    line = _PRIORITY.sub("", _WORK.sub("", line, count=1), count=1)
    line = _LINK.sub(lambda link: link[1] or link[0].strip("[]"), line)
    return " ".join(_MARKED.sub(r"\2", line).split())
