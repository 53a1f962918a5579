r"""Quire: the document memory of AI agents and of the people who work with them.

>>> import quire
>>> [chunk.breadcrumb for chunk in quire.chunk("# Guide\\n\\nHello.\\n\\n## Install\\n\\nUse pip.\\n")]
['> Guide', '> Guide › Install']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from quire.config import DEFAULT, Config, override
from quire.document import Document
from quire.errors import (
    BrokenInvariant,
    EmbeddingError,
    LibraryError,
    MissingExtra,
    NoResults,
    QuireError,
    SettingError,
    SourceError,
)
from quire.tree import Section, Tree

if TYPE_CHECKING:
    from quire.aio import AsyncLibrary
    from quire.chunkers.base import Chunk
    from quire.context import Context
    from quire.copying import Copied
    from quire.embedding import Embedded
    from quire.evaluation.measures import TextSpan
    from quire.evaluation.questions import EvalQuestion
    from quire.evaluation.scoring import Difference, Evaluation, Score
    from quire.ingest.plan import Plan
    from quire.ingest.report import Report
    from quire.library import Library
    from quire.linking import LinkBack, LinkOut, Links
    from quire.mapping import Map, Point
    from quire.memory import Kept, Similar
    from quire.progress import DocumentChange
    from quire.records import StoredChunk, StoredSection
    from quire.regions import Label
    from quire.result import Reading, Result
    from quire.searcher import Found
    from quire.sources.entries import Version
    from quire.stores import AccessKey, Counts, DocumentRow, SourceRow
    from quire.sync import Changes

__all__ = [
    "AccessKey",
    "AsyncLibrary",
    "BrokenInvariant",
    "Changes",
    "Chunk",
    "Config",
    "Context",
    "Copied",
    "Counts",
    "Difference",
    "Document",
    "DocumentChange",
    "DocumentRow",
    "Embedded",
    "EmbeddingError",
    "EvalQuestion",
    "Evaluation",
    "Found",
    "Kept",
    "Label",
    "Library",
    "LibraryError",
    "LinkBack",
    "LinkOut",
    "Links",
    "Map",
    "MissingExtra",
    "NoResults",
    "Optimized",
    "Plan",
    "Point",
    "QuireError",
    "Reading",
    "Report",
    "Result",
    "Score",
    "Section",
    "SettingError",
    "Similar",
    "SourceError",
    "SourceRow",
    "StoredChunk",
    "StoredSection",
    "TextSpan",
    "Tree",
    "Version",
    "chunk",
    "tree",
]
# Loaded when first asked for: who only cuts text need not wait for a database.
_LATER = {
    "AccessKey": "quire.stores",
    "AsyncLibrary": "quire.aio",
    "Changes": "quire.sync",
    "Chunk": "quire.chunkers.base",
    "Context": "quire.context",
    "Copied": "quire.copying",
    "Counts": "quire.stores",
    "Difference": "quire.evaluation.scoring",
    "DocumentChange": "quire.progress",
    "DocumentRow": "quire.stores",
    "Embedded": "quire.embedding",
    "EvalQuestion": "quire.evaluation.questions",
    "Evaluation": "quire.evaluation.scoring",
    "Found": "quire.searcher",
    "Kept": "quire.memory",
    "Label": "quire.regions",
    "Library": "quire.library",
    "LinkBack": "quire.linking",
    "LinkOut": "quire.linking",
    "Links": "quire.linking",
    "Map": "quire.mapping",
    "Optimized": "quire.stores",
    "Plan": "quire.ingest.plan",
    "Point": "quire.mapping",
    "Reading": "quire.result",
    "Report": "quire.ingest.report",
    "Result": "quire.result",
    "Score": "quire.evaluation.scoring",
    "Similar": "quire.memory",
    "SourceRow": "quire.stores",
    "StoredChunk": "quire.records",
    "StoredSection": "quire.records",
    "TextSpan": "quire.evaluation.measures",
    "Version": "quire.sources.entries",
}


def __getattr__(name: str) -> Any:
    """Library, and what it returns."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'quire' has no attribute {name!r}")


def tree(source: str | bytes | Document, path: str = "", *, config: Config = DEFAULT) -> Tree:
    """The heading tree of a text, of a file's bytes, or of a document."""
    if isinstance(source, str):
        source = Document.from_text(source, path, settings=config.document)
    elif isinstance(source, bytes):
        from quire.sources.contents import document_of  # takes time, which `import quire` does not need

        source = document_of(source, path, settings=config.document).document
    elif not isinstance(source, Document):
        raise SettingError("source", f"must be a string, bytes or a Document, not {type(source).__name__}")
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
    from quire import chunkers  # takes time, which a search does not need

    return chunkers.split(source, strategy, chosen, config.tokens)
