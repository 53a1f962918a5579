"""The vectors of a SQLite library.

Input: vectors of chunks. Output: the chunks nearest to one. A search scans signatures of one bit for each
number, and rescores the best with eight bits for each. A document of several chunks has a vector too, the
mean of theirs. Always: blocks and vectors agree; a vector whose chunk is gone is cached by its text until its
slot is needed; a document has a vector once all its chunks have one; writing is part of the store's
transaction.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from quire.embed.base import mean_of, packed
from quire.stores.rows import MAX_CHUNKS, Model
from quire.stores.sqlite import signatures
from quire.stores.sqlite.signatures import (
    BLOCK,
    BLOCK_BITS,
    MODEL_BITS,
    Signatures,
    sign_bits,
    signature_of,
    slots_of,
    width_of,
)

if TYPE_CHECKING:
    from quire.embed.base import Vectors

REMEMBERED = 10_000  # cached vectors of texts that are gone
_DOCUMENTS = 1 << 20  # is added to a model's number for the vectors of whole documents
_FETCHED = 125  # vectors that are rescored at a time

_Row = tuple[int, bytes, bytes]  # a chunk, the digest of its text, and its vector as it is stored
_Entry = tuple[int, bytes | None]  # a slot's chunk, 0 for none, and its signature if that is new


class VectorTable:
    """The vectors of one open library."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._scanned: dict[int, Signatures] = {}  # by model

    # ---------------------------------------------------------------------------------- writing

    def rebind(
        self, document: int, digests: Sequence[bytes], generation: int, instant: Container[int] = ()
    ) -> None:
        """Give the vectors of a document to its new chunks with the same texts; the others become cached.

        Those of `instant` models are written anew with the chunks.
        """
        first = document * MAX_CHUNKS
        held = self.db.execute(
            "SELECT slot, chunk, digest FROM vectors WHERE chunk >= ? AND chunk < ?",
            (first, first + MAX_CHUNKS),
        ).fetchall()
        if not held:
            return
        free: dict[tuple[int, bytes], list[int]] = defaultdict(list)
        for slot, _, digest in reversed(held):
            free[slot >> MODEL_BITS, digest].append(slot)
        chunk_of = dict.fromkeys((slot for slot, _, _ in held), 0)
        for model in {slot >> MODEL_BITS for slot in chunk_of if slot >> MODEL_BITS not in instant}:
            for index, digest in enumerate(digests):
                if slots := free[model, digest]:
                    chunk_of[slots.pop()] = first + index
        self._assign({slot: chunk_of[slot] for slot, chunk, _ in held if chunk_of[slot] != chunk}, generation)

    def _assign(self, chunk_of: Mapping[int, int], generation: int) -> None:
        self.db.executemany(
            "UPDATE vectors SET chunk = ? WHERE slot = ?",
            ((chunk or None, slot) for slot, chunk in chunk_of.items()),
        )
        self._patch({slot: (chunk, None) for slot, chunk in chunk_of.items()}, 0, generation)

    def reuse(self, model: Model, wanted: Mapping[int, bytes], generation: int) -> set[int]:
        """Give chunks the cached vectors of their texts; the chunks that got one."""
        given: dict[int, int] = {}
        copied: list[_Row] = []
        low, high = slots_of(model)
        for chunk, digest in wanted.items():
            known = self.db.execute(
                "SELECT slot, chunk, vector FROM vectors WHERE digest = ? AND slot >= ? AND slot < ?"
                " ORDER BY chunk",
                (digest, low, high),
            ).fetchall()
            if free := next((slot for slot, held, _ in known if held is None and slot not in given), None):
                given[free] = chunk
            elif known:
                copied.append((chunk, digest, known[0][2]))
        self._assign(given, generation)
        self._insert(model, copied, generation)
        return {*given.values(), *(chunk for chunk, _, _ in copied)}

    def add(self, model: Model, chunks: Sequence[tuple[int, bytes]], found: Vectors, generation: int) -> None:
        """Store vectors of length 1 for chunks (row, digest of the text)."""
        rows = [(*chunk, blob) for chunk, blob in zip(chunks, _blobs(found), strict=True)]
        self._insert(model, rows, generation)

    def put(self, model: Model, chunk: int, digest: bytes, vector: Vectors, generation: int) -> None:
        """Store a vector for a chunk, in place of the one that it has. Its document's must be made again."""
        held = "SELECT slot FROM vectors WHERE chunk = ? AND slot >> 32 = ?"
        whole = chunk - chunk % MAX_CHUNKS, of_documents(model).id
        self._assign({row[0]: 0 for row in self.db.execute(held, whole).fetchall()}, generation)
        if slot := self.db.execute(held, (chunk, model.id)).fetchone():
            (blob,) = _blobs(vector[None, :])
            self.db.execute("UPDATE vectors SET vector = ? WHERE slot = ?", (blob, *slot))
            self._patch({slot[0]: (chunk, signature_of(blob, model.dimension))}, 0, generation)
        else:
            self.add(model, [(chunk, digest)], vector[None, :], generation)

    def add_instant(self, model: Model, written: Mapping[int, bytes], generation: int) -> None:
        """Store the instant vectors that came with documents, by row, and those of whole documents."""
        parts, whole = list[_Row](), list[_Row]()
        for row, vectors in written.items():
            first, size = row * MAX_CHUNKS, 4 + model.dimension
            blobs = [vectors[at : at + size] for at in range(0, len(vectors), size)]
            parts += [(first + index, b"", blob) for index, blob in enumerate(blobs)]
            if len(blobs) > 1:
                whole.append((first, b"", packed(mean_of(vectors, model.dimension)[None, :])))
        self._insert(model, parts, generation)
        self._insert(of_documents(model), whole, generation)

    def describe(self, models: Iterable[Model], counts: Mapping[int, int], generation: int) -> None:
        """Give documents of several chunks (row, how many) their vectors, if all their chunks have one."""
        for model in models:
            rows = {row * MAX_CHUNKS: count for row, count in counts.items() if count > 1}
            whole = [first for first, count in rows.items() if self._count_of(model, first) == count]
            digests, vectors = self._means(model, whole)
            known = self.reuse(of_documents(model), digests, generation)
            new = [place for place, first in enumerate(digests) if first not in known]
            if new:
                keys = list(digests.items())
                self.add(of_documents(model), [keys[place] for place in new], vectors[new], generation)

    def _count_of(self, model: Model, first: int) -> int:
        """How many chunks of a document have a vector, or -1 if the document has its own."""
        held = "SELECT slot >> 32, count(*) FROM vectors WHERE chunk >= ? AND chunk < ? GROUP BY 1"
        counts = dict(self.db.execute(held, (first, first + MAX_CHUNKS)).fetchall())
        return -1 if of_documents(model).id in counts else counts.get(model.id, 0)

    def _means(self, model: Model, documents: Sequence[int]) -> tuple[dict[int, bytes], Vectors]:
        """Digests of what documents (by their first chunks) hold, and the means of their vectors."""
        import numpy as np

        digests: dict[int, bytes] = {}
        means = np.empty((len(documents), model.dimension), np.float32)
        for place, first in enumerate(documents):
            rows = self.db.execute(
                "SELECT digest, vector FROM vectors WHERE chunk >= ? AND chunk < ? AND slot >> 32 = ?"
                " ORDER BY chunk",
                (first, first + MAX_CHUNKS, model.id),
            ).fetchall()
            digests[first] = sha256(b"".join(row[0] for row in rows)).digest()
            means[place] = mean_of(b"".join(row[1] for row in rows), model.dimension)
        return digests, means

    def _insert(self, model: Model, rows: Sequence[_Row], generation: int) -> None:
        if not rows:
            return
        slots = self._free_slots(model, len(rows))
        stored = ((slot, *row) for slot, row in zip(slots, rows, strict=True))
        self.db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", stored)
        signs = signatures.signatures_of(b"".join(blob for _, _, blob in rows), model.dimension)
        entries = ((chunk, sign) for (chunk, _, _), sign in zip(rows, signs, strict=True))
        self._patch(dict(zip(slots, entries, strict=True)), width_of(model.dimension), generation)

    def _free_slots(self, model: Model, count: int) -> list[int]:
        """Slots for new vectors: cached ones if there are too many of those, then new ones."""
        low, high = slots_of(model)
        remembered = "FROM vectors WHERE chunk IS NULL AND slot >= ? AND slot < ?"
        kept = (
            0 if model.id >= _DOCUMENTS or model.is_instant else REMEMBERED
        )  # others are quickly made again
        over = self._value(f"SELECT count(*) {remembered}", low, high) - kept
        rows = self.db.execute(f"SELECT slot {remembered} LIMIT ?", (low, high, max(0, min(over, count))))
        slots = [row[0] for row in rows]
        last = self._value("SELECT max(slot) FROM vectors WHERE slot >= ? AND slot < ?", low, high)
        start = low if last is None else last + 1
        return [*slots, *range(start, start + count - len(slots))]

    def _patch(self, places: Mapping[int, _Entry], width: int, generation: int) -> None:
        """Write chunks and signatures into the blocks of their slots."""
        by_block: dict[int, dict[int, _Entry]] = defaultdict(dict)
        for slot, place in places.items():
            by_block[slot >> BLOCK_BITS][slot % BLOCK] = place
        for block, some in by_block.items():
            row = self.db.execute(
                "SELECT chunks, signatures FROM blocks WHERE block = ?", (block,)
            ).fetchone()
            chunks, signatures = map(bytearray, row or (bytes(8 * BLOCK), bytes(width * BLOCK)))
            size = len(signatures) // BLOCK
            for at, (chunk, signature) in some.items():
                chunks[8 * at : 8 * at + 8] = chunk.to_bytes(8, "little")
                if signature is not None:
                    signatures[size * at : size * (at + 1)] = signature
            self.db.execute(
                "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?)", (block, generation, chunks, signatures)
            )

    def drop_cached(self, models: Iterable[Model], generation: int) -> None:
        """Erase the vectors of texts that are gone."""
        for model in (one for known in models for one in (known, of_documents(known))):
            cached = "FROM vectors WHERE chunk IS NULL AND slot >= ? AND slot < ?"
            rows = self.db.execute(f"SELECT slot {cached}", slots_of(model)).fetchall()
            self.db.execute(f"DELETE {cached}", slots_of(model))
            width = width_of(model.dimension)
            self._patch({slot: (0, bytes(width)) for (slot,) in rows}, width, generation)

    def forget(self, model: Model) -> None:
        """Delete all vectors of a model."""
        for one in (model, of_documents(model)):
            low, high = slots_of(one)
            self.db.execute("DELETE FROM vectors WHERE slot >= ? AND slot < ?", (low, high))
            blocks = low >> BLOCK_BITS, high >> BLOCK_BITS
            self.db.execute("DELETE FROM blocks WHERE block >= ? AND block < ?", blocks)
            self._scanned.pop(one.id, None)

    # -------------------------------------------------------------------------------- searching

    def count(self, model: Model, documents: Sequence[int] | None = None) -> int:
        """How many chunks have a vector of a model, of some documents or of all."""
        return self._scan(model).count(documents)

    def search(
        self, model: Model, vector: Vectors, documents: Iterable[int] | None, limit: int
    ) -> list[tuple[int, float]]:
        """The chunks nearest to a vector, of some documents or of all, and their cosines."""
        import numpy as np

        scanned = self._scan(model)
        rescored = signatures.RESCORED if model.id < _DOCUMENTS else signatures.RESCORED_DOCUMENTS
        places = scanned.nearest(sign_bits(vector), documents, max(limit, rescored))
        chunks = scanned.chunks[places]
        scores = self.cosines(model, vector, scanned.slots[places].tolist())
        best = np.lexsort((chunks, -scores))[:limit]
        return list(zip(chunks[best].tolist(), scores[best].tolist(), strict=True))

    def cosines(self, model: Model, vector: Vectors, slots: list[int]) -> Vectors:
        """The cosines of the vectors in some slots with one."""
        import numpy as np

        scores = np.empty(len(slots), np.float32)
        # A few at a time: memory that is used again is much faster than more of it.
        for start in range(0, len(slots), _FETCHED):
            some = slots[start : start + _FETCHED]
            marks = ", ".join("?" * len(some))
            rows = self.db.execute(f"SELECT slot, vector FROM vectors WHERE slot IN ({marks})", some)
            blobs = dict(rows.fetchall())
            whole = np.frombuffer(b"".join([blobs[slot] for slot in some]), np.uint8)
            whole = whole.reshape(len(some), 4 + model.dimension)
            scales = whole[:, :4].copy().view(np.float32)[:, 0]
            scores[start : start + _FETCHED] = (
                whole[:, 4:].view(np.int8).astype(np.float32) @ vector
            ) * scales
        return scores

    def _scan(self, model: Model) -> Signatures:
        """The signatures of a model. Only blocks that were written since the last scan are read."""
        known = self._scanned.get(model.id) or Signatures.nothing(model)
        low, high = (slot >> BLOCK_BITS for slot in slots_of(model))
        newer = self.db.execute(
            "SELECT block, generation, chunks, signatures FROM blocks"
            " WHERE block >= ? AND block < ? AND generation > ?",
            (low, high, known.generation),
        ).fetchall()
        self._scanned[model.id] = known = known.with_blocks(newer) if newer else known
        return known

    def _value(self, sql: str, *args: Any) -> Any:
        return self.db.execute(sql, args).fetchone()[0]

    def check(self, models: Iterable[Model]) -> list[str]:
        """Problems with the index; empty if there are none."""
        every = [one for model in models for one in (model, of_documents(model))]
        wrong = [problem for model in every for problem in self._check_model(model)]
        orphans = "chunk IS NOT NULL AND chunk NOT IN (SELECT id FROM chunks)"
        if lost := self._value(f"SELECT count(*) FROM vectors WHERE {orphans}"):
            wrong.append(f"vectors: {lost} of chunks that are not there")
        return wrong

    def _check_model(self, model: Model) -> Iterator[str]:
        low, high = slots_of(model)
        within = "FROM vectors WHERE slot >= ? AND slot < ?"
        size = 4 + model.dimension
        if bad := self._value(f"SELECT count(*) {within} AND length(vector) != {size}", low, high):
            yield f"vectors: {bad} are not {model.dimension} numbers of {model.name}"
            return
        blocks = self.db.execute(
            "SELECT block, chunks, signatures FROM blocks WHERE block >= ? AND block < ?",
            (low >> BLOCK_BITS, high >> BLOCK_BITS),
        )
        known = {block: (chunks, signatures) for block, chunks, signatures in blocks.fetchall()}
        last = self._value(f"SELECT max(slot) {within}", low, high)
        for block in range(low >> BLOCK_BITS, (low if last is None else last + BLOCK) >> BLOCK_BITS):
            if self._block_of(block, model) != known.pop(block, None):
                yield f"vectors: block {block} does not say what the vectors say"
        filled = (block for block, content in known.items() if any(map(any, content)))
        yield from (f"vectors: block {block} has no vectors" for block in filled)

    def _block_of(self, block: int, model: Model) -> tuple[bytes, bytes]:
        """The block that the vectors in its slots make."""
        chunks, width = bytearray(8 * BLOCK), width_of(model.dimension)
        signatures = bytearray(width * BLOCK)
        rows = self.db.execute(
            "SELECT slot, chunk, vector FROM vectors WHERE slot >= ? AND slot < ?",
            (block << BLOCK_BITS, (block + 1) << BLOCK_BITS),
        )
        for slot, chunk, vector in rows:
            at = slot % BLOCK
            chunks[8 * at : 8 * at + 8] = (chunk or 0).to_bytes(8, "little")
            signatures[width * at : width * (at + 1)] = signature_of(vector, model.dimension)
        return bytes(chunks), bytes(signatures)


def _blobs(found: Vectors) -> list[bytes]:
    """Vectors as they are stored, one by one."""
    size, whole = 4 + found.shape[1], packed(found)
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def of_documents(model: Model) -> Model:
    """What stands for a model where the vectors of whole documents are kept."""
    return replace(model, id=model.id + _DOCUMENTS)
