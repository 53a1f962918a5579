"""How long work tells of itself. Stages report; surfaces show."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Something that is told how far work has come."""

    def total(self, items: int, size: int) -> None:
        """How much there is to do: items and bytes."""
        ...

    def advance(self, items: int, size: int) -> None:
        """So much more is done."""
        ...


class Silent:
    """Tells nobody."""

    def total(self, items: int, size: int) -> None:
        """Say nothing."""

    def advance(self, items: int, size: int) -> None:
        """Say nothing."""
