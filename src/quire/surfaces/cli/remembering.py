"""`quire remember`, `learn`, `recall`, `forget`, `export` and `import`: memories and knowledge."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.memory import Kept
    from quire.searcher import Found
    from quire.sources.entries import Version

_IMPORTED = "The entries before are saved. To go on, type the same command."
_text = click.argument("text", metavar="TEXT|-")
_tags = click.option("--tag", "tags", multiple=True, help="A tag to find it by. Can be given several times.")
_title = click.option("--title", help="Its title. By default its first heading or line.")
_name = click.option(
    "--as", "name", metavar="NAME", help="Its name. A new text with the same name replaces it."
)


@quire.command()
@options.memory_option
@options.here_flag
@_text
@_tags
@_title
@click.option("-c", "--collection", default="memory", help="The collection to save it in.  [default: memory]")
@_name
@options.json_flag
def remember(
    library: str | None,
    here: bool,
    text: str,
    tags: tuple[str, ...],
    title: str | None,
    collection: str,
    name: str | None,
    as_json: bool,
) -> None:
    """Save a memory in your own library, wherever you are. The same text is saved once.

    With --as, a new text of the same name replaces it. quire recall --history shows the earlier texts.

    \b
    Examples:
      quire remember "We deploy on Tuesdays." --tag deploy
      git log -1 | quire remember - --tag release --title "The last release"
      quire remember "The limit is 20 now." --as rate-limit
    """
    with opening.open_memories(library, here, create=True) as opened:
        row = opened.remember(_said(text), collection=collection, title=title, tags=tags, name=name)
    _show_kept(row, as_json)


@quire.command()
@options.memory_option
@options.here_flag
@_text
@_tags
@_title
@click.option(
    "-c", "--collection", default="knowledge", help="The collection to save it in.  [default: knowledge]"
)
@_name
@options.json_flag
def learn(
    library: str | None,
    here: bool,
    text: str,
    tags: tuple[str, ...],
    title: str | None,
    collection: str,
    name: str | None,
    as_json: bool,
) -> None:
    """Save a piece of knowledge, as quire remember saves a memory.

    \b
    Examples:
      quire learn "The API answers 429 after 20 requests a minute." --tag api
      quire learn - --title "How we review" < review.md
    """
    with opening.open_memories(library, here, create=True) as opened:
        row = opened.learn(_said(text), collection=collection, title=title, tags=tags, name=name)
    _show_kept(row, as_json)


@quire.command()
@options.memory_option
@options.here_flag
@options.query
@click.option("--kind", "kinds", multiple=True, help="memory or knowledge. By default both.")
@click.option("-c", "--collection", help="Search only this collection.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Only entries with this tag. Given several times, only those with all of them.",
)
@click.option(
    "--since", help="Only entries written at this time or later: 2026-01-31, or 7d ago (also h and w)."
)
@click.option("--until", help="Only entries written at this time or earlier.")
@click.option("-n", "--limit", type=int, help="How many results to show, at most 1,000.  [default: 10]")
@click.option(
    "-m", "--mode", help="hybrid, keyword (words only) or semantic (meaning only).  [default: hybrid]"
)
@click.option("--group", is_flag=True, help="Show only the best passage of each entry.")
@click.option("--history", is_flag=True, help="Show all texts of one entry, newest first. QUERY is its name.")
@options.json_flag
def recall(
    library: str | None,
    here: bool,
    query: str,
    kinds: tuple[str, ...],
    collection: str | None,
    tags: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int | None,
    mode: str | None,
    group: bool,
    history: bool,
    as_json: bool,
) -> None:
    """Find memories and knowledge, by words and by meaning. Documents are not searched.

    \b
    Examples:
      quire recall "when do we deploy"
      quire recall "rate limits" --tag api --since 7d
      quire recall "review" --kind knowledge --group --json
      quire recall --history rate-limit
      quire recall --here "release steps"
    """
    from quire.sources.entries import KINDS
    from quire.surfaces import render

    with opening.open_memories(library, here) as opened:
        if history:
            _show_history(query, opened.history(query), as_json)
            return
        elsewhere = 0 if here or library else opening.memories_elsewhere(opened.url)
        found = opened.recall(
            query,
            kinds=kinds or KINDS,
            collection=collection,
            tags=tags,
            since=since,
            until=until,
            limit=limit,
            mode=mode,
            group=group,
        )
    _show_recalled(found, as_json)
    if elsewhere:
        output.note(
            f"This project has {output.entries(elsewhere)} too. To search them: quire recall --here QUERY"
        )
    sys.exit(render.DONE if found.results else render.NOTHING)


@quire.command()
@options.memory_option
@options.here_flag
@click.argument("addresses", nargs=-1, metavar="[ADDRESS|ID]...")
@click.option("-c", "--collection", help="Forget this whole collection.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Forget entries with this tag. Given several times, only those with all of them.",
)
@click.option("--before", help="Forget entries last written before this time: 2026-01-31, or 52w ago.")
@click.option("--dry-run", is_flag=True, help="Show what would be forgotten. Change nothing.")
@options.json_flag
def forget(
    library: str | None,
    here: bool,
    addresses: tuple[str, ...],
    collection: str | None,
    tags: tuple[str, ...],
    before: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete memories and knowledge, by address or id. For documents, use quire remove.

    \b
    Examples:
      quire forget memory:rate-limit
      quire forget --tag draft --before 52w --dry-run
    """
    from quire.surfaces import render

    with opening.open_memories(library, here) as opened:
        rows = opened.forget(*addresses, collection=collection, tags=tags, before=before, dry_run=dry_run)
    output.show_gone("forget", rows, dry_run, as_json)
    sys.exit(render.DONE if rows else render.NOTHING)


