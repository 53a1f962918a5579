"""Instant meaning: a vector for each word piece, summed. No network is run, so it takes next to no time.

Input: texts. Output: vectors of length 1. Always: a text has the same vector whatever else is embedded, but
for the last digits; no part of a text is left out.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain, islice
from threading import Lock
from typing import TYPE_CHECKING, Any

from quire.embed.base import STATIC, STATIC_DIMENSION, loaded_once
from quire.embed.language import is_english
from quire.embed.weights import weights
from quire.embed.wordpiece import WordPiece
from quire.errors import EmbeddingError

if TYPE_CHECKING:
    from quire.embed.base import Vectors

# The sum does not depend on the order, so texts need no tokenizer: ASCII signs are counted, words are cut.
# Only words with other characters go through the tokenizer, each once.
_LOWER = bytes(ord(chr(c).lower()) if chr(c).isalnum() else 32 for c in range(128)) + bytes(range(128, 256))
_CONTROLS = bytes(code for code in (*range(32), 127) if chr(code) not in "\t\n\r")
_MAX_KNOWN = 30_000  # words and pieces whose vectors are kept: 30 MB
_KEPT = 20_000  # of them if there are more: those that came first are the frequent ones
_TOGETHER = 64  # texts: their numbers stay in the processor's cache
_SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"  # becomes another letter at the end of a word, wherever that is


def _encoded(text: str) -> bytes:
    return text.encode(errors="ignore")  # half of a surrogate pair is no letter


class Static:
    """The bundled table of word pieces: of each a scale, and a byte for each number."""

    name, dimension, max_tokens = STATIC, STATIC_DIMENSION, sys.maxsize

    @loaded_once
    def _table(self) -> Any:
        import numpy as np

        try:
            return np.load(weights("static.npy"), mmap_mode="r")
        except (OSError, ValueError) as problem:
            raise EmbeddingError(self.name, f"its table cannot be read: {problem}") from None

    @loaded_once
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

    def _sum_words(self, texts: Sequence[str]) -> Any:
        """The sums of the vectors of texts' words: how often each is in each text, times their vectors."""
        import numpy as np

        rows = list(map(self._parts, texts))
        sizes = list(map(len, rows))
        words, places, vectors = self._known.found(chain.from_iterable(rows), sum(sizes))
        places += np.repeat(np.arange(len(rows)) * len(words), sizes)
        counts = np.bincount(places, minlength=len(rows) * len(words)).reshape(len(rows), -1)
        return counts.astype(np.float32) @ vectors

    def _sum_signs(self, texts: Sequence[str]) -> Any:
        """The sums of the vectors of the ASCII signs in texts, which are words of their own."""
        import numpy as np

        signs, vectors = self._signs
        raw = [b"" if _SIGMA in text else _encoded(text) for text in texts]
        places = np.repeat(np.arange(len(raw)) * 256, list(map(len, raw)))
        places += np.frombuffer(b"".join(raw), np.uint8)
        counts = np.bincount(places, minlength=256 * len(raw)).reshape(-1, 256)[:, signs]
        return counts.astype(np.float32) @ vectors

    def _parts(self, text: str) -> Sequence[bytes | int]:
        """What a text is made of: its words; its pieces if a word depends on what is around it."""
        if _SIGMA in text:
            return self._words.pieces(text)
        return _encoded(text).translate(_LOWER, _CONTROLS).split()

    @loaded_once
    def _known(self) -> _Known:
        return _Known(self._vectors)

    def _vectors(self, parts: Sequence[bytes | int]) -> Any:
        """The sums of the vectors of words' pieces, and the vectors of pieces."""
        import numpy as np

        pieces = [self._pieces(part) for part in parts]
        starts = list(accumulate((len(some) or 1 for some in pieces[:-1]), initial=0))
        rows = self._rows([piece for some in pieces for piece in some or [0]])
        found = np.add.reduceat(rows, starts)
        found[[not some for some in pieces]] = 0
        return found

    def _pieces(self, part: bytes | int) -> Sequence[int]:
        if isinstance(part, int):
            return [part]
        return self._words.cut(part.decode()) if part.isascii() else self._words.pieces(part.decode())

    @loaded_once
    def _signs(self) -> tuple[Any, Any]:
        """The signs of ASCII, and their vectors."""
        import numpy as np

        signs = list(map(ord, string.punctuation))
        return np.array(signs), self._rows([self._words.ids[chr(sign)] for sign in signs])

    def _rows(self, pieces: list[int]) -> Any:
        """The vectors of some pieces."""
        import numpy as np

        rows = self._table[pieces]
        found = rows[:, 4:].view(np.int8).astype(np.float32)
        found *= np.ascontiguousarray(rows[:, :4]).view(np.float32)
        return found

    def close(self) -> None:
        """Close the table."""
        self.__dict__.pop("_table", None)


class _Known(dict[bytes | int, int]):
    """Words and pieces, numbered, and their vectors: as many as there is room for."""

    def __init__(self, vectors_of: Callable[[Sequence[bytes | int]], Any]) -> None:
        import numpy as np

        self._vectors_of, self._new, self._turn = vectors_of, list[bytes | int](), Lock()
        self.vectors = np.empty((0, STATIC_DIMENSION), np.float32)

    def __missing__(self, part: bytes | int) -> int:
        self[part] = number = len(self)
        self._new.append(part)
        return number

    def found(self, parts: Iterable[bytes | int], count: int) -> tuple[Any, Any, Any]:
        """The numbers of some parts, each once; which of them each part has; and their vectors."""
        import numpy as np

        with self._turn:  # other threads change the table
            numbers, places = np.unique(self._numbers(parts, count), return_inverse=True)
            return numbers, places, self.vectors[numbers]

    def _numbers(self, parts: Iterable[bytes | int], count: int) -> Any:
        """The numbers of some parts, whose vectors are there now. Those given before may count no longer."""
        import numpy as np

        if len(self) > _MAX_KNOWN:
            for part in [*islice(self, _KEPT, None)]:
                del self[part]
        found = np.fromiter(map(self.__getitem__, parts), np.int64, count)
        if len(self) > len(self.vectors):
            self.vectors.resize((2 * len(self), STATIC_DIMENSION), refcheck=False)
        if self._new:
            self.vectors[len(self) - len(self._new) : len(self)] = self._vectors_of(self._new)
            self._new.clear()
        return found
