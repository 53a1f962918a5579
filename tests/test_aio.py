"""AsyncLibrary: the names of Library, an event loop that is never blocked, and work that can be cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import re
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from quire import AsyncLibrary, LibraryError, NoResults, SettingError
from quire.library import Library
from quire.progress import DocumentChange, Silent
from tests.test_embedding import Tiny, config, tinies, tiny
from tests.test_threads import SECONDS, STATIC, Halted, folder
from tests.words import WORDS

__all__ = ["tinies", "tiny"]  # fixtures

T = TypeVar("T")
NOT_IN_BOTH = {"fresh", "store"}  # for those who make answers of several calls, in a thread of their own


def run(main: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns. What asyncio has to complain about fails the test."""
    complaints = list[dict[str, Any]]()

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
        return await asyncio.wait_for(main, SECONDS)

    done = asyncio.run(watched())
    assert complaints == []
    return done


async def set_in_thread(event: threading.Event) -> None:
    """Wait for what a thread does."""
    assert await asyncio.to_thread(event.wait, SECONDS)


# --------------------------------------------------------------------------------------------- the same names


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} - NOT_IN_BOTH


def test_it_has_the_names_and_arguments_of_library() -> None:
    """Issue: an async twin with the same names."""
    assert public(AsyncLibrary) - {"url", "config"} == public(Library)
    for name in sorted(public(Library)):
        ours, theirs = getattr(AsyncLibrary, name), getattr(Library, name)
        assert inspect.signature(ours).parameters == inspect.signature(theirs).parameters, name
        assert ours.__doc__, name
        if name != "open":
            returned = inspect.signature(theirs).return_annotation
            assert inspect.iscoroutinefunction(ours), name
            assert inspect.signature(ours).return_annotation == returned, name


def test_every_way_to_open_it_ends_with_a_closed_library(library_url: str) -> None:
    """`async with`, with or without await; or await, and close."""

    async def main() -> None:
        async with AsyncLibrary.open(library_url, create=True, config=WORDS) as one:
            await one.add(content="# A\n\nA zebra.\n", path="a.md", collection="c")
            assert (one.url, one.config) == (library_url, WORDS)
        async with await AsyncLibrary.open(library_url, config=WORDS) as two:
            assert await two.collections() == ["c"]
        three = await AsyncLibrary.open(library_url, config=WORDS)
        assert (await three.search("zebra")).results[0].text == "# A\n\nA zebra.\n"
        await three.close()
        await three.close()
        for closed in (one, two, three):
            with pytest.raises(LibraryError, match="is closed"):
                await closed.search("zebra")
            with pytest.raises(LibraryError, match="is closed"):
                await closed.remember("x")

    run(main())


def test_errors_are_those_of_library(tmp_path: Path) -> None:
    """They are raised where a call is awaited."""

    async def main() -> None:
        with pytest.raises(NoResults, match="No library at"):
            async with AsyncLibrary.open(tmp_path / "none.db"):
                pass
        async with AsyncLibrary.open(tmp_path / "library.db", create=True, config=WORDS) as library:
            with pytest.raises(SettingError, match="must be a string"):
                await library.search(7)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="unexpected keyword"):
                await library.add("docs", color="red")  # type: ignore[call-arg]
            with pytest.raises(NoResults):
                await library.read("c:none.md")

    run(main())


def test_a_backup_is_restored_and_copied(tmp_path: Path) -> None:
    """What makes files is awaited too."""

    async def main() -> None:
        path, backup = tmp_path / "library.db", tmp_path / "backup.db"
        async with AsyncLibrary.open(path, create=True, config=WORDS) as library:
            await library.add(content="# A\n", path="a.md", collection="c")
            await library.backup(backup)
            await library.remove("c:a.md")
            assert (await library.copy(tmp_path / "copy.db")).documents == 0
        assert await AsyncLibrary.restore(path, backup)
        async with AsyncLibrary.open(path, config=WORDS) as library:
            assert [row.path for row in await library.documents()] == ["a.md"]

    run(main())


# -------------------------------------------------------------------------------------------- many at once


