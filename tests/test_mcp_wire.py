"""The MCP server as a process: handshakes, HTTP, long work, what is on stdout, and what its docs say."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from quire.config import DEFAULT, override
from quire.library import Library
from quire.surfaces import cli
from quire.surfaces.mcp import transport
from quire.surfaces.mcp.server import Service
from tests import forks, models_server
from tests.commands import run as run_command
from tests.mcp_client import (
    GUIDE,
    READING,
    WRITING,
    ask,
    call,
    environment,
    http_server,
    parameters,
    refused,
    said,
    some_docs,
    talk,
)
from tests.mcp_docs import PAGE, written
from tests.words import WORDS


@pytest.fixture
def place(tmp_path: Path) -> Path:
    some_docs(tmp_path)
    return tmp_path


# ------------------------------------------------------------------------------------- handshakes


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_both_handshakes_work_over_standard_input_and_output(place: Path, mode: str, version: str) -> None:
    """Issue: both the 2026-07-28 protocol and the older initialize handshake work."""

    async def work(client: Client) -> None:
        assert client.protocol_version == version
        assert client.server_info is not None
        assert client.server_info.name == "quire"
        assert [tool.name for tool in (await client.list_tools()).tools] == READING + WRITING
        assert await ask(client, "add", sources=["."])
        assert "docs:guide.md#install" in await ask(client, "search", query="package manager")

    talk(parameters(place), work, mode)


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_both_handshakes_work_over_http(place: Path, mode: str, version: str) -> None:
    """Issue: `quire mcp --http`, 127.0.0.1 by default, no key needed there."""

    async def work(client: Client) -> None:
        assert client.protocol_version == version
        added = await ask(client, "add", content=GUIDE, path="guide.md")
        assert "1 added" in added or "1 unchanged" in added  # two blocks start it on the same library
        assert "content:guide.md#install" in await ask(client, "search", query="package manager")

    with http_server(place) as url:
        assert url.startswith("http://127.0.0.1:")
        talk(url, work, mode)


# -------------------------------------------------------------------------------- long adds, jobs


LONG = "".join(f"## Part {j}\n\nPenguin 0 eats fish {j}. {'word ' * 100}\n\n" for j in range(1200))


@contextmanager
def slow_model(place: Path, pause: float) -> Iterator[dict[str, str]]:
    """Settings of a model that takes its time; and a folder and LONG, which give it something to do."""
    for i in range(50):
        parts = "".join(f"## Part {j}\n\nPenguin {i} eats fish {j}. {'word ' * 100}\n\n" for j in range(24))
        (place / "docs" / f"p{i:02}.md").write_text(f"# P{i}\n\n{parts}")
    with models_server.serving() as models:
        models.pause = pause
        yield {"QUIRE_EMBED_MODEL": "ollama/m", "QUIRE_EMBED_URL": models.url}


def sound(place: Path) -> Library:
    """The library, once it is checked to be whole."""
    library = Library.open(place / "l.db", config=WORDS)
    assert library.store.check() == []
    return library


async def jobs(client: Client) -> list[dict[str, str]]:
    found: list[dict[str, str]] = (await call(client, "status")).structured_content["jobs"]
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("over_http", [False, True])
def test_a_long_add_tells_how_far_it_is_and_can_be_cancelled(place: Path, mode: str, over_http: bool) -> None:
    """Issue: long `add` reports progress and can be cancelled, and leaves a consistent library."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def work(client: Client) -> None:
        embedding = anyio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))
            if message and message.startswith("embedding"):
                embedding.set()

        async with anyio.create_task_group() as tasks:
            asked = {"content": LONG, "path": "long.md"}
            tasks.start_soon(lambda: client.call_tool("add", asked, progress_callback=hear))
            await embedding.wait()
            assert "long.md" in await ask(client, "search", query="penguin 0", mode="keyword")  # meanwhile
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            while "long.md" in str(await jobs(client)):
                await anyio.sleep(0.05)
        data = (await call(client, "status")).structured_content
        assert 0 < data["embedded"] < data["chunks"]

    with slow_model(place, 0.1) as env:
        root = str(place / "docs")
        if over_http:
            with http_server(place, "--root", root, **env) as url:
                talk(url, work, mode)
        else:
            talk(parameters(place, "--root", root, **env), work, mode)
    values = [progress for progress, _, _ in heard]
    assert values == sorted(set(values))
    assert all(total is not None and progress <= total for progress, total, _ in heard)
    with sound(place) as library:
        assert len(library.documents()) == 1


