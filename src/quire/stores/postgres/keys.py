"""Keys to a PostgreSQL library. Only its owner can write them: other roles may not write the facts."""

from __future__ import annotations

from quire.stores.keys import FACT, AccessKey
from quire.stores.postgres.database import PostgresPart

_PUT = "INSERT INTO quire.facts VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class PostgresKeys(PostgresPart):
    """The keys that a server accepts, among the facts of a library."""

    def access_keys(self) -> list[AccessKey]:
        """All keys, oldest first."""
        rows = self.db.rows("SELECT value FROM quire.facts WHERE starts_with(name, %s)", (FACT,))
        return sorted((AccessKey.from_json(row[0]) for row in rows), key=lambda key: (key.created_at, key.id))

    def put_key(self, key: AccessKey) -> None:
        """Store a key. The version of the library stays: no document has changed."""
        self.db.write(lambda db: db.execute(_PUT, (f"{FACT}{key.id}", key.to_json())))

    def drop_key(self, id: str) -> bool:
        """Delete a key; returns whether it was there."""
        gone = "DELETE FROM quire.facts WHERE name = %s"
        return self.db.write(lambda db: db.execute(gone, (f"{FACT}{id}",)).rowcount == 1)
