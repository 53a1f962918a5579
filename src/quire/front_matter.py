"""A block of front matter to a mapping, or to the reason why it has none.

Always: no block raises; time and memory are bounded by its length; a reason is one short line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache, lru_cache, partial
from typing import Any, ClassVar

from quire import later

_MAX_DEPTH = 40
_MAX_REASON = 150  # characters
_TOO_DEEP = f"it is nested more than {_MAX_DEPTH} deep"
_MARKS = later.pattern(r"\{\{|\{%")  # of templates
_BRACKETED = later.pattern(r"[ \t]*(?:- +)?(?:[^\s:'\"\[{#][^:\n]*:[ \t]+)?[\[{]")  # up to a value
# Plain values: how they are written, the signs they begin with, and what they become.
_PLAIN: Mapping[str, tuple[str, list[str], Callable[[str], Any]]] = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""], lambda _: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF"), lambda text: text.lower() == "true"),
    "int": (r"[-+]?(?:0|[1-9][0-9]{0,29})", list("-+0123456789"), int),
    "float": (
        r"[-+]?[0-9]{1,30}\.[0-9]{1,30}(?:[eE][-+]?[0-9]{1,2})?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
        lambda text: float(re.sub(r"\.(?=[a-zA-Z])", "", text)),
    ),
    "timestamp": (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", list("0123456789"), date.fromisoformat),
}
# Parts of what a parser says, and what that means for the line.
_MEANINGS = {
    "mapping values are not allowed": "a second `: ` is in it, or it is indented too far; quote the value",
    "cannot start any token": "a value begins with a sign that YAML reserves; put it in quotes",
    "unhashable": "a list or a map cannot be a key",
    "expected ',' or": "a bracket is not closed",
    "end of stream": "a quote is not closed",
    "could not find expected ':'": "a key has no `:`",
    "constructor for the tag": "it has a tag that means nothing here; put the value in quotes",
    "expected key": "it does not fit the lines above it; look at its indentation and quotes",
    "expected '-'": "it does not fit the list above it; look at its indentation",
    "<block end>": "it does not fit the lines above it; look at its indentation and quotes",
    "tab": "a tab is where spaces must be",
    "escape": "a backslash in double quotes begins no known escape; use single quotes",
    "expected a mapping": "its tag does not fit its value",
    "expected a sequence": "its tag does not fit its value",
    "expected a scalar": "its tag does not fit its value",
    "document": "what follows is not part of the front matter",
}
_BEGUN = ("expected ',' or", "end of stream", "expected ':'")  # told where the bracket, quote or key begins
_TOML_SAID = later.pattern(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)
_TOML = later.pattern(
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
    """A mapping, or {} and why not. Aliases are refused: a few lines of them can mean gigabytes.

    Plain values are read as YAML 1.2 reads them, and a value that its type cannot be made of stays text.
    If that fails, values with the marks of templates, as `{{date}}`, are taken as text.
    """
    found, problem = _read_yaml(block)
    if problem and _MARKS.search(block):
        return _read_yaml("\n".join(map(_quoted, block.split("\n"))))
    return found, problem


def _read_yaml(block: str) -> tuple[Mapping[str, Any], str | None]:
    import yaml

    loader = _loader()
    try:
        if problem := _yaml_danger(yaml.parse(block, Loader=loader)) if _could_be_bomb(block) else None:
            return {}, problem
        return _mapping(yaml.load(block, Loader=loader))  # noqa: S506  it is a safe loader
    except Exception as problem:  # a tag that does not fit its value can raise any error
        return {}, f"broken YAML: {_yaml_reason(problem)}"


def _quoted(line: str) -> str:
    """A line whose value has marks of templates, with that value in quotes."""
    found = _BRACKETED.match(line)
    if found is None or not _MARKS.search(line):
        return line
    value, sign, comment = line[found.end() - 1 :].partition(" #")
    value = value.rstrip().replace("'", "''")
    return f"{line[: found.end() - 1]}'{value}'{sign}{comment}"


@cache
def _loader() -> Any:
    """A safe loader with the plain values of YAML 1.2, and dates."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for name, (pattern, first, make) in _PLAIN.items():
        tag, whole = f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{pattern})\Z")
        Loader.add_implicit_resolver(tag, whole, first)
        Loader.add_constructor(tag, partial(_scalar, whole, make))
    Loader.add_constructor("tag:yaml.org,2002:binary", yaml.SafeLoader.construct_yaml_str)
    return Loader


def _scalar(pattern: re.Pattern[str], make: Callable[[str], Any], loader: Any, node: Any) -> Any:
    """A value of its type, or the text that is written if it is none."""
    text = loader.construct_scalar(node)
    try:
        return make(text) if pattern.match(text) else text
    except ValueError:  # of a date, the 30th of February
        return text


def read_toml(block: str) -> tuple[Mapping[str, Any], str | None]:
    """A mapping, or {} and why not. Long keys are refused: they take quadratic memory."""
    import tomllib

    if _toml_is_deep(block):
        return {}, _TOO_DEEP
    try:
        return _mapping(tomllib.loads(block))
    except Exception as problem:
        return {}, f"broken TOML: {_toml_reason(problem)}"


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


def _yaml_reason(problem: Exception) -> str:
    """What is wrong, and in which line of the file: the first line after the fence is its second."""
    import yaml

    if not isinstance(problem, yaml.MarkedYAMLError):
        is_unreadable = isinstance(problem, yaml.YAMLError)
        return "it has a control character" if is_unreadable else "a value cannot be read"
    said = problem.problem or ""
    mark = problem.context_mark if any(one in said for one in _BEGUN) else problem.problem_mark
    mark = mark or problem.problem_mark or problem.context_mark
    place = f"line {mark.line + 2}" if mark else "a line"
    meaning = next((meaning for part, meaning in _MEANINGS.items() if part in said), "it cannot be read")
    return f"{place}: {meaning}"


def _toml_reason(problem: Exception) -> str:
    found = _TOML_SAID.fullmatch(str(problem))
    if found is None:
        return "a value cannot be read"
    said = " ".join(found[1].split())[:_MAX_REASON]
    place = f"line {int(found[2]) + 1}" if found[2] else "the last line"
    return f"{place}: {said[:1].lower()}{said[1:]}"
