"""Which documents of a SQLite library filters leave."""

from __future__ import annotations

from quire.stores.filters import Filters
from quire.stores.sqlite.database import SqliteDatabase
from quire.stores.sqlite.filters import conditions

_KEPT = 8  # filters whose documents are kept


class SqliteWithin(SqliteDatabase):
    """Filters as documents."""

    def _forget(self) -> None:
        super()._forget()
        self._left: tuple[int, dict[Filters, list[int]]] = (-1, {})  # with their generation

    def _within(self, filters: Filters) -> list[int] | None:
        """The documents that filters leave; None for all. They are kept while nothing is written."""
        where, args = conditions(filters)
        if not where:
            return None
        generation = self.generation()
        if self._left[0] != generation or len(self._left[1]) >= _KEPT:
            self._left = generation, {}
        if filters not in self._left[1]:
            rows = self.db.execute(f"SELECT seq FROM documents AS d WHERE {' AND '.join(where)}", args)
            self._left[1][filters] = [row[0] for row in rows]
        return self._left[1][filters]
