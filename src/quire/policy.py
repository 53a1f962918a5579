"""Limit the settings of an untrusted file: it may only narrow.

A setting's policy is beside its default, in the metadata of its field. A field without one is free.
Always: in the settings that `narrowed` returns, no limit is higher and no guarded value is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, fields, replace
from typing import Any, TypeVar

from quire import places

T = TypeVar("T")
Allowed = Callable[[Any, Any, str], bool]  # takes the current value, the new one and the file's folder
_ALLOWED, _INTERNAL = "allowed", "internal"
INTERNAL = {_INTERNAL: True}  # metadata of a field that is not a setting: no file or variable can set it


def at_most(default: T) -> T:
    """A limit: a file may lower it without trust."""
    return _field(default, lambda old, new, _: new < old)


def at_least(default: T) -> T:
    """A pause: a file may make it longer without trust."""
    return _field(default, lambda old, new, _: new > old)


def guarded(default: T, *, free: tuple[T, ...] = ()) -> T:
    """A setting that needs trust, except for the values that are `free`."""
    return _field(default, lambda _, new, __: new in free)


def within_folder(default: str) -> str:
    """A library that needs trust, except for a file inside the folder that names it."""
    return _field(default, lambda _, new, folder: places.is_inside(new, folder))


def secret(default: str) -> str:
    """A key: it needs trust and is never shown."""
    return _field(default, lambda *_: False, repr=False)


def _field(default: T, is_allowed: Allowed, *, repr: bool = True) -> T:
    found: T = field(default=default, repr=repr, metadata={_ALLOWED: is_allowed})
    return found


def _is_free(*_: object) -> bool:
    return True


def names(settings: object) -> list[str]:
    """The names of the settings of a dataclass."""
    return [one.name for one in fields(settings) if _INTERNAL not in one.metadata]  # type: ignore[arg-type]


def paths(settings: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every setting, such as ("chunk", "auto", "max_tokens")."""
    for name in names(settings):
        value = getattr(settings, name)
        if hasattr(value, "__dataclass_fields__"):
            yield from paths(value, (*above, name))
        else:
            yield (*above, name)


def narrowed(old: T, new: T, folder: str, where: str = "") -> tuple[T, dict[str, Any]]:
    """The new settings as far as a file in `folder` may set them, and the values it may not, by name."""
    kept, refused = dict[str, Any](), dict[str, Any]()
    for one in fields(new):  # type: ignore[arg-type]
        before, after = getattr(old, one.name), getattr(new, one.name)
        if hasattr(after, "__dataclass_fields__"):
            kept[one.name], more = narrowed(before, after, folder, f"{where}{one.name}.")
            refused |= more
        elif after != before and not one.metadata.get(_ALLOWED, _is_free)(before, after, folder):
            kept[one.name], refused[f"{where}{one.name}"] = before, after
    return replace(new, **kept), refused  # type: ignore[type-var]


def values(settings: object) -> Iterator[tuple[str, Any]]:
    """Every setting with its value, by name, such as chunk.auto.max_tokens."""
    for path in paths(settings):
        value: Any = settings
        for name in path:
            value = getattr(value, name)
        yield ".".join(path), value


def secrets(settings: object, above: str = "") -> Iterator[str]:
    """The names of the keys in some settings."""
    for one in fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, one.name)
        if hasattr(value, "__dataclass_fields__"):
            yield from secrets(value, f"{above}{one.name}.")
        elif not one.repr:
            yield f"{above}{one.name}"
