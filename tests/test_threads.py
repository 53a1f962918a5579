"""A library that many threads use: a connection each, one writer, and an end that harms nobody."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import gc
import os
import pickle
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np
import pytest

from quire.config import DEFAULT, override
from quire.embed import bert, cross
from quire.embed.base import loaded_once
from quire.embed.static import Static
from quire.errors import LibraryError, NoResults
from quire.library import Library, connections
from quire.progress import Silent
from quire.result import Result
from quire.surfaces import render
from quire.surfaces.threads import Threads
from tests.test_replaced import COPY, WITHOUT_LOG, add_elsewhere, shell
from tests.words import WORDS

T = TypeVar("T")
STATIC = override(DEFAULT, {"embed": {"model": "static"}})
SECONDS = 60  # until a test gives up


@pytest.fixture
def library(library_url: str) -> Iterator[Library]:
    with Library.open(library_url, create=True, config=WORDS) as opened:
        yield opened


def elsewhere(work: Callable[[], T]) -> T:
    """What another thread gets, which ends."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(SECONDS)


def together(*works: Callable[[], T]) -> list[T]:
    """What threads get that begin at the same moment, and end."""
    ready = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        ready.wait(SECONDS)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [done.result(SECONDS) for done in [pool.submit(run, work) for work in works]]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Halted(Silent):
    """Progress that halts the work in its middle until it may go on."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def begin(self, work: str, total: int, unit: str) -> None:
        self.begun.set()
        assert self.go_on.wait(SECONDS)


def folder(place: Path, *names: str) -> Path:
    (place / "docs").mkdir(exist_ok=True)
    for name in names:
        (place / "docs" / name).write_text(f"# About {name}\n\nThe zebra of {name}.\n")
    return place / "docs"


# ------------------------------------------------------------------------------------------ any thread


def test_any_thread_may_use_a_library(library: Library) -> None:
    """Issue: `Library` may be used from many threads; one failed with a raw error of sqlite3."""
    library.add(content="# Zebras\n\nThey have stripes.\n", path="a.md", collection="c")
    assert elsewhere(lambda: library.search("stripes").results[0].path) == "a.md"
    elsewhere(lambda: library.add(content="# Horses\n\nThey do not.\n", path="b.md", collection="c"))
    assert [row.path for row in library.documents()] == ["a.md", "b.md"]
    assert asyncio.run(asyncio.to_thread(library.search, "stripes")).results[0].path == "a.md"


def test_threads_share_a_library_in_memory() -> None:
    """It has one connection, which they use in turn."""
    with Library.open(":memory:", create=True, config=STATIC) as library:

        def work(number: int) -> list[str]:
            library.add(content=f"# Part {number}\n\nzebra\n", path=f"{number}.md", collection="c")
            return [result.path for result in library.search("zebra", limit=20).results]

        found = together(*(lambda number=number: work(number) for number in range(8)))
        assert all(f"{number}.md" in paths for number, paths in enumerate(found))
        assert len(library.documents()) == 8
        assert library.store.check() == []


def test_another_thread_opens_the_same_file_wherever_the_program_is_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path means what it meant when the library was opened."""
    monkeypatch.chdir(tmp_path)
    with Library.open("library.db", create=True, config=WORDS) as library:
        library.add(content="# A\n", path="a.md", collection="c")
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path / "sub")
        assert elsewhere(library.collections) == ["c"]
        monkeypatch.chdir(tmp_path)


def test_a_library_that_is_gone_is_an_error_in_every_thread(tmp_path: Path) -> None:
    """It is not taken for one in which nothing was found."""
    path = tmp_path / "library.db"
    with Library.open(path, create=True, config=WORDS) as library:
        library.add(content="# A\n", path="a.md", collection="c")
        path.rename(tmp_path / "moved.db")
        for use in (library.collections, lambda: elsewhere(library.collections)):
            with pytest.raises(LibraryError, match="is gone"):
                use()
        (tmp_path / "moved.db").rename(path)


def test_threads_go_on_with_a_library_that_was_restored(tmp_path: Path) -> None:
    """All connections of a process to a file must be closed before any of them is opened again."""
    path, backup = tmp_path / "library.db", tmp_path / "backup.db"
    with Library.open(path, create=True, config=WORDS) as library, ThreadPoolExecutor(2) as pool:
        library.add(content="# Old\n", path="old.md", collection="c")
        library.backup(backup)
        ready = threading.Barrier(3)

        def paths() -> list[str]:
            return [row.path for row in library.documents()]

        def both() -> list[str]:
            ready.wait(SECONDS)
            return paths()

        for _ in range(2):
            held = [pool.submit(both) for _ in range(2)]
            ready.wait(SECONDS)
            assert all(paths() == done.result(SECONDS) for done in held)
            shell(COPY + WITHOUT_LOG, path, backup)
            add_elsewhere(path, "elsewhere.md")
        library.add(content="# New\n", path="new.md", collection="c")
        assert pool.submit(paths).result(SECONDS) == ["elsewhere.md", "new.md", "old.md"] == paths()
        assert library.store.check() == []


