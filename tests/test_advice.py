"""Advice that works: every command line that an error or a note gives can be typed, and does what it says."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

import click
import pytest

from quire.surfaces.cli import quire
from tests import forks
from tests.commands import environment, run
from tests.test_mcp_results import messages

# After a colon, to the end of the sentence, to a remark in brackets, or to the end of the message.
_ADVICE = re.compile(r": (quire (?!is\b|has\b)[a-z]+(?:(?! \()(?!\. )(?!, )(?!; )[^\n])*)")
_MENTIONED = re.compile(r"\bquire ([a-z]+)\b")
_NO_COMMANDS = {"is", "docs"}  # after the name of the program or the package


def advised(said: str) -> list[str]:
    """The command lines that a text tells to type."""
    return [re.sub(r"(?<! )\.$", "", found) for found in _ADVICE.findall(said)]


def parse(line: str) -> None:
    """Read a command line with the real commands, without running it. Raises click.UsageError."""
    command: click.Command = quire
    context = click.Context(quire, info_name="quire")
    _, *args = shlex.split(line.replace("FOLDER", "."))
    while isinstance(command, click.Group) and args and args[0] in command.commands:
        command = command.commands[args.pop(0)]
        context = click.Context(command, parent=context, info_name=command.name)
    assert command is not quire, f"no command: {line}"
    with suppress(click.exceptions.Exit):  # of --help
        command.make_context(command.name, args, parent=context.parent)


ALL = sorted({line for _, text in messages(of_all=True) for line in advised(text)})


@pytest.mark.parametrize("line", ALL)
def test_every_advice_in_the_code_can_be_typed(line: str) -> None:
    """It names a command, with the arguments and options that the command takes."""
    parse(line)


def test_the_advice_of_the_code_is_found() -> None:
    assert len(ALL) > 25
    assert advised("Some files have changed: quire refresh. Go on.") == ["quire refresh"]
    assert advised("Deeper meaning: quire embed (about 3 minutes)") == ["quire embed"]
    assert advised("See: quire read docs:a.md. It is there.") == ["quire read docs:a.md"]
    with pytest.raises(click.UsageError):
        parse("quire sources remove")
    with pytest.raises(click.UsageError):
        parse("quire refresh --zebra")


def test_every_command_that_a_message_mentions_exists() -> None:
    for where, text in messages(of_all=True):
        for name in _MENTIONED.findall(text):
            assert name in quire.commands or name in _NO_COMMANDS, (where, text)


# ------------------------------------------------------------------------------- advice that is followed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a blank in its name and two documents, one of them with a blank in its own."""
    place = tmp_path / "my project"
    (place / "docs").mkdir(parents=True)
    (place / "docs" / "user guide.md").write_text("# Guide\n\nPenguins swim.\n\n## Install\n\nUse pip.\n")
    (place / "docs" / "faq.md").write_text("# FAQ\n\nLamps shine.\n")
    return place


def follow(place: Path, said: str, *, stdin: bytes = b"", code: int = 0) -> tuple[str, str]:
    """Type the one command line that a text tells to type."""
    (line,) = advised(said.strip())
    _, *args = shlex.split(line)
    return run(place, *args, stdin=stdin, code=code)


@pytest.mark.parametrize("library", [(), ("-L", "a b.db")])
def test_what_makes_a_library_makes_it(place: Path, library: tuple[str, ...]) -> None:
    said = run(place, "search", "penguins", *library, code=1)[1]
    assert "No library" in said
    follow(place, said)
    assert "docs:user guide.md" in run(place, "search", "penguins", *library)[0]


@pytest.mark.parametrize("library", [(), ("-L", "a b.db")])
def test_what_brings_changes_in_brings_them_in(place: Path, library: tuple[str, ...]) -> None:
    """The advice names the library that -L named."""
    run(place, "add", "docs", *library)
    (place / "docs" / "faq.md").write_text("# FAQ\n\nLamps shine brightly.\n")
    follow(place, run(place, "search", "lamps", *library)[1])
    out, err = run(place, "search", "brightly", *library)
    assert "docs:faq.md" in out
    assert err == ""


def test_what_removes_what_is_gone_removes_it(place: Path) -> None:
    """Half of a folder is gone: first it stays, and then the advice removes it."""
    run(place, "add", "docs")
    (place / "docs" / "faq.md").unlink()
    told = run(place, "add", "docs")[1]
    assert "docs:faq.md is no longer in its source" in told
    _, told = follow(place, told)
    assert "faq" in run(place, "list")[0]
    follow(place, told)
    assert "faq" not in run(place, "list")[0]


def test_what_follows_a_move_follows_it(place: Path) -> None:
    run(place, "add", "docs")
    (place / "docs").rename(place / "new docs")
    said = run(place, "add", "new docs", "-c", "docs", code=4)[1]
    follow(place, said.replace(" To keep both, name another collection: -c NAME", ""))
    assert "0 added, 0 updated, 2 unchanged" in run(place, "add", "new docs", "-c", "docs")[0]


