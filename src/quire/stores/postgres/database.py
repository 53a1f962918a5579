"""A PostgreSQL database: connections and transactions, and what all parts of a store use.

Input: a URL and statements. Output: rows. Always: a transaction is written whole or not at all, and retried
if the server or another writer aborted it; every transaction sees only the connection's collections.
"""

from __future__ import annotations

import logging
import re
import sys
import time
import urllib.parse
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar, cast

import psycopg
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format
from psycopg_pool import ConnectionPool, PoolTimeout

from quire import redact
from quire.errors import ConnectionLost, LibraryError, NoResults, SettingError, Unstorable
from quire.stores.postgres.pieces import unpack
from quire.stores.postgres.schema import ABOUT, Schema, message_of, version_of
from quire.stores.postgres.schema import Connection as Connection
from quire.stores.rows import CHUNK_BITS, MAX_CHUNKS, ChunkRow
from quire.stores.texts import ChunkTexts

log = logging.getLogger("quire")
T = TypeVar("T")

ITERATIVE = (0, 8)  # from this version on, pgvector continues a search if filters leave too few
USUAL = 100  # chunks that a search looks for
PATIENCE_SECONDS = 30.0  # to retry a transaction
_MAX_KEPT = 1000  # answers of one version
_GONE = "is gone: its schema, or part of it, was dropped while it was open. Nothing was written."
_MAX_CONNECTIONS = 4
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Which library it is. One that was restored has the same id, and tables with other numbers.
_IDENTITY = "(SELECT value FROM quire.facts WHERE name = 'id'), 'quire.facts'::regclass::oid"
_TABLES = (
    "SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = 'quire'::regnamespace AND relkind = 'r'"
)
_GENERATION = f"SELECT (SELECT sum(generation) FROM quire.writes), {_IDENTITY}"
_REPLACED = "was replaced by another library during this work. Do it again, so that it goes into that one."
CHUNK_ID = f"c.document << {CHUNK_BITS} | c.index"  # the id of a chunk `c`
CHUNK_COLUMNS = ", ".join([CHUNK_ID, *(f'c."{field.name}"' for field in fields(ChunkRow)[1:])])
# Chunks by their ids, given as documents and indexes: policies let no operator at the ids near an index.
CHUNKS_BY_ID = (
    "unnest(%s::bigint[], %s::integer[]) AS k (document, index)"
    " JOIN quire.chunks AS c USING (document, index)"
)
_OF_DATA = ("22", "23", "54")  # the data is at fault, not the database
# Errors that a retry may fix: a conflict with another writer, or the server going away.
_TRANSIENT = ("40001", "40P01", "08", "57P0", "23505")


def split_ids(ids: Iterable[int]) -> tuple[list[int], list[int]]:
    """The documents and indexes of chunks."""
    wanted = list(ids)
    return [chunk >> CHUNK_BITS for chunk in wanted], [chunk % MAX_CHUNKS for chunk in wanted]


_INT4 = psycopg.postgres.types["int4"]


class Numbers(bytes):
    """An integer[] as PostgreSQL sends it."""


class HalfVector(bytes):
    """A halfvec as pgvector sends it."""


