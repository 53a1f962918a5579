"""Watching: a library follows its files by itself, one process at a time, and loses nothing."""

from __future__ import annotations

import json
import os
import plistlib
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pytest

import quire.embed
from quire.config import DEFAULT, Config, EmbedSettings, override
from quire.errors import LibraryError, SettingError
from quire.library import Library
from quire.progress import DocumentChange
from quire.sources import files
from quire.stores import Lease, SourceOptions, SourceRow, leases
from quire.surfaces.user_service import watch_service
from quire.watcher import listener, turn
from quire.watcher.folders import Folders
from quire.watcher.slow import is_due
from tests import mcp_client
from tests.commands import environment, run
from tests.web_server import site

if TYPE_CHECKING:
    from quire.embed.base import Embedder, Vectors

T = TypeVar("T")
FAST = override(
    DEFAULT,
    {
        "embed": {"model": "none"},
        "watch": {"debounce": 0.05, "poll": 0.1},
        "web": {"allow_hosts": ["127.0.0.1"]},
    },
)
SECONDS = 30.0  # until a test gives up


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for events, at places and for sources often: tests wait for that."""
    monkeypatch.setattr(listener, "_STEP", 10)
    monkeypatch.setattr(turn, "_TICK", 0.1)
    monkeypatch.setattr(turn, "_LOOK", 0.2)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with ten documents, four of them in another folder."""
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    for number in range(6):
        (folder / f"d{number}.md").write_text(f"# Doc {number}\n\nAbout topic{number}.\n")
    for number in range(4):
        (folder / "sub" / f"s{number}.md").write_text(f"# Sub {number}\n\nAbout detail{number}.\n")
    return folder


class Watching:
    """A library that is watched in a thread, and what was told of it."""

    def __init__(self, url: str, config: Config) -> None:
        self.url, self.config = url, config
        self.changes: queue.Queue[tuple[str, ...]] = queue.Queue()
        self.notes: queue.Queue[str] = queue.Queue()
        self.stop, self.failed = threading.Event(), list[BaseException]()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            with Library.open(self.url, config=self.config) as library:
                library.watch(self._changed, on_note=self.notes.put, stop=self.stop)
        except BaseException as problem:
            self.failed.append(problem)

    def _changed(self, change: DocumentChange) -> None:
        told = (change.action, change.address, change.old_address)
        self.changes.put(tuple(part for part in told if part))

    def until(self, *wanted: str) -> None:
        """Wait for changes, in any order, and no others: `update docs:a.md`."""
        expected, got = {tuple(one.split()) for one in wanted}, set[tuple[str, ...]]()
        while got != expected:
            got.add(self.changes.get(timeout=SECONDS))
            assert got <= expected, got - expected

    def until_note(self, part: str) -> str:
        """Wait for a note."""
        while part not in (note := self.notes.get(timeout=SECONDS)):
            pass
        return note

    def addresses(self) -> set[str]:
        with Library.open(self.url, config=self.config) as library:
            return {row.address for row in library.documents()}


@contextmanager
def watching(url: str, *sources: Path, config: Config = FAST) -> Iterator[Watching]:
    """Add sources, and watch them until the block ends."""
    with Library.open(url, create=True, config=config) as library:
        for source in sources:
            assert not library.add(source).failed
    watched = Watching(url, config)
    watched.thread.start()
    try:
        watched.until_note("Watching")
        yield watched
    finally:
        watched.stop.set()
        watched.thread.join(SECONDS)
    assert not watched.thread.is_alive()
    assert watched.failed == []
    assert watched.changes.empty()


