"""Writes docs/cli.md from the help texts of the commands: python -m tests.cli_reference"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from quire.surfaces.cli import quire

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
_EVERYWHERE = {"--help", "--log-level", "--quiet", "--verbose"}  # explained once, above
_TOP = """\
# Commands

Every command explains itself: `quire COMMAND --help`. This page is made of these texts.
`quire init completion` completes commands in your shell.

Answers go to stdout; progress, notes and errors go to stderr. With `--json`, an answer is JSON.
[Exit codes](index.md#exit-codes) say how a command ended.
"""


def commands(group: click.Group = quire, above: str = "quire") -> Iterator[tuple[str, click.Command]]:
    """Every command with its whole name; those of a group follow it."""
    for name in sorted(group.commands):
        command = group.commands[name]
        if not command.hidden:
            yield f"{above} {name}", command
            if isinstance(command, click.Group):
                yield from commands(command, f"{above} {name}")


def entry(name: str, command: click.Command) -> str:
    """A command: how it is typed, what it does, examples and options."""
    context = click.Context(command, info_name=name, **quire.context_settings)
    usage = " ".join((name, *command.collect_usage_pieces(context)))
    parts = [f"## {name}\n\n```\n{usage}\n```", *_told(command.help or ""), _options(command, context)]
    return "\n\n".join(part for part in parts if part)


def _told(text: str) -> list[str]:
    """Paragraphs of a help text; those that click keeps as they are, are examples."""
    return [_paragraph(part) for part in re.split(r"\n\s*\n", text.strip())]


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if "\b" not in text and not lines[0].rstrip().endswith("Examples:"):
        return _escaped(" ".join(line.strip() for line in lines))
    kept = [line for line in lines if line.strip("\b ")]
    title = kept.pop(0).strip() if kept[0].rstrip().endswith(":") else ""
    least = min((len(line) - len(line.lstrip()) for line in kept), default=0)
    block = "\n".join(line[least:] for line in kept)
    return f"{title}\n\n```\n{block}\n```".strip()


def _options(command: click.Command, context: click.Context) -> str:
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    return _table([one for one in options if not _EVERYWHERE.intersection(one.opts)], context)


def _table(options: list[click.Option], context: click.Context) -> str:
    records = [record for one in options if (record := one.get_help_record(context))]
    rows = [f"| `{_cell(name)}` | {_cell(_escaped(' '.join(told.split())))} |" for name, told in records]
    return "\n".join(["| option | what it does |", "|---|---|", *rows]) if rows else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _escaped(text: str) -> str:
    return re.sub(r"(?<!`)([*<>])(?!`)", r"\\\1", text)


def _everywhere() -> str:
    context = click.Context(quire, info_name="quire", **quire.context_settings)
    options = [one for one in quire.get_params(context) if isinstance(one, click.Option)]
    return "## Options of every command\n\n" + _table(options, context)


def page() -> str:
    """The whole page."""
    names = [f"| [`{name}`](#{name.replace(' ', '-')}) | {_first(one)} |" for name, one in commands()]
    table = "\n".join(["| command | what it does |", "|---|---|", *names])
    return "\n\n".join([_TOP + "\n" + table, _everywhere(), *(entry(*one) for one in commands())]) + "\n"


def _first(command: click.Command) -> str:
    """The first sentence of a help text."""
    first, *_ = _told(command.help or "")
    return _cell(re.split(r"(?<=\.) ", first)[0])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
