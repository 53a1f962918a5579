"""Chunks to one self-contained web page: the text with its chunks in colour, the tree beside it.

Always: a page is written whole or not at all, and only to a new file or over a page that Quire wrote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from html import escape
from itertools import pairwise
from pathlib import Path
from string import Template

from quire.chunkers.base import Chunk
from quire.errors import SettingError, Unreadable
from quire.location import Places
from quire.surfaces.render import chunk_place, counted, safe
from quire.tree import Tree
from quire.version import VERSION

# A document that only quotes the mark has another beginning.
_OPENING = re.compile(rb'<!doctype html>[^\0]{0,200}<meta name="generator" content="Quire ')
_OPENING_BYTES = 500  # more than the expression can match


def check_target(out: Path, files: Iterable[str]) -> None:
    """Raise SettingError if `out` is one of the files, or exists and is not a page that Quire wrote."""
    target = os.path.realpath(out)
    if any(os.path.realpath(name) == target for name in files):
        raise _refused(out, "is one of the files to read")
    try:
        if Path(target).exists() and not (Path(target).is_file() and _is_page(target)):
            raise _refused(out, "is there already and is not a page that Quire wrote")
    except OSError as problem:
        raise _refused(out, f"cannot be read: {problem.strerror}") from None


def _is_page(target: str) -> bool:
    with open(target, "rb") as file:  # noqa: PTH123
        return _OPENING.match(file.read(_OPENING_BYTES)) is not None


def _refused(out: Path, why: str) -> SettingError:
    return SettingError("--html", f"{out} {why}. Name the page to write, as in --html chunks.html")


def write(out: Path, page: str) -> None:
    """Write a page in one step; a link is followed. Raises Unreadable."""
    target = Path(os.path.realpath(out))
    part = target.with_name(f".quire-{os.getpid()}.part")
    try:
        part.write_text(page, "utf-8")
        part.replace(target)
    except OSError as problem:
        raise Unreadable(str(out), f"cannot be written: {problem.strerror}") from None
    finally:
        with suppress(OSError):  # it was renamed, or never made
            part.unlink()


def render(strategy: str, documents: Sequence[tuple[Tree, list[Chunk], Places | None]]) -> str:
    """The page. It loads and runs nothing, and only shows document text."""
    from importlib.resources import files  # takes 10 ms, which other views do not need

    page = Template(files("quire.surfaces").joinpath("chunk_page.html").read_text("utf-8"))
    titles = ", ".join(tree.title for tree, *_ in documents[:3])
    return page.substitute(
        version=VERSION,
        title=_text(f"{titles}: chunks by {strategy}"),
        documents="\n".join(
            _document(f"d{number}", strategy, *document) for number, document in enumerate(documents)
        ),
    )


def _document(name: str, strategy: str, tree: Tree, chunks: list[Chunk], places: Places | None) -> str:
    tokens = sum(chunk.tokens for chunk in chunks)
    totals = f"{counted(len(chunks), 'chunk')} by {strategy}, {counted(tokens, 'token')}"
    return (
        f'<div class="document">\n<nav aria-label="Outline">\n<h1>{_text(tree.title)}</h1>\n'
        f'<p class="totals">{_text(tree.document.path)}<br>{totals}</p>\n'
        f'<p class="totals key"><span class="a">one chunk</span> <span class="b">the next</span>'
        f' <span class="both">in both</span></p>\n'
        f"{''.join(_outline(name, tree))}</nav>\n"
        f"<main><pre>{''.join(_pieces(name, tree, chunks, places))}</pre></main>\n</div>"
    )


def _outline(name: str, tree: Tree) -> Iterator[str]:
    for section in tree.sections[1:]:
        indent = f"{len(section.lineage) - 1:.0f}rem"
        yield (
            f'<a href="#{name}-s{section.position}" style="padding-left:{indent}">'
            f"{_text(section.title) or '<small>untitled</small>'}</a>\n"
        )


def _pieces(name: str, tree: Tree, chunks: list[Chunk], places: Places | None) -> Iterator[str]:
    """The text, cut wherever a chunk or a section begins or ends."""
    text = tree.document.text
    starts = {chunk.start: chunk for chunk in chunks}
    sections = {section.start: section for section in tree.sections}
    edges = {0, len(text), *starts, *sections, *(chunk.end for chunk in chunks)}
    last = -1  # the last chunk that has begun
    for start, end in pairwise(sorted(edges)):
        if start in sections:
            yield f'<span id="{name}-s{sections[start].position}"></span>'
        if start in starts:
            last = starts[start].index
            yield _label(starts[start], places)
        inside = [chunk for chunk in chunks[max(0, last - 1) : last + 1] if chunk.end > start]
        shown = _text(tree.document.markup[start:end])
        yield f'<span class="{_color(inside)}">{shown}</span>' if inside else shown


def _label(chunk: Chunk, places: Places | None) -> str:
    return (
        f'<span class="label {_parity(chunk)}" title="{_text(chunk.breadcrumb)}">'
        f"{chunk.index} · {counted(chunk.tokens, 'token')} · {chunk_place(chunk, places)}</span>"
    )


def _color(inside: list[Chunk]) -> str:
    return "both" if len(inside) > 1 else _parity(inside[0])


def _parity(chunk: Chunk) -> str:
    return "ab"[chunk.index % 2]


def _text(text: str) -> str:
    return escape(safe(text))
