"""Prepared documents to a store, in batches, here or on other machines.

Always: a document is written whole or not at all, and fails alone; what was removed meanwhile, by its name or
with its source, is not written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from quire.config import Config
from quire.errors import LibraryError, NoResults, Unstorable
from quire.ingest.prepare import FileJob, Same, failed_by
from quire.ingest.report import Written
from quire.sources.files import Skipped
from quire.stores import DocumentRow, Prepared, SourceRow, Store

if TYPE_CHECKING:
    from quire.embed.base import Embedder

log = logging.getLogger("quire")
NEEDS_SERVER = (
    "needs a library on PostgreSQL, which many processes can write to; one in a file has one writer. Copy it"
    " there with: quire copy --to postgresql://…"
)
Done = Written | Same | Skipped | None  # None: it was removed by its name meanwhile, so it stays out
Elsewhere = Callable[[Sequence[FileJob], SourceRow, Config], Iterator[tuple[FileJob, Done]]]


@dataclass(frozen=True, slots=True)
class SharedLibrary:
    """The library that other machines write to. Its URL may hold a password."""

    url: str
    collections: tuple[str, ...] | None  # that it is limited to; None is all
    library: str  # its id


@runtime_checkable
class Machines(Protocol):
    """Other machines, or processes, that prepare and write documents and run a model."""

    def ingested(
        self, target: SharedLibrary, jobs: Sequence[FileJob], source: SourceRow, config: Config
    ) -> Iterator[tuple[FileJob, Done]]:
        """Each job, as it is done, with what came of it."""
        ...

    def embedder(self, own: Embedder, config: Config) -> tuple[Embedder, int]:
        """A model that runs there instead of here, and how many chunks to give it at once."""
        ...


def written_each(store: Store, batch: Sequence[Prepared], source: SourceRow) -> Iterator[Written | Skipped]:
    """Write a batch. If that fails, write each document alone. Raises NoResults if the source was removed."""
    batch = _still_wanted(store, batch, source)
    if not batch:
        return
    try:
        replaced = store.write(batch, source)
    except Exception as error:
        if isinstance(error, LibraryError) and not isinstance(error, Unstorable):
            raise  # every other document would fail, too
        if len(batch) == 1:
            yield failed_by(batch[0].path, error)
            return
        log.info("writing %d documents one by one: %s", len(batch), error)
        for one in batch:
            yield from written_each(store, [one], source)
    else:
        yield from map(Written.of, batch, replaced)


def _still_wanted(store: Store, batch: Sequence[Prepared], source: SourceRow) -> list[Prepared]:
    now = store.source_now(source) if batch else None
    if batch and now is None:
        name = source.name
        raise NoResults(f"{name} was removed from the sources meanwhile.", missing="source", name=name)
    return [one for one in batch if now and one.path not in now.options.without]


def written_again(
    store: Store, batch: Sequence[Prepared], source: SourceRow, replaces: Set[str]
) -> Iterator[Written | Skipped]:
    """Write what an earlier try of this batch has not, as far as is known: its answer was lost.

    `replaces` are the paths of the documents that the library had before.
    """
    there = [one for one in batch if _is_stored(one, store.document(one.collection, one.path))]
    yield from (Written.of(one, one.path in replaces) for one in there)
    known = {one.path for one in there}
    yield from written_each(store, [one for one in batch if one.path not in known], source)


def _is_stored(new: Prepared, row: DocumentRow | None) -> bool:
    """Whether a stored document is what would be written."""
    return row is not None and all(getattr(row, name) == getattr(new, name) for name in _COMPARED)


_COMPARED = ("kind", "url", "root", "format", "title", "checksum", "size", "mtime_ns", "made_by")
