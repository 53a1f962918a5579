"""The application of `quire serve`: requests to calls of the library, and what comes of them to responses.

Always: a read that takes too long is given up; a long write is a job, which goes on if its caller leaves and
stops between two transactions when the server ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path

from quire.errors import Forbidden, NoResults, QuireError, RequestRefused, nearest
from quire.progress import Stopped
from quire.sources.entries import KINDS
from quire.surfaces.checking import checked_arguments
from quire.surfaces.http import openapi, reading, static
from quire.surfaces.http.access import Access
from quire.surfaces.http.events import job_json, stream
from quire.surfaces.http.guarding import error_response, internal_error, json_response
from quire.surfaces.http.libraries import Libraries
from quire.surfaces.http.metrics import METRICS_TYPE, Metrics
from quire.surfaces.http.routes import ROUTES, Call, Route
from quire.surfaces.jobs import CAN_GO_ON, Job, Nothing
from quire.surfaces.threads import Threads
from quire.version import VERSION

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from quire.library import Library

log = logging.getLogger("quire")
T = TypeVar("T")
_EMPTY = "Nothing is indexed yet. Add documents first."
_MOST_JOBS = 20  # of one scope, running or waiting; each may hold a file
_MOST_NAMES = 100  # of arguments
_PAUSE = 5  # seconds after which there may be room again
_JSON, _BYTES, _EVENTS = "application/json", "application/octet-stream", "text/event-stream"


class Api:
    """Answers the requests of the API."""

    def __init__(self, libraries: Libraries, metrics: Callable[[], Metrics]) -> None:
        self.libraries, self.config, self._metrics = libraries, libraries.config, metrics
        self._special = {
            "/api/status": self._status,
            "/api/jobs": self._jobs,
            "/api/chunk": self._chunk,
            "/api/chunk/file": self._chunk_file,
        }

    def paths(self) -> list[Path]:
        """The routes, and what answers each."""
        own = [Path(route.path, partial(self._answer, route), methods=[route.method]) for route in ROUTES]
        return [
            *own,
            Path("/api/jobs/{id}", self._job, methods=["GET", "DELETE"]),
            Path("/api/jobs/{id}/events", self._follow, methods=["GET"]),
            Path("/api/openapi.json", self._openapi, methods=["GET"]),
            Path("/metrics", self._measured, methods=["GET"]),
            Path("/health", _healthy, methods=["GET"]),
            Path("/ready", self._ready, methods=["GET"]),
        ]

    # ------------------------------------------------------------------------------------- calls

    async def _answer(self, route: Route, request: Request) -> Response:
        access: Access = request.state.access
        self._check_level(access, route.level)
        given, body = await _given(route, request)
        asked = checked_arguments(route.asked, given)
        asked.check_together()
        call = Call(asked, access, self.config, self.libraries.roots, body)
        try:
            return await self._done(route, call, request)
        except Nothing:
            if route.of_nothing is None:
                raise NoResults(_EMPTY, missing="documents") from None
            return json_response(await asyncio.to_thread(route.of_nothing, call))

    def _check_level(self, access: Access, level: str) -> None:
        """Raise Forbidden for what the caller may not do, or the server does for nobody."""
        if level == "write" and self.libraries.read_only:
            raise Forbidden("This server is read-only: it was started with --read-only.", needs=level)
        access.check(level)

    async def _done(self, route: Route, call: Call, request: Request) -> Response:
        """What comes of a call. Raises Nothing if there is no library yet."""
        if special := self._special.get(route.path):
            return json_response(await special(call))
        if route.is_work:
            return await self._work(route, call, request)
        found = await self._run(route, call)
        return _download(found) if isinstance(found, reading.Download) else json_response(found)

    async def _run(self, route: Route, call: Call) -> Any:
        """What a route answers. An address that the documents do not have may be that of a memory."""
        documents, memories = self.libraries.of(call.access)
        is_of_entries = route.of_entries or getattr(call.asked, "kind", None) in KINDS
        try:
            return await self._in_thread(memories if is_of_entries else documents, route, call)
        except (Nothing, NoResults):
            if not route.by_address or memories is documents:
                raise
            with suppress(Nothing, NoResults):
                return await self._in_thread(memories, route, call)
            raise

    async def _in_thread(self, threads: Threads, route: Route, call: Call) -> Any:
        run = route.run or (lambda _, __: None)
        if route.writes:
            return await threads.write(lambda library: run(library, call), create=route.creates)
        if route.is_plan:
            return await threads.plan(lambda library: run(library, call))
        return await self._in_time(threads, lambda library: run(library, call), is_slow=route.is_slow)

    async def _in_time(self, threads: Threads, work: Callable[[Library], T], *, is_slow: bool = False) -> T:
        """What a read returns. Raises RequestRefused if it takes too long; then its thread goes on alone."""
        seconds, found = self.config.serve.timeout, threads.read(work, is_slow=is_slow)
        found.add_done_callback(lambda done: done.cancelled() or done.exception())  # which nobody may await
        try:
            return await asyncio.wait_for(asyncio.shield(found), seconds)
        except TimeoutError:
            said = f"It took longer than serve.timeout = {seconds:g} s. Ask for less"
            raise RequestRefused(said, 504) from None

    async def _work(self, route: Route, call: Call, request: Request) -> Response:
        """Do long work as a job: awaited, followed by events, or in the background."""
        is_background = getattr(call.asked, "background", False)
        threads = self.libraries.of(call.access)[0]
        if sum(not job.is_over for job in threads.jobs.all()) >= _MOST_JOBS:
            said = f"{_MOST_JOBS} jobs are running or waiting. Ask again when some have ended"
            raise RequestRefused(said, 429, retry_after=_PAUSE)
        job = threads.jobs.remember(Job(_named(route, call.asked), is_awaited=not is_background))
        run = route.run or (lambda _, __: None)
        told = Call(call.asked, call.access, call.config, call.roots, call.body, job)
        if route.writes:
            work = threads.write(lambda library: run(library, told), create=route.creates)
        else:
            work = threads.read(lambda library: run(library, told), is_slow=True)
        work.add_done_callback(job.ended)
        if _EVENTS in request.headers.get("accept", ""):
            return stream(job)
        if is_background:
            return json_response(job_json(job), 202)
        try:
            return json_response(await asyncio.shield(work))
        except Stopped:
            raise RequestRefused(f"Stopped. {CAN_GO_ON}", 409) from None

    # ----------------------------------------------------------------------------------- special

    async def _status(self, call: Call) -> dict[str, Any]:
        if call.asked.check:
            call.access.check("admin")
        threads = self.libraries.of(call.access)[0]
        try:
            told = await self._in_time(threads, lambda library: reading.status(library, call.asked))
        except Nothing:
            told = reading.empty_status(threads.url)
        may_write = call.access.level != "read" and not self.libraries.read_only
        access = call.access.to_json() | ({} if may_write else {"level": "read"})
        jobs = [job_json(job) for job in self.libraries.jobs(call.access) if job.is_listed]
        about = {"version": VERSION, "read_only": self.libraries.read_only, "access": access}
        return {
            **told,
            **about,
            "roots": [*map(str, self.libraries.roots)] if may_write else [],
            "jobs": jobs,
        }

    async def _chunk(self, call: Call) -> dict[str, Any]:
        threads = self.libraries.of(call.access)[0]
        if call.asked.address is None:
            return await asyncio.to_thread(reading.cut_text, None, call.asked, self.config)
        return await self._in_time(
            threads, lambda library: reading.cut_text(library, call.asked, self.config)
        )

    async def _chunk_file(self, call: Call) -> dict[str, Any]:
        asked = call.asked
        return await asyncio.to_thread(
            reading.cut_bytes, call.body, asked.path, asked.strategy, asked, self.config
        )

    async def _jobs(self, call: Call) -> dict[str, Any]:
        return {"jobs": [job_json(job) for job in self.libraries.jobs(call.access)]}

    async def _job(self, request: Request) -> Response:
        self._check_level(request.state.access, "write" if request.method == "DELETE" else "read")
        job = self._found_job(request)
        if request.method == "DELETE":
            job.stop.set()
        return json_response(job_json(job))

    async def _follow(self, request: Request) -> Response:
        request.state.access.check("read")
        return stream(self._found_job(request))

    def _found_job(self, request: Request) -> Job:
        jobs = {job.id: job for job in self.libraries.jobs(request.state.access)}
        id = request.path_params["id"]
        if id not in jobs:
            raise NoResults(f"No job {id[:100]!r}. {nearest(id, jobs)}", missing="job", name=id)
        return jobs[id]

    async def _openapi(self, request: Request) -> Response:
        request.state.access.check("read")
        return json_response(openapi.document())

    async def _measured(self, request: Request) -> Response:
        request.state.access.check("admin")
        gauges: dict[str, float] = {
            "jobs_running": sum(not job.is_over for job in self.libraries.jobs(request.state.access))
        }
        try:
            counts = await self._in_time(
                self.libraries.documents.whole, lambda library: library.store.counts()
            )
            gauges |= {"documents": counts.documents, "chunks": counts.chunks}
        except Nothing:
            gauges |= {"documents": 0, "chunks": 0}
        return Response(self._metrics().text(gauges), media_type=METRICS_TYPE)

    async def _ready(self, _: Request) -> Response:
        """Whether the library can be read, or is not there yet."""
        try:
            await self._in_time(self.libraries.documents.whole, lambda library: library.collections())
        except Nothing:
            pass
        except QuireError as problem:  # anyone may ask: what is wrong is for the log
            log.error("not ready: %s", problem)
            return json_response({"ready": False}, 503)
        return json_response({"ready": True})


async def _healthy(_: Request) -> Response:
    return json_response({"healthy": True})


async def _given(route: Route, request: Request) -> tuple[dict[str, Any], bytes]:
    """The arguments of a request, and the file that it brings. Raises RequestRefused."""
    if not route.takes_json:
        return _from_query(route, request), await _file(request) if route.takes_file else b""
    if request.query_params:
        raise RequestRefused(f"{route.path} takes its arguments as JSON, not in the query")
    if _type_of(request) != _JSON:
        raise RequestRefused(f"Send JSON, with Content-Type: {_JSON}", 415)
    try:
        given = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise RequestRefused("The body is not JSON") from None
    if not isinstance(given, dict) or len(given) > _MOST_NAMES:
        raise RequestRefused("The body must be a JSON object with the arguments")
    return given, b""


async def _file(request: Request) -> bytes:
    if _type_of(request) != _BYTES:
        raise RequestRefused(f"Send the file as it is, with Content-Type: {_BYTES}", 415)
    return await request.body()


def _type_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _from_query(route: Route, request: Request) -> dict[str, Any]:
    """The arguments in a query; those that may be given several times are lists."""
    found: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        field = route.asked.model_fields.get(name)
        if field is not None and "list[" in str(field.annotation):
            found.setdefault(name, []).append(value)
        elif name in found:
            raise RequestRefused(f"{name[:100]!r} was given twice")
        else:
            found[name] = value
    return found


def _named(route: Route, asked: Any) -> str:
    """What people call a job."""
    sources = getattr(asked, "sources", None) or []
    return ", ".join(sources) or getattr(asked, "path", None) or route.path.rpartition("/")[2]


def _download(found: reading.Download) -> Response:
    name = quote(found.name, safe="", errors="replace")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}", "Cache-Control": "no-store"}
    return Response(found.content, headers=headers, media_type=_BYTES)


# -------------------------------------------------------------------------------------- the whole


def application(libraries: Libraries, agents: Starlette, metrics: Callable[[], Metrics]) -> ASGIApp:
    """The API, the page and the MCP server, without their guard."""
    api = Api(libraries, metrics)

    async def view(request: Request) -> Response:
        return static.answer("index.html", request)

    async def file(request: Request) -> Response:
        return static.answer(request.path_params["name"], request)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        libraries.start()
        async with agents.router.lifespan_context(agents):
            yield

    views = [Path(path, view, methods=["GET"]) for path in static.VIEWS]
    return Starlette(
        routes=[*api.paths(), *views, Path("/static/{name}", file, methods=["GET"]), *agents.routes],
        exception_handlers={QuireError: _refuse, HTTPException: _no_route, Exception: _fail},
        lifespan=lifespan,
    )


async def _refuse(_: Request, error: Exception) -> Response:
    return error_response(error if isinstance(error, QuireError) else internal_error())


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    what = {404: "There is no such route", 405: f"{request.method} is not what this route takes"}
    return error_response(RequestRefused(f"{what.get(status, 'Refused')}. See /api/openapi.json", status))


async def _fail(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(internal_error())
