"""A project's quire.toml may only narrow until its user trusts it."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import policy, trust
from quire.config import Config, Project
from quire.errors import SettingError
from quire.settings import FILE, load
from tests import models_server
from tests.commands import environment, run, user_settings
from tests.models_server import Models

GUARDED = {
    "embed.url": '[embed]\nurl = "http://evil.example"\n',
    "embed.key": '[embed]\nkey = "theirs"\n',
    "embed.model": '[embed]\nmodel = "openai/x"\n',
    "embed.query_prefix": '[embed]\nquery_prefix = "x"\n',
    "embed.document_prefix": '[embed]\ndocument_prefix = "x"\n',
    "web.allow_hosts": '[web]\nallow_hosts = ["127.0.0.1"]\n',
    "web.proxy": '[web]\nproxy = "http://evil.example"\n',
    "serve.allowed_hosts": '[serve]\nallowed_hosts = ["evil.example"]\n',
    "serve.allowed_origins": '[serve]\nallowed_origins = ["https://evil.example"]\n',
    "serve.trusted_proxies": '[serve]\ntrusted_proxies = ["203.0.113.9"]\n',
    "serve.log_queries": "[serve]\nlog_queries = true\n",
    "web.user_agent": '[web]\nuser_agent = "x"\n',
}
LIMITS = {
    "document.max_bytes": 64_000_000,
    "document.max_front_matter": 65_536,
    "ingest.max_seconds": 120,
    "ingest.max_memory": 2_000_000_000,
    "embed.max_tokens": 512,
    "embed.batch": 32,
    "embed.parallel": 4,
    "embed.timeout": 60,
    "search.candidates": 100,
    "web.max_bytes": 64_000_000,
    "web.deadline": 60,
    "web.redirects": 5,
    "web.retries": 3,
    "web.per_host": 4,
    "web.max_pages": 1000,
    "web.max_depth": 1,
    "web.site_depth": 10,
    "web.concurrency": 8,
    "git.max_bytes": 1_000_000_000,
    "git.deadline": 600,
    "git.max_files": 500_000,
    "serve.rate": 50,
    "serve.max_bytes": 64_000_000,
    "serve.timeout": 30,
}
PAUSES = {"watch.debounce": 0.5, "watch.reconcile": 600, "watch.poll": 30, "watch.pages": 86_400}
FREE = """
collection = "manual"
library = ".quire/library.db"
[files]
include = ["*.md"]
exclude = ["old/"]
[tree]
slug_style = "github"
[tokens]
counter = "words"
[chunk]
strategy = "windows"
[chunk.windows]
max_tokens = 900
[embed]
model = "none"
[search]
limit = 50
mode = "keyword"
[context]
max_tokens = 9000
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's folder; the folder above is its user's home."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def write(project: Path, toml: str) -> Path:
    path = project / "quire.toml"
    path.write_text(toml)
    return path


def home(project: Path) -> dict[str, str]:
    return {"HOME": str(project.parent)}


def quire(project: Path, *args: str, code: int = 0, **env: str) -> tuple[str, str]:
    """What a command prints in a project."""
    return run(project, *args, code=code, stdin=b"", **{"HOME": str(project.parent), **env})


# -------------------------------------------------------------------------------------- the policy


@pytest.mark.parametrize("name", GUARDED)
def test_what_sends_or_opens_is_ignored_until_it_is_trusted(project: Path, name: str) -> None:
    """A project file names no server, key, model elsewhere, host, proxy: the note says which, and how."""
    path = write(project, GUARDED[name])
    loaded = load(project, home(project))
    assert loaded.config == Config(project=Project(str(project.resolve()), False))
    assert loaded.notes == (f"{path.resolve()} is not trusted. Ignored: {name}. To accept them: quire trust",)
    trust.note_trusted(path.resolve(), path.read_bytes(), home(project))
    loaded = load(project, home(project))
    assert value(loaded.config, name) != value(Config(), name)
    assert loaded.config.project == Project(str(project.resolve()), True)
    assert loaded.notes == ()