class _AsItIs(Dumper):
    """Bytes that are already what the server reads."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj)


class _Numbers(_AsItIs):
    oid = _INT4.array_oid


def register_numbers(db: Connection) -> None:
    """Let a connection send Numbers."""
    db.adapters.register_dumper(Numbers, _Numbers)


def array_of(numbers: Sequence[int]) -> Numbers:
    """Numbers as PostgreSQL sends them: each with its size."""
    values = array("i", [1, 0, _INT4.oid, len(numbers), 1]) + array("i", [4]) * (2 * len(numbers))
    values[6::2] = array("i", numbers)
    return Numbers(_big_endian(values).tobytes())


def numbers_of(sent: bytes) -> Sequence[int]:
    """The numbers of an integer[] as PostgreSQL sends it."""
    return _big_endian(array("i", sent))[6::2]


def _big_endian(values: array[int]) -> array[int]:
    if sys.byteorder == "little":
        values.byteswap()
    return values


class PostgresDatabase:
    """One open database, used by one thread at a time."""

    def __init__(self, url: str, scope: Sequence[str] | None = None, *, create: bool = False) -> None:
        self.conninfo, self.name, named = _parts(url)
        self.scope = _narrowed(named, scope)
        self._reader: Connection | None = None
        self.snapshot: dict[str, Any] = {}  # what was read in the open snapshot
        self._kept: tuple[str, dict[Hashable, Any]] = ("", {})  # a version, and what was found of it
        self.patience = PATIENCE_SECONDS
        self._bound, self._is_begun = 0, False  # to one library: how often, and whether it was used since
        self._open(create)

    def _open(self, create: bool) -> None:
        """Connect to the library that is in the database now."""
        try:
            # The pool would retry again and again without saying why it fails.
            with psycopg.connect(self.conninfo, autocommit=True) as db:
                Schema(db, self.name).bring_up(create)
                facts = db.execute(ABOUT).fetchone() or ()
                identity = db.execute(f"SELECT {_IDENTITY}").fetchone() or ()
        except psycopg.Error as problem:
            raise self.error(f"cannot be opened: {message_of(problem)}") from problem
        self._identity: tuple[Any, ...] = identity
        self.is_owner, self._path, self.halfvec, version = facts
        self.vector_version = version_of(version)
        self._begin = self._settings()
        self._looks = looking_around(USUAL, self.vector_version)
        self._pool = ConnectionPool(
            self.conninfo,
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=1,
            max_size=_MAX_CONNECTIONS,
            num_workers=1,  # that open connections: each thread of a program has a pool
            timeout=3.0,
            reconnect_timeout=1.0,  # else it would retry ever more rarely, and miss a server that is back
            configure=self._configure,
            open=True,
        )

    def _settings(self) -> str:
        """What every transaction begins with: its search path, and the collections it may see."""
        kept = "".join(f',"{_escaped(name)}"' for name in self.scope or ())[1:]
        values = {
            "search_path": self._path,
            "quire.collections": f"{{{kept}}}" if self.scope else "",
            "jit": "off",  # compiling a statement takes longer than most of them
            "work_mem": "64MB",  # the rows that match a common word, without losing which they are
        }
        return _set(values)

    def _configure(self, db: Connection) -> None:
        register_numbers(db)
        db.adapters.register_dumper(HalfVector, type("_HalfVector", (_AsItIs,), {"oid": self.halfvec}))

    @property
    def is_scoped(self) -> bool:
        """Whether it sees only some collections."""
        return self.scope is not None or not self.is_owner

    def error(self, problem: str) -> LibraryError:
        """An error that names this database."""
        return LibraryError(self.name, problem)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @contextmanager
    def bound(self) -> Iterator[None]:
        """All work inside is on one library. Raises LibraryError if another takes its place."""
        if not self._bound:
            self._is_begun = False
        self._bound += 1
        try:
            yield
        finally:
            self._bound -= 1

    def _renew(self) -> None:
        """Open the library that has replaced this one. Raises LibraryError if there is none."""
        if self._bound and self._is_begun:
            raise self.error(_REPLACED)
        old, self._kept = self._pool, ("", {})
        try:
            self._open(create=False)
        except NoResults:
            raise self.error(_GONE) from None
        old.close()

    @contextmanager
    def _transaction(self, begin: str, end: str) -> Iterator[tuple[Connection, Sequence[Any]]]:
        """A connection inside a transaction, and the last row of beginning it, with the identity."""
        db, row = self._begun(begin)
        if row[-2:] != self._identity:
            db.execute("ROLLBACK")
            self._pool.putconn(db)
            self._renew()
            db, row = self._begun(begin)
        self._is_begun = True
        try:
            yield db, row
            db.execute(end)
        except BaseException:
            if not db.broken and not db.closed:
                db.execute("ROLLBACK")
            raise
        finally:
            self._pool.putconn(db)

    def _begun(self, begin: str) -> tuple[Connection, tuple[Any, ...]]:
        """A working connection that has begun a transaction, and the last row of beginning it.

        A connection that was cut off while idle is replaced by another. None is checked beforehand.
        """
        stale = _MAX_CONNECTIONS  # the most that may have been cut off
        while True:
            db = self._connection()
            try:
                cursor = db.execute(begin)
                while cursor.nextset():
                    pass
                return db, cursor.fetchone() or ()
            except BaseException as problem:
                self._pool.putconn(db)  # it closes broken connections, and rolls back the others
                if isinstance(problem, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
                    raise self.error(_GONE) from problem
                if not (stale and isinstance(problem, psycopg.OperationalError) and db.closed):
                    raise
            stale -= 1

    def _connection(self) -> Connection:
        """A connection of the pool. The pool is asked twice, because it may have just given up."""
        try:
            return self._pool.getconn()
        except PoolTimeout:
            return self._pool.getconn()

    # ---------------------------------------------------------------------------------- reading

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """All reads inside see one snapshot. One inside another is part of it."""
        if self._reader:
            yield self._reader
            return
        begin = f"{_BEGIN_READING}; {self._begin}; {_set(self._looks)}; {_GENERATION}"
        try:
            with self._transaction(begin, "ROLLBACK") as (db, (generation, *_)):
                self._reader = db
                self.snapshot = {"generation": int(generation), "looks": self._looks}
                yield db
        except psycopg.Error as problem:
            kind = (
                ConnectionLost
                if is_transient(problem) and not isinstance(problem, PoolTimeout)
                else LibraryError
            )
            raise kind(self.name, f"cannot be read: {message_of(problem)}") from problem
        finally:
            self._reader, self.snapshot = None, {}

    @property
    def is_reading(self) -> bool:
        """Whether a snapshot is open, which the next reads will see too."""
        return self._reader is not None

    def rows(self, sql: str, args: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement returns."""
        with self.reading() as db:
            return db.execute(sql, args, binary=True).fetchall()

    def value(self, sql: str, *args: Any) -> Any:
        """The first value that a statement returns; None if it returns no row."""
        rows = self.rows(sql, args)
        return rows[0][0] if rows else None

    def generation(self) -> int:
        """A number that grows with every write."""
        with self.reading():
            return int(self.snapshot["generation"])

    def library_id(self) -> str:
        """The random id of the library, which its backups share."""
        with self.reading():
            return str(self._identity[0])

    def version(self) -> str:
        """A string that changes with every write, and that no other or restored library has."""
        with self.reading():
            return ":".join(map(str, (*self._identity, self.generation())))

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """An answer that is cached for this version of the library, or is found now."""
        with self.reading():
            version = self.version()
            if self._kept[0] != version or len(self._kept[1]) > _MAX_KEPT:
                self._kept = version, {}
            kept = self._kept[1]
            if key not in kept:
                kept[key] = find()
            return cast(T, kept[key])

    def look_around(self, limit: int) -> None:
        """Set how many candidates HNSW examines to find this many, until the transaction ends."""
        looks = looking_around(limit, self.vector_version)
        if self.snapshot["looks"] != looks:
            self.rows(f"SELECT {', '.join(map(_setting, looks.items()))}")
            self.snapshot["looks"] = looks

    # ---------------------------------------------------------------------------------- writing

    def write(self, action: Callable[[Connection], T]) -> T:
        """Run an action in a transaction, with retries if they may help; returns its result."""
        until, wait = time.monotonic() + self.patience, 0.05
        while True:
            try:
                with self._transaction(f"BEGIN; {self._begin}; SELECT {_IDENTITY}", "COMMIT") as (db, _):
                    return action(db)
            except psycopg.Error as problem:
                if not is_transient(problem):
                    kind = Unstorable if (problem.sqlstate or "").startswith(_OF_DATA) else LibraryError
                    raise kind(self.name, f"nothing was written: {message_of(problem)}") from problem
                if time.monotonic() + wait > until:
                    tried = f"tried again for {self.patience:g} s"
                    raise self.error(f"nothing was written, {tried}: {message_of(problem)}") from problem
                log.info("writing again in %.2f s: %s", wait, message_of(problem))
            time.sleep(wait)
            wait = min(2 * wait, 2.0)

    def vacuum(self, *, analyze: bool = False) -> str:
        """Have the server take back the room of deleted rows; returns why it did not, if so.

        Only the owner of the tables can. `analyze` also counts what the planner goes by.
        """
        if not self.is_owner:
            return "Only the owner of the tables can have the server vacuum them"
        db = self._connection()
        try:
            db.autocommit = True
            for (table,) in db.execute(_TABLES).fetchall():
                db.execute(f"VACUUM {'(ANALYZE) ' if analyze else ''}quire.{table}")
        except psycopg.Error as problem:
            log.info("not vacuumed: %s", message_of(problem))
            return f"The server did not vacuum: {message_of(problem)}"
        finally:
            self._pool.putconn(db)
        return ""


