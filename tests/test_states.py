"""Libraries in every state they can be found in: killed, full, read-only, foreign, shared."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quire.errors import LibraryError, NoResults
from quire.library import Library
from quire.stores import Store
from quire.stores.postgres import PostgresStore
from quire.stores.sqlite import SqliteStore
from quire.stores.sqlite import file as files
from tests import crash
from tests.words import WORDS

NOBODY = 65534
JOURNAL = bytes.fromhex("d9d505f920a163d7 00000000 613b8f1d 00000000 00000200 00001000").ljust(512, b"\0")


def python(program: str, *args: str | Path, nobody: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, as a user who may write only what all may."""
    user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        return subprocess.run(
            [sys.executable, "-c", program, *args],
            capture_output=True,
            text=True,
            check=False,
            cwd=crash.ROOT,
            timeout=50,
            **(user if nobody and os.geteuid() == 0 else {}),
        )
    except PermissionError:  # root keeps this Python, or this checkout, to itself
        pytest.skip("another user may not run this Python")


def start(library: str | Path, folder: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Index a folder in a process of its own."""
    command = [sys.executable, "-m", "tests.crash", str(library), str(folder)]
    return subprocess.Popen[bytes](command, cwd=crash.ROOT, **{"stdout": subprocess.DEVNULL, **options})


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file; not of -shm, which holds locks and nothing that is kept."""
    files = [file for file in folder.iterdir() if not file.name.endswith("-shm")]
    return {file.name: file.read_bytes() for file in files}


def sqlite_file(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def as_left_by_a_kill(path: Path, *statements: str) -> None:
    """A database in WAL mode whose last writer did not live to close it."""
    with tempfile.TemporaryDirectory() as place:
        original = Path(place, path.name)
        if path.exists():
            shutil.copy(path, original)
        with closing(sqlite3.connect(original, isolation_level=None)) as db:
            for statement in ("PRAGMA journal_mode = WAL", *statements):
                db.execute(statement)
            shutil.copytree(place, path.parent, dirs_exist_ok=True)


def add(library: Library, text: str, path: str = "a.md") -> None:
    library.add(content=text, path=path, collection="c")


# ---------------------------------------------------------------------------------------------- killed


def test_what_is_acknowledged_survives_ten_kills_and_nothing_is_half_written(tmp_path: Path) -> None:
    """DESIGN §1 (5): kill -9 while adding, updating, renaming and pruning; then it goes on and finishes."""
    rng = Random(5)
    folder = crash.grow(tmp_path / "docs", 300, rng)
    at_work = crash.campaign(tmp_path, folder, crash.KILLS, rng)
    assert at_work >= crash.KILLS // 2


@pytest.mark.parametrize("log", [None, b"", b"a header that was never synced".ljust(32)])
def test_a_library_whose_making_was_cut_short_by_the_power_is_made_again(
    tmp_path: Path, log: bytes | None
) -> None:
    """States: a page that did not reach the disk, or the deletion of the journal, and a new log."""
    path, journal = tmp_path / "library.db", tmp_path / "library.db-journal"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    journal.write_bytes(JOURNAL)
    if log is None:
        path.write_bytes(bytes(4096))
    else:
        (tmp_path / "library.db-wal").write_bytes(log)
    with Library.open(path, create=True, config=WORDS) as library:
        add(library, "# A\n\ntext\n")
        assert library.store.check() == []
    assert not journal.exists()


@pytest.mark.parametrize("history", ["", "12:ab\0\0\0\0 \0\0 9:ab", "x 1:ab"])
def test_a_file_into_which_a_log_was_folded_only_in_part_is_read_with_its_log(
    tmp_path: Path, history: str
) -> None:
    """States: the power failed in a checkpoint; the log has all of it."""
    path, kept = tmp_path / "library.db", tmp_path / "kept.db"
    with Library.open(path, create=True, config=WORDS) as library:
        add(library, "# A\n\ntext\n")
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM documents").fetchone()
            add(library, "# B\n\ntext\n", "b.md")
            for ending in ("", "-wal"):
                shutil.copy(f"{path}{ending}", f"{kept}{ending}")
    log = tmp_path / "kept.db-wal"
    aside = log.rename(tmp_path / "aside")
    with closing(sqlite3.connect(kept, isolation_level=None)) as db:
        db.execute("UPDATE facts SET value = ? WHERE name = 'history'", (history,))
    aside.rename(log)
    with Library.open(kept, config=WORDS) as library:
        assert [row.path for row in library.documents()] == ["a.md", "b.md"]
        add(library, "# C\n\ntext\n", "c.md")
        assert library.store.check() == []


def test_no_process_outlives_an_indexer_that_was_killed(tmp_path: Path) -> None:
    """States: kill -9 leaves nothing behind, nor running."""
    folder = crash.grow(tmp_path / "docs", 300, Random(1))
    child = start(tmp_path / "library.db", folder, stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    with child.stdout as out:
        assert out.readline().startswith(b"{")  # its workers are at work
        child.kill()
        child.wait()
        ended = ends_within(out.fileno(), 3)
        if not ended:
            os.killpg(child.pid, signal.SIGKILL)
    assert ended, "a worker still holds the pipe"


def ends_within(pipe: int, seconds: float) -> bool:
    """Whether every process that could write to a pipe ends in time."""
    while select.select([pipe], [], [], seconds)[0]:
        if not os.read(pipe, 65536):
            return True
    return False


# ------------------------------------------------------------------------------------------------ full

LIMITED = """
import resource, sys
from tests import crash
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)  # Python itself ignores SIGXFSZ
sys.exit(crash.main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    "limit",
    [
        0,
        *(1_000, 30_000, 100_000, 300_000),
    ],
)
def test_a_full_disk_is_reported_and_the_next_run_succeeds(tmp_path: Path, limit: int) -> None:
    """States: a file-size limit rolls the transaction back, whatever was being written."""
    folder, library = crash.grow(tmp_path / "docs", 120, Random(2)), tmp_path / "library.db"
    done = python(LIMITED, str(limit), library, folder)
    assert done.returncode == 1, done
    assert done.stderr.splitlines() == [
        line for line in [done.stderr.strip()] if "nothing was written" in line
    ]
    acknowledged = crash._acknowledged(done.stdout.encode())
    crash.check(library, folder, acknowledged)
    with Library.open(library, create=True, config=WORDS) as opened:
        assert opened.status().documents == len(acknowledged)
        assert opened.add(folder).documents == 120 - len(acknowledged)
        assert opened.store.check() == []


def test_a_full_disk_keeps_the_old_version_of_every_document(tmp_path: Path) -> None:
    """D rulings: a write that fails leaves the old version searchable."""
    folder, library = crash.grow(tmp_path / "docs", 40, Random(3)), tmp_path / "library.db"
    with Library.open(library, create=True, config=WORDS) as opened:
        opened.add(folder)
        before = opened.documents()
    for file in folder.rglob("*.md"):
        file.write_text("# Larger\n\n" + "new words here. " * 3000, "utf-8")
    assert python(LIMITED, str(library.stat().st_size), library, folder).returncode == 1
    with Library.open(library, config=WORDS) as opened:
        assert opened.documents() == before
        assert {result.path for result in opened.search("topic007").results} == {"part0/doc007.md"}
        assert opened.store.check() == []


FULL = """
import os, resource, subprocess, sys
from pathlib import Path
from quire.errors import LibraryError
from quire.library import Library
from tests.words import WORDS

def limit():  # too little for the files beside a library
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)

def fill():
    rest = place / "rest"
    with rest.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return rest.unlink

def add(library, path):
    try:
        library.add(content="# New\\n\\n" + "zebra words. " * 3000, path=path, collection="c")
    except LibraryError as error:
        print(error)

place, is_mounted = Path(sys.argv[1]), sys.argv[2] == "mounted"
if is_mounted and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", place]).returncode:
    sys.exit(77)
with Library.open(place / "l.db", create=True, config=WORDS) as library:
    add(library, "old.md")
for is_open in (False, True):
    if not is_open:
        end = (fill if is_mounted else limit)()
    with Library.open(place / "l.db", config=WORDS) as library:
        if is_open:
            end = (fill if is_mounted else limit)()
        print(*{result.path for result in library.search("zebra").results})
        print(len(library.read("c:old.md").text), library.store.check())
        add(library, "new.md")
        print(library.status().documents)
        end()
        add(library, "new.md")
        print(library.status().documents, library.store.check())
        library.remove("c:new.md")
"""


@pytest.mark.parametrize("how", ["limited", "mounted"])
def test_a_library_on_a_full_disk_is_searched_and_written_once_there_is_room(
    tmp_path: Path, how: str
) -> None:
    """BAD_INPUTS: full disk → reading works, the cause is named; also if it was full before."""
    space = ["unshare", "-rm"] if how == "mounted" else []
    command = [*space, sys.executable, "-c", FULL, str(tmp_path), how]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=crash.ROOT, timeout=50
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode and ("unshare" in done.stderr or done.returncode == 77):
        pytest.skip("no file system may be mounted here")
    why = "the disk is full. Make room, then do it again"
    if how == "limited":
        why = "disk I/O error: the disk fails, or files may not be larger (ulimit -f)"
    before = [f"{tmp_path}/l.db: cannot be written to: {why}"]
    meanwhile = [f"{tmp_path}/l.db: nothing was written: {why}"]
    found = ["old.md", "39007 []"]
    assert done.stdout.splitlines() == [*found, *before, "1", "2 []", *found, *meanwhile, "1", "2 []"], done


# ------------------------------------------------------------------------------------------- read-only

READ = """
import sys
from quire.errors import LibraryError
from quire.library import Library
with Library.open(sys.argv[1]) as library:
    print(*[result.path for result in library.search("zebra").results])
    try:
        library.add(content="# New", path="new.md")
    except LibraryError as error:
        print(error)
    print(library.store.check())
"""


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A folder that every user can reach; skips where root cannot become another user."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        if python("import quire.library", nobody=True).returncode:
            pytest.skip("another user cannot import quire from here")
        (place / "shelf").mkdir()
        yield place / "shelf"
        (place / "shelf").chmod(0o755)


def forbid(shelf: Path, file_mode: int, folder_mode: int) -> None:
    for file in shelf.iterdir():
        file.chmod(file_mode)
    shelf.chmod(folder_mode)


MODES = {"file": (0o444, 0o777), "folder": (0o666, 0o555), "both": (0o444, 0o555)}


@pytest.mark.parametrize("modes", MODES.values(), ids=MODES)
def test_a_read_only_library_is_searched_and_adding_says_why_not(shelf: Path, modes: tuple[int, int]) -> None:
    """States: read-only file or folder."""
    with Library.open(shelf / "library.db", create=True, config=WORDS) as library:
        add(library, "# A\n\nA zebra.\n")
    forbid(shelf, *modes)
    before = contents(shelf)["library.db"]
    done = python(READ, shelf / "library.db", nobody=True)
    found, why, _ = done.stdout.splitlines() or ["", done.stderr, ""]
    assert found == "a.md"
    assert re.fullmatch(rf"{re.escape(str(shelf))}/library\.db: .*read-?only.*", why)
    assert contents(shelf)["library.db"] == before


@pytest.mark.parametrize(
    "modes",
    [
        MODES["file"],
        MODES["folder"],
        MODES["both"],
    ],
    ids=MODES,
)
def test_checking_a_sound_read_only_library_finds_nothing_wrong(shelf: Path, modes: tuple[int, int]) -> None:
    """States: read-only is not damaged."""
    with Library.open(shelf / "library.db", create=True, config=WORDS) as library:
        add(library, "# A\n\nA zebra.\n")
    forbid(shelf, *modes)
    assert python(READ, shelf / "library.db", nobody=True).stdout.endswith("\n[]\n")


def killed(shelf: Path) -> None:
    """A library as kill -9 leaves it, its only document still in the write-ahead log."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "library.db")
        Library.open(path, create=True, config=WORDS).close()
        with Library.open(path, config=WORDS) as library, closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")  # while it reads, nothing is folded into the file
            reader.execute("SELECT count(*) FROM documents").fetchone()
            add(library, "# A\n\nA zebra.\n")
            shutil.copytree(place, shelf, dirs_exist_ok=True)


@pytest.mark.parametrize("modes", MODES.values(), ids=MODES)
def test_a_killed_library_that_became_read_only_has_what_was_acknowledged(
    shelf: Path, modes: tuple[int, int]
) -> None:
    """DESIGN §1 (5): the write-ahead log counts, also where it cannot be folded in."""
    killed(shelf)
    forbid(shelf, *modes)
    done = python(READ, shelf / "library.db", nobody=True)
    assert done.stdout.startswith("a.md\n"), done.stderr


def test_a_write_ahead_log_that_cannot_be_read_is_never_passed_over_in_silence(shelf: Path) -> None:
    """DESIGN §1 (5): a copy without its -shm in a read-only folder is read whole, or refused."""
    killed(shelf)
    (shelf / "library.db-shm").unlink()
    forbid(shelf, *MODES["both"])
    done = python(READ, shelf / "library.db", nobody=True)
    assert done.stdout.startswith("a.md\n") or "LibraryError" in done.stderr


def test_a_user_who_may_not_write_sees_what_a_writer_has_just_added(shelf: Path) -> None:
    """States: read-only, while another user's process has the library open."""
    with Library.open(shelf / "library.db", create=True, config=WORDS) as library:
        add(library, "# A\n\nA zebra.\n")
        forbid(shelf, 0o644, 0o755)
        assert python(READ, shelf / "library.db", nobody=True).stdout.startswith("a.md\n")
        add(library, "# B\n\nA zebra, a zebra.\n", "b.md")
        assert python(READ, shelf / "library.db", nobody=True).stdout.startswith("b.md a.md\n")


MAKE = """
import sys
from quire.errors import LibraryError
from quire.library import Library
try:
    Library.open(sys.argv[1], create=True)
except LibraryError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["new.db", "folder/new.db"])
def test_a_library_cannot_be_made_in_a_read_only_folder_and_the_error_names_it(
    shelf: Path, name: str
) -> None:
    """States: writing says why not."""
    shelf.chmod(0o555)
    done = python(MAKE, shelf / name, nobody=True)
    assert done.stdout.startswith(f"{shelf / name}: "), done.stderr
    assert list(shelf.iterdir()) == []


# --------------------------------------------------------------------------------------------- foreign


def someone_elses(path: Path) -> None:
    sqlite_file(path, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")


def someone_elses_in_wal_mode(path: Path) -> None:
    sqlite_file(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)")


def someone_elses_after_a_kill(path: Path) -> None:
    as_left_by_a_kill(path, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")


def someone_elses_by_application_id(path: Path) -> None:
    sqlite_file(path, "PRAGMA application_id = 7")


def someone_elses_by_version(path: Path) -> None:
    sqlite_file(path, "PRAGMA user_version = 1")


def newer(path: Path) -> None:
    Library.open(path, create=True, config=WORDS).close()
    sqlite_file(path, "PRAGMA user_version = 999")


def newer_with_a_rollback_journal(path: Path) -> None:
    Library.open(path, create=True, config=WORDS).close()
    sqlite_file(path, "PRAGMA journal_mode = DELETE", "PRAGMA user_version = 999")


def newer_after_a_kill(path: Path) -> None:
    newer(path)
    as_left_by_a_kill(path, "PRAGMA application_id = 0x51756972", "PRAGMA user_version = 999")


def text(size: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_text("My only shopping list. " * 1000)
        os.truncate(path, size)

    make.__name__ = f"text of {size} bytes"
    return make


STRANGERS = [
    someone_elses,
    someone_elses_in_wal_mode,
    someone_elses_after_a_kill,
    someone_elses_by_application_id,
    someone_elses_by_version,
    newer,
    newer_with_a_rollback_journal,
    newer_after_a_kill,
    text(1),
    *map(text, (2, 100, 511, 5000)),
]


@pytest.mark.parametrize("create", [False, True], ids=["open", "create"])
@pytest.mark.parametrize("make", STRANGERS, ids=lambda make: make.__name__)
def test_what_is_not_a_library_of_ours_is_refused_and_left_untouched(
    tmp_path: Path, make: Callable[[Path], None], create: bool
) -> None:
    """States: not SQLite, another program's, or of a newer schema."""
    make(tmp_path / "some.db")
    before = contents(tmp_path)
    with pytest.raises(LibraryError, match=r"some\.db"):
        Library.open(tmp_path / "some.db", create=create, config=WORDS).close()
    assert contents(tmp_path) == before


def test_a_newer_schema_is_named_with_what_to_do(tmp_path: Path) -> None:
    """HABITS 8: what, where, and what to do next."""
    newer(tmp_path / "some.db")
    with pytest.raises(LibraryError, match=r"schema 999.*install a newer Quire"):
        Library.open(tmp_path / "some.db", config=WORDS)


def test_an_absent_library_is_told_with_the_command_that_makes_one(tmp_path: Path) -> None:
    """HABITS 8: No library at PATH. Make one with: quire add ./docs"""
    path = tmp_path / "none.db"
    with pytest.raises(NoResults) as told:
        Library.open(path, config=WORDS)
    assert str(told.value) == f"No library at {path}. Make one with: quire add ./docs"
    assert not path.exists()


def test_an_empty_file_becomes_a_library_when_asked(tmp_path: Path) -> None:
    """States: a file of no bytes is nobody's."""
    path = tmp_path / "library.db"
    path.touch()
    with pytest.raises(NoResults):
        Library.open(path, config=WORDS)
    assert path.stat().st_size == 0
    with Library.open(path, create=True, config=WORDS) as library:
        add(library, "# A\n\nA zebra.\n")
        assert library.store.check() == []


@pytest.mark.parametrize(
    "name",
    [
        "file/library.db",
        "file/folder/library.db",
        "folder",
    ],
)
def test_a_path_that_cannot_be_a_library_is_a_library_error(tmp_path: Path, name: str) -> None:
    """States: every reason not to open is told as a LibraryError."""
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(LibraryError):
        Library.open(tmp_path / name, create=True, config=WORDS)


def test_a_library_of_today_reopens_as_it_was(library_url: str, tmp_path: Path) -> None:
    """States: nothing is migrated that need not be."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        add(library, "# A\n\nA zebra.\n")
        documents, status = library.documents(), library.status()
    before = contents(tmp_path)
    with Library.open(library_url, create=True, config=WORDS) as library:
        assert (library.documents(), library.status()) == (documents, status)
        assert library.store.check() == []
    assert contents(tmp_path) == before


# ---------------------------------------------------------------------------------------------- shared


def test_two_writers_both_finish_while_ten_readers_see_only_whole_documents(
    library_url: str, tmp_path: Path
) -> None:
    """States: two writers; DESIGN §1 (4)."""
    library = library_url
    folders = [crash.grow(tmp_path / name, 150, Random(name)) for name in ("one", "two")]
    with Library.open(library, create=True, config=WORDS) as opened:
        add(opened, "# A\n\nA zebra.\n")
    writers = [start(library, folder, stderr=subprocess.PIPE) for folder in folders]

    def read(opened: Library, rng: Random) -> None:
        folder, number = rng.choice(folders), rng.randrange(150)
        wanted = f"part{number % 7}/doc{number:03}.md"
        found = opened.search(f"topic{number:03}", collection=None, limit=5).results
        for result in found:
            assert result.path == wanted
            assert {result.snippet[a:b] for a, b in result.highlights} == {f"topic{number:03}"}
        if any(result.collection == folder.name for result in found):
            assert opened.read(f"{folder.name}:{wanted}").text == (folder / wanted).read_text("utf-8")

    readings = read_meanwhile(library, read, lambda: [writer.communicate(timeout=50) for writer in writers])
    assert [writer.returncode for writer in writers] == [0, 0]
    assert readings > 10
    with Library.open(library, config=WORDS) as opened:
        assert opened.status().collections == {"c": 1, "one": 150, "two": 150}
        assert opened.store.check() == []
        if isinstance(opened.store, SqliteStore):
            crash.assert_whole(opened.store, opened.documents())


def read_meanwhile(library: str, read: Callable[[Library, Random], None], write: Callable[[], object]) -> int:
    """Ten threads read until a write is done; how often they did. Raises what any of them raised."""
    done, problems, readings = threading.Event(), list[BaseException](), list[int]()

    def reader(seed: int) -> None:
        rng = Random(seed)
        try:
            with Library.open(library, config=WORDS) as opened:
                while not done.is_set():
                    read(opened, rng)
                    readings.append(seed)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=reader, args=(seed,)) for seed in range(10)]
    for thread in threads:
        thread.start()
    try:
        write()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    for problem in problems:
        raise problem
    return len(readings)


SHORT, LONG = crash.document("v1 zebra", 3, Random(1)), crash.document("v2 zebra", 11, Random(2))


def read_whole(library: Library) -> None:
    assert library.read("c:a.md").text in (SHORT, LONG)


def read_section(library: Library) -> None:
    text = library.read("c:a.md", "Part 1").text
    assert any(text in whole and text.startswith("## Part 1\n") for whole in (SHORT, LONG))


def read_last_section(library: Library) -> None:
    try:
        text = library.read("c:a.md", "Part 9").text
    except NoResults:  # SHORT has no Part 9
        return
    assert text.startswith("## Part 9\n")
    assert text in LONG


def search_words(library: Library) -> None:
    results = library.search("zebra").results
    assert results
    assert any(all(is_of(result, whole) for result in results) for whole in (SHORT, LONG))


def is_of(result: Any, whole: str) -> bool:
    """Whether span, snippet and title of a result are of one version."""
    passage = whole[result.start : result.end]
    shown = result.snippet.strip("… ")
    return shown in " ".join(passage.split()) and f"# {result.title}\n" in whole


READS = [read_whole, read_section, read_last_section, search_words]


@pytest.mark.parametrize("read", READS, ids=lambda read: read.__name__)
def test_a_document_rewritten_between_any_two_steps_of_a_reader_is_seen_old_or_new(
    library_url: str, read: Callable[[Library], None]
) -> None:
    """DESIGN §1 (4): a reader sees a document's old version or its new one, whole, never a mix."""
    with (
        Library.open(library_url, create=True, config=WORDS) as writer,
        Library.open(library_url, config=WORDS) as reader,
    ):
        for before, after in ((SHORT, LONG), (LONG, SHORT)):
            step, steps = 0, 1
            while step < steps:
                add(writer, before)
                steps = read_with(reader, read, at=step, do=partial(add, writer, after))
                step += 1
            assert step > 1


def read_with(reader: Library, read: Callable[[Library], None], *, at: int, do: Callable[[], None]) -> int:
    """Read, doing something just before the nth statement that the reader runs; how many it ran."""
    steps = 0

    def before_each(_: str) -> None:
        nonlocal steps
        if steps == at:
            do()
        steps += 1

    with traced(reader.store, before_each):
        read(reader)
    return steps


@contextmanager
def traced(store: Store, before_each: Callable[[str], None]) -> Iterator[None]:
    """Something is called with each statement of a reader, before it is run."""
    if isinstance(store, SqliteStore):
        store.db.set_trace_callback(before_each)
        yield
        store.db.set_trace_callback(None)
        return
    assert isinstance(store, PostgresStore)
    rows = store.db.rows

    def traced_rows(sql: str, args: Any = ()) -> list[tuple[Any, ...]]:
        before_each(sql)
        return rows(sql, args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.db, "rows", traced_rows)
        yield


def test_ten_readers_of_a_document_that_is_rewritten_all_the_time_see_it_whole(library_url: str) -> None:
    """DESIGN §1 (4), with real threads and no moment arranged."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        add(library, SHORT)

        def rewrite() -> None:
            until = time.monotonic() + 2
            while time.monotonic() < until:
                add(library, LONG)
                add(library, SHORT)

        readings = read_meanwhile(library_url, lambda opened, rng: rng.choice(READS)(opened), rewrite)
        assert library.store.check() == []
    assert readings > 10


def test_many_who_make_the_same_library_at_once_all_get_it(tmp_path: Path) -> None:
    """States: two writers, from the very first moment."""
    problems: list[BaseException] = []

    def make(path: Path, ready: threading.Barrier) -> None:
        ready.wait()
        try:
            Library.open(path, create=True, config=WORDS).close()
        except BaseException as problem:
            problems.append(problem)

    for number in range(40):
        ready = threading.Barrier(4)
        path = tmp_path / f"{number}.db"
        threads = [threading.Thread(target=make, args=(path, ready)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []


def test_making_a_library_waits_for_another_who_is_making_it(tmp_path: Path) -> None:
    """States: two writers, from the very first moment; both finish."""
    path = tmp_path / "library.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, other.execute, ["ROLLBACK"])
        release.start()
        try:
            Library.open(path, create=True, config=WORDS).close()
        finally:
            release.join()


def test_a_library_made_by_another_between_any_two_steps_of_making_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States: two writers, one of whom is first."""
    monkeypatch.setattr(files, "BUSY_SECONDS", 0.05)  # the other cannot wait: we are in its way
    connect, step, steps, made = sqlite3.connect, 0, 1, list[int]()
    while step < steps:
        path, steps, at = tmp_path / f"{step}.db", 0, step

        def before_each(_: str, path: Path = path, at: int = at) -> None:
            nonlocal steps
            steps += 1  # before an error, which SQLite swallows
            if steps == at + 1:
                with monkeypatch.context() as plain:
                    plain.setattr(sqlite3, "connect", connect)
                    Library.open(path, create=True, config=WORDS).close()
                    made.append(at)

        def watched(*args: Any, **options: Any) -> sqlite3.Connection:
            db: sqlite3.Connection = connect(*args, **options)
            db.set_trace_callback(before_each)
            return db

        monkeypatch.setattr(sqlite3, "connect", watched)
        Library.open(path, create=True, config=WORDS).close()
        step += 1 if step < 20 else 31  # later steps are in one transaction
    assert len(made) > 3
