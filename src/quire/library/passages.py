"""The part of Library that returns what is stored: documents, sections and chunks, exactly as they stand."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from quire import later, reading, releases, search_log
from quire.address import is_in_collection, of_document, parse_id
from quire.document import Document
from quire.errors import Damaged, EmbeddingError, LibraryError, NoResults, SettingError, nearest
from quire.library.base import T, given_names, reads
from quire.library.embeddings import Embeddings
from quire.links import ALIASES
from quire.progress import Progress, Silent
from quire.query import FieldTest, parse_condition
from quire.result import Reading, Result
from quire.sources import entries
from quire.stores import DocumentRow, Filters, Store, active_model
from quire.stores.filters import wrong_value
from quire.tree import Tree

if TYPE_CHECKING:
    from quire import linking, records, retaking
    from quire.linking import Links
    from quire.records import StoredChunk, StoredSection
else:
    records = later.module("quire.records")
    linking, retaking = later.module("quire.linking"), later.module("quire.retaking")

log = logging.getLogger("quire")
_FEW = 4  # chunks that are embedded before an answer
_KINDS = (*entries.DOCUMENTS, *entries.KINDS)  # of documents

_TAGS = ("tag", "tags")
_MOST_CONDITIONS = 100  # on front matter; SQLite takes expressions of at most 1,000 levels


def filters_of(
    collection: str | None, paths: Iterable[str], tags: Iterable[str], where: Iterable[str] = ()
) -> Filters:
    """Filters of what a caller names. Raises SettingError for a condition that is none."""
    conditions = tuple(where)
    if len(conditions) > _MOST_CONDITIONS:
        problem = f"has {len(conditions):,} conditions; the most is {_MOST_CONDITIONS}"
        raise SettingError("where", problem)
    tests = [parse_condition(one) for one in conditions]
    fields = (replace(one, name=ALIASES) if one.name == "alias" else one for one in tests)
    return Filters(
        collection,
        (),
        given_names(paths, "paths"),
        tags=(*_given_tags(tags), *_tested(tests, "=")),
        not_tags=_tested(tests, "!="),
        fields=tuple(one for one in fields if one.name not in _TAGS),
    )


def _given_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags without their signs."""
    return given_names((tag.lstrip("#") for tag in tags), "tags")


def _tested(tests: Iterable[FieldTest], operator: str) -> tuple[str, ...]:
    """The tags in conditions. Raises SettingError for one that compares them."""
    own = [one for one in tests if one.name in _TAGS]
    for one in own:
        if one.operator not in ("=", "!="):
            raise SettingError("where", f"a tag is compared with = or !=, not {one.operator}")
    return tuple(one.value.lstrip("#") for one in own if one.operator == operator)


def newest_versions(store: Store, filters: Filters) -> tuple[Filters, tuple[str, ...]]:
    """Filters that keep to the newest version where none is named, and what to say of that."""
    known, name = store.collections(), filters.collection
    if name is not None:
        note = releases.note_newest(name, known)
        return replace(filters, collection=releases.newest_of(name, known)), (note,) if note else ()
    older = releases.older_versions(known)
    return replace(filters, not_collections=older), (releases.note_older(older),) if older else ()


