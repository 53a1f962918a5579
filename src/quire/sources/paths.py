"""Paths of files as text that can be stored and shown, and back."""

from __future__ import annotations

import os
from pathlib import Path

from quire import later

_ESCAPE = later.pattern(r"\\x([0-9a-f]{2})")
_ESCAPED = later.pattern(r"\\(x[0-9a-f]{2})")


def printable(path: str | Path) -> str:
    r"""A path as text. Bytes that are not UTF-8 become `\\xNN`, and text that looks like this is escaped."""
    return printed(Path(path).as_posix())


def printed(text: str) -> str:
    """A path with forward slashes, and nothing else to tidy, as text."""
    if "\\" in text:
        text = _ESCAPED.sub(r"\\x5c\1", text)
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def unprintable(path: str) -> str:
    """The path of a file from its text: the inverse of `printable`."""
    if "\\" not in path:
        return path
    return _ESCAPE.sub(lambda byte: os.fsdecode(bytes.fromhex(byte[1])), path)
