"""What Quire puts into files of others: a marked line, or a whole file. `jsonc` puts blocks into JSON.

Always: outside an insertion the text stays as it is, and taking the insertion out gives the text before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol

CHANGED = "was changed since Quire wrote to it, so remove Quire's part yourself"
MARK = "written by: quire init"
_BLANK = "\ufeff \t\r\n"


class Insertion(NamedTuple):
    """A text, and where it goes."""

    at: int
    text: str

    def into(self, text: str) -> str:
        """A text with the insertion."""
        return text[: self.at] + self.text + text[self.at :]


class Edit(Protocol):
    """One thing to put into a text. The methods raise ValueError if they cannot."""

    def is_in(self, text: str) -> bool:
        """Whether it is there, just as it would be written."""
        ...

    def insertion(self, text: str) -> Insertion:
        """How it goes into a text."""
        ...

    def without(self, text: str, inserted: str) -> str:
        """The text without what was once inserted; the same text if it is gone."""
        ...


def is_blank(text: str) -> bool:
    """Whether a text has no content."""
    return not text.strip(_BLANK)


def line_end(text: str) -> str:
    """How the lines of a text end."""
    found = re.search("\r\n|\n|\r", text)
    return found[0] if found else "\n"


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """A line at the end of a text. It has Quire's mark."""

    line: str

    def is_in(self, text: str) -> bool:
        """Whether the line is there."""
        return self.line in re.split("[\r\n]+", text)

    def insertion(self, text: str) -> Insertion:
        """How the line goes to the end. The text ends with a line feed if it did before."""
        is_whole = not text or text[-1] in "\r\n"
        end = line_end(text)
        return Insertion(len(text), f"{self.line}{end}" if is_whole else f"{end}{self.line}")

    def without(self, text: str, inserted: str) -> str:
        """The text without the line."""
        if text.endswith(inserted):
            return text[: len(text) - len(inserted)]
        line = re.escape(inserted.strip("\r\n"))
        left = re.sub(rf"(^|\r\n|\r|\n){line}(?:\r\n|\r|\n|\Z)", r"\1", text, count=1)
        if left == text and MARK in text:
            raise ValueError(CHANGED)
        return left


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that is Quire's own."""

    content: str

    def is_in(self, text: str) -> bool:
        """Whether the file has this content."""
        return text == self.content

    def insertion(self, text: str) -> Insertion:
        """How the content goes into an empty file."""
        if not is_blank(text):
            raise ValueError("was not written by Quire")
        return Insertion(len(text), self.content)

    def without(self, text: str, inserted: str) -> str:
        """The text without the content."""
        if not text.endswith(inserted) and not is_blank(text):
            raise ValueError(CHANGED)
        return text.removesuffix(inserted)