def test_an_add_in_the_background_returns_at_once_with_a_job(place: Path) -> None:
    """Issue: returns at once with a job when asked; status shows it."""

    async def work(client: Client) -> None:
        begun = time.monotonic()
        shown = await ask(client, "add", content=LONG, path="long.md", background=True)
        assert time.monotonic() - begun < 1
        job = re.fullmatch(r"Job (\w+) has begun: status .*; add with cancel=\"\1\" stops it\.", shown)
        assert job
        states = list[str]()
        with anyio.fail_after(30):
            while not states or states[-1] in ("waiting", "running"):
                status = await call(client, "status")
                told = status.structured_content["jobs"][0]
                assert told["job"] == job[1]
                assert job[1] in said(status)
                states.append(told["state"])
                await anyio.sleep(0.05)
        assert "running" in states
        assert states[-1] == "done"
        assert re.fullmatch(r"1 added, 0 updated, 0 unchanged: [\d,]+ chunks in \S+ s\.", told["result"])

    with slow_model(place, 0.02) as env:
        talk(parameters(place, "--root", str(place / "docs"), **env), work)


@pytest.mark.parametrize("background", [True, False])
def test_a_job_can_be_stopped_by_another_call(place: Path, background: bool) -> None:
    """Issue: a long `add` is a job with progress and a cancel that really stops."""
    answers = list[str]()

    async def work(client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(add, client)
            await stop(client)
        assert answers[0].startswith("Job " if background else "Stopped. What was written before is whole")

    async def add(client: Client) -> None:
        answers.append(await ask(client, "add", content=LONG, path="a.md", background=background))

    async def stop(client: Client) -> None:
        with anyio.fail_after(30):
            while "embedding" not in str(told := await jobs(client)):
                await anyio.sleep(0.02)
            job = told[0]["job"]
            stopped = await ask(client, "add", cancel=job)
            assert stopped == f"Job {job}: stops soon. What it has written is whole."
            while (stopped := await ask(client, "add", cancel=job)) != f"Job {job}: stopped.":
                await anyio.sleep(0.02)
        assert (job in str(await jobs(client))) == background
        assert "there is no job 'x'" in await refused(client, "add", cancel="x")

    async def embedding(client: Client) -> None:
        """What is left to embed is a job that nobody asked for."""
        with anyio.fail_after(30):
            while not (told := await jobs(client)):
                await anyio.sleep(0.02)
            assert told[0]["what"] == "embedding"
            await ask(client, "add", cancel=told[0]["job"])
            while (told := await jobs(client))[0]["state"] == "running":
                await anyio.sleep(0.02)
        assert told[0]["state"] == "stopped"
        status = await call(client, "status")
        assert "deeper meaning follows in the background" in said(status)
        assert status.structured_content["embedded"] < status.structured_content["chunks"]

    with slow_model(place, 0.5) as env:
        for one in (work, embedding):
            talk(parameters(place, "--root", str(place / "docs"), **env), one)
    with sound(place) as library:
        assert len(library.documents()) == 1


@pytest.mark.parametrize("option", [(), ("--watch",)])
def test_no_write_waits_for_what_is_embedded_deeply(place: Path, option: tuple[str, ...]) -> None:
    """The sources of an add are searchable at once, and embedded beside other writes."""
    models: models_server.Models
    for number in range(40):
        (place / "docs" / f"{number}.md").write_text(f"# Penguin {number}\n")

    def patiently(handler: models_server.Handler, texts: list[str]) -> None:
        if any("enguin" in text for text in texts):
            models.stop.wait(60)
        models_server.fine(handler, texts)

    async def work(client: Client) -> None:
        with anyio.fail_after(40):
            for tool, asked in (("add", {"sources": ["."]}), ("refresh", {})):
                assert "searchable now; deeper meaning follows" in await ask(client, tool, **asked)
            assert "Saved." in await ask(client, "remember", text="We deploy on Tuesdays.")
            assert {job["what"] for job in await jobs(client)} <= {"embedding"}
            models.stop.set()
            while (told := (await call(client, "status")).structured_content)["embedded"] < told["chunks"]:
                await anyio.sleep(0.05)

    with models_server.serving() as models:
        models.always = patiently
        env = {"QUIRE_EMBED_MODEL": "ollama/m", "QUIRE_EMBED_URL": models.url}
        talk(parameters(place, "--root", str(place / "docs"), *option, **env), work)


def test_many_files_are_added_by_workers(place: Path) -> None:
    """A folder that is read by several processes: their start leaves the protocol alone."""
    for i in range(80):
        (place / "docs" / f"{i}.md").write_text(f"# Number {i}\n\nText.\n")

    async def work(client: Client) -> None:
        assert "82 added" in await ask(client, "add", sources=["."])

    talk(parameters(place), work)


# ------------------------------------------------------------------------------------------- HTTP


def post(url: str, path: str = "", **headers: str) -> httpx2.Response:
    """Ask as a browser or another program might, by the protocol that the headers name."""
    request: dict[str, Any] = {"method": "tools/list", "params": {"_meta": META}}
    if "MCP-Protocol-Version" not in headers:
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": ABOUT["clientInfo"]}
        request = {"method": "initialize", "params": about}
    accept = {"Accept": "application/json, text/event-stream"}
    with httpx2.Client(timeout=10) as http:
        return http.post(
            f"{url}{path}", json={"jsonrpc": "2.0", "id": 1, **request}, headers=accept | headers
        )


ABOUT: dict[str, Any] = {
    "protocolVersion": "2026-07-28",
    "clientInfo": {"name": "t", "version": "1"},
    "clientCapabilities": {},
}
META = {f"io.modelcontextprotocol/{name}": value for name, value in ABOUT.items()}
MODERN = {"MCP-Protocol-Version": "2026-07-28", "MCP-Method": "tools/list"}
both_protocols = pytest.mark.parametrize("headers", [{}, MODERN], ids=["initialize", "2026-07-28"])


@both_protocols
def test_another_host_or_origin_is_refused(place: Path, headers: dict[str, str]) -> None:
    """Issue: Host and Origin checks always on: DNS rebinding reaches nothing."""
    with http_server(place) as url:
        port = url.split(":")[2].removesuffix("/mcp")
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "127.0.0.1:1"):
            assert post(url, Host=host, **headers).status_code == 421, host
        for origin in ("http://evil.example", "null", "http://localhost:1", f"https://127.0.0.1:{port}"):
            assert post(url, Origin=origin, **headers).status_code == 403, origin
        for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
            assert post(url, Host=host, Origin=f"http://{host}", **headers).status_code == 200, host


