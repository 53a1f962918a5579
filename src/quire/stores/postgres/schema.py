"""The schema of a PostgreSQL library: bringing its tables up to date, and checking what they hold.

Always: one process at a time changes the schema; nothing outside the schema `quire` is touched.
"""

from __future__ import annotations

from typing import Any

import psycopg

from quire.errors import LibraryError, NoResults
from quire.links import tag_key
from quire.stores import migrate
from quire.stores.postgres.ids import remake_all_keys

Connection = psycopg.Connection[tuple[Any, ...]]

MIN_SERVER = 150_000
MIN_VECTOR = (0, 7)
_LOCK = 0x51756972  # "Quir": its holder may change the schema
_NO_VECTOR = (
    "has no pgvector, which Quire needs. Whoever runs the server installs it, and then types in this"
    " database: CREATE EXTENSION vector"
)
# Whether this role owns the library, where its names are, and the type and version of pgvector.
ABOUT = """
SELECT pg_has_role(n.nspowner, 'USAGE'), 'quire, ' || quote_ident(e.nspname), t.oid, v.extversion
FROM pg_namespace AS n, pg_extension AS v JOIN pg_namespace AS e ON e.oid = v.extnamespace
JOIN pg_type AS t ON t.typname = 'halfvec' AND t.typnamespace = e.oid
WHERE n.nspname = 'quire' AND v.extname = 'vector'
"""


def _compact(db: Connection) -> None:
    from quire.stores.postgres.compact import compact  # it uses what uses this file

    compact(db)


def _add_levels(db: Connection) -> None:
    from quire.stores.postgres.keyed import add_levels  # it uses what uses this file

    add_levels(db)


def _fold_tags(db: Connection) -> None:
    tags = [row[0] for row in db.execute("SELECT DISTINCT tag FROM quire.tags").fetchall()]
    db.execute(
        "UPDATE quire.tags AS t SET folded = n.folded FROM unnest(%s::text[], %s::text[]) AS n (tag, folded)"
        " WHERE t.tag = n.tag",
        (tags, [tag_key(tag) for tag in tags]),
    )


# What comes after a script, because SQL cannot do it.
_PYTHON_STEPS = {6: remake_all_keys, 8: _compact, 12: _fold_tags, 13: _add_levels}


