"""The library that a command works on, and the active settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from quire.errors import NoResults, QuireError, SettingError
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


def open_memories(name: str | None, here: bool, *, create: bool = False) -> Library:
    """Open the library of memories. Raises NoResults if there is none and `create` is not given."""
    import shlex

    from quire.library import Library

    url = memory_url(name, here, create=create)
    try:
        return Library.open(url, create=create, config=load_settings())
    except NoResults as problem:
        if here:
            raise
        if name:
            where = "" if "://" in name else f" -L {shlex.quote(name)}"
            said = f"No library at {name}. Make one with: quire remember TEXT{where}"
            raise NoResults(said, **problem.details) from None
        said = "Nothing is remembered yet. To save a memory: quire remember TEXT"
        raise NoResults(said, missing="memories") from problem


def memory_url(name: str | None, here: bool, *, create: bool = False) -> str:
    """The library of memories: the project's if that is wanted, else the named one, else the user's own.

    The one in the user's own settings is theirs; one that a project names is not.
    """
    import os

    from quire import places, settings

    if here:
        return project_memory_url(name, create=create)
    return in_utf8(name or settings.user_settings(os.environ).library or places.own_url())


def project_memory_url(name: str | None, *, create: bool) -> str:
    """The library of a project. Raises UsageError if another is named as well."""
    from quire import places

    command = click.get_current_context()
    if name and command.get_parameter_source("library") is ParameterSource.COMMANDLINE:
        raise click.UsageError("-L names a library, and --here is the project's. Give one of them.")
    found = load_settings().library or places.project_url()
    if not found and not create:
        raise NoResults(
            "No project in this folder or above has a library. To make one: quire add .", missing="library"
        )
    return in_utf8(found or places.default_url(create=True))


def memories_elsewhere(url: str) -> int:
    """How many entries the project's library has, if another one is used."""
    from contextlib import suppress

    from quire import places
    from quire.library import Library
    from quire.sources.entries import KINDS
    from quire.stores import Filters

    with suppress(QuireError):
        if (project := places.project_url()) and project != url:
            with Library.open(project) as library:
                return len(library.store.documents(Filters(kinds=KINDS)))
    return 0


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
