"""A clock that is set back and forth between writes: nothing breaks, and no lease is held for ever."""

from __future__ import annotations

import os
import time
from pathlib import Path
from unittest import mock

from quire.errors import NoResults
from quire.library import Library
from quire.stores import Lease, leases
from quire.watcher.slow import is_due
from tests import crash
from tests.soak import libraries
from tests.soak.libraries import DOCS, begin, on_disk, same, texts
from tests.soak.rounds import LOST, WRITES, Round, require
from tests.words import WORDS

HOUR = 3_600_000_000_000
DAY = 86_400.0  # seconds
STEPS = 6


class Clock:
    """The time, as somebody has set it."""

    def __init__(self) -> None:
        self._true, self.offset = time.time_ns, 0

    def __call__(self) -> int:
        return self._true() + self.offset

    def set(self, one: Round) -> None:
        """Set it back by a little, an hour or to 1970, or forth, or right."""
        one.faults += 1
        there = one.rng.choice((-HOUR, -HOUR // 60, -HOUR // 3600, HOUR, 90_000 * HOUR, 0, "1970"))
        self.offset = one.rng.randrange(HOUR) - self._true() if isinstance(there, str) else there


def turn(one: Round) -> None:
    """Use a library while the clock is set again and again."""
    path, clock = begin(one, "memories", libraries.with_memories), Clock()
    folder, wanted = one.place / DOCS, texts(path)
    others = {address: text for address, text in wanted.items() if not address.startswith(f"{DOCS}:")}
    with mock.patch("time.time_ns", clock), Library.open(path, config=WORDS) as library:
        for number in range(STEPS):
            clock.set(one)
            _edit(folder, one)
            library.refresh(prune=True)
            clock.set(one)
            others[f"content:step{number}.md"] = text = crash.document(f"step{number}", 2, one.rng)
            library.add(content=text, path=f"step{number}.md")
            _remember(library, number, others)
            _lease(library, clock, one)
            _due(library, clock, one)
            found = {row.address: library.read(row.address).text for row in library.documents()}
            same(found, others | on_disk(folder))
    same(texts(path), others | on_disk(folder))


def _edit(folder: Path, one: Round) -> None:
    """Change files; some keep their size and time of change."""
    file = one.rng.choice(sorted(folder.rglob("*.md")))
    before = file.stat()
    file.write_text(file.read_text("utf-8").replace("a", "e"), "utf-8")
    os.utime(file, ns=(before.st_atime_ns, one.rng.choice((before.st_mtime_ns, 1, time.time_ns()))))
    crash.edit(folder, one.rng)


def _remember(library: Library, number: int, others: dict[str, str]) -> None:
    others[f"memory:step{number}"] = text = f"The wombat number {number} digs."
    library.remember(text, name=f"step{number}")
    try:
        found = {result.path for result in library.recall(f"wombat {number}", since="1970-01-01").results}
    except NoResults:
        found = set()
    require(f"step{number}" in found, WRITES, f"memory {number} is not recalled: {found}")


def _lease(library: Library, clock: Clock, one: Round) -> None:
    """A lease whose holder does not renew it is free in time, however the clock was set meanwhile."""
    holder, other = Lease(library.store, "soak"), Lease(library.store, "soak")
    require(not holder.take(), LOST, "nobody has the lease, and it cannot be taken")
    clock.set(one)
    if other.take():
        clock.offset += 1_000_000 * round(1000 * leases.SECONDS * (leases._FURTHEST + 1))
        require(not other.take(), LOST, "a lease is held for ever")
    require(not holder.is_held(), LOST, "two have a lease")
    other.drop()
    require(library.store.lease("soak")[0] == "", LOST, "a lease is not dropped")


def _due(library: Library, clock: Clock, one: Round) -> None:
    """A source that was checked is due again in time, however the clock was set meanwhile."""
    checked_at = clock() // 1_000_000
    clock.set(one)
    if not is_due(checked_at, DAY):
        clock.offset += 25 * HOUR
    require(is_due(checked_at, DAY), LOST, "a page is not due a day later, because the clock was set back")
