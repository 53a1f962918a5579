"""A library against a plain dictionary of what its sources say, step by step, on both databases.

Every file has the same size and the same modification time, so that only content and renames tell.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quire.library import Library
from tests import postgres
from tests.words import WORDS

PATHS = ["a.md", "b.md", "c.md", "d.txt", "sub/a.md", "sub/e.md", "spec.tex"]
IGNORED = ["b.md", "sub/", "*.txt"]
path = st.sampled_from(PATHS)
FOLDER = "folder"


class SourcesModel(RuleBasedStateMachine):
    """What a person does to a folder, and what the library must hold after each step."""

    database = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="quire-model-"))
        self.roots, self.numbers = count(1), count(1)
        self.root = self.place / "root"
        self.root.mkdir()
        self.files: dict[str, str] = {}
        self.ignored: set[str] = set()
        self.named: set[str] = set()  # paths of files that were added by name
        self.held: dict[str, str] = {}  # the content of each document
        self.holders: dict[str, set[str]] = {}  # the sources that hold it
        is_sqlite = self.database == "sqlite"
        self.url = ":memory:" if is_sqlite else postgres.borrow()
        self.library = Library.open(self.url, create=True, config=WORDS)

    def teardown(self) -> None:
        assert self.library.store.check() == []
        self.library.close()
        if self.database == "postgres":
            postgres.give_back(self.url)
        shutil.rmtree(self.place)

    # ------------------------------------------------------------------------------------- the world

    def write(self, path: str) -> None:
        content = f"# Number {next(self.numbers):06}\n"
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(content)
        os.utime(self.root / path, ns=(1, 1))
        self.files[path] = content

    def rename(self, old: str, new: str) -> None:
        (self.root / new).parent.mkdir(exist_ok=True)
        (self.root / old).replace(self.root / new)
        self.files[new] = self.files.pop(old)

    @initialize()
    def begin(self) -> None:
        for path in ("a.md", "b.md", "c.md"):
            self.write(path)
        self.library.add(self.root, collection="root")
        self.follow(removing="never")

    @rule(path=path)
    def create_or_edit(self, path: str) -> None:
        self.write(path)
        self.refresh()

    @rule(path=path)
    def touch(self, path: str) -> None:
        if path in self.files:
            os.utime(self.root / path, ns=(1, next(self.numbers)))
        self.refresh()

    @rule(old=path, new=path)
    def rename_one(self, old: str, new: str) -> None:
        if old in self.files and old != new:
            self.rename(old, new)
        self.refresh()

    @rule()
    def rename_all(self) -> None:
        if not any(path.startswith("x") for path in self.files):
            for old in [path for path in self.files if "/" not in path]:
                self.rename(old, f"x{old}")
        self.refresh()

    @rule(one=path, other=path)
    def swap(self, one: str, other: str) -> None:
        if one in self.files and other in self.files and one != other:
            self.rename(one, "swap")
            self.rename(other, one)
            self.rename("swap", other)
        self.refresh()

    @rule(paths=st.sets(path, min_size=1, max_size=3))
    def delete(self, paths: set[str]) -> None:
        for path in paths & self.files.keys():
            (self.root / path).unlink()
            del self.files[path]
        self.refresh()

    @rule()
    def delete_all(self) -> None:
        for path in list(self.files):
            (self.root / path).unlink()
            del self.files[path]
        self.refresh()

    @rule(pattern=st.sampled_from(IGNORED))
    def ignore_or_not(self, pattern: str) -> None:
        self.ignored ^= {pattern}
        (self.root / ".gitignore").write_text("".join(f"{line}\n" for line in sorted(self.ignored)))
        self.refresh()

    @rule(path=path)
    def add_by_name(self, path: str) -> None:
        if path in self.files:
            self.library.add(self.root / path)
            self.named.add(path)
            self.follow_file(path, prune=False)

    @rule()
    def add_again(self) -> None:
        self.library.add(self.root)
        self.follow(removing="never")

    @rule()
    def prune(self) -> None:
        self.library.refresh(prune=True)
        self.follow_files(prune=True)
        self.follow(removing="always")

    @rule(path=path)
    @precondition(lambda self: bool(self.held))
    def plan_changes_nothing(self, path: str) -> None:
        self.library.plan()
        self.library.check()

    @rule(refresh_before=st.booleans())
    def move_the_root(self, refresh_before: bool) -> None:
        new = self.place / f"root{next(self.roots)}"
        self.root.rename(new)
        if refresh_before:
            report = self.library.refresh()
            assert report.removed == 0
        self.library.move_source(str(self.root), str(new))
        self.root = new
        self.refresh()

    # ----------------------------------------------------------------------------- what must be held

    def refresh(self) -> None:
        self.library.refresh()
        self.follow_files(prune=False)
        self.follow(removing="healthy")

    def follow_files(self, prune: bool) -> None:
        for path in sorted(self.named):
            self.follow_file(path, prune)

    def follow_file(self, path: str, prune: bool) -> None:
        """What becomes of the document of a file that was named by itself."""
        own = f"file {path}"
        if path in self.files:
            self.hold(path, own)
        elif prune:
            self.let_go(path, own)

    def follow(self, removing: str) -> None:
        """What becomes of the documents of the folder."""
        listed = {path for path in self.files if self.is_wanted(path)}
        members = {path for path in self.held if FOLDER in self.holders[path]}
        gone = members - listed
        renamed = {self.files[new]: new for new in listed - self.held.keys()}
        moved = {path for path in gone if self.held[path] in renamed and self.holders[path] == {FOLDER}}
        left = gone - moved
        is_healthy = bool(self.files) and 2 * len(left) < len(members)
        for path in listed:
            self.hold(path, FOLDER)
        for path in moved:
            self.let_go(path, FOLDER)
        if removing == "always" or (removing == "healthy" and is_healthy):
            for path in left:
                self.let_go(path, FOLDER)

    def is_wanted(self, path: str) -> bool:
        rules = {"b.md": path == "b.md", "sub/": path.startswith("sub/"), "*.txt": path.endswith(".txt")}
        return path.endswith((".md", ".txt")) and not any(rules[rule] for rule in self.ignored)

    def hold(self, path: str, source: str) -> None:
        self.held[path] = self.files[path]
        self.holders.setdefault(path, set()).add(source)

    def let_go(self, path: str, source: str) -> None:
        self.holders.get(path, set()).discard(source)
        if path in self.held and not self.holders[path]:
            del self.held[path], self.holders[path]

    @invariant()
    def the_library_holds_exactly_what_its_sources_say(self) -> None:
        rows = self.library.documents()
        found = {row.path: self.library.source(row.address).decode() for row in rows}
        assert found == self.held


class PostgresModel(SourcesModel):
    """The same on PostgreSQL."""

    database = "postgres"


def _steps(examples: int) -> Any:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, stateful_step_count=14, deadline=None, suppress_health_check=slow)


TestSqlite = SourcesModel.TestCase
TestSqlite.settings = _steps(40)
TestPostgres = pytest.mark.skipif(not postgres.IS_INSTALLED, reason="no server")(PostgresModel.TestCase)
TestPostgres.settings = _steps(10)
