"""`quire init`: what it writes into files of others, and takes out again."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quire.surfaces import clients
from quire.surfaces.insertions import MARK, MarkedLine, WholeFile
from quire.surfaces.jsonc import JsonBlock
from tests.commands import environment, run

BLOCK = JsonBlock("mcpServers", "quire", {"command": "/usr/bin/quire", "args": ["mcp"]})

# ------------------------------------------------------------------------------- JSON with comments

GAPS = st.sampled_from(
    ["", "", " ", "\n", "\r\n", "\n  ", "\t", " // it's \"{,}\n", "/* } \n ,*/", " /**/ ", "//\r", "\n    "]
)
NAMES = st.sampled_from(["a", "b", "servers", "mcpServers", "quire", 'q"uire', "//", "/*", "ü", "\\"])
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), NAMES, st.text(max_size=5))
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A value as JSON, with comments, white space and trailing commas anywhere."""
    if isinstance(value, dict):
        ends, parts = "{}", []
        for name, one in value.items():
            parts.append(f"{json.dumps(name)}{draw(GAPS)}:{draw(GAPS)}{draw(written(one))}")
    elif isinstance(value, list):
        ends, parts = "[]", [draw(written(one)) for one in value]
    else:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    inside = ",".join(f"{draw(GAPS)}{part}{draw(GAPS)}" for part in parts)
    last = draw(st.sampled_from(["", ","])) if parts else ""
    return f"{ends[0]}{inside}{last}{draw(GAPS)}{ends[1]}"


@st.composite
def settings_files(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """An object without our block, and a text of it."""
    value = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    value.pop("mcpServers", None)
    if draw(st.booleans()):
        servers = draw(st.dictionaries(NAMES, VALUES, max_size=3))
        servers.pop("quire", None)
        value["mcpServers"] = servers
    start = draw(st.sampled_from(["", "\ufeff"]))
    return value, f"{start}{draw(GAPS)}{draw(written(value))}{draw(GAPS)}"


def without_comments(text: str) -> Any:
    """The value of a text, by another way than Quire's: one character after another."""
    kept, place, in_string = "", 0, False
    while place < len(text):
        two = text[place : place + 2]
        if in_string and two[0] == "\\":
            kept, place = kept + two, place + 2
        elif not in_string and two == "//":
            place = min(
                (at for at in (text.find("\n", place), text.find("\r", place)) if at >= 0), default=len(text)
            )
        elif not in_string and two == "/*":
            place = text.index("*/", place + 2) + 2
        else:
            in_string ^= two[0] == '"'
            if not in_string and two[0] in "]}":
                kept = kept.rstrip().removesuffix(",")
            kept, place = kept + two[0], place + 1
    return json.loads(kept.removeprefix("\ufeff"))


@given(settings_files())
def test_a_block_goes_in_and_out_and_all_else_stays(file: tuple[dict[str, Any], str]) -> None:
    """Issue: other keys, order, indentation and comments are kept byte for byte; --remove gives them back."""
    value, text = file
    assert without_comments(text) == value
    made = BLOCK.insertion(text)
    after = made.into(text)
    servers = {**value.get("mcpServers", {}), "quire": BLOCK.value}
    assert without_comments(after) == {**value, "mcpServers": servers}
    assert BLOCK.is_in(after)
    assert not BLOCK.is_in(text)
    assert BLOCK.without(after, made.text) == text


@given(settings_files(), st.data())
def test_a_block_is_found_again_in_a_file_that_was_written_anew(
    file: tuple[dict[str, Any], str], data: st.DataObject
) -> None:
    """Clients write their files anew, in other forms and orders. Only the block goes, and its own section."""
    value, text = file
    made = BLOCK.insertion(text)
    whole = without_comments(made.into(text))
    servers = dict(data.draw(st.permutations(list(whole["mcpServers"].items()))))
    anew = data.draw(written({**whole, "mcpServers": servers}))
    try:
        left = BLOCK.without(anew, made.text)
    except ValueError:  # somebody has commented it
        assert re.search(r"//|/\*", anew[anew.rindex('"quire"', 0, anew.index("/usr/bin")) :])
        return
    there = without_comments(left)
    assert {**there, "mcpServers": there.get("mcpServers", {})} == {"mcpServers": {}, **value}
    comments = re.compile(r"// it's|\} \n ,|/\*\*/")
    assert len(comments.findall(left)) == len(comments.findall(anew))
    assert "mcpServers" in there or "mcpServers" not in value


@given(settings_files())
def test_a_server_that_came_later_stays(file: tuple[dict[str, Any], str]) -> None:
    """--remove takes out its own block, and not what others wrote beside it."""
    value, text = file
    assume("later" not in value.get("mcpServers", {}))
    made, later = BLOCK.insertion(text), JsonBlock("mcpServers", "later", {"command": "x"})
    both = later.insertion(made.into(text)).into(made.into(text))
    left = without_comments(BLOCK.without(both, made.text))
    assert left == {**value, "mcpServers": {**value.get("mcpServers", {}), "later": {"command": "x"}}}


@given(st.text(alphabet='{}[]",:/* \n1aqme\\', max_size=30))
def test_any_text_is_refused_or_kept(text: str) -> None:
    """A file that cannot be parsed is refused; all others come back as they were."""
    try:
        made = BLOCK.insertion(text)
    except ValueError:
        return
    assert BLOCK.without(made.into(text), made.text) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{,}", "is not JSON"),
        ('{"a": 1,,}', "is not JSON"),
        ('{"a": NaN}', "NaN is no number"),
        ("{} /* open", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"mcpServers": null}', 'has a "mcpServers" that is not an object'),
        ('{"mcpServers": {}, "mcpServers": {}}', 'has "mcpServers" twice'),
        ('{"mcpServers": {"quire": {"command": "other"}}}', 'has another "quire"'),
    ],
)
def test_what_is_refused_is_said(text: str, why: str) -> None:
    """A file that Quire does not understand, or that has another `quire`, is left alone."""
    with pytest.raises(ValueError, match=re.escape(why)):
        BLOCK.insertion(text)