@quire.command("export")
@options.memory_option
@options.here_flag
@click.argument("file", default="-", type=options.file_name, metavar="[FILE|-]")
def export_entries(library: str | None, here: bool, file: str) -> None:
    """Write all memories and knowledge as JSON, one line for each.

    \b
    Examples:
      quire export memories.jsonl
      quire export | grep deploy
    """
    from quire.surfaces import render

    with opening.open_memories(library, here) as opened:
        try:
            number = opened.export(sys.stdout if file == "-" else file)
        except OSError as problem:
            raise click.ClickException(f"{file}: {problem.strerror}") from None
    output.note(f"Wrote {output.entries(number)}.")
    sys.exit(render.DONE if number else render.NOTHING)


@quire.command("import")
@options.memory_option
@options.here_flag
@click.argument("file", type=options.file_name, metavar="FILE|-")
@options.json_flag
def import_entries(library: str | None, here: bool, file: str, as_json: bool) -> None:
    """Read memories and knowledge that quire export wrote. Entries that are here already stay as they are.

    \b
    Examples:
      quire import memories.jsonl
      quire export -L old.db | quire import -
    """
    from quire.surfaces import render

    with opening.open_memories(library, here, create=True) as opened, output.stopping(lambda: _IMPORTED):
        report = opened.import_(sys.stdin.buffer if file == "-" else file)
    output.show_report(report, as_json)
    sys.exit(render.report_code(report))


def _said(text: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text


def _show_recalled(found: Found, as_json: bool) -> None:
    from quire.surfaces import recalled, render, wrapping

    if as_json:
        output.print_json(render.found_json(found))
        return
    columns, colour = wrapping.width(), wrapping.has_colour()
    if found.results and not found.good_match:
        click.secho(render.NO_GOOD_MATCH, bold=True)
    for number, result in enumerate(found.results, 1):
        output.separate(number)
        text, where = recalled.entry_lines(number, result, colour=colour, columns=columns)
        click.echo(text)
        click.secho(where, dim=True)
    for said in found.notes:
        output.note(said)


def _show_history(name: str, versions: list[Version], as_json: bool) -> None:
    from dataclasses import asdict

    from quire.surfaces import recalled

    if as_json:
        output.print_json({"entry": name, "versions": [asdict(one) for one in versions]})
        return
    for version in versions:
        click.echo(recalled.version_line(version))


def _show_kept(row: Kept, as_json: bool) -> None:
    from quire.surfaces import recalled, render

    if as_json:
        output.print_json(render.document_json(row))
        return
    click.echo(render.line(row.address))
    if row.outcome != "added":
        output.note(recalled.OUTCOMES[row.outcome])
    for one in row.similar:
        output.note(f"Similar: {recalled.similar_line(one)}")
