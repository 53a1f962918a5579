"""The arguments of tools: their types, their schema, and what is said of wrong ones."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from quire.address import meant
from quire.surfaces import checking

_UNSAID = ("title", "minLength", "maxLength", "maxItems")  # checked, but not told: each word costs tokens
MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS = 6000, 200, 25_000


def _as_list(value: object) -> object:
    """A list. Some clients send one string instead, or JSON in a string."""
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    return found if isinstance(found, list) else [value]


MaxTokens = Annotated[
    int,
    Field(ge=LEAST_TOKENS, le=MOST_TOKENS, description="The longest answer, in tokens."),
]
Cursor = Annotated[str, Field(max_length=200, description="From a cut answer; repeat its arguments.")]
Collection = Annotated[str, Field(max_length=500, description="Only this collection.")]
Address = Annotated[str, Field(min_length=1, max_length=5000), AfterValidator(meant)]
NameList = Annotated[list[Address], Field(max_length=1000), BeforeValidator(_as_list)]
Paths = Annotated[NameList, Field(description="Only paths that begin so, or match a pattern with *.")]
Tags = Annotated[NameList, Field(description="Only what has all of these tags.")]
NewTags = Annotated[NameList, Field(description="Words to filter by later.")]
Question = Annotated[
    str,
    Field(
        min_length=1,
        max_length=10_000,
        description='What to look for: words, "a phrase", -not, a OR b, prefix*, heading:word, tag:word,'
        " field:value.",
    ),
]
Background = Annotated[bool, Field(description="Return at once with a job, whose progress status shows.")]
Limit = Annotated[int, Field(ge=1, le=100, description="How many results.")]
Mode = Annotated[
    Literal["hybrid", "keyword", "semantic"],
    Field(description="By words and meaning, or by one alone."),
]


def _brief(argument: dict[str, Any]) -> dict[str, Any]:
    """The schema of an argument without lengths that nobody reaches, and without an empty default."""
    shown = {name: value for name, value in argument.items() if name not in _UNSAID}
    shown |= {"items": _brief(shown["items"])} if "items" in shown else {}
    shown |= {"enum": [value for value in shown["enum"] if value]} if "enum" in shown else {}
    if not shown.get("default", True):
        del shown["default"]
    return shown


class Arguments(BaseModel):
    """What a tool is called with."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def schema_of(cls) -> dict[str, Any]:
        """The JSON schema, without what the tool's name and description already say."""
        schema = cls.model_json_schema()
        del schema["title"], schema["description"]
        schema["properties"] = {name: _brief(argument) for name, argument in schema["properties"].items()}
        return schema

    @classmethod
    def checked(cls, given: dict[str, Any]) -> Any:
        """The arguments that a client sent. Raises SettingError, naming each that is wrong."""
        return checking.checked_arguments(cls, given)
