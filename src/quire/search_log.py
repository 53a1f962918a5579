"""The log of a user's own searches: which results of a search were then read. Kept only if switched on.

In come searches with their results, and readings; a line is written for each reading of a result within ten
minutes of the search. Always: only the user can read the files; nothing is written unless a library's setting
`search.log` is on; a log that cannot be written stops no search.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from quire import places

log = logging.getLogger("quire")
LOG_FILE = "searches.jsonl"
RECENT = "searches-recent.json"
WITHIN = 600  # seconds from a search to a reading that counts
_MOST_RECENT = 50  # searches whose results are kept for so long


class LoggedSearch(NamedTuple):
    """A search, and one of its results that was read."""

    query: str
    address: str  # of what was read
    time: int  # of the reading, in seconds since 1970
    library: str  # its id


class RecentSearch(NamedTuple):
    """A search that someone may still read results of."""

    query: str
    time: int
    library: str
    results: list[tuple[str, int, int]]  # of each, the address of its document, its start and its end


def log_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file of the log, which may not be there; None if the user has no home."""
    folder = places.data(environ)
    return folder and folder / LOG_FILE


def note_search(library: str, query: str, results: Iterable[tuple[str, int, int]]) -> None:
    """Remember a search and its results, until they are read or ten minutes have passed."""
    now, new = int(time.time()), list(results)
    if new and query.strip():
        others = (one for one in _recent(now) if (one.query, one.library) != (query, library))
        _keep_recent([*others, RecentSearch(query, now, library, new)])


def note_reading(library: str, address: str, document: str, start: int, end: int) -> None:
    """Log a reading, if what was read holds a result of a search just before: the latest such search."""
    now = int(time.time())
    recent = list(_recent(now))
    for one in reversed(recent):
        read = [
            place for place in one.results if place[0] == document and place[1] < end and start < place[2]
        ]
        if one.library == library and read:
            _append(LoggedSearch(one.query, address, now, library))
            one.results[:] = [place for place in one.results if place not in read]
            _keep_recent(recent)
            return


def logged(library: str) -> list[LoggedSearch]:
    """What is logged of a library, oldest first. Lines that are none are left out."""
    path = log_file()
    try:
        lines = path.read_text("utf-8", "replace").splitlines() if path else []
    except OSError:
        return []
    return [one for line in lines if (one := _parsed(line)) and one.library == library]


def _parsed(line: str) -> LoggedSearch | None:
    with suppress(ValueError, RecursionError, TypeError, LookupError):
        told = json.loads(line)
        return LoggedSearch(str(told["query"]), str(told["address"]), int(told["time"]), str(told["library"]))
    return None


def _recent(now: int) -> Iterator[RecentSearch]:
    """The searches of the last minutes, oldest first."""
    path = log_file()
    with suppress(OSError, ValueError, RecursionError, TypeError):
        for one in json.loads(path.with_name(RECENT).read_text("utf-8")) if path else ():
            query, when, library, results = one
            if 0 <= now - when <= WITHIN:
                yield RecentSearch(query, when, library, [(name, low, high) for name, low, high in results])


def _keep_recent(searches: list[RecentSearch]) -> None:
    """Replace the searches of the last minutes, as a whole: several processes may read them."""
    kept = json.dumps([one for one in searches if one.results][-_MOST_RECENT:], ensure_ascii=False)
    with _warned():
        folder = _folder()
        number, name = tempfile.mkstemp(dir=folder, prefix=f"{RECENT}.")  # with mode 0600
        try:
            _fill(number, kept)
            Path(name).replace(folder / RECENT)
        finally:
            Path(name).unlink(missing_ok=True)


def _append(one: LoggedSearch) -> None:
    with _warned():
        number = os.open(_folder() / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        _fill(number, json.dumps(one._asdict(), ensure_ascii=False) + "\n")


def _fill(number: int, content: str) -> None:
    with os.fdopen(number, "wb") as file:
        file.write(content.encode("utf-8", "replace"))


def _folder() -> Path:
    """The folder of the files, made if need be."""
    folder = places.data()
    if folder is None:
        raise OSError("HOME is not set")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextmanager
def _warned() -> Iterator[None]:
    """That the files cannot be written is only a warning."""
    try:
        yield
    except OSError as problem:
        log.warning("the search is not logged: %s", problem)


def describe(environ: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """The file of the log and how many lines it has; None if it is not there."""
    path = log_file(environ)
    try:
        return {"path": str(path), "entries": path.read_bytes().count(b"\n")} if path else None
    except OSError:
        return None
