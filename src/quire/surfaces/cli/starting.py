"""`quire init`: give Quire to MCP clients, to AGENTS.md and to a shell, and take it away again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.errors import NoResults, SettingError
from quire.surfaces.cli import options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.surfaces.changes import Change
    from quire.surfaces.clients import ClientFile
    from quire.surfaces.insertions import Edit

_CLIENTS = ("claude-code", "claude-desktop", "cursor", "vscode")
_LINE = "- Search the documents with Quire's tools (search, read, context) before you answer from memory."


@dataclass(frozen=True, slots=True)
class Offer:
    """What is asked about as one: edits of one or more files."""

    name: str
    title: str
    edits: tuple[tuple[Path, Edit], ...]
    project: Path | None = None  # that the files belong to, and must be in


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The options of `quire init`."""

    names: tuple[str, ...]
    project: bool
    uvx: bool
    yes: bool
    dry_run: bool
    remove: bool
    as_json: bool

    def has(self, name: str) -> bool:
        """Whether something is wanted that changes no client: it is named, or can be asked about."""
        if self.names:
            return name in self.names
        if self.project and name == "completion":
            return False
        return self.remove or not self.yes

    def has_file(self, file: ClientFile) -> bool:
        """Whether a client's file is wanted. One that is not there is made only if its client is named."""
        if (self.names and file.client not in self.names) or (self.project and not file.is_shared):
            return False
        is_named = bool(self.names) and file.is_shared == self.project
        return self.remove or file.is_found or is_named


@quire.command()
@click.argument(
    "names", nargs=-1, type=click.Choice([*_CLIENTS, "agents", "completion"]), metavar="[NAME]..."
)
@click.option("--project", is_flag=True, help="Write only files of this project, which others may share.")
@click.option("--uvx", is_flag=True, help="Have clients start Quire with uvx, which needs no installation.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal.")
@click.option("--dry-run", is_flag=True, help="Show what would be written. Change nothing.")
@click.option("--remove", is_flag=True, help="Remove what this command wrote, and nothing else.")
@options.json_lines("file")
def init(
    names: tuple[str, ...], project: bool, uvx: bool, yes: bool, dry_run: bool, remove: bool, as_json: bool
) -> None:
    """Give Quire to the agents of this machine: write it into the settings of their MCP clients.

    NAME is claude-code, claude-desktop, cursor or vscode; agents, for a line in the project's AGENTS.md; or
    completion, for completion in your shell. Without names, Quire offers all clients that it finds. It makes
    a new file only for a client that you name. It shows every change first, and asks.

    \b
    Examples:
      quire init
      quire init --dry-run
      quire init cursor --project
      quire init agents completion --yes
      quire init --remove
    """
    wanted = InitOptions(names, project, uvx, yes, dry_run, remove, as_json)
    if as_json and not (yes or dry_run):
        raise click.UsageError("With --json there is nobody to ask. Add --yes or --dry-run.")
    offers = list(_offers(wanted))
    if names and not offers:
        raise click.UsageError(f"There is no file here for {', '.join(names)}.")
    done = [_settle(offer, wanted) for offer in offers]
    if remove and not any(done):
        raise NoResults("quire init has written nothing here.", missing="init", name="quire init")
    if not (remove or names or as_json):
        _show_block(wanted)
    if not remove:
        _note_rest(wanted, offers)
    sys.exit(_exit_code(done))


def _offers(wanted: InitOptions) -> Iterator[Offer]:
    """What to write or remove, in this order: clients, AGENTS.md, completion."""
    from quire import places
    from quire.surfaces import clients

    home = clients.home_folder()
    project = clients.project_folder(places.working_folder(), home)
    for file in clients.client_files(project):
        if wanted.has_file(file):
            command = _command(wanted, file.is_shared)
            title = f"{clients.CLIENTS[file.client]}, {'in this project' if file.is_shared else 'for you'}"
            edits = ((file.path, file.block(command)),)
            yield Offer(file.client, title, edits, project if file.is_shared else None)
    if wanted.has("agents") and (agents := _agents(project, wanted)):
        yield agents
    if wanted.has("completion"):
        yield from _completions(wanted)


def _command(wanted: InitOptions, is_shared: bool = False) -> tuple[str, ...]:
    from quire.surfaces import clients

    return (clients.SERVER,) if wanted.remove else clients.start_command(uvx=wanted.uvx, is_shared=is_shared)


