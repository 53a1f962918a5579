"""Write the keyword index of a SQLite library: its segments, into the tables of the database.

Input: the terms of chunks. Always: what a transaction adds and removes is written at its end, by `flush`; a
segment is never changed, and its number is never used again.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from quire.stores.rows import CHUNK_BITS
from quire.stores.sqlite import orders, segments
from quire.stores.sqlite.postings import SEGMENT_BITS, IndexTables
from quire.stores.sqlite.segments import ChunkTerms, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TIERS = (128, 1024, 8192, 32768)  # chunks: segments between two of these are merged with each other
_AT_ONCE = 4096  # chunks whose terms are in memory: those of a large document take a multiple of its text
_MERGED = 4  # segments of one size
_NOTE_SEGMENT = (
    "INSERT INTO facts VALUES ('last_segment', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class IndexWriter(IndexTables):
    """Changes of one index. While the index is made anew, the new tables have names with a suffix."""

    def __init__(self, db: sqlite3.Connection, suffix: str = "") -> None:
        super().__init__(db, suffix)
        self._added: dict[int, Iterable[ChunkTerms]] = {}  # by document
        self._removed: list[int] = []  # documents

    def add(self, document: int, rows: Iterable[ChunkTerms]) -> None:
        """Add the chunks of a document, at the end of the transaction."""
        self._added[document] = rows  # a large document unpacks them when they are written

    def remove(self, document: int) -> None:
        """Remove the chunks of a document, at the end of the transaction."""
        self._removed.append(document)
        self._added.pop(document, None)

    def drop_pending(self) -> None:
        """Forget what would be written at the end of the transaction."""
        self._added, self._removed = {}, []

    def flush(self) -> None:
        """Write what was added and removed, and merge what has become many segments."""
        removed, added = self._removed, self._added
        rows = (row for document in sorted(added) for row in added[document])
        self.drop_pending()
        if removed:
            self._remove(removed)
        while some := list(islice(rows, _AT_ONCE)):
            self._write(segments.build(some))
            coded = ((row[0], orders.coded(*row[1:])) for row in some)
            self.db.executemany(f"INSERT INTO {self._orders} VALUES (?, ?)", coded)
        while few := self._to_merge():
            self._merge(few)

    def _remove(self, documents: Sequence[int]) -> None:
        import numpy as np

        rows = np.unique(np.array(documents, np.int64))
        spans = [(int(row) << CHUNK_BITS, (int(row) + 1) << CHUNK_BITS) for row in rows]
        self.db.executemany(f"DELETE FROM {self._orders} WHERE chunk >= ? AND chunk < ?", spans)
        within = f"SELECT id, chunks FROM {self._segments} WHERE low < ? AND high >= ?"
        for id, blob in self.db.execute(within, (spans[-1][1], spans[0][0])).fetchall():
            gone = np.isin(np.frombuffer(blob, np.int64) >> CHUNK_BITS, rows)
            if gone.any():
                before = self._removed_of(id, len(gone))
                self._note_removed(id, gone if before is None else gone | before)

    def _note_removed(self, segment: int, gone: NDArray[Any]) -> None:
        """Note which chunks of a segment were removed. A segment without any others is deleted."""
        import numpy as np

        if gone.all():
            self._delete(segment)
        else:
            row = segment, int(gone.sum()), np.packbits(gone).tobytes()
            self.db.execute(f"INSERT OR REPLACE INTO {self._dead} VALUES (?, ?, ?)", row)

    def _delete(self, segment: int) -> None:
        span = segment << SEGMENT_BITS, (segment + 1) << SEGMENT_BITS
        self.db.execute(f"DELETE FROM {self._blocks} WHERE id >= ? AND id < ?", span)
        self.db.execute(f"DELETE FROM {self._dead} WHERE segment = ?", (segment,))
        self.db.execute(f"DELETE FROM {self._segments} WHERE id = ?", (segment,))

    def _write(self, new: Segment) -> None:
        """Write a segment."""
        last = self.db.execute("SELECT value FROM facts WHERE name = 'last_segment'").fetchone()
        id = int(last[0]) + 1
        self.db.execute(_NOTE_SEGMENT, (str(id),))
        firsts = "\n".join(block.first for block in new.blocks)
        span = int(new.chunks[0]), int(new.chunks[-1])
        row = id, len(new.chunks), *span, new.chunks.tobytes(), new.sizes.tobytes(), firsts
        self.db.execute(f"INSERT INTO {self._segments} VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self.db.executemany(
            f"INSERT INTO {self._blocks} VALUES (?, ?, ?, ?, ?)",
            (
                (id << SEGMENT_BITS | number, block.terms, block.ends, block.ordinals, block.weights)
                for number, block in enumerate(new.blocks)
            ),
        )

    def _to_merge(self) -> list[int]:
        """Segments to make one of: several of one size, or one of which more than half was removed."""
        rows = self.db.execute(
            f"SELECT s.id, s.count, s.count - coalesce(r.count, 0) FROM {self._segments} AS s"
            f" LEFT JOIN {self._dead} AS r ON r.segment = s.id ORDER BY s.id"
        ).fetchall()
        tiers: dict[int, list[tuple[int, int]]] = {}
        for id, total, left in rows:
            if 2 * left < total:
                return [id]
            tiers.setdefault(bisect_right(_TIERS, left), []).append((id, left))
        return next((some for tier in sorted(tiers) if (some := _fitting(tier, tiers[tier]))), [])

    def _merge(self, ids: Sequence[int]) -> None:
        """Write one segment in place of some."""
        parts = [(self.read(id), self.left_of(id)) for id in ids]
        for id in ids:
            self._delete(id)
        self._write(segments.merged(parts))

    def compact(self, *, fully: bool = False) -> None:
        """Write the index anew without what was removed; `fully` also merges small segments."""
        for id in [row[0] for row in self.db.execute(f"SELECT segment FROM {self._dead}").fetchall()]:
            self._merge([id])
        while fully and (some := self._small()):
            self._merge(some)

    def _small(self) -> list[int]:
        """The segments that fit into one, if they are several."""
        rows = self.db.execute(f"SELECT id, count FROM {self._segments} ORDER BY count, id").fetchall()
        return _prefix(rows)

    def create(self) -> None:
        """Make the tables, empty, as those that are in use are."""
        self.drop()
        for name in (self._segments, self._dead, self._blocks, self._orders):
            like = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?"
            made = self.db.execute(like, (name.removesuffix(self._suffix),)).fetchone()[0]
            self.db.execute(made.replace(name.removesuffix(self._suffix), name, 1))

    def drop(self) -> None:
        """Delete the tables."""
        for name in (self._segments, self._dead, self._blocks, self._orders):
            self.db.execute(f"DROP TABLE IF EXISTS {name}")

    def take_place(self) -> None:
        """Put these tables in the place of those in use."""
        for name in (self._segments, self._dead, self._blocks, self._orders):
            self.db.execute(f"DROP TABLE {name.removesuffix(self._suffix)}")
            self.db.execute(f"ALTER TABLE {name} RENAME TO {name.removesuffix(self._suffix)}")


def _fitting(tier: int, some: Sequence[tuple[int, int]]) -> list[int]:
    """The segments of one size to merge, oldest first; none yet if they are few or already large."""
    return _prefix(some) if tier < len(_TIERS) and len(some) >= _MERGED else []


def _prefix(some: Sequence[tuple[int, int]]) -> list[int]:
    """The first segments that fit into one; none if only one does."""
    total, found = 0, list[int]()
    for id, size in some:
        total += size
        if total > segments.LARGEST:
            break
        found.append(id)
    return found if len(found) > 1 else []
