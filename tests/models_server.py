"""A server of embeddings on loopback that speaks as Ollama and as OpenAI do, and misbehaves when told to.

Its vectors are hashed bags of words: the same text always gets the same one, and none has length 1.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

DIMENSION = 16

Row = list[Any]
Reply = Callable[["Handler", list[str]], None]


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """A number for each place: how many words fall there."""
    row = [0.5] + [0.0] * (dimension - 1)
    for word in text.lower().split():
        row[zlib.crc32(word.encode("utf-8", "replace")) % dimension] += 1.0
    return row


@dataclass
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Models:
    """What the server was asked, and how it is to answer."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    next: deque[Reply] = field(default_factory=deque)  # how the next requests are answered, one each
    always: Reply | None = None  # how all the others are answered
    refuses: Callable[[str], bool] = lambda text: False  # a text for which a request gets 400
    dimension: int = DIMENSION
    pause: float = 0.0  # seconds before each answer
    busiest: int = 0  # the most requests that were under way at once
    stop: threading.Event = field(default_factory=threading.Event)
    _busy: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def inputs(self) -> list[list[str]]:
        """The texts of each request."""
        return [asked.body["input"] for asked in self.asked]

    def take(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            return self.next.popleft() if self.next else self.always or fine

    def done(self) -> None:
        with self._lock:
            self._busy -= 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would add 40 ms to each answer
    timeout = 1
    models: Models

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.models.take(Asked(self.path, dict(self.headers.items()), body))
        try:
            time.sleep(self.models.pause)
            if any(self.models.refuses(text) for text in body["input"]):
                reply = status(400, '{"error": "the input length exceeds the context length"}')
            reply(self, body["input"])
        except ConnectionError:  # the client has had enough
            self.close_connection = True
        finally:
            self.models.done()

    def send(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_rows(self, rows: list[Row]) -> None:
        """The rows in the shape that the path asks for."""
        shapes = {
            "/api/embed": {"model": "m", "embeddings": rows},
            "/v1/embeddings": {"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]},
        }
        self.send(200, json.dumps(shapes[self.path]).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def fine(handler: Handler, texts: list[str]) -> None:
    handler.send_rows([vector(text, handler.models.dimension) for text in texts])


def status(code: int, body: str = '{"error": "no"}', **headers: str) -> Reply:
    """Another status; the name of a header is written with an underscore for each hyphen."""
    return lambda handler, texts: handler.send(code, body.encode(), **headers)


def said(body: str, **headers: str) -> Reply:
    return status(200, body, **headers)


def rows(change: Callable[[list[Row]], list[Row]]) -> Reply:
    """The right vectors, changed."""
    return lambda handler, texts: handler.send_rows(
        change([vector(text, handler.models.dimension) for text in texts])
    )


def backwards(handler: Handler, texts: list[str]) -> None:
    """The right vectors in the OpenAI shape, the last one first."""
    items = [{"index": i, "embedding": vector(text)} for i, text in enumerate(texts)]
    handler.send(200, json.dumps({"data": items[::-1]}).encode())


def echo(code: int) -> Reply:
    """A status whose body is the headers of the request, the key among them."""
    return lambda handler, texts: handler.send(code, str(handler.headers).encode())


def hang(handler: Handler, texts: list[str]) -> None:
    """Nothing, until the test is over."""
    handler.models.stop.wait(10)
    handler.close_connection = True


def drip(handler: Handler, texts: list[str]) -> None:
    """One byte now and then, until the test is over or the client is gone."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    while not handler.models.stop.wait(0.03):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def huge(handler: Handler, texts: list[str]) -> None:
    """Blanks without end."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    while not handler.models.stop.is_set():
        handler.wfile.write(b" " * 1_000_000)


def reset(handler: Handler, texts: list[str]) -> None:
    """The connection is cut."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


class _Listener(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError | ValueError):
            super().handle_error(cast(Any, request), client_address)


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[Models]:
    """A server for one test; with a certificate and its key in one file, over TLS."""
    models = Models()
    handler = type("OneHandler", (Handler,), {"models": models})
    with _Listener(("127.0.0.1", 0), handler) as listener:
        models.port = listener.server_address[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            listener.socket = context.wrap_socket(listener.socket, server_side=True)
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield models
        finally:
            models.stop.set()
            listener.shutdown()
            thread.join()


def closed_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
