"""The Store protocol: what indexing and searching ask of a database.

Always: a reader sees a document's old version or its new one, whole; what `write` has returned
from survives a crash; filters apply before any limit; a library that another has replaced is not written to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from quire.query import Query
from quire.result import Hit, Node
from quire.stores.rows import (
    ChunkRow,
    DocumentRow,
    Member,
    Model,
    Prepared,
    SectionRow,
    Sighting,
    SourceRow,
    Unembedded,
)

if TYPE_CHECKING:
    from quire.embed.base import Vectors

BATCH_BYTES = 4_000_000  # of text that is written in one transaction


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents a search or a listing looks at."""

    collection: str | None = None
    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # each the beginning of a path, or a pattern with *; any of them
    query_paths: tuple[str, ...] = ()  # and any of these: a query narrows `paths` and never widens them
    not_paths: tuple[str, ...] = ()  # none of them
    tags: tuple[str, ...] = ()  # all of them
    since: int | None = None  # milliseconds: last written then or later
    until: int | None = None  # and before then


@dataclass(frozen=True, slots=True)
class Counts:
    """What is in a library."""

    documents: int
    sections: int
    chunks: int
    bytes: int
    collections: dict[str, int]  # documents of each
    embedded: int = 0  # chunks with a vector of the active model
    model: str = ""  # which that is


