"""The part of Library that embeds: which model to use, and which chunks have no vector yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire import embed as models
from quire import embedding, records
from quire.address import parse_id
from quire.embed.base import Embedder, unit
from quire.embedding import Embedded
from quire.errors import EmbeddingError, NoResults, SettingError
from quire.ingest.report import Report
from quire.library.base import OpenLibrary, writes
from quire.progress import Progress
from quire.searcher import Meaning
from quire.sources.files import Skipped
from quire.stores import Model

if TYPE_CHECKING:
    from quire.embed.base import Vectors


_NO_MODEL = (models.NONE, models.CUSTOM)
_MADE_BY_CALLER = "your program makes its vectors. Give that of a question with search(vector=…)"


class Embeddings(OpenLibrary):
    """What embeds documents and questions."""

    @writes
    def embed(self, model: str | None = None, *, progress: Progress | None = None) -> Embedded:
        """Embed chunks that have no vector. Searches use a new model only once every chunk has its vector.

        Raises EmbeddingError if the model cannot be used; earlier vectors are kept.
        """
        embedder = self._embedder(model or self._model_name())
        if embedder is None:
            name = model or self._model_name()
            problem = f"is {name}, so nothing is embedded. Name one: quire embed --model minilm"
            raise SettingError("embed.model", problem)
        return embedding.embed(self.store, embedder, progress)

    @writes
    def set_vector(self, id: str, vector: Sequence[float]) -> None:
        """Store a vector of your own for a chunk, by its id. It must have as many numbers as the others.

        In a library without vectors, it is the first of a model named custom, whose vectors you make: those
        of chunks with this call, those of questions with `search(vector=…)`.
        """
        row, found, active = self._chunk_row(id), _own(vector), self._active()
        if active:
            self._given(active, found)  # raises SettingError if it has another dimension
        self.store.set_vector(active or self.store.model(models.CUSTOM, len(found)), row, found)

    def _chunk_row(self, id: str) -> int:
        """The number of a chunk. Raises NoResults if no chunk has this id."""
        found = self.store.by_id(known) if (known := parse_id(id)) else None
        chunk = records.chunk(self.store, found[0], known) if found and known else None
        if not found or not chunk:
            said = f"No chunk has the id {id}. See a document's chunks with: quire chunks ADDRESS"
            raise NoResults(said, missing="id", name=id)
        return records.row_of(found[0], chunk)

    def unembeddable(self) -> dict[str, str]:
        """Documents that the model refused in the last run, and why."""
        failures = self.store.embedding_failures()
        rows = self.store.documents_by_row(failures)
        return {rows[row].address: reason for row, reason in failures.items()}

    def _embed_new(self, report: Report, progress: Progress | None) -> None:
        """Embed new chunks. If that fails, the report says so: keyword search still works."""
        try:
            self._check_model()
            if self._model_name() in _NO_MODEL or not self.store.counts().chunks:
                return
            self._check_dimension()
            done = self.embed(progress=progress)
        except (EmbeddingError, SettingError) as problem:
            report.failed.append(Skipped("embedding", str(problem), problem.code))
            return
        refused = self.unembeddable().items()
        report.failed += [Skipped(address, why, EmbeddingError.code) for address, why in refused]
        report.seconds += done.seconds

    def _embedder(self, name: str) -> Embedder | None:
        if name not in self._embedders:
            self._embedders[name] = models.open_embedder(name, self.config.embed)
        return self._embedders[name]

    def _active(self) -> Model | None:
        return next((model for model in self.store.models() if model.active), None)

    def _model_name(self) -> str:
        """The model to embed with: the one that is set, else the library's own."""
        active = self._active()
        return self.config.embed.model or (active.name if active else models.DEFAULT_MODEL)

    def _check_model(self) -> None:
        """Refuse to mix the vectors of two models."""
        active = self._active()
        if active is None:
            return
        wanted = self.config.embed.model or models.without_digest(active.name)
        set_to = self._embedder(wanted)
        if set_to and set_to.name != active.name:
            change = f"To change that: quire embed --model {wanted}"
            raise SettingError("embed.model", f"this library is embedded with {active.name}. {change}")

    def _check_dimension(self) -> None:
        """Refuse a model with another dimension: only a person may decide to embed everything again."""
        active = self._active()
        embedder = self._embedder(active.name) if active else None
        if active and embedder and embedder.dimension != active.dimension:
            raise EmbeddingError(
                active.name,
                f"returns {embedder.dimension} dimensions; this library has {active.dimension}. "
                f"Embed it again: quire embed --model {active.name}",
            )

    def _meaning(self, mode: str, vector: Sequence[float] | None = None) -> Meaning | None:
        """How to search by meaning; None in keyword mode, or if nothing is embedded."""
        active = self._active()
        if vector is not None and mode != "keyword":
            return self._given(active, _own(vector))
        if mode == "keyword" or self.config.embed.model == models.NONE or active is None:
            if mode == "semantic":
                off = "embed.model is none" if self.config.embed.model else "Nothing is embedded yet"
                how = f"Embed the library with: quire embed --model {models.DEFAULT_MODEL}"
                raise NoResults(f"{off}. {how}", missing="vectors")
            return None
        try:
            self._check_model()
            embedder = self._embedder(active.name)
        except (EmbeddingError, SettingError) as problem:
            return Meaning(active, None, str(problem))
        return Meaning(active, embedder, "" if embedder else _MADE_BY_CALLER)

    def _given(self, active: Model | None, vector: Vectors) -> Meaning:
        """How to search by a vector that was given. Raises SettingError if it cannot be compared."""
        if active is None:
            raise NoResults("Nothing is embedded yet, so a vector finds nothing.", missing="vectors")
        if len(vector) != active.dimension:
            has = f"has {len(vector):,} numbers; those of this library have {active.dimension:,}"
            raise SettingError("vector", has)
        return Meaning(active, None, "", vector)


def _own(numbers: Sequence[float]) -> Vectors:
    """A vector that was given, with length 1. Raises SettingError if it is none."""
    vector = unit(numbers)
    if vector is None:
        raise SettingError("vector", "is not a list of finite numbers, at least one of them not zero")
    return vector
