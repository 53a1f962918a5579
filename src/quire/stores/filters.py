"""Filters, and the SQL conditions they become.

Input: Filters and a dialect. Output: conditions on documents `d` and their values. The SQL that differs
between databases is in their Dialects; the filters and their order are here.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple, Protocol

from quire import later
from quire.address import ALL_BRANCHES
from quire.links import field_of, tag_key
from quire.query import FieldTest

Condition = tuple[str, list[Any]]  # SQL, and the values in it
VALUE_KIND = "CASE WHEN number IS NOT NULL THEN 'number' WHEN date IS NOT NULL THEN 'date' ELSE 'text' END"
_NAMED = 8  # filters that a sentence names


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents a search or a listing looks at."""

    collection: str | None = None
    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # each the beginning of a path, or a pattern with *; any of them
    query_paths: tuple[str, ...] = ()  # and any of these: a query narrows `paths` and never widens them
    not_paths: tuple[str, ...] = ()  # none of them
    tags: tuple[str, ...] = ()  # all of them
    not_tags: tuple[str, ...] = ()  # none of them
    fields: tuple[FieldTest, ...] = ()  # all of them
    documents: tuple[int, ...] = ()  # one of these rows
    since: int | None = None  # milliseconds: last written then or later
    until: int | None = None  # and before then
    not_collections: tuple[str, ...] = ()  # none of them
    collections: tuple[str, ...] | None = None  # one of them, whatever else is asked for; None is any

    @property
    def scope(self) -> Filters:
        """The same collections and kinds, without what narrows them further."""
        within = {"not_collections": self.not_collections, "collections": self.collections}
        return Filters(self.collection, self.kinds, **within)  # type: ignore[arg-type]


class Slice(NamedTuple):
    """Some documents of one collection and kind, by path."""

    collection: str
    kind: str
    path: str  # the path that the page comes after
    has_path: bool  # or begins with
    limit: int  # documents, at most


def described(filters: Filters, kind: str = "") -> str:
    """The sentence that nothing is within some filters, without its subject."""
    names = [
        *([f"collection {filters.collection}"] if filters.collection else []),
        *([f"kind {kind}"] if kind else []),
        *(f"path {path}" for path in (*filters.paths, *filters.query_paths)),
        *(f"not path {path}" for path in filters.not_paths),
        *(f"tag {tag}" for tag in filters.tags),
        *(f"not tag {tag}" for tag in filters.not_tags),
        *(f"{test.name}{test.operator}{test.value}" for test in filters.fields),
        *(["the times"] if (filters.since, filters.until) != (None, None) else []),
    ]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"is within these filters: {', '.join(names[:_NAMED])}{more}." if names else "is there."


class Dialect(Protocol):
    """How one database writes the conditions that differ."""

    placeholder: str  # for one value
    field_table: str  # the table of front-matter fields

    def name(self, collection: str) -> str:
        """The name of a collection as it is stored."""
        ...

    def any_kind(self, kinds: tuple[str, ...]) -> Condition:
        """The document is of one of these kinds."""
        ...

    def any_path(self, paths: tuple[str, ...]) -> Condition:
        """The path of the document matches one of these."""
        ...

    def no_path(self, paths: tuple[str, ...]) -> Condition:
        """The path of the document matches none of these."""
        ...

    def all_tags(self, tags: tuple[str, ...]) -> Condition:
        """The document has all of these tags, which are folded."""
        ...

    def no_tag(self, tags: tuple[str, ...]) -> Condition:
        """The document has none of these tags, which are folded."""
        ...


def conditions_in(filters: Filters, dialect: Dialect) -> tuple[list[str], list[Any]]:
    """SQL conditions on documents `d`, and their values in order."""
    found = list(_conditions(filters, dialect))
    return [sql for sql, _ in found], [value for _, values in found for value in values]


def _conditions(filters: Filters, dialect: Dialect) -> Iterator[Condition]:
    value = dialect.placeholder
    if filters.collection is not None:
        yield _in_collection(dialect.name(filters.collection), value)
    if filters.not_collections:
        values = ", ".join([value] * len(filters.not_collections))
        yield f"d.collection NOT IN ({values})", list(map(dialect.name, filters.not_collections))
    if filters.collections is not None:
        values = ", ".join([value] * len(filters.collections))
        yield f"d.collection IN ({values})", list(map(dialect.name, filters.collections))
    if filters.kinds:
        yield dialect.any_kind(filters.kinds)
    for paths in filter(None, (filters.paths, filters.query_paths)):
        yield dialect.any_path(paths)
    if filters.not_paths:
        yield dialect.no_path(filters.not_paths)
    if filters.tags:
        yield dialect.all_tags(tuple(map(tag_key, filters.tags)))
    if filters.not_tags:
        yield dialect.no_tag(tuple(map(tag_key, filters.not_tags)))
    for test in filters.fields:
        yield _on_field(test, dialect)
    if filters.documents:
        yield f"d.seq IN ({', '.join(map(str, filters.documents))})", []
    if filters.since is not None:
        yield f"d.updated_at >= {value}", [filters.since]
    if filters.until is not None:
        yield f"d.updated_at < {value}", [filters.until]


