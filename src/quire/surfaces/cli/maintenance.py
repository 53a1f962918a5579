"""`quire status`, `copy`, `doctor`, `optimize`, `backup`, `restore`, `embed`, `promote`: tend a library."""

from __future__ import annotations

import os
import sys

import click

from quire.errors import EmbeddingError
from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

# What Ctrl-C leaves:
_COPIED = "What was copied is complete. To go on, type the same command."
_EMBEDDED = "What was embedded is kept. To go on, type the same command."
_REPAIRED = "To see how the library is now: quire doctor"


@quire.command()
@options.library_option
@click.option("--check", is_flag=True, help="Also check the file and its indexes, which takes time.")
@click.option("--deep", is_flag=True, help="Check, and compare the text of every document with its checksum.")
@options.json_flag
def status(library: str | None, check: bool, deep: bool, as_json: bool) -> None:
    """Say what is in a library, at once; with --check also whether its file is sound.

    `quire doctor` looks for all that can be wrong.

    \b
    Examples:
      quire status
      quire status --check
      quire status --json
    """
    from quire.surfaces import render

    with opening.open_library(library) as opened, output.progress_bar() as bar:
        counts, wrong = opened.status(), opened.store.check() if check or deep else None
        if deep and wrong is not None:
            repair = "To repair it: quire doctor --repair"
            wrong += [f"{address} is not what was written. {repair}" for address in opened.damaged(bar)]
        shown = render.status_json(opened.url, counts, wrong, opened.unembeddable())
    if as_json:
        output.print_json(shown)
    else:
        click.echo(output.with_library("\n".join(render.status_lines(shown))))
    sys.exit(render.FAILED if wrong else render.DONE)


@quire.command()
@options.library_option
@click.option(
    "--to",
    required=True,
    type=options.file_name,
    metavar="FILE|URL",
    help="The library to copy to. It is made if it is not there.",
)
@options.json_flag
def copy(library: str | None, to: str, as_json: bool) -> None:
    """Copy a library to another place, such as a team's PostgreSQL database, or back.

    An interrupted copy continues where it stopped. Quire compares what arrived with what it sent.

    \b
    Examples:
      quire copy --to postgresql://quire@db.example.com/quire
      quire copy -L postgresql://quire@db.example.com/quire --to ./backup.db
      quire copy --to ./backup.db --json
    """
    from dataclasses import asdict

    from quire.surfaces import render

    with opening.open_library(library) as opened, output.stopping(lambda: _COPIED) as bar:
        done = opened.copy(opening.in_utf8(to), progress=bar)
    if as_json:
        output.print_json(asdict(done))
    else:
        click.echo(render.copied_line(done))
    for address in done.damaged:
        output.note(
            f"{render.line(address)} is damaged, and was not copied. To repair it: quire doctor --repair"
        )
    sys.exit(render.PARTLY if done.damaged else render.DONE)


@quire.command()
@options.library_option
@click.option(
    "--repair", is_flag=True, help="Write a sound library from everything that can be read, and use it."
)
@options.json_flag
def doctor(library: str | None, repair: bool, as_json: bool) -> None:
    """Look for everything that can be wrong with a library: file, indexes, texts, vectors, sources, disk.

    A repair keeps the old file, and reads damaged documents again from their sources.

    \b
    Examples:
      quire doctor
      quire doctor --repair
    """
    from dataclasses import asdict

    from quire import doctor as doctors
    from quire.surfaces import render, tended

    url = opening.library_url(library)
    with output.stopping(lambda: _REPAIRED if repair else "") as bar:
        done = doctors.repair(url, opening.load_settings(), bar) if repair else None
        with opening.open_library(library) as opened:
            found, versions = doctors.examine(opened, bar), doctors.versions(opened)
    if as_json:
        findings, repaired = [asdict(finding) for finding in found], asdict(done) if done else None
        output.print_json({"findings": findings, "repaired": repaired, "versions": versions})
    else:
        click.echo(output.with_library("\n".join(tended.doctor_lines(found, done, versions))))
    is_damaged = any(finding.part in ("file", "document") for finding in found)
    has_lost = done is not None and bool(done.lost or done.notes)
    sys.exit(render.FAILED if is_damaged else render.PARTLY if has_lost else render.DONE)


