"""Keys to a SQLite library."""

from __future__ import annotations

from quire.stores.keys import FACT, AccessKey
from quire.stores.sqlite.database import SqliteDatabase


class SqliteKeys(SqliteDatabase):
    """The keys that a server accepts, among the facts of a library."""

    def access_keys(self) -> list[AccessKey]:
        """All keys, oldest first."""
        rows = self.db.execute("SELECT value FROM facts WHERE name GLOB ?", (f"{FACT}*",))
        return sorted((AccessKey.from_json(row[0]) for row in rows), key=lambda key: (key.created_at, key.id))

    def put_key(self, key: AccessKey) -> None:
        """Store a key. The version of the library stays: no document has changed."""
        with self._transaction(is_counted=False):
            self.db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (f"{FACT}{key.id}", key.to_json()))

    def drop_key(self, id: str) -> bool:
        """Delete a key; returns whether it was there."""
        with self._transaction(is_counted=False):
            return self.db.execute("DELETE FROM facts WHERE name = ?", (f"{FACT}{id}",)).rowcount == 1
