"""A progress bar on stderr, for work that people wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from quire.progress import Progress, Silent


@contextmanager
def shown_bar() -> Iterator[Progress]:
    """A bar with rate and time left, removed when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Rich

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
    )
    with Rich(*columns, console=Console(stderr=True), transient=True) as rich:
        yield _Bar(rich)


@contextmanager
def hidden() -> Iterator[Progress]:
    """No bar: nobody is watching."""
    yield Silent()


class _Bar(Silent):
    """One bar for each piece of work."""

    def __init__(self, rich: Any) -> None:
        self.rich = rich
        self.task: Any = None
        self.unit = ""
        self.failed = 0

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work."""
        self.unit, self.failed = unit, 0
        self.task = self.rich.add_task(work, total=total, done="") if total else None

    def advance(self, amount: int, failed: int = 0) -> None:
        """Advance the bar."""
        self.failed += failed
        if self.task is not None:
            self.rich.advance(self.task, amount)
            task = self.rich.tasks[self.task]
            done = _done(task.completed, task.total, task.speed, self.unit)
            self.rich.update(self.task, done=f"{done}, {self.failed:,} failed" if self.failed else done)


def _done(completed: float, total: float, speed: float | None, unit: str) -> str:
    rate = f" ({_amount(speed or 0, unit)}/s)"
    return f"{_amount(completed, unit)} of {_amount(total, unit)}{rate}"


def _amount(number: float, unit: str) -> str:
    return f"{number / 1e6:,.1f} MB" if unit == "bytes" else f"{number:,.0f} {unit}"
