"""An evaluation as text with bars, as JSON, and as one self-contained web page with a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from quire.surfaces.render import counted, line, safe
from quire.version import VERSION

if TYPE_CHECKING:
    from quire.evaluation.questions import EvalQuestion
    from quire.evaluation.scoring import Difference, Evaluation, Score

_LEAST_WIDTH, _MOST_WIDTH = 20, 60  # characters of a bar
_BAR, _ROW, _LEFT = 400, 34, 150  # pixels of the drawing: of the scale, of a row, and of the names
Interval = tuple[float, float]


def evaluation_json(found: Evaluation) -> dict[str, Any]:
    """An evaluation, with the rank and the figure of every question in each way."""
    return {
        "source": found.source,
        "questions": len(found.questions),
        "scores": [_score_json(one) for one in found.scores],
        "difference": _difference_json(found.difference) if found.difference else None,
        "asked": [_question_json(found, number) for number in range(len(found.questions))],
        "problems": list(found.problems),
        "notes": list(found.notes),
    }


def _score_json(score: Score) -> dict[str, Any]:
    return {
        "name": score.name,
        "used": score.used,
        "strict_ndcg_at_10": round(score.ndcg, 4),
        "strict_ndcg_at_10_interval": [round(edge, 4) for edge in score.ndcg_interval],
        "found_at_10": round(score.found, 4),
        "found_at_10_interval": [round(edge, 4) for edge in score.found_interval],
        "characters": round(score.characters),
        "milliseconds": round(score.milliseconds, 1),
    }


def _difference_json(one: Difference) -> dict[str, Any]:
    return {
        "first": one.first,
        "second": one.second,
        "points": round(one.points, 2),
        "interval": [round(edge, 2) for edge in one.interval],
        "better": one.better,
        "worse": one.worse,
        "is_noise": one.is_noise,
    }


def _question_json(found: Evaluation, number: int) -> dict[str, Any]:
    question = found.questions[number]
    return {
        "question": question.text,
        "answers": list(question.addresses),
        "ranks": {score.name: score.ranks[number] for score in found.scores},
        "strict_ndcg_at_10": {score.name: round(score.values[number], 4) for score in found.scores},
    }


def question_row(question: EvalQuestion) -> dict[str, Any]:
    """A question as a line of a questions file, which asks it again in the same way."""
    row: dict[str, Any] = {"question": question.text, "answers": list(question.addresses)}
    pairs = zip(question.exclude, question.beside, strict=True)
    exclude = [
        {
            "address": place.document,
            "start": beside.start,
            "end": beside.end,
            "section_start": place.start,
            "section_end": place.end,
        }
        for place, beside in pairs
    ]
    return row | ({"exclude": exclude} if exclude else {})


# ------------------------------------------------------------------------------------------- text


def evaluation_lines(found: Evaluation, width: int) -> Iterator[str]:
    """An evaluation as a table, with bars; then the difference, if two settings are compared."""
    yield line(f"{asked_line(found)}:")
    yield ""
    rows = [["", "strict nDCG@10", "found@10", "characters", ""]]
    rows += [_cells(score) for score in found.scores]
    sizes = [max(map(len, ("nDCG", *column))) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *cells = (cell.ljust(size) for cell, size in zip(row, sizes, strict=True))
        yield f"{first}  {'  '.join(cells)}".rstrip()
    yield ""
    yield from _bars(found.scores, max(_LEAST_WIDTH, min(_MOST_WIDTH, width - sizes[0] - 4)), sizes[0])
    if found.difference:
        yield ""
        yield from difference_lines(found.difference)


def asked_line(found: Evaluation) -> str:
    """How many questions were asked, and where they come from."""
    sources = {"links": "made from the links between documents", "log": "from the log of your searches"}
    return f"{counted(len(found.questions), 'question')} {sources.get(found.source) or f'of {found.source}'}"


def _cells(score: Score) -> list[str]:
    ndcg, found = (_figure(*pair) for pair in _figures(score))
    return [line(score.name), ndcg, found, f"{score.characters:,.0f}", score.used]


def _figures(score: Score) -> tuple[tuple[float, Interval], tuple[float, Interval]]:
    return (score.ndcg, score.ndcg_interval), (score.found, score.found_interval)


def _figure(value: float, between: Interval) -> str:
    return f"{value:.3f} ({between[0]:.3f}–{between[1]:.3f})"


def _bars(scores: Sequence[Score], width: int, names: int) -> Iterator[str]:
    scale = "0".ljust(width // 2) + "0.5".ljust(width - width // 2 - 1) + "1"
    yield f"{'nDCG'.ljust(names)}  {scale}".rstrip()
    for score in scores:
        yield f"{line(score.name).ljust(names)}  {_bar(score.ndcg, score.ndcg_interval, width)}"


def _bar(value: float, between: Interval, width: int) -> str:
    """A bar as long as a value, and the interval around its end."""
    low, at, high = (min(width - 1, int(edge * width)) for edge in (between[0], value, between[1]))
    signs = ["█"] * low + ["─"] * (high - low + 1)
    signs[low], signs[high] = "├", "┤"
    signs[at] = "┼"
    return "".join(signs)


def difference_lines(one: Difference) -> Iterator[str]:
    """What two settings differ by, and whether that is more than chance."""
    low, high = one.interval
    counts = f"{counted(one.better, 'question')} better, {one.worse:,} worse"
    points = f"{one.points:+.1f} points of strict nDCG@10 (95 %: {low:+.1f} to {high:+.1f})"
    yield line(f"{one.second} against {one.first}: {points}; {counts}.")
    if one.is_noise:
        yield "Chance may explain this difference: the interval holds 0."
    else:
        better, worse = (one.second, one.first) if one.points > 0 else (one.first, one.second)
        yield line(f"This is more than chance: {better} is better than {worse} on these questions.")


def missed(found: Evaluation) -> list[EvalQuestion]:
    """The questions that the first way did not answer in ten results."""
    pairs = zip(found.questions, found.scores[0].ranks, strict=True)
    return [question for question, rank in pairs if rank is None]


# ------------------------------------------------------------------------------------------- page


def evaluation_page(found: Evaluation) -> str:
    """An evaluation as a page that needs nothing else."""
    page = Template(files("quire.surfaces").joinpath("eval_page.html").read_text("utf-8"))
    said = difference_lines(found.difference) if found.difference else ()
    return page.substitute(
        version=VERSION,
        asked=_html(asked_line(found)),
        difference="".join(f"<p>{_html(text)}</p>" for text in said),
        drawings="\n".join(_drawings(found.scores)),
        rows="\n".join(_table_row(score) for score in found.scores),
        missed="\n".join(_missed_row(question) for question in missed(found)),
        notes="".join(f"<li>{_html(note)}</li>" for note in (*found.notes, *found.problems)),
    )


def _html(text: str) -> str:
    return escape(safe(text))


def _drawings(scores: Sequence[Score]) -> Iterator[str]:
    titles = "Strict nDCG@10", "Share of the answers in the first ten results"
    for place, title in enumerate(titles):
        rows = [(score.name, *_figures(score)[place]) for score in scores]
        yield f"<h2>{title}</h2>{drawing(title, rows)}"


def drawing(title: str, rows: Sequence[tuple[str, float, Interval]]) -> str:
    """Figures from 0 to 1 as an SVG: a bar for each, with its interval."""
    height, width = _ROW * len(rows) + 24, _LEFT + _BAR + 60
    parts = "".join(_svg_row(number, *row) for number, row in enumerate(rows))
    scale = "".join(_svg_tick(tenth / 10, height) for tenth in range(0, 11, 2))
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{_html(title)}">'
    return f"{head}{scale}{parts}</svg>"


def _svg_tick(value: float, height: int) -> str:
    at = _x(value)
    return (
        f'<line class="tick" x1="{at}" x2="{at}" y1="0" y2="{height - 20}"/>'
        f'<text class="small" x="{at}" y="{height - 6}" text-anchor="middle">{value:g}</text>'
    )


def _svg_row(number: int, name: str, value: float, between: Interval) -> str:
    middle = number * _ROW + _ROW / 2
    low, high = map(_x, between)
    ends = "".join(f"M{edge},{middle - 5}v10" for edge in (low, high))
    return (
        f'<text x="{_LEFT - 8}" y="{middle + 4}" text-anchor="end">{_html(name)}</text>'
        f'<rect x="{_LEFT}" y="{middle - 9}" width="{_x(value) - _LEFT:.1f}" height="18"/>'
        f'<path d="M{low},{middle}H{high}{ends}"/>'
        f'<text x="{high + 6:.1f}" y="{middle + 4}">{value:.3f}</text>'
    )


def _x(value: float) -> float:
    return round(_LEFT + _BAR * value, 1)


def _table_row(score: Score) -> str:
    cells = [_html(cell) for cell in (*_cells(score), f"{score.milliseconds:,.1f}")]
    return f"<tr><th>{cells[0]}</th>{''.join(f'<td>{cell}</td>' for cell in cells[1:])}</tr>"


def _missed_row(question: EvalQuestion) -> str:
    return f"<tr><td>{_html(question.text)}</td><td>{_html(', '.join(question.addresses))}</td></tr>"
