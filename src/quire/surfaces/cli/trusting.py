"""`quire trust`: a project file is shown, then trusted as it was shown; later changes are not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from quire import config, policy, redact, settings, trust
from quire.errors import NoResults, SettingError
from quire.settings import SettingsFile
from quire.surfaces.cli.group import quire


@quire.command("trust")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal.")
@click.option("--revoke", is_flag=True, help="Withdraw the trust in a file.")
@click.option(
    "--list", "listed", is_flag=True, help="Show what is trusted, and whether it has changed since."
)
@click.option("--json", "as_json", is_flag=True, help="With --list: print JSON, one line for each file.")
def trust_file(file: Path | None, yes: bool, revoke: bool, listed: bool, as_json: bool) -> None:
    """Accept all settings of a project's quire.toml, by default the nearest one upward.

    Without your trust, a project file can change how documents are cut and how results are shown, lower
    limits, and name a library inside its folder. Quire ignores its other settings: servers, keys, hosts, a
    proxy, higher limits, a library elsewhere. Quire shows what the file sets before it asks. A file that
    changes is no longer trusted.

    \b
    Examples:
      quire trust
      quire trust ~/work/quire.toml --yes
      quire trust --revoke
      quire trust --list --json
    """
    if listed + revoke + yes > 1 or (listed and file) or (as_json and not listed):
        problem = "Use --yes, --revoke and --list one at a time. --json goes with --list, FILE does not."
        raise click.UsageError(problem)
    if listed:
        _show_list(as_json)
    elif revoke:
        _revoke(file)
    else:
        _accept(file, yes)


def _accept(file: Path | None, yes: bool) -> None:
    """Show a project file, ask, and remember the very bytes that were shown."""
    from quire.surfaces import render

    path = _named(file)
    if settings.is_own(path):
        click.echo(f"{_shown(path)} is your own file. It is always trusted.")
        return
    found = settings.read_settings(path)
    _show(found)
    if not (yes or _is_confirmed(found.path)):
        click.echo("It is not trusted. Nothing was recorded.", err=True)
        sys.exit(render.NOTHING)
    if note := trust.note_trusted(found.path, found.source):
        click.echo(render.one_line(note), err=True)
    click.echo(f"Trusted: {_shown(found.path)}")


def _revoke(file: Path | None) -> None:
    """Withdraw the trust in a file. Raises NoResults if it had none."""
    path = _named(file)
    path = path.parent.resolve() / path.name
    if not trust.revoke(path):
        said = f"{path} is not trusted. See what is with: quire trust --list"
        raise NoResults(said, missing="trust", name=str(path))
    click.echo(f"No longer trusted: {_shown(path)}")


def _show_list(as_json: bool) -> None:
    """Print every trusted file, and whether it has changed since."""
    import json

    from quire.surfaces import render

    records = trust.Records.read()
    if records.problem:
        click.echo(render.one_line(records.problem), err=True)
    for one in records.files.values():
        state = records.state(one.path)
        line = json.dumps({**one._asdict(), "state": state}) if as_json else f"{state}  {_shown(one.path)}"
        click.echo(line)
    if not records.files:
        click.echo("No file is trusted.", err=True)


def _named(file: Path | None) -> Path:
    """The project file: the nearest one, one by its name, or the one in a folder."""
    if file is None:
        if found := settings.project_file():
            return found
        said = f"No {settings.FILE} here or in a folder above. Name one: quire trust FILE"
        raise NoResults(said, missing="file", name=settings.FILE)
    path = file / settings.FILE if file.is_dir() else file
    if path.name != settings.FILE:
        raise SettingError(str(path), f"is not named {settings.FILE}, so Quire never reads it")
    return path


def _show(file: SettingsFile) -> None:
    """Print a file's settings, first the allowed ones, then those that need trust. Its text could mislead."""
    own = settings.user_settings(os.environ)
    needed = file.narrowing(own)[1]
    wanted = {name: value for name, value in policy.values(file.over(own)) if name in file.names}
    click.echo(f"{_shown(file.path)} sets:")
    for name, value in wanted.items():
        if name not in needed:
            click.echo(f"  {name} = {_value(name, value)}")
    click.echo("These settings need your trust:" if needed else "No setting in it needs your trust.")
    for name, value in needed.items():
        click.echo(f"  {name} = {_value(name, value)}")


def _value(name: str, value: Any) -> str:
    """A value on one line: a key is hidden, and so is a password in a URL, but never the host."""
    from quire.surfaces import render

    if name in policy.secrets(config.DEFAULT):
        return redact.HIDDEN
    shown = ", ".join(value) if isinstance(value, tuple) else str(value)
    hidden, host = redact.url(shown), _host(shown)
    return render.one_line(hidden if host in hidden.lower() else f"{hidden} (host: {host})")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_confirmed(path: Path) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"There is no terminal to ask on. To trust {_shown(path)} add --yes.")
    return click.confirm("Trust it?", err=True)


def _shown(path: Path | str) -> str:
    from quire.surfaces import render

    return render.one_line(str(path))
