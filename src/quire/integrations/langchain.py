"""LangChain: a retriever over a library, and a text splitter.

from quire.integrations.langchain import QuireRetriever, QuireSplitter
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import quire
from quire.config import DEFAULT, Config
from quire.errors import MissingExtra
from quire.integrations import facts
from quire.library import Library

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_text_splitters import TextSplitter
    from pydantic import ConfigDict
except ImportError:
    raise MissingExtra("The LangChain adapter", "langchain") from None


class QuireRetriever(BaseRetriever):
    """Finds sections of a library: invoke, ainvoke and batch work, in any thread."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    library: Library
    collection: str | None = None
    paths: Sequence[str] = ()
    with_tags: Sequence[str] = ()  # of documents; `tags` are LangChain's own
    limit: int | None = None
    mode: str | None = None
    rerank: bool | None = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        found = self.library.search(
            query,
            collection=self.collection,
            paths=self.paths,
            tags=self.with_tags,
            limit=self.limit,
            mode=self.mode,
            rerank=self.rerank,
        )
        return [
            Document(page_content=result.text, id=result.chunk_ids[0], metadata=facts.of_result(result))
            for result in found.results
        ]


class QuireSplitter(TextSplitter):
    """Splits text as Quire does. Each piece is an exact span, whose place is in its metadata."""

    def __init__(self, strategy: str | None = None, *, config: Config = DEFAULT, **settings: Any) -> None:
        """A strategy of `quire.chunk`, and its settings, such as `max_tokens=400`."""
        super().__init__()
        self.strategy, self.config, self.settings = strategy, config, settings
        self._chunks("")  # so that a wrong setting is an error at once

    def split_text(self, text: str) -> list[str]:
        """The pieces of a text."""
        return [chunk.text for chunk in self._chunks(text)]

    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """The pieces of texts as documents: the metadata of each text, and where the piece stands in it."""
        return [
            Document(page_content=chunk.text, metadata={**metadata, **facts.of_chunk(chunk)})
            for text, metadata in zip(texts, metadatas or [{}] * len(texts), strict=True)
            for chunk in self._chunks(text)
        ]

    def _chunks(self, text: str) -> list[quire.Chunk]:
        return quire.chunk(text, self.strategy, config=self.config, **self.settings)
