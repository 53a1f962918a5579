"""`quire remember`, `learn`, `recall`, `forget`, `export` and `import`: memories and knowledge."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.stores import DocumentRow

_text = click.argument("text", metavar="TEXT|-")
_tags = click.option("--tag", "tags", multiple=True, help="A word to find it by; may be given several times.")
_title = click.option("--title", help="What it is about; by default its first heading or line.")
_name = click.option("--as", "name", metavar="NAME", help="A name to file it under, and to replace it by.")


@quire.command()
@options.library_option
@_text
@_tags
@_title
@click.option("-c", "--collection", default="memory", help="The name to file it under.  [default: memory]")
@_name
@options.json_flag
def remember(
    library: str | None,
    text: str,
    tags: tuple[str, ...],
    title: str | None,
    collection: str,
    name: str | None,
    as_json: bool,
) -> None:
    """Keep a memory. The same text is kept once.

    \b
    Examples:
      quire remember "We deploy on Tuesdays." --tag deploy
      git log -1 | quire remember - --tag release --title "The last release"
      quire remember "The limit is 20 now." --as rate-limit
    """
    with opening.open_library(library, create=True) as opened:
        row = opened.remember(_said(text), collection=collection, title=title, tags=tags, name=name)
    _show_kept(row, as_json)


@quire.command()
@options.library_option
@_text
@_tags
@_title
@click.option(
    "-c", "--collection", default="knowledge", help="The name to file it under.  [default: knowledge]"
)
@_name
@options.json_flag
def learn(
    library: str | None,
    text: str,
    tags: tuple[str, ...],
    title: str | None,
    collection: str,
    name: str | None,
    as_json: bool,
) -> None:
    """Keep a piece of knowledge. The same text is kept once.

    \b
    Examples:
      quire learn "The API answers 429 after 20 requests a minute." --tag api
      quire learn - --title "How we review" < review.md
    """
    with opening.open_library(library, create=True) as opened:
        row = opened.learn(_said(text), collection=collection, title=title, tags=tags, name=name)
    _show_kept(row, as_json)


@quire.command()
@options.library_option
@options.query
@click.option("--kind", "kinds", multiple=True, help="memory or knowledge; by default both.")
@click.option("-c", "--collection", help="Look only in this collection.")
@click.option("--tag", "tags", multiple=True, help="Only entries with this tag; with all of several.")
@click.option("--since", help="Only entries written then or later: 2026-01-31, or 7d (also h, w) ago.")
@click.option("--until", help="Only entries written until then.")
@click.option("-n", "--limit", type=int, help="How many results, at most 1,000.  [default: 10]")
@click.option(
    "-m", "--mode", help="hybrid, keyword (words alone) or semantic (meaning alone).  [default: hybrid]"
)
@click.option("--group", is_flag=True, help="Only the best of each entry.")
@options.json_flag
def recall(
    library: str | None,
    query: str,
    kinds: tuple[str, ...],
    collection: str | None,
    tags: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int | None,
    mode: str | None,
    group: bool,
    as_json: bool,
) -> None:
    """Find memories and knowledge, by their words and by their meaning. Documents are not looked at.

    \b
    Examples:
      quire recall "when do we deploy"
      quire recall "rate limits" --tag api --since 7d
      quire recall "review" --kind knowledge --group --json
    """
    from quire.sources.entries import KINDS
    from quire.surfaces import render

    with opening.open_library(library) as opened:
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
    output.show_found(found, as_json)
    sys.exit(render.DONE if found.results else render.NOTHING)


@quire.command()
@options.library_option
@click.argument("addresses", nargs=-1, metavar="[ADDRESS|ID]...")
@click.option("-c", "--collection", help="Forget all of this collection.")
@click.option("--tag", "tags", multiple=True, help="Forget what has this tag; all of several.")
@click.option("--before", help="Forget what was last written before then: 2026-01-31, or 52w ago.")
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten.")
@options.json_flag
def forget(
    library: str | None,
    addresses: tuple[str, ...],
    collection: str | None,
    tags: tuple[str, ...],
    before: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete memories and knowledge, by address or id. Documents are refused: they are removed.

    \b
    Examples:
      quire forget memory:rate-limit
      quire forget --tag draft --before 52w --dry-run
    """
    from quire.surfaces import render

    with opening.open_library(library) as opened:
        rows = opened.forget(*addresses, collection=collection, tags=tags, before=before, dry_run=dry_run)
    output.show_gone("forget", rows, dry_run, as_json)
    sys.exit(render.DONE if rows else render.NOTHING)


@quire.command("export")
@options.library_option
@click.argument("file", default="-", type=options.file_name, metavar="[FILE|-]")
def export_entries(library: str | None, file: str) -> None:
    """Write all memories and knowledge as lines of JSON.

    \b
    Examples:
      quire export memories.jsonl
      quire export | grep deploy
    """
    from quire.surfaces import render

    with opening.open_library(library) as opened:
        try:
            number = opened.export(sys.stdout if file == "-" else file)
        except OSError as problem:
            raise click.ClickException(f"{file}: {problem.strerror}") from None
    output.note(f"Wrote {output.entries(number)}.")
    sys.exit(render.DONE if number else render.NOTHING)


@quire.command("import")
@options.library_option
@click.argument("file", type=options.file_name, metavar="FILE|-")
@options.json_flag
def import_entries(library: str | None, file: str, as_json: bool) -> None:
    """Take in memories and knowledge that were exported. What is here already stays as it is.

    \b
    Examples:
      quire import memories.jsonl
      quire export -L old.db | quire import -
    """
    from quire.surfaces import render

    with opening.open_library(library, create=True) as opened:
        report = opened.import_(sys.stdin.buffer if file == "-" else file)
    output.show_report(report, as_json)
    sys.exit(render.report_code(report))


def _said(text: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text


def _show_kept(row: DocumentRow, as_json: bool) -> None:
    from quire.surfaces import render

    if as_json:
        output.print_json(render.document_json(row))
    else:
        click.echo(render.line(row.address))
