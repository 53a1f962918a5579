"""Whatever is typed gets a right answer or a clear error: odd bytes, long names, line feeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LONG = b"x" * 5000


def run(place: Path, *args: bytes | str, stdin: bytes = b"", code: int = 0, **env: str) -> tuple[str, str]:
    """What a command prints on stdout and stderr, which is always UTF-8 and never a traceback."""
    done = subprocess.run(
        [Path(sys.executable).parent / "quire", *args],
        input=stdin,
        capture_output=True,
        cwd=place,
        check=False,
        env={
            **os.environ,
            "HOME": str(place),
            "QUIRE_LIBRARY": "library.db",
            "QUIRE_EMBED_MODEL": "none",
            **env,
        },
        timeout=60,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err
    assert done.returncode == code, (done.returncode, out, err)
    assert out or err, "silence"
    return out, err


@pytest.fixture
def place(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# A\n\nZebras live here.\n")
    Path(os.fsdecode(bytes(docs) + b"/\xff.md")).write_text("# Odd\n\nPenguins swim.\n")
    (docs / "line\nfeed.md").write_text("# Feed\n\nOtters dive.\n")
    run(tmp_path, "add", "docs")
    return tmp_path


def test_bytes_that_are_not_utf8_name_what_they_named_before(place: Path) -> None:
    r"""BAD_INPUTS: `\xff` in arguments. A file's name is an address, as it was typed or as it is shown."""
    for address in (b"docs:\xff.md", rb"docs:\xff.md", b"\xff.md#odd"):
        assert run(place, "read", address)[0] == "# Odd\n\nPenguins swim.\n"
    assert run(place, "toc", b"docs:\xff.md")[0].startswith("Odd")
    assert r"docs:\xff.md#odd" in run(place, "search", "penguins", "--path", b"\xff")[0]
    assert run(place, "remove", b"docs:\xff.md") == ("docs:\\xff.md\n", "Removed 1 document.\n")


def test_what_is_filed_under_odd_bytes_is_found_again(place: Path) -> None:
    """Names are stored as they are shown."""
    run(place, "add", "-", "--as", b"b\xff.md", "-c", b"c\xff", stdin=b"# X\n\nWalrus.\n")
    assert r"c\xff:b\xff.md" in run(place, "search", "walrus", "-c", b"c\xff")[0]
    (found,) = json.loads(run(place, "search", "walrus", "--json")[0])["results"]
    assert found["address"] == r"c\xff:b\xff.md#x"
    run(place, "add", b"docs/\xff.md", "-c", b"\xff")
    run(
        place,
        "remember",
        b"Note \xff.",
        "--tag",
        b"\xff",
        "--title",
        b"\xff",
        "--as",
        b"n\xff",
        "-c",
        b"m\xff",
    )
    assert r"m\xff:n\xff" in run(place, "recall", "note", "--tag", b"\xff")[0]
    assert run(place, "forget", b"m\xff:n\xff")[0] == "m\\xff:n\\xff\n"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("add", b"\xff.md"), 4, r"\xff.md: no such file or folder"),
        (("add", b"no\nfile.md"), 4, r"no\u{a}file.md: no such file or folder"),
        (("search", b"\xff"), 1, "No match"),
        (("search", "zebras", "-c", b"\xff"), 1, r"No collection '\\xff'"),
        (("read", b"a:\xff"), 1, r"No document 'a:\\xff' is indexed"),
        (("read", "docs:a.md", b"\xff"), 1, r"No heading '\\xff' in a.md"),
        (("chunk", b"\xff"), 4, r"\xff: no such file or directory"),
        (("chunk", "docs/a.md", "--html", b"o\xff.html"), 0, r"Wrote o\xff.html"),
        (("import", b"\xff"), 4, r"\xff: no such file or directory"),
        (("status", "-L", b"l\xff.db"), 2, "library: its name is not UTF-8"),
        (("copy", "--to", b"l\xff.db"), 2, "library: its name is not UTF-8"),
        (("mcp", "-L", b"l\xff.db"), 2, "library: its name is not UTF-8"),
        ((b"\xff",), 2, "No such command"),
        (("add", LONG), 4, "x: no such file or folder"),
        (("add", b"a/" * 3000), 4, "a: no such file or folder"),
        (("toc", LONG), 4, "x: file name too long"),
        (("toc", b"https://" + LONG), 1, "is indexed. "),
        (("read", LONG), 1, "x' is indexed. "),
        (("read", "docs:a.md", LONG), 1, "in a.md. "),
        (("search", "zebras", "-c", LONG), 1, "No collection 'xxx"),
        (("chunk", "docs/a.md", "--html", LONG), 2, "File name too long"),
        (("status", "-L", LONG), 1, "No library at"),
        (("add", b"https://example.com/" + b"x" * 70_000), 4, "x…: is not a URL: URL too long"),
        (("add", b"https://127.0.0.1/" + LONG), 4, "is not at a public address"),
        (("add", b"https://\xff.com/"), 4, "is not a URL"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    place: Path, args: tuple[bytes | str, ...], code: int, said: str
) -> None:
    """BAD_INPUTS: odd bytes, 5,000-character arguments, 70,000-character URLs → a clear error."""
    _, err = run(place, *args, code=code)
    assert said in err
    assert len(err) < 1500
    assert args == (b"\xff",) or err.count("\n") == 1


def test_a_line_feed_in_a_name_is_escaped_wherever_it_is_printed(place: Path) -> None:
    """BAD_INPUTS: a file name with a line feed."""
    shown = r"docs:line\u{a}feed.md"
    assert f"{shown}  Feed  (1)\n" in run(place, "list")[0]
    assert f"1. {shown}#feed\n" in run(place, "search", "otters")[0]
    assert run(place, "read", "docs:line\nfeed.md")[0] == "# Feed\n\nOtters dive.\n"
    assert r"docs/line\u{a}feed.md: 1 chunk" in run(place, "chunk", "docs/line\nfeed.md")[0]
    (place / "docs" / "bad\nname.md").write_bytes(b"\0")
    assert r"quire: bad\u{a}name.md: holds NUL bytes" in run(place, "add", "docs", code=3)[1]
    assert run(place, "remove", "docs:line\nfeed.md")[0] == f"{shown}\n"


def test_a_failure_with_odd_bytes_is_json_too(place: Path) -> None:
    """stdout is the answer, and can be read back."""
    out, _ = run(place, "add", b"\xff.md", "--json", code=4)
    failed = {"source": r"\xff.md", "reason": "no such file or folder", "code": "unreadable"}
    assert json.loads(out)["failed"] == [failed]
