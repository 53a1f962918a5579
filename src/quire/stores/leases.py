"""Leases: work that one process at a time does on a library, however many have it open.

A lease is stored in the library: who holds it, and until when. Always: one process at most gets it; a holder
that dies loses it, at once for others on its machine and after SECONDS elsewhere. Transactions protect the
data, not leases: two holders, after a long pause of one, only do some work twice.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from quire.errors import LibraryError
from quire.progress import DocumentChange, Progress
from quire.stores.base import Admin

SECONDS = 60.0  # until a lease that is not renewed is free; each renewal writes to the disk
_FURTHEST = 10  # times SECONDS: a lease that ends later was taken before the clock was set back


class Lease:
    """A lease of a library, which this object may hold."""

    def __init__(self, store: Admin, name: str) -> None:
        self.store, self.name = store, name
        self._id, self._stored, self._due = os.urandom(16).hex(), "", 0.0

    def take(self) -> str:
        """Take the lease, or renew it; returns "" if it is held now, else who holds it."""
        stored, now = self.store.lease(self.name)
        if stored != self._stored and (other := _holder(stored, now)):
            self._stored = ""
            return other
        new = json.dumps({"holder": self._id, **_process(), "expires_at": now + round(1000 * SECONDS)})
        if not self.store.swap_lease(self.name, stored, new):
            self._stored = ""
            return "another process"  # it was quicker
        self._stored, self._due = new, time.monotonic() + SECONDS / 2
        return ""

    def other(self) -> str:
        """Who else holds the lease; "" if nobody does."""
        stored, now = self.store.lease(self.name)
        return "" if stored == self._stored else _holder(stored, now)

    def renew(self) -> bool:
        """Renew the lease if it is time to; returns whether it is still held."""
        return time.monotonic() < self._due or (self.is_held() and not self.take())

    def is_held(self) -> bool:
        """Whether the library still has the lease. One that was restored from a backup has not."""
        return self._stored != "" and self.store.lease(self.name)[0] == self._stored

    def drop(self) -> None:
        """Let others have the lease."""
        if self._stored:
            with suppress(LibraryError):  # of a library that is gone: then there is no lease
                self.store.swap_lease(self.name, self._stored, "")
        self._stored, self._due = "", 0.0


class Renewing:
    """Progress that renews a lease."""

    def __init__(self, progress: Progress, lease: Lease) -> None:
        self._progress, self._lease = progress, lease

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work."""
        self._lease.renew()
        self._progress.begin(work, total, unit)

    def advance(self, amount: int, failed: int = 0) -> None:
        """Report `amount` more units; `failed` of them failed."""
        self._lease.renew()
        self._progress.advance(amount, failed)

    def changed(self, change: DocumentChange) -> None:
        """Report a change to a document."""
        self._progress.changed(change)


def _process() -> dict[str, Any]:
    """This process, and where its number means something: two containers may have the same numbers."""
    space = ""
    with suppress(OSError):  # there is none but on Linux
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    import socket  # takes time, which a search does not need

    return {"process": os.getpid(), "host": socket.gethostname(), "space": space}


def _holder(stored: str, now: int) -> str:
    """Who holds a lease, in words; "" if nobody does any more."""
    try:
        held = json.loads(stored)
        left, process, host = held["expires_at"] - now, int(held["process"]), str(held["host"])
    except (ValueError, KeyError, TypeError):  # there is none
        return ""
    here = _process()
    if not 0 < left < 1000 * SECONDS * _FURTHEST:
        return ""
    if (host, held.get("space")) == (here["host"], here["space"]) and not _runs(process):
        return ""
    return f"process {process} on {host}"


def _runs(process: int) -> bool:
    """Whether a process of this machine runs, as far as can be told."""
    if os.name != "posix":  # elsewhere signal 0 would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's
        return True
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(") ")[2][:1]
    except OSError:  # there is none but on Linux
        return True
    return state != "Z"  # it has ended, and only its parent does not know yet
