"""Settings files and variables to a Config: defaults, the user's file, the project's file, QUIRE_* variables.

The project's file is the nearest quire.toml upward. Until its user trusts it, it may only narrow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os.path import exists, isfile  # unlike those of Path, they return False without permission
from pathlib import Path
from typing import Any, NamedTuple

from quire import places, policy, trust
from quire.config import DEFAULT, MOST_PARALLEL, Config, Project, override
from quire.errors import SettingError

FILE = "quire.toml"
PREFIX = "QUIRE_"
LIBRARY, MCP_KEY = "QUIRE_LIBRARY", "QUIRE_MCP_KEY"  # options of commands, not settings
OLLAMA = "OLLAMA_NUM_PARALLEL"  # of the Ollama server
MAX_BYTES, MAX_DOTS = 65_536, 500  # of a file, and of one line of it: a key of 30,000 parts takes 3.5 GB


@dataclass(frozen=True, slots=True)
class Loaded:
    """The active settings, and notes about them for the user, one line each."""

    config: Config
    notes: tuple[str, ...] = ()


def load(folder: Path | None = None, environ: Mapping[str, str] | None = None) -> Loaded:
    """The active settings in a folder: defaults, the user's file, the project's file, QUIRE_* variables."""
    variables = os.environ if environ is None else environ
    own, project = _own_settings(variables), project_file(folder, variables)
    config, notes, trusted = (own.over(DEFAULT) if own else DEFAULT), list[str](), [own] if own else []
    if project:
        file = read_settings(project)
        config = _with_project(config, file, trust.Records.read(variables), notes)
        trusted += [file] if config.project and config.project.trusted else []
    config = _with_variables(config, variables, notes)
    if not ("QUIRE_EMBED_PARALLEL" in variables or any("embed.parallel" in file.names for file in trusted)):
        config = _with_ollama(config, variables, notes)
    return Loaded(config, tuple(notes))


@dataclass(frozen=True, slots=True)
class Layer:
    """What sets some settings: the user's file, the project's file, or a variable."""

    kind: str  # user, project or variable
    place: str  # the path of the file, or the name of the variable
    names: tuple[str, ...]  # of the settings
    ignored: tuple[str, ...] = ()  # of those that an untrusted file may not set


def layers(folder: Path | None = None, environ: Mapping[str, str] | None = None) -> list[Layer]:
    """What sets the active settings in a folder. Later layers override earlier ones."""
    environ = os.environ if environ is None else environ
    own, project = _own_settings(environ), project_file(folder, environ)
    found = [Layer("user", str(own.path), own.names)] if own else []
    if project:
        file = read_settings(project)
        is_trusted = trust.Records.read(environ).holds(file.path, file.source)
        ignored = () if is_trusted else tuple(file.narrowing(user_settings(environ))[1])
        names = tuple(name for name in file.names if name not in ignored)
        found.append(Layer("project", str(file.path), names, ignored))
    known = variables()
    given = sorted(known.keys() & environ.keys())
    return found + [Layer("variable", name, (".".join(known[name]),)) for name in given]


def project_file(folder: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The nearest quire.toml upward from a folder; None if there is none, or if it is the user's own."""
    place = (folder or places.working_folder()).absolute()
    found = next((up / FILE for up in (place, *place.parents) if isfile(up / FILE)), None)  # noqa: PTH113
    return None if found is None or is_own(found, environ) else found