def test_a_block_looks_like_its_neighbours() -> None:
    """The block has the indentation and the line ends of its file, and comments stay with their lines."""
    text = '{\r\n\t// all\r\n\t"mcpServers": { // mine\r\n\t\t// a is first\r\n\t\t"a": {},\r\n\t},\r\n}\r\n'
    assert BLOCK.insertion(text).into(text) == (
        '{\r\n\t// all\r\n\t"mcpServers": { // mine\r\n'
        '\t\t"quire": {\r\n\t\t\t"command": "/usr/bin/quire",\r\n'
        '\t\t\t"args": [\r\n\t\t\t\t"mcp"\r\n\t\t\t]\r\n\t\t},\r\n'
        '\t\t// a is first\r\n\t\t"a": {},\r\n\t},\r\n}\r\n'
    )


def test_a_block_that_its_user_changed_stays() -> None:
    """--remove undoes what it wrote; what somebody else wrote into it is theirs."""
    made = BLOCK.insertion("{}")
    changed = made.into("{}").replace('"mcp"', '"mcp", "--read-only"')
    with pytest.raises(ValueError, match="was changed since"):
        BLOCK.without(changed, made.text)


# ------------------------------------------------------------------------------- lines and files


@given(st.text(alphabet="ab \r\n", max_size=12), st.text(alphabet="ab \r\n", max_size=6))
def test_a_line_goes_in_and_out(text: str, more: str) -> None:
    """AGENTS.md gets one marked line, which goes away again, also when others have written after it."""
    line = MarkedLine(f"- Search. <!-- {MARK} -->")
    made = line.insertion(text)
    after = made.into(text)
    assert line.is_in(after)
    assert line.without(after, made.text) == text
    end = "\n" if more and not after.endswith(("\r", "\n")) else ""
    assert MARK not in line.without(f"{after}{end}{more}", made.text)


def test_a_file_of_its_own_is_not_put_over_another() -> None:
    """A completion script that somebody else wrote stays."""
    with pytest.raises(ValueError, match="was not written by Quire"):
        WholeFile("new").insertion("theirs")
    with pytest.raises(ValueError, match="was changed since"):
        WholeFile("new").without("theirs", "new")


# ------------------------------------------------------------------------------- clients


