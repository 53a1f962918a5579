"""`quire serve` and `quire mcp`: serve a library to people, programs and agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

import click

from quire.errors import MissingExtra
from quire.settings import MCP_KEY
from quire.surfaces.cli import opening, options
from quire.surfaces.cli.group import quire

_root_option = click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder that files may be added from. Without this option, no file may be added.",
)


@quire.command()
@options.library_option
@click.option("--here", is_flag=True, help="Keep memories in this library too, instead of your own.")
@click.option("--read-only", is_flag=True, help="Write nothing, whoever asks.")
@_root_option
@click.option("--watch", is_flag=True, help="Keep the library up to date while the server runs.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8900,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port. 0 takes any free port.",
)
@click.option(
    "--access-log",
    type=click.File("a", encoding="utf-8", lazy=False),
    metavar="FILE|-",
    help="Log each request as a line of JSON, without its query.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
def serve(
    library: str | None,
    here: bool,
    read_only: bool,
    roots: tuple[Path, ...],
    watch: bool,
    host: str,
    port: int,
    access_log: TextIO | None,
    opens: bool,
) -> None:
    """Serve a library: a web page, an HTTP API and the MCP server, on one port.

    On this machine alone, no key is needed. On any other address, every request needs a key: quire keys.
    docs/serve.md has the API, the page, and how a team runs it.

    \b
    Examples:
      quire serve --open
      quire serve --root ~/notes --watch
      quire serve --host 0.0.0.0 -L postgresql://quire@db.example.com/quire
      quire serve --read-only --access-log access.jsonl
    """
    _check_watch(watch, read_only)
    try:
        import markdown_it  # noqa: F401
        import nh3  # noqa: F401
    except ImportError as problem:
        raise MissingExtra("The web page", "serve") from problem
    from quire.surfaces.http import Libraries
    from quire.surfaces.http import serve as serve_all

    url = opening.library_url(library)
    memory_url = url if here else opening.memory_url(library, here)
    given: Any = {"memory_url": memory_url, "read_only": read_only, "watch": watch, "roots": roots}
    libraries = Libraries(url, opening.load_settings(), **given)
    ready: Any = {"when_ready": click.launch} if opens else {}
    serve_all(libraries, host, port, access_log=access_log, **ready)


def _check_watch(watch: bool, read_only: bool) -> None:
    if watch and read_only:
        said = "--watch writes to the library, and --read-only forbids that. Give one of them."
        raise click.UsageError(said)


@quire.command()
@options.library_option
@click.option("--here", is_flag=True, help="Keep memories in this library too, instead of your own.")
@click.option("--read-only", is_flag=True, help="Offer no tools that write.")
@_root_option
@click.option("--watch", is_flag=True, help="Keep the library up to date while the server runs.")
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on.")
@click.option(
    "--port",
    default=8900,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="With --http: the port. 0 takes any free port.",
)
@click.option(
    "--key", envvar=MCP_KEY, default="", help="The key that clients must send. Better set QUIRE_MCP_KEY."
)
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

    Agents search and read the library and cite from it. Unless --read-only is given, they also add to it.
    docs/mcp.md lists the tools. Clients start this command by themselves; with --http, they connect to it.
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

    _check_watch(watch, read_only)
    given: Any = {"read_only": read_only, "roots": roots, "watch": watch}
    url = opening.library_url(library)
    given["memory_url"] = url if here else opening.memory_url(library, here)
    service = server.Service(url, opening.load_settings(), **given)
    if http:
        server.serve_http(service, host, port, key)
    else:
        server.serve(service)
