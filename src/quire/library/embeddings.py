"""The part of Library that embeds: which model to use, and which chunks have no vector yet."""

from __future__ import annotations

import logging
import math
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING

from quire import embed as models
from quire import later
from quire.address import parse_id
from quire.embed.base import DEEP, STATIC, Embedder, unit
from quire.errors import EmbeddingError, NoResults, SettingError
from quire.library.base import OpenLibrary, embeds, writes
from quire.meaning import Meaning
from quire.plural import counted
from quire.progress import Progress, Silent
from quire.stores import DocumentRow, Filters, Lease, Model, Renewing, active_model

if TYPE_CHECKING:
    from quire.embed.base import Vectors


if TYPE_CHECKING:
    from quire import embedding, records
    from quire.embedding import Embedded
    from quire.ingest import report as reports
    from quire.ingest.report import Report
    from quire.ingest.writing import Machines
    from quire.sources import files
else:
    embedding, files = later.module("quire.embedding"), later.module("quire.sources.files")
    records, reports = later.module("quire.records"), later.module("quire.ingest.report")

log = logging.getLogger("quire")
_FEW = 32  # chunks that are embedded within seconds: no other process needs to wait for them
_PAUSE = 0.5  # seconds until another process is asked for again
_PATIENCE = 60.0  # seconds that embedding may take after documents were added
_NOT_DEEP = (models.NONE, models.CUSTOM, STATIC)
_HOW = "Embed the library with: quire embed"
_MADE_BY_CALLER = "custom: your program makes its vectors. Give that of a question with search(vector=…)"


