"""A library to what is wrong with it, and to a sound one.

Always: a repair writes a new file from all that can be read and is what was written; the old file is kept;
what cannot be taken over is named, and its bytes are saved beside the library.
"""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quire import copying, disks
from quire.config import Config
from quire.document import Document
from quire.errors import LibraryError, QuireError
from quire.freshness import other_words
from quire.ingest.prepare import made_by, prepare
from quire.library import Library
from quire.library.backups import remove, swap
from quire.progress import Progress, Silent
from quire.stores import MAX_CHUNKS, DocumentRow, Filters, Store
from quire.version import VERSION

if TYPE_CHECKING:
    from quire.stores.sqlite import SqliteStore

_REPAIR = "quire doctor --repair"
_FAULTS = (QuireError, sqlite3.Error, LookupError, TypeError, ValueError)  # of what is damaged


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a library."""

    part: str  # file, document, words, vectors, sources or disk
    problem: str
    fix: str  # what to type


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did."""

    kept: str  # where the old library is
    documents: int  # that were taken over as they are
    again: int  # that were read again from their sources
    lost: tuple[str, ...]  # addresses of those that were not, because they have no source
    saved: str  # the folder with what could be read of those; "" if there are none


def examine(library: Library, progress: Progress | None = None) -> list[Problem]:
    """What is wrong with a library: its file, indexes, texts, spans, vectors, sources and disk."""
    store, found = library.store, list[Problem]()
    try:
        found += [Problem("file", problem, _REPAIR) for problem in store.check()]
        found += _documents(store, library.config, progress or Silent())
        found += _outdated(library)
    except _FAULTS as problem:
        found.append(Problem("file", str(problem), _REPAIR))
    return found + list(_disk(library))


def versions(library: Library) -> dict[str, str]:
    """The versions of what works on a library."""
    return {
        "quire": VERSION,
        "python": platform.python_version(),
        "database": library.store.versions(),
        "platform": platform.platform(),
    }


def _documents(store: Store, config: Config, progress: Progress) -> Iterator[Problem]:
    """Documents whose text, sections or chunks are not what was written."""
    rows = store.documents(Filters())
    progress.begin("checking", len(rows), "documents")
    for row in rows:
        with store.reading():
            try:
                problem = _difference(store, row, config)
            except _FAULTS as error:
                problem = str(error)
        if problem:
            yield Problem("document", f"{row.address}: {problem}", _REPAIR)
        progress.advance(1)


def _difference(store: Store, row: DocumentRow, config: Config) -> str:
    """How the stored parts of a document differ from those that its text gives; "" if they do not."""
    source, sections = store.source(row.seq), store.sections(row.seq)
    first = row.seq * MAX_CHUNKS
    chunks = [one for _, one in sorted(store.chunks(range(first, first + row.chunk_count)).items())]
    if len(chunks) != row.chunk_count:
        return f"{row.chunk_count - len(chunks):,} of its chunks are not there"
    if row.made_by != made_by(config):
        return ""  # other rules cut it: what they gave is not known
    document = Document.restored(
        source, row.path, collection=row.collection, format=row.format, title=row.title
    )
    fresh = prepare(document, config, row.kind, is_searched=bool(chunks))
    same = [astuple(one)[1:] for one in sections] == list(map(tuple, fresh.sections))
    same = same and [astuple(one)[2:] for one in chunks] == list(map(tuple, fresh.chunks))
    return "" if same else "its sections or chunks are not those that its text gives"


def _outdated(library: Library) -> Iterator[Problem]:
    """What works, and should be brought up to date."""
    store = library.store
    if other := other_words(store):
        yield Problem("words", f"were made by other rules: {other}", "quire refresh")
    active = next((model for model in store.models() if model.active), None)
    if active and (missing := store.count_unembedded(active)):
        yield Problem("vectors", f"are missing for {missing:,} chunks", "quire embed")
    if active and (problem := library.model_problem()):
        yield Problem("model", problem, "Searches use words alone until it works")
    for source in store.sources():
        if source.type in ("file", "folder") and not os.path.lexists(source.place):
            problem = f"{source.place} is gone; its documents are kept"
            yield Problem("sources", problem, f"quire sources remove {source.place}")


