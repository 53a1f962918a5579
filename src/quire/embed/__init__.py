"""Models that turn text into vectors. `open_embedder` picks one by its name."""

from __future__ import annotations

import os
import re

from quire.config import EmbedSettings
from quire.embed.base import DEEP, STATIC, Embedder
from quire.errors import EmbeddingError, SettingError, nearest

NONE = "none"
CUSTOM = "custom"  # whoever uses the library makes the vectors
_KNOWN = (STATIC, DEEP, "ollama/mxbai-embed-large", "openai/text-embedding-3-small", "folder/PATH", NONE)
RETIRED = {"minilm": DEEP}  # models of older versions, and what came after them


def open_embedder(name: str, settings: EmbedSettings) -> Embedder | None:
    """The model with this name, with nothing loaded yet; None for `none` and `custom`."""
    kind, _, model = name.partition("/")
    if name in (NONE, CUSTOM):
        return None
    if name == STATIC:
        from quire.embed.static import Static

        return Static()
    if name == DEEP:
        return _bert(settings)
    if kind == "folder" or os.path.isdir(name):  # noqa: PTH112
        return _bert(settings, without_digest(model) if kind == "folder" else name)
    if kind in ("ollama", "openai"):
        from quire.embed.http import Ollama, OpenAI

        return Ollama(model, settings) if kind == "ollama" else OpenAI(model, settings)
    if name in RETIRED:
        problem = (
            f"was the model of older versions. Embed with its successor: quire embed --model {RETIRED[name]}"
        )
        raise EmbeddingError(name, problem)
    raise SettingError("embed.model", f"there is no {name!r}. {nearest(name, _KNOWN)}")


def _bert(settings: EmbedSettings, folder: str | None = None) -> Embedder:
    from quire.embed.bert import Bert
    from quire.embed.weights import NO_RUNTIME

    model = Bert(settings, folder)
    if not is_installed():
        raise EmbeddingError(model.name, NO_RUNTIME)
    return model


def needs_runtime(name: str) -> bool:
    """Whether a model runs on this machine, with onnxruntime."""
    return name == DEEP or name.startswith("folder/")


def is_installed() -> bool:
    """Whether onnxruntime is installed. Nothing is loaded."""
    from importlib.util import find_spec

    return find_spec("onnxruntime") is not None


def without_digest(name: str) -> str:
    """The name of a model in a folder as people type it."""
    return re.sub("@[0-9a-f]{8}$", "", name)
