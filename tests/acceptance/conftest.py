"""What the tests of all founding numbers share."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner

import quire
from quire.config import override
from quire.surfaces.cli import main


def config(changes: Mapping[str, Any] | None = None) -> quire.Config:
    """Settings without a model: searches are by words. `changes` are as in quire.toml."""
    return override(override(quire.Config(), {"embed": {"model": "none"}}), changes or {})


@pytest.fixture
def library(library_url: str) -> Iterator[quire.Library]:
    """A new library without a model, on each database in turn."""
    with quire.Library.open(library_url, create=True, config=config()) as opened:
        yield opened


def cli(*args: str, stdin: str = "", code: int = 0) -> tuple[str, str]:
    """What a command prints on stdout and stderr, run in this process and without a model."""
    with (
        CliRunner().isolation(stdin, env={"QUIRE_EMBED_MODEL": "none", "COLUMNS": "100"}) as (out, err, _),
        patch.object(sys, "argv", ["quire", *args]),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    told = out.getvalue().decode(), err.getvalue().decode()
    assert (ended.value.code or 0) == code, told
    return told
