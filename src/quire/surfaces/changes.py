"""Write into files of others, and take it out again: exactly what was written, and nothing else.

A record beside the user's own library says what was inserted into which file. Always: a file is replaced as a
whole, and only while it is as it was shown; a file that cannot be parsed stays as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from quire import places
from quire.errors import SettingError
from quire.surfaces.insertions import Edit

_LONGEST = 300  # characters of a line of a diff


@dataclass(frozen=True, slots=True)
class Record:
    """What Quire inserted into a file, and what it made for that."""

    inserted: str
    is_new: bool = False  # whether Quire made the file
    folders: tuple[str, ...] = ()  # that Quire made, the innermost first

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """The record of a file; None if Quire did not write to it."""
        try:
            found = json.loads(_record_path(path).read_bytes())
            return cls(str(found["inserted"]), bool(found["is_new"]), tuple(map(str, found["folders"])))
        except (OSError, ValueError, TypeError, LookupError):
            return None

    def write(self, path: Path) -> None:
        """Keep the record of a file."""
        kept = {"path": str(path), "inserted": self.inserted, "is_new": self.is_new, "folders": self.folders}
        place = _record_path(path)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(place, json.dumps(kept, indent=2).encode())


def _record_path(path: Path) -> Path:
    folder = places.data()
    if folder is None:
        raise SettingError("HOME", "is not set, so there is no place to remember what was written")
    return folder / "init" / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.json"


@dataclass(frozen=True, slots=True)
class Change:
    """What would happen to a file: `add`, `update`, `remove` or `none`. None is no file."""

    action: str
    path: Path
    before: bytes | None
    after: bytes | None
    record: Record | None = None  # to keep; None if there is to be none

    def diff(self) -> list[str]:
        """The lines that go and come, with their signs. Other lines are not shown: they may hold secrets."""
        import difflib

        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), n=0, lineterm="")
        return _shortened(list(lines)[2:])

    def apply(self) -> None:
        """Make the change. Raises SettingError if the file has changed meanwhile, or cannot be written."""
        if _read(self.path) != self.before:
            raise SettingError(str(self.path), "has changed meanwhile. Nothing was written; try again")
        try:
            if self.record:
                self._write(self.record)
            else:
                self._remove()
        except OSError as problem:
            raise SettingError(str(self.path), f"cannot be written: {problem.strerror}") from None

    def _write(self, record: Record) -> None:
        record.write(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _replace(self.path, self.after or b"")

    def _remove(self) -> None:
        record = Record.read(self.path)
        if self.after is not None:
            _replace(self.path, self.after)
        elif self.before is not None:
            self.path.unlink()
            with contextlib.suppress(OSError):  # a folder may hold files of others by now
                for folder in record.folders if record else ():
                    Path(folder).rmdir()
        _record_path(self.path).unlink(missing_ok=True)


def plan_writing(path: Path, edit: Edit) -> Change:
    """What writes an edit into a file. Raises SettingError if that cannot be."""
    path, before = path.resolve(), _read(path)
    text, record = _decoded(path, before), Record.read(path)
    with _refused(path):
        if edit.is_in(text):
            return Change("none", path, before, before, record)
        base = edit.without(text, record.inserted) if record else text
        made = edit.insertion(base)
        after = made.into(base).encode()
    missing = takewhile(lambda folder: not folder.exists(), path.parents)
    folders = record.folders if record else tuple(map(str, missing))
    is_new = before is None or (record is not None and record.is_new)
    action = "update" if record and base != text else "add"
    return Change(action, path, before, after, Record(made.text, is_new, folders))


def plan_removing(path: Path, edit: Edit) -> Change:
    """What takes an edit out of a file again, if Quire wrote it. Raises SettingError if that cannot be."""
    path, before = path.resolve(), _read(path)
    record = Record.read(path)
    if record is None or before is None:
        return Change("none", path, before, before)
    with _refused(path):
        left = edit.without(_decoded(path, before), record.inserted)
    after = None if record.is_new and not left else left.encode()
    return Change("none" if before == after else "remove", path, before, after)


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as problem:
        raise SettingError(str(path), f"{problem}. It was left as it is") from None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise SettingError(str(path), f"cannot be read: {problem.strerror}") from None


def _decoded(path: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError:
        raise SettingError(str(path), "is not UTF-8. It was left as it is") from None


def _replace(path: Path, content: bytes) -> None:
    """Replace a file as a whole, or make it. It keeps its permissions."""
    part = path.with_name(f".quire-{os.getpid()}.part")
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            part.chmod(mode)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines()


def _shortened(lines: list[str]) -> list[str]:
    """The lines of a diff. Of long ones, the part around the first difference."""
    long = [line for line in lines if len(line) > _LONGEST]
    pairs = zip(*(line[1:] for line in long), strict=False)
    same = next((at for at, signs in enumerate(pairs) if len({*signs}) > 1), 0)
    start = max(same - 40, 0)
    return [f"{line[0]}…{line[1:][start : start + _LONGEST]}…" if line in long else line for line in lines]
