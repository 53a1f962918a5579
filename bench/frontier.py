"""How good hybrid search is against what embedding costs, for bench/embed.py: numbers and a picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import quality
from bench.quality import SETS
from bench.sizes import STYLE, _rule, _text
from quire.config import DEFAULT, override
from quire.library import Library

LEFT_OUT = ("multilingual/zh",)  # in a language that no model here knows
QUESTIONS = 150  # of each set
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 70, 40, 70, 60


class Point(NamedTuple):
    """A model: the milliseconds of a processor that a text of 200 words takes, and a figure of each set."""

    name: str
    cost: float
    figures: dict[str, float]

    @property
    def quality(self) -> float:
        return statistics.fmean(self.figures.values())

    @property
    def documentation(self) -> float:
        """The mean of the two large sets of documentation."""
        return statistics.fmean(self.figures[name] for name in self.figures if name.startswith("docs_links"))


def figures_of(model: str, data: Path, folder: Path) -> dict[str, float]:
    """The first metric of each set, in hybrid search with a model, or by words."""
    place = folder / model.replace("/", "_").strip("_")[-40:]
    place.mkdir(exist_ok=True, parents=True)
    config, found = override(DEFAULT, {"embed": {"model": model}}), dict[str, float]()
    for name in (name for name in SETS if name not in LEFT_OUT):
        quality.index(name, data, place, config).close()
        questions = quality.some(SETS[name].questions(data / name), QUESTIONS)
        with Library.open(quality.url_of(name, place), config=config) as library:
            each = quality.ask(SETS[name].measures[0], library, questions).figures
        found[name] = statistics.fmean(next(iter(one.values())) for one in each)
    return found


def show(words: Point, points: Sequence[Point]) -> None:
    print("\n| model | CPU ms per text | " + " | ".join(words.figures) + " | mean | documentation |")
    print("|---" * (len(words.figures) + 4) + "|")
    for point in (words, *points):
        each = " | ".join(f"{value:.3f}" for value in point.figures.values())
        print(f"| {point.name} | {point.cost:.2f} | {each} | {_gain(point.quality, words.quality)}", end="")
        print(f" | {_gain(point.documentation, words.documentation)} |")


def _gain(value: float, words: float) -> str:
    return f"{value:.3f}" + (f" ({100 * (value - words):+.1f})" if value != words else "")


def draw(points: Sequence[Point], words: float) -> str:
    """The models as points, time across on a logarithmic scale, quality up. Every second name is below."""
    edges = min(point.cost for point in points), max(point.cost for point in points)
    across = math.floor(math.log10(edges[0])), math.ceil(math.log10(edges[1]))
    up = int(100 * words - 1), int(100 * max(point.quality for point in points) + 2)

    def x(cost: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(cost) - across[0]) / (across[1] - across[0])

    def y(mean: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (100 * mean - up[0]) / (up[1] - up[0])

    def parts() -> Iterator[str]:
        yield f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>'
        yield _text(LEFT, 28, "How good hybrid search is, against what a model costs", "title")
        yield _text(LEFT, 47, "Mean of the sets; processor milliseconds of a text of 200 words", "soft small")
        for power in range(across[0], across[1] + 1):
            yield _rule(x(10.0**power), TOP, x(10.0**power), HEIGHT - BOTTOM)
            yield _text(x(10.0**power), HEIGHT - BOTTOM + 18, f"{10.0**power:g} ms", "soft small", "middle")
        for step in range(up[0], up[1] + 1):
            yield _rule(LEFT, y(step / 100), WIDTH - RIGHT, y(step / 100))
            yield _text(LEFT - 8, y(step / 100) + 4, f"{step / 100:.2f}", "soft small", "end")
        yield _rule(LEFT, y(words), WIDTH - RIGHT, y(words), "peer")
        yield _text(WIDTH - RIGHT, y(words) - 6, "words alone", "small", "end")
        for number, point in enumerate(points, 1):
            place = x(point.cost), y(point.quality)
            yield f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="5" class="dot{number}"/>'
            yield _text(place[0], place[1] + (20 if number % 2 else -12), point.name, "small", "middle")

    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts(), "</svg>"]) + "\n"
