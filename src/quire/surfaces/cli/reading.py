"""`quire read`, `toc`, `chunks` and `list`: documents, their outlines and chunks, and which there are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from quire import releases
from quire.errors import NoResults, no_collection
from quire.surfaces.cli import opening, options, output, parsing
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.location import Places
    from quire.result import Reading
    from quire.stores import DocumentRow
    from quire.tree import Tree

_PAGE = 500  # documents that are read and shown at a time


@quire.command()
@options.library_option
@click.argument("address", metavar="ADDRESS|ID")
@click.argument("heading", required=False)
@click.option(
    "--max-tokens", type=click.IntRange(min=1), help="Stop after this many tokens, and say what was left out."
)
@options.json_flag
def read(
    library: str | None, address: str, heading: str | None, max_tokens: int | None, as_json: bool
) -> None:
    """Print a document or one of its sections, byte for byte, by address or id.

    \b
    Examples:
      quire read docs:guide.md
      quire read docs:guide.md#install
      quire read guide.md "Install > Linux" --max-tokens 500
      quire read 4ddb31e4-245c-58b2-bae1-b7ad97c7eac4
    """
    from dataclasses import asdict

    found, source = _passage(library, address, heading, max_tokens)
    is_exact = not as_json and not sys.stdout.isatty()
    for note in found.notes if is_exact else ():  # the text may have no line feed at its end: they come first
        output.note(note)
    if as_json:
        output.print_json(asdict(found))
    elif is_exact:
        click.echo(source[found.byte_start : found.byte_end], nl=False)
    else:
        from quire.surfaces import render

        click.echo(render.safe(found.text), nl=not found.text.endswith("\n"))
    for note in () if is_exact else found.notes:
        output.note(note)


def _passage(
    library: str | None, address: str, heading: str | None, max_tokens: int | None
) -> tuple[Reading, bytes]:
    """A passage, and the bytes of its document. What no document is may be one of the user's memories."""
    try:
        with opening.open_library(library) as opened:
            return opened.read(address, heading, max_tokens=max_tokens), opened.source(address)
    except NoResults:
        if library:
            raise
        with suppress(NoResults), opening.open_memories(None, here=False) as own:
            return own.read(address, heading, max_tokens=max_tokens), own.source(address)
        raise


@quire.command()
@options.library_option
@click.argument("sources", nargs=-1, required=True, type=options.file_name, metavar="FILE|ADDRESS|ID...")
@options.json_lines("outline, nested")
def toc(library: str | None, sources: tuple[str, ...], as_json: bool) -> None:
    """Print the outline of a file or an indexed document: its headings, with the tokens to read each.

    \b
    Examples:
      quire toc README.md
      quire toc docs:guide.md --json
      quire toc guide.md
    """
    from quire import tokens
    from quire.surfaces import render

    settings = opening.load_settings()
    counter = tokens.budget_counter(settings.tokens)

    def one(tree: Tree, places: Places | None = None) -> None:  # noqa: ARG001
        text = tree.document.text
        sizes = {s.position: counter.count(text, s.start, s.end) for s in tree.sections}
        if as_json:
            output.print_json(render.toc_json(tree, sizes))
        else:
            click.echo("\n".join(render.toc_lines(tree, sizes)))

    no_files = [name for name in sources if name != "-" and not os.path.exists(name)]  # noqa: PTH110
    stored = _stored(library, no_files) if no_files else {}
    code = parsing.each_document(tuple(name for name in sources if name not in stored), settings, one)
    for tree in stored.values():
        one(tree)
    sys.exit(code)


def _stored(library: str | None, names: list[str]) -> dict[str, Tree]:
    """The documents that names mean, as `quire read` finds them.

    A path that no document has is left out: it may be a file that is missing. Raises NoResults for an
    address or an id.
    """
    from quire.surfaces import render

    try:
        opened = opening.open_library(library)
    except NoResults:
        if any(map(_is_address, names)):
            raise
        return {}
    with opened:
        given = {name: render.as_text(name) for name in names}
        found = {name: text for name, text in given.items() if _is_address(name) or opened.document(text)}
        return {name: opened.toc(text) for name, text in found.items()}


def _is_address(name: str) -> bool:
    from quire.address import parse_id

    return ":" in name or parse_id(name) is not None


