"""A browser and a running `quire serve`, for the tests of the page and for its pictures.

Comes in: a folder. Goes out: pages of a real browser at a real server. Always: every page reports what went
wrong in it: errors on the console, requests to other hosts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.commands import environment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

QUIET = "--no-first-run --disable-background-networking --disable-component-update --disable-sync"
ARGUMENTS = f"--no-sandbox --headless --disable-gpu --disable-quic {QUIET}".split()
ADDRESS, SECONDS = re.compile(r"Serving on (http://\S+?)/?\s"), 20
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


def chromium() -> str | None:
    """The browser of this machine; None if it has none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def serving(place: Path, root: Path, library: str = "library.db", model: str = "static") -> Iterator[str]:
    """The address of `quire serve`, which runs until the block ends."""
    command = [sys.executable, "-m", "quire", "serve", "--port", "0", "-L", str(place / library)]
    env, log = environment(place) | {"QUIRE_EMBED_MODEL": model}, place / f"{library}.log"
    with log.open("w") as out:
        started = subprocess.Popen([*command, "--root", str(root)], cwd=place, env=env, stderr=out)
    try:
        yield _address(started, log)
    finally:
        started.terminate()
        started.wait(10)


def _address(started: subprocess.Popen[bytes], log: Path) -> str:
    """The address that a server names on stderr, once it does."""
    for _ in range(SECONDS * 50):
        if found := ADDRESS.search(log.read_text("utf-8")):
            return found[1]
        if started.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"quire serve did not start:\n{log.read_text('utf-8')}")


@dataclass
class Visit:
    """A page of the browser, and what went wrong in it."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Open a path of the server and wait until the page rests."""
        self.page.goto(f"{self.address}{path}")
        self.page.wait_for_selector("main:not([aria-busy])")
        return self.page

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.text} {message.location.get('url', '')}".rstrip())

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"asked {request.url}")

    def watch(self) -> None:
        """Take down errors, and requests to other hosts."""
        self.page.on("console", self._console)
        self.page.on("request", self._request)
        self.page.on("pageerror", lambda problem: self.wrong.append(str(problem)))


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[Visit]:
    """A new page in a profile of its own."""
    context = browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce"} | options)
    context.set_default_timeout(8000)
    visit = Visit(context.new_page(), address)
    visit.watch()
    try:
        yield visit
    finally:
        context.close()