def test_two_hundred_tasks_work_on_one_library(library_url: str) -> None:
    """Issue: a stress test of `AsyncLibrary` with 200 tasks."""
    count = 60 if "://" in library_url else 200

    async def main() -> None:
        async with AsyncLibrary.open(library_url, create=True, config=STATIC) as library:

            async def work(number: int) -> str:
                if number % 4 == 0:
                    text = "".join(f"## Part {part}\n\nversion{number} zebra\n\n" for part in range(5))
                    await library.add(content=text, path=f"{number % 3}.md", collection="c")
                elif number % 4 == 1:
                    return (await library.remember(f"Task {number} was here.")).address
                elif number % 4 == 2:
                    await library.search("zebra")
                else:
                    text = (await library.read(f"c:{number % 3}.md")).text
                    assert len(set(re.findall(r"version\d+", text))) == 1
                return ""

            for number in (0, 4, 8):
                await work(number)
            kept = set(await asyncio.gather(*map(work, range(count)))) - {""}
            assert {row.address for row in await library.documents("memory")} == kept
            assert len(kept) == count // 4
        with Library.open(library_url, config=STATIC) as checked:
            assert checked.store.check() == []

    run(main())


def test_the_event_loop_and_readers_go_on_while_a_call_takes_long(tmp_path: Path) -> None:
    """Issue: no blocking of the event loop."""
    halted = Halted()

    async def main() -> None:
        async with AsyncLibrary.open(tmp_path / "library.db", create=True, config=WORDS) as library:
            await library.add(content="# A\n\nA zebra.\n", path="a.md", collection="c")
            adding = asyncio.create_task(library.add(folder(tmp_path, "b.md"), progress=halted))
            await set_in_thread(halted.begun)
            ticks = 0
            for _ in range(100):
                await asyncio.sleep(0)
                ticks += 1
            found = await library.search("zebra")
            remembering = asyncio.create_task(library.remember("The barn is red."))
            await asyncio.sleep(0)
            assert (ticks, found.results[0].path) == (100, "a.md")
            assert (adding.done(), remembering.done()) == (False, False)
            halted.go_on.set()
            assert (await adding).added == 1
            assert (await remembering).kind == "memory"

    run(main())


def test_work_sees_the_context_variables_of_its_task(tmp_path: Path) -> None:
    """So that a log can tell for whom it was done."""
    who, seen = contextvars.ContextVar[str]("who"), list[str]()

    class Seeing(Silent):
        def begin(self, work: str, total: int, unit: str) -> None:
            seen.append(who.get())

    async def main() -> None:
        async with AsyncLibrary.open(tmp_path / "library.db", create=True, config=WORDS) as library:
            who.set("Ada")
            await library.add(folder(tmp_path, "a.md"), progress=Seeing())

    run(main())
    assert set(seen) == {"Ada"}


# --------------------------------------------------------------------------------------------- cancelling


class Counted(Silent):
    """Progress that halts the work after some units, until it may go on."""

    def __init__(self, limit: int) -> None:
        self.limit, self.done = limit, 0
        self.begun, self.go_on = threading.Event(), threading.Event()

    def advance(self, amount: int, failed: int = 0) -> None:
        self.done += amount
        if self.done >= self.limit and not self.begun.is_set():
            self.begun.set()
            assert self.go_on.wait(SECONDS)


