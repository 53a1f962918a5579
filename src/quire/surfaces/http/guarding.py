"""What every request passes on its way in and out.

Always: nothing behind it sees a request from another site, under another name, too large, or without a key
where one is needed; every answer forbids browsers to guess, frame or keep it; every request is counted.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from quire.config import Config
from quire.errors import InternalError, KeyNeeded, QuireError, RequestRefused
from quire.surfaces import outcomes, render
from quire.surfaces.http.access import LOCAL, Access, Gate
from quire.surfaces.http.guard import Asking, HostNames, Paces, check_size, header_values, too_large
from quire.surfaces.http.metrics import AccessLog, Metrics
from quire.surfaces.http.static import VIEWS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PROBES = ("/health", "/ready")  # which tell nothing, and are asked for under any name
_STATIC = "/static/"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_METHODS = "GET, POST, DELETE, OPTIONS"
_KNOWN = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_TAKEN = "Authorization, Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Last-Event-ID"


def error_response(error: QuireError) -> Response:
    """An error as JSON, with its status."""
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, KeyNeeded):
        headers["WWW-Authenticate"] = "Bearer"
    if seconds := error.details.get("retry_after"):
        headers["Retry-After"] = str(seconds)
    return json_response(error.to_json(), outcomes.http_status(error), headers)


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON, which nobody keeps."""
    kept = {"Cache-Control": "no-store", **(headers or {})}
    return Response(render.as_json(value).encode(), status, kept, "application/json")


class Entrance:
    """The way in."""

    def __init__(self, app: ASGIApp, gate: Gate, names: HostNames, config: Config, log: AccessLog) -> None:
        self._app, self._gate, self._names, self._log = app, gate, names, log
        self._settings, self._paces, self.metrics = config.serve, Paces(config.serve), Metrics()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = header_values(scope["headers"])
        asking = self._names.asking((scope["client"] or ("",))[0], scope["scheme"], headers)
        passing = _Passing(scope, send, self._allowed_origin(headers))
        self.metrics.running += 1
        try:
            await self._admitted(scope, headers, asking, receive, passing)
        finally:
            self.metrics.running -= 1
            self._note(scope, asking, passing)

    async def _admitted(
        self, scope: Scope, headers: dict[str, str], asking: Asking, receive: Receive, passing: _Passing
    ) -> None:
        try:
            if scope["path"] not in PROBES:
                self._names.check_host(headers.get("host", ""))
                self._names.check_site(asking, headers, is_page=is_open(scope["path"]))
            if scope["method"] == "OPTIONS" and passing.origin:
                await Response(status_code=204)(scope, receive, passing.send)
                return
            if scope["method"] not in ("GET", "HEAD") and (scope["path"] in PROBES or is_open(scope["path"])):
                raise RequestRefused(f"{scope['method'][:20]} is not what this route takes.", 405)
            access = await self._access(scope["path"], headers, asking)
            check_size(headers.get("content-length", ""), self._settings.max_bytes)
        except QuireError as error:
            await error_response(error)(scope, receive, passing.send)
            return
        scope.setdefault("state", {})["access"] = access
        await self._passed_on(scope, _Limited(receive, self._settings.max_bytes), passing)

    async def _passed_on(self, scope: Scope, receive: Receive, passing: _Passing) -> None:
        try:
            await self._app(scope, receive, passing.send)
        except Exception as error:  # a body that is larger than it said; or a bug, which is in the log
            if not passing.status:
                known = error if isinstance(error, RequestRefused) else internal_error()
                await error_response(known)(scope, receive, passing.send)

    async def _access(self, path: str, headers: dict[str, str], asking: Asking) -> Access:
        """What the caller may do; files of the page and probes are for everyone."""
        if path in PROBES or is_open(path):
            return LOCAL
        is_elsewhere = self._allowed_origin(headers) != ""
        needs_key = self._names.is_public or asking.is_relayed or is_elsewhere
        try:
            access = await self._gate.admit(headers.get("authorization", ""), needs_key=needs_key)
        except KeyNeeded:
            if "authorization" in headers:
                self._paces.wrong.take(asking.client)
            raise
        if access.id:
            self._paces.keys.take(access.id)
        return access

    def _allowed_origin(self, headers: dict[str, str]) -> str:
        origin = headers.get("origin", "")
        return origin if origin in self._names.origins else ""

    def _note(self, scope: Scope, asking: Asking, passing: _Passing) -> None:
        """Count a request, and write it to the log."""
        route = getattr(scope.get("route"), "path", "") or _kind_of(scope["path"])
        seconds = time.monotonic() - passing.begun_at
        method = scope["method"] if scope["method"] in _KNOWN else "other"  # anyone may invent some
        self.metrics.count(method, route, passing.status, seconds)
        access: Access = scope.get("state", {}).get("access") or LOCAL
        told = {"query": scope["query_string"].decode("latin-1")} if self._settings.log_queries else {}
        self._log.write(
            method=method,
            path=scope["path"] if passing.status != 404 else route,
            status=passing.status,
            ms=round(seconds * 1000, 1),
            bytes=passing.bytes,
            client=asking.client,
            key=access.name,
            **told,
        )


def is_open(path: str) -> bool:
    """Whether a path is of the page, which is the same for everyone."""
    return path in VIEWS or path.startswith(_STATIC)


def _kind_of(path: str) -> str:
    """What a path that has no route of its own is counted as."""
    return path if path in (*VIEWS, *PROBES, "/mcp") else "other"


class _Limited:
    """The body of a request, up to a size."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most, self._size = receive, most, 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._most:
            raise too_large(self._most)
        return message


class _Passing:
    """An answer on its way out: it gets the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send, origin: str) -> None:
        self._send, self.origin = send, origin
        self.status, self.bytes, self.begun_at = 0, 0, time.monotonic()
        self._policy = scope["path"] != "/mcp"

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message["headers"], *self._more(message)]}
        elif message["type"] == "http.response.body":
            self.bytes += len(message.get("body", b""))
        await self._send(message)

    def _more(self, message: Message) -> list[tuple[bytes, bytes]]:
        known = {name.lower() for name, _ in message["headers"]}
        told = dict(_HEADERS)
        if self._policy:
            told["content-security-policy"] = _POLICY
        if self.origin:
            told |= {"access-control-allow-origin": self.origin, "vary": "Origin"}
            told |= {"access-control-allow-methods": _METHODS, "access-control-allow-headers": _TAKEN}
            told |= {
                "access-control-expose-headers": "Mcp-Session-Id, Retry-After",
                "access-control-max-age": "600",
            }
            told["cross-origin-resource-policy"] = "cross-origin"
        new = ((name.encode(), value.encode("latin-1")) for name, value in told.items())
        return [(name, value) for name, value in new if name not in known]


def internal_error() -> InternalError:
    """What is said of a bug: the log has the rest."""
    return InternalError("Quire failed inside. The server's log says why")
