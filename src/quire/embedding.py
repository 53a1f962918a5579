"""Embed chunks that have no vector, and write the vectors to the store in batches.

Always: written vectors stay, so an interrupted run resumes where it stopped; a text is embedded only once;
documents that a model refuses are named and keep the vectors they have.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quire.embed.base import Embedder
from quire.errors import EmbeddingError
from quire.progress import Progress, Silent
from quire.stores import Model, Store, Unembedded, active_model

if TYPE_CHECKING:
    from quire.embed.base import Vectors

log = logging.getLogger("quire")
_BATCH = 128  # chunks in one transaction: what an interrupted run may lose
_TRIALS = (16, 64)  # chunks to load the model with, and to time it by


@dataclass(frozen=True, slots=True)
class Embedded:
    """What an embedding run did."""

    model: str
    embedded: int  # chunks with a new vector
    reused: int  # chunks whose text had one already
    failed: dict[int, str]  # documents, and why
    seconds: float
    searched_with: str  # the model that searches use now
    left: int = 0  # chunks that have no vector because they would have taken too long
    seconds_left: float = 0.0  # that they would take


def embed(
    store: Store,
    embedder: Embedder,
    progress: Progress | None = None,
    documents: Sequence[int] = (),
    within: float = math.inf,
    together: int = 0,
) -> Embedded:
    """Embed every chunk that has no vector of a model. Searches use the model once all chunks have one.

    If `documents` are given, only theirs are embedded. If all would take longer than `within` seconds, the
    run ends as soon as that is known. If `together` is set, so many chunks are embedded
    at once. Raises EmbeddingError if the
    model cannot be used; earlier vectors are kept.
    """
    started, progress = time.monotonic(), progress or Silent()
    model = store.model(embedder.name, embedder.dimension)
    missing = store.count_unembedded(model)
    log.info("embedding %d chunks with %s", missing, model.name)
    progress.begin(f"embedding with {model.name}", missing, "chunks")
    run, pace, after = _Run(store, embedder, model), _Pace(missing, within, together or _BATCH), -1
    while not pace.is_too_slow and (chunks := store.unembedded(model, pace.size, after, documents)):
        run.batch(chunks)
        after = chunks[-1].chunk
        pace.advance(len(chunks))
        progress.advance(len(chunks))
    left = store.count_unembedded(model) if pace.is_too_slow else 0
    known = {} if model.is_instant else store.embedding_failures()
    failed = run.failed | {row: why for row, why in known.items() if documents and row not in documents}
    if failed != known:
        store.note_failures(failed)
    if not (model.active or failed or documents or left):
        store.activate(model)
    active = active_model(store.models(), instant=model.is_instant) or model
    seconds = time.monotonic() - started
    log.info("embedded %d chunks in %.0f ms", run.embedded, seconds * 1000)
    done = run.embedded, run.reused, run.failed, seconds, active.name
    return Embedded(model.name, *done, left, left * pace.seconds_each)


class _Pace:
    """How fast a run is, and whether it would take too long."""

    def __init__(self, missing: int, within: float, together: int) -> None:
        self._missing, self._within, self._together = missing, within, together
        self._started = self._last = time.monotonic()
        self._batches = 0
        self.seconds_each = 0.0  # of the last batch
        self.is_too_slow = False

    @property
    def size(self) -> int:
        """How many chunks to embed next: few at first, if the time is limited."""
        is_trial = self._batches < len(_TRIALS) and self._within < math.inf
        return _TRIALS[self._batches] if is_trial else self._together

    def advance(self, count: int) -> None:
        """Note that some chunks are done. The first batch tells nothing: it loads the model."""
        now = time.monotonic()
        self.seconds_each, self._last = (now - self._last) / count, now
        self._missing -= count
        self._batches += 1
        ahead = now - self._started + max(0, self._missing) * self.seconds_each
        self.is_too_slow = self._batches > 1 and ahead > self._within


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
