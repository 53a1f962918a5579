"""Fleets under fire: folders to index, what a library holds, and workers and drivers that are killed.

python -m tests.fleets URL FOLDER ADDRESS KILLED_AFTER    index, and be killed after so many documents
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quire.config import Config
from quire.fleet import Fleet
from quire.library import Library
from quire.progress import DocumentChange, Silent
from tests import crash, postgres
from tests.words import WORDS

IS_INSTALLED = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not IS_INSTALLED, reason="ray is not installed")
ROOT = Path(__file__).parents[1]
# What depends on when something was written, on how often, or on which library it is.
_TABLES = {"writes", "migrations", "facts", "grants", "common_terms"}
_TIMES = {"created_at", "updated_at", "written_at", "added_at", "checked_at", "since"}
_SETS = {"vocabulary"}  # writers that do not wait for each other may add a term twice


def folder_of(place: Path, documents: int, draw: Random) -> Path:
    """A folder of documents of many sizes, and of files that are not taken."""
    for number in range(documents):
        path = place / f"part{number % 7}" / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = crash.document(f"okapi{number}", draw.randint(1, 5), draw)
        path.write_text(f"# About {number}\n\nSee [another]({(number + 1) % documents}.md).\n\n{text}")
    (place / "binary.md").write_bytes(b"\0\1\2" * 100)
    (place / "broken.docx").write_bytes(b"PK\3\4 this is no archive")
    (place / "key.md").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
    (place / "table.csv").write_text("name,age\n" + "".join(f"n{row},{row}\n" for row in range(50)))
    (place / "latin.txt").write_bytes("Käse und Brot\n".encode("latin-1"))
    (place / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    return place


def rows_of(url: str) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of all tables, but for times."""
    listed = postgres.execute(
        url,
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'quire'"
        " ORDER BY 1, ordinal_position",
    )
    columns: dict[str, list[str]] = {}
    for table, column in listed:
        if table not in _TABLES and column not in _TIMES:
            # a file that was read as soon as it was written is seen again, and so its time is negative
            name = "abs(seen)" if column == "seen" else f'"{column}"::text'
            columns.setdefault(table, []).append(name)
    return {table: _rows(url, table, names) for table, names in columns.items()}


def _rows(url: str, table: str, names: Iterable[str]) -> Counter[tuple[Any, ...]]:
    distinct = "DISTINCT" if table in _SETS else ""
    return Counter(postgres.execute(url, f"SELECT {distinct} {', '.join(names)} FROM quire.{table}"))


def differences(one: str, other: str) -> dict[str, tuple[int, int]]:
    """The tables in which two libraries differ: how many rows only the first has, and only the other."""
    first, second = rows_of(one), rows_of(other)
    assert first.keys() == second.keys()
    return {
        table: ((first[table] - second[table]).total(), (second[table] - first[table]).total())
        for table in first
        if first[table] != second[table]
    }


def doubled_and_lost(url: str, folder: Path) -> tuple[int, int]:
    """How many documents of a folder a library has twice, and how many it lacks."""
    held = Counter(path for (path,) in postgres.execute(url, "SELECT path FROM quire.documents"))
    wanted = {str(path.relative_to(folder)) for path in folder.rglob("[0-9]*.md")}
    return sum(count - 1 for count in held.values()), len(wanted - held.keys())


# ---------------------------------------------------------------------------------------- killing


def workers() -> list[int]:
    """The processes of this process's own cluster that work, or are about to."""
    token = os.environ["RAY_AUTH_TOKEN"].encode()
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and _works(one, token)]


def _works(process: Path, token: bytes) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
        agents = (b"ray::Dashboard", b"ray::RuntimeEnv")
        is_worker = command.startswith(b"ray::") and not command.startswith(agents)
        return is_worker and token in (process / "environ").read_bytes()
    except OSError:  # it has just ended
        return False


class Killing(Silent):
    """Progress that kills a worker at random, after one document in so many."""

    def __init__(self, draw: Random, every: int, most: int) -> None:
        self._draw, self._every, self._most = draw, every, most
        self.kills, self._done = 0, 0

    def advance(self, amount: int, failed: int = 0) -> None:
        """Kill a worker, if it is time to."""
        self._done += 1
        if self._done % self._every or self.kills >= self._most:
            return
        if found := workers():
            self.kills += 1
            os.kill(self._draw.choice(found), signal.SIGKILL)


class Dying(Silent):
    """Progress that kills this process after so many documents."""

    def __init__(self, after: int) -> None:
        self._left = after

    def changed(self, change: DocumentChange) -> None:
        """Count a document."""
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def address_of() -> str:
    """The address of the cluster that this process has started."""
    import ray

    return str(ray.get_runtime_context().gcs_address)


def killed_driver(url: str, folder: Path, after: int) -> int:
    """Index in a process that is killed after so many documents; returns how it ended."""
    given = (url, str(folder), address_of(), str(after))
    command = [sys.executable, "-m", "tests.fleets", *given]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def add(url: str, folder: Path, fleet: Fleet | None, config: Config = WORDS, **given: Any) -> Any:
    """Add a folder; returns the report."""
    with Library.open(url, create=True, config=config) as library:
        return library.add(folder, collection="c", fleet=fleet, **given)


if __name__ == "__main__":
    to, place, address, killed_after = sys.argv[1:]
    with Fleet(address) as joined:
        add(to, Path(place), joined, progress=Dying(int(killed_after)))
