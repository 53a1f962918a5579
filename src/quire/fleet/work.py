"""What runs on the workers of a fleet: reading batches, writing them, and a model.

Input: jobs and settings without secrets. Output: whether it worked, and what came of it or the error. Always:
what reads documents has no key to the library; only what writes has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from quire.config import Config, EmbedSettings
from quire.embed import open_embedder
from quire.errors import LibraryError, QuireError
from quire.ingest.prepare import FileJob, Same, made_by, prepared_batch
from quire.ingest.report import Written
from quire.ingest.writing import SharedLibrary, written_again, written_each
from quire.sources.files import Skipped
from quire.stores import Prepared, SourceRow, Store, open_store

if TYPE_CHECKING:
    from quire.embed.base import Vectors

T = TypeVar("T")
Tried = tuple[bool, Any]  # whether it worked, and the result or the error
Passed = list[tuple[str, Same | Skipped]]  # paths of files, and why none of their documents is written


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """What to read, and how."""

    jobs: tuple[FileJob, ...]
    config: Config  # without secrets
    made_by: str  # what documents are made by where the plan was made
    guarded: bool  # in a process of its own, which a file may end


def read_batch(order: BatchOrder) -> tuple[list[Prepared], Tried]:
    """The documents of some files, and what came of the other files."""
    answer = _tried(partial(_read, order))
    documents, passed = answer[1] if answer[0] else ([], answer[1])
    return documents, (answer[0], passed)


def _read(order: BatchOrder) -> tuple[list[Prepared], Passed]:
    mine = made_by(order.config)
    if mine != order.made_by:
        raise LibraryError("fleet", f"a worker has other versions than this machine: {mine}")
    outcomes = prepared_batch(order.jobs, order.config, guarded=order.guarded)
    found = list(zip(order.jobs, outcomes, strict=True))
    passed = [(job.found.path, one) for job, one in found if not isinstance(one, Prepared)]
    return [one for _, one in found if isinstance(one, Prepared)], passed


class Writer:
    """Writes documents to one library, by one connection."""

    def __init__(self, target: SharedLibrary) -> None:
        self._target = target
        self._store: Store | None = None

    def write(
        self, documents: list[Prepared], source: SourceRow, replaces: frozenset[str], again: bool
    ) -> Tried:
        """Write the documents of a batch; `again` if an earlier try may have written them."""
        return _tried(partial(self._write, documents, source, replaces, again))

    def _write(
        self, documents: list[Prepared], source: SourceRow, replaces: frozenset[str], again: bool
    ) -> list[Written | Skipped]:
        store = self._store = self._store or self._opened()
        if not again:
            return list(written_each(store, documents, source))
        return list(written_again(store, documents, source, replaces))

    def _opened(self) -> Store:
        target = self._target
        store = open_store(target.url, collections=target.collections)
        if store.library_id() != target.library:
            raise LibraryError(target.url, "is another library, seen from a worker of the fleet")
        return store


class Modeller:
    """Embeds texts with one model, on one processor or GPU."""

    def __init__(self, name: str, settings: EmbedSettings) -> None:
        self._name, self._settings = name, settings
        self._embedder: Any = None

    def embed(self, texts: Sequence[str]) -> Tried:
        """The vectors of texts."""
        return _tried(partial(self._embed, texts))

    def _embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        self._embedder = self._embedder or open_embedder(self._name, self._settings)
        if self._embedder.name != self._name:
            raise LibraryError("fleet", f"a worker has {self._embedder.name}, and not {self._name}")
        # One at a time: the model would start a thread for each processor of the machine.
        return np.vstack([self._embedder.embed_documents([text]) for text in texts])


def _tried(work: Callable[[], T]) -> Tried:
    try:
        return True, work()
    except QuireError as error:
        return False, error
