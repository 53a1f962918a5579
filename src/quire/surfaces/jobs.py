"""Long work as jobs: what a server was asked to do, how far it is, and how it ended.

Always: a cancelled job stops between two transactions; what it wrote before is whole.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Callable
from typing import Any

from quire.errors import InternalError, QuireError
from quire.progress import Silent, Stopped, how_far
from quire.surfaces import render

log = logging.getLogger("quire")
CAN_GO_ON = "What was written before is whole; add again to go on."
_LONGEST = 200  # characters of each text in a job's status
_MOST_JOBS = 10  # the most jobs to remember


class Nothing(Exception):
    """There is no library yet, or nothing in it."""


class Job(Silent):
    """One add and its progress: the library reports it, status shows it."""

    def __init__(self, what: str, *, is_awaited: bool = False) -> None:
        self.id, self.what, self._is_awaited = secrets.token_hex(4), what, is_awaited
        self.state, self.result = "waiting", ""
        self.value: Any = None  # what came of it
        self.error: dict[str, Any] | None = None
        self.work, self.unit, self.done, self.total, self.failed = "", "", 0, 0, 0
        self.before = 0  # done in earlier pieces of work: progress never decreases
        self.stop = threading.Event()

    def start(self) -> None:
        """Mark the job as started."""
        self._go_on()
        self.state = "running"

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work."""
        self._go_on()
        done, self.done = self.done, 0
        self.before += done
        self.work, self.unit, self.total = work, unit, total

    def advance(self, amount: int, failed: int = 0) -> None:
        """Report `amount` more units; `failed` of them failed."""
        self.done += amount
        self.failed += failed
        self._go_on()

    def _go_on(self) -> None:
        if self.stop.is_set():
            raise Stopped

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.state not in ("waiting", "running")

    @property
    def is_listed(self) -> bool:
        """Whether status shows it: whoever waited for its end was told."""
        return not (self.is_over and self._is_awaited)

    @property
    def so_far(self) -> str:
        """The progress, in words."""
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.work}: {how_far(self.done, self.total, self.unit)}{failed}" if self.work else ""

    def told(self) -> dict[str, str]:
        """A job as data, with the first line of its result."""
        shown = {"job": self.id, "state": self.state, "what": self.what}
        result = self.result.partition("\n")[0]
        shown |= {"progress": self.so_far} if self.state == "running" else {"result": result}
        return {name: render.line(value)[:_LONGEST] for name, value in shown.items() if value}

    def ended(self, work: asyncio.Future[Any]) -> None:
        """Remember how it ended."""
        problem = None if work.cancelled() else work.exception()
        if work.cancelled() or isinstance(problem, Stopped):
            self.state, self.result = "stopped", CAN_GO_ON
        elif isinstance(problem, Nothing):
            self.state, self.result = "done", "Nothing is indexed yet."
        elif problem:
            self._failed(problem)
        else:
            self.succeeded(work.result())

    def _failed(self, problem: BaseException) -> None:
        known = problem if isinstance(problem, QuireError) else InternalError("The server's log says why.")
        self.state, self.result, self.error = "failed", str(known), known.to_json()
        level = logging.INFO if known is problem else logging.ERROR
        log.log(level, "job %s failed", self.id, exc_info=problem)

    def succeeded(self, value: Any) -> None:
        """Remember what came of it."""
        self.state, self.value = "done", value


class Unasked(Job):
    """A job that nobody asked for: it is shown as soon as it has something to do."""

    def __init__(self, what: str, show: Callable[[Job], object]) -> None:
        super().__init__(what)
        self._show = show

    def begin(self, work: str, total: int, unit: str) -> None:
        """Begin a piece of work, and show the job if that is more than to wait."""
        super().begin(work, total, unit)
        self.state = "running"
        if total:
            self._show(self)


class Jobs:
    """The last jobs of a server. The oldest finished ones are dropped."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def remember(self, job: Job) -> Job:
        """Keep a new job."""
        known = self.all()  # a thread that embeds adds to them, too
        ended = [old.id for old in known if old.is_over]
        for old in ended[: max(0, len(known) - _MOST_JOBS + 1)]:
            self._jobs.pop(old, None)
        self._jobs[job.id] = job
        return job

    def all(self) -> list[Job]:
        """The jobs, oldest first."""
        return list(self._jobs.values())

    @property
    def ids(self) -> list[str]:
        """Their ids."""
        return list(self._jobs)

    def find(self, id: str) -> Job | None:
        """One job; None if it is not known."""
        return self._jobs.get(id)

    def stop(self) -> None:
        """Stop all that are running, each between two transactions."""
        for job in self.all():
            job.stop.set()
