"""Who asks, and what they may do.

Input: the headers of a request. Output: an Access. Always: a key that was withdrawn or has expired opens
nothing after a few seconds; whoever has no key gets in only where none is needed.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from quire.errors import Forbidden, KeyNeeded
from quire.library.keys import valid_key
from quire.stores import LEVELS, AccessKey
from quire.surfaces.jobs import Nothing
from quire.surfaces.threads import Threads

_KEPT = 2.0  # seconds that keys are remembered: a request need not ask the database
_HOW = "Bring one: Authorization: Bearer KEY. Whoever runs the server makes it with: quire keys make NAME"


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

    def __init__(self, threads: Threads, *, read_only: bool) -> None:
        self._threads, self._read_only = threads, read_only
        self._keys: tuple[float, list[AccessKey]] = (-_KEPT, [])
        self._loading = asyncio.Lock()

    async def admit(self, authorization: str, *, needs_key: bool) -> Access:
        """What the caller may do. Raises KeyNeeded."""
        scheme, _, given = authorization.partition(" ")
        if not authorization and not needs_key:
            return self._limited(LOCAL)
        if scheme.lower() != "bearer" or not given.strip():
            raise KeyNeeded(f"A key is needed. {_HOW}")
        found = valid_key(given.strip(), await self._known(), time.time_ns() // 1_000_000)
        if found is None:
            raise KeyNeeded("The key is not known, was withdrawn, or has expired. Ask for a new one")
        return self._limited(Access(found.level, found.collections, found.name, found.id))

    def _limited(self, access: Access) -> Access:
        """An access that writes nothing if the server does not."""
        return Access("read", access.scope, access.name, access.id) if self._read_only else access

    async def _known(self) -> list[AccessKey]:
        async with self._loading:
            if time.monotonic() - self._keys[0] >= _KEPT:
                try:
                    known = await self._threads.read(lambda library: library.keys())
                except Nothing:
                    known = []
                self._keys = time.monotonic(), known
        return self._keys[1]
