"""What every framework is told of a result or a chunk, beside its text: plain values, that JSON can hold."""

from __future__ import annotations

from typing import Any

from quire.chunkers.base import Chunk
from quire.result import Result


def of_result(result: Result) -> dict[str, Any]:
    """Where a result stands, and how good it is."""
    return {
        "address": result.address,
        "title": result.title,
        "breadcrumb": result.breadcrumb,
        "collection": result.collection,
        "path": result.path,
        "url": result.url or "",
        "location": result.location or "",
        "link": result.link or "",
        "start": result.start,
        "end": result.end,
        "start_line": result.start_line,
        "end_line": result.end_line,
        "tokens": result.tokens,
        "score": result.score,
        "confidence": result.confidence,
        "strength": result.strength,
        "stale": result.stale,
    }


def of_chunk(chunk: Chunk) -> dict[str, Any]:
    """Where a chunk stands in its text."""
    return {
        "start_index": chunk.start,
        "end_index": chunk.end,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "header_path": chunk.header_path,
        "breadcrumb": chunk.breadcrumb,
    }
