"""The tools that agents have.

Always: an argument that a tool does not have is refused, naming the nearest; one that is null counts as not
given; nothing of a document stands in a description.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quire.surfaces.mcp import reading, writing
from quire.surfaces.mcp.arguments import Arguments
from quire.surfaces.mcp.text import Answer

if TYPE_CHECKING:  # a server that nobody has asked anything yet loads no library
    from quire.library import Library


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, its arguments, and what it does."""

    name: str
    arguments: type[Arguments]
    run: Callable[[Library, Any], Answer] | None = None  # the server itself runs the others
    writes: bool = False
    creates: bool = False  # it makes the library if there is none
    destructive: bool = False
    open_world: bool = False
    of_entries: bool = False  # it is about what was remembered, not about documents


TOOLS = (
    Tool("search", reading.Search, reading.search),
    Tool("read", reading.Read, reading.read),
    Tool("toc", reading.Toc, reading.toc),
    Tool("list", reading.List, reading.list_documents),
    Tool("status", reading.Status),
    Tool("context", reading.ContextArguments, reading.context),
    Tool("recall", reading.Recall, reading.recall, of_entries=True),
    Tool("add", writing.Add, writes=True, creates=True, destructive=True, open_world=True),
    Tool("refresh", writing.Refresh, writes=True, destructive=True, open_world=True),
    Tool("promote", writing.Promote, writing.promote, writes=True),
    Tool("remove", writing.Remove, writing.remove, writes=True, destructive=True),
    Tool("remember", writing.Remember, writing.remember, writes=True, creates=True, of_entries=True),
    Tool("forget", writing.Forget, writing.forget, writes=True, destructive=True, of_entries=True),
)
