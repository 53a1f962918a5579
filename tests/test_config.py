"""Settings: defaults, quire.toml, QUIRE_*."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from quire import config, trust
from quire.config import STRATEGIES, ChunkSettings, Config, Project
from quire.embed.http import Ollama, OpenAI
from quire.errors import SettingError, nearest
from quire.settings import LIBRARY, MCP_KEY, Loaded, load
from tests.commands import user_settings


def home(place: Path) -> dict[str, str]:
    """The variables of a user whose home is a folder."""
    return {"HOME": str(place)}


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
    given = {"QUIRE_CHUNK_WINDOWS_MAX_TOKENS": "50", "QUIRE_LIBRARY": "x", "QUIRE_MCP_KEY": "k", "PATH": "y"}
    loaded = load(below, home(tmp_path) | given)
    assert loaded.notes == ()
    found = loaded.config
    assert found.chunk.strategy == "windows"
    assert (found.chunk.windows.max_tokens, found.chunk.windows.overlap) == (50, 0.0)
    assert found.library == ""
    assert load(tmp_path.parent, home(tmp_path)) == Loaded(Config())


def test_the_users_own_file_comes_before_the_projects(tmp_path: Path) -> None:
    """Defaults < the user's file < the project's file < variables; the user's file is always trusted."""
    user, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    user_settings(user, '[chunk]\nstrategy = "nodes"\n[web]\nproxy = "http://p"\n[search]\nlimit = 7\n')
    (project / "quire.toml").write_text('[chunk]\nstrategy = "windows"\n[context]\nmax_tokens = 9\n')
    loaded = load(project, home(user) | {"QUIRE_CONTEXT_MAX_TOKENS": "8"})
    found = loaded.config
    assert (found.chunk.strategy, found.web.proxy, found.search.limit) == ("windows", "http://p", 7)
    assert found.context.max_tokens == 8
    assert found.project == Project(str(project.resolve()), False)
    assert loaded.notes == ()


def test_xdg_config_home_names_the_users_folder(tmp_path: Path) -> None:
    """$XDG_CONFIG_HOME/quire/quire.toml; a relative one is passed over, as the standard says."""
    (tmp_path / "x" / "quire").mkdir(parents=True)
    (tmp_path / "x" / "quire" / "quire.toml").write_text("[search]\nlimit = 7\n")
    at = home(tmp_path)
    assert load(tmp_path, at | {"XDG_CONFIG_HOME": str(tmp_path / "x")}).config.search.limit == 7
    assert load(tmp_path, at | {"XDG_CONFIG_HOME": "x"}).config.search.limit == 10


def test_a_user_without_a_home_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that is not absolute would be a folder of whoever made the working folder."""
    user_settings(tmp_path, '[web]\nproxy = "http://evil"\n')
    monkeypatch.chdir(tmp_path)
    assert load(tmp_path, {"HOME": "."}) == Loaded(Config())


def test_a_file_that_is_nearest_and_the_users_own_is_read_once(tmp_path: Path) -> None:
    """In its own folder, the user's file is the user's and no project's."""
    user_settings(tmp_path, '[web]\nproxy = "http://p"\n')
    loaded = load(tmp_path / ".config" / "quire" / "below", home(tmp_path))
    assert (loaded.config.web.proxy, loaded.config.project, loaded.notes) == ("http://p", None, ())


def test_a_library_is_relative_to_the_file_that_names_it(tmp_path: Path) -> None:
    """`library` is a path from the folder of the file, or a URL as it is."""
    project, user = tmp_path.resolve() / "project", tmp_path.resolve() / "user"
    (project / "below").mkdir(parents=True)
    for name, expected in {
        "docs.db": str(project / "docs.db"),
        "./x/../docs.db": str(project / "docs.db"),
    }.items():
        (project / "quire.toml").write_text(f'library = "{name}"\n')
        assert load(project / "below", home(user)).config.library == expected
    for name, expected in {
        "docs.db": str(user / ".config" / "quire" / "docs.db"),
        "/x/docs.db": "/x/docs.db",
        "postgresql://db/quire": "postgresql://db/quire",
    }.items():
        user_settings(user, f'library = "{name}"\n')
        assert load(user, home(user)).config.library == expected


