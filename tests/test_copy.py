"""Copying a library."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.errors import LibraryError
from quire.library import Library
from quire.stores.sqlite import SqliteStore
from tests.words import WORDS

GUIDE = "# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n"


def test_a_copy_is_the_same_library(tmp_path: Path) -> None:
    """Issue: `quire copy --to`, verified by counts and checksums; ids, times, tags and vectors arrive."""
    with Library.open(tmp_path / "a.db", create=True) as library:
        library.add(content=GUIDE, path="guide.md", collection="docs")
        library.add(content="# Other\n\nPenguins swim.\n", path="other.md", collection="docs")
        library.promote("docs:guide.md", "important")
        done = library.copy(tmp_path / "b.db")
        assert (done.documents, done.unchanged, done.vectors) == (2, 0, 3)
        assert library.copy(tmp_path / "b.db").unchanged == 2
        with Library.open(tmp_path / "b.db") as copy:
            assert [row.id for row in copy.documents()] == [row.id for row in library.documents()]
            assert copy.documents()[0].promotion == "important"
            assert copy.documents()[0].created_at == library.documents()[0].created_at
            assert copy.source("docs:guide.md") == GUIDE.encode()
            assert copy.status() == library.status()
            assert copy.search("birds in water").results == library.search("birds in water").results
            assert copy.store.check() == []


def test_only_what_changed_is_copied_again(tmp_path: Path) -> None:
    """Issue: resumable."""
    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        for number in range(5):
            library.add(content=f"# {number}\n\nText.\n", path=f"{number}.md")
        library.copy(tmp_path / "b.db")
        library.add(content="# 3\n\nOther text.\n", path="3.md")
        done = library.copy(tmp_path / "b.db")
        assert (done.documents, done.unchanged) == (1, 4)
        with Library.open(tmp_path / "b.db") as copy:
            assert copy.source("content:3.md") == b"# 3\n\nOther text.\n"


def test_an_interrupted_copy_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: resumable; what arrived before the interruption is whole."""
    monkeypatch.setattr("quire.copying._BATCH_BYTES", 1)
    written = list[int]()
    write = SqliteStore.write

    def failing(self: SqliteStore, batch: object, remove: object = ()) -> object:
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(1)
        return write(self, batch, remove)  # type: ignore[arg-type]

    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        for number in range(5):
            library.add(content=f"# {number}\n\nText.\n", path=f"{number}.md")
        monkeypatch.setattr(SqliteStore, "write", failing)
        with pytest.raises(KeyboardInterrupt):
            library.copy(tmp_path / "b.db")
        monkeypatch.setattr(SqliteStore, "write", write)
        with Library.open(tmp_path / "b.db") as copy:
            assert (len(copy.documents()), copy.store.check()) == (3, [])
        done = library.copy(tmp_path / "b.db")
        assert (done.documents, done.unchanged) == (2, 3)


def test_what_arrives_damaged_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: verified by checksums."""
    with Library.open(tmp_path / "a.db", create=True, config=WORDS) as library:
        library.add(content=GUIDE, path="guide.md")
        library.copy(tmp_path / "b.db")
        source = SqliteStore.source
        monkeypatch.setattr(
            SqliteStore,
            "source",
            lambda self, row: source(self, row)[::-1] if self.path.endswith("b.db") else source(self, row),
        )
        with pytest.raises(LibraryError, match=r"content:guide\.md is not what was sent"):
            library.copy(tmp_path / "b.db")
