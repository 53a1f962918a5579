"""Keep a library up to date: what changes in its sources is read soon after it has changed.

Input: a library, and whom to tell. Output: documents are written, and each change is told. Always: an event
is only a hint, what it names is compared with the library; listening begins before the first comparison; all
sources are compared now and then, because events get lost; one process at a time watches a library.
"""

from __future__ import annotations

import threading

from quire.errors import LibraryError
from quire.stores import Lease
from quire.watcher.telling import Voice, Watched
from quire.watcher.turn import Turn

__all__ = ["Watched", "watch"]

_PATIENCE = 1.0  # seconds between attempts to take the lease
_PAUSES = (1.0, 5.0, 25.0)  # seconds after errors of the library, one after another


def watch(watched: Watched, stop: threading.Event) -> None:
    """Keep a library up to date until `stop` is set. While another process does, wait.

    Raises LibraryError if the library cannot be used for a while.
    """
    voice, lease, failures = Voice(watched), Lease(watched.store, "watch"), 0
    lease.take()  # raises at once if the library cannot be written
    try:
        while not stop.is_set():
            try:
                _wait(lease, voice, stop)
                Turn(watched, voice, lease, stop).run()
                failures = 0
            except LibraryError as problem:
                if failures == len(_PAUSES):
                    raise
                voice.note(problem.message)
                stop.wait(_PAUSES[failures])
                failures += 1
    finally:
        lease.drop()


def _wait(lease: Lease, voice: Voice, stop: threading.Event) -> None:
    """Wait until the lease is held, or a person stops it."""
    told = ""
    while not stop.is_set() and (other := lease.take()):
        if other != told:
            voice.note(f"Waiting: {other} watches this library.")
        told = other
        stop.wait(_PATIENCE)
