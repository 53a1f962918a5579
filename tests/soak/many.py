"""Thousands of files changed at once, in a library that is watched: all are found."""

from __future__ import annotations

import time
from pathlib import Path

from quire.config import override
from quire.library import Library
from tests.soak.children import BEGUN, SECONDS, Child, Tell
from tests.soak.libraries import DOCS, NAME, on_disk, same, texts
from tests.soak.rounds import LOST, Round, require
from tests.words import WORDS

FILES, FEW = 10_000, 300
CONFIG = override(WORDS, {"watch": {"debounce": 0.1}})


def turn(one: Round) -> None:
    """Change all files of a folder, and wait until the library has them."""
    number, folder, path = FILES if one.is_long else FEW, one.place / DOCS, one.place / NAME
    _write(folder, number, 0)
    with Library.open(path, create=True, config=WORDS) as library:
        library.add(folder)
    child = Child(lambda tell: _watch(path, tell))
    child.wait_for(BEGUN)
    began = time.monotonic()
    _write(folder, number, one.seed + 1)
    one.faults += number
    took = time.monotonic() - began
    _wait(path, number, folder)
    child.kill()
    require(took < SECONDS, LOST, f"the files took {took:.0f} s to write")
    same(texts(path), on_disk(folder))


def _write(folder: Path, number: int, version: int) -> None:
    for one in range(number):
        file = folder / f"part{one % 100}" / f"{one}.md"
        if not version:
            file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Number {one}\n\nVersion {version} of topic{one}.\n")


def _watch(path: Path, tell: Tell) -> None:
    with Library.open(path, config=CONFIG) as library:
        library.watch(lambda change: None, on_note=lambda note: tell(BEGUN))


def _wait(path: Path, number: int, folder: Path) -> None:
    """Wait until nothing changes any more, and all that changed is there."""
    until = time.monotonic() + SECONDS
    wanted = on_disk(folder)
    while True:
        with Library.open(path, config=WORDS) as library:
            changed = sum(
                library.read(address).text != wanted[address] for address in sorted(wanted)[:: number // 50]
            )
            if not changed and not library.check():
                return
        require(time.monotonic() < until, LOST, f"{changed} of 50 changes were not found")
        time.sleep(0.1)
