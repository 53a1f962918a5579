"""Ids in a SQLite library: the keys of sections and chunks, made by a function that statements can call."""

from __future__ import annotations

import sqlite3

from quire.links import tag_key
from quire.stores.ids import key_of_place

# Where the id with a key may be.
ID_PLACES = (
    "(SELECT document, slug, 0 AS part FROM sections WHERE key = ?1"
    " UNION ALL SELECT c.document, s.slug, c.part FROM chunks AS c JOIN sections AS s"
    " ON s.document = c.document AND s.position = c.section WHERE c.key = ?1)"
)
_SLUG = "(SELECT slug FROM sections AS s WHERE s.document = chunks.document AND s.position = chunks.section)"


def add_key_function(db: sqlite3.Connection) -> None:
    """Let statements call id_key(kind, collection, path, slug, part), and tag_key(tag) in migrations."""
    db.create_function("id_key", 5, key_of_place, deterministic=True)
    db.create_function("tag_key", 1, tag_key, deterministic=True)


def remake_keys(db: sqlite3.Connection, row: int, kind: str, collection: str, path: str) -> None:
    """Make the keys of a document again, because it has another path."""
    named = (kind, collection, path, row)
    db.execute("UPDATE sections SET key = id_key(?, ?, ?, slug, 0) WHERE document = ?", named)
    db.execute(
        f"UPDATE chunks SET key = id_key(?, ?, ?, {_SLUG}, part) WHERE document = ? AND part > 0", named
    )


def count_wrong_keys(db: sqlite3.Connection) -> int:
    """How many sections and parts cannot be found by their ids."""
    sections = (
        "SELECT count(*) FROM sections AS s JOIN documents AS d ON d.seq = s.document"
        " WHERE s.key IS NOT id_key(d.kind, d.collection, d.path, s.slug, 0)"
    )
    parts = (
        "SELECT count(*) FROM chunks AS c JOIN documents AS d ON d.seq = c.document"
        " JOIN sections AS s ON s.document = c.document AND s.position = c.section"
        " WHERE c.part > 0 AND c.key IS NOT id_key(d.kind, d.collection, d.path, s.slug, c.part)"
    )
    return int(db.execute(f"SELECT ({sections}) + ({parts})").fetchone()[0])
