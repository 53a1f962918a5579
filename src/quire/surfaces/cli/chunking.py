"""`quire chunk`: where a strategy cuts a document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.surfaces.cli import opening, options, output, parsing
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.chunkers.base import Chunk
    from quire.location import Places
    from quire.tree import Tree


@quire.command()
@click.argument("files", nargs=-1, required=True, type=options.file_name, metavar="FILE...|-")
@click.option("-s", "--strategy", help="auto, nodes, sections, windows, memory or headers.")
@click.option("--max-tokens", type=int, help="The largest chunk that the strategy may make, in tokens.")
@click.option(
    "--overlap", type=float, help="For windows and memory: the share that neighbouring chunks have in common."
)
@options.json_lines("file, with all its chunks")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT",
    help="Write a page that shows the cuts in colour.",
)
def chunk(
    files: tuple[str, ...],
    strategy: str | None,
    max_tokens: int | None,
    overlap: float | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Show where a strategy cuts a document. Needs no library and stores nothing.

    \b
    Examples:
      quire chunk README.md
      quire chunk README.md --strategy windows --max-tokens 300 --overlap 0.2
      quire chunk docs/*.md --html chunks.html
      cat README.md | quire chunk - --json
    """
    from quire import chunkers, config
    from quire.surfaces import chunk_page, render

    if html:
        chunk_page.check_target(html, files)
    settings = opening.load_settings()
    name = strategy or settings.chunk.strategy
    given = {"max_tokens": max_tokens, "overlap": overlap}
    changes = {key: value for key, value in given.items() if value is not None}
    chosen = config.override(settings.chunk.named(name), changes, f"{name}.")
    shown: list[tuple[Tree, list[Chunk], Places | None]] = []

    def one(tree: Tree, places: Places | None) -> None:
        chunks = chunkers.split(tree, name, chosen, settings.tokens)
        if as_json:
            output.print_json(render.chunks_json(tree, name, chunks, places))
        elif html:
            shown.append((tree, chunks, places))
        else:
            _print_chunks(tree, name, chunks, places)

    code = parsing.each_document(files, settings, one)
    if html and shown:
        chunk_page.check_target(html, files)  # it may have been made meanwhile
        chunk_page.write(html, chunk_page.render(name, shown))
        output.note(f"Wrote {html}")
    sys.exit(code)


def _print_chunks(tree: Tree, strategy: str, chunks: list[Chunk], places: Places | None) -> None:
    from quire.surfaces import render

    for chunk in chunks:
        where, what = render.chunk_lines(chunk, places, _width() - 40)
        click.secho(where, bold=True)
        click.echo(what)
    document = tree.document
    sizes = [chunk.tokens for chunk in chunks] or [0]
    click.secho(
        f"{render.line(document.path)}: {render.counted(len(chunks), 'chunk')} by {strategy}, "
        f"{render.counted(sum(sizes), 'token')} ({min(sizes):,} to {max(sizes):,} each), "
        f"{render.counted(len(document.source), 'byte')}, {render.counted(document.lines, 'line')}",
        fg="cyan",
    )


def _width() -> int:
    import shutil

    return max(60, shutil.get_terminal_size((100, 24)).columns)
