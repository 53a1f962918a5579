"""Chunks to one self-contained web page: the text with its chunks in colour, the tree beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise
from string import Template

from quire.chunkers.base import Chunk
from quire.surfaces.render import counted, safe
from quire.tree import Tree


def render(strategy: str, documents: Sequence[tuple[Tree, list[Chunk]]]) -> str:
    """The page. Nothing in it is loaded or run; document text is only ever shown."""
    page = Template(files("quire.surfaces").joinpath("chunk_page.html").read_text("utf-8"))
    titles = ", ".join(tree.title for tree, _ in documents[:3])
    return page.substitute(
        title=_text(f"{titles}: chunks by {strategy}"),
        documents="\n".join(
            _document(f"d{number}", strategy, tree, chunks) for number, (tree, chunks) in enumerate(documents)
        ),
    )


def _document(name: str, strategy: str, tree: Tree, chunks: list[Chunk]) -> str:
    tokens = sum(chunk.tokens for chunk in chunks)
    totals = f"{counted(len(chunks), 'chunk')} by {strategy}, {counted(tokens, 'token')}"
    return (
        f'<div class="document">\n<nav aria-label="Outline">\n<h1>{_text(tree.title)}</h1>\n'
        f'<p class="totals">{_text(tree.document.path)}<br>{totals}</p>\n'
        f'<p class="totals key"><span class="a">one chunk</span> <span class="b">the next</span>'
        f' <span class="both">in both</span></p>\n'
        f"{''.join(_outline(name, tree))}</nav>\n"
        f"<main><pre>{''.join(_pieces(name, tree, chunks))}</pre></main>\n</div>"
    )


def _outline(name: str, tree: Tree) -> Iterator[str]:
    for section in tree.sections[1:]:
        indent = f"{len(section.lineage) - 1:.0f}rem"
        yield (
            f'<a href="#{name}-s{section.position}" style="padding-left:{indent}">'
            f"{_text(section.title) or '<small>untitled</small>'}</a>\n"
        )


def _pieces(name: str, tree: Tree, chunks: list[Chunk]) -> Iterator[str]:
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
            yield _label(starts[start])
        inside = [chunk for chunk in chunks[max(0, last - 1) : last + 1] if chunk.end > start]
        shown = _text(tree.document.markup[start:end])
        yield f'<span class="{_color(inside)}">{shown}</span>' if inside else shown


def _label(chunk: Chunk) -> str:
    lines = f"lines {chunk.start_line}–{chunk.end_line}"
    return (
        f'<span class="label {_parity(chunk)}" title="{_text(chunk.breadcrumb)}">'
        f"{chunk.index} · {counted(chunk.tokens, 'token')} · {lines}</span>"
    )


def _color(inside: list[Chunk]) -> str:
    return "both" if len(inside) > 1 else _parity(inside[0])


def _parity(chunk: Chunk) -> str:
    return "ab"[chunk.index % 2]


def _text(text: str) -> str:
    return escape(safe(text))