def test_names_behind_a_reverse_proxy_can_be_allowed(place: Path) -> None:
    """Issue: serve.allowed_hosts: names behind a reverse proxy got 421, and nothing could be set."""
    named = {"QUIRE_SERVE_ALLOWED_HOSTS": "docs.example.com"}
    with http_server(place, QUIRE_MCP_KEY="right key", **named) as url:
        right = {"Authorization": "Bearer right key"}
        for host in ("docs.example.com", "docs.example.com:443"):
            assert post(url, Host=host, Origin=f"https://{host}", **right).status_code == 200
            assert post(url, Host=host).status_code == 401
        assert post(url, Host="other.example.com", **right).status_code == 421
        assert post(url, Origin="https://other.example.com", **right).status_code == 403
    host = named["QUIRE_SERVE_ALLOWED_HOSTS"]
    _, err = run_command(place, "mcp", "--http", "--port", "0", code=2, QUIRE_SERVE_ALLOWED_HOSTS=host)
    assert "docs.example.com can be reached by others" in err


@both_protocols
def test_a_wrong_or_missing_key_gets_401(place: Path, headers: dict[str, str]) -> None:
    """Issue: bearer key; and the checks of Host and Origin stay on beyond loopback."""
    with http_server(place, "--host", "0.0.0.0", QUIRE_MCP_KEY="right key") as url:
        port = url.split(":")[2].removesuffix("/mcp")
        url = f"http://127.0.0.1:{port}/mcp"
        for given in ("", "Bearer", "Bearer wrong", "Basic right key", "right key", "Bearer right key2"):
            refused = post(url, **({"Authorization": given} if given else {}), **headers)
            assert refused.status_code == 401, given
            assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert post(url.removesuffix("/mcp"), "/.well-known/x", **headers).status_code == 401
        right = {"Authorization": "Bearer right key", **headers}
        assert post(url, **right).status_code == 200
        assert post(url, Host="evil.example", **right).status_code == 421
        assert post(url, Origin="http://evil.example", **right).status_code == 403
        assert post(url, Host=f"{socket.gethostname()}:{port}", **right).status_code == 200

        async def work(client: Client) -> None:
            assert "1 added" in await ask(client, "add", content=GUIDE, path="guide.md")

        talk(url, work, "auto" if headers else "legacy", key="right key")


