"""What clients of a server send, to checked arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from quire.errors import SettingError, nearest

M = TypeVar("M", bound=BaseModel)
_SHOWN = 10  # mistakes that are named
# What is wrong, by the type that pydantic gives it: shared words, and its own numbers and names.
_SAID = {
    "missing": "is needed",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "is too large a number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "greater_than_equal": "must be at least {ge:,}",
    "less_than_equal": "must be at most {le:,}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length:,} characters",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length:,} {things}",
    "literal_error": "must be {expected}",
}
_EMPTY = "'', "  # what stands for an argument that is not given, in the values that it may have


def checked_arguments(model: type[M], given: Mapping[str, Any]) -> M:
    """The arguments that a client sent. One that is null counts as not given.

    Raises SettingError, naming each that is wrong.
    """
    try:
        return model.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as problem:
        wrong = [_wrong(error, model) for error in problem.errors(include_url=False)[:_SHOWN]]
        raise SettingError("arguments", "; ".join(wrong)) from None


def _wrong(error: Any, model: type[BaseModel]) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"there is no {name!r}. {nearest(name, model.model_fields)}"
    if known := _SAID.get(error["type"]):
        about = dict(error.get("ctx", {}))
        about["things"] = "entries" if about.get("field_type") == "List" else "characters"
        return f"{name} {known.format_map(about).replace(_EMPTY, '')}"
    said = error["msg"].removeprefix("Value error, ")
    return f"{name}: {said[:1].lower()}{said[1:]}"
