"""The part of Library that answers: search, and pack for a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from quire import reading, search_log, searcher
from quire.address import is_in_collection, of_document
from quire.config import ContextSettings, SearchSettings
from quire.context import Context, Match, Source, pack
from quire.errors import SettingError, nearest
from quire.library.base import reads
from quire.library.passages import Passages, filters_of, newest_versions
from quire.meaning import serving
from quire.searcher import Found
from quire.sources import entries
from quire.stores import Counts, DocumentRow, Filters
from quire.tokens import budget_counter

_PACKED = 30  # the most results in a context pack


class Finding(Passages):
    """Searching."""

    def search(
        self,
        query: str = "",
        *,
        vector: Sequence[float] | None = None,
        collection: str | None = None,
        paths: Iterable[str] = (),
        tags: Iterable[str] = (),
        where: Iterable[str] = (),
        kind: str | None = None,
        limit: int | None = None,
        mode: str | None = None,
        rerank: bool | None = None,
        explain: bool = False,
    ) -> Found:
        """The best sections for a query. Raises NoResults for an unknown collection.

        Of a collection with versions, `name@version`, the newest is searched unless another is named;
        `name@*` are all. Only documents with all of the `tags` are searched, and only those whose front
        matter meets all conditions in `where`, such as `date>=2026-01-01`. `kind` is document or external.
        `mode` is hybrid, keyword or semantic. `rerank` reads the best again: a better order takes more time.
        With a `vector` of your own, no model is asked for one; then the query may be left out.
        """
        settings = self._search_settings(limit, mode if query or vector is None else "semantic", rerank)
        if kind is not None and kind not in entries.DOCUMENTS:
            raise SettingError("kind", f"there is no {kind!r} to search. {nearest(kind, entries.DOCUMENTS)}")
        filters = replace(filters_of(collection, paths, tags, where), kinds=(kind,) if kind else ())
        found = self.fresh(partial(self._search, query, vector, filters, settings, explain=explain))
        if self.config.search.log:
            self._log_search(query, found)
        return found

    def _log_search(self, query: str, found: Found) -> None:
        places = ((of_document(one.collection, one.path), one.start, one.end) for one in found.results)
        search_log.note_search(self.store.library_id(), query, places)

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
        filters, notes = newest_versions(self.store, filters)
        self._check_fields(filters)
        found = self._search_within(query, vector, filters, settings, explain=explain)
        return replace(found, notes=(*found.notes, *notes))

    def _search_within(
        self,
        query: str,
        vector: Sequence[float] | None,
        filters: Filters,
        settings: SearchSettings,
        *,
        explain: bool,
    ) -> Found:
        apart = self.store.kinds() - set(entries.DOCUMENTS)  # a filter that drops nothing only costs time
        filters = replace(filters, kinds=filters.kinds or (entries.DOCUMENTS if apart else ()))
        meaning = self._meaning(settings.mode, vector)
        cross = self._cross if settings.rerank else None
        given = {"explain": explain, "tokens": self.config.tokens}
        found = searcher.search(self.store, query, filters, settings, meaning, cross, **given)  # type: ignore[arg-type]
        changed = [result for result in found.results if result.stale]
        self._answering.changed.update(of_document(result.collection, result.path) for result in changed)
        return self._bound(found)

    def _bound(self, found: Found) -> Found:
        """An answer whose results can be read."""
        return replace(found, results=tuple(result.bound_to(self) for result in found.results))

    def _search_settings(
        self, limit: int | None, mode: str | None, rerank: bool | None = None
    ) -> SearchSettings:
        given = {"limit": limit, "mode": mode, "rerank": rerank}
        changes = {name: value for name, value in given.items() if value is not None}
        return replace(self.config.search, **changes)  # type: ignore[arg-type]

    @reads
    def status(self) -> Counts:
        """What is in the library, and which model searches use."""
        counts, meaning = self.store.counts(), self._meaning("hybrid")
        used = serving(self.store, meaning, Filters())
        goes_on, problem = self._left()
        name = used.model.name if used else ""
        return replace(counts, serving=name, goes_on=goes_on, model_problem=problem)

    def context(
        self,
        query: str,
        *,
        max_tokens: int | None = None,
        collection: str | None = None,
        paths: Iterable[str] = (),
        tags: Iterable[str] = (),
        where: Iterable[str] = (),
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
        filters = filters_of(collection, paths, tags, where)
        search = self._search_settings(_PACKED, mode, rerank)
        return self.fresh(partial(self._context, query, filters, search, settings, include))

    @reads
    def _context(
        self, query: str, filters: Filters, search: SearchSettings, settings: ContextSettings, include: str
    ) -> Context:
        filters, notes = newest_versions(self.store, filters)
        self._check_fields(filters)
        found = self._search_within(query, None, filters, search, explain=True)
        sources: dict[int, Source] = {}
        critical = [self._pack_source(row, sources) for row in self._critical(filters)]
        matches = self._matches(found, sources)
        counted = budget_counter(self.config.tokens)
        told = {"notes": (*found.notes, *notes), "good_match": found.good_match or not found.results}
        return pack(found.query, critical, matches, settings, counted, include=include, **told)  # type: ignore[arg-type]

    def _critical(self, filters: Filters) -> list[DocumentRow]:
        """The critical documents of a collection, or of all, by collection and path."""
        collection = filters.collection
        rows = self.store.documents_by_row(self.store.promoted("critical")).values()
        kept = [row for row in rows if row.kind in entries.DOCUMENTS]
        kept = [row for row in kept if row.collection not in filters.not_collections]
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
            cited = result.address, result.start, result.end
            matches.append(Match(source, *cited, spans, result.score, result.strength))
        return matches

    def _pack_source(self, row: DocumentRow, known: dict[int, Source]) -> Source:
        if row.seq not in known:
            places = self.store.places([row.seq]).get(row.seq)
            known[row.seq] = Source(
                reading.tree(self.store, row, self.config), row.url, row.promotion, places
            )
        return known[row.seq]