def value(settings: object, name: str) -> object:
    for key in name.split("."):
        settings = getattr(settings, key)
    return settings


def test_one_line_names_all_that_is_ignored(project: Path) -> None:
    """One note in all, however many settings a file may not set."""
    write(project, '[embed]\nurl = "http://x"\nkey = "k"\n[web]\nproxy = "http://y"\nretries = 9\n')
    (note,) = load(project, home(project)).notes
    assert "Ignored: embed.url, embed.key, web.retries, web.proxy. To accept them: quire trust" in note


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_may_be_lowered_and_not_raised(project: Path, name: str) -> None:
    """An untrusted file lowers a limit below the value in force so far, and never raises one."""
    table, key = name.split(".")
    assert value(Config(), name) == LIMITS[name]
    lowest = {"embed.max_tokens": 64, "ingest.max_memory": 30_000_000, "document.max_front_matter": 0}
    low = lowest.get(name, 0 if key in ("redirects", "retries") else 1)
    for wanted, expected in ((LIMITS[name] * 2, LIMITS[name]), (low, low)):
        write(project, f"[{table}]\n{key} = {wanted}\n")
        loaded = load(project, home(project))
        assert value(loaded.config, name) == expected
        assert (name in "".join(loaded.notes)) == (wanted > LIMITS[name])
    user_settings(project.parent, f"[{table}]\n{key} = {low}\n")
    write(project, f"[{table}]\n{key} = {LIMITS[name]}\n")
    assert value(load(project, home(project)).config, name) == low


@pytest.mark.parametrize("name", PAUSES)
def test_a_pause_may_be_made_longer_and_not_shorter(project: Path, name: str) -> None:
    """An untrusted file cannot make watching busier than its user wants."""
    table, key = name.split(".")
    assert value(Config(), name) == PAUSES[name]
    for wanted, expected in ((PAUSES[name] * 2, PAUSES[name] * 2), (PAUSES[name] / 2, PAUSES[name])):
        write(project, f"[{table}]\n{key} = {wanted}\n")
        loaded = load(project, home(project))
        assert value(loaded.config, name) == expected
        assert (name in "".join(loaded.notes)) == (wanted < expected)


def test_every_limit_and_guard_is_tested_here() -> None:
    """What a project file may set without trust is decided for each setting, and pinned."""
    free = {"collection", "files", "tree", "tokens", "chunk", "search", "context", "eval", "memory"}
    names = {".".join(path) for path in policy.paths(Config())}
    others = names - {*GUARDED, *LIMITS, *PAUSES, "library"}
    assert [name for name in others if name.split(".")[0] not in free] == []


def test_how_documents_are_cut_and_shown_is_free(project: Path) -> None:
    """A project file sets chunking, results, files, its collection and a library inside its folder."""
    write(project, FREE)
    loaded = load(project, home(project))
    found = loaded.config
    assert loaded.notes == ()
    assert (found.collection, found.files.include, found.files.exclude) == ("manual", ("*.md",), ("old/",))
    assert found.library == str(project.resolve() / ".quire" / "library.db")
    assert (found.chunk.strategy, found.chunk.windows.max_tokens) == ("windows", 900)
    assert (found.search.limit, found.search.mode, found.context.max_tokens) == (50, "keyword", 9000)
    assert (found.embed.model, found.tree.slug_style, found.tokens.counter) == ("none", "github", "words")


@pytest.mark.parametrize("model", ["", "static", "deep", "none"])
def test_models_that_send_nothing_are_free(project: Path, model: str) -> None:
    """A project file may turn meaning off, or use the model that is inside."""
    user_settings(project.parent, '[embed]\nmodel = "ollama/x"\n')
    write(project, f'[embed]\nmodel = "{model}"\n')
    loaded = load(project, home(project))
    assert (loaded.config.embed.model, loaded.notes) == (model, ())


