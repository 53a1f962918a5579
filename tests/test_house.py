"""The house itself: layers, public names, licence, and what the README promises."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
import statistics
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import quire
from tests import examples
from tests.commands import run
from tests.markdowns import SHARED, needs_shared

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "quire"
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
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
    errors = "BrokenInvariant EmbeddingError LibraryError MissingExtra NoResults SettingError SourceError"
    returned = "Changes Context Copied Counts DocumentRow Embedded Found Plan Reading Report Result SourceRow"
    returned += " StoredChunk StoredSection DocumentChange Kept Label LinkBack LinkOut Links Map Point"
    returned += " Optimized Similar Version Difference EvalQuestion Evaluation Score TextSpan"
    others = "AccessKey AsyncLibrary Chunk Config Document Library QuireError Section Tree chunk tree"
    assert sorted(quire.__all__) == sorted(f"{errors} {returned} {others}".split())
    assert all(hasattr(quire, name) for name in quire.__all__)


def test_what_library_returns_is_exported() -> None:
    """Issue: whoever annotates what a method of Library returns finds its name beside Library."""
    public = [method for name, method in inspect.getmembers(quire.Library, callable) if name[0] != "_"]
    returned = {str(inspect.signature(method).return_annotation) for method in public}
    names = {name for told in returned for name in re.findall(r"[A-Z]\w+", told)} - {"None", "Self"}
    assert names - set(quire.__all__) == set()


# ----------------------------------------------------------------------------- the size of the rooms


@cache
def modules() -> dict[str, ast.Module]:
    return {
        str(path.relative_to(SOURCE)): ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")
    }


def test_no_module_is_too_long_and_no_class_too_wide() -> None:
    """Issue: no module over 500 lines, no class over 25 methods."""
    lengths = {path: len((SOURCE / path).read_text("utf-8").splitlines()) for path in modules()}
    assert {path: size for path, size in lengths.items() if size > 500} == {}
    classes = [(path, one) for path, tree in modules().items() for one in ast.walk(tree)]
    widths = {
        f"{path} {one.name}": sum(isinstance(part, FUNCTION) for part in one.body)
        for path, one in classes
        if isinstance(one, ast.ClassDef)
    }
    assert {name: width for name, width in widths.items() if width > 25} == {}


def test_functions_are_small() -> None:
    """Issue: median 6 lines, nine in ten under 17."""
    trees = modules().values()
    sizes = sorted(
        one.end_lineno - one.lineno + 1
        for tree in trees
        for one in ast.walk(tree)
        if isinstance(one, FUNCTION) and one.end_lineno
    )
    assert statistics.median(sizes) <= 6
    assert sizes[len(sizes) * 9 // 10] < 17


# Names that several modules define because they are one thing, in several places.
ONE_MEANING = {
    "a method of Library, on each surface": "add chunk context copy embed forget links list_documents"
    " promote read recall refresh remember remove remove_source search sources status toc tree watch"
    " chunks",
    "what starts each server": "serve",
    "a part of each store": "CHUNK_COLUMNS ID_PLACES REMEMBERED VectorTable conditions"
    " count_wrong_keys remake_keys",
    "what each strategy does": "split",
    "what each format has": "scan title",
    "what each framework has": "QuireRetriever",
    "as everywhere in Python": "T log",
}


def test_a_public_name_has_one_meaning() -> None:
    """Issue: no top-level public name with two meanings; those that are defined twice are listed above."""
    places = defaultdict[str, list[str]](list)
    for path, tree in modules().items():
        for part in tree.body:
            if isinstance(part, FUNCTION | ast.ClassDef):
                places[part.name].append(path)
            elif isinstance(part, ast.Assign | ast.AnnAssign):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        places[target.id].append(path)
    known = {name for names in ONE_MEANING.values() for name in names.split()}
    twice = {name: where for name, where in places.items() if name[0] != "_" and len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in known} == {}
    assert known - twice.keys() == set()


def test_the_map_of_the_code_is_complete() -> None:
    """Issue: CONTRIBUTING.md has a map that is true to the tree."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    chart = page.partition("The table goes")[2].partition("## Where")[0]
    named = set(re.findall(r"[\w/]+", " ".join(re.findall(r"`([^`]+)`", chart))))
    parts = {part for name in named for part in name.split("/")}
    files = [Path(path) for path in modules() if not path.endswith("__init__.py")]
    assert [str(path) for path in files if path.stem not in parts] == []
    assert [
        name for name in re.findall(r"`([\w/]+)\.py`", chart) if not list(SOURCE.rglob(f"{name}.py"))
    ] == []


