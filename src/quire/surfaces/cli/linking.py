"""`quire links`: what a document or a section links to, and what links to it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.linking import LinkBack, LinkOut


@quire.command()
@options.library_option
@click.argument("address", metavar="ADDRESS|ID")
@options.json_flag
def links(library: str | None, address: str, as_json: bool) -> None:
    """Print the links in a document or a section, and the links that lead to it.

    Wikilinks, embedded notes and Markdown links count. A link to a heading leads to its section.

    \b
    Examples:
      quire links vault:Zettel.md
      quire links docs:guide.md#install
      quire links docs:guide.md --json
    """
    from dataclasses import asdict

    from quire.surfaces import render

    with opening.open_library(library) as opened:
        found = opened.links(address)
    if as_json:
        output.print_json(asdict(found))
    else:
        for link in found.out:
            click.echo(_out_line(link))
        for back in found.back:
            click.echo(_back_line(back))
    if not found.out and not found.back:
        output.note(f"{found.address} has no links, and nothing links to it.")
        sys.exit(render.NOTHING)


def _out_line(link: LinkOut) -> str:
    from quire.surfaces import render

    why = f"{link.same_alias} notes have this alias" if link.same_alias > 1 else "not in the library"
    leads = link.target or f"{link.written} ({why})"
    return render.line(f"{link.line:>5}  → {leads}{_said(link.text, link.written)}")


def _back_line(link: LinkBack) -> str:
    from quire.surfaces import render

    return render.line(f"       ← {link.address} (line {link.line:,}){_said(link.text, link.target)}")


def _said(text: str, name: str) -> str:
    """What a link says, unless it is only its target."""
    return "" if text == name else f"  “{text}”"
