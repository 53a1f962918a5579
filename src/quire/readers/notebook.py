"""Jupyter notebooks (.ipynb) to markdown, cell by cell, with the beginning of what they print."""

from __future__ import annotations

import json
import re
from typing import Any

from quire.config import DocumentSettings
from quire.errors import NotPrepared
from quire.location import Places
from quire.markdown import scan
from quire.readers.base import Converted

_MOST_PRINTED = 2000  # characters of what a cell prints
_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FENCE = re.compile(r"`{3,}")
_PROBE = "# end"
_CLOSINGS = ("", "```", "~~~", "````", "~~~~", "-->", "?>", "]]>", "</script></style></pre></textarea>")


def read(source: bytes, name: str, settings: DocumentSettings) -> Converted:  # noqa: ARG001
    """The cells of a notebook."""
    notebook = _notebook(source, name)
    cells, language = _cells(notebook, name), _language(notebook.get("metadata"))
    parts = [_part(cell, language, name, number) for number, cell in enumerate(cells, 1)]
    starts, size = list[int](), 0
    for part in parts:
        starts.append(size)
        size += len(part)
    return Converted("".join(parts), Places("cell", tuple(starts)) if starts else None)


def _notebook(source: bytes, name: str) -> dict[str, Any]:
    if not source.strip():
        raise NotPrepared(name, "is empty")
    try:
        notebook = json.loads(source)
    except ValueError:
        raise NotPrepared(name, "is not a notebook: it is not JSON") from None
    return notebook if isinstance(notebook, dict) else {}


def _cells(notebook: dict[str, Any], name: str) -> list[Any]:
    """The cells of a notebook; before version 4, those of its first sheet."""
    sheets = notebook.get("worksheets")
    sheet = sheets[0] if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else {}
    cells = notebook.get("cells", sheet.get("cells"))
    if not isinstance(cells, list):
        raise NotPrepared(name, "is not a notebook: it has no cells")
    return cells


def _part(cell: Any, language: str, name: str, number: int) -> str:
    try:
        return _cell(cell, language)
    except (ValueError, LookupError, TypeError, AttributeError):
        told = f"is not a notebook: cell {number:,} is not as the format says"
        raise NotPrepared(name, told) from None


def _language(about: Any) -> str:
    try:
        named = about.get("language_info", {}).get("name") or about.get("kernelspec", {}).get("language")
    except AttributeError:  # what is said of a notebook is not needed to read it
        return ""
    return named if isinstance(named, str) and re.fullmatch(r"[\w+#.-]{1,30}", named) else ""


def _cell(cell: dict[str, Any], language: str) -> str:
    text = _joined(cell.get("source", cell.get("input", "")))
    kind = cell.get("cell_type", "")
    if kind == "heading":  # of notebooks before version 4
        return f"{'#' * int(cell.get('level', 1))} {' '.join(text.split())}\n\n"
    if kind == "markdown":
        return _closed(text)
    printed = "".join(_printed(one) for one in cell.get("outputs", ()))
    shown = _fenced(text, language if kind == "code" else "")
    return shown + (_fenced(_shortened(printed), "text") if printed.strip() else "")


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def _closed(text: str) -> str:
    """A cell of markdown that does not go on into the next one: what it leaves open is closed."""
    for closing in _CLOSINGS:
        whole = f"{text.rstrip()}\n{closing}\n\n" if closing else f"{text.rstrip()}\n\n"
        if len(scan(f"{whole}{_PROBE}\n").headings) > len(scan(whole).headings):
            return whole if text.strip() else "\n"
    return _fenced(text, "markdown")


def _fenced(text: str, language: str) -> str:
    if not text.strip():
        return "\n"
    fence = "`" * (1 + max((len(run) for run in _FENCE.findall(text)), default=2))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n\n"


def _printed(output: dict[str, Any]) -> str:
    """What an output of a cell says in words; pictures are left out."""
    said: Any = output.get("text", output.get("data", {}).get("text/plain", ""))
    if output.get("output_type") == "error":
        said = f"{output.get('ename', '')}: {output.get('evalue', '')}"
    text = _TERMINAL.sub("", _joined(said))
    return f"{text.rstrip()}\n" if text.strip() else ""


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_PRINTED else f"{text[:_MOST_PRINTED].rstrip()}\n…"
