"""Writes the tables and plots of docs/performance.md from bench/README.md: python -m bench.summary

In comes bench/README.md, where every script's figures are recorded; out go tables and pictures of the most
important ones. Nothing is measured here, and no figure is typed twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "bench" / "README.md"
PAGE = ROOT / "docs" / "performance.md"
SETS = {  # what people know them as
    "docs_links_kubernetes": "Kubernetes documentation",
    "docs_links_rust": "Rust books",
    "emanual": "a phone's manual",
    "codebase_chunks": "source code",
    "scifact": "science, in abstracts",
    "cranfield": "aerodynamics, in abstracts",
}
JUDGED = ("strict nDCG@10", "found@10", "document nDCG@10")
WAYS = {"words": "by words alone", "static": "at once", "deep": "once all is embedded"}
QUERIES = {"three mixed words": "three words", "seven words": "seven words", "a phrase": "a phrase"}
ENGINES = {  # the columns, in order; those that were not measured are left out
    "words": "Quire, by words",
    "hybrid": "Quire, with meaning",
    "raw FTS5": "SQLite FTS5",
    "tantivy": "tantivy",
}
_SAME = {"library.search": "words"}  # what earlier records call it
INDEXERS = {
    "quire Library.add": "Quire, by words",
    "quire Library.add with meaning": "Quire, with meaning",
    "bare FTS5": "SQLite FTS5",
    "tantivy": "tantivy",
    "lancedb": "LanceDB",
    "llama_index docstore + BM25": "LlamaIndex BM25",
}

STYLE = """\
svg { --paper: #fff; --ink: #1f2328; --soft: #59636e; --rule: #d8dee4;
  --a: #9aa7b4; --b: #5b8def; --c: #1a7f37; --d: #bc6c00 }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --rule: #30363d;
    --a: #6b7683; --b: #6ea8fe; --c: #3fb950; --d: #e0a03b }
}
.a { fill: var(--a) } .b { fill: var(--b) } .c { fill: var(--c) } .d { fill: var(--d) }
.paper { fill: var(--paper) } .rule { stroke: var(--rule) }
text { fill: var(--ink); font: 13px system-ui, sans-serif } .title { font-size: 16px; font-weight: 600 }
.soft { fill: var(--soft) } .small { font-size: 12px }"""
WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 720, 210, 70, 14, 14, 78


class Table(NamedTuple):
    """A table of bench/README.md: the line above it, and its rows as columns by name."""

    caption: str
    rows: list[dict[str, str]]


class Bars(NamedTuple):
    """A group of bars, with what is written beside each."""

    name: str
    values: list[float]
    labels: list[str]


def section(title: str) -> str:
    """The part of bench/README.md under a heading that begins with a title."""
    text = FIGURES.read_text("utf-8")
    start = re.search(rf"^## {re.escape(title)}.*\n", text, re.MULTILINE)
    assert start, title
    return re.split(r"^## ", text[start.end() :], maxsplit=1, flags=re.MULTILINE)[0]


def tables(title: str) -> list[Table]:
    """The tables under a heading."""
    found = re.finditer(r"(?:^(.+)\n\n)?((?:^\|.*\n)+)", section(title), re.MULTILINE)
    return [Table(one[1] or "", _rows(one[2].splitlines())) for one in found]


def _rows(lines: Sequence[str]) -> list[dict[str, str]]:
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


def _chunks(table: Table) -> str:
    return table.caption.partition(" chunks")[0]


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# ------------------------------------------------------------------------------------------ the parts


def _judged() -> Iterator[dict[str, str]]:
    (table, *_) = tables("Finding")
    for row in table.rows:
        if row["set"] in SETS and row["metric"] in JUDGED:
            yield row


def quality() -> str:
    """How good answers are, by set."""
    rows = [[SETS[row["set"]], row["metric"], *(row[way] for way in WAYS)] for row in _judged()]
    return _markdown(["documents", "measure", *WAYS.values()], rows)


def quality_plot() -> str:
    """The same as bars."""
    groups = [
        Bars(SETS[row["set"]], [float(row[way]) for way in WAYS], [row[way] for way in WAYS])
        for row in _judged()
    ]
    return bars("How good the first ten answers are", "1 is perfect", groups, list(WAYS.values()))


def peers() -> str:
    """What other tools found in the same documents."""
    (table, *_) = tables("Beside other tools")
    head = list(table.rows[0])
    return _markdown(head, [list(row.values()) for row in table.rows])


def grep() -> str:
    """How often grep leads to the right page."""
    *_, table = tables("Beside other tools")
    judged = {row["set"]: row for row in tables("Finding")[0].rows if row["metric"] == "page nDCG@10"}
    rows = [
        [SETS[row["set"]], row["grep, page nDCG@10"], *(judged[row["set"]][way] for way in WAYS)]
        for row in table.rows
    ]
    return _markdown(["documents", "grep", *(f"Quire, {name}" for name in WAYS.values())], rows)


def _searches() -> Iterator[tuple[str, str, dict[str, str]]]:
    """The number of chunks, the query, and milliseconds by engine."""
    for table in tables("Searching"):
        if not table.rows or "way" not in table.rows[0]:
            continue
        for query in QUERIES:
            rows = [row for row in table.rows if row["query"] == query]
            times = {_SAME.get(row["way"], row["way"]): row["p50"] for row in rows}
            if times:
                yield _chunks(table), query, times


def speed() -> str:
    """How long searches by words take."""
    engines = _engines()
    rows = [
        [size, QUERIES[query], *(times.get(engine, "–") for engine in engines)]
        for size, query, times in _searches()
    ]
    return _markdown(["chunks", "query", *(f"{ENGINES[engine]}, ms" for engine in engines)], rows)


def _engines() -> list[str]:
    """What was measured, in order."""
    found = {engine for _, _, times in _searches() for engine in times}
    return [engine for engine in ENGINES if engine in found]


def _indexed() -> list[Table]:
    return [table for table in tables("Indexing") if table.rows and "CPU seconds" in table.rows[0]]


def indexing() -> str:
    """How fast documents are added, and how large the index is."""
    rows = [
        [_chunks(table), INDEXERS[row["what"]], *(row[name] for name in ("CPU seconds", "MB/s", _BYTES))]
        for table in _indexed()
        for row in table.rows
        if row["what"] in INDEXERS
    ]
    return _markdown(["chunks", "tool", "CPU seconds", "MB/s", _BYTES], rows)


_BYTES = "bytes per source byte"


def indexing_plot() -> str:
    """The largest set as bars."""
    table = _indexed()[-1]
    groups = [
        Bars(INDEXERS[row["what"]], [float(row["CPU seconds"])], [f"{row['CPU seconds']} s"])
        for row in table.rows
        if row["what"] in INDEXERS
    ]
    return bars(f"Indexing {_chunks(table)} chunks", "seconds of processor time", groups, [])


def size_plot() -> str:
    """How large each index is, of the largest set."""
    table = _indexed()[-1]
    groups = [
        Bars(INDEXERS[row["what"]], [float(row[_BYTES])], [row[_BYTES]])
        for row in table.rows
        if row["what"] in INDEXERS
    ]
    return bars(f"The size of an index of {_chunks(table)} chunks", _BYTES, groups, [])


def speed_plot() -> str:
    """Searches in the largest set that was measured below a million chunks, as bars."""
    found = list(_searches())
    size = [size for size, _, _ in found if len(size) < len("1,000,000")][-1]
    shown = [(query, times) for chunks, query, times in found if chunks == size]
    engines = [one for one in _engines() if all(one in times for _, times in shown)]
    groups = [
        Bars(QUERIES[query], [float(times[one]) for one in engines], [f"{times[one]} ms" for one in engines])
        for query, times in shown
    ]
    names = [ENGINES[engine] for engine in engines]
    return bars(f"Searching {size} chunks", "milliseconds, median", groups, names)


def bars(title: str, unit: str, groups: Sequence[Bars], legend: Sequence[str]) -> str:
    """Groups of horizontal bars as a picture."""
    most = max(value for group in groups for value in group.values)
    kinds = "abcd" if len(groups[0].values) > 1 else "b"
    wide = (WIDTH - LEFT) / max(len(legend), 3)
    tall = len(groups[0].values) * BAR + GAP
    height = TOP + len(groups) * tall + 10

    def parts() -> Iterator[str]:
        yield f'<rect width="{WIDTH}" height="{height}" class="paper"/>'
        yield f'<text x="20" y="28" class="title">{title}</text>'
        yield f'<text x="20" y="48" class="soft small">{unit}</text>'
        for number, name in enumerate(legend):
            x = LEFT + wide * number
            yield f'<rect x="{x:.0f}" y="38" width="11" height="11" class="{kinds[number]}"/>'
            yield f'<text x="{x + 17:.0f}" y="48" class="soft small">{name}</text>'
        yield f'<path d="M{LEFT} {TOP - 8}V{height - 10}" class="rule"/>'
        for row, group in enumerate(groups):
            top = TOP + row * tall
            middle = top + (tall - GAP) / 2 + 4
            yield f'<text x="{LEFT - 10}" y="{middle:.0f}" text-anchor="end">{group.name}</text>'
            for place, (value, label) in enumerate(zip(group.values, group.labels, strict=True)):
                long, y = (WIDTH - LEFT - RIGHT) * value / most, top + place * BAR
                size = f'width="{long:.1f}" height="{BAR - 2}"'
                yield f'<rect x="{LEFT}" y="{y}" {size} class="{kinds[place]}"/>'
                yield f'<text x="{LEFT + long + 6:.1f}" y="{y + 10}" class="small">{label}</text>'

    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    named = f"<title>{title}: {unit}</title>"
    return "\n".join([head, named, f"<style>{STYLE}</style>", *parts(), "</svg>"]) + "\n"


PARTS = {"quality": quality, "grep": grep, "peers": peers, "speed": speed, "indexing": indexing}
PLOTS = {
    "performance-quality.svg": quality_plot,
    "performance-speed.svg": speed_plot,
    "performance-indexing.svg": indexing_plot,
    "performance-size.svg": size_plot,
}


def written(page: str) -> str:
    """The page with the tables in it."""
    for name, part in PARTS.items():
        begin = f"<!-- {name} -->\n"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{part()}\n\n{rest[rest.index('<!-- end -->') :]}"
    return page


def main() -> None:
    """Write the page and the plots."""
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    for name, plot in PLOTS.items():
        (PAGE.parent / name).write_text(plot(), "utf-8")


if __name__ == "__main__":
    main()
