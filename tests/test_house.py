"""The house itself: layers, public names, licence, and what the README promises."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import quire
from tests import examples

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_imports_go_one_way_only() -> None:
    """DESIGN §3: layers, exhaustive, enforced by import-linter."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_public_names() -> None:
    """The public API is pinned: a change here is a change for users."""
    assert quire.__all__ == [
        "Chunk",
        "Config",
        "Document",
        "Library",
        "QuireError",
        "Section",
        "Tree",
        "chunk",
        "tree",
    ]
    assert all(hasattr(quire, name) for name in quire.__all__)


def test_every_error_is_in_the_tree_drawn_at_its_top() -> None:
    """HABITS: one error tree, drawn at the top of its file."""
    from quire import errors

    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.QuireError)]
    assert all(re.search(rf"\b{kind.__name__}\b", errors.__doc__ or "") for kind in kinds)
    assert len(kinds) == len(re.findall(r"^(?:QuireError|.*[├└]── )", errors.__doc__ or "", re.MULTILINE))


def files_with(pattern: str) -> list[str]:
    """The files of the repository, but for this one, that hold a pattern."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    files = [ROOT / name for name in listed if (ROOT / name).is_file()]
    found = re.compile(pattern, re.IGNORECASE)
    return [f.name for f in files if f != Path(__file__) and found.search(f.read_text("utf-8", "replace"))]


def test_no_file_names_a_registry() -> None:
    """Issue: no registry host in any file."""
    assert files_with("index-url|" + "py" + r"pi\.org|find-links") == []


def test_no_file_tells_people_to_install_a_strangers_package() -> None:
    """On the package index, `quire` is not Quire: the distribution is quire-docs."""
    name = r"quire(?![-\w])"
    assert (
        files_with(rf"\b{name}\[|\buvx .*?\b{name}|\b(?:pip|pipx|uv|uv tool) install [^\n#]*?\b{name}") == []
    )


def test_the_package_has_its_name_and_both_commands() -> None:
    """`uvx quire-docs mcp` runs a command of the package's own name, with all that it needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == "quire-docs"
    assert project["scripts"] == dict.fromkeys(("quire", "quire-docs"), "quire.surfaces.cli:main")
    assert any(needed.startswith("mcp>=") for needed in project["dependencies"])
    assert "mcp" not in project["optional-dependencies"]


def test_python_m_quire_is_the_command() -> None:
    """`python -m quire` works where no command is on the path."""
    command = subprocess.run(
        [Path(sys.executable).parent / "quire", "--version"], capture_output=True, check=True
    )
    module = subprocess.run([sys.executable, "-m", "quire", "--version"], capture_output=True, check=True)
    assert module.stdout == command.stdout != b""


def test_help_does_not_wait_for_the_mcp_server() -> None:
    """`mcp` is always installed, and imported by `quire mcp` alone."""
    code = (
        "import atexit, sys; sys.argv = ['quire', '--help']; from quire.surfaces.cli import main\n"
        "atexit.register(lambda: print({'mcp', 'mcp_types', 'pydantic'} & sys.modules.keys())); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage:")
    assert done.stdout.endswith("\nset()\n")


def test_every_pin_is_exact() -> None:
    """constraints.txt pins what the checks run with."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[\w.]+", line) for line in lines)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page", [page for page in examples.PAGES if examples.blocks(page)], ids=lambda p: p.name
)
def test_the_commands_of_the_docs_print_what_they_say(page: Path, tmp_path: Path) -> None:
    """Examples are run as tests, each block on a library of its own: python -m tests.examples writes them."""
    for number, block in enumerate(examples.blocks(page)):
        place = tmp_path / str(number)
        place.mkdir()
        for command, expected in examples.commands(block):
            assert examples.printed(command, place) == expected, command


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_of_the_readme_runs(block: str) -> None:
    """README examples are run as tests: a comment after a line is what it prints."""
    printed = [line.partition("  # ")[2] for line in block.splitlines() if line.startswith("print(")]
    done = subprocess.run([sys.executable, "-c", block], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == printed


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_links_between_the_docs_lead_somewhere(path: Path) -> None:
    """Docs point at files that are there."""
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


def test_the_settings_table_of_the_docs_is_the_code() -> None:
    """HABITS 10: the table in the docs is generated; write it with: python -m tests.settings"""
    from tests.settings import table

    assert table() in (ROOT / "docs" / "settings.md").read_text("utf-8")


def test_a_chunk_survives_json(tmp_path: Path) -> None:
    """What --json prints can be read back exactly."""
    from quire.surfaces import render

    tree = quire.tree("# A\n\n\u2028 \x07 🙂\n")
    shown = json.loads(json.dumps(render.chunks_json(tree, "auto", quire.chunk(tree))))
    assert shown["chunks"][0]["text"] == tree.document.text
