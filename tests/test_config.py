"""Settings: defaults, quire.toml, QUIRE_*."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from quire import config
from quire.config import STRATEGIES, ChunkSettings, Config, load
from quire.errors import SettingError, nearest


def test_defaults_are_those_of_the_founding_documents() -> None:
    """T: 8000; B: 800 and 0.15; D: 768, 0.1 and 100; H: 500 and 1000."""
    chunk = Config().chunk
    assert chunk.sections.max_tokens == 8000
    assert (chunk.memory.max_tokens, chunk.memory.overlap, chunk.memory.min_chars) == (800, 0.15, 0)
    assert (chunk.windows.max_tokens, chunk.windows.overlap, chunk.windows.min_chars) == (768, 0.10, 100)
    assert (chunk.headers.threshold_lines, chunk.headers.max_lines) == (500, 1000)


def test_every_strategy_has_settings() -> None:
    """A default lives once: the strategies are the fields."""
    assert {f.name for f in fields(ChunkSettings)} == {"strategy", *STRATEGIES}


def test_the_nearest_file_upward_and_then_the_environment_decide(tmp_path: Path) -> None:
    """DESIGN §3: quire.toml, then QUIRE_*."""
    (tmp_path / "quire.toml").write_text(
        '[chunk]\nstrategy = "windows"\n[chunk.windows]\noverlap = 0\nmax_tokens = 99\n'
    )
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = load(below, {"QUIRE_CHUNK_WINDOWS_MAX_TOKENS": "50", "QUIRE_LIBRARY": "x", "PATH": "y"})
    assert found.chunk.strategy == "windows"
    assert (found.chunk.windows.max_tokens, found.chunk.windows.overlap) == (50, 0.0)
    assert load(tmp_path.parent, {}) == Config()


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[chunk]\nstrategi = 1\n", r"chunk.strategi: there is no such setting. Did you mean 'strategy'\?"),
        ("[chunk]\nstrategy = 'best'\n", r"strategy: there is no 'best'"),
        ("[chunk.auto]\nmax_tokens = 'many'\n", r"chunk.auto.max_tokens: wants a whole number, not 'many'"),
        ("[chunk.auto]\nmax_tokens = true\n", r"chunk.auto.max_tokens: wants a whole number, not True"),
        ("[chunk.auto]\nmax_tokens = -1\n", r"max_tokens: -1 is outside 8 to 1,000,000"),
        ("[chunk.auto]\nmax_tokens = 1000000000\n", r"max_tokens: 1,000,000,000 is outside"),
        ("[tree]\nslug_style = 'gitlab'\n", r"slug_style: there is no 'gitlab'"),
        ("chunk = 3\n", r"chunk: is a table, not 3"),
        ("[chunk\n", r"quire.toml: is not TOML"),
    ],
)
def test_a_wrong_setting_says_what_and_where(tmp_path: Path, toml: str, message: str) -> None:
    """BAD_INPUTS: unknown key → the nearest name; out of range → the range."""
    (tmp_path / "quire.toml").write_text(toml)
    with pytest.raises(SettingError, match=message):
        load(tmp_path, {})


def test_settings_cannot_be_changed() -> None:
    """HABITS 3: frozen."""
    with pytest.raises(AttributeError):
        config.DEFAULT.chunk.strategy = "x"  # type: ignore[misc]


def test_a_message_lists_some_names_and_counts_the_others() -> None:
    """Errors help: a document with a thousand headings does not fill the screen with them."""
    many = [f"name{n}" for n in range(1000)]
    assert nearest("zzz", many).endswith("name19 and 980 more.")
    assert nearest("name7", many) == "Did you mean 'name7'?"
    assert nearest("zzz", many[:2]) == "Known: name0, name1."
    assert nearest("zzz", []) == "There are none."
