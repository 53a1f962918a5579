"""What commands print: stdout is the answer, stderr the story."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NoReturn

import click

from quire.errors import Interrupted
from quire.plural import counted

if TYPE_CHECKING:
    from quire.ingest.report import Report
    from quire.searcher import Found
    from quire.stores import DocumentRow
    from quire.surfaces.bar import Counted

LIBRARY = "quire.library"  # in the meta of a command: the library that -L names
QUIET = "quire.quiet"  # in the meta of a command: whether notes and bars are hidden


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    from quire.surfaces import render

    click.echo(render.as_json(value))


def colours() -> bool | None:
    """What click is to do with colours: False if NO_COLOR is set, else None: as the terminal has them."""
    return False if os.environ.get("NO_COLOR") else None


def is_quiet() -> bool:
    """Whether only the answer and errors are wanted."""
    command = click.get_current_context(silent=True)
    return command is not None and bool(command.meta.get(QUIET))


def with_library(text: str) -> str:
    """A text whose advice names the library of this command, if -L named it: `quire refresh -L notes.db`."""
    command = click.get_current_context(silent=True)
    name = command and command.meta.get(LIBRARY)
    if not (command and name) or " -L " in text:
        return text
    import re
    import shlex

    from quire import redact

    group: Any = command.find_root().command
    takes = [one for one, it in group.commands.items() if any(p.name == "library" for p in it.params)]
    advised = rf"(: quire (?:{'|'.join(takes)}))\b"
    return re.sub(advised, lambda found: f"{found[1]} -L {shlex.quote(redact.url(name))}", text)


def note(text: str) -> None:
    """Tell the user something on stderr, in one line, unless --quiet is given."""
    from quire.surfaces import render

    if not is_quiet():
        click.secho(render.line(render.cut(with_library(text))), dim=True, err=True, color=colours())


def note_no_sources() -> None:
    """Tell the user that there are no sources yet."""
    note("The library has no sources. Name one with: quire add ./docs")


def complain(error: dict[str, Any]) -> None:
    """Tell the user on stderr what went wrong, in one line: code, message and details if JSON is wanted."""
    from quire.surfaces import render

    error = error | {"message": with_library(error["message"])}
    if wants_json():
        click.echo(render.as_json({"error": error}), err=True)
    else:
        said = f"quire: {render.line(render.cut(error['message']))}"
        click.secho(said, fg="red", err=True, color=colours())


def stop(why: str = "") -> NoReturn:
    """End a command that a person interrupted."""
    from quire.surfaces import render

    error = Interrupted(f"Stopped. {why}".strip())
    complain(error.to_json())
    sys.exit(render.exit_code(error))


def wants_json() -> bool:
    """Whether the command was asked for JSON; known even if its options are wrong."""
    args = list(takewhile(lambda arg: arg != "--", sys.argv[1:]))
    return bool({"--json", "--format=json"} & {*args}) or ("--format", "json") in pairwise(args)


def progress_bar() -> AbstractContextManager[Counted]:
    """A progress bar on stderr; hidden with --quiet, and if stderr is no terminal."""
    from quire.surfaces import bar

    return bar.shown_bar() if sys.stderr.isatty() and not is_quiet() else bar.hidden()


@contextmanager
def stopping(said: Callable[[], str]) -> Iterator[Counted]:
    """Work with a bar. Ctrl-C ends the command, and says what it left."""
    try:
        with progress_bar() as bar:
            yield bar
    except KeyboardInterrupt:
        stop(said())


@contextmanager
def counting() -> Iterator[Counted]:
    """Work that writes documents, with a bar. Ctrl-C ends the command, and says how many it changed."""
    with stopping(lambda: kept(bar.written)) as bar:
        yield bar


def kept(written: int) -> str:
    """What an interrupted command leaves, and how to go on."""
    if not written:
        return "No document was changed. To start again, type the same command."
    what = counted(written, "document was", "documents were")
    return f"{what} changed, and can be searched. To go on, type the same command."


def show_report(report: Report, as_json: bool, *, names_missing: bool = True) -> None:
    """Show a report: a summary on stdout, problems on stderr."""
    from quire.surfaces import render

    for failed in report.failed:
        complain(render.failure_json(failed))
    for warning in (*(f"skipped {s.source}: {s.reason}" for s in report.skipped), *report.warnings):
        note(warning)
    if as_json:
        print_json(render.report_json(report))
    else:
        click.echo(render.report_line(report))
    for said in (render.skipped_line(report.kinds), render.pending_line(report)):
        if said:
            note(said)
    if report.missing and names_missing:
        note(render.missing_line(report.missing))


def show_found(found: Found, as_json: bool) -> None:
    """Show the results of a search, best first. On a terminal, lines end at its width."""
    from quire.surfaces import render, wrapping

    if as_json:
        print_json(render.found_json(found))
        return
    columns, colour = wrapping.width(), wrapping.has_colour()
    if found.results and not found.good_match:
        click.secho(render.NO_GOOD_MATCH, bold=True)
    for number, result in enumerate(found.results, 1):
        separate(number)
        where, *about, text = render.result_lines(number, result, colour=colour, columns=columns)
        click.secho(where, bold=True)
        for one in about:
            click.secho(one, dim=True)
        click.echo(text)
        for one in render.explained_lines(result.explain, columns) if result.explain else ():
            click.secho(one, dim=True)
    for said in found.notes:
        note(said)


def separate(number: int) -> None:
    """Print the blank line before a result, unless it is the first."""
    if number > 1:
        click.echo()


def show_gone(what: str, rows: list[DocumentRow], dry_run: bool, as_json: bool) -> None:
    """Show what was removed or forgotten, or would be."""
    from quire.surfaces import render

    done = {"remove": "removed", "forget": "forgotten"}[what]
    if as_json:
        print_json({done: [row.address for row in rows], "dry_run": dry_run})
        return
    for row in rows:
        click.echo(render.line(row.address))
    noun = render.counted(len(rows), "document") if what == "remove" else entries(len(rows))
    note(f"{f'Would {what}' if dry_run else done.capitalize()} {noun}.")


def entries(number: int) -> str:
    """A number of memories and pieces of knowledge, in words."""
    return counted(number, "entry", "entries")
