"""Writes the table of error codes in docs/troubleshooting.md from errors.py: python -m tests.error_codes"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from quire.errors import CODES, QuireError
from quire.surfaces import render

PAGE = Path(__file__).parents[1] / "docs" / "troubleshooting.md"


def kinds(kind: type[QuireError] = QuireError) -> Iterator[type[QuireError]]:
    """Every class of errors, from the root down."""
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


def exit_codes() -> dict[str, int]:
    """The exit code of a command that ends with an error of each code."""
    return {kind.code: render.exit_code(kind.__new__(kind)) for kind in kinds()}


def table() -> str:
    """A row for each code."""
    rows = (f"| `{code}` | {exit_codes()[code]} | {told} |" for code, told in CODES.items())
    return "\n".join(["| code | exit | what it means |", "|---|---|---|", *rows])


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(r"\| code \|.*?\n\n", lambda _: f"{table()}\n\n", text, flags=re.DOTALL), "utf-8")
