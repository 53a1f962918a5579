"""Backups while others write, and restoring them under programs that have the library open."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from quire.errors import LibraryError, NoResults
from quire.library import Library
from quire.stores.sqlite import SqliteStore
from quire.stores.sqlite.file import OpenFile
from tests import crash
from tests.commands import run
from tests.test_replaced import add_elsewhere
from tests.words import WORDS


def texts(library: Library) -> dict[str, str]:
    return {row.path: library.read(row.address).text for row in library.documents()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "library.db"


def test_a_backup_is_the_library(library_url: str, tmp_path: Path) -> None:
    with Library.open(library_url, create=True, config=WORDS) as library:
        for number in range(5):
            library.add(content=f"# Note {number}\n\nzebra{number}\n", path=f"{number}.md")
        library.remember("The zebra sleeps.")
        library.promote("0.md", "critical")
        library.backup(tmp_path / "b.db")
        with Library.open(tmp_path / "b.db", config=WORDS) as copy:
            assert texts(copy) == texts(library)
            assert next(row.promotion for row in copy.documents("content")) == "critical"
            assert copy.search("zebra3").results[0].path == "3.md"
            assert copy.store.check() == []
        with pytest.raises(LibraryError, match="exists already"):
            library.backup(tmp_path / "b.db")
    assert not list(tmp_path.glob("*.part-*"))


def test_a_backup_holds_one_moment_while_others_write(place: Path, tmp_path: Path) -> None:
    """Two documents are always written together, so a backup has as many of one kind as of the other."""
    stop = threading.Event()

    def write() -> None:
        with Library.open(place, config=WORDS) as library:
            number = 0
            while not stop.is_set():
                number += 1
                for name in "ab":
                    (tmp_path / "docs" / f"{name}.md").write_text(f"# {name}\n\nversion{number}\n")
                library.refresh()

    (tmp_path / "docs").mkdir()
    for name in "ab":
        (tmp_path / "docs" / f"{name}.md").write_text(f"# {name}\n\nversion0\n")
    with Library.open(place, create=True, config=WORDS) as library:
        library.add(tmp_path / "docs")
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(5):
                library.backup(tmp_path / f"{number}.db")
        finally:
            stop.set()
            writer.join()
    for number in range(5):
        with Library.open(tmp_path / f"{number}.db", config=WORDS) as copy:
            assert copy.store.check() == []
            assert len(copy.documents()) == 2


def test_restoring_keeps_what_was_there_and_open_programs_go_on(place: Path, tmp_path: Path) -> None:
    with Library.open(place, create=True, config=WORDS) as library:
        library.add(content="# Old\n\nokapi\n", path="old.md")
        library.backup(tmp_path / "b.db")
        library.add(content="# New\n\nquokka\n", path="new.md")
        with Library.open(place, config=WORDS) as other:
            assert len(other.documents()) == 2
            kept = Library.restore(place, tmp_path / "b.db")
            assert kept is not None
            for opened in (library, other):
                assert list(texts(opened)) == ["old.md"]
            other.add(content="# Later\n\nnumbat\n", path="later.md")
        assert sorted(texts(library)) == ["later.md", "old.md"]
    with Library.open(kept, config=WORDS) as before:
        assert sorted(texts(before)) == ["new.md", "old.md"]
    assert Library.restore(tmp_path / "elsewhere.db", kept) is None


RESTORE = """
import sys
from quire.library import Library
Library.restore(sys.argv[1], sys.argv[2])
"""


def test_a_write_that_ends_while_a_backup_is_restored_takes_nothing_from_the_backup(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checkpoint does not touch what another process has written to the restored library since."""
    backup, is_ours = tmp_path / "b.db", SqliteStore._is_ours

    def restored_meanwhile(store: SqliteStore, file: OpenFile) -> bool:
        monkeypatch.setattr(SqliteStore, "_is_ours", is_ours)
        subprocess.run([sys.executable, "-c", RESTORE, place, backup], check=True, cwd=crash.ROOT)
        reader.append(sqlite3.connect(place, isolation_level=None))
        reader[0].execute("BEGIN")
        reader[0].execute("SELECT count(*) FROM documents").fetchone()
        add_elsewhere(place, "after.md")  # stays in the log, because somebody reads
        reader[0].execute("ROLLBACK")
        return is_ours(store, file)

    reader = list[sqlite3.Connection]()
    with Library.open(place, create=True, config=WORDS) as library:
        library.add(content="# Old\n\nokapi\n", path="old.md")
        library.backup(backup)
        monkeypatch.setattr(SqliteStore, "_is_ours", restored_meanwhile)
        with pytest.raises(LibraryError, match="was replaced"):
            library.add(content="# New\n\nquokka\n", path="new.md")
        assert sorted(texts(library)) == ["after.md", "old.md"]
    reader[0].close()


def test_what_is_damaged_is_not_restored_and_is_replaced(place: Path, tmp_path: Path) -> None:
    with Library.open(place, create=True, config=WORDS) as library:
        library.add(content="# Old\n\nokapi\n", path="old.md")
        library.backup(tmp_path / "b.db")
    bad = tmp_path / "bad.db"
    bad.write_bytes((tmp_path / "b.db").read_bytes()[:8192])
    with pytest.raises(LibraryError):
        Library.restore(place, bad)
    with pytest.raises((LibraryError, NoResults)):
        Library.restore(place, tmp_path / "none.db")
    with Library.open(place, config=WORDS) as library:
        assert list(texts(library)) == ["old.md"]
    place.write_bytes(b"SQLite format 3\0" + bytes(5000))
    kept = Library.restore(place, tmp_path / "b.db")
    assert kept is not None
    assert Path(kept).stat().st_size == 5016
    with Library.open(place, config=WORDS) as library:
        assert list(texts(library)) == ["old.md"]


def test_a_server_restores_its_own(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="quire copy"):
        Library.restore("postgresql://somebody@localhost/x", tmp_path / "b.db")


def test_backing_up_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nokapi\n")
    run(tmp_path, "add", "a.md")
    assert "b.db" in run(tmp_path, "backup", "b.db")[1]
    assert "exists already" in run(tmp_path, "backup", "b.db", code=4)[1]
    run(tmp_path, "remove", run(tmp_path, "list")[0].split()[0])
    out = run(tmp_path, "restore", "b.db")[1]
    assert "before-restore" in out
    assert "A" in run(tmp_path, "list")[0]
    assert run(tmp_path, "restore", "nothing.db", code=1)[0] == ""


def test_a_folder_is_neither_a_library_nor_a_backup(tmp_path: Path) -> None:
    for call in (lambda: Library.open(tmp_path), lambda: Library.restore(tmp_path / "l.db", tmp_path)):
        with pytest.raises(LibraryError, match="is a folder"):
            call()
    (tmp_path / "notes.txt").write_text("mine")
    with Library.open(tmp_path / "l.db", create=True) as library:
        library.backup(tmp_path / "b.db")
    with pytest.raises(LibraryError, match="is not a library"):
        Library.restore(tmp_path / "notes.txt", tmp_path / "b.db")
    assert (tmp_path / "notes.txt").read_text() == "mine"
