"""Models that turn text into vectors. `open_embedder` picks one by its name."""

from __future__ import annotations

import os
import re

from quire.config import EmbedSettings
from quire.embed.base import Embedder
from quire.errors import SettingError, nearest

DEFAULT_MODEL = "minilm"
NONE = "none"
CUSTOM = "custom"  # whoever uses the library makes the vectors
_KNOWN = (DEFAULT_MODEL, "ollama/mxbai-embed-large", "openai/text-embedding-3-small", "folder/PATH", NONE)


def open_embedder(name: str, settings: EmbedSettings) -> Embedder | None:
    """The model with this name, with nothing loaded yet; None for `none` and `custom`."""
    kind, _, model = name.partition("/")
    if name in (NONE, CUSTOM):
        return None
    if name == DEFAULT_MODEL:
        from quire.embed.minilm import MiniLM

        return MiniLM(settings)
    if kind == "folder" or os.path.isdir(name):  # noqa: PTH112
        from quire.embed.minilm import MiniLM

        return MiniLM(settings, without_digest(model) if kind == "folder" else name)
    if kind in ("ollama", "openai"):
        from quire.embed.http import Ollama, OpenAI

        return Ollama(model, settings) if kind == "ollama" else OpenAI(model, settings)
    raise SettingError("embed.model", f"there is no {name!r}. {nearest(name, _KNOWN)}")


def without_digest(name: str) -> str:
    """The name of a model in a folder as people type it."""
    return re.sub("@[0-9a-f]{8}$", "", name)
