"""Copying a library to another of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from quire.errors import LibraryError
from quire.library import Library
from quire.stores import Prepared, Store
from tests.words import WORDS

GUIDE = "# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n"


def test_a_copy_is_the_same_library(fresh_url: Callable[[], str]) -> None:
    """Issue: `quire copy --to`, verified by counts and checksums; ids, times, tags and vectors arrive."""
    target = fresh_url()
    with Library.open(fresh_url(), create=True) as library:
        library.add(content=GUIDE, path="guide.md", collection="docs")
        library.add(content="# Other\n\nPenguins swim.\n", path="other.md", collection="docs")
        library.promote("docs:guide.md", "important")
        done = library.copy(target)
        assert (done.documents, done.unchanged, done.vectors) == (2, 0, 3)
        assert library.copy(target).unchanged == 2
        with Library.open(target) as copy:
            assert [row.id for row in copy.documents()] == [row.id for row in library.documents()]
            assert copy.documents()[0].promotion == "important"
            assert copy.documents()[0].created_at == library.documents()[0].created_at
            assert copy.source("docs:guide.md") == GUIDE.encode()
            assert copy.status() == library.status()
            assert copy.search("birds in water").results == library.search("birds in water").results
            assert copy.store.check() == []


def test_only_what_changed_is_copied_again(fresh_url: Callable[[], str]) -> None:
    """Issue: resumable."""
    target = fresh_url()
    with Library.open(fresh_url(), create=True, config=WORDS) as library:
        for number in range(5):
            library.add(content=f"# {number}\n\nText.\n", path=f"{number}.md")
        library.copy(target)
        library.add(content="# 3\n\nOther text.\n", path="3.md")
        done = library.copy(target)
        assert (done.documents, done.unchanged) == (1, 4)
        with Library.open(target) as copy:
            assert copy.source("content:3.md") == b"# 3\n\nOther text.\n"


def test_an_interrupted_copy_goes_on(fresh_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: resumable; what arrived before the interruption is whole."""
    monkeypatch.setattr("quire.copying.BATCH_BYTES", 1)
    target = fresh_url()
    with Library.open(fresh_url(), create=True, config=WORDS) as library:
        for number in range(5):
            library.add(content=f"# {number}\n\nText.\n", path=f"{number}.md")
        kind, written = type(library.store), list[int]()
        write = kind.write

        def failing(self: Store, batch: Sequence[Prepared]) -> list[bool]:
            if len(written) == 3:
                raise KeyboardInterrupt
            written.append(1)
            return write(self, batch)

        monkeypatch.setattr(kind, "write", failing)
        with pytest.raises(KeyboardInterrupt):
            library.copy(target)
        monkeypatch.setattr(kind, "write", write)
        with Library.open(target) as copy:
            assert (len(copy.documents()), copy.store.check()) == (3, [])
        done = library.copy(target)
        assert (done.documents, done.unchanged) == (2, 3)


def test_what_arrives_damaged_is_noticed(
    fresh_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: verified by checksums."""
    target = fresh_url()
    with Library.open(fresh_url(), create=True, config=WORDS) as library:
        library.add(content=GUIDE, path="guide.md")
        library.copy(target)
        kind, sent = type(library.store), library.store
        source = kind.source
        monkeypatch.setattr(kind, "source", lambda self, row: source(self, row)[:: 1 if self is sent else -1])
        with pytest.raises(LibraryError, match=r"content:guide\.md did not arrive as it was sent"):
            library.copy(target)
