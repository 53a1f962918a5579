"""What a PostgreSQL library knows of the originals of its documents."""

from __future__ import annotations

from collections.abc import Iterable

from quire.location import Places
from quire.stores.postgres.database import PostgresPart


class PostgresOriginals(PostgresPart):
    """Checksums of originals, and where the parts of documents are in them."""

    def places(self, rows: Iterable[int]) -> dict[int, Places]:
        """Where the parts of documents are in their originals. Documents without places are left out."""
        wanted = "SELECT document, places FROM quire.originals WHERE places NOTNULL AND document = ANY (%s)"
        return {row: Places.unpack(packed) for row, packed in self.db.rows(wanted, [list(rows)])}

    def original_checksums(self, rows: Iterable[int]) -> dict[int, str]:
        """The checksums of what documents were converted from. Documents that are originals are left out."""
        wanted = "SELECT document, checksum FROM quire.originals WHERE checksum <> '' AND document = ANY (%s)"
        return dict(self.db.rows(wanted, [list(rows)]))