@quire.command()
@options.library_option
@options.json_flag
def optimize(library: str | None, as_json: bool) -> None:
    """Make a library small and fast: merge its index, and give back the space of what was deleted.

    Watching programs and servers give back space by themselves when they are idle. A library that an older
    Quire made is written anew, which needs as much space again for a while. On PostgreSQL the server
    vacuums and analyzes the library's tables.

    \b
    Examples:
      quire optimize
      quire optimize -L postgresql://quire@db.example.com/quire --json
    """
    from quire.surfaces import tended

    with opening.open_library(library) as opened:
        done = opened.optimize()
    if as_json:
        output.print_json(tended.optimized_json(done))
    else:
        click.echo(tended.optimized_line(done))
    for told in done.notes:
        output.note(f"{told}.")


@quire.command()
@options.library_option
@click.argument("file", type=options.file_name)
def backup(library: str | None, file: str) -> None:
    """Write a backup of a library to a new file, even while others use the library.

    A backup is a library itself: any command can open it with -L.

    \b
    Examples:
      quire backup docs-monday.db
      quire search "rolling back" -L docs-monday.db
    """
    from quire.surfaces import render

    def said() -> str:
        return "The backup is complete." if os.path.lexists(file) else "There is no backup."

    with opening.open_library(library) as opened, output.stopping(said):
        place = opened.backup(file)
    output.note(f"Backed up to {render.line(place)}")


@quire.command()
@options.library_option
@click.argument("file", type=options.file_name)
def restore(library: str | None, file: str) -> None:
    """Replace a library with a backup. The old library is kept beside it.

    Programs that have the library open continue with the backup.

    \b
    Examples:
      quire restore docs-monday.db
    """
    from quire.library import Library
    from quire.surfaces import render

    url = opening.library_url(library)
    with output.stopping(lambda: "To see which library is there: quire status"):
        kept = Library.restore(url, file)
    output.note(f"Restored {render.line(url)}")
    if kept:
        output.note(f"What was there is kept in {render.line(kept)}")


@quire.command()
@options.library_option
@click.option(
    "--model",
    help="deep, static, ollama/NAME, openai/NAME or a folder with an ONNX model. By default the library's.",
)
@options.json_flag
def embed(library: str | None, model: str | None, as_json: bool) -> None:
    """Embed the chunks that are not embedded yet, or all chunks with another model.

    `quire add` does this by itself if it takes less than a minute. Until nearly all of what is searched is
    embedded, searches use the instant model (static), or the vectors of the earlier model. What is embedded
    stays, so an interrupted run continues where it stopped.

    \b
    Examples:
      quire embed
      quire embed --model ollama/mxbai-embed-large
      QUIRE_EMBED_KEY=... quire embed --model openai/text-embedding-3-small
    """
    from quire.sources.files import Skipped
    from quire.surfaces import render

    with opening.open_library(library) as opened:
        with output.stopping(lambda: _EMBEDDED) as bar:
            done = opened.embed(model, progress=bar)
        refused = opened.unembeddable().items()
    failed = [Skipped(address, why, EmbeddingError.code) for address, why in refused]
    for one in failed:
        output.complain(render.failure_json(one))
    if done.searched_with != done.model:
        output.note(f"Searches still use {done.searched_with}: {done.model} has not embedded everything.")
    if as_json:
        output.print_json(render.embedded_json(done, failed))
    else:
        click.echo(render.embedded_line(done))
    sys.exit(render.PARTLY if done.failed else render.DONE)


@quire.command()
@options.library_option
@click.argument("address", metavar="ADDRESS|ID")
@click.argument("level")
@options.json_flag
def promote(library: str | None, address: str, level: str, as_json: bool) -> None:
    """Make a document standard, important or critical, by address or id.

    Important documents rank higher. Critical documents are in every context pack. External documents cannot
    be promoted.

    \b
    Examples:
      quire promote docs:rules.md critical
      quire promote docs:guide.md important
      quire promote docs:guide.md standard
    """
    from quire.surfaces import render

    with opening.open_library(library) as opened:
        row = opened.promote(address, level)
    if as_json:
        output.print_json(render.document_json(row))
    else:
        click.echo(f"{render.line(row.address)} is {row.promotion}.")
