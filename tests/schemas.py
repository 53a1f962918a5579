"""Libraries of before: made by the first scripts alone, or without what a later schema added."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from quire.library import Library
from quire.stores import migrate
from quire.stores.checks import row_check
from quire.stores.postgres import terms
from quire.stores.postgres.compact import compact
from quire.stores.postgres.pieces import unpack
from quire.stores.sqlite import SqliteStore, ids
from quire.stores.sqlite.file import APPLICATION_ID
from tests import postgres
from tests.words import WORDS

_PLAIN_TABLES = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    " AND name NOT LIKE 'words%' AND name NOT LIKE 'sqlite_%' AND name <> 'facts'"
)


def make_schema(url: str, number: int) -> None:
    """Make a library one of an earlier schema: with its scripts alone, and what they have columns for."""
    if url.startswith("postgres"):
        _make_postgres(url, number)
    else:
        _make_sqlite(url, number)


def _make_sqlite(path: str, number: int) -> None:
    words = _words_of(path)
    with closing(sqlite3.connect(":memory:")) as now:
        with closing(sqlite3.connect(path)) as file:
            file.backup(now)
        Path(path).unlink()
        with closing(sqlite3.connect(path)) as old:
            ids.add_key_function(old)
            old.create_function("row_check", -1, row_check, deterministic=True)
            for step, script in migrate.steps("sqlite"):
                old.executescript(script if step <= number else "")
            known = {name for (name,) in now.execute("SELECT name FROM sqlite_schema")}
            for name in sorted(known & {name for (name,) in old.execute(_PLAIN_TABLES)}):
                rows = now.execute(f"SELECT * FROM {name}")
                _fill(old, name, [about[0] for about in rows.description], rows.fetchall())
            old.executemany("INSERT INTO words (rowid, title, trail, body) VALUES (?, ?, ?, ?)", words)
            old.execute("UPDATE facts SET value = '1' WHERE name = 'terms'")
            old.execute(f"PRAGMA user_version = {number}")
            old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            old.commit()


def _words_of(path: str) -> list[tuple[int, str, str, str]]:
    """The terms of all chunks: an index without content cannot give them back."""
    with Library.open(path, config=WORDS) as library:
        store = library.store
        assert isinstance(store, SqliteStore)
        return [words for row in library.documents() for words in store._words_of(row.seq)]


def _fill(db: sqlite3.Connection, table: str, names: list[str], rows: list[Any]) -> None:
    """Insert rows, without the columns that the table does not have."""
    has = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    kept = [place for place, name in enumerate(names) if name in has]
    columns, marks = ", ".join(f'"{names[place]}"' for place in kept), ", ".join("?" * len(kept))
    statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
    db.executemany(statement, [[row[place] for place in kept] for row in rows])


def _make_postgres(url: str, number: int) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SET search_path = quire, public")
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'quire'"
        before = {name: _rows(db, name) for (name,) in db.execute(tables).fetchall()}
        before["documents"] = _with_sources(*before["documents"])
        db.execute("DROP SCHEMA quire CASCADE")
        db.execute("CREATE SCHEMA quire")
        db.execute("CREATE TABLE quire.migrations (number integer PRIMARY KEY, at timestamptz)")
        for step, script in migrate.steps("postgres"):
            if step <= number:
                db.execute(script.encode())
                db.execute("INSERT INTO quire.migrations VALUES (%s, now())", (step,))
        if number >= 8:
            compact(db)
        without = "facts writes migrations grants".split()
        without += ["words", "common_terms"] if number < 8 else []  # schema 8 makes them anew
        found = {name for (name,) in db.execute(tables).fetchall()}.difference(without)
        if number < 13:
            before["words"] = _without_levels(*before["words"])
        for name in sorted(found, key=lambda name: (name != "documents", name != "sources", name)):
            _insert(db, name, *before.get(name, ([], [])))


_Rows = tuple[list[str], list[tuple[Any, ...]]]


def _with_sources(names: list[str], rows: list[tuple[Any, ...]]) -> _Rows:
    """Documents with their bytes as they are, as before schema 8."""
    stored = names.index("pieces")
    return [*names, "source"], [(*row, unpack(bytes(row[stored]))) for row in rows]


def _without_levels(names: list[str], rows: list[tuple[Any, ...]]) -> _Rows:
    """Words as before schema 13: numbers, and 2**31 less and first where they count more than once."""
    at = {name: names.index(name) for name in ("terms", "counts", "places")}
    made = []
    for row in rows:
        keys, counts, places = row[at["terms"]], bytes(row[at["counts"]]), row[at["places"]]
        numbers = [
            one if one >= terms.SIGNS else (one - terms.LEAST_KEY) // terms.LEVEL_COUNT for one in keys
        ]
        often = sorted((one - 2**31, place) for place, one in enumerate(numbers) if counts[place] > 1)
        once = sorted((one, place) for place, one in enumerate(numbers) if counts[place] == 1)
        order = [place for _, place in often + once]
        letters = {ord(terms.letter(place)): terms.letter(now) for now, place in enumerate(order)}
        old = {
            "terms": [one for one, _ in often + once],
            "counts": bytes(counts[place] for _, place in often),
            "places": places.translate(letters),
        }
        made.append(tuple(old.get(name, value) for name, value in zip(names, row, strict=True)))
    return names, made


def _rows(db: psycopg.Connection[Any], table: str) -> _Rows:
    found = db.execute(sql.SQL("SELECT * FROM quire.{}").format(sql.Identifier(table)))
    return [about.name for about in found.description or ()], found.fetchall()


def _insert(db: psycopg.Connection[Any], table: str, names: list[str], rows: list[tuple[Any, ...]]) -> None:
    has = set(_rows(db, table)[0])
    kept = [place for place, name in enumerate(names) if name in has]
    statement = sql.SQL("INSERT INTO quire.{} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(sql.Identifier(names[place]) for place in kept),
        sql.SQL(", ").join(sql.Placeholder() * len(kept)),
    )
    for row in rows:
        db.execute(statement, [row[place] for place in kept])


def execute(url: str, statement: str) -> None:
    """Change a library behind its back."""
    if url.startswith("postgres"):
        postgres.execute(url, statement)
        return
    with closing(sqlite3.connect(url, isolation_level=None)) as db:
        db.execute(statement)