@pytest.mark.parametrize(
    "name", ["../a.db", "~/library.db", "postgresql://u:secret@h/db", ":memory:", "link/x.db", "link.db", ""]
)
def test_a_library_elsewhere_needs_trust(project: Path, name: str) -> None:
    """A library outside the project's folder, links followed, is not used before its file is trusted."""
    (project / "link").symlink_to(project.parent)
    (project / "link.db").symlink_to(project.parent / "other.db")
    user_settings(project.parent, 'library = "/mine.db"\n')
    path = write(project, f'library = "{name}"\n')
    loaded = load(project, home(project))
    assert loaded.config.library == "/mine.db"
    assert "Ignored: library." in loaded.notes[0]
    assert "secret" not in loaded.notes[0]
    trust.note_trusted(path.resolve(), path.read_bytes(), home(project))
    assert load(project, home(project)).config.library != "/mine.db"


def test_what_the_user_has_set_cannot_be_taken_away(project: Path) -> None:
    """A project file cannot send what the user meant for one server to the usual one."""
    user_settings(project.parent, '[embed]\nurl = "http://mine"\nkey = "k"\n[web]\nproxy = "http://p"\n')
    write(project, '[embed]\nurl = ""\nkey = ""\n[web]\nproxy = ""\n')
    found = load(project, home(project)).config
    assert (found.embed.url, found.embed.key, found.web.proxy) == ("http://mine", "k", "http://p")


def test_a_file_is_trusted_where_it_is(project: Path, tmp_path: Path) -> None:
    """The same bytes elsewhere, or a link to a trusted file, are not trusted."""
    path = write(project, GUARDED["web.proxy"])
    trust.note_trusted(path.resolve(), path.read_bytes(), home(project))
    other = tmp_path / "other"
    other.mkdir()
    (other / "quire.toml").symlink_to(path)
    assert load(other, home(project)).config.web.proxy == ""


@given(st.data())
def test_no_file_widens_anything(data: st.DataObject) -> None:
    """Whatever a project file asks for: no limit rises and nothing guarded changes."""
    old, wanted = data.draw(settings()), data.draw(settings())
    found, refused = policy.narrowed(old, wanted, "/project")
    for name in GUARDED:
        assert value(found, name) == value(old, name) or value(found, name) in ("", "deep", "none")
    for name in LIMITS:
        assert value(found, name) <= value(old, name)  # type: ignore[operator]
    for name in map(".".join, policy.paths(old)):
        assert value(found, name) == value(old if name in refused else wanted, name)


@st.composite
def settings(draw: st.DrawFn) -> Config:
    words = st.sampled_from(["", "deep", "none", "http://x", "openai/x"])
    few = st.integers(1, 9)
    base = Config()
    return replace(
        base,
        embed=replace(base.embed, model=draw(words), url=draw(words), key=draw(words), batch=draw(few)),
        web=replace(base.web, proxy=draw(words), retries=draw(few), deadline=float(draw(few))),
        search=replace(base.search, limit=draw(few), candidates=draw(few)),
        chunk=replace(base.chunk, strategy=draw(st.sampled_from(["auto", "nodes"]))),
    )


# --------------------------------------------------------------------------------------- the record


def test_trust_is_remembered_by_path_and_content(project: Path) -> None:
    """A trusted file is trusted until it changes, and again when it is as it was."""
    path = write(project, GUARDED["web.proxy"])
    quire(project, "trust", "--yes")
    assert load(project, home(project)).config.web.proxy
    path.write_text(path.read_text() + "\n")
    assert load(project, home(project)).config.web.proxy == ""
    write(project, GUARDED["web.proxy"])
    assert load(project, home(project)).config.web.proxy


