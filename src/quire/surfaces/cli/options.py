"""The options that commands share."""

from __future__ import annotations

import re
from collections.abc import Collection

import click

from quire import later
from quire.settings import LIBRARY

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
    help="A file or postgresql://…; by default the `library` setting, else the nearest .quire/library.db "
    "upward, else your own.",
)
here_flag = click.option(
    "--here", is_flag=True, help="The project's library, instead of your own: memories of this project."
)
memory_option = click.option(
    "-L",
    "--library",
    envvar=LIBRARY,
    type=file_name,
    metavar="FILE|URL",
    help="A file or postgresql://…; by default your own library, wherever you are.",
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON, one line for each answer.")


def _show_log(_: click.Context, __: click.Parameter, level: str | None) -> None:
    if level:
        from quire.surfaces import logs

        logs.show_log(level)


log_level = click.Option(
    ["--log-level"],
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    callback=_show_log,
    expose_value=False,
    help="Show the log on stderr, from this level on.  [default: warnings, without times]",
)
path_option = click.option(
    "--path", "paths", multiple=True, help="Look only in paths that begin so, or match a pattern with *."
)
tag_option = click.option(
    "--tag", "tags", multiple=True, help="Look only in documents with this tag; with all of several."
)
where_option = click.option(
    "--where",
    "where",
    multiple=True,
    metavar="CONDITION",
    help="Look only in documents whose front matter meets this: 'status=draft', 'date>=2026-01-01'. "
    "Operators: = != > >= < <=.",
)
rerank_option = click.option(
    "--rerank/--no-rerank",
    default=None,
    help="Read the best again: a better order, which takes more time.  [default: off]",
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
