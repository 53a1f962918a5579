"""Filters as conditions of SQLite."""

from __future__ import annotations

from typing import Any

from quire.stores import filters as shared
from quire.stores.filters import Condition, Filters

# A tag is also the tags within it: `a` is `a/b`, too.
_HAS_TAG = (
    "EXISTS (SELECT 1 FROM tags AS t WHERE t.document = d.seq AND (t.folded = column1"
    " OR substr(t.folded, 1, length(column1) + 1) = column1 || '/'))"
)


def conditions(filters: Filters) -> tuple[list[str], list[Any]]:
    """SQL conditions on documents `d`, and their values."""
    return shared.conditions_in(filters, _Sqlite())


class _Sqlite:
    """The conditions that SQLite writes in its own way."""

    placeholder, field_table = "?", "fields"

    def name(self, collection: str) -> str:
        return collection

    def any_kind(self, kinds: tuple[str, ...]) -> Condition:
        return f"d.kind IN ({', '.join('?' * len(kinds))})", list(kinds)

    def any_path(self, paths: tuple[str, ...]) -> Condition:
        # Not joined by OR: SQLite takes expressions of at most 1,000 levels.
        matches = f"EXISTS (SELECT 1 FROM (VALUES {_rows(paths)}) WHERE d.path GLOB column1)"
        return matches, [_glob(path) for path in paths]

    def no_path(self, paths: tuple[str, ...]) -> Condition:
        return " AND ".join(["d.path NOT GLOB ?"] * len(paths)), [_glob(path) for path in paths]

    def all_tags(self, tags: tuple[str, ...]) -> Condition:
        return f"NOT EXISTS (SELECT 1 FROM (VALUES {_rows(tags)}) WHERE NOT {_HAS_TAG})", list(tags)

    def no_tag(self, tags: tuple[str, ...]) -> Condition:
        return f"NOT EXISTS (SELECT 1 FROM (VALUES {_rows(tags)}) WHERE {_HAS_TAG})", list(tags)


def _rows(values: tuple[str, ...]) -> str:
    return ", ".join(["(?)"] * len(values))


def _glob(path: str) -> str:
    """The beginning of a path as a pattern; only * means something in it."""
    escaped = path.replace("[", "[[]").replace("?", "[?]")
    return escaped if "*" in path else f"{escaped}*"