def _disk(library: Library) -> Iterator[Problem]:
    path = Path(library.url)
    if library.store.is_shared or not path.exists():
        return
    size, free = path.stat().st_size, shutil.disk_usage(path.absolute().parent).free
    if free < 2 * size:
        problem = f"has {free:,} bytes left; a backup or repair needs {size:,}"
        yield Problem("disk", problem, "Make room, then go on")
    if why := disks.why_unsafe(str(path)):
        problem, _, fix = why.partition(". ")
        yield Problem("disk", problem, fix)
    if not os.access(path, os.W_OK):
        yield Problem("disk", f"{path} is read-only", f"chmod u+w {path}")


# -------------------------------------------------------------------------------------------- repairing


def repair(url: str, config: Config, progress: Progress | None = None) -> Repaired:
    """Write a sound library from all that can be read of a damaged one, and put it in its place.

    Documents that are damaged are read again from their sources. Raises LibraryError if it is on a server.
    """
    from quire.stores.sqlite import SqliteStore

    if "://" in url:
        how = "Restore it from a backup of the server, then type: quire refresh --remake"
        raise LibraryError(url, f"is on a server, which repairs its own files. {how}")
    new, progress = f"{url}.new-{secrets.token_hex(4)}", progress or Silent()
    try:
        with closing(SqliteStore(url)) as old, closing(SqliteStore(new, create=True)) as target:
            rows, bad = _take_over(old, target, progress)
            saved = _save(old, bad, url) if bad else ""
        kept = swap(url, new, "before-repair")
    finally:
        remove(new)
    with Library.open(url, config=config) as library:
        library.refresh(progress=progress)
        there = {row.address for row in library.documents()}
    lost = tuple(sorted(row.address for row in bad if row.address not in there))
    return Repaired(str(kept), len(rows), len(bad) - len(lost), lost, saved)


def _take_over(
    old: SqliteStore, target: SqliteStore, progress: Progress
) -> tuple[list[DocumentRow], list[DocumentRow]]:
    """Copy what is sound; the documents that were copied, and those that are damaged."""
    rows = _rows(old)
    good, bad = list[DocumentRow](), list[DocumentRow]()
    progress.begin("taking over", len(rows), "documents")
    for row in rows:
        try:
            with old.reading():
                target.write([copying.prepared_again(old, row)])
            good.append(row)
        except _FAULTS:
            bad.append(row)
        progress.advance(1)
    with suppress(*_FAULTS):
        copying.copy_sources(old, target, good)
    with suppress(*_FAULTS):
        copying.copy_vectors(old, target, good, progress)
    return good, bad


def _rows(old: SqliteStore) -> list[DocumentRow]:
    """The documents that can be found, one by one if some of their rows cannot be read."""
    try:
        return old.documents(Filters())
    except _FAULTS:
        found = list[DocumentRow]()
        for seq in range(1, old.db.execute("SELECT max(seq) FROM documents").fetchone()[0] + 1):
            with suppress(*_FAULTS):
                found += old.documents_by_row([seq]).values()
        return found


def _save(old: SqliteStore, bad: Sequence[DocumentRow], url: str) -> str:
    """Write what can be read of damaged documents into a folder beside the library."""
    folder = Path(f"{url}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}")
    folder.mkdir()
    for row in bad:
        with suppress(*_FAULTS, OSError):
            source = old.db.execute("SELECT source FROM documents WHERE seq = ?", (row.seq,)).fetchone()[0]
            (folder / f"{row.id}-{Path(row.path).name[-100:]}").write_bytes(source)
    return str(folder)
