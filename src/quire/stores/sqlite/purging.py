"""Erase what removed documents leave behind in a SQLite library, and give back its space.

Always: deleted rows are overwritten with zeros (`secure_delete`), by every connection. What is left is erased
here: terms that the index only marked as deleted, cached vectors, the log, and what a connection without
`secure_delete` left in a library that is older than this. Space is given back in transactions like any other
write: a power failure leaves some of it to the next time.
"""

from __future__ import annotations

import glob
import os
import sqlite3

from quire.stores.base import Optimized
from quire.stores.sqlite.database import NOTHING_TO_ERASE, USE_AUTO_VACUUM
from quire.stores.sqlite.file import told
from quire.stores.sqlite.sources import SqliteSources

_COPIES = ("schema-*.backup", "before-*", "damaged-*")  # names that Quire gives them
_PATIENCE = 5.0  # seconds to wait for others who use the log
_STEP = 5_000  # pages that are given back in one transaction: others write in between
_MANY_FREE, _MUCH_FREE = 250, 0.1  # pages, and their share of the file, that are worth an idle moment
_IN_USE = "Another program is reading the library. The file shrinks when it has stopped"


class SqlitePurging(SqliteSources):
    """Erasing in a SQLite library."""

    def purge(self) -> list[str]:
        """Erase what removed documents left behind; returns where it still is, in sentences."""
        with self._transaction():
            self.vectors.drop_cached(self.models(), self.generation() + 1)
            self.index.compact()
            self._next_generation()
            erased = self._value("SELECT count(*) FROM facts WHERE name = 'erased'")
        if not erased:
            self._rewrite("to erase what was removed")
        self._checkpoint(_PATIENCE)
        return [*self._log_left(), *self._copies()]

    def optimize(self, *, idle: bool = False) -> Optimized:
        """Merge the keyword index, and give back the space of what was deleted.

        A file that is older than this is written anew, once: then it can shrink. An idle program leaves that,
        and gives back space only if there is much.
        """
        before = self._size_on_disk()
        if not idle:
            with self._transaction():
                self.index.compact(fully=True)
                self._next_generation()
        if self._value("PRAGMA auto_vacuum"):
            self._give_back(idle)
        elif not idle:
            self._rewrite("to give back space")
        self._checkpoint(0 if idle else _PATIENCE)
        in_use = [] if self._file is None or self._file.has_empty_log() else [_IN_USE]
        return Optimized(before, self._size_on_disk(), tuple(in_use))

    def _size_on_disk(self) -> int:
        """The bytes of the file and its log."""
        if self._file is None:
            return int(self._value("PRAGMA page_count") * self._value("PRAGMA page_size"))
        places = (self.path, f"{self.path}-wal")
        return sum(os.path.getsize(place) for place in places if os.path.exists(place))

    def _give_back(self, idle: bool) -> None:
        """Take free pages out of the file, some at a time."""
        free, pages = self._value("PRAGMA freelist_count"), self._value("PRAGMA page_count")
        left = -1 if idle and free < max(_MANY_FREE, _MUCH_FREE * pages) else free
        while left > 0:
            with self._transaction():
                self.db.execute(f"PRAGMA incremental_vacuum({_STEP})").fetchall()
            self._checkpoint(0)
            free, left = left, self._value("PRAGMA freelist_count")
            if left >= free:  # others delete as fast
                return

    def _rewrite(self, why: str) -> None:
        """Write the whole file anew, without what was deleted in it. From now on it can shrink."""
        try:
            self.db.execute(USE_AUTO_VACUUM)
            self.db.execute("VACUUM")
        except sqlite3.OperationalError as problem:
            raise self._error(f"cannot be rewritten {why}: {told(problem, self.path)}") from problem
        with self._transaction():
            self.db.execute(NOTHING_TO_ERASE)

    def _log_left(self) -> list[str]:
        if self._file is None or self._file.has_empty_log():
            return []
        return [f"Another program is reading {self.path}. Until it stops, {self.path}-wal has it."]

    def _copies(self) -> list[str]:
        """The copies that Quire made of the library before upgrades, repairs and restores."""
        found = [glob.glob(f"{glob.escape(self.path)}.{kind}") for kind in _COPIES]
        names = sorted({name for some in found for name in some if not name.endswith(("-wal", "-shm"))})
        return [f"Older copies may still have it: {', '.join(names)}"] if names else []
