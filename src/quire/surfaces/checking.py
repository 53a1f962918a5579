"""What clients of a server send, to checked arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from quire.errors import SettingError, nearest

M = TypeVar("M", bound=BaseModel)
_SHOWN = 10  # mistakes that are named
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
    said = error["msg"].removeprefix("Value error, ").replace(_EMPTY, "")
    return f"{name}: {said[:1].lower()}{said[1:]}"
