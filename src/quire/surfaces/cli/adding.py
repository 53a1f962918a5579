"""`quire add`, `refresh` and `remove`: documents come in, stay up to date, and go."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from quire.errors import NotText, SourceError, Unreadable
from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.errors import SourceMoved
    from quire.fleet import Fleet
    from quire.ingest.plan import Plan
    from quire.ingest.report import Report
    from quire.library import Library

_embeds = click.option(
    "--embed/--no-embed", "embeds", default=True, help="Embed what is new, if that takes less than a minute."
)
_json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the report as one line of JSON; with --dry-run, one line for each source.",
)


@quire.command()
@options.library_option
@click.argument(
    "sources", nargs=-1, required=True, type=options.file_name, metavar="FILE|FOLDER|URL|SITE...|-"
)
@click.option("-c", "--collection", help="The collection to add to. By default it is named after the source.")
@click.option(
    "--as", "name", metavar="PATH", help="The path of the document that is read from standard input (-)."
)
@click.option("--site", is_flag=True, help="Add all pages under a URL, by its sitemap and links. Remembered.")
@click.option(
    "--external", is_flag=True, help="Mark the documents as other people's: they cannot be promoted."
)
@click.option(
    "--include",
    multiple=True,
    help="Add only paths that match this pattern. For folders, sites and repositories.",
)
@click.option(
    "--exclude",
    multiple=True,
    help="Leave out paths that match this pattern. For folders, sites and repositories.",
)
@click.option("--keep/--no-keep", default=None, help="Keep documents when their files are gone. Remembered.")
@click.option("--prune", is_flag=True, help="Remove documents whose files are gone.")
@_embeds
@click.option(
    "--fleet", metavar="ADDRESS", help="Index on Ray: local, local:4, auto, HOST:PORT or ray://HOST:PORT."
)
@click.option("--dry-run", is_flag=True, help="Show what would change and why. Change nothing.")
@_json_option
def add(
    library: str | None,
    sources: tuple[str, ...],
    collection: str | None,
    name: str | None,
    site: bool,
    external: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    keep: bool | None,
    prune: bool,
    embeds: bool,
    fleet: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Add files, folders, git repositories, web pages and sites.

    The library remembers each source with its options, and quire refresh brings it up to date. To change an
    option, add the source again: options that you leave out keep their values, and --exclude '' clears that
    one. Patterns are those of .gitignore. --include takes files of every ending. Unchanged files are skipped.

    A site is read by its llms.txt; with --site, by its sitemap and the links under its path. A repository can
    be followed by @TAG and :FOLDER. Text from standard input is named by its content, unless --as names it.

    New documents can be searched by words and by meaning at once. Then a deeper model embeds them. If that
    takes longer than a minute, it is left to quire embed. With --fleet, many processes or machines index the
    sources into a library on PostgreSQL.

    \b
    Examples:
      quire add ./docs
      quire add ./docs --dry-run
      quire add ./docs --exclude drafts/ --exclude '*.tmp.md'
      quire add https://example.com/guide
      quire add example.com
      quire add --site https://docs.example.com/
      quire add https://github.com/owner/name
      quire add https://github.com/owner/name@v5.2:docs
      quire add README.md ./docs -c manual
      quire add ./vendor/docs --external
      quire add ./archive --fleet local:4 -L postgresql://db/team
      cat notes.md | quire add - --as notes.md
    """
    from quire.surfaces import render

    if prune and keep:
        raise click.UsageError("--prune removes what --keep keeps. Give one of them.")
    if name is not None and "-" not in sources:
        raise click.UsageError("--as names text from standard input, which is the source -. Leave it out.")
    given: dict[str, Any] = {"collection": collection, "external": external, "keep": keep, "prune": prune}
    given |= {"site": site, "include": _patterns(include), "exclude": _patterns(exclude)}
    if dry_run:
        sys.exit(_plan_each(library, sources, given, as_json))
    if not site and (missing := _all_missing(sources)):  # no library is made for nothing
        output.show_report(missing, as_json)
        sys.exit(render.FAILED)

    given["embed"] = embeds
    with _started(fleet, library) as machines, opening.open_library(library, create=True) as opened:
        given["fleet"] = machines
        report = _add_each(opened, sources, name, given)
    output.show_report(report, as_json)
    sys.exit(render.report_code(report))


