"""A library in one SQLite file: the default.

Always: one transaction covers text, sections, chunks, terms and what becomes of vectors, so a crash
cannot part them. The full-text table is contentless: a chunk's terms are worked out again from its
text to take it out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from quire import analyze
from quire.address import id_of, of_document
from quire.document import encoding_of, text_of
from quire.query import Query
from quire.result import Hit, Node
from quire.stores.base import Counts, Filters
from quire.stores.keywords import Fts5, Keywords
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
    source_values,
    storable,
    words_of,
)
from quire.stores.sqlite_database import Database
from quire.stores.vectors import VectorIndex, unpacked

if TYPE_CHECKING:
    from quire.embed.base import Vectors

_TERMS = str(analyze.VERSION)
_SHIFT = MAX_CHUNKS.bit_length() - 1
_DOCUMENT = ", ".join(field.name for field in fields(DocumentRow))
_SECTION = ", ".join(f'"{field.name}"' for field in fields(SectionRow))
_CHUNK = ", ".join(f'"{field.name}"' for field in fields(ChunkRow))
_NO_VECTOR = "NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.chunk = chunks.id AND v.slot >> 32 = ?)"
_ADD_SECTION = f"INSERT INTO sections VALUES (?{', ?' * (len(fields(SectionRow)) - 1)})"
_ADD_MEMBER = (  # unless the document is gone meanwhile
    "INSERT INTO members SELECT ?1, seq, ?3 FROM documents WHERE seq = ?2"
    " ON CONFLICT (source, document) DO UPDATE SET seen = excluded.seen"
)
# No number is used again: a plan that was made before must not find another document under it.
_NEXT_NUMBER = (
    "SELECT 1 + max(coalesce((SELECT max(seq) FROM documents), 0),"
    " coalesce((SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'last_number'), 0))"
)
_NOTE_NUMBER = (
    "INSERT INTO facts VALUES ('last_number', ?) ON CONFLICT (name) DO UPDATE SET value ="
    " CAST(max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER)) AS TEXT)"
)
_ADD_CHUNK = f"INSERT INTO chunks VALUES (?{', ?' * (len(fields(ChunkRow)) - 1)})"


class SqliteStore(Database):
    """One open file."""

    def _forget(self) -> None:
        """Forget what was found out about the content."""
        super()._forget()
        self._kinds: tuple[int, frozenset[str]] = (-1, frozenset())
        self._unembedded: tuple[tuple[int, int], int] = ((-1, -1), 0)
        self._keywords: Keywords = Fts5(self._db, _SHIFT)
        self._vectors = VectorIndex(self._db)

    def _renew(self) -> None:
        """Make the keyword index anew if other rules made its terms: it could not take them out again."""
        if self.read_only or self._value("SELECT value FROM facts WHERE name = 'terms'") == _TERMS:
            return
        with self._transaction():
            self.keywords.clear()
            for (row,) in self.db.execute("SELECT seq FROM documents").fetchall():
                self.keywords.add(self._words_of(row))
            self.db.execute("UPDATE facts SET value = ? WHERE name = 'terms'", (_TERMS,))
            self._next_generation()

    @property
    def keywords(self) -> Keywords:
        """The keyword index of the file that is at the path now."""
        self._look()
        return self._keywords

    @property
    def vectors(self) -> VectorIndex:
        """The vectors of the file that is at the path now."""
        self._look()
        return self._vectors

    # ---------------------------------------------------------------------------------- writing

    def library_id(self) -> str:
        """The random id of the library, which a copy of the file shares."""
        return str(self._value("SELECT value FROM facts WHERE name = 'id'"))

    def version(self) -> str:
        """A word that no other content of any library has."""
        history = self._value("SELECT value FROM facts WHERE name = 'history'")
        return f"{self.library_id()}:{history.partition(' ')[0]}"

    def generation(self) -> int:
        """A number that moves whenever anything is written."""
        return int(self._value("SELECT value FROM facts WHERE name = 'generation'"))

    def _next_generation(self) -> None:
        self.db.execute("UPDATE facts SET value = value + 1 WHERE name = 'generation'")

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents in one transaction, and remove some; for each, whether it replaced one."""
        with self._transaction():
            self._leave(source, gone)
            written = [self._write_one(prepared) for prepared in batch]
            if source:
                # After all of them: this statement makes FTS5 write out the words it has gathered.
                seen = zip(written, batch, strict=True)
                self.db.executemany(_ADD_MEMBER, ((source.seq, row, new.seen) for (row, _), new in seen))
            self._next_generation()
            self.keywords.grown(sum(len(prepared.chunks) for prepared in batch))
        return [replaces for _, replaces in written]

    def _write_one(self, new: Prepared) -> tuple[int, bool]:
        """The row of a document that was written, and whether it replaced one."""
        identity = (new.collection, new.kind, new.path)
        old = self.db.execute(
            "SELECT seq, updated_at FROM documents WHERE (collection, kind, path) = (?, ?, ?)", identity
        ).fetchone()
        now = time.time_ns() // 1_000_000
        values = (new.url, new.root, new.format, new.title, new.source, new.checksum, new.size, new.mtime_ns)
        values += (new.made_by, len(new.chunks))  # type: ignore[assignment]
        updated = new.updated_at or now
        if old:
            row = old[0]
            self._drop_parts(row)
            self.vectors.rebind(row, new.digests, self.generation() + 1)
            self.db.execute(
                "UPDATE documents SET url = ?, root = ?, format = ?, title = ?, source = ?, checksum = ?,"
                " size = ?, mtime_ns = ?, made_by = ?, chunk_count = ?, updated_at = ?,"
                " promotion = coalesce(nullif(?, ''), promotion) WHERE seq = ?",
                (*values, max(updated, old[1] + 1), new.promotion, row),
            )
        else:
            cursor = self.db.execute(
                "INSERT INTO documents (seq, id, collection, kind, path, url, root, format, title, source,"
                " checksum, size, mtime_ns, made_by, chunk_count, created_at, updated_at, promotion)"
                f" VALUES (({_NEXT_NUMBER}), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    id_of(new.kind, of_document(new.collection, new.path)),
                    *identity,
                    *values,
                    new.created_at or now,
                    updated,
                    new.promotion or "standard",
                ),
            )
            row = cursor.lastrowid or 0
        self._add_parts(row, new)
        return row, old is not None

    def _add_parts(self, row: int, new: Prepared) -> None:
        first = row << _SHIFT
        self.db.executemany(
            _ADD_SECTION,
            ((row, *section) for section in new.sections),
        )
        self.db.executemany(
            _ADD_CHUNK,
            ((first + index, row, *chunk) for index, chunk in enumerate(new.chunks)),
        )
        self.keywords.add((first + index, *words) for index, words in enumerate(new.words))
        self.db.executemany("INSERT INTO tags VALUES (?, ?)", ((row, tag) for tag in set(new.tags)))
        if new.etag or new.last_modified:
            self.db.execute("INSERT INTO fetches VALUES (?, ?, ?)", (row, new.etag, new.last_modified))

    def _drop_parts(self, row: int) -> None:
        """Take out sections, chunks and terms of a document."""
        self.keywords.remove(list(self._words_of(row)))
        for table in ("chunks", "tags", "fetches"):
            self.db.execute(f"DELETE FROM {table} WHERE document = ?", (row,))
        self.db.execute("DELETE FROM sections WHERE document = ?", (row,))

    def _words_of(self, row: int) -> Iterator[tuple[int, str, str, str]]:
        """The terms of each chunk of a document, worked out from what is stored."""
        text = text_of(self.source(row))
        trails = {section.position: section.titles for section in self.sections(row)}
        for chunk in self._chunk_rows("document = ?", (row,)):
            yield chunk.id, *words_of(trails[chunk.section], text[chunk.start : chunk.end])

    def fetched(self, rows: Iterable[int]) -> dict[int, tuple[str | None, str | None]]:
        """What a server said of documents: etag and last modified; nothing of those it did not send."""
        found = self._in("SELECT document, etag, last_modified FROM fetches WHERE document", rows)
        return {row: (etag, modified) for row, etag, modified in found}

    def note_fetched(self, said: Mapping[int, tuple[str | None, str | None]]) -> None:
        """Note what a server now says of documents, by row, whose content is unchanged."""
        with self._transaction():
            self.db.executemany("DELETE FROM fetches WHERE document = ?", ((row,) for row in said))
            self.db.executemany(
                "INSERT INTO fetches SELECT seq, ?, ? FROM documents WHERE seq = ?",
                ((etag, modified, row) for row, (etag, modified) in said.items() if etag or modified),
            )

    def tags(self, rows: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """The tags of documents, in order; nothing of those without."""
        found: dict[int, list[str]] = {}
        for row, tag in self._in("SELECT document, tag FROM tags WHERE document", rows):
            found.setdefault(row, []).append(tag)
        return {row: tuple(sorted(tags)) for row, tags in found.items()}

    def join(self, members: Sequence[Member]) -> None:
        """Make documents those of sources, in one transaction."""
        with self._transaction():
            self.db.executemany(_ADD_MEMBER, ((one.source, one.document, one.seen) for one in members))

    def sight(self, source: SourceRow, seen: Sequence[Sighting]) -> list[int]:
        """Note that stored documents are a source's and unchanged; those that could not be renamed."""
        refused, number = list[int](), source.seq
        with self._transaction():
            for one in seen:
                if not self._is_version(one) or (one.path and not self._rename(one.document, one.path)):
                    refused.append(one.document)
                    continue
                self.db.execute(
                    "UPDATE documents SET size = ?, mtime_ns = ? WHERE seq = ?",
                    (one.size, one.mtime_ns, one.document),
                )
                self.db.execute(_ADD_MEMBER, (number, one.document, one.seen))
            if any(one.path for one in seen):
                self._next_generation()
        return refused

    def _is_version(self, one: Sighting) -> bool:
        """Whether what is stored of a document is what was seen of it."""
        same = "SELECT 1 FROM documents WHERE seq = ? AND ? IN ('', checksum)"
        return self.db.execute(same, (one.document, one.checksum)).fetchone() is not None

    def _rename(self, row: int, path: str) -> bool:
        """Give a document another path, and so another id; whether it is there and the path is free."""
        found = self.db.execute("SELECT kind, collection FROM documents WHERE seq = ?", (row,)).fetchone()
        if found is None:
            return False
        kind, collection = found
        id = id_of(kind, of_document(collection, path))
        if self.db.execute("SELECT 1 FROM documents WHERE id = ? AND seq != ?", (id, row)).fetchone():
            return False
        self.db.execute("UPDATE documents SET path = ?, id = ? WHERE seq = ?", (path, id, row))
        return True

    def promote(self, row: int, level: str) -> None:
        """Set the promotion of a document, and with it of all its chunks, which have none of their own."""
        with self._transaction():
            self.db.execute("UPDATE documents SET promotion = ? WHERE seq = ?", (level, row))
            self._next_generation()

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents and all that belongs to them, in one transaction."""
        with self._transaction():
            for row in rows:
                self._remove_one(row)
            self._next_generation()

    def _leave(self, source: SourceRow | None, rows: Iterable[int]) -> int:
        """Take documents from a source and delete those that no other source holds; how many."""
        removed, number = 0, source.seq if source else 0
        for row in rows:
            self.db.execute("DELETE FROM members WHERE source = ? AND document = ?", (number, row))
            if not self.db.execute("SELECT 1 FROM members WHERE document = ?", (row,)).fetchone():
                removed += self._remove_one(row)
        return removed

    def _remove_one(self, row: int) -> bool:
        """Delete a document; whether it was there: another process may have been quicker."""
        if not self.db.execute("SELECT 1 FROM documents WHERE seq = ?", (row,)).fetchone():
            return False
        self._drop_parts(row)
        self.vectors.rebind(row, (), self.generation() + 1)
        self.db.execute("DELETE FROM documents WHERE seq = ?", (row,))
        self.db.execute(_NOTE_NUMBER, (str(row),))
        return True

    # ---------------------------------------------------------------------------------- sources

    def sources(self) -> list[SourceRow]:
        """All sources, by collection, type and place."""
        rows = self.db.execute(
            "SELECT s.*, (SELECT count(*) FROM members AS m WHERE m.source = s.seq) FROM sources AS s"
            " ORDER BY s.collection, s.type, s.place, s.kind"
        )
        return [source_of(row) for row in rows]

    def put_sources(self, sources: Sequence[SourceRow]) -> None:
        """Remember sources, or what is new of them."""
        with self._transaction():
            self._put_sources(sources)

    def _put_sources(self, sources: Iterable[SourceRow]) -> None:
        self.db.executemany(
            "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (seq) DO UPDATE SET"
            " root = excluded.root, options = excluded.options, checked_at = excluded.checked_at,"
            " problem = excluded.problem",
            map(source_values, sources),
        )

    def source_now(self, source: SourceRow) -> SourceRow | None:
        """A source as it is now; None if it was removed."""
        row = self.db.execute("SELECT * FROM sources WHERE seq = ?", (source.seq,)).fetchone()
        return source_of(row) if row else None

    def note_checked(self, sources: Sequence[SourceRow]) -> None:
        """Note when sources were checked, and their problems."""
        with self._transaction():
            self.db.executemany(
                "UPDATE sources SET checked_at = ?, problem = ? WHERE seq = ?",
                ((source.checked_at, storable(source.problem), source.seq) for source in sources),
            )

    def drop_sources(self, sources: Sequence[SourceRow]) -> int:
        """Remove sources, and the documents that no other source holds; how many these were."""
        removed = 0
        with self._transaction():
            for source in sources:
                held = self.db.execute("SELECT document FROM members WHERE source = ?", (source.seq,))
                removed += self._leave(source, [row[0] for row in held.fetchall()])
                self.db.execute("DELETE FROM sources WHERE seq = ?", (source.seq,))
            self._next_generation()
        return removed

    def move_source(self, old: SourceRow, new: SourceRow) -> None:
        """Put a source at another place, with all that is known of its documents."""
        with self._transaction():
            self._put_sources([new])
            self.db.execute(
                "UPDATE documents SET root = ? WHERE root = ? AND url IS NULL AND seq IN"
                " (SELECT document FROM members WHERE source = ?)",
                (new.root, old.root, old.seq),
            )
            self.db.execute("UPDATE members SET source = ? WHERE source = ?", (new.seq, old.seq))
            if new.seq != old.seq:
                self.db.execute("DELETE FROM sources WHERE seq = ?", (old.seq,))
            self._next_generation()

    def members(self, collection: str, kind: str, source: SourceRow | None = None) -> list[Member]:
        """Which sources hold the documents of a collection, or of one source."""
        columns = "SELECT m.document, m.source, m.seen FROM members AS m"
        if source:
            only = "WHERE m.document IN (SELECT document FROM members WHERE source = ?)"
            return [Member(*row) for row in self.db.execute(f"{columns} {only}", (source.seq,))]
        rows = self.db.execute(
            f"{columns} JOIN documents AS d ON d.seq = m.document WHERE d.collection = ? AND d.kind = ?",
            (collection, kind),
        )
        return [Member(*row) for row in rows]

    def leave(self, source: SourceRow, documents: Sequence[int]) -> int:
        """Take documents from a source; those that no other holds are deleted. How many these were."""
        with self._transaction():
            removed = self._leave(source, documents)
            self._next_generation()
        return removed

    def adopted(self) -> bool:
        """Whether all documents have the sources that they came from, or nothing can be done about it."""
        waiting = self.db.execute("SELECT 1 FROM facts WHERE name = 'adopt'").fetchone()
        return self.read_only or waiting is None

    def note_adopted(self) -> None:
        """Note that they have."""
        with self._transaction():
            self.db.execute("DELETE FROM facts WHERE name = 'adopt'")

    # ---------------------------------------------------------------------------------- reading

    def documents(self, filters: Filters) -> list[DocumentRow]:
        """Documents by collection and path."""
        where, args = _where(filters)
        condition = f"WHERE {' AND '.join(where)}" if where else ""
        rows = self.db.execute(
            f"SELECT {_DOCUMENT} FROM documents AS d {condition} ORDER BY collection, path, kind", args
        )
        return [DocumentRow(*row) for row in rows]

    def document(self, collection: str | None, path: str) -> DocumentRow | None:
        """One document by its path, in any collection if none is named."""
        row = self.db.execute(
            f"SELECT {_DOCUMENT} FROM documents WHERE path = ? AND (? IS NULL OR collection = ?)"
            " ORDER BY collection LIMIT 1",
            (path, collection, collection),
        ).fetchone()
        return DocumentRow(*row) if row else None

    def documents_by_row(self, rows: Iterable[int]) -> dict[int, DocumentRow]:
        """Documents by their rows."""
        found = self._in(f"SELECT {_DOCUMENT} FROM documents WHERE seq", rows)
        return {row[0]: DocumentRow(*row) for row in found}

    def _in(self, sql: str, values: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        wanted = list(values)
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            yield from self.db.execute(f"{sql} IN ({', '.join('?' * len(some))})", some)

    def source(self, row: int) -> bytes:
        """The exact bytes of a document."""
        return bytes(self._value("SELECT source FROM documents WHERE seq = ?", row))

    def passage(self, row: int, start: int, end: int) -> str:
        """The text of some bytes of a document, without reading the rest."""
        with self.db.blobopen("documents", "source", row, readonly=True) as source:
            beginning = source.read(2)
            source.seek(start)
            return text_of(source.read(end - start), encoding_of(beginning))

    def sections(self, row: int) -> list[SectionRow]:
        """The sections of a document, in order."""
        rows = self.db.execute(
            f"SELECT {_SECTION} FROM sections WHERE document = ? ORDER BY position", (row,)
        )
        return [SectionRow(*found) for found in rows]

    def section(self, row: int, position: int) -> SectionRow:
        """One section."""
        found = self.db.execute(
            f"SELECT {_SECTION} FROM sections WHERE document = ? AND position = ?", (row, position)
        ).fetchone()
        return SectionRow(*found)

    def nodes(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Node]:
        """Sections by (document, position), with all their ancestors."""
        found: dict[tuple[int, int], Node] = {}
        for document, position in keys:
            while position >= 0 and (document, position) not in found:
                parent, level, children = self.db.execute(
                    "SELECT parent, level, children FROM sections WHERE document = ? AND position = ?",
                    (document, position),
                ).fetchone()
                found[document, position] = Node(document, position, parent, level, children)
                position = parent
        return found

    def chunks(self, ids: Iterable[int]) -> dict[int, ChunkRow]:
        """Chunks by their ids."""
        return {row[0]: ChunkRow(*row) for row in self._in(f"SELECT {_CHUNK} FROM chunks WHERE id", ids)}

    def _chunk_rows(self, where: str, args: tuple[Any, ...]) -> list[ChunkRow]:
        return [ChunkRow(*row) for row in self.db.execute(f"SELECT {_CHUNK} FROM chunks WHERE {where}", args)]

    def kinds(self) -> frozenset[str]:
        """The kinds of documents there are."""
        generation = self.generation()
        if self._kinds[0] != generation:
            rows = self.db.execute("SELECT DISTINCT kind FROM documents")
            self._kinds = generation, frozenset(row[0] for row in rows)
        return self._kinds[1]

    def collections(self) -> list[str]:
        """The names of the collections, each found by a step along the index."""
        rows = self.db.execute(
            "WITH RECURSIVE names (name) AS (SELECT min(collection) FROM documents UNION ALL"
            " SELECT (SELECT min(collection) FROM documents WHERE collection > name) FROM names"
            " WHERE name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL"
        )
        return [row[0] for row in rows]

    def counts(self) -> Counts:
        """What is in the library."""
        documents, size = self.db.execute("SELECT count(*), total(length(source)) FROM documents").fetchone()
        sections = self._value("SELECT count(*) FROM sections")
        chunks = self._value("SELECT count(*) FROM chunks")
        collections = self.db.execute("SELECT collection, count(*) FROM documents GROUP BY 1 ORDER BY 1")
        active = next((model for model in self.models() if model.active), None)
        embedded, name = (self.vectors.count(active), active.name) if active else (0, "")
        return Counts(documents, sections, chunks, int(size), dict(collections.fetchall()), embedded, name)

    def check(self) -> list[str]:
        """What is wrong with the library; empty if all is well."""
        wrong = [row[0] for row in self.db.execute("PRAGMA integrity_check") if row[0] != "ok"]
        wrong += [f"foreign key: {row}" for row in self.db.execute("PRAGMA foreign_key_check")]
        wrong += [] if self.read_only else self.keywords.check()
        wrong += self.vectors.check(self.models())
        terms, chunks = self.keywords.size(), self._value("SELECT count(*) FROM chunks")
        counted = self._value("SELECT total(chunk_count) FROM documents")
        if not terms == chunks == counted:
            wrong.append(f"{chunks} chunks, {terms} with terms, {int(counted)} counted in documents")
        return wrong

    # -------------------------------------------------------------------------------- embedding

    def models(self) -> list[Model]:
        """The models that made vectors, the active one first."""
        rows = self.db.execute("SELECT id, name, dimension, active FROM models ORDER BY active DESC, id")
        return [Model(number, name, dimension, bool(active)) for number, name, dimension, active in rows]

    def model(self, name: str, dimension: int) -> Model:
        """A model by its name and dimension, made known if it is new; the first is active."""
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
        """Search with this model from now on, and forget the vectors of all others."""
        with self._transaction():
            for other in self.models():
                if other.id != model.id:
                    self.vectors.forget(other)
                    self.db.execute("DELETE FROM models WHERE id = ?", (other.id,))
            self.db.execute("UPDATE models SET active = 1 WHERE id = ?", (model.id,))
            self._next_generation()

    def unembedded(self, model: Model, limit: int, after: int = -1) -> list[Unembedded]:
        """Chunks that have no vector of a model, in order, from behind one on."""
        rows = self.db.execute(
            f"SELECT {_CHUNK} FROM chunks WHERE id > ? AND {_NO_VECTOR} ORDER BY id LIMIT ?",
            (after, model.id, limit),
        )
        chunks = [ChunkRow(*row) for row in rows]
        found: list[Unembedded] = []
        for document in dict.fromkeys(chunk.document for chunk in chunks):
            version = self._value("SELECT updated_at FROM documents WHERE seq = ?", document)
            text = text_of(self.source(document))
            trails = {section.position: section.titles for section in self.sections(document)}
            for chunk in chunks:
                if chunk.document == document:
                    own = embedded(trails[chunk.section], chunk.context, text[chunk.start : chunk.end])
                    found.append(Unembedded(chunk.id, document, version, own))
        return found

    def count_unembedded(self, model: Model) -> int:
        """How many chunks have no vector of a model, counted once in each generation."""
        key = model.id, self.generation()
        if self._unembedded[0] != key:
            chunks = self._value("SELECT count(*) FROM chunks")
            self._unembedded = key, int(chunks) - self.vectors.count(model)
        return self._unembedded[1]

    def reuse(self, model: Model, chunks: Sequence[Unembedded]) -> set[int]:
        """Give chunks the vectors that are remembered for their texts; which have got one."""
        with self._transaction():
            wanted = {chunk.chunk: chunk.digest for chunk in self._still_without(model, chunks)}
            given = self.vectors.reuse(model, wanted, self.generation() + 1)
            self._next_generation()
        return given

    def write_vectors(self, model: Model, chunks: Sequence[Unembedded], vectors: Vectors) -> None:
        """Store vectors in one transaction. A chunk whose document has changed since gets none."""
        with self._transaction():
            without = set(self._still_without(model, chunks))
            places = [place for place, chunk in enumerate(chunks) if chunk in without]
            rows = [(chunks[place].chunk, chunks[place].digest) for place in places]
            self.vectors.add(model, rows, vectors[places], self.generation() + 1)
            self._next_generation()

    def _still_without(self, model: Model, chunks: Sequence[Unembedded]) -> list[Unembedded]:
        """Chunks of the versions that are stored which no one else has embedded meanwhile."""
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
        """Remember why documents could not be embedded, in place of what was remembered before."""
        with self._transaction():
            self.db.execute("DELETE FROM embedding_failures")
            self.db.executemany(
                "INSERT INTO embedding_failures SELECT seq, ? FROM documents WHERE seq = ?",
                ((reason, document) for document, reason in failures.items()),
            )

    # -------------------------------------------------------------------------------- searching

    def search_vectors(self, model: Model, vector: Vectors, filters: Filters, limit: int) -> list[Hit]:
        """The chunks whose vectors are nearest to one, best first; the score is the cosine."""
        where, args = _where(filters)
        documents = None
        if where:
            rows = self.db.execute(f"SELECT seq FROM documents AS d WHERE {' AND '.join(where)}", args)
            documents = [row[0] for row in rows]
        found = self.vectors.search(model, vector, documents, limit)
        sections = dict(self._in("SELECT id, section FROM chunks WHERE id", (chunk for chunk, _ in found)))
        return [Hit(chunk, chunk >> _SHIFT, sections[chunk], score, "semantic") for chunk, score in found]

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of some chunks that have all that a query demands, and nothing that it leaves out."""
        return self.keywords.allowed(query, list(chunks))

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """How near chunks are to a vector; those without one are left out."""
        held = f"SELECT chunk, slot FROM vectors WHERE slot >> 32 = {model.id} AND chunk"
        slots = {slot: chunk for chunk, slot in self._in(held, chunks)}
        scores = self.vectors.cosines(model, vector, list(slots))
        return dict(zip(slots.values(), scores.tolist(), strict=True))

    def vectors_of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks; those without one are left out."""
        held = f"SELECT chunk, vector FROM vectors WHERE slot >> 32 = {model.id} AND chunk"
        return {chunk: unpacked(vector, model.dimension) for chunk, vector in self._in(held, chunks)}

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        where, args = _where(filters)
        scores = self.keywords.search(query, where, args, limit)
        sections = {
            row[0]: row[1:] for row in self._in("SELECT id, document, section FROM chunks WHERE id", scores)
        }
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Hit(chunk, sections[chunk][0], sections[chunk][1], score) for chunk, score in best]


def _where(filters: Filters) -> tuple[list[str], list[Any]]:
    """SQL conditions on documents `d`, and their values."""
    where, args = list[str](), list[Any]()
    if filters.collection is not None:
        where.append("d.collection = ?")
        args.append(filters.collection)
    if filters.kinds:
        where.append(f"d.kind IN ({', '.join('?' * len(filters.kinds))})")
        args += filters.kinds
    for paths in filter(None, (filters.paths, filters.query_paths)):
        # Not joined by OR: SQLite takes expressions of at most 1,000 levels.
        where.append(f"EXISTS (SELECT 1 FROM (VALUES {_rows(paths)}) WHERE d.path GLOB column1)")
        args += [_glob(path) for path in paths]
    for path in filters.not_paths:
        where.append("d.path NOT GLOB ?")
        args.append(_glob(path))
    if filters.tags:
        has = "EXISTS (SELECT 1 FROM tags AS t WHERE t.document = d.seq AND t.tag = column1)"
        where.append(f"NOT EXISTS (SELECT 1 FROM (VALUES {_rows(filters.tags)}) WHERE NOT {has})")
        args += filters.tags
    for condition, moment in (("d.updated_at >= ?", filters.since), ("d.updated_at < ?", filters.until)):
        if moment is not None:
            where.append(condition)
            args.append(moment)
    return where, args


def _rows(values: tuple[str, ...]) -> str:
    return ", ".join(["(?)"] * len(values))


def _glob(path: str) -> str:
    """The beginning of a path as a pattern; only * means something in it."""
    escaped = path.replace("[", "[[]").replace("?", "[?]")
    return escaped if "*" in path else f"{escaped}*"
