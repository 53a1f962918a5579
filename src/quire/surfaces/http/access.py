"""Who asks, and what they may do.

Input: the headers of a request. Output: an Access. Always: a key that was withdrawn or has expired opens
nothing after a few seconds; whoever has no key gets in only where none is needed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

from quire.errors import Forbidden, KeyNeeded, LibraryError, RequestRefused
from quire.library.keys import valid_key
from quire.stores import LEVELS, AccessKey
from quire.surfaces.jobs import Nothing
from quire.surfaces.threads import Threads

log = logging.getLogger("quire")
_KEPT = 2.0  # seconds that keys are remembered: a request need not ask the database
_HOW = "Ask whoever runs the server for one. Programs send it as: Authorization: Bearer KEY"


@dataclass(frozen=True, slots=True)
class Access:
    """What a caller may do."""

    level: str  # read, write or admin
    scope: tuple[str, ...] | None  # the collections that it may see; None is all
    name: str = ""  # of the key
    id: str = ""

    def check(self, level: str) -> None:
        """Raise Forbidden if a level is needed that the caller does not have."""
        if LEVELS.index(self.level) < LEVELS.index(level):
            said = f"This needs a key with the level {level}; {self.name!r} has {self.level}."
            raise Forbidden(said, needs=level)

    def to_json(self) -> dict[str, object]:
        """What a caller is told of its own access."""
        scope = None if self.scope is None else list(self.scope)
        return {"level": self.level, "collections": scope, "name": self.name}


LOCAL = Access("admin", None)  # whoever uses the machine itself


class Gate:
    """Admits callers by their keys."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._keys: tuple[float, list[AccessKey]] = (-_KEPT, [])
        self._loading = asyncio.Lock()

    async def admit(self, authorization: str, *, needs_key: bool) -> Access:
        """What the caller may do. Raises KeyNeeded."""
        scheme, _, given = authorization.partition(" ")
        if not authorization and not needs_key:
            return LOCAL
        if scheme.lower() != "bearer" or not given.strip():
            raise KeyNeeded(f"This server needs a key. {_HOW}")
        found = valid_key(given.strip(), await self._known(), time.time_ns() // 1_000_000)
        if found is None:
            raise KeyNeeded("The key is not known, was withdrawn, or has expired. Ask for a new one.")
        return Access(found.level, found.collections, found.name, found.id)

    async def _known(self) -> list[AccessKey]:
        async with self._loading:
            if time.monotonic() - self._keys[0] >= _KEPT:
                try:
                    known = await self._threads.read(lambda library: library.keys())
                except Nothing:
                    known = []
                except LibraryError as problem:  # where the library is concerns those who have a key
                    log.error("the keys cannot be read: %s", problem)
                    raise RequestRefused("The library cannot be read now. Ask again later", 503) from None
                self._keys = time.monotonic(), known
        return self._keys[1]
