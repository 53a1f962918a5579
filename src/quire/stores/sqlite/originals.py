"""What a SQLite library knows of the originals of its documents."""

from __future__ import annotations

from collections.abc import Iterable

from quire.location import Places
from quire.stores.rows import Prepared
from quire.stores.sqlite.links import SqliteLinks


class SqliteOriginals(SqliteLinks):
    """Checksums of originals, and where the parts of documents are in them."""

    def _add_original(self, row: int, new: Prepared) -> None:
        """Store what is known of a document's original, in the transaction of its text."""
        if new.original or new.places:
            places = new.places.pack() if new.places else None
            self.db.execute("INSERT INTO originals VALUES (?, ?, ?)", (row, new.original, places))

    def places(self, rows: Iterable[int]) -> dict[int, Places]:
        """Where the parts of documents are in their originals. Documents without places are left out."""
        found = self._in("SELECT document, places FROM originals WHERE places NOTNULL AND document", rows)
        return {row: self._unpacked(row, packed) for row, packed in found}

    def _unpacked(self, row: int, packed: bytes) -> Places:
        try:
            return Places.unpack(packed)
        except (ValueError, TypeError):
            raise self._damaged(row) from None

    def original_checksums(self, rows: Iterable[int]) -> dict[int, str]:
        """The checksums of what documents were converted from. Documents that are originals are left out."""
        found = self._in("SELECT document, checksum FROM originals WHERE checksum <> '' AND document", rows)
        return dict(found)
