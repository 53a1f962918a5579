"""Settings without a model, and small steps, for tests that are about words, files and states."""

from quire.config import DEFAULT, override
from quire.stores import Sighting, SourceRow, Store

WORDS = override(DEFAULT, {"embed": {"model": "none"}})


def rename(store: Store, row: int, path: str, collection: str = "c") -> list[int]:
    """Give a document another path, as its source would; those that could not get it."""
    source = SourceRow("folder", "/c", "/c", collection, "document")
    store.put_sources([source])
    return store.sight(source, [Sighting(row, 1, 1, 1, path)])
