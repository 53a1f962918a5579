"""A plan's jobs to a cluster: batches are tasks, what writes is an actor, and so is a model.

Always: only so many batches are on their way, of so many bytes; a batch whose worker died is done again, and
from then on in processes of its own, so that a file that ends them fails alone; what an earlier try wrote is
not written again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle, islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from quire import policy
from quire.config import Config, EmbedSettings
from quire.embed.base import Embedder
from quire.errors import EmbeddingError, LibraryError, QuireError
from quire.fleet.cluster import Cluster, check_address, join
from quire.fleet.work import BatchOrder, Modeller, Tried, Writer, read_batch
from quire.ingest.prepare import FileJob, failed_by, is_harmless, made_by, read_file
from quire.ingest.report import Written
from quire.ingest.writing import Done, SharedLibrary
from quire.stores import SourceRow

if TYPE_CHECKING:
    from quire.embed.base import Vectors

log = logging.getLogger("quire")
_FILES, _BYTES = 128, 2_000_000  # of a batch: what a worker that dies may cost
_AHEAD = 2  # batches on their way, for each processor
_TRIES = 25  # of a batch: then the machines are at fault, and not chance
_MOST_WRITERS = 32  # connections
_TOGETHER = 32  # texts that a model gets at once
_ROUNDS = 4  # such parts for each model in one round, so that none waits for the slowest


class Fleet:
    """Processes or machines that index together. Pages and texts are indexed by the caller's own."""

    def __init__(self, address: str) -> None:
        """Make a fleet of the cluster at an address, which it joins when it is first used."""
        check_address(address)
        self.address = address
        self.retried = 0  # batches and parts that were done again, because a worker died

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        cluster = self.__dict__.pop("_cluster", None)
        if cluster:
            cluster.leave()

    def start(self) -> None:
        """Join the cluster now. Raises MissingExtra without Ray, and LibraryError if there is none."""
        _ = self._cluster

    @cached_property
    def _cluster(self) -> Cluster:
        return join(self.address)

    def ingested(
        self, target: SharedLibrary, jobs: Sequence[FileJob], source: SourceRow, config: Config
    ) -> Iterator[tuple[FileJob, Done]]:
        """Each job, as it is done, with what came of it."""
        if not jobs:
            return
        run = _Run(self, self._cluster, target, source, config)
        try:
            yield from run.done(jobs)
        finally:
            run.end()

    def embedder(self, own: Embedder, config: Config) -> tuple[Embedder, int]:
        """A model that runs on the fleet, and how many chunks to give it at once."""
        found = _FleetEmbedder(self, self._cluster, own, replace(config.embed, key=""))
        return found, found.together


@dataclass(slots=True, eq=False)
class _Batch:
    """Some jobs, and how far they are."""

    jobs: tuple[FileJob, ...]
    guarded: bool
    tries: int = 0
    slot: int = 0  # of what writes it
    writer: Any = None  # what was in that slot
    documents: Any = None  # a reference to what was read
    passed: Any = None  # and to what came of the other files
    unsent: list[tuple[FileJob, Done]] = field(default_factory=list)  # files that could not be read here


