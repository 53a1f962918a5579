"""`quire sources`: what the library follows, and how to let go of it or move it."""

from __future__ import annotations

import sys

import click

from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire


@quire.group(invoke_without_command=True)
@options.library_option
@options.json_lines("source")
@click.pass_context
def sources(context: click.Context, library: str | None, as_json: bool) -> None:
    """List the sources of a library: what you added, how much of it there is, and its last problem.

    \b
    Examples:
      quire sources
      quire sources --json
      quire sources remove ./old-docs
      quire sources move ~/docs ~/work/docs
    """
    if context.invoked_subcommand:
        context.meta["library"] = library
        return
    import time

    from quire.surfaces import render

    with opening.open_library(library) as opened:
        found = opened.sources()
    for source in found:
        if as_json:
            output.print_json(render.source_json(source))
            continue
        first, *rest = render.source_lines(source, time.time_ns() // 1_000_000)
        click.secho(first, bold=True)
        for line in rest:
            click.echo(line)
    if not found:
        output.note_no_sources()
    sys.exit(render.DONE if found else render.NOTHING)


@sources.command("remove")
@options.library_option
@click.argument("place", metavar="PLACE|URL|ADDRESS|ID")
@click.option("-c", "--collection", help="The collection of the source, if it is in several.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed. Change nothing.")
@options.json_flag
@click.pass_context
def remove_source(
    context: click.Context,
    library: str | None,
    place: str,
    collection: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove a source and the documents that no other source has. Your files are never touched.

    \b
    Examples:
      quire sources remove ./old-docs --dry-run
      quire sources remove https://example.com/guide
    """
    with opening.open_library(library or context.meta["library"]) as opened:
        rows = opened.remove_source(place, collection=collection, dry_run=dry_run)
    output.show_gone("remove", rows, dry_run, as_json)


@sources.command("move")
@options.library_option
@click.argument("old")
@click.argument("new")
@click.option("--dry-run", is_flag=True, help="Show what would move. Change nothing.")
@options.json_flag
@click.pass_context
def move_source(
    context: click.Context, library: str | None, old: str, new: str, dry_run: bool, as_json: bool
) -> None:
    """Tell the library that you moved a file or folder. Documents keep their ids, promotions and vectors.

    \b
    Examples:
      quire sources move ~/docs ~/work/docs
      quire refresh
    """
    from quire.surfaces import render

    with opening.open_library(library or context.meta["library"]) as opened:
        moved = opened.move_source(old, new, dry_run=dry_run)
    if as_json:
        output.print_json({"moved": [{"from": a.place, "to": b.place} for a, b in moved], "dry_run": dry_run})
        return
    for before, after in moved:
        click.echo(f"{render.line(before.place)} → {render.line(after.place)}  ({before.documents:,})")
