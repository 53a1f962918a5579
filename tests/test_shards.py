"""Whether the tables of a PostgreSQL library can be spread over servers by document, as Citus does it.

No Citus runs here: these tests hold the schema and the statements to what Citus documents, and docs/team.md
to what they find.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from quire.config import DEFAULT, override
from quire.library import Library
from quire.stores.postgres import PostgresStore
from tests import postgres

pytestmark = postgres.needs_postgres

STATIC = override(DEFAULT, {"embed": {"model": "static"}})
TEAM = Path(__file__).parents[1] / "docs" / "team.md"
# What belongs to no document: each server would have a copy.
EVERYWHERE = frozenset(
    "common_terms facts grants migrations models remembered sources vocabulary writes".split()
)
SPREAD = frozenset(
    "chunks documents embedded embedding_failures fetches fields links members names originals sections tags"
    " vectors versions words".split()
)
# Citus refuses these if they concern more than one shard.
REFUSED = {
    "recursion": re.compile(r"WITH RECURSIVE"),
    "row locks": re.compile(r"FOR (NO KEY )?UPDATE"),
    "a deletion inside another statement": re.compile(r"WITH gone AS \(DELETE"),
}
# What is cut inside a statement is computed on all shards and gathered, before the rest runs on them again.
GATHERED = re.compile(r"(LIMIT|OFFSET) (%s|\d+)( \+ 1)?\)|MATERIALIZED|OVER \(")
BY_DOCUMENT = re.compile(
    r"USING \(document|\.document(, \w+\.index\))? = |\(\w+\.document, \w+\.index\) = "
    r"|document = ANY|document IN|= \w+\.document\b"
)


@pytest.fixture
def url() -> Iterator[str]:
    made = postgres.borrow()
    yield made
    postgres.give_back(made)


def tables(url: str) -> dict[str, list[str]]:
    """The tables of a library with their columns."""
    found: dict[str, list[str]] = {}
    rows = postgres.execute(
        url,
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'quire'"
        " ORDER BY table_name, ordinal_position",
    )
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found


def test_every_table_could_be_spread_by_document(url: str) -> None:
    """DESIGN §10: primary keys begin with the document id, and no sequence spans shards."""
    with Library.open(url, create=True, config=STATIC):
        pass
    columns = tables(url)
    assert columns.keys() == SPREAD | EVERYWHERE
    spread = {table: "seq" if table == "documents" else "document" for table in SPREAD}
    assert all(column in columns[table] for table, column in spread.items())
    unique = postgres.execute(
        url,
        "SELECT c.relname, a.attname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid"
        " JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
        " WHERE i.indisunique AND c.relnamespace = 'quire'::regnamespace",
    )
    assert {(table, column) for table, column in unique if table in spread} == set(spread.items())
    sequences = postgres.execute(
        url, "SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'quire'::regnamespace"
    )
    assert sequences == [("models_id_seq",)]  # each model is added once, by the owner
    foreign = postgres.execute(
        url,
        "SELECT DISTINCT r.relname, a.attname FROM pg_constraint AS f"
        " JOIN pg_class AS r ON r.oid = f.confrelid"
        " JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1]"
        " WHERE f.contype = 'f' AND f.connamespace = 'quire'::regnamespace",
    )
    assert set(foreign) == {("documents", "document"), ("models", "model"), ("sources", "source")}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The statements that are sent from now on, by the method of the store that sends them."""
    by_method: dict[str, set[str]] = defaultdict(set)
    execute = psycopg.Cursor.execute

    def recorded(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        by_method[_method()].add(query if isinstance(query, str) else str(query))
        return execute(cursor, query, *args, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", recorded)
    return by_method


def _method() -> str:
    """The method of a store that is running."""
    frame, found = sys._getframe(2), ""
    while frame := frame.f_back:  # type: ignore[assignment]
        name = frame.f_code.co_name
        if "stores/postgres" in frame.f_code.co_filename and hasattr(PostgresStore, name) and name[0] != "_":
            found = name
    return found


def way_of(statements: set[str]) -> str:
    """How shards would answer: pushed down, gathered, or refused and why."""
    used = [one for one in statements if _spread_tables(one)]
    refused = [why for why, pattern in REFUSED.items() if any(map(pattern.search, used))]
    if refused:
        return f"refused: {', '.join(refused)}"
    return "gathered" if any(map(GATHERED.search, used)) else "pushed down" if used else ""


def _spread_tables(statement: str) -> list[str]:
    return [table for table in re.findall(r"\bquire\.(\w+)", statement) if table in SPREAD]


def test_the_docs_say_how_shards_would_answer(url: str, sent: dict[str, set[str]]) -> None:
    """docs/team.md names each method that adding and searching use, and what Citus would do with it."""
    with Library.open(url, create=True, config=STATIC) as library:
        for text in ("# One\n\nRed apples.\n\n## Part\n\nGreen [pears](b.md).\n", "# One\n\nBlue plums.\n"):
            library.add(content=text, path="a.md", collection="fruit")
            library.add(content="# Two\n\nMore red apples.\n", path="b.md", collection="fruit")
        assert library.search("red apples and pears").results
        assert library.search("red applse", collection="fruit").results
    found = {method: way_of(statements) for method, statements in sent.items() if method}
    found = {method: way for method, way in found.items() if way}
    told = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|$", TEAM.read_text("utf-8"), re.MULTILINE))
    assert told == found
    for statement in set().union(*(sent[method] for method in found)):
        if len(set(_spread_tables(statement))) > 1:  # tables meet by their document, on one shard
            assert BY_DOCUMENT.search(statement), statement
