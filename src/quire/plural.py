"""Numbers with their nouns: `1 chunk is`, `2,000 chunks are`."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what it counts. `many` is needed where the plural is more than an s at the end."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