class Store(Protocol):
    """A library's database."""

    def close(self) -> None:
        """Let go of it."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Everything read within is of one moment."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """All that is done within is done to one library. Raises LibraryError if another takes its place."""
        ...

    def settle(self) -> None:
        """Bring the library to where a copy of its file has all of it, unless others are reading it."""
        ...

    def library_id(self) -> str:
        """The random id of the library, which its backups share."""
        ...

    def version(self) -> str:
        """A word that changes with every write, and that no other library has, nor a restored one."""
        ...

    def generation(self) -> int:
        """A number that moves whenever anything is written."""
        ...

    def write(
        self, batch: Sequence[Prepared], source: SourceRow | None = None, gone: Sequence[int] = ()
    ) -> list[bool]:
        """Write documents in one transaction; for each, whether it replaced one of the same identity.

        They become the source's. Those that are `gone` from it go in the same transaction, unless another
        source holds them. The batch may fetch each document only when it is asked for, and may be asked
        more than once.
        """
        ...

    def sources(self) -> list[SourceRow]:
        """All sources, by collection, type and place."""
        ...

    def put_sources(self, sources: Sequence[SourceRow]) -> None:
        """Remember sources, or what is new of them."""
        ...

    def source_now(self, source: SourceRow) -> SourceRow | None:
        """A source as it is now, with what others may have changed; None if it was removed."""
        ...

    def note_checked(self, sources: Sequence[SourceRow]) -> None:
        """Note when sources were checked, and their problems; those that were removed stay removed."""
        ...

    def drop_sources(self, sources: Sequence[SourceRow]) -> int:
        """Remove sources, and the documents that no other source holds; how many these were."""
        ...

    def move_source(self, old: SourceRow, new: SourceRow) -> None:
        """Put a source at another place, with all that is known of its documents."""
        ...

    def members(self, collection: str, kind: str, source: SourceRow | None = None) -> list[Member]:
        """Which sources hold the documents of a collection, or of one source."""
        ...

    def leave(self, source: SourceRow, documents: Sequence[int]) -> int:
        """Take documents from a source; those that no other holds are deleted. How many these were."""
        ...

    def join(self, members: Sequence[Member]) -> None:
        """Make documents those of sources, in one transaction; those that are gone stay gone."""
        ...

    def sight(self, source: SourceRow, seen: Sequence[Sighting]) -> list[int]:
        """Note that stored documents are a source's and unchanged; one with another path is renamed.

        The documents that could not be renamed, because they are gone or the path is taken.
        """
        ...

    def adopted(self) -> bool:
        """Whether all documents have the sources that they came from. A library of before has none."""
        ...

    def note_adopted(self) -> None:
        """Note that they have."""
        ...

    def fetched(self, rows: Iterable[int]) -> dict[int, tuple[str | None, str | None]]:
        """What a server said of documents: etag and last modified; nothing of those it did not send."""
        ...

    def note_fetched(self, said: Mapping[int, tuple[str | None, str | None]]) -> None:
        """Note what a server now says of documents, by row, whose content is unchanged."""
        ...

    def tags(self, rows: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """The tags of documents, in order; nothing of those without."""
        ...

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents and all that belongs to them, in one transaction."""
        ...

    def documents(self, filters: Filters) -> list[DocumentRow]:
        """Documents by collection and path."""
        ...

    def document(self, collection: str | None, path: str) -> DocumentRow | None:
        """One document by its path, in any collection if none is named."""
        ...

    def documents_by_row(self, rows: Iterable[int]) -> dict[int, DocumentRow]:
        """Documents by their rows."""
        ...

    def source(self, row: int) -> bytes:
        """The exact bytes of a document."""
        ...

    def passage(self, row: int, start: int, end: int) -> str:
        """The text of some bytes of a document."""
        ...

    def sections(self, row: int) -> list[SectionRow]:
        """The sections of a document, in order."""
        ...

    def nodes(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Node]:
        """Sections by (document, position), with all their ancestors, as merging wants them."""
        ...

    def section(self, row: int, position: int) -> SectionRow:
        """One section."""
        ...

    def chunks(self, ids: Iterable[int]) -> dict[int, ChunkRow]:
        """Chunks by their ids."""
        ...

    def search_words(self, query: Query, filters: Filters, limit: int) -> list[Hit]:
        """The chunks that match a query's words, best first."""
        ...

    def search_vectors(self, model: Model, vector: Vectors, filters: Filters, limit: int) -> list[Hit]:
        """The chunks whose vectors are nearest to one, best first; the score is the cosine."""
        ...

    def allowed(self, query: Query, chunks: Iterable[int]) -> set[int]:
        """Those of some chunks that have all that a query demands, and nothing that it leaves out."""
        ...

    def cosines(self, model: Model, vector: Vectors, chunks: Iterable[int]) -> dict[int, float]:
        """How near chunks are to a vector; those without one are left out."""
        ...

    def vectors_of(self, model: Model, chunks: Iterable[int]) -> dict[int, Vectors]:
        """The vectors of chunks; those without one are left out."""
        ...

    def models(self) -> list[Model]:
        """The models that made vectors, the active one first."""
        ...

    def model(self, name: str, dimension: int) -> Model:
        """A model by its name and dimension, made known if it is new; the first is active."""
        ...

    def activate(self, model: Model) -> None:
        """Search with this model from now on, and forget the vectors of all others."""
        ...

    def unembedded(self, model: Model, limit: int, after: int = -1) -> list[Unembedded]:
        """Chunks that have no vector of a model, in order, from behind one on."""
        ...

    def count_unembedded(self, model: Model) -> int:
        """How many chunks have no vector of a model."""
        ...

    def reuse(self, model: Model, chunks: Sequence[Unembedded]) -> set[int]:
        """Give chunks the vectors that are remembered for their texts; which have got one."""
        ...

    def write_vectors(self, model: Model, chunks: Sequence[Unembedded], vectors: Vectors) -> None:
        """Store vectors in one transaction. A chunk whose document has changed since gets none."""
        ...

    def embedding_failures(self) -> dict[int, str]:
        """Documents that could not be embedded, and why."""
        ...

    def note_failures(self, failures: Mapping[int, str]) -> None:
        """Remember why documents could not be embedded, in place of what was remembered before."""
        ...

    def kinds(self) -> frozenset[str]:
        """The kinds of documents there are."""
        ...

    def promote(self, row: int, level: str) -> None:
        """Set the promotion of a document, and with it of all its chunks."""
        ...

    def collections(self) -> list[str]:
        """The names of the collections."""
        ...

    def counts(self) -> Counts:
        """What is in the library."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the library; empty if all is well."""
        ...
