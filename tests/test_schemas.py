"""Libraries of every earlier schema are brought up to date, and all commands work on them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quire.library import Library
from quire.stores import migrate
from tests import schemas
from tests.postgres import needs_postgres
from tests.words import WORDS

GUIDE = "# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n\n## Use\n\nRun it.\n"
EARLIER = [
    pytest.param("sqlite", number, id=f"sqlite-{number}") for number, _ in migrate.steps("sqlite")[:-1]
] + [
    pytest.param("postgres", number, id=f"postgres-{number}", marks=needs_postgres)
    for number, _ in migrate.steps("postgres")[:-1]
]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "faq.md").write_text("# FAQ\n\nPenguins swim.\n")
    return folder


def make(url: str, docs: Path, number: int) -> None:
    """A library of an earlier schema, with two documents as its Quire would have written them."""
    with Library.open(url, create=True, config=WORDS) as library:
        library.add(docs)
    schemas.make_schema(url, number)
    table = "quire.documents" if url.startswith("postgres") else "documents"
    schemas.execute(url, f"UPDATE {table} SET made_by = 'auto AutoSettings(max_tokens=800)'")


def assert_it_works(url: str, docs: Path) -> None:
    """Every operation works on a library of before, and nothing in it is lost."""
    with Library.open(url, config=WORDS) as library:
        assert library.store.check() == []
        assert [row.address for row in library.documents()] == ["docs:faq.md", "docs:guide.md"]
        assert library.search("package manager").results[0].address == "docs:guide.md#install"
        assert library.read("docs:guide.md#install").text == "## Install\n\nUse the package manager.\n\n"
        assert library.read("guide.md", "Use").text == "## Use\n\nRun it.\n"
        outline = [section.title for section in library.toc("docs:guide.md").sections]
        assert outline == ["Guide", "Guide", "Install", "Use"]
        (result,) = library.search("penguins").results
        assert library.read(result.document_id).text == "# FAQ\n\nPenguins swim.\n"
        assert library.read(result.chunk_ids[0]).address == result.address
        assert library.check().missing == ()
        (docs / "faq.md").write_text("# FAQ\n\nEmus run.\n")
        (docs / "new.md").write_text("# New\n\nOstriches run too.\n")
        report = library.refresh(remake=True)
        assert (report.added, report.failed) == (1, [])
        assert library.search("penguins", mode="keyword").results == ()
        assert {result.path for result in library.search("run").results} == {"faq.md", "guide.md", "new.md"}
        assert library.search("package manager").notes == ()
        assert library.promote("docs:guide.md", "critical").promotion == "critical"
        library.remove("docs:new.md")
        assert library.refresh().added == 0
        assert [source.type for source in library.sources()] == ["folder"]
        assert library.store.check() == []


@pytest.mark.parametrize(("fresh_url", "number"), EARLIER, indirect=["fresh_url"])
def test_every_earlier_schema_is_brought_up_to_date(library_url: str, number: int, docs: Path) -> None:
    """A schema change migrates; a user never deletes a file by hand."""
    make(library_url, docs, number)
    assert_it_works(library_url, docs)


LACKING = {1: "'written', 'terms'", 5: "'id', 'history'"}  # facts that some libraries of a schema lack


@pytest.mark.parametrize("number", LACKING)
def test_the_first_libraries_of_a_schema_lack_facts(number: int, docs: Path, tmp_path: Path) -> None:
    """The first version of all noted less, and its libraries crashed with a TypeError."""
    url = str(tmp_path / "l.db")
    make(url, docs, number)
    schemas.execute(url, f"DELETE FROM facts WHERE name IN ({LACKING[number]})")
    with Library.open(url, config=WORDS) as library:
        assert library.search("package manager").notes == ()
    assert_it_works(url, docs)
    with closing(sqlite3.connect(f"{url}.schema-{number}.backup")) as backup:
        assert backup.execute("PRAGMA user_version").fetchone() == (number,)


def test_an_empty_library_without_facts_is_brought_up_to_date(docs: Path, tmp_path: Path) -> None:
    """Nothing was written yet, so nothing is to be remade."""
    url = str(tmp_path / "l.db")
    with Library.open(url, create=True, config=WORDS):
        pass
    schemas.make_schema(url, 1)
    schemas.execute(url, "DELETE FROM facts WHERE name IN ('written', 'terms')")
    with Library.open(url, config=WORDS) as library:
        assert library.add(docs).added == 2
        assert library.search("penguins").notes == ()
