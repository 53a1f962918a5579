"""The part of Library that writes backups, restores them, and keeps the library's files small.

Always: a backup is checked before it counts; it never replaces a file; restoring keeps what it replaces.
"""

from __future__ import annotations

import logging
import os
import shlex
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quire import later
from quire.errors import LibraryError, NoResults
from quire.library.arguments import checks_arguments
from quire.library.base import OpenLibrary, writes
from quire.stores import Filters, Optimized

if TYPE_CHECKING:
    from quire import copying
else:
    copying = later.module("quire.copying")

log = logging.getLogger("quire")
_BESIDE = ("", "-wal", "-shm")  # the files of a library


class Backups(OpenLibrary):
    """Backing up and restoring."""

    def backup(self, to: str | os.PathLike[str]) -> str:
        """Write everything to a new file, which is a library itself. Others may be writing meanwhile.

        Raises LibraryError if the file is there already, or if the copy is not sound.
        """
        place = Path(to)
        if os.path.lexists(place):
            raise LibraryError(str(place), "exists already. Name a new file")
        part = f"{place}.part-{_random()}"
        try:
            place.absolute().parent.mkdir(parents=True, exist_ok=True)
            self._write_to(part)
            check_sound(part)
            os.link(part, place)  # unlike a rename, this never replaces a file
        except OSError as problem:
            raise LibraryError(str(place), f"cannot be written: {problem}") from problem
        finally:
            remove(part)
        return str(place)

    @writes
    def optimize(self, *, idle: bool = False) -> Optimized:
        """Merge the keyword index and give back the space of what was deleted; says how much that was.

        A file that an older Quire made is written anew for that, which needs as much space again for a
        while. On PostgreSQL the server vacuums and analyzes the library's tables. `idle` is for a program
        that has nothing better to do: it gives back space in short transactions, and only if there is much.
        """
        return self.store.optimize(idle=idle)

    def _write_to(self, path: str) -> None:
        from quire.stores.sqlite import SqliteStore

        if isinstance(self.store, SqliteStore):
            self.store.backup(path)
            return
        with closing(SqliteStore(path, create=True)) as target, self.store.reading():
            done = copying.copy(self.store, target, path)
        for address in done.damaged:
            log.warning("%s is damaged, and is not in the backup.", address)

    @classmethod
    @checks_arguments
    def restore(cls, url: str | os.PathLike[str], backup: str | os.PathLike[str]) -> str | None:
        """Put a backup in the place of a library; returns where what it replaces is kept.

        Programs that have the library open go on with the backup. Raises LibraryError if the backup is not
        sound; then nothing is changed.
        """
        from quire.stores.sqlite import SqliteStore

        path, found = os.fspath(url), os.fspath(backup)
        if "://" in path:
            how = f"To copy a backup into an empty one: quire copy -L {shlex.quote(found)} --to URL"
            raise LibraryError(path, f"is on a server, which restores its own backups. {how}")
        check_sound(found)
        _check_replaceable(path)
        new = f"{path}.new-{_random()}"
        try:
            Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
            with closing(SqliteStore(found)) as opened:
                opened.backup(new)
            return swap(path, new, "before-restore")
        except (OSError, sqlite3.Error) as problem:
            raise LibraryError(path, f"cannot be written: {problem}") from problem
        finally:
            remove(new)


def check_sound(path: str) -> None:
    """Raise LibraryError if a file is not a sound library."""
    from quire.stores.sqlite import SqliteStore

    try:
        store = SqliteStore(path)
    except NoResults:
        raise NoResults(f"There is no backup at {path}.", missing="backup", name=path) from None
    with closing(store):
        problems = store.check()
        for row in store.documents(Filters()) if not problems else ():
            store.source(row.seq)  # raises Damaged
        if problems:
            raise LibraryError(path, f"is not sound: {problems[0]}")


def _check_replaceable(path: str) -> None:
    """Raise LibraryError for a file that is no library, not even a damaged one."""
    from quire.stores.sqlite.file import APPLICATION_ID

    try:
        with Path(path).open("rb") as file:
            head = file.read(72)
    except FileNotFoundError:
        return
    except OSError as problem:
        raise LibraryError(path, f"cannot be read: {problem}") from problem
    is_empty, is_database = not any(head), head.startswith(b"SQLite format 3\0")
    if is_empty or (is_database and head[68:72] in (APPLICATION_ID.to_bytes(4, "big"), bytes(4))):
        return
    raise LibraryError(path, "is not a library. It was left as it is; name another file")


def remove(path: str) -> None:
    """Delete the files of a library that nobody knows of yet."""
    for ending in _BESIDE:
        with suppress(OSError):  # it is not there, or cannot be
            Path(f"{path}{ending}").unlink()


def swap(path: str, new: str, why: str) -> str | None:
    """Put a new file at a path. A library that is there is kept, even one that cannot be opened."""
    from quire.stores.sqlite import SqliteStore

    if not os.path.lexists(path):
        Path(new).rename(path)
        return None
    kept = f"{path}.{why}-{time.strftime('%Y%m%d-%H%M%S')}-{_random()}"
    try:
        old = SqliteStore(path)
    except LibraryError:  # it is damaged
        for ending in _BESIDE:
            with suppress(FileNotFoundError):
                Path(f"{path}{ending}").rename(f"{kept}{ending}")
        Path(new).rename(path)
    else:
        with closing(old):
            old.replace_with(new, kept)
    return kept


def _random() -> str:
    return os.urandom(4).hex()