def _add_each(opened: Library, sources: tuple[str, ...], name: str | None, given: dict[str, Any]) -> Report:
    """Add sources one by one; `name` is that of standard input."""
    from quire.ingest.report import Report

    report, about = Report(), {key: given[key] for key in ("collection", "external", "embed")}
    for source in sources:
        if source == "-":
            report.join(opened.add(content=_read_input(name), path=name, **about))
        else:
            report.join(_add_one(opened, source, given, report))
    return report


@contextmanager
def _started(address: str | None, library: str | None) -> Iterator[Fleet | None]:
    """The fleet at an address, for a library that it can write to; None if none is wanted."""
    if address is None:
        yield None
        return
    from quire.errors import SettingError
    from quire.fleet import Fleet
    from quire.ingest.writing import NEEDS_SERVER

    if "://" not in opening.library_url(library, create=True):
        raise SettingError("fleet", NEEDS_SERVER)
    with Fleet(address) as fleet:
        fleet.start()
        yield fleet


def _read_input(name: str | None) -> bytes:
    """What is on standard input. Raises NotText if it can only be read with a name, and has none."""
    from quire.document import unnamed_kind

    content = sys.stdin.buffer.read()
    if name is None and (found := unnamed_kind(content)):
        kind, endings = found
        raise NotText("standard input", f"is {kind}. Name it: --as NAME{endings}")
    return content


@quire.command()
@options.library_option
@click.option(
    "--check", is_flag=True, help="Only list what is new, changed or gone. The exit code is 1 if anything is."
)
@click.option("--dry-run", is_flag=True, help="Show what would change and why. Change nothing.")
@click.option("--prune", is_flag=True, help="Remove all documents whose files are gone.")
@click.option("--keep", is_flag=True, help="Remove no documents.")
@click.option(
    "--remake",
    is_flag=True,
    help="Remake what other versions of Quire made, for everyone who shares the library.",
)
@_embeds
@_json_option
def refresh(
    library: str | None,
    check: bool,
    dry_run: bool,
    prune: bool,
    keep: bool,
    remake: bool,
    embeds: bool,
    as_json: bool,
) -> None:
    """Bring every source up to date: the files, folders, repositories, pages and sites that you added.

    A document whose file is gone is removed if its source is healthy: the folder is there and not empty, and
    less than half of its documents are missing at once. Otherwise the documents stay, and a note says why.

    Documents that another version of Quire or its stemmer made are made again. In a library on PostgreSQL,
    which several programs may share, this needs --remake.

    \b
    Examples:
      quire refresh
      quire refresh --dry-run
      quire refresh --check
      quire refresh --prune
    """
    from quire.surfaces import render

    if prune + keep > 1 or (check and (prune or keep or dry_run or remake)):
        raise click.UsageError("Give one of --prune and --keep. --check goes with no other option.")
    with opening.open_library(library) as opened:
        if dry_run:
            sys.exit(_show_plans(opened.plan(prune=prune, keep=keep, remake=remake), as_json))
        if not check:
            with output.counting() as done:
                report = opened.refresh(prune=prune, keep=keep, remake=remake, embed=embeds, progress=done)
            output.show_report(report, as_json, names_missing=False)
            sys.exit(render.report_code(report))
        changes = opened.check()
    if as_json:
        output.print_json(render.changes_json(changes))
    else:
        for line in render.changes_lines(changes):
            click.echo(line)
    for failed in changes.failed:
        output.complain(render.failure_json(failed))
    sys.exit(render.NOTHING if changes else render.PARTLY if changes.failed else render.DONE)


