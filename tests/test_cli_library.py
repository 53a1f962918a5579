"""The library from the command line."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from quire.errors import NoResults
from quire.library import Library
from tests.commands import run
from tests.words import WORDS

GUIDE = "# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n\n## Use\n\nRun it.\n"
RESULT = (
    "address collection kind path url title heading trail breadcrumb header_path snippet highlights score"
    " match start end byte_start byte_end start_line end_line tokens parent parent_title parent_tokens depth"
    " document_id chunk_ids merged_from promotion stale verified confidence strength location link tags"
    " updated_at"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "guide.md").write_text(GUIDE)
    (docs / "faq.md").write_text("# FAQ\n\nPenguins swim.\n")
    return tmp_path


def test_add_search_read_toc_list_status(place: Path) -> None:
    """Issue: the embedded library end to end, in a new folder."""
    out, err = run(place, "add", "docs")
    assert out.startswith("2 added, 0 updated, 0 unchanged: ")
    assert err == ""
    assert (place / ".quire" / "library.db").exists()
    out, _ = run(place, "search", "package manager")
    assert out.splitlines()[:2] == [
        "  1. docs:guide.md#install",
        "     Guide › Install  (lines 5–8, 15 of 29 tokens in docs:guide.md#guide, strong match)",
    ]
    assert "Use the package manager." in out
    assert run(place, "read", "docs:guide.md#install")[0] == "## Install\n\nUse the package manager.\n\n"
    assert run(place, "read", "guide.md", "Use")[0] == "## Use\n\nRun it.\n"
    assert run(place, "toc", "docs:guide.md")[0].splitlines()[1:] == [
        "  Install  #install  (15)",
        "  Use  #use  (12)",
    ]
    listed = ["docs:faq.md  FAQ  (about 8 tokens)", "docs:guide.md  Guide  (about 25 tokens)"]
    assert run(place, "list")[0].splitlines() == listed
    assert "2 documents, 6 sections, 4 chunks" in run(place, "status")[0]


def test_json_of_each_command_has_the_fields_of_the_design(place: Path) -> None:
    """DESIGN §9: the JSON of add, search, read, list, status, refresh and remove."""
    added = json.loads(run(place, "add", "docs", "--json")[0])
    wanted = "added updated unchanged removed skipped failed documents sections chunks bytes seconds"
    assert set(wanted.split()) <= set(added)
    found = json.loads(run(place, "search", "penguins", "--json")[0])
    assert set(found) == {"query", "mode", "model", "good_match", "results", "notes"}
    assert set(found["results"][0]) == set(RESULT.split())
    assert found["results"][0]["address"] == "docs:faq.md#faq"
    explained = json.loads(run(place, "search", "penguins", "--json", "--explain")[0])
    assert explained["results"][0]["explain"]["hits"]
    read = json.loads(run(place, "read", "docs:faq.md", "--json")[0])
    assert read["text"] == "# FAQ\n\nPenguins swim.\n"
    assert json.loads(run(place, "list", "--json")[0].splitlines()[0])["address"] == "docs:faq.md"
    assert json.loads(run(place, "status", "--check", "--json")[0])["problems"] == []
    nothing: dict[str, list[str]] = {key: [] for key in ("changed", "missing", "kept", "new", "remade")}
    assert json.loads(run(place, "refresh", "--check", "--json")[0]) == nothing
    removed = json.loads(run(place, "remove", "docs:faq.md", "--json")[0])
    assert removed == {"removed": ["docs:faq.md"], "dry_run": False}


def test_exit_codes_tell_nothing_found_partly_done_and_failed(place: Path) -> None:
    """DESIGN §9: 1 nothing found, 2 usage, 3 partly done, 4 failed."""
    _, err = run(place, "search", "x", code=1)
    assert "No library at" in err
    (place / "docs" / "bad.md").write_bytes(b"\0")
    _, err = run(place, "add", "docs", code=3)
    assert "bad.md: holds NUL bytes" in err
    (place / "report.ps").write_bytes(b"%!PS-Adobe\nwords\n")
    _, err = run(place, "add", "report.ps", "-c", "reports", code=4)
    assert "report.ps: is a PostScript file, which Quire does not read" in err
    _, err = run(place, "add", "absent", code=4)
    assert "absent: no such file or folder" in err
    assert "Did you mean 'docs'" in run(place, "search", "x", "-c", "doc", code=1)[1]
    assert "No match" in run(place, "search", "xyzzy", code=1)[1]
    assert "is outside 1 to 1,000" in run(place, "search", "x", "-n", "0", code=2)[1]
    assert "query: is empty" in run(place, "search", "", code=2)[1]
    assert "Did you mean 'docs:faq.md'" in run(place, "read", "docs:fak.md", code=1)[1]


def test_standard_input_is_a_document(place: Path) -> None:
    """DESIGN §8: standard input, under a path of its own."""
    run(place, "add", "-", "--as", "notes.md", "-c", "mine", stdin=b"# N\n\nokapi\n")
    assert run(place, "search", "okapi")[0].startswith("  1. mine:notes.md#n")


def test_refresh_names_what_is_gone_and_prunes_when_asked(place: Path) -> None:
    """Issue: --check lists, --prune removes."""
    run(place, "add", "docs")
    (place / "docs" / "faq.md").unlink()
    (place / "docs" / "guide.md").write_text(GUIDE + "\nmore\n")
    assert run(place, "refresh", "--check", code=1)[0].splitlines() == [
        "changed  docs:guide.md",
        "kept     docs:faq.md",  # half of its source is gone at once
    ]
    out, err = run(place, "refresh")
    assert out.startswith("0 added, 1 updated")
    assert "1 document is no longer in its source, but kept, because" in err
    assert "1 of its 2 documents is missing at once" in err
    assert "1 removed" in run(place, "refresh", "--prune")[0]


def test_reading_in_a_pipe_gives_the_exact_bytes(place: Path) -> None:
    """Invariant 1: byte for byte, whatever they are."""
    source = b"\xef\xbb\xbf# A\r\n\r\ncaf\xe9\r\n"
    (place / "docs" / "odd.md").write_bytes(source)
    run(place, "add", "docs")
    done = subprocess.run(
        [Path(sys.executable).parent / "quire", "read", "docs:odd.md"],
        cwd=place,
        capture_output=True,
        check=True,
    )
    assert done.stdout == source


def test_every_command_takes_the_names_that_read_takes(place: Path) -> None:
    """A stranger found: `quire toc public/p.md` failed where `quire read public/p.md` worked."""
    (place / "docs" / "public").mkdir()
    (place / "docs" / "public" / "p.md").write_text(GUIDE)
    run(place, "add", "docs", "-L", "l.db")
    listed = map(json.loads, run(place, "list", "--json", "-L", "l.db")[0].splitlines())
    (id,) = (row["id"] for row in listed if row["path"] == "public/p.md")
    for name in ("docs:public/p.md", "public/p.md", id):
        assert run(place, "read", name, "-L", "l.db")[0] == GUIDE
        assert "  Install" in run(place, "toc", name, "-L", "l.db")[0]
        assert run(place, "promote", name, "important", "-L", "l.db")[0] == "docs:public/p.md is important.\n"
        assert run(place, "remove", name, "--dry-run", "-L", "l.db")[0] == "docs:public/p.md\n"
    out, err = run(place, "toc", "docs/guide.md", "public/p.md", "absent.md", "-L", "l.db", code=3)
    assert [line.split("  (")[0] for line in out.splitlines()] == [
        "Guide",
        "  Install  #install",
        "  Use  #use",
    ] * 2
    assert err == "quire: absent.md: no such file or directory\n"
    assert "No document 'docs:absent.md'" in run(place, "toc", "docs:absent.md", "-L", "l.db", code=1)[1]
    assert "absent.md: no such file" in run(place, "toc", "absent.md", "-L", "none.db", code=4)[1]
    assert "No library at none.db" in run(place, "toc", "docs:guide.md", "-L", "none.db", code=1)[1]


def test_a_progress_bar_is_shown_to_people_only(place: Path) -> None:
    """People first: a bar on a terminal's stderr, nothing in a pipe."""
    for number in range(30):
        (place / "docs" / f"{number}.md").write_text(GUIDE * 20)
    leader, follower = pty.openpty()
    command = [str(Path(sys.executable).parent / "quire"), "add", "docs"]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=follower) as process:
        process.wait(30)
    os.close(follower)
    shown = os.read(leader, 100_000).decode(errors="replace")
    os.close(leader)
    assert "indexing" in shown


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.3, 1.0])
def test_interrupting_leaves_a_sound_library_and_says_how_to_go_on(place: Path, delay: float) -> None:
    """Issue: Ctrl-C leaves a consistent library, whenever it comes."""
    for number in range(700):
        (place / "docs" / f"{number}.md").write_text(f"# D{number}\n\n" + "some words here. " * 200)
    command = [str(Path(sys.executable).parent / "quire"), "add", "docs"]
    with subprocess.Popen(
        command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        while not (place / ".quire" / "library.db").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    if process.returncode != 0:  # a quick machine may have finished
        assert process.returncode == 130
        assert err.decode().startswith("quire: Stopped.")  # and how to go on, if anything was begun
        assert "Traceback" not in err.decode()
    made = place / ".quire" / "library.db"
    with suppress(NoResults), Library.open(made, config=WORDS) as library:  # if there was time to make it
        assert library.store.check() == []
    run(place, "add", "docs")
    assert json.loads(run(place, "status", "--check", "--json")[0])["problems"] == []
    assert "702 documents" in run(place, "status")[0]


def test_a_query_needs_no_quotes(place: Path) -> None:
    """Issue: `quire search renamed file`; -word may come first, and a misspelt option is an error."""
    run(place, "add", "docs")
    assert "docs:faq.md" in run(place, "search", "penguins", "swim")[0]
    out, err = run(place, "search", "-penguins", "install", "-n", "5")
    assert "docs:guide.md#install" in out
    assert "Excluded: penguins" in err
    assert "No such option" in run(place, "search", "--limt", "5", "penguins", code=2)[1]
