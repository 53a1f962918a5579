"""A library against a plain dictionary of texts, promotions and memories, step by step.

Sources have a model of their own: tests/test_sources_model.py.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from quire import doctor
from quire.errors import LibraryError
from quire.library import PROMOTIONS, Library
from quire.stores.sqlite import SqliteStore
from tests.soak.libraries import DOCS, NAME
from tests.soak.rounds import LOST, SPANS, Round, home, require
from tests.words import WORDS

NAMES = st.sampled_from(["a", "b", "c", "d"])
TOPICS = ["okapi", "numbat", "büchlein", "検索"]
LINES = st.lists(
    st.sampled_from(
        [*TOPICS, "# Title", "## Part", "```", "---", "| a | b |\n|---|---|", "🙂 é.", "", "- item"]
    ),
    min_size=1,
    max_size=8,
)
TEXTS = st.builds(lambda lines, topic: "\n".join([*lines, topic]) + "\n", LINES, st.sampled_from(TOPICS))


class LibraryModel(RuleBasedStateMachine):
    """What a person does with a library, and what it must hold after each step."""

    faults = 0

    def __init__(self) -> None:
        super().__init__()
        self.place = home() / "model"
        shutil.rmtree(self.place, ignore_errors=True)
        (self.place / DOCS).mkdir(parents=True)
        self.texts: dict[str, str] = {}
        self.promotions: dict[str, str] = {}
        self.path, self.number = self.place / NAME, 0
        self.backup: tuple[Path, dict[str, str], dict[str, str]] | None = None
        self.library = Library.open(self.path, create=True, config=WORDS)

    def teardown(self) -> None:
        problems = doctor.examine(self.library)
        self.library.close()
        require(not problems, LOST, f"{problems}")

    def hold(self, address: str, text: str) -> None:
        self.texts[address] = text
        self.promotions.setdefault(address, "standard")

    def let_go(self, address: str) -> None:
        del self.texts[address], self.promotions[address]

    def some(self, kind: str, number: int) -> str:
        """One of the documents of a kind; "" if there is none."""
        found = sorted(address for address in self.texts if address.startswith(kind))
        return found[number % len(found)] if found else ""

    # --------------------------------------------------------------------------------- what is written

    @initialize()
    def begin(self) -> None:
        (self.place / DOCS / "first.md").write_text("# First\n\nokapi\n")
        self.library.add(self.place / DOCS)
        self.hold("docs:first.md", "# First\n\nokapi\n")

    @rule(name=NAMES, text=TEXTS)
    def add_content(self, name: str, text: str) -> None:
        self.library.add(content=text, path=f"{name}.md")
        self.hold(f"content:{name}.md", text)

    @rule(name=NAMES, text=TEXTS)
    def change_file(self, name: str, text: str) -> None:
        (self.place / DOCS / f"{name}.md").write_text(text)
        self.library.refresh()
        self.hold(f"docs:{name}.md", text)

    @rule(number=st.integers(0, 9))
    def remove(self, number: int) -> None:
        if address := self.some("content:", number):
            assert [row.address for row in self.library.remove(address)] == [address]
            self.let_go(address)

    @rule(number=st.integers(0, 9), level=st.sampled_from(PROMOTIONS))
    def promote(self, number: int, level: str) -> None:
        if address := self.some("", number):
            self.library.promote(address, level)
            self.promotions[address] = level

    @rule(name=NAMES, text=TEXTS)
    def remember(self, name: str, text: str) -> None:
        said = f"A memory of {name}: {text}"
        row = self.library.remember(said, name=name)
        self.hold(row.address, self.library.read(row.address).text)
        assert said.strip() == self.texts[row.address].strip()

    @rule(number=st.integers(0, 9))
    def forget(self, number: int) -> None:
        if address := self.some("memory:", number):
            self.library.forget(address)
            self.let_go(address)

    @rule()
    def refresh(self) -> None:
        assert self.library.refresh().documents == 0

    # ------------------------------------------------------------------------------------- what is read

    @rule(topic=st.sampled_from(TOPICS), kind=st.sampled_from(["content", "docs"]))
    def search(self, topic: str, kind: str) -> None:
        if not self.some(f"{kind}:", 0):
            return
        found = self.library.search(f"{topic} collection:{kind}", limit=50, mode="keyword").results
        for result in found:
            text = self.texts[f"{result.collection}:{result.path}"]
            read = self.library.read(result.address)
            assert read.text == text[read.start : read.end]
            span = text.encode()[result.byte_start : result.byte_end]
            require(span.decode() == text[result.start : result.end], SPANS, result.address)
        holding = {address for address in self.texts if address.startswith(f"{kind}:")}
        holding = {address for address in holding if re.search(rf"\b{topic}\b", self.texts[address])}
        assert holding <= {f"{result.collection}:{result.path}" for result in found}

    @rule(number=st.integers(0, 9))
    def read_parts(self, number: int) -> None:
        if address := self.some("", number):
            text = self.texts[address]
            parts = [(one.text, one.start, one.end) for one in self.library.sections(address)]
            parts += [(one.text, one.start, one.end) for one in self.library.chunks(address)]
            for part, start, end in parts:
                require(part == text[start:end], SPANS, f"{address} at {start}")

    # ------------------------------------------------------------------------------- what breaks or is kept

    @rule(name=NAMES, text=TEXTS, is_after=st.booleans())
    def crash(self, name: str, text: str, is_after: bool) -> None:
        """Go on with the files as they were just before or after the last commit of a write."""
        store = self.library.store
        assert isinstance(store, SqliteStore)
        store._commit = self._dying(store._commit, is_after)  # type: ignore[method-assign, assignment]
        before = self.library.store.generation()
        self.library.add(content=text, path=f"{name}.md")
        has_written = self.library.store.generation() != before
        self.library.close()
        LibraryModel.faults += 1
        if has_written:
            self._go_on(self.place / "left.db")
        else:
            self._go_on(self.path)
        if is_after or not has_written:
            self.hold(f"content:{name}.md", text)

    def _dying(self, commit: Callable[[bool], None], is_after: bool) -> Callable[[bool], None]:
        def wrapped(is_counted: bool) -> None:
            if not is_after:
                self._leave()
            commit(is_counted)
            if is_after:
                self._leave()

        return wrapped

    def _leave(self) -> None:
        for ending in ("", "-wal"):
            shutil.copy(f"{self.path}{ending}", self.place / f"left.db{ending}")

    def _go_on(self, path: Path) -> None:
        """Put a library in the place of this one, which was closed, and open it."""
        if path != self.path:
            for ending in ("-wal", "-shm"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)
            path.rename(self.path)
            log = Path(f"{path}-wal")
            log.rename(f"{self.path}-wal")
        self.library = Library.open(self.path, config=WORDS)

    @rule()
    def close_and_open(self) -> None:
        self.library.close()
        self._go_on(self.path)

    @rule()
    def back_up(self) -> None:
        self.number += 1
        place = self.place / f"backup{self.number}.db"
        self.library.backup(place)
        self.backup = place, dict(self.texts), dict(self.promotions)

    @rule()
    def restore(self) -> None:
        if self.backup:
            assert Library.restore(self.path, self.backup[0])
            LibraryModel.faults += 1
            self.texts, self.promotions = dict(self.backup[1]), dict(self.backup[2])
            self._files_as_in_the_library()

    def _files_as_in_the_library(self) -> None:
        for file in (self.place / DOCS).iterdir():
            file.unlink()
        for address, text in self.texts.items():
            if address.startswith(f"{DOCS}:"):
                (self.place / address.replace(":", "/")).write_text(text)

    @invariant()
    def the_library_holds_exactly_what_was_written(self) -> None:
        try:
            rows = self.library.documents()
        except LibraryError as problem:
            raise AssertionError(str(problem)) from problem
        found = {row.address: self.library.source(row.address).decode() for row in rows}
        assert found == self.texts
        assert {row.address: row.promotion for row in rows} == self.promotions


def turn(one: Round) -> None:
    """Some runs of the model, with other steps in each round."""
    machine: Any = hypothesis.seed(one.seed)(type("Model", (LibraryModel,), {}))
    before = LibraryModel.faults
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20 if one.is_long else 8,
            stateful_step_count=40 if one.is_long else 25,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    one.faults += LibraryModel.faults - before