def test_each_platform_has_its_own_places(tmp_path: Path) -> None:
    """Linux, macOS and Windows keep the settings of programs in different folders."""
    home = {"HOME": str(tmp_path)}

    def own(platform: str, **more: str) -> dict[str, str]:
        found = clients.client_files(None, home | more, platform)
        return {file.client: str(file.path.relative_to(tmp_path)) for file in found}

    assert own("linux") == {
        "claude-code": ".claude.json",
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".config/Code/User/mcp.json",
    }
    support = "Library/Application Support"
    assert own("darwin")["claude-desktop"] == f"{support}/Claude/claude_desktop_config.json"
    assert own("darwin")["vscode"] == f"{support}/Code/User/mcp.json"
    roaming, local = tmp_path / "AppData/Roaming", tmp_path / "AppData/Local"
    windows = {"APPDATA": str(roaming), "LOCALAPPDATA": str(local)}
    assert own("win32", **windows)["claude-desktop"] == "AppData/Roaming/Claude/claude_desktop_config.json"
    store = local / "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
    store.mkdir(parents=True)
    assert own("win32", **windows)["claude-desktop"] == str(
        store.relative_to(tmp_path) / "claude_desktop_config.json"
    )
    assert own("linux", CLAUDE_CONFIG_DIR=str(tmp_path / "other"))["claude-code"] == "other/.claude.json"


def command_on(folder: Path, version: str = "") -> Path:
    """A `quire` in a folder: the real one, or one that says that it is another version."""
    folder.mkdir(parents=True)
    path, real = folder / "quire", Path(sys.executable).parent / "quire"
    does = f"echo quire {version}" if version else f'exec {real} "$@"'
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return path


def test_the_command_is_one_that_a_client_can_start(tmp_path: Path) -> None:
    """A quire on the PATH outside virtual environments comes first, if it is this one."""
    beside = (str(Path(sys.executable).parent / "quire"),)
    venv, usual = command_on(tmp_path / "venv/bin"), command_on(tmp_path / "bin")
    (tmp_path / "venv/pyvenv.cfg").touch()
    old = command_on(tmp_path / "old", version="0.0.1")

    def start(*folders: Path, uvx: bool = False, **more: str) -> tuple[str, ...]:
        path = ":".join(map(str, folders))
        return clients.start_command(uvx=uvx, environ={"PATH": path, "HOME": str(tmp_path), **more})

    assert start(venv.parent, usual.parent) == (str(usual),)
    assert start(venv.parent) == start(old.parent, usual.parent) == start(Path("bin")) == beside
    assert start(usual.parent, UV_CACHE_DIR=sys.prefix) == ("uvx", "quire-docs")
    (tmp_path / "bin/uvx").symlink_to(usual)
    assert start(usual.parent, uvx=True) == (str(tmp_path / "bin/uvx"), "quire-docs")
    shared = clients.start_command(uvx=True, is_shared=True, environ={"PATH": str(usual.parent)})
    assert shared == ("uvx", "quire-docs")


# ------------------------------------------------------------------------------- the command

