"""Serve over standard input and output, or over HTTP.

Always: HTTP requests have a checked Host and Origin, and the key if there is one; on standard input, an
unreadable line is repaired or answered.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from quire.errors import SettingError
from quire.surfaces import logs
from quire.surfaces.mcp.server import Service

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Every escape of JSON; `half` is one of a surrogate pair whose other half is missing.
_HALF = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|(?P<half>ud[89a-f][0-9a-f]{2})|.)", re.IGNORECASE)


def serve(service: Service) -> None:
    """Serve over standard input and output until the client closes them."""

    async def main() -> None:
        # While this is open, other prints go to stderr: only the SDK writes to stdout.
        options = service.server.create_initialization_options()
        async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
            readable, received = anyio.create_memory_object_stream[SessionMessage](0)
            group.start_soon(_relay, incoming, readable, outgoing)
            await service.server.run(received, outgoing, options)

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own would wait for the thread that reads stdin
    _until_done(service, lambda: _until_left(main))


def _until_left(main: Callable[[], Awaitable[None]]) -> None:
    """Run a server until its client closes standard input, or reads standard output no longer."""
    try:
        anyio.run(main)
    except* (BrokenPipeError, ConnectionResetError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes stdout at its end


async def _relay(
    incoming: ReadStream[SessionMessage | Exception],
    readable: WriteStream[SessionMessage],
    outgoing: WriteStream[SessionMessage],
) -> None:
    """Pass messages on. An unreadable one is repaired or answered, so that no client waits in vain."""
    async with incoming, readable:
        async for item in incoming:
            line = _unreadable(item) if isinstance(item, Exception) else ""
            message = _mended(line) if isinstance(item, Exception) else item
            if message:
                await readable.send(message)
            elif line.strip():
                await outgoing.send(SessionMessage(_refusal(line)))


def _unreadable(problem: Exception) -> str:
    """The line that a problem is about, or what it says as JSON."""
    if not isinstance(problem, ValidationError):
        return str(problem)
    inputs = [error["input"] for error in problem.errors(include_url=False)]
    whole = next((one for one in inputs if isinstance(one, dict) and "jsonrpc" in one), inputs[0])
    return whole if isinstance(whole, str) else json.dumps(whole)


def _mended(line: str) -> SessionMessage | None:
    """A repaired message that was unreadable only because of half a surrogate pair (half an emoji)."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(_whole(line), by_name=False))
    except ValidationError:
        return None


def _whole(line: str) -> str:
    if not _HALF.search(line):  # which is quick, and nearly always so
        return line
    return _ESCAPE.sub(lambda found: r"\ufffd" if found["half"] else found[0], line)


def _refusal(line: str) -> JSONRPCError:
    """The answer to a line that is no message, with the id that it may have."""
    try:
        found = json.loads(_whole(line))
    except (ValueError, RecursionError):
        found = None
    id = found.get("id") if isinstance(found, dict) else None
    is_request = isinstance(id, str | int) and not isinstance(id, bool)
    code, message = (INVALID_REQUEST, "request") if is_request else (PARSE_ERROR, "message")
    problem = ErrorData(code=code, message=f"That line is no {message} of JSON-RPC.")
    return JSONRPCError(jsonrpc="2.0", id=id if is_request else None, error=problem)


def serve_http(service: Service, host: str, port: int, key: str = "") -> None:
    """Serve over HTTP until interrupted. Raises SettingError if others could connect without a key."""
    import uvicorn

    others = service.config.serve.allowed_hosts
    if not key and (others or not _is_local(host)):
        shown = ", ".join(others) or host
        raise SettingError("key", f"{shown} can be reached by others: set QUIRE_MCP_KEY, or use 127.0.0.1")
    listener = listen(host, port)
    port = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"Serving on http://{shown}:{port}/mcp\n")
    sys.stderr.flush()
    settings = uvicorn.Config(
        _app(service, shown, port, key), log_config=None, access_log=False, timeout_graceful_shutdown=2
    )
    _until_done(service, lambda: anyio.run(partial(uvicorn.Server(settings).serve, sockets=[listener])))


def _until_done(service: Service, run: Callable[[], None]) -> None:
    log_to_stderr()
    for one in service.background:
        one.start()
    try:
        with suppress(KeyboardInterrupt):
            run()
    finally:
        service.close()


def log_to_stderr() -> None:
    """Log warnings and worse of everything that runs here; --log-level decides for Quire itself."""
    logging.basicConfig(level=logging.WARNING, handlers=[logs.handler(logging.BASIC_FORMAT)])
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_no_departure)


def _is_no_departure(record: logging.LogRecord) -> bool:
    """Whether a record tells of something else than a client that hung up before it had asked."""
    problem = record.exc_info and record.exc_info[0]
    return not (problem and problem.__name__ == "ClientDisconnect")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises SettingError if there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
        # Those that it accepts inherit it. Without it, each answer on an open connection waits 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, UnicodeError) as problem:  # a name too long is no host
        why = getattr(problem, "strerror", None) or str(problem)
        raise SettingError("port", f"cannot listen on {host}:{port}: {why}. Name another: --port N") from None


def _app(service: Service, host: str, port: int, key: str) -> ASGIApp:
    """The application, behind the check of Host and Origin that the SDK makes only on loopback."""
    names = ["127.0.0.1", "localhost", "[::1]"]
    names += [] if host in names else [host, socket.gethostname()]
    hosts = [f"{name}:{port}" for name in names]
    hosts += names if port == 80 else []  # then clients leave it out
    behind = [name for given in service.config.serve.allowed_hosts for name in (given, f"{given}:*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*hosts, *behind],
        allowed_origins=[
            *(f"http://{name}" for name in hosts),
            *(f"{scheme}://{name}" for name in behind for scheme in ("https", "http")),
            *service.config.serve.allowed_origins,
        ],
    )
    app = mending(service.server.streamable_http_app(host=host, transport_security=security))
    return Keyed(app, key) if key else app


def mending(app: ASGIApp) -> ASGIApp:
    """An application that gets requests repaired that have half a surrogate pair (half an emoji)."""

    async def mending(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        message, parts = await receive(), list[bytes]()
        while message["type"] == "http.request" and message.get("more_body"):
            parts.append(message.get("body", b""))
            message = await receive()
        if message["type"] == "http.request":
            body = b"".join([*parts, message.get("body", b"")]).decode("latin-1")
            message = {"type": "http.request", "body": _whole(body).encode("latin-1")}
        waiting = [message]
        await app(scope, lambda: _next(waiting, receive), send)

    return mending


async def _next(waiting: list[Message], receive: Receive) -> Message:
    return waiting.pop() if waiting else await receive()


class Keyed:
    """Accept only requests with the key."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self.app, self.key = app, key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 to the others."""
        from starlette.responses import PlainTextResponse

        if scope["type"] == "http" and not self._is_brought(dict(scope["headers"])):
            said = "A key is needed: Authorization: Bearer KEY"
            refusal = PlainTextResponse(said, 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _is_brought(self, headers: dict[bytes, bytes]) -> bool:
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(key.strip(), self.key)
