"""Read the best hits again with a cross-encoder, and put them in a better order.

Input: hits, best first. Output: the same hits, the best in another order, the others behind them. The numbers
were chosen on documentation, manuals, source code and science (bench/README.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.embed.cross import CrossEncoder
from quire.errors import Damaged, EmbeddingError
from quire.result import Hit
from quire.stores import ChunkRow, SectionRow, Store, embedded_text

BEST = 10  # hits that are read again: each takes about 17 ms on two cores
WEIGHT = 0.1  # how much a logit counts; the best match by words counts 1


def reranked(
    store: Store, cross: CrossEncoder, question: str, hits: list[Hit], notes: list[str]
) -> tuple[list[Hit], bool]:
    """Hits in a better order, and whether they were read again. If not, a note says why."""
    if not (hits and question):
        return hits, False
    try:
        if not cross.knows(question):
            notes.append("Not read again: the cross-encoder does not know the language of this query.")
            return hits, False
        logits = cross.logits(question, _texts(store, hits[:BEST]))
    except EmbeddingError as problem:
        notes.append(f"Not read again. {problem}")
        return hits, False
    return reordered(hits, logits), True


def reordered(hits: Sequence[Hit], logits: Sequence[float]) -> list[Hit]:
    """Hits with what their logits add. The first hits have logits; the others count as the least of them.

    What a logit adds is counted from the least one: so no score falls, and the others stay behind.
    """
    least, read = min(logits), len(logits)
    found = [hit.reread(logit, WEIGHT * (logit - least)) for hit, logit in zip(hits, logits, strict=False)]
    found.sort(key=lambda hit: (-hit.score, hit.chunk))
    return [*found, *(hit.reread(least, 0.0) for hit in hits[read:])]


def _texts(store: Store, hits: Sequence[Hit]) -> list[str]:
    """The texts of hits as models read them."""
    chunks = store.chunks([hit.chunk for hit in hits])
    return [_text(store, chunks[hit.chunk]) for hit in hits]


def _text(store: Store, chunk: ChunkRow) -> str:
    """The text of a chunk; "" if it is damaged: such results are left out later."""
    try:
        section: SectionRow = store.section(chunk.document, chunk.section)
        text = store.passage(chunk.document, chunk.byte_start, chunk.byte_end)
    except Damaged:
        return ""
    return embedded_text(section.titles, chunk.context, text, chunk.start)
