"""Which project files the user trusts: path and SHA-256 of each, in trusted.json.

Always: a changed file is not trusted; an unreadable record trusts nothing and is never lost; one process
at a time replaces the record, as a whole, and only its user can read it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from quire import places
from quire.errors import SettingError

RECORD = "trusted.json"
_MOST = 2**20  # bytes; a longer file counts as changed


class Trusted(NamedTuple):
    """The state of a file when its user trusted it."""

    path: str
    sha256: str
    at: str  # when, in UTC


def sha256_of(source: bytes) -> str:
    """The SHA-256 of a file's bytes."""
    import hashlib

    return hashlib.sha256(source).hexdigest()


@dataclass(frozen=True, slots=True)
class Records:
    """The trusted files, by path; `problem` says why the record cannot be read."""

    files: dict[str, Trusted] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Records:
        """The records of a user; empty if there are none yet."""
        folder = places.data(environ)
        path = folder and folder / RECORD
        try:
            return cls(_parsed(path.read_bytes()) if path else {})
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return cls({}, f"{path} cannot be read, so no project file is trusted.")

    def holds(self, path: Path, source: bytes) -> bool:
        """Whether a file with these bytes is trusted."""
        known = self.files.get(str(path))
        return known is not None and known.sha256 == sha256_of(source)

    def state(self, path: str) -> str:
        """The state of a trusted file: `unchanged`, `changed`, `gone` or `unreadable`."""
        if not os.path.isfile(path):  # noqa: PTH113  its folder may be unreadable
            return "gone"
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                return "unchanged" if self.holds(Path(path), file.read(_MOST)) else "changed"
        except OSError:
            return "unreadable"


def _parsed(source: bytes) -> dict[str, Trusted]:
    import json

    files = json.loads(source)["files"]
    return {path: Trusted(path, str(one["sha256"]), str(one["at"])) for path, one in files.items()}


def note_trusted(path: Path, source: bytes, environ: Mapping[str, str] = os.environ) -> str:
    """Trust a file with these bytes; returns a note if the records had a problem."""
    from datetime import UTC, datetime

    at = datetime.now(UTC).isoformat(timespec="seconds")
    with _changing(environ) as (files, note):
        files[str(path)] = Trusted(str(path), sha256_of(source), at)
    return note


def revoke(path: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Stop trusting a file; returns whether it was trusted."""
    with _changing(environ) as (files, _):
        return files.pop(str(path), None) is not None


@contextlib.contextmanager
def _changing(environ: Mapping[str, str]) -> Iterator[tuple[dict[str, Trusted], str]]:
    """The records to change, and a note. They are written at the end; a broken record is set aside."""
    folder = places.data(environ)
    if folder is None:
        raise SettingError("HOME", "is not set, so there is no place to remember what is trusted")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _lock(folder / f"{RECORD}.lock"):
            records = Records.read(environ)
            note = _set_aside(folder) if records.problem else ""
            files = dict(records.files)
            yield files, note
            if files != records.files or note:
                _write(folder / RECORD, files)
    except OSError as problem:
        raise SettingError(str(folder / RECORD), f"cannot be written: {problem.strerror}") from None


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        with contextlib.suppress(ImportError):  # Windows has none: there the last writer wins
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _set_aside(folder: Path) -> str:
    from itertools import count

    numbered = (folder / f"{RECORD}.broken{number}" for number in count(1))
    aside = next(path for path in numbered if not path.exists())
    (folder / RECORD).rename(aside)
    return f"{folder / RECORD} could not be read. It is kept as {aside}."


def _write(path: Path, files: Mapping[str, Trusted]) -> None:
    import json
    import tempfile

    content = {"files": {one.path: {"sha256": one.sha256, "at": one.at} for one in files.values()}}
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f"{RECORD}.")  # with mode 0600
    new = Path(name)
    try:
        with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
