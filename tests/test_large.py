"""Large documents and large libraries: what is read at a time, and what it takes."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from quire import Library, links
from quire.config import DEFAULT
from quire.document import Document
from quire.embed.base import STATIC_DIMENSION, unpacked
from quire.errors import SettingError
from quire.ingest import prepare
from quire.stores import Filters, packed
from quire.stores.packed import Packed
from quire.stores.sqlite import SqliteStore
from tests.words import WORDS


def quire(*command: str, code: int = 0) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "quire", *command],
        capture_output=True,
        check=False,
        env=os.environ | {"QUIRE_EMBED_MODEL": "none"},
    )
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode()


# ----------------------------------------------------------------------------------------------- lists


def test_documents_are_read_some_at_a_time(library_url: str) -> None:
    """Issue: `list` streams: the same documents in the same order, some at a time."""
    with Library.open(library_url, create=True, config=WORDS) as library:
        for name in ("b", "a", "b@2.0", "c"):
            for path in ("z.md", "a.md", "é.md", "m/a.md"):
                library.add(content=f"# {path}\n\nText of {name}.\n", path=path, collection=name)
        library.add(content="# E\n\nExternal.\n", path="b.md", collection="d", external=True)
        library.remember("A memory.", collection="e", name="m")
        library.learn("A fact.", collection="f", name="m")
        every = library.documents()
        for limit in (1, 2, 3, 5, 100):
            assert _paged(library, limit) == every
        assert [row.path for row in library.documents("b", limit=2)] == ["a.md", "m/a.md"]
        assert _paged(library, 1, paths=["m/*"]) == library.documents(paths=["m/*"])
        assert _paged(library, 2, kind="memory") == library.documents(kind="memory")
        with pytest.raises(SettingError, match="limit"):
            library.documents(limit=0)
    with Library.open(library_url, config=WORDS, collections=["a", "e"]) as library:
        assert _paged(library, 2) == library.documents()


def _paged(library: Library, limit: int, **narrowed: object) -> list[object]:
    found, some = list[object](), library.documents(limit=limit, **narrowed)  # type: ignore[arg-type]
    while some:
        assert len(some) <= limit
        found += some
        some = library.documents(after=some[-1], limit=limit, **narrowed)  # type: ignore[arg-type]
    return found


def test_a_long_list_has_every_document_once(tmp_path: Path) -> None:
    """More documents than are read at a time, as text and as JSON."""
    folder, url = tmp_path / "docs", str(tmp_path / "library.db")
    folder.mkdir()
    for number in range(1100):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nText.\n")
    quire("add", str(folder), "-L", url)
    listed = [json.loads(line)["address"] for line in quire("list", "--json", "-L", url).splitlines()]
    assert listed == sorted(f"docs:{number}.md" for number in range(1100))
    lines = quire("list", "-L", url).splitlines()
    assert [line.split("  ")[0] for line in lines] == listed


# -------------------------------------------------------------------------------------------- refreshing

_COUNTED = """
import collections, os, sys
from quire import Library
opened, looked, stat = collections.Counter(), collections.Counter(), os.stat
sys.addaudithook(lambda event, args: opened.update([str(args[0])]) if event == "open" else None)
def counted(path, *args, **given):
    looked.update([str(path)])
    return stat(path, *args, **given)
os.stat = counted
with Library.open(sys.argv[1]) as library:
    report = library.refresh(embed=False)
