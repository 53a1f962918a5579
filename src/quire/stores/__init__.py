"""Stores: the databases that libraries are kept in. `open_store` picks one by the library's URL."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import cast

from quire import later
from quire.errors import MissingExtra, SettingError
from quire.stores.base import BATCH_BYTES, Counts, Optimized, Store
from quire.stores.filters import Filters, Slice
from quire.stores.keys import LEVELS, AccessKey
from quire.stores.leases import Lease, Renewing
from quire.stores.packed import held
from quire.stores.rows import (
    MAX_CHUNKS,
    ChunkRow,
    DocumentRow,
    LinkRow,
    Member,
    Model,
    NamedDocument,
    Prepared,
    SectionRow,
    Sighting,
    SourceOptions,
    SourceRow,
    Unembedded,
    Version,
    active_model,
    chunk_rows,
    link_of,
    section_rows,
    storable,
)
from quire.stores.scoped import ScopedStore
from quire.stores.texts import ChunkTexts, digest_of, embedded_text

__all__ = [
    "BATCH_BYTES",
    "LEVELS",
    "MAX_CHUNKS",
    "AccessKey",
    "ChunkRow",
    "ChunkTexts",
    "Counts",
    "DocumentRow",
    "Filters",
    "Lease",
    "LinkRow",
    "Member",
    "Model",
    "NamedDocument",
    "Optimized",
    "Prepared",
    "Renewing",
    "SectionRow",
    "Sighting",
    "Slice",
    "SourceOptions",
    "SourceRow",
    "Store",
    "Unembedded",
    "Version",
    "active_model",
    "chunk_rows",
    "digest_of",
    "embedded_text",
    "held",
    "link_of",
    "open_store",
    "section_rows",
    "storable",
]

_POSTGRES = ("postgresql", "postgres")
_LIKE_A_URL = later.pattern(r"(postgres(ql)?:)?/{0,3}[^/:@]+:[^/@\\]*@", re.IGNORECASE)


def open_store(url: str, *, create: bool = False, collections: Sequence[str] | None = None) -> Store:
    """Open the store at a path or URL, or only some collections of it.

    Raises NoResults if there is none and `create` is not set.
    """
    store = _opened(url, create, collections)
    return store if collections is None else cast(Store, ScopedStore(store, collections))


def _opened(url: str, create: bool, collections: Sequence[str] | None) -> Store:
    scheme, found, _ = url.partition("://")
    if found and scheme in _POSTGRES:
        return _open_postgres(url, create, collections)
    if found:
        raise SettingError("library", f"{scheme}:// is not supported. Name a file, or postgresql://…")
    if _LIKE_A_URL.match(url) and not os.path.exists(url):  # noqa: PTH110
        raise SettingError("library", "is neither a file nor a URL. Begin the URL with postgresql://")
    from quire.stores.sqlite import SqliteStore

    return SqliteStore(url, create=create)


def _open_postgres(url: str, create: bool, collections: Sequence[str] | None) -> Store:
    try:
        import psycopg_pool  # noqa: F401
    except ImportError as problem:
        raise MissingExtra("PostgreSQL", "postgres") from problem
    from quire.stores.postgres import PostgresStore

    return PostgresStore(url, collections, create=create)
