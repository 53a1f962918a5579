"""Models and their vectors in a SQLite library.

Always: of two models of one sort, one is active. The vectors of a model become active only when every chunk
has one; then those of the model before it are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.embed.base import STATIC, STATIC_DIMENSION, unpacked
from quire.result import Hit
from quire.stores.filters import Filters
from quire.stores.rows import CHUNK_BITS, ChunkRow, Model, Unembedded
from quire.stores.sqlite.database import CHUNK_COLUMNS
from quire.stores.sqlite.filters import conditions
from quire.stores.sqlite.vectors import VectorTable, of_documents
from quire.stores.sqlite.within import SqliteWithin
from quire.stores.texts import digest_of

if TYPE_CHECKING:
    from quire.embed.base import Vectors

_NO_VECTOR = "NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.chunk = chunks.id AND v.slot >> 32 = ?)"


class SqliteVectors(SqliteWithin):
    """Models and their vectors in a SQLite library."""

    def _forget(self) -> None:
        super()._forget()
        self._vectors = VectorTable(self._db)
        self._unembedded: dict[int, tuple[int, int]] = {}  # by model: generation, and how many

    @property
    def vectors(self) -> VectorTable:
        """The vectors of the file that is at the path now."""
        self._look()
        return self._vectors

    def models(self) -> list[Model]:
        """The models that made vectors: active ones first, and the instant one last of them."""
        rows = self.db.execute("SELECT id, name, dimension, active FROM models")
        found = [Model(number, name, dimension, bool(active)) for number, name, dimension, active in rows]
        return sorted(found, key=Model.order)

    def model(self, name: str, dimension: int) -> Model:
        """A model by its name and dimension, added if it is new; the first of its sort is active."""
        if found := self._stored_model(name, dimension):
            return found
        with self._transaction():
            self._make_known(name, dimension)
        return self.model(name, dimension)

    def _stored_model(self, name: str, dimension: int) -> Model | None:
        return next((m for m in self.models() if (m.name, m.dimension) == (name, dimension)), None)

    def _make_known(self, name: str, dimension: int) -> None:
        """Add a model, inside a transaction; the first of its sort is active."""
        new = Model(0, name, dimension, active=False)
        is_first = not any(model.is_instant == new.is_instant for model in self.models())
        add = "INSERT OR IGNORE INTO models (name, dimension, active) VALUES (?, ?, ?)"
        self.db.execute(add, (name, dimension, is_first))

    def activate(self, model: Model) -> None:
        """Search with this model from now on, and delete the vectors of the others of its sort."""
        with self._transaction():
            for other in self.models():
                if other.id != model.id and other.is_instant == model.is_instant:
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
        now = self.generation()
        if self._unembedded.get(model.id, (-1, 0))[0] != now:
            chunks = self._value("SELECT count(*) FROM chunks")
            self._unembedded[model.id] = now, int(chunks) - self.vectors.count(model)
        return self._unembedded[model.id][1]

    def embedded_share(self, model: Model, filters: Filters) -> float:
        """The share of the chunks within filters that have a vector of a model; 1 if there are no chunks."""
        if not self.count_unembedded(model):
            return 1.0
        where, args = conditions(filters)
        within = f"FROM documents AS d WHERE {' AND '.join(where) or 'true'}"
        total = int(self._value(f"SELECT total(chunk_count) {within}", *args))
        found = self.vectors.count(model, self._within(filters))
        return found / total if total else 1.0

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

    def _add_instant(self, written: Mapping[int, bytes]) -> None:
        """Store the instant vectors that came with documents, by row."""
        if written:
            if not self._stored_model(STATIC, STATIC_DIMENSION):
                self._make_known(STATIC, STATIC_DIMENSION)
            model = self.model(STATIC, STATIC_DIMENSION)
            self.vectors.add_instant(model, written, self.generation() + 1)

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

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """The cosines of chunks with a vector. Chunks without a vector are left out."""
        held = f"SELECT chunk, slot FROM vectors WHERE slot >> 32 = {model.id} AND chunk"
        slots = {slot: chunk for chunk, slot in self._in(held, chunks)}
        scores = self.vectors.cosines(model, vector, list(slots))
        return dict(zip(slots.values(), scores.tolist(), strict=True))

    def vectors_of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks. Chunks without a vector are left out."""
        held = f"SELECT chunk, vector FROM vectors WHERE slot >> 32 = {model.id} AND chunk"
        return {chunk: unpacked(vector, model.dimension)[0] for chunk, vector in self._in(held, chunks)}

    def document_vectors(self, model: Model, rows: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of whole documents, by row. Documents without one are left out."""
        held = (
            "SELECT d.seq, v.vector FROM vectors AS v JOIN documents AS d ON d.seq = v.chunk >> 20"
            f" WHERE v.slot >> 32 = iif(d.chunk_count = 1, {model.id}, {of_documents(model).id}) AND v.chunk"
        )
        found = dict(self._in(held, (row << CHUNK_BITS for row in rows)))
        return dict(zip(found, unpacked(b"".join(found.values()), model.dimension), strict=True))
