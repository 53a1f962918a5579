"""Where a library keeps what it knows. `open` picks the store by the library's URL."""

from __future__ import annotations

from quire.errors import SettingError
from quire.stores.base import Store


def open_store(url: str, *, create: bool = False) -> Store:
    """The store at a path or URL. Raises NoResults if there is none and it is not to be made."""
    if "://" in url:
        raise SettingError("library", f"{url.partition(':')[0]}:// is not supported yet; name a file")
    from quire.stores.sqlite import SqliteStore

    return SqliteStore(url, create=create)
