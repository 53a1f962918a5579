"""Answers as data for programs: what stands in `_meta` under `quire/results`.

Always: the same results as in the text, in the same order; one schema for search, recall, context and read;
the names of `--json`; of a document's text only snippets, because the rest is in the content; of an entry's
history its texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from quire.context import Passage
    from quire.records import StoredChunk
    from quire.result import Reading, Result

    Found = Result | Passage | Reading | StoredChunk

RESULTS = "quire/results"  # the key in `_meta`


class ResultData(BaseModel):
    """A result: a place in a document. What does not apply is left out."""

    model_config = ConfigDict(extra="forbid")

    address: str = Field(description="its address, for `read`")
    start: int = Field(description="where it begins in the document, in characters")
    end: int = Field(description="where it ends")
    byte_start: int = Field(description="where it begins, in bytes")
    byte_end: int = Field(description="where it ends")
    start_line: int = Field(description="its first line, from 1")
    end_line: int = Field(description="its last line")
    tokens: int = Field(description="that reading it takes, about")
    number: int = Field(0, description="its number in a context pack")
    reason: Literal["critical", "match", "parent", "neighbour"] = Field(
        "match", description="why it is in a context pack"
    )
    strength: Literal["strong", "weak", "none"] = Field("none", description="how well it matches")
    confidence: float = Field(0.0, description="the chance that it answers, from 0 to 1: a lower bound")
    snippet: str = Field("", description="the words around its best matches, as plain text")
    highlights: list[tuple[int, int]] = Field([], description="start and end of each match in the snippet")
    score: float = Field(0.0, description="its score; larger is better, within one search")
    match: Literal["keyword", "semantic", "both"] = Field("keyword", description="what found it")
    collection: str = Field("", description="the collection of its document")
    kind: str = Field("", description="document, external, memory or knowledge")
    path: str = Field("", description="the path of its document")
    url: str | None = Field(None, description="the address of its page on the web")
    location: str | None = Field(None, description="where it is in the original, such as page 12")
    link: str | None = Field(None, description="opens the original there")
    title: str = Field("", description="the title of its document")
    heading: str | None = Field(None, description="its heading; null before the first one")
    trail: list[str] = Field([], description="the titles from the document down to it")
    breadcrumb: str = Field("", description="the same in one line")
    header_path: str = Field("", description="its headings with their marks")
    depth: int = Field(0, description="the level of its heading, from 1; 0 for none")
    parent: str | None = Field(None, description="the address of the next larger place")
    parent_title: str | None = Field(None, description="its title")
    parent_tokens: int = Field(0, description="that reading that place takes, about")
    document_id: str = Field("", description="the id of its document")
    chunk_ids: list[str] = Field([], description="the ids of its chunks")
    merged_from: list[str] = Field([], description="the addresses of the sections that it stands for")
    promotion: str = Field("", description="standard, important or critical")
    tags: list[str] = Field([], description="the tags of its document")
    updated_at: int = Field(0, description="when this version was stored, in milliseconds since 1970")
    stale: bool = Field(False, description="whether its file has changed since")
    verified: bool = Field(False, description="whether its document was compared with its checksum")


class VersionData(BaseModel):
    """A text of an entry."""

    model_config = ConfigDict(extra="forbid")

    written_at: int = Field(description="when it was written, in milliseconds since 1970")
    text: str = Field(description="the text")


class LinkData(BaseModel):
    """A link."""

    model_config = ConfigDict(extra="forbid")

    direction: Literal["out", "back"] = Field(description="whether it stands there, or leads there")
    address: str = Field(description="the section that it stands in")
    line: int = Field(description="the line, from 1")
    text: str = Field(description="what it says")
    form: Literal["wikilink", "embed", "markdown"] = Field(description="how it is written")
    target: str | None = Field(description="the address that it leads to; null if that is not indexed")
    written: str = Field("", description="its target as it is written, of one that stands there")
    same_alias: int = Field(0, description="how many notes have its target as an alias, if several do")


class Results(BaseModel):
    """The answer of search, recall, context or read."""

    model_config = ConfigDict(extra="forbid")

    tool: Literal["search", "recall", "context", "read"] = Field(description="the tool that answers")
    results: list[ResultData] = Field(description="what the text shows, in the same order")
    total: int = Field(description="how many there are, with those of other pages")
    cursor: str | None = Field(description="for the rest; null if this is all")
    notes: list[str] = Field(description="what else a reader should know")
    query: str = Field("", description="the query")
    mode: str = Field("", description="hybrid, keyword or semantic")
    model: str = Field("", description="the model whose vectors were compared; empty if only words were")
    good_match: bool = Field(True, description="whether any result has to do with the query")
    address: str = Field("", description="of the entry whose history this is")
    versions: list[VersionData] = Field([], description="its texts, newest first: `written_at` and `text`")
    links: list[LinkData] = Field([], description="the links of a document or a section, and those to it")
    left_out: list[str] = Field([], description="addresses that did not fit into a context pack")


def as_data(tool: str, found: Iterable[Found], **about: Any) -> dict[str, Any]:
    """The data of an answer."""
    told = Results(tool=tool, results=[_place(one) for one in found], **about)  # type: ignore[arg-type]
    return told.model_dump(mode="json", exclude_unset=True)


def _place(found: Found) -> ResultData:
    """The fields of a result that it has. A chunk is named by its id."""
    shown: dict[str, Any] = {
        name: getattr(found, name) for name in ResultData.model_fields if hasattr(found, name)
    }
    return ResultData(**shown | ({"chunk_ids": [found.id]} if hasattr(found, "id") else {}))
