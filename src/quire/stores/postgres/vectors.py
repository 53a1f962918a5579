"""The vectors of a PostgreSQL library: pgvector's halfvec, found by an HNSW index for each model.

Input: vectors of texts. Output: the chunks nearest to one. Always: a vector belongs to a text of a
document, and to every chunk of it with that text; a vector whose text is gone is cached until there are
too many; filters and scope apply before the limit; writing is part of the store's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.embed.base import STATIC, STATIC_DIMENSION, unpacked
from quire.errors import EmbeddingError
from quire.result import Hit
from quire.stores.filters import Filters
from quire.stores.postgres.database import (
    CHUNK_COLUMNS,
    CHUNK_ID,
    CHUNKS_BY_ID,
    ITERATIVE,
    Connection,
    HalfVector,
    PostgresDatabase,
    PostgresPart,
    copy_rows,
    next_generation,
    split_ids,
)
from quire.stores.postgres.filters import conditions
from quire.stores.postgres.writing import Numbered
from quire.stores.rows import MAX_CHUNKS, ChunkRow, Model, Unembedded, storable

if TYPE_CHECKING:
    from quire.embed.base import Vectors

REMEMBERED = 10_000  # cached vectors of texts that are gone
EXACT = 20_000  # chunks within filters: up to this many are compared one by one, which misses none
SIGNS_FROM = 1000  # numbers of a vector: from here on the index holds their signs, a sixteenth of them
COMPARED_AGAIN = 4  # times as many vectors as are wanted, nearest by their signs
# Of an HNSW index. With 64 instead of 200, near vectors are missed that no longer search finds.
BUILT_WITH = "m = 16, ef_construction = 200"
_LIVE = "EXISTS (SELECT 1 FROM quire.chunks AS c WHERE c.document = v.document AND c.digest = v.digest)"


class VectorTable:
    """The vectors of one open library."""

    def __init__(self, db: PostgresDatabase) -> None:
        self.db = db

    # ----------------------------------------------------------------------------------- models

    def make_known(self, db: Connection, name: str, dimension: int) -> None:
        """Add a model and the index of its vectors; the first model of its sort is active."""
        rows = db.execute("SELECT id, name, dimension, active FROM quire.models").fetchall()
        new = Model(0, name, dimension, active=False)
        is_first = not any(Model(*row).is_instant == new.is_instant for row in rows)
        row = db.execute(
            "INSERT INTO quire.models (name, dimension, active) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING RETURNING id",
            (name, dimension, is_first),
        ).fetchone()
        if not row:
            return
        operators = "bit_hamming_ops" if _has_signs(new) else "halfvec_ip_ops"
        for table in ("vectors", "embedded"):
            db.execute(
                f"CREATE INDEX {table}_{row[0]} ON quire.{table} USING hnsw"
                f" (({_indexed('vector', new)}) {operators}) WITH ({BUILT_WITH})"
                f" WHERE model = {row[0]}"
            )

    def forget(self, db: Connection, model: Model) -> None:
        """Delete a model and all its vectors."""
        db.execute("DELETE FROM quire.models WHERE id = %s", (model.id,))
        db.execute(f"DROP INDEX IF EXISTS quire.vectors_{model.id}, quire.embedded_{model.id}")

    # ---------------------------------------------------------------------------------- writing

    def add(self, db: Connection, model: Model, chunks: Sequence[Unembedded], vectors: Vectors) -> None:
        """Store vectors of length 1 for chunks; one whose document has changed since gets none."""
        texts = _texts(db, chunks)
        rows: dict[tuple[int, bytes], tuple[Any, ...]] = {}
        for chunk, vector in zip(chunks, vectors, strict=True):
            if text := texts.get(chunk.chunk):
                document, digest, collection = text
                rows[document, digest] = (document, digest, model.id, collection, _half(vector))
        types = ("int8", "bytea", "int4", "text", self.db.halfvec)
        copy_rows(db, "vectors", types, rows.values(), "ON CONFLICT DO NOTHING")
        count_embedded(db, {document for document, _ in rows})

    def add_instant(self, db: Connection, model: Model, written: Sequence[Numbered]) -> None:
        """Store the instant vectors that came with documents."""
        rows: dict[tuple[int, bytes], tuple[Any, ...]] = {}
        for row, new in written:
            vectors = unpacked(new.instant, model.dimension)
            for digest, vector in zip(new.digests, vectors, strict=True) if new.instant else ():
                rows[row, digest] = (row, digest, model.id, new.collection, _half(vector))
        types = ("int8", "bytea", "int4", "text", self.db.halfvec)
        copy_rows(db, "vectors", types, rows.values(), "ON CONFLICT DO NOTHING")
        count_embedded(db, {document for document, _ in rows})

    def put(self, db: Connection, model: Model, chunk: int, vector: Vectors) -> None:
        """Store a vector for a chunk, and for those of its document with the same text."""
        document, index = divmod(chunk, MAX_CHUNKS)
        db.execute(
            "INSERT INTO quire.vectors (document, digest, model, collection, vector)"
            " SELECT document, digest, %s, collection, %s FROM quire.chunks"
            " WHERE (document, index) = (%s, %s)"
            " ON CONFLICT (document, digest, model) DO UPDATE SET vector = excluded.vector",
            (model.id, _half(vector), document, index),
        )
        count_embedded(db, [document])

    def reuse(self, db: Connection, model: Model, chunks: Sequence[Unembedded]) -> set[int]:
        """Give chunks the cached vectors of their texts; the chunks that got one."""
        texts = _texts(db, chunks)
        wanted = list(dict.fromkeys(texts.values()))
        rows = db.execute(
            "INSERT INTO quire.vectors SELECT t.document, t.digest, %(model)s, t.collection, known.vector"
            " FROM unnest(%(documents)s::bigint[], %(digests)s::bytea[], %(collections)s::text[])"
            " AS t (document, digest, collection) CROSS JOIN LATERAL ("
            " SELECT vector FROM quire.vectors WHERE model = %(model)s AND digest = t.digest UNION ALL"
            " SELECT vector FROM quire.remembered WHERE model = %(model)s AND digest = t.digest LIMIT 1"
            ") AS known ON CONFLICT DO NOTHING RETURNING document, digest",
            {
                "model": model.id,
                "documents": [text[0] for text in wanted],
                "digests": [text[1] for text in wanted],
                "collections": [text[2] for text in wanted],
            },
        ).fetchall()
        given = {(document, bytes(digest)) for document, digest in rows}
        count_embedded(db, {document for document, _ in given})
        return {chunk for chunk, text in texts.items() if text[:2] in given}

    def let_go(self, db: Connection, documents: Sequence[int], *, all: bool = False) -> None:
        """Move the vectors of texts that documents no longer have, or of all their texts, to the cache."""
        gone = f"v.document = ANY (%s) AND {'true' if all else f'NOT {_LIVE}'}"
        moved = (
            f"WITH gone AS (DELETE FROM quire.vectors AS v WHERE {gone}"
            " RETURNING model, digest, collection, vector)"
            " INSERT INTO quire.remembered (model, digest, collection, vector)"
            " SELECT DISTINCT ON (model, digest, collection) * FROM gone"
            " WHERE model NOT IN (SELECT id FROM quire.models WHERE starts_with(name, %s))"
            " ON CONFLICT DO NOTHING"
        )
        if db.execute(moved, (list(documents), STATIC)).rowcount:
            db.execute(
                "DELETE FROM quire.remembered AS r USING (SELECT model, digest, collection,"
                " row_number() OVER (PARTITION BY model ORDER BY since DESC) AS place FROM quire.remembered"
                ") AS old WHERE old.place > %s"
                " AND (r.model, r.digest, r.collection) = (old.model, old.digest, old.collection)",
                (REMEMBERED,),
            )
        count_embedded(db, documents)

    # -------------------------------------------------------------------------------- searching

    def search(
        self, model: Model, vector: Vectors, filters: Filters, limit: int
    ) -> list[tuple[int, int, int, float]]:
        """The chunks nearest to a vector: document, index, section and cosine."""
        best, args = self._nearest("quire.vectors", "v.document, v.digest", model, vector, filters, limit)
        rows = self.db.rows(
            f"{best} SELECT document, c.index, c.section, -distance FROM best JOIN quire.chunks AS c"
            " USING (document, digest) ORDER BY distance, document, c.index LIMIT %s",
            [*args, limit],
        )
        return [(document, index, section, score) for document, index, section, score in rows]

    def search_documents(
        self, model: Model, vector: Vectors, filters: Filters, limit: int
    ) -> list[tuple[int, float]]:
        """The documents of several chunks that are nearest to a vector as a whole, and their cosines."""
        best, args = self._nearest("quire.embedded", "v.document", model, vector, filters, limit)
        rows = self.db.rows(f"{best} SELECT document, -distance FROM best ORDER BY distance, document", args)
        return [(document, score) for document, score in rows]

    def _nearest(
        self, table: str, columns: str, model: Model, vector: Vectors, filters: Filters, limit: int
    ) -> tuple[str, list[Any]]:
        """The beginning of a statement, in which `best` are the rows of a table nearest to a vector."""
        where, args = conditions(filters)
        # An array, and not IN: that would read all vectors.
        within = f"SELECT d.seq FROM quire.documents AS d WHERE {where}"
        among = f" AND v.document = ANY (ARRAY ({within}))" if where else ""
        distance = f"v.vector::halfvec({model.dimension}) <#> %s"
        near = (
            f"SELECT {columns}, {distance} AS distance FROM {table} AS v"
            f" WHERE v.model = {model.id} AND v.vector IS NOT NULL{among}"
        )
        asked, half = [_half(vector), *args], _half(vector)
        if not self._is_small(where, args):  # the index is used for what is ordered by it and cut
            times = COMPARED_AGAIN if _has_signs(model) else 1
            self.db.look_around(max(limit, times * limit // 2))
            near = f"{near} ORDER BY {_distance('v.vector', '%s', model)} LIMIT %s"
            asked += half, times * limit
        best = "SELECT * FROM near ORDER BY distance LIMIT %s"
        return f"WITH near AS MATERIALIZED ({near}), best AS ({best})", [*asked, limit]

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """The cosines of chunks with a vector. Chunks without a vector are left out."""
        rows = self.db.rows(
            f"SELECT {CHUNK_ID}, -(v.vector::halfvec({model.dimension}) <#> %s) FROM {CHUNKS_BY_ID}"
            f" JOIN quire.vectors AS v USING (document, digest) WHERE v.model = {model.id}",
            (_half(vector), *split_ids(chunks)),
        )
        return {row[0]: row[1] for row in rows}

    def of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks. Chunks without a vector are left out."""
        rows = self.db.rows(
            f"SELECT {CHUNK_ID}, halfvec_send(v.vector) FROM {CHUNKS_BY_ID}"
            f" JOIN quire.vectors AS v USING (document, digest) WHERE v.model = {model.id}",
            split_ids(chunks),
        )
        return _received(rows)

    def of_documents(self, model: Model, rows: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of whole documents, by row. Documents without one are left out."""
        found = self.db.rows(
            "SELECT e.document, halfvec_send(e.vector) FROM quire.embedded AS e"
            " WHERE e.document = ANY (%(rows)s) AND e.model = %(model)s AND e.vector IS NOT NULL"
            " UNION ALL SELECT d.seq, halfvec_send(v.vector) FROM quire.documents AS d"
            " JOIN quire.chunks AS c ON c.document = d.seq"
            " JOIN quire.vectors AS v ON v.document = c.document AND v.digest = c.digest"
            " WHERE d.seq = ANY (%(rows)s) AND d.chunk_count = 1 AND v.model = %(model)s",
            {"rows": list(rows), "model": model.id},
        )
        return _received(found)

    def _is_small(self, where: str, args: list[Any]) -> bool:
        """Whether filters and scope leave so few chunks that all are compared."""
        counting = (
            "SELECT count(*), coalesce(sum(chunk_count), 0) FROM (SELECT d.chunk_count"
            f" FROM quire.documents AS d WHERE {where or 'true'} LIMIT {EXACT + 1}) AS few"
        )
        found = self.db.once((counting, repr(args)), lambda: self.db.rows(counting, args))
        documents, chunks = found[0]
        is_filtered = bool(where) or self.db.is_scoped
        goes_on = self.db.vector_version >= ITERATIVE or not is_filtered
        return not goes_on or (documents <= EXACT and chunks <= EXACT)


def _has_signs(model: Model) -> bool:
    """Whether the index holds the signs of a model's vectors: of long ones, and of those added at once."""
    return model.dimension >= SIGNS_FROM or model.is_instant


def _indexed(vector: str, model: Model) -> str:
    """SQL for what an HNSW index holds of a vector: all of it, or the signs of its numbers."""
    half = f"{vector}::halfvec({model.dimension})"
    return f"binary_quantize({half})::bit({model.dimension})" if _has_signs(model) else half


def _distance(one: str, other: str, model: Model) -> str:
    """SQL for the distance by which an HNSW index orders."""
    operator = "<~>" if _has_signs(model) else "<#>"
    return f"{_indexed(one, model)} {operator} {_indexed(other, model)}"


def _half(vector: Vectors) -> HalfVector:
    return HalfVector(len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(">f2").tobytes())


def _received(rows: Iterable[tuple[Any, ...]]) -> dict[int, Vectors]:
    """Vectors by what they belong to, as the server sends them."""
    import numpy as np

    return {key: np.frombuffer(sent, ">f2", offset=4).astype(np.float32) for key, sent in rows}


def _texts(db: Connection, chunks: Sequence[Unembedded]) -> dict[int, tuple[int, bytes, str]]:
    """Chunks whose version is still stored: document, digest and collection, locked until the end."""
    rows = db.execute(
        "SELECT seq, updated_at FROM quire.documents WHERE seq = ANY (%s) ORDER BY seq FOR NO KEY UPDATE",
        ([chunk.document for chunk in chunks],),
    )
    versions = {row[0]: row[1] for row in rows}
    ids = [chunk.chunk for chunk in chunks if versions.get(chunk.document) == chunk.version]
    rows = db.execute(
        f"SELECT {CHUNK_ID}, c.document, c.digest, c.collection FROM {CHUNKS_BY_ID}",
        split_ids(ids),
    )
    return {row[0]: (row[1], bytes(row[2]), row[3]) for row in rows}


def count_embedded(db: Connection, documents: Iterable[int]) -> None:
    """Count the chunks of documents that have a vector. Documents of which all do get their mean."""
    of = (list(documents),)
    db.execute("DELETE FROM quire.embedded WHERE document = ANY (%s)", of)
    db.execute(
        "INSERT INTO quire.embedded SELECT c.document, v.model, c.collection, count(*) FROM quire.chunks AS c"
        " JOIN quire.vectors AS v USING (document, digest) WHERE c.document = ANY (%s) GROUP BY 1, 2, 3",
        of,
    )
    db.execute(
        "UPDATE quire.embedded AS e SET vector = (SELECT l2_normalize(avg(v.vector))"
        " FROM quire.chunks AS c JOIN quire.vectors AS v USING (document, digest)"
        " WHERE c.document = e.document AND v.model = e.model)"
        " FROM quire.documents AS d WHERE d.seq = e.document AND e.document = ANY (%s)"
        " AND e.chunks = d.chunk_count AND e.chunks > 1",
        of,
    )


# ------------------------------------------------------------------------------------------ the store


class PostgresVectors(PostgresPart):
    """Models and their vectors in a PostgreSQL library."""

    def __init__(self, db: PostgresDatabase) -> None:
        super().__init__(db)
        self.vectors = VectorTable(db)

    def models(self) -> list[Model]:
        """The models that made vectors: active ones first, and the instant one last of them."""
        statement = "SELECT id, name, dimension, active FROM quire.models"
        found = self.db.once("models", lambda: [Model(*row) for row in self.db.rows(statement)])
        return sorted(found, key=Model.order)

    def model(self, name: str, dimension: int) -> Model:
        """A model by its name and dimension, added if it is new; the first of its sort is active."""
        found = next((m for m in self.models() if (m.name, m.dimension) == (name, dimension)), None)
        if found:
            return found
        if not self.db.is_owner:
            problem = f"is new here, and only the owner of the library can add it: quire embed --model {name}"
            raise EmbeddingError(name, problem)

        def action(db: Connection) -> None:
            self.vectors.make_known(db, name, dimension)
            next_generation(db)

        self.db.write(action)
        return self.model(name, dimension)

    def activate(self, model: Model) -> None:
        """Search with this model from now on, and delete the vectors of the others of its sort."""
        alike = [other for other in self.models() if other.is_instant == model.is_instant]
        others = [other for other in alike if other.id != model.id]

        def action(db: Connection) -> None:
            db.execute("UPDATE quire.models SET active = true WHERE id = %s", (model.id,))
            next_generation(db)
            for other in others:
                self.vectors.forget(db, other)

        self.db.write(action)

    def unembedded(
        self, model: Model, limit: int, after: int = -1, documents: Sequence[int] = ()
    ) -> list[Unembedded]:
        """Chunks that have no vector of a model, by id, beginning after one; only of documents, if given."""
        with self.db.reading():
            # Of documents that lack one; only the first of them may have all it lacks before that place.
            rows = self.db.rows(
                f"SELECT d.updated_at, {CHUNK_COLUMNS} FROM ("
                "SELECT d.seq, d.updated_at FROM quire.documents AS d"
                " LEFT JOIN quire.embedded AS e ON e.document = d.seq AND e.model = %(model)s"
                " WHERE d.seq >= %(document)s AND d.chunk_count > coalesce(e.chunks, 0)"
                " AND (%(only)s::bigint[] = '{}' OR d.seq = ANY (%(only)s))"
                " ORDER BY d.seq LIMIT %(limit)s + 1) AS d JOIN quire.chunks AS c ON c.document = d.seq"
                " WHERE (c.document, c.index) > (%(document)s, %(index)s) AND NOT EXISTS (SELECT 1"
                " FROM quire.vectors AS v WHERE v.document = c.document AND v.digest = c.digest"
                " AND v.model = %(model)s) ORDER BY c.document, c.index LIMIT %(limit)s",
                {
                    "model": model.id,
                    "limit": limit,
                    "document": after // MAX_CHUNKS,
                    "index": after % MAX_CHUNKS,
                    "only": list(documents),
                },
            )
            chunks = [(row[0], ChunkRow(*row[1:])) for row in rows]
            texts = {document: self._texts(document) for document in {c.document for _, c in chunks}}
        return [
            Unembedded(chunk.id, chunk.document, version, texts[chunk.document].embedded(chunk))
            for version, chunk in chunks
        ]

    def count_unembedded(self, model: Model) -> int:
        """How many chunks have no vector of a model."""
        return self.db.once(
            ("unembedded", model.id), lambda: self._count_chunks() - self._count_embedded(model)
        )

    def _count_chunks(self) -> int:
        return int(self.db.value("SELECT coalesce(sum(chunk_count), 0) FROM quire.documents"))

    def _count_embedded(self, model: Model) -> int:
        statement = "SELECT coalesce(sum(chunks), 0) FROM quire.embedded WHERE model = %s"
        return int(self.db.value(statement, model.id))

    def embedded_share(self, model: Model, filters: Filters) -> float:
        """The share of the chunks within filters that have a vector of a model; 1 if there are no chunks."""
        if not self.count_unembedded(model):
            return 1.0
        where, args = conditions(filters)
        statement = (
            "SELECT coalesce(sum(d.chunk_count), 0), coalesce(sum(e.chunks), 0) FROM quire.documents AS d"
            " LEFT JOIN quire.embedded AS e ON e.document = d.seq AND e.model = %s"
            f" WHERE {where or 'true'}"
        )
        key = ("share", model.id, statement, repr(args))
        ((chunks, done),) = self.db.once(key, lambda: self.db.rows(statement, [model.id, *args]))
        return float(done / chunks) if chunks else 1.0

    def _add_instant(self, db: Connection, written: Sequence[Numbered]) -> None:
        """Store the instant vectors that came with documents. Only the owner can add their model."""
        if not any(new.instant for _, new in written):
            return
        known = "SELECT id, name, dimension, active FROM quire.models WHERE (name, dimension) = (%s, %s)"
        model = db.execute(known, (STATIC, STATIC_DIMENSION)).fetchone()
        if model is None and self.db.is_owner:
            self.vectors.make_known(db, STATIC, STATIC_DIMENSION)
            model = db.execute(known, (STATIC, STATIC_DIMENSION)).fetchone()
        if model is not None:
            self.vectors.add_instant(db, Model(*model), written)

    def reuse(self, model: Model, chunks: Sequence[Unembedded]) -> set[int]:
        """Give chunks the cached vectors of their texts; the chunks that got one."""

        def action(db: Connection) -> set[int]:
            given = self.vectors.reuse(db, model, chunks)
            if given:
                next_generation(db)
            return given

        return self.db.write(action)

    def write_vectors(self, model: Model, chunks: Sequence[Unembedded], vectors: Vectors) -> None:
        """Store vectors in one transaction. A chunk whose document has changed since gets none."""

        def action(db: Connection) -> None:
            self.vectors.add(db, model, chunks, vectors)
            next_generation(db)

        self.db.write(action)

    def set_vector(self, model: Model, chunk: int, vector: Vectors) -> None:
        """Store a vector of length 1 for a chunk, in place of the one that it has."""

        def action(db: Connection) -> None:
            self.vectors.put(db, model, chunk, vector)
            next_generation(db)

        self.db.write(action)

    def embedding_failures(self) -> dict[int, str]:
        """Documents that could not be embedded, and why."""
        rows = self.db.rows("SELECT document, reason FROM quire.embedding_failures")
        return {row[0]: row[1] for row in rows}

    def note_failures(self, failures: Mapping[int, str]) -> None:
        """Replace the stored reasons why documents could not be embedded."""

        def action(db: Connection) -> None:
            db.execute("DELETE FROM quire.embedding_failures")
            db.execute(
                "INSERT INTO quire.embedding_failures SELECT d.seq, d.collection, f.reason"
                " FROM unnest(%s::bigint[], %s::text[]) AS f (document, reason)"
                " JOIN quire.documents AS d ON d.seq = f.document",
                (list(failures), [storable(reason) for reason in failures.values()]),
            )

        self.db.write(action)

    def search_vectors(self, model: Model, vector: Vectors, filters: Filters, limit: int) -> list[Hit]:
        """The chunks whose vectors are nearest to one, best first; the score is the cosine."""
        with self.db.reading():
            found = self.vectors.search(model, vector, filters, limit)
        return [
            Hit(document * MAX_CHUNKS + index, document, section, score, "semantic", meaning=score)
            for document, index, section, score in found
        ]

    def search_documents(
        self, model: Model, vector: Vectors, filters: Filters, limit: int
    ) -> list[tuple[int, float]]:
        """The documents of several chunks that are nearest to a vector as a whole, and their cosines."""
        return self.vectors.search_documents(model, vector, filters, limit)

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """The cosines of chunks with a vector. Chunks without a vector are left out."""
        return self.vectors.cosines(model, vector, chunks)

    def vectors_of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks. Chunks without a vector are left out."""
        return self.vectors.of(model, chunks)

    def document_vectors(self, model: Model, rows: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of whole documents, by row. Documents without one are left out."""
        return self.vectors.of_documents(model, rows)
