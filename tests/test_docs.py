"""The docs: their site, what is generated in them, the README, and the package that carries them."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench import summary

from quire.errors import CODES
from tests import (
    cli_reference,
    drawings,
    examples,
    package_page,
    packaging,
    python_reference,
    recording,
    settings,
)
from tests.commands import run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_GREP, _BOTH, _INSTALLED = "grep, page nDCG@10", "words and deep", "installed, MB"
_LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


# ------------------------------------------------------------------------------------------- the site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as scripts/docs builds it: a link that leads nowhere is an error."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class Loaded(HTMLParser):
    """What a page loads when it is shown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address of a script, a picture and the like."""
        self.found += [value or "" for name, value in attrs if name == _LOADED.get(tag)]


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    """Issue: no remote fonts or scripts."""
    remote = re.compile(r"^(https?:)?//")
    for path in site.rglob("*.html"):
        assert [one for one in Loaded(path.read_text("utf-8")).found if remote.match(one)] == [], path
    for path in (*site.rglob("*.css"), *site.rglob("*.svg")):
        text = path.read_text("utf-8")
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", text), path


def test_every_page_is_in_the_navigation(site: Path) -> None:
    """Issue: a page that nothing leads to is not there."""
    start = (site / "index.html").read_text("utf-8")
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")} - {"404.html"}
    assert {page for page in pages if f'href="{page}"' not in start} - {"index.html"} == set()
    assert {path.with_suffix(".html").name for path in DOCS.glob("*.md")} <= pages


def test_links_of_the_readme_lead_somewhere() -> None:
    """The README points at files that are there, and at headings that they have."""
    text = _BLOCK.sub("", README)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]+)#?([^)]*)\)", text):
        assert (ROOT / target).exists(), target
        assert not anchor, target


# -------------------------------------------------------------------------------- what is generated


def test_the_reference_of_commands_is_the_code() -> None:
    """Issue: generated from click and checked; write it with: python -m tests.cli_reference"""
    assert (DOCS / "cli.md").read_text("utf-8") == cli_reference.page()


def test_the_python_reference_is_the_code() -> None:
    """Issue: generated from docstrings and checked; write it with: python -m tests.python_reference"""
    page = python_reference.page()
    assert (DOCS / "python-reference.md").read_text("utf-8") == page
    assert not re.search(r"0x[0-9a-f]{6}", page)


def test_every_setting_says_what_it_is_and_when_to_change_it() -> None:
    """Issue: no empty cells: a comment in config.py, and when to change it in settings_when.toml."""
    found = list(settings.rows())
    assert [one.name for one in found if not one.told] == []
    assert [one.name for one in found if not one.when] == []
    assert set(settings.reasons()) == {one.name for one in found}


def test_every_error_says_what_to_do() -> None:
    """Issue: every error code, what it means, what to do."""
    page = (DOCS / "troubleshooting.md").read_text("utf-8")
    parts = re.findall(r"^### `(\w+)`\n\n(\S.*?)\n(?=\n###|\Z)", page, re.DOTALL | re.MULTILINE)
    assert [code for code, _ in parts] == list(CODES)
    assert min(len(told.split()) for _, told in parts) > 10


def test_the_page_of_figures_is_what_the_benchmarks_recorded() -> None:
    """Issue: tables and plots written by bench; write them with: python -m bench.summary"""
    page = summary.PAGE.read_text("utf-8")
    assert summary.written(page) == page
    for name, plot in summary.PLOTS.items():
        assert (DOCS / name).read_text("utf-8") == plot(), name


def test_the_recording_is_what_commands_print() -> None:
    """Issue: a recording of a terminal that a test makes; python -m tests.recording draws it anew."""
    made = recording.draw(recording.session())
    assert recording.timeless(made) == recording.timeless(recording.PICTURE.read_text("utf-8"))
    assert made.count("<g ") == len(recording.COMMANDS)
    assert f"({recording.PICTURE.relative_to(ROOT)})" in README


def test_the_drawings_show_the_files_and_their_layers() -> None:
    """Issue: flow and house drawn; python -m tests.drawings draws them."""
    for name, drawn in drawings.PICTURES.items():
        assert (DOCS / name).read_text("utf-8") == drawn(), name
    text = (ROOT / ".importlinter").read_text("utf-8").partition("layers =\n")[2].partition("\n\n")[0]
    layers = {name: row for row, line in enumerate(text.splitlines()) for name in re.findall(r"\w+", line)}
    floors = [[layers[name] for name in files.split()] for _, _, files in drawings.HOUSE]
    assert all(max(above) <= min(below) for above, below in itertools.pairwise(floors))
    steps = (*drawings.ADDING, *drawings.SEARCHING)
    shown = {name for step in steps for name in re.findall(r"\w+", step.files)}
    assert shown - {"plan"} <= layers.keys()


# ---------------------------------------------------------------------------------------- the README


def test_every_block_of_the_readme_is_run_by_a_test() -> None:
    """Issue: `console` and `python` blocks in test_house.py, `json` in test_mcp_wire.py, `sh` here."""
    kinds = [kind for kind, _ in _BLOCK.findall(README)]
    assert set(kinds) == {"console", "python", "json", "sh"}
    assert kinds.count("console") == len(examples.blocks(ROOT / "README.md")) == 1


def shell_lines() -> list[list[str]]:
    return [
        shlex.split(line)
        for kind, block in _BLOCK.findall(README)
        if kind == "sh"
        for line in block.splitlines()
    ]


def test_the_readme_installs_what_there_is() -> None:
    """The package of `pip install` has its name and its extras; scripts/release-check installs it."""
    project = project_table()
    asked = [line[-1] for line in shell_lines() if line[:2] == ["pip", "install"]]
    assert asked
    for name in asked:
        package, extras = re.fullmatch(r"([\w-]+)(?:\[([\w,-]+)\])?", name).groups()  # type: ignore[union-attr]
        assert package == project["name"]
        assert set((extras or "").split(",")) - {""} <= project["optional-dependencies"].keys()


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """Each command works, or, where it would serve until it is told to stop, knows its options."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "guide.md").write_text("# Guide\n\nHello.\n")
    lines = [line[1:] for line in shell_lines() if line[0] == "quire"]
    assert lines
    for line in lines:
        args = [arg.replace("~", str(tmp_path)) for arg in line]
        run(tmp_path, *args, *(["--help"] if line[0] == "serve" else []))


