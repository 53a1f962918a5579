"""A block of front matter to a mapping, or to the reason why it has none.

Always: no block raises; time and memory are bounded by its length; a reason is one short line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_MAX_DEPTH = 40
_MAX_REASON = 200  # characters
_TOO_DEEP = f"it is nested more than {_MAX_DEPTH} deep"
_TOML = re.compile(
    r'''
    """(?:[^"\\]++|\\.|"{1,2}+(?!"))*+(?:"{3,5}+|\Z)  # a string or comment: no sign in it counts
    |"(?:[^"\\\n]++|\\[^\n])*+"?+
    |\'\'\'(?:[^']++|'{1,2}+(?!'))*+(?:'{3,5}+|\Z)
    |'[^'\n]*+'?+
    |\#[^\n]*+
    |(?P<sign>[][{}.,=\n])
    ''',
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=4)  # of one document, it is asked for several times
def read_yaml(block: str) -> tuple[Mapping[str, Any], str | None]:
    """A mapping, or {} and why not. Aliases are refused: a few lines of them can mean gigabytes."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if problem := _yaml_danger(yaml.parse(block, Loader=loader)) if _could_be_bomb(block) else None:
            return {}, problem
        return _mapping(yaml.load(block, Loader=loader))  # noqa: S506  both are safe loaders
    except Exception as problem:  # a tag that does not fit its value can raise any error
        return {}, f"broken YAML: {_reason(problem)}"


def read_toml(block: str) -> tuple[Mapping[str, Any], str | None]:
    """A mapping, or {} and why not. Long keys are refused: they take quadratic memory."""
    import tomllib

    if _toml_is_deep(block):
        return {}, _TOO_DEEP
    try:
        return _mapping(tomllib.loads(block))
    except Exception as problem:
        return {}, f"broken TOML: {_reason(problem)}"


def listed(value: Any) -> list[str]:
    """The names in a value: a list of them, one name, or several with commas between them."""
    found = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    plain = (str(one) for one in found if not isinstance(one, (list, dict, type(None))))
    return [name for one in plain if (name := " ".join(one.split()))]


def _could_be_bomb(block: str) -> bool:
    """Whether a block may have aliases or deep nesting. Only a few blocks need the second check."""
    return "*" in block or len(block) > 4000 or sum(map(block.count, "[{-?")) > _MAX_DEPTH


def _yaml_danger(events: Any) -> str | None:
    """Why the events of a block should not become values."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            return "it uses YAML aliases"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            return _TOO_DEEP
    return None


def _toml_is_deep(block: str) -> bool:
    """Whether brackets are nested too deep, or a key has too many parts."""
    depth = dots = 0
    for found in _TOML.finditer(block):
        sign = found["sign"] or ""
        depth += (sign in ("[", "{")) - (sign in ("]", "}"))
        dots = dots + 1 if sign == "." else dots if not sign else 0
        if max(depth, dots) > _MAX_DEPTH:
            return True
    return False


def _mapping(found: Any) -> tuple[Mapping[str, Any], str | None]:
    if found is None:
        return {}, None
    if not isinstance(found, dict):
        return {}, "it is not a list of keys and values"
    repr(found)  # a number too long to print raises here, not later
    return {str(key): value for key, value in found.items()}, None


def _reason(problem: Exception) -> str:
    line = " ".join(f"{type(problem).__name__}: {problem}".split())
    return line if len(line) <= _MAX_REASON else f"{line[: _MAX_REASON - 1]}…"
