"""Numbered migrations: the scripts in `sql/sqlite` and `sql/postgres`, and the newest number of each.

A released step never changes: a library stores the number of its last step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("sql")


@cache
def steps(dialect: str) -> tuple[tuple[int, str], ...]:
    """The numbered scripts of a database, in order."""
    return tuple((number, file.read_text("utf-8")) for number, file in _scripts(dialect))


def newest(dialect: str) -> int:
    """The number of the last step."""
    return _scripts(dialect)[-1][0]


@cache
def _scripts(dialect: str) -> list[tuple[int, Path]]:
    return sorted((int(file.name[:3]), file) for file in (_FOLDER / dialect).glob("*.sql"))


def too_new(number: int, dialect: str) -> str | None:
    """The problem with a library that a newer Quire wrote; None if this one can use it."""
    if number <= newest(dialect):
        return None
    return (
        f"was written by a newer Quire (schema {number}, this one knows {newest(dialect)}). "
        "It was left as it is; install a newer Quire."
    )


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one at a time: sqlite3's executescript() would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
