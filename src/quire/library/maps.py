"""The part of Library that places documents by meaning, for a picture of the library."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from quire.errors import no_collection
from quire.library.base import reads
from quire.library.passages import Passages, newest_versions
from quire.sources import entries
from quire.stores import DocumentRow, Filters, Store, active_model

if TYPE_CHECKING:
    from quire.embed.base import Vectors
    from quire.mapping import Map

_REMEMBERED = 4  # maps that are kept
_NO_DOCUMENTS = "There are no documents to show. Add some with: quire add ./docs"


class MapCache:
    """The last maps of a library, by its version and the collection. One map is made at a time."""

    def __init__(self) -> None:
        self.making = threading.Lock()
        self._maps: dict[tuple[str, str | None], Map] = {}

    def get(self, key: tuple[str, str | None]) -> Map | None:
        """A map that was made before."""
        return self._maps.get(key)

    def put(self, key: tuple[str, str | None], made: Map) -> Map:
        """Keep a map; the oldest makes room for it."""
        self._maps[key] = made
        while len(self._maps) > _REMEMBERED:
            del self._maps[next(iter(self._maps))]
        return made


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a map is made of, and the version of the library that it is from."""

    version: str
    rows: list[DocumentRow]
    vectors: dict[int, Vectors]
    among: int  # documents that could be shown
    notes: tuple[str, ...]


class Maps(Passages):
    """Placing documents by meaning."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._maps = MapCache()

    def map(self, collection: str | None = None) -> Map:
        """The documents of a collection, or all, placed by meaning: those that are alike are near each other.

        Of a collection with versions, the newest is shown unless another is named. Twins say nearly the same.
        Above 10,000 documents, the map shows a sample. Raises NoResults for an unknown collection.
        """
        from quire import mapping  # takes time, which other calls do not need

        with self._maps.making:
            if made := self._maps.get((self.store.version(), collection)):
                return made
            shown = self._shown(collection)
            nothing = mapping.Map(notes=(_NO_DOCUMENTS,))
            made = mapping.draw_map(shown.rows, shown.vectors, shown.among) if shown.rows else nothing
            return self._maps.put((shown.version, collection), replace(made, notes=made.notes + shown.notes))

    @reads
    def _shown(self, collection: str | None) -> _Shown:
        from quire import mapping

        known = self.store.collections()
        filters, notes = newest_versions(self.store, Filters(collection, entries.DOCUMENTS))
        if filters.collection and known and not self._has_collection(filters.collection):
            raise no_collection(filters.collection, known)
        every = self.store.documents(filters)
        rows = mapping.sampled(every)
        return _Shown(self.store.version(), rows, _vectors(self.store, rows), len(every), notes)


def _vectors(store: Store, rows: list[DocumentRow]) -> dict[int, Vectors]:
    """The instant vectors of documents, which all have."""
    model = active_model(store.models(), instant=True)
    return store.document_vectors(model, (row.seq for row in rows)) if model else {}