@quire.command()
@options.library_option
@click.argument("addresses", nargs=-1, metavar="[ADDRESS|ID]...")
@click.option("-c", "--collection", help="Remove this whole collection.")
@click.option(
    "--path",
    "paths",
    multiple=True,
    help="Only paths of the collection that begin with this, or match it as a pattern with *.",
)
@click.option("--purge", is_flag=True, help="Also erase their text from the library's files.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed. Change nothing.")
@options.json_flag
def remove(
    library: str | None,
    addresses: tuple[str, ...],
    collection: str | None,
    paths: tuple[str, ...],
    purge: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove documents by address or id, or a whole collection. Your files are never touched.

    `project@*` means all branches of a project.

    \b
    Examples:
      quire remove docs:old.md
      quire remove docs:secrets.md --purge
      quire remove --collection docs --dry-run
      quire remove --collection docs --path drafts/
    """
    with opening.open_library(library) as opened:
        rows = opened.remove(*addresses, collection=collection, paths=paths, purge=purge, dry_run=dry_run)
    output.show_gone("remove", rows, dry_run, as_json)


def _all_missing(sources: tuple[str, ...]) -> Report | None:
    """What to report if no source exists, or could exist elsewhere."""
    from quire.ingest.report import Report
    from quire.sources.files import Skipped, printable
    from quire.sync import is_web

    if any(source == "-" or is_web(source) or os.path.lexists(source) for source in sources):
        return None
    reason = "no such file or folder"
    return Report(failed=[Skipped(printable(source), reason, Unreadable.code) for source in sources])


def _add_one(opened: Library, source: str, given: dict[str, Any], before: Report) -> Report:
    """Add one source. If it cannot be read, report it and go on."""
    from quire.errors import SourceMoved
    from quire.ingest.report import Report
    from quire.sources.files import Skipped

    try:
        return _added(opened, source, given, before)
    except SourceError as error:
        if isinstance(error, SourceMoved) and _follows(error):
            opened.move_source(error.old, error.new)
            return _added(opened, source, given, before)
        return Report(failed=[Skipped(error.source, error.reason, error.code)])


def _added(opened: Library, source: str, given: dict[str, Any], before: Report) -> Report:
    """Add one source, with a bar. Ctrl-C says what was written, with the sources before it."""
    with output.counting() as done:
        done.written += before.added + before.updated + before.removed + before.moved
        return opened.add(source, progress=done, **given)


def _follows(moved: SourceMoved) -> bool:
    """Whether a person at a terminal says that a source has moved."""
    from quire.surfaces import render

    old, new = render.line(moved.old), render.line(moved.new)
    known = f"The library has the documents of {new} from {old}, which is gone."
    return sys.stdin.isatty() and sys.stderr.isatty() and click.confirm(f"{known} Was it moved?", err=True)


def _patterns(given: tuple[str, ...]) -> list[str] | None:
    """The patterns of an option; None if it was not given, empty for ''."""
    return [pattern for pattern in given if pattern] if given else None


def _plan_each(library: str | None, sources: tuple[str, ...], given: dict[str, Any], as_json: bool) -> int:
    """Show what adding each source would change, without creating a library. Returns the exit code."""
    from quire.surfaces import render

    if "-" in sources:
        raise click.UsageError(
            "--dry-run shows what files, folders and URLs would change, not standard input."
        )
    plans: list[Plan] = []
    failed = False
    with _opened_or_empty(library) as opened:
        for source in sources:
            try:
                plans += opened.plan(source, after=plans, **given)
            except SourceError as error:
                output.complain(error.to_json())
                failed = True
    if failed and not plans:
        return render.FAILED
    code = _show_plans(plans, as_json)
    return render.PARTLY if failed and code == render.DONE else code


def _opened_or_empty(library: str | None) -> Library:
    """The library, or an empty one in memory if there is none."""
    from quire.errors import NoResults
    from quire.library import Library

    try:
        return opening.open_library(library)
    except NoResults:
        return Library.open(":memory:", create=True, config=opening.load_settings())


def _show_plans(plans: list[Plan], as_json: bool) -> int:
    """Show plans; returns the exit code that applying them would have."""
    from quire.surfaces import render

    for plan in plans:
        if as_json:
            output.print_json(plan.to_json())
        else:
            click.echo("\n".join(render.plan_lines(plan)))
    if not plans:
        output.note_no_sources()
    return render.plans_code(plans)
