"""Faults of every kind, injected for as long as one likes, and what must hold after each.

Each file is one kind. It has `turn(round)`, which injects a fault or a few and raises Wrong if something that
must hold does not. A round depends on its seed alone, and on what the machine does meanwhile.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

# The kinds of faults, and how the time is shared among them.
SHARES = {
    "kills": 12.0,
    "damage": 3.0,
    "replacing": 3.0,
    "power": 2.0,
    "clock": 1.0,
    "many": 2.0,
    "model": 3.0,
    "fuzz": 3.0,
    "cuts": 1.5,
}
KINDS = tuple(SHARES)
APART = ("fleet",)  # only when it is named: its cluster takes both processors


def load(kind: str) -> Callable[[Any], None]:
    """The function that makes a round of a kind."""
    turn: Callable[[Any], None] = importlib.import_module(f"tests.soak.{kind}").turn
    return turn
