"""Completion of `quire` in bash, zsh and fish: click's own script, and where each shell finds it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from quire import places
from quire.errors import SettingError
from quire.surfaces.clients import home_folder
from quire.surfaces.insertions import MARK, Edit, MarkedLine, WholeFile

SHELLS = ("bash", "zsh", "fish")
_ZSH = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"  # its completion may be off


def shell_of(environ: Mapping[str, str] = os.environ) -> str:
    """The user's shell. Raises SettingError if Quire has no completion for it."""
    name = Path(environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise SettingError("SHELL", f"must be {', '.join(SHELLS[:-1])} or {SHELLS[-1]}, not {name!r}")
    return name


def completion_script(shell: str, command: click.Command) -> str:
    """The script that completes a command in a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise SettingError("SHELL", f"click has no completion for {shell}")
    script = found(command, {}, "quire", "_QUIRE_COMPLETE").source()
    return f"# {MARK}\n{_ZSH if shell == 'zsh' else ''}{script.strip()}\n"


def completion_edits(
    shell: str, script: str, environ: Mapping[str, str] = os.environ
) -> list[tuple[Path, Edit]]:
    """The files of a completion: the script and, but for fish, the line that reads it when a shell starts."""
    home = home_folder(environ)
    if shell == "fish":
        named = environ.get("XDG_CONFIG_HOME", "")
        settings = Path(named) if os.path.isabs(named) else home / ".config"  # noqa: PTH117
        return [(settings / "fish" / "completions" / "quire.fish", WholeFile(script))]
    folder = places.data(environ)
    if folder is None:
        raise SettingError("HOME", "is not set, so there is no place for the completion")
    path, start = folder / f"completion.{shell}", home / ".bashrc"
    if shell == "zsh":
        start = Path(environ.get("ZDOTDIR") or home) / ".zshrc"
    quoted = shlex.quote(str(path))
    line = f"if [ -f {quoted} ]; then . {quoted}; fi  # {MARK}"
    return [(path, WholeFile(script)), (start, MarkedLine(line))]
