"""Power that fails at any write or sync, and what a library is then.

What was synced is on the disk; of what was not, any writes may be, whole or torn at 512 bytes. The store has
`synchronous = FULL` and a write-ahead log, so each transaction is synced before it is acknowledged. That is
checked: what was acknowledged is there, and of the work that was under way, each document is old or new.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from quire.library import Library
from tests import crash
from tests.soak.libraries import NAME, texts
from tests.soak.recording import Event, recorded
from tests.soak.rounds import LOST, SPANS, WRITES, Round, counted, require
from tests.words import WORDS

SECTOR = 512
STEPS, FAILURES = 14, 12  # of one recorded run
State = dict[str, str]  # the text of each document


def turn(one: Round) -> None:
    """Record some work on a new library, and let the power fail at moments of it."""
    path, states = one.place / NAME, list[State]()
    with recorded() as events:
        _work(path, one, events, states)
    moments = sorted(one.rng.sample(range(len(events)), min(FAILURES, len(events))))
    disk, done, left = _Disk(), 0, one.place / "left"
    for number, event in enumerate(events):
        if number in moments:
            shutil.rmtree(left, ignore_errors=True)
            disk.fail(left, one.rng)
            one.faults += 1
            _check(left / NAME, states[done], states[min(done + 1, len(states) - 1)])
        done += event.what == "acknowledge"
        disk.follow(event)


def _check(path: Path, acknowledged: State, next_state: State) -> None:
    with counted(LOST):
        Library.open(path, create=True, config=WORDS).close()
    found = texts(path)
    for address in found.keys() | acknowledged.keys() | next_state.keys():
        allowed = (acknowledged.get(address), next_state.get(address))
        column = WRITES if found.get(address) is None or address in acknowledged else SPANS
        require(found.get(address) in allowed, column, f"{address}: {found.get(address)!r:.60}")


# --------------------------------------------------------------------------------------------- the work


def _work(path: Path, one: Round, events: list[Event], states: list[State]) -> None:
    """Change a library step by step; the state after each, the first being an empty one."""
    states.append({})
    with Library.open(path, create=True, config=WORDS) as library:
        for number in range(STEPS):
            now = dict(states[-1])
            step = one.rng.choice((_add, _add, _change, _remove, _remember, _add_folder))
            step(library, now, number, one)
            states.append(now)
            events.append(Event("acknowledge"))
    states.append(states[-1])


def _add(library: Library, now: State, number: int, one: Round) -> None:
    now[f"content:{number}.md"] = text = crash.document(f"new{number}", one.rng.randrange(1, 6), one.rng)
    library.add(content=text, path=f"{number}.md")


def _change(library: Library, now: State, number: int, one: Round) -> None:
    old = [address for address in now if address.startswith("content:")]
    if old:
        address = one.rng.choice(old)
        now[address] = text = crash.document(f"changed{number}", one.rng.randrange(1, 9), one.rng)
        library.add(content=text, path=address.partition(":")[2])


def _remove(library: Library, now: State, number: int, one: Round) -> None:
    if now:
        address = one.rng.choice(sorted(now))
        del now[address]
        library.remove(address)


def _remember(library: Library, now: State, number: int, one: Round) -> None:
    now[f"memory:fact{number}"] = text = f"The numbat number {number} hides."
    library.remember(text, name=f"fact{number}")


def _add_folder(library: Library, now: State, number: int, one: Round) -> None:
    folder = crash.grow(one.place / f"folder{number}", 4, one.rng)
    for file in folder.rglob("*.md"):
        now[f"folder{number}:{file.relative_to(folder).as_posix()}"] = file.read_text("utf-8")
    library.add(folder)


# --------------------------------------------------------------------------------------------- the disk


@dataclass
class _Stored:
    """A file: what is on the disk, and what was written since the last sync."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)


class _Disk:
    """Files, as a power failure would leave them."""

    def __init__(self) -> None:
        self.files: dict[str, _Stored] = {}
        self.is_listed = True  # whether the folder on the disk has all files

    def follow(self, event: Event) -> None:
        """Do what was done."""
        if not event.file.startswith(NAME) or event.file.endswith("-shm"):
            return
        is_new = event.file not in self.files
        file = self.files.setdefault(event.file, _Stored())
        self.is_listed &= not is_new
        if (
            event.what == "sync" and not self.is_listed
        ):  # SQLite syncs the folder of a new log or journal, too
            self._sync_folder()
        if event.what == "sync":
            for one in file.pending:
                _apply(file.synced, one)
            file.pending.clear()
        else:
            file.pending.append(event)
        if event.what == "delete" and event.offset:
            self._sync_folder()

    def _sync_folder(self) -> None:
        for name, file in list(self.files.items()):
            if file.pending and file.pending[-1].what == "delete":
                del self.files[name]
        self.is_listed = True

    def fail(self, place: Path, rng: Random) -> None:
        """Write what is left of the files to a folder."""
        place.mkdir()
        share = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))  # of the writes that were not synced
        for name, file in self.files.items():
            data = bytearray(file.synced)
            kept = [event for event in file.pending if rng.random() < share]
            for event in kept:
                _apply(data, event, None if rng.random() < 0.7 else rng)
            (place / name).write_bytes(data)
            if kept and kept[-1].what == "delete":
                (place / name).unlink()


def _apply(data: bytearray, event: Event, rng: Random | None = None) -> None:
    """Change a file; with random numbers, only some sectors of what is written."""
    if event.what != "write":
        size = event.offset if event.what == "truncate" else 0
        del data[size:]
        data.extend(bytes(size - len(data)))
        return
    data.extend(bytes(max(0, event.offset - len(data))))
    for start in range(0, len(event.data), SECTOR):
        if rng is None or rng.random() < 0.5:
            at, some = event.offset + start, event.data[start : start + SECTOR]
            data.extend(bytes(max(0, at - len(data))))
            data[at : at + len(some)] = some
