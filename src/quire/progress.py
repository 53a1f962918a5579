"""Progress reporting: stages report, surfaces show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from quire.plural import counted


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A change to one document, which was written."""

    action: str  # add, update, move or remove
    address: str
    old_address: str = ""  # before a move


class Stopped(Exception):
    """Raised by progress to stop work between two transactions. What was written before is complete."""


@runtime_checkable
class Progress(Protocol):
    """Receives the progress of long work."""

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work, such as `indexing 12 files`: its total amount, and the unit."""
        ...

    def advance(self, amount: int, failed: int = 0) -> None:
        """Report `amount` more units; `failed` of them failed."""
        ...

    def changed(self, change: DocumentChange) -> None:
        """Report that a document was written, renamed or removed."""
        ...


class Silent:
    """Reports nothing."""

    def begin(self, work: str, total: int, unit: str) -> None:
        """Say nothing."""

    def advance(self, amount: int, failed: int = 0) -> None:
        """Say nothing."""

    def changed(self, change: DocumentChange) -> None:
        """Say nothing."""


def how_far(done: float, total: float, unit: str) -> str:
    """`3 of 12 chunks`, `1 of 1 page`, `1.2 of 3.4 MB`."""
    if unit == "bytes":
        return f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB"
    return f"{done:,.0f} of {counted(round(total), unit.removesuffix('s'))}"