class PostgresPart:
    """A part of a store, on the database that all parts share."""

    def __init__(self, db: PostgresDatabase) -> None:
        self.db = db

    def _texts(self, document: int) -> ChunkTexts:
        """The texts of a document's chunks."""
        stored = self.db.value("SELECT pieces FROM quire.documents WHERE seq = %s", document)
        trails = self.db.rows("SELECT position, trail FROM quire.sections WHERE document = %s", (document,))
        return ChunkTexts(unpack(stored), dict(trails))


def next_generation(db: Connection, chunks: int = 0) -> None:
    """Note a write of this many chunks. Another writer may wait for the slot."""
    db.execute(
        "UPDATE quire.writes SET generation = generation + 1, chunks = chunks + %s"
        " WHERE slot = pg_backend_pid() %% 32",
        (chunks,),
    )


def copy_rows(
    db: Connection, table: str, types: Sequence[str | int], rows: Iterable[Sequence[Any]], end: str = ""
) -> int:
    """Insert rows in bulk; returns how many were new. `end` is the end of the statement.

    COPY writes to no table that has policies, so it goes through a temporary table, which stores values in
    the same way: what is compressed there stays compressed.
    """
    db.execute(
        f"CREATE TEMPORARY TABLE IF NOT EXISTS new_{table} (LIKE quire.{table} INCLUDING STORAGE)"
        " WITH (toast_tuple_target = 8160) ON COMMIT DELETE ROWS"
    )
    # Of what the transaction copied before. To truncate it each time would take longer than a small write.
    if db.execute(f"SELECT 1 FROM pg_temp.new_{table} LIMIT 1").fetchone():
        db.execute(f"TRUNCATE pg_temp.new_{table}")
    with (
        db.cursor() as cursor,
        cursor.copy(f"COPY pg_temp.new_{table} FROM STDIN (FORMAT BINARY)") as stream,
    ):
        stream.set_types(types)
        for row in rows:
            stream.write_row(row)
    if not cursor.rowcount:
        return 0
    return db.execute(f"INSERT INTO quire.{table} SELECT * FROM pg_temp.new_{table} {end}").rowcount


