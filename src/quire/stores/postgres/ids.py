"""Ids in a PostgreSQL library: the keys of sections and chunks.

The server cannot make them, because it has no SHA-1 of its own. Python does, for some documents at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from quire.stores.ids import key_of_place

if TYPE_CHECKING:
    from quire.stores.postgres.schema import Connection

# Where the id with a key may be.
ID_PLACES = (
    "(SELECT document, slug, 0 AS part FROM quire.sections WHERE key = %(key)s"
    " UNION ALL SELECT c.document, s.slug, c.part FROM quire.chunks AS c JOIN quire.sections AS s"
    " ON s.document = c.document AND s.position = c.section WHERE c.key = %(key)s)"
)
_AT_ONCE = 256  # documents
_NAMES = "d.kind, d.collection, d.path, s.slug"
# What has a key: where it is, what is stored, and what the key is made of.
_KEYED = {
    "sections": f"SELECT s.document, s.position, s.key, {_NAMES}, 0 FROM quire.sections AS s"
    " JOIN quire.documents AS d ON d.seq = s.document WHERE s.document = ANY (%s)",
    "chunks": f"SELECT c.document, c.index, c.key, {_NAMES}, c.part FROM quire.chunks AS c"
    " JOIN quire.documents AS d ON d.seq = c.document JOIN quire.sections AS s"
    " ON s.document = c.document AND s.position = c.section WHERE c.part > 0 AND c.document = ANY (%s)",
}
_NUMBER = {"sections": "position", "chunks": "index"}


def remake_all_keys(db: Connection) -> None:
    """Make the keys of all documents: a library of before has none."""
    for some in _some(db):
        remake_keys(db, some)


def remake_keys(db: Connection, documents: Sequence[int]) -> None:
    """Make the keys of documents that are new or have another path."""
    for table, number in _NUMBER.items():
        wrong = list(zip(*_wrong(db, table, documents), strict=True))
        if wrong:
            db.execute(
                f"UPDATE quire.{table} AS t SET key = n.key"
                " FROM unnest(%s::bigint[], %s::integer[], %s::bigint[]) AS n (document, number, key)"
                f" WHERE t.document = n.document AND t.{number} = n.number",
                [list(column) for column in wrong],
            )


def count_wrong_keys(db: Connection) -> int:
    """How many sections and parts cannot be found by their ids."""
    return sum(1 for some in _some(db) for table in _KEYED for _ in _wrong(db, table, some))


def _some(db: Connection) -> Iterator[list[int]]:
    rows = [row[0] for row in db.execute("SELECT seq FROM quire.documents ORDER BY seq").fetchall()]
    return (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))


def _wrong(db: Connection, table: str, documents: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """What has no key or the wrong one: document, number and the right key."""
    rows: list[tuple[Any, ...]] = db.execute(_KEYED[table], (list(documents),)).fetchall()
    for document, number, stored, *names in rows:
        if (key := key_of_place(*names)) != stored:
            yield document, number, key
