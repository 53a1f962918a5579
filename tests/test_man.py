"""The manual page: it is what the commands say, `man` can show it, and the package carries it."""

from __future__ import annotations

import shutil
import subprocess
import tomllib

import click
import pytest

from quire.surfaces.cli import quire
from tests import man


def test_the_manual_page_is_that_of_the_commands() -> None:
    """To write it: python -m tests.man"""
    assert man.PAGE.read_text("utf-8") == man.page()


@pytest.mark.skipif(not shutil.which("man"), reason="there is no man")
def test_man_shows_every_command_without_a_warning() -> None:
    command = ["man", "--warnings", "-l", str(man.PAGE)]
    env = {"PATH": "/usr/bin:/bin", "MANWIDTH": "100", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert done.stderr == ""
    shown = " ".join(done.stdout.split())
    with click.Context(quire, info_name="quire") as context:
        for name in quire.list_commands(context):
            assert f" quire {name} [OPTIONS]" in shown
    assert "quire search '\"exit code\"' -docker --path docs/" in shown
    assert "\b" not in man.PAGE.read_text("utf-8")


def test_the_package_installs_the_manual_page() -> None:
    """pip puts it where `man` looks, beside the command."""
    project = tomllib.loads((man.PAGE.parents[1] / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["setuptools"]["data-files"] == {"share/man/man1": ["man/quire.1"]}
