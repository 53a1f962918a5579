"""The MCP server against a bare one with a single empty tool, in one run, over the same client.

    pip install -e .
    python -m bench.mcp [--starts N] [--calls N] [--data FOLDER]

The library holds the Markdown files of a folder, by default this repository's documents. The two
servers take turns, so that what else the machine does troubles both alike. Times are medians:

handshake    from starting the process to the answer to tools/list, by either protocol
round trip   from a call to its answer: the empty tool; search by words; search by words and meaning,
             the same question never asked twice; read. The first call in a process opens the library,
             and the first search by meaning loads the model

The goal: a handshake within half a second of the bare server's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from quire.library import Library

DOCS = Path(__file__).parents[1] / "docs"
BARE = """
from mcp.server import MCPServer
server = MCPServer("bare")
@server.tool()
def nothing() -> str:
    "Do nothing."
    return ""
server.run()
"""
GOAL = 0.5  # seconds
Call = tuple[str, dict[str, Any]]


def servers(library: Path) -> dict[str, StdioServerParameters]:
    """Both, started by the same Python."""
    quire = str(Path(sys.executable).parent / "quire")
    env = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {
        "bare": StdioServerParameters(command=sys.executable, args=["-c", BARE], env=env),
        "quire": StdioServerParameters(command=quire, args=["mcp", "-L", str(library)], env=env),
    }


@asynccontextmanager
async def connected(server: StdioServerParameters, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a new process."""
    with Path(os.devnull).open("w") as log:
        async with Client(stdio_client(server, errlog=log), mode=mode) as client:
            yield client


async def handshake(server: StdioServerParameters, mode: str) -> float:
    """Seconds from starting a server to knowing its tools."""
    begun = time.perf_counter()
    async with connected(server, mode) as client:
        await client.list_tools()
        return time.perf_counter() - begun


async def handshakes(both: dict[str, StdioServerParameters], starts: int) -> bool:
    """Print how long they take, by both protocols; whether the goal is kept."""
    print(f"\nhandshake, {starts} starts each, ms\n\n| protocol | bare | quire | more |\n|---|---|---|---|")
    kept = True
    for mode, name in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
        took: dict[str, list[float]] = {which: [] for which in both}
        for _ in range(starts):
            for which, server in both.items():
                took[which].append(await handshake(server, mode))
        bare, quire = (statistics.median(took[which]) for which in ("bare", "quire"))
        kept &= quire - bare <= GOAL
        print(f"| {name} | {bare * 1000:,.0f} | {quire * 1000:,.0f} | {(quire - bare) * 1000:+,.0f} |")
    return kept


async def round_trips(both: dict[str, StdioServerParameters], asked: list[str], address: str) -> None:
    """Print how long calls take, each kind in a process of its own."""
    read: list[Call] = [("read", {"address": address})]
    empty: list[Call] = [("nothing", {})]
    kinds: dict[str, tuple[str, list[Call]]] = {
        "bare, an empty tool": ("bare", empty * len(asked)),
        "quire, read": ("quire", read * len(asked)),
        "quire, search by words": ("quire", [("search", {"query": q, "mode": "keyword"}) for q in asked]),
        "quire, search": ("quire", [("search", {"query": q}) for q in asked]),
    }
    print(
        f"\nround trip, {len(asked)} calls each, ms\n\n| call | median | first in a process |\n|---|---|---|"
    )
    for name, (which, calls) in kinds.items():
        first, *rest = await timed(both[which], calls)
        print(f"| {name} | {statistics.median(rest) * 1000:,.1f} | {first * 1000:,.1f} |")


async def timed(server: StdioServerParameters, calls: Iterable[Call]) -> list[float]:
    """Seconds for each call, all in one process."""
    took = []
    async with connected(server) as client:
        for name, arguments in calls:
            begun = time.perf_counter()
            answer = await client.call_tool(name, arguments)
            took.append(time.perf_counter() - begun)
            assert not answer.is_error, answer
    return took


def questions(library: Library, count: int) -> list[str]:
    """Questions that differ: runs of words from the documents."""
    rows = library.documents()
    words = " ".join(library.source(row.address).decode() for row in rows).split()
    step = max(1, (len(words) - 7) // count)
    return [" ".join(words[at : at + 7]) for at in range(0, step * count, step)]


async def measure(url: Path, starts: int, asked: list[str], address: str) -> None:
    both = servers(url)
    kept = await handshakes(both, starts)
    await round_trips(both, asked, address)
    print(f"\nthe goal, at most {GOAL} s more than the bare server: {'kept' if kept else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=11)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--data", type=Path, default=DOCS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = Path(folder) / "library.db"
        with Library.open(url, create=True) as library:
            report = library.add(args.data)
            asked, address = questions(library, args.calls), library.documents()[0].address
        print(f"{report.documents:,} documents, {report.chunks:,} chunks")
        asyncio.run(measure(url, args.starts, asked, address))


if __name__ == "__main__":
    main()
