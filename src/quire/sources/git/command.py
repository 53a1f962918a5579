"""Run the system's git so that a stranger's repository can run nothing, and cost only so much.

Always: git sees none of the user's settings, variables, passwords or hooks; it uses one protocol, and
reaches one host at the addresses that were checked; it never writes a file of a repository; it is ended,
with all that it started, when it takes too long or writes too much.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from quire import redact
from quire.config import Config
from quire.errors import NotFound, Refused, TooLarge, TransientError, Unreadable
from quire.sources.git.repository import SSH_PORT, Repository

_KEPT = ("PATH", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT")  # variables of the user's that git gets
_KEPT_FOR_SSH = ("HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK")
_LEAST = (2, 37)  # the first version that can be told which address to connect to
_POLL = 0.05  # seconds between looks at what git has written
_MOST_PRINTED = 64_000_000  # bytes of what it prints
_MOST_TOLD = 20_000  # bytes of what git says on stderr
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.askPass": "",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",  # keep what arrives packed
    "fetch.uriProtocols": "",  # no packs from other places
    "transfer.bundleURI": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",  # a redirect could lead to an address that was not checked
    "http.lowSpeedLimit": "100",  # bytes a second
    "http.lowSpeedTime": "60",  # seconds
    "protocol.allow": "never",
}


class BrokenClone(Exception):
    """What is in the cache cannot be used: it must be cloned again."""


@dataclass(slots=True)
class Git:
    """Runs git for one repository, in one folder, within the time and size that it may take."""

    repository: Repository
    folder: Path  # the clone, a bare repository
    config: Config
    goes_on: Callable[[], None] = lambda: None  # called while git runs; what it raises ends git
    until: float = field(init=False)  # by the monotonic clock
    _settings: dict[str, str] = field(init=False)
    _environ: dict[str, str] = field(init=False)
    _program: str = field(init=False)

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.config.git.deadline
        self._program = _git(self.repository.place)
        self._settings = dict(_SETTINGS)
        self._environ = _environment(self.folder)

    def connect(self) -> None:
        """Check the host, and let git reach it at its checked addresses. Raises Refused or TransientError."""
        repository, web = self.repository, self.config.web
        scheme = repository.scheme if repository.is_web else "ssh"
        addresses = _checked_addresses(repository, self.config)
        self._settings[f"protocol.{scheme}.allow"] = "always"
        self._settings["http.proxy"] = web.proxy
        if scheme == "ssh":
            self._environ |= {name: os.environ[name] for name in _KEPT_FOR_SSH if name in os.environ}
            self._environ |= {"GIT_SSH_COMMAND": _ssh(repository, addresses), "GIT_SSH_VARIANT": "ssh"}
        elif addresses:
            port = repository.port or {"http": 80, "https": 443}[scheme]
            found = ",".join(f"[{one}]" if ":" in one else one for one in addresses)
            self._settings["http.curloptResolve"] = f"{repository.host}:{port}:{found}"

    def run(self, *args: str, most: int = _MOST_PRINTED, grows: bool = False) -> bytes:
        """What a command of git prints, at most so many bytes. Raises a SourceError or BrokenClone.

        If the clone `grows`, its size is limited.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with self._started(args, subprocess.DEVNULL, out, err) as process:
                while process.poll() is None:
                    self._check(out, err, most, grows)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL)
            self._check(out, err, most, grows)
            if process.returncode:
                raise self._problem(_text(err))
            out.seek(0)
            return out.read()

    def blobs(self, ids: Sequence[str], sizes: Sequence[int]) -> Iterator[bytes]:
        """The contents of blobs, in order, read by one process. Raises BrokenClone if one is missing."""
        with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as err:
            wanted.write("".join(f"{id}\n" for id in ids).encode())
            wanted.seek(0)
            with self._started(("cat-file", "--batch"), wanted, subprocess.PIPE, err) as process:
                assert process.stdout is not None  # noqa: S101
                alarm = threading.Timer(max(0.0, self.until - time.monotonic()), process.kill)
                alarm.start()
                try:
                    for id, size in zip(ids, sizes, strict=True):
                        content = _blob(process.stdout, id, size)
                        self._check_time()
                        if content is None:
                            raise BrokenClone(f"{id} is missing")
                        yield content
                finally:
                    alarm.cancel()

    @contextmanager
    def _started(
        self, args: Sequence[str], stdin: IO[bytes] | int, stdout: IO[bytes] | int, stderr: IO[bytes]
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A process of git, which has ended, with all that it started, when the block ends."""
        process = subprocess.Popen(  # noqa: S603  the program and its options are ours
            [self._program, f"--git-dir={self.folder}", *args],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=self._environ | _as_variables(self._settings),
            cwd=self.folder,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            _end(process)

    def _check(self, out: IO[bytes], err: IO[bytes], most: int, grows: bool) -> None:
        """Raise an error if git took too long or wrote too much."""
        self._check_time()
        if _size_of_file(out) > most:
            raise self.too_many()
        size, limit = _size_of_file(err) + (_size(self.folder) if grows else 0), self.config.git.max_bytes
        if size > limit:
            raise TooLarge(self.repository.place, f"is over git.max_bytes = {limit:,}. {_HOW}")

    def too_many(self) -> TooLarge:
        """The error of a repository with too many files."""
        limit = f"git.max_files = {self.config.git.max_files:,}"
        return TooLarge(self.repository.place, f"has more files than {limit}. {_PART}")

    def _check_time(self) -> None:
        self.goes_on()
        if time.monotonic() > self.until:
            limit = f"git.deadline = {self.config.git.deadline:g} s"
            raise TransientError(self.repository.place, f"took longer than {limit}. Try again later")

    def _problem(self, told: str) -> Exception:
        """The error of what git says."""
        for pattern, make in _PROBLEMS:
            if pattern.search(told):
                return make(self.repository.place, _last(told))
        return BrokenClone(_last(told))


_GET = "Get it from https://git-scm.com/downloads or with your system's packages"
_HOW = "Raise it under [git] in your quire.toml, or add a release of it as a folder"
_PART = "Name a part of it, such as URL:docs"


def _is_private(place: str, _: str) -> NotFound:
    how = "If it is private, clone it and add that folder, or name it by ssh: git@host:owner/name.git"
    return NotFound(place, f"is not there, or not for everyone. {how}", 404)


def _is_moved(place: str, told: str) -> Refused:
    return Refused(place, f"is redirected, which is not followed ({told}). Give the URL that it has now")


def _is_down(place: str, told: str) -> TransientError:
    return TransientError(place, f"{told}. Try again later")


def _is_refused(place: str, told: str) -> Refused:
    return Refused(place, told)


def _is_dumb(place: str, _: str) -> Refused:
    only = 'This server offers only git\'s old "dumb" protocol, which cannot be cloned shallowly'
    return Refused(place, f"{only}. Clone it yourself and add that folder")


_PROBLEMS: tuple[tuple[re.Pattern[str], Callable[[str, str], Exception]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), make)
    for pattern, make in (
        (r"returned error: 30\d|unable to update url base from redirection", _is_moved),
        (r"returned error: 5\d\d|returned error: (?:408|425|429)", _is_down),
        (r"could not read (?:Username|Password)|Authentication failed|Permission denied \(", _is_private),
        (r"returned error: 4\d\d|repository .*not found|does not appear to be a git", _is_private),
        (r"transport '.*' not allowed|Host key verification failed|strange (?:hostname|path)", _is_refused),
        (r"dumb http transport", _is_dumb),
        (r"could not resolve|(?:failed to|couldn't) connect|connection (?:refused|reset|timed)", _is_down),
        (r"timed out|early EOF|hung up|RPC failed|disconnect|empty reply|transfer closed", _is_down),
        (r"unable to access|TLS|SSL|not our ref|couldn't find remote ref|no route to host", _is_down),
        (r"is this a git repository|bad line length|protocol error|unexpected response", _is_down),
        (r"remote error|could not read from remote", _is_down),
    )
)


def _last(told: str) -> str:
    """The line of what git says that tells why, without the secrets of URLs."""
    lines = [line for line in told.splitlines() if line.strip()] or ["git failed"]
    found = next((line for line in lines if line.startswith(("fatal:", "ERROR:"))), lines[-1])
    return redact.text(re.sub(r"^(?:fatal|error|remote): ", "", found.strip(), flags=re.IGNORECASE))[:300]


def _git(place: str) -> str:
    """The git of the system. Raises Unreadable if there is none, or it is too old."""
    found = shutil.which("git")
    if found is None:
        raise Unreadable(place, f"git is not installed, which repositories need. {_GET}")
    told = subprocess.run([found, "version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    version = re.search(r"(\d+)\.(\d+)", told)
    if version and (int(version[1]), int(version[2])) < _LEAST:
        wanted = ".".join(map(str, _LEAST))
        raise Unreadable(place, f"git {version[0]} is too old: {wanted} or later is needed. {_GET}")
    return found


def _environment(folder: Path) -> dict[str, str]:
    """The variables of git: none of the user's that could change what it does."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {
        "HOME": str(folder),  # where there is no .netrc, whose passwords would be sent
        "LC_ALL": "C",  # its messages are read
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _as_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of git as variables, which other users do not see in the list of processes."""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _checked_addresses(repository: Repository, config: Config) -> Sequence[str]:
    """The addresses of a host, all of which may be reached; none if only a proxy can look it up."""
    from quire.sources.web.guard import Guard, Retry
    from quire.sources.web.urls import PORTS, Target

    guard = Guard(config.web.allow_hosts, _look_up)
    try:
        scheme = repository.scheme if repository.is_web else "https"
        port = repository.port or (PORTS[scheme] if repository.is_web else SSH_PORT)
        if repository.is_web or repository.port:  # the usual port of ssh is as open as those of the web
            guard.check(Target(scheme, repository.host, port, f"/{repository.path}"))
        return _finished(guard.addresses(repository.host, port))
    except Refused as problem:
        raise Refused(repository.place, problem.reason) from None
    except Retry as problem:
        if config.web.proxy and repository.is_web:
            return ()
        raise TransientError(repository.place, f"{problem.reason}. Try again later") from None


async def _look_up(host: str, port: int) -> list[str]:
    import socket

    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _finished(coroutine: object) -> Sequence[str]:
    """The result of a coroutine that waits for nothing, so that no event loop is needed."""
    try:
        coroutine.send(None)  # type: ignore[attr-defined]
    except StopIteration as done:
        found: Sequence[str] = done.value
        return found
    raise AssertionError("it waited")


def _ssh(repository: Repository, addresses: Sequence[str]) -> str:
    """The command of ssh: it asks nothing, runs nothing, and reaches one address."""
    alias = f"[{repository.host}]:{repository.port}" if repository.port else repository.host
    options = {
        "BatchMode": "yes",
        "HostName": addresses[0],
        "HostKeyAlias": alias,
        "CheckHostIP": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
    }
    return " ".join(["ssh", *(f"-o '{name}={value}'" for name, value in options.items())])


def _blob(out: IO[bytes], id: str, size: int) -> bytes | None:
    """The next blob that `cat-file` prints; None if it is another, or cut off."""
    if out.readline() != f"{id} blob {size}\n".encode():
        return None
    content = out.read(size)
    return content if len(content) == size and out.read(1) == b"\n" else None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    if process.stdout:
        process.stdout.close()
    if process.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # Windows
            process.kill()
    process.wait()


def _size(folder: Path) -> int:
    """The bytes of all files below a folder."""
    total, left = 0, [str(folder)]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with suppress(OSError):  # git renames and removes files meanwhile
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
    return total


def _size_of_file(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _text(file: IO[bytes]) -> str:
    file.seek(max(0, _size_of_file(file) - _MOST_TOLD))
    return file.read().decode("utf-8", "replace")
