"""Errors as {code, message, details}: one table, the same on every surface."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

import quire
from quire import errors
from quire.errors import CODES, EmbeddingError, NotFound, QuireError, SourceError, SourceMoved
from quire.library import Library
from quire.workers import Workers
from tests import error_codes
from tests.commands import environment, run
from tests.mcp_client import call, parameters, said, some_docs, talk

SECRET = "hunter2"
URL = f"https://me:{SECRET}@example.com/a"
KINDS = list(error_codes.kinds())
BY_HAND: dict[type[QuireError], QuireError] = {
    NotFound: NotFound(URL, "is not there", 404),
    SourceMoved: SourceMoved(f"/a?password={SECRET}", "/b"),
    errors.WorkerDied: errors.WorkerDied(),
}


def example(kind: type[QuireError]) -> QuireError:
    """An error of a class, about something with a secret in its name."""
    if kind in BY_HAND:
        return BY_HAND[kind]
    two = (errors.SettingError, errors.MissingExtra, SourceError, EmbeddingError, errors.LibraryError)
    return kind(URL, f"no good: {URL}") if issubclass(kind, two) else kind(URL, name=URL)


def the_error(err: str) -> dict[str, Any]:
    """The error on stderr, which has one line."""
    (line,) = err.splitlines()
    shown = json.loads(line)
    assert list(shown) == ["error"]
    error: dict[str, Any] = shown["error"]
    assert list(error) == ["code", "message", "details"]
    assert error["code"] in CODES
    return error


# ----------------------------------------------------------------------------------------- the table


def test_every_class_has_a_code_of_its_own() -> None:
    """H, sibling specification: errors as {code, message, details}; a code never stands for two classes."""
    assert all("code" in vars(kind) for kind in KINDS)
    assert list(CODES) == [kind.code for kind in KINDS]
    assert len(CODES) == len(KINDS)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in CODES)
    assert all(told and "\n" not in told for told in CODES.values())
    assert {kind.__module__ for kind in KINDS} == {"quire.errors"}


def test_the_docs_list_every_code() -> None:
    """The table in the docs is the code; write it with: python -m tests.error_codes"""
    assert f"{error_codes.table()}\n\n" in error_codes.PAGE.read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.code))
def test_an_error_is_code_message_and_details(kind: type[QuireError]) -> None:
    """What is shown is JSON, holds no secret, and is the same in another process."""
    error = example(kind)
    shown = error.to_json()
    assert shown == {"code": error.code, "message": error.message, "details": error.details}
    assert (error.message, error.code) == (str(error), kind.code)
    assert json.loads(json.dumps(shown)) == shown
    assert SECRET not in json.dumps(shown)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.to_json(), str(copy)) == (kind, shown, str(error))


def _fail(url: str) -> None:
    raise NotFound(url, "is not there", 404)


def test_an_error_of_a_worker_arrives_whole() -> None:
    """Errors pass between processes."""
    with Workers(1) as workers, pytest.raises(NotFound) as caught:
        workers.call(_fail, "https://example.com/a")
    details = {"source": "https://example.com/a", "reason": "is not there", "status": 404}
    assert caught.value.to_json() == {
        "code": "not_found",
        "message": "https://example.com/a: is not there",
        "details": details,
    }


def test_details_have_what_an_error_knows() -> None:
    """Python: attributes, and details for programs."""
    with pytest.raises(quire.SettingError) as setting:
        quire.chunk("a", "nodez")
    assert setting.value.code == "setting_error"
    assert setting.value.details["setting"] == "strategy"
    with pytest.raises(quire.NoResults) as nothing:
        quire.tree("# A\n\nText.\n").find("Zebra")
    assert nothing.value.details == {"missing": "heading", "name": "Zebra"}
    with pytest.raises(quire.BrokenInvariant) as broken:
        quire.chunk("word " * 200, "sections", max_tokens=100, path="a.md")
    assert broken.value.details == {"address": "local:a.md", "tokens": 250, "max_tokens": 100}
    refused = EmbeddingError("tiny", "takes no cats", [1, 4])
    assert refused.details == {"model": "tiny", "problem": "takes no cats", "refused": [1, 4]}


# ---------------------------------------------------------------------------------- the command line


@pytest.fixture
def place(tmp_path: Path) -> Path:
    some_docs(tmp_path)
    run(tmp_path, "add", "docs", "-L", "l.db")
    return tmp_path


@pytest.mark.parametrize(
    ("args", "exit_code", "code", "details"),
    [
        ("read docs:zebra.md -L l.db", 1, "no_results", {"missing": "document", "name": "docs:zebra.md"}),
        ("search a -c zebra -L l.db", 1, "no_results", {"missing": "collection", "name": "zebra"}),
        ("search a -L none.db", 1, "no_results", {"missing": "library", "name": "none.db"}),
        ("search a -n 0 -L l.db", 2, "setting_error", {"setting": "limit"}),
        ("status -L ftp://a", 2, "setting_error", {"setting": "library"}),
        ("status -L docs/guide.md", 4, "library_error", {"library": "docs/guide.md"}),
        ("toc zebra.md", 4, "unreadable", {"source": "zebra.md"}),
        ("add docs/zebra.md -L l.db", 4, "unreadable", {"source": "docs/zebra.md"}),
        ("add docs --dry-run --as x.md -L l.db", 2, "usage", {"command": "quire add"}),
        ("search", 2, "usage", {"command": "quire search"}),
        ("search a --zebra", 2, "usage", {"command": "quire search"}),
        ("zebra", 2, "usage", {"command": "quire"}),
        ("--zebra search a", 2, "usage", {"command": "quire"}),
        ("sources move a", 2, "usage", {"command": "quire sources move"}),
    ],
)
def test_with_json_a_command_says_what_is_wrong_in_json(
    place: Path, args: str, exit_code: int, code: str, details: dict[str, Any]
) -> None:
    """DESIGN §9: JSON of an error, one line on stderr; the exit code and the words are as without."""
    _, plain = run(place, *args.split(), code=exit_code)
    _, err = run(place, *args.split(), "--json", code=exit_code)
    error = the_error(err)
    assert error["code"] == code
    assert error["details"].items() >= details.items()
    assert error["message"] in plain
    assert '{"error"' not in plain


def test_a_context_pack_as_json_fails_in_json(place: Path) -> None:
    """`quire context` has --format json instead of --json."""
    for form in (["--format", "json"], ["--format=json"]):
        _, err = run(place, "context", "a", "-c", "zebra", "-L", "l.db", *form, code=1)
        assert the_error(err)["code"] == "no_results"
    _, err = run(place, "context", "a", "-c", "zebra", "-L", "l.db", "--format", "xml", code=1)
    assert err.startswith("quire: No collection 'zebra'.")


def test_what_comes_after_two_dashes_is_no_option(place: Path) -> None:
    """A query may hold --json."""
    _, err = run(place, "search", "-c", "zebra", "-L", "l.db", "--", "a", "--json", code=1)
    assert err.startswith("quire: No collection 'zebra'.")


def test_no_secret_is_in_the_json_of_an_error(place: Path) -> None:
    """redact.py: not in the message, and not in the details."""
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/x"
    _, err = run(place, "status", "-L", url, "--json", code=4)
    assert the_error(err)["details"]["library"] == "postgresql://me:…@127.0.0.1:1/x"
    out, web = run(place, "add", URL, "-L", "l.db", "--json", code=4)
    assert the_error(web)["code"] == "refused"
    assert SECRET not in out + web + err


def test_what_fails_in_a_batch_has_a_code(place: Path) -> None:
    """Items of Report.failed carry the code of their error."""
    (place / "docs" / "bad.md").write_bytes(b"a\0b")
    (place / "docs" / "long.md").write_text("word " * 100)
    out, err = run(
        place, "add", "docs", "gone.md", "-L", "l.db", "--json", code=3, QUIRE_DOCUMENT_MAX_BYTES="400"
    )
    report = json.loads(out)
    codes = {one["source"]: one["code"] for one in report["failed"]}
    assert codes == {"bad.md": "not_text", "gone.md": "unreadable"}
    assert [one["source"] for one in report["skipped"]] == ["long.md"]
    lines = [json.loads(line)["error"] for line in err.splitlines() if line.startswith("{")]
    assert {line["details"]["source"]: line["code"] for line in lines} == codes
    (place / "many.jsonl").write_text('nonsense\n{"kind": "memory", "text": "A fact."}\n')
    out, _ = run(place, "import", "many.jsonl", "-L", "l.db", "--json", code=3)
    assert [(one["source"], one["code"]) for one in json.loads(out)["failed"]] == [
        ("line 1", "setting_error")
    ]


def test_a_path_that_is_taken_is_refused(place: Path) -> None:
    """A refused item of a plan has the code that a refused page has."""
    other = place / "other"
    other.mkdir()
    (other / "guide.md").write_text("# Other\n")
    out, _ = run(place, "add", "other", "-c", "docs", "-L", "l.db", "--json", code=4)
    assert [one["code"] for one in json.loads(out)["failed"]] == ["refused"]


def test_a_parser_that_fails_has_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other error of a file is not_prepared, and shows no secret."""
    from quire.ingest import prepare

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot reach {URL}")

    (tmp_path / "a.md").write_text("# A\n")
    monkeypatch.setattr(prepare, "Tree", broken)
    with Library.open(":memory:", create=True) as library:
        (failed,) = library.add(tmp_path / "a.md").failed
    assert failed.code == "not_prepared"
    assert SECRET not in failed.reason


