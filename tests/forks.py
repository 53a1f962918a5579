"""Runs `quire` in forks of a process that has imported it: a command starts in 30 ms, and not in 400 or more.

    python tests/forks.py FOLDER MODULE …    fork for each command that is started, until standard input ends

A fork has the arguments, variables, folder and streams of a new process, and ends as one would. What is about
sessions, locales, memory or what a process imports needs a new process instead, which is QUIRE.
"""

from __future__ import annotations

import atexit
import marshal
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

QUIRE = str(Path(sys.executable).parent / "quire")
_COMMANDS = """
    importlib.metadata importlib.readers quire.doctor quire.library quire.stores.sqlite quire.surfaces.bar
    quire.surfaces.cli quire.surfaces.logs quire.surfaces.render Stemmer subprocess
""".split()
_SERVER = """
    anyio._backends._asyncio mcp.server.streamable_http_manager quire.surfaces.mcp.server
    quire.surfaces.mcp.transport uvicorn
""".split()
# It imports little, to start quickly. Where a variable for Python itself differs, it is a new process.
_COMMAND = """\
#!{python} -IS
import _signal, _socket, marshal, posix, sys

env = posix.environ
if any(name[:6] == b"PYTHON" and value != {fixed!r}.get(name) for name, value in env.items()):
    posix.execv({quire!r}, [{quire!r}, *sys.argv[1:]])
connection = _socket.socket(_socket.AF_UNIX)
connection.connect({path!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
message = marshal.dumps((sys.argv[1:], posix.getcwd(), env))
connection.sendmsg(
    [len(message).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
)
connection.sendall(message)
child = int.from_bytes(connection.recv(4), "big")
for number in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda number, frame: posix.kill(child, number))
code = int.from_bytes(connection.recv(4), "big", signed=True)
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -code)
sys.exit(code)
"""


def run(
    args: Sequence[bytes | str | Path], *, cwd: Path | None = None, env: dict[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """What a command ends with, and what it prints."""
    started = [command(), *args]
    return subprocess.run(started, input=stdin, capture_output=True, cwd=cwd, env=env, check=False)


@cache
def command(*, server: bool = False) -> str:
    """The path of a program that is `quire`, in forks of a process that ends with this one.

    It has loaded the parts of the MCP server if asked to: the more is loaded, the longer a fork takes to end.
    """
    folder = Path(tempfile.mkdtemp(prefix="quire-"))  # a short name: that of a socket has 107 characters
    loaded = [*_COMMANDS, *(_SERVER if server else [])]
    started = [sys.executable, __file__, str(folder), *loaded]
    _keep(subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE), folder)
    fixed = {name: value for name, value in os.environb.items() if name.startswith(b"PYTHON")}
    text = _COMMAND.format(python=sys.executable, fixed=fixed, quire=QUIRE, path=str(folder / "socket"))
    (folder / "quire").write_text(text)
    (folder / "quire").chmod(0o700)
    return str(folder / "quire")


def _keep(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until it listens; end it with this process."""
    assert process.stdout
    assert process.stdout.read(1), "it did not start"

    def end() -> None:
        process.terminate()  # others that were forked meanwhile may hold its standard input open
        process.communicate()
        shutil.rmtree(folder)

    atexit.register(end)


# ------------------------------------------------------------------------------- the process that forks


def _serve(folder: Path, *modules: str) -> None:
    import gc
    import importlib

    sys.path[0] = str(Path(QUIRE).parent)  # as if this was the script of the command
    for module in modules:
        importlib.import_module(module)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        os.write(1, b"\n")
        request = _next_request(listener)
    if request:
        _become(*request)


def _next_request(listener: socket.socket) -> Any:
    """What a fork is to be, in that fork; None in this process, once its standard input has ended."""
    while listener.fileno() in select.select([listener.fileno(), 0], [], [])[0]:
        connection, _ = listener.accept()
        with connection:
            if not os.fork():
                return _fork_child(connection)
        while _has_ended():
            pass
    return None


def _fork_child(connection: socket.socket) -> Any:
    """Fork the process that is asked for. It gets the request and its streams; this one tells how it ends."""
    size, streams, _, _ = socket.recv_fds(connection, 4, 3)
    message = connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
    child = os.fork()
    for number, stream in enumerate(streams):
        if not child:
            os.dup2(stream, number)
        os.close(stream)
    if not child:
        return marshal.loads(message)
    connection.sendall(child.to_bytes(4, "big"))
    _, status = os.waitpid(child, 0)
    connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    os._exit(0)


def _has_ended() -> bool:
    """Whether one of the processes that tell how others end has ended itself."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] > 0
    except ChildProcessError:
        return False


def _become(args: list[str], folder: str, env: dict[bytes, bytes]) -> None:
    """Be the command, in place of all that this process was."""
    import time

    from quire.surfaces.cli import main

    os.chdir(folder)
    os.environb.clear()
    os.environb.update(env)
    time.tzset()
    sys.argv = [QUIRE, *args]
    main()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), *sys.argv[2:])
