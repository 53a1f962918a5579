"""Writes the table of settings in docs/settings.md from config.py: python -m tests.settings"""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from inspect import getsource
from pathlib import Path
from typing import Any

from quire import policy
from quire.config import DEFAULT

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"


def rows(settings: Any, where: str = "") -> list[str]:
    found = []
    for name in policy.names(settings):
        value = getattr(settings, name)
        if is_dataclass(value):
            found += rows(value, f"{where}{name}.")
        else:
            told = re.search(rf"^    {name}: .*?  # (.*)$", getsource(type(settings)), re.MULTILINE)
            shown = f'"{value}"' if isinstance(value, str) else str(value)
            found.append(f"| `{where}{name}` | `{shown}` | {told[1] if told else ''} |")
    return found


def table() -> str:
    return "\n".join(["| setting | default | |", "|---|---|---|", *rows(DEFAULT)])


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(r"\| setting .*?\n\n", lambda _: f"{table()}\n\n", text, flags=re.DOTALL), "utf-8")
