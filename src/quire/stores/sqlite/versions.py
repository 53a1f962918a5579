"""The earlier texts of entries in a SQLite library."""

from __future__ import annotations

from collections.abc import Iterable

from quire.stores.checks import row_check
from quire.stores.rows import Prepared, Version
from quire.stores.sqlite.remaking import SqliteRemaking

VERSION_COLUMNS = "document, written_at, text"


class SqliteVersions(SqliteRemaking):
    """The earlier texts of entries."""

    def earlier_versions(self, row: int) -> list[Version]:
        """The earlier texts of an entry, newest first. Raises Damaged if one is not what was written."""
        found = self.db.execute(
            f"SELECT {VERSION_COLUMNS}, crc FROM versions WHERE document = ? ORDER BY written_at DESC", (row,)
        )
        return [Version(*self._checked(one, row)[1:]) for one in found]

    def _add_versions(self, row: int, new: Prepared) -> None:
        """Store the earlier texts that come with a document, in place of those that are stored."""
        if new.versions is not None:
            self.db.execute("DELETE FROM versions WHERE document = ?", (row,))
            self._insert_versions(row, new.versions)

    def _keep_replaced(self, row: int, new: Prepared) -> None:
        """Make the stored text of an entry an earlier one, if the new one differs."""
        if new.keeps_replaced:
            statement = "SELECT updated_at, source FROM documents WHERE seq = ? AND checksum <> ?"
            old = self.db.execute(statement, (row, new.checksum)).fetchall()
            self._insert_versions(row, (Version(at, source.decode("utf-8", "replace")) for at, source in old))

    def _insert_versions(self, row: int, versions: Iterable[Version]) -> None:
        rows = ((row, one.written_at, one.text) for one in versions)
        self.db.executemany(
            "INSERT OR IGNORE INTO versions VALUES (?, ?, ?, ?)", ((*one, row_check(*one)) for one in rows)
        )