names = [os.path.join(sys.argv[2], name) for name in sorted(os.listdir(sys.argv[2]))]
print(report.updated, report.unchanged, [opened[name] for name in names], [looked[name] for name in names])
"""


def test_a_refresh_reads_a_changed_file_once_and_others_not_at_all(tmp_path: Path) -> None:
    """Issue: refresh reads documents once and costs one `stat` a file, which the listing makes."""
    folder, url = tmp_path / "docs", str(tmp_path / "library.db")
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nText.\n")
    quire("add", str(folder), "-L", url)
    (folder / "2.md").write_text("# Page 2\n\nAnother text.\n")
    command = [sys.executable, "-c", _COUNTED, url, str(folder)]
    env = os.environ | {"QUIRE_EMBED_MODEL": "none"}
    out = subprocess.run(command, capture_output=True, check=True, env=env).stdout.decode()
    assert out == "1 3 [0, 0, 1, 0] [0, 0, 1, 0]\n"


# ---------------------------------------------------------------------------------------------- shrinking


def size(url: str) -> int:
    return Path(url).stat().st_size


def filled(url: str, number: int = 300) -> None:
    """A library of a few megabytes."""
    words = [f"word{number}" for number in range(2000)]
    with Library.open(url, create=True, config=WORDS) as library, library.store.writing():
        for one in range(number):
            body = " ".join(words[(one * 7 + at * 13) % 2000] for at in range(1000))
            library.add(content=f"# Page {one}\n\n{body}\n", path=f"{one % 2}/{one}.md", collection="c")


def test_a_library_of_which_half_was_deleted_shrinks(library_url: str) -> None:
    """Issue: free pages are given back by `quire optimize`, which says how much."""
    filled(library_url)
    with Library.open(library_url, config=WORDS) as library:
        full = library.optimize()
        library.remove(collection="c", paths=["0/*"])
        done = library.optimize()
        assert (done.before - done.after, done.notes) == (done.freed, ())
        if "://" not in library_url:
            assert done.after < 0.65 * full.after
            assert done.after == size(library_url)
        assert library.store.check() == []
        assert library.status().documents == 150
        assert len(library.search("word17", limit=5).results) == 5
        again = library.optimize()
        assert again.freed < full.after / 20


def test_an_older_library_is_written_anew_once_and_can_shrink_then(tmp_path: Path) -> None:
    """Issue: think of existing libraries, which cannot give back pages as they are."""
    url = str(tmp_path / "library.db")
    filled(url)
    with closing(sqlite3.connect(url)) as db:
        db.execute("PRAGMA auto_vacuum = NONE")
        db.execute("VACUUM")
    with Library.open(url, config=WORDS) as library, Library.open(url, config=WORDS) as other:
        before, found = size(url), other.search("word17").results
        library.remove(collection="c", paths=["0/*"])
        assert library.optimize(idle=True).freed == 0  # that would take long
        assert library.optimize().freed > before / 3
        assert size(url) < 0.65 * before
        assert {r.address for r in other.search("word17").results} <= {r.address for r in found} | {
            r.address for r in library.search("word17").results
        }
        assert other.store.check() == library.store.check() == []
    with closing(sqlite3.connect(url)) as db:
        assert db.execute("PRAGMA auto_vacuum").fetchone() == (2,)


def test_space_is_given_back_while_another_reads_one_snapshot(tmp_path: Path) -> None:
    """Issue: think of what happens while others read: they go on with what they see."""
    url = str(tmp_path / "library.db")
    filled(url)
    with Library.open(url, config=WORDS) as library, Library.open(url, config=WORDS) as other:
        before = size(url)
        with other.store.reading():
            assert other.status().documents == 300
            library.remove(collection="c", paths=["0/*"])
            done = library.optimize()
            assert done.notes == (
                "Another program is reading the library. The file shrinks when it has stopped",
            )
            assert other.status().documents == 300
            assert other.source("c:0/0.md").startswith(b"# Page 0")
        library.optimize()
        assert size(url) < 0.65 * before
        assert other.status().documents == 150
        assert other.store.check() == []


def test_an_idle_program_gives_back_much_and_leaves_little(tmp_path: Path) -> None:
    """Issue: free pages are given back when idle."""
    url = str(tmp_path / "library.db")
    filled(url, 900)
    with Library.open(url, config=WORDS) as library:
        before = size(url)
        library.remove(collection="c", paths=["0/1*"])
        assert library.optimize(idle=True).freed == 0
        library.remove(collection="c", paths=["0/*"])
        assert library.optimize(idle=True).freed > before / 4
        assert library.store.check() == []


def test_the_command_says_how_much_was_given_back(tmp_path: Path) -> None:
    """As text and as JSON."""
    url = str(tmp_path / "library.db")
    filled(url)
    quire("remove", "-c", "c", "--path", "0/*", "-L", url)
    shown = json.loads(quire("optimize", "--json", "-L", url))
    assert shown["freed"] == shown["before"] - shown["after"] > 100_000
    assert shown["notes"] == []
    assert quire("optimize", "-L", url).endswith(f" bytes of {shown['after']:,} left\n")


# --------------------------------------------------------------------------------------------- passages


def test_passages_of_one_document_are_read_through_one_handle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: and the handle is closed with the snapshot, so that nothing is read of an older one."""
    with Library.open(str(tmp_path / "library.db"), create=True, config=WORDS) as library:
        text = "".join(f"## Part {number}\n\nOkapi number {number} eats.\n\n" for number in range(40))
        library.add(content=f"# Zoo\n\n{text}", path="zoo.md", collection="c")
        store, opened = library.store, list[int]()
        assert isinstance(store, SqliteStore)
        handle = SqliteStore._text

        def counted(self: SqliteStore, row: int) -> sqlite3.Blob:
            opened.extend([row] if row not in self._texts_open else [])
            return handle(self, row)

        monkeypatch.setattr(SqliteStore, "_text", counted)
        source = library.source("c:zoo.md").decode()
        with store.reading():
            row = store.documents(Filters())[0].seq
            for at in range(0, 1000, 100):
                assert store.passage(row, at, at + 50) == source[at : at + 50]
            assert opened == [row]
        assert store._texts_open == {}
        assert library.search("okapi").results
        assert opened == [row, row]
        library.add(content="# Zoo\n\nOkapi sleeps.\n", path="zoo.md", collection="c")
        assert "sleeps" in library.search("okapi").results[0].snippet


