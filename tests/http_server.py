"""The real server of `quire serve` in a thread of the tests, and a client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import uvicorn

from quire.config import Config, override
from quire.surfaces.http import Libraries, guarded_app
from tests.words import WORDS

QUICK = override(WORDS, {"search": {"mode": "keyword"}})  # no model is loaded


@contextmanager
def serving(
    url: str, config: Config = QUICK, *, host: str = "127.0.0.1", log: Any = None, **given: Any
) -> Iterator[httpx2.Client]:
    """A client of a server of a library. `host` is what the server believes to be reached at."""
    libraries = Libraries(url, config, **given)
    settings = uvicorn.Config(guarded_app(libraries, host, log), port=0, log_config=None, access_log=False)
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
        assert libraries.close(20)


def bearer(key: str) -> dict[str, str]:
    """The header that brings a key."""
    return {"Authorization": f"Bearer {key}"}