# ------------------------------------------------------------------------------------ the command


def run(place: Path, *args: str, **more: str) -> tuple[int, str]:
    """How the command ends where it does not serve, and what it says."""
    done = subprocess.run(
        [forks.command(server=True), "mcp", *args],
        env=environment(place, **more),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def with_site(place: Path, code: str) -> str:
    """PYTHONPATH of a Python that begins with this code."""
    (place / "sitecustomize.py").write_text(code)
    return os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")])


def test_what_others_can_reach_needs_a_key(place: Path) -> None:
    """Issue: a key is required unless the host is loopback."""
    code, complaint = run(place, "--http", "--host", "0.0.0.0", "--port", "0")
    assert code == 2
    assert "set QUIRE_MCP_KEY" in complaint


def test_a_port_that_is_taken_is_named(place: Path) -> None:
    """Errors say what, where, and what to do next."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, complaint = run(place, "--http", "--port", port)
    assert code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in complaint


def test_a_library_in_memory_cannot_be_served(place: Path) -> None:
    """Two threads could not share it, and what is added would not be found."""
    code, complaint = run(place, "-L", ":memory:")
    assert code == 2
    assert "a server needs one in a file" in complaint


def test_no_other_command_imports_the_sdk() -> None:
    """DESIGN: `quire --help` and searching stay quick."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import quire.surfaces.cli, quire.library"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not re.search(r"\| +(mcp|mcp_types|pydantic|starlette)\b", done.stderr)


# ---------------------------------------------------------------------------------------- the wire


class Wire:
    """A server whose every line on stdout is looked at."""

    def __init__(self, place: Path, *args: str, **more: str) -> None:
        self.process = subprocess.Popen(
            [forks.QUIRE, "mcp", "-L", place / "l.db", "--root", place / "docs", *args],
            env=environment(place, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.asked = 0

    def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.asked += 1
        message = {"jsonrpc": "2.0", "id": self.asked, "method": method, "params": {**params, "_meta": META}}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        while True:
            got = json.loads(self.process.stdout.readline())
            assert got["jsonrpc"] == "2.0"
            if got.get("id") == self.asked:
                return got["result"]

    def say(self, line: str) -> Any:
        """What is answered to a line that no client of the SDK would send."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> str:
        out, errors = self.process.communicate(timeout=20)
        assert out == ""
        assert self.process.returncode == 0
        return errors


def raw(id: int, name: str, arguments: str) -> str:
    """A call whose arguments are JSON as it is sent."""
    params = f'{{"name": "{name}", "arguments": {arguments}, "_meta": {json.dumps(META)}}}'
    return f'{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {params}}}'


def test_half_an_emoji_is_answered(place: Path) -> None:
    """BAD_INPUTS: lone surrogates in JSON-RPC → an answer, never silence; whole pairs stay whole."""
    wire = Wire(place)
    said = {
        r'{"content": "# H\ud83d\n\nzebra \ud83d\ude00 \\ud83d", "path": "h\udcff.md"}': ("add", "1 added"),
        r'{"query": "zebra \ud83d"}': ("search", "h\ufffd.md#h"),
        r'{"address": "content:h\ufffd.md"}': ("read", "# H\ufffd\n\nzebra 😀 \\ud83d"),
        r'{"query": "zebra", "paths": ["\ud83d"]}': ("search", "No document is within"),
        r'{"address": "a:\\u{d800}\\u{0}"}': ("toc", "No document"),
        r'{"sources": ["\\u{d800}"]}': ("add", "no such file"),
    }
    for number, (arguments, (tool, answer)) in enumerate(said.items(), 1):
        got = wire.say(raw(number, tool, arguments))
        assert got["id"] == number
        assert answer in got["result"]["content"][0]["text"], arguments
    assert wire.close() == ""


def test_a_line_that_is_no_message_is_answered(place: Path) -> None:
    """JSON-RPC: a parse error has no id, a wrong request has its own. The server goes on."""
    wire = Wire(place)
    for line in ("{", '"\\u{d800}"', "[]", '{"a": 1}', "\ufffd"):
        got = wire.say(f"\n{line}")
        assert (got["id"], got["error"]["code"]) == (None, -32700), line
    for line, id in (
        (r'"id": 7, "params": "\ud800"', 7),
        (r'"id": "\ud800", "params": 5', "\ufffd"),
        ('"id": 9', 9),
    ):
        got = wire.say(f'{{"jsonrpc": "2.0", {line}, "method": 5}}')
        assert (got["id"], got["error"]["code"]) == (id, -32600), line
    for line in (
        '"id": true, "method": 5',
        f'"id": 1{"0" * 5000}, "method": 5',
        f'"id": 8, "params": {"[" * 100_000}',
    ):
        assert wire.say(f'{{"jsonrpc": "2.0", {line}}}')["id"] is None
    assert wire.ask("tools/call", name="search", arguments={"query": "x"})
    assert wire.close() == ""


def test_a_name_too_long_is_answered(place: Path) -> None:
    """BAD_INPUTS: a 5,000-character argument → a clear error."""
    wire = Wire(place)
    for source, answer in (
        ("x" * 5000, "no such file"),
        (f"https://127.0.0.1/{'x' * 4900}", "public address"),
    ):
        got = wire.ask("tools/call", name="add", arguments={"sources": [source]})
        assert answer in got["content"][0]["text"]
    wire.close()


def test_half_an_emoji_over_http_is_answered(place: Path) -> None:
    """BAD_INPUTS: lone surrogates in JSON-RPC → an answer, as over standard input."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"MCP-Protocol-Version": "2026-07-28", "MCP-Method": "tools/call", "MCP-Name": "search"}
    with http_server(place) as url, httpx2.Client(timeout=10, headers=headers) as http:
        for query in (r"penguins \ud83d", r"penguins \ud83d\ude00 ñ"):
            got = http.post(url, content=raw(1, "search", f'{{"query": "{query}"}}').encode())
            assert got.status_code == 200, got.text
            assert "indexed yet" in got.text
        assert http.post(url, content=b"{").json()["error"]["code"] == -32700


@pytest.mark.parametrize("closes_input", [False, True])
def test_a_client_that_reads_no_longer_ends_a_server_quietly(place: Path, closes_input: bool) -> None:
    """BAD_INPUTS: a closed pipe → quiet; what was written before is whole."""
    wire = Wire(place)
    wire.ask("tools/call", name="add", arguments={"sources": ["."]})
    process = wire.process
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    process.stdin.write("".join(raw(id, "search", '{"query": "penguins"}') + "\n" for id in range(2, 30)))
    process.stdin.flush()
    if closes_input:
        process.stdin.close()
    assert process.wait(20) == 0
    assert process.stderr.read() == ""
    with suppress(BrokenPipeError):
        process.stdin.close()
    process.stderr.close()
    with sound(place) as library:
        assert len(library.documents()) == 2


def test_clients_that_hang_up_leave_an_http_server_quiet(place: Path) -> None:
    """BAD_INPUTS: abandoned sessions, half a request, bytes that are no text → quiet, and it goes on."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    first = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode()
    with http_server(place, "--root", str(place / "docs")) as url:
        where = urlsplit(url)
        head = (
            f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Length: "
        )
        for body, size in (
            (first, len(first)),
            (first[:20], len(first)),
            (b'{"jsonrpc": "2.0", "id": 2, "method": "\xff\xfe"}', 50),
            (raw(3, "search", r'{"query": "\ud83d"}').encode(), 0),
        ):
            for _ in range(5):
                with socket.create_connection((where.hostname, where.port)) as connection:
                    connection.sendall(f"{head}{size or len(body)}\r\n\r\n".encode() + body)
        told = talk(url, lambda client: ask(client, "add", sources=["."]))
        assert told.startswith("2 added")
        log = (place / "http.log").read_text()
    assert log.splitlines() == [f"Serving on {url}"]


def test_ctrl_c_ends_a_server_at_once(place: Path) -> None:
    """A person who tries the command in a terminal gets out of it again."""
    wire = Wire(place)
    wire.ask("server/discover")
    wire.process.send_signal(signal.SIGINT)
    out, errors = wire.process.communicate(timeout=5)
    assert (out, errors) == ("", "")
    assert wire.process.returncode == -signal.SIGINT


STRAY = """
import os, sys
def hook(event, args):
    if event == "sqlite3.connect":
        print("STRAY PRINT", flush=True)
        os.write(1, b"STRAY WRITE\\n")
sys.addaudithook(hook)
"""


def test_nothing_but_the_protocol_is_on_stdout(place: Path) -> None:
    """Issue: nothing but protocol on stdout, whatever prints."""
    wire = Wire(place, PYTHONPATH=with_site(place, STRAY))
    wire.ask("server/discover")
    wire.ask("tools/call", name="add", arguments={"sources": ["."]})
    wire.ask("tools/call", name="search", arguments={"query": "penguins"})
    errors = wire.close()
    assert "STRAY PRINT" in errors
    assert "STRAY WRITE" in errors


def test_a_server_that_is_left_stops_its_jobs(place: Path) -> None:
    """A client that goes away leaves no process behind that works on, and a consistent library."""
    with slow_model(place, 2.0) as env:  # to embed everything would take twenty seconds
        wire = Wire(place, **env)
        wire.ask("tools/call", name="add", arguments={"sources": ["."], "background": True})
        while not wire.ask("tools/call", name="status")["structuredContent"]["chunks"]:
            time.sleep(0.05)
        begun = time.monotonic()
        wire.close()
        assert time.monotonic() - begun < 12
    with sound(place) as library:
        assert len(library.documents()) == 52


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at what a process has mapped")
def test_no_model_is_loaded_until_a_query_needs_it(place: Path) -> None:
    """Issue: no model is loaded until a query needs it; no library is opened before it is needed.

    A server that may write looks for what is not embedded yet, soon after it has started.
    """
    with Library.open(place / "l.db", create=True, config=DEFAULT) as library:
        library.add(place / "docs")
    wire = Wire(place, "--read-only", QUIRE_EMBED_MODEL="deep")

    def mapped() -> str:
        return Path(f"/proc/{wire.process.pid}/maps").read_text()

    wire.ask("server/discover")
    wire.ask("tools/list")
    assert "l.db" not in mapped()
    wire.ask("tools/call", name="read", arguments={"address": "guide.md"})
    wire.ask("tools/call", name="search", arguments={"query": "penguins", "mode": "keyword"})
    assert "l.db" in mapped()
    assert "onnxruntime" not in mapped()
    found = wire.ask("tools/call", name="search", arguments={"query": "a bird that is in the water"})
    assert "docs:faq.md" in found["content"][0]["text"]
    assert "onnxruntime" in mapped()
    wire.close()


# ---------------------------------------------------------------------------------------- the docs


def blocks() -> list[dict[str, Any]]:
    """Every block of settings for clients in docs/mcp.md and in the README."""
    text = PAGE.read_text("utf-8") + (PAGE.parents[1] / "README.md").read_text("utf-8")
    found = re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [json.loads(block)["mcpServers"]["quire"] for block in found]


def test_what_the_docs_tell_clients_to_start_is_a_server(place: Path) -> None:
    """Issue: the JSON block for the usual clients; a test starts exactly that command."""
    fetched = {"command": "uvx", "args": ["quire-docs", "mcp"]}  # which needs a network
    started = [block for block in blocks() if "command" in block]
    started.remove(fetched)
    assert len(started) == 3

    async def work(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == READING + WRITING
        added = await ask(client, "add", content=GUIDE, path="guide.md")
        assert "1 added" in added or "1 unchanged" in added  # two blocks start it on the same library

    path = os.pathsep.join([str(Path(forks.command(server=True)).parent), os.environ["PATH"]])
    for block in started:
        talk(StdioServerParameters(**block, env=environment(place, PATH=path), cwd=place), work)
    assert (place / ".local" / "share" / "quire" / "library.db").exists()  # the user's own
    assert (place / ".quire" / "library.db").exists()


def test_the_docs_name_the_address_that_is_served() -> None:
    """Issue: 127.0.0.1 by default; the block for HTTP is of that address."""
    (block,) = (block for block in blocks() if "url" in block)
    default = {option.name: option.default for option in cli.quire.commands["mcp"].params}
    assert block["url"] == f"http://{default['host']}:{default['port']}/mcp"


def test_the_exchange_in_the_docs_is_a_real_one() -> None:
    """Issue: a transcript of add, search, toc, read, context; write it with: python -m tests.mcp_docs"""
    page = PAGE.read_text("utf-8")
    assert written(page) == page
    assert all(f"**{name}** `" in page for name in ("add", "search", "toc", "read", "context"))


def test_twenty_clients_are_answered_at_the_same_time(place: Path) -> None:
    """Issue: 20 clients over HTTP, whose reads do not queue behind one thread."""
    with Library.open(
        place / "l.db", create=True, config=override(DEFAULT, {"embed": {"model": "none"}})
    ) as made:
        made.add(place / "docs")
    service = Service(str(place / "l.db"), made.config, read_only=True)
    together, search = threading.Barrier(20), service.tools["search"]

    def waits(library: Library, asked: Any) -> Any:
        together.wait(60)  # until all of them are being answered
        return search.run(library, asked) if search.run else None

    service.tools["search"] = replace(search, run=waits)

    async def one(url: str) -> str:
        async with Client(streamable_http_client(url)) as client:
            return await ask(client, "search", query="penguins")

    async def all_of(url: str) -> list[str]:
        return await asyncio.gather(*(one(url) for _ in range(20)))

    with served_here(service) as url:
        answers = asyncio.run(all_of(url))
    assert len({*answers}) == 1
    assert "docs:faq.md" in answers[0]


@contextmanager
def served_here(service: Service) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    listener = transport.listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    app = transport._app(service, "127.0.0.1", port, "")
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        thread.join()
        service.close()


# ------------------------------------------------------------------------------ other people's tools


INSPECTOR = shutil.which("mcp-inspector")
CONFORMANCE = shutil.which("conformance")


@pytest.mark.skipif(INSPECTOR is None, reason="npm install -g @modelcontextprotocol/inspector")
def test_the_inspector_lists_and_calls(place: Path) -> None:
    """Issue: with the npm MCP inspector's CLI where Node allows."""
    server = {
        "command": forks.QUIRE,
        "args": ["mcp", "-L", str(place / "l.db"), "--root", str(place / "docs")],
    }
    config = place / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"quire": {**server, "env": environment(place)}}}))

    def inspect(*args: str) -> Any:
        done = subprocess.run(
            [str(INSPECTOR), "--cli", "--config", config, "--server", "quire", "--method", *args],
            env={**os.environ, "HOME": str(place), "MCP_INSPECTOR_SECRET_STORE": "memory"},
            capture_output=True,
            text=True,
            check=False,
        )
        return json.loads(done.stdout)

    assert [tool["name"] for tool in inspect("tools/list")["tools"]] == READING + WRITING
    added = inspect("tools/call", "--tool-name", "add", "--tool-arg", 'sources=["."]')
    assert added["content"][0]["text"].startswith("2 added")
    found = inspect("tools/call", "--tool-name", "search", "--tool-arg", "query=penguins", "limit=1")
    assert "docs:faq.md" in found["content"][0]["text"]
    assert inspect("tools/call", "--tool-name", "search", "--tool-arg", "query=a", "limt=1")["isError"]
    assert len(inspect("resources/list")["resources"]) == 2
    read = inspect("resources/read", "--uri", "quire://docs/guide.md#use")
    assert read["contents"][0]["text"] == "## Use\n\nRun it.\n"


@pytest.mark.skipif(CONFORMANCE is None, reason="npm install -g @modelcontextprotocol/conformance")
def test_the_applicable_scenarios_of_the_conformance_suite_pass(place: Path) -> None:
    """Issue: the conformance suite's applicable scenarios; docs/mcp.md says why the others are not."""
    page = (Path(__file__).parents[1] / "docs" / "mcp.md").read_text()
    names = page.partition("## Conformance")[2].partition("The others")[0]
    with http_server(place) as url:
        for scenario in re.findall("`([a-z-]+)`", names):
            done = subprocess.run(
                [str(CONFORMANCE), "server", "--url", url, "--scenario", scenario],
                cwd=place,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            assert ", 0 failed" in done.stdout
