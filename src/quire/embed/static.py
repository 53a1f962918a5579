"""Instant meaning: a vector for each word piece, summed. No network is run, so it takes next to no time.

Input: texts. Output: vectors of length 1. Always: a text has the same vector whatever else is embedded, but
for the last digits; no part of a text is left out.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from quire.embed.base import STATIC, STATIC_DIMENSION
from quire.embed.language import is_english
from quire.embed.weights import weights
from quire.embed.wordpiece import MAX_KNOWN, WordPiece
from quire.errors import EmbeddingError

if TYPE_CHECKING:
    from quire.embed.base import Vectors

# The sum does not depend on the order, so ASCII texts need no tokenizer: signs are counted, words are cut.
_LOWER = bytes(ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else 32 for code in range(256))
_CONTROLS = bytes(code for code in (*range(32), 127) if chr(code) not in "\t\n\r")
_TOGETHER = 64  # texts: their numbers stay in the processor's cache


class Static:
    """The bundled table of word pieces: of each a scale, and a byte for each number."""

    name, dimension, max_tokens = STATIC, STATIC_DIMENSION, sys.maxsize

    @cached_property
    def _table(self) -> Any:
        import numpy as np

        try:
            return np.load(weights("static.npy"), mmap_mode="r")
        except (OSError, ValueError) as problem:
            raise EmbeddingError(self.name, f"its table cannot be read: {problem}") from None

    @cached_property
    def _words(self) -> WordPiece:
        return WordPiece(weights("vocab.txt").read_text("utf-8").splitlines())

    def knows(self, text: str) -> bool:
        """Whether a question is in English."""
        return is_english(text, self._words.ids)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text."""
        import numpy as np

        parts = [self._summed(texts[at : at + _TOGETHER]) for at in range(0, len(texts), _TOGETHER)]
        return np.concatenate(parts) if parts else np.empty((0, STATIC_DIMENSION), np.float32)

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        found: Vectors = self._summed([text])[0]
        return found

    def _summed(self, texts: Sequence[str]) -> Vectors:
        """The sums of the vectors of texts' pieces, each with length 1."""
        import numpy as np

        found = self._sum_words(texts) + self._sum_signs(texts)
        found[~found.any(axis=1)] = self._signs[1][0]  # a text without words has some vector, too
        unit: Vectors = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
        return unit

    def _sum_words(self, texts: Sequence[str]) -> Vectors:
        """The sums of the vectors of texts' words: how often each piece is in each text, times the table."""
        import numpy as np

        rows = list(map(self._pieces, texts))
        sizes = list(map(len, rows))
        pieces, places = np.unique(
            np.fromiter(chain.from_iterable(rows), np.int64, sum(sizes)), return_inverse=True
        )
        places += np.repeat(np.arange(len(rows)) * len(pieces), sizes)
        counts = np.bincount(places, minlength=len(rows) * len(pieces)).reshape(len(rows), -1)
        scales, numbers = self._rows(pieces)
        found: Vectors = (counts * scales).astype(np.float32) @ numbers
        return found

    def _sum_signs(self, texts: Sequence[str]) -> Any:
        """The sums of the vectors of the signs in ASCII texts, which are words of their own."""
        import numpy as np

        signs, rows = self._signs
        counts = np.zeros((len(texts), len(signs)), np.float32)
        for place, text in enumerate(texts):
            if text.isascii():
                counts[place] = np.bincount(np.frombuffer(text.encode(), np.uint8), minlength=128)[signs]
        return counts @ rows

    def _pieces(self, text: str) -> list[int]:
        """The pieces of a text; of an ASCII text those of its words, in no time."""
        if text.isascii():
            words = text.encode().translate(_LOWER, _CONTROLS).split()
            return list(chain.from_iterable(map(self._known.__getitem__, words)))
        return self._words.pieces(text)

    @cached_property
    def _known(self) -> _Words:
        return _Words(self._words)

    @cached_property
    def _signs(self) -> tuple[Any, Any]:
        """The signs of ASCII, and their vectors."""
        import numpy as np

        signs = list(map(ord, string.punctuation))
        scales, numbers = self._rows(np.array([self._words.ids[chr(sign)] for sign in signs]))
        return np.array(signs), scales[:, None] * numbers

    def _rows(self, pieces: Any) -> tuple[Any, Any]:
        """Some rows of the table: their scales, and their numbers."""
        import numpy as np

        rows = self._table[pieces]
        return np.ascontiguousarray(rows[:, :4]).view(np.float32)[:, 0], rows[:, 4:].view(np.int8).astype(
            np.float32
        )

    def close(self) -> None:
        """Close the table."""
        self.__dict__.pop("_table", None)


class _Words(dict[bytes, list[int]]):
    """ASCII words and their pieces, as many as there is room for."""

    def __init__(self, words: WordPiece) -> None:
        self._words = words

    def __missing__(self, word: bytes) -> list[int]:
        if len(self) > MAX_KNOWN:
            self.clear()
        self[word] = pieces = self._words.pieces(word.decode())
        return pieces