class Schema:
    """The tables of a library. One process at a time brings them up to date."""

    def __init__(self, db: Connection, name: str) -> None:
        self.db, self.name = db, name

    def bring_up(self, create: bool) -> None:
        """Create or upgrade the library. Raises NoResults if there is none and `create` is not set."""
        if self._applied() is None and not create:
            raise NoResults(
                f"No library at {self.name}. Make one with: quire add ./docs",
                missing="library",
                name=self.name,
            )
        if self._applied() != migrate.newest("postgres"):
            with self.db.transaction():
                self.db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                self._migrate(self._applied() or 0)  # another process may have been quicker
        if problem := wrong_version(self.db.info.server_version, self._vector() or "0"):
            raise LibraryError(self.name, problem)

    def _applied(self) -> int | None:
        """The number of the last script that was run; None if there is no library."""
        if not self._value("SELECT 1 FROM pg_namespace WHERE nspname = 'quire'"):
            return None
        if not self._value("SELECT to_regclass('quire.migrations') IS NOT NULL"):
            problem = "has a schema named quire that is another program's. It was left as it is."
            raise LibraryError(self.name, problem)
        number = self._value("SELECT max(number) FROM quire.migrations")
        if number is None:
            raise LibraryError(self.name, "is not complete: it may be in the middle of being restored.")
        if newer := migrate.too_new(number, "postgres"):
            raise LibraryError(self.name, newer)
        return int(number)

    def _migrate(self, done: int) -> None:
        self._prepare()
        if not done:
            self.db.execute("CREATE SCHEMA quire")
            self.db.execute("CREATE TABLE quire.migrations (number integer PRIMARY KEY, at timestamptz)")
        for number, script in migrate.steps("postgres"):
            if number > done:
                self.db.execute(script)
                if number in _PYTHON_STEPS:
                    _PYTHON_STEPS[number](self.db)
                self.db.execute("INSERT INTO quire.migrations VALUES (%s, now())", (number,))

    def _prepare(self) -> None:
        """Refuse a server that cannot hold a library, before anything is written."""
        if (encoding := self._value("SHOW server_encoding")) != "UTF8":
            raise LibraryError(self.name, f"is a database in {encoding}. Make one in UTF8.")
        if problem := wrong_version(self.db.info.server_version, self._vector() or "999"):
            raise LibraryError(self.name, problem)
        try:
            self.db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.Error as refused:
            raise LibraryError(self.name, f"{_NO_VECTOR} ({message_of(refused)})") from refused

    def _vector(self) -> str | None:
        found = self._value("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        return None if found is None else str(found)

    def _value(self, sql: str) -> Any:
        row = self.db.execute(sql).fetchone()
        return row[0] if row else None


def wrong_version(server: int, vector: str) -> str | None:
    """The problem with a server that is too old, and what to do about it; None if there is none."""
    if server < MIN_SERVER:
        found = f"{server // 10_000}.{server % 10_000}"
        return f"is PostgreSQL {found}, and Quire needs {MIN_SERVER // 10_000} or later. Upgrade the server."
    if version_of(vector) < MIN_VECTOR:
        needed = ".".join(map(str, MIN_VECTOR))
        return (
            f"has pgvector {vector}, and Quire needs {needed} or later. Install it on the server, then type"
            " there: ALTER EXTENSION vector UPDATE"
        )
    return None


def version_of(text: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def message_of(problem: Exception) -> str:
    """The message of an error, on one line."""
    return " ".join(str(problem).split())


def tidy(db: Connection) -> None:
    """Index the terms that are waiting for it, and count tables that have doubled since the server did.

    It would do both within minutes; until then, every search would read all terms that wait, and some would
    read whole tables.
    """
    db.execute("SET LOCAL lock_timeout = '2s'")  # the server may be doing it
    db.execute("SELECT gin_clean_pending_list('quire.words_terms')")
    grown = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'quire'::regnamespace AND relkind = 'r'"
        " AND pg_relation_size(oid) > 2 * current_setting('block_size')::bigint * greatest(relpages, 1)"
        " ORDER BY oid"
    )
    for (table,) in db.execute(grown).fetchall():
        db.execute(f"ANALYZE quire.{table}")


# Each problem that a check finds, and the statement that counts where.
CHECKS = {
    "chunks that documents do not count": """
        SELECT count(*) FROM quire.documents AS d LEFT JOIN (
            SELECT document, count(*) AS chunks FROM quire.chunks GROUP BY 1
        ) AS c ON c.document = d.seq WHERE d.chunk_count <> coalesce(c.chunks, 0)""",
    "documents whose sections are not those they count": """
        SELECT count(*) FROM quire.documents AS d LEFT JOIN (
            SELECT document, count(*) AS sections FROM quire.sections GROUP BY 1
        ) AS s ON s.document = d.seq WHERE d.section_count <> coalesce(s.sections, 0)""",
    "documents whose terms are not those they count": """
        SELECT count(*) FROM quire.documents AS d LEFT JOIN (
            SELECT document, sum(size) AS terms FROM quire.words GROUP BY 1
        ) AS w ON w.document = d.seq WHERE d.term_count <> coalesce(w.terms, 0)""",
    "chunks without terms, or terms without a chunk": """
        SELECT count(*) FROM quire.chunks AS c FULL JOIN (
            SELECT * FROM quire.words WHERE quire.setting() IS NULL OR collection = ANY (quire.setting())
        ) AS w USING (document, index) WHERE c.document IS NULL OR w.document IS NULL""",
    "chunks in a section that is not there": """
        SELECT count(*) FROM quire.chunks AS c LEFT JOIN quire.sections AS s
        ON s.document = c.document AND s.position = c.section WHERE s.document IS NULL""",
    "vectors of texts that are not there": """
        SELECT count(*) FROM quire.vectors AS v WHERE NOT EXISTS (
            SELECT 1 FROM quire.chunks AS c WHERE c.document = v.document AND c.digest = v.digest)""",
    "documents whose embedded chunks are not those they count": """
        SELECT count(*) FROM (
            SELECT c.document, v.model, count(*) AS chunks FROM quire.chunks AS c
            JOIN quire.vectors AS v USING (document, digest) GROUP BY 1, 2
        ) AS c FULL JOIN quire.embedded AS e USING (document, model)
        WHERE c.chunks IS DISTINCT FROM e.chunks::bigint""",
    "documents that should have a vector of their own, or should not": """
        SELECT count(*) FROM quire.embedded AS e JOIN quire.documents AS d ON d.seq = e.document
        WHERE (e.vector IS NOT NULL) <> (e.chunks = d.chunk_count AND e.chunks > 1)""",
    "documents that share a path": """
        SELECT count(*) FROM (
            SELECT 1 FROM quire.documents GROUP BY collection, kind, path HAVING count(*) > 1) AS twins""",
}
