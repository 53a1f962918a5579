"""From schema 7 to 8: documents in compressed pieces, and terms as numbers, made anew from the texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quire import analyze
from quire.stores.postgres import terms
from quire.stores.postgres.database import CHUNK_COLUMNS, Connection, array_of, register_numbers
from quire.stores.postgres.pieces import pieces_of
from quire.stores.postgres.words import COMMON_FROM, count_common
from quire.stores.postgres.writing import BATCH_BYTES, SOME, add_words
from quire.stores.rows import ChunkRow
from quire.stores.texts import ChunkTexts, ChunkWords

_Document = tuple[int, str, str]  # row, collection and kind
_UPDATED = (
    "UPDATE quire.documents SET pieces = %b, ends = %s, pieces_sum = %b, length = %s, terms = %s,"
    " term_count = %s WHERE seq = %s"
)
# A column with a new value makes the server write the table anew, without what was deleted.
_FINISHED = """
ALTER TABLE quire.documents DROP COLUMN source,
    ALTER COLUMN pieces SET NOT NULL, ALTER COLUMN ends SET NOT NULL,
    ALTER COLUMN pieces_sum SET NOT NULL,
    ALTER COLUMN length TYPE bigint USING length + 0, ALTER COLUMN length SET NOT NULL
"""


def compact(db: Connection) -> None:
    """Bring all documents of a library to the new form."""
    register_numbers(db)
    for some in _batches(db):
        made = [(document, _words(db, document[0])) for document in some]
        add_words(db, ((*document, words) for document, words in made))
    db.execute(_FINISHED)
    row = db.execute("SELECT count(*) FROM quire.words").fetchone()
    if row and row[0] >= COMMON_FROM:
        count_common(db, row[0])


def _batches(db: Connection) -> Iterator[list[_Document]]:
    rows = db.execute(
        "SELECT seq, collection, kind, length(source) FROM quire.documents ORDER BY seq"
    ).fetchall()
    some, size = list[_Document](), 0
    for seq, collection, kind, length in rows:
        some.append((seq, collection, kind))
        size += length
        if size >= BATCH_BYTES or len(some) >= SOME:
            yield some
            some, size = [], 0
    yield some


def _words(db: Connection, document: int) -> list[ChunkWords]:
    """Store a document's pieces; returns the terms of its chunks."""
    row: tuple[Any, ...] = db.execute(
        "SELECT source FROM quire.documents WHERE seq = %s", (document,), binary=True
    ).fetchone() or (b"",)
    trails = db.execute(
        "SELECT position, trail FROM quire.sections WHERE document = %s", (document,)
    ).fetchall()
    chunks = f"SELECT {CHUNK_COLUMNS} FROM quire.chunks AS c WHERE c.document = %s ORDER BY c.index"
    texts = ChunkTexts(row[0], dict(trails))
    made = [texts.words(ChunkRow(*chunk)) for chunk in db.execute(chunks, (document,))]
    stored, ends, digest = pieces_of(row[0])
    about = (analyze.fingerprint(), terms.size_of(made), document)
    db.execute(_UPDATED, (stored, array_of(ends), digest, len(row[0]), *about))
    return made
