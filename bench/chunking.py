"""Every strategy against other splitters, in one run: speed, and what the speed is worth.

    pip install -e '.[bench]'
    python bench/chunking.py [--data FOLDER] [--repeat N]

Each splitter cuts each document of a set, one after the other, from text in memory. The figure is
the best of N rounds, in MB of UTF-8 a second. The other columns are measured on the same chunks:

joined    the chunks, concatenated, are the document (Quire's `nodes` leaves out heading lines and
          `headers` empty sections, as their specifications say)
offsets   the chunks say where in the document they are, and are right
fences    the share of the code blocks up to 2,000 characters that a cut goes through
headings  the share of chunks that are told the heading they stand under, and told it right
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import quire
from quire import markdown
from quire.config import STRATEGIES, override
from quire.errors import BrokenInvariant

SIZE = 2000  # characters: what the splitters that take a size are given


class Piece(NamedTuple):
    """A chunk of any splitter: its text, its start if told, the heading over it if told."""

    text: str
    start: int | None = None
    heading: str | None = None


class Splitter(NamedTuple):
    """What is timed, and how its result reads."""

    name: str
    split: Callable[[str], Iterable[Any]]
    pieces: Callable[[Any], list[Piece]]


def ours() -> list[Splitter]:
    config = override(quire.Config(), {"chunk": {"auto": {"max_tokens": SIZE // 2}}})

    def splitter(strategy: str) -> Splitter:
        return Splitter(
            f"quire {strategy}",
            lambda text: quire.chunk(text, strategy, config=config),
            lambda chunks: [Piece(c.text, c.start, c.section.title) for c in chunks],
        )

    def full(text: str) -> list[Any]:
        chunks = quire.chunk(text, config=config)
        return [(c, c.byte_start, c.byte_end, c.start_line, c.end_line, c.tokens, c.trail) for c in chunks]

    every = Splitter(
        "quire auto, every field read",
        full,
        lambda rows: [Piece(c.text, c.start, c.section.title) for c, *_ in rows],
    )
    return [*map(splitter, STRATEGIES), every]


def theirs() -> list[Splitter]:
    """The peers that are installed; those that are not are named on stderr."""
    found = []
    for make in (_semantic_text_splitter, _chonkie, _langchain, _llama_index):
        try:
            found.append(make())
        except ImportError as problem:
            print(f"not installed: {problem.name}", file=sys.stderr)
    return found


def _semantic_text_splitter() -> Splitter:
    from semantic_text_splitter import MarkdownSplitter

    splitter = MarkdownSplitter(SIZE, trim=False)
    return Splitter(
        "semantic-text-splitter Markdown",
        splitter.chunk_indices,
        lambda chunks: [Piece(text, start) for start, text in chunks],
    )


def _chonkie() -> Splitter:
    from chonkie import RecursiveChunker

    chunker = RecursiveChunker(tokenizer="character", chunk_size=SIZE)
    return Splitter(
        "chonkie Recursive", chunker.chunk, lambda chunks: [Piece(c.text, c.start_index) for c in chunks]
    )


def _langchain() -> Splitter:
    from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

    levels = [("#" * level, str(level)) for level in range(1, 7)]
    headers = MarkdownHeaderTextSplitter(levels, strip_headers=False)
    recursive = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=0)

    def heading(metadata: dict[str, str]) -> str | None:
        return metadata[max(metadata)] if metadata else None

    return Splitter(
        "LangChain MarkdownHeader + Recursive",
        lambda text: recursive.split_documents(headers.split_text(text)),
        lambda documents: [Piece(d.page_content, None, heading(d.metadata)) for d in documents],
    )


def _llama_index() -> Splitter:
    from llama_index.core.node_parser import MarkdownNodeParser
    from llama_index.core.schema import Document

    parser = MarkdownNodeParser()

    def heading(text: str) -> str | None:
        line = text.lstrip().partition("\n")[0]
        return line.lstrip("# ") if line.startswith("#") else None

    return Splitter(
        "LlamaIndex MarkdownNodeParser",
        lambda text: parser.get_nodes_from_documents([Document(text=text)]),
        lambda nodes: [Piece(n.text, n.start_char_idx, heading(n.text)) for n in nodes],
    )


class Row(NamedTuple):
    """One line of the table."""

    name: str
    speed: float
    chunks: int
    joined: str
    offsets: str
    fences: str
    headings: str


def measure(splitter: Splitter, texts: list[str], repeat: int) -> Row:
    """Time a splitter on a set, and look at what it made."""
    kept = [text for text in texts if _can(splitter, text)]
    size = sum(len(text.encode()) for text in kept)
    best = min(_seconds(splitter, kept) for _ in range(repeat))
    checks = [_check(splitter.pieces(splitter.split(text)), text) for text in kept]
    share = f" ({len(kept)} of {len(texts)})" if len(kept) < len(texts) else ""
    return Row(
        splitter.name + share,
        size / best / 1e6,
        sum(c.chunks for c in checks),
        _yes(all(c.joined for c in checks)),
        _yes(all(c.offsets for c in checks)),
        _share(sum(c.cut for c in checks), sum(c.fences for c in checks)),
        _share(sum(c.right for c in checks), sum(c.chunks for c in checks)),
    )


def _can(splitter: Splitter, text: str) -> bool:
    try:
        splitter.split(text)
    except BrokenInvariant:  # sections: text over 8,000 tokens with no heading in it
        return False
    return True


def _seconds(splitter: Splitter, texts: list[str]) -> float:
    started = time.perf_counter()
    for text in texts:
        splitter.split(text)
    return time.perf_counter() - started


class Check(NamedTuple):
    """What is true of the chunks of one document."""

    chunks: int
    joined: bool
    offsets: bool
    cut: int
    fences: int
    right: int


def _check(pieces: list[Piece], text: str) -> Check:
    offsets = all(p.start is not None and text.startswith(p.text, p.start) for p in pieces)
    starts = _starts(pieces, text)
    fences = _fences(text)
    cut = sum(any(a < s < b for s in starts[bisect_right(starts, a) :][:1]) for a, b in fences)
    tree = quire.tree(text)
    right = sum(_is_right(tree, piece) for piece in pieces)
    return Check(len(pieces), "".join(p.text for p in pieces) == text, offsets, cut, len(fences), right)


def _is_right(tree: quire.Tree, piece: Piece) -> bool:
    """Whether the heading that a chunk is told covers the first text in it that is no heading.

    A chunk without an offset gets the benefit of the doubt: any place where its first line stands.
    """
    if piece.heading is None:
        return False
    if piece.start is not None:
        at = piece.start + len(piece.text) - len(piece.text.lstrip())
        return _covers(tree, piece.heading, at)
    places = islice(re.finditer(re.escape(_first_line(piece)), tree.document.text), 50)
    return any(_covers(tree, piece.heading, found.start()) for found in places)


def _covers(tree: quire.Tree, heading: str, at: int) -> bool:
    index = bisect_right(tree.headings, at, key=lambda h: h.start) - 1
    while index >= 0 and at < tree.headings[index].end:  # on a heading line: go on to what follows
        at = tree.headings[index].end
        at += len(tree.document.text[at : at + 100]) - len(tree.document.text[at : at + 100].lstrip())
        index = bisect_right(tree.headings, at, key=lambda h: h.start) - 1
    names = [tree.title, *(ancestor.title for ancestor in tree.at(at).lineage)]
    return _letters(heading) in {_letters(name) for name in names}


def _first_line(piece: Piece) -> str:
    return piece.text.strip().partition("\n")[0].rstrip()


def _letters(title: str) -> str:
    return re.sub(r"\W", "", markdown.split_anchor(title)[0].casefold())


def _starts(pieces: list[Piece], text: str) -> list[int]:
    """Where chunks begin: as told, else where their first line is found next."""
    starts, at = [], 0
    for piece in pieces:
        if piece.start is None:
            found = text.find(_first_line(piece), at)
            at = found if found >= 0 else at
        else:
            at = piece.start
        starts.append(at)
    return sorted(starts)


def _fences(text: str) -> list[tuple[int, int]]:
    found, stack = [], list(markdown.blocks(text))
    while stack:
        block = stack.pop()
        stack.extend(block.children)
        fenced = block.kind == "code" and text.startswith(("```", "~~~"), block.start)
        if fenced and block.end - block.start <= SIZE:
            found.append((block.start, block.end))
    return sorted(found)


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def texts_of(data: Path) -> dict[str, list[str]]:
    """The sets, each a list of texts."""

    def read(pattern: str) -> list[str]:
        return [path.read_bytes().decode() for path in sorted(data.glob(pattern))]

    return {
        "docs_links_kubernetes, small files": read("docs_links_kubernetes/docs/**/*.md"),
        "docs_links_rust, small files": read("docs_links_rust/docs/**/*.md"),
        "llms-full": read("large_inputs/llms/*-llms-full.txt"),
    }


def show(title: str, texts: list[str], rows: list[Row]) -> None:
    """A table, with the speed of each against the fastest peer that loses nothing."""
    peers = [r.speed for r in rows if not r.name.startswith("quire") and r.joined == "yes"]
    best = max(peers, default=0.0)
    size = sum(len(text.encode()) for text in texts)
    median = statistics.median(map(len, texts))
    print(f"\n{title}: {len(texts):,} documents, {size / 1e6:.1f} MB, median {median:,.0f} characters\n")
    columns = "splitter|MB/s|× best lossless peer|chunks|joined|offsets|fences cut|headings right".split("|")
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    for row in rows:
        ratio = f"{row.speed / best:.2f}" if best else "–"
        print(f"| {row.name} | {row.speed:.1f} | {ratio} | {row.chunks:,} | " + " | ".join(row[3:]) + " |")


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    beside = Path(__file__).parents[2] / "shared" / "eval"
    parser.add_argument("--data", type=Path, default=beside, help="the folder with the document sets")
    parser.add_argument("--repeat", type=int, default=5, help="rounds; the best one counts")
    args = parser.parse_args()
    if not args.data.is_dir():
        parser.error(f"no document sets in {args.data}; name their folder with --data")
    splitters = ours() + theirs()
    for title, texts in texts_of(args.data).items():
        show(title, texts, [measure(splitter, texts, args.repeat) for splitter in splitters])


if __name__ == "__main__":
    main()