def eventually(find: Callable[[], T]) -> T:
    """What is found once it is found."""
    until = time.monotonic() + SECONDS
    while not (found := find()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


# ----------------------------------------------------------------------------------- what changes


def test_files_that_are_saved_added_and_deleted_are_followed(library_url: str, docs: Path) -> None:
    """Issue: `quire watch` keeps a library fresh by itself."""
    with watching(library_url, docs) as watched:
        (docs / "d1.md").write_text("# Doc 1\n\nAbout marmots.\n")
        watched.until("update docs:d1.md")
        (docs / "new.md").write_text("# New\n")
        (docs / "picture.png").write_bytes(b"\x89PNG")
        watched.until("add docs:new.md")
        (docs / "sub" / "s1.md").unlink()
        watched.until("remove docs:sub/s1.md")
        with Library.open(library_url, config=FAST) as library:
            assert library.search("marmots").results[0].path == "d1.md"
            assert not library.check()  # nothing is left to do


def test_an_atomic_save_is_one_change_and_a_touch_is_none(library_url: str, docs: Path) -> None:
    """Issue: editors write beside the file and rename; the document stays the same one."""
    with watching(library_url, docs) as watched:
        with Library.open(library_url, config=FAST) as library:
            before = library.documents()
        (docs / "d2.md").touch()
        part = docs / ".d1.md.swp"
        part.write_text("# Doc 1\n\nSaved whole.\n")
        part.replace(docs / "d1.md")
        watched.until("update docs:d1.md")
        with Library.open(library_url, config=FAST) as library:
            after = library.documents()
        assert [(row.id, row.created_at) for row in after] == [(row.id, row.created_at) for row in before]


class Counting:
    """An embedder that keeps the texts it was given."""

    name, dimension, max_tokens = "counting", 4, 512

    def __init__(self) -> None:
        self.texts: list[str] = []

    def knows(self, text: str) -> bool:
        return True

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return np.full((len(texts), 4), 0.5, np.float32)

    def embed_query(self, text: str) -> Vectors:
        return np.full(4, 0.5, np.float32)

    def close(self) -> None: ...


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    embedder, really = Counting(), quire.embed.open_embedder

    def opened(name: str, settings: EmbedSettings) -> Embedder | None:
        return embedder if name == "counting" else really(name, settings)

    monkeypatch.setattr(quire.embed, "open_embedder", opened)
    return embedder


EMBEDS = override(FAST, {"embed": {"model": "counting"}})


def is_embedded(url: str) -> bool:
    with Library.open(url, config=EMBEDS) as library:
        counts = library.status()
        return counts.embedded == counts.chunks


def test_renames_of_files_and_folders_keep_documents_and_vectors(
    library_url: str, docs: Path, counting: Counting
) -> None:
    """Issue: renames keep ids and vectors: the row, its promotion, and nothing is embedded again."""
    with watching(library_url, docs, config=EMBEDS) as watched:
        with Library.open(library_url, config=EMBEDS) as library:
            library.promote("docs:d1.md", "important")
            rows = {row.path: row.seq for row in library.documents()}
        known = len(counting.texts)
        (docs / "d1.md").rename(docs / "e1.md")
        watched.until("move docs:e1.md docs:d1.md")
        (docs / "sub").rename(docs / "moved")
        watched.until(*(f"move docs:moved/s{n}.md docs:sub/s{n}.md" for n in range(4)))
        with Library.open(library_url, config=EMBEDS) as library:
            now = {row.path: row for row in library.documents()}
        assert (now["e1.md"].seq, now["e1.md"].promotion) == (rows["d1.md"], "important")
        assert now["moved/s2.md"].seq == rows["sub/s2.md"]
        assert len(counting.texts) == known
        (docs / "e1.md").write_text("# Doc 1\n\nSomething else.\n")
        watched.until("update docs:e1.md")
        eventually(lambda: is_embedded(library_url))
        assert len(counting.texts) == known + 1


def test_a_tree_that_is_moved_in_is_read_whole(library_url: str, docs: Path, tmp_path: Path) -> None:
    """FIELD_NOTES: only the top folder of such a tree is reported."""
    tree = tmp_path / "tree"
    for number in range(60):
        folder = tree / f"a{number % 5}" / f"b{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}.md").write_text(f"# File {number}\n")
    (tree / ".hidden").mkdir()
    (tree / ".hidden" / "x.md").write_text("# X\n")
    with watching(library_url, docs) as watched:
        tree.rename(docs / "tree")
        watched.until(*(f"add docs:tree/a{n % 5}/b{n % 3}/f{n}.md" for n in range(60)))


def test_many_changes_at_once_are_all_found(tmp_path: Path, docs: Path) -> None:
    """With more than a hundred changed paths, the whole source is compared."""
    with watching(str(tmp_path / "l.db"), docs) as watched:
        for number in range(150):
            (docs / f"n{number}.md").write_text(f"# N {number}\n")
        watched.until(*(f"add docs:n{number}.md" for number in range(150)))


