"""The library that a command works on, and the active settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.errors import NoResults, SettingError
from quire.surfaces.cli import output

if TYPE_CHECKING:
    from quire.config import Config
    from quire.library import Library


def open_library(name: str | None, *, create: bool = False) -> Library:
    """Open the command's library. Raises NoResults if there is none and `create` is not given."""
    from quire.library import Library

    try:
        return Library.open(library_url(name, create=create), create=create, config=load_settings())
    except NoResults as problem:
        if name is None or "://" in name:
            raise
        import shlex

        raise NoResults(f"{problem} -L {shlex.quote(name)}", **problem.details) from None


def library_url(name: str | None, *, create: bool = False) -> str:
    """The command's library: the named one, the one in the settings, or the nearest one."""
    from quire.places import default_url

    return in_utf8(name or load_settings().library or default_url(create=create))


def in_utf8(name: str) -> str:
    """The name of a library. Raises SettingError for one that no database accepts."""
    from quire.surfaces import render

    if render.as_text(name) != name:
        raise SettingError("library", "its name is not UTF-8. Name another place: -L FILE")
    return name


def load_settings() -> Config:
    """The active settings, loaded once for a command. Notes for the user go to stderr."""
    from quire import settings
    from quire.surfaces import render

    command = click.get_current_context()
    if command.obj is None:
        loaded = settings.load()
        for note in loaded.notes:
            output.note(render.one_line(note))
        command.obj = loaded.config
    in_force: Config = command.obj
    return in_force
