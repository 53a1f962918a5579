"""Which model serves a search by meaning, and the vector of the question.

Always: one model ranks all results. The model that takes its time serves once nearly all chunks in the scope
of a search have its vectors; until then the instant one does. Without either, words alone are searched.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quire.config import SearchSettings
from quire.embed import CUSTOM
from quire.embed.base import Embedder
from quire.errors import EmbeddingError, SettingError
from quire.plural import counted
from quire.query import Query
from quire.stores import Filters, Model, Store

if TYPE_CHECKING:
    from quire.embed.base import Vectors

ENOUGH = 0.98  # of the chunks in a search's scope: with vectors of so many, a model serves it


@dataclass(frozen=True, slots=True)
class Meaning:
    """What semantic search needs: a model whose vectors are stored, and an embedder that runs it."""

    model: Model
    embedder: Embedder | None
    problem: str = ""  # why there is no embedder, in a sentence
    vector: Vectors | None = None  # of the question
    is_given: bool = False  # whether the vector came from the caller
    instead: Meaning | None = None  # what serves while this cannot

    def knows(self, text: str) -> bool:
        """Whether the model knows the language of a question; True if that cannot be told."""
        if self.embedder is None or self.is_given:
            return True
        try:
            return self.embedder.knows(text)
        except EmbeddingError:
            return True  # embedding the question fails too, and says why


def serving(store: Store, meaning: Meaning | None, filters: Filters) -> Meaning | None:
    """What serves a search within filters; None if too few chunks have vectors."""
    while meaning and not _serves(store, meaning, filters):
        meaning = meaning.instead
    return meaning


def _serves(store: Store, meaning: Meaning, filters: Filters) -> bool:
    if meaning.embedder is None:
        return meaning.is_given
    return store.embedded_share(meaning.model, filters) >= ENOUGH


def ready(
    store: Store,
    asked: Query,
    filters: Filters,
    settings: SearchSettings,
    meaning: Meaning | None,
    notes: list[str],
) -> Meaning | None:
    """What serves a search, with the vector of the question; None, with a note, if words alone must do.

    The vector is left out if words will do because the model does not know the language of the question.
    In semantic mode they cannot: then the vectors that there are serve. Raises EmbeddingError or SettingError
    if a model cannot be used and none serves instead.
    """
    found = serving(store, meaning, filters)
    if meaning and found is None and settings.mode == "semantic":
        found = meaning
    if meaning and found is not meaning and meaning.problem:
        notes.append(_instead(found, meaning.problem))
    elif meaning and found is None:
        notes.append(_unembedded(store, meaning.model))
    if found is None or _is_left_out(store, asked, filters, settings, found):
        return found
    return _asked(store, asked, filters, settings, found, notes)


def _is_left_out(
    store: Store, asked: Query, filters: Filters, settings: SearchSettings, found: Meaning
) -> bool:
    """Whether words will answer alone, in a language that the model does not know: no model is loaded."""
    counts = settings.mode == "semantic" or settings.meaning_unknown > 0 or found.knows(asked.words)
    return not counts and bool(store.search_words(asked, filters, 1))


def _asked(
    store: Store, asked: Query, filters: Filters, settings: SearchSettings, found: Meaning, notes: list[str]
) -> Meaning | None:
    """What serves a search, with the vector of the question. If that cannot be made, another may serve."""
    try:
        return found if found.is_given else replace(found, vector=_vector(found, asked))
    except (EmbeddingError, SettingError) as problem:
        other = serving(store, found.instead, filters)
        if other is None and settings.mode == "semantic":
            raise
        notes.append(_instead(other, problem))
    return _asked(store, asked, filters, settings, other, notes) if other else None


def _vector(found: Meaning, asked: Query) -> Vectors:
    name, size = found.model.name, found.model.dimension
    if found.embedder is None:
        raise EmbeddingError(name, found.problem.removeprefix(f"{name}: "))
    vector = found.embedder.embed_query(asked.words)
    if len(vector) != size:
        problem = f"returns {counted(len(vector), 'dimension')}; this library has {size:,}."
        raise EmbeddingError(name, f"{problem} Embed it again: quire embed --model {shlex.quote(name)}")
    return vector


def _instead(found: Meaning | None, problem: object) -> str:
    how = f"with {found.model.name}" if found else "by words only"
    return f"Searched {how}. {problem}"


def _unembedded(store: Store, model: Model) -> str:
    how = "Library.set_vector" if model.name == CUSTOM else "quire embed"
    some = counted(store.count_unembedded(model), "chunk is", "chunks are")
    return f"Searched by words only: {some} not embedded yet. Go on with: {how}"
