"""Hear of changes in folders, from the system."""

from __future__ import annotations

import threading
import time
from typing import Any

_STEP = 100  # milliseconds between looks for events
_LONGEST = 10  # times the debounce: so long changes are gathered at most


class Listener:
    """Hears of changes in folders. `problem` says why it hears of none."""

    def __init__(self, folders: list[str], debounce: float, stop: threading.Event) -> None:
        self.problem, self._debounce, self._stop, self._folders = "", debounce, stop, folders
        self._notify = self._opened(folders) if folders else None

    def _opened(self, folders: list[str]) -> Any:
        from watchfiles._rust_notify import RustNotify  # its documentation names this module

        try:
            return RustNotify(folders, False, False, 0, True, True)
        except OSError as problem:  # such as more folders than the system watches
            self.problem = _one_line(problem)
            return None

    def wait(self, seconds: float) -> set[str]:
        """The paths that changed, once none has for the time of the debounce; none after some seconds."""
        found = more = self._heard(seconds)
        until = time.monotonic() + _LONGEST * self._debounce
        while more and time.monotonic() < until:
            more = self._heard(self._debounce)
            found |= more
        return found

    def _heard(self, seconds: float) -> set[str]:
        if self._notify is None:
            self._stop.wait(seconds)
            return set()
        try:
            heard = self._notify.watch(round(1000 * self._debounce), _STEP, round(1000 * seconds), self._stop)
        except RuntimeError as problem:  # such as new folders, of which there are too many now
            if "decode" in str(problem):  # a name that is not UTF-8: which one is not told
                self._notify.close()
                self._notify = self._opened(self._folders)
                return set(self._folders)
            self.problem = _one_line(problem)
            self.close()
            return set()
        if heard == "signal":
            raise KeyboardInterrupt
        return set() if isinstance(heard, str) else {path for _, path in heard}

    def close(self) -> set[str]:
        """Stop listening; returns the paths that changed and were not returned yet."""
        if self._notify is None:
            return set()
        last = set() if self.problem else self._heard(0.001)
        self._notify.close()
        self._notify = None
        return last


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split()).rstrip(".")
