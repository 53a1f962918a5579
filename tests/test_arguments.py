"""Whatever is typed gets a right answer or a clear error: odd bytes, long names, line feeds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.errors import NoResults, QuireError, SettingError
from quire.library import Library
from tests import forks
from tests.words import WORDS

LONG = b"x" * 5000


def run(place: Path, *args: bytes | str, stdin: bytes = b"", code: int = 0, **env: str) -> tuple[str, str]:
    """What a command prints on stdout and stderr, which is always UTF-8 and never a traceback."""
    settings = {"HOME": str(place), "QUIRE_LIBRARY": "library.db", "QUIRE_EMBED_MODEL": "none"}
    done = forks.run(args, stdin=stdin, cwd=place, env={**os.environ, **settings, **env})
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
    assert f"{shown}  Feed  (about 7 tokens)\n" in run(place, "list")[0]
    assert f"1. {shown}#feed\n" in run(place, "search", "otters")[0]
    assert run(place, "read", "docs:line\nfeed.md")[0] == "# Feed\n\nOtters dive.\n"
    assert r"docs/line\u{a}feed.md: 1 chunk" in run(place, "chunk", "docs/line\nfeed.md")[0]
    (place / "docs" / "bad\nname.md").write_bytes(b"\0")
    assert r"quire: bad\u{a}name.md: holds NUL bytes" in run(place, "add", "docs", code=3)[1]
    assert run(place, "remove", "docs:line\nfeed.md")[0] == f"{shown}\n"


CONTROLS = {"\n": r"\u{a}", "\r": r"\u{d}", "\x1b": r"\u{1b}", "\u2028": r"\u{2028}", "\x7f": r"\u{7f}"}


def test_a_control_character_in_a_name_goes_all_the_way(place: Path) -> None:
    """Issue: such a file is added, listed in one line, read, refreshed, moved and removed, as it is shown."""
    folder = place / "docs" / "f\no"
    folder.mkdir()
    for control in CONTROLS:
        (folder / f"a{control}  b.md").write_text("# Odd\n\nWalruses.\n")
    run(place, "refresh")
    shown = [rf"docs:f\u{{a}}o/a{code}  b.md" for code in CONTROLS.values()]
    listed = run(place, "list")[0].split("\n")
    assert sorted(line for line in listed if "b.md" in line) == sorted(
        f"{name}  Odd  (about 6 tokens)" for name in shown
    )
    assert run(place, "read", shown[0])[0] == "# Odd\n\nWalruses.\n"
    cited = [line for line in run(place, "context", "walruses")[0].splitlines() if line.startswith("## [")]
    assert sorted(line.split("] ")[1].split("#odd (")[0] for line in cited) == sorted(shown)
    (folder / "a\n  b.md").rename(folder / "a\n  c.md")
    assert r"f\u{a}o/a\u{a}  b.md → f\u{a}o/a\u{a}  c.md" in run(place, "refresh", "--dry-run")[0]
    assert "1 renamed" in run(place, "refresh")[0]
    gone = [*shown[1:], r"docs:f\u{a}o/a\u{a}  c.md"]
    assert run(place, "remove", *gone)[0].splitlines() == gone


def test_a_failure_with_odd_bytes_is_json_too(place: Path) -> None:
    """stdout is the answer, and can be read back."""
    out, _ = run(place, "add", b"\xff.md", "--json", code=4)
    failed = {"source": r"\xff.md", "reason": "no such file or folder", "code": "unreadable"}
    assert json.loads(out)["failed"] == [failed]


# --------------------------------------------------------------------------------------- from Python

Call = Callable[[Library, Any], object]
MEGABYTE = "x" * 1_000_000


def _given(name: Any) -> Any:
    """A wrong value where None means that there is none."""
    return 0 if name is None else name


ONE_NAME: dict[str, Call] = {
    "read": lambda library, name: library.read(name),
    "read heading": lambda library, name: library.read("c:a.md", _given(name)),
    "toc": lambda library, name: library.toc(name),
    "document": lambda library, name: library.document(name),
    "chunk": lambda library, name: library.chunk(name),
    "vector": lambda library, name: library.vector(name),
    "set_vector": lambda library, name: library.set_vector(name, [1.0]),
    "promote": lambda library, name: library.promote(name, "critical"),
    "remove": lambda library, name: library.remove(name),
    "forget": lambda library, name: library.forget(name),
    "search in": lambda library, name: library.search("zebra", collection=_given(name)),
    "search paths": lambda library, name: library.search("zebra", paths=[name]),
    "search tags": lambda library, name: library.search("zebra", tags=[name]),
    "recall tags": lambda library, name: library.recall("zebra", tags=[name]),
    "remember tags": lambda library, name: library.remember("Zebras.", tags=[name]),
    "remember in": lambda library, name: library.remember("Zebras.", collection=name),
    "remember as": lambda library, name: library.remember("Zebras.", name=_given(name)),
    "add to": lambda library, name: library.add(content="# A", collection=_given(name)),
    "add as": lambda library, name: library.add(content="# A", path=_given(name)),
    "remove of": lambda library, name: library.remove(collection=_given(name)),
    "remove paths": lambda library, name: library.remove(collection="c", paths=[name]),
}
OTHERS: dict[str, Call] = {
    "add": lambda library, name: library.add(name),
    "plan": lambda library, name: library.plan(_given(name)),
    "remove_source": lambda library, name: library.remove_source(name),
    "move_source": lambda library, name: library.move_source(name, name),
    "backup": lambda library, name: library.backup(name),
    "import_": lambda library, name: library.import_(name),
    "copy": lambda library, name: library.copy(name),
    "open": lambda _, name: Library.open(name, create=True),
    "restore": lambda _, name: Library.restore(name, name),
}


@pytest.fixture
def library() -> Iterator[Library]:
    with Library.open(":memory:", create=True, config=WORDS) as library:
        library.add(content="# A\n\nZebras live here.\n", path="a.md", collection="c")
        library.remember("Zebras have stripes.")
        yield library


@pytest.mark.parametrize("wrong", [None, 5, 2.5, True, b"c:a.md", ["c:a.md"], {}])
@pytest.mark.parametrize("name", [*ONE_NAME, *OTHERS])
def test_a_value_of_the_wrong_type_is_named(library: Library, name: str, wrong: object) -> None:
    """Issue: read(None) and search(5) get an error in our words, not from the depth of sqlite3 or re."""
    if name == "import_" and isinstance(wrong, list | dict):
        return  # lines
    with pytest.raises(SettingError, match=r": must be .*, not "):
        (ONE_NAME | OTHERS)[name](library, wrong)


@pytest.mark.parametrize("wrong", [None, 5, b"a", ["a"]])
def test_a_text_of_the_wrong_type_is_named(library: Library, wrong: Any) -> None:
    """The same for what is searched, kept and cut."""
    calls = (library.search, library.context, library.recall, library.remember, library.learn)
    for call in calls if wrong != b"a" else calls[:3]:
        with pytest.raises(SettingError, match="must be a string, not "):
            call(wrong)
    for limit in ("5", 5.0, [5]):
        with pytest.raises(SettingError, match="limit: must be a whole number, not "):
            library.search("zebra", limit=limit)  # type: ignore[arg-type]
    if wrong != b"a":
        with pytest.raises(SettingError, match="source: must be a string, bytes or a Document, not "):
            quire.tree(wrong)


@pytest.mark.parametrize(
    "odd", [MEGABYTE, "a\ud800b", "a\0b", "#" * 1_000_000], ids=["long", "half", "NUL", "#"]
)
@pytest.mark.parametrize("name", ONE_NAME)
def test_a_name_that_cannot_be_one_gets_a_short_error(library: Library, name: str, odd: str) -> None:
    """Issue: names of 1 MB, half a character and NUL: a clear error that does not echo 1 MB."""
    if "\0" in odd and name in ("read", "toc", "document", "promote", "remove", "forget"):
        return  # a page may have such an address
    with pytest.raises(SettingError) as told:
        ONE_NAME[name](library, odd)
    said = "characters; the most is 10,000" if len(odd) > 10 else "holds a NUL or an incomplete character"
    assert said in str(told.value)
    assert library.status().documents == 2


@pytest.mark.parametrize("odd", [MEGABYTE, "a/" * 3000, "x" * 300, "a\ud800b", "a\0b"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_place_that_cannot_be_one_gets_a_short_error(library: Library, name: str, odd: str) -> None:
    """Issue: file names over 255 bytes, paths over 4096: never a traceback."""
    with pytest.raises(QuireError) as told:
        OTHERS[name](library, odd)
    assert len(json.dumps(told.value.to_json())) < 40_000
    assert len(str(told.value)) < 5000


def test_the_longest_name_is_taken(library: Library) -> None:
    """What is allowed works: it is stored, listed, read and removed; so do many #."""
    library.add(content="# B\n\nOtters.\n", path="p" * 10_000, collection="l" * 10_000)
    (found,) = library.search("otters").results
    assert library.read(found.document_id).text == "# B\n\nOtters.\n"
    assert len(library.remove(collection="l" * 10_000, paths=["p" * 10_000])) == 1
    with pytest.raises(NoResults, match="No document"):
        library.read("#" * 10_000)


def test_one_string_is_one_name(library: Library) -> None:
    """A string is no list of its letters."""
    library.remember("Otters dive.", tags="river")
    assert [r.snippet for r in library.recall("otters", tags="river").results] == ["Otters dive."]
    assert len(library.forget(tags="river")) == 1
