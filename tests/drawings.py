"""Draws docs/flow.svg and docs/house.svg, how Quire works and what lies on what: python -m tests.drawings"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
STYLE = """\
svg { --paper: #fff; --ink: #1f2328; --soft: #59636e; --rule: #b9c2cc; --box: #f3f6f9; --mark: #ddf4e4 }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --rule: #3d4650; --box: #161c24; --mark: #16301f }
}
.paper { fill: var(--paper) } .box { fill: var(--box); stroke: var(--rule) }
.mark { fill: var(--mark); stroke: var(--rule) } path { stroke: var(--soft); fill: none; stroke-width: 1.4 }
text { fill: var(--ink); font: 14px system-ui, sans-serif; text-anchor: middle }
.soft { fill: var(--soft); font-size: 12px } .left { text-anchor: start; font-weight: 600 }"""


class Step(NamedTuple):
    """A stage of the flow: the files that do it, what it does, and whether it keeps things."""

    files: str
    does: str
    is_kept: bool = False


ADDING = [
    Step("sources", "files, pages, clones"),
    Step("ingest/plan", "new, changed, gone"),
    Step("readers, document", "bytes to text"),
    Step("tree, chunkers", "headings, chunks"),
    Step("analyze, embed", "terms, vectors"),
    Step("stores", "the library", is_kept=True),
]
SEARCHING = [
    Step("query, spelling", "what is asked"),
    Step("stores", "by words, by meaning", is_kept=True),
    Step("fusion, rank", "one ranked list"),
    Step("reranking", "on request"),
    Step("merge", "chunks to sections"),
    Step("cite, snippet", "results"),
]
HOUSE = [  # from the highest layer to the lowest; each names what it does, and its files
    ("surfaces", "what people and programs touch", "surfaces integrations"),
    ("library", "the Python API", "library aio doctor watcher"),
    ("work", "keeping and finding", "sync ingest embedding searcher memory reading mapping copying"),
    ("judging", "ranking and citing", "rank reranking meaning anchors cite snippet freshness spelling"),
    ("keeping", "databases, models, the world", "stores embed sources"),
    (
        "pure stages",
        "no database, model or network",
        "fusion merge chunkers tree markdown html analyze query",
    ),
    ("ground", "settings, names, errors", "settings config policy trust address fingerprint errors"),
]
WIDTH, BOX, HEIGHT, GAP = 980, 148, 58, 16


def flow() -> str:
    """Two rows of boxes: adding, and searching."""
    parts = [*_row("Adding", ADDING, 40), *_row("Searching", SEARCHING, 170)]
    return _picture("How documents are added and searched", 250, parts)


def _row(title: str, steps: Sequence[Step], top: int) -> Iterator[str]:
    yield f'<text x="10" y="{top - 12}" class="left">{title}</text>'
    for number, step in enumerate(steps):
        left = 10 + number * (BOX + GAP)
        kind = "mark" if step.is_kept else "box"
        yield f'<rect x="{left}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="6" class="{kind}"/>'
        yield f'<text x="{left + BOX / 2}" y="{top + 25}">{escape(step.files)}</text>'
        yield f'<text x="{left + BOX / 2}" y="{top + 44}" class="soft">{escape(step.does)}</text>'
        if number:
            middle = top + HEIGHT / 2
            yield f'<path d="M{left - GAP + 2} {middle}h{GAP - 5}m-4 -4l4 4l-4 4"/>'


def house() -> str:
    """Floors, each of which may use only those below it."""
    parts = []
    for number, (name, does, files) in enumerate(HOUSE):
        top = 10 + number * (HEIGHT + 6)
        parts.append(f'<rect x="10" y="{top}" width="{WIDTH - 20}" height="{HEIGHT}" rx="6" class="box"/>')
        parts.append(f'<text x="26" y="{top + 25}" class="left">{name}</text>')
        parts.append(f'<text x="26" y="{top + 44}" class="soft" style="text-anchor:start">{does}</text>')
        parts.append(f'<text x="{WIDTH / 2 + 110}" y="{top + 35}">{" · ".join(files.split())}</text>')
    return _picture("The layers of Quire", 10 + len(HOUSE) * (HEIGHT + 6) + 4, parts)


def _picture(title: str, height: int, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    paper = f'<rect width="{WIDTH}" height="{height}" class="paper"/>'
    return (
        "\n".join([head, f"<title>{title}</title>", f"<style>{STYLE}</style>", paper, *parts, "</svg>"])
        + "\n"
    )


PICTURES = {"flow.svg": flow, "house.svg": house}

if __name__ == "__main__":
    for file, drawn in PICTURES.items():
        (DOCS / file).write_text(drawn(), "utf-8")
