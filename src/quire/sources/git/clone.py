"""Clones in the user's cache: made, brought up to date, listed and removed.

A clone is a bare repository with one commit, and nothing is ever checked out. Always: one process at a time
changes a clone; one that is missing or damaged is cloned again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeVar

from quire import places
from quire.config import Config
from quire.errors import NotFound, TooLarge, TransientError, Unreadable, nearest
from quire.sources.git.command import BrokenClone, Git
from quire.sources.git.repository import Repository

T = TypeVar("T")
_HEAD = "refs/quire/head"  # what was fetched last
_DEFAULT = "default branch"  # no name of a ref, which has no blanks
_IN_FULL = r"^refs/(?:heads|tags)/"
_EMPTY = "has no commits yet, or is no git repository"
_PAUSE = 0.1  # seconds between looks at a lock
_MANY_PACKS = 20  # each fetch that changes something adds one
_LINE = 300  # bytes of a line of `ls-tree`, at most, on average
_ENTRY = re.compile(rb"(\d+) (\w+) ([0-9a-f]+) +(\d+|-)\t(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a commit."""

    mode: str
    id: str  # of its content
    size: int  # bytes; 0 of what has none
    path: str  # as os.fsdecode gives it


@dataclass(frozen=True, slots=True)
class Head:
    """What a ref is on the server: its full name, its kind, and the commit."""

    name: str  # refs/heads/main, or a commit
    kind: str  # branch, tag or commit
    commit: str

    @property
    def short(self) -> str:
        """The name of the branch or tag."""
        return re.sub(_IN_FULL, "", self.name)


def clone_folder(clone: str) -> Path:
    """Where a clone is. Raises Unreadable if the user has no home."""
    clones = places.clones()
    if clones is None:
        raise Unreadable(clone, "HOME is not set, so there is no place for a clone")
    name = re.sub(r"[^\w.-]+", "-", clone.rpartition("/")[2])[:60].strip("-.")
    return clones / f"{name}-{hashlib.sha256(clone.encode()).hexdigest()[:16]}"


class Clone:
    """The clone of one repository at one ref, which this process holds the lock of."""

    def __init__(
        self, repository: Repository, folder: Path, config: Config, goes_on: Callable[[], None]
    ) -> None:
        self.repository, self.config = repository, config
        self.git = Git(repository, folder, config, goes_on)
        self.head = Head("HEAD", "branch", "")

    def update(self) -> None:
        """Fetch what the server has now, unless it is here already."""
        self.git.connect()
        self.repaired(self._update)

    def repaired(self, work: Callable[[], T]) -> T:
        """The result of work on the clone. If that is damaged, it is cloned again first."""
        with contextlib.suppress(BrokenClone):
            return work()
        try:
            self._start_anew()
            self._update()
            return work()
        except BrokenClone as problem:
            raise TransientError(self.repository.place, f"cannot be cloned: {problem}") from None

    def _update(self) -> None:
        if not (self.git.folder / "HEAD").exists():
            self._start_anew()
        self.head = self._remote_head()
        if self._commit() != self.head.commit:
            self._fetch()
            self.head = replace(self.head, commit=self._commit() or "")

    def entries(self) -> list[TreeFile]:
        """The files of the commit, or of the folder that is named."""
        within = ["--", self.repository.folder] if self.repository.folder else []
        most = _LINE * self.config.git.max_files
        listed = self.git.run("ls-tree", "-r", "-z", "-l", "--full-tree", _HEAD, *within, most=most)
        lines = listed.split(b"\0")[:-1]
        if len(lines) > self.config.git.max_files:
            raise self.git.too_many()
        return [entry for line in lines if (entry := _entry(line))]

    def _remote_head(self) -> Head:
        """What the ref is on the server. A tag wins over a branch of the same name, as in git."""
        ref = self.repository.ref
        tag, branch = f"refs/tags/{ref}", f"refs/heads/{ref}"
        found = self._refs(*(tag, f"{tag}^{{}}", branch) if ref else ("HEAD",))
        if not ref and "HEAD" in found:
            return Head(found.get(_DEFAULT, "HEAD"), "branch", found["HEAD"])
        if ref and tag in found:
            return Head(tag, "tag", found.get(f"{tag}^{{}}", found[tag]))
        if ref and branch in found:
            return Head(branch, "branch", found[branch])
        if self.repository.is_commit:
            return Head(ref, "commit", ref)
        raise NotFound(self.repository.place, self._no_ref() if ref else _EMPTY, 404)

    def _refs(self, *names: str) -> dict[str, str]:
        """The commits of refs on the server, by name; _DEFAULT is the branch that HEAD stands for."""
        told = self.git.run("ls-remote", "--symref", "--", self.repository.url, *names)
        found = dict[str, str]()
        for line in told.decode("utf-8", "replace").splitlines():
            first, _, name = line.partition("\t")
            found[_DEFAULT if first.startswith("ref: ") else name] = first.removeprefix("ref: ")
        return found

    def _no_ref(self) -> str:
        """What to say of a ref that the server does not have."""
        ref = self.repository.ref
        found = self._refs("refs/tags/*", "refs/heads/*")
        known = [re.sub(_IN_FULL, "", name) for name in found if not name.endswith("^{}")]
        how = " Name a commit by its whole id." if re.fullmatch("[0-9a-f]{4,39}", ref) else ""
        return f"has no tag or branch {ref!r}.{how} {nearest(ref, known)}"

    def _start_anew(self) -> None:
        shutil.rmtree(self.git.folder, ignore_errors=True)
        self.git.folder.mkdir(parents=True)
        self.git.run("init", "--quiet", "--bare", "--template=", str(self.git.folder))

    def _fetch(self) -> None:
        """Fetch the commit. If the clone gets too large, older commits may fill it: it is started anew."""
        has_older = self._commit() is not None
        try:
            self._fetch_commit()
        except TooLarge:
            self._start_anew()
            if not has_older:
                raise
            self._fetch()
        finally:
            for left in self._packs("tmp_*"):  # by a git that was ended
                left.unlink(missing_ok=True)
        if len(self._packs("*.pack")) > _MANY_PACKS:
            self.git.run("gc", "--quiet", "--prune=now")

    def _packs(self, pattern: str) -> list[Path]:
        return list((self.git.folder / "objects" / "pack").glob(pattern))

    def _fetch_commit(self) -> None:
        how = ["--quiet", "--depth=1", "--force", "--no-tags", "--no-recurse-submodules", "--refmap="]
        how += ["--no-write-fetch-head", "--no-auto-maintenance"]
        name = "HEAD" if not self.repository.ref else self.head.name
        self.git.run("fetch", *how, "--", self.repository.url, f"+{name}:{_HEAD}", grows=True)
        if self._commit() is None:
            raise BrokenClone("its commit is missing")

    def _commit(self) -> str | None:
        """The commit that is here; None if there is none."""
        try:
            return self.git.run("rev-parse", "--verify", "--quiet", f"{_HEAD}^{{commit}}").decode().strip()
        except BrokenClone:
            return None


