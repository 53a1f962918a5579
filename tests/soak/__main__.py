"""Inject faults for so many minutes, and print what came of it: python -m tests.soak [MINUTES]"""

from __future__ import annotations

import argparse
import sys
import time
from math import inf
from random import randrange

from tests.soak import APART, KINDS, SHARES, load
from tests.soak.rounds import WRONG, Counts, repeat

HEADER = ("kind", "rounds", "faults", *WRONG)


def main(args: list[str]) -> int:
    """Run each kind for its share of the time; 1 if anything was wrong."""
    given = _parser().parse_args(args)
    kinds, done = given.kind or KINDS, list[Counts]()
    seed = randrange(1_000_000) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    for kind in kinds:
        seconds = 60 * given.minutes * SHARES.get(kind, 1) / sum(SHARES.get(one, 1) for one in kinds)
        done.append(_run(kind, seed, seconds, given.rounds))
    print("\n".join(table(done)), flush=True)
    return int(any(counts.wrong for counts in done))


def _run(kind: str, seed: int, seconds: float, rounds: float) -> Counts:
    began, turn = time.monotonic(), load(kind)
    counts = repeat(
        kind, turn, seed, seconds=seconds, rounds=rounds, tell=lambda text: print(text, flush=True)
    )
    took = time.monotonic() - began
    print(f"{kind}: {counts.rounds:,} rounds, {counts.faults:,} faults, {took:.0f} s", flush=True)
    return counts


def table(done: list[Counts]) -> list[str]:
    """A line for each kind, as markdown."""
    rows = [HEADER, tuple("---" for _ in HEADER)]
    for one in done:
        numbers = one.rounds, one.faults, *(one.wrong[column] for column in WRONG)
        rows.append((one.kind, *(f"{number:,}" for number in numbers)))
    return [f"| {' | '.join(row)} |" for row in rows]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=30.0, help="for all kinds together (30)")
    parser.add_argument("--seed", type=int, help="of the first round of each kind: repeats a run, or a round")
    parser.add_argument(
        "--kind", action="append", choices=(*KINDS, *APART), help="only this one; may be repeated"
    )
    parser.add_argument("--rounds", type=float, default=inf, help="at most so many of each kind")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
