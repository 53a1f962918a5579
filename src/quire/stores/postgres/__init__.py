"""A library in a PostgreSQL database with pgvector: for a team.

Policies in the database keep roles and scoped connections to their collections, whatever statement they
send.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from psycopg import sql

from quire.embed.base import STATIC, STATIC_DIMENSION
from quire.stores.base import Counts, Optimized
from quire.stores.checks import VERIFIED_BYTES
from quire.stores.filters import Filters
from quire.stores.postgres.database import Connection, PostgresDatabase, next_generation
from quire.stores.postgres.filters import conditions
from quire.stores.postgres.ids import count_wrong_keys
from quire.stores.postgres.keys import PostgresKeys
from quire.stores.postgres.schema import CHECKS, tidy
from quire.stores.postgres.sources import PostgresSources
from quire.stores.postgres.terms import LEAST_KEY, LEVEL_COUNT, NUMBERS
from quire.stores.rows import DocumentRow, active_model

__all__ = ["PostgresStore"]

_FIRST_KEY = f"(v.number % {NUMBERS}) * {LEVEL_COUNT}::bigint + {LEAST_KEY}"
_SIZE = (  # with indexes, and what is stored out of line
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class"
    " WHERE relnamespace = 'quire'::regnamespace AND relkind = 'r'"
)
_UNUSED_TERMS = (
    "DELETE FROM quire.vocabulary AS v WHERE NOT EXISTS (SELECT 1 FROM quire.words AS w"
    " WHERE w.collection = v.collection AND w.terms && ARRAY(SELECT one::integer"
    f" FROM generate_series({_FIRST_KEY}, {_FIRST_KEY} + {LEVEL_COUNT - 1}) AS one))"
)
_HELD = (
    *("documents", "sections", "chunks", "words"),
    *("vectors", "embedded", "remembered", "embedding_failures", "fetches", "tags", "sources", "members"),
    *("vocabulary", "versions", "originals", "links", "names", "fields"),
)


class PostgresStore(PostgresSources, PostgresKeys):
    """One open database, used by one thread at a time.

    `tenant` names collections: it sees and writes no others. `?collections=a,b` in the URL does the same.
    """

    is_shared = True

    def __init__(self, url: str, tenant: Sequence[str] | None = None, *, create: bool = False) -> None:
        super().__init__(PostgresDatabase(url, tenant, create=create))

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see one snapshot. One inside another is part of it."""
        with self.db.reading():
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All writes inside go into one library. Raises LibraryError if another takes its place."""
        with self.db.bound():
            yield

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Writes inside are tried again for at most so long. Then they raise LibraryError."""
        before, self.db.patience = self.db.patience, seconds
        try:
            yield
        finally:
            self.db.patience = before

    def versions(self) -> str:
        """The versions of the database and of the schema, in words."""
        number = "(SELECT max(number) FROM quire.migrations)"
        ((server, schema),) = self.db.rows(f"SELECT current_setting('server_version'), {number}")
        vector = ".".join(map(str, self.db.vector_version))
        return f"PostgreSQL {server}, pgvector {vector}, schema {schema}"

    def purge(self) -> list[str]:
        """Erase what removed documents left behind; returns where it still is, in sentences."""

        def action(db: Connection) -> None:
            db.execute("DELETE FROM quire.remembered")
            db.execute(_UNUSED_TERMS)
            next_generation(db)

        self.db.write(action)
        self.db.vacuum()
        return ["The server may still have it in its own log and in its backups. Ask whoever runs it."]

    def optimize(self, *, idle: bool = False) -> Optimized:
        """Have the server vacuum and analyze the library's tables. By itself it does so when it is idle."""
        before = self._size_on_disk()
        problem = "" if idle else self.db.vacuum(analyze=True)
        return Optimized(before, self._size_on_disk(), (problem,) if problem else ())

    def _size_on_disk(self) -> int:
        return int(self.db.value(_SIZE))

    def settle(self) -> None:
        """Finish what the server puts off after writes, as only the owner can."""
        if self.db.is_owner:
            self.db.write(tidy)

    def library_id(self) -> str:
        """The random id of the library, which its backups share."""
        return self.db.library_id()

    def version(self) -> str:
        """A string that changes with every write, and that no other or restored library has."""
        return self.db.version()

    def generation(self) -> int:
        """A number that grows with every write."""
        return self.db.generation()

    def grant(self, role: str, collections: Iterable[str]) -> None:
        """Let a role of the server see and write these collections and no others; none revokes all."""

        def action(db: Connection) -> None:
            who = sql.Identifier(role)
            held = sql.SQL(", ").join(sql.Identifier("quire", table) for table in _HELD)
            for allowed in (
                "USAGE ON SCHEMA quire",
                "SELECT ON quire.migrations, quire.models, quire.facts, quire.writes",
                "UPDATE ON quire.writes",
            ):
                db.execute(sql.SQL("GRANT {} TO {}").format(sql.SQL(allowed), who))
            db.execute(sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}").format(held, who))
            db.execute("DELETE FROM quire.grants WHERE role = %s", (role,))
            db.execute(
                "INSERT INTO quire.grants SELECT %s, name FROM unnest(%s::text[]) AS name",
                (role, list(dict.fromkeys(collections))),
            )
            self.vectors.make_known(db, STATIC, STATIC_DIMENSION)  # which only the owner can do
            next_generation(db)  # what the role found before is no longer what it sees

        self.db.write(action)

    def intact(self, rows: Iterable[DocumentRow]) -> dict[int, bool]:
        """Whether the texts of documents are those that were written. The server compares them."""
        statement = "SELECT seq, sha256(pieces) = pieces_sum FROM quire.documents WHERE seq = ANY (%s)"
        room, some = VERIFIED_BYTES, list[int]()
        for row in rows:
            room -= row.length
            some += [row.seq] if room >= 0 else []
        key = "intact", tuple(sorted(some))
        return dict(self.db.once(key, lambda: self.db.rows(statement, [some]) if some else []))

    def kinds(self) -> frozenset[str]:
        """The kinds of documents in the library."""
        statement = "SELECT DISTINCT kind FROM quire.documents"
        return self.db.once("kinds", lambda: frozenset(row[0] for row in self.db.rows(statement)))

    def collections(self) -> list[str]:
        """The names of the collections, each found by a step along the index."""
        statement = (
            "WITH RECURSIVE names (name) AS (SELECT min(collection) FROM quire.documents UNION ALL"
            " SELECT (SELECT min(collection) FROM quire.documents WHERE collection > name) FROM names"
            " WHERE name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL"
        )
        return list(self.db.once("collections", lambda: [row[0] for row in self.db.rows(statement)]))

    def counts(self) -> Counts:
        """What is in the library."""
        return self.db.once("counts", self._counts)

    def _counts(self) -> Counts:
        rows = self.db.rows(
            "SELECT collection, count(*), sum(section_count), sum(chunk_count), sum(length)"
            " FROM quire.documents GROUP BY 1 ORDER BY 1"
        )
        documents, sections, chunks, size = (sum(int(row[at]) for row in rows) for at in range(1, 5))
        models = self.models()
        active, instant = active_model(models), active_model(models, instant=True)
        done, name = (self._count_embedded(active), active.name) if active else (0, "")
        vectors = done, name, self._count_embedded(instant) if instant else 0
        return Counts(documents, sections, chunks, size, {row[0]: row[1] for row in rows}, *vectors)

    def count_sections(self, filters: Filters) -> int:
        """How many sections the documents within filters have."""
        where, args = conditions(filters)
        counted = f"SELECT coalesce(sum(section_count), 0) FROM quire.documents AS d WHERE {where or 'true'}"
        return int(self.db.value(counted, *args))

    def lease(self, name: str) -> tuple[str, int]:
        """What is stored of a lease, "" if nothing is, and the time of the server in milliseconds."""
        stored = "coalesce((SELECT value FROM quire.facts WHERE name = %s), '')"
        now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        ((value, time),) = self.db.rows(f"SELECT {stored}, {now}", (f"lease:{name}",))
        return value, time

    def swap_lease(self, name: str, old: str, new: str) -> bool:
        """Replace the text of a lease, "" for none, if it is still the old one; returns whether it was.

        Only the owner's are stored: other roles may not write that table.
        """
        held = f"lease:{name}"

        def action(db: Connection) -> bool:
            if not old:
                done = db.execute(
                    "INSERT INTO quire.facts VALUES (%s, %s) ON CONFLICT DO NOTHING", (held, new)
                )
            elif new:
                change = "UPDATE quire.facts SET value = %s WHERE (name, value) = (%s, %s)"
                done = db.execute(change, (new, held, old))
            else:
                done = db.execute("DELETE FROM quire.facts WHERE (name, value) = (%s, %s)", (held, old))
            return done.rowcount == 1

        return self.db.is_scoped or self.db.write(action)

    def check(self) -> list[str]:
        """Problems with the library; empty if there are none."""
        with self.db.reading() as db:
            found = {problem: self.db.value(query) for problem, query in CHECKS.items()}
            found["ids that lead nowhere"] = count_wrong_keys(db)
            return [f"{problem}: {count:,}" for problem, count in found.items() if count]