@pytest.mark.parametrize(
    "typed",
    [
        ("remove", "docs:user guide.md#install"),
        ("forget", "docs:user guide.md", "-L", ".quire/library.db"),
        ("forget", "-c", "docs", "-L", ".quire/library.db"),
    ],
)
def test_what_removes_a_document_removes_it(place: Path, typed: tuple[str, ...]) -> None:
    run(place, "add", "docs")
    follow(place, run(place, *typed, code=2)[1])
    assert "user guide" not in run(place, "list")[0]


@pytest.mark.parametrize("typed", [("remove", "memory:two words"), ("remove", "-c", "memory")])
def test_what_forgets_a_memory_forgets_it(place: Path, typed: tuple[str, ...]) -> None:
    run(place, "remember", "Lamps shine.", "--as", "two words", "-L", "m.db")
    follow(place, run(place, *typed, "-L", "m.db", code=2)[1])
    assert "Nothing" in run(place, "recall", "lamps", "-L", "m.db", code=1)[1]


def test_what_remembers_remembers(place: Path) -> None:
    follow(place, run(place, "recall", "lamps", code=1)[1])
    assert "TEXT" in run(place, "recall", "text")[0]


def test_where_to_search_for_memories_is_right(place: Path) -> None:
    run(place, "remember", "Lamps shine.", "-L", "m.db")
    (line,) = advised(run(place, "search", "lamps", "-L", "m.db", code=1)[1].strip())
    assert "Lamps shine." in run(place, *shlex.split(line.replace("QUERY", "lamps"))[1:])[0]


def test_what_lists_documents_lists_them(place: Path) -> None:
    run(place, "add", "docs")
    (place / "docs" / "tagged.md").write_text("---\ntags: [draft]\n---\n# Tagged\n")
    run(place, "refresh")
    out, _ = follow(place, run(place, "search", "tag:draft", code=2)[1])
    assert out.startswith("docs:tagged.md")


def test_what_embeds_embeds(place: Path) -> None:
    deep = {"QUIRE_EMBED_MODEL": "deep"}
    done = [forks.run(["add", "docs", "--no-embed"], cwd=place, env=environment(place) | deep)]
    done += [forks.run(["search", "lamps", "-m", "semantic"], cwd=place, env=environment(place) | deep)]
    (line,) = advised(done[-1].stderr.decode().strip())
    forks.run(shlex.split(line)[1:], cwd=place, env=environment(place) | deep)
    status = forks.run(["status"], cwd=place, env=environment(place) | deep).stdout.decode()
    assert "deep serves; deep has all chunks" in status


def test_what_trusts_a_file_trusts_it(place: Path) -> None:
    """There is no terminal here: the advice to add --yes is followed too."""
    (place / "quire.toml").write_text("[web]\nproxy = 'http://proxy.example.com'\n")
    (line,) = advised(run(place, "config")[1].strip())
    said = run(place, *shlex.split(line)[1:], code=2)[1]
    assert "add --yes" in said
    run(place, *shlex.split(line)[1:], "--yes")
    assert run(place, "config")[1] == ""


def test_what_shows_what_there_is_shows_it(place: Path) -> None:
    run(place, "add", "docs")
    out, _ = follow(place, run(place, "read", "4ddb31e4-245c-58b2-bae1-b7ad97c7eac4", code=1)[1])
    assert "docs:faq.md" in out
    out, _ = follow(place, run(place, "sources", "remove", "zebra", code=1)[1])
    assert str(place / "docs") in out


def test_what_names_a_source_names_one(place: Path) -> None:
    (place / "note.md").write_text("# Note\n")
    run(place, "add", "note.md")
    run(place, "sources", "remove", "note.md")
    follow(place, run(place, "sources", code=1)[1])
    assert "docs" in run(place, "sources")[0]


def test_what_makes_a_key_makes_it(place: Path) -> None:
    run(place, "add", "docs")
    follow(place, run(place, "keys", code=1)[1])
    assert "NAME" in run(place, "keys")[0]


def test_what_repairs_a_library_repairs_it(place: Path) -> None:
    import sqlite3

    run(place, "add", "docs")
    with sqlite3.connect(place / ".quire" / "library.db") as library:
        library.execute(
            "UPDATE documents SET source = CAST(replace(CAST(source AS TEXT), 'Lamps', 'Camps') AS BLOB)"
        )
    library.close()
    said = run(place, "read", "docs:faq.md", code=4)[1]
    follow(place, said)
    assert "Lamps" in run(place, "read", "docs:faq.md")[0]


def test_what_copies_a_backup_or_names_another_file_can_be_typed(place: Path) -> None:
    run(place, "add", "docs")
    said = run(place, "restore", "a b.db", "-L", "postgresql://db.example.com/quire", code=4)[1]
    parse(advised(said.strip())[0])
