r"""Quire: the document memory of AI agents and of the people who work with them.

>>> import quire
>>> [chunk.breadcrumb for chunk in quire.chunk("# Guide\\n\\nHello.\\n\\n## Install\\n\\nUse pip.\\n")]
['> Guide', '> Guide › Install']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quire import chunkers
from quire.chunkers.base import Chunk
from quire.config import DEFAULT, Config, override
from quire.document import Document
from quire.errors import QuireError
from quire.tree import Section, Tree

if TYPE_CHECKING:
    from quire.library import Library

__all__ = ["Chunk", "Config", "Document", "Library", "QuireError", "Section", "Tree", "chunk", "tree"]


def __getattr__(name: str) -> Any:
    """Library, loaded with its database when it is first asked for."""
    if name == "Library":
        from quire.library import Library

        return Library
    raise AttributeError(f"module 'quire' has no attribute {name!r}")


def tree(source: str | bytes | Document, path: str = "", *, config: Config = DEFAULT) -> Tree:
    """The heading tree of a text, of a file's bytes, or of a document."""
    if isinstance(source, str):
        source = Document.from_text(source, path, settings=config.document)
    elif isinstance(source, bytes):
        source = Document.from_bytes(source, path, settings=config.document)
    return Tree(source, config.tree)


def chunk(
    source: str | bytes | Document | Tree,
    strategy: str | None = None,
    *,
    path: str = "",
    config: Config = DEFAULT,
    **settings: Any,
) -> list[Chunk]:
    """Cut a text, a file's bytes, a document or a tree into chunks.

    Strategies: auto (default), nodes, sections, windows, memory, headers. `settings` are those of
    the strategy, such as `max_tokens=400`; `config` holds everything else.
    """
    strategy = config.chunk.strategy if strategy is None else strategy
    chosen = config.chunk.named(strategy)
    if settings:
        chosen = override(chosen, settings, f"{strategy}.")
    if not isinstance(source, Tree):
        source = tree(source, path, config=config)
    return chunkers.split(source, strategy, chosen, config.tokens)
