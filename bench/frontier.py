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
    """A model: the milliseconds of a processor that a text of 200 words takes, and the mean of the sets."""

    name: str
    cost: float
    quality: float


def quality_of(model: str, data: Path, folder: Path) -> float:
    """The mean over the sets of the first metric of each, in hybrid search with a model, or by words."""
    place = folder / model.replace("/", "_").strip("_")[-40:]
    place.mkdir(exist_ok=True, parents=True)
    config, found = override(DEFAULT, {"embed": {"model": model}}), list[float]()
    for name in (name for name in SETS if name not in LEFT_OUT):
        quality.index(name, data, place, config).close()
        questions = quality.some(SETS[name].questions(data / name), QUESTIONS)
        with Library.open(quality.url_of(name, place), config=config) as library:
            each = quality.ask(SETS[name].measures[0], library, questions).figures
        found.append(statistics.fmean(next(iter(one.values())) for one in each))
    return statistics.fmean(found)


def show(points: Sequence[Point], words: float) -> None:
    print("\n| model | CPU ms per text | mean of the sets | points over words |\n|---|---|---|---|")
    print(f"| words | 0 | {words:.3f} | – |")
    for name, cost, mean in points:
        print(f"| {name} | {cost:.3f} | {mean:.3f} | {100 * (mean - words):+.1f} |")


def draw(points: Sequence[Point], words: float) -> str:
    """The models as points, time across on a logarithmic scale, quality up."""
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
        for number, (name, cost, mean) in enumerate(points, 1):
            yield f'<circle cx="{x(cost):.1f}" cy="{y(mean):.1f}" r="5" class="dot{number}"/>'
            yield _text(x(cost), y(mean) - 12, name, "small", "middle")

    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts(), "</svg>"]) + "\n"
