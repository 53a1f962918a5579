"""What people see: widths, colours, how much is told, bars, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quire import policy
from quire.config import DEFAULT
from quire.progress import how_far
from quire.surfaces import bar, wrapping
from quire.surfaces.cli import output
from tests import forks
from tests.commands import environment, run, user_settings
from tests.web_server import Handler, site

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LONG = "Rolling back a release takes one minute if the last build is kept, and an hour if it is not. " * 4


def shown(place: Path, *args: str, out: bool = True, code: int = 0, answer: str = "", **env: str) -> str:
    """What a command shows in a terminal that has its stdout, if `out`, and its stderr.

    `answer` is typed when a question is seen.
    """
    leader, follower = pty.openpty()
    told: list[bytes] = []

    def read() -> None:
        try:
            while some := os.read(leader, 65_536):
                told.append(some)
                if answer and b"[y/N]" in some:
                    os.write(leader, answer.encode())
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    stdout = follower if out else subprocess.DEVNULL
    variables = environment(place) | {"TERM": "xterm"} | env
    done = subprocess.run(
        [forks.QUIRE, *args],
        cwd=place,
        env=variables,
        stdin=follower,
        stdout=stdout,
        stderr=follower,
        check=False,
    )
    os.close(follower)
    reader.join(10)
    os.close(leader)
    assert done.returncode == code
    return b"".join(told).decode().replace("\r\n", "\n")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for name in ("guide", "faq"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# The {name}\n\n{LONG}\n")
    run(tmp_path, "add", "docs")
    return tmp_path


# ------------------------------------------------------------------------------------- width and colour


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_results_fit_the_width_of_a_terminal(place: Path, columns: int) -> None:
    """Snippets wrap with their indent, and a blank line stands between results."""
    lines = _ESCAPES.sub("", shown(place, "search", "rolling back", COLUMNS=str(columns))).splitlines()
    assert max(map(len, lines)) <= columns
    second = next(at for at, line in enumerate(lines) if line.startswith("  2. "))
    assert lines[second - 1] == ""
    assert all(line.startswith("     ") for line in lines[1 : second - 1])
    assert " ".join(line.strip() for line in lines).count("Rolling back a release takes one minute") > 1


def test_a_pipe_has_a_line_for_each_text(place: Path) -> None:
    """Programs find three lines and a blank one for each result, whatever COLUMNS says."""
    wide, narrow = (run(place, "search", "rolling back", COLUMNS=columns)[0] for columns in ("200", "40"))
    assert wide == narrow
    assert [len(one.splitlines()) for one in wide.split("\n\n")] == [3, 3]


def test_no_color_is_respected(place: Path) -> None:
    """https://no-color.org: no escape code in results, notes or errors."""
    assert "\x1b[1;33m" in shown(place, "search", "rolling back")
    for args, code in ((("search", "rolling -zebra"), 0), (("search", "zebra"), 1), (("read", "x:y"), 1)):
        assert "\x1b" in shown(place, *args, code=code)
        assert "\x1b" not in shown(place, *args, code=code, NO_COLOR="1")


def test_a_memory_wraps_too(place: Path) -> None:
    run(place, "remember", LONG)
    lines = _ESCAPES.sub("", shown(place, "recall", "rolling back", COLUMNS="50")).splitlines()
    assert max(len(line) for line in lines if " memory:" not in line) <= 50  # an address stays whole
    assert lines[1].startswith("     the last build")


def test_highlights_stay_where_they_are_in_any_width() -> None:
    """The pieces of all lines, without codes and indents, are the text; what is bold is bold."""
    text = "one two three 日本語日本語日本語 four\x07 five"
    spans = [(text.index("two"), text.index("two") + 9), (text.index("日"), text.index("日") + 6)]
    for columns in (None, 25, 30, 200):
        drawn = wrapping.drawn(text, spans, columns, 5)
        bold = "".join(re.findall(r"\x1b\[1;33m(.*?)\x1b\[0m", drawn, re.DOTALL))
        assert re.sub(r"\s", "", bold) == "twothree日本語日本語"
        assert re.sub(r"\s", "", _ESCAPES.sub("", drawn)) == re.sub(r"\s", "", text).replace("\x07", "\\u{7}")


