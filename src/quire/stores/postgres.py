"""A library in a PostgreSQL database with pgvector: for a team.

Always: one transaction covers text, sections, chunks, terms and what becomes of vectors; writers of the
same document wait for one another; a document's number comes from its id, in any process. Within the
database, policies keep roles and scoped connections to their collections, whatever statement they send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from psycopg import sql

from quire import analyze
from quire.document import encoding_of, text_of
from quire.query import Query
from quire.result import Hit, Node
from quire.stores import postgres_words, postgres_writing
from quire.stores.base import Counts, Filters
from quire.stores.postgres_checks import CHECKS
from quire.stores.postgres_database import (
    CHUNK_ID,
    CHUNKS_BY_ID,
    Connection,
    Database,
    conditions,
    copy,
    split,
)
from quire.stores.postgres_vectors import VectorTable
from quire.stores.postgres_words import Words
from quire.stores.postgres_writing import Identity, Latest, next_generation
from quire.stores.rows import (
    MAX_CHUNKS,
    ChunkRow,
    DocumentRow,
    Member,
    Model,
    Prepared,
    SectionRow,
    Sighting,
    SourceRow,
    Unembedded,
    embedded,
    source_of,
    storable,
    words_of,
)

if TYPE_CHECKING:
    from quire.embed.base import Vectors

_TERMS = str(analyze.VERSION)
_DOCUMENT = ", ".join(f"d.{field.name}" for field in fields(DocumentRow))
_SECTION = ", ".join(f's."{field.name}"' for field in fields(SectionRow))
_CHUNK = ", ".join([CHUNK_ID, *(f'c."{field.name}"' for field in fields(ChunkRow)[1:])])
_SHOWN = 100  # chunks that may be about to be shown
_CHUNK_WIDTH = len(fields(ChunkRow))
_SHOWN_CHUNKS = (
    f"SELECT {_CHUNK}, {_SECTION}, substring(d.source, 1, 2), CASE WHEN c.byte_end - c.byte_start < 20000"
    f" THEN substring(d.source, c.byte_start + 1, c.byte_end - c.byte_start) END FROM {CHUNKS_BY_ID}"
    " JOIN quire.documents AS d ON d.seq = c.document LEFT JOIN quire.sections AS s"
    " ON s.document = c.document AND s.position = c.section"
)
_HELD = (
    *("documents", "sections", "chunks", "words"),
    *("vectors", "embedded", "remembered", "embedding_failures", "fetches", "tags", "sources", "members"),
)


class PostgresStore:
    """One open database, used by one thread at a time.

    `tenant` names collections: it sees and writes no others. `?collections=a,b` in the URL does the same.
    """

    def __init__(self, url: str, tenant: Sequence[str] | None = None, *, create: bool = False) -> None:
        self.db = Database(url, tenant, create=create)
        self.words = Words(self.db)
        self.vectors = VectorTable(self.db)
        self.db.renewed = self._renew_terms
        try:
            self._renew_terms()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the database."""
        self.db.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything read within is of one moment. One within another is part of it."""
        with self.db.reading():
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All writes inside go into one library. Raises LibraryError if another takes its place."""
        with self.db.bound():
            yield

    def settle(self) -> None:
        """Nothing is left to do: the server keeps its own log."""

    def library_id(self) -> str:
        """The random id of the library, which its backups share."""
        return self.db.library_id()

    def version(self) -> str:
        """A word that changes with every write, and that no other library has, nor a restored one."""
        return self.db.version()

    def grant(self, role: str, collections: Iterable[str]) -> None:
        """Let a role of the server see and write these collections and no others; none takes it all away."""

        def action(db: Connection) -> None:
            who = sql.Identifier(role)
            held = sql.SQL(", ").join(sql.Identifier("quire", table) for table in _HELD)
            for allowed in (
                "USAGE ON SCHEMA quire",
                "SELECT ON quire.migrations, quire.models, quire.facts, quire.writes",
                "UPDATE ON quire.writes",
            ):
                db.execute(sql.SQL("GRANT {} TO {}").format(sql.SQL(allowed), who))
            db.execute(sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}").format(held, who))
            db.execute("DELETE FROM quire.grants WHERE role = %s", (role,))
            db.execute(
                "INSERT INTO quire.grants SELECT %s, name FROM unnest(%s::text[]) AS name",
                (role, list(dict.fromkeys(collections))),
            )
            next_generation(db)  # what the role found before is no longer what it sees

        self.db.write(action)

    # ---------------------------------------------------------------------------------- writing

    def generation(self) -> int:
        """A number that moves whenever anything is written."""
        return self.db.generation()

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents in one transaction, and remove some; for each, whether it replaced one."""
        latest = Latest(batch)

        def action(db: Connection) -> set[Identity]:
            if gone:
                self._leave(db, source, gone)
            replaced, chunks = postgres_writing.write(db, latest, source.seq if source else 0)
            if replaced:
                self.vectors.let_go(db, [row for row, _ in replaced.values()])
            next_generation(db, chunks)
            self.words.grown(db)
            return set(replaced)

        seen, answers = self.db.write(action), list[bool]()
        for identity in latest.order:
            answers.append(identity in seen)
            seen.add(identity)
        return answers

    def join(self, members: Sequence[Member]) -> None:
        """Make documents those of sources, in one transaction."""

        def action(db: Connection) -> None:
            for number in {member.source for member in members}:
                seen = {member.document: member.seen for member in members if member.source == number}
                postgres_writing.join(db, number, seen)

        self.db.write(action)

    def sight(self, source: SourceRow, seen: Sequence[Sighting]) -> list[int]:
        """Note that stored documents are a source's and unchanged; those that could not be renamed."""

        def action(db: Connection) -> list[int]:
            renamed = {one.document: one.path for one in seen if one.path}
            refused = postgres_writing.changed(db, seen)
            renamed = {document: path for document, path in renamed.items() if document not in refused}
            refused |= postgres_writing.rename(db, renamed) if renamed else set()
            kept = [one for one in seen if one.document not in refused]
            if kept:
                postgres_writing.sight(db, source.seq, kept)
            if renamed:
                next_generation(db)
            return list(refused)

        return self.db.write(action)

    # ---------------------------------------------------------------------------------- sources

    def sources(self) -> list[SourceRow]:
        """All sources, by collection, type and place."""
        rows = self.db.rows(
            "SELECT s.*, (SELECT count(*) FROM quire.members AS m WHERE m.source = s.seq)"
            " FROM quire.sources AS s ORDER BY s.collection, s.type, s.place, s.kind"
        )
        return [source_of(row) for row in rows]

    def put_sources(self, sources: Sequence[SourceRow]) -> None:
        """Remember sources, or what is new of them."""
        self.db.write(lambda db: postgres_writing.put_sources(db, sources))

    def source_now(self, source: SourceRow) -> SourceRow | None:
        """A source as it is now; None if it was removed."""
        rows = self.db.rows("SELECT * FROM quire.sources WHERE seq = %s", (source.seq,))
        return source_of(rows[0]) if rows else None

    def note_checked(self, sources: Sequence[SourceRow]) -> None:
        """Note when sources were checked, and their problems."""
        rows = [(source.checked_at, storable(source.problem), source.seq) for source in sources]

        def action(db: Connection) -> None:
            with db.cursor() as cursor:
                cursor.executemany(
                    "UPDATE quire.sources SET checked_at = %s, problem = %s WHERE seq = %s", rows
                )

        self.db.write(action)

    def drop_sources(self, sources: Sequence[SourceRow]) -> int:
        """Remove sources, and the documents that no other source holds; how many these were."""

        def action(db: Connection) -> int:
            removed = 0
            for source in sources:
                rows = db.execute("SELECT document FROM quire.members WHERE source = %s", (source.seq,))
                removed += self._leave(db, source, [row[0] for row in rows.fetchall()])
                db.execute("DELETE FROM quire.sources WHERE seq = %s", (source.seq,))
            next_generation(db)
            return removed

        return self.db.write(action)

    def move_source(self, old: SourceRow, new: SourceRow) -> None:
        """Put a source at another place, with all that is known of its documents."""

        def action(db: Connection) -> None:
            postgres_writing.move_source(db, old, new)
            next_generation(db)

        self.db.write(action)

    def members(self, collection: str, kind: str, source: SourceRow | None = None) -> list[Member]:
        """Which sources hold the documents of a collection, or of one source."""
        columns = "SELECT m.document, m.source, m.seen FROM quire.members AS m"
        if source:
            only = "WHERE m.document IN (SELECT document FROM quire.members WHERE source = %s)"
            return [Member(*row) for row in self.db.rows(f"{columns} {only}", (source.seq,))]
        rows = self.db.rows(
            f"{columns} JOIN quire.documents AS d ON d.seq = m.document"
            " WHERE d.collection = %s AND d.kind = %s",
            (storable(collection), kind),
        )
        return [Member(*row) for row in rows]

    def leave(self, source: SourceRow, documents: Sequence[int]) -> int:
        """Take documents from a source; those that no other holds are deleted. How many these were."""

        def action(db: Connection) -> int:
            removed = self._leave(db, source, documents)
            next_generation(db)
            return removed

        return self.db.write(action)

    def _leave(self, db: Connection, source: SourceRow | None, rows: Sequence[int]) -> int:
        """Take documents from a source and delete those that no other source holds; how many."""
        held = "SELECT seq FROM quire.documents WHERE seq = ANY (%s) ORDER BY seq FOR UPDATE"
        rows = [row[0] for row in db.execute(held, (list(rows),)).fetchall()]  # others wait with theirs
        if source:
            db.execute(
                "DELETE FROM quire.members WHERE source = %s AND document = ANY (%s)",
                (source.seq, list(rows)),
            )
        others = db.execute("SELECT document FROM quire.members WHERE document = ANY (%s)", (list(rows),))
        kept = {row[0] for row in others}
        left = [row for row in rows if row not in kept]
        if left:
            self._remove(db, left)
        return len(left)

    def adopted(self) -> bool:
        """Whether all documents have the sources that they came from. Only the owner sees to it."""
        return self.db.is_scoped or self.db.value("SELECT 1 FROM quire.facts WHERE name = 'adopt'") is None

    def note_adopted(self) -> None:
        """Note that they have."""

        def action(db: Connection) -> None:
            db.execute("DELETE FROM quire.facts WHERE name = 'adopt'")

        self.db.write(action)

    # ------------------------------------------------------------------------------------ others

    def promote(self, row: int, level: str) -> None:
        """Set the promotion of a document, and with it of all its chunks, which have none of their own."""

        def action(db: Connection) -> None:
            db.execute("UPDATE quire.documents SET promotion = %s WHERE seq = %s", (level, row))
            next_generation(db)

        self.db.write(action)

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents and all that belongs to them, in one transaction."""

        def action(db: Connection) -> None:
            self._remove(db, rows)
            next_generation(db)

        self.db.write(action)

    def _remove(self, db: Connection, rows: Sequence[int]) -> None:
        wanted = (list(rows),)
        db.execute("SELECT 1 FROM quire.documents WHERE seq = ANY (%s) ORDER BY seq FOR UPDATE", wanted)
        self.vectors.let_go(db, rows, all=True)
        db.execute("DELETE FROM quire.documents WHERE seq = ANY (%s)", wanted)

    def _renew_terms(self) -> None:
        """Make the keyword index anew if other rules made its terms."""
        if self.db.is_scoped or self._made_terms() == _TERMS:
            return
        self.db.write(self._make_terms)

    def _made_terms(self) -> str | None:
        value = self.db.value("SELECT value FROM quire.facts WHERE name = 'terms'")
        return None if value is None else str(value)

    def _make_terms(self, db: Connection) -> None:
        db.execute("LOCK TABLE quire.words IN EXCLUSIVE MODE")
        db.execute("DELETE FROM quire.words")
        with self.reading():
            for row in self.documents(Filters()):
                made = postgres_words.rows_of(row.seq, row.collection, row.kind, self._words_of(row.seq))
                copy(db, "words", postgres_words.TYPES, made)
        db.execute("UPDATE quire.facts SET value = %s WHERE name = 'terms'", (_TERMS,))
        next_generation(db)

    def _words_of(self, row: int) -> Iterator[tuple[str, str, str]]:
        """The terms of each chunk of a document, worked out from what is stored."""
        text = text_of(self.source(row))
        trails = {section.position: section.titles for section in self.sections(row)}
        for chunk in self._chunk_rows("c.document = %s", row):
            yield words_of(trails[chunk.section], text[chunk.start : chunk.end])

    # ---------------------------------------------------------------------------------- reading

    def documents(self, filters: Filters) -> list[DocumentRow]:
        """Documents by collection and path."""
        where, args = conditions(filters)
        rows = self.db.rows(
            f"SELECT {_DOCUMENT} FROM quire.documents AS d WHERE {where or 'true'}"
            " ORDER BY d.collection, d.path, d.kind",
            args,
        )
        return [DocumentRow(*row) for row in rows]

    def document(self, collection: str | None, path: str) -> DocumentRow | None:
        """One document by its path, in any collection if none is named."""
        rows = self.db.rows(
            f"SELECT {_DOCUMENT} FROM quire.documents AS d WHERE d.path = %s"
            " AND (%s::text IS NULL OR d.collection = %s) ORDER BY d.collection, d.kind LIMIT 1",
            [storable(path), *[None if collection is None else storable(collection)] * 2],
        )
        return DocumentRow(*rows[0]) if rows else None

    def documents_by_row(self, rows: Iterable[int]) -> dict[int, DocumentRow]:
        """Documents by their rows. A moment keeps the last answer: a search asks twice for the same."""
        wanted = set(rows)
        with self.reading():
            kept: dict[int, DocumentRow] = self.db.moment.get("documents", {})
            if not wanted <= kept.keys():
                statement = f"SELECT {_DOCUMENT} FROM quire.documents AS d WHERE d.seq = ANY (%s)"
                kept = {row[0]: DocumentRow(*row) for row in self.db.rows(statement, [list(wanted)])}
                self.db.moment["documents"] = kept
            return {row: kept[row] for row in wanted if row in kept}

    def source(self, row: int) -> bytes:
        """The exact bytes of a document."""
        return bytes(self.db.value("SELECT source FROM quire.documents WHERE seq = %s", row))

    def passage(self, row: int, start: int, end: int) -> str:
        """The text of some bytes of a document, without reading the rest."""
        if (text := self.db.moment.get("passages", {}).get((row, start, end))) is not None:
            return str(text)
        beginning, some = self.db.rows(
            "SELECT substring(source, 1, 2), substring(source, %s, %s) FROM quire.documents WHERE seq = %s",
            (start + 1, end - start, row),
        )[0]
        return text_of(bytes(some), encoding_of(bytes(beginning)))

    def sections(self, row: int) -> list[SectionRow]:
        """The sections of a document, in order."""
        rows = self.db.rows(
            f"SELECT {_SECTION} FROM quire.sections AS s WHERE s.document = %s ORDER BY s.position", (row,)
        )
        return [SectionRow(*found) for found in rows]

    def section(self, row: int, position: int) -> SectionRow:
        """One section."""
        if known := self.db.moment.get("sections", {}).get((row, position)):
            return cast(SectionRow, known)
        rows = self.db.rows(
            f"SELECT {_SECTION} FROM quire.sections AS s WHERE s.document = %s AND s.position = %s",
            (row, position),
        )
        return SectionRow(*rows[0])

    def nodes(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Node]:
        """Sections by (document, position), with all their ancestors."""
        wanted = list(keys)
        rows = self.db.rows(
            "WITH RECURSIVE up (document, position, parent, level, children) AS ("
            " SELECT s.document, s.position, s.parent, s.level, s.children"
            " FROM unnest(%s::bigint[], %s::integer[]) AS k (document, position)"
            " JOIN quire.sections AS s USING (document, position)"
            " UNION SELECT s.document, s.position, s.parent, s.level, s.children FROM up"
            " JOIN quire.sections AS s ON s.document = up.document AND s.position = up.parent"
            ") SELECT * FROM up",
            ([key[0] for key in wanted], [key[1] for key in wanted]),
        )
        return {(row[0], row[1]): Node(*row) for row in rows}

    def chunks(self, ids: Iterable[int]) -> dict[int, ChunkRow]:
        """Chunks by their ids. Where they are few, a moment keeps their sections and texts, to be shown."""
        wanted = list(ids)
        if len(wanted) <= _SHOWN and self.db.is_reading:
            return self._shown(wanted)
        rows = self.db.rows(f"SELECT {_CHUNK} FROM {CHUNKS_BY_ID}", split(wanted))
        return {row[0]: ChunkRow(*row) for row in rows}

    def _shown(self, ids: list[int]) -> dict[int, ChunkRow]:
        """Chunks in one statement with what is asked for next: each by itself would be a round trip."""
        chunks: dict[int, ChunkRow] = {}
        sections, passages = dict[tuple[int, int], SectionRow](), dict[tuple[int, int, int], str]()
        for row in self.db.rows(_SHOWN_CHUNKS, split(ids)):
            chunk, (beginning, some) = ChunkRow(*row[:_CHUNK_WIDTH]), row[-2:]
            chunks[chunk.id] = chunk
            if some is not None:
                text = text_of(bytes(some), encoding_of(bytes(beginning)))
                passages[chunk.document, chunk.byte_start, chunk.byte_end] = text
            if row[_CHUNK_WIDTH] is not None:
                sections[chunk.document, chunk.section] = SectionRow(*row[_CHUNK_WIDTH:-2])
        self.db.moment |= {"sections": sections, "passages": passages}
        return chunks

    def _chunk_rows(self, where: str, *args: Any) -> list[ChunkRow]:
        rows = self.db.rows(f"SELECT {_CHUNK} FROM quire.chunks AS c WHERE {where} ORDER BY c.index", args)
        return [ChunkRow(*row) for row in rows]

    def fetched(self, rows: Iterable[int]) -> dict[int, tuple[str | None, str | None]]:
        """What a server said of documents: etag and last modified; nothing of those it did not send."""
        found = self.db.rows(
            "SELECT document, etag, last_modified FROM quire.fetches WHERE document = ANY (%s)", [list(rows)]
        )
        return {row: (etag, modified) for row, etag, modified in found}

    def note_fetched(self, said: Mapping[int, tuple[str | None, str | None]]) -> None:
        """Note what a server now says of documents, by row, whose content is unchanged."""
        rows = [(etag, modified, row) for row, (etag, modified) in said.items() if etag or modified]

        def action(db: Connection) -> None:
            with db.cursor() as cursor:
                cursor.execute("DELETE FROM quire.fetches WHERE document = ANY (%s)", [list(said)])
                cursor.executemany(
                    "INSERT INTO quire.fetches (document, collection, etag, last_modified)"
                    " SELECT seq, collection, %s, %s FROM quire.documents WHERE seq = %s",
                    rows,
                )

        self.db.write(action)

    def tags(self, rows: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """The tags of documents, in order; nothing of those without."""
        found: dict[int, list[str]] = {}
        statement = "SELECT document, tag FROM quire.tags WHERE document = ANY (%s) ORDER BY tag"
        for row, tag in self.db.rows(statement, [list(rows)]):
            found.setdefault(row, []).append(tag)
        return {row: tuple(tags) for row, tags in found.items()}

    def kinds(self) -> frozenset[str]:
        """The kinds of documents there are."""
        statement = "SELECT DISTINCT kind FROM quire.documents"
        return self.db.once("kinds", lambda: frozenset(row[0] for row in self.db.rows(statement)))

    def collections(self) -> list[str]:
        """The names of the collections, each found by a step along the index."""
        statement = (
            "WITH RECURSIVE names (name) AS (SELECT min(collection) FROM quire.documents UNION ALL"
            " SELECT (SELECT min(collection) FROM quire.documents WHERE collection > name) FROM names"
            " WHERE name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL"
        )
        return list(self.db.once("collections", lambda: [row[0] for row in self.db.rows(statement)]))

    def counts(self) -> Counts:
        """What is in the library."""
        return self.db.once("counts", self._counts)

    def _counts(self) -> Counts:
        rows = self.db.rows(
            "SELECT collection, count(*), sum(section_count), sum(chunk_count), sum(length(source))"
            " FROM quire.documents GROUP BY 1 ORDER BY 1"
        )
        documents, sections, chunks, size = (sum(int(row[at]) for row in rows) for at in range(1, 5))
        active = next((model for model in self.models() if model.active), None)
        done, name = (self._count_embedded(active), active.name) if active else (0, "")
        return Counts(documents, sections, chunks, size, {row[0]: row[1] for row in rows}, done, name)

    def check(self) -> list[str]:
        """What is wrong with the library; empty if all is well."""
        with self.reading():
            return [
                f"{problem}: {count:,}"
                for problem, query in CHECKS.items()
                if (count := self.db.value(query))
            ]

    # -------------------------------------------------------------------------------- embedding

    def models(self) -> list[Model]:
        """The models that made vectors, the active one first."""
        statement = "SELECT id, name, dimension, active FROM quire.models ORDER BY active DESC, id"
        return list(self.db.once("models", lambda: [Model(*row) for row in self.db.rows(statement)]))

    def model(self, name: str, dimension: int) -> Model:
        """A model by its name and dimension, made known if it is new; the first is active."""
        found = next((m for m in self.models() if (m.name, m.dimension) == (name, dimension)), None)
        if found:
            return found

        def action(db: Connection) -> None:
            self.vectors.make_known(db, name, dimension)
            next_generation(db)

        self.db.write(action)
        return self.model(name, dimension)

    def activate(self, model: Model) -> None:
        """Search with this model from now on, and forget the vectors of all others."""
        others = [other for other in self.models() if other.id != model.id]

        def action(db: Connection) -> None:
            db.execute("UPDATE quire.models SET active = (id = %s)", (model.id,))
            next_generation(db)
            for other in others:
                self.vectors.forget(db, other)

        self.db.write(action)

    def unembedded(self, model: Model, limit: int, after: int = -1) -> list[Unembedded]:
        """Chunks that have no vector of a model, in order, from behind one on."""
        with self.reading():
            # Of documents that lack one; only the first of them may have all it lacks before that place.
            rows = self.db.rows(
                f"SELECT d.updated_at, {_CHUNK} FROM (SELECT d.seq, d.updated_at FROM quire.documents AS d"
                " LEFT JOIN quire.embedded AS e ON e.document = d.seq AND e.model = %(model)s"
                " WHERE d.seq >= %(document)s AND d.chunk_count > coalesce(e.chunks, 0)"
                " ORDER BY d.seq LIMIT %(limit)s + 1) AS d JOIN quire.chunks AS c ON c.document = d.seq"
                " WHERE (c.document, c.index) > (%(document)s, %(index)s) AND NOT EXISTS (SELECT 1"
                " FROM quire.vectors AS v WHERE v.document = c.document AND v.digest = c.digest"
                " AND v.model = %(model)s) ORDER BY c.document, c.index LIMIT %(limit)s",
                {
                    "model": model.id,
                    "limit": limit,
                    "document": after // MAX_CHUNKS,
                    "index": after % MAX_CHUNKS,
                },
            )
            chunks = [(row[0], ChunkRow(*row[1:])) for row in rows]
            texts = {document: self._texts_of(document) for document in {c.document for _, c in chunks}}
        return [
            Unembedded(chunk.id, chunk.document, version, texts[chunk.document](chunk))
            for version, chunk in chunks
        ]

    def _texts_of(self, document: int) -> Callable[[ChunkRow], str]:
        """What is embedded of each chunk of a document."""
        text = text_of(self.source(document))
        trails = {section.position: section.titles for section in self.sections(document)}
        return lambda chunk: embedded(trails[chunk.section], chunk.context, text[chunk.start : chunk.end])

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

    def reuse(self, model: Model, chunks: Sequence[Unembedded]) -> set[int]:
        """Give chunks the vectors that are remembered for their texts; which have got one."""

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

    def embedding_failures(self) -> dict[int, str]:
        """Documents that could not be embedded, and why."""
        rows = self.db.rows("SELECT document, reason FROM quire.embedding_failures")
        return {row[0]: row[1] for row in rows}

    def note_failures(self, failures: Mapping[int, str]) -> None:
        """Remember why documents could not be embedded, in place of what was remembered before."""

        def action(db: Connection) -> None:
            db.execute("DELETE FROM quire.embedding_failures")
            db.execute(
                "INSERT INTO quire.embedding_failures SELECT d.seq, d.collection, f.reason"
                " FROM unnest(%s::bigint[], %s::text[]) AS f (document, reason)"
                " JOIN quire.documents AS d ON d.seq = f.document",
                (list(failures), [storable(reason) for reason in failures.values()]),
            )

        self.db.write(action)

    # -------------------------------------------------------------------------------- searching

    def search_vectors(self, model: Model, vector: Vectors, filters: Filters, limit: int) -> list[Hit]:
        """The chunks whose vectors are nearest to one, best first; the score is the cosine."""
        with self.reading():
            found = self.vectors.search(model, vector, filters, limit)
        return [
            Hit(document * MAX_CHUNKS + index, document, section, score, "semantic")
            for document, index, section, score in found
        ]

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """How near chunks are to a vector; those without one are left out."""
        return self.vectors.cosines(model, vector, chunks)

    def vectors_of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks; those without one are left out."""
        return self.vectors.of(model, chunks)

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of some chunks that have all that a query demands, and nothing that it leaves out."""
        return self.words.allowed(query, chunks)

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        with self.reading():
            found = self.words.search(query, filters, limit)
        return [
            Hit(row.document * MAX_CHUNKS + row.index, row.document, row.section, score)
            for row, score in found
        ]
