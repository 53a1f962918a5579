"""Memories and knowledge as text: what was recalled, when it was written, and what it said before."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quire.surfaces import render, wrapping

if TYPE_CHECKING:
    from quire.memory import Similar
    from quire.result import Result
    from quire.sources.entries import Version

OUTCOMES = {
    "added": "Saved. Find it again with recall.",
    "replaced": "Saved. It replaces an earlier text, which stays in its history.",
    "known": "Already remembered. Its time is updated.",
}
_SHOWN = 200  # characters of a similar entry


def when(ms: int) -> str:
    """A time as a date: 2026-01-31."""
    return f"{_time(ms):%Y-%m-%d}"


def to_the_minute(ms: int) -> str:
    """A time to the minute: 2026-01-31 12:00 UTC."""
    return f"{_time(ms):%Y-%m-%d %H:%M} UTC"


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def about(result: Result) -> str:
    """The address of an entry, when it was written, its tags, and whether it is a strong or a weak match.

    The day is left out if its name begins with it.
    """
    day = when(result.updated_at)
    facts = [result.address, "" if result.path.startswith(day) else day, ", ".join(result.tags)]
    facts += [f"{result.strength} match"] if result.strength != "none" else []
    return "; ".join(fact for fact in facts if fact)


def headline(result: Result) -> str:
    """Where in an entry a passage is; "" if its text tells."""
    trail, said = " › ".join(result.trail), result.snippet.lstrip("# ")
    return "" if said.startswith(trail.removesuffix("…")) else f"{trail}: "


def similar_line(one: Similar) -> str:
    """A similar entry on one line: its address, when it was written, and its text."""
    return f"{one.address} ({when(one.updated_at)}): {render.first_line(one.text, _SHOWN)}"


def version_line(version: Version) -> str:
    """A text of an entry on one line, with its time."""
    return f"{to_the_minute(version.written_at)}  {render.line(version.text.strip())}"


def entry_lines(
    number: int, result: Result, *, colour: bool = False, columns: int | None = None
) -> tuple[str, str]:
    """A recalled passage: its text, and its address with what is known of it. Wrapped to `columns`."""
    first = " ".join(headline(result).split("\n"))
    spans = [(start + len(first), end + len(first)) for start, end in result.highlights if colour]
    text = wrapping.drawn(first + result.snippet, spans, columns, render.INDENT)
    where = wrapping.filled(render.line(about(result)), columns, render.INDENT)
    return f"{number:>3}. {text}", f"{' ' * render.INDENT}{where}"
