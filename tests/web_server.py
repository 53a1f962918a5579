"""A site on loopback that plays what a test needs: real sockets, real HTTP.

`with site() as web` serves until the block ends. A test says what a path answers; what was asked is in
`web.asked`, in order. `gate` counts how many answers were under way at once.
"""

from __future__ import annotations

import gzip
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MIB = 1 << 20


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]  # names in lower case


@dataclass
class Site:
    """What the paths of a site answer, and what it was asked."""

    port: int
    routes: dict[str, Callable[[Handler], None]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"

    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    def page(self, path: str, body: bytes = b"# A\n", *, status: int = 200, **headers: str) -> str:
        """A path answers this, every time; `content_type="text/html"` is a header. Gives its URL."""
        return self.route(path, lambda handler: handler.answer(status, body, headers))

    def pages(self, path: str, *answers: Callable[[Handler], None]) -> str:
        """A path answers one after another, and the last one from then on."""
        left = list(answers)
        return self.route(path, lambda handler: (left.pop(0) if left[1:] else left[0])(handler))

    def redirect(self, path: str, to: str, status: int = 302) -> str:
        return self.page(path, b"moved", status=status, location=to)

    def route(self, path: str, answer: Callable[[Handler], None]) -> str:
        self.routes[path] = answer
        return self.url(path)

    @contextmanager
    def gate(self) -> Iterator[None]:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1


class Handler(BaseHTTPRequestHandler):
    """Answers from the routes of its site."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    site: Site

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.site.asked.append(Asked(self.path, headers))
        missing = reply(404, b"no such page")
        with self.site.gate():
            self.site.routes.get(self.path.partition("?")[0], missing)(self)

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content_length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if status != 304:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test speaks by failing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: clients that leave in the middle are part of the tests."""


@contextmanager
def site() -> Iterator[Site]:
    """A site that is up while the block runs."""
    handler = type("SiteHandler", (Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    handler.site = web = Site(server.server_address[1])  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.002})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# Answers


def reply(status: int, body: bytes = b"", **headers: str) -> Callable[[Handler], None]:
    return lambda handler: handler.answer(status, body, headers)


def reset(handler: Handler) -> None:
    """Ends the connection as a crash does: with a reset, not a goodbye."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def cut_off(handler: Handler) -> None:
    """Promises more than it sends."""
    handler.answer(200, b"half of ", {"content_length": "1000"})
    handler.close_connection = True


def silent(seconds: float) -> Callable[[Handler], None]:
    """Says nothing for a while."""

    def answer(handler: Handler) -> None:
        time.sleep(seconds)
        handler.answer(200, b"late", {})

    return answer


def drip(handler: Handler) -> None:
    """Sends a byte now and then, up to ten seconds long."""
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b".")
        handler.wfile.flush()
        time.sleep(0.05)


def bomb(mebibytes: int) -> bytes:
    """So many MiB of zeros in gzip: about a thousandth of that."""
    zeros = bytes(MIB)
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    # After a full flush nothing refers back, so one block can stand there any number of times.
    block = squeeze.compress(zeros) + squeeze.flush(zlib.Z_FULL_FLUSH)
    end = squeeze.flush()
    crc = 0
    for _ in range(mebibytes):
        crc = zlib.crc32(zeros, crc)
    head = gzip.compress(b"", mtime=0)[:10]
    return head + block * mebibytes + end + struct.pack("<II", crc, mebibytes * MIB % 2**32)