class _Run:
    """One plan on a cluster."""

    def __init__(
        self, fleet: Fleet, cluster: Cluster, target: SharedLibrary, source: SourceRow, config: Config
    ) -> None:
        self.fleet, self.cluster, self.source, self.config = fleet, cluster, source, config
        self._ray, self._open, self._made_by = cluster.ray, without_secrets(config), made_by(config)
        self._read = self._ray.remote(num_cpus=1, max_retries=0, num_returns=2)(read_batch)
        writer = self._ray.remote(num_cpus=0)(Writer)
        count = min(_MOST_WRITERS, max(1, cluster.cpus // 2))
        self._writers = _Actors(self._ray, lambda: writer.remote(target), count)
        self._slots, self._waiting = cycle(range(count)), dict[Any, _Batch]()

    def done(self, jobs: Sequence[FileJob]) -> Iterator[tuple[FileJob, Done]]:
        """Each job, as it is done."""
        rest, most = batches(jobs, self.config), 1 + _AHEAD * self.cluster.cpus
        while True:
            for batch in islice(rest, most - len(self._waiting)):
                self._begin(batch)
            if not self._waiting:
                return
            (call,), _ = self._ray.wait(list(self._waiting), num_returns=1)
            yield from self._outcomes(self._waiting.pop(call), call)

    def _begin(self, batch: _Batch) -> None:
        """Have a batch read, and then written, wherever there is room."""
        jobs = batch.jobs if self.cluster.is_here else self._loaded(batch)
        order = BatchOrder(tuple(jobs), self._open, self._made_by, batch.guarded)
        batch.documents, batch.passed = self._read.remote(order)
        batch.slot = next(self._slots)
        self._write(batch)

    def _loaded(self, batch: _Batch) -> list[FileJob]:
        """Jobs with the bytes of their files, which other machines may not see."""
        loaded, batch.unsent = list[FileJob](), []
        for job in batch.jobs:
            try:
                loaded.append(replace(job, read=read_file(job.found, self.config)))
            except Exception as error:  # any error belongs to this file alone
                batch.unsent.append((job, failed_by(job.found.path, error)))
        return loaded

    def _write(self, batch: _Batch) -> None:
        replaces = frozenset(job.found.path for job in batch.jobs if job.replaces)
        batch.writer = self._writers.at(batch.slot)
        call = batch.writer.write.remote(batch.documents, self.source, replaces, batch.tries > 0)
        self._waiting[call] = batch

    def _outcomes(self, batch: _Batch, call: Any) -> Iterator[tuple[FileJob, Done]]:
        """What came of a batch; nothing if it is tried again."""
        try:
            passed = _taken(self._ray.get(batch.passed))
            written = _taken(self._ray.get(call))
        except self._ray.exceptions.RayActorError as problem:
            self._count_try(batch, problem)
            self._writers.replace(batch.slot, batch.writer)
            self._write(batch)
        except self._ray.exceptions.RayError as problem:
            self._count_try(batch, problem)
            batch.guarded = True
            self._begin(batch)
        else:
            known = {one.path if isinstance(one, Written) else one.source: one for one in written}
            known |= dict(passed)
            yield from batch.unsent
            sent = {job.found.path for job, _ in batch.unsent}
            yield from ((j, known.get(j.found.path)) for j in batch.jobs if j.found.path not in sent)

    def _count_try(self, batch: _Batch, problem: Exception) -> None:
        """Count a try that failed. Raises LibraryError after many."""
        batch.tries += 1
        self.fleet.retried += 1
        kind = type(problem).__name__
        if batch.tries > _TRIES:
            why = f"its workers died {batch.tries} times in a row ({kind}). Type the same to go on"
            raise LibraryError(f"fleet {self.fleet.address}", why)
        log.info("a worker of the fleet died (%s): %d files again", kind, len(batch.jobs))

    def end(self) -> None:
        """Let go of what is still on its way, and of what writes."""
        for call in self._waiting:
            self._ray.cancel(call, force=False)
        self._writers.end()


class _Actors:
    """Actors that are replaced when they die."""

    def __init__(self, ray: Any, make: Callable[[], Any], count: int) -> None:
        self._ray, self._make = ray, make
        self._all = [make() for _ in range(count)]

    def at(self, slot: int) -> Any:
        """The actor in a slot."""
        return self._all[slot]

    def __len__(self) -> int:
        return len(self._all)

    def replace(self, slot: int, dead: Any) -> None:
        """Put a new actor in the place of one that may be dead, once: several calls fail with it."""
        if self._all[slot] is dead:
            self._ray.kill(dead)
            self._all[slot] = self._make()

    def end(self) -> None:
        """End them."""
        for actor in self._all:
            self._ray.kill(actor)


class _FleetEmbedder:
    """A model that actors run."""

    def __init__(self, fleet: Fleet, cluster: Cluster, own: Embedder, settings: EmbedSettings) -> None:
        self._fleet, self._own, self._ray = fleet, own, cluster.ray
        modeller = self._ray.remote(num_cpus=1)(Modeller)
        self._actors = _Actors(self._ray, lambda: modeller.remote(own.name, settings), cluster.cpus)
        self.together = _TOGETHER * _ROUNDS * cluster.cpus
        self.name, self.dimension, self.max_tokens = own.name, own.dimension, own.max_tokens
        self.knows, self.embed_query = own.knows, own.embed_query

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text."""
        import numpy as np

        parts = {at: texts[at : at + _TOGETHER] for at in range(0, len(texts), _TOGETHER)}
        if not parts:
            return self._own.embed_documents(texts)
        found = dict(self._embedded(parts))
        return np.vstack([found[at] for at in parts])

    def _embedded(self, parts: Mapping[int, Sequence[str]]) -> Iterator[tuple[int, Vectors]]:
        """The vectors of some texts, as they are done. A part whose actor died is done again."""
        left, free, tries = [*parts], [*range(len(self._actors))], 0
        busy = dict[Any, tuple[int, int]]()
        while left or busy:
            while left and free:
                slot, at = free.pop(), left.pop()
                busy[self._actors.at(slot).embed.remote(parts[at])] = slot, at
            (call,), _ = self._ray.wait(list(busy), num_returns=1)
            slot, at = busy.pop(call)
            free.append(slot)
            try:
                yield at, _taken(self._ray.get(call))
            except self._ray.exceptions.RayError as problem:
                tries = self._count_try(tries, problem)
                self._actors.replace(slot, self._actors.at(slot))
                left.append(at)

    def _count_try(self, tries: int, problem: Exception) -> int:
        self._fleet.retried += 1
        if tries == _TRIES:
            why = f"a worker of the fleet died {tries + 1} times ({type(problem).__name__})"
            raise EmbeddingError(self.name, why)
        return tries + 1

    def close(self) -> None:
        """End the actors."""
        self._actors.end()


def batches(jobs: Sequence[FileJob], config: Config) -> Iterator[_Batch]:
    """Jobs in batches of similar sizes. Files that may come near the limits go together."""
    some: dict[bool, list[FileJob]] = {False: [], True: []}
    sizes = {False: 0, True: 0}
    for job in jobs:
        kind = not is_harmless(job, config.ingest)
        some[kind].append(job)
        sizes[kind] += job.found.size
        if len(some[kind]) >= _FILES or sizes[kind] >= _BYTES:
            yield _Batch(tuple(some[kind]), kind)
            some[kind], sizes[kind] = [], 0
    yield from (_Batch(tuple(left), kind) for kind, left in some.items() if left)


def without_secrets(config: Config) -> Config:
    """Settings without keys: what reads documents asks no server."""
    assert list(policy.secrets(config)) == ["embed.key"]  # noqa: S101  another would have to go, too
    return replace(config, embed=replace(config.embed, key=""))


def _taken(answer: Tried) -> Any:
    """What came of work. Raises its error if it failed."""
    works, found = answer
    if works:
        return found
    raise found if isinstance(found, QuireError) else TypeError(found)
