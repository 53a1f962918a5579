"""Strategies: a tree to chunks. `split` is the only entry point."""

from __future__ import annotations

from typing import Any

from quire.chunkers import auto, headers, nodes, sections, windows
from quire.chunkers.base import Chunk, Chunker, assemble
from quire.config import TokenSettings
from quire.tokens import counter
from quire.tree import Tree

_STRATEGIES: dict[str, Chunker] = {
    "auto": auto,
    "nodes": nodes,
    "sections": sections,
    "windows": windows,
    "memory": windows,
    "headers": headers,
}


def split(tree: Tree, strategy: str, settings: Any, tokens: TokenSettings) -> list[Chunk]:
    """The chunks of a document by a strategy and its settings."""
    count = counter(tokens)
    return assemble(tree, _STRATEGIES[strategy].split(tree, settings, count), count)
