"""The log: start, skip, finish, search and update check, with milliseconds."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest
from mcp import Client

from quire.config import override
from quire.library import Library
from quire.surfaces.logs import OneLine
from tests.commands import run
from tests.mcp_client import ask, http_server, some_docs, talk
from tests.web_server import site
from tests.words import WORDS

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
COUNTS = "added, 0 updated, 0 removed"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    some_docs(tmp_path)
    (tmp_path / "docs" / "picture.png").write_bytes(b"png")
    return tmp_path / "docs"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "quire")
    return caplog


def lines(log: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    """What was logged since the last call, with 0 for every time."""
    found = [one.getMessage() for one in log.records if one.name == "quire" and one.levelno >= level]
    log.clear()
    return [re.sub(r"\d+ ms", "0 ms", line) for line in found]


def test_indexing_is_logged_with_what_was_skipped(docs: Path, log: pytest.LogCaptureFixture) -> None:
    """Start, skip and finish are logged, with milliseconds."""
    with Library.open(":memory:", create=True, config=WORDS) as library:
        library.add(docs)
        first = lines(log, logging.DEBUG)
        assert f"indexing {docs} as docs" in first
        assert "skipped docs:picture.png: .png files are not read" in first
        assert f"indexed {docs} in 0 ms: 2 {COUNTS}, 0 unchanged, 0 failed" in first
        (docs / "guide.md").write_text("# Changed\n")
        library.add(docs)
        second = lines(log, logging.DEBUG)
        assert second.index(f"indexing {docs} as docs") < second.index("skipped docs:faq.md: unchanged")
        assert not [line for line in second if "skipped docs:guide.md" in line]
        assert f"indexed {docs} in 0 ms: 0 added, 1 updated, 0 removed, 1 unchanged, 0 failed" in second


def test_a_file_that_was_only_touched_is_skipped(docs: Path, log: pytest.LogCaptureFixture) -> None:
    """The same content is no work, whatever its time."""
    with Library.open(":memory:", create=True, config=WORDS) as library:
        library.add(docs)
        text = (docs / "faq.md").read_text()
        (docs / "faq.md").write_text(f"{text} ")
        (docs / "faq.md").write_text(text)
        lines(log)
        library.refresh()
        told = lines(log, logging.DEBUG)
        assert "skipped docs:faq.md: unchanged" in told
        assert any(re.fullmatch(r"refreshed 1 sources in 0 ms", line) for line in told)


def test_texts_and_memories_are_logged(log: pytest.LogCaptureFixture) -> None:
    """What has no file has a start, a skip and a finish too."""
    with Library.open(":memory:", create=True, config=WORDS) as library:
        for _ in range(2):
            library.add(content="# A\n", path="a.md")
            library.remember("We deploy on Tuesdays.", name="deploy")
    told = lines(log, logging.DEBUG)
    assert told.count("indexing text as content") == 2
    assert f"indexed content:a.md in 0 ms: 1 {COUNTS}, 0 unchanged, 0 failed" in told
    assert "skipped content:a.md: unchanged" in told
    assert f"indexed content:a.md in 0 ms: 0 {COUNTS}, 1 unchanged, 0 failed" in told
    assert told.count("saved memory:deploy in 0 ms") == 2  # what is said again holds from now on


def test_unchanged_pages_are_logged(log: pytest.LogCaptureFixture) -> None:
    """A page that has not changed is skipped."""
    config = override(WORDS, {"web": {"allow_hosts": ["127.0.0.1"], "retries": 0}})
    with site() as web, Library.open(":memory:", create=True, config=config) as library:
        web.page("/a.md", b"# A\n")
        url = web.url("/a.md")
        library.add(url)
        library.add(url)
        (row,) = library.documents()
    told = lines(log, logging.DEBUG)
    assert told.count(f"indexing {url} as {row.collection}") == 2
    assert f"skipped {row.address}: unchanged" in told
    assert f"indexed {url} in 0 ms: 0 {COUNTS}, 1 unchanged, 0 failed" in told


def test_searches_are_logged_without_their_words(docs: Path, log: pytest.LogCaptureFixture) -> None:
    """At info, only the length of a query; its text is the user's, and shown at debug."""
    with Library.open(":memory:", create=True, config=WORDS) as library:
        library.add(docs)
        library.remember("Penguins are birds.")
        lines(log)
        library.search("penguins", mode="keyword")
        assert lines(log) == ["searched for 8 characters in 0 ms: 1 results (keyword)"]
        library.recall("birds", mode="keyword")
        library.context("penguins", mode="keyword")
        told = lines(log, logging.DEBUG)
    assert [line for line in told if line.startswith("search")] == [
        "searching for 'birds'",
        "searched for 5 characters in 0 ms: 1 results (keyword)",
        "searching for 'penguins'",
        "searched for 8 characters in 0 ms: 1 results (keyword)",
    ]


