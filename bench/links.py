"""What the texts of links tell of the sections that they lead to: with and without them, on two sets.

    python bench/links.py [--data FOLDER] [--set NAME ...] [--way WAY ...] [--weight W ...]

The questions of these sets were made from links: the text of a link and the sentence around it ask for the
section that it leads to. So quality.py deletes those links from the library before anything is asked: all
links that stand in the sentence of any question, and all others of the same document that lead to the same
section. What is left are links in other sentences. Weight 0 is the search without link texts. strict nDCG@10
and the rest are as in quality.py. The points are the differences to weight 0, with their 95 % intervals;
raised and lowered are the numbers of questions that are answered better and worse.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench import quality
from quire import rank
from quire.config import DEFAULT, override
from quire.evaluation.measures import interval
from quire.library import Library

SETS = ("docs_links_kubernetes", "docs_links_rust")
WEIGHTS = (0.0, 0.1, 0.2, 0.4, 0.8)


def compared(
    name: str, url: str, questions: list[quality.Question], way: str, weights: Sequence[float]
) -> None:
    (measured,) = quality.SETS[name].measures
    first: list[float] = []
    for weight in weights:
        rank.ANCHOR = weight
        with Library.open(url, config=override(DEFAULT, quality.WAYS[way])) as library:
            asked = quality.ask(measured, library, questions)
        values = [figures["strict nDCG@10"] for figures in asked.figures]
        first = first or values
        gains = [100 * (now - before) for now, before in zip(values, first, strict=True)]
        low, high = interval(gains)
        moved = f"{sum(gain > 0 for gain in gains)} | {sum(gain < 0 for gain in gains)}"
        others = " | ".join(
            f"{statistics.fmean(figures[metric] for figures in asked.figures):.3f}"
            for metric in ("page nDCG@10", "share in 4,000")
        )
        points = f"{statistics.fmean(gains):+.2f} ({low:+.2f} to {high:+.2f})"
        mean = f"{statistics.fmean(values):.4f}"
        cells = (name, way, f"{weight:g}", mean, points, moved, others, f"{asked.milliseconds:.1f}")
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("shared/eval"))
    parser.add_argument("--set", dest="sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument(
        "--way", dest="ways", nargs="+", choices=list(quality.WAYS), default=["words", "static"]
    )
    parser.add_argument("--weight", dest="weights", type=float, nargs="+", default=WEIGHTS)
    parser.add_argument("--cache", type=Path, help="keep the libraries here")
    args = parser.parse_args()
    columns = (
        "set, way, weight, strict nDCG@10, points (95 %), raised, lowered, page nDCG@10, share in 4000, ms"
    )
    print("| " + " | ".join(columns.split(", ")) + " |\n" + "|---" * len(columns.split(", ")) + "|")
    for name in args.sets:
        questions = quality.SETS[name].questions(args.data / name)
        with quality.place(args.cache) as folder:
            quality.index(name, args.data, folder, override(DEFAULT, quality.WAYS["static"])).close()
            for way in args.ways:
                compared(name, quality.url_of(name, folder), questions, way, args.weights)


if __name__ == "__main__":
    main()
