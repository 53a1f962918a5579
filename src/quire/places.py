"""The places of a user's files, and the meaning of a path in a settings file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from quire.errors import SettingError


def settings_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the user's own settings; None if the user has no home."""
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def data(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the user's own library and records; None if the user has no home."""
    return _folder(environ, "XDG_DATA_HOME", ".local/share")


def cache(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of what can be fetched again, such as clones; None if the user has no home."""
    return _folder(environ, "XDG_CACHE_HOME", ".cache")


def clones(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the clones of repositories; None if the user has no home."""
    folder = cache(environ)
    return folder and folder / "repositories"


def _folder(environ: Mapping[str, str], variable: str, usual: str) -> Path | None:
    # A relative path would be in the working folder, where strangers may have put files.
    named, home = environ.get(variable, ""), environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    base = named if os.path.isabs(named) else os.path.join(home, usual)  # noqa: PTH117, PTH118
    return Path(base) / "quire" if os.path.isabs(base) else None  # noqa: PTH117


def library_path(name: str, folder: Path) -> str:
    """The library that a file in `folder` names: a URL as it is, a path made absolute."""
    if not name or name == ":memory:" or "://" in name:
        return name
    return os.path.normpath(os.path.join(folder, os.path.expanduser(name)))  # noqa: PTH111, PTH118


def is_inside(library: str, folder: str) -> bool:
    """Whether a library is a file inside a folder, links followed."""
    if not library or library == ":memory:" or "://" in library:
        return False
    try:
        return Path(library).resolve().is_relative_to(Path(folder).resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL
        return False


def working_folder() -> Path:
    """The folder that Quire was started in. Raises SettingError if it is gone."""
    try:
        return Path.cwd()
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise SettingError("the working folder", f"cannot be used: {why}. Change to another") from None


def default_url(*, create: bool = False) -> str:
    """The nearest .quire/library.db upward; else a new one here, or the user's own."""
    return project_url() or (str(working_folder() / ".quire" / "library.db") if create else own_url())


def project_url() -> str | None:
    """The nearest .quire/library.db upward; None if there is none."""
    here = working_folder()
    for folder in (here, *here.parents):
        found = folder / ".quire" / "library.db"
        try:
            is_there = found.exists()
        except OSError as problem:
            raise SettingError("library", f"{found} cannot be looked at: {problem.strerror}") from None
        if is_there:
            _check_inside(found, folder)
            return str(found)
    return None


def own_url() -> str:
    """The user's own library. Raises SettingError if the user has no home."""
    own = data()
    if own is None:
        raise SettingError("HOME", "is not set, so you have no library of your own. Name one with -L")
    return str(own / "library.db")


def hide_from_git(library: str) -> None:
    """Keep a library in a project's .quire folder out of git. A .gitignore that is there stays as it is."""
    folder = Path(library).absolute().parent
    if folder.name == ".quire":
        with contextlib.suppress(OSError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")


def _check_inside(found: Path, folder: Path) -> None:
    """Refuse a library outside the folder, reached by a link: a cloned project may link to anyone's."""
    real = found.resolve()
    if not real.is_relative_to(folder.resolve()):
        raise SettingError("library", f"{found} leads to {real}. If you mean that one, name it: -L {real}")
