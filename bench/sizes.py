"""How large chunks should be, and how much their neighbours should count: a table and bench/sizes.svg.

    python -m bench.sizes [--data FOLDER] [--cache FOLDER] [--setting NAME=VALUE ...]

In come sets of bench/quality.py; out comes a Markdown table with a line for each chunk.auto.max_tokens
and search.neighbours, all in hybrid mode, and a drawing of the chroma_chunking columns. A size is
indexed and embedded once; neighbours change the ranking only. Always: the same sets and settings give
the same figures.

recall, precision, IoU  of the five best chunks on chroma_chunking, as bench/quality.py has them
precision-Ω             the precision of exactly those chunks that hold some of the answer: what the
                        cutting alone allows
frontier                no other line has more of recall or IoU and as much of the other
corner                  of 1,000 resamples of the questions, the share in which recall and IoU are both
                        in the corner aimed at; 50 % is a setting that only just gets there, and the best
                        of many lines looks better than it is
the other columns       the metrics of the other sets

The published points are of all five corpora of that benchmark; ours are of the three in the set.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from operator import or_
from pathlib import Path
from typing import NamedTuple

from bench import quality
from bench.quality import Figures, Question
from quire.config import Config, override
from quire.evaluation.measures import RESAMPLES, TextSpan
from quire.library import Library
from quire.stores import MAX_CHUNKS

SIZES = (200, 240, 280, 300, 320, 340, 360, 400, 500, 600, 800, 1200)
NEIGHBOURS = (0.0, 0.05, 0.1, 0.2, 0.3)
CHROMA = "chroma_chunking"
OTHERS = ("emanual", "codebase_chunks", "cranfield")
RECALL, IOU = 0.919, 0.08  # the corner: the best published recall, and the best published IoU


class Line(NamedTuple):
    """What one setting gives."""

    size: int
    neighbours: float
    chunks: int
    figures: Figures  # means: of chroma_chunking by metric, of the others by set and metric
    corner: float


# ---------------------------------------------------------------------------------------- measuring


def sweep(data: Path, folder: Path, config: Config) -> Iterator[Line]:
    """A line for each setting, size by size."""
    for size in SIZES:
        print(f"{size} …", file=sys.stderr)
        cut = override(config, {"chunk": {"auto": {"max_tokens": size}}})
        place = folder / str(size)
        place.mkdir(exist_ok=True)
        others = [_others(name, data, place, cut) for name in OTHERS]
        for line, *more in zip(_chroma(data, place, cut, size), *others, strict=True):
            yield line._replace(figures=reduce(or_, more, line.figures))


def _weighed(library: Library) -> Iterator[float]:
    """Each weight of neighbours, set in a library."""
    for share in NEIGHBOURS:
        library.config = override(library.config, {"search": {"neighbours": share}})
        yield share


def _chroma(data: Path, folder: Path, config: Config, size: int) -> list[Line]:
    questions = quality.SETS[CHROMA].questions(data / CHROMA)
    way = quality.SETS[CHROMA].measures[-1]  # of chunks
    lines = []
    with quality.index(CHROMA, data, folder, config) as library:
        chunks = list(_spans(library))
        omega = {"precision-Ω": statistics.fmean(_omega(chunks, question) for question in questions)}
        for share in _weighed(library):
            figures = quality.ask(way, library, questions).figures
            lines.append(Line(size, share, len(chunks), _means(figures) | omega, corner(figures)))
    return lines


def _others(name: str, data: Path, folder: Path, config: Config) -> list[Figures]:
    questions = quality.SETS[name].questions(data / name)
    found = []
    with quality.index(name, data, folder, config) as library:
        for _ in _weighed(library):
            asked = (quality.ask(way, library, questions) for way in quality.SETS[name].measures)
            means = reduce(or_, (_means(one.figures) for one in asked))
            found.append({f"{name}, {metric}": mean for metric, mean in means.items()})
    return found


def _spans(library: Library) -> Iterator[TextSpan]:
    """Every chunk there is."""
    for row in library.documents():
        first = row.seq * MAX_CHUNKS
        for chunk in library.store.chunks(range(first, first + row.chunk_count)).values():
            yield TextSpan(f"{row.collection}/{row.path}", chunk.start, chunk.end)


def _omega(chunks: Sequence[TextSpan], question: Question) -> float:
    holding = [chunk for chunk in chunks if any(chunk.overlaps(gold) for gold in question.gold)]
    return quality.judge_characters(holding, question)["precision"]


def _means(figures: Sequence[Figures]) -> Figures:
    return {metric: statistics.fmean(some[metric] for some in figures) for metric in figures[0]}


def corner(figures: Sequence[Figures]) -> float:
    """The share of resamples of the questions that are in the corner."""
    draw = random.Random(quality.SEED)
    resamples = (draw.choices(figures, k=len(figures)) for _ in range(RESAMPLES))
    return statistics.fmean(in_corner(_means(some)) for some in resamples)


def in_corner(figures: Figures) -> bool:
    return figures["recall"] >= RECALL and figures["IoU"] >= IOU


def on_frontier(line: Line, lines: Iterable[Line]) -> bool:
    recall, iou = _place(line)
    return not any(r >= recall and i >= iou and (r, i) != (recall, iou) for r, i in map(_place, lines))


def _place(line: Line) -> tuple[float, float]:
    return line.figures["recall"], line.figures["IoU"]


def show(lines: Sequence[Line]) -> None:
    columns = ["max_tokens", "neighbours", "chunks", *lines[0].figures, "frontier", "corner"]
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    for line in lines:
        figures = " | ".join(f"{value:.3f}" for value in line.figures.values())
        frontier = "yes" if on_frontier(line, lines) else ""
        cells = f"{line.size} | {line.neighbours:g} | {line.chunks:,} | {figures}"
        print(f"| {cells} | {frontier} | {line.corner:.0%} |")


# ------------------------------------------------------------------------------------------ drawing


class Peer(NamedTuple):
    """A published point, and where its name has room: after it, before it (end) or below it (middle)."""

    name: str
    model: str
    recall: float
    iou: float
    side: str = "start"


_LARGE, _MINILM = "text-embedding-3-large", "all-MiniLM-L6-v2"
PEERS = (  # from the table of the benchmark's own report
    Peer("Recursive 250/0", _MINILM, 0.785, 0.054),
    Peer("Token 250/125", _MINILM, 0.824, 0.035),
    Peer("Cluster 200", _MINILM, 0.752, 0.072),
    Peer("Recursive 400/0", _LARGE, 0.895, 0.036),
    Peer("Cluster 400", _LARGE, 0.913, 0.045),
    Peer("Cluster 200", _LARGE, 0.873, 0.080, "middle"),
    Peer("LLM GPT-4o", _LARGE, 0.919, 0.039, "end"),
)
WIDTH, HEIGHT = 960, 640
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 60, 90  # margins
STYLE = """
svg { --paper: #fff; --ink: #1f2328; --soft: #59636e; --rule: #d8dee4; --goal: #1a7f3722; --edge: #1a7f37;
  --n0: #6e7781; --n1: #0969da; --n2: #0a7d72; --n3: #bc4c00; --n4: #8250df; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --rule: #30363d; --goal: #3fb95026;
    --edge: #3fb950; --n0: #9198a1; --n1: #58a6ff; --n2: #39c5b6; --n3: #f0883e; --n4: #b388ff; } }
text { font: 13px system-ui, sans-serif; fill: var(--ink); stroke: var(--paper); stroke-width: 3px;
  stroke-linejoin: round; paint-order: stroke; } .soft { fill: var(--soft); }
.small { font-size: 12px; } .title { font-size: 17px; font-weight: 600; } .paper { fill: var(--paper); }
.rule { stroke: var(--rule); } .goal { fill: var(--goal); stroke: var(--edge); stroke-dasharray: 4 4; }
.edge { fill: var(--edge); } .line { fill: none; stroke-width: 1.8; } .peer { stroke: var(--ink); }
.full { fill: var(--ink); } .hollow { fill: var(--paper); }
""" + "".join(f".n{i} {{ stroke: var(--n{i}); }} .dot{i} {{ fill: var(--n{i}); }}\n" for i in range(5))


class Axes(NamedTuple):
    """Where IoU and recall are on the paper."""

    iou: tuple[float, float]
    recall: tuple[float, float]

    def x(self, iou: float) -> float:
        low, high = self.iou
        return LEFT + (WIDTH - LEFT - RIGHT) * (iou - low) / (high - low)

    def y(self, recall: float) -> float:
        low, high = self.recall
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (recall - low) / (high - low)


def draw(lines: Sequence[Line], settings: str) -> str:
    """The lines and what others published, as SVG."""
    axes = _axes(lines)
    parts = [*_frame(axes, settings), *_goal(axes)]
    for number, share in enumerate(NEIGHBOURS):
        parts += _curve(axes, number, [line for line in lines if line.neighbours == share])
    parts += [part for peer in PEERS for part in _peer(axes, peer)]
    parts += [*_sizes(axes, lines), *_legend()]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


def _axes(lines: Sequence[Line]) -> Axes:
    """Room for every point: steps of 0.01 across and 0.05 up."""
    across = [*(line.figures["IoU"] for line in lines), *(peer.iou for peer in PEERS)]
    up = [*(line.figures["recall"] for line in lines), *(peer.recall for peer in PEERS)]
    return Axes(
        (int(100 * min(across) - 0.5) / 100, int(100 * max(across) + 1.5) / 100),
        (int(20 * min(up) - 0.2) / 20, 1.0),
    )


def _text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{said}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str = "rule") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _frame(axes: Axes, settings: str) -> Iterator[str]:
    low, high, right = HEIGHT - BOTTOM, TOP, WIDTH - RIGHT
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>'
    yield _text(LEFT, 28, "Five chunks of chroma_chunking: recall against IoU", "title")
    yield _text(LEFT, 47, f"Numbers at points are chunk.auto.max_tokens; {settings}", "soft small")
    for step in range(round(100 * axes.iou[0]), round(100 * axes.iou[1]) + 1):
        x = axes.x(step / 100)
        yield _rule(x, low, x, high)
        yield _text(x, low + 18, f"{step / 100:.2f}", "soft small", "middle")
    for step in range(round(20 * axes.recall[0]), round(20 * axes.recall[1]) + 1):
        y = axes.y(step / 20)
        yield _rule(LEFT, y, right, y)
        yield _text(LEFT - 8, y + 4, f"{step / 20:.2f}", "soft small", "end")
    yield _text(right, low + 36, "IoU →", anchor="end")
    yield _text(12, TOP - 8, "recall ↑")


def _goal(axes: Axes) -> Iterator[str]:
    x, y = axes.x(IOU), axes.y(RECALL)
    size = f'width="{WIDTH - RIGHT - x:.1f}" height="{y - TOP:.1f}"'
    yield f'<rect x="{x:.1f}" y="{TOP}" {size} class="goal"/>'
    yield _text(WIDTH - RIGHT - 8, TOP + 18, f"aim: recall ≥ {RECALL}, IoU ≥ {IOU}", "edge", "end")


def _curve(axes: Axes, number: int, lines: Sequence[Line]) -> Iterator[str]:
    places = [(axes.x(line.figures["IoU"]), axes.y(line.figures["recall"]), line) for line in lines]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    yield f'<polyline points="{path}" class="line n{number}"/>'
    for x, y, line in places:
        said = f"{line.size} tokens, neighbours {line.neighbours:g}: recall {line.figures['recall']:.3f}"
        tip = f"<title>{said}, IoU {line.figures['IoU']:.3f}</title>"
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" class="dot{number}">{tip}</circle>'


def _sizes(axes: Axes, lines: Sequence[Line]) -> Iterator[str]:
    """Each size once, over the highest of its points."""
    for size, some in groupby(lines, key=lambda line: line.size):
        best = max(some, key=lambda line: line.figures["recall"]).figures
        yield _text(axes.x(best["IoU"]), axes.y(best["recall"]) - 8, str(size), "small", "middle")


def _diamond(x: float, y: float, kind: str) -> str:
    return f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6-6z" class="peer {kind}"/>'


def _peer(axes: Axes, peer: Peer) -> Iterator[str]:
    x, y = axes.x(peer.iou), axes.y(peer.recall)
    yield _diamond(x, y, "full" if peer.model == _LARGE else "hollow")
    right, down = {"start": (10, 4), "end": (-10, 4), "middle": (0, 20)}[peer.side]
    yield _text(x + right, y + down, peer.name, "small", peer.side)


def _legend() -> Iterator[str]:
    y, x = HEIGHT - 40, LEFT
    yield _text(x, y, "Quire, neighbours:", "small")
    for number, share in enumerate(NEIGHBOURS):
        at = x + 125 + 78 * number
        yield _rule(at, y - 4, at + 26, y - 4, f"line n{number}")
        yield _text(at + 32, y, f"{share:g}", "small")
    y += 24
    yield _text(x, y, "Published, all five corpora (Quire: three of them):", "small")
    for kind, model, at in (("full", _LARGE, x + 310), ("hollow", _MINILM, x + 490)):
        yield _diamond(at, y - 4, kind)
        yield _text(at + 12, y, model, "small")


def main() -> None:
    args, config = quality.parsed(quality.arguments(__doc__ or ""))
    with quality.place(args.cache) as folder:
        lines = list(sweep(args.data, folder, config))
    show(lines)
    settings = ", ".join(args.setting) or "all else as it is by default"
    Path(__file__).with_name("sizes.svg").write_text(draw(lines, settings), encoding="utf-8")


if __name__ == "__main__":
    main()
