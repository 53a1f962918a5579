"""docs/serve.md: its tables are the code, and its examples run against a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from quire import Library
from quire.config import ServeSettings
from tests.http_server import serving
from tests.serve_docs import PAGE, table

TEXT = PAGE.read_text("utf-8")
EXAMPLES = TEXT.partition("### Examples")[2].partition("### Errors")[0]
USUAL = "http://127.0.0.1:8900"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", EXAMPLES, re.DOTALL | re.MULTILINE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The URL of a server, and a key."""
    with Library.open(tmp_path / "library.db", create=True) as library:
        _, key = library.make_key("tests")
    with serving(str(tmp_path / "library.db")) as client:
        yield str(client.base_url).rstrip("/"), key


def run(code: str, url: str, *command: str, **env: str) -> str:
    """What an example prints, asked of another server."""
    given: Any = {"env": os.environ | env, "capture_output": True, "text": True, "check": True}
    printed: str = subprocess.run([*command, code.replace(USUAL, url)], **given).stdout
    return printed


def is_part(shown: Any, whole: Any) -> bool:
    """Whether an answer has all that is shown of it."""
    if isinstance(shown, dict):
        return all(name in whole and is_part(value, whole[name]) for name, value in shown.items())
    if isinstance(shown, list):
        return len(shown) == len(whole) and all(map(is_part, shown, whole))
    return bool(shown == whole)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_examples_of_the_page_run(server: tuple[str, str]) -> None:
    """Issue: examples with curl and in Python, which answer what the page shows."""
    url, key = server
    *plain, events = blocks("sh")
    for command, shown in zip(plain, blocks("json"), strict=True):
        answer = json.loads(run(command, url, "sh", "-c"))
        assert is_part(json.loads(shown), answer), answer
    (code,) = blocks("python")
    printed = re.findall(r"^print\(.*?\)  # (.*)$", code, re.MULTILINE)
    assert run(code, url, sys.executable, "-c", QUIRE_KEY=key).splitlines() == printed
    assert "event: done\n" in run(events, url, "sh", "-c")


def test_the_table_of_routes_is_the_code() -> None:
    """The table in the docs is generated; write it with: python -m tests.serve_docs"""
    assert f"{table()}\n\n" in TEXT


def test_the_page_says_when_to_change_each_setting() -> None:
    """Issue: the settings of the server with their defaults."""
    rows = re.findall(r"^\| `serve\.(\w+)` \| `(.*?)` \| .+ \|$", TEXT, re.MULTILINE)
    defaults = ServeSettings()
    assert rows == [(one.name, str(getattr(defaults, one.name))) for one in fields(ServeSettings)]
