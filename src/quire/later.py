"""Modules and regular expressions that are loaded and compiled when they are first used.

A search by words takes less time than importing and compiling all that it does not need. Always: what is
returned behaves as the module or pattern itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast


class _Pattern:
    """A pattern that compiles itself when something of it is used, and is as fast from then on."""

    def __init__(self, text: str | Callable[[], str], flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        text = self._text if isinstance(self._text, str) else self._text()
        found = getattr(re.compile(text, self._flags), name)  # re keeps what it has compiled
        setattr(self, name, found)
        return found


class _Module:
    """A module that is imported when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def pattern(text: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """A regular expression, or what makes its text, compiled on first use. A mistake shows only then."""
    return cast("re.Pattern[str]", _Pattern(text, int(flags)))


def module(name: str) -> Any:
    """A module, imported on first use. Beside it, an import under TYPE_CHECKING has the types."""
    return _Module(name)
