"""Files to documents. A path that is no regular, readable text file raises a SourceError."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from quire.config import DEFAULT, DocumentSettings
from quire.document import Document
from quire.errors import TooLarge, Unreadable

_ALSO = {
    stat.S_IFDIR: "is a folder; name the files in it",
    stat.S_IFIFO: "is a pipe, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
}


def read(path: str | Path, *, settings: DocumentSettings = DEFAULT.document) -> Document:
    """The document in a file, whose path is as given, with forward slashes and printable."""
    name = printable(path)
    try:
        _check(os.stat(path), name, settings)  # noqa: PTH116  a stat never blocks on a pipe
        source = Path(path).read_bytes()
    except OSError as problem:
        raise Unreadable(name, (problem.strerror or str(problem)).lower()) from None
    except ValueError:  # a NUL in the name
        raise Unreadable(name, "is no file name") from None
    return Document.from_bytes(source, name, settings=settings)


def printable(path: str | Path) -> str:
    r"""A path as text: bytes of its name that are not UTF-8 are written `\\xNN`."""
    return Path(path).as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _check(found: os.stat_result, name: str, settings: DocumentSettings) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable(name, _ALSO.get(stat.S_IFMT(found.st_mode), "is not a regular file"))
    if found.st_size > settings.max_bytes:
        raise TooLarge(name, settings.over_cap(found.st_size))
