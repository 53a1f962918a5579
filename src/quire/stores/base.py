"""The Store protocol: what indexing and searching ask of a database, in seven parts.

Always: a reader sees a document's old version or its new one, whole; a write survives a crash once `write`
has returned; filters apply before any limit; a library is never written to after another replaced it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from quire.links import Field
from quire.location import Places
from quire.progress import Progress
from quire.query import Query
from quire.result import Hit, Node
from quire.stores.counts import Counts as Counts
from quire.stores.counts import Optimized as Optimized
from quire.stores.filters import Filters, Slice
from quire.stores.keys import AccessKey
from quire.stores.rows import (
    ChunkRow,
    DocumentRow,
    LinkRow,
    Member,
    Model,
    NamedDocument,
    Prepared,
    SectionRow,
    Sighting,
    SourceRow,
    Unembedded,
    Version,
)

if TYPE_CHECKING:
    from quire.embed.base import Vectors

BATCH_BYTES = 4_000_000  # of text that is written in one transaction


class Admin(Protocol):
    """The library as a whole."""

    is_shared: bool  # whether programs of several versions may be using it

    def close(self) -> None:
        """Close the database."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """All reads inside see one snapshot."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """All writes inside go into one library. Raises LibraryError if another takes its place."""
        ...

    def waiting(self, seconds: float) -> AbstractContextManager[None]:
        """Writes inside wait at most so long for other processes. Then they raise LibraryError."""
        ...

    def versions(self) -> str:
        """The versions of the database and of the schema, in words."""
        ...

    def purge(self) -> list[str]:
        """Erase what removed documents left behind; returns where it still is, in sentences."""
        ...

    def optimize(self, *, idle: bool = False) -> Optimized:
        """Merge the indexes and give back the space of what was deleted.

        `idle` only gives back space, in short transactions, and only if there is much.
        """
        ...

    def settle(self) -> None:
        """Checkpoint, so that a copy of the file has the whole library, unless others are reading it."""
        ...

    def library_id(self) -> str:
        """The random id of the library, which its backups share."""
        ...

    def version(self) -> str:
        """A string that changes with every write, and that no other or restored library has."""
        ...

    def generation(self) -> int:
        """A number that grows with every write."""
        ...

    def intact(self, rows: Iterable[DocumentRow]) -> dict[int, bool]:
        """Whether the texts of documents are those that were written. Large ones may be left out."""
        ...

    def kinds(self) -> frozenset[str]:
        """The kinds of documents in the library."""
        ...

    def collections(self) -> list[str]:
        """The names of the collections."""
        ...

    def counts(self) -> Counts:
        """What is in the library."""
        ...

    def check(self) -> list[str]:
        """Problems with the library; empty if there are none."""
        ...

    def lease(self, name: str) -> tuple[str, int]:
        """What is stored of a lease, "" if nothing is, and the time of the database in milliseconds."""
        ...

    def swap_lease(self, name: str, old: str, new: str) -> bool:
        """Replace the text of a lease, "" for none, if it is still the old one; returns whether it was.

        This is no change of the library: its version stays.
        """
        ...


class KeyIndex(Protocol):
    """Keys that servers of the library accept."""

    def access_keys(self) -> list[AccessKey]:
        """All keys, oldest first."""
        ...

    def put_key(self, key: AccessKey) -> None:
        """Store a key. The version of the library stays: no document has changed."""
        ...

    def drop_key(self, id: str) -> bool:
        """Delete a key; returns whether it was there."""
        ...


class Documents(Protocol):
    """Documents with their sections and chunks."""

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents in one transaction; for each, whether it replaced one of the same identity.

        They become the source's. The same transaction removes the documents that are `gone` from it,
        unless another source holds them. The batch may load each document only when it is asked for,
        and may be asked more than once.
        """
        ...

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents and all that belongs to them, in one transaction."""
        ...

    def promote(self, row: int, level: str) -> None:
        """Set the promotion of a document, and with it of all its chunks."""
        ...

    def promoted(self, level: str) -> list[int]:
        """The rows of the documents that are important, or critical."""
        ...

    def documents(self, filters: Filters, page: Slice | None = None) -> list[DocumentRow]:
        """Documents by collection and path, or one page of them."""
        ...

    def document(self, collection: str | None, path: str) -> DocumentRow | None:
        """One document by its path, in any collection if none is named."""
        ...

    def by_id(self, id: str) -> tuple[DocumentRow, str] | None:
        """The document that the id of a document, section or chunk leads to; None if nothing has this id.

        With it comes what follows the # of the address that the id belongs to, "" for a document.
        """
        ...

    def documents_by_row(self, rows: Iterable[int]) -> dict[int, DocumentRow]:
        """Documents by their rows."""
        ...

    def source(self, row: int) -> bytes:
        """The exact bytes of a document."""
        ...

    def passage(self, row: int, start: int, end: int) -> str:
        """The text between two byte offsets of a document."""
        ...

    def earlier_versions(self, row: int) -> list[Version]:
        """The earlier texts of an entry, newest first. Raises Damaged if one is not what was written."""
        ...

    def sections(self, row: int) -> list[SectionRow]:
        """The sections of a document, in order."""
        ...

    def lineages(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], SectionRow]:
        """Sections by (document, position), with all their ancestors."""
        ...

    def count_sections(self, filters: Filters) -> int:
        """How many sections the documents within filters have."""
        ...

    def section(self, row: int, position: int) -> SectionRow:
        """One section."""
        ...

    def titles(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The titles of sections by (document, position)."""
        ...

    def nodes(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Node]:
        """Sections by (document, position), with all their ancestors, as merging needs them."""
        ...

    def chunks(self, ids: Iterable[int]) -> dict[int, ChunkRow]:
        """Chunks by their ids."""
        ...

    def tags(self, rows: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """The tags of documents, in order. Documents without tags are left out."""
        ...

    def places(self, rows: Iterable[int]) -> dict[int, Places]:
        """Where the parts of documents are in their originals. Documents without places are left out."""
        ...

    def original_checksums(self, rows: Iterable[int]) -> dict[int, str]:
        """The checksums of what documents were converted from. Documents that are originals are left out."""
        ...


class LinkIndex(Protocol):
    """Links, the names that they are found by, and front-matter fields."""

    def links(self, row: int) -> list[LinkRow]:
        """The links of a document, in order."""
        ...

    def links_to(self, keys: Iterable[str]) -> list[LinkRow]:
        """The links with these keys, which may lead to a document that has such a name."""
        ...

    def links_saying(
        self, anchors: Sequence[str], sections: Iterable[tuple[int, int]], within: Filters, limit: int
    ) -> list[LinkRow]:
        """Some of the links that say exactly these terms, and those in sections that say something.

        Those of the first terms come first. A section is a document and a position. Only links in documents
        within the filters count.
        """
        ...

    def first_chunks(self, sections: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
        """The first chunk of each section or of what is under it, and its section. Each is a document and a
        position; a section without chunks is left out.
        """
        ...

    def named(self, names: Iterable[str]) -> list[NamedDocument]:
        """The documents that have one of these names in their paths or as an alias."""
        ...

    def names(self, row: int) -> list[str]:
        """The names of a document: those in its path, and its aliases."""
        ...

    def fields(self, row: int) -> list[Field]:
        """The front-matter fields of a document, by name and value."""
        ...

    def has_fields(self, names: Iterable[str], within: Filters) -> set[str]:
        """Those of the names that some document within the filters has as a field."""
        ...

    def has_documents(self, filters: Filters) -> bool:
        """Whether any document is within the filters."""
        ...

    def field_kinds(self, name: str, within: Filters) -> set[str]:
        """Which kinds of values documents within the filters have in a field: number, date, text."""
        ...

    def field_names(self, within: Filters) -> list[str]:
        """The names of the fields that documents within the filters have, in order."""
        ...


class Sources(Protocol):
    """Sources, and which documents each of them holds."""

    def sources(self) -> list[SourceRow]:
        """All sources, by collection, type and place."""
        ...

    def put_sources(self, sources: Sequence[SourceRow]) -> None:
        """Add sources, or update those that are stored."""
        ...

    def source_now(self, source: SourceRow) -> SourceRow | None:
        """A source as it is stored now, with what others may have changed; None if it was removed."""
        ...

    def note_checked(self, sources: Sequence[SourceRow]) -> None:
        """Store when sources were checked, and their problems. Removed sources stay removed."""
        ...

    def drop_sources(self, sources: Sequence[SourceRow]) -> int:
        """Remove sources, and the documents that no other source holds; how many documents."""
        ...

    def move_source(self, old: SourceRow, new: SourceRow) -> None:
        """Move a source to another place; its documents stay its own."""
        ...

    def members(self, collection: str, kind: str, source: SourceRow | None = None) -> list[Member]:
        """Which sources hold the documents of a collection, or of one source."""
        ...

    def holders(self, documents: Iterable[int]) -> list[Member]:
        """Which sources hold these documents."""
        ...

    def leave(self, source: SourceRow, documents: Sequence[int]) -> int:
        """Take documents from a source, and delete those that no other source holds; how many."""
        ...

    def join(self, members: Sequence[Member]) -> None:
        """Add documents to sources, in one transaction. Deleted documents stay deleted."""
        ...

    def sight(self, source: SourceRow, seen: Sequence[Sighting]) -> list[int]:
        """Note that stored documents are a source's and unchanged. One with another path is renamed.

        Returns the documents that could not be renamed, because they are gone or the path is taken.
        """
        ...

    def fetched(self, rows: Iterable[int]) -> dict[int, tuple[str | None, str | None]]:
        """The etag and last-modified of documents. Those that came without either are left out."""
        ...

    def note_fetched(self, validators: Mapping[int, tuple[str | None, str | None]]) -> None:
        """Store the new etag and last-modified of documents, by row, whose content is unchanged."""
        ...

    def adopted(self) -> bool:
        """Whether every document has its source. Libraries from before sources existed have none."""
        ...

    def note_adopted(self) -> None:
        """Note that every document has its source."""
        ...


class WordIndex(Protocol):
    """Search by words."""

    def word_makers(self) -> frozenset[str]:
        """The fingerprints of the analyzers that made the terms: one, or none if there are no documents."""
        ...

    def remake_words(self, progress: Progress | None = None) -> int:
        """Remake terms that another analyzer made, some documents at a time; returns how many documents.

        Until all are made, searches use the old terms as well as they can.
        """
        ...

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        ...

    def size(self) -> int:
        """How many chunks there are."""
        ...

    def term_counts(self, terms: Collection[str]) -> dict[str, int]:
        """In how many chunks of the library terms are. Terms in none are left out.

        A store may leave out all of more than 1,000 terms, if it would take long to look them up.
        """
        ...

    def chunks_with(self, terms: Sequence[str], chunks: Sequence[int]) -> dict[str, set[int]]:
        """Those of the chunks that have each term."""
        ...

    def documents_with(self, terms: Sequence[str], filters: Filters) -> dict[str, set[int]]:
        """The documents that have each term."""
        ...

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of the chunks that have everything a query requires, and nothing that it excludes."""
        ...


class VectorIndex(Protocol):
    """Models, their vectors, and search by them."""

    def search_vectors(self, model: Model, vector: Vectors, filters: Filters, limit: int) -> list[Hit]:
        """The chunks whose vectors are nearest to one, best first; the score is the cosine."""
        ...

    def search_documents(
        self, model: Model, vector: Vectors, filters: Filters, limit: int
    ) -> list[tuple[int, float]]:
        """The documents of several chunks that are nearest to a vector as a whole, and their cosines."""
        ...

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """The cosines of chunks with a vector. Chunks without a vector are left out."""
        ...

    def vectors_of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks. Chunks without a vector are left out."""
        ...

    def document_vectors(self, model: Model, rows: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of whole documents, by row: the mean of their chunks, or that of the only chunk.

        A document of which a chunk has no vector is left out.
        """
        ...

    def models(self) -> list[Model]:
        """The models that made vectors: active ones first, and the instant one last of them."""
        ...

    def model(self, name: str, dimension: int) -> Model:
        """A model by its name and dimension, added if it is new; the first of its sort is active.

        Raises EmbeddingError if it is new and the library is someone else's.
        """
        ...

    def activate(self, model: Model) -> None:
        """Search with this model from now on, and delete the vectors of the others of its sort."""
        ...

    def unembedded(
        self, model: Model, limit: int, after: int = -1, documents: Sequence[int] = ()
    ) -> list[Unembedded]:
        """Chunks that have no vector of a model, by id, beginning after one; only of documents, if given."""
        ...

    def count_unembedded(self, model: Model) -> int:
        """How many chunks have no vector of a model."""
        ...

    def embedded_share(self, model: Model, filters: Filters) -> float:
        """The share of the chunks within filters that have a vector of a model; 1 if there are no chunks."""
        ...

    def reuse(self, model: Model, chunks: Sequence[Unembedded]) -> set[int]:
        """Give chunks the cached vectors of their texts; the chunks that got one."""
        ...

    def write_vectors(self, model: Model, chunks: Sequence[Unembedded], vectors: Vectors) -> None:
        """Store vectors in one transaction. A chunk whose document has changed since gets none."""
        ...

    def set_vector(self, model: Model, chunk: int, vector: Vectors) -> None:
        """Store a vector of length 1 for a chunk, in place of the one that it has."""
        ...

    def embedding_failures(self) -> dict[int, str]:
        """Documents that could not be embedded, and why."""
        ...

    def note_failures(self, failures: Mapping[int, str]) -> None:
        """Replace the stored reasons why documents could not be embedded."""
        ...


class Store(Admin, KeyIndex, Documents, LinkIndex, Sources, WordIndex, VectorIndex, Protocol):
    """A library's database."""
