"""Links, names and front-matter fields in a SQLite library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from quire.links import ALIASES, Field, link_names, moved_link
from quire.stores.checks import row_check
from quire.stores.filters import VALUE_KIND, Filters
from quire.stores.rows import LinkRow, NamedDocument, Prepared, link_of
from quire.stores.sqlite.filters import conditions
from quire.stores.sqlite.versions import SqliteVersions

LINK_COLUMNS = ", ".join(field.name for field in fields(LinkRow))
_LINKS = f"SELECT {LINK_COLUMNS}, crc FROM links"
_SAYING = (  # a cross join keeps the order of the terms
    f"SELECT {', '.join(f'links.{field.name}' for field in fields(LinkRow))}, crc FROM json_each(?) AS said"
    " CROSS JOIN links ON anchor = said.value WHERE anchor <> ''"
)
_ADD_LINK = f"INSERT INTO links VALUES (?{', ?' * len(fields(LinkRow))})"
_VALUES = "(SELECT value FROM json_each(?))"
_NAMED = (
    "SELECT n.name, d.seq, d.collection, d.kind, d.path, d.url, ? FROM names AS n"
    f" JOIN documents AS d ON d.seq = n.document WHERE n.name IN {_VALUES} UNION ALL"
    " SELECT f.value, d.seq, d.collection, d.kind, d.path, d.url, ? FROM fields AS f"
    f" JOIN documents AS d ON d.seq = f.document WHERE f.name = '{ALIASES}' AND f.value IN {_VALUES}"
)


def _of_documents(table: str, within: Filters) -> tuple[str, list[Any]]:
    """One more condition on a table: its document is within the filters. "" if there are none."""
    where, args = conditions(within)
    own = f"SELECT 1 FROM documents AS d WHERE d.seq = {table}.document AND {' AND '.join(where)}"
    return f" AND EXISTS ({own})" if where else "", args


class SqliteLinks(SqliteVersions):
    """Links, names and fields."""

    def links(self, row: int) -> list[LinkRow]:
        """The links of a document, in order."""
        found = self.db.execute(f"{_LINKS} WHERE document = ? ORDER BY number", (row,))
        return [LinkRow(*self._checked(one, row)) for one in found]

    def links_to(self, keys: Iterable[str]) -> list[LinkRow]:
        """The links with these keys."""
        found = self.db.execute(f"{_LINKS} WHERE key IN {_VALUES}", (json.dumps(list(keys)),))
        return [LinkRow(*self._checked(one, one[0])) for one in found]

    def links_saying(
        self, anchors: Sequence[str], sections: Iterable[tuple[int, int]], within: Filters, limit: int
    ) -> list[LinkRow]:
        """Some of the links that say exactly these terms, and those in sections that say something."""
        own, args = _of_documents("links", within)
        sql = f"{_SAYING}{own} LIMIT ?"
        found = self.db.execute(sql, (json.dumps(list(anchors)), *args, limit)).fetchall()
        wanted = set(sections)
        there = self._in(f"{_LINKS} WHERE anchor <> '' AND document", {row for row, _ in wanted})
        found += (one for one in there if (one[0], one[2]) in wanted)
        return [LinkRow(*one[:-1]) for one in found]  # a damaged one only ranks: a search does without it

    def first_chunks(self, sections: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
        """The first chunk of each section or of what is under it, and its section."""
        rows = self.db.execute(
            "SELECT s.document, s.position, c.id, c.section FROM json_each(?) AS k JOIN sections AS s"
            " ON s.document = k.value ->> 0 AND s.position = k.value ->> 1 JOIN chunks AS c ON c.id ="
            " (SELECT min(id) FROM chunks AS f WHERE f.document = s.document AND f.section >= s.position)"
            ' WHERE c.start < s."end"',
            (json.dumps(list(sections)),),
        )
        return {(document, position): (chunk, section) for document, position, chunk, section in rows}

    def named(self, names: Iterable[str]) -> list[NamedDocument]:
        """The documents that have one of these names in their paths or as an alias."""
        wanted = json.dumps(list(names))
        return [NamedDocument(*one) for one in self.db.execute(_NAMED, (0, wanted, 1, wanted))]

    def names(self, row: int) -> list[str]:
        """The names of a document: those in its path, and its aliases."""
        found = self.db.execute(
            "SELECT name FROM names WHERE document = ?1 UNION SELECT value FROM fields"
            f" WHERE document = ?1 AND name = '{ALIASES}'",
            (row,),
        )
        return [one[0] for one in found]

    def fields(self, row: int) -> list[Field]:
        """The front-matter fields of a document."""
        found = self.db.execute(
            "SELECT name, value, number, date FROM fields WHERE document = ? ORDER BY name, value", (row,)
        )
        return [Field(*one) for one in found]

    def has_fields(self, names: Iterable[str], within: Filters) -> set[str]:
        """Those of the names that some document within the filters has as a field."""
        own, args = _of_documents("fields", within)
        sql = f"SELECT 1 FROM fields WHERE name = ?{own} LIMIT 1"
        return {name for name in names if self.db.execute(sql, (name, *args)).fetchone()}

    def has_documents(self, filters: Filters) -> bool:
        """Whether any document is within the filters."""
        where, args = conditions(filters)
        sql = f"SELECT 1 FROM documents AS d WHERE {' AND '.join(where) or 'true'} LIMIT 1"
        return self.db.execute(sql, args).fetchone() is not None

    def field_kinds(self, name: str, within: Filters) -> set[str]:
        """Which kinds of values documents within the filters have in a field: number, date, text."""
        own, args = _of_documents("fields", within)
        sql = f"SELECT DISTINCT {VALUE_KIND} FROM fields WHERE name = ?{own}"
        return {row[0] for row in self.db.execute(sql, (name, *args))}

    def field_names(self, within: Filters) -> list[str]:
        """The names of the fields that documents within the filters have, in order."""
        own, args = _of_documents("fields", within)
        rows = self.db.execute(f"SELECT DISTINCT name FROM fields WHERE true{own} ORDER BY name", args)
        return [row[0] for row in rows]

    def _add_links(self, row: int, new: Prepared) -> None:
        if new.links:
            checked = ((row, *link, row_check(row, *link)) for link in new.links)
            self.db.executemany(_ADD_LINK, checked)
        self._add_names(row, new.path)
        if new.fields:
            self.db.executemany(
                "INSERT OR IGNORE INTO fields VALUES (?, ?, ?, ?, ?)", ((row, *one) for one in new.fields)
            )

    def _add_names(self, row: int, path: str) -> None:
        self.db.executemany("INSERT INTO names VALUES (?, ?)", [(row, name) for name in link_names(path)])

    def _rename_links(self, row: int, path: str) -> None:
        """Make the names of a document again, and the keys of its links, because it has another path."""
        self.db.execute("DELETE FROM names WHERE document = ?", (row,))
        self._add_names(row, path)
        links = [(row, *moved_link(link_of(one), path)) for one in self.links(row)]
        self.db.execute("DELETE FROM links WHERE document = ?", (row,))
        self.db.executemany(_ADD_LINK, ((*one, row_check(*one)) for one in links))
