"""Changed files are read again before an answer cites them, with `search.fresh`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from mcp import Client

from quire import retaking
from quire.config import Config, override
from quire.errors import LibraryError, SettingError
from quire.library import Library
from tests.mcp_client import ask, parameters, talk

FRESH = override(Config(), {"embed": {"model": "none"}, "search": {"fresh": True}})
NOT_FRESH = override(FRESH, {"search": {"fresh": False}})


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    place = tmp_path / "docs"
    place.mkdir()
    (place / "engine.md").write_text("# Engine\n\nThe engine burns kerosene.\n")
    (place / "wheels.md").write_text("# Wheels\n\nThe wheels are round.\n")
    return place


def opened(url: str, docs: Path, config: Config = FRESH) -> Library:
    library = Library.open(url, create=True, config=config)
    library.add(docs)
    return library


def change(docs: Path, text: str = "# Engine\n\nThe engine burns hydrogen now.\n") -> None:
    (docs / "engine.md").write_text(text)
    os.utime(docs / "engine.md", ns=(1, 1))  # another time in any case


@pytest.mark.parametrize(
    "answer",
    [
        lambda library: library.search("engine burns").results[0].snippet,
        lambda library: library.read("docs:engine.md").text,
        lambda library: library.context("engine burns").passages[0].text,
    ],
    ids=["search", "read", "context"],
)
def test_answers_cite_files_as_they_are_now(
    library_url: str, docs: Path, answer: Callable[[Library], str]
) -> None:
    with opened(library_url, docs) as library:
        assert "kerosene" in answer(library)
        change(docs)
        assert "hydrogen" in answer(library)
        found = library.search("engine burns")
        assert not any(result.stale for result in found.results)
        assert found.notes == ()


def test_without_the_setting_they_say_that_files_have_changed(library_url: str, docs: Path) -> None:
    with opened(library_url, docs, NOT_FRESH) as library:
        change(docs)
        found = library.search("engine burns")
        assert found.results[0].stale
        assert "quire refresh" in " ".join(found.notes)
        assert "kerosene" in library.read("docs:engine.md").text


def test_a_file_that_is_gone_or_too_large_is_said_to_have_changed(library_url: str, docs: Path) -> None:
    """The issue: when that costs under 100 ms, else say so."""
    with opened(library_url, docs) as library:
        for new in ("# Engine\n\nThe engine is large.\n" + "word\n" * 100_000, None):
            if new:
                change(docs, new)
            else:
                (docs / "engine.md").unlink()
            found = library.search("engine burns kerosene")
            assert found.results[0].stale
            assert "quire refresh" in " ".join(found.notes)
            assert "kerosene" in library.read("docs:engine.md").text


def test_new_text_has_its_vector_when_it_is_cited(tmp_path: Path, docs: Path) -> None:
    config = override(Config(), {"search": {"fresh": True}})
    with opened(str(tmp_path / "l.db"), docs, config) as library:
        change(docs)
        found = library.search("what fuel does the motor use")
        assert found.mode == "hybrid"
        assert library.status().embedded == library.status().chunks == 2


def test_a_model_that_is_gone_keeps_no_answer_from_being_new(library_url: str, docs: Path) -> None:
    config = override(Config(), {"embed": {"model": "static"}, "search": {"fresh": True}})
    with opened(library_url, docs, config) as library:
        library.store.model("folder/gone@01234567", 8)
    with Library.open(library_url, config=override(config, {"embed": {"model": ""}})) as library:
        change(docs)
        found = library.search("engine burns")
        assert ("hydrogen" in found.results[0].snippet, found.model) == (True, "static")
        assert "the folder must hold model.onnx" in found.notes[0]


def test_a_library_that_another_process_writes_to_is_not_waited_for(tmp_path: Path, docs: Path) -> None:
    url = str(tmp_path / "l.db")
    with opened(url, docs) as library, closing(sqlite3.connect(url, isolation_level=None)) as other:
        change(docs)
        other.execute("BEGIN IMMEDIATE")
        assert library.search("engine burns").results[0].stale
        with pytest.raises(LibraryError, match="locked"):
            retaking.retake(library.store, library.documents(), library.config)
        other.execute("ROLLBACK")
        assert not library.search("engine burns").results[0].stale


def test_only_what_is_cited_is_read_again(library_url: str, docs: Path) -> None:
    """The user's word is the law: a search adds no file, and removes none."""
    with opened(library_url, docs) as library:
        change(docs)
        (docs / "new.md").write_text("# New engine\n\nThe engine burns less.\n")
        (docs / "wheels.md").unlink()
        library.search("engine burns")
        assert [row.path for row in library.documents()] == ["engine.md", "wheels.md"]


@pytest.mark.parametrize(("options", "expected"), [((), "hydrogen"), (("--read-only",), "kerosene")])
def test_a_server_reads_changed_files_again_unless_it_is_read_only(
    tmp_path: Path, docs: Path, options: tuple[str, ...], expected: str
) -> None:
    url = str(tmp_path / "l.db")
    opened(url, docs).close()
    change(docs)

    async def use(client: Client) -> str:
        found = await ask(client, "search", query="engine burns")
        return found + await ask(client, "read", address="docs:engine.md")

    answer = talk(parameters(tmp_path, *options, "--root", str(docs)), use)
    assert expected in answer
    assert ("has changed since" in answer) == (expected == "kerosene")


def test_a_switch_is_on_or_off() -> None:
    for value in ("yes", 1, None, [True]):
        with pytest.raises(SettingError, match=r"search\.fresh.*true or false"):
            override(Config(), {"search": {"fresh": value}})
    assert override(Config(), {"search": {"fresh": "False"}}).search.fresh is False
