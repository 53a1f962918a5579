"""Writes the manual page man/quire.1 from the commands: python -m tests.man"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from quire.surfaces.cli import options, quire

PAGE = Path(__file__).parents[1] / "man" / "quire.1"
_COMMON = {*(name for option in options.levels for name in option.opts), "--help"}
_ENDINGS = """
0	The command did what it was asked to.
1	Nothing was found, or something has changed (\\fBrefresh \\-\\-check\\fR).
2	The command was typed wrongly, or a setting is wrong.
3	A part failed; the rest is done.
4	The command failed.
130	A person stopped the command.
"""
_FILES = """
.quire/library.db	The library of a project: the nearest one upward is used.
~/.local/share/quire/library.db	Your own library, with your memories.
~/.config/quire/quire.toml	Your settings.
quire.toml	The settings of a project: the nearest one upward is used.
"""
_VARIABLES = """
QUIRE_LIBRARY	The library to use, as with \\fB\\-L\\fR.
QUIRE_\\fISETTING\\fR	A setting of \\fBquire config\\fR: search.limit is QUIRE_SEARCH_LIMIT.
NO_COLOR	If it is set, nothing is printed in colour or bold.
COLUMNS	The width to wrap to in a terminal.
"""


def page() -> str:
    """The manual page."""
    with click.Context(quire, info_name="quire", **quire.context_settings) as context:
        return "\n".join([*_lines(context), ""])


def _lines(context: click.Context) -> Iterator[str]:
    yield '.\\" Generated from the commands by: python -m tests.man'
    yield '.TH QUIRE 1 "" "Quire" "User Commands"'
    yield from (".SH NAME", f"quire \\- {_roff(_first(quire)).rstrip('.')}")
    yield from (".SH SYNOPSIS", ".B quire", "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]...")
    yield from (".SH DESCRIPTION", *_help(quire))
    yield from (".SH OPTIONS", "These may stand before or after a command.", *_options(quire, context, True))
    yield ".SH COMMANDS"
    for name in quire.list_commands(context):
        command = quire.get_command(context, name)
        assert command is not None
        yield from _command(command, click.Context(command, parent=context, info_name=name))
    yield from _table("EXIT STATUS", _ENDINGS)
    yield from _table("ENVIRONMENT", _VARIABLES)
    yield from _table("FILES", _FILES)


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    """A command, its options and its examples; then those below it."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f".SS {_roff(context.command_path)} {_roff(usage)}", *_help(command))
    yield from _options(command, context, False)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _command(below, click.Context(below, parent=context, info_name=name))


def _first(command: click.Command) -> str:
    return (command.help or "").partition("\n")[0]


def _help(command: click.Command) -> Iterator[str]:
    """The paragraphs of a help text; those after a \\b are printed as they are."""
    for paragraph in re.split(r"\n\s*\n", command.help or ""):
        if paragraph.lstrip().startswith("\b"):
            title, *lines = paragraph.replace("\b", "").strip().split("\n")
            yield from (".PP", _roff(title), ".nf", ".RS", *(_roff(line.strip()) for line in lines))
            yield from (".RE", ".fi")
        else:
            yield from (".PP", _roff(" ".join(paragraph.split())))


def _options(command: click.Command, context: click.Context, of_group: bool) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and isinstance(parameter, click.Option) and (of_group or not _COMMON & {*parameter.opts}):
            names, told = record
            yield from (".TP", f"\\fB{_roff(names)}\\fR", _roff(" ".join(told.split())))


def _table(title: str, rows: str) -> Iterator[str]:
    yield f".SH {title}"
    for row in rows.strip().splitlines():
        name, told = row.split("\t")
        yield from (".TP", f"\\fB{name}\\fR", told)


def _roff(text: str) -> str:
    """A text without what roff would take as its own: backslashes, dashes, a dot or quote at the start."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), "utf-8")