class Passages(Embeddings):
    """Reading what is stored."""

    def fresh(self, answer: Callable[[], T]) -> T:
        """An answer that is made by searching and reading.

        If `search.fresh` is set and it cites files that have changed, they are read again, if that is quick,
        and the answer is made again.
        """
        mine = self._answering
        if mine.is_begun or not self.config.search.fresh:
            return answer()
        mine.is_begun = True
        try:
            mine.changed.clear()
            made = answer()
            return answer() if mine.changed and self._retake() else made
        finally:
            mine.is_begun = False

    def _retake(self) -> bool:
        """Read the changed files that an answer cites again, if that is quick; returns whether any was."""
        try:
            rows = [row for row in map(self.document, sorted(self._answering.changed)) if row]
            self._connections.note_write()
            report = retaking.retake(self.store, rows, self.config)
            with suppress(EmbeddingError, SettingError):  # then the search itself says what is wrong
                if report.documents and self._count_missing() <= _FEW:
                    self._embed_new(report, None, rows)
        except LibraryError as problem:  # such as one that another process writes to: then it stays as it is
            log.info("changed files were not read again: %s", problem)
            return False
        return bool(report.documents)

    @reads
    def collections(self) -> list[str]:
        """The names of the collections."""
        return self.store.collections()

    @reads
    def documents(
        self,
        collection: str | None = None,
        *,
        paths: Iterable[str] = (),
        tags: Iterable[str] = (),
        where: Iterable[str] = (),
        kind: str | None = None,
        after: DocumentRow | None = None,
        limit: int | None = None,
    ) -> list[DocumentRow]:
        """The documents of a collection, or all: of some paths, with all of the `tags`, and of one kind.

        The name of a collection that exists only in versions means the newest of them. `where` has conditions
        on front matter, such as `date>=2026-01-01`: all must hold. They are in the order of their
        collections and paths. Of a large library, `limit` takes so many at a time, `after` the last one.
        """
        if limit is not None and limit < 1:
            raise SettingError("limit", f"must be at least 1, not {limit}")
        if kind is not None and kind not in _KINDS:
            raise SettingError("kind", f"there is no {kind!r}. {nearest(kind, _KINDS)}")
        filters = replace(filters_of(collection, paths, tags, where), kinds=(kind,) if kind else ())
        filters = newest_versions(self.store, filters)[0] if collection else filters
        self._check_fields(filters)
        if limit is None and after is None:
            return self.store.documents(filters)
        return records.documents_after(self.store, filters, after, limit or sys.maxsize)

    def _check_fields(self, filters: Filters) -> None:
        """Raise SettingError for a condition on a field that no document there has, naming the nearest."""
        names = dict.fromkeys(test.name for test in filters.fields if test.name != ALIASES)
        names = names if self._has_collection(filters.collection) else {}
        known = self.store.has_fields(names, filters.scope) if names else ()
        for name in names:
            if name not in known:
                close = nearest(name, self.store.field_names(filters.scope))
                where = f" in {filters.collection}" if filters.collection else ""
                raise SettingError("where", f"no document{where} has a front-matter field {name!r}. {close}")
        for test in filters.fields if names else ():
            if problem := wrong_value(test, self.store.field_kinds(test.name, filters.scope)):
                raise SettingError("where", problem)

    def _has_collection(self, name: str | None) -> bool:
        return name is None or any(is_in_collection(one, name) for one in self.store.collections())

    def document(self, address: str) -> DocumentRow | None:
        """One document by its address, path or id; None if there is none."""
        try:
            return self._found(address)
        except NoResults:
            return None

    @reads
    def _found(self, address: str) -> DocumentRow:
        return self._document(address)[0]

    def damaged(self, progress: Progress | None = None) -> list[str]:
        """The addresses of documents whose stored text is not what was written. Every text is compared."""
        rows, shown, found = self.documents(), progress or Silent(), list[str]()
        shown.begin("comparing texts with their checksums", len(rows), "documents")
        for row in rows:
            try:
                self.source(row.address)
            except Damaged:
                found.append(row.address)
            shown.advance(1)
        return found

    def read(self, address: str, heading: str | None = None, *, max_tokens: int | None = None) -> Reading:
        """A document or a section of it, exactly as it stands; by address, id, heading or path `A > B`."""
        if max_tokens is not None and max_tokens < 1:
            raise SettingError("max_tokens", f"must be at least 1, not {max_tokens}")
        return self.fresh(partial(self._read, address, heading, max_tokens))

    @reads
    def _read(self, address: str, heading: str | None, max_tokens: int | None) -> Reading:
        document, rest = self._document(address)
        found = reading.read(self.store, document, heading or rest, self.config, max_tokens)
        self._answering.changed |= {document.address} if found.stale else set()
        if self.config.search.log:
            place = document.address, found.start, found.end
            search_log.note_reading(self.store.library_id(), found.address, *place)
        return found

    def _text_of(self, result: Result) -> str:
        return self._connections.call(partial(self._passage, result))

    def _reading_of(self, result: Result, max_tokens: int | None) -> Reading:
        return self._connections.call(partial(self._cited, result, max_tokens))

    @reads
    def _passage(self, result: Result) -> str:
        row = self._as_found(result)
        return Document.restored(self.store.source(row.seq), row.path).text[result.start : result.end]

    @reads
    def _cited(self, result: Result, max_tokens: int | None) -> Reading:
        self._as_found(result)
        return self._read(result.address, None, max_tokens)

    def _as_found(self, result: Result) -> DocumentRow:
        """The document of a result. Raises NoResults if it is not the version that was found."""
        row = self.store.document(result.collection, result.path)
        if row is not None and row.checksum == result.checksum:
            return row
        name = of_document(result.collection, result.path)
        what = "has changed" if row else "was removed"
        raise NoResults(f"{name} {what} since it was found. Search again.", missing="version", name=name)

    @reads
    def source(self, address: str) -> bytes:
        """The exact bytes of a document, by address or id."""
        return self.store.source(self._document(address)[0].seq)

    @reads
    def toc(self, address: str) -> Tree:
        """The tree of a document, by address or id."""
        document, rest = self._document(address)
        reading.span(self.store, document, rest, self.config)  # raises NoResults for no such section
        return reading.tree(self.store, document, self.config)

    @reads
    def sections(self, address: str) -> list[StoredSection]:
        """The sections of a document as they are stored, with their ids, in order; by address or id."""
        return records.stored_sections(self.store, self._document(address)[0])

    @reads
    def chunks(self, address: str) -> list[StoredChunk]:
        """The chunks of a document, or of one of its sections, as they are stored; by address or id."""
        document, rest = self._document(address)
        start, end = reading.span(self.store, document, rest, self.config)
        return records.stored_chunks(self.store, document, start, end)

    @reads
    def links(self, address: str) -> Links:
        """The links in a document or a section, and those that lead to it; by address or id."""
        document, rest = self._document(address)
        start, end = reading.span(self.store, document, rest, self.config)
        named = f"{document.address}#{rest}" if rest else document.address
        return linking.links(self.store, document, named, start, end)

    @reads
    def chunk(self, id: str) -> StoredChunk | None:
        """One chunk by its id; None if no chunk has this id."""
        found = self.store.by_id(known) if (known := parse_id(id)) else None
        return records.stored_chunk(self.store, found[0], known) if found and known else None

    @reads
    def vector(self, id: str) -> list[float] | None:
        """The vector that searches compare of a chunk, by its id; None if it has none, or is not there."""
        row, models = self._chunk_row(id), self.store.models()
        used = [active_model(models), active_model(models, instant=True)]
        for model in used if row is not None else ():
            for vector in self.store.vectors_of(model, [row or 0]).values() if model else ():
                return list(map(float, vector))
        return None
