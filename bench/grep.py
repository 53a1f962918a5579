"""How well grep finds the page that answers, beside Quire: python -m bench.grep [--set NAME …]

In come the sets of bench/quality.py whose answers are sections; out comes a Markdown table. For grep, pages
are in the order in which a patient person would look at them: those with most of the question's different
words first (whole words of three letters or more, whatever their case), and of these the shortest. The
text that a question was taken from is blanked. bench/quality.py gives Quire's figures for the same questions.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.quality import SETS, Question, arguments, read_spans, some
from quire.evaluation.measures import TOP, graded_ndcg, interval

_WORD = re.compile(r"\w{3,}")
NAMES = ("docs_links_kubernetes", "docs_links_rust")  # the other sets have one page, or none


def pages(folder: Path) -> dict[str, str]:
    """The text of every page of a set."""
    root = folder / SETS[folder.name].documents
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8") for path in found}


def ranked(question: Question, texts: dict[str, str], words: dict[str, frozenset[str]]) -> list[str]:
    """The pages in the order in which grep leads to them."""
    asked = frozenset(_WORD.findall(question.text.lower()))
    shared = {name: len(asked & words[name]) for name in texts}
    for span in question.exclude:
        left = texts[span.document][: span.start] + texts[span.document][span.end :]
        shared[span.document] = len(asked.intersection(_WORD.findall(left.lower())))
    return sorted(texts, key=lambda name: (-shared[name], len(texts[name])))


def measured(folder: Path, limit: int | None) -> list[float]:
    """Page nDCG@10 of every question."""
    texts = pages(folder)
    words = {name: frozenset(_WORD.findall(text.lower())) for name, text in texts.items()}
    questions = some(read_spans(folder), limit)
    return [
        graded_ndcg(
            ranked(question, texts, words)[:TOP], dict.fromkeys((gold.document for gold in question.gold), 1)
        )
        for question in questions
    ]


def table(rows: Sequence[tuple[str, list[float]]]) -> str:
    """A row for each set."""
    shown = ["| set | grep, page nDCG@10 | 95 % |", "|---|---|---|"]
    for name, values in rows:
        low, high = interval(values)
        shown.append(f"| {name} | {statistics.fmean(values):.3f} | {low:.3f}–{high:.3f} |")
    return "\n".join(shown)


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--set", nargs="+", choices=NAMES, default=NAMES, dest="sets")
    parser.add_argument("--limit-queries", type=int, metavar="N", help="ask only so many of each set")
    args: argparse.Namespace = parser.parse_args()
    print(table([(name, measured(args.data / name, args.limit_queries)) for name in args.sets]))


if __name__ == "__main__":
    main()
