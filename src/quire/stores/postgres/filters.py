"""Filters as conditions of PostgreSQL."""

from __future__ import annotations

import re
from typing import Any

from quire.stores import filters as shared
from quire.stores.filters import Condition, Filters
from quire.stores.rows import storable

# A tag is also the tags within it: `a` is `a/b`, too.
_HAS_TAG = (
    "EXISTS (SELECT 1 FROM quire.tags AS t WHERE t.document = d.seq AND (t.folded = wanted"
    " OR starts_with(t.folded, wanted || '/')))"
)


def conditions(filters: Filters) -> tuple[str, list[Any]]:
    """A condition on documents `d`, "" for none, and its values."""
    where, args = shared.conditions_in(filters, _Postgres())
    return " AND ".join(where), args


class _Postgres:
    """The conditions that PostgreSQL writes in its own way."""

    placeholder, field_table = "%s", "quire.fields"

    def name(self, collection: str) -> str:
        return storable(collection)

    def any_kind(self, kinds: tuple[str, ...]) -> Condition:
        return "d.kind = ANY (%s)", [list(kinds)]

    def any_path(self, paths: tuple[str, ...]) -> Condition:
        return "d.path LIKE ANY (%s)", [[_pattern(path) for path in paths]]

    def no_path(self, paths: tuple[str, ...]) -> Condition:
        return "NOT d.path LIKE ANY (%s)", [[_pattern(path) for path in paths]]

    def all_tags(self, tags: tuple[str, ...]) -> Condition:
        # In one condition: the planner takes minutes for a thousand.
        missing = f"SELECT 1 FROM unnest(%s::text[]) AS wanted WHERE NOT {_HAS_TAG}"
        return f"NOT EXISTS ({missing})", [[storable(tag) for tag in tags]]

    def no_tag(self, tags: tuple[str, ...]) -> Condition:
        found = f"SELECT 1 FROM unnest(%s::text[]) AS wanted WHERE {_HAS_TAG}"
        return f"NOT EXISTS ({found})", [[storable(tag) for tag in tags]]


def _pattern(path: str) -> str:
    """The beginning of a path as a pattern; only * means something in it."""
    escaped = re.sub(r"([\\%_])", r"\\\1", storable(path)).replace("*", "%")
    return escaped if "*" in path else f"{escaped}%"