def test_wide_characters_count_twice_and_long_words_are_broken_in_snippets_only() -> None:
    assert wrapping.drawn("日" * 30, (), 45, 5).splitlines() == ["日" * 20, f"     {'日' * 10}"]
    assert wrapping.filled(f"in {'a' * 60} is", 45, 5).splitlines() == ["in", f"     {'a' * 60}", "     is"]


# ------------------------------------------------------------------------------------ how much is told


@pytest.mark.parametrize("given", [["--quiet"], ["--log-level", "error"]])
@pytest.mark.parametrize("is_first", [True, False])
def test_quiet_leaves_the_answer_and_errors(place: Path, given: list[str], is_first: bool) -> None:
    """--quiet is --log-level error: no notes and no bar, before or after the command."""

    def told(*args: str, code: int = 0) -> tuple[str, str]:
        return run(place, *given, *args, code=code) if is_first else run(place, *args, *given, code=code)

    assert told("search", "zebra", code=1) == ("", "")
    assert run(place, "search", "zebra", code=1)[1]
    assert told("read", "docs:none.md", code=1)[1].startswith("quire: ")
    (place / "docs" / "new.md").write_text("# New\n")
    assert "1 added" in told("add", "docs")[0]


def test_quiet_hides_the_bar(place: Path) -> None:
    (place / "docs" / "new.md").write_text("# New\n")
    assert re.search(r"indexing \d files?", shown(place, "add", "docs", out=False))  # new ones are read again
    (place / "docs" / "new.md").write_text("# Newer\n")
    assert shown(place, "add", "docs", "--quiet", out=False) == ""


def test_verbose_shows_the_log(place: Path) -> None:
    """--verbose is --log-level info, twice is debug; the last of these options counts."""
    assert "INFO searched for 7 characters" in run(place, "search", "rolling", "--verbose")[1]
    assert "DEBUG searching for 'rolling'" in run(place, "--verbose", "--verbose", "search", "rolling")[1]
    assert "INFO" not in run(place, "--verbose", "search", "rolling", "--quiet")[1]
    assert "INFO" in run(place, "--quiet", "search", "rolling", "--verbose")[1]


# ------------------------------------------------------------------------------------------------- bars


def test_a_bar_says_how_far_and_how_fast_in_the_right_number() -> None:
    assert how_far(1, 1, "pages") == "1 of 1 page"
    assert how_far(1, 2, "pages") == "1 of 2 pages"
    assert how_far(0, 1, "repository") == "0 of 1 repository"
    assert how_far(1_500_000, 3e6, "bytes") == "1.5 of 3.0 MB"
    task = SimpleNamespace(completed=3, total=9, speed=0.25)
    assert bar._done(task, "pages", 1) == "3 of 9 pages (0.2 a second), 1 failed"
    task = SimpleNamespace(completed=3, total=9, speed=None)
    assert bar._done(task, "pages", 0) == "3 of 9 pages"


def test_the_log_stands_above_the_bar_on_lines_of_its_own(place: Path) -> None:
    (place / "docs" / "new.md").write_text("# New\n")
    lines = (
        _ESCAPES.sub("", shown(place, "add", "docs", "--verbose", out=False)).replace("\r", "\n").splitlines()
    )
    logged = [line for line in lines if " INFO " in line]
    assert logged
    assert all(re.match(r"\d{4}-\d\d-\d\d ", line) for line in logged)


def test_a_plan_goes_to_stdout_while_stderr_is_a_terminal(place: Path) -> None:
    """`quire refresh --dry-run > plan.txt` puts the plan into the file."""
    (place / "docs" / "new.md").write_text("# New\n")
    assert "new.md" not in shown(place, "refresh", "--dry-run", out=False)
    assert "new.md" in shown(place, "refresh", "--dry-run")


def test_a_question_is_seen_before_it_is_answered(place: Path) -> None:
    """No bar hides it."""
    (place / "docs").rename(place / "moved")
    told = shown(place, "add", "moved", "-c", "docs", answer="y\n", COLUMNS="300")
    assert "which is gone. Was it moved? [y/N]: y" in told
    assert "0 added, 0 updated, 2 unchanged" in told