OWN = {
    ".claude.json": b'{"numStartups": 3, "mcpServers": {}}',
    ".config/Claude/claude_desktop_config.json": b"{}\n",
    ".config/Code/User/mcp.json": b'{\n\t// mine\n\t"servers": {\n\t\t"a": {"command": "a"},\n\t},\n}\n',
    "project/.mcp.json": b'{\r\n  "mcpServers": {\r\n  }\r\n}\r\n',
    "project/AGENTS.md": b"# Agents",
    ".bashrc": b"alias a=b\n",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user with clients, and a project in which commands run."""
    for name, content in OWN.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "project/.git").mkdir()
    (tmp_path / ".cursor").mkdir()
    return tmp_path


def quire(home: Path, *args: str, code: int = 0, **env: str) -> tuple[str, str]:
    """What a command prints in the project."""
    usual: Any = {"HOME": str(home), "SHELL": "/bin/bash", "PATH": "/usr/bin:/bin"} | env
    return run(home / "project", *args, code=code, **usual)


def files(home: Path) -> dict[str, bytes]:
    """All files but those of Quire's own folder."""
    found = {str(path.relative_to(home)): path for path in home.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if not name.startswith(".local/share/quire/init")
    }


def test_init_writes_what_it_showed_and_removes_it_again(home: Path) -> None:
    """Issue: the block goes into the clients that are found, --dry-run only shows it, --remove undoes it."""
    before = files(home)
    shown, _ = quire(home, "init", "--dry-run")
    assert files(home) == before
    quire(home, "init", "--yes")
    after = files(home)
    assert {name for name in after if after[name] != before.get(name)} == {
        ".claude.json",
        ".config/Claude/claude_desktop_config.json",
        ".config/Code/User/mcp.json",
        ".cursor/mcp.json",
        "project/.mcp.json",
    }
    added = [line.removeprefix("  +") for line in shown.splitlines() if line.startswith("  +")]
    quire(home, "init", "agents", "completion", "--yes")
    written = b"".join(files(home).values()).decode()
    assert len(added) > 60
    assert all(line in written for line in added)
    assert files(home)["project/AGENTS.md"].startswith(b"# Agents\n- Search the documents")
    again, err = quire(home, "init", "--yes")
    assert "+" not in again
    assert err.count("is set up already") == 5
    quire(home, "init", "--remove", "--yes")
    assert files(home) == before
    assert (home / ".cursor").is_dir()
    assert "has written nothing here" in quire(home, "init", "--remove", "--yes", code=1)[1]


def test_the_block_starts_a_server(home: Path) -> None:
    """What init writes works: each client's command answers the first message of a client."""
    quire(home, "init", "--yes")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    block = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["quire"]
    assert Path(block["command"]).is_absolute()
    assert json.loads((home / ".claude.json").read_text())["mcpServers"]["quire"] == block
    other = without_comments((home / ".config/Code/User/mcp.json").read_text())["servers"]["quire"]
    assert other == {"type": "stdio", **block}
    env = environment(home) | {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [block["command"], *block["args"]],
        input=asked,
        capture_output=True,
        text=True,
        cwd=home,
        env=env,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "quire"


def test_only_named_clients_are_made(home: Path) -> None:
    """A client that is not found gets no file, unless it is named; folders that were made go away again."""
    shutil.rmtree(home / ".cursor")
    before = files(home)
    quire(home, "init", "--yes")
    assert not (home / ".cursor").exists()
    quire(home, "init", "--remove", "--yes")
    quire(home, "init", "cursor", "--yes")
    assert files(home).keys() - before.keys() == {".cursor/mcp.json"}
    quire(home, "init", "cursor", "vscode", "--project", "--uvx", "--yes")
    made = json.loads((home / "project/.vscode/mcp.json").read_text())
    assert made == {"servers": {"quire": {"type": "stdio", "command": "uvx", "args": ["quire-docs", "mcp"]}}}
    quire(home, "init", "--remove", "--yes")
    assert files(home) == before
    assert not (home / ".cursor").exists()
    assert not (home / "project/.vscode").exists()


def test_a_file_that_cannot_be_parsed_is_left_alone_and_the_rest_goes_on(home: Path) -> None:
    """Issue: such a file is refused with a message. So is one with another `quire`."""
    (home / ".claude.json").write_text('{"a": ')
    other = '{"mcpServers": {"quire": {"command": "mine"}}}'
    (home / ".config/Claude/claude_desktop_config.json").write_text(other)
    _, err = quire(home, "init", "--yes", code=3)
    assert ".claude.json: is not JSON: " in err
    assert 'claude_desktop_config.json: has another "quire" in "mcpServers". It was left as it is' in err
    assert (home / ".claude.json").read_text() == '{"a": '
    assert (home / ".config/Claude/claude_desktop_config.json").read_text() == other
    assert (home / ".cursor/mcp.json").exists()
    quire(home, "init", "claude-desktop", "--yes", code=4)
    quire(home, "init", "--remove", "--yes")
    assert (home / ".config/Claude/claude_desktop_config.json").read_text() == other


def test_a_block_follows_an_installation_that_moved(home: Path) -> None:
    """A second init replaces the command that the first one wrote, and --remove still undoes all."""
    before = files(home)
    quire(home, "init", "--yes")
    (shown,) = [
        json.loads(line)
        for line in quire(home, "init", "claude-code", "--uvx", "--yes", "--json")[0].splitlines()
    ][:1]
    assert (shown["name"], shown["action"], shown["done"]) == ("claude-code", "update", True)
    assert json.loads((home / ".claude.json").read_text())["mcpServers"]["quire"]["args"] == [
        "quire-docs",
        "mcp",
    ]
    quire(home, "init", "--remove", "--yes")
    assert files(home) == before


def test_links_and_permissions_stay(home: Path) -> None:
    """A settings file may be a link into a folder of dotfiles, and only its user may read it."""
    real = home / "dotfiles.json"
    (home / ".claude.json").rename(real)
    real.chmod(0o600)
    (home / ".claude.json").symlink_to(real)
    quire(home, "init", "claude-code", "--yes")
    assert (home / ".claude.json").is_symlink()
    assert b'"quire"' in real.read_bytes()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_a_link_out_of_the_project_is_not_followed(home: Path) -> None:
    """A cloned project may link to any file of its user."""
    (home / "project/AGENTS.md").unlink()
    (home / "project/AGENTS.md").symlink_to(home / ".bashrc")
    _, err = quire(home, "init", "agents", "--yes", code=4)
    assert "leads out of the project" in err
    assert (home / ".bashrc").read_bytes() == OWN[".bashrc"]


def test_json_and_missing_terminals(home: Path) -> None:
    """Programs get a line for each file; without a terminal nothing is written unasked."""
    before = files(home)
    lines = [json.loads(line) for line in quire(home, "init", "--dry-run", "--json")[0].splitlines()]
    assert [(one["name"], one["action"], one["done"]) for one in lines][:2] == [
        ("claude-code", "add", False),
        ("claude-desktop", "add", False),
    ]
    assert lines[0].keys() == {"name", "path", "action", "done", "diff"}
    assert "There is no terminal to ask on" in quire(home, "init", code=2)[1]
    assert "Add --yes or --dry-run" in quire(home, "init", "--json", code=2)[1]
    assert "no file here for claude-desktop" in quire(home, "init", "claude-desktop", "--project", code=2)[1]
    assert files(home) == before


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_each_change_is_asked_about(home: Path, answer: str) -> None:
    """Issue: asked first, after it was shown."""
    leader, follower = pty.openpty()
    command = [str(Path(sys.executable).parent / "quire"), "init", "cursor"]
    env = environment(home) | {"PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        command, cwd=home / "project", stdin=follower, stdout=follower, stderr=follower, env=env
    ) as it:
        os.write(leader, f"{answer}\n".encode())
        assert it.wait(60) == 0
    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    assert shown.index('"quire"') < shown.index("Write it? [y/N]")
    assert (home / ".cursor/mcp.json").exists() == (answer == "y")


def test_long_lines_are_shown_around_the_block(home: Path) -> None:
    """A file of one line may hold anything; only what is near the block is shown."""
    (home / ".claude.json").write_text(
        json.dumps({"a": "x" * 9_000, "mcpServers": {"b": {"env": "y" * 9_000}}})
    )
    out, _ = quire(home, "init", "claude-code", "--dry-run")
    assert '"quire": {"command"' in out
    assert max(map(len, out.splitlines())) < 400


def test_the_block_for_other_clients_is_printed(tmp_path: Path) -> None:
    """Without a client, the block is still there to copy."""
    (tmp_path / "project").mkdir()
    out, err = quire(tmp_path, "init", "--yes", code=1)
    printed = json.loads(out.partition("\n")[2])
    assert printed["mcpServers"]["quire"]["args"] == ["mcp"]
    assert "No client was found" in err
    assert files(tmp_path) == {}


def test_bash_completes_commands(home: Path) -> None:
    """Issue: shell completion is installed, and works in a new shell."""
    quire(home, "init", "completion", "--yes")
    words = 'COMP_WORDS=(quire init cl); COMP_CWORD=2; _quire_completion quire; echo "${COMPREPLY[@]}"'
    env = environment(home) | {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-c", f". {home}/.bashrc; complete -p quire; {words}"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[0].endswith("-F _quire_completion quire")
    assert done.stdout.splitlines()[1] == "claude-code claude-desktop"
    assert (
        "SHELL: must be bash, zsh or fish, not 'tcsh'"
        in quire(home, "init", "completion", code=2, SHELL="/bin/tcsh")[1]
    )


@pytest.mark.parametrize(
    ("shell", "path"), [("zsh", ".zshrc"), ("fish", ".config/fish/completions/quire.fish")]
)
def test_other_shells_find_the_completion_where_they_look(home: Path, shell: str, path: str) -> None:
    """zsh reads a line of its start file, fish a folder of its own."""
    before = files(home)
    quire(home, "init", "completion", "--yes", SHELL=f"/bin/{shell}")
    assert MARK in (home / path).read_text()
    assert f"_QUIRE_COMPLETE={shell}_complete" in "".join(map(bytes.decode, files(home).values()))
    quire(home, "init", "completion", "--remove", "--yes")
    assert files(home) == before
