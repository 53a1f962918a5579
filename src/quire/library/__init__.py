"""Library: the Python API, and all that surfaces call.

with Library.open("docs.db", create=True) as library:
    library.add("./docs")
    for result in library.search("how do I install it").results:
        print(result.address, result.snippet)
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from quire import later
from quire.errors import LibraryError
from quire.library.backups import Backups
from quire.library.evaluating import Evaluating
from quire.library.indexing import PROMOTIONS, Indexing
from quire.library.keys import Keys
from quire.library.maps import Maps
from quire.library.memories import Memories
from quire.progress import Progress

if TYPE_CHECKING:
    from quire import copying
    from quire.copying import Copied
else:
    copying = later.module("quire.copying")

__all__ = ["PROMOTIONS", "Library"]


class Library(Indexing, Memories, Evaluating, Maps, Backups, Keys):
    """One index of documents: a SQLite file, or a PostgreSQL database."""

    def copy(self, to: str | os.PathLike[str], *, progress: Progress | None = None) -> Copied:
        """Copy everything to another library, created if needed. What it already has is not copied again.

        Raises LibraryError if the copy differs from the original.
        """
        self._adopt()
        opened = Library.open(to, create=True, config=self.config)
        with opened as target, self.store.reading(), target.store.writing():
            return copying.copy(self.store, target.store, target.url, progress)

    def grant(self, role: str, collections: Iterable[str]) -> None:
        """Let a role of a PostgreSQL server see and write these collections and no others."""
        grant = getattr(self.store, "grant", None)
        if grant is None:
            raise LibraryError(self.url, "is a file: whoever can read it sees all. Roles need PostgreSQL")
        grant(role, collections)
