"""A library whose file is replaced, restored, overwritten or deleted while it is open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from quire.library import Library
from tests import crash
from tests.words import WORDS

ADD = """
import sys
from quire.library import Library
from tests.words import WORDS
with Library.open(sys.argv[1], config=WORDS) as library:
    for path in sys.argv[2:]:
        library.add(content=f"# About {path}", path=path, collection="c")
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


# ---------------------------------------------------------------------------------------------- locks


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
