"""Writes the table of settings in docs/settings.md: python -m tests.settings

What a setting is, is its comment in config.py; when to change it, is in settings_when.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from inspect import getsource
from pathlib import Path
from typing import Any, NamedTuple

from quire import policy
from quire.config import DEFAULT

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
WHEN = Path(__file__).with_name("settings_when.toml")


class Row(NamedTuple):
    """A setting: its name and default, what it is, and when to change it."""

    name: str
    default: str
    told: str
    when: str


def rows(settings: Any = DEFAULT, where: str = "") -> Iterator[Row]:
    """Every setting, in the order of config.py."""
    for name in policy.names(settings):
        value = getattr(settings, name)
        if is_dataclass(value):
            yield from rows(value, f"{where}{name}.")
        else:
            shown = f'"{value}"' if isinstance(value, str) else str(value)
            told = _comment(getsource(type(settings)), name)
            yield Row(f"{where}{name}", shown, told, reasons().get(f"{where}{name}", ""))


def _comment(source: str, name: str) -> str:
    """What is said of a setting beside its default, which may be on several lines."""
    found = re.search(rf"^    {name}: (?:(?!^    \w).)*?  # (.*?)$", source, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def reasons() -> dict[str, str]:
    """When to change each setting, by its whole name."""
    return dict(_flat(tomllib.loads(WHEN.read_text("utf-8"))))


def _flat(table: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, str):
            yield f"{where}{name}", value
        else:
            yield from _flat(value, f"{where}{name}.")


def table() -> str:
    """A row for each setting."""
    shown = (f"| `{one.name}` | `{one.default}` | {one.told} | {one.when} |" for one in rows())
    head = "| setting | default | what it is | change it |"
    return "\n".join([head, "|---|---|---|---|", *shown])


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(r"\| setting .*?\n\n", lambda _: f"{table()}\n\n", text, flags=re.DOTALL), "utf-8")
