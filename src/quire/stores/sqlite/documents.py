"""Documents in a SQLite library, with their sections and chunks.

Always: one transaction covers text, sections, chunks, terms and what becomes of vectors, so a crash
cannot part them.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from quire.address import id_of, key_of_id, of_document
from quire.links import tag_key
from quire.result import Node
from quire.stores.checks import is_intact, row_check
from quire.stores.filters import Filters, Slice
from quire.stores.ids import chunk_keys, section_keys, with_id
from quire.stores.rows import CHUNK_BITS, ChunkRow, DocumentRow, Prepared, SectionRow, SourceRow
from quire.stores.sqlite.database import CHUNK_COLUMNS
from quire.stores.sqlite.filters import conditions
from quire.stores.sqlite.ids import ID_PLACES
from quire.stores.sqlite.originals import SqliteOriginals
from quire.stores.texts import passage_of

_DOCUMENT = ", ".join(field.name for field in fields(DocumentRow)).replace(" length,", " length(source),")
SECTION_COLUMNS = ", ".join(f'"{field.name}"' for field in fields(SectionRow))
_ADD_SECTION = f"INSERT INTO sections VALUES (?{', ?' * (len(fields(SectionRow)) + 1)})"
ADD_MEMBER = (  # unless the document is gone meanwhile
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
_ADD_CHUNK = f"INSERT INTO chunks VALUES (?{', ?' * (len(fields(ChunkRow)) + 1)})"


class SqliteDocuments(SqliteOriginals):
    """The documents of a SQLite library."""

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents in one transaction, and remove what is gone; for each, whether it replaced one."""
        with self._writing_words():
            self._leave(source, gone)
            instant = dict[int, bytes]()
            written = [self._write_one(prepared, instant) for prepared in batch]
            self._add_instant(instant)
            if source:
                seen = zip(written, batch, strict=True)
                self.db.executemany(ADD_MEMBER, ((source.seq, row, new.seen) for (row, _), new in seen))
            self._next_generation()
        return [replaces for _, replaces in written]

    def _write_one(self, new: Prepared, instant: dict[int, bytes]) -> tuple[int, bool]:
        """Write a document; its row, and whether it replaced one. Its instant vectors join others."""
        identity = (new.collection, new.kind, new.path)
        old = self.db.execute(
            "SELECT seq, updated_at FROM documents WHERE (collection, kind, path) = (?, ?, ?)", identity
        ).fetchone()
        row = self._replace(new, *old) if old else self._insert(new)
        self._add_parts(row, new)
        if new.instant:
            instant[row] = new.instant
        return row, old is not None

    def _replace(self, new: Prepared, row: int, updated_at: int) -> int:
        """Replace a document's old version, and remove the old parts."""
        self._keep_replaced(row, new)
        self._drop_parts(row)
        models, next_one = self.models(), self.generation() + 1
        self.vectors.rebind(row, new.digests, next_one, {model.id for model in models if model.is_instant})
        others = [model for model in models if not model.is_instant]
        self.vectors.describe(others, {row: len(new.digests)}, next_one)
        self.db.execute(
            "UPDATE documents SET url = ?, root = ?, format = ?, title = ?, source = ?, checksum = ?,"
            " size = ?, mtime_ns = ?, made_by = ?, chunk_count = ?, title_crc = ?, updated_at = ?,"
            " promotion = coalesce(nullif(?, ''), promotion) WHERE seq = ?",
            (*_values(new), max(new.updated_at or _now(), updated_at + 1), new.promotion, row),
        )
        return row

    def _insert(self, new: Prepared) -> int:
        now = _now()
        cursor = self.db.execute(
            "INSERT INTO documents (seq, id, collection, kind, path, url, root, format, title, source,"
            " checksum, size, mtime_ns, made_by, chunk_count, title_crc, created_at, updated_at, promotion)"
            f" VALUES (({_NEXT_NUMBER}), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(id_of(new.kind, of_document(new.collection, new.path)), new.collection, new.kind, new.path),
                *(*_values(new), new.created_at or now, new.updated_at or now, new.promotion or "standard"),
            ),
        )
        return cursor.lastrowid or 0

    def _add_parts(self, row: int, new: Prepared) -> None:
        first, keys = row << CHUNK_BITS, chunk_keys(new)
        self.db.executemany(
            _ADD_SECTION,
            (
                (row, *section, key, row_check(row, *section))
                for section, key in zip(new.sections, section_keys(new), strict=True)
            ),
        )
        self.db.executemany(
            _ADD_CHUNK,
            (
                (first + index, row, *chunk, keys[index], row_check(first + index, row, *chunk))
                for index, chunk in enumerate(new.chunks)
            ),
        )
        self.index.add(row, ((first + index, *words) for index, words in enumerate(new.words)))
        tags = ((row, tag, tag_key(tag)) for tag in set(new.tags))
        self.db.executemany("INSERT INTO tags VALUES (?, ?, ?)", tags)
        self._add_links(row, new)
        self._add_versions(row, new)
        self._add_original(row, new)
        if new.etag or new.last_modified:
            self.db.execute("INSERT INTO fetches VALUES (?, ?, ?)", (row, new.etag, new.last_modified))

    def _drop_parts(self, row: int) -> None:
        """Delete the sections, chunks and terms of a document."""
        self.index.remove(row)
        for table in ("chunks", "tags", "fetches", "originals", "links", "names", "fields"):
            self.db.execute(f"DELETE FROM {table} WHERE document = ?", (row,))
        self.db.execute("DELETE FROM sections WHERE document = ?", (row,))

    def _leave(self, source: SourceRow | None, rows: Iterable[int]) -> int:
        """Take documents from a source and delete those that no other source holds; how many."""
        removed, number = 0, source.seq if source else 0
        for row in rows:
            self.db.execute("DELETE FROM members WHERE source = ? AND document = ?", (number, row))
            if not self.db.execute("SELECT 1 FROM members WHERE document = ?", (row,)).fetchone():
                removed += self._remove_one(row)
        return removed

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents and all that belongs to them, in one transaction."""
        with self._writing_words():
            for row in rows:
                self._remove_one(row)
            self._next_generation()

    def _remove_one(self, row: int) -> bool:
        """Delete a document; whether it was there. Another process may have been quicker."""
        if not self.db.execute("SELECT 1 FROM documents WHERE seq = ?", (row,)).fetchone():
            return False
        self._drop_parts(row)
        self.vectors.rebind(row, (), self.generation() + 1)
        self.db.execute("DELETE FROM documents WHERE seq = ?", (row,))
        self.db.execute(_NOTE_NUMBER, (str(row),))
        return True

    def promote(self, row: int, level: str) -> None:
        """Set the promotion of a document, and with it of all its chunks, which have none of their own."""
        with self._transaction():
            self.db.execute("UPDATE documents SET promotion = ? WHERE seq = ?", (level, row))
            self._next_generation()

    def promoted(self, level: str) -> list[int]:
        """The rows of the documents that are important, or critical."""
        # What the statement says twice tells SQLite that the index has them all.
        found = "SELECT seq FROM documents WHERE promotion = ? AND promotion <> 'standard' ORDER BY seq"
        return [row[0] for row in self.db.execute(found, (level,))]

    # ---------------------------------------------------------------------------------- reading

    def documents(self, filters: Filters, page: Slice | None = None) -> list[DocumentRow]:
        """Documents by collection and path, or one page of them."""
        (where, args), order = conditions(filters), "collection, path, kind"
        if page:
            where = [*where, f"d.collection = ? AND d.kind = ? AND d.path {'>='[: 1 + page.has_path]} ?"]
            args, order = [*args, *page[:3], page.limit], "path LIMIT ?"
        condition = f"WHERE {' AND '.join(where)}" if where else ""
        rows = self.db.execute(f"SELECT {_DOCUMENT} FROM documents AS d {condition} ORDER BY {order}", args)
        return [DocumentRow(*row) for row in rows]

    def document(self, collection: str | None, path: str) -> DocumentRow | None:
        """One document by its path, in any collection if none is named."""
        row = self.db.execute(
            f"SELECT {_DOCUMENT} FROM documents WHERE path = ? AND (? IS NULL OR collection = ?)"
            " ORDER BY collection LIMIT 1",
            (path, collection, collection),
        ).fetchone()
        return DocumentRow(*row) if row else None

    def by_id(self, id: str) -> tuple[DocumentRow, str] | None:
        """The document that an id leads to, and what follows the # of the id's address."""
        rows = self.db.execute(
            f"SELECT {_DOCUMENT}, slug, part FROM {ID_PLACES} AS p JOIN documents ON seq = p.document",
            (key_of_id(id),),
        ).fetchall()
        return with_id(id, ((DocumentRow(*row[:-2]), *row[-2:]) for row in rows))

    def documents_by_row(self, rows: Iterable[int]) -> dict[int, DocumentRow]:
        """Documents by their rows."""
        found = self._in(f"SELECT {_DOCUMENT} FROM documents WHERE seq", rows)
        return {row[0]: DocumentRow(*row) for row in found}

    def source(self, row: int) -> bytes:
        """The exact bytes of a document. Raises Damaged if they are not those that were written."""
        found = self.db.execute("SELECT source, checksum FROM documents WHERE seq = ?", (row,)).fetchone()
        if found is None or not is_intact(*found):
            raise self._damaged(row)
        return bytes(found[0])

    def passage(self, row: int, start: int, end: int) -> str:
        """The text between two byte offsets of a document, without reading the rest."""
        with self.reading():
            if self._is_reading:
                return _part(self._text(row), start, end)
            with self._db.blobopen("documents", "source", row, readonly=True) as source:  # it may be replaced
                return _part(source, start, end)

    def sections(self, row: int) -> list[SectionRow]:
        """The sections of a document, in order."""
        rows = self.db.execute(
            f"SELECT {SECTION_COLUMNS}, crc FROM sections WHERE document = ? ORDER BY position", (row,)
        )
        return [SectionRow(*self._checked(found, row)) for found in rows]

    def section(self, row: int, position: int) -> SectionRow:
        """One section."""
        found = self.db.execute(
            f"SELECT {SECTION_COLUMNS}, crc FROM sections WHERE document = ? AND position = ?",
            (row, position),
        ).fetchone()
        return SectionRow(*self._checked(found, row))

    def lineages(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], SectionRow]:
        """Sections by (document, position), with all their ancestors."""
        rows = self._with_ancestors(f"{SECTION_COLUMNS}, crc", keys)
        return {row[:2]: SectionRow(*self._checked(row, row[0])) for row in rows}

    def _with_ancestors(self, columns: str, keys: Iterable[tuple[int, int]]) -> list[tuple[Any, ...]]:
        """Columns of sections and of all their ancestors, each once."""
        return self.db.execute(
            "WITH RECURSIVE wanted (document, position) AS ("
            "SELECT value ->> 0, value ->> 1 FROM json_each(?) UNION"
            " SELECT document, s.parent FROM wanted JOIN sections AS s USING (document, position)"
            f" WHERE s.parent >= 0) SELECT {columns} FROM wanted JOIN sections USING (document, position)",
            (json.dumps(list(keys)),),
        ).fetchall()

    def titles(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The titles of sections by (document, position)."""
        wanted = json.dumps(list(keys))
        rows = self.db.execute(
            "SELECT s.document, s.position, s.title FROM json_each(?) AS k JOIN sections AS s"
            " ON s.document = k.value ->> 0 AND s.position = k.value ->> 1",
            (wanted,),
        )
        return {(document, position): title for document, position, title in rows}

    def nodes(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Node]:
        """Sections by (document, position), with all their ancestors."""
        rows = self._with_ancestors("document, position, parent, level, children, tokens", keys)
        return {row[:2]: Node(*row) for row in rows}

    def chunks(self, ids: Iterable[int]) -> dict[int, ChunkRow]:
        """Chunks by their ids."""
        rows = self._in(f"SELECT {CHUNK_COLUMNS}, crc FROM chunks WHERE id", ids)
        return {row[0]: ChunkRow(*self._checked(row, row[0] >> CHUNK_BITS)) for row in rows}

    def tags(self, rows: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """The tags of documents, in order. Documents without tags are left out."""
        found: dict[int, list[str]] = {}
        for row, tag in self._in("SELECT document, tag FROM tags WHERE document", rows):
            found.setdefault(row, []).append(tag)
        return {row: tuple(sorted(tags)) for row, tags in found.items()}


def _part(source: sqlite3.Blob, start: int, end: int) -> str:
    source.seek(0)
    beginning = source.read(2)
    source.seek(start)
    return passage_of(source.read(end - start), beginning)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _values(new: Prepared) -> tuple[object, ...]:
    """The columns of a document that each version sets."""
    about = (new.url, new.root, new.format, new.title, new.source, new.checksum, new.size, new.mtime_ns)
    return (*about, new.made_by, len(new.chunks), row_check(new.checksum, new.title))
