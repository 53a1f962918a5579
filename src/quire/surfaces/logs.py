"""The log on stderr: one line for each record, with milliseconds and without the secrets of URLs."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

from quire import redact
from quire.surfaces import render

_FORMAT = "%(asctime)s %(levelname)s %(message)s"  # its time ends in milliseconds


class OneLine(logging.Formatter):
    """Write a record on one line, and its traceback after it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line. No name in it can begin another one."""
        return render.line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """The line and its traceback."""
        return redact.text(super().format(record))


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to stderr as it is now: while a progress bar is shown, its lines stand above the bar."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """It is always stderr."""


def handler(form: str = _FORMAT) -> logging.Handler:
    """What writes records to stderr."""
    found = _Stderr()
    found.setFormatter(OneLine(form))
    return found


def show_log(level: str) -> None:
    """Show Quire's own log from a level on."""
    log = logging.getLogger("quire")
    log.handlers, log.propagate = [handler()], False
    log.setLevel(level.upper())
