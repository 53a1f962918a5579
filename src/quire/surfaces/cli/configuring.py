"""`quire config`: the settings in force, and what set each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from quire import config, policy, redact, settings
from quire.errors import NoResults, nearest
from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SettingShown:
    """A setting in force, without secrets. `source` is default, user, project, variable or option."""

    name: str
    value: Any
    default: Any
    source: str
    place: str | None  # the file, the variable or the option

    @property
    def line(self) -> str:
        """`search.limit = 20  (QUIRE_SEARCH_LIMIT)`, with the value as in TOML."""
        return f"{self.name} = {_written(self.value)}  ({self.place or self.source})"


@quire.command("config")
@options.library_option
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--changed", is_flag=True, help="Only the settings that are not at their defaults.")
@options.json_lines("setting")
@click.pass_context
def show_config(
    context: click.Context, library: str | None, names: tuple[str, ...], changed: bool, as_json: bool
) -> None:
    """Show the settings in force, and what set each: a file, a variable, an option, or the default.

    NAME is a setting or a table of them, such as search or search.limit. Keys and passwords are hidden.
    docs/settings.md says what each setting does, and where to change it.

    \b
    Examples:
      quire config
      quire config --changed
      quire config search embed.model
      quire config --json
    """
    found = _settings(library, context.get_parameter_source("library"))
    _check_known(names, found)
    for one in found.values():
        is_wanted = not names or any(_is_in(one.name, name) for name in names)
        if is_wanted and not (changed and one.source == _DEFAULT):
            _show(one, as_json)
    embed = opening.load_settings().embed
    if embed.ollama_parallel:
        output.note(f"For Ollama, embed.parallel is {embed.ollama_parallel}, from {settings.OLLAMA}.")


def _settings(library: str | None, source: ParameterSource | None) -> dict[str, SettingShown]:
    """All settings in force, by name, in the order of docs/settings.md."""
    values = dict(policy.values(opening.load_settings()))
    set_by = {name: (layer.kind, layer.place) for layer in settings.layers() for name in layer.names}
    if library:
        is_variable = source is ParameterSource.ENVIRONMENT
        set_by["library"] = ("variable", settings.LIBRARY) if is_variable else ("option", "-L")
        values["library"] = library
    defaults = dict(policy.values(config.DEFAULT))
    return {
        name: SettingShown(name, _hidden(name, value), defaults[name], *set_by.get(name, (_DEFAULT, None)))
        for name, value in values.items()
    }


def _check_known(names: tuple[str, ...], found: Mapping[str, SettingShown]) -> None:
    """Raise NoResults for a name that is neither a setting nor a table."""
    for name in names:
        if not any(_is_in(known, name) for known in found):
            tables = sorted({known.rpartition(".")[0] for known in found} - {""})
            said = f"There is no setting {name!r}. {nearest(name, [*found, *tables])}"
            raise NoResults(said, missing="setting", name=name)


def _show(one: SettingShown, as_json: bool) -> None:
    from quire.surfaces import render

    if as_json:
        shown = {"name": one.name, "value": one.value, "default": one.default}
        output.print_json({**shown, "source": one.source, "place": one.place})
    else:
        click.secho(render.line(one.line), bold=one.source != _DEFAULT)


def _is_in(name: str, table: str) -> bool:
    return name == table or name.startswith(f"{table.rstrip('.')}.")


def _hidden(name: str, value: Any) -> Any:
    """A value without secrets: no key, and no password of a URL."""
    if name in policy.secrets(config.DEFAULT):
        return value and redact.HIDDEN
    if isinstance(value, tuple):
        return [redact.url(one) for one in value]
    return redact.url(value) if isinstance(value, str) else value


def _written(value: Any) -> str:
    """A value as a settings file has it."""
    if value is None:
        return "unset"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return json.dumps(value, ensure_ascii=False)
