"""Links, names and front-matter fields in a PostgreSQL library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from quire.links import ALIASES, Field, link_names, moved_link
from quire.stores.filters import VALUE_KIND, Filters
from quire.stores.postgres.database import CHUNK_ID, Connection, PostgresPart, copy_rows
from quire.stores.postgres.filters import conditions
from quire.stores.rows import LinkRow, NamedDocument, Prepared, link_of, storable

_COLUMNS = ", ".join(f"l.{field.name}" for field in fields(LinkRow))
_LINKS = f"SELECT {_COLUMNS} FROM quire.links AS l"
_LINK_TYPES = ("int8", "int4", "text", "int4", "int4", "int4", *["text"] * 6)
_FIELD_TYPES = ("int8", "text", "text", "float8", "text", "text")
_NAMED = (
    "SELECT n.name, d.seq, d.collection, d.kind, d.path, d.url, 0 FROM quire.names AS n"
    " JOIN quire.documents AS d ON d.seq = n.document WHERE n.name = ANY (%s) UNION ALL"
    " SELECT f.value, d.seq, d.collection, d.kind, d.path, d.url, 1 FROM quire.fields AS f"
    f" JOIN quire.documents AS d ON d.seq = f.document WHERE f.name = '{ALIASES}' AND f.value = ANY (%s)"
)
_ANY_TEXT = "SELECT 1 FROM quire.links WHERE anchor <> '' LIMIT 1"
_SAYING = (
    f"(SELECT {_COLUMNS} FROM unnest(%s::text[]) WITH ORDINALITY AS k (anchor, place) CROSS JOIN LATERAL"
    f" (SELECT {_COLUMNS} FROM quire.links AS l WHERE l.anchor <> '' AND l.anchor = k.anchor AND {{}}"
    " LIMIT %s) AS l ORDER BY k.place LIMIT %s) UNION"
    f" SELECT {_COLUMNS} FROM unnest(%s::bigint[], %s::integer[]) AS k (document, section)"
    " JOIN quire.links AS l ON l.document = k.document AND l.section = k.section WHERE l.anchor <> ''"
)


def _of_documents(alias: str, within: Filters) -> tuple[str, list[Any]]:
    """A condition on a table: its document is within the filters."""
    where, args = conditions(within)
    own = f"SELECT 1 FROM quire.documents AS d WHERE d.seq = {alias}.document AND {where}"
    return f"EXISTS ({own})" if where else "true", args


class PostgresLinks(PostgresPart):
    """Links, names and fields."""

    def links(self, row: int) -> list[LinkRow]:
        """The links of a document, in order."""
        return self._links("WHERE l.document = %s ORDER BY l.number", row)

    def links_to(self, keys: Iterable[str]) -> list[LinkRow]:
        """The links with these keys."""
        return self._links("WHERE l.key = ANY (%s) ORDER BY l.document, l.number", _texts(keys))

    def links_saying(
        self, anchors: Sequence[str], sections: Iterable[tuple[int, int]], within: Filters, limit: int
    ) -> list[LinkRow]:
        """Some of the links that say exactly these terms, and those in sections that say something."""
        if not self.db.once("link texts", lambda: self.db.rows(_ANY_TEXT)):
            return []
        wanted, (own, args) = list(sections), _of_documents("l", within)
        places = [document for document, _ in wanted], [section for _, section in wanted]
        given = _texts(anchors), *args, limit, limit, *places
        return [LinkRow(*one) for one in self.db.rows(_SAYING.format(own), given)]

    def _links(self, where: str, *args: Any) -> list[LinkRow]:
        return [LinkRow(*one) for one in self.db.rows(f"{_LINKS} {where}", args)]

    def first_chunks(self, sections: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
        """The first chunk of each section or of what is under it, and its section."""
        wanted = list(sections)
        rows = self.db.rows(
            f"SELECT s.document, s.position, {CHUNK_ID}, c.section"
            " FROM unnest(%s::bigint[], %s::integer[]) AS k (document, position)"
            " JOIN quire.sections AS s USING (document, position) CROSS JOIN LATERAL"
            " (SELECT * FROM quire.chunks AS f WHERE f.document = s.document AND f.section >= s.position"
            " ORDER BY f.index LIMIT 1) AS c"
            ' WHERE c.start < s."end"',
            ([document for document, _ in wanted], [position for _, position in wanted]),
        )
        return {(document, position): (chunk, section) for document, position, chunk, section in rows}

    def named(self, names: Iterable[str]) -> list[NamedDocument]:
        """The documents that have one of these names in their paths or as an alias."""
        wanted = _texts(names)
        return [NamedDocument(*one) for one in self.db.rows(_NAMED, (wanted, wanted))]

    def names(self, row: int) -> list[str]:
        """The names of a document: those in its path, and its aliases."""
        found = self.db.rows(
            "SELECT name FROM quire.names WHERE document = %s UNION"
            f" SELECT value FROM quire.fields WHERE document = %s AND name = '{ALIASES}'",
            (row, row),
        )
        return [one[0] for one in found]

    def fields(self, row: int) -> list[Field]:
        """The front-matter fields of a document."""
        found = self.db.rows(
            "SELECT name, value, number, date FROM quire.fields WHERE document = %s ORDER BY name, value",
            (row,),
        )
        return [Field(*one) for one in found]

    def has_fields(self, names: Iterable[str], within: Filters) -> set[str]:
        """Those of the names that some document within the filters has as a field."""
        own, args = _of_documents("f", within)
        found = self.db.rows(
            "SELECT name FROM unnest(%s::text[]) AS name"
            f" WHERE EXISTS (SELECT 1 FROM quire.fields AS f WHERE f.name = name.name AND {own})",
            (_texts(names), *args),
        )
        return {one[0] for one in found}

    def has_documents(self, filters: Filters) -> bool:
        """Whether any document is within the filters."""
        where, args = conditions(filters)
        return bool(self.db.rows(f"SELECT 1 FROM quire.documents AS d WHERE {where or 'true'} LIMIT 1", args))

    def field_kinds(self, name: str, within: Filters) -> set[str]:
        """Which kinds of values documents within the filters have in a field: number, date, text."""
        own, args = _of_documents("f", within)
        sql = f"SELECT DISTINCT {VALUE_KIND} FROM quire.fields AS f WHERE f.name = %s AND {own}"
        return {row[0] for row in self.db.rows(sql, (storable(name), *args))}

    def field_names(self, within: Filters) -> list[str]:
        """The names of the fields that documents within the filters have, in order."""
        own, args = _of_documents("f", within)
        rows = self.db.rows(f"SELECT DISTINCT f.name FROM quire.fields AS f WHERE {own} ORDER BY 1", args)
        return [row[0] for row in rows]


def _texts(values: Iterable[str]) -> list[str]:
    return [storable(value) for value in values]


def add_links(db: Connection, documents: Sequence[tuple[int, Prepared]]) -> None:
    """Store the links, names and fields of documents."""
    links = (_link(row, new.collection, link) for row, new in documents for link in new.links)
    copy_rows(db, "links", _LINK_TYPES, links)
    names = ((row, name, new.collection) for row, new in documents for name in link_names(new.path))
    copy_rows(db, "names", ("int8", "text", "text"), names)
    copy_rows(db, "fields", _FIELD_TYPES, (one for row, new in documents for one in _fields(row, new)))


def _link(row: int, collection: str, link: Sequence[Any]) -> tuple[Any, ...]:
    return (row, link[0], collection, *link[1:])


def _fields(row: int, new: Prepared) -> Iterator[tuple[Any, ...]]:
    own = {one[:2]: one for one in new.fields}
    return ((row, *one, new.collection) for one in own.values())


def rename_links(db: Connection, paths: Mapping[int, tuple[str, str]]) -> None:
    """Make the names of documents again, and the keys of their links: of each its collection and new path."""
    rows = list(paths)
    db.execute("DELETE FROM quire.names WHERE document = ANY (%s)", (rows,))
    names = (
        (row, name, collection) for row, (collection, path) in paths.items() for name in link_names(path)
    )
    copy_rows(db, "names", ("int8", "text", "text"), names)
    stored = db.execute(f"{_LINKS} WHERE l.document = ANY (%s)", (rows,)).fetchall()
    db.execute("DELETE FROM quire.links WHERE document = ANY (%s)", (rows,))
    links = [(one.document, link_of(one)) for one in (LinkRow(*row) for row in stored)]
    moved = (_link(row, paths[row][0], moved_link(link, paths[row][1])) for row, link in links)
    copy_rows(db, "links", _LINK_TYPES, moved)
