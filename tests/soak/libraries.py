"""Libraries that rounds begin with, and whether one is sound."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from quire import doctor
from quire.library import Library
from tests import crash
from tests.soak.rounds import LOST, SPANS, UNDETECTED, Round, counted, home, require
from tests.words import WORDS

FILES = 24
NAME, DOCS = "library.db", "docs"
_UP_TO_DATE = ("words", "vectors", "sources", "disk")  # what may be to do in a sound library


def begin(one: Round, name: str, make: Callable[[Path], None]) -> Path:
    """A library that is made once and copied for each round, with the folder beside it; its path."""
    kept = home() / name
    if not kept.exists():
        make(one.place)
        shutil.copytree(one.place, kept)
    shutil.copytree(kept, one.place, dirs_exist_ok=True)
    return one.place / NAME


def with_files(place: Path) -> None:
    """A library of a folder and three texts."""
    crash.grow(place / DOCS, FILES, Random(1))
    with Library.open(place / NAME, create=True, config=WORDS) as library:
        library.add(place / DOCS)
        for number in range(3):
            library.add(content=crash.document(f"text{number}", 3, Random(number)), path=f"text{number}.md")
        library.promote("docs:part1/doc001.md", "critical")


def with_memories(place: Path) -> None:
    """The same with memories."""
    with_files(place)
    with Library.open(place / NAME, config=WORDS) as library:
        for number in range(3):
            library.remember(f"The okapi number {number} sleeps at night.", name=f"okapi{number}")


def texts(path: Path) -> dict[str, str]:
    """The text of each document by its address, in a library that is found to be sound."""
    with counted(SPANS), Library.open(path, config=WORDS) as library:
        problems = [one.problem for one in doctor.examine(library) if one.part not in _UP_TO_DATE]
        require(not problems, LOST, f"{path.name} is not sound: {problems}")
        rows = library.documents()
        for row in rows:
            for chunk in library.chunks(row.address):
                assert library.source(row.address)[chunk.byte_start : chunk.byte_end] == chunk.text.encode()
        return {row.address: library.read(row.address).text for row in rows}


def same(found: dict[str, str], wanted: dict[str, str], column: str = LOST) -> None:
    """Require that documents are there with their texts, and no others."""
    missing, more = wanted.keys() - found.keys(), found.keys() - wanted.keys()
    require(not missing, column, f"missing: {sorted(missing)}")
    require(not more, column, f"there and should not be: {sorted(more)}")
    wrong = [address for address in wanted if found[address] != wanted[address]]
    require(not wrong, UNDETECTED, f"with another text: {sorted(wrong)}")


def on_disk(folder: Path) -> dict[str, str]:
    """What a library of a folder holds."""
    files = [file for file in folder.rglob("*.md") if file.is_file()]
    return {f"{folder.name}:{file.relative_to(folder).as_posix()}": file.read_text("utf-8") for file in files}
