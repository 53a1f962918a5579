"""A git server on loopback: `git http-backend` behind a small HTTP server, with real repositories.

`with git_server(folder) as server` serves the bare repositories that `server.project(name)` makes. A project
is changed in its work tree, and `push` puts that on the server, as a person would.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
_WHO = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_PLAIN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *args: str) -> str:
    """Run git as a developer does."""
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *args],
        cwd=folder,
        env=os.environ | _WHO | _PLAIN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@dataclass
class Project:
    """A repository on the server, and the work tree that changes it."""

    url: str
    bare: Path
    work: Path

    def write(self, **files: str) -> Project:
        """Write files; in their names, __ is a slash and a single _ is a dot."""
        for name, text in files.items():
            self.put(name.replace("__", "/").replace("_", "."), text)
        return self

    def put(self, path: str, text: str | bytes) -> None:
        place = self.work / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())

    def push(self, *, tag: str = "", branch: str = "main") -> str:
        """Commit what is in the work tree, and push it; gives the commit."""
        git(self.work, "add", "--all", "--force")
        git(self.work, "commit", "--quiet", "--allow-empty", "--message", "more")
        if tag:
            git(self.work, "tag", "--annotate", "--message", tag, tag)
        git(self.work, "push", "--quiet", "--force", "--tags", str(self.bare), f"HEAD:refs/heads/{branch}")
        return git(self.work, "rev-parse", "HEAD")


@dataclass
class GitServer:
    """Where the server is, and what it was asked."""

    folder: Path
    port: int
    asked: list[str] = field(default_factory=list)
    passwords: list[str] = field(default_factory=list)  # that were sent to it
    answer: tuple[int, dict[str, str]] | None = None  # given to every request instead
    hold: threading.Event | None = None  # what the third request and later ones wait for

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def project(self, name: str = "project") -> Project:
        """An empty repository."""
        bare, work = self.folder / f"{name}.git", self.folder / f"{name}-work"
        git(self.folder, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
        git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
        git(self.folder, "init", "--quiet", "--initial-branch=main", str(work))
        return Project(f"http://{self.host}/{name}.git", bare, work)


class _Handler(BaseHTTPRequestHandler):
    server_of: GitServer

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        length = self.headers.get("content-length")
        self._serve(self.rfile.read(int(length)) if length else self._chunks())

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _serve(self, body: bytes) -> None:
        self.server_of.asked.append(self.path)
        self.server_of.passwords += self.headers.get_all("authorization", [])
        if self.server_of.hold and len(self.server_of.asked) > 2:
            self.server_of.hold.wait(20)
        if self.server_of.answer:
            status, headers = self.server_of.answer
            self._answer(status, headers, b"")
            return
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=self._environ(body), capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self._answer(int(fields.pop("Status", "200").split()[0]), fields, content)

    def _answer(self, status: int, fields: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _environ(self, body: bytes) -> dict[str, str]:
        path, _, query = self.path.partition("?")
        given = {
            "GIT_PROJECT_ROOT": str(self.server_of.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
        }
        return os.environ | _PLAIN | given

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test speaks by failing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: clients that leave in the middle are part of the tests."""


@contextmanager
def git_server(folder: Path) -> Iterator[GitServer]:
    """A server that is up while the block runs."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = type("GitHandler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    handler.server_of = found = GitServer(folder, server.server_address[1])  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.002})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
