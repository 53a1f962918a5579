"""The command line, run as people run it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import quire
from quire.version import VERSION
from tests import forks

GUIDE = "# Guide\n\nWelcome.\n\n## Install\n\nUse pip.\n"


def run(*args: str | Path, stdin: bytes = b"", cwd: Path | None = None, code: int = 0) -> tuple[str, str]:
    """What a command prints on stdout and stderr."""
    done = forks.run(args, stdin=stdin, cwd=cwd, env={**os.environ, "COLUMNS": "100"})
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (done.returncode, out, err)
    assert "Traceback" not in err
    return out, err


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    path = tmp_path / "guide.md"
    path.write_text(GUIDE)
    return path


def test_the_plain_view_shows_place_lines_tokens_and_first_line(guide: Path) -> None:
    """Issue: breadcrumb, lines, tokens and first line, with totals, and no colour in a pipe."""
    out, err = run("chunk", "guide.md", cwd=guide.parent)
    assert out == (
        "   0  Guide\n"
        "      lines 1–4, 5 tokens: # Guide\n"
        "   1  Guide › Install\n"
        "      lines 5–7, 6 tokens: ## Install\n"
        "guide.md: 2 chunks by auto, 11 tokens (5 to 6 each), 40 bytes, 7 lines\n"
    )
    assert err == ""


def test_json_has_the_fields_of_the_design_and_exact_spans(guide: Path) -> None:
    """DESIGN §9: the JSON of chunk."""
    out, _ = run("chunk", guide, "--json", "--strategy", "nodes")
    found = json.loads(out)
    assert found["strategy"] == "nodes"
    assert found["document"]["title"] == "Guide"
    assert (found["document"]["bytes"], found["document"]["lines"]) == (40, 7)
    wanted = "index address start end byte_start byte_end start_line end_line tokens trail header_path text"
    for chunk in found["chunks"]:
        assert set(wanted.split()) <= set(chunk)
        assert GUIDE[chunk["start"] : chunk["end"]] == chunk["text"]
        assert GUIDE.encode()[chunk["byte_start"] : chunk["byte_end"]].decode() == chunk["text"]
    assert found["chunks"][1]["trail"] == ["Guide", "Install"]
    assert found["chunks"][1]["header_path"] == "## Install"
    assert found["chunks"][1]["breadcrumb"] == "> Guide › Install"


def test_standard_input_and_several_files(guide: Path) -> None:
    """`quire chunk FILE…|-`: one line of JSON for each document."""
    out, _ = run("chunk", "-", guide, "--json", stdin=b"# Piped\n\ntext\n")
    assert [json.loads(line)["document"]["title"] for line in out.splitlines()] == ["Piped", "Guide"]


def test_options_reach_the_strategy(guide: Path) -> None:
    """--strategy, --max-tokens and --overlap."""
    guide.write_text("One sentence here. " * 100)
    out, _ = run("chunk", guide, "--json", "-s", "windows", "--max-tokens", "50", "--overlap", "0.3")
    chunks = json.loads(out)["chunks"]
    assert len(chunks) > 5
    assert all(chunk["tokens"] <= 50 for chunk in chunks)
    assert chunks[1]["start"] < chunks[0]["end"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--strategy", "atuo"], "strategy: there is no 'atuo'. Did you mean 'auto'?"),
        (["--max-tokens", "0"], "max_tokens: 0 is outside 8 to 1,000,000"),
        (["-s", "nodes", "--max-tokens", "9"], "nodes.max_tokens: there is no such setting."),
        (["-s", "windows", "--overlap", "1"], "overlap: 1.0 is outside 0 to 0.9"),
        (["--max-tokens", "many"], "'many' is not a valid integer"),
    ],
)
def test_a_wrong_argument_is_a_usage_error(guide: Path, args: list[str], message: str) -> None:
    """BAD_INPUTS: settings and arguments; exit code 2."""
    out, err = run("chunk", guide, *args, code=2)
    assert out == ""
    assert message in err


def test_a_bad_file_in_a_batch_never_stops_the_rest(guide: Path, tmp_path: Path) -> None:
    """BAD_INPUTS: report, go on; the exit code says partial (3), or failed (4) where nothing was done."""
    binary = tmp_path / "binary.md"
    binary.write_bytes(b"a\0b")
    pipe = tmp_path / "pipe.md"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.md"))
    out, err = run(
        "chunk", binary, pipe, tmp_path / "socket.md", tmp_path, "/dev/null", "absent.md", guide, code=3
    )
    assert "2 chunks by auto" in out
    for said in (
        "holds NUL bytes",
        "is a pipe",
        "is a socket",
        "is a folder",
        "is a device",
        "absent.md: no such file",
    ):
        assert said in err
    _, err = run("toc", "absent.md", code=4)
    assert err == "quire: absent.md: no such file or directory\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_an_unreadable_file_is_reported(guide: Path) -> None:
    """BAD_INPUTS: unreadable → report."""
    guide.chmod(0)
    _, err = run("chunk", guide, code=4)
    assert "permission denied" in err


def test_a_file_over_the_cap_names_the_cap(guide: Path) -> None:
    """BAD_INPUTS: the cap is a setting, and the error says so."""
    (guide.parent / "quire.toml").write_text("[document]\nmax_bytes = 10\n")
    _, err = run("chunk", "guide.md", cwd=guide.parent, code=4)
    assert "40 bytes is over max_bytes = 10. Raise [document] max_bytes in quire.toml" in err


def test_a_file_name_that_is_not_utf8_is_shown_escaped(tmp_path: Path) -> None:
    """BAD_INPUTS: indexed under an escaped name, printable."""
    path = os.fsencode(tmp_path) + b"/caf\xe9.md"
    Path(os.fsdecode(path)).write_text(GUIDE)
    out, _ = run("chunk", os.fsdecode(path), "--json")
    assert json.loads(out)["document"]["path"].endswith("caf\\xe9.md")


def test_warnings_go_to_stderr(guide: Path) -> None:
    """BAD_INPUTS: invalid UTF-8 and broken front matter are warned of."""
    guide.write_bytes(b"---\na: [\n---\ncaf\xe9\n")
    out, err = run("chunk", guide, "--json")
    assert len(json.loads(out)["document"]["warnings"]) == 2
    assert "1 byte is not utf-8" in err
    assert "front matter is kept as text: broken YAML" in err


def test_terminal_escapes_in_a_document_are_neutralised(guide: Path) -> None:
    """BAD_INPUTS, hostile text: escape codes and invisible characters are shown as codes."""
    guide.write_text("# \x1b[31mred\x1b]0;title\x07 \u202eflip\u200b\n\n\x1b[2Jclear\n")
    for command in ("chunk", "toc"):
        out, _ = run(command, guide)
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\\u{1b}[31mred" in out


def test_the_outline(guide: Path) -> None:
    """`quire toc` is the heading structure; --json nests it."""
    out, _ = run("toc", "guide.md", cwd=guide.parent)
    assert out == "Guide  (21)\n  Install  #install  (12)\n"
    out, _ = run("toc", "guide.md", "--json", cwd=guide.parent)
    found = json.loads(out)
    assert set(found) == {"address", "title", "depth", "tokens", "children"}
    assert found["children"][0]["children"][0]["address"] == "local:guide.md#install"


class Page(HTMLParser):
    """What a page loads, runs and links to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.ids, self.links, self.text = set[str](), set[str](), set[str](), ""
        self.shown = self.label = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        self.links.add((given.get("href") or "#")[1:])
        assert not {"src", "onclick", "onload", "onerror"} & set(given)
        self.shown = self.shown or tag == "pre"
        self.label = "label" in (given.get("class") or "")

    def handle_endtag(self, tag: str) -> None:
        self.shown = self.shown and tag != "pre"
        self.label = False

    def handle_data(self, data: str) -> None:
        if self.shown and not self.label:
            self.text += data


