"""`quire eval`: how well a library answers questions whose answers are known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.errors import SettingError
from quire.surfaces.cli import opening, options, output
from quire.surfaces.cli.group import quire

if TYPE_CHECKING:
    from quire.evaluation.scoring import Evaluation


@quire.command("eval")
@options.library_option
@click.argument("questions", required=False, type=options.file_name, metavar="[FILE]")
@click.option("--log", "from_log", is_flag=True, help="Ask what you searched for, with what you then read.")
@click.option("-c", "--collection", help="Look only in this collection.")
@click.option(
    "--compare", nargs=2, metavar="A B", help="Two settings, as in search.mode=keyword search.mode=hybrid."
)
@click.option("-n", "--limit", type=int, help="Ask at most so many questions.  [default: 200]")
@click.option("--seed", type=int, help="Another number chooses other questions.  [default: 20]")
@click.option("--baselines/--no-baselines", default=True, help="Also ask grep and BM25.  [default: on]")
@click.option("--misses", type=int, default=0, help="Show so many questions that were not answered.")
@click.option("--write", type=click.Path(path_type=Path), metavar="FILE", help="Save the questions, to edit.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Draw it as a web page.")
@options.json_flag
def evaluate(
    library: str | None,
    questions: str | None,
    from_log: bool,
    collection: str | None,
    compare: tuple[str, str] | None,
    limit: int | None,
    seed: int | None,
    baselines: bool,
    misses: int,
    write: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Measure how well searches find what answers questions in your documents.

    Without FILE, the questions are made from the links between documents: the sentence around a link asks
    for the section that it leads to. Such links and the places where they stand do not count.

    A FILE has a question on each line, with the address of what answers it, as quire search prints it:
    JSON, or CSV if it is called .csv.

    \b
      {"question": "How do I install it?", "answers": ["docs:guide.md#install"]}
      How do I install it?,docs:guide.md#install

    \b
    Examples:
      quire eval
      quire eval questions.jsonl --misses 10
      quire eval --compare search.mode=keyword search.mode=hybrid
      quire eval --write questions.jsonl --html eval.html
      quire eval --log --json
    """
    from quire.surfaces import chunk_page, evaluated, render

    if html:
        chunk_page.check_target(html, [questions] if questions else [])
    if write and write.exists():
        raise SettingError("--write", f"{write} is there already. Name a file that is not")
    with opening.open_library(library) as opened, output.progress_bar() as bar:
        given = {"collection": collection, "compare": compare or (), "limit": limit, "seed": seed}
        found = opened.evaluate(questions, from_log=from_log, baselines=baselines, progress=bar, **given)  # type: ignore[arg-type]
    if html:
        chunk_page.write(html, evaluated.evaluation_page(found))
        output.note(f"Wrote {html}")
    if write:
        _save(found, write)
    if as_json:
        output.print_json(evaluated.evaluation_json(found))
    else:
        _show(found, misses)
    for said in (*found.problems, *found.notes):
        output.note(said)
    sys.exit(render.PARTLY if found.problems else render.DONE)


def _show(found: Evaluation, misses: int) -> None:
    import shutil

    from quire.surfaces import evaluated, render

    for text in evaluated.evaluation_lines(found, shutil.get_terminal_size((100, 24)).columns):
        click.echo(text)
    missed = evaluated.missed(found)
    if misses > 0 and missed:
        click.echo(f"\nNot answered in ten results, {min(misses, len(missed)):,} of {len(missed):,}:")
    for question in missed[: max(0, misses)]:
        click.echo(f"  {render.line(question.text)}")
        click.secho(f"     {render.line(', '.join(question.addresses))}", dim=True)


def _save(found: Evaluation, file: Path) -> None:
    """Write the questions as a file that `quire eval` reads, which must be new."""
    from quire.errors import Unreadable
    from quire.surfaces import evaluated, render

    rows = (render.as_json(evaluated.question_row(one)) for one in found.questions)
    try:
        with file.open("x", encoding="utf-8") as target:
            target.writelines(f"{row}\n" for row in rows)
    except OSError as problem:
        raise Unreadable(str(file), f"cannot be written: {problem.strerror}") from None
    output.note(f"Wrote {file}")
