"""The command line. stdout is the answer, stderr the story.

Commands import what they need when they run, so that `quire --help` is instant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quire.config import LIBRARY, MCP_KEY
from quire.errors import QuireError, SettingError, SourceError
from quire.version import VERSION

if TYPE_CHECKING:
    from quire.chunkers.base import Chunk
    from quire.config import Config
    from quire.document import Document
    from quire.errors import SourceMoved
    from quire.ingest.plan import Plan
    from quire.ingest.report import Report
    from quire.library import Library
    from quire.progress import Progress
    from quire.searcher import Found
    from quire.stores.rows import DocumentRow
    from quire.tree import Tree

_name_of_file = click.Path(readable=False, allow_dash=True)  # which may hold any bytes
_files = click.argument("files", nargs=-1, required=True, type=_name_of_file, metavar="FILE...|-")
_library = click.option(
    "-L",
    "--library",
    envvar=LIBRARY,
    type=_name_of_file,
    metavar="FILE|URL",
    help="A file or postgresql://…; by default the `library` setting, else the nearest .quire/library.db "
    "upward, else your own.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, one line for each document.")


def main() -> None:
    """Run the command line; a QuireError is shown in one line."""
    try:
        quire()
    except QuireError as error:
        from quire.surfaces import render

        _complain(str(error))
        sys.exit(render.exit_code(error))


class _Command(click.Command):
    def invoke(self, ctx: click.Context) -> object:
        """Run it with text that can be stored and printed, whatever was typed; files keep their names."""
        for parameter in self.params:
            if parameter.type is click.STRING and parameter.name:
                ctx.params[parameter.name] = _as_text(ctx.params[parameter.name])
        return super().invoke(ctx)


def _as_text(value: Any) -> Any:
    from quire.surfaces import render

    if isinstance(value, tuple):
        return tuple(map(_as_text, value))
    return render.as_text(value) if isinstance(value, str) and not value.isascii() else value


class _Commands(click.Group):
    command_class = _Command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; Ctrl-C ends it as it ends other programs, where it says no more itself."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _complain("Stopped.")
            sys.exit(130)


@click.group(
    cls=_Commands,
    epilog="Each command explains itself: quire chunk --help",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, prog_name="quire", message="%(prog)s %(version)s")
def quire() -> None:
    """The document memory of AI agents and of the people who work with them."""


@quire.command()
@_files
@click.option("-s", "--strategy", help="auto, nodes, sections, windows, memory or headers.")
@click.option("--max-tokens", type=int, help="The largest chunk the strategy may make.")
@click.option("--overlap", type=float, help="Windows and memory: the share that neighbours have in common.")
@_json
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT",
    help="Write a page that shows the cuts in colour.",
)
def chunk(
    files: tuple[str, ...],
    strategy: str | None,
    max_tokens: int | None,
    overlap: float | None,
    as_json: bool,
    html: Path | None,
) -> None:
    r"""Show where a strategy cuts a document. No library is needed, nothing is stored.

    \b
    Examples:
      quire chunk README.md
      quire chunk README.md --strategy windows --max-tokens 300 --overlap 0.2
      quire chunk docs/*.md --html chunks.html
      cat README.md | quire chunk - --json
    """
    from quire import chunkers, config
    from quire.surfaces import chunk_page, render

    if html:
        chunk_page.check(html, files)
    settings = _settings()
    name = strategy or settings.chunk.strategy
    given = {"max_tokens": max_tokens, "overlap": overlap}
    changes = {key: value for key, value in given.items() if value is not None}
    chosen = config.override(settings.chunk.named(name), changes, f"{name}.")
    shown: list[tuple[Tree, list[Chunk]]] = []

    def one(tree: Tree) -> None:
        chunks = chunkers.split(tree, name, chosen, settings.tokens)
        if as_json:
            _print_json(render.chunks_json(tree, name, chunks))
        elif html:
            shown.append((tree, chunks))
        else:
            _print_chunks(tree, name, chunks)

    code = _each(files, settings, one)
    if html and shown:
        chunk_page.check(html, files)  # it may have been made meanwhile
        chunk_page.write(html, chunk_page.render(name, shown))
        _note(f"Wrote {html}")
    sys.exit(code)


@quire.command()
@_library
@click.argument("sources", nargs=-1, required=True, type=_name_of_file, metavar="FILE|FOLDER|URL|SITE...|-")
@click.option("-c", "--collection", help="The name to file them under; by default the folder's or site's.")
@click.option("--as", "name", metavar="PATH", help="With -: the path to file standard input under.")
@click.option("--external", is_flag=True, help="They are other people's: never promoted.")
@click.option(
    "--include", multiple=True, help="Folders and sites: take only what matches, whatever its ending."
)
@click.option("--exclude", multiple=True, help="Folders and sites: leave out what matches, as in .gitignore.")
@click.option("--keep/--no-keep", default=None, help="Keep documents when their files are gone. Remembered.")
@click.option("--prune", is_flag=True, help="Remove documents whose files are gone, now.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done, and why.")
@_json
def add(
    library: str | None,
    sources: tuple[str, ...],
    collection: str | None,
    name: str | None,
    external: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    keep: bool | None,
    prune: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Hold files, folders, web pages and sites, or bring them up to date.

    The library remembers what you named, and its options: quire refresh follows that and nothing else.
    Unchanged files are skipped. A site is read by its llms.txt. Text from standard input is named by its
    content, unless --as names it.

    \b
    Examples:
      quire add ./docs
      quire add ./docs --dry-run
      quire add ./docs --exclude drafts/ --exclude '*.tmp.md'
      quire add https://example.com/guide
      quire add example.com
      quire add README.md ./docs -c manual
      quire add ./vendor/docs --external
      cat notes.md | quire add - --as notes.md
    """
    options: dict[str, Any] = {"collection": collection, "external": external, "keep": keep, "prune": prune}
    options |= {"include": include or None, "exclude": exclude or None}
    if dry_run:
        _show_plans(_plan_each(library, sources, options), as_json)
        return
    from quire.ingest.report import Report
    from quire.surfaces import render

    with _opened(library, create=True) as opened, _bar() as bar:
        report = Report()
        try:
            for source in sources:
                if source == "-":
                    content = sys.stdin.buffer.read()
                    more = opened.add(content=content, path=name, collection=collection, external=external)
                else:
                    more = _add_one(opened, source, options, bar)
                report.join(more)
        except KeyboardInterrupt:
            _complain("Stopped. What was written is complete and can be searched; type the same to go on.")
            sys.exit(130)
    _show_report(report, as_json)
    sys.exit(render.report_code(report))


@quire.command()
@_library
@click.argument("query")
@click.option("-c", "--collection", help="Look only in this collection.")
@click.option(
    "--path", "paths", multiple=True, help="Look only in paths that begin so, or match a pattern with *."
)
@click.option("-n", "--limit", type=int, help="How many results, at most 1,000.  [default: 10]")
@click.option(
    "-m", "--mode", help="hybrid, keyword (words alone) or semantic (meaning alone).  [default: hybrid]"
)
@click.option("--explain", is_flag=True, help="Show how each result came about.")
@_json
def search(
    library: str | None,
    query: str,
    collection: str | None,
    paths: tuple[str, ...],
    limit: int | None,
    mode: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Find the sections that answer a query, by their words and by their meaning.

    Words rank, "phrases" must be there, -words must not; a OR b, prefix*, heading:word, title:word
    and path:folder/ work too.

    \b
    Examples:
      quire search "rolling back a deployment"
      quire search '"exit code" -docker' --path docs/
      quire search 'heading:install' --json
      quire search "make it start faster" --mode semantic
    """
    from quire.surfaces import render

    with _opened(library) as opened:
        found = opened.search(
            query, collection=collection, paths=paths, limit=limit, mode=mode, explain=explain
        )
    _show_found(found, as_json)
    sys.exit(render.DONE if found.results else render.NOTHING)


@quire.command()
@_library
@click.option(
    "--to",
    required=True,
    type=_name_of_file,
    metavar="FILE|URL",
    help="The library to copy to; made if need be.",
)
@_json
def copy(library: str | None, to: str, as_json: bool) -> None:
    """Copy a library to another place, such as a team's PostgreSQL database, or back.

    An interrupted copy goes on where it stopped. What arrived is compared with what was sent.

    \b
    Examples:
      quire copy --to postgresql://quire@db.example.com/quire
      quire copy -L postgresql://quire@db.example.com/quire --to ./backup.db
      quire copy --to ./backup.db --json
    """
    from dataclasses import asdict

    from quire.surfaces import render

    with _opened(library) as opened, _bar() as bar:
        try:
            done = opened.copy(_in_utf8(to), progress=bar)
        except KeyboardInterrupt:
            _complain("Stopped. What was copied is complete; type the same command to go on.")
            sys.exit(130)
    if as_json:
        _print_json(asdict(done))
    else:
        click.echo(render.copied_line(done))


@quire.command()
@_library
@click.option(
    "--model",
    help="minilm, ollama/NAME, openai/NAME, a folder with an ONNX model; by default the library's own.",
)
@_json
def embed(library: str | None, model: str | None, as_json: bool) -> None:
    """Embed what is not embedded yet, or everything with another model.

    `quire add` does this by itself. What is embedded stays, so an interrupted run goes on where it
    stopped; the vectors of another model serve until the new ones are complete.

    \b
    Examples:
      quire embed
      quire embed --model ollama/mxbai-embed-large
      QUIRE_EMBED_KEY=... quire embed --model openai/text-embedding-3-small
    """
    from quire.surfaces import render

    with _opened(library) as opened, _bar() as bar:
        try:
            done = opened.embed(model, progress=bar)
        except KeyboardInterrupt:
            _complain("Stopped. What was embedded is kept; type the same command to go on.")
            sys.exit(130)
        rows = opened.store.documents_by_row(done.failed)
    for row, reason in done.failed.items():
        _complain(f"{rows[row].address}: {reason}")
    if done.searched_with != done.model:
        _note(f"Searches still use {done.searched_with}: {done.model} has not embedded everything.")
    if as_json:
        _print_json(render.embedded_json(done, rows))
    else:
        click.echo(render.embedded_line(done))
    sys.exit(render.PARTLY if done.failed else render.DONE)


@quire.command()
@_library
@click.argument("address")
@click.argument("heading", required=False)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Stop after so many tokens, and say so.")
@_json
def read(
    library: str | None, address: str, heading: str | None, max_tokens: int | None, as_json: bool
) -> None:
    """Print a document or a section of it, byte for byte.

    \b
    Examples:
      quire read docs:guide.md
      quire read docs:guide.md#install
      quire read guide.md "Install > Linux" --max-tokens 500
    """
    from dataclasses import asdict

    with _opened(library) as opened:
        found = opened.read(address, heading, max_tokens=max_tokens)
        source = opened.source(address)
    if as_json:
        _print_json(asdict(found))
    elif sys.stdout.isatty():
        from quire.surfaces import render

        click.echo(render.safe(found.text))
    else:
        sys.stdout.buffer.write(source[found.byte_start : found.byte_end])
    for note in found.notes:
        _note(note)


@quire.command()
@_library
@click.argument("sources", nargs=-1, required=True, type=_name_of_file, metavar="FILE|ADDRESS...")
@_json
def toc(library: str | None, sources: tuple[str, ...], as_json: bool) -> None:
    """Print the outline of a file or of an indexed document: headings, and the tokens under each.

    \b
    Examples:
      quire toc README.md
      quire toc docs:guide.md --json
    """
    from quire import tokens
    from quire.surfaces import render

    settings = _settings()
    counter = tokens.counter(settings.tokens)

    def one(tree: Tree) -> None:
        text = tree.document.text
        sizes = {s.position: counter.count(text, s.start, s.end) for s in tree.sections}
        if as_json:
            _print_json(render.toc_json(tree, sizes))
        else:
            click.echo("\n".join(render.toc_lines(tree, sizes)))

    files = tuple(name for name in sources if name == "-" or os.path.exists(name) or ":" not in name)  # noqa: PTH110
    code = _each(files, settings, one)
    indexed = [name for name in sources if name not in files]
    if indexed:
        with _opened(library) as opened:
            for name in indexed:
                one(opened.toc(render.as_text(name)))
    sys.exit(code)


@quire.command("list")
@_library
@click.option("-c", "--collection", help="Only this collection.")
@_json
def list_documents(library: str | None, collection: str | None, as_json: bool) -> None:
    """List the documents in a library.

    \b
    Examples:
      quire list
      quire list -c docs --json
    """
    from quire.surfaces import render

    with _opened(library) as opened:
        rows = opened.documents(collection)
        if collection is not None and not rows:
            opened.search("a", collection=collection)  # raises NoResults, naming the nearest
    for row in rows:
        if as_json:
            _print_json(render.document_json(row))
        else:
            click.echo(f"{render.line(row.address)}  {render.line(row.title)}  ({row.chunk_count:,})")


@quire.command()
@_library
@_json
def status(library: str | None, as_json: bool) -> None:
    """Say what is in a library, and whether it is sound.

    \b
    Examples:
      quire status
      quire status --json
    """
    from quire.surfaces import render

    with _opened(library) as opened:
        counts, wrong = opened.status(), opened.store.check()
        shown = render.status_json(opened.url, counts, wrong, opened.unembeddable())
    if as_json:
        _print_json(shown)
    else:
        click.echo("\n".join(render.status_lines(shown)))
    sys.exit(render.FAILED if wrong else render.DONE)


@quire.command()
@_library
@click.argument("addresses", nargs=-1)
@click.option("-c", "--collection", help="Remove this whole collection.")
@click.option(
    "--path", "paths", multiple=True, help="Only paths of it that begin so, or match a pattern with *."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@_json
def remove(
    library: str | None,
    addresses: tuple[str, ...],
    collection: str | None,
    paths: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove documents, or a collection, from a library. Files are never touched.

    \b
    Examples:
      quire remove docs:old.md
      quire remove --collection docs --dry-run
      quire remove --collection docs --path drafts/
    """
    with _opened(library) as opened:
        rows = opened.remove(*addresses, collection=collection, paths=paths, dry_run=dry_run)
    _show_gone("remove", rows, dry_run, as_json)


@quire.command()
@_library
@click.option("--check", is_flag=True, help="Only list what is new, changed or gone; exit 1 if anything is.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done, and why.")
@click.option("--prune", is_flag=True, help="Remove all documents whose files are gone.")
@click.option("--keep", is_flag=True, help="Remove no document.")
@_json
def refresh(library: str | None, check: bool, dry_run: bool, prune: bool, keep: bool, as_json: bool) -> None:
    """Bring every source up to date: the files, folders, pages and sites that were added.

    Documents whose files are gone are removed while their source is healthy: its folder is there and not
    empty, and less than half of its documents are missing at once. Otherwise they stay, and a note says why.

    \b
    Examples:
      quire refresh
      quire refresh --dry-run
      quire refresh --check
      quire refresh --prune
    """
    from quire.surfaces import render

    if prune and keep:
        raise click.UsageError("--prune removes what --keep keeps. Give one of them.")
    with _opened(library) as opened, _bar() as bar:
        if check:
            changes = opened.check()
        elif dry_run:
            _show_plans(opened.plan(prune=prune, keep=keep), as_json)
            return
        else:
            report = opened.refresh(prune=prune, keep=keep, progress=bar)
    if not check:
        _show_report(report, as_json)
        sys.exit(render.report_code(report))
    if as_json:
        _print_json(render.changes_json(changes))
    else:
        for line in render.changes_lines(changes):
            click.echo(line)
    sys.exit(render.NOTHING if changes else render.DONE)


@quire.group(invoke_without_command=True)
@_library
@_json
@click.pass_context
def sources(context: click.Context, library: str | None, as_json: bool) -> None:
    """List the sources of a library: what you named, what it holds, and its last problem.

    \b
    Examples:
      quire sources
      quire sources --json
      quire sources remove ./old-docs
      quire sources move ~/docs ~/work/docs
    """
    if context.invoked_subcommand:
        context.meta["library"] = library
        return
    import time

    from quire.surfaces import render

    with _opened(library) as opened:
        found = opened.sources()
    for source in found:
        if as_json:
            _print_json(render.source_json(source))
            continue
        first, *rest = render.source_lines(source, time.time_ns() // 1_000_000)
        click.secho(first, bold=True)
        for line in rest:
            click.echo(line)
    if not found:
        _note("The library has no sources. Name one with: quire add ./docs")
    sys.exit(render.DONE if found else render.NOTHING)


@sources.command("remove")
@_library
@click.argument("place", metavar="PLACE|URL|ADDRESS")
@click.option("-c", "--collection", help="The collection that it is in, if it is in several.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@_json
@click.pass_context
def remove_source(
    context: click.Context,
    library: str | None,
    place: str,
    collection: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Let go of a source, with the documents that no other source holds. Files are never touched.

    \b
    Examples:
      quire sources remove ./old-docs --dry-run
      quire sources remove https://example.com/guide
    """
    with _opened(library or context.meta["library"]) as opened:
        rows = opened.remove_source(place, collection=collection, dry_run=dry_run)
    _show_gone("remove", rows, dry_run, as_json)


@sources.command("move")
@_library
@click.argument("old")
@click.argument("new")
@click.option("--dry-run", is_flag=True, help="Only say what would be followed.")
@_json
@click.pass_context
def move_source(
    context: click.Context, library: str | None, old: str, new: str, dry_run: bool, as_json: bool
) -> None:
    """Follow a file or folder that you moved: its documents keep their ids, promotions and vectors.

    \b
    Examples:
      quire sources move ~/docs ~/work/docs
      quire refresh
    """
    with _opened(library or context.meta["library"]) as opened:
        moved = opened.move_source(old, new, dry_run=dry_run)
    if as_json:
        _print_json({"moved": [{"from": a.place, "to": b.place} for a, b in moved], "dry_run": dry_run})
        return
    for before, after in moved:
        click.echo(f"{_safe(before.place)} → {_safe(after.place)}  ({before.documents:,})")


@quire.command()
@_library
@click.argument("query")
@click.option("--max-tokens", type=int, help="The size of the pack.  [default: 4000]")
@click.option("-c", "--collection", help="Look only in this collection.")
@click.option(
    "--path", "paths", multiple=True, help="Look only in paths that begin so, or match a pattern with *."
)
@click.option(
    "-m", "--mode", help="hybrid, keyword (words alone) or semantic (meaning alone).  [default: hybrid]"
)
@click.option(
    "--include",
    default="sections",
    help="sections, chunks (only those that match) or documents (whole).  [default: sections]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json", "xml"]),
    default="markdown",
    help="How to print it; json has the exact text.  [default: markdown]",
)
def context(
    library: str | None,
    query: str,
    max_tokens: int | None,
    collection: str | None,
    paths: tuple[str, ...],
    mode: str | None,
    include: str,
    form: str,
) -> None:
    """Print what is worth reading before answering a question, with citations, in so many tokens.

    Critical documents come first, then the sections that match, best first, with what opens their
    documents. The pack is never over its size, counted as Markdown.

    \b
    Examples:
      quire context "how do I roll back a deployment" --max-tokens 4000
      quire context "exit codes" --path docs/ --include chunks
      quire context "exit codes" --format json
    """
    from quire.surfaces import render

    with _opened(library) as opened:
        found = opened.context(
            query, max_tokens=max_tokens, collection=collection, paths=paths, mode=mode, include=include
        )
    if form == "json":
        _print_json(render.context_json(found))
    else:
        click.echo(render.context_xml(found) if form == "xml" else render.context_markdown(found), nl=False)
    for note in found.notes:
        _note(note)
    sys.exit(render.DONE if found.passages else render.NOTHING)


_text = click.argument("text", metavar="TEXT|-")
_tags = click.option("--tag", "tags", multiple=True, help="A word to find it by; may be given several times.")
_title = click.option("--title", help="What it is about; by default its first heading or line.")
_name = click.option("--as", "name", metavar="NAME", help="A name to file it under, and to replace it by.")


@quire.command()
@_library
@_text
@_tags
@_title
@click.option("-c", "--collection", default="memory", help="The name to file it under.  [default: memory]")
@_name
@_json
def remember(
    library: str | None,
    text: str,
    tags: tuple[str, ...],
    title: str | None,
    collection: str,
    name: str | None,
    as_json: bool,
) -> None:
    """Keep a memory. The same text is kept once.

    \b
    Examples:
      quire remember "We deploy on Tuesdays." --tag deploy
      git log -1 | quire remember - --tag release --title "The last release"
      quire remember "The limit is 20 now." --as rate-limit
    """
    with _opened(library, create=True) as opened:
        row = opened.remember(_said(text), collection=collection, title=title, tags=tags, name=name)
    _show_kept(row, as_json)


@quire.command()
@_library
@_text
@_tags
@_title
@click.option(
    "-c", "--collection", default="knowledge", help="The name to file it under.  [default: knowledge]"
)
@_name
@_json
def learn(
    library: str | None,
    text: str,
    tags: tuple[str, ...],
    title: str | None,
    collection: str,
    name: str | None,
    as_json: bool,
) -> None:
    """Keep a piece of knowledge. The same text is kept once.

    \b
    Examples:
      quire learn "The API answers 429 after 20 requests a minute." --tag api
      quire learn - --title "How we review" < review.md
    """
    with _opened(library, create=True) as opened:
        row = opened.learn(_said(text), collection=collection, title=title, tags=tags, name=name)
    _show_kept(row, as_json)


@quire.command()
@_library
@click.argument("query")
@click.option("--kind", "kinds", multiple=True, help="memory or knowledge; by default both.")
@click.option("-c", "--collection", help="Look only in this collection.")
@click.option("--tag", "tags", multiple=True, help="Only entries with this tag; with all of several.")
@click.option("--since", help="Only entries written then or later: 2026-01-31, or 7d (also h, w) ago.")
@click.option("--until", help="Only entries written until then.")
@click.option("-n", "--limit", type=int, help="How many results, at most 1,000.  [default: 10]")
@click.option(
    "-m", "--mode", help="hybrid, keyword (words alone) or semantic (meaning alone).  [default: hybrid]"
)
@click.option("--group", is_flag=True, help="Only the best of each entry.")
@_json
def recall(
    library: str | None,
    query: str,
    kinds: tuple[str, ...],
    collection: str | None,
    tags: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int | None,
    mode: str | None,
    group: bool,
    as_json: bool,
) -> None:
    """Find memories and knowledge, by their words and by their meaning. Documents are not looked at.

    \b
    Examples:
      quire recall "when do we deploy"
      quire recall "rate limits" --tag api --since 7d
      quire recall "review" --kind knowledge --group --json
    """
    from quire.sources.entries import KINDS
    from quire.surfaces import render

    with _opened(library) as opened:
        found = opened.recall(
            query,
            kinds=kinds or KINDS,
            collection=collection,
            tags=tags,
            since=since,
            until=until,
            limit=limit,
            mode=mode,
            group=group,
        )
    _show_found(found, as_json)
    sys.exit(render.DONE if found.results else render.NOTHING)


@quire.command()
@_library
@click.argument("addresses", nargs=-1)
@click.option("-c", "--collection", help="Forget all of this collection.")
@click.option("--tag", "tags", multiple=True, help="Forget what has this tag; all of several.")
@click.option("--before", help="Forget what was last written before then: 2026-01-31, or 52w ago.")
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten.")
@_json
def forget(
    library: str | None,
    addresses: tuple[str, ...],
    collection: str | None,
    tags: tuple[str, ...],
    before: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete memories and knowledge. Documents are refused: they are removed.

    \b
    Examples:
      quire forget memory:rate-limit
      quire forget --tag draft --before 52w --dry-run
    """
    from quire.surfaces import render

    with _opened(library) as opened:
        rows = opened.forget(*addresses, collection=collection, tags=tags, before=before, dry_run=dry_run)
    _show_gone("forget", rows, dry_run, as_json)
    sys.exit(render.DONE if rows else render.NOTHING)


@quire.command("export")
@_library
@click.argument("file", default="-", type=_name_of_file, metavar="[FILE|-]")
def export_entries(library: str | None, file: str) -> None:
    """Write all memories and knowledge as lines of JSON.

    \b
    Examples:
      quire export memories.jsonl
      quire export | grep deploy
    """
    from quire.surfaces import render

    with _opened(library) as opened:
        try:
            number = opened.export(sys.stdout if file == "-" else file)
        except OSError as problem:
            raise click.ClickException(f"{file}: {problem.strerror}") from None
    _note(f"Wrote {_entries(number)}.")
    sys.exit(render.DONE if number else render.NOTHING)


@quire.command("import")
@_library
@click.argument("file", type=_name_of_file, metavar="FILE|-")
@_json
def import_entries(library: str | None, file: str, as_json: bool) -> None:
    """Take in memories and knowledge that were exported. What is here already stays as it is.

    \b
    Examples:
      quire import memories.jsonl
      quire export -L old.db | quire import -
    """
    from quire.surfaces import render

    with _opened(library, create=True) as opened:
        report = opened.import_(sys.stdin.buffer if file == "-" else file)
    _show_report(report, as_json)
    sys.exit(render.report_code(report))


@quire.command()
@_library
@click.argument("address")
@click.argument("level")
@_json
def promote(library: str | None, address: str, level: str, as_json: bool) -> None:
    """Make a document standard, important or critical.

    Important ones rank higher, critical ones are in every context pack. External documents have no
    promotion.

    \b
    Examples:
      quire promote docs:rules.md critical
      quire promote docs:guide.md important
      quire promote docs:guide.md standard
    """
    from quire.surfaces import render

    with _opened(library) as opened:
        row = opened.promote(address, level)
    if as_json:
        _print_json(render.document_json(row))
    else:
        click.echo(f"{render.line(row.address)} is {row.promotion}.")


def _said(text: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text


def _show_kept(row: DocumentRow, as_json: bool) -> None:
    from quire.surfaces import render

    if as_json:
        _print_json(render.document_json(row))
    else:
        click.echo(render.line(row.address))


def _show_gone(what: str, rows: list[DocumentRow], dry_run: bool, as_json: bool) -> None:
    """What was removed or forgotten, or would be."""
    from quire.surfaces import render

    done = {"remove": "removed", "forget": "forgotten"}[what]
    if as_json:
        _print_json({done: [row.address for row in rows], "dry_run": dry_run})
        return
    for row in rows:
        click.echo(render.line(row.address))
    noun = render.counted(len(rows), "document") if what == "remove" else _entries(len(rows))
    _note(f"{f'Would {what}' if dry_run else done.capitalize()} {noun}.")


def _entries(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def _show_found(found: Found, as_json: bool) -> None:
    from quire.surfaces import render

    if as_json:
        _print_json(render.found_json(found))
        return
    for number, result in enumerate(found.results, 1):
        where, what, text = render.result_lines(number, result)
        click.secho(where, bold=True)
        click.secho(what, dim=True)
        click.echo(render.highlighted(text, sys.stdout.isatty()))
        if result.explain:
            click.echo(f"     {result.explain}")
    for note in found.notes:
        _note(note)


@quire.command()
@_library
@click.option("--read-only", is_flag=True, help="Offer no tools that write.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder that agents may add files from; without one, they may add none.",
)
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on.")
@click.option(
    "--port", default=8900, show_default=True, type=click.IntRange(0, 65535), help="With --http; 0 is any."
)
@click.option("--key", envvar=MCP_KEY, default="", help="What clients must bring; better set QUIRE_MCP_KEY.")
def mcp(
    library: str | None, read_only: bool, roots: tuple[Path, ...], http: bool, host: str, port: int, key: str
) -> None:
    """Serve a library to agents over the Model Context Protocol.

    Agents search, read and cite it, and unless --read-only is given add to it, with the tools that
    docs/mcp.md lists. Clients start this command by themselves; with --http they come to it.

    \b
    Examples:
      quire mcp
      quire mcp -L docs.db --read-only
      quire mcp --root ~/notes --root ~/docs
      QUIRE_MCP_KEY=... quire mcp --http --host 192.168.1.5
    """
    from quire.surfaces import mcp as server

    service = server.Service(_url(library), _settings(), read_only=read_only, roots=roots)
    if http:
        server.serve_http(service, host, port, key)
    else:
        server.serve(service)


@quire.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal.")
@click.option("--revoke", is_flag=True, help="Withdraw the trust in a file.")
@click.option(
    "--list", "listed", is_flag=True, help="Show what is trusted, and whether it has changed since."
)
@click.option("--json", "as_json", is_flag=True, help="With --list: print JSON, one line for each file.")
def trust(file: Path | None, yes: bool, revoke: bool, listed: bool, as_json: bool) -> None:
    """Accept all settings of a project's quire.toml, by default the nearest one upward.

    Without trust a project file may change how documents are cut and results are shown, lower limits,
    and name a library inside its folder. Quire ignores the rest: servers, keys, hosts, a proxy, higher
    limits, a library elsewhere. Quire shows the file before it asks. When the file changes, it is no
    longer trusted.

    \b
    Examples:
      quire trust
      quire trust ~/work/quire.toml --yes
      quire trust --revoke
      quire trust --list --json
    """
    from quire.surfaces import trusting

    if listed + revoke + yes > 1 or (listed and file) or (as_json and not listed):
        problem = "Use --yes, --revoke and --list one at a time. --json goes with --list, FILE does not."
        raise click.UsageError(problem)
    if listed:
        trusting.show_list(as_json)
    elif revoke:
        trusting.revoke(file)
    else:
        trusting.accept(file, yes)


def _add_one(opened: Library, source: str, options: dict[str, Any], bar: Progress) -> Report:
    """Add one source; one that cannot be read is reported, and the rest goes on."""
    from quire.errors import SourceMoved
    from quire.ingest.report import Report
    from quire.sources.files import Skipped

    try:
        return opened.add(source, progress=bar, **options)
    except SourceError as error:
        if isinstance(error, SourceMoved) and _follows(error):
            opened.move_source(error.old, error.new)
            return opened.add(source, progress=bar, **options)
        return Report(failed=[Skipped(error.source, error.reason)])


def _follows(moved: SourceMoved) -> bool:
    """Whether a person at a terminal says that a source has moved."""
    known = f"The documents of {_safe(moved.new)} are known from {_safe(moved.old)}, which is gone."
    return sys.stdin.isatty() and sys.stderr.isatty() and click.confirm(f"{known} Follow it?", err=True)


def _plan_each(library: str | None, sources: tuple[str, ...], options: dict[str, Any]) -> list[Plan]:
    """What adding each source would change. No library is made for that."""
    if "-" in sources:
        raise click.UsageError(
            "--dry-run shows what files, folders and URLs would change, not standard input."
        )
    with _opened_or_empty(library) as opened:
        return [plan for source in sources for plan in opened.plan(source, **options)]


def _opened_or_empty(library: str | None) -> Library:
    """The library, or an empty one in memory where there is none."""
    from quire.errors import NoResults
    from quire.library import Library

    try:
        return _opened(library)
    except NoResults:
        return Library.open(":memory:", create=True, config=_settings())


def _show_plans(plans: list[Plan], as_json: bool) -> None:
    from quire.surfaces import render

    for plan in plans:
        if as_json:
            _print_json(plan.to_json())
        else:
            click.echo("\n".join(render.plan_lines(plan)))
    if not plans:
        _note("The library has no sources. Name one with: quire add ./docs")


def _opened(library: str | None, *, create: bool = False) -> Library:
    from quire.library import Library

    return Library.open(_url(library, create=create), create=create, config=_settings())


def _url(library: str | None, *, create: bool = False) -> str:
    """The library that is meant: as named, as the settings say, or the nearest one."""
    from quire.library import default_url

    return _in_utf8(library or _settings().library or default_url(create=create))


def _settings() -> Config:
    """The settings in force, loaded once for a command. What the user should know goes to stderr."""
    from quire import config
    from quire.surfaces import render

    command = click.get_current_context()
    if command.obj is None:
        loaded = config.load()
        for note in loaded.notes:
            _note(render.one_line(note))
        command.obj = loaded.config
    settings: Config = command.obj
    return settings


def _safe(text: str) -> str:
    from quire.surfaces import render

    return render.line(text)


def _in_utf8(library: str) -> str:
    """The name of a library. Raises SettingError for one that no database takes."""
    from quire.surfaces import render

    if render.as_text(library) != library:
        raise SettingError("library", "its name is not UTF-8. Name another place: -L FILE")
    return library


def _bar() -> Any:
    from quire.surfaces import bar

    return bar.shown() if sys.stderr.isatty() else bar.hidden()


def _show_report(report: Report, as_json: bool) -> None:
    from quire.surfaces import render

    for failed in report.failed:
        _complain(f"{failed.source}: {failed.reason}")
    for warning in (*(f"skipped {s.source}: {s.reason}" for s in report.skipped), *report.warnings):
        _note(warning)
    if as_json:
        _print_json(render.report_json(report))
    else:
        click.echo(render.report_line(report))
    if skipped := render.skipped_line(report.kinds):
        _note(skipped)
    if report.missing:
        _note(render.missing_line(report.missing))


def _each(files: tuple[str, ...], settings: Config, do: Callable[[Tree], None]) -> int:
    """Do something with each document; say which failed and go on. The exit code."""
    from quire.surfaces import render
    from quire.tree import Tree

    code, done = render.DONE, 0
    for name in files:
        try:
            document = _read(name, settings)
            do(Tree(document, settings.tree))
        except QuireError as error:
            _complain(str(error))
            code = render.exit_code(error)
        else:
            done += 1
            for warning in document.warnings:
                _note(f"{document.path}: {warning}")
    return render.PARTLY if code and done else code


def _read(name: str, settings: Config) -> Document:
    from quire.document import Document
    from quire.sources import files

    if name == "-":
        source = sys.stdin.buffer.read()
        return Document.from_bytes(source, "stdin", settings=settings.document)
    return files.read(name, settings=settings.document)


def _print_chunks(tree: Tree, strategy: str, chunks: list[Chunk]) -> None:
    from quire.surfaces import render

    for chunk in chunks:
        where, what = render.chunk_lines(chunk, _width() - 40)
        click.secho(where, bold=True)
        click.echo(what)
    document = tree.document
    sizes = [chunk.tokens for chunk in chunks] or [0]
    click.secho(
        f"{render.line(document.path)}: {render.counted(len(chunks), 'chunk')} by {strategy}, "
        f"{render.counted(sum(sizes), 'token')} ({min(sizes):,} to {max(sizes):,} each), "
        f"{render.counted(len(document.source), 'byte')}, {render.counted(document.lines, 'line')}",
        fg="cyan",
    )


def _width() -> int:
    import shutil

    return max(60, shutil.get_terminal_size((100, 24)).columns)


def _print_json(value: Any) -> None:
    from quire.surfaces import render

    click.echo(render.as_json(value))


def _complain(text: str) -> None:
    from quire.surfaces import render

    click.secho(f"quire: {render.line(render.cut(text))}", fg="red", err=True)


def _note(text: str) -> None:
    from quire.surfaces import render

    click.secho(render.line(render.cut(text)), dim=True, err=True)
