"""Runs `quire` in forks of a process that has imported it: a command starts in 20 ms instead of 400.

    python tests/forks.py FD    fork for each request that comes through a socket, until it is closed

Always: a fork has the arguments, variables, folder and streams of a new process, and ends like one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

QUIRE = str(Path(sys.executable).parent / "quire")
_LOADED = (
    "anyio._backends._asyncio",
    "httpx2",
    "importlib.metadata",
    "importlib.readers",
    "quire.doctor",
    "quire.library",
    "quire.sources.web",
    "quire.stores.sqlite",
    "quire.surfaces.bar",
    "quire.surfaces.cli",
    "quire.surfaces.logs",
    "quire.surfaces.render",
    "Stemmer",
    "subprocess",
)


def run(
    args: Sequence[bytes | str | Path], *, cwd: Path | None = None, env: dict[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """What a command ends with and prints."""
    if _fixed(env) != _fixed(os.environ):
        return subprocess.run([QUIRE, *args], input=stdin, cwd=cwd, env=env, capture_output=True, check=False)
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        code = _forked([os.fsdecode(arg) for arg in args], cwd or Path.cwd(), env, (given, out, err))
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(args, code, out.read(), err.read())


def _fixed(env: Mapping[str, str]) -> dict[str, str]:
    """What Python reads when it starts, and never again."""
    return {name: value for name, value in env.items() if name.startswith(("PYTHON", "LANG", "LC_"))}


def _forked(args: list[str], cwd: Path, env: dict[str, str], streams: Sequence[IO[bytes]]) -> int:
    """The exit code of a command that reads and writes open files."""
    request = json.dumps({"args": args, "cwd": str(cwd), "env": env}).encode() + b"\n"
    _, connection = _server()
    try:
        socket.send_fds(connection, [request], [stream.fileno() for stream in streams])
        return int(connection.recv(100))
    except BaseException:  # an answer that nobody waited for is not that to the next request
        _server.cache_clear()
        raise


@cache
def _server() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process that forks, started when it is first needed; it ends when its socket is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.DEVNULL)
        command = [sys.executable, __file__, str(theirs.fileno())]
        return subprocess.Popen(command, pass_fds=[theirs.fileno()], **quiet), ours


def _requests(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request: it, in a fork that has its streams, or nothing when there are no more."""
    while True:
        request, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        while request and not request.endswith(b"\n"):
            request += connection.recv(1 << 16)
        if not request:
            return None
        child = os.fork()
        if not child:
            connection.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
        for stream in streams:
            os.close(stream)
        if not child:
            return dict(json.loads(request))
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _main(connection: socket.socket) -> None:
    import gc
    import importlib
    import time

    sys.path[0] = str(Path(QUIRE).parent)  # as if it was started as this script
    for module in _LOADED:
        importlib.import_module(module)
    gc.freeze()
    if request := _requests(connection):
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        sys.argv = [QUIRE, *request["args"]]
        from quire.surfaces.cli import main

        sys.exit(main())  # type: ignore[func-returns-value]


if __name__ == "__main__":
    _main(socket.socket(fileno=int(sys.argv[1])))
