"""What a million, a hundred million and ten thousand million chunks take: the tables of docs/scale.md.

    python -m bench.scale            print the tables
    python -m bench.scale --write    put them into docs/scale.md, where a test compares them

Every number comes from MEASURED, which has what another benchmark printed and the command that printed it;
from ASSUMED, which nobody measured; or from PRICES. To take in a new measurement, change its value there and
write the page anew.

The waiting times are those of a simulation: searches arrive at random at a machine with so many processors,
each takes a random time (lognormal, with the measured median and 95th percentile), and they are served in
turn. A search that asks several machines ends with the last of them; machines are taken as independent, which
is an upper bound.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
SIZES = (10**6, 10**8, 10**10)
HOURS = 730  # of a month
SEED, TASKS, SEARCHES, WARMING = 7, 30_000, 8_000, 500  # of a simulation, at least
LOADS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)


class Constant(NamedTuple):
    """A number that the tables are made of."""

    value: float
    unit: str
    what: str
    source: str


MEASURED = {
    "chunk_bytes": Constant(816, "B", "text of a chunk", "bench.index: 81.6 MB, 100,003 chunks"),
    "prepare": Constant(
        0.2595, "ms", "prepare a chunk, with instant meaning", "bench.index: (32.46 − 6.51) s, 100,003 chunks"
    ),
    "write": Constant(
        0.1794, "ms", "write a chunk to PostgreSQL", "bench.postgres: store.write, 179.38 s, 1,000,001 chunks"
    ),
    "hnsw_build": Constant(
        0.508,
        "ms",
        "index a vector when all are there",
        "bench.postgres: 254 s on two processors",
    ),
    "hnsw_insert": Constant(
        3.55, "ms", "index a vector as it is written", "bench.postgres: 282 vectors a second, 10⁶ vectors"
    ),
    "deep": Constant(31.8, "ms", "deep vector of a chunk of 128 words", "bench.embed: CPU ms per text"),
    "driver": Constant(0.019, "ms", "leading process, for a chunk", "bench.fleet: 0.27 s, 14,161 chunks"),
    "server_bytes": Constant(
        3740, "B", "a chunk on the server, with instant meaning", "bench.fleet: bytes a chunk"
    ),
    "deep_bytes": Constant(818, "B", "deep vector, 384 halves and its row", "384 × 2 B and 50 B for a row"),
    "hnsw_bytes": Constant(1200, "B", "a vector in HNSW", "bench.postgres: 1.2 GB, 10⁶ vectors"),
    "words_bytes": Constant(
        555, "B", "terms of a chunk and their index", "bench.storage: (2,153 + 1,290) B, 5,067 B of text"
    ),
    "search_100k": Constant(50.5, "ms", "search for seven words, 10⁵ chunks, p50", "bench.postgres"),
    "search": Constant(213.8, "ms", "search for seven words, 10⁶ chunks, p50", "bench.postgres"),
    "search_p95": Constant(446.6, "ms", "the same, p95", "bench.postgres"),
}
ASSUMED = {
    "copies": Constant(2, "", "copies of the data: a primary and a replica, both searched", "choice"),
    "memory_share": Constant(0.6, "", "share of the memory that indexes may take", "choice"),
    "busy": Constant(0.6, "", "share of the processors that searches may keep busy", "choice"),
    "disk_room": Constant(1.5, "", "disk for one byte of data: for changes and VACUUM", "choice"),
    "cpu": Constant(1.0, "", "a rented processor, in processors of the machine that measured", "choice"),
    "goal": Constant(40, "ms", "seven words at 10⁶ chunks, if the goal is reached", "goal, not measured"),
    "goal_exponent": Constant(0.5, "", "its growth", "goal, not measured"),
}


class Price(NamedTuple):
    """What can be rented, and its list price."""

    cpus: int
    memory: float  # GB
    dollars: float  # an hour; of a disk: a GB and month


PRICES = {
    "r6i.xlarge": Price(4, 32, 0.252),
    "r6i.8xlarge": Price(32, 256, 2.016),
    "r6i.32xlarge": Price(128, 1024, 8.064),
    "c6i.xlarge": Price(4, 8, 0.17),
    "c6i.8xlarge": Price(32, 64, 1.36),
    "gp3": Price(0, 0, 0.08),
}
PRICED = "AWS, us-east-1, Linux, on demand; as remembered in November 2026 and not looked up: check them"


@dataclass(frozen=True)
class Plan:
    """A size and the machines chosen for it."""

    chunks: int
    searches: float  # a second
    shard: int  # chunks of one shard
    server: str
    worker: str
    workers: int

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return max(1, math.ceil(self.chunks / self.shard))


PLANS = (
    Plan(10**6, 5, 10**6, "r6i.xlarge", "c6i.xlarge", 1),
    Plan(10**8, 5, 4 * 10**6, "r6i.8xlarge", "c6i.8xlarge", 16),
    Plan(10**10, 5, 2 * 10**7, "r6i.32xlarge", "c6i.8xlarge", 256),
)


def m(name: str) -> float:
    """A constant."""
    return (MEASURED | ASSUMED)[name].value


# --------------------------------------------------------------------------------------- formulas


@dataclass(frozen=True)
class Cost:
    """What one search costs on one shard of a million chunks, and how that grows and spreads."""

    name: str
    at_million: float  # ms, p50
    exponent: float
    sigma: float  # of the logarithm of its time

    def on(self, chunks: float) -> float:
        """Milliseconds of a median search on a shard."""
        return self.at_million * math.pow(chunks / 10**6, self.exponent)

    def mean(self, chunks: float) -> float:
        """Milliseconds of a search on a shard, on average: what keeps a processor busy."""
        return self.on(chunks) * math.exp(self.sigma**2 / 2)


def costs() -> tuple[Cost, Cost]:
    """A search as measured, and one that has reached the goal."""
    exponent = math.log10(m("search") / m("search_100k"))
    sigma = math.log(m("search_p95") / m("search")) / 1.645
    return Cost("today", m("search"), exponent, sigma), Cost("goal", m("goal"), m("goal_exponent"), sigma)


def hours(milliseconds: float, chunks: float, processors: float) -> float:
    """Hours of work on so many processors."""
    return milliseconds * chunks / 1000 / 3600 / (processors * m("cpu"))


def server_bytes() -> float:
    """Bytes of a chunk on the server: words, instant meaning, and a deep vector in HNSW."""
    return m("server_bytes") + m("deep_bytes") + m("hnsw_bytes")


def hot_bytes() -> float:
    """Bytes of a chunk that searches need in memory: HNSW, and the terms with their index."""
    return m("hnsw_bytes") + m("words_bytes")


class Servers(NamedTuple):
    """How many machines a size needs, and why."""

    memory: int
    processors: int
    number: int  # of one copy
    all: int


def servers(plan: Plan, cost: Cost) -> Servers:
    """Machines by memory and by processors, whichever is more; each copy holds everything."""
    price, copies = PRICES[plan.server], m("copies")
    by_memory = math.ceil(plan.chunks * hot_bytes() / (price.memory * 1e9 * m("memory_share")))
    busy = plan.searches * plan.shards * cost.mean(plan.chunks / plan.shards) / 1000
    by_processors = math.ceil(busy / copies / (price.cpus * m("busy") * m("cpu")))
    number = max(1, by_memory, by_processors)
    return Servers(by_memory, by_processors, number, round(number * copies))


# --------------------------------------------------------------------------------------- waiting


@cache
def waits(processors: int, busy: float, cost: Cost, chunks: float, together: int) -> list[float]:
    """Milliseconds from asking to answer on one machine, sorted.

    A search is `together` tasks at once, one for each shard there; it ends with the last of them.
    """
    draw, free = random.Random(SEED), [0.0] * processors
    pause = together * cost.mean(chunks) / (processors * busy)
    heapq.heapify(free)
    now, found = 0.0, list[float]()
    for number in range(WARMING + max(SEARCHES, TASKS // together)):
        now += draw.expovariate(1 / pause)
        end = now
        for _ in range(together):
            starts = max(now, heapq.heappop(free))
            done = starts + cost.on(chunks) * math.exp(draw.gauss(0, cost.sigma))
            heapq.heappush(free, done)
            end = max(end, done)
        if number >= WARMING:
            found.append(end - now)
    return sorted(found)


def quantile(ordered: Sequence[float], share: float, machines: int) -> float:
    """The time within which a share of the searches end, if they ask so many machines."""
    return ordered[min(len(ordered) - 1, int(share ** (1 / machines) * len(ordered)))]


def answered(plan: Plan, cost: Cost, busy: float | None = None) -> tuple[float, float, float]:
    """Median and p99 in ms, and how busy processors are, of searches on the machines of a plan."""
    found, cpus = servers(plan, cost), PRICES[plan.server].cpus
    together = max(1, round(plan.shards / found.number))
    chunks = plan.chunks / plan.shards
    load = plan.searches * plan.shards * cost.mean(chunks) / 1000 / (found.all * cpus)
    busy = load if busy is None else busy
    ordered = waits(cpus, max(busy, 0.001), cost, chunks, together)
    return quantile(ordered, 0.5, found.number), quantile(ordered, 0.99, found.number), busy


# --------------------------------------------------------------------------------------- tables


Table = list[str]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table as markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def number(value: float) -> str:
    """A number with two or three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def size(chunks: int) -> str:
    """A number of chunks as a power of ten."""
    return "10" + str(round(math.log10(chunks))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def constants() -> Table:
    """What is measured, and what is assumed."""
    rows = [
        (one.what, f"{one.value:,g} {one.unit}".strip(), one.source) for one in (MEASURED | ASSUMED).values()
    ]
    return table(("what", "value", "from"), rows)


def prices() -> Table:
    """List prices."""
    rows = [
        (name, str(one.cpus or "–"), f"{one.memory:g} GB" if one.memory else "–", f"${one.dollars:g}")
        for name, one in PRICES.items()
    ]
    return table(("instance", "processors", "memory", "an hour; gp3: a GB and month"), rows)


def ingest() -> Table:
    """Hours to take everything in, and what that costs once."""
    rows = []
    for plan in PLANS:
        price = PRICES[plan.worker]
        cpus = price.cpus * plan.workers
        database = PRICES[plan.server].cpus * servers(plan, costs()[0]).number
        words = hours(m("prepare"), plan.chunks, cpus)
        deep = hours(m("deep"), plan.chunks, cpus)
        stored = hours(m("write") + 2 * m("hnsw_build"), plan.chunks, database)
        inserted = hours(m("write") + 2 * m("hnsw_insert"), plan.chunks, database)
        leading = hours(m("driver"), plan.chunks, 1)
        dollars = (words + deep) * price.dollars * plan.workers
        about = (size(plan.chunks), f"{plan.workers} × {plan.worker}", number(words), number(deep))
        rows.append((*about, number(stored), number(inserted), number(leading), "$" + number(dollars)))
    head = (
        "chunks",
        "workers",
        "prepare, h",
        "deep, h",
        "store, h",
        "store and index, h",
        "lead, h",
        "once",
    )
    return table(head, rows)


def storage() -> Table:
    """Bytes of text, on disk and in memory, of one copy."""
    rows = [
        (
            size(plan.chunks),
            *(number(plan.chunks * one / 1e9) for one in (m("chunk_bytes"), server_bytes(), hot_bytes())),
            str(plan.shards),
            number(plan.chunks / plan.shards / 1e6),
        )
        for plan in PLANS
    ]
    return table(("chunks", "text, GB", "disk, GB", "memory, GB", "shards", "10⁶ chunks a shard"), rows)


def searching() -> Table:
    """What searches cost and how long they take."""
    rows = []
    for plan in PLANS:
        for cost in costs():
            found = servers(plan, cost)
            p50, p99, busy = answered(plan, cost)
            work = plan.shards * cost.mean(plan.chunks / plan.shards) / 1000
            about = (size(plan.chunks), cost.name, number(work), f"{plan.searches:g}")
            machines = f"{found.all} × {plan.server}", f"{found.memory} / {found.processors}"
            rows.append((*about, *machines, f"{busy:.0%}", number(p50), number(p99)))
    head = ("chunks", "words", "processor s", "searches/s", "machines, both copies")
    return table((*head, "for memory / processors", "busy", "p50 ms", "p99 ms"), rows)


def money() -> Table:
    """Dollars a month."""
    rows = []
    for plan in PLANS:
        for cost in costs():
            machines = servers(plan, cost).all * PRICES[plan.server].dollars * HOURS
            stored = plan.chunks * server_bytes() / 1e9 * m("copies") * m("disk_room") * PRICES["gp3"].dollars
            each = (machines + stored) / (plan.searches * 3600 * HOURS) * 1000
            total = f"${machines:,.0f}", f"${stored:,.0f}", f"${machines + stored:,.0f}", f"${each:,.2f}"
            rows.append((size(plan.chunks), cost.name, *total))
    return table(("chunks", "words", "machines", "disks", "a month", "1,000 searches"), rows)


def curves() -> Table:
    """p50 and p99 against how busy the processors are."""
    rows = []
    for plan in PLANS:
        for cost in costs():
            found = [answered(plan, cost, load)[:2] for load in LOADS]
            times = (f"{number(p50)} / {number(p99)}" for p50, p99 in found)
            rows.append((size(plan.chunks), cost.name, *times))
    return table(("chunks", "words", *(f"{load:.0%} busy" for load in LOADS)), rows)


TABLES = {
    "constants": constants,
    "prices": prices,
    "ingest": ingest,
    "storage": storage,
    "searching": searching,
    "money": money,
    "curves": curves,
}


def pieces() -> Iterator[tuple[str, str]]:
    """Each table by its name, as it is in the page."""
    for name, make in TABLES.items():
        yield name, f"<!-- {name} -->\n\n" + "\n".join(make()) + f"\n\n<!-- end of {name} -->"


def written(page: str) -> str:
    """The page with its tables as they are now."""
    for name, piece in pieces():
        before, _, rest = page.partition(f"<!-- {name} -->")
        page = before + piece + rest.partition(f"<!-- end of {name} -->")[2]
    return page


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    if parser.parse_args().write:
        PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
        return
    for name, piece in pieces():
        print(f"{name}\n\n{piece}\n")


if __name__ == "__main__":
    main()
