"""DESIGN's invariants 1, 2, 3 and 6, for every strategy, over generated and real documents."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from bisect import bisect_left
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire.config import STRATEGIES
from quire.errors import BrokenInvariant
from quire.tree import Tree
from tests.markdowns import large_inputs, markdown, needs_shared

JOINING = ("auto", "sections")


def says_something(text: str) -> bool:
    return re.search(r"[^\s\ufeff]", text) is not None


def check_tree(tree: Tree) -> None:
    """Invariant 3: own ranges join to the source; bodies are disjoint; ids are unique."""
    document = tree.document
    assert "".join(document.text[s.start : s.own_end] for s in tree.sections) == document.text
    assert tree.root.start == 0
    assert tree.root.end == len(document.text)
    joined = b"".join(
        document.source[a:b]
        for a, b in zip(
            [s.span_start for s in tree.sections],
            [*(s.span_start for s in tree.sections[1:]), len(document.source)],
            strict=True,
        )
    )
    assert joined == document.source
    for before, after in zip(tree.sections, tree.sections[1:], strict=False):
        assert before.body_end <= after.start <= after.body_start <= after.body_end
        assert after.parent is not None
        assert after.parent.level < after.level
        assert after.parent.start <= after.start
        assert after.end <= after.parent.end
    addresses = [section.address for section in tree.sections]
    assert len(set(addresses)) == len(addresses)


def check_chunks(tree: Tree, chunks: list[quire.Chunk], strategy: str) -> None:
    """Invariant 2: a chunk is a span of characters, of bytes and of lines."""
    document = tree.document
    line_ends = [place for place, char in enumerate(document.markup) if char == "\n"]
    for chunk in chunks:
        assert 0 <= chunk.start < chunk.end <= len(document.text)
        assert document.text[chunk.start : chunk.end] == chunk.text
        span = document.source[chunk.byte_start : chunk.byte_end]
        if document.warnings:
            span_text = span.decode(document.encoding, "surrogateescape")
            assert re.sub("[\ud800-\udfff]", "\ufffd", span_text) == chunk.text
        else:
            assert span == chunk.text.encode(document.encoding)
        assert chunk.start_line == bisect_left(line_ends, chunk.start) + 1
        assert chunk.end_line == bisect_left(line_ends, chunk.end - 1) + 1
        assert chunk.tokens == (chunk.end - chunk.start + 3) // 4
        assert chunk.section.start <= chunk.end
    addresses = [chunk.address for chunk in chunks]
    assert len(set(addresses)) == len(addresses)
    if strategy in JOINING and says_something(document.text):
        assert "".join(chunk.text for chunk in chunks) == document.text
    if strategy in ("windows", "memory") and chunks:
        assert chunks[0].start == 0
        assert chunks[-1].end == len(document.text)
        assert all(b.start <= a.end < b.end for a, b in itertools.pairwise(chunks))


def check(source: str | bytes, path: str = "") -> None:
    tree = quire.tree(source, path)
    exact = source if isinstance(source, bytes) else source.encode()
    assert tree.document.source == exact
    check_tree(tree)
    for strategy in STRATEGIES:
        try:
            chunks = quire.chunk(tree, strategy)
        except BrokenInvariant:
            assert strategy == "sections"
            continue
        check_chunks(tree, chunks, strategy)


@given(markdown())
def test_every_strategy_gives_exact_spans_of_generated_markdown(text: str) -> None:
    """Invariants 1–3: the source is kept, chunks are spans, sections join to the source."""
    check(text)


@given(markdown(), st.integers(8, 120), st.sampled_from(["chars", "words", "bpe"]))
def test_auto_keeps_to_its_limit_and_joins_to_the_text(text: str, limit: int, counter: str) -> None:
    """DESIGN §4: no chunk of auto is over max_tokens, by any counter."""
    config = quire.config.override(quire.Config(), {"tokens": {"counter": counter}})
    chunks = quire.chunk(text, "auto", max_tokens=limit, config=config)
    assert all(chunk.tokens <= limit for chunk in chunks)
    if says_something(text):
        assert "".join(chunk.text for chunk in chunks) == text


@given(st.text(max_size=400))
def test_any_text_at_all_has_exact_spans(text: str) -> None:
    """Invariant 2 for text nobody would write."""
    tree = quire.tree(text)
    check_tree(tree)
    for strategy in STRATEGIES:
        check_chunks(tree, quire.chunk(tree, strategy), strategy)


@given(st.binary(max_size=300))
def test_any_bytes_at_all_are_kept_and_cut_exactly(source: bytes) -> None:
    """Invariants 1 and 2 for bytes that may be no text: offsets refer to the stored bytes."""
    try:
        check(source)
    except quire.errors.NotText:
        text = quire.document._decode(source, quire.document.encoding_of(source))
        assert "\0" in text or quire.document._binary_kind(source)


def test_the_same_input_gives_the_same_ids_in_any_process(tmp_path: Path) -> None:
    """Invariant 6: ids depend on the input alone, not on the process or its hash seed."""
    text = "# A\n\ntext\n\n## B\n\n" + "words and more. " * 900 + "\n\n## B\n\nagain\n"
    program = "import sys, quire\nfor c in quire.chunk(sys.stdin.read(), path='a.md'): print(c.id, c.address)"
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    }
    here = "".join(f"{chunk.id} {chunk.address}\n" for chunk in quire.chunk(text, path="a.md"))
    assert runs == {here}
    assert str(quire.chunk("# A\n\ntext\n", path="a.md")[0].id) == "73bbd937-6b08-5d53-a2dc-8243d0b974c7"


@needs_shared
@pytest.mark.parametrize("path", large_inputs(), ids=lambda path: path.name)
def test_large_foreign_and_odd_files_are_cut_exactly(path: Path) -> None:
    """Invariants 1–3 over every file in large_inputs, as markdown and by its own name."""
    check(path.read_bytes(), f"{path.stem}.md")
    if path.suffix == ".txt":
        check(path.read_bytes(), path.name)
