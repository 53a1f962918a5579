"""How much the cosine of each model counts beside words: try weights on every set, and choose the best.

    python -m bench.weights [--data FOLDER] [--cache FOLDER] [--limit-queries N] [--write]

The best match by words counts 1. Out comes a table for each model: the first metric of each set, as
bench/quality.py has it, for each weight. The weight with the best mean is chosen; --write puts it into
src/quire/fusion.py.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench import quality
from bench.quality import SETS
from quire import fusion
from quire.config import Config, override
from quire.library import Library

TRIED = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
LEFT_OUT = ("multilingual/zh",)  # in a language that the models do not know
QUESTIONS = 150  # of each set, unless more are asked for


def figures(
    name: str, url: str, model: str, questions: list[quality.Question], config: Config
) -> list[float]:
    """The first metric of a set, for each weight."""
    found = []
    measured = SETS[name].measures[0]
    for weight in TRIED:
        chosen = override(config, {"embed": {"model": model}, "search": {"meaning": weight}})
        with Library.open(url, config=chosen) as library:
            each = quality.ask(measured, library, questions).figures
        found.append(statistics.fmean(next(iter(one.values())) for one in each))
    return found


def show(model: str, table: dict[str, list[float]]) -> float:
    """Print a table; returns the weight with the best mean."""
    means = [statistics.fmean(column) for column in zip(*table.values(), strict=True)]
    print(f"\n| {model} |" + "".join(f" {weight:g} |" for weight in TRIED))
    print("|---" * (len(TRIED) + 1) + "|")
    for name, row in {**table, "mean": means}.items():
        print(f"| {name} |" + "".join(f" {value:.3f} |" for value in row))
    return TRIED[means.index(max(means))]


def write(weights: dict[str, float]) -> None:
    """Put the weights into the product."""
    place = Path(fusion.__file__)
    line = "WEIGHTS = {" + ", ".join(f'"{name}": {weight}' for name, weight in weights.items()) + "}"
    place.write_text(re.sub(r"^WEIGHTS = .*$", line, place.read_text("utf-8"), flags=re.MULTILINE), "utf-8")


def _tables(data: Path, folder: Path, config: Config, limit: int) -> Iterator[tuple[str, float]]:
    names = [name for name in SETS if name not in LEFT_OUT]
    for name in names:
        quality.index(name, data, folder, override(config, {"embed": {"model": "deep"}})).close()
    for model in fusion.WEIGHTS:
        table = dict[str, list[float]]()
        for name in names:
            questions = quality.some(SETS[name].questions(data / name), limit)
            table[name] = figures(name, quality.url_of(name, folder), model, questions, config)
        yield model, show(model, table)


def main() -> None:
    parser = quality.arguments(__doc__ or "")
    parser.add_argument("--limit-queries", type=int, default=QUESTIONS, metavar="N", help="of each set")
    parser.add_argument("--write", action="store_true", help="put the weights into src/quire/fusion.py")
    args, config = quality.parsed(parser)
    with quality.place(args.cache) as folder:
        found = dict(_tables(args.data, folder, config, args.limit_queries))
    print(f"\nThe best on the mean: {found}")
    if args.write:
        write(found)


if __name__ == "__main__":
    main()
