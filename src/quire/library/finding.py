"""The part of Library that answers: search, read, and pack for a prompt."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from quire import reading, records, retaking, searcher
from quire.address import is_in_collection, of_document, parse_id
from quire.config import ContextSettings, SearchSettings
from quire.context import Context, Match, Source, pack
from quire.errors import Damaged, EmbeddingError, LibraryError, NoResults, SettingError
from quire.ingest import named
from quire.library.base import T, given_names, reads
from quire.library.embeddings import Embeddings
from quire.meaning import serving
from quire.progress import Progress, Silent
from quire.reading import Reading
from quire.records import StoredChunk, StoredSection
from quire.searcher import Found
from quire.stores import Counts, DocumentRow, Filters, active_model
from quire.tokens import budget_counter
from quire.tree import Tree

log = logging.getLogger("quire")
_PACKED = 30  # the most results in a context pack
_FEW = 4  # chunks that are embedded before an answer


class Finding(Embeddings):
    """Searching and reading."""

    def search(
        self,
        query: str = "",
        *,
        vector: Sequence[float] | None = None,
        collection: str | None = None,
        paths: Iterable[str] = (),
        tags: Iterable[str] = (),
        limit: int | None = None,
        mode: str | None = None,
        rerank: bool | None = None,
        explain: bool = False,
    ) -> Found:
        """The best sections for a query. Raises NoResults for an unknown collection.

        Only documents with all of the `tags` are searched. `mode` is hybrid, keyword or semantic. `rerank`
        reads the best again: a better order takes more time. With a `vector` of your own, no model is asked
        for one; then the query may be left out.
        """
        settings = self._search_settings(limit, mode if query or vector is None else "semantic", rerank)
        filters = _filters(collection, paths, tags)
        return self.fresh(partial(self._search, query, vector, filters, settings, explain=explain))

    @reads
    def _search(
        self,
        query: str,
        vector: Sequence[float] | None,
        filters: Filters,
        settings: SearchSettings,
        *,
        explain: bool,
    ) -> Found:
        apart = self.store.kinds() - set(named.DOCUMENTS)  # a filter that drops nothing only costs time
        filters = replace(filters, kinds=named.DOCUMENTS if apart else ())
        meaning = self._meaning(settings.mode, vector)
        cross = self._cross if settings.rerank else None
        given = {"explain": explain, "tokens": self.config.tokens}
        found = searcher.search(self.store, query, filters, settings, meaning, cross, **given)  # type: ignore[arg-type]
        changed = [result for result in found.results if result.stale]
        self._answering.changed.update(of_document(result.collection, result.path) for result in changed)
        return found

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

    def _search_settings(
        self, limit: int | None, mode: str | None, rerank: bool | None = None
    ) -> SearchSettings:
        given = {"limit": limit, "mode": mode, "rerank": rerank}
        changes = {name: value for name, value in given.items() if value is not None}
        return replace(self.config.search, **changes)  # type: ignore[arg-type]

    @reads
    def collections(self) -> list[str]:
        """The names of the collections."""
        return self.store.collections()

    @reads
    def documents(self, collection: str | None = None) -> list[DocumentRow]:
        """The documents of a collection, or all."""
        return self.store.documents(Filters(collection))

    def document(self, address: str) -> DocumentRow | None:
        """One document by its address, path or id; None if there is none."""
        try:
            return self._found(address)
        except NoResults:
            return None

    @reads
    def _found(self, address: str) -> DocumentRow:
        return self._document(address)[0]

    @reads
    def status(self) -> Counts:
        """What is in the library, and which model searches use."""
        counts, meaning = self.store.counts(), self._meaning("hybrid")
        used = serving(self.store, meaning, Filters())
        goes_on, problem = self._left()
        name = used.model.name if used else ""
        return replace(counts, serving=name, goes_on=goes_on, model_problem=problem)

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
        return self.fresh(partial(self._read, address, heading, max_tokens))

    @reads
    def _read(self, address: str, heading: str | None, max_tokens: int | None) -> Reading:
        document, rest = self._document(address)
        found = reading.read(self.store, document, heading or rest, self.config, max_tokens)
        self._answering.changed |= {document.address} if found.stale else set()
        return found

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

    def context(
        self,
        query: str,
        *,
        max_tokens: int | None = None,
        collection: str | None = None,
        paths: Iterable[str] = (),
        tags: Iterable[str] = (),
        mode: str | None = None,
        rerank: bool | None = None,
        include: str = "sections",
    ) -> Context:
        """The passages worth reading before answering a query, within a token budget, with citations.

        Critical documents of the collections come first. `include` is sections, chunks (only those that
        match) or documents (whole). `rerank` is as in `search`. Raises NoResults for an unknown collection.
        """
        settings = self.config.context
        if max_tokens is not None:
            settings = replace(settings, max_tokens=max_tokens)
        filters = _filters(collection, paths, tags)
        search = self._search_settings(_PACKED, mode, rerank)
        return self.fresh(partial(self._context, query, filters, search, settings, include))

    @reads
    def _context(
        self, query: str, filters: Filters, search: SearchSettings, settings: ContextSettings, include: str
    ) -> Context:
        found = self._search(query, None, filters, search, explain=True)
        sources: dict[int, Source] = {}
        critical = [self._pack_source(row, sources) for row in self._critical(filters.collection)]
        matches = self._matches(found, sources)
        counted = budget_counter(self.config.tokens)
        told = {"notes": found.notes, "good_match": found.good_match or not found.results}
        return pack(found.query, critical, matches, settings, counted, include=include, **told)  # type: ignore[arg-type]

    def _critical(self, collection: str | None) -> list[DocumentRow]:
        """The critical documents of a collection, or of all, by collection and path."""
        rows = self.store.documents_by_row(self.store.promoted("critical")).values()
        kept = [row for row in rows if row.kind in named.DOCUMENTS]
        if collection is not None:
            kept = [row for row in kept if is_in_collection(row.collection, collection)]
        return sorted(kept, key=lambda row: (row.collection, row.path))

    def _matches(self, found: Found, sources: dict[int, Source]) -> list[Match]:
        """Results with the spans of the chunks that they stand for."""
        hits = [[hit["chunk"] for hit in result.explain["hits"]] for result in found.results]
        chunks = self.store.chunks(chunk for ids in hits for chunk in ids)
        rows = self.store.documents_by_row({chunk.document for chunk in chunks.values()})
        matches = []
        for result, ids in zip(found.results, hits, strict=True):
            source = self._pack_source(rows[chunks[ids[0]].document], sources)
            spans = tuple((chunks[chunk].start, chunks[chunk].end) for chunk in ids)
            matches.append(Match(source, result.address, result.start, result.end, spans, result.score))
        return matches

    def _pack_source(self, row: DocumentRow, known: dict[int, Source]) -> Source:
        if row.seq not in known:
            known[row.seq] = Source(reading.tree(self.store, row, self.config), row.url, row.promotion)
        return known[row.seq]


def _filters(collection: str | None, paths: Iterable[str], tags: Iterable[str]) -> Filters:
    return Filters(collection, (), given_names(paths, "paths"), tags=given_names(tags, "tags"))
