"""`quire keys`: who may use a server of a library, and for what."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.stores import AccessKey


@quire.group(invoke_without_command=True)
@options.library_option
@options.json_lines("key")
@click.pass_context
def keys(context: click.Context, library: str | None, as_json: bool) -> None:
    """List the keys that `quire serve` accepts for a library: what each allows, and until when.

    \b
    Examples:
      quire keys
      quire keys make alice --can write -c handbook -c api --expires 90d
      quire keys withdraw alice
    """
    if context.invoked_subcommand:
        context.meta["library"] = library
        return
    from quire.surfaces import render

    with opening.open_library(library) as opened:
        known = opened.keys()
    for key in known:
        if as_json:
            output.print_json(_key_json(key))
        else:
            click.echo(f"{render.line(key.name)}  {key.id}  {_told(key)}")
    if not known:
        output.note("There are no keys. Make one with: quire keys make NAME")
    sys.exit(render.DONE if known else render.NOTHING)


@keys.command("make")
@options.library_option
@click.argument("name")
@click.option(
    "--can",
    "level",
    type=click.Choice(["read", "write", "admin"]),
    default="read",
    show_default=True,
    help="What the key allows: to read; also to add, remove and remember; also to check the library.",
)
@click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    help="Allow only this collection. Can be given several times.",
)
@click.option(
    "--expires",
    metavar="DATE|AGE",
    help="When the key expires: 2027-01-31, or 90d for ninety days from now.  [default: never]",
)
@options.json_flag
@click.pass_context
def make_key(
    context: click.Context,
    library: str | None,
    name: str,
    level: str,
    collections: tuple[str, ...],
    expires: str | None,
    as_json: bool,
) -> None:
    """Make a key and show it, once. The library keeps only a digest of it.

    \b
    Examples:
      quire keys make alice
      quire keys make ci --can write -c handbook --expires 90d
      quire keys make ops --can admin
    """
    given: Any = {"level": level, "collections": collections or None, "expires": expires}
    with opening.open_library(library or context.meta.get("library"), create=True) as opened:
        made, key = opened.make_key(name, **given)
    if as_json:
        output.print_json({**_key_json(made), "key": key})
        return
    click.echo(key)
    output.note(f"This key is shown once: {_told(made)}. Send it as: Authorization: Bearer KEY")


@keys.command("withdraw")
@options.library_option
@click.argument("name", metavar="NAME|ID")
@options.json_flag
@click.pass_context
def withdraw_key(context: click.Context, library: str | None, name: str, as_json: bool) -> None:
    """Withdraw a key. Servers that are running refuse it within seconds.

    \b
    Examples:
      quire keys withdraw alice
    """
    from quire.surfaces import render

    with opening.open_library(library or context.meta.get("library")) as opened:
        gone = opened.withdraw_key(name)
    if as_json:
        output.print_json(_key_json(gone))
    else:
        click.echo(f"Withdrew {render.line(gone.name)}.")


def _key_json(key: AccessKey) -> dict[str, Any]:
    from dataclasses import asdict

    shown = asdict(key)
    del shown["digest"]
    return shown


def _told(key: AccessKey) -> str:
    """What a key may do, in words."""
    from datetime import UTC, datetime

    from quire.surfaces import render

    scope = "all collections" if key.collections is None else render.line(", ".join(key.collections))
    until = "never expires"
    if key.expires_at is not None:
        until = f"expires {datetime.fromtimestamp(key.expires_at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    return f"can {key.level}, {scope}, {until}"
