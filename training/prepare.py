"""Gather what training needs in a folder: sections, pairs, and sets to judge by.

    python -m training.prepare PAIRS SETS training/data [--characters 600]

`sections.jsonl.xz` and `pairs.jsonl.xz` are those of the first folder, with shorter texts. `dev.pkl.xz` has
for each set of the second folder the chunks that Quire cuts, the questions with the chunks that answer them,
and the scores that Quire gives by words: so models are compared in hybrid search, in seconds.
"""

from __future__ import annotations

import argparse
import json
import lzma
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import quality

from quire import query as queries
from quire.config import DEFAULT, override
from quire.library import Library
from quire.stores import MAX_CHUNKS, ChunkTexts, Filters

WORDS = override(DEFAULT, {"embed": {"model": "none"}})
SETS = (
    *("docs_links_kubernetes", "docs_links_rust", "emanual", "codebase_chunks", "chroma_chunking"),
    *("scifact", "cranfield", "multilingual/en"),
)
HITS = 300  # by words, of a question


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def copy_pairs(source: Path, target: Path, characters: int) -> None:
    """The sections that pairs lead to, or that share a page with one, and the pairs."""
    pairs = list(lines(source / "pairs.jsonl.xz"))
    wanted = {pair["section"] for pair in pairs}
    sections = list(lines(source / "sections.jsonl.xz"))
    pages = {(one["repo"], one["path"]) for one in sections if one["id"] in wanted}
    numbers: dict[tuple[str, str], int] = {}
    with lzma.open(target / "sections.jsonl.xz", "wt", encoding="utf-8") as file:
        for one in sections:
            page = one["repo"], one["path"]
            if page in pages:
                number = numbers.setdefault(page, len(numbers))
                row = [one["id"], one["repo"], number, " > ".join(one["trail"]), one["text"][:characters]]
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    with lzma.open(target / "pairs.jsonl.xz", "wt", encoding="utf-8") as file:
        for pair in pairs:
            row = [pair["query"], pair["section"], pair["kind"]]
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def dev_set(name: str, data: Path, folder: Path) -> dict[str, Any]:
    """A set as arrays: texts of chunks, and for each question what words find and what answers it."""
    with quality.index(name, data, folder, WORDS) as library:
        spans, texts, rows = _chunks(library)
        found = []
        for question in quality.SETS[name].questions(data / name):
            hits = library.store.search_words(queries.parse(question.text), Filters(), HITS)
            found.append(
                {
                    "text": question.text,
                    "words": [(rows[hit.chunk], hit.score) for hit in hits],
                    "gold": [tuple(span) for span in question.gold],
                    "exclude": [tuple(span) for span in question.exclude],
                    "grades": question.grades,
                }
            )
    return {"spans": spans, "texts": texts, "questions": found}


def _chunks(library: Library) -> tuple[list[tuple[str, int, int]], list[str], dict[int, int]]:
    spans, texts, rows = [], [], dict[int, int]()
    store = library.store
    for document in library.documents():
        trails = {section.position: section.trail for section in store.sections(document.seq)}
        source = ChunkTexts(store.source(document.seq), trails)
        first = document.seq * MAX_CHUNKS
        for number, chunk in sorted(store.chunks(range(first, first + document.chunk_count)).items()):
            rows[number] = len(texts)
            texts.append(source.embedded(chunk))
            spans.append((document.path, chunk.start, chunk.end))
    return spans, texts, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", type=Path)
    parser.add_argument("eval", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--characters", type=int, default=600)
    given = parser.parse_args()
    given.target.mkdir(parents=True, exist_ok=True)
    copy_pairs(given.train, given.target, given.characters)
    with tempfile.TemporaryDirectory() as folder:
        sets = {name: dev_set(name, given.eval, Path(folder)) for name in SETS}
    with lzma.open(given.target / "dev.pkl.xz", "wb") as file:
        pickle.dump(sets, file)
    for path in sorted(given.target.iterdir()):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
