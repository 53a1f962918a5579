"""Adapters to other frameworks, each with the real framework."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as effort
from langchain_core.documents import Document
from llama_index.core.schema import Document as Node
from llama_index.core.schema import MetadataMode, NodeRelationship, TextNode

import quire
from quire.config import DEFAULT, override
from quire.errors import MissingExtra, SettingError
from quire.integrations import langchain, llama_index
from quire.library import Library
from tests.markdowns import markdown

PAGE = Path(__file__).parents[1] / "docs" / "integrations.md"
GUIDE = (
    "# Lamp\n\nA lamp.\n\n## Deploy\n\nCopy the folder to the server and run `lamp start`.\n\n"
    "### Rolling back\n\nEvery release is kept: `lamp use 41` goes back to release 41.\n"
)
WORDS = override(DEFAULT, {"embed": {"model": "none"}})


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """A library of one guide."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text(GUIDE)
    with Library.open(tmp_path / "lamp.db", create=True, config=WORDS) as library:
        library.add(tmp_path / "docs")
        yield library


def test_a_langchain_retriever_finds_what_the_library_finds(library: Library) -> None:
    """invoke, ainvoke and batch; the text is the exact span, and the metadata say where it is."""
    retriever = langchain.QuireRetriever(library=library, limit=2, collection="docs")
    found = library.search("release", limit=2, collection="docs").results
    asked = retriever.invoke("release")
    assert [document.metadata["address"] for document in asked] == [result.address for result in found]
    assert [document.page_content for document in asked] == [result.text for result in found]
    place = asked[0].metadata
    assert GUIDE[place["start"] : place["end"]] == asked[0].page_content
    assert asyncio.run(retriever.ainvoke("release")) == asked
    assert retriever.batch(["release", "copy", "release"])[::2] == [asked, asked]


def test_a_langchain_retriever_narrows_as_search_does(library: Library) -> None:
    """Nothing outside of what was asked for."""
    library.add(content="---\ntags: [old]\n---\nAn old release.\n", path="old.md", collection="other")
    tagged = langchain.QuireRetriever(library=library, with_tags=["old"])
    assert {document.metadata["collection"] for document in tagged.invoke("release")} == {"other"}
    at_paths = langchain.QuireRetriever(library=library, paths=["guide*"])
    assert {document.metadata["path"] for document in at_paths.invoke("release")} == {"guide.md"}


@effort(max_examples=30)
@given(markdown())
def test_pieces_are_exact_spans_in_both_frameworks(text: str) -> None:
    """text[start:end] is the chunk, in LangChain and in LlamaIndex."""
    chunks = quire.chunk(text, max_tokens=30)
    pieces = langchain.QuireSplitter(max_tokens=30).split_documents(
        [Document(page_content=text, metadata={"source": "a"})]
    )
    assert [piece.page_content for piece in pieces] == [chunk.text for chunk in chunks]
    for piece in pieces:
        place = piece.metadata
        assert text[place["start_index"] : place["end_index"]] == piece.page_content
        assert place["source"] == "a"
    nodes = llama_index.QuireNodeParser(settings={"max_tokens": 30}).get_nodes_from_documents(
        [Node(text=text, metadata={"source": "a"})]
    )
    assert [node.get_content() for node in nodes] == [chunk.text for chunk in chunks]
    for node in nodes:
        assert isinstance(node, TextNode)
        assert text[node.start_char_idx : node.end_char_idx] == node.text
        assert node.metadata["source"] == "a"


def test_a_wrong_setting_of_a_splitter_is_an_error_at_once() -> None:
    """It names the nearest one."""
    with pytest.raises(SettingError, match="Did you mean 'max_tokens'"):
        langchain.QuireSplitter(max_token=3)


def test_wrong_arguments_of_adapters_are_errors_at_once(library: Library) -> None:
    """None is ignored: that would search or cut otherwise than was asked for."""
    with pytest.raises(ValueError, match="bogus"):
        langchain.QuireRetriever(library=library, bogus=1)  # type: ignore[call-arg]
    with pytest.raises(SettingError, match=r"bogus: is no argument of Library\.search"):
        llama_index.QuireRetriever(library, bogus=1)
    with pytest.raises(SettingError, match="must be an open Library, not str"):
        llama_index.QuireRetriever("lamp.db")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_tokens"):
        llama_index.QuireNodeParser(max_tokens=20)  # type: ignore[call-arg]
    with pytest.raises(SettingError, match="Did you mean 'max_tokens'"):
        llama_index.QuireNodeParser(settings={"max_token": 2})
    with pytest.raises(SettingError, match="strategy"):
        llama_index.QuireNodeParser(strategy="foo")


def test_a_llama_index_retriever_finds_what_the_library_finds(library: Library) -> None:
    """retrieve and aretrieve; models see the address and the breadcrumb beside the text, and no numbers."""
    retriever = llama_index.QuireRetriever(library, limit=2)
    found = library.search("release", limit=2).results
    asked = retriever.retrieve("release")
    assert [(one.node.get_content(), one.score) for one in asked] == [(one.text, one.score) for one in found]
    seen = asked[0].node.get_content(metadata_mode=MetadataMode.LLM)
    assert found[0].address in seen
    assert "start_line" not in seen
    again = asyncio.run(retriever.aretrieve("release"))
    assert [one.node.id_ for one in again] == [one.node.id_ for one in asked]


def test_nodes_know_their_document_and_their_neighbours() -> None:
    """As those of the framework's own parsers do."""
    document = Node(text=GUIDE)
    first, second, *_ = llama_index.QuireNodeParser(settings={"max_tokens": 20}).get_nodes_from_documents(
        [document]
    )
    assert first.relationships[NodeRelationship.SOURCE].node_id == document.id_  # type: ignore[union-attr]
    assert first.relationships[NodeRelationship.NEXT].node_id == second.node_id  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "needs", "extra"),
    [
        ("langchain", "langchain_core.retrievers", "langchain"),
        ("llama_index", "llama_index.core.node_parser", "llama-index"),
    ],
)
def test_an_adapter_without_its_framework_says_how_to_install_it(
    name: str, needs: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optional parts are extras with a clear message."""
    monkeypatch.setitem(sys.modules, needs, None)
    monkeypatch.delitem(sys.modules, f"quire.integrations.{name}")
    with pytest.raises(MissingExtra, match=rf"pip install 'quire-docs\[{extra}\]'"):
        import_module(f"quire.integrations.{name}")


def test_the_examples_of_the_page_run(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block after a block of Python is what it prints."""
    monkeypatch.chdir(tmp_path)
    shown = re.findall(
        r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert len(shown) == 4
    for code, expected in shown:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, {})
        assert out.getvalue() == expected