def test_the_record_is_the_users_alone(project: Path) -> None:
    """trusted.json is in the user's data folder, whole, with mode 0600."""
    path = write(project, GUARDED["web.proxy"])
    quire(project, "trust", "--yes")
    record = project.parent / ".local" / "share" / "quire" / "trusted.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    (kept,) = json.loads(record.read_text())["files"].items()
    assert kept[0] == str(path.resolve())
    assert kept[1]["sha256"] == trust.sha256_of(path.read_bytes())
    quire(project, "trust", "--yes", XDG_DATA_HOME=str(project.parent / "data"))
    assert (project.parent / "data" / "quire" / "trusted.json").exists()


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"[]", b'{"files": 3}', b'{"files": {"a": 1}}', b"\xff", b"[" * 100_000]
)
def test_a_broken_record_trusts_nothing_and_is_kept(project: Path, broken: bytes) -> None:
    """A record that cannot be read is said in one line, and kept when a new one is written."""
    write(project, GUARDED["web.proxy"])
    record = project.parent / ".local" / "share" / "quire" / "trusted.json"
    record.parent.mkdir(parents=True)
    record.write_bytes(broken)
    loaded = load(project, home(project))
    assert loaded.config.web.proxy == ""
    assert loaded.notes[0] == f"{record} cannot be read, so no project file is trusted."
    _, err = quire(project, "trust", "--yes")
    assert f"It is kept as {record}.broken1" in err
    assert Path(f"{record}.broken1").read_bytes() == broken
    assert load(project, home(project)).config.web.proxy


def test_a_record_that_cannot_be_written_is_an_error(project: Path) -> None:
    """Where nothing can be recorded, the command says why, and nothing is trusted."""
    write(project, GUARDED["web.proxy"])
    (project.parent / ".local").write_text("a file")
    _, err = quire(project, "trust", "--yes", code=2)
    assert "trusted.json: cannot be written: Not a directory" in err
    assert load(project, home(project)).config.web.proxy == ""


def test_two_at_once_lose_nothing(project: Path) -> None:
    """Records are changed by one process at a time."""
    from concurrent.futures import ThreadPoolExecutor

    paths = [Path(f"/p{number}/quire.toml") for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: trust.note_trusted(path, b"", home(project)), paths))
    assert set(trust.Records.read(home(project)).files) == set(map(str, paths))


# -------------------------------------------------------------------------------------- the command


def test_the_file_is_shown_before_it_is_trusted(project: Path) -> None:
    """`quire trust` prints what a file sets, safe for a terminal and without keys, and what needs trust."""
    toml = (
        '[files]\nexclude = ["hello\u202e"]\n[embed]\nurl = "http://evil.example"\nkey = "sk-secret"\n'
        '[web]\nproxy = "http://me:hunter2@proxy.example"\n[search]\nlimit = 5\n'
    )
    write(project, toml)
    out, err = quire(project, "trust", "--yes")
    assert err == ""
    assert r"files.exclude = hello\u{202e}" in out
    assert "search.limit = 5" in out
    needed = out.partition("These settings need your trust:\n")[2].splitlines()
    assert needed[:-1] == [
        "  embed.url = http://evil.example",
        "  embed.key = …",
        "  web.proxy = http://…@proxy.example",
    ]
    assert needed[-1] == f"Trusted: {project.resolve() / 'quire.toml'}"
    assert "sk-secret" not in out
    assert "hunter2" not in out


@pytest.mark.parametrize(
    "toml",
    [
        'embed = {url = "http://x", key = "sk-secret"}',
        'embed.key = "sk-secret"',
        "embed.\"key\" = 'sk-secret'",
        '[embed]\nkey = """\nsk-secret"""',
        '[embed]\nkey = "sk-\\u0073ecret"',
    ],
)
def test_a_key_is_hidden_however_it_is_written(project: Path, toml: str) -> None:
    """TOML has many ways to write a key; none shows it."""
    write(project, toml)
    out, _ = quire(project, "trust", "--yes")
    assert "ecret" not in out
    assert "embed.key = …" in out