def test_what_is_imported_is_declared() -> None:
    """Issue: undeclared dependencies are declared."""
    roots = set[str]()
    for tree in modules().values():
        for part in ast.walk(tree):
            if isinstance(part, ast.Import):
                roots |= {alias.name.partition(".")[0] for alias in part.names}
            elif isinstance(part, ast.ImportFrom) and part.module:
                roots.add(part.module.partition(".")[0])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    usable = ("tokens", "postgres", "documents", "langchain", "llama-index", "ray", "serve")
    wanted = [*project["dependencies"], *(one for name in usable for one in extras[name])]
    declared = {re.split(r"[\[<>=]", one)[0].lower().replace("-", "_") for one in wanted}
    # of PyStemmer, PyYAML, psycopg[pool], llama-index-core and markdown-it-py
    declared |= {"stemmer", "yaml", "psycopg_pool", "llama_index", "markdown_it"}
    outside = {root.lower() for root in roots} - set(sys.stdlib_module_names) - {"quire"}
    assert outside - declared == set()


def test_every_error_is_in_the_tree_drawn_at_its_top() -> None:
    """HABITS: one error tree, drawn at the top of its file."""
    from quire import errors

    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.QuireError)]
    assert all(re.search(rf"\b{kind.__name__}\b", errors.__doc__ or "") for kind in kinds)
    assert len(kinds) == len(re.findall(r"^(?:QuireError|.*[├└]── )", errors.__doc__ or "", re.MULTILINE))


def files_with(pattern: str) -> list[str]:
    """The files of text in the repository, but for this one, that hold a pattern."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    files = [ROOT / name for name in listed if (ROOT / name).is_file()]
    texts = {f: f.read_bytes() for f in files if f != Path(__file__)}
    found = re.compile(pattern.encode(), re.IGNORECASE)
    return [f.name for f, text in texts.items() if b"\0" not in text[:1000] and found.search(text)]


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
    assert project["scripts"] == dict.fromkeys(("quire", "quire-docs"), "quire.surfaces.cli:run")
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


def python_blocks() -> list[str]:
    """The Python of the README and of docs/, but for pages whose own tests run it."""
    texts = (
        page.read_text("utf-8") for page in examples.PAGES if page.name not in ("integrations.md", "serve.md")
    )
    return [
        block for text in texts for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.M)
    ]


@pytest.mark.parametrize(
    "page", [page for page in examples.PAGES if examples.blocks(page)], ids=lambda p: p.name
)
def test_the_commands_of_the_docs_print_what_they_say(page: Path, tmp_path: Path) -> None:
    """Examples are run as tests, each block on a library of its own: python -m tests.examples writes them."""
    for number, block in enumerate(examples.blocks(page)):
        place = tmp_path / str(number)
        place.mkdir()
        for command, expected in examples.commands(block):
            shown = examples.printed(command, place)
            assert examples.timeless(shown) == examples.timeless(expected), command


@needs_shared
def test_a_large_folder_is_added_as_the_docs_show(tmp_path: Path) -> None:
    """Issue: the Kubernetes docs added with meaning, in a transcript. Only times differ."""
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    (shown,) = re.findall(r"^```\n(\$ quire add kubernetes\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "kubernetes").symlink_to(SHARED / "docs_links_kubernetes" / "docs")
    for command, expected in examples.commands(shown):
        out, err = run(tmp_path, *shlex.split(command)[1:], QUIRE_EMBED_MODEL="", COLUMNS="100")
        assert _timeless(out + err) == _timeless(expected)


def _timeless(text: str) -> str:
    return re.sub(r"in \d+\.\d s|about \d+ \w+", "…", text)


@pytest.mark.parametrize("block", python_blocks())
def test_the_python_of_the_docs_runs(block: str) -> None:
    """Examples are run as tests: a comment after a line is what it prints."""
    lines = [line.strip() for line in block.splitlines()]
    printed = [line.partition("  # ")[2] for line in lines if line.startswith("print(")]
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
