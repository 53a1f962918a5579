"""Rounds of a kind of fault: each with its seed and a folder of its own; what was wrong is counted."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from random import Random

from quire.errors import QuireError

LOST, SPANS, UNDETECTED, TRACEBACKS, WRITES, SLOW = WRONG = (
    "documents lost",
    "wrong spans",
    "undetected damage",
    "tracebacks",
    "lost acknowledged writes",
    "too slow",
)


AT_END: list[Callable[[], object]] = []  # what is done after each round, however it went
_MOST = 20  # rounds of a kind that may be wrong: what comes then is no news


class Wrong(AssertionError):
    """Something that must hold does not."""

    def __init__(self, column: str, what: str) -> None:
        self.column = column
        super().__init__(f"{column}: {what[:1500]}")


@dataclass
class Round:
    """One round: its random numbers, its folder, and how many faults it has injected."""

    seed: int
    rng: Random
    place: Path  # empty, and always at the same path: a library knows its sources by theirs
    is_long: bool  # it may take its time
    faults: int = 0


@dataclass
class Counts:
    """What the rounds of a kind came to."""

    kind: str
    rounds: int = 0
    faults: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)  # what was wrong, with the seed of its round


def require(holds: object, column: str, what: str) -> None:
    """Raise Wrong unless something holds."""
    if not holds:
        raise Wrong(column, what)


@contextmanager
def counted(column: str) -> Iterator[None]:
    """What is asserted inside counts in a column; an error of Quire counts as a loss."""
    try:
        yield
    except Wrong:
        raise
    except AssertionError as problem:
        raise Wrong(column, str(problem) or traceback.format_exc(limit=-1)) from problem
    except QuireError as problem:
        raise Wrong(LOST, f"{type(problem).__name__}: {problem}") from problem


@cache
def home() -> Path:
    """A folder for what all rounds of this process use."""
    place = Path(tempfile.mkdtemp(prefix="quire-soak-"))
    atexit.register(_remove, place, os.getpid())
    return place


def _remove(place: Path, process: int) -> None:
    if os.getpid() == process:  # and not one that was forked
        shutil.rmtree(place, ignore_errors=True)


def repeat(
    kind: str,
    turn: Callable[[Round], None],
    seed: int,
    *,
    seconds: float = inf,
    rounds: float = inf,
    tell: Callable[[str], None] = print,
) -> Counts:
    """Make rounds until the time is over or enough are done."""
    counts, until = Counts(kind), time.monotonic() + seconds
    while counts.rounds < rounds and (not counts.rounds or time.monotonic() < until):
        problem = _made(counts, turn, seed + counts.rounds, is_long=seconds < inf)
        counts.rounds += 1
        if problem:
            counts.told.append(problem)
            tell(problem)
        if len(counts.told) == _MOST:
            break
    return counts


def _made(counts: Counts, turn: Callable[[Round], None], seed: int, *, is_long: bool) -> str:
    """Make one round; what was wrong with it, "" if nothing was."""
    one = Round(seed, Random(f"{counts.kind} {seed}"), home() / "round", is_long)
    shutil.rmtree(one.place, ignore_errors=True)
    one.place.mkdir()
    try:
        turn(one)
    except Exception as problem:
        column = problem.column if isinstance(problem, Wrong) else TRACEBACKS
        counts.wrong[column] += 1
        what = str(problem) if isinstance(problem, Wrong) else traceback.format_exc()
        what = "\n".join([what, *getattr(problem, "__notes__", ())]) if isinstance(problem, Wrong) else what
        return f"{counts.kind}, seed {seed}: {what}"
    finally:
        counts.faults += one.faults
        while AT_END:
            AT_END.pop()()
    return ""
