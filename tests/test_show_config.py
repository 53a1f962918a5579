"""`quire config`: what is in force, and from where."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from quire import policy
from quire.config import DEFAULT
from tests.commands import run, user_settings

NAMES = [name for name, _ in policy.values(DEFAULT)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with settings of the user's own, and a project in it that is not trusted."""
    user_settings(tmp_path, "[search]\nlimit = 7\nmode = 'keyword'\n[embed]\nkey = 'hunter2'\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "quire.toml").write_text(
        "collection = 'docs'\n[search]\nlimit = 3\n[web]\nproxy = 'http://x'\n"
    )
    return tmp_path


def lines(place: Path, *args: str, **env: Any) -> list[str]:
    """What the command prints for the user whose home this is, or is the folder above."""
    home = place.parent if place.name == "project" else place
    env.setdefault("HOME", str(home))
    return run(place, "config", *args, **env)[0].splitlines()


def test_every_setting_is_shown_with_what_set_it(place: Path) -> None:
    project = place / "project"
    own, theirs = place / ".config" / "quire" / "quire.toml", project / "quire.toml"
    shown = lines(project, QUIRE_CHUNK_AUTO_MAX_TOKENS="600")
    assert [line.partition(" = ")[0] for line in shown] == NAMES
    assert f"search.limit = 3  ({theirs})" in shown
    assert f'search.mode = "keyword"  ({own})' in shown
    assert "chunk.auto.max_tokens = 600  (QUIRE_CHUNK_AUTO_MAX_TOKENS)" in shown
    assert 'embed.model = "none"  (QUIRE_EMBED_MODEL)' in shown
    assert "document.max_bytes = 64_000_000  (default)" in shown
    assert "search.fresh = unset  (default)" in shown


def test_what_an_untrusted_file_may_not_set_is_not_in_force(place: Path) -> None:
    project = place / "project"
    assert 'web.proxy = ""  (default)' in lines(project)
    assert "Ignored: web.proxy" in run(project, "config", HOME=str(place))[1]
    run(project, "trust", "--yes", HOME=str(place))
    assert f'web.proxy = "http://x"  ({project / "quire.toml"})' in lines(project)


def test_a_library_may_come_from_an_option_or_a_variable(place: Path) -> None:
    assert lines(place, "library", "-L", "a.db") == ['library = "a.db"  (-L)']
    url = "postgresql://me:hunter2@db.example.com/quire"
    (shown,) = lines(place, "library", QUIRE_LIBRARY=url)
    assert shown == 'library = "postgresql://me:…@db.example.com/quire"  (QUIRE_LIBRARY)'


def test_secrets_are_hidden_in_every_form(place: Path) -> None:
    proxy = "http://me:hunter2@proxy.example.com"
    for args in ((), ("--json",), ("--changed",)):
        out, err = run(place, "config", *args, QUIRE_WEB_PROXY=proxy)
        assert "hunter2" not in out + err
        assert "embed.key" in out


def test_a_table_a_setting_or_what_is_changed_alone(place: Path) -> None:
    assert lines(place, "memory", "watch.poll") == [
        "memory.similar = unset  (default)",
        "watch.poll = 30.0  (default)",
    ]
    shown = [line.partition(" = ")[0] for line in lines(place / "project", "--changed")]
    assert shown == ["collection", "embed.model", "embed.key", "search.mode", "search.limit"]
    assert "Did you mean 'search'?" in run(place, "config", "serch", code=1)[1]


def test_json_has_a_line_for_each_setting(place: Path) -> None:
    told = [json.loads(line) for line in lines(place, "--json")]
    assert [one["name"] for one in told] == NAMES
    (limit,) = (one for one in told if one["name"] == "search.limit")
    own = str(place / ".config" / "quire" / "quire.toml")
    assert limit == {"name": "search.limit", "value": 7, "default": 10, "source": "user", "place": own}


def test_a_value_is_written_as_a_settings_file_has_it(place: Path) -> None:
    """What is shown can be copied into quire.toml."""
    settings = [line.rpartition("  (")[0] for line in lines(place) if " = unset" not in line]
    found = tomllib.loads("\n".join(settings))
    assert found["web"]["max_bytes"] == 64_000_000
    assert found["search"]["rerank"] is False


def test_what_ollama_is_asked_at_once_is_told(place: Path) -> None:
    assert "embed.parallel is 2" in run(place, "config", OLLAMA_NUM_PARALLEL="2")[1]
