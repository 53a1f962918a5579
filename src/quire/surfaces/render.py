"""What surfaces show: chunks and outlines as text and JSON, and every error's exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from quire.chunkers.base import Chunk
from quire.errors import BrokenInvariant, MissingExtra, NoResults, QuireError, SettingError, SourceError
from quire.tree import Tree

DONE, NOTHING, USAGE, PARTLY, FAILED = range(5)
EXIT_CODES: dict[type[QuireError], int] = {
    NoResults: NOTHING,
    SettingError: USAGE,
    MissingExtra: USAGE,
    SourceError: FAILED,
    BrokenInvariant: FAILED,
    QuireError: FAILED,
}
# What could move a cursor, change a terminal or turn text round: C0, C1, bidirectional controls.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def exit_code(error: QuireError) -> int:
    """The exit code of an error, by the nearest class that has one."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def safe(text: str) -> str:
    """Text for a terminal: what would act instead of show is written as its code."""
    return _UNSAFE.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def first_line(text: str, width: int) -> str:
    """The first line that says something, cut to a width."""
    line = next((line.strip() for line in text.splitlines() if line.strip(" \t\ufeff")), "")
    line = safe(line)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def chunk_json(chunk: Chunk) -> dict[str, Any]:
    """A chunk with all it carries."""
    return {
        "index": chunk.index,
        "address": chunk.address,
        "start": chunk.start,
        "end": chunk.end,
        "byte_start": chunk.byte_start,
        "byte_end": chunk.byte_end,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "tokens": chunk.tokens,
        "trail": list(chunk.trail),
        "header_path": chunk.header_path,
        "breadcrumb": chunk.breadcrumb,
        "context": chunk.context,
        "text": chunk.text,
    }


def chunks_json(tree: Tree, strategy: str, chunks: Sequence[Chunk]) -> dict[str, Any]:
    """What `quire chunk --json` prints of one document."""
    document = tree.document
    return {
        "strategy": strategy,
        "document": {
            "path": document.path,
            "title": tree.title,
            "bytes": len(document.source),
            "lines": document.lines,
            "checksum": document.checksum,
            "warnings": list(document.warnings),
        },
        "chunks": [chunk_json(chunk) for chunk in chunks],
    }


def toc_json(tree: Tree, tokens: dict[int, int]) -> dict[str, Any]:
    """The outline of a document, nested; `tokens` of each section by its position."""
    nodes: dict[int, dict[str, Any]] = {}
    for section in tree.sections:
        node = {
            "address": section.address,
            "title": section.title,
            "depth": section.level,
            "tokens": tokens[section.position],
            "children": [],
        }
        nodes[section.position] = node
        if section.parent is not None:
            nodes[section.parent.position]["children"].append(node)
    return nodes[0]


def counted(number: int, noun: str) -> str:
    """`1 chunk`, `2 chunks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def chunk_lines(chunk: Chunk, width: int) -> Iterable[str]:
    """A chunk in two lines: where it stands, and how it begins."""
    lines = f"lines {chunk.start_line}–{chunk.end_line}"
    name = safe(" › ".join(chunk.trail)) + (f" ~{chunk.part}" if chunk.part else "")
    yield f"{chunk.index:>4}  {name}"
    yield f"      {lines}, {counted(chunk.tokens, 'token')}: {first_line(chunk.text, width)}"


def toc_lines(tree: Tree, tokens: dict[int, int]) -> Iterable[str]:
    """The outline, indented; a first heading that repeats the document's title is not shown twice."""
    for section in tree.sections:
        depth = len(section.trail) - 1
        if depth or section is tree.root:
            yield f"{'  ' * depth}{safe(section.title)}  ({tokens[section.position]:,})"
