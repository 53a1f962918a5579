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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from quire.result import Hit
from quire.stores.filters import Filters
from quire.stores.rows import CHUNK_BITS, MAX_CHUNKS, ChunkRow, Model, Unembedded
from quire.stores.sqlite import signatures
from quire.stores.sqlite.database import CHUNK_COLUMNS, SqliteDatabase
from quire.stores.sqlite.filters import conditions
from quire.stores.sqlite.signatures import (
    BLOCK,
    BLOCK_BITS,
    MODEL_BITS,
    Signatures,
    sign_bits,
    signature_of,
    slots_of,
    unpacked,
    width_of,
)
from quire.stores.texts import digest_of

if TYPE_CHECKING:
    from quire.embed.base import Vectors

REMEMBERED = 10_000  # cached vectors of texts that are gone
_DOCUMENTS = 1 << 20  # is added to a model's number for the vectors of whole documents
_FETCHED = 125  # vectors that are rescored at a time

_NO_VECTOR = "NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.chunk = chunks.id AND v.slot >> 32 = ?)"

_Entry = tuple[int, bytes | None]  # a slot's chunk, 0 for none, and its signature if that is new


class VectorTable:
    """The vectors of one open library."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._scanned: dict[int, Signatures] = {}  # by model

    # ---------------------------------------------------------------------------------- writing

    def rebind(self, document: int, digests: Sequence[bytes], generation: int) -> None:
        """Give the vectors of a document to its new chunks with the same texts; the others become cached."""
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
        for model in {slot >> MODEL_BITS for slot in chunk_of}:
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
        copied: list[tuple[int, bytes, bytes]] = []
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
            mean = np.sum([unpacked(row[1], model.dimension) for row in rows], axis=0)
            means[place] = mean / (np.linalg.norm(mean) or 1.0)
        return digests, means

    def _insert(self, model: Model, rows: list[tuple[int, bytes, bytes]], generation: int) -> None:
        places: dict[int, _Entry] = {}
        for slot, (chunk, digest, blob) in zip(self._free_slots(model, len(rows)), rows, strict=True):
            self.db.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", (slot, chunk, digest, blob))
            places[slot] = chunk, signature_of(blob, model.dimension)
        self._patch(places, width_of(model.dimension), generation)

    def _free_slots(self, model: Model, count: int) -> list[int]:
        """Slots for new vectors: cached ones if there are too many of those, then new ones."""
        low, high = slots_of(model)
        remembered = "FROM vectors WHERE chunk IS NULL AND slot >= ? AND slot < ?"
        kept = REMEMBERED if model.id < _DOCUMENTS else 0  # those of documents can be made again
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

    def count(self, model: Model) -> int:
        """How many chunks have a vector of a model."""
        return len(self._scan(model).chunks)

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
    """Vectors as they are stored: a scale, and a byte for each number."""
    import numpy as np

    scales = np.abs(found).max(axis=1, keepdims=True).astype(np.float32) / 127
    whole = np.rint(found / np.where(scales > 0, scales, 1)).astype(np.int8)
    return [scale.tobytes() + row.tobytes() for scale, row in zip(scales, whole, strict=True)]


def of_documents(model: Model) -> Model:
    """What stands for a model where the vectors of whole documents are kept."""
    return replace(model, id=model.id + _DOCUMENTS)


class SqliteVectors(SqliteDatabase):
    """Models and their vectors in a SQLite library."""

    def _forget(self) -> None:
        super()._forget()
        self._vectors = VectorTable(self._db)
        self._unembedded: tuple[tuple[int, int], int] = ((-1, -1), 0)  # model and generation, and how many

    @property
    def vectors(self) -> VectorTable:
        """The vectors of the file that is at the path now."""
        self._look()
        return self._vectors

    def models(self) -> list[Model]:
        """The models that made vectors, the active one first."""
        rows = self.db.execute("SELECT id, name, dimension, active FROM models ORDER BY active DESC, id")
        return [Model(number, name, dimension, bool(active)) for number, name, dimension, active in rows]

    def model(self, name: str, dimension: int) -> Model:
        """A model by its name and dimension, added if it is new; the first is active."""
        found = next((m for m in self.models() if (m.name, m.dimension) == (name, dimension)), None)
        if found:
            return found
        with self._transaction():
            self.db.execute(
                "INSERT OR IGNORE INTO models (name, dimension, active)"
                " VALUES (?, ?, NOT EXISTS (SELECT 1 FROM models))",
                (name, dimension),
            )
        return self.model(name, dimension)

    def activate(self, model: Model) -> None:
        """Search with this model from now on, and delete the vectors of all others."""
        with self._transaction():
            for other in self.models():
                if other.id != model.id:
                    self.vectors.forget(other)
                    self.db.execute("DELETE FROM models WHERE id = ?", (other.id,))
            self.db.execute("UPDATE models SET active = 1 WHERE id = ?", (model.id,))
            self._next_generation()

    def unembedded(
        self, model: Model, limit: int, after: int = -1, documents: Sequence[int] = ()
    ) -> list[Unembedded]:
        """Chunks that have no vector of a model, by id, beginning after one; only of documents, if given."""
        only = f"AND document IN ({', '.join(map(str, documents))})" if documents else ""
        rows = self.db.execute(
            f"SELECT {CHUNK_COLUMNS} FROM chunks WHERE id > ? AND {_NO_VECTOR} {only} ORDER BY id LIMIT ?",
            (after, model.id, limit),
        )
        chunks = [ChunkRow(*row) for row in rows]
        found: list[Unembedded] = []
        for document in dict.fromkeys(chunk.document for chunk in chunks):
            version = self._value("SELECT updated_at FROM documents WHERE seq = ?", document)
            texts, own = self._texts(document), (chunk for chunk in chunks if chunk.document == document)
            found += (Unembedded(chunk.id, document, version, texts.embedded(chunk)) for chunk in own)
        return found

    def count_unembedded(self, model: Model) -> int:
        """How many chunks have no vector of a model, counted once in each generation."""
        key = model.id, self.generation()
        if self._unembedded[0] != key:
            chunks = self._value("SELECT count(*) FROM chunks")
            self._unembedded = key, int(chunks) - self.vectors.count(model)
        return self._unembedded[1]

    def reuse(self, model: Model, chunks: Sequence[Unembedded]) -> set[int]:
        """Give chunks the cached vectors of their texts; the chunks that got one."""
        with self._transaction():
            wanted = {chunk.chunk: chunk.digest for chunk in self._still_without(model, chunks)}
            given = self.vectors.reuse(model, wanted, self.generation() + 1)
            self._describe(model, {chunk >> CHUNK_BITS for chunk in given})
            self._next_generation()
        return given

    def write_vectors(self, model: Model, chunks: Sequence[Unembedded], vectors: Vectors) -> None:
        """Store vectors in one transaction. A chunk whose document has changed since gets none."""
        with self._transaction():
            without = set(self._still_without(model, chunks))
            places = [place for place, chunk in enumerate(chunks) if chunk in without]
            rows = [(chunks[place].chunk, chunks[place].digest) for place in places]
            self.vectors.add(model, rows, vectors[places], self.generation() + 1)
            self._describe(model, {chunks[place].document for place in places})
            self._next_generation()

    def set_vector(self, model: Model, chunk: int, vector: Vectors) -> None:
        """Store a vector of length 1 for a chunk, in place of the one that it has."""
        with self._transaction():
            rows = self.db.execute(f"SELECT {CHUNK_COLUMNS} FROM chunks WHERE id = ?", (chunk,)).fetchall()
            for row in rows:
                digest = digest_of(self._texts(chunk >> CHUNK_BITS).embedded(ChunkRow(*row)))
                self.vectors.put(model, chunk, digest, vector, self.generation() + 1)
                self._describe(model, [chunk >> CHUNK_BITS])
            self._next_generation()

    def _describe(self, model: Model, documents: Iterable[int]) -> None:
        counts = dict(self._in("SELECT seq, chunk_count FROM documents WHERE seq", documents))
        self.vectors.describe([model], counts, self.generation() + 1)

    def _renew(self) -> None:
        super()._renew()
        missing = "SELECT 1 FROM facts WHERE (name, value) = ('document_vectors', 'missing')"
        if not self.read_only and self.db.execute(missing).fetchone():
            with self._transaction():
                counts = dict(self.db.execute("SELECT seq, chunk_count FROM documents").fetchall())
                self.vectors.describe(self.models(), counts, self.generation() + 1)
                self.db.execute("DELETE FROM facts WHERE name = 'document_vectors'")
                self._next_generation()

    def _still_without(self, model: Model, chunks: Sequence[Unembedded]) -> list[Unembedded]:
        """Chunks whose version is still stored, and which nobody else has embedded meanwhile."""
        sql = "SELECT seq, updated_at FROM documents WHERE seq"
        versions = dict(self._in(sql, {chunk.document for chunk in chunks}))
        ids = (chunk.chunk for chunk in chunks if versions.get(chunk.document) == chunk.version)
        sql = f"SELECT id FROM chunks WHERE {_NO_VECTOR.replace('?', str(model.id))} AND id"
        without = {row[0] for row in self._in(sql, ids)}
        return [chunk for chunk in chunks if chunk.chunk in without]

    def embedding_failures(self) -> dict[int, str]:
        """Documents that could not be embedded, and why."""
        return dict(self.db.execute("SELECT document, reason FROM embedding_failures").fetchall())

    def note_failures(self, failures: Mapping[int, str]) -> None:
        """Replace the stored reasons why documents could not be embedded."""
        with self._transaction():
            self.db.execute("DELETE FROM embedding_failures")
            self.db.executemany(
                "INSERT INTO embedding_failures SELECT seq, ? FROM documents WHERE seq = ?",
                ((reason, document) for document, reason in failures.items()),
            )

    def search_vectors(self, model: Model, vector: Vectors, filters: Filters, limit: int) -> list[Hit]:
        """The chunks whose vectors are nearest to one, best first; the score is the cosine."""
        found = self.vectors.search(model, vector, self._within(filters), limit)
        sections = dict(self._in("SELECT id, section FROM chunks WHERE id", (chunk for chunk, _ in found)))
        return [
            Hit(chunk, chunk >> CHUNK_BITS, sections[chunk], score, "semantic", meaning=score)
            for chunk, score in found
        ]

    def search_documents(
        self, model: Model, vector: Vectors, filters: Filters, limit: int
    ) -> list[tuple[int, float]]:
        """The documents of several chunks that are nearest to a vector as a whole, and their cosines."""
        found = self.vectors.search(of_documents(model), vector, self._within(filters), limit)
        return [(chunk >> CHUNK_BITS, score) for chunk, score in found]

    def _within(self, filters: Filters) -> list[int] | None:
        """The documents that filters leave; None for all."""
        where, args = conditions(filters)
        if not where:
            return None
        rows = self.db.execute(f"SELECT seq FROM documents AS d WHERE {' AND '.join(where)}", args)
        return [row[0] for row in rows]

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """The cosines of chunks with a vector. Chunks without a vector are left out."""
        held = f"SELECT chunk, slot FROM vectors WHERE slot >> 32 = {model.id} AND chunk"
        slots = {slot: chunk for chunk, slot in self._in(held, chunks)}
        scores = self.vectors.cosines(model, vector, list(slots))
        return dict(zip(slots.values(), scores.tolist(), strict=True))

    def vectors_of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks. Chunks without a vector are left out."""
        held = f"SELECT chunk, vector FROM vectors WHERE slot >> 32 = {model.id} AND chunk"
        return {chunk: unpacked(vector, model.dimension) for chunk, vector in self._in(held, chunks)}
