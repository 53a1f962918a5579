r"""RTF files to markdown, counted in paragraphs.

One pass over the control words and groups of a file. Always: a group that is not known and may be left out
(`\*`) is left out; text in the code page of the file is decoded; a group that is never closed ends with the
file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from quire.config import DocumentSettings
from quire.readers.base import Converted
from quire.readers.blocks import Blocks, link, styled

_TOKEN = re.compile(
    r"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})? ?"
    r"|\\'(?P<byte>[0-9a-fA-F]{2})"
    r"|\\(?P<sign>[^a-zA-Z])"
    r"|(?P<brace>[{}])"
    r"|(?P<text>[^\\{}\r\n]+)",
    re.DOTALL,
)
_SKIPPED = frozenset(
    (
        *("fonttbl", "colortbl", "info", "pict", "object", "filetbl", "revtbl", "xe", "tc", "listtable"),
        *("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"),
        *("listoverridetable", "themedata", "datastore", "latentstyles", "generator", "rsidtbl"),
    )
)
_KNOWN = frozenset(["fldinst", "fldrslt", "footnote", "listtext", "pntext", "stylesheet", "shptxt"])
_CHARACTERS = {
    "tab": " ",
    "line": "<br>",
    "emdash": "—",
    "endash": "–",
    "bullet": "•",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "emspace": " ",
    "enspace": " ",
}
_SIGNS = {"~": " ", "_": "-", "\\": "\\", "{": "{", "}": "}", "\n": "", "\r": ""}
_NUMBERED = re.compile(r"\s*[\da-zA-Z]+[.)]")
_ADDRESS = re.compile(r'HYPERLINK\s+"?([^"\s]+)')
_MOST_DEEP = 1000  # groups in each other
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)


def read(source: bytes, name: str, settings: DocumentSettings) -> Converted:  # noqa: ARG001
    """The text of a file."""
    text, places = _Rtf(source.decode("latin-1")).blocks_of().markdown()
    return Converted(text, places)


@dataclass(frozen=True, slots=True)
class _State:
    """What a group inherits from the one around it."""

    into: str = "body"  # what its text is for; "" if it is left out
    is_bold: bool = False
    is_italic: bool = False
    is_hidden: bool = False
    after_code: int = 1  # characters after a Unicode one that stand for it


class _Rtf:
    """One file."""

    def __init__(self, source: str) -> None:
        self.source, self.at = source, 0
        self.state, self.stack = _State(), list[_State]()
        self.blocks = Blocks("paragraph")
        self.codec = "cp1252"
        self.raw, self.passed = bytearray(), 0  # bytes to decode; characters still to pass over
        self.texts = {name: list[str]() for name in ("body", *_KNOWN)}
        self.cells, self.rows = list[str](), list[list[str]]()
        self.notes: list[str] = []
        self.levels: dict[int, int] = {}  # of the headings, by style; -1 is the title
        self.style = self.outline = self.depth = 0
        self.is_item = self.is_ordered = self.is_in_table = self.is_optional = self.has_title = False
        self.instruction, self.high = "", 0  # of a field; the first half of a character

    def blocks_of(self) -> Blocks:
        """All blocks of the file."""
        self.blocks.begin_place()
        while token := _TOKEN.search(self.source, self.at):
            self.at = token.end()
            kind = token.lastgroup
            if kind != "byte":
                self._decode()
            if kind == "brace":
                self._open() if token[0] == "{" else self._close()
            elif kind in ("word", "number"):
                self._word(token["word"], token["number"])
            elif kind == "byte":
                self._byte(int(token["byte"], 16))
            elif kind == "sign":
                self._sign(token["sign"])
            else:
                self._text(token["text"])
        self._decode()
        self._end_paragraph()
        self._end_table()
        return self.blocks

    # -------------------------------------------------------------------------------- groups

    def _open(self) -> None:
        if len(self.stack) < _MOST_DEEP:
            self.stack.append(self.state)

    def _close(self) -> None:
        left = self.state.into
        self.state = self.stack.pop() if self.stack else _State()
        if self.state.into == left or left not in _KNOWN:
            return
        inside, self.texts[left] = "".join(self.texts[left]), []
        if left == "footnote":
            self.notes.append(inside)
            self._show("*")
        elif left == "fldrslt":
            found = _ADDRESS.search(self.instruction)
            self._show(link(found[1], inside) if found else inside)
        elif left == "fldinst":
            self.instruction = inside
        elif left in ("listtext", "pntext"):
            self.is_item, self.is_ordered = True, bool(_NUMBERED.match(inside))
        elif left == "shptxt":
            self.notes.append(inside)

    # --------------------------------------------------------------------------------- words

    def _word(self, word: str, number: str | None) -> None:
        value = int(number) if number else 1
        if word in _SKIPPED or (self.is_optional and word not in _KNOWN):
            self.state = replace(self.state, into="")
        elif word in _KNOWN:
            self.state = replace(self.state, into=word if self.state.into else "")
        elif word in _CHARACTERS:
            self._show(_CHARACTERS[word])
        elif word == "u":
            self._character(value)
        elif word == "bin":
            self.at += max(0, value)  # bytes of a picture
        else:
            self._format(word, value)
        self.is_optional = False

    def _format(self, word: str, value: int) -> None:
        if word in ("b", "i", "v", "deleted", "uc"):
            names = {"b": "is_bold", "i": "is_italic", "uc": "after_code"}
            names |= dict.fromkeys(("v", "deleted"), "is_hidden")
            told: Any = {names[word]: value if word == "uc" else bool(value)}
            self.state = replace(self.state, **told)
        elif word == "plain":
            self.state = replace(self.state, is_bold=False, is_italic=False, is_hidden=False)
        elif word == "ansicpg":
            self.codec = _codec(value)
        elif self.state.into == "stylesheet":
            self.style = value if word == "s" else self.style
        elif self.state.into:
            self._paragraph(word, value)

    def _paragraph(self, word: str, value: int) -> None:
        """What a word means for the paragraph that it is in."""
        if word in ("par", "sect", "page"):
            self._end_paragraph()
        elif word == "pard":
            self.style = self.outline = self.depth = 0
            self.is_item = self.is_in_table = False
        elif word == "s":
            self.style = value
        elif word == "outlinelevel":
            self.outline = value + 1
        elif word in ("ilvl", "pnlvl"):
            self.depth = value
        elif word == "intbl":
            self.is_in_table = True
        elif word == "cell":
            self.cells.append(self._taken())
        elif word == "row":
            self.rows.append(self.cells)
            self.cells = []

    # ---------------------------------------------------------------------------------- text

    def _sign(self, sign: str) -> None:
        if sign == "*":
            self.is_optional = True
        elif sign in "\r\n":
            self._word("par", None)
        elif sign in _SIGNS:
            self._text(_SIGNS[sign])

    def _byte(self, value: int) -> None:
        if self.passed:
            self.passed -= 1
        else:
            self.raw.append(value)

    def _decode(self) -> None:
        if self.raw:
            raw, self.raw = bytes(self.raw), bytearray()
            self._text(raw.decode(self.codec, "replace"))

    def _character(self, value: int) -> None:
        code = value % 0x10000
        self.passed = 0
        if 0xD800 <= code <= 0xDBFF:
            self.high = code
        elif 0xDC00 <= code <= 0xDFFF:
            self._text(chr(0x10000 + ((self.high - 0xD800) << 10) + code - 0xDC00) if self.high else "\ufffd")
            self.high = 0
        else:
            self._text(chr(code))
        self.passed = self.state.after_code

    def _text(self, text: str) -> None:
        text, self.passed = text[self.passed :], max(0, self.passed - len(text))
        if self.state.into == "stylesheet":
            self._name_style(text)
        elif self.state.into in ("fldinst", "listtext", "pntext"):
            self.texts[self.state.into].append(text)
        elif text and self.state.into and not self.state.is_hidden:
            shown = self.blocks.text(text)
            if not (self.outline or self.style in self.levels):
                shown = styled(shown, "em", wanted=self.state.is_italic)
                shown = styled(shown, "strong", wanted=self.state.is_bold)
            self._show(shown)

    def _show(self, inline: str) -> None:
        if self.state.into in self.texts:
            self.texts[self.state.into].append(inline)

    def _name_style(self, text: str) -> None:
        found = _HEADING.fullmatch(text.strip().rstrip(";"))
        if found:
            self.levels[self.style] = int(found[1])
        elif text.strip().rstrip(";").lower() == "title":
            self.levels[self.style] = -1

    # -------------------------------------------------------------------------------- blocks

    def _taken(self) -> str:
        inline, self.texts["body"] = "".join(self.texts["body"]), []
        return inline

    def _end_paragraph(self) -> None:
        if self.state.into != "body":
            self._show("<br>")
            return
        if self.is_in_table:
            self._show("<br>" if self.texts["body"] else "")
            return
        self._end_table()
        inline, level = self._taken(), self.outline or self.levels.get(self.style, 0)
        self.has_title |= level < 0
        if level:
            self.blocks.heading(1 if level < 0 else level + self.has_title, inline)
        elif self.is_item:
            self.blocks.item(inline, self.depth, is_ordered=self.is_ordered)
        else:
            self.blocks.paragraph(inline)
        self.is_item = False
        notes, self.notes = self.notes, []
        for note in notes:
            self.blocks.paragraph(note)
        self.blocks.begin_place()

    def _end_table(self) -> None:
        rows, self.rows = self.rows, []
        if rows:
            self.blocks.table(rows)
            self.blocks.begin_place()


def _codec(number: int) -> str:
    import codecs

    try:
        return codecs.lookup(f"cp{number}").name
    except LookupError:
        return "cp1252"