# ---------------------------------------------------------------------------------------- the package


def test_the_figures_of_the_readme_are_recorded() -> None:
    """Issue: three measured lines, with the figures of bench/README.md, rounded."""
    found = [row for table in summary.tables("Finding") for row in table.rows]
    pages = next(row for row in found if row["metric"] == "page nDCG@10")
    alone = next(row for row in found if "deep alone" in row)
    beside, *_, grep = summary.tables("Beside other tools")
    tools = {row["tool"]: row for row in beside.rows}
    qmd, ours = tools["qmd 2.8.3, BM25"], tools["Quire, by words"]
    told = [
        ("grep {}, Quire {} ({} by words", (grep.rows[0][_GREP], pages["deep"], pages["words"])),
        (
            "vectors alone {}, by words alone {}, by both {}",
            (alone["deep alone"], alone["words"], alone[_BOTH]),
        ),
    ]
    for line, values in told:
        assert line.format(*(f"{float(value):.2f}" for value in values)) in README
    hits = (f"{100 * float(one['page hit@10']):.0f} %" for one in (qmd, ours))
    assert "by BM25 {}, Quire by words {}".format(*hits) in README
    assert f"Installed: {qmd[_INSTALLED]} and {ours[_INSTALLED]} MB" in README


@cache
def project_table() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def test_the_page_of_the_package_needs_no_files_beside_it() -> None:
    """Issue: an index shows the page alone; write it with: python -m tests.package_page"""
    page = package_page.PAGE.read_text("utf-8")
    assert page == package_page.written(README, package_page.repository())
    assert not re.search(r"\]\((?!https://|#)", _BLOCK.sub("", page))
    assert "pip install quire-docs" in page


def test_a_repository_with_an_address_is_linked() -> None:
    """Issue: absolute links for the index page."""
    text = "![A](docs/a.svg)\n\nSee [the page](docs/a.md#b) and [there](https://example.com/).\n"
    assert package_page.written(text, "https://example.com/q") == (
        "![A](https://example.com/q/raw/main/docs/a.svg)\n\nSee [the page](https://example.com/q/blob/main/docs/a.md#b)"
        " and [there](https://example.com/).\n"
    )
    told = package_page.written(text, "")
    assert told.startswith("See the page (`docs/a.md`) and [there](https://example.com/).\n")


def test_the_wheel_and_the_source_archive_have_what_they_need(tmp_path: Path) -> None:
    """Issue: wheel and sdist built; scripts/release-check uses them on each Python that is installed."""
    archive, wheel = packaging.build(ROOT, tmp_path)
    with tarfile.open(archive) as file:
        held = {name.partition("/")[2] for name in file.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "NOTICE", "docs/index.md", "docs/recording.svg"} <= held
    assert not any(name.startswith("tests") for name in held)
    with zipfile.ZipFile(wheel) as file:
        names = {info.filename for info in file.infolist()}
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        told = file.read(metadata).decode()
    source = ROOT / "src" / "quire"
    files = {path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path.relative_to(source.parent).as_posix() for path in files} <= names
    assert not any(name.startswith(("tests", "bench")) for name in names)
    assert "Name: quire-docs\n" in told
    assert "Description-Content-Type: text/markdown\n" in told


def test_nothing_names_an_address_that_the_project_does_not_have() -> None:
    """Issue: project URLs that are honest: an index shows them, and none is invented."""
    named = project_table().get("urls", {})
    assert isinstance(named, dict)
    config = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=yaml.BaseLoader)
    assert ("repo_url" in config) == ("Repository" in named)