class Embeddings(OpenLibrary):
    """What embeds documents and questions."""

    @embeds
    def embed(self, model: str | None = None, *, progress: Progress | None = None) -> Embedded:
        """Embed chunks that have no vector. Searches use a new model only once every chunk has its vector.

        Raises EmbeddingError if the model cannot be used; earlier vectors are kept.
        """
        with self._turn(progress) as (shown, _):
            embedder = self._any_embedder(model or self._model_name())
            if embedder.name != STATIC:
                self._fill_instant(shown)
            return embedding.embed(self.store, embedder, shown)

    @embeds
    def deepen(self, *, progress: Progress | None = None) -> None:
        """Embed what `add` left to do, if anything, however long that takes. Problems are logged."""
        report = reports.Report()
        self._embed_new(report, progress, within=math.inf)
        for failed in report.failed:
            log.info("%s: %s", failed.source, failed.reason)

    def _any_embedder(self, name: str) -> Embedder:
        """The model with this name. Raises SettingError if nothing embeds with it."""
        embedder = self._embedder(name)
        if embedder is None:
            problem = f"is {name}, so nothing is embedded. Name one: quire embed --model deep"
            raise SettingError("embed.model", problem)
        return embedder

    @contextmanager
    def _turn(
        self, progress: Progress | None, own: Sequence[int] = ()
    ) -> Iterator[tuple[Progress, Sequence[int]]]:
        """Wait until no other process embeds this library. Yields progress, and the documents to embed.

        Documents of one's `own` do not wait for others: then only they are embedded. () are all.
        """
        shown, lease, told = progress or Silent(), Lease(self.store, "embed"), ""
        while (other := lease.take()) and not own:
            if other != told:
                log.warning("Waiting for %s, which embeds this library.", other)
                shown.begin(f"waiting for {other}", 0, "chunks")
            told = other
            time.sleep(_PAUSE)
            shown.advance(0)
        try:
            yield shown if other else Renewing(shown, lease), own
        finally:
            lease.drop()

    @writes
    def set_vector(self, id: str, vector: Sequence[float]) -> None:
        """Store a vector of your own for a chunk, by its id. It must have as many numbers as the others.

        In a library without vectors, it is the first of a model named custom, whose vectors you make: those
        of chunks with this call, those of questions with `search(vector=…)`.
        """
        row, found, active = self._chunk_row(id), _own(vector), self._active()
        if row is None:
            said = f"No chunk has the id {id}. See a document's chunks with: quire chunks ADDRESS"
            raise NoResults(said, missing="id", name=id)
        if active:
            self._given(active, found)  # raises SettingError if it has another dimension
        self.store.set_vector(active or self.store.model(models.CUSTOM, len(found)), row, found)

    def _chunk_row(self, id: str) -> int | None:
        """The number of a chunk; None if no chunk has this id."""
        found = self.store.by_id(known) if (known := parse_id(id)) else None
        chunk = records.stored_chunk(self.store, found[0], known) if found and known else None
        return records.row_of(found[0], chunk) if found and chunk else None

    def model_problem(self) -> str:
        """Why searches cannot use the model of the library; "" if they can, or it has none."""
        meaning = self._meaning("hybrid")
        if meaning is None or meaning.embedder is None:
            return meaning.problem if meaning and meaning.problem != _MADE_BY_CALLER else ""
        try:
            meaning.embedder.embed_query("test")
        except EmbeddingError as problem:
            return str(problem)
        return ""

    def _left(self) -> tuple[bool, str]:
        """Whether `quire embed` has something to do, and why the model that is set cannot be used."""
        try:
            name = self._model_name()
            return name not in (models.NONE, models.CUSTOM) and self._count_missing() > 0, ""
        except (EmbeddingError, SettingError) as problem:
            return False, str(problem)

    def unembeddable(self) -> dict[str, str]:
        """Documents that the model refused in the last run, and why."""
        failures = self.store.embedding_failures()
        rows = self.store.documents_by_row(failures)
        return {rows[row].address: reason for row, reason in failures.items()}

    def _embed_new(
        self,
        report: Report,
        progress: Progress | None,
        own: Iterable[DocumentRow] = (),
        *,
        since: int = 0,
        within: float | None = None,
        fleet: Machines | None = None,
    ) -> None:
        """Embed new chunks. If that fails, the report says so: search works without.

        What would take longer is left to `quire embed`. Documents of one's `own` are embedded alone, without
        waiting for a process that embeds the library. So are those written `since` a time, if more are
        missing than the run has written. A fleet embeds all, however long that takes.
        """
        started = time.monotonic()
        try:
            rows = [row.seq for row in own]
            if not rows:
                self._fill_instant(progress)
            name = self._model_name()
            if name in _NOT_DEEP:
                return
            self._check_model()
            missing = self._count_missing()
            if not (missing or self.store.embedding_failures()):
                return
            if since and missing > report.chunks:
                rows = [row.seq for row in self.store.documents(Filters(since=since))]
            other = Lease(self.store, "embed").other() if within is None and missing > _FEW else ""
            if other and not rows:  # nobody waits for what another does
                report.warnings.append(f"Searchable now. {other[0].upper()}{other[1:]} embeds this library.")
                return
            waits = self._turn(progress, rows) if missing > _FEW else nullcontext((progress, ()))
            with waits as (shown, documents):
                self._check_model()  # which may have changed
                self._check_dimension()
                limit = _PATIENCE if within is None else within
                done = self._embed_by(self._any_embedder(name), shown, documents, limit, fleet)
        except (EmbeddingError, SettingError) as problem:
            report.failed.append(files.Skipped(reports.EMBEDDING, str(problem), problem.code))
            report.seconds += time.monotonic() - started  # the model may have been asked several times
            return
        refused = self.unembeddable().items()
        report.failed += [files.Skipped(address, why, EmbeddingError.code) for address, why in refused]
        report.pending, report.pending_seconds = done.left, done.seconds_left
        report.seconds += done.seconds

    def _embed_by(
        self,
        own: Embedder,
        progress: Progress | None,
        documents: Sequence[int],
        within: float,
        fleet: Machines | None,
    ) -> Embedded:
        if fleet is None or not models.needs_runtime(own.name):  # a server has its own machines
            return embedding.embed(self.store, own, progress, documents, within)
        embedder, together = fleet.embedder(own, self.config)
        with closing(embedder):
            return embedding.embed(self.store, embedder, progress, documents, together=together)

    def _fill_instant(self, progress: Progress | None) -> None:
        """Give chunks that an older version wrote their instant vectors. New ones come with them."""
        if self.config.embed.model == models.NONE:
            return
        instant = active_model(self.store.models(), instant=True)
        missing = self.store.count_unembedded(instant) if instant else self.store.size()
        if missing or (instant and instant.name != STATIC):
            static = self._any_embedder(STATIC)
            try:
                self.store.model(static.name, static.dimension)
            except EmbeddingError as problem:  # a member of a team cannot help it
                log.info("%s", problem)
                return
            embedding.embed(self.store, static, progress)

    def _count_missing(self) -> int:
        """How many chunks have no vector of the model to embed with."""
        embedder = self._embedder(self._model_name())
        known = (model for model in self.store.models() if embedder and model.name == embedder.name)
        model = next(known, None)
        return self.store.count_unembedded(model) if model else self.store.size()

    def _embedder(self, name: str) -> Embedder | None:
        with self._loading:
            if name not in self._embedders:
                self._embedders[name] = models.open_embedder(name, self.config.embed)
            return self._embedders[name]

    def _active(self) -> Model | None:
        """The model whose vectors take their time."""
        return active_model(self.store.models())

    def _model_name(self) -> str:
        """The model to embed with: the one that is set, else the library's own, else the bundled one."""
        active, wanted = self._active(), self._wanted
        if wanted:
            return wanted
        name = active.name if active and active.name not in models.RETIRED else DEEP
        return STATIC if models.needs_runtime(name) and not models.is_installed() else name

    @property
    def _wanted(self) -> str:
        """The model that is set; instead of one of older versions, what came after it."""
        name = self.config.embed.model
        return models.RETIRED.get(name, name)

    def _check_model(self) -> None:
        """Refuse to mix the vectors of two models."""
        active, wanted = self._active(), self._wanted
        if active is None or active.name in models.RETIRED or wanted in _NOT_DEEP:
            return
        wanted = wanted or models.without_digest(active.name)
        set_to = self._embedder(wanted)
        if set_to and set_to.name != active.name:
            change = f"To change that: quire embed --model {shlex.quote(wanted)}"
            raise SettingError("embed.model", f"this library is embedded with {active.name}. {change}")

    def _check_dimension(self) -> None:
        """Refuse a model with another dimension: only a person may decide to embed everything again."""
        active = self._active()
        if active is None or active.name in models.RETIRED:
            return
        embedder = self._embedder(active.name)
        if embedder and embedder.dimension != active.dimension:
            raise EmbeddingError(
                active.name,
                f"returns {counted(embedder.dimension, 'dimension')}; this library has {active.dimension:,}. "
                f"Embed it again: quire embed --model {shlex.quote(active.name)}",
            )

    def _meaning(self, mode: str, vector: Sequence[float] | None = None) -> Meaning | None:
        """How to search by meaning; None in keyword mode, or if nothing is embedded."""
        active, wanted = self._active(), self._wanted
        if vector is not None and mode != "keyword":
            return self._given(active, _own(vector))
        if mode == "keyword" or wanted == models.NONE:
            if mode == "semantic":
                raise NoResults(f"embed.model is none. {_HOW} --model {DEEP}", missing="vectors")
            return None
        stored = active_model(self.store.models(), instant=True)
        instant = Meaning(stored, self._embedder(STATIC)) if stored and stored.name == STATIC else None
        if active is None or wanted == STATIC:
            return self._instantly(mode, instant)
        try:
            self._check_model()
            embedder = self._embedder(active.name)
        except (EmbeddingError, SettingError) as problem:
            return Meaning(active, None, str(problem), instead=instant)
        return Meaning(active, embedder, "" if embedder else _MADE_BY_CALLER, instead=instant)

    def _instantly(self, mode: str, instant: Meaning | None) -> Meaning | None:
        """How to search without vectors of a deep model. One that was asked for is named."""
        is_named = self._wanted not in ("", *_NOT_DEEP)
        if instant is None and mode == "semantic":
            by = f" with {self._wanted}" if is_named else ""
            raise NoResults(f"Nothing is embedded{by} yet. {_HOW}", missing="vectors")
        if not is_named:
            return instant
        wanted = Model(0, self._wanted, 0, active=False)
        try:
            self._embedder(self._wanted)
        except (EmbeddingError, SettingError) as problem:
            return Meaning(wanted, None, str(problem), instead=instant)
        return Meaning(
            wanted, None, f"{wanted.name}: nothing is embedded with it yet. {_HOW}", instead=instant
        )

    def _given(self, active: Model | None, vector: Vectors) -> Meaning:
        """How to search by a vector that was given. Raises SettingError if it cannot be compared."""
        if active is None:
            raise NoResults("Nothing is embedded yet, so a vector finds nothing.", missing="vectors")
        if len(vector) != active.dimension:
            has = f"has {counted(len(vector), 'number')}; those of this library have {active.dimension:,}"
            raise SettingError("vector", has)
        return Meaning(active, None, vector=vector, is_given=True)


def _own(numbers: Sequence[float]) -> Vectors:
    """A vector that was given, with length 1. Raises SettingError if it is none."""
    vector = unit(numbers)
    if vector is None:
        raise SettingError("vector", "is not a list of finite numbers, at least one of them not zero")
    return vector
