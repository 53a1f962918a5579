"""A SQLite library to a file, and a file in its place.

Always: a backup holds one moment; nobody writes while a file is replaced, and what it replaces is kept.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress

from quire.errors import LibraryError
from quire.stores.sqlite.database import SqliteDatabase
from quire.stores.sqlite.file import told

_TRIES, _SECONDS = 20, 5.0  # to empty the log


class SqliteBackups(SqliteDatabase):
    """Backups of a SQLite library."""

    def backup(self, path: str) -> None:
        """Write what the library holds now to a new file. Others may be writing meanwhile."""
        try:
            with closing(sqlite3.connect(path)) as copy:
                self.db.backup(copy)
        except sqlite3.Error as problem:
            raise LibraryError(path, f"cannot be written: {told(problem, path)}") from problem

    def replace_with(self, new: str, kept: str) -> None:
        """Put another file in the place of this one, and keep a copy of this one. Writers wait meanwhile."""
        for _ in range(_TRIES):
            self._checkpoint(_SECONDS)
            self._begin("BEGIN IMMEDIATE")
            try:
                if self._file is None or self._file.has_empty_log():
                    with closing(self._connect("ro")) as reader, closing(sqlite3.connect(kept)) as copy:
                        reader.backup(copy)
                    os.replace(new, self.path)
                    self._remove_log()
                    return
            finally:
                self._roll_back()
        raise self._error("is in use: its log cannot be emptied. Stop the programs that use it, or try again")

    def _remove_log(self) -> None:
        """Delete the empty log of a file that was replaced, so that only those who have it open use it.

        Else they would share it with those who open the new file. A checkpoint of the former would write what
        the latter have written into the old file.
        """
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(f"{self.path}{ending}")
