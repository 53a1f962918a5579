"""Connections to PostgreSQL cut while they are used: reads are made again, acknowledged writes are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random

from quire.errors import ConnectionLost
from quire.library import Library
from tests import crash, postgres
from tests.soak.children import BEGUN, Child, Tell
from tests.soak.rounds import LOST, SPANS, WRITES, Round, require
from tests.words import WORDS

CUTS = 6
_CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"


def turn(one: Round) -> None:
    """Cut the connections of a reader and a writer a few times."""
    if not postgres.IS_INSTALLED:
        return
    url, stop = postgres.borrow(), one.place / "stop"
    with Library.open(url, create=True, config=WORDS) as library:
        library.add(content=_text("content:first.md"), path="first.md")
    children = [Child(lambda tell: _write(url, stop, tell)), Child(lambda tell: _read(url, stop, tell))]
    for child in children:
        child.wait_for(BEGUN)
    for _ in range(CUTS):
        time.sleep(one.rng.uniform(0.0, 0.2))
        one.faults += len(postgres.execute(postgres.server().get_uri(), _CUT, (_name(url),)))
    stop.touch()
    written, read = (child.end() for child in children)
    _check(url, written, read)
    postgres.give_back(url)


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def _check(url: str, written: list[str], read: list[str]) -> None:
    require(read == [BEGUN], SPANS, f"{read[1:]}")
    with Library.open(url, config=WORDS) as library:
        problems = library.store.check()
        require(not problems, LOST, f"{problems}")
        found = {row.address: library.read(row.address).text for row in library.documents()}
    lost = {line for line in written[1:] if line not in found}
    require(not lost, WRITES, f"{sorted(lost)}")
    wrong = [address for address in found if found[address] != _text(address)]
    require(not wrong, SPANS, f"{wrong}")


def _text(address: str) -> str:
    return f"# About {address}\n\n{crash.document('okapi', 3, Random(address))}"


def _write(url: str, stop: Path, tell: Tell) -> None:
    """Add documents until told to stop; one that fails is not acknowledged."""

    def add(library: Library, number: int) -> None:
        address = f"content:{number}.md"
        library.add(content=_text(address), path=f"{number}.md")
        tell(address)

    _until(url, stop, tell, add)


def _read(url: str, stop: Path, tell: Tell) -> None:
    """Read until told to stop; errors are told."""

    def read(library: Library, number: int) -> None:
        try:
            rows = library.documents()
            address = rows[number % len(rows)].address
            if library.read(address).text != _text(address):
                tell(f"{address} has another text")
            library.search("okapi")
        except ConnectionLost as problem:
            tell(f"{problem}")

    _until(url, stop, tell, read)


def _until(url: str, stop: Path, tell: Tell, act: Callable[[Library, int], None]) -> None:
    with Library.open(url, config=WORDS) as library:
        tell(BEGUN)
        for number in count():
            if stop.exists():
                return
            try:
                act(library, number)
            except ConnectionLost:
                time.sleep(0.01)