def test_unknown_variables_get_one_warning(tmp_path: Path) -> None:
    """BAD_INPUTS: an unknown QUIRE_… gets one warning that names the nearest."""
    given = {"QUIRE_EMBED_MODLE": "none", "QUIRE_XYZZY": "1", "QUIRE_LIBRARI": "x"}
    assert load(tmp_path, home(tmp_path) | given).notes == (
        "QUIRE_EMBED_MODLE is not a setting. Did you mean QUIRE_EMBED_MODEL? "
        "QUIRE_LIBRARI is not a setting. Did you mean QUIRE_LIBRARY? "
        "QUIRE_XYZZY is not a setting.",
    )
    many = {f"QUIRE_X{number}": "" for number in range(100)}
    (note,) = load(tmp_path, home(tmp_path) | many).notes
    assert len(note) < 500
    assert "95 more" in note


def test_every_variable_that_a_command_reads_is_known() -> None:
    """What is no setting and yet read is named in one place."""
    from quire.surfaces.cli import quire as commands

    read = {option.envvar for command in commands.commands.values() for option in command.params} - {None}
    assert read == {LIBRARY, MCP_KEY}


def test_the_project_is_no_setting(tmp_path: Path) -> None:
    """No file and no variable can say where the project is, or that it is trusted."""
    (tmp_path / "quire.toml").write_text("[project]\ntrusted = true\n")
    with pytest.raises(SettingError, match=r"project: there is no such setting"):
        load(tmp_path, home(tmp_path))
    (tmp_path / "quire.toml").unlink()
    (note,) = load(tmp_path, home(tmp_path) | {"QUIRE_PROJECT_TRUSTED": "1"}).notes
    assert note.startswith("QUIRE_PROJECT_TRUSTED is not a setting.")
    with pytest.raises(SettingError, match="there is no such setting"):
        config.override(Config(), {"project": None})


def test_new_settings_have_defaults_and_ranges(tmp_path: Path) -> None:
    """`files`, `ingest` and `collection` are settings as all others are."""
    given = {
        "QUIRE_FILES_EXCLUDE": "*.txt, old/",
        "QUIRE_COLLECTION": "docs",
        "QUIRE_INGEST_MAX_SECONDS": "2",
    }
    found = load(tmp_path, home(tmp_path) | given).config
    assert (found.files.include, found.files.exclude) == ((), ("*.txt", "old/"))
    assert (found.collection, found.ingest.max_seconds) == ("docs", 2.0)
    with pytest.raises(SettingError, match="max_memory: 1 is outside"):
        load(tmp_path, home(tmp_path) | {"QUIRE_INGEST_MAX_MEMORY": "1"})


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[chunk]\nstrategi = 1\n", r"chunk.strategi: there is no such setting. Did you mean 'strategy'\?"),
        ("[chunk]\nstrategy = 'best'\n", r"strategy: there is no 'best'"),
        ("[chunk.auto]\nmax_tokens = 'many'\n", r"chunk.auto.max_tokens: must be a whole number, not 'many'"),
        ("[chunk.auto]\nmax_tokens = true\n", r"chunk.auto.max_tokens: must be a whole number, not True"),
        ("[chunk.auto]\nmax_tokens = -1\n", r"max_tokens: -1 is outside 8 to 1,000,000"),
        ("[chunk.auto]\nmax_tokens = 1000000000\n", r"max_tokens: 1,000,000,000 is outside"),
        ("[tree]\nslug_style = 'gitlab'\n", r"slug_style: there is no 'gitlab'"),
        ("chunk = 3\n", r"chunk: is a table, not 3"),
        ("[chunk\n", r"quire.toml: is not TOML"),
        ("a = " + "[" * 5000, r"quire.toml: is not TOML"),
        ("a = " + "9" * 5000, r"quire.toml: is not TOML"),
        ("[web]\nretries = 0x" + "f" * 5000, r"web.retries: is too large a number"),
        ("[web]\ndeadline = nan", r"deadline: nan is outside"),
        ("[embed]\nurl = ['http://x']", r"embed.url: must be a string"),
        ("a." * 30_000 + "a = 1", r"quire.toml: has over 65,536 bytes, or a line of it has over 500 dots"),
        ("#" * 65_537, r"quire.toml: has over 65,536 bytes"),
    ],
)
def test_a_wrong_setting_says_what_and_where(tmp_path: Path, toml: str, message: str) -> None:
    """BAD_INPUTS: unknown key → the nearest name; out of range → the range."""
    (tmp_path / "quire.toml").write_text(toml)
    with pytest.raises(SettingError, match=message):
        load(tmp_path, home(tmp_path))


