"""Paragraphs, lists and tables of office files to markdown, by way of plain HTML.

Always: text is escaped; every list and table is closed; an empty block leaves no trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from quire.html import whole_to_markdown
from quire.location import Places
from quire.readers.base import clean, found_marks, mark

_MOST_NESTED = 8
_SHIELD = "\ue002"  # stands for a backslash while HTML is converted
# What begins a block in markdown, at the beginning of a line, behind the mark of a place.
_SIGN = re.compile(
    r"(?:^|(?<=<br>))((?:\ue000\d+\ue001)?)"
    r"(?=#{1,6}(?:\s|$)|&gt;|[-+*]\s|`{3}|~{3}|\||(?:=+|-+)\s*(?:$|<br>))"
)


class Blocks:
    """The blocks of a file, in order, and where each place of it begins."""

    def __init__(self, unit: str) -> None:
        self.unit, self.place = unit, 0
        self._parts: list[str] = []
        self._lists: list[str] = []  # the lists that are open, outermost first
        self._pending = ""
        self._code: list[str] = []  # paragraphs of code that follow each other

    def begin_place(self, number: int = 0) -> None:
        """The next text is in the next place, or in the one with this number."""
        self.place = number or self.place + 1
        self._pending = mark(self.place)

    def text(self, text: str) -> str:
        """Text as HTML, with the mark of a place that begins with it."""
        shown = escape(clean(text), quote=False)
        if self._pending and text.strip():
            shown, self._pending = f"{self._pending}{shown}", ""
        return shown

    def heading(self, level: int, inline: str) -> None:
        """A heading of a level from 1 to 6."""
        self._block(f"h{min(6, max(1, level))}", inline)

    def paragraph(self, inline: str, tag: str = "p") -> None:
        """A paragraph, or a quote."""
        self._block(tag, inline)

    def code(self, text: str) -> None:
        """A paragraph of code, exactly. Several in a row are one block."""
        self._close_lists(0)
        self._code.append(self.text(text))

    def item(self, inline: str, depth: int, *, is_ordered: bool) -> None:
        """An item of a list; the outermost list has the depth 0."""
        self._end_code()
        if not inline.strip():
            return
        depth, tag = min(depth, _MOST_NESTED), "ol" if is_ordered else "ul"
        self._close_lists(depth + 1)
        if len(self._lists) == depth + 1 and self._lists[-1] != tag:
            self._close_lists(depth)
        if len(self._lists) == depth + 1:
            self._parts.append("</li>")
        while len(self._lists) <= depth:  # each list is in an item of the one around it
            self._parts.append(f"<{tag}>" if len(self._lists) == depth else f"<{tag}><li>")
            self._lists.append(tag)
        self._parts.append(f"<li>{_shielded(inline)}")

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """A table of cells; the first row is its header."""
        self._close()
        kept = [row for row in rows if any(cell.strip() for cell in row)]
        if not kept:
            return
        self._parts.append("<table>")
        for number, row in enumerate(kept):
            tag = "td" if number else "th"
            self._parts.append(f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in row)}</tr>")
        self._parts.append("</table>")

    def markdown(self) -> tuple[str, Places | None]:
        """All of it as markdown, and its places."""
        self._close()
        text = whole_to_markdown("".join(self._parts)).replace(_SHIELD, "\\")
        return found_marks(text, self.unit)

    def _block(self, tag: str, inline: str) -> None:
        self._close()
        if inline.strip():
            shown = inline if tag[0] == "h" else _shielded(inline)
            self._parts.append(f"<{tag}>{shown}</{tag}>")

    def _close(self) -> None:
        self._end_code()
        self._close_lists(0)

    def _end_code(self) -> None:
        code, self._code = "\n".join(self._code), []
        if code.strip():
            self._parts.append(f"<pre><code>{code}</code></pre>")

    def _close_lists(self, depth: int) -> None:
        while len(self._lists) > depth:
            self._parts.append(f"</li></{self._lists.pop()}>")


def link(address: str, inline: str) -> str:
    """A link to a web page; of anything else only its text."""
    is_web = address.startswith(("http://", "https://", "mailto:"))
    return f'<a href="{escape(address)}">{inline}</a>' if is_web and inline.strip() else inline


def styled(inline: str, tag: str, *, wanted: bool) -> str:
    """Text in bold or italics, if that is wanted and there is text."""
    return f"<{tag}>{inline}</{tag}>" if wanted and inline.strip() else inline


def _shielded(inline: str) -> str:
    """Text of which no line begins a block of markdown."""
    return _SIGN.sub(rf"\1{_SHIELD}", inline)
