"""Writes docs/python-reference.md from docstrings: python -m tests.python_reference"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import quire

PAGE = Path(__file__).parents[1] / "docs" / "python-reference.md"
_TOP = """\
# Python reference

All names that `quire` exports. [Python](python.md) shows how they are used. Names in other modules may change
in any version ([what is stable](upgrading.md#what-is-stable)).
"""
_EMPTY = inspect.Parameter.empty
_GROUPS = {
    "Functions": ("chunk", "tree"),
    "Libraries": ("Library", "AsyncLibrary"),
    "Errors": (),  # whatever is an exception
    "What they take and return": (),  # all others
}


_ABOUT = {
    "Functions": "They cut a text without a library.",
    "Libraries": "A library is opened with `Library.open`, or with `AsyncLibrary.open` in an event loop.",
    "Errors": "All are a `QuireError`.",
    "What they take and return": "Do not change them: most are immutable.",
}


def names() -> dict[str, list[str]]:
    """The exported names by group."""
    groups = {title: list(found) for title, found in _GROUPS.items()}
    placed = {name for found in groups.values() for name in found}
    for name in sorted(set(quire.__all__) - placed):
        kind = getattr(quire, name)
        is_error = isinstance(kind, type) and issubclass(kind, Exception)
        groups["Errors" if is_error else "What they take and return"].append(name)
    return groups


def page() -> str:
    """The whole page."""
    parts = [_TOP]
    for title, found in names().items():
        parts.append(f"## {title}\n\n{_ABOUT[title]}\n")
        parts += [entry(name) for name in found]
    return "\n".join(parts)


def entry(name: str) -> str:
    """A function or class."""
    thing = getattr(quire, name)
    if not isinstance(thing, type):
        return f"### {name}\n\n{_code(name, thing)}\n\n{told(thing)}\n"
    parts = [f"### {name}\n", told(thing), *_fields(thing)]
    if name == "AsyncLibrary":
        listed = ", ".join(f"`{one}`" for one, _ in _members(thing))
        parts.append(f"It has these methods, each as [Library](#library) has it, but a coroutine: {listed}.")
    elif not issubclass(thing, Exception):
        parts += [f"#### {name}.{one}\n\n{shown}" for one, shown in _members(thing)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def told(thing: object) -> str:
    """A docstring as Markdown: its paragraphs, each on one line."""
    text = inspect.getdoc(thing) or ""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text))


def _fields(kind: type) -> Iterator[str]:
    if is_dataclass(kind):
        shown = [f"| `{one.name}` | `{_plain(one.type)}` |" for one in fields(kind) if one.name[0] != "_"]
        yield "\n".join(["| field | type |", "|---|---|", *shown]) if shown else ""


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """The methods and properties that are documented, those of its bases included."""
    for name, member in inspect.getmembers_static(kind):
        found = getattr(kind, name) if name[0] != "_" else None
        if isinstance(member, property):
            if name[0] != "_":
                yield name, f"A property. {told(member)}"
        elif callable(found) and inspect.getdoc(found) and not isinstance(found, type):
            yield name, f"{_code(name, found)}\n\n{told(found)}"


def _code(name: str, call: Callable[..., Any]) -> str:
    """How it is called, on one line or with each parameter on its own."""
    signature = inspect.signature(call)
    parameters = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    shown = list(_shown(parameters))
    returned = f" -> {_plain(signature.return_annotation)}" if signature.return_annotation != _EMPTY else ""
    text = f"{name}({', '.join(shown)}){returned}"
    if len(text) > 100:
        lines = "".join(f"    {part},\n" for part in shown)
        text = f"{name}(\n{lines}){returned}"
    return f"```\n{text}\n```"


def _shown(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Parameters with their types and defaults, and the star after which they need their names."""
    has_star = False
    for one in parameters:
        has_star = has_star or one.kind == one.VAR_POSITIONAL
        if one.kind == one.KEYWORD_ONLY and not has_star:
            has_star = True
            yield "*"
        stars = "*" if one.kind == one.VAR_POSITIONAL else "**" if one.kind == one.VAR_KEYWORD else ""
        kind = f": {_plain(one.annotation)}" if one.annotation != _EMPTY else ""
        yield f"{stars}{one.name}{kind}{_default(one.default)}"


def _default(value: object) -> str:
    if value is _EMPTY:
        return ""
    return f" = {value!r}" if isinstance(value, str | int | float | tuple | None) else " = DEFAULT"


def _plain(kind: object) -> str:
    """A type by its name, without its module."""
    shown = kind.__name__ if isinstance(kind, type) else str(kind)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", shown)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
