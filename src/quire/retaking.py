"""Read changed files of a few documents again, if that is quick: those that an answer is about to cite.

Input: the rows of documents. Output: what was written. Always: only files that changed are read, a document
whose file is gone stays, and a library that another process writes to is not waited for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from quire import sync
from quire.config import Config
from quire.freshness import is_stale
from quire.ingest import removing
from quire.ingest.report import Report
from quire.sources import files
from quire.stores import DocumentRow, SourceRow, Store

_SECONDS = 0.1  # that this may take
_BYTES = 250_000  # of files that are read and cut in that time
_PATIENCE = 0.05  # seconds to wait for others who write


def retake(store: Store, rows: Iterable[DocumentRow], config: Config) -> Report:
    """Read the changed files of documents again, as long as there is time."""
    until, total = time.monotonic() + _SECONDS, Report()
    changed = list(_quick(row for row in rows if is_stale(row)))
    if not changed:
        return total
    with store.waiting(_PATIENCE), store.writing():
        for row, source in _holders(store, changed):
            if time.monotonic() > until:
                break
            within = frozenset([files.unprintable(row.path)] if source.type == "folder" else [])
            total.join(sync.refresh_source(store, source, config, within))
    return total


def _quick(rows: Iterable[DocumentRow]) -> Iterator[DocumentRow]:
    """The documents whose files are there, as long as they are small together."""
    room = _BYTES
    for row in rows:
        try:
            room -= os.stat(row.file or "").st_size  # noqa: PTH116
        except OSError:
            continue
        if room < 0:
            return
        yield row


def _holders(store: Store, rows: list[DocumentRow]) -> list[tuple[DocumentRow, SourceRow]]:
    """Each document with the files and folders that hold it."""
    known = {source.seq: source for source in store.sources() if source.type in ("file", "folder")}
    return list(removing.holders(store, rows, known))
