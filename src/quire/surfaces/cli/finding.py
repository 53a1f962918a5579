"""`quire search` and `context`: what answers a question."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.context import Context
    from quire.tokens import Counter


@quire.command()
@options.library_option
@options.query
@click.option("-c", "--collection", help="Search only this collection.")
@options.path_option
@options.tag_option
@options.where_option
@click.option("-n", "--limit", type=int, help="How many results to show, at most 1,000.  [default: 10]")
@click.option(
    "-m", "--mode", help="hybrid, keyword (words only) or semantic (meaning only).  [default: hybrid]"
)
@options.rerank_option
@click.option("--explain", is_flag=True, help="Show why each result ranks where it does.")
@options.json_flag
def search(
    library: str | None,
    query: str,
    collection: str | None,
    paths: tuple[str, ...],
    tags: tuple[str, ...],
    where: tuple[str, ...],
    limit: int | None,
    mode: str | None,
    rerank: bool | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Find the sections that answer a query, by words and by meaning.

    Plain words affect ranking. "Phrases" are required. -words are excluded. These work too: a OR b, prefix*,
    heading:word, title:word, path:folder/, tag:draft, alias:name, and any front-matter field, as in
    status:draft.

    Of a collection with versions, such as django@5.2, the newest is searched. -c names another version;
    -c 'django@*' names all.

    \b
    Examples:
      quire search rolling back a deployment
      quire search '"exit code"' -docker --path docs/
      quire search heading:install --json
      quire search make it start faster --mode semantic
      quire search custom user model -c django@5.2
      quire search meeting --where 'date>=2026-01-01' -status:draft
    """
    from quire.surfaces import render

    with opening.open_library(library) as opened:
        among = {"collection": collection, "paths": paths, "tags": tags, "where": where}
        found = opened.search(query, **among, limit=limit, mode=mode, rerank=rerank, explain=explain)  # type: ignore[arg-type]
    output.show_found(found, as_json)
    sys.exit(render.DONE if found.results else render.NOTHING)


@quire.command()
@options.library_option
@options.query
@click.option("--max-tokens", type=int, help="The largest size of the pack.  [default: 4000]")
@click.option("-c", "--collection", help="Search only this collection.")
@options.path_option
@options.tag_option
@options.where_option
@click.option(
    "-m", "--mode", help="hybrid, keyword (words only) or semantic (meaning only).  [default: hybrid]"
)
@options.rerank_option
@click.option(
    "--include",
    default="sections",
    help="What to take: sections, chunks (only those that match) or documents (whole).  [default: sections]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json", "xml"]),
    default="markdown",
    help="The form of the pack; json has the exact text.  [default: markdown]",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json: one line.")
def context(
    library: str | None,
    query: str,
    max_tokens: int | None,
    collection: str | None,
    paths: tuple[str, ...],
    tags: tuple[str, ...],
    where: tuple[str, ...],
    mode: str | None,
    rerank: bool | None,
    include: str,
    form: str,
) -> None:
    """Print a pack of passages to read before answering a question, with citations.

    Critical documents come first. Then come the sections that match, best first, with the beginnings of their
    documents. The pack is never over its size, counted as Markdown or XML.

    \b
    Examples:
      quire context "how do I roll back a deployment" --max-tokens 4000
      quire context "exit codes" --path docs/ --include chunks
      quire context "exit codes" --json
    """
    from quire.surfaces import packs, render
    from quire.tokens import budget_counter

    with opening.open_library(library) as opened:
        among = {"collection": collection, "paths": paths, "tags": tags, "where": where, "rerank": rerank}
        ask = partial(opened.context, query, **among, mode=mode, include=include)  # type: ignore[arg-type]
        found = ask(max_tokens=max_tokens)
        if form == "xml":
            found = _smaller(found, ask, budget_counter(opened.config.tokens))
    if form == "json":
        output.print_json(packs.as_values(found))
    else:
        click.echo(packs.as_xml(found) if form == "xml" else packs.as_markdown(found), nl=False)
    for note in found.notes:
        output.note(note)
    sys.exit(render.DONE if found.passages else render.NOTHING)


def _smaller(found: Context, ask: Callable[..., Context], counter: Counter) -> Context:
    """The pack that fits as XML: it is packed again, smaller, until it does."""
    from quire.surfaces import packs

    most = room = found.max_tokens
    while found.passages and room > 1:
        shown = packs.as_xml(found)
        if (over := counter.count(shown, 0, len(shown)) - most) <= 0:
            break
        room = max(1, room - over)
        found = ask(max_tokens=room)
    return replace(found, max_tokens=most)