@pytest.mark.parametrize(
    ("url", "key", "shown"),
    [
        ("http://evil.example/v1", "http://evil.example/v1", "http://evil.example/v1"),
        ("http://evil.example/v1", "e", "http://evil.example/v1"),
        ("http://x:y@evil.example/v1", "x", "http://…@evil.example/v1"),
        ("http://evil.example/?token=a", "x", "http://evil.example/?token=…"),
        ("http://evil.example:/@good.example", "x", "evil.example"),
    ],
)
def test_no_key_hides_where_text_would_go(project: Path, url: str, key: str, shown: str) -> None:
    """The author of a file chooses its key, and must not choose with it what cannot be seen."""
    write(project, f'[embed]\nurl = "{url}" # @\nkey = "{key}"\n')
    lines = quire(project, "trust", "--yes")[0].splitlines()
    (line,) = [line for line in lines if line.startswith("  embed.url = ")]
    assert shown in line
    assert "  embed.key = …" in lines


def test_without_a_terminal_it_needs_yes(project: Path) -> None:
    """A script must say --yes; else nothing is recorded, and the exit code is 2."""
    write(project, GUARDED["web.proxy"])
    out, err = quire(project, "trust", code=2)
    assert "proxy" in out
    assert "There is no terminal to ask on." in err
    assert "--yes" in err
    assert trust.Records.read(home(project)).files == {}


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_it_asks(project: Path, answer: str, code: int) -> None:
    """A person is asked after the file was shown; only yes is yes."""
    path = write(project, GUARDED["web.proxy"])
    leader, follower = pty.openpty()
    command = [str(Path(sys.executable).parent / "quire"), "trust"]
    env = environment(project) | home(project)
    with subprocess.Popen(
        command, cwd=project, stdin=follower, stdout=follower, stderr=follower, env=env
    ) as it:
        os.write(leader, f"{answer}\n".encode())
        assert it.wait(30) == code
    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    assert shown.index("proxy = http://evil.example") < shown.index("Trust it? [y/N]")
    assert trust.Records.read(home(project)).holds(path.resolve(), path.read_bytes()) == (code == 0)


def test_trust_can_be_listed_and_withdrawn(project: Path) -> None:
    """`--list` says what has changed since; `--revoke` withdraws, also from a file that is gone."""
    path = write(project, GUARDED["web.proxy"])
    name = str(path.resolve())
    assert quire(project, "trust", "--list") == ("", "No file is trusted.\n")
    quire(project.parent, "trust", str(project), "--yes", HOME=str(project.parent))
    assert quire(project, "trust", "--list")[0] == f"unchanged  {name}\n"
    path.write_text("")
    (listed,) = [json.loads(line) for line in quire(project, "trust", "--list", "--json")[0].splitlines()]
    assert (listed["path"], listed["state"]) == (name, "changed")
    assert listed.keys() == {"path", "sha256", "at", "state"}
    path.unlink()
    assert quire(project, "trust", "--list")[0] == f"gone  {name}\n"
    assert quire(project, "trust", "--revoke", name)[0] == f"No longer trusted: {name}\n"
    assert "is not trusted" in quire(project, "trust", "--revoke", name, code=1)[1]
    assert quire(project, "trust", "--list")[0] == ""


def test_revoked_is_untrusted_at_once(project: Path) -> None:
    """The next command ignores what a revoked file asks for."""
    write(project, GUARDED["web.proxy"])
    quire(project, "trust", "--yes")
    quire(project, "trust", "--revoke")
    assert load(project, home(project)).config.web.proxy == ""


def test_what_cannot_be_trusted_says_why(project: Path) -> None:
    """A file that is absent, has another name, or is wrong is not recorded; the user's own needs nothing."""
    assert "No quire.toml here or in a folder above" in quire(project, "trust", code=1)[1]
    assert "cannot be read: No such file" in quire(project, "trust", "quire.toml", "--yes", code=2)[1]
    (project / "other.toml").write_text("")
    assert "is not named quire.toml" in quire(project, "trust", "other.toml", "--yes", code=2)[1]
    write(project, "[web\n")
    assert "is not TOML" in quire(project, "trust", "--yes", code=2)[1]
    write(project, "[web]\nproxi = 1\n")
    assert "Did you mean 'proxy'?" in quire(project, "trust", "--yes", code=2)[1]
    assert "one at a time" in quire(project, "trust", "--list", "--revoke", code=2)[1]
    user_settings(project.parent, GUARDED["web.proxy"])
    own = str(project.parent / ".config" / "quire" / "quire.toml")
    assert "always trusted" in quire(project, "trust", own)[0]
    assert trust.Records.read(home(project)).files == {}


