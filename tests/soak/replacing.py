"""The file of a library replaced under processes that read and write it.

Always: a write that was acknowledged is in the file that was at the path then: in the last one, or in one
that was replaced, each of which is kept by a second name.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import count
from pathlib import Path

from quire.errors import LibraryError, NoResults
from quire.library import Library
from tests.soak import libraries
from tests.soak.children import BEGUN, SECONDS, Child, Tell
from tests.soak.libraries import begin, texts
from tests.soak.rounds import SPANS, TRACEBACKS, WRITES, Round, require
from tests.words import WORDS

REPLACEMENTS = 8  # in a round


def turn(one: Round) -> None:
    """Replace the file of a library a few times while others use it, and see where all writes are.

    `quire restore` may come at any moment, under two writers. By hand, a library is replaced while nobody is
    writing, as the docs say.
    """
    path = begin(one, "memories", libraries.with_memories)
    backup, kept = one.place / "backup.db", one.place / "kept"
    shutil.copy(path, backup)
    kept.mkdir()
    before, by_hand = texts(path), bool(one.seed % 2)
    writers = [Child(partial(_write, path, name)) for name in (["one"] if by_hand else ["one", "two"])]
    children = [*writers, Child(partial(_read, path))]
    for child in children:
        child.wait_for(BEGUN)
    for number in range(REPLACEMENTS):
        time.sleep(one.rng.uniform(0, 0.05))
        way = one.rng.choice(BY_HAND) if by_hand else _restore
        with _paused(path) if by_hand else nullcontext():
            Child(partial(_replace, way, path, backup, kept / f"{number}.db")).end()
        one.faults += 1
    _sign(path, "stop").touch()
    told = [line for child in children for line in child.end()]
    _check(path, kept, before, told)


def _sign(path: Path, name: str) -> Path:
    """A file that tells the children what to do."""
    return path.with_name(name)


@contextmanager
def _paused(path: Path) -> Iterator[None]:
    """Nobody writes, and what was written is in the file."""
    _sign(path, "pause").touch()
    until = time.monotonic() + SECONDS
    while not _sign(path, "paused").exists() or path.with_name(f"{path.name}-wal").stat().st_size:
        require(time.monotonic() < until, TRACEBACKS, "the writer does not pause, or the log stays")
        time.sleep(0.001)
    yield
    _sign(path, "paused").unlink()
    _sign(path, "pause").unlink()


def _check(path: Path, kept: Path, before: dict[str, str], told: list[str]) -> None:
    wrong = [line for line in told if line.startswith("wrong")]
    require(not wrong, SPANS, f"{wrong}")
    acknowledged = {line.partition(" ")[2] for line in told if line.startswith("wrote ")}
    files = [path, *kept.glob("*.db"), *path.parent.glob("*.before-restore-*[0-9a-f]")]
    found = [texts(file) for file in files]
    there = {address: text for one in found for address, text in one.items()}
    lost = acknowledged - there.keys()
    require(not lost, WRITES, f"{sorted(lost)} of {len(acknowledged)}")
    require(all(there[address] == _text(address) for address in acknowledged), SPANS, "another text")
    for one in found:
        libraries.same({address: one[address] for address in one if address in before}, before)


def _text(address: str) -> str:
    return f"# About {address}\n\nThe text of {address}.\n"


# ------------------------------------------------------------------------------------- who uses it


def _write(path: Path, name: str, tell: Tell) -> None:
    """Add texts until told to stop, and one more: a refused one is not acknowledged."""
    with Library.open(path, config=WORDS) as library:
        tell(BEGUN)
        for number in count():
            while _sign(path, "pause").exists() and not _sign(path, "stop").exists():
                library.store.settle()
                _sign(path, "paused").touch()
                time.sleep(0.001)
            address, is_last = f"content:{name}{number}.md", _sign(path, "stop").exists()
            try:
                library.add(content=_text(address), path=f"{name}{number}.md")
            except (LibraryError, NoResults):
                time.sleep(0.005)
                continue
            tell(f"wrote {address}")
            if is_last:
                return


def _read(path: Path, tell: Tell) -> None:
    """Read and search until told to stop."""
    with Library.open(path, config=WORDS) as library:
        tell(BEGUN)
        while not _sign(path, "stop").exists():
            with suppress(LibraryError, NoResults):
                for row in library.documents("content")[-5:]:
                    if row.path[:3] in ("one", "two") and library.read(row.address).text != _text(
                        row.address
                    ):
                        tell(f"wrong {row.address}")
                library.search("okapi text")


# ------------------------------------------------------------------------------------ how it is replaced


def _replace(
    way: Callable[[Path, Path, Path], None], path: Path, backup: Path, kept: Path, tell: Tell
) -> None:
    """In a process of its own: closing a file of a library drops the locks of its process."""
    way(path, backup, kept)


def _restore(path: Path, backup: Path, kept: Path) -> None:
    Library.restore(path, backup)


def _move(path: Path, backup: Path, kept: Path) -> None:
    os.link(path, kept)
    new = path.with_name("new.db")
    shutil.copy(backup, new)
    new.replace(path)


def _delete(path: Path, backup: Path, kept: Path) -> None:
    os.link(path, kept)
    path.unlink()
    time.sleep(0.01)
    new = path.with_name("new.db")
    shutil.copy(backup, new)
    new.replace(path)


BY_HAND = (_restore, _move, _delete)