def test_a_note_is_never_glued_to_a_text(place: Path) -> None:
    """The text of a section may have no line feed at its end; what is told of it comes before it."""
    (place / "docs" / "end.md").write_text("# End\n\n" + "word " * 300)
    run(place, "add", "docs")
    command = [forks.command(), "read", "docs:end.md", "--max-tokens", "20"]
    merged: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=place, env=environment(place), check=False, **merged)
    first, _, rest = done.stdout.decode().partition("\n")
    assert "Cut" in first or "tokens" in first
    assert rest.startswith("# End")


# ----------------------------------------------------------------------------------------------- Ctrl-C


def test_an_interrupted_command_says_how_much_it_changed(tmp_path: Path) -> None:
    """Ctrl-C says truthfully what was kept: here the first source, and nothing of the second."""
    user_settings(tmp_path, '[web]\nallow_hosts = ["127.0.0.1"]\nretries = 0\n')
    (tmp_path / "a.md").write_text("# A\n")
    asked, stopped = threading.Event(), threading.Event()

    def wait(handler: Handler) -> None:
        asked.set()
        stopped.wait(30)
        handler.answer(200, b"# Late\n", {})

    with site() as web:
        command = [forks.QUIRE, "add", "a.md", web.route("/late.md", wait)]
        env = environment(tmp_path)
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env=env) as process:
            assert asked.wait(30)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        stopped.set()
    assert process.returncode == 130
    assert err.decode() == (
        "quire: Stopped. 1 document was changed, and can be searched. To go on, type the same command.\n"
    )
    assert run(tmp_path, "list")[0].count("\n") == 1


def test_what_is_said_of_an_interruption_is_in_the_right_number() -> None:
    assert output.kept(0).startswith("No document was changed.")
    assert output.kept(1).startswith("1 document was changed, ")
    assert output.kept(2000).startswith("2,000 documents were changed, ")


# ------------------------------------------------------------------------------------------------ --json


@pytest.mark.parametrize(
    ("args", "each"),
    [
        (["list"], "document"),
        (["sources"], "source"),
        (["keys"], "key"),
        (["config"], "setting"),
        (["chunks", "docs:guide.md"], "chunk"),
        (["toc", "docs:guide.md", "docs:faq.md"], "outline, nested"),
        (["chunk", "docs/guide.md", "docs/faq.md"], "file, with all its chunks"),
    ],
)
def test_json_is_what_its_help_says(place: Path, args: list[str], each: str) -> None:
    """A line of JSON for each of several things."""
    run(place, "keys", "make", "one")
    told = " ".join(run(place, args[0], "--help")[0].split())
    assert f"Print JSON: one line for each {each}." in told
    lines = run(place, *args, "--json")[0].splitlines()
    names = [*policy.values(DEFAULT)]
    assert len(lines) == {"sources": 1, "keys": 1, "config": len(names), "chunks": 1}.get(args[0], 2)
    assert all(isinstance(json.loads(line), dict) for line in lines)


@pytest.mark.parametrize("args", [["search", "rolling"], ["context", "rolling"], ["status"], ["where"]])
def test_an_answer_is_one_line_of_json(place: Path, args: list[str]) -> None:
    (line,) = run(place, *args, "--json")[0].splitlines()
    assert isinstance(json.loads(line), dict)


def test_context_has_json_as_other_commands_do(place: Path) -> None:
    """`--json` is `--format json`, and its errors are JSON."""
    assert run(place, "context", "rolling", "--json") == run(place, "context", "rolling", "--format", "json")
    _, err = run(place, "context", "rolling", "-c", "zebra", "--json", code=1)
    assert json.loads(err)["error"]["code"] == "no_results"


def test_an_explanation_is_for_people(place: Path) -> None:
    out = run(place, "search", "rolling", "back", "--explain")[0]
    assert re.search(r"^     score \d\.\d{3} for the words: back, roll$", out, re.MULTILINE)
    assert re.search(r"^     chunk ranked 1: score \d\.\d{3} \(words 1\.00, share", out, re.MULTILINE)
    assert "{" not in out
