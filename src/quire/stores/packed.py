"""The rows of one document, packed: those of a large one take a multiple of its text otherwise.

Input: rows, some at a time. Output: the same rows, as often as they are wanted. Always: only a few are
unpacked at the same time.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

T = TypeVar("T")
LARGE = 1_000_000  # bytes of a document whose rows are packed: of others, that only takes time
_TOGETHER = 256  # rows
_LEVEL = 1  # the fastest, which makes rows three times smaller


class Packed(Sequence[T]):
    """Rows of numbers, strings and bytes, in order."""

    def __init__(self, rows: Iterable[T]) -> None:
        self._parts, self._count, left = list[bytes](), 0, iter(rows)
        while some := list(islice(left, _TOGETHER)):
            self._parts.append(zlib.compress(marshal.dumps(some), _LEVEL))
            self._count += len(some)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return (row for part in self._parts for row in _unpacked(part))

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self[place] for place in range(self._count)[index]]
        place = range(self._count)[index]
        found: T = _unpacked(self._parts[place // _TOGETHER])[place % _TOGETHER]
        return found


def _unpacked(part: bytes) -> list[Any]:
    rows: list[Any] = marshal.loads(zlib.decompress(part))  # noqa: S302  packed by this process or its worker
    return rows


def held(rows: Iterable[T], size: int) -> Sequence[T]:
    """The rows of a document of so many bytes: packed if it is large."""
    return Packed(rows) if size >= LARGE else tuple(rows)
