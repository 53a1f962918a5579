"""Check the keyword index of a SQLite library: what is stored, not what a search has read of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from quire.stores.rows import CHUNK_BITS
from quire.stores.sqlite.postings import PostingReader
from quire.stores.sqlite.segments import Segment, TermBlock


def finds(db: sqlite3.Connection, term: str, document: int) -> bool:
    """Whether a term finds a document."""
    tables = PostingReader(db)
    snapshot = tables.snapshot(0)
    return bool((snapshot.documents[tables.having(term).places] == document).any())


def check_index(db: sqlite3.Connection) -> list[str]:
    """Problems with the index; empty if there are none."""
    try:
        return [f"full text: {problem}" for problem in _problems(db)]
    except (ValueError, TypeError, LookupError) as problem:
        return [f"full text: cannot be read: {problem}"]


def _problems(db: sqlite3.Connection) -> Iterator[str]:
    tables = PostingReader(db)
    snapshot = tables.snapshot(0)
    live = snapshot.chunks if snapshot.live is None else snapshot.chunks[snapshot.live]
    chunks = [row[0] for row in db.execute("SELECT id FROM chunks ORDER BY id")]
    if sorted(live.tolist()) != chunks:
        yield "its chunks are not those of the documents"
    if [row[0] for row in db.execute("SELECT chunk FROM word_orders ORDER BY chunk")] != chunks:
        yield "the orders of terms are not those of the documents' chunks"
    for one in snapshot.opened:
        segment = tables.read(one.id)
        if wrong := _wrong_in(segment, one.firsts):
            yield f"segment {one.id}: {wrong}"


def _wrong_in(segment: Segment, firsts: list[str]) -> str:
    """What is wrong with a segment; "" if nothing is."""
    chunks = segment.chunks
    if len(chunks) != len(segment.sizes) or (chunks[1:] <= chunks[:-1]).any():
        return "its chunks are not in order"
    if [block.first for block in segment.blocks] != firsts:
        return "its blocks are not those that were written"
    terms = [term for block in segment.blocks for term in block.terms.split("\n")]
    if any(a >= b for a, b in pairwise(terms)):
        return "its terms are not in order"
    wrong = [block.first for block in segment.blocks if not _is_whole(block, len(chunks))]
    return f"the chunks of {wrong[0]!r} are damaged" if wrong else ""


def _is_whole(block: TermBlock, size: int) -> bool:
    """Whether the places of each term are in order and in the segment, and each has its weight."""
    import numpy as np

    ends = np.frombuffer(block.ends, np.uint32).astype(np.int64)
    ordinals: Any = np.frombuffer(block.ordinals, np.uint16).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    if len(ends) != block.terms.count("\n") + 1 or (counts <= 0).any():
        return False
    if not len(ordinals) == len(block.weights) == ends[-1] or ordinals.max() >= size:
        return False
    keys = np.repeat(np.arange(len(ends)), counts) << CHUNK_BITS | ordinals
    return bool((keys[1:] > keys[:-1]).all())