def test_a_stopped_command_says_so_in_json(tmp_path: Path) -> None:
    """Interruption is an error too; its exit code stays 130."""
    command = [str(Path(sys.executable).parent / "quire"), "add", "-", "-L", "l.db", "--json"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), **pipes) as process:
        until = time.monotonic() + 30
        while not (tmp_path / "l.db").exists() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        assert process.stderr is not None
        err = process.stderr.read().decode()
    assert process.returncode == 130
    assert the_error(err)["code"] == "interrupted"


# ---------------------------------------------------------------------------------------------- MCP


def test_an_error_of_a_tool_is_in_its_meta(tmp_path: Path) -> None:
    """MCP: the text is for the model; `_meta` has code, message and details for programs."""
    some_docs(tmp_path)
    wrong = tmp_path / "docs" / "bad.md"
    wrong.write_bytes(b"a\0b")

    async def work(client: Client) -> list[tuple[bool, Any]]:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("search", {"query": "penguins"}),
            ("recall", {"query": "penguins"}),
            ("add", {"sources": [str(wrong)]}),
            ("add", {"sources": [str(wrong), str(tmp_path / "docs" / "none.md")]}),
            ("add", {"sources": [str(tmp_path / "docs")]}),
            ("search", {"query": "penguins"}),
            ("read", {"address": "docs:fag.md"}),
            ("read", {"address": "docs:faq.md", "heading": "\u202eZebra"}),
            ("search", {"query": "penguins", "limits": 3}),
        ]
        results = [await call(client, name, **arguments) for name, arguments in calls]
        assert all(said(result) for result in results)
        return [(result.is_error, result.meta) for result in results]

    found = talk(parameters(tmp_path), work)
    assert all(is_error == bool(meta and "quire/error" in meta) for is_error, meta in found)
    shown = [meta and meta.get("quire/error") for _, meta in found]
    assert [error and error["code"] for error in shown] == [
        "no_results",
        None,
        "not_text",
        "source_error",
        None,
        None,
        "no_results",
        "no_results",
        "setting_error",
    ]
    assert shown[0]["details"]["missing"] == "documents"
    assert shown[2]["details"]["source"] == "bad.md"
    assert [one["code"] for one in shown[3]["details"]["failed"]] == ["not_text", "unreadable"]
    assert shown[6]["details"] == {"missing": "document", "name": "docs:fag.md"}
    assert shown[7]["details"]["name"] == r"\u{202e}Zebra"
    assert all(error is None or list(error) == ["code", "message", "details"] for error in shown)


def test_an_error_of_a_resource_is_in_its_data(tmp_path: Path) -> None:
    """MCP: a resource has no result to put `_meta` in, so the data of its error has the same object."""
    some_docs(tmp_path)

    async def work(client: Client) -> Any:
        with pytest.raises(MCPError) as empty:
            await client.read_resource("quire://docs/fag.md")
        await call(client, "add", sources=[str(tmp_path / "docs")])
        with pytest.raises(MCPError) as missing:
            await client.read_resource("quire://docs/fag.md")
        return empty.value.error.data, missing.value.error.data

    empty, missing = talk(parameters(tmp_path), work)
    assert empty["quire/error"]["details"] == {"missing": "documents"}
    assert missing["uri"] == "quire://docs/fag.md"
    assert missing["quire/error"]["details"] == {"missing": "document", "name": "docs:fag.md"}


def test_a_bug_is_an_internal_error() -> None:
    """A tool that fails for no known reason says so with a code."""
    from quire.surfaces.mcp.text import internal_failure

    answer = internal_failure("search")
    assert answer.error
    assert (answer.error["code"], answer.error["message"]) == ("internal_error", answer.text)
