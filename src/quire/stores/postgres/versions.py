"""The earlier texts of entries in a PostgreSQL library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.stores.postgres.database import Connection
from quire.stores.postgres.pieces import unpack
from quire.stores.rows import Prepared, Version

ALL = "SELECT written_at, text FROM quire.versions WHERE document = %s ORDER BY written_at DESC"
_ADD = "INSERT INTO quire.versions VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
_REPLACED = "SELECT updated_at, pieces FROM quire.documents WHERE seq = %s AND checksum <> %s"


def keep_replaced(db: Connection, documents: Mapping[int, Prepared]) -> None:
    """Make the stored texts of entries earlier ones, where the new ones differ."""
    for row, new in documents.items():
        if new.keeps_replaced:
            old = db.execute(_REPLACED, (row, new.checksum)).fetchall()
            texts = ((at, unpack(stored).decode("utf-8", "replace")) for at, stored in old)
            _insert(db, row, new, (Version(*one) for one in texts))


def add_versions(db: Connection, documents: Iterable[tuple[int, Prepared]]) -> None:
    """Store the earlier texts that come with documents, in place of those that are stored."""
    for row, new in documents:
        if new.versions is not None:
            db.execute("DELETE FROM quire.versions WHERE document = %s", (row,))
            _insert(db, row, new, new.versions)


def _insert(db: Connection, row: int, new: Prepared, versions: Iterable[Version]) -> None:
    with db.cursor() as cursor:
        cursor.executemany(_ADD, [(row, one.written_at, new.collection, one.text) for one in versions])
