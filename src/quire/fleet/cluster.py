"""An address to a Ray cluster: one that is started on this machine, or one that is there.

Always: Ray reports nothing to its makers and prints nothing; its workers import nothing from the folder that
Quire happens to be started in; a cluster that was started here takes orders from this process alone, keeps
its files where no other user reads them, and is gone with it.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quire.errors import LibraryError, MissingExtra, SettingError

log = logging.getLogger("quire")
_LOCAL = "local"
_PATIENCE = 10.0  # seconds for a cluster that is there to answer
_MOST = 1024  # processes on this machine
_STORE_BYTES = 300_000_000  # of a local cluster, for batches that are on their way
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_PROMPT_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns of how it will behave one day
}
_WORKERS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
_HOW = (
    "Say local or local:4 for processes on this machine, auto or HOST:PORT for the cluster that this machine"
    " is part of, or ray://HOST:PORT for another"
)


@dataclass(slots=True)
class Cluster:
    """A cluster that this process uses."""

    ray: Any
    is_here: bool  # all its workers are on this machine, and see the same files
    cpus: int
    gpus: int
    folder: str  # of its files, if it was started here
    before: dict[str, str | None]  # the variables that were set for it, as they were
    is_ours: bool  # and not one that the program had joined before

    def leave(self) -> None:
        """End a cluster that was started here, or leave another."""
        if self.is_ours:
            self.ray.shutdown()
        _put_back(self.before)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def check_address(address: str) -> int:
    """How many processes to start on this machine; 0 for a cluster that is there. Raises SettingError."""
    kind, colon, number = address.partition(":")
    if kind == _LOCAL:
        if colon and not (number.isascii() and number.isdigit() and 0 < int(number) <= _MOST):
            raise SettingError(
                "fleet", f"{address}: local takes a number of processes, as in local:4. {_HOW}"
            )
        return int(number) if colon else os.cpu_count() or 1
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address != "auto" and not (host and colon and port.isascii() and port.isdigit()):
        raise SettingError("fleet", f"there is no {address!r}. {_HOW}")
    return 0


def join(address: str) -> Cluster:
    """Join or start a cluster. Raises SettingError, MissingExtra or LibraryError."""
    count = check_address(address)
    if find_spec("ray") is None:
        raise MissingExtra("A fleet", "ray")
    ray = import_module("ray") if "ray" in sys.modules else None
    if ray and ray.is_initialized() and address != "auto":
        raise SettingError(
            "fleet", f"this process is part of a cluster already, and not of {address}. Say auto"
        )
    before = _set({**_QUIET, **(_own_token() if count else {})})
    folder = tempfile.mkdtemp(prefix="quire-fleet-", dir=_short_folder()) if count else ""
    ray = import_module("ray")
    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            _start(ray, address, count, folder)
        found = ray.cluster_resources()
    except Exception as problem:  # Ray raises errors of many kinds
        Cluster(ray, False, 0, 0, folder, before, is_ours).leave()
        raise LibraryError(f"fleet {address}", f"cannot be reached: {_first(problem)}") from None
    cpus, gpus = int(found.get("CPU", 0)), int(found.get("GPU", 0))
    log.info("a fleet of %d processors and %d GPUs", cpus, gpus)
    return Cluster(ray, bool(count), max(1, cpus), gpus, folder, before, is_ours)


def _start(ray: Any, address: str, count: int, folder: str) -> None:
    """Initialize Ray. Its workers start in an empty folder, and not in the present one."""
    if not count and address != "auto":
        host, _, port = address.removeprefix("ray://").rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()  # Ray tries for minutes
    given: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": "ERROR"}
    if count:
        given |= {"num_cpus": count, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        given |= {"_temp_dir": folder}
    with tempfile.TemporaryDirectory(prefix="quire-empty-") as empty:
        environment = {"working_dir": empty, "env_vars": _WORKERS}
        _hush()
        ray.init(address=_LOCAL if count else address, runtime_env=environment, **given)


def _hush() -> None:
    """Log what Ray would print when a worker dies: stdout is for the answer, and no option turns that off."""

    def tell(data: dict[str, Any], ignore_prefix: bool) -> None:  # noqa: ARG001  as Ray calls it
        log.info("ray: %s", " ".join(map(str, data.get("lines", ()))))

    import_module("ray._private.worker").__dict__["print_to_stdstream"] = tell


def _own_token() -> dict[str, str]:
    """A secret for clusters of this process, which listen on all addresses; what the user has set counts."""
    if {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        return {}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _token()}


@cache
def _token() -> str:
    """One secret for the life of this process: Ray reads it once."""
    return secrets.token_hex(32)


def _short_folder() -> str | None:
    """Where the sockets of a cluster have names that are short enough: 107 characters."""
    return "/tmp" if os.name == "posix" and Path("/tmp").is_dir() else None  # noqa: S108  made private there


def _set(values: dict[str, str]) -> dict[str, str | None]:
    """Set variables; returns what they were. Those that say how much Ray logs stay as they are."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    return before


def _put_back(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _first(problem: Exception) -> str:
    """The first line of a message of Ray."""
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
