"""`quire where`: which library is used here, and why."""

from __future__ import annotations

import os
from typing import Any

import click
from click.core import ParameterSource

from quire import places, redact, search_log, settings, trust
from quire.errors import NoResults, QuireError
from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

_WHY = {
    "option": "named by -L",
    "variable": f"named by {settings.LIBRARY}",
    "project": "`library` in the project's {file}",
    "user": "`library` in your {file}",
    "nearest": "the nearest .quire/library.db in this folder or above",
    "own": "your own, because there is no .quire/library.db in this folder or above",
}


@quire.command()
@options.library_option
@options.json_flag
@click.pass_context
def where(context: click.Context, library: str | None, as_json: bool) -> None:
    """Show which library commands use here and why, and which settings files they read.

    \b
    Examples:
      quire where
      quire where -L notes.db
      quire where --json
    """
    from quire.surfaces import render

    url = opening.library_url(library)
    why, file = _why(context.get_parameter_source("library"), library, url)
    found = {"library": redact.url(url), "why": why, **_state(url), "add_creates": _new_place(why, url)}
    found["memories"] = _memories(context.get_parameter_source("library"), library)
    found["settings"] = _settings_files()
    clones = places.clones()
    found["clones"] = str(clones) if clones and clones.is_dir() else None
    found["searches"] = _searches()
    if as_json:
        output.print_json(found)
        return
    click.secho(render.line(found["library"]), bold=True)
    lines = [*_state_lines(found), _memories_line(found["memories"]), *map(_file_line, found["settings"])]
    lines += [f"clones of repositories: {found['clones']}"] if found["clones"] else []
    lines += [_searches_line(found["searches"])] if found["searches"] else []
    for line in (_WHY[why].format(file=file), *lines):
        click.echo(f"     {render.line(line)}")


def _why(source: ParameterSource | None, name: str | None, url: str) -> tuple[str, str]:
    """Why a library is used, and the settings file that names it, if one does."""
    if name:
        return ("variable" if source is ParameterSource.ENVIRONMENT else "option"), ""
    if opening.load_settings().library:
        project = settings.project_file()
        if project and settings.read_settings(project).content.get("library") == url:
            return "project", str(project)
        folder = places.settings_folder()
        return "user", str(folder and folder / settings.FILE)
    own = places.data()
    return ("own" if own and url == str(own / "library.db") else "nearest"), ""


def _memories(source: ParameterSource | None, name: str | None) -> dict[str, str]:
    """The library that memories are in, and why."""
    url = opening.memory_url(name, here=False)
    why = "user" if not name and settings.user_settings(os.environ).library else "own"
    named = "variable" if source is ParameterSource.ENVIRONMENT else "option"
    return {"library": redact.url(url), "why": named if name else why}


def _memories_line(found: dict[str, str]) -> str:
    why = {"own": "your own library", "user": "`library` in your settings"}
    return f"memories: {found['library']} ({why.get(found['why']) or _WHY[found['why']]})"


def _searches() -> dict[str, Any] | None:
    """The log of the user's searches: its file, how many lines it has, and whether it is switched on."""
    kept, is_on = search_log.describe(), opening.load_settings().search.log
    if kept is None and not is_on:
        return None
    return (kept or {"path": str(search_log.log_file()), "entries": 0}) | {"on": is_on}


def _searches_line(found: dict[str, Any]) -> str:
    from quire.surfaces import render

    state = "" if found["on"] else "; switched off, and kept until you delete it"
    return f"log of searches: {found['path']} ({render.counted(found['entries'], 'reading')}{state})"


def _state(url: str) -> dict[str, Any]:
    """Whether there is a library, its size in bytes, and what is wrong if it cannot be opened."""
    found: dict[str, Any] = {"exists": True, "documents": None, "bytes": None, "problem": None}
    try:
        with opening.open_library(url) as opened:
            found["documents"] = opened.status().documents
    except NoResults:
        found["exists"] = False
    except QuireError as problem:
        found |= {"exists": None, "problem": problem.message}
    return found | {"bytes": _size(url) or None}


def _size(path: str) -> int:
    """The size of a library's file and of the log beside it; 0 on a server."""
    return sum(os.path.getsize(one) for one in (path, f"{path}-wal") if os.path.exists(one))  # noqa: PTH110, PTH202


def _new_place(why: str, url: str) -> str | None:
    """Where quire add makes a library, if that is not the one that is read."""
    made = places.default_url(create=True) if why == "own" else url
    return made if made != url else None


def _settings_files() -> list[dict[str, Any]]:
    """The settings files in force: the user's own, then the project's, with what is ignored in it."""
    found, folder = list[dict[str, Any]](), places.settings_folder()
    if folder and (folder / settings.FILE).is_file():
        found.append({"path": str(folder / settings.FILE), "kind": "user", "trusted": True, "ignored": []})
    if project := settings.project_file():
        file = settings.read_settings(project)
        trusted = trust.Records.read().holds(file.path, file.source)
        ignored = [] if trusted else list(file.narrowing(settings.user_settings(os.environ))[1])
        found.append({"path": str(file.path), "kind": "project", "trusted": trusted, "ignored": ignored})
    return found


def _state_lines(found: dict[str, Any]) -> list[str]:
    from quire.surfaces import render

    if found["problem"]:
        return [f"cannot be opened: {found['problem']}"]
    if not found["exists"]:
        made = found["add_creates"]
        return ["not there yet" + (f"; quire add creates {made}" if made else "; quire add creates it")]
    size = f", {render.counted(found['bytes'], 'byte')}" if found["bytes"] is not None else ""
    made = [f"quire add creates {found['add_creates']}"] if found["add_creates"] else []
    return [f"{render.counted(found['documents'], 'document')}{size}", *made]


def _file_line(file: dict[str, Any]) -> str:
    if file["kind"] == "user":
        return f"settings: {file['path']} (yours)"
    if file["trusted"]:
        return f"settings: {file['path']} (the project's, trusted)"
    left = f", which would set {', '.join(file['ignored'])}" if file["ignored"] else ", and needs no trust"
    return f"settings: {file['path']} (the project's, not trusted{left})"
