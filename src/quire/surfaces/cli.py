"""The command line. stdout is the answer, stderr the story.

Commands import what they need when they run, so that `quire --help` is instant.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quire.errors import QuireError
from quire.version import VERSION

if TYPE_CHECKING:
    from quire.chunkers.base import Chunk
    from quire.config import Config
    from quire.document import Document
    from quire.tree import Tree

_files = click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, one line for each document.")


def main() -> None:
    """Run the command line; a QuireError is shown in one line."""
    from quire.surfaces import render

    try:
        quire()
    except QuireError as error:
        _complain(str(error))
        sys.exit(render.exit_code(error))


@click.group(
    epilog="Each command explains itself: quire chunk --help",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, prog_name="quire", message="%(prog)s %(version)s")
def quire() -> None:
    """The document memory of AI agents and of the people who work with them."""


@quire.command()
@_files
@click.option("-s", "--strategy", help="auto, nodes, sections, windows, memory or headers.")
@click.option("--max-tokens", type=int, help="The largest chunk the strategy may make.")
@click.option("--overlap", type=float, help="Windows and memory: the share that neighbours have in common.")
@_json
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
    r"""Show where a strategy cuts a document. No library is needed, nothing is stored.

    \b
    Examples:
      quire chunk README.md
      quire chunk README.md --strategy windows --max-tokens 300 --overlap 0.2
      quire chunk docs/*.md --html chunks.html
      cat README.md | quire chunk - --json
    """
    from quire import chunkers, config
    from quire.surfaces import render

    settings = config.load()
    name = strategy or settings.chunk.strategy
    given = {"max_tokens": max_tokens, "overlap": overlap}
    changes = {key: value for key, value in given.items() if value is not None}
    chosen = config.override(settings.chunk.named(name), changes, f"{name}.")
    shown: list[tuple[Tree, list[Chunk]]] = []

    def one(tree: Tree) -> None:
        chunks = chunkers.split(tree, name, chosen, settings.tokens)
        if as_json:
            _print_json(render.chunks_json(tree, name, chunks))
        elif html:
            shown.append((tree, chunks))
        else:
            _print_chunks(tree, name, chunks)

    code = _each(files, settings, one)
    if html and shown:
        _write_page(html, name, shown)
    sys.exit(code)


@quire.command()
@_files
@_json
def toc(files: tuple[str, ...], as_json: bool) -> None:
    r"""Print the outline of a document: its headings, and the tokens under each.

    \b
    Examples:
      quire toc README.md
      quire toc README.md --json
    """
    from quire import config, tokens
    from quire.surfaces import render

    settings = config.load()
    counter = tokens.counter(settings.tokens)

    def one(tree: Tree) -> None:
        text = tree.document.text
        sizes = {s.position: counter.count(text, s.start, s.end) for s in tree.sections}
        if as_json:
            _print_json(render.toc_json(tree, sizes))
        else:
            click.echo("\n".join(render.toc_lines(tree, sizes)))

    sys.exit(_each(files, settings, one))


def _each(files: tuple[str, ...], settings: Config, do: Callable[[Tree], None]) -> int:
    """Do something with each document; say which failed and go on. The exit code."""
    from quire.surfaces import render
    from quire.tree import Tree

    code, done = render.DONE, 0
    for name in files:
        try:
            document = _read(name, settings)
            do(Tree(document, settings.tree))
        except QuireError as error:
            _complain(str(error))
            code = render.exit_code(error)
        else:
            done += 1
            for warning in document.warnings:
                _note(f"{document.path}: {warning}")
    return render.PARTLY if code and done else code


def _read(name: str, settings: Config) -> Document:
    from quire.document import Document
    from quire.sources import files

    if name == "-":
        source = sys.stdin.buffer.read()
        return Document.from_bytes(source, "stdin", settings=settings.document)
    return files.read(name, settings=settings.document)


def _print_chunks(tree: Tree, strategy: str, chunks: list[Chunk]) -> None:
    from quire.surfaces import render

    for chunk in chunks:
        where, what = render.chunk_lines(chunk, _width() - 40)
        click.secho(where, bold=True)
        click.echo(what)
    document = tree.document
    sizes = [chunk.tokens for chunk in chunks] or [0]
    click.secho(
        f"{document.path}: {render.counted(len(chunks), 'chunk')} by {strategy}, "
        f"{render.counted(sum(sizes), 'token')} ({min(sizes):,} to {max(sizes):,} each), "
        f"{render.counted(len(document.source), 'byte')}, {render.counted(document.lines, 'line')}",
        fg="cyan",
    )


def _write_page(out: Path, strategy: str, shown: list[tuple[Tree, list[Chunk]]]) -> None:
    from quire.surfaces import chunk_page

    try:
        out.write_text(chunk_page.render(strategy, shown), "utf-8")
    except OSError as problem:
        raise click.ClickException(f"{out}: {problem.strerror}") from None
    _note(f"Wrote {out}")


def _width() -> int:
    import shutil

    return max(60, shutil.get_terminal_size((100, 24)).columns)


def _print_json(value: Any) -> None:
    import json

    click.echo(json.dumps(value, ensure_ascii=False))


def _complain(text: str) -> None:
    from quire.surfaces import render

    click.secho(f"quire: {render.safe(text)}", fg="red", err=True)


def _note(text: str) -> None:
    from quire.surfaces import render

    click.secho(render.safe(text), dim=True, err=True)
