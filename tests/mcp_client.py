"""Clients and servers for the tests of the MCP server: real processes, asked by the SDK's client."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from quire.config import TokenSettings
from quire.tokens import budget_counter
from tests import forks

GUIDE = "# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n\n## Use\n\nRun it.\n"
READING = ["search", "read", "toc", "list", "status", "context", "recall"]
WRITING = ["add", "refresh", "promote", "remove", "remember", "forget"]
T = TypeVar("T")
Work = Callable[[Client], Awaitable[T]]


def some_docs(place: Path) -> None:
    """A folder with two documents."""
    docs = place / "docs"
    docs.mkdir()
    (docs / "guide.md").write_text(GUIDE)
    (docs / "faq.md").write_text("# FAQ\n\nPenguins swim.\n")


def environment(place: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return kept | {"HOME": str(place), "QUIRE_EMBED_MODEL": "none"} | more


def parameters(place: Path, *args: str, **more: str) -> StdioServerParameters:
    args = args or ("--root", str(place / "docs"))
    return StdioServerParameters(
        command=forks.command(server=True),
        args=["mcp", "-L", str(place / "l.db"), *args],
        env=environment(place, **more),
    )


def talk(server: StdioServerParameters | str, work: Work[T], mode: str = "auto", key: str = "") -> T:
    """Do something with a client of a server, and see that the server had nothing to complain of."""

    async def main() -> T:
        if isinstance(server, str):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=30) as http,
                Client(streamable_http_client(server, http_client=http), mode=mode) as client,
            ):
                return await work(client)
        with tempfile.TemporaryFile("w+") as log:
            async with Client(stdio_client(server, errlog=log), mode=mode) as client:
                done = await work(client)
            log.seek(0)
            assert "Traceback" not in log.read()
            return done

    return anyio.run(main)


async def call(client: Client, name: str, /, **arguments: Any) -> CallToolResult:
    return await client.call_tool(name, arguments)


def said(result: CallToolResult) -> str:
    """The text of an answer, which is all of it but for list and status."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def ask(client: Client, name: str, /, **arguments: Any) -> str:
    """What a tool says when all is well."""
    result = await call(client, name, **arguments)
    assert not result.is_error, said(result)
    return said(result)


async def refused(client: Client, name: str, /, **arguments: Any) -> str:
    """What a tool says when something is wrong."""
    result = await call(client, name, **arguments)
    assert result.is_error, said(result)
    assert result.structured_content is None
    return said(result)


@contextmanager
def http_server(place: Path, *args: str, **more: str) -> Iterator[str]:
    """The URL of a server over HTTP, which ends with the test."""
    log = place / "http.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [forks.command(server=True), "mcp", "-L", place / "l.db", "--http", "--port", "0", *args],
            env=environment(place, **more),
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            until = time.monotonic() + 20
            while not (found := re.search(r"http://\S+", log.read_text())):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until
                time.sleep(0.02)
            yield found[0]
        finally:
            process.terminate()
            out, _ = process.communicate(timeout=20)
            assert out == b""
            assert "Traceback" not in log.read_text()


def tokens_of(text: str) -> int:
    """The tokens of an answer, as its budget counts them."""
    return budget_counter(TokenSettings()).count(text, 0, len(text))


def outside_quotes(text: str) -> str:
    """What of an answer is Quire's own words, by the rules of Markdown."""
    own, fence = list[str](), ""
    for line in text.split("\n"):
        if fence:
            closing = line.rstrip()
            fence = "" if set(closing) == {fence[0]} and len(closing) >= len(fence) else fence
        elif opening := re.match(r"(`{3,}|~{3,})", line):
            fence = opening[1]
        elif not line.startswith("> "):
            own.append(line)
    assert not fence
    return "\n".join(own)
