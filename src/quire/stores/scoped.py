"""A store, limited to some collections. Whatever is asked of it, it returns and changes nothing else.

Input: a store and names of collections. Output: a store in which there are only their documents and sources.
Always: what is not listed here is refused, so that a new method of a store is closed until someone opens it;
methods that take rows get them from methods that are limited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quire.errors import Forbidden
from quire.stores.base import Counts, Store
from quire.stores.filters import Filters, Slice
from quire.stores.rows import (
    DocumentRow,
    LinkRow,
    Member,
    Model,
    NamedDocument,
    Prepared,
    Sighting,
    SourceRow,
    Unembedded,
    active_model,
)

if TYPE_CHECKING:
    from quire.embed.base import Vectors
    from quire.progress import Progress
    from quire.query import Query
    from quire.result import Hit

# What tells of the library as a whole without its texts.
_ABOUT = (
    *("close", "generation", "is_shared", "lease", "library_id", "models", "purge", "reading", "settle"),
    *("swap_lease", "version", "versions", "waiting", "word_makers", "writing"),
)
# What takes rows of documents, sections or chunks, which other methods returned.
_BY_ROW = (
    *("allowed", "chunks", "chunks_with", "cosines", "document_vectors", "earlier_versions", "fetched"),
    *("fields", "first_chunks", "intact", "lineages", "links", "names", "nodes", "note_fetched"),
    *("original_checksums", "passage", "places", "reuse", "section", "sections", "set_vector", "source"),
    *("tags", "titles", "vectors_of", "write_vectors"),
)
PLAIN = frozenset((*_ABOUT, *_BY_ROW, "count_unembedded", "model"))
REFUSED = frozenset({"access_keys", "activate", "check", "drop_key", "optimize", "put_key"})


class _Limit:
    """The collections that a store is limited to."""

    def __init__(self, store: Store, collections: Iterable[str]) -> None:
        self._store, self.scope = store, tuple(dict.fromkeys(collections))
        self._size = -1, 0  # a generation, and how many chunks it has

    def __getattr__(self, name: str) -> Any:
        if name in PLAIN:
            return getattr(self._store, name)
        raise Forbidden("This needs access to the whole library.", needs="all collections")

    def _within(self, filters: Filters) -> Filters:
        return replace(filters, collections=self.scope)

    def _check(self, *collections: str) -> None:
        for name in collections:
            if name not in self.scope:
                raise Forbidden(f"No access to the collection {name!r}.", collection=name)

    def _check_rows(self, rows: Iterable[int]) -> None:
        """Raise Forbidden for documents of other collections. Those that are gone are let pass."""
        self._check(*(row.collection for row in self._store.documents_by_row(set(rows)).values()))

    def _all_rows(self) -> list[DocumentRow]:
        return self._store.documents(self._within(Filters()))


class _ScopedFilters(_Limit):
    """What takes filters: they are narrowed."""

    def links_saying(
        self, anchors: Sequence[str], sections: Iterable[tuple[int, int]], within: Filters, limit: int
    ) -> list[LinkRow]:
        """Links that say exactly these terms, and those in sections that say something."""
        return self._store.links_saying(anchors, sections, self._within(within), limit)

    def has_fields(self, names: Iterable[str], within: Filters) -> set[str]:
        """Those of the names that some document has as a field."""
        return self._store.has_fields(names, self._within(within))

    def count_sections(self, filters: Filters) -> int:
        """How many sections the documents within filters have."""
        return self._store.count_sections(self._within(filters))

    def has_documents(self, filters: Filters) -> bool:
        """Whether any document is within the filters."""
        return self._store.has_documents(self._within(filters))

    def field_kinds(self, name: str, within: Filters) -> set[str]:
        """Which kinds of values documents have in a field."""
        return self._store.field_kinds(name, self._within(within))

    def field_names(self, within: Filters) -> list[str]:
        """The names of the fields that documents have."""
        return self._store.field_names(self._within(within))

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        return self._store.search_words(query, self._within(filters), limit)

    def documents_with(self, terms: Sequence[str], filters: Filters) -> dict[str, set[int]]:
        """The documents that have each term."""
        return self._store.documents_with(terms, self._within(filters))

    def search_vectors(self, model: Model, vector: Vectors, filters: Filters, limit: int) -> list[Hit]:
        """The chunks whose vectors are nearest to one."""
        return self._store.search_vectors(model, vector, self._within(filters), limit)

    def search_documents(
        self, model: Model, vector: Vectors, filters: Filters, limit: int
    ) -> list[tuple[int, float]]:
        """The documents that are nearest to a vector as a whole."""
        return self._store.search_documents(model, vector, self._within(filters), limit)

    def embedded_share(self, model: Model, filters: Filters) -> float:
        """The share of the chunks that have a vector of a model."""
        return self._store.embedded_share(model, self._within(filters))


class _ScopedDocuments(_ScopedFilters):
    """Documents, and what links and names lead to."""

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents of these collections."""
        self._check(*{prepared.collection for prepared in batch}, *([source.collection] if source else []))
        self._check_rows(gone)
        return self._store.write(batch, source, gone)

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents of these collections."""
        self._check_rows(rows)
        self._store.remove(rows)

    def promote(self, row: int, level: str) -> None:
        """Set the promotion of a document of these collections."""
        self._check_rows([row])
        self._store.promote(row, level)

    def promoted(self, level: str) -> list[int]:
        """The rows of the documents that are important, or critical."""
        return sorted(self.documents_by_row(self._store.promoted(level)))

    def documents(self, filters: Filters, page: Slice | None = None) -> list[DocumentRow]:
        """Documents by collection and path, or one page of them."""
        return self._store.documents(self._within(filters), page)

    def document(self, collection: str | None, path: str) -> DocumentRow | None:
        """One document by its path, in any of these collections if none is named."""
        for name in self.scope if collection is None else {collection} & {*self.scope}:
            if found := self._store.document(name, path):
                return found
        return None

    def by_id(self, id: str) -> tuple[DocumentRow, str] | None:
        """The document that an id leads to."""
        found = self._store.by_id(id)
        return found if found and found[0].collection in self.scope else None

    def documents_by_row(self, rows: Iterable[int]) -> dict[int, DocumentRow]:
        """Documents by their rows."""
        found = self._store.documents_by_row(rows)
        return {seq: row for seq, row in found.items() if row.collection in self.scope}

    def kinds(self) -> frozenset[str]:
        """The kinds of documents in these collections."""
        known = self._store.kinds()
        return frozenset(kind for kind in known if self.has_documents(Filters(kinds=(kind,))))

    def collections(self) -> list[str]:
        """Those of the collections that the library has."""
        return [name for name in self._store.collections() if name in self.scope]

    def counts(self) -> Counts:
        """What is in these collections."""
        rows, models = self._all_rows(), self._store.models()
        names = [row.collection for row in rows]
        chunks = sum(row.chunk_count for row in rows)
        return Counts(
            documents=len(rows),
            sections=self.count_sections(Filters()),
            chunks=chunks,
            bytes=sum(row.length for row in rows),
            collections={name: names.count(name) for name in sorted(set(names))},
            embedded=self._embedded(active_model(models), chunks),
            model=active.name if (active := active_model(models)) else "",
            instant=self._embedded(active_model(models, instant=True), chunks),
        )

    def _embedded(self, model: Model | None, chunks: int) -> int:
        share = self._store.embedded_share(model, self._within(Filters())) if model else 0.0
        return round(share * chunks)

    def links_to(self, keys: Iterable[str]) -> list[LinkRow]:
        """The links in documents of these collections with these keys."""
        found = self._store.links_to(keys)
        own = self.documents_by_row({link.document for link in found})
        return [link for link in found if link.document in own]

    def named(self, names: Iterable[str]) -> list[NamedDocument]:
        """The documents of these collections that have one of these names."""
        return [one for one in self._store.named(names) if one.collection in self.scope]


class _ScopedVectors(_ScopedDocuments):
    """What is left to embed, and words that other versions made."""

    def size(self) -> int:
        """How many chunks there are in these collections."""
        now = self._store.generation()
        if self._size[0] != now:
            self._size = now, sum(row.chunk_count for row in self._all_rows())
        return self._size[1]

    def term_counts(self, terms: Collection[str]) -> dict[str, int]:
        """In how many documents of these collections terms are: a count of all would tell of others."""
        known = list(self._store.term_counts(terms))
        found = self.documents_with(known, Filters()) if known else {}
        return {term: len(documents) for term, documents in found.items() if documents}

    def unembedded(
        self, model: Model, limit: int, after: int = -1, documents: Sequence[int] = ()
    ) -> list[Unembedded]:
        """Chunks of these collections that have no vector of a model."""
        self._check_rows(documents)
        rows = list(documents) or [row.seq for row in self._all_rows()]
        return self._store.unembedded(model, limit, after, rows) if rows else []

    def embedding_failures(self) -> dict[int, str]:
        """Documents of these collections that could not be embedded, and why."""
        found = self._store.embedding_failures()
        own = self.documents_by_row(found)
        return {row: why for row, why in found.items() if row in own}

    def note_failures(self, failures: Mapping[int, str]) -> None:
        """Replace the reasons of these collections, and keep those of others."""
        self._check_rows(failures)
        mine = self.embedding_failures()
        others = {row: why for row, why in self._store.embedding_failures().items() if row not in mine}
        self._store.note_failures({**others, **failures})

    def remake_words(self, progress: Progress | None = None) -> int:  # noqa: ARG002
        """Remake nothing: all words of a library are remade at once, by whoever may write all of it."""
        return 0


class _ScopedSources(_Limit):
    """Sources of these collections."""

    def sources(self) -> list[SourceRow]:
        """Sources by collection, type and place."""
        return [source for source in self._store.sources() if source.collection in self.scope]

    def put_sources(self, sources: Sequence[SourceRow]) -> None:
        """Add sources, or update those that are stored."""
        self._check(*(source.collection for source in sources))
        self._store.put_sources(sources)

    def source_now(self, source: SourceRow) -> SourceRow | None:
        """A source as it is stored now."""
        return self._store.source_now(source) if source.collection in self.scope else None

    def note_checked(self, sources: Sequence[SourceRow]) -> None:
        """Store when sources were checked, and their problems."""
        self._check(*(source.collection for source in sources))
        self._store.note_checked(sources)

    def drop_sources(self, sources: Sequence[SourceRow]) -> int:
        """Remove sources, and the documents that no other source holds."""
        self._check(*(source.collection for source in sources))
        return self._store.drop_sources(sources)

    def move_source(self, old: SourceRow, new: SourceRow) -> None:
        """Move a source to another place."""
        self._check(old.collection, new.collection)
        self._store.move_source(old, new)

    def members(self, collection: str, kind: str, source: SourceRow | None = None) -> list[Member]:
        """Which sources hold the documents of a collection, or of one source."""
        self._check(collection, *([source.collection] if source else []))
        return self._store.members(collection, kind, source)

    def holders(self, documents: Iterable[int]) -> list[Member]:
        """Which sources hold these documents."""
        rows = list(documents)
        self._check_rows(rows)
        return self._store.holders(rows)

    def leave(self, source: SourceRow, documents: Sequence[int]) -> int:
        """Take documents from a source, and delete those that no other source holds."""
        self._check(source.collection)
        self._check_rows(documents)
        return self._store.leave(source, documents)

    def join(self, members: Sequence[Member]) -> None:
        """Add documents to sources."""
        own = {source.seq for source in self.sources()}
        self._check_rows(member.document for member in members)
        if not {member.source for member in members} <= own:
            raise Forbidden("No access to a source of another collection.", needs="all collections")
        self._store.join(members)

    def sight(self, source: SourceRow, seen: Sequence[Sighting]) -> list[int]:
        """Note that stored documents are a source's and unchanged."""
        self._check(source.collection)
        self._check_rows(sighting.document for sighting in seen)
        return self._store.sight(source, seen)

    def adopted(self) -> bool:
        """Say that every document has its source: finding them concerns the whole library."""
        return True

    def note_adopted(self) -> None:
        """Note nothing."""


class ScopedStore(_ScopedVectors, _ScopedSources):
    """A store in which there are only some collections."""