# -------------------------------------------------------------------------------- threads that have ended


def count_open(library: Library) -> int:
    return len(library._connections._stores.open)


def test_threads_that_end_leave_their_connections_to_others(library: Library) -> None:
    """A web server may start a thread for each request."""
    library.add(content="# A\n\nzebra\n", path="a.md", collection="c")
    for _ in range(30):
        assert elsewhere(lambda: library.search("zebra").results[0].path) == "a.md"
    assert count_open(library) == 2


def test_no_more_connections_stay_than_are_likely_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rush, those that nobody needs are closed, and the next rush uses the same files."""
    monkeypatch.setattr(connections, "_FREE", 3)
    with Library.open(tmp_path / "library.db", create=True, config=WORDS) as library:
        library.add(content="# A\n", path="a.md", collection="c")
        for _ in range(6):
            all_read = threading.Barrier(12)
            together(*[lambda here=all_read: library.fresh(lambda: read_with_others(library, here))] * 12)
            until(lambda: count_open(library) <= 4)  # the last thread may be ending
        files = sum(is_of(tmp_path, link) for link in Path("/proc/self/fd").iterdir())
        assert 0 < files <= 13 * 3 + 1  # SQLite keeps some of closed connections, and uses them again


def read_with_others(library: Library, all_read: threading.Barrier) -> None:
    assert library.collections() == ["c"]
    all_read.wait(SECONDS)


def is_of(place: Path, link: Path) -> bool:
    try:
        return str(link.readlink()).startswith(str(place))
    except OSError:
        return False


def test_a_library_that_nobody_closes_is_not_kept_by_its_threads(tmp_path: Path) -> None:
    """What a thread has of a library does not keep the library."""
    library = Library.open(tmp_path / "library.db", create=True, config=WORDS)
    library.collections()
    gone = weakref.ref(library)
    del library
    gc.collect()
    assert gone() is None


# -------------------------------------------------------------------------------------------- one writer


def test_a_writer_stops_no_reader_and_other_writers_wait(library: Library, tmp_path: Path) -> None:
    """Issue: a connection each, one writer."""
    docs, halted = folder(tmp_path, "a.md", "b.md"), Halted()
    library.add(docs, collection="c")
    folder(tmp_path, "c.md")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(library.add, docs, collection="c", progress=halted)
        assert halted.begun.wait(SECONDS)
        second = pool.submit(library.remember, "The barn is red.")
        assert [row.path for row in library.documents("c")] == ["a.md", "b.md"]
        assert library.search("zebra").results[0].path in ("a.md", "b.md")
        assert library.read("c:a.md").text.startswith("# About a.md")
        assert not second.done()
        halted.go_on.set()
        assert first.result(SECONDS).added == 1
        assert library.document(second.result(SECONDS).address)
    assert [row.path for row in library.documents("c")] == ["a.md", "b.md", "c.md"]


def test_the_file_alone_is_the_library_once_all_calls_have_ended(tmp_path: Path) -> None:
    """A writer cannot fold in the log while others read, so the last of them does."""
    path, reading, go_on = tmp_path / "library.db", threading.Event(), threading.Event()
    with Library.open(path, create=True, config=WORDS) as library:

        def read() -> None:
            with library.store.reading():
                assert library.store.collections() == []
                reading.set()
                assert go_on.wait(SECONDS)

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(library.fresh, read)
            assert reading.wait(SECONDS)
            library.add(content="# A\n", path="a.md", collection="c")
            assert (tmp_path / "library.db-wal").stat().st_size > 0
            go_on.set()
            done.result(SECONDS)
        assert (tmp_path / "library.db-wal").stat().st_size == 0


# --------------------------------------------------------------------------------------------- many at once


class Many:
    """Threads that write, read, find, remember and remove, and what must hold whatever they do."""

    DOCUMENTS = 5

    def __init__(self, library: Library) -> None:
        self.library, self.facts, self.reads = library, set[str](), 0

    def text(self, number: int, version: int) -> str:
        """Every section of a document names its version."""
        parts = (f"## Part {at}\n\nversion{version} of the zebra\n" for at in range(6))
        return f"# Document {number}\n\n{''.join(parts)}"

    def check_whole(self, text: str) -> None:
        versions = re.findall(r"version\d+", text)
        assert len(versions) == 6, text
        assert len(set(versions)) == 1, text
        self.reads += 1

    def work(self, seed: int, steps: int) -> None:
        rng = Random(seed)
        for step in range(steps):
            self.step(rng, rng.randrange(self.DOCUMENTS), seed, step)

    def step(self, rng: Random, number: int, seed: int, step: int) -> None:
        address, library = f"c:{number}.md", self.library
        what = rng.choice(("add", "add", "search", "search", "read", "read", "remember", "remove"))
        try:
            if what == "add":
                text = self.text(number, rng.randrange(10**6))
                library.add(content=text, path=f"{number}.md", collection="c")
            elif what == "search":
                for result in library.search("zebra", collection="c").results:
                    assert "version" in result.snippet
            elif what == "read":
                self.check_whole(library.read(address).text)
            elif what == "remove":
                library.remove(address)
            else:
                self.facts.add(library.remember(f"Thread {seed} has done {step}.").address)
        except NoResults:  # another thread has removed it
            assert what != "remember"

    def check(self) -> None:
        """Nothing is lost, and every document is one version."""
        assert {row.address for row in self.library.documents("memory")} == self.facts
        for row in self.library.documents("c"):
            self.check_whole(self.library.read(row.address).text)
        assert self.library.store.check() == []
        assert self.reads > 0


def test_sixteen_threads_work_on_one_library(library_url: str) -> None:
    """Issue: a stress test of `Library` with 16 threads; fewer on PostgreSQL, which is slower to start."""
    count, steps = (6, 6) if "://" in library_url else (16, 12)
    with Library.open(library_url, create=True, config=STATIC) as library:
        many = Many(library)
        for number in range(many.DOCUMENTS):
            library.add(content=many.text(number, 0), path=f"{number}.md", collection="c")
        together(*(lambda seed=seed: many.work(seed, steps) for seed in range(count)))
        many.check()


def test_twenty_clients_of_a_server_read_at_the_same_time(tmp_path: Path) -> None:
    """Issue: 20 clients over HTTP with reads not queued behind one thread."""
    path = str(tmp_path / "library.db")
    with Library.open(path, create=True, config=WORDS) as library:
        library.add(content="# A\n\nzebra\n", path="a.md", collection="c")
    threads, ready = Threads(path, WORDS), threading.Barrier(20)

    def read(opened: Library) -> str:
        with opened.store.reading():
            ready.wait(SECONDS)  # all twenty are reading now
            return opened.search("zebra").results[0].path

    async def main() -> list[str]:
        return list(await asyncio.gather(*(threads.read(read) for _ in range(20))))

    try:
        assert asyncio.run(main()) == ["a.md"] * 20
    finally:
        threads.close()


# ------------------------------------------------------------------------------------------------ closing


def test_closing_waits_for_what_is_running_and_lets_nothing_begin(library: Library, tmp_path: Path) -> None:
    """What happens when one thread closes a library that others use."""
    halted = Halted()
    with ThreadPoolExecutor(2) as pool:
        adding = pool.submit(library.add, folder(tmp_path, "a.md"), collection="c", progress=halted)
        assert halted.begun.wait(SECONDS)
        closing = pool.submit(library.close)
        until(lambda: library._connections._stores.is_closed)
        with pytest.raises(LibraryError, match="is closed"):
            library.search("zebra")
        assert not closing.done()
        halted.go_on.set()
        assert adding.result(SECONDS).added == 1
        closing.result(SECONDS)
    for use in (lambda: library.search("zebra"), lambda: library.remember("x"), lambda: library.store):
        with pytest.raises(LibraryError, match="is closed"):
            use()
    with Library.open(library.url, config=WORDS) as again:
        assert [row.path for row in again.documents()] == ["a.md"]
        assert again.store.check() == []


def test_closing_amid_many_readers_harms_none(library: Library) -> None:
    """Each gets its answer, or the error that the library is closed."""
    library.add(content="# A\n\nzebra\n", path="a.md", collection="c")
    answered = threading.Semaphore(0)

    def read() -> str:
        try:
            while library.search("zebra").results[0].path == "a.md":
                answered.release()
        except LibraryError as problem:
            return str(problem)
        return "another answer"

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        for _ in range(8):
            assert answered.acquire(timeout=SECONDS)
        library.close()
        assert all("is closed" in reader.result(SECONDS) for reader in readers)


def test_a_call_cannot_close_its_own_library(library: Library) -> None:
    """It would wait for itself."""
    with pytest.raises(LibraryError, match="within one of its own calls"):
        library.fresh(library.close)
    assert library.collections() == []


# ------------------------------------------------------------------------------------------------- models


def test_a_model_is_loaded_once_however_many_threads_need_it() -> None:
    """Threads wait for the one that loads it."""
    loads = list[int]()

    class Model:
        @loaded_once
        def weights(self) -> int:
            loads.append(1)
            time.sleep(0.01)  # others come meanwhile
            return 7

    model = Model()
    assert together(*[lambda: model.weights] * 8) == [7] * 8
    assert loads == [1]
    for kind, names in (
        (Static, ("_table", "_words", "_known", "_signs")),
        (bert.Bert, ("_session", "_words")),
    ):
        assert all(isinstance(vars(kind)[name], loaded_once) for name in names)
    assert isinstance(vars(cross.CrossEncoder)["_session"], loaded_once)


def test_threads_embed_with_one_table_as_one_thread_does() -> None:
    """Its cache of words grows while others read it."""
    rng = Random(7)
    texts = [" ".join(f"w{rng.randrange(5000)}" for _ in range(60)) for _ in range(160)]
    alone, shared = Static(), Static()
    expected = [alone.embed_query(text) for text in texts]

    def embed(start: int) -> list[Any]:
        return [shared.embed_query(text) for text in texts[start::8]]

    found = together(*(lambda start=start: embed(start) for start in range(8)))
    for start, vectors in enumerate(found):
        np.testing.assert_allclose(vectors, expected[start::8], atol=1e-5)


# ---------------------------------------------------------------------------------------- reading a result

PAGE = "\ufeff---\ntags: [a]\n---\n# Zoo\n\nÜber zebras.\r\n\n## Stripes\n\nA zebra 🦓 has stripes.\n"


def test_a_result_has_its_exact_text_and_can_be_read(library: Library) -> None:
    """Issue: `Result.text` and `Result.read()`."""
    library.add(content=PAGE.encode(), path="zoo.md", collection="c")
    whole = library.read("c:zoo.md").text
    for result in library.search("zebra stripes").results:
        assert result.text == whole[result.start : result.end] == elsewhere(lambda one=result: one.text)  # type: ignore[misc]
        assert result.text.encode() == library.source("c:zoo.md")[result.byte_start : result.byte_end]
        assert result.read() == library.read(result.address)
        assert result.read(max_tokens=8).notes
    library.remember("The barn is red.")
    assert library.recall("barn").results[0].text == "The barn is red."


def test_a_result_is_not_read_from_another_version(library: Library) -> None:
    """Other text than was found would be cited wrongly."""
    library.add(content="# A\n\nA zebra.\n", path="a.md", collection="c")
    (result,) = library.search("zebra").results
    library.add(content="# B\n\nAnother document.\n", path="b.md", collection="c")
    assert result.text == "# A\n\nA zebra.\n"
    library.add(content="# A\n\nNo zebra.\n", path="a.md", collection="c")
    for use in (lambda: result.text, result.read):
        with pytest.raises(NoResults, match=r"c:a\.md has changed since it was found\. Search again"):
            use()
    library.remove("c:a.md")
    with pytest.raises(NoResults, match="was removed since"):
        _ = result.text


def test_a_result_does_not_carry_its_library_along(library: Library) -> None:
    """It is compared, printed, copied and stored without it; a copy says where to read."""
    library.add(content="# A\n\nA zebra.\n", path="a.md", collection="c")
    found = library.search("zebra")
    (result,) = found.results
    copies: list[Result] = [
        copy.copy(result),
        pickle.loads(pickle.dumps(result)),
        dataclasses.replace(result),
    ]
    assert all(one == result for one in copies)
    assert "Library" not in repr(result)
    assert {"text", "checksum", "_origin"} & render.found_json(found)["results"][0].keys() == set()
    for one in copies:
        with pytest.raises(LibraryError, match=r"library\.read\(result\.address\)"):
            _ = one.text
    library.close()
    with pytest.raises(LibraryError, match="is closed"):
        _ = result.text


# ------------------------------------------------------------------------------ dropped, and forked


def test_a_library_that_was_dropped_can_be_opened_again(library_url: str) -> None:
    """Who forgets to close one has it closed when it is collected."""
    for _ in range(2):
        dropped = Library.open(library_url, create=True, config=WORDS)
        dropped.remember("The barn is red.")
        del dropped
        gc.collect()
    with Library.open(library_url, config=WORDS) as library:
        assert len(library.recall("barn").results) == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own(library: Library) -> None:
    """It has neither the threads of its parent nor their locks: it searches, writes and closes."""
    library.remember("The barn is red.")
    within, go_on = threading.Event(), threading.Event()

    def search() -> None:
        with library._connections._entered():
            within.set()
            go_on.wait(SECONDS)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(search)
        within.wait(SECONDS)
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                library.remember("The well is deep.")
                found = library.recall("well").results[0].snippet
                library.close()
                os._exit(0 if found == "The well is deep." else 1)
            os._exit(2)
        go_on.set()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        waiting.result(SECONDS)
    assert len(library.recall("barn well").results) == 2
