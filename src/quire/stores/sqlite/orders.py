"""The terms of chunks in their order, and which chunks have terms that follow each other.

A term has a code of two bytes. Two terms rarely share one, and only chunks with all terms of a phrase are
looked at: a chunk without the phrase is taken for one that has it about once in a hundred million.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from quire.stores.matching import COLUMN_WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CODES = 65535
_MOST = 500_000  # codes that are kept


class _Codes(dict[str, int]):
    """The codes of terms; 0 stands behind a column."""

    def __missing__(self, term: str) -> int:
        if len(self) > _MOST:
            self.clear()
        self[term] = code = 1 + crc32(term.encode("utf-8", "surrogatepass")) % _CODES
        return code


_CODE = _Codes()


def coded(*columns: str) -> bytes:
    """The codes of the terms in each column."""
    found = array("H")
    for terms in columns:
        found.extend(map(_CODE.__getitem__, terms.split()))
        found.append(0)
    return found.tobytes()


class Orders:
    """The codes of some chunks."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        import numpy as np

        self._codes = np.frombuffer(b"".join(texts), np.uint16)
        self._starts = np.cumsum([0, *(len(text) // 2 for text in texts)])[:-1]
        self._count = len(texts)

    def weights(self, terms: Sequence[str], columns: Sequence[int]) -> NDArray[Any]:
        """How much each chunk has these terms in a row in some columns; 0 if it does not."""
        import numpy as np

        codes, size = self._codes, len(terms)
        if len(codes) < size:
            return np.zeros(self._count)
        found = np.ones(len(codes) - size + 1, bool)
        for place, term in enumerate(terms):
            found &= codes[place : len(codes) - size + 1 + place] == _CODE[term]
        at = np.flatnonzero(found)
        text = self._starts.searchsorted(at, "right") - 1
        column = np.searchsorted(np.flatnonzero(codes == 0), at) % len(COLUMN_WEIGHTS)
        weight_of = np.array([w if i in columns else 0 for i, w in enumerate(COLUMN_WEIGHTS)])
        return np.bincount(text, weights=weight_of[column], minlength=self._count)
