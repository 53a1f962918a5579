"""Check the arguments of Library's methods, so that every mistake gets an error that names it.

Input: the arguments of a call. Output: the same, with every `Iterable[str]` as a tuple. The annotations of a
method say what it takes. Names are storable and at most MAX_NAME characters; texts may be anything.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache, partial, wraps
from typing import Any, ParamSpec, TypeVar

from quire import later
from quire.config import Config
from quire.errors import SettingError
from quire.ingest.writing import Machines
from quire.progress import Progress
from quire.stores import storable

_P = ParamSpec("_P")
_T = TypeVar("_T")

MAX_NAME = 10_000  # characters of an address, a collection, a path, a tag
_LARGE = 10**12
_TEXTS = ("query", "text", "content", "title")  # what is not a name
_ADDRESSES = ("address", "addresses")  # of a page, one may hold NUL
_PLACES = ("place", "old", "new")  # names of files, or of what is in the library
_NAMES = "Iterable[str]"
_APART = later.pattern(r" \| (?![^\[]*\])")  # not inside brackets
_TYPES: dict[str, tuple[type, str]] = {
    "str": (str, "a string"),
    "bytes": (bytes, "bytes"),
    "int": (int, "a whole number"),
    "None": (type(None), ""),
    "datetime": (datetime, "a datetime"),
    "os.PathLike[str]": (os.PathLike, "a path"),
    _NAMES: (Iterable, "a list of strings"),
    "Iterable[str | bytes]": (Iterable, "lines"),
    "Progress": (Progress, "an object with the methods of quire.progress.Progress"),
    "Config": (Config, "a quire.Config"),
    "Machines": (Machines, "a quire.fleet.Fleet"),
}


def checks_arguments(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Make a method raise SettingError for an argument of a wrong type, or a name that cannot be one."""

    @cache  # looking at all methods takes longer than importing most modules
    def looked_at() -> tuple[inspect.Signature, dict[str, Callable[[Any], Any]]]:
        signature = inspect.signature(method)
        found = {name: check for name, one in signature.parameters.items() if (check := _check_of(one))}
        return signature, found

    @wraps(method)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        signature, checks = looked_at()
        call = signature.bind(*args, **kwargs)
        for name, value in call.arguments.items():
            if name in checks:
                call.arguments[name] = checks[name](value)
        return method(*call.args, **call.kwargs)

    return wrapped


def _check_of(parameter: inspect.Parameter) -> Callable[[Any], Any] | None:
    """What checks the values of a parameter; None if they may be anything."""
    kinds = _APART.split(str(parameter.annotation))
    if not all(kind in _TYPES for kind in kinds):
        return None
    check = partial(_checked, parameter.name, kinds)
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return lambda values: tuple(map(check, values))
    return check


def _checked(name: str, kinds: list[str], value: Any) -> Any:
    if _NAMES in kinds and value is not None:
        return _names(name, value)
    if not isinstance(value, tuple(_TYPES[kind][0] for kind in kinds)) or _is_mistaken(kinds, value):
        wanted = " or ".join(said for kind in kinds if (said := _TYPES[kind][1]))
        raise SettingError(name, f"must be {wanted}, not {_shown(value)}")
    if isinstance(value, str | os.PathLike) and (name in _PLACES or "os.PathLike[str]" in kinds):
        _check_place(name, value)
    elif isinstance(value, str) and name not in _TEXTS:
        _check_name(name, value)
    return value


def _names(name: str, values: Any) -> tuple[str, ...]:
    """Names that may be given as one."""
    if not isinstance(values, Iterable) or isinstance(values, bytes):
        raise SettingError(name, f"must be a list of strings, not {_shown(values)}")
    return tuple(_checked(name, ["str"], one) for one in ([values] if isinstance(values, str) else values))


def _is_mistaken(kinds: list[str], value: object) -> bool:
    """Whether Python takes a value for a number, or for lines, that hardly anyone means so."""
    return isinstance(value, bool) or (isinstance(value, bytes) and "bytes" not in kinds)


def _shown(value: object) -> str:
    """A short value, or the type of another, which may be long or hold a password."""
    is_short = value is None or (isinstance(value, int | float) and abs(value) < _LARGE)
    return repr(value) if is_short else type(value).__name__


def _check_name(name: str, value: str) -> None:
    if len(value) > MAX_NAME:
        raise SettingError(name, f"has {len(value):,} characters; the most is {MAX_NAME:,}")
    told = value.replace("\0", "") if name in _ADDRESSES else value
    if storable(told) != told:
        raise SettingError(name, "holds a NUL or an incomplete character. Name another")


def _check_place(name: str, value: str | os.PathLike[str]) -> None:
    """Raise SettingError for what no file can be called. What is too long is not found."""
    try:
        is_name = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise SettingError(name, "is not a valid file name: it holds a NUL or an incomplete character")