@pytest.mark.parametrize("strategy", quire.config.STRATEGIES)
def test_the_page_shows_the_whole_document_and_runs_nothing(guide: Path, strategy: str) -> None:
    """Issue: --html writes one self-contained file; BAD_INPUTS: scripts and links in it are inert."""
    text = (
        GUIDE
        + "\n<script>alert(1)</script> ![x](http://a.b/c.png) [y](javascript:z) &amp; \"'\n"
        + "Words. " * 900
    )
    guide.write_text(text)
    out = guide.parent / "out.html"
    _, err = run("chunk", guide, "-s", strategy, "--html", out)
    assert err == f"Wrote {out}\n"
    page = Page()
    page.feed(out.read_text())
    assert page.tags <= {
        "html",
        "meta",
        "title",
        "style",
        "div",
        "nav",
        "h1",
        "p",
        "br",
        "span",
        "a",
        "main",
        "pre",
    }
    assert page.links <= page.ids
    assert page.text.rstrip("\n") == text.rstrip("\n")
    assert "default-src 'none'" in out.read_text()


def test_a_page_that_cannot_be_written_says_why(guide: Path) -> None:
    """Errors help."""
    _, err = run("chunk", guide, "--html", guide.parent / "no" / "out.html", code=4)
    assert "out.html: cannot be written: No such file or directory" in err