def test_an_unreadable_project_file_is_said_plainly(project: Path) -> None:
    """A quire.toml that cannot be read is an error that names it."""
    path = write(project, "")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    with pytest.raises(SettingError, match="cannot be read: Permission denied"):
        load(project, home(project))


# ------------------------------------------------------------------------------------ what is sent


@pytest.fixture
def models() -> Iterator[Models]:
    with models_server.serving() as models:
        yield models


def test_a_cloned_repository_gets_no_request_and_no_key(project: Path, models: Models) -> None:
    """A project's embed.url is not asked before `quire trust`, and then with the key of its user."""
    write(project, f'[embed]\nurl = "{models.url}/v1"\nmodel = "openai/m"\n')
    (project / "a.md").write_text("# A\n\nPenguins swim.\n")
    env = {"QUIRE_EMBED_KEY": "sk-mine", "QUIRE_EMBED_MODEL": "openai/m", "QUIRE_EMBED_TIMEOUT": "5"}
    env["QUIRE_EMBED_URL"] = f"http://127.0.0.1:{models_server.closed_port()}"
    _, err = quire(project, "add", "a.md", code=3, **env)
    assert "Ignored: embed.model, embed.url. To accept them: quire trust" in err
    assert models.asked == []
    del env["QUIRE_EMBED_URL"]
    assert "Trusted: " in quire(project, "trust", "--yes")[0]
    _, err = quire(project, "add", "a.md", code=0, **env)
    assert err == ""
    assert {asked.headers["Authorization"] for asked in models.asked} == {"Bearer sk-mine"}


def test_every_command_says_it_once_on_stderr(project: Path) -> None:
    """A note is never on stdout, and printed once however often settings are needed."""
    write(project, '[web]\nproxy = "http://evil.example"\n')
    (project / "a.md").write_text("# A\n\nPenguins swim.\n")
    commands = ["add a.md", "search penguins", "chunk a.md --json", "toc a.md project:a.md", "list", "status"]
    for command in commands:
        out, err = quire(project, *command.split(), QUIRE_EMBED_MODLE="x")
        assert err.count("Ignored: web.proxy") == err.count("Did you mean QUIRE_EMBED_MODEL?") == 1, command
        assert "Ignored" not in out


def test_the_mcp_server_says_it_on_stderr(project: Path) -> None:
    """Over standard input and output, stdout holds messages of the protocol alone."""
    write(project, '[web]\nproxy = "http://evil.example"\n')
    out, err = quire(project, "mcp")
    assert out == ""
    assert err.count("Ignored: web.proxy. To accept them: quire trust") == 1


def test_the_library_setting_is_used_by_commands(project: Path) -> None:
    """-L and QUIRE_LIBRARY come first, then the setting, then the nearest .quire/library.db."""
    write(project, 'library = "docs/library.db"\n')
    (project / "a.md").write_text("# A\n\nPenguins swim.\n")
    (project / "below").mkdir()
    quire(project, "add", "a.md")
    assert (project / "docs" / "library.db").exists()
    assert not (project / ".quire").exists()
    for name in ("other.db", "third.db"):
        quire(project, "add", "a.md", "-L", name)
    assert shown_library(project) == str(project.resolve() / "docs" / "library.db")
    assert shown_library(project, "-L", "other.db", QUIRE_LIBRARY="third.db") == "other.db"
    assert shown_library(project, QUIRE_LIBRARY="third.db") == "third.db"


def shown_library(project: Path, *args: str, **env: str) -> object:
    return json.loads(quire(project, "status", "--json", *args, code=0, **env)[0])["library"]


def test_help_shows_how() -> None:
    """`quire trust --help` explains itself with examples."""
    out, _ = run(Path.cwd(), "trust", "--help")
    assert "quire trust --list --json" in out
    assert FILE in out
