"""`quire mcp`: serve a library to agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from quire.settings import MCP_KEY
from quire.surfaces.cli import opening, options
from quire.surfaces.cli.group import quire


@quire.command()
@options.library_option
@click.option("--here", is_flag=True, help="Keep memories in this library too, not in your own.")
@click.option("--read-only", is_flag=True, help="Offer no tools that write.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder that agents may add files from; without one, they may add none.",
)
@click.option("--watch", is_flag=True, help="Keep the library up to date while the server runs.")
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on.")
@click.option(
    "--port", default=8900, show_default=True, type=click.IntRange(0, 65535), help="With --http; 0 is any."
)
@click.option("--key", envvar=MCP_KEY, default="", help="What clients must bring; better set QUIRE_MCP_KEY.")
def mcp(
    library: str | None,
    here: bool,
    read_only: bool,
    roots: tuple[Path, ...],
    watch: bool,
    http: bool,
    host: str,
    port: int,
    key: str,
) -> None:
    """Serve a library to agents over the Model Context Protocol.

    Agents search, read and cite it, and unless --read-only is given add to it, with the tools that
    docs/mcp.md lists. Clients start this command by themselves; with --http they come to it.
    What agents remember goes to your own library, unless -L names one or --here is given.

    \b
    Examples:
      quire mcp
      quire mcp -L docs.db --read-only
      quire mcp --root ~/notes --root ~/docs
      quire mcp --watch
      QUIRE_MCP_KEY=... quire mcp --http --host 192.168.1.5
    """
    from quire.surfaces import mcp as server

    if watch and read_only:
        raise click.UsageError(
            "--watch writes to the library, and --read-only forbids that. Give one of them."
        )
    given: Any = {"read_only": read_only, "roots": roots, "watch": watch}
    url = opening.library_url(library)
    given["memory_url"] = url if here else opening.memory_url(library, here)
    service = server.Service(url, opening.load_settings(), **given)
    if http:
        server.serve_http(service, host, port, key)
    else:
        server.serve(service)