def test_a_cancelled_add_stops_and_keeps_what_it_wrote_whole(
    library_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: cancellation."""
    monkeypatch.setattr("quire.ingest.apply.BATCH_BYTES", 1)  # each document is a transaction
    docs, progress = folder(tmp_path, *(f"{number}.md" for number in range(12))), Counted(3)

    async def main() -> None:
        async with AsyncLibrary.open(library_url, create=True, config=WORDS) as library:
            adding = asyncio.create_task(library.add(docs, collection="c", progress=progress))
            await set_in_thread(progress.begun)
            adding.cancel()
            await asyncio.sleep(0)
            progress.go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await adding
            written = await library.documents()
            assert 0 < len(written) < 12
            for row in written:
                assert (await library.read(row.address)).text.startswith(f"# About {row.path}")
            assert (await library.add(docs, collection="c")).added == 12 - len(written)

    run(main())
    with Library.open(library_url, config=WORDS) as checked:
        assert len(checked.documents()) == 12
        assert checked.store.check() == []


def test_a_cancelled_embedding_stops_and_keeps_its_vectors(
    library_url: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written vectors stay, and others may write meanwhile."""
    monkeypatch.setattr("quire.embedding._BATCH", 2)
    progress = Counted(4)

    async def main() -> None:
        async with AsyncLibrary.open(library_url, create=True, config=config()) as library:
            for number in range(10):
                await library.add(content=f"# Cat {number}\n", path=f"{number}.md", embed=False)
            embedding = asyncio.create_task(library.embed(progress=progress))
            await set_in_thread(progress.begun)
            await library.promote("content:0.md", "important")
            embedding.cancel()
            await asyncio.sleep(0)
            progress.go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await embedding
            assert (await library.status()).embedded == 4
            assert (await library.embed()).embedded == 6

    run(main())


def test_a_cancelled_read_returns_at_once(tmp_path: Path) -> None:
    """Its thread goes on, and nobody waits for it."""
    begun, go_on = threading.Event(), threading.Event()

    def paths() -> Iterator[str]:
        begun.set()
        assert go_on.wait(SECONDS)
        yield "a.md"

    async def main() -> None:
        async with AsyncLibrary.open(tmp_path / "library.db", create=True, config=WORDS) as library:
            await library.add(content="# A\n\nA zebra.\n", path="a.md", collection="c")
            searching = asyncio.create_task(library.search("zebra", paths=paths()))
            await set_in_thread(begun)
            searching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await searching
            assert not go_on.is_set()
            assert (await library.search("zebra")).results[0].path == "a.md"
            go_on.set()

    run(main())


def test_a_cancelled_write_that_has_not_begun_never_begins(tmp_path: Path) -> None:
    """It waits for its turn, and then nobody wants it."""
    halted = Halted()

    async def main() -> None:
        async with AsyncLibrary.open(tmp_path / "library.db", create=True, config=WORDS) as library:
            adding = asyncio.create_task(library.add(folder(tmp_path, "a.md"), progress=halted))
            await set_in_thread(halted.begun)
            remembering = asyncio.create_task(library.remember("The barn is red."))
            await asyncio.sleep(0)
            remembering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await remembering
            halted.go_on.set()
            await adding
            assert [row.path for row in await library.documents()] == ["a.md"]

    run(main())


def test_a_library_whose_opening_is_cancelled_is_closed(tmp_path: Path) -> None:
    """Nobody has it, so nobody could close it."""
    path = tmp_path / "library.db"

    async def main() -> None:
        opening = asyncio.ensure_future(_opened(path))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    run(main())
    assert not path.with_name("library.db-wal").exists()  # the last connection removes it


async def _opened(path: Path) -> AsyncLibrary:
    return await AsyncLibrary.open(path, create=True, config=WORDS)


def test_watching_tells_in_the_event_loop_until_it_is_cancelled(tmp_path: Path) -> None:
    """`watch` is a task like any other."""
    docs = folder(tmp_path, "a.md")

    async def main() -> None:
        told, loop = asyncio.Queue[DocumentChange](), threading.get_ident()

        def tell(change: DocumentChange) -> None:
            assert threading.get_ident() == loop
            told.put_nowait(change)

        async with AsyncLibrary.open(tmp_path / "library.db", create=True, config=WORDS) as library:
            await library.add(docs, collection="c")
            folder(tmp_path, "b.md")
            watching = asyncio.create_task(library.watch(tell))
            assert (await told.get()).address == "c:b.md"
            watching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await watching

    run(main())


# ------------------------------------------------------------------------------------------------ closing


def test_closing_stops_what_reports_its_progress(tmp_path: Path) -> None:
    """An embedding of minutes does not hold up the end, or the error that ends a block.

    What waits for its turn, and what comes later, gets the error of a closed library.
    """
    halted = Halted()

    async def main() -> None:
        library = await AsyncLibrary.open(tmp_path / "library.db", create=True, config=WORDS)
        adding = asyncio.create_task(library.add(folder(tmp_path, "a.md"), progress=halted))
        await set_in_thread(halted.begun)
        waiting = asyncio.create_task(library.remember("The barn is red."))
        closing = asyncio.create_task(library.close())
        while not library._library._connections._stores.is_closed:
            await asyncio.sleep(0.005)
        with pytest.raises(LibraryError, match="is closed"):
            await library.search("zebra")
        assert (closing.done(), waiting.done()) == (False, False)
        halted.go_on.set()
        with pytest.raises(LibraryError, match="was closed before this had ended"):
            await adding
        await closing
        with pytest.raises(LibraryError, match="is closed"):
            await waiting

    run(main())


def test_a_library_that_nobody_awaited_says_what_is_missing(tmp_path: Path) -> None:
    """The mistake is a forgotten await."""
    with pytest.raises(AttributeError, match=r"await AsyncLibrary\.open"):
        AsyncLibrary.open(tmp_path / "library.db", create=True).add("docs")  # type: ignore[attr-defined]