# ----------------------------------------------------------------------------------------------- memory

_MEASURED = """
import resource, sys
from quire import Library
from quire.config import DEFAULT, override
config = override(DEFAULT, {"embed": {"model": "none"}})
with Library.open(sys.argv[1], create=True, config=config) as library:
    report = library.add(sys.argv[2])
assert (report.added, report.failed) == (1, []), report
peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(peaks) * (1 if sys.platform == "darwin" else 1024))
"""
_TIMES = 17  # its size that a document of 20 MB takes: 14 measured, with a worker process; 25 without packing


def _peak(folder: Path, name: str, size: int) -> int:
    """The peaks of all processes that add a document, in bytes."""
    file, number = folder / f"{name}.md", 0
    with file.open("w") as out:
        while out.tell() < size:
            number += 1
            said = (
                f"The okapi number {number} eats [leaves](leaf-{number}.md) and sleeps in tree {number}. "
                * 12
            )
            out.write(f"## Okapi {number}\n\n{said}\n\n")
    command = [sys.executable, "-c", _MEASURED, str(folder / f"{name}.db"), str(file)]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


def test_a_large_document_takes_a_few_times_its_size(tmp_path: Path) -> None:
    """Issue: a document is prepared and written within a small multiple of its size in memory."""
    size = 20_000_000
    more = _peak(tmp_path, "large", size) - _peak(tmp_path, "small", 10_000)
    assert more < _TIMES * size, f"{more / size:.1f} times its size"


def test_packed_rows_are_the_rows() -> None:
    """As often as they are wanted, by number too."""
    rows = [(number, "é\ud800"[: number % 3], b"\0" * (number % 5)) for number in range(1000)]
    held = Packed(iter(rows))
    assert list(held) == list(held) == rows
    assert (len(held), held[999], held[-1], list(held[5:7])) == (1000, rows[999], rows[-1], rows[5:7])
    assert list(pickle.loads(pickle.dumps(held))) == rows
    assert list(Packed(())) == []


def test_a_large_document_gives_what_a_small_one_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows, links, tags and vectors, whether they are made together or in parts."""
    parts = ["## Head\n\n[a](b.md) #tag\n", "%% [no](no.md)\n\n# In\n\nit %%\n", "```\n# [x](y.md)\n```\n"]
    parts += ["- one [é](ü.md)\n  two\n", "Title [s](s.md)\n===\n\n", "<!--\n# [c](c.md)\n-->\n"]
    text = "".join(parts[number * number % 6] + "\n" * (number % 3) for number in range(400))
    document = Document.from_text(text, "a.md")
    usual = prepare.prepare(document, DEFAULT)
    monkeypatch.setattr(links, "_LARGE", 400)
    monkeypatch.setattr(packed, "LARGE", 400)
    monkeypatch.setattr(prepare, "LARGE", 400)
    monkeypatch.setattr(prepare, "_TOGETHER", 7)
    large = prepare.prepare(document, DEFAULT)
    assert isinstance(large.words, Packed)
    for field in fields(usual):
        one, other = getattr(usual, field.name), getattr(large, field.name)
        if field.name == "instant":  # sums in another order
            before, after = (unpacked(made, STATIC_DIMENSION) for made in (one, other))
            assert np.allclose(before, after, atol=0.01)
        else:
            assert other == one or list(other) == list(one), field.name
