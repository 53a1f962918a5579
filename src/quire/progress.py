"""How long work tells of itself. Stages report; surfaces show."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Something that is told how far work has come."""

    def begin(self, work: str, total: int, unit: str) -> None:
        """A piece of work begins, such as `indexing 12 files`: how much there is of it, in which unit."""
        ...

    def advance(self, amount: int, failed: int = 0) -> None:
        """So much more is done, of which so much failed."""
        ...


class Silent:
    """Tells nobody."""

    def begin(self, work: str, total: int, unit: str) -> None:
        """Say nothing."""

    def advance(self, amount: int, failed: int = 0) -> None:
        """Say nothing."""