def _entry(line: bytes) -> TreeFile | None:
    """A file of a listing; None for a path that no file can have."""
    found = _ENTRY.fullmatch(line)
    if found is None or {b"", b".", b".."} & set(found[5].split(b"/")):
        return None
    size = 0 if found[4] == b"-" else int(found[4])
    return TreeFile(found[1].decode(), found[3].decode(), size, os.fsdecode(found[5]))


@contextlib.contextmanager
def opened_clone(
    repository: Repository, config: Config, goes_on: Callable[[], None]
) -> Iterator[tuple[Clone, Path, Callable[[], None]]]:
    """The clone of a repository, a folder for texts of it, and what lets others have the clone.

    The folder is gone when the block ends.
    """
    home, until = clone_folder(repository.clone), time.monotonic() + config.git.deadline
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as texts:
        stack.callback(_locked(home, repository.place, until, goes_on).close)
        folder = texts.enter_context(tempfile.TemporaryDirectory(prefix="quire-"))
        clone = Clone(repository, home / "git", config, goes_on)
        yield clone, Path(folder), stack.close


@contextlib.contextmanager
def writes_clone(place: str) -> Iterator[None]:
    """Turn an error of the disk into one of the repository: the other sources go on."""
    try:
        yield
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise Unreadable(place, f"{problem.filename or places.clones()} cannot be written: {why}") from None


def _locked(home: Path, place: str, until: float, goes_on: Callable[[], None]) -> IO[str]:
    """The lock file of a clone, locked until it is closed. Raises TransientError if that takes too long."""
    while time.monotonic() < until:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            file = (home / "lock").open("w")
            if _is_ours(file, home / "lock"):
                return file
            file.close()
        goes_on()
        time.sleep(_PAUSE)
    raise TransientError(place, "another process is reading this repository. Try again later")


def _is_ours(file: IO[str], path: Path) -> bool:
    """Whether a lock could be taken, and is still that of its path: who removes a clone removes its lock."""
    try:
        import fcntl
    except ImportError:  # Windows has none
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def remove_clones(clones: Sequence[str]) -> None:
    """Remove clones from the cache. One that another process is using stays."""
    for clone in clones:
        home = clone_folder(clone)
        if not home.is_dir():
            continue
        with contextlib.suppress(OSError), (home / "lock").open("w") as file:
            if _is_ours(file, home / "lock"):
                shutil.rmtree(home, ignore_errors=True)
