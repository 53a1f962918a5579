"""The options that commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click

from quire import later
from quire.settings import LIBRARY
from quire.surfaces.cli import output

_F = TypeVar("_F", bound=Callable[..., Any])

# A dash and a word is part of a query: it excludes that word. Options of several letters have two dashes.
_EXCLUDED = later.pattern(r"-(?:[^\W\d_]{3,}(?:\s.*)?|[^\W\d][\w.-]+:.+|[\"“„«「].+)", re.DOTALL)
_SHORT = later.pattern(r"-[a-zA-Z]{1,2}")  # `-f` and `-rf` of a command that was typed as a query
_DASH = "\ue000"  # replaces the dash while options are parsed

file_name = click.Path(readable=False, allow_dash=True)  # which may hold any bytes
library_option = click.option(
    "-L",
    "--library",
    envvar=LIBRARY,
    type=file_name,
    metavar="FILE|URL",
    help="The library: a file or a postgresql:// URL. By default the one of the `library` setting, else the "
    "nearest .quire/library.db in this folder or above, else your own.",
)
here_flag = click.option("--here", is_flag=True, help="Use the project's library instead of your own.")
memory_option = click.option(
    "-L",
    "--library",
    envvar=LIBRARY,
    type=file_name,
    metavar="FILE|URL",
    help="The library: a file or a postgresql:// URL. By default your own, wherever you are.",
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print the answer as one line of JSON.")


def json_lines(each: str) -> Callable[[_F], _F]:
    """The option --json of a command that prints a line for each of several things."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print JSON: one line for each {each}.")


def _show_level(command: click.Context, level: str) -> None:
    """Decide what stderr has: the last of these options counts, before or after the command."""
    from quire.surfaces import logs

    command.meta[output.QUIET] = level == "error"
    logs.show_log(level)


def _be_quiet(command: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given:
        _show_level(command, "error")


def _be_verbose(command: click.Context, _: click.Parameter, times: int) -> None:
    if times:
        _show_level(command, "info" if times == 1 else "debug")


def _set_level(command: click.Context, _: click.Parameter, level: str | None) -> None:
    if level:
        _show_level(command, level)


# They have no short names: `-v` and `-q` are frequent in queries.
levels = (
    click.Option(
        ["--quiet"],
        is_flag=True,
        callback=_be_quiet,
        expose_value=False,
        help="Print only the answer and errors: no notes, no progress.",
    ),
    click.Option(
        ["--verbose"],
        count=True,
        callback=_be_verbose,
        expose_value=False,
        help="Also log each step on stderr; given twice, every document too.",
    ),
    click.Option(
        ["--log-level"],
        type=click.Choice(["error", "warning", "info", "debug"], case_sensitive=False),
        callback=_set_level,
        expose_value=False,
        help="error is --quiet, info is --verbose, debug is --verbose twice.  [default: warning]",
    ),
)
path_option = click.option(
    "--path", "paths", multiple=True, help="Only paths that begin with this, or match it as a pattern with *."
)
tag_option = click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Only documents with this tag. Given several times, only those with all of them.",
)
where_option = click.option(
    "--where",
    "where",
    multiple=True,
    metavar="CONDITION",
    help="Only documents whose front matter meets this condition: 'status=draft', 'date>=2026-01-01'. "
    "Operators: = != > >= < <=.",
)
rerank_option = click.option(
    "--rerank/--no-rerank",
    default=None,
    help="Order the best results again with a second model: better, but slower.  [default: off]",
)


def _typed(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> str:
    return " ".join(word.replace(_DASH, "-", 1) if word.startswith(_DASH) else word for word in words)


query = click.argument("query", nargs=-1, required=True, callback=_typed, metavar="QUERY...")


def with_excluded_words(args: list[str], known: Collection[str]) -> list[str]:
    """Arguments in which no word of a query looks like an option; `known` are the options of the command."""
    return [_DASH + arg[1:] if _is_word(arg, known) else arg for arg in args]


def _is_word(arg: str, known: Collection[str]) -> bool:
    is_short = _SHORT.fullmatch(arg) is not None and arg[:2] not in known
    return is_short or _EXCLUDED.fullmatch(arg) is not None
