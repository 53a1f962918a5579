"""From schema 12 to 13: the numbers of terms become keys with levels.

A number that counted more than once was stored as 2**31 less, and only these had a byte in `counts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quire.stores.postgres.database import Connection, array_of, copy_rows, numbers_of, register_numbers
from quire.stores.postgres.terms import TYPES, key, letter, level_of
from quire.stores.postgres.words import COMMON_FROM, count_common

_REPEATED = 2**31
_SOME = 2000  # chunks in memory at once
# Rows of before have signs, which had no count. Those that step 8 has just made are new.
_BEFORE = (
    "SELECT document, index, collection, size, array_send(terms), counts, places FROM quire.words"
    " WHERE (document, index) > (%s, %s) AND octet_length(counts) < cardinality(terms)"
    " ORDER BY document, index LIMIT %s"
)


def add_levels(db: Connection) -> None:
    """Make the keys of all chunks, and the index of them."""
    register_numbers(db)
    after: Sequence[Any] = (-1, -1)
    while rows := db.execute(_BEFORE, (*after, _SOME), binary=True).fetchall():
        after = rows[-1][:2]
        db.execute(
            "DELETE FROM quire.words AS w USING unnest(%s::bigint[], %s::integer[]) AS k (document, index)"
            " WHERE (w.document, w.index) = (k.document, k.index)",
            ([row[0] for row in rows], [row[1] for row in rows]),
        )
        copy_rows(db, "words", TYPES, _keyed(rows))
    db.execute("CREATE INDEX words_terms ON quire.words USING gin (terms)")
    chunks = db.execute("SELECT count(*) FROM quire.words").fetchone() or (0,)
    if chunks[0] >= COMMON_FROM:
        count_common(db, chunks[0])


def _keyed(rows: Iterable[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Rows with keys. What has no letter in the places is a sign."""
    for *about, size, terms, counts, places in rows:
        numbers = numbers_of(terms)
        times = [*counts, *[1] * (len(numbers) - len(counts))]
        spoken = set(places)
        levels = [
            level_of(count, size) if letter(place) in spoken else 0 for place, count in enumerate(times)
        ]
        keys = [key(one % _REPEATED, level) for one, level in zip(numbers, levels, strict=True)]
        count_of = dict(zip(keys, times, strict=True))
        order = sorted(count_of)
        letters = {one: letter(place) for place, one in enumerate(order)}
        moved = {ord(letter(place)): letters[one] for place, one in enumerate(keys)}
        packed = bytes([count_of[one] for one in order])
        yield *about, size, array_of(order), packed, places.translate(moved)