def looking_around(limit: int, version: tuple[int, ...]) -> dict[str, str]:
    """The settings of pgvector that find this many vectors."""
    settings = {"hnsw.ef_search": str(min(1000, max(200, 2 * limit)))}
    if version >= ITERATIVE:
        settings["hnsw.iterative_scan"] = "strict_order"
        settings["hnsw.max_scan_tuples"] = str(max(20_000, 200 * limit))  # filters leave most of them out
    return settings


def _set(values: Mapping[str, str]) -> str:
    """Statements that set values until the transaction ends."""
    return "; ".join(f"SELECT {_setting(item)}" for item in values.items())


def _setting(item: tuple[str, str]) -> str:
    return f"set_config({_literal(item[0])}, {_literal(item[1])}, true)"


def is_transient(problem: psycopg.Error) -> bool:
    """Whether a retry of the same transaction may succeed."""
    if problem.sqlstate is None:
        return isinstance(problem, psycopg.OperationalError | psycopg.InterfaceError)
    return problem.sqlstate.startswith(_TRANSIENT)


# ------------------------------------------------------------------------------------------- the URL


# As libpq finds it: a user and password end at the first @, if no / comes before it.
_QUERY = re.compile(r"[a-z]+://(?:[^@/]*@)?[^?]*\?", re.IGNORECASE)
_SECRET = ("password", "key", "secret", "token")  # endings of the names of options that are not shown
_ENCODE = "Percent-encode special characters in its password and options: @ is %40, / is %2F, a space is %20."


def _parts(url: str) -> tuple[str, str, list[str]]:
    """From a URL: what to connect with, what to show (without its password), and the collections in it."""
    place = _QUERY.match(url)
    before, options = (url[: place.end() - 1], url[place.end() :].split("&")) if place else (url, [])
    named = [option.partition("=")[2] for option in options if option.startswith("collections=")]
    names = [name for value in named for name in urllib.parse.unquote_plus(value).split(",")]
    if not all(names):
        raise SettingError("library", "?collections= names no collection. Name one, or leave it out.")
    kept = "&".join(option for option in options if option and not option.startswith("collections="))
    conninfo, name = f"{before}?{kept}" if kept else before, redact.url(url)
    _check_address(conninfo, name)
    return conninfo, name, names


def _narrowed(named: Sequence[str], scope: Sequence[str] | None) -> tuple[str, ...] | None:
    """The collections that are both in a URL and asked for; None is all. No collection has an empty name."""
    if scope is None or not named:
        return tuple(named if scope is None else scope) or None
    return tuple(name for name in scope if name in named) or ("",)


def _check_address(conninfo: str, name: str) -> None:
    """Refuse a URL that PostgreSQL reads in another way: part of its password would become a host."""
    try:
        values = conninfo_to_dict(conninfo)
    except (psycopg.Error, UnicodeError) as problem:
        quoted = re.search(r'"(.*)"', message_of(problem))
        reason = f" ({message_of(problem)})" if quoted and quoted[1] in name else ""
        raise LibraryError(name, f"is not a URL that PostgreSQL understands{reason}. {_ENCODE}") from None
    shown = urllib.parse.unquote(name)
    told = [str(value) for key, value in values.items() if not key.endswith(_SECRET)]
    if "\0" in conninfo or not all(part in shown for value in told for part in value.split(",")):
        raise LibraryError(name, f"is not clear: it could be read in two ways. {_ENCODE}")


def _escaped(name: str) -> str:
    """A name within the quotes of an array's text."""
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _literal(text: str) -> str:
    return psycopg.sql.Literal(text).as_string(None)
