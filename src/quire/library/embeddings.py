"""The part of Library that embeds: which model to use, and which chunks have no vector yet."""

from __future__ import annotations

from quire import embed as models
from quire import embedding
from quire.embed.base import Embedder
from quire.embedding import Embedded
from quire.errors import EmbeddingError, NoResults, SettingError
from quire.ingest.report import Report
from quire.library.base import OpenLibrary, writes
from quire.progress import Progress
from quire.searcher import Meaning
from quire.sources.files import Skipped
from quire.stores import Model


class Embeddings(OpenLibrary):
    """What embeds documents and questions."""

    @writes
    def embed(self, model: str | None = None, *, progress: Progress | None = None) -> Embedded:
        """Embed chunks that have no vector. Searches use a new model only once every chunk has its vector.

        Raises EmbeddingError if the model cannot be used; earlier vectors are kept.
        """
        embedder = self._embedder(model or self._model_name())
        if embedder is None:
            raise SettingError(
                "embed.model", "is none, so nothing is embedded. Name one: quire embed --model minilm"
            )
        return embedding.embed(self.store, embedder, progress)

    def unembeddable(self) -> dict[str, str]:
        """Documents that the model refused in the last run, and why."""
        failures = self.store.embedding_failures()
        rows = self.store.documents_by_row(failures)
        return {rows[row].address: reason for row, reason in failures.items()}

    def _embed_new(self, report: Report, progress: Progress | None) -> None:
        """Embed new chunks. If that fails, the report says so: keyword search still works."""
        try:
            self._check_model()
            if self._model_name() == models.NONE or not self.store.counts().chunks:
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

    def _meaning(self, mode: str) -> Meaning | None:
        """How to search by meaning; None in keyword mode, or if nothing is embedded."""
        active = self._active()
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
        return Meaning(active, embedder, "")
