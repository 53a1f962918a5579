"""What is forgotten or purged is gone: no byte of it is left in the library's files."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from quire.config import Config, override
from quire.library import Library
from tests import postgres
from tests.commands import run
from tests.words import WORDS

SECRET = "Qxjkvzworth"  # begins like no other word, so that the index holds it whole
TEXT = f"# Plan {{0}}\n\nThe {SECRET} is {{0}} parsecs away.\n\n## {SECRET} again\n\nStill {{0}}.\n"


def left_in(folder: Path, secret: str = SECRET) -> list[str]:
    """The files of a folder that hold a word, as it is or as a term."""
    wanted = secret.lower().encode()[:9]
    return sorted(
        path.name for path in folder.iterdir() if path.is_file() and wanted in path.read_bytes().lower()
    )


def others(library: Library) -> None:
    for number in range(30):
        library.add(content=f"# Page {number}\n\nNothing special in {number}.\n", path=f"{number}.md")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "library").mkdir()
    return tmp_path / "library" / "l.db"


@pytest.mark.parametrize("versions", [1, 3])
def test_a_purged_document_leaves_nothing(place: Path, versions: int) -> None:
    with Library.open(place, create=True, config=WORDS) as library:
        others(library)
        for number in range(versions):
            library.add(content=TEXT.format(number), path="plan.md")
        assert left_in(place.parent)
        library.remove("content:plan.md", purge=True)
        assert left_in(place.parent) == []  # with the library open
        assert library.store.check() == []
        assert len(library.documents()) == 30
        assert library.search("special").results
    assert left_in(place.parent) == []


def test_a_forgotten_memory_leaves_nothing(place: Path) -> None:
    with (
        Library.open(place, create=True, config=WORDS) as library,
        Library.open(place, config=WORDS) as reader,
    ):
        others(library)
        kept = library.remember(f"The code is {SECRET}.", name="code")
        library.remember("The okapi sleeps.", name="code")
        assert SECRET in library.history("code")[1].text
        library.forget("code")
        assert left_in(place.parent) == []
        kept = library.remember("The okapi sleeps.", title="okapi")
        gone = library.remember(f"The password is {SECRET}.", title="password")
        assert reader.recall(SECRET).results
        library.forget(gone.address)
        assert left_in(place.parent) == []
        assert [row.path for row in library.documents("memory")] == [kept.path]


def test_without_purging_it_is_still_in_the_index(place: Path) -> None:
    """So the tests above can fail."""
    with Library.open(place, create=True, config=WORDS) as library:
        others(library)
        library.add(content=TEXT.format(1), path="plan.md")
        library.remove("content:plan.md")
        assert left_in(place.parent) != []


def test_a_library_that_never_overwrote_is_rewritten_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of an older version has deleted text in free pages."""
    connect = sqlite3.connect
    with monkeypatch.context() as older:

        class Old(sqlite3.Connection):
            def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
                return super().execute(sql.replace("secure_delete = ON", "secure_delete = OFF"), *args)

        older.setattr(sqlite3, "connect", lambda *args, **given: connect(*args, **given, factory=Old))
        with Library.open(place, create=True, config=WORDS) as library:
            others(library)
            library.add(content=TEXT.format(1) * 200, path="plan.md")
            library.remove("content:plan.md")
    with closing(sqlite3.connect(place)) as db:
        db.execute("DELETE FROM facts WHERE name = 'erased'")
        db.commit()
    with Library.open(place, config=WORDS) as library:
        assert left_in(place.parent)
        library.remove("content:1.md", purge=True)
        assert left_in(place.parent) == []
        assert library.store.check() == []


def test_a_reader_that_holds_the_log_is_named(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Library.open(place, create=True, config=WORDS) as library:
        library.add(content=TEXT.format(1), path="plan.md")
        with closing(sqlite3.connect(place, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM documents").fetchone()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("quire.stores.sqlite.purging._PATIENCE", 0.05)
                library.remove("content:plan.md", purge=True)
            assert "Another program is reading" in caplog.text
        library.remove(purge=True)
        assert left_in(place.parent) == []


def test_copies_that_quire_made_are_named(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Library.open(place, create=True, config=WORDS) as library:
        library.add(content=TEXT.format(1), path="plan.md")
        library.store.settle()
        shutil.copy(place, f"{place}.schema-7.backup")
        library.remove("content:plan.md", purge=True)
    assert f"{place}.schema-7.backup" in caplog.text


def test_vectors_of_what_is_purged_are_gone(place: Path) -> None:
    config = override(Config(), {"embed": {"model": "deep"}})
    with Library.open(place, create=True, config=config) as library:
        library.add(content="# A\n\nOkapis sleep.\n\n## B\n\nThey eat.\n", path="a.md")
        library.add(content="# C\n\nCats run.\n", path="c.md")
        before = library.search("cat").results[0].address
        library.remove("content:a.md", purge=True)
        with closing(sqlite3.connect(place)) as db:
            assert db.execute("SELECT count(*) FROM vectors WHERE chunk IS NULL").fetchone() == (0,)
        assert library.store.check() == []
        assert library.search("cat").results[0].address == before
        library.add(content="# A\n\nOkapis sleep.\n", path="a.md")
        assert library.status().embedded == library.status().instant == library.status().chunks


def test_commands_purge(place: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "plan.md").write_text(TEXT.format(1))
    (docs / "other.md").write_text("# Other\n\nText.\n")
    run(tmp_path, "add", str(docs), "-L", str(place), QUIRE_EMBED_MODEL="none")
    run(tmp_path, "remove", "docs:plan.md", "-L", str(place), "--purge", "--dry-run")
    assert left_in(place.parent)
    out, _ = run(tmp_path, "remove", "docs:plan.md", "-L", str(place), "--purge", "--json")
    assert json.loads(out)["removed"] == ["docs:plan.md"]
    assert left_in(place.parent) == []
    assert "0 added" in run(tmp_path, "refresh", "-L", str(place))[0]


@pytest.mark.parametrize("fresh_url", postgres.DATABASES[1:], indirect=True)
def test_postgres_forgets_words_and_vectors(library_url: str, caplog: pytest.LogCaptureFixture) -> None:
    url = library_url
    with Library.open(url, create=True, config=WORDS) as library:
        others(library)
        library.add(content=TEXT.format(1), path="plan.md")
        held = "SELECT count(*) FROM quire.vocabulary WHERE term LIKE 'qxjk%%'"
        assert postgres.execute(url, held)[0][0]
        library.remove("content:plan.md", purge=True)
        assert postgres.execute(url, held) == [(0,)]
        assert library.search("speci*").results
    assert "Ask whoever runs it" in caplog.text