def test_ignore_rules_hold_for_single_changes(tmp_path: Path, docs: Path) -> None:
    """A change in an ignored folder is none, and another .gitignore changes what is read."""
    (docs / ".gitignore").write_text("build/\n")
    (docs / "build").mkdir()
    with watching(str(tmp_path / "l.db"), docs) as watched:
        (docs / "build" / "page.md").write_text("# Page\n")
        (docs / "node_modules").mkdir()
        (docs / "node_modules" / "x.md").write_text("# X\n")
        (docs / "d1.md").write_text("# Doc 1 now\n")
        watched.until("update docs:d1.md")
        (docs / ".gitignore").write_text("d2.md\n")
        watched.until("add docs:build/page.md", "remove docs:d2.md")


def test_a_single_file_is_followed_through_atomic_saves(tmp_path: Path) -> None:
    """A source that is a file: the system's watch of it would end with the first atomic save."""
    note = tmp_path / "note.md"
    note.write_text("# One\n")
    with watching(str(tmp_path / "l.db"), note) as watched:
        for number in range(2):
            (tmp_path / "part").write_text(f"# Number {number}\n")
            (tmp_path / "part").replace(note)
            watched.until(f"update {tmp_path.name}:note.md")


def test_sources_that_are_added_later_are_followed(library_url: str, docs: Path, tmp_path: Path) -> None:
    """The watcher learns of sources that other processes add and remove."""
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.md").write_text("# A\n")
    with watching(library_url, docs) as watched:
        with Library.open(library_url, config=FAST) as library:
            library.add(more)

        def is_followed() -> bool:
            (more / "a.md").write_text(f"# A {time.monotonic_ns()}\n")
            return not watched.changes.empty()

        eventually(is_followed)
        watched.until("update more:a.md")
        with Library.open(library_url, config=FAST) as library:
            library.remove_source(str(more))
        (docs / "d1.md").write_text("# Doc 1 now\n")
        while (change := watched.changes.get(timeout=SECONDS)) == ("update", "more:a.md"):
            continue  # it was written several times
        assert change == ("update", "docs:d1.md")


# ------------------------------------------------------------------------- what is not to be trusted


def test_a_root_that_vanishes_removes_nothing(library_url: str, docs: Path) -> None:
    """Issue: a root that vanished removes nothing and says so; when it is back, it is followed again."""
    with watching(library_url, docs) as watched:
        docs.rename(docs.parent / "away")
        assert "10 documents are no longer in their source, but kept" in watched.until_note(
            "no such file or directory"
        )
        assert len(watched.addresses()) == 10
        (docs.parent / "away").rename(docs)
        (docs / "d1.md").write_text("# Doc 1 is back\n")
        watched.until("update docs:d1.md")
        (docs / "d1.md").write_text("# Doc 1 is heard of\n")
        watched.until("update docs:d1.md")


def test_a_root_that_is_emptied_removes_nothing(library_url: str, docs: Path) -> None:
    """Issue: a root that is suddenly empty removes nothing and says so."""
    with watching(library_url, docs) as watched:
        for file in docs.rglob("*.md"):
            file.unlink()
        watched.until_note("10 of its 10 documents are missing at once")
        (docs / "sub").rmdir()
        (docs / "x.md").write_text("# X\n")
        watched.until("add docs:x.md")
        (docs / "x.md").unlink()
        watched.until_note("is empty")
        shutil.rmtree(docs)
        docs.mkdir()
        (docs / "y.md").write_text("# Y\n")
        watched.until("add docs:y.md")
        assert len(watched.addresses()) == 12


def test_a_library_that_is_restored_is_compared_again(tmp_path: Path, docs: Path) -> None:
    """A backup is older than the files; the watcher notices it, and takes the lease that it does not have."""
    place, backup = tmp_path / "l.db", tmp_path / "backup.db"
    with Library.open(place, create=True, config=FAST) as library:
        library.add(docs)
    shutil.copy(place, backup)
    with watching(str(place)) as watched:
        (docs / "d1.md").write_text("# Doc 1 now\n")
        watched.until("update docs:d1.md")
        backup.rename(place)
        watched.until("update docs:d1.md")


