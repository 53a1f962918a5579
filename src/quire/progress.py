"""Progress reporting: stages report, surfaces show."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the progress of long work."""

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work, such as `indexing 12 files`: its total amount, and the unit."""
        ...

    def advance(self, amount: int, failed: int = 0) -> None:
        """Report `amount` more units; `failed` of them failed."""
        ...


class Silent:
    """Reports nothing."""

    def begin(self, work: str, total: int, unit: str) -> None:
        """Say nothing."""

    def advance(self, amount: int, failed: int = 0) -> None:
        """Say nothing."""
