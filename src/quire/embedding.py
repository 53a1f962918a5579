"""Embed chunks that have no vector, and write the vectors to the store in batches.

Always: written vectors stay, so an interrupted run resumes where it stopped; a text is embedded only once;
documents that a model refuses are named and keep the vectors they have.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quire.embed.base import Embedder
from quire.errors import EmbeddingError
from quire.progress import Progress, Silent
from quire.stores import Model, Store, Unembedded

if TYPE_CHECKING:
    from quire.embed.base import Vectors

log = logging.getLogger("quire")
_BATCH = 256  # chunks in one transaction: a few seconds of work


@dataclass(frozen=True, slots=True)
class Embedded:
    """What an embedding run did."""

    model: str
    embedded: int  # chunks with a new vector
    reused: int  # chunks whose text had one already
    failed: dict[int, str]  # documents, and why
    seconds: float
    searched_with: str  # the model that searches use now


def embed(
    store: Store, embedder: Embedder, progress: Progress | None = None, documents: Sequence[int] = ()
) -> Embedded:
    """Embed every chunk that has no vector of a model. Searches use the model once all chunks have one.

    If `documents` are given, only theirs are embedded. Raises EmbeddingError if the model cannot be used;
    earlier vectors are kept.
    """
    started, progress = time.monotonic(), progress or Silent()
    model = store.model(embedder.name, embedder.dimension)
    missing = store.count_unembedded(model)
    log.info("embedding %d chunks with %s", missing, model.name)
    progress.begin(f"embedding with {model.name}", missing, "chunks")
    run, after = _Run(store, embedder, model), -1
    while chunks := store.unembedded(model, _BATCH, after, documents):
        run.batch(chunks)
        after = chunks[-1].chunk
        progress.advance(len(chunks))
    known = store.embedding_failures()
    failed = run.failed | {row: why for row, why in known.items() if documents and row not in documents}
    if failed != known:
        store.note_failures(failed)
    if not model.active and not failed and not documents:
        store.activate(model)
    active = next(known.name for known in store.models() if known.active)
    seconds = time.monotonic() - started
    log.info("embedded %d chunks in %.0f ms", run.embedded, seconds * 1000)
    return Embedded(model.name, run.embedded, run.reused, run.failed, seconds, active)


class _Run:
    """One run, and what it has done so far."""

    def __init__(self, store: Store, embedder: Embedder, model: Model) -> None:
        self.store, self.embedder, self.model = store, embedder, model
        self.embedded = self.reused = 0
        self.failed: dict[int, str] = {}

    def batch(self, chunks: Sequence[Unembedded]) -> None:
        """Embed some chunks, each text once, and write the vectors."""
        known = self.store.reuse(self.model, chunks)
        self.reused += len(known)
        new = [chunk for chunk in chunks if chunk.chunk not in known]
        texts = list(dict.fromkeys(chunk.text for chunk in new))
        if not texts:
            return
        vectors, refused = self._vectors(texts)
        place = {text: at for at, text in enumerate(texts)}
        taken = [chunk for chunk in new if place[chunk.text] not in refused]
        self.failed |= {chunk.document: refused[at] for chunk in new if (at := place[chunk.text]) in refused}
        self.store.write_vectors(self.model, taken, vectors[[place[chunk.text] for chunk in taken]])
        self.embedded += len(taken)

    def _vectors(self, texts: list[str]) -> tuple[Vectors, dict[int, str]]:
        """A vector for each text that the model takes, and why it refuses the others."""
        try:
            return self.embedder.embed_documents(texts), {}
        except EmbeddingError as problem:
            if problem.vectors is None:
                raise
            return problem.vectors, dict.fromkeys(problem.refused, str(problem))