def ollama_parallel(folder: Path, **given: str) -> tuple[int, tuple[str, ...]]:
    """The requests at once that Ollama gets, and the notes about it."""
    loaded = load(folder, home(folder) | given)
    embed = loaded.config.embed
    embedder, other = Ollama("m", embed), OpenAI("m", embed)
    assert other._parallel == embed.parallel  # the variable is not for other servers
    return embedder._parallel, loaded.notes


def test_the_variable_of_ollama_bounds_parallel_requests(tmp_path: Path) -> None:
    """003: OLLAMA_NUM_PARALLEL bounds parallel embedding where it is set; the default is 4."""
    assert ollama_parallel(tmp_path) == (4, ())
    for said, number in {
        "1": 1,
        " 2 ": 2,
        "8": 8,
        "1000": 64,
        "1000000000": 64,
        "9" * 99: 64,
        "0": 4,
        "": 4,
    }.items():
        assert ollama_parallel(tmp_path, OLLAMA_NUM_PARALLEL=said) == (number, ())
    for said in ("many", "-1", "1.5", "9" * 100):
        note = f"OLLAMA_NUM_PARALLEL must be a whole number, not {said!r}. It is ignored."
        assert ollama_parallel(tmp_path, OLLAMA_NUM_PARALLEL=said) == (4, (note,))


def test_a_setting_wins_over_the_variable_of_ollama(tmp_path: Path) -> None:
    """003: what the user set counts, also if it is the default; an untrusted file may only lower it."""
    given = {"OLLAMA_NUM_PARALLEL": "2"}
    assert ollama_parallel(tmp_path, **given, QUIRE_EMBED_PARALLEL="4") == (4, ())
    (tmp_path / "quire.toml").write_text("[embed]\nparallel = 4\n")
    assert ollama_parallel(tmp_path, **given) == (2, ())
    (tmp_path / "quire.toml").write_text("[embed]\nparallel = 1\n")
    assert ollama_parallel(tmp_path, **given) == (1, ())
    user_settings(tmp_path, "[embed]\nparallel = 4\n")
    (tmp_path / "quire.toml").unlink()
    assert ollama_parallel(tmp_path, **given) == (4, ())


def test_a_trusted_file_wins_over_the_variable_of_ollama(tmp_path: Path) -> None:
    """003: a project's setting counts once its user trusts the file."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "quire.toml").write_text("[embed]\nparallel = 3\n")
    trust.note_trusted(project / "quire.toml", b"[embed]\nparallel = 3\n", home(tmp_path))
    loaded = load(project, home(tmp_path) | {"OLLAMA_NUM_PARALLEL": "1"})
    assert loaded.config.project
    assert loaded.config.project.trusted
    assert (loaded.config.embed.parallel, loaded.config.embed.ollama_parallel) == (3, 0)


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
