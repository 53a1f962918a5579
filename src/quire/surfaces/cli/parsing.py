"""Files and standard input as trees, without a library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.surfaces.cli import output

if TYPE_CHECKING:
    from quire.config import Config
    from quire.location import Places
    from quire.sources.contents import FileDocument
    from quire.tree import Tree


def each_document(files: tuple[str, ...], settings: Config, do: Callable[[Tree, Places | None], None]) -> int:
    """Do something with each document and its places; report failures and go on. Returns the exit code."""
    from quire.surfaces import render
    from quire.tree import Tree

    code, done = render.DONE, 0
    for name in files:
        try:
            found = _read(name, settings)
            do(Tree(found.document, settings.tree), found.places)
        except QuireError as error:
            output.complain(error.to_json())
            code = render.exit_code(error)
        else:
            done += 1
            for warning in (*found.warnings, *found.document.warnings):
                output.note(f"{found.document.path}: {warning}")
    return render.PARTLY if code and done else code


def _read(name: str, settings: Config) -> FileDocument:
    from quire.document import Document
    from quire.ingest.prepare import read_alone
    from quire.sources import files
    from quire.sources.contents import FileDocument

    if name == "-":
        source = sys.stdin.buffer.read()
        return FileDocument(Document.from_bytes(source, "stdin", settings=settings.document))
    source = files.read_bytes(name, settings=settings.document)
    return read_alone(source, files.printable(name), settings)