def test_a_library_that_cannot_be_written_is_not_watched(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said at once, not after several attempts."""
    with Library.open(tmp_path / "l.db", create=True, config=FAST) as library:
        library.add(docs)
        monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)  # root may write to any file
        with pytest.raises(LibraryError, match="cannot be written to"):
            library.watch()


def test_where_the_system_reports_nothing_files_are_compared_again_and_again(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FIELD_NOTES: the watch limit raises OSError: fall back to polling, and say so."""

    def limited(*_: object) -> None:
        raise OSError("OS file watch limit reached. about ['/docs']")

    monkeypatch.setattr("watchfiles._rust_notify.RustNotify", limited)
    with watching(str(tmp_path / "l.db"), docs) as watched:
        (docs / "d1.md").write_text("# Doc 1 now\n")
        watched.until("update docs:d1.md")


def test_the_fallback_is_told_once(tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note names the cause and how often files are compared; also if the limit is reached later."""

    class Breaks:
        def __init__(self, *_: object) -> None: ...

        def watch(self, *_: object) -> None:
            raise RuntimeError("too many folders")

        def close(self) -> None: ...

    monkeypatch.setattr("watchfiles._rust_notify.RustNotify", Breaks)
    with watching(str(tmp_path / "l.db"), docs) as watched:
        for text in ("# Doc 1 now\n", "# Doc 1 then\n"):
            (docs / "d1.md").write_text(text)
            watched.until("update docs:d1.md")
        notes = [watched.notes.get_nowait() for _ in range(watched.notes.qsize())]
    assert notes == ["The system does not report changes: too many folders. Comparing every 0.1 s."]


def test_what_an_event_means(tmp_path: Path) -> None:
    """Hidden and ignored names, the library's own files and kinds that are not read are no changes."""
    root = tmp_path / "r"
    (root / "sub").mkdir(parents=True)
    (root / "a.db-wal").touch()
    (root / "x.bin").touch()
    (root / "link").symlink_to(root / "sub")
    outer = SourceRow("folder", str(root), str(root), "c", "document")
    inner = SourceRow("folder", str(root / "sub"), str(root), "c", "document")
    every = replace(outer, collection="d", options=SourceOptions(include=("*",)))
    folders = Folders([outer, inner, every], str(root / "a.db"))
    assert folders.outermost() == [str(root)]

    def places(path: str) -> list[str | None]:
        found = dict(folders.places(f"{root}/{path}" if path else str(root)))
        return [found.get(source.seq) for source in (outer, inner, every)]

    nothing: list[str | None] = [None, None, None]
    assert places("a.md") == ["a.md", None, "a.md"]
    assert places("sub/b.md") == ["sub/b.md", "sub/b.md", "sub/b.md"]
    assert places("sub/.gitignore") == ["sub", "", "sub"]
    assert places(".quireignore") == ["", None, ""]
    assert places("gone/folder") == ["gone/folder", None, "gone/folder"]
    assert places("x.bin") == [None, None, "x.bin"]
    assert places("link") == ["", None, ""]
    assert places("sub/\ufffd.md") == ["sub", "", "sub"]
    assert places("") == ["", None, ""]
    for path in (".git/index", "sub/.a.md.swp", "node_modules/a.md", "a.db", "a.db-wal", "../other.md"):
        assert places(path) == nothing


def test_a_walk_within_some_places_finds_what_a_whole_walk_finds(docs: Path) -> None:
    """Only the named places are looked at, with the rules of the folders above them."""
    (docs / ".gitignore").write_text("*.tmp.md\nout/\n")
    (docs / "sub" / "x.tmp.md").touch()
    (docs / "out").mkdir()
    (docs / "out" / "o.md").touch()

    def found(*within: str) -> list[str]:
        listing = files.walk(docs, within=within, max_bytes=1000)
        return [one.path for one in listing if isinstance(one, files.FoundFile)]

    assert found("sub") == [f"sub/s{n}.md" for n in range(4)]
    assert found("d1.md", "sub/s2.md", "sub/x.tmp.md", "gone.md") == ["d1.md", "sub/s2.md"]
    assert found("out/o.md") == found("out") == []
    assert len(found()) == 10


# ----------------------------------------------------------------------------------- one of each


def held_by(url: str, name: str, **changes: Any) -> None:
    """Store a lease as another process would."""
    with Library.open(url, create=True) as library:
        stored, now = library.store.lease(name)
        held = {"holder": "x", "process": os.getpid(), "host": "elsewhere", "expires_at": now + 20_000}
        assert library.store.swap_lease(name, stored, json.dumps(held | changes))


def test_a_lease_has_one_holder_and_changes_no_version(library_url: str) -> None:
    """Issue: a lease in the library; pages of results stay valid while it is renewed."""
    with Library.open(library_url, create=True) as one, Library.open(library_url) as two:
        version = one.store.version(), one.store.generation()
        first, second = Lease(one.store, "watch"), Lease(two.store, "watch")
        assert first.take() == ""
        assert second.take() == f"process {os.getpid()} on {os.uname().nodename}"
        assert first.take() == ""
        assert not second.renew()
        assert Lease(two.store, "embed").take() == ""
        first.drop()
        assert second.take() == ""
        first.drop()  # it is another's now
        assert not first.renew()
        assert second.renew()
        assert (one.store.version(), one.store.generation()) == version


def test_of_many_who_take_a_free_lease_one_gets_it(library_url: str) -> None:
    """Issue: a takeover is atomic."""
    held_by(library_url, "watch", expires_at=0)
    start, taken = threading.Barrier(4), list[str]()

    def take() -> None:
        with Library.open(library_url) as library:
            start.wait(SECONDS)
            taken.append(Lease(library.store, "watch").take())

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(map(bool, taken)) == [False, True, True, True]


def test_a_lease_ends_with_its_process_or_with_time(
    library_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead process loses it at once on its machine; elsewhere, and after a change of clocks, soon."""
    here: dict[str, Any] = {key: value for key, value in leases._process().items() if key != "process"}
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with Library.open(library_url, create=True) as library:
        now = library.store.lease("watch")[1]

        def is_free(**changes: Any) -> bool:
            held_by(library_url, "watch", **changes)
            lease = Lease(library.store, "watch")
            taken = not lease.take()
            lease.drop()
            return taken

        assert not is_free()
        assert not is_free(process=dead.pid)  # of another machine: nobody here can tell
        assert is_free(process=dead.pid, **here)
        assert not is_free(process=os.getpid(), **here)
        assert is_free(expires_at=now - 1)
        assert is_free(expires_at=now + 3_600_000)  # taken before the clock was set back
        held_by(library_url, "watch")
        library.store.swap_lease("watch", library.store.lease("watch")[0], "no lease at all")
        assert not Lease(library.store, "watch").take()
        held = Lease(library.store, "embed")
        with monkeypatch.context() as patched:
            patched.setattr(leases, "SECONDS", 0.0)
            assert not held.take()
        assert not Lease(library.store, "embed").take()  # the first was not renewed in time
        assert not held.renew()


@contextmanager
def command(place: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """`quire watch` in a process that is killed at the end, if it runs."""
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "bufsize": 1}
    more = {"QUIRE_WATCH_DEBOUNCE": "0.05"}
    started = [sys.executable, "-m", "quire", "watch", *args]
    with subprocess.Popen(started, cwd=place, env=environment(place) | more, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def said(stream: Any, part: str) -> str:
    """The line with some text, once it comes."""
    while part not in (line := stream.readline()):
        assert line, f"the process ended without: {part}"
    return str(line)


@pytest.mark.timeout(60)
def test_a_second_watcher_waits_and_takes_over(library_url: str, docs: Path, tmp_path: Path) -> None:
    """Issue: one watcher; a second one says so, waits, and takes over when the first is killed."""
    with Library.open(library_url, create=True, config=FAST) as library:
        library.add(docs)
    with command(tmp_path, "-L", library_url) as first:
        said(first.stderr, "Watching 1 source.")
        with command(tmp_path, "-L", library_url, "--json") as second:
            assert f"Waiting: process {first.pid} on" in said(second.stderr, "Waiting")
            (docs / "d1.md").write_text("# Doc 1 now\n")
            assert said(first.stdout, "d1") == "update  docs:d1.md\n"
            first.kill()
            first.wait()
            (docs / "d2.md").write_text("# Doc 2 now\n")
            told = {"action": "update", "address": "docs:d2.md", "from": None}
            assert json.loads(said(second.stdout, "d2")) == told
            said(second.stderr, "Watching 1 source.")
            (docs / "d2.md").rename(docs / "e2.md")
            told = {"action": "move", "address": "docs:e2.md", "from": "docs:d2.md"}
            assert json.loads(said(second.stdout, "e2")) == told
            second.terminate()
            said(second.stderr, "Stopped watching.")
            assert second.wait(SECONDS) == 0
    with Library.open(library_url) as library:
        assert library.store.lease("watch")[0] == ""


@pytest.mark.timeout(60)
def test_ctrl_c_ends_it_well(tmp_path: Path, docs: Path) -> None:
    """Ctrl-C is how a person ends it: exit 0, and it says so."""
    with Library.open(tmp_path / "l.db", create=True, config=FAST) as library:
        library.add(docs)
    with command(tmp_path, "-L", "l.db") as process:
        said(process.stderr, "Watching")
        process.send_signal(signal.SIGINT)
        assert said(process.stderr, "Stopped") == "Stopped watching. The library is complete.\n"
        assert process.wait(SECONDS) == 0


def many(docs: Path, number: int = 40) -> None:
    for place in range(number):
        (docs / f"many{place}.md").write_text(f"# Many {place}\n\nText {place}.\n")


def test_a_second_embedder_waits_and_finishes_when_the_first_dies(
    library_url: str,
    docs: Path,
    counting: Counting,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Issue: one embedder; nothing is left unembedded when it dies. Adding leaves it to the other."""
    many(docs)
    held_by(library_url, "embed")
    waited = list[float]()

    def nap(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:  # the other one dies, and its lease ends
            held_by(library_url, "embed", expires_at=0)

    monkeypatch.setattr("quire.library.embeddings.time.sleep", nap)
    with Library.open(library_url, config=EMBEDS) as library:
        other = f"process {os.getpid()} on elsewhere"
        assert library.add(docs).warnings == [f"Searchable now. {other.capitalize()} embeds this library."]
        assert waited == []
        library.embed()
        assert len(waited) == 3
        assert library.status().embedded == library.status().chunks == 50
        assert (
            caplog.messages.count(
                f"Waiting for process {os.getpid()} on elsewhere, which embeds this library."
            )
            == 1
        )
        assert library.store.lease("embed")[0] == ""


def test_an_entry_is_embedded_at_once_while_another_process_embeds(
    library_url: str, docs: Path, counting: Counting
) -> None:
    """A memory of one line does not wait until another process has embedded thousands of chunks."""
    many(docs)
    with Library.open(library_url, create=True, config=FAST) as library:
        library.add(docs)
    held_by(library_url, "embed")
    with Library.open(library_url, config=EMBEDS) as library:
        library.remember("The deploy key is in the vault.")
        assert len(counting.texts) == 1
        assert library.status().embedded == 1
        held_by(library_url, "embed", expires_at=0)
        assert library.embed().embedded == 50
        assert library.status().embedded == library.status().chunks


# ------------------------------------------------------------------------- pages, services, agents


def test_pages_are_read_again_after_their_own_interval(tmp_path: Path) -> None:
    """Issue: pages and sites by their own interval."""
    with site() as web:
        url = web.page("/a.md", b"# A\n\nOld.\n", content_type="text/markdown")
        library_url = str(tmp_path / "l.db")
        with Library.open(library_url, create=True, config=FAST) as library:
            library.add(url)
        web.page("/a.md", b"# A\n\nNew.\n", content_type="text/markdown")
        asked = len(web.asked)
        with watching(library_url) as watched:
            pass
        assert len(web.asked) == asked  # it is not a day old
        with Library.open(library_url, config=FAST) as library:
            (source,) = library.sources()
            library.store.note_checked([replace(source, checked_at=0)])
        with watching(library_url) as watched:
            watched.until("update 127.0.0.1:a.md")


def test_a_library_in_memory_is_not_watched() -> None:
    """Only this process could see it, and its threads could not share it."""
    with Library.open(":memory:", create=True) as library, pytest.raises(SettingError, match="in memory"):
        library.watch()


@pytest.mark.skipif(sys.platform != "linux", reason="launchd has a test of its own")
def test_the_service_is_installed_and_removed(tmp_path: Path, docs: Path) -> None:
    """Issue: `--install` makes a user service, prints what it wrote and how to start it."""
    place = tmp_path / "a b%.db"
    assert "No library" in run(tmp_path, "watch", "--install", "-L", place.name, code=1)[1]
    with Library.open(place, create=True, config=FAST) as library:
        library.add(docs)
    out, err = run(tmp_path, "watch", "--install", "-L", place.name)
    (unit,) = (tmp_path / ".config" / "systemd" / "user").iterdir()
    assert out.splitlines()[0] == f"Wrote {unit}"
    assert f"systemctl --user enable --now {unit.name}" in out
    assert "does not see QUIRE_EMBED_MODEL" in err
    lines = unit.read_text().splitlines()
    assert f'ExecStart="{sys.executable}" "-P" "-m" "quire" "watch"' in lines
    assert f"WorkingDirectory={tmp_path}" in lines
    assert f'Environment="QUIRE_LIBRARY={tmp_path}/a b%%.db"' in lines
    assert unit.stat().st_mode & 0o777 == 0o600
    link = unit.parent / "default.target.wants" / unit.name
    link.parent.mkdir()
    link.symlink_to(unit)
    out, _ = run(tmp_path, "watch", "--uninstall", "-L", place.name)
    assert out.splitlines()[0] == f"Removed {unit}"
    assert not unit.exists()
    assert not link.is_symlink()


def test_a_file_that_quire_did_not_write_stays(tmp_path: Path) -> None:
    """Issue: `--install` never overwrites a file that it did not write, and its own it replaces."""
    service = watch_service("/l.db", Path("/work"), "linux", {"HOME": str(tmp_path)})
    service.install()
    service.install()
    assert service.uninstall()
    assert not service.uninstall()
    service.path.write_text("[Unit]\n")
    for change in (service.install, service.uninstall):
        with pytest.raises(SettingError, match="was not written by Quire"):
            change()
    assert service.path.read_text() == "[Unit]\n"


def test_the_service_of_each_system(tmp_path: Path) -> None:
    """launchd gets a property list; a system without either is told so; no name begins another line."""
    home = {"HOME": str(tmp_path)}
    service = watch_service("/l.db", Path("/work"), "darwin", home)
    content = plistlib.loads(service.content)
    assert service.path == tmp_path / "Library" / "LaunchAgents" / f"{content['Label']}.plist"
    assert content["ProgramArguments"][1:] == ["-P", "-m", "quire", "watch"]
    assert content["EnvironmentVariables"] == {"QUIRE_LIBRARY": "/l.db"}
    assert service.starts == (f"launchctl bootstrap gui/{os.getuid()} '{service.path}'",)
    service.install()
    assert plistlib.loads(service.path.read_bytes()) == content
    assert service.uninstall()
    with pytest.raises(SettingError, match="systemd and launchd"):
        watch_service("/l.db", Path("/work"), "win32", home)
    with pytest.raises(SettingError, match="cannot be printed"):
        watch_service("/l\nExecStart=evil", Path("/work"), "linux", home)
    secret = watch_service("postgresql://me:pa$s@db/q", Path("/work"), "linux", home).content.decode()
    assert secret.count("pa$s@") == 1  # for the service, and not in what is shown of it
    assert "$$" not in secret


def test_a_server_watches_while_it_runs(tmp_path: Path) -> None:
    """Issue: `quire mcp --watch` does it in the same process; never for a read-only server."""
    mcp_client.some_docs(tmp_path)
    server = mcp_client.parameters(tmp_path, "--watch", QUIRE_WATCH_DEBOUNCE="0.05")
    with Library.open(tmp_path / "l.db", create=True, config=FAST) as library:
        library.add(tmp_path / "docs")

    async def work(client: Any) -> None:
        assert "swim" in await mcp_client.ask(client, "search", query="penguins")
        (tmp_path / "docs" / "faq.md").write_text("# FAQ\n\nPenguins waddle.\n")
        until = time.monotonic() + SECONDS
        while "waddle" not in await mcp_client.ask(client, "search", query="penguins"):
            assert time.monotonic() < until

    mcp_client.talk(server, work)
    assert "--read-only forbids" in run(tmp_path, "mcp", "--watch", "--read-only", code=2)[1]


@pytest.mark.parametrize(
    ("hours", "due"), [(0, False), (-23, False), (-25, True), (1, True), (24 * 365 * 50, True)]
)
def test_a_page_is_read_again_in_time_even_if_the_clock_was_set_back(hours: int, due: bool) -> None:
    """A check in the time to come was noted before the clock was set back; it counts for nothing."""
    assert is_due(time.time_ns() // 1_000_000 + hours * 3_600_000, 86_400.0) == due
