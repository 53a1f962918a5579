"""LlamaIndex: a retriever over a library, and a node parser.

from quire.integrations.llama_index import QuireNodeParser, QuireRetriever
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

import quire
from quire.errors import MissingExtra, SettingError, nearest
from quire.integrations import facts
from quire.library import Library
from quire.result import Result

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import ConfigDict, Field
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.node_parser.node_utils import build_nodes_from_splits
    from llama_index.core.schema import BaseNode, Document, NodeWithScore, QueryBundle, TextNode
except ImportError:
    raise MissingExtra("The LlamaIndex adapter", "llama-index") from None

_SHOWN = {"address", "breadcrumb", "header_path"}  # the metadata that models see beside the text


class QuireRetriever(BaseRetriever):
    """Finds sections of a library: retrieve and aretrieve work, in any thread."""

    def __init__(self, library: Library, **asked: Any) -> None:
        """The other arguments are those of `Library.search`, such as `collection` and `limit`.

        Raises SettingError for what is no library, or no argument of that.
        """
        if not isinstance(library, Library):
            raise SettingError("library", f"must be an open Library, not {type(library).__name__}")
        if wrong := asked.keys() - inspect.signature(library.search).parameters.keys():
            known = inspect.signature(library.search).parameters
            raise SettingError(min(wrong), f"is no argument of Library.search. {nearest(min(wrong), known)}")
        super().__init__()
        self.library, self.asked = library, asked

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(map(_node, self.library.search(query_bundle.query_str, **self.asked).results))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(result: Result) -> NodeWithScore:
    told = facts.of_result(result)
    node = TextNode(
        id_=result.chunk_ids[0],
        text=result.text,
        metadata=told,
        excluded_llm_metadata_keys=sorted(told.keys() - _SHOWN),
        excluded_embed_metadata_keys=sorted(told.keys() - _SHOWN),
        start_char_idx=result.start,
        end_char_idx=result.end,
    )
    return NodeWithScore(node=node, score=result.score)


class QuireNodeParser(NodeParser):
    """Cuts documents as Quire does. Each node is an exact span, whose place it knows."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    strategy: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)  # of the strategy, such as {"max_tokens": 400}

    def model_post_init(self, context: Any, /) -> None:
        """Raise SettingError for a wrong strategy or setting at once."""
        super().model_post_init(context)
        quire.chunk("", self.strategy, **self.settings)

    def _parse_nodes(
        self,
        nodes: Sequence[BaseNode],
        show_progress: bool = False,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> list[BaseNode]:
        return [node for document in nodes for node in self._cut(document)]

    def _cut(self, document: BaseNode) -> list[TextNode]:
        chunks = quire.chunk(document.get_content(), self.strategy, **self.settings)
        nodes = build_nodes_from_splits([chunk.text for chunk in chunks], document, id_func=self.id_func)
        for node, chunk in zip(nodes, chunks, strict=True):
            node.metadata = facts.of_chunk(chunk)
            hidden = sorted(node.metadata.keys() - _SHOWN)
            node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, *hidden]
            node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, *hidden]
        return nodes

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        """The offsets are those of the chunks, not of the first text that is the same."""
        for node in super()._postprocess_parsed_nodes(nodes, parent_doc_map):
            assert isinstance(node, TextNode)  # noqa: S101
            node.start_char_idx, node.end_char_idx = node.metadata["start_index"], node.metadata["end_index"]
        return nodes
