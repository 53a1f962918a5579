"""A progress bar on stderr, for work that people wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from quire.progress import Progress, Silent


@contextmanager
def shown() -> Iterator[Progress]:
    """A bar with rate and time left, gone when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Rich

    columns = (
        TextColumn("indexing {task.fields[items]:,} files"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Rich(*columns, console=Console(stderr=True), transient=True) as rich:
        yield _Bar(rich)


@contextmanager
def hidden() -> Iterator[Progress]:
    """No bar: nobody is watching."""
    yield Silent()


class _Bar:
    """One bar for each folder."""

    def __init__(self, rich: Any) -> None:
        self.rich = rich
        self.task: Any = None

    def total(self, items: int, size: int) -> None:
        """Begin a folder."""
        self.task = self.rich.add_task("", total=size, items=items) if items else None

    def advance(self, items: int, size: int) -> None:
        """Move on."""
        if self.task is not None:
            self.rich.advance(self.task, size)
