"""Processes that are forked, tell what they have done, and can be killed at any moment."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from itertools import count

from quire.errors import QuireError
from tests.soak.rounds import AT_END, TRACEBACKS, Wrong, home

Tell = Callable[[str], None]
SECONDS = 120.0  # until a child that does not end is a failure
_numbers = count()
BEGUN = "begun"


class Child:
    """A copy of this process at work. Nobody may have a library open in this one meanwhile.

    What it tells is there however it ends. It leads a session of its own, with all that it starts. It ends
    with the round, or with this process if it is `lasting`.
    """

    def __init__(self, work: Callable[[Tell], None], *, lasting: bool = False) -> None:
        base = home() / f"child-{next(_numbers)}"
        self._told, self._story = base.with_suffix(".told"), base.with_suffix(".err")
        self._told.touch()
        self._code: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of the test runner are idle
            self.process = os.fork()
        if not self.process:
            self._be(work)
        if lasting:
            atexit.register(self._stop)
        else:
            AT_END.append(self._stop)

    def _be(self, work: Callable[[Tell], None]) -> None:
        code = 1
        try:
            os.setsid()
            story = os.open(self._story, os.O_WRONLY | os.O_CREAT, 0o600)
            for stream in (1, 2):
                os.dup2(story, stream)
            sys.stdout = sys.stderr = os.fdopen(story, "w", buffering=1)
            told = os.open(self._told, os.O_WRONLY | os.O_APPEND)

            def tell(line: str) -> None:
                os.write(told, f"{line}\n".encode())

            work(tell)
            code = 0
        except QuireError as problem:
            print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
            code = 2
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def told(self) -> list[str]:
        """The lines that it has told so far."""
        return self._told.read_text("utf-8").split("\n")[:-1]

    def is_alive(self) -> bool:
        """Whether it is still at work."""
        if self._code is None:
            ended, status = os.waitpid(self.process, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code is None

    def wait_for(self, line: str) -> None:
        """Wait until it tells a line, or ends."""
        until = time.monotonic() + SECONDS
        while line not in self.told() and self.is_alive():
            self._in_time(until)

    def kill(self) -> bool:
        """End it with SIGKILL, with all that it started; returns whether it was still at work."""
        self._stop()
        self._check()
        return self._code == -signal.SIGKILL

    def _stop(self) -> None:
        if not self.is_alive():  # its number may be another's by now
            return
        try:
            os.killpg(self.process, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # it does not lead a session yet
            os.kill(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        self._code = os.waitstatus_to_exitcode(status)

    def end(self) -> list[str]:
        """Wait until it ends by itself; what it told."""
        until = time.monotonic() + SECONDS
        while self.is_alive():
            self._in_time(until)
        self._check()
        if self._code:
            raise Wrong(TRACEBACKS, f"the process ended with {self._code}: {self._read_story()}")
        return self.told()

    def _in_time(self, until: float) -> None:
        if time.monotonic() > until:
            raise Wrong(TRACEBACKS, f"it did not end in {SECONDS:.0f} s, and told {self.told()[-3:]}")
        time.sleep(0.001)

    def _check(self) -> None:
        story = self._read_story()
        self._story.unlink(missing_ok=True)
        if "Traceback" in story:
            raise Wrong(TRACEBACKS, story)

    def _read_story(self) -> str:
        return self._story.read_text("utf-8", "replace") if self._story.exists() else ""


def wait() -> None:
    """Do nothing until one is killed, or the parent is gone."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
