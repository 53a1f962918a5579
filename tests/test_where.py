"""`quire where`: which library is used, and why; and what keeps a project's library out of git."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from quire import Library
from tests.commands import run, user_settings


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text("# Guide\n")
    return tmp_path


def where(place: Path, *args: str, **env: str) -> dict[str, Any]:
    """What `quire where --json` says."""
    given: Any = env
    found: dict[str, Any] = json.loads(run(place, "where", "--json", *args, **given)[0])
    return found


def test_where_names_the_library_and_the_reason(place: Path) -> None:
    """Issue: which library is used and why: option, variable, project file, user file, nearest, your own."""
    own = str(place / ".local/share/quire/library.db")
    found = where(place)
    assert (found["library"], found["why"], found["exists"]) == (own, "own", False)
    assert found["add_creates"] == str(place / ".quire" / "library.db")
    run(place, "add", "docs")
    found = where(place / "docs", HOME=str(place))
    assert (found["library"], found["why"]) == (str(place / ".quire" / "library.db"), "nearest")
    assert (found["exists"], found["documents"], found["add_creates"]) == (True, 1, None)
    assert found["bytes"] >= (place / ".quire" / "library.db").stat().st_size > 0
    user_settings(place, 'library = "/mine.db"\n')
    assert (where(place)["library"], where(place)["why"]) == ("/mine.db", "user")
    (place / "quire.toml").write_text('library = "inside.db"\n')
    assert (where(place)["library"], where(place)["why"]) == (str(place / "inside.db"), "project")
    assert where(place, QUIRE_LIBRARY="v.db")["why"] == "variable"
    assert where(place, "-L", "o.db", QUIRE_LIBRARY="v.db")["why"] == "option"


def test_where_says_which_settings_are_trusted(place: Path) -> None:
    """What a project's file would set without trust is named, and so is the user's own file."""
    user_settings(place, "")
    (place / "quire.toml").write_text('library = "/elsewhere.db"\n[web]\nproxy = "http://x.example"\n')
    user, project = where(place)["settings"]
    assert (user["kind"], user["trusted"]) == ("user", True)
    assert (project["kind"], project["trusted"]) == ("project", False)
    assert project["ignored"] == ["library", "web.proxy"]
    assert where(place)["why"] == "own"
    assert "(the project's, not trusted, which would set library, web.proxy)" in run(place, "where")[0]
    run(place, "trust", "--yes")
    assert where(place)["settings"][1]["trusted"]
    assert where(place)["why"] == "project"


def test_the_first_line_is_the_library_without_secrets(place: Path) -> None:
    """A password never reaches a terminal; a server that does not answer is a problem, and no failure."""
    out, _ = run(place, "where", "-L", "postgresql://quire:s3cret@127.0.0.1:1/quire")
    assert out.splitlines()[0] == "postgresql://quire:…@127.0.0.1:1/quire"
    assert out.splitlines()[1].strip() == "named by -L"
    assert "cannot be opened" in out
    assert "s3cret" not in out
    run(place, "add", "docs")
    first, why, size, memories = run(place, "where")[0].splitlines()
    assert (first, why.strip()) == (
        str(place / ".quire" / "library.db"),
        "the nearest .quire/library.db in this folder or above",
    )
    assert size.strip().startswith("1 document, ")
    own = place / ".local/share/quire/library.db"
    assert memories.strip() == f"memories: {own} (your own library)"


def test_where_names_the_library_of_memories(place: Path) -> None:
    """Issue: memory lives in the user's own library, wherever one stands; a project cannot change that."""
    run(place, "add", "docs")
    own = {"library": str(place / ".local/share/quire/library.db"), "why": "own"}
    assert where(place)["memories"] == own
    (place / "quire.toml").write_text('library = "inside.db"\n')
    assert where(place)["memories"] == own
    assert where(place, QUIRE_LIBRARY="v.db")["memories"] == {"library": "v.db", "why": "variable"}
    assert where(place, "-L", "o.db")["memories"] == {"library": "o.db", "why": "option"}
    user_settings(place, 'library = "/mine.db"\n')
    assert where(place)["memories"] == {"library": "/mine.db", "why": "user"}


def test_a_library_of_a_project_stays_out_of_git(place: Path) -> None:
    """Issue: `.quire/` gets its own .gitignore, which is never changed again."""
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    run(place, "add", "docs")
    ignore = place / ".quire" / ".gitignore"
    assert ignore.read_text() == "*\n"
    status = ["git", "status", "--porcelain", "-uall"]
    shown = subprocess.run(status, cwd=place, capture_output=True, text=True, check=True).stdout
    assert shown == "?? docs/guide.md\n"
    (place / ".quire" / "library.db").unlink()
    ignore.write_text("mine\n")
    run(place, "add", "docs")
    assert ignore.read_text() == "mine\n"
    Library.open(place / "other.db", create=True).close()
    assert not (place / ".gitignore").exists()
