"""Erase what removed documents leave behind in a SQLite library.

Always: deleted rows are overwritten with zeros (`secure_delete`), by every connection. What is left is erased
here: terms that the index only marked as deleted, cached vectors, the log, and what a connection without
`secure_delete` left in a library that is older than this.
"""

from __future__ import annotations

import glob
import sqlite3

from quire.stores.sqlite.database import NOTHING_TO_ERASE
from quire.stores.sqlite.sources import SqliteSources

_COPIES = ("schema-*.backup", "before-*", "damaged-*")  # names that Quire gives them
_PATIENCE = 5.0  # seconds to wait for others who use the log


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
            self._rewrite()
        self._checkpoint(_PATIENCE)
        return [*self._log_left(), *self._copies()]

    def _rewrite(self) -> None:
        """Write the whole file anew, without what was deleted in it."""
        try:
            self.db.execute("VACUUM")
        except sqlite3.OperationalError as problem:
            raise self._error(f"cannot be rewritten to erase what was removed: {problem}") from problem
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
