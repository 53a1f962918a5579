"""Serve a library over HTTP until the process is told to stop.

Always: no port is opened before the settings are checked; when it stops, running requests get a few seconds,
and jobs stop between two transactions.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TextIO

import anyio
import uvicorn

from quire import redact
from quire.surfaces.http.access import Gate
from quire.surfaces.http.agents import Agents
from quire.surfaces.http.app import application
from quire.surfaces.http.guard import HostNames
from quire.surfaces.http.guarding import Entrance
from quire.surfaces.http.libraries import Libraries
from quire.surfaces.http.metrics import AccessLog
from quire.surfaces.mcp import listen, log_to_stderr

_END = 3.0  # seconds that work gets after that
_GRACE = 5  # seconds that running requests get when the server stops
_NO_KEYS = (
    "Others can reach this server, so every request needs a key. Make one with: quire keys make NAME -L {url}"
)


def guarded_app(libraries: Libraries, host: str, access_log: TextIO | None = None) -> Entrance:
    """The whole application."""
    config, names = libraries.config, HostNames(libraries.config.serve, host)
    gate = Gate(libraries.documents.whole)
    agents = Agents(libraries).app()
    app = application(libraries, agents, lambda: guard.metrics)
    guard = Entrance(app, gate, names, config, AccessLog(access_log))
    return guard


def serve(
    libraries: Libraries,
    host: str,
    port: int,
    *,
    access_log: TextIO | None = None,
    when_ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until interrupted."""
    app = guarded_app(libraries, host, access_log)
    listener = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listener.getsockname()[1]}"
    settings = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=_GRACE, proxy_headers=False
    )
    server = uvicorn.Server(settings)
    # Until uvicorn has handlers of its own, and when it raises the signal once more at its end.
    signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
    if HostNames(libraries.config.serve, host).is_public:
        sys.stderr.write(f"{_NO_KEYS.format(url=redact.url(libraries.url))}\n")
    sys.stderr.write(f"Serving on {url}\n")
    sys.stderr.flush()
    log_to_stderr()
    when_ready(url)
    gc.freeze()  # what was imported stays: looking through it again takes up to a tenth of a second
    with suppress(KeyboardInterrupt):
        anyio.run(partial(server.serve, sockets=[listener]))
    if not libraries.close(_END):
        # Such as a page that comes slowly. A library survives the end of a process at any moment.
        sys.stderr.write("Stopped while work was going on. What was written is whole.\n")
        sys.stderr.flush()
        os._exit(0)
