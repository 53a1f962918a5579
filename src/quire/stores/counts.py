"""What is in a library, and what optimizing it gave back, in numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """What is in a library."""

    documents: int
    sections: int
    chunks: int
    bytes: int
    collections: dict[str, int]  # documents of each
    embedded: int = 0  # chunks with a vector of the model
    model: str = ""  # which that is; the instant one is always there besides
    instant: int = 0  # chunks with an instant vector
    serving: str = ""  # the model that searches of the whole library use; "" is words alone
    goes_on: bool = False  # whether `quire embed` has something to do
    model_problem: str = ""  # why the model that is set cannot be used


@dataclass(frozen=True, slots=True)
class Optimized:
    """What optimizing a library gave back. Sizes are bytes on disk."""

    before: int
    after: int
    notes: tuple[str, ...] = ()  # why there is less to show than there could be

    @property
    def freed(self) -> int:
        """The bytes that were given back."""
        return max(0, self.before - self.after)
