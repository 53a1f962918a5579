"""Jobs as JSON and as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

from quire.surfaces import render
from quire.surfaces.jobs import Job

_TICK = 0.1  # seconds between looks at a job
_ALIVE = 15.0  # seconds after which a comment tells proxies that the stream is alive


def job_json(job: Job) -> dict[str, Any]:
    """A job, and how far it is."""
    return {
        "job": job.id,
        "what": render.line(job.what),
        "state": job.state,
        "work": job.work,
        "unit": job.unit,
        "done": job.done,
        "total": job.total,
        "failed": job.failed,
        "result": job.value if isinstance(job.value, dict) else None,
        "error": job.error,
    }


def stream(job: Job) -> StreamingResponse:
    """The events of a job, until it has ended. It goes on if nobody listens any more."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx must not gather them
    return StreamingResponse(_events(job), media_type="text/event-stream", headers=headers)


async def _events(job: Job) -> AsyncIterator[str]:
    told, silent = "", 0.0
    while not job.is_over:
        now = render.as_json(job_json(job))
        if now != told:
            told, silent = now, 0.0
            yield _event("progress", now)
        elif silent >= _ALIVE:
            silent = 0.0
            yield ": alive\n\n"
        await asyncio.sleep(_TICK)
        silent += _TICK
    yield _event(job.state, render.as_json(job_json(job)))


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"
