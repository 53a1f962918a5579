"""A project's library stays out of git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quire import Library
from tests.commands import run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text("# Guide\n")
    return tmp_path


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