def test_a_page_never_replaces_a_document(guide: Path) -> None:
    """BAD_INPUTS: --html onto a document is refused: `quire chunk --html docs/*.md` names one as OUT."""
    other = guide.parent / "other.md"
    other.write_text('# Other\n\n<meta name="generator" content="Quire 1">\n')
    before = other.read_bytes()
    link = guide.parent / "link.html"
    link.symlink_to(other)
    for out in (other, link):
        said, err = run("chunk", "--html", out, guide, code=2)
        assert said == ""
        assert "is not a page that Quire wrote. Name the page to write, as in --html chunks.html" in err
    assert other.read_bytes() == before
    assert link.is_symlink()


def test_a_page_goes_over_an_earlier_one_but_over_no_file_that_is_read(guide: Path) -> None:
    """Pages are written anew as often as people like; one that is read is a document."""
    out, link = guide.parent / "out.html", guide.parent / "link.html"
    run("chunk", guide, "--html", out)
    guide.write_text("# Changed\n\nText.\n")
    run("chunk", guide, "--html", out)
    assert "Changed" in out.read_text()
    link.symlink_to(out)
    for name in (out, link, guide.parent / ".." / guide.parent.name / "out.html"):
        _, err = run("chunk", out, "--html", name, code=2)
        assert "is one of the files to read" in err
    assert sorted(guide.parent.iterdir()) == [guide, link, out]  # and no temporary file


def test_a_page_is_no_folder_and_no_pipe(guide: Path) -> None:
    """What is not a regular file is left alone."""
    assert "is a directory" in run("chunk", guide, "--html", guide.parent, code=2)[1]
    pipe = guide.parent / "pipe.html"
    os.mkfifo(pipe)
    assert "is not a page that Quire wrote" in run("chunk", guide, "--html", pipe, code=2)[1]


def test_a_target_is_refused_before_anything_is_read(guide: Path) -> None:
    """A mistake is told at once, not after the work."""
    _, err = run("chunk", guide.parent / "missing.md", "--html", guide, code=2)
    assert "missing.md" not in err


def test_help_shows_examples_and_the_version_is_one() -> None:
    """People first: examples in every --help."""
    out, _ = run("--help")
    commands = re.findall(r"^  (\w+) ", out.partition("Commands:")[2].partition("\n\n")[0], re.MULTILINE)
    wanted = (
        "add backup chunk chunks config context copy doctor embed eval export forget import init keys learn"
        " links list mcp optimize promote read recall refresh remember remove restore search serve sources"
        " status toc trust watch where"
    )
    assert commands == wanted.split()
    for command in commands:
        out, _ = run(command, "--help")
        assert "Examples:" in out
        assert f"quire {command}" in out
    assert run("--version")[0] == f"quire {VERSION}\n"


def test_no_arguments_show_the_help() -> None:
    """A person who types `quire` learns what it does."""
    _, err = run(code=2)
    assert "Commands:" in err


def test_starting_imports_nothing_heavy() -> None:
    """Issue: `quire --help` is instant; what a command does not need is not loaded."""
    program = "import sys; from quire.surfaces import cli; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {
        "sentencex",
        "yaml",
        "rs_bpe",
        "rich",
        "typer",
        "pydantic",
        "numpy",
        "sqlite3",
        "asyncio",
        "hashlib",
        "tomllib",
    } & set(loaded)