@quire.command()
@options.library_option
@click.argument("address", metavar="ADDRESS|ID")
@options.json_lines("chunk")
def chunks(library: str | None, address: str, as_json: bool) -> None:
    """List the chunks of an indexed document or section, each with its id, place and size.

    With --json, each also has its text and everything else that is stored of it.

    \b
    Examples:
      quire chunks docs:guide.md
      quire chunks docs:guide.md#install --json
      quire chunks 4ddb31e4-245c-58b2-bae1-b7ad97c7eac4
    """
    from dataclasses import asdict

    from quire.surfaces import render

    with opening.open_library(library) as opened:
        found = opened.chunks(address)
    for chunk in found:
        if as_json:
            output.print_json(asdict(chunk))
        else:
            size = f"{render.shown_place(chunk)}, {render.counted(chunk.tokens, 'token')}"
            click.echo(f"{chunk.id}  {render.line(chunk.address)}  ({size})")


@quire.command("list")
@options.library_option
@click.option("-c", "--collection", help="Only this collection.")
@options.path_option
@options.tag_option
@options.where_option
@click.option("--kind", help="Only document, external, memory or knowledge.")
@options.json_lines("document")
def list_documents(
    library: str | None,
    collection: str | None,
    paths: tuple[str, ...],
    tags: tuple[str, ...],
    where: tuple[str, ...],
    kind: str | None,
    as_json: bool,
) -> None:
    """List the documents in a library, and about how many tokens a read of each takes.

    Of collections with versions, such as django@5.2, the newest is marked.

    \b
    Examples:
      quire list
      quire list -c docs --json
      quire list --path 'guides/*' --tag draft
      quire list --where status=draft --where 'date>=2026-01-01'
      quire list --kind memory
    """
    from quire.library.passages import filters_of
    from quire.stores.filters import described
    from quire.surfaces import render

    listed = 0
    with opening.open_library(library) as opened:
        known = opened.store.collections()
        versions = releases.versions_of(known)
        newest = {some[0] for some in versions.values()}
        given = partial(opened.documents, collection, paths=paths, tags=tags, where=where, kind=kind)
        for rows in _pages(given):
            listed += len(rows)
            click.echo("\n".join(_listed(row, newest, as_json) for row in rows))
        if not listed and collection is not None and not opened.documents(collection, limit=1):
            raise no_collection(collection, known)
    told = _versions_line(versions) if collection is None else releases.note_newest(collection, known)
    if told:
        output.note(render.line(told))
    if not listed and (paths or tags or where or kind):
        among = filters_of(collection, paths, tags, where)
        output.note(render.line(f"No document {described(among, kind or '')}"))
        sys.exit(render.NOTHING)


def _pages(documents: Callable[..., list[DocumentRow]]) -> Iterator[list[DocumentRow]]:
    """What a call returns, some at a time: a library may have more documents than fit in memory."""
    rows = documents(limit=_PAGE)
    while rows:
        yield rows
        rows = documents(after=rows[-1], limit=_PAGE)


def _listed(row: DocumentRow, newest: Container[str], as_json: bool) -> str:
    """The line of a document in a list."""
    from quire.surfaces import render

    if as_json:
        return render.as_json(render.document_json(row) | _version_json(row, newest))
    size = f"about {render.counted(render.reading_tokens(row), 'token')}"
    mark = ", newest version" if row.collection in newest else ""
    return f"{render.line(row.address)}  {render.line(row.title)}  ({size}{mark})"


def _version_json(row: DocumentRow, newest: Container[str]) -> dict[str, Any]:
    """The version that a document's collection is, and whether it is the newest; null if it is none."""
    split = releases.split_version(row.collection)
    return {"version": split and split[1], "newest": row.collection in newest if split else None}


def _versions_line(versions: Mapping[str, Sequence[str]]) -> str:
    """`versions: django 5.2 (newest), 4.2`: the collections that have several versions; "" if none has."""
    told = []
    for name, some in sorted(versions.items()):
        first, *others = (one.removeprefix(f"{name}@") for one in some)
        told += [f"{name} {', '.join((f'{first} (newest)', *others))}"] if others else []
    return f"versions: {'; '.join(told)}" if told else ""