def _in_collection(name: str, value: str) -> Condition:
    if not name.endswith(ALL_BRANCHES):
        return f"d.collection = {value}", [name]
    after = f"{name.removesuffix(ALL_BRANCHES)}{chr(ord('@') + 1)}"
    return f"(d.collection >= {value} AND d.collection < {value})", [name[:-1], after]


_YEAR = later.pattern(r"\d{4}")
_WELL_FORMED = later.pattern(
    r"\d{4}-\d\d(?:-\d\d)?(?!\d)"
)  # as a date is written, whether there is such a day or not
_LIKE_DATE = later.pattern(r"(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2}))?(?:[t ].*)?")
_APART = later.pattern(r"[,_'’\s]")  # what people write between the digits of a number
_PART_OF_DATE = later.pattern(r"\d{4}-\d\d(?:-\d\d(?:t\d\d:\d\d.{0,13})?)?")


def _on_field(test: FieldTest, dialect: Dialect) -> Condition:
    """A document has a value that meets a condition; for `!=`, it has none that is equal."""
    operator = "=" if test.operator == "!=" else test.operator
    compared, values = _compared(test, operator, dialect.placeholder)
    own = f"f.document = d.seq AND f.name = {dialect.placeholder} AND ({compared})"
    has = f"EXISTS (SELECT 1 FROM {dialect.field_table} AS f WHERE {own})"  # noqa: S608  no value is in it
    return f"NOT {has}" if test.operator == "!=" else has, [test.name, *values]


def _compared(test: FieldTest, operator: str, one: str) -> Condition:
    """Numbers are compared with numbers, dates with dates as far as they are given, other texts as texts."""
    given = field_of(test.name, test.value)
    dated = given.value.replace(" ", "t", 1)
    either = [f"f.value = {one}"] if operator == "=" else []
    values: list[Any] = [given.value] if either else []
    if given.number is not None:
        either.append(f"f.number {operator} {one}")
        values.append(given.number)
    if _YEAR.fullmatch(dated) or _PART_OF_DATE.fullmatch(dated):
        either.append(f"substr(f.date, 1, {len(dated)}) {operator} {one}")
        values.append(dated)
    elif given.number is None and not values:
        either.append(f"f.number IS NULL AND f.date IS NULL AND f.value {operator} {one}")
        values.append(given.value)
    return " OR ".join(either), values


def wrong_value(test: FieldTest, kinds: Container[str]) -> str:
    """What is wrong with a value that the values of a field cannot be compared with; "" if nothing is.

    `kinds` are those of the field's values: number, date, text.
    """
    given = field_of(test.name, test.value)
    is_misspelt = "date" in kinds and _LIKE_DATE.fullmatch(given.value) is not None
    is_equality = test.operator in ("=", "!=")  # a value that is no date may be in front matter as it is
    if (is_equality or "text" in kinds) and not (
        is_misspelt and not (is_equality and _WELL_FORMED.match(given.value))
    ):
        return ""
    if "number" in kinds and given.number is not None:
        return ""
    if "date" in kinds:
        return "" if _is_date(given.value) else f"{test.value!r} is not a date; write {_as_date(given.value)}"
    digits = _APART.sub("", given.value)
    like = digits if field_of("", digits).number is not None else "it as in 12000 or 0.5"
    return f"{test.value!r} is not a number; write {like}"


def _is_date(value: str) -> bool:
    """Whether a value is a date of the calendar, or the year or month of one."""
    dated = value.replace(" ", "t", 1)
    if _YEAR.fullmatch(dated):
        return True
    return _PART_OF_DATE.fullmatch(dated) is not None and _is_day(f"{dated[:10]}-01"[:10])


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _as_date(value: str) -> str:
    """A date as it must be written, if that can be told; else an example."""
    if found := _LIKE_DATE.fullmatch(value):
        written = "-".join(part.zfill(2) for part in found.groups() if part)
        if _is_date(written):
            return written
    return "it as in 2026-03-20"
