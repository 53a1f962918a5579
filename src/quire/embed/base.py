"""The Embedder protocol: texts to vectors.

Always: one vector of length 1 for each text, in order, as float32; nothing of a long text is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]  # one row for each text


# A name stands for its weights: other weights get another name.
STATIC, STATIC_DIMENSION = "static", 256  # instant meaning: always there, written with the words
DEEP = "deep"


class Embedder(Protocol):
    """A model that turns texts into vectors, for any thread. Making one loads nothing; its first use does."""

    @property
    def name(self) -> str:
        """What settings call it: `deep`, `ollama/mxbai-embed-large`."""
        ...

    @property
    def dimension(self) -> int:
        """The dimension of its vectors."""
        ...

    @property
    def max_tokens(self) -> int:
        """The most tokens that the model reads at once; a longer text is embedded in windows of this size."""
        ...

    def knows(self, text: str) -> bool:
        """Whether the model knows the language of a question; True if that cannot be told.

        If False, the cosines of the question say little. Raises EmbeddingError if the model cannot be read.
        """
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text; raises EmbeddingError, which names the texts that cannot be embedded."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question, as a 1-D array."""
        ...

    def close(self) -> None:
        """Close the model, or the connections to it."""
        ...


if TYPE_CHECKING:
    loaded_once = cached_property
else:

    class loaded_once(cached_property):  # noqa: N801
        """A cached property that one thread loads while others wait. From Python 3.12 on, several would."""

        def __init__(self, load):
            super().__init__(load)
            self._loading = RLock()

        def __get__(self, instance, owner=None):
            """The value, which later is found without this call."""
            with self._loading:
                return super().__get__(instance, owner)


def unit(numbers: Sequence[float] | Vectors) -> Vectors | None:
    """Numbers as a vector of length 1; None if they are no vector, or all zeros, or not finite."""
    import numpy as np

    try:
        vector = np.array(numbers, np.float64)
    except (TypeError, ValueError):
        return None
    largest = np.abs(vector).max(initial=0.0)
    if vector.ndim != 1 or not 0 < largest < np.inf:
        return None
    scaled = vector / largest  # so that no square is too large or too small
    found: Vectors = (scaled / np.linalg.norm(scaled)).astype(np.float32)
    return found


def packed(vectors: Vectors) -> bytes:
    """Vectors as bytes, one after the other: of each a float32 scale, and an int8 for each number."""
    import numpy as np

    scales = np.abs(vectors).max(axis=1, keepdims=True).astype(np.float32) / 127
    numbers = np.rint(vectors / np.where(scales > 0, scales, 1)).astype(np.int8)
    whole = np.hstack([np.ascontiguousarray(scales).view(np.int8), numbers])
    return whole.tobytes()


def unpacked(vectors: bytes, dimension: int) -> Vectors:
    """The vectors that were packed, rounded. Packing them again gives the same bytes."""
    import numpy as np

    whole = np.frombuffer(vectors, np.int8).reshape(-1, 4 + dimension)
    scales = np.ascontiguousarray(whole[:, :4]).view(np.float32)
    found: Vectors = scales * whole[:, 4:].astype(np.float32)
    return found


def mean_of(vectors: bytes, dimension: int) -> Vectors:
    """The mean of packed vectors, with length 1."""
    import numpy as np

    found = unpacked(vectors, dimension).sum(axis=0)
    mean: Vectors = found / (np.linalg.norm(found) or 1.0)
    return mean