def _agents(project: Path | None, wanted: InitOptions) -> Offer | None:
    from quire.surfaces.insertions import MARK, MarkedLine

    path = project and project / "AGENTS.md"
    if path is None or not (path.is_file() or "agents" in wanted.names):
        return None
    return Offer("agents", "A line for agents", ((path, MarkedLine(f"{_LINE} <!-- {MARK} -->")),), project)


def _completions(wanted: InitOptions) -> Iterator[Offer]:
    """The completion of the user's shell, or of every shell if it is to be removed."""
    from quire.surfaces import completion

    if wanted.remove:
        shells = dict.fromkeys(completion.SHELLS, "")
    elif "completion" in wanted.names or Path(os.environ.get("SHELL", "")).name in completion.SHELLS:
        shell = completion.shell_of()
        shells = {shell: completion.completion_script(shell, quire)}
    else:
        return
    for shell, script in shells.items():
        yield Offer("completion", f"Completion in {shell}", tuple(completion.completion_edits(shell, script)))


def _settle(offer: Offer, wanted: InitOptions) -> str:
    """Show an offer, ask, and do it. Returns what came of it: `done`, `failed`, or "" for nothing."""
    from quire.surfaces.changes import plan_removing, plan_writing

    plan = plan_removing if wanted.remove else plan_writing
    try:
        _check_inside(offer)
        changes = [plan(path, edit) for path, edit in offer.edits]
        is_new = any(change.action != "none" for change in changes)
        if not wanted.as_json:
            _show(offer, changes, wanted)
        is_done = is_new and not wanted.dry_run and (wanted.yes or _is_confirmed(wanted))
        for change in changes if is_done else ():
            _apply(change, wanted)
    except SettingError as problem:
        output.complain(problem.to_json())
        return "failed"
    for change in changes if wanted.as_json else ():
        _show_json(offer, change, is_done)
    return "done" if is_new or not wanted.remove else ""


def _check_inside(offer: Offer) -> None:
    """Refuse a file outside its project, reached by a link: a cloned project may link to any file."""
    for path, _ in offer.edits if offer.project else ():
        if offer.project and not path.resolve().is_relative_to(offer.project.resolve()):
            raise SettingError(
                str(path), f"leads out of the project, to {path.resolve()}. It was left as it is"
            )


def _apply(change: Change, wanted: InitOptions) -> None:
    from quire.surfaces import render

    if change.action == "none":
        return
    said = "Removed from" if wanted.remove else "Wrote"
    change.apply()
    if not wanted.as_json:
        click.echo(f"{said} {render.line(str(change.path))}")


def _show(offer: Offer, changes: list[Change], wanted: InitOptions) -> None:
    """Print what would happen to the files of an offer, each as a diff."""
    from quire.surfaces import render

    for change in changes:
        if change.action != "none":
            click.secho(f"{offer.title}: {render.line(str(change.path))}", bold=True)
            click.echo("\n".join(f"  {render.line(line)}" for line in change.diff()))
        elif not wanted.remove:
            output.note(f"{offer.title}: {change.path} is set up already.")


def _show_json(offer: Offer, change: Change, is_done: bool) -> None:
    shown = {"name": offer.name, "path": str(change.path), "action": change.action}
    output.print_json({**shown, "done": is_done and change.action != "none", "diff": change.diff()})


def _is_confirmed(wanted: InitOptions) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "There is no terminal to ask on. Add --yes, or --dry-run to see what would happen."
        )
    return click.confirm("Remove it?" if wanted.remove else "Write it?", err=True)


def _show_block(wanted: InitOptions) -> None:
    """Print the block that most other clients take."""
    from quire.surfaces import clients

    command = _command(wanted)
    block = {"mcpServers": {clients.SERVER: {"command": command[0], "args": [*command[1:], "mcp"]}}}
    click.secho("Other clients take this block:", bold=True)
    click.echo(json.dumps(block, indent=2))


def _note_rest(wanted: InitOptions, offers: list[Offer]) -> None:
    """Tell the user what the files alone do not say."""
    from quire.settings import PREFIX

    if not offers:
        output.note("No client was found. To make the file of one, name it: quire init cursor")
    if any(offer.name != "agents" and offer.project for offer in offers) and not wanted.uvx:
        output.note(
            "The project's file names a path of this machine. To share the file: quire init --project --uvx"
        )
    if given := [name for name in sorted(os.environ) if name.startswith(PREFIX)]:
        output.note(f"Clients may not see {', '.join(given)}. Put these settings into quire.toml.")


def _exit_code(done: list[str]) -> int:
    from quire.surfaces import render

    if "failed" in done:
        return render.PARTLY if "done" in done else render.FAILED
    return render.DONE if done else render.NOTHING
