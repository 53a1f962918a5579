"""A progress bar on stderr, for work that people wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from quire.progress import DocumentChange, Silent, how_far


class Counted(Silent):
    """Counts the documents that were written: what an interrupted command has done."""

    def __init__(self) -> None:
        self.written = 0

    def changed(self, change: DocumentChange) -> None:
        """Count a document."""
        self.written += 1


@contextmanager
def shown_bar() -> Iterator[Counted]:
    """A bar with rate and time left, removed when the work is done. What is printed meanwhile is above it."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Rich

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    # stdout is left alone: it may be a file, and what is printed there belongs there.
    with Rich(*columns, console=console, transient=True, redirect_stdout=False) as rich:
        yield _Bar(rich)


@contextmanager
def hidden() -> Iterator[Counted]:
    """No bar: nobody is watching."""
    yield Counted()


class _Bar(Counted):
    """One bar: of the current piece of work."""

    def __init__(self, rich: Any) -> None:
        super().__init__()
        self.rich = rich
        self.task: Any = None
        self.unit = ""
        self.failed = 0

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work. The bar of the last one goes, for nothing of it is left to do."""
        if self.task is not None:
            self.rich.remove_task(self.task)
        self.unit, self.failed = unit, 0
        done = how_far(0, total, unit) if total else ""
        self.task = self.rich.add_task(work, total=total or None, done=done)

    def advance(self, amount: int, failed: int = 0) -> None:
        """Advance the bar."""
        self.failed += failed
        if self.task is not None:
            self.rich.advance(self.task, amount)
            task = next(one for one in self.rich.tasks if one.id == self.task)
            self.rich.update(self.task, done=_done(task, self.unit, self.failed))


def _done(task: Any, unit: str, failed: int) -> str:
    """`41 of 1,238 pages (12 a second), 1 failed`; no rate before one is known."""
    if task.total is None:
        return ""
    rate = f" ({_rate(task.speed, unit)})" if task.speed else ""
    return f"{how_far(task.completed, task.total, unit)}{rate}{f', {failed:,} failed' if failed else ''}"


def _rate(speed: float, unit: str) -> str:
    if unit == "bytes":
        return f"{speed / 1e6:,.1f} MB a second"
    return f"{speed:,.0f} a second" if speed >= 10 else f"{speed:.1f} a second"
