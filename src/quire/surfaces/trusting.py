"""`quire trust`: a project file is shown, then trusted as it was shown; later changes are not."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from quire import config, policy, redact, trust
from quire.config import SettingsFile
from quire.errors import NoResults, SettingError
from quire.surfaces import render

_KEY = re.compile(r"""(\bkey["']?\s*=\s*)("[^"\n]*"|'[^'\n]*'|[^\s,}]+)""")


def accept(file: Path | None, yes: bool) -> None:
    """Show a project file, ask, and remember the very bytes that were shown."""
    path = _named(file)
    if config.is_own(path):
        click.echo(f"{_shown(path)} is your own file. It is always trusted.")
        return
    found = config.read(path)
    _show(found)
    if not (yes or _is_confirmed(found.path)):
        click.echo("It is not trusted. Nothing was recorded.", err=True)
        sys.exit(render.NOTHING)
    if note := trust.remember(found.path, found.source):
        click.echo(render.one_line(note), err=True)
    click.echo(f"Trusted: {_shown(found.path)}")


def revoke(file: Path | None) -> None:
    """Withdraw the trust in a file. Raises NoResults if it had none."""
    path = _named(file)
    path = path.parent.resolve() / path.name
    if not trust.revoke(path):
        raise NoResults(f"{path} is not trusted. See what is with: quire trust --list")
    click.echo(f"No longer trusted: {_shown(path)}")


def show_list(as_json: bool) -> None:
    """Print every trusted file, and whether it has changed since."""
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
    """The file that is meant: the nearest one, one by its name, or the one in a folder."""
    if file is None:
        if found := config.project_file():
            return found
        raise NoResults(f"No {config.FILE} here or in a folder above. Name one: quire trust FILE")
    path = file / config.FILE if file.is_dir() else file
    if path.name != config.FILE:
        raise SettingError(str(path), f"is not named {config.FILE}, so Quire never reads it")
    return path


def _show(file: SettingsFile) -> None:
    """Print a file without its keys, then the settings that need trust with their values."""
    wanted = file.over(config.user_settings(os.environ))
    keys = policy.secrets(wanted)
    click.echo(f"{_shown(file.path)}:\n")
    click.echo(render.shown(_without(keys, file.source.decode("utf-8"))).rstrip("\n") + "\n")
    needed = file.narrowing(config.user_settings(os.environ))[1]
    click.echo("These settings need your trust:" if needed else "No setting in it needs your trust.")
    for name, value in needed.items():
        click.echo(f"  {name} = {redact.HIDDEN if value in keys else _value(value)}")


def _without(keys: set[str], text: str) -> str:
    """A file's text without its keys, however they are written, and without the passwords of URLs."""
    text = _KEY.sub(rf"\1{redact.HIDDEN}", text)
    for key in keys:
        text = text.replace(key, redact.HIDDEN)
    return redact.text(text)


def _value(value: Any) -> str:
    shown = value if isinstance(value, str) else ", ".join(value) if isinstance(value, tuple) else str(value)
    return render.one_line(redact.url(shown))


def _is_confirmed(path: Path) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"There is no terminal to ask on. To trust {_shown(path)} add --yes.")
    return click.confirm("Trust it?", err=True)


def _shown(path: Path | str) -> str:
    return render.one_line(str(path))
