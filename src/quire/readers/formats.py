"""Which reader reads which file: by its ending, checked against its first bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePosixPath

from quire.config import DocumentSettings
from quire.errors import NotPrepared, NotText, SourceError
from quire.readers.base import Converted

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that is converted."""

    name: str
    module: str  # of quire.readers, with a function `read`
    starts: tuple[bytes, ...] = ()  # its first bytes; () if they may be any
    needs: str = ""  # the package of the extra `documents` that it needs
    is_light: bool = False  # nothing in it is packed or encrypted: it needs no worker


_FORMATS = {
    ".pdf": Format("a PDF file", "pdf", (b"%PDF-",), "kreuzberg"),
    ".docx": Format("a Word document", "word", (_ZIP,)),
    ".pptx": Format("a PowerPoint presentation", "slides", (_ZIP,)),
    ".odt": Format("an OpenDocument text", "odt", (_ZIP,)),
    ".epub": Format("an EPUB book", "epub", (_ZIP,)),
    ".rtf": Format("an RTF file", "rtf", (b"{\\rtf",)),
    ".ipynb": Format("a notebook", "notebook", is_light=True),
}
CONVERTED = tuple(_FORMATS)
EXTRA = "documents"
_SIGNED_WITHIN = 1024  # bytes: PDF files may have some others first
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # what encrypted Word and PowerPoint files begin with


def format_named(path: str) -> Format | None:
    """The format of files with this ending; None if they are read as they are."""
    return _FORMATS.get(PurePosixPath(path).suffix.lower())


@cache
def missing_extra(ending: str) -> str:
    """What to install before files with this ending can be read; "" if nothing is missing."""
    needs = _FORMATS[ending].needs if ending in _FORMATS else ""
    if not needs or find_spec(needs) is not None:
        return ""
    return f"pip install 'quire-docs[{EXTRA}]'"


def convert(source: bytes, name: str, settings: DocumentSettings) -> Converted:
    """A file as markdown. Raises NotText if it is of another kind, SourceError if it cannot be read."""
    format = check_format(source, name)
    reader = import_module(f"quire.readers.{format.module}")
    try:
        converted: Converted = reader.read(source, name, settings)
    except SourceError:
        raise
    except MemoryError:
        raise NotPrepared(name, "needs too much memory to read") from None
    except RecursionError:
        raise NotPrepared(name, "is nested too deeply") from None
    except Exception as error:  # whatever a parser makes of a damaged file
        raise NotPrepared(name, f"is damaged, or not {format.name} ({_word_for(error)})") from error
    return converted


def _word_for(error: Exception) -> str:
    """What a parser calls an error, without the errors around it. Those of Python itself have only a name."""
    told = " ".join(str(error).split()).rpartition(": ")[2][:100]
    return type(error).__name__ if type(error).__module__ == "builtins" else told or type(error).__name__


def check_format(source: bytes, name: str) -> Format:
    """The format of a file. Raises SourceError if it is of another kind, or an optional part is missing."""
    format, ending = format_named(name), PurePosixPath(name).suffix.lower()
    assert format is not None  # noqa: S101
    if how := missing_extra(ending):
        raise NotPrepared(name, f"{ending} files need an optional part. Install it with: {how}")
    _check_start(source, name, format)
    return format


def _check_start(source: bytes, name: str, format: Format) -> None:
    if not format.starts or any(start in source[:_SIGNED_WITHIN] for start in format.starts):
        return
    if source.startswith(_OLE):
        raise NotPrepared(name, "is encrypted, or in an older format. Save it again without a password")
    if not source.strip():
        raise NotPrepared(name, "is empty")
    raise NotText(name, f"is not {format.name}, whatever its name says")
