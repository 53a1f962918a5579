"""What each route takes: in its query, or as JSON. Names are those of the command line and of `Library`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from quire.config import STRATEGIES
from quire.errors import SettingError
from quire.stores import storable

_STRATEGIES = ", ".join(STRATEGIES)


def _text(value: Any) -> Any:
    """A text that can be stored. Raises ValueError for NUL and for half a character."""
    if isinstance(value, str) and storable(value) != value:
        raise ValueError("holds a NUL or an incomplete character")
    return value


_Text = Annotated[str, BeforeValidator(_text)]
_Address = Annotated[
    _Text, Field(min_length=1, max_length=5000, description="`collection:path`, with `#section`; or an id.")
]
_Name = Annotated[_Text, Field(max_length=5000)]
_Names = Annotated[list[Annotated[_Text, Field(min_length=1, max_length=5000)]], Field(max_length=1000)]
_Collection = Annotated[_Name, Field(description="Only this collection.")]
_Target = Annotated[_Name, Field(description="The collection that documents go into.")]
_Question = Annotated[_Text, Field(min_length=1, max_length=10_000, description="What to look for.")]
_Mode = Annotated[
    Literal["hybrid", "keyword", "semantic"], Field(description="By words and meaning, or by one of them.")
]
_Limit = Annotated[int, Field(ge=1, le=100, description="How many results.")]
_Paths = Annotated[_Names, Field(description="Only paths that begin so, or match a pattern with *.")]
_Tags = Annotated[_Names, Field(description="Only documents with all of these tags.")]
_Where = Annotated[_Names, Field(description="Conditions on front matter, such as `date>=2026-01-01`.")]
_Tokens = Annotated[int, Field(ge=1, le=1_000_000, description="The most tokens of the answer.")]
_DryRun = Annotated[bool, Field(description="Only say what would be removed.")]
_Background = Annotated[bool, Field(description="Answer at once with a job.")]


class Asked(BaseModel):
    """What a request asks for. Unknown names are refused."""

    model_config = ConfigDict(extra="forbid")

    def check_together(self) -> None:
        """Raise SettingError for arguments that do not go together."""


class NoArguments(Asked):
    """A request without arguments."""


class Within(Asked):
    """Which documents."""

    collection: _Collection | None = None
    path: _Paths = []
    tag: _Tags = []
    where: _Where = []


class Searching(Within):
    """A search."""

    q: _Question
    kind: Literal["document", "external"] | None = None
    limit: _Limit = 10
    mode: _Mode | None = None
    rerank: Annotated[bool, Field(description="Read the best again, for a better order.")] = False
    explain: Annotated[bool, Field(description="Say how each result came about.")] = False


class Recalling(Asked):
    """A search of memories and knowledge."""

    q: _Question
    kind: Annotated[list[Literal["memory", "knowledge"]], Field(max_length=2)] = []
    collection: _Collection | None = None
    tag: _Tags = []
    since: Annotated[_Name, Field(description="Written then or later: 2026-01-31, or 7d.")] | None = None
    until: Annotated[_Name, Field(description="Written before the end of then.")] | None = None
    limit: _Limit = 10
    mode: _Mode | None = None
    group: Annotated[bool, Field(description="Only the best chunk of each entry.")] = False


class Packing(Within):
    """A context pack."""

    q: _Question
    max_tokens: _Tokens | None = None
    mode: _Mode | None = None
    include: Literal["sections", "chunks", "documents"] = "sections"


class At(Asked):
    """A document or a section."""

    address: _Address


class ReadingAt(At):
    """A document or a section, perhaps cut."""

    heading: Annotated[_Name, Field(description="A heading, or a path of headings `A > B`.")] | None = None
    max_tokens: _Tokens | None = None


class ListingDocuments(Within):
    """A listing."""

    kind: Literal["document", "external", "memory", "knowledge"] | None = None
    order: Literal["address", "newest", "largest"] = "address"
    offset: Annotated[int, Field(ge=0, le=2**31)] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class Looking(Asked):
    """What is in the library."""

    check: Annotated[bool, Field(description="Also check the file, which takes time.")] = False


class Area(Asked):
    """A collection, or all."""

    collection: _Collection | None = None


class Chunking(Asked):
    """How a text would be cut. Nothing is stored."""

    content: Annotated[_Text, Field(description="The text.")] | None = None
    path: Annotated[_Name, Field(description="What it is called: its ending tells its format.")] = ""
    address: _Address | None = None
    strategies: Annotated[
        list[Literal["auto", "nodes", "sections", "windows", "memory", "headers"]],
        Field(max_length=len(STRATEGIES), description=f"Some of {_STRATEGIES}."),
    ] = ["auto"]
    max_tokens: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    overlap: Annotated[float, Field(ge=0, le=0.9)] | None = None


class Uploading(Asked):
    """What a file that is sent is called."""

    path: Annotated[_Text, Field(min_length=1, max_length=1000, description="As in notes/a.pdf.")]
    collection: _Target | None = None
    title: Annotated[_Name, Field(max_length=500)] | None = None


class Cutting(Asked):
    """How a file that is sent would be cut."""

    path: Annotated[_Text, Field(min_length=1, max_length=1000, description="As in a.pdf.")]
    strategy: Annotated[
        list[Literal["auto", "nodes", "sections", "windows", "memory", "headers"]],
        Field(max_length=len(STRATEGIES)),
    ] = ["auto"]
    max_tokens: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    overlap: Annotated[float, Field(ge=0, le=0.9)] | None = None


class Planning(Asked):
    """Sources, and how to read them. Without sources: all that the library has."""

    sources: Annotated[_Names, Field(description="Paths in the folders that may be read, or URLs.")] = []
    collection: _Target | None = None
    site: Annotated[bool, Field(description="All pages under a URL, not one.")] = False
    external: Annotated[bool, Field(description="Other people's: they cannot be promoted.")] = False
    include: Annotated[_Names, Field(description="Patterns as in .gitignore.")] | None = None
    exclude: Annotated[_Names, Field(description="Patterns as in .gitignore.")] | None = None
    prune: Annotated[bool, Field(description="Remove documents whose files are gone.")] = False


class Adding(Planning):
    """Sources or content to add."""

    content: Annotated[_Text, Field(description="A text instead of sources.")] | None = None
    path: Annotated[_Name, Field(max_length=1000, description="What to call the content.")] | None = None
    title: Annotated[_Name, Field(max_length=500)] | None = None
    background: _Background = False

    def check_together(self) -> None:
        """Raise SettingError for what is neither sources nor content, or for both."""
        if (self.content is None) != bool(self.sources):
            raise SettingError("add", "needs either sources, or content, perhaps with a path and a title")
        for name in ("path", "title") if self.sources else ():
            if getattr(self, name) is not None:
                raise SettingError(name, "is for content alone. Leave it out: sources have their own")


class Refreshing(Asked):
    """Bring all sources up to date."""

    prune: Annotated[bool, Field(description="Remove documents whose files are gone.")] = False
    keep: Annotated[bool, Field(description="Remove none.")] = False
    background: _Background = False


class Removing(Asked):
    """Documents to remove."""

    addresses: Annotated[_Names, Field(description="Addresses or ids.")] = []
    collection: _Name | None = None
    paths: _Paths = []
    dry_run: _DryRun = False


class RemovingSource(Asked):
    """A source to remove, with its documents."""

    place: Annotated[_Text, Field(min_length=1, max_length=5000, description="As sources has it.")]
    collection: _Name | None = None
    dry_run: _DryRun = False


class Promoting(At):
    """A document and its new level."""

    level: Literal["standard", "important", "critical"]


class Remembering(Asked):
    """Something to keep."""

    text: Annotated[_Text, Field(min_length=1, max_length=100_000)]
    kind: Literal["memory", "knowledge"] = "memory"
    name: Annotated[_Name, Field(max_length=500, description="The same name replaces the text.")] | None = (
        None
    )
    title: Annotated[_Name, Field(max_length=500)] | None = None
    tags: _Names = []
    collection: _Target | None = None


class Forgetting(Asked):
    """Memories and knowledge to delete."""

    addresses: Annotated[_Names, Field(description="Names, addresses or ids.")] = []
    collection: _Name | None = None
    tags: _Tags = []
    before: Annotated[_Name, Field(description="Written before: 2026-01-31, or 7d.")] | None = None
    dry_run: _DryRun = False


class Examining(Asked):
    """A check of the whole library."""

    background: _Background = False
