"""`quire watch`: keep a library up to date, now or as a service."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import click

from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.progress import DocumentChange
    from quire.surfaces.user_service import UserService


@quire.command()
@options.library_option
@click.option("--install", is_flag=True, help="Install a service that starts when you log in.")
@click.option("--uninstall", is_flag=True, help="Remove that service.")
@options.json_lines("change")
def watch(library: str | None, install: bool, uninstall: bool, as_json: bool) -> None:
    """Keep a library up to date until Ctrl-C: read what changes in its sources.

    Files are read soon after they change, pages and sites once a day. Each change is printed on a line.
    Documents whose files are gone are removed as by quire refresh: only while their source is healthy. One
    process at a time watches a library. Another one waits, and takes over when the first ends.

    \b
    Examples:
      quire watch
      quire watch --json
      quire watch --install
      quire watch --uninstall
    """
    if install + uninstall + as_json > 1:
        raise click.UsageError("Give one of --install, --uninstall and --json.")
    if install or uninstall:
        _change_service(library, install)
        return
    with opening.open_library(library) as opened:
        opened.watch(_show_json if as_json else _show, on_note=output.note, stop=_stopped_by_signals())
    output.note("Stopped watching. The library is complete.")


def _show(change: DocumentChange) -> None:
    from quire.surfaces import render

    old = f"{render.line(change.old_address)} → " if change.old_address else ""
    click.echo(f"{change.action:<6}  {old}{render.line(change.address)}")


def _show_json(change: DocumentChange) -> None:
    told = {"action": change.action, "address": change.address, "from": change.old_address or None}
    output.print_json(told)


def _stopped_by_signals() -> threading.Event:
    """What Ctrl-C and SIGTERM set. A second one ends the command at once."""
    stop = threading.Event()

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return stop


def _change_service(library: str | None, install: bool) -> None:
    """Write or remove the service of a library, and print how to start or stop it."""
    from quire import places
    from quire.surfaces.user_service import watch_service

    url = places.library_path(opening.library_url(library), places.working_folder())
    service = watch_service(url, places.working_folder())
    if install:
        opening.open_library(url).close()  # raises if there is none
        service.install()
        _show_installed(service)
        return
    if not service.uninstall():
        output.note(f"There is no {service.path}.")
        return
    click.echo(f"Removed {service.path}")
    click.echo("Stop it with:")
    click.echo("\n".join(f"  {command}" for command in service.stops))


def _show_installed(service: UserService) -> None:
    import os

    from quire.settings import LIBRARY, PREFIX

    click.echo(f"Wrote {service.path}")
    click.echo("Start it, now and whenever you log in, with:")
    click.echo("\n".join(f"  {command}" for command in service.starts))
    others = [name for name in sorted(os.environ) if name.startswith(PREFIX) and name != LIBRARY]
    if others:
        output.note(f"The service does not see {', '.join(others)}. Put these settings into quire.toml.")