def is_own(path: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a file is the user's own settings."""
    own = _own_file(environ)
    return own is not None and exists(own) and exists(path) and own.samefile(path)  # noqa: PTH110


def _own_file(environ: Mapping[str, str]) -> Path | None:
    folder = places.settings_folder(environ)
    return folder and folder / FILE


def user_settings(environ: Mapping[str, str]) -> Config:
    """The defaults, changed by the user's own file."""
    own = _own_settings(environ)
    return own.over(DEFAULT) if own else DEFAULT


def _own_settings(environ: Mapping[str, str]) -> SettingsFile | None:
    own = _own_file(environ)
    return read_settings(own) if own and isfile(own) else None  # noqa: PTH113


class SettingsFile(NamedTuple):
    """A quire.toml: its path, its content, and the bytes that `content` was parsed from."""

    path: Path
    content: dict[str, Any]
    source: bytes

    def over(self, config: Config) -> Config:
        """Settings with all changes of the file, whether it is trusted or not."""
        try:
            return override(config, self.content)
        except SettingError as problem:
            raise SettingError(f"{self.path}: {problem.name}", problem.details["problem"]) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that the file sets, such as chunk.auto.max_tokens."""
        return tuple(_names(self.content))

    def narrowing(self, config: Config) -> tuple[Config, dict[str, Any]]:
        """Settings with the changes that need no trust, and the values that need it, by name."""
        return policy.narrowed(config, self.over(config), str(self.path.parent))


def _names(content: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _names(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def read_settings(path: Path) -> SettingsFile:
    """A parsed quire.toml. A relative library path is relative to its folder."""
    folder = path.parent.resolve()
    source = _bytes_of(path)
    content = _parsed(path, source)
    if isinstance(name := content.get("library"), str):
        content["library"] = places.library_path(name, folder)
    return SettingsFile(folder / path.name, content, source)


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            source = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise SettingError(str(path), f"cannot be read: {problem.strerror}") from None
    if len(source) > MAX_BYTES or any(line.count(b".") > MAX_DOTS for line in source.splitlines()):
        limits = f"{MAX_BYTES:,} bytes, or a line of it has over {MAX_DOTS:,} dots"
        raise SettingError(str(path), f"has over {limits}. Make it shorter.")
    return source


def _parsed(path: Path, source: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(source.decode("utf-8"))
    except (ValueError, RecursionError) as problem:  # of TOML, of UTF-8, of a number with 5,000 digits
        raise SettingError(str(path), f"is not TOML: {problem}") from None


def _with_project(config: Config, file: SettingsFile, records: trust.Records, notes: list[str]) -> Config:
    """Settings with the allowed changes of a project file; a note names what was ignored."""
    notes += [records.problem] if records.problem else []
    trusted = records.holds(file.path, file.source)
    changed, ignored = (file.over(config), {}) if trusted else file.narrowing(config)
    if ignored:
        names = ", ".join(ignored)
        notes.append(f"{file.path} is not trusted. Ignored: {names}. To accept them: quire trust")
    return replace(changed, project=Project(str(file.path.parent), trusted))


# ------------------------------------------------------------------------------------- variables


def _with_variables(config: Config, environ: Mapping[str, str], notes: list[str]) -> Config:
    known = variables()
    for name in sorted(known.keys() & environ.keys()):
        change: Any = environ[name]
        for key in reversed(known[name]):
            change = {key: change}
        config = override(config, change)
    given = {name for name in environ if name.startswith(PREFIX)}
    if unknown := sorted(given - known.keys() - {LIBRARY, MCP_KEY}):
        notes.append(_unknown(unknown, list(known)))
    return config


def _with_ollama(config: Config, environ: Mapping[str, str], notes: list[str]) -> Config:
    """Settings with as many parallel requests as an Ollama server takes, by its own variable.

    An untrusted file may have set fewer. Ollama itself takes 0 for a number of its choice.
    """
    said = environ.get(OLLAMA, "").strip() or "0"
    if not re.fullmatch("[0-9]{1,99}", said):
        notes.append(f"{OLLAMA} must be a whole number, not {said!r}. It is ignored.")
        return config
    embed, number = config.embed, min(int(said), MOST_PARALLEL)
    if embed.parallel < DEFAULT.embed.parallel:
        number = min(number, embed.parallel)
    return replace(config, embed=replace(embed, ollama_parallel=number))


def variables() -> dict[str, tuple[str, ...]]:
    """Every variable that is a setting: QUIRE_CHUNK_AUTO_MAX_TOKENS is ("chunk", "auto", "max_tokens")."""
    found = {f"{PREFIX}{'_'.join(keys).upper()}": keys for keys in policy.paths(DEFAULT)}
    found.pop(LIBRARY)  # the -L of every command reads it
    return found


_LISTED = 5  # unknown variables in a note


def _unknown(names: list[str], known: list[str]) -> str:
    from difflib import get_close_matches

    told, ends = [], [name.removeprefix(PREFIX) for name in (*known, LIBRARY, MCP_KEY)]
    for name in names[:_LISTED]:
        near = get_close_matches(name.removeprefix(PREFIX), ends, n=1)
        told.append(f"{name} is not a setting." + (f" Did you mean {PREFIX}{near[0]}?" if near else ""))
    told += [f"{len(names) - _LISTED:,} more are none."] if len(names) > _LISTED else []
    return " ".join(told)
