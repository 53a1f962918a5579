"""The signatures of vectors: one bit for each number, set if it is above zero.

A search scans them all in memory to find the few vectors that are worth comparing. Always: only blocks that
were written since are read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quire.stores.rows import MAX_CHUNKS, Model

if TYPE_CHECKING:
    from numpy import int64, uint64
    from numpy.typing import NDArray


RESCORED = 500  # of the nearest signatures are rescored; and more in larger libraries:
RESCORED_SHARE = 0.002
RESCORED_DOCUMENTS = 100  # fewer are asked for
BLOCK_BITS = 10
BLOCK = 1 << BLOCK_BITS
MODEL_BITS = 32
_SLAB = 1 << 16  # vectors at a time: what is between two steps stays in the processor's cache


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of a model's vectors in memory: one array for each 64 bits."""

    model: Model
    generation: int
    blocks: dict[int, tuple[bytes, bytes]]
    slots: NDArray[int64]
    chunks: NDArray[int64]
    documents: NDArray[int64]
    words: NDArray[uint64]

    @classmethod
    def nothing(cls, model: Model) -> Signatures:
        """None yet."""
        import numpy as np

        none = np.empty(0, np.int64)
        return cls(model, -1, {}, none, none, none, np.empty((width_of(model.dimension) // 8, 0), np.uint64))

    def with_blocks(self, newer: list[tuple[int, int, bytes, bytes]]) -> Signatures:
        """The same with new or changed blocks; free slots are left out."""
        import numpy as np

        blocks = self.blocks | {block: (chunks, signatures) for block, _, chunks, signatures in newer}
        order = sorted(blocks)
        chunks = np.frombuffer(b"".join(blocks[block][0] for block in order), np.int64)
        words = np.frombuffer(b"".join(blocks[block][1] for block in order), np.uint64)
        first = np.array(order, np.int64) << BLOCK_BITS
        slots = (first[:, None] + np.arange(BLOCK)).ravel()
        live = np.flatnonzero(chunks)
        columns = np.ascontiguousarray(words.reshape(len(chunks), -1)[live].T)
        chunks = chunks[live]
        generation = max(self.generation, *(generation for _, generation, _, _ in newer))
        documents = chunks // MAX_CHUNKS
        return Signatures(self.model, generation, blocks, slots[live], chunks, documents, columns)

    def nearest(self, signs: NDArray[uint64], documents: Iterable[int] | None, count: int) -> NDArray[int64]:
        """The places of the nearest signatures: at least `count`, if there are so many."""
        import numpy as np

        among, words = None, self.words
        if documents is not None:
            among = self._among(documents)
            words = words[:, among]
        size = words.shape[1]
        count = max(count, round(RESCORED_SHARE * size))
        if count >= size:
            found = np.arange(size)
        else:
            distances = _distances(words, signs)
            within = np.searchsorted(np.cumsum(np.bincount(distances)), count)
            found = np.flatnonzero(distances <= within)
        return found if among is None else among[found]

    def count(self, documents: Iterable[int] | None) -> int:
        """How many there are of some documents, or of all."""
        return len(self.chunks if documents is None else self._among(documents))

    def _among(self, documents: Iterable[int]) -> NDArray[int64]:
        """The places of the signatures of some documents."""
        import numpy as np

        wanted = np.fromiter(documents, np.int64)
        known = np.zeros(max(wanted.max(initial=0), self.documents.max(initial=0)) + 1, bool)
        known[wanted] = True
        return np.flatnonzero(known[self.documents])


def _distances(words: NDArray[uint64], signs: NDArray[uint64]) -> Any:
    """The Hamming distance of each column."""
    import numpy as np

    total = np.empty(words.shape[1], np.uint16)
    for start in range(0, len(total), _SLAB):
        slab = words[:, start : start + _SLAB]
        some = np.zeros(slab.shape[1], np.uint16)
        for row, word in zip(slab, signs, strict=True):
            some += np.bitwise_count(row ^ word)
        total[start : start + _SLAB] = some
    return total


def slots_of(model: Model) -> tuple[int, int]:
    """The first slot of a model, and the first after its last."""
    return model.id << MODEL_BITS, (model.id + 1) << MODEL_BITS


def width_of(dimension: int) -> int:
    """The bytes of a signature: a multiple of eight."""
    return (dimension + 63) // 64 * 8


def signature_of(blob: bytes, dimension: int) -> bytes:
    """The signature of a stored vector."""
    import numpy as np

    return sign_bits(np.frombuffer(blob, np.int8, dimension, 4)).tobytes()


def sign_bits(vector: Any) -> NDArray[uint64]:
    """The signature of a vector: one bit for each number, set if it is above zero."""
    import numpy as np

    bits = np.zeros(width_of(len(vector)), np.uint8)
    packed = np.packbits(vector > 0)
    bits[: len(packed)] = packed
    return bits.view(np.uint64)


def signatures_of(vectors: bytes, dimension: int) -> list[bytes]:
    """The signatures of stored vectors that follow one another."""
    import numpy as np

    numbers = np.frombuffer(vectors, np.int8).reshape(-1, 4 + dimension)[:, 4:]
    bits = np.zeros((len(numbers), width_of(dimension)), np.uint8)
    packed = np.packbits(numbers > 0, axis=1)
    bits[:, : packed.shape[1]] = packed
    return [row.tobytes() for row in bits]