def test_a_check_for_updates_is_logged(docs: Path, log: pytest.LogCaptureFixture) -> None:
    """The check has a start and an end, and names what is unchanged."""
    with Library.open(":memory:", create=True, config=WORDS) as library:
        library.add(docs)
        (docs / "guide.md").write_text("# Changed\n")
        (docs / "new.md").write_text("# New\n")
        lines(log)
        library.check()
    told = lines(log, logging.DEBUG)
    assert told[0] == "checking for updates"
    assert "skipped docs:faq.md: unchanged" in told
    assert told[-1] == "checked for updates in 0 ms: 1 changed, 0 missing, 1 new, 0 to remake"


# ---------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize("first", [True, False])
def test_log_level_shows_the_log_on_stderr_alone(docs: Path, first: bool) -> None:
    """--log-level, before or after the command; JSON and stdout stay as they are."""
    option = ["--log-level", "debug"]

    def with_option(*args: str) -> tuple[str, str]:
        return run(docs.parent, *option, *args) if first else run(docs.parent, *args, *option)

    _, err = with_option("add", "docs")
    assert re.search(rf"^{TIME} INFO indexing {docs} as docs$", err, re.MULTILINE)
    assert re.search(rf"^{TIME} INFO indexed {docs} in \d+ ms: 2 added", err, re.MULTILINE)
    out, err = with_option("search", "penguins", "--json")
    assert json.loads(out)["results"]
    assert re.search(rf"^{TIME} INFO searched for 8 characters in \d+ ms", err, re.MULTILINE)
    assert re.search(rf"^{TIME} DEBUG searching for 'penguins'$", err, re.MULTILINE)
    _, err = with_option("refresh", "--check")
    assert re.search(rf"^{TIME} INFO checked for updates in \d+ ms", err, re.MULTILINE)
    assert re.search(rf"^{TIME} DEBUG skipped docs:faq.md: unchanged$", err, re.MULTILINE)


def test_the_level_decides_what_is_shown(docs: Path) -> None:
    """Nothing without the option; no query at info; a wrong level is wrong usage."""
    assert "indexing" not in run(docs.parent, "add", "docs")[1]
    assert run(docs.parent, "search", "penguins")[1] == ""
    assert run(docs.parent, "--log-level", "warning", "search", "penguins")[1] == ""
    _, err = run(docs.parent, "--log-level", "INFO", "search", "penguins")
    assert "searched for 8 characters" in err
    assert "penguins" not in err
    assert "'zebra' is not one of" in run(docs.parent, "--log-level", "zebra", "list", code=2)[1]


def test_a_line_of_the_log_is_one_line_without_secrets() -> None:
    """A file's name cannot write a line of its own, nor show a password."""
    about = ("a\nINFO b", "https://me:hunter2@example.com/")
    shown = OneLine("%(message)s").format(logging.LogRecord("quire", 20, "", 0, "%s %s", about, None))
    assert shown == r"a\u{a}INFO b https://…@example.com/"


def test_the_server_shows_its_log_too(docs: Path, tmp_path: Path) -> None:
    """`quire mcp --log-level info` logs to stderr; stdout carries nothing of it."""

    async def work(client: Client) -> str:
        return await ask(client, "add", sources=[str(docs)])

    with http_server(tmp_path, "--root", str(docs), "--log-level", "info") as url:
        assert talk(url, work).startswith("2 added")
    shown = (tmp_path / "http.log").read_text()
    assert len(re.findall(rf"^{TIME} INFO indexed {docs} in \d+ ms", shown, re.MULTILINE)) == 1
