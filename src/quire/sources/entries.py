"""Memories and knowledge: the names of entries, and entries as JSON lines.

Input: texts or lines. Output: entries. Always: an entry has text; names of the same text end alike,
whenever they were made and however it is spelled; a written line is read back as the same entry.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from unicodedata import normalize

from quire import later
from quire.document import Document
from quire.errors import SettingError, nearest
from quire.tree import Tree, has_text

KINDS = ("memory", "knowledge")
DOCUMENTS = ("document", "external")  # the kinds that sources have, and that a search looks at
_LATEST = 9_000_000_000_000  # milliseconds: a later time is a mistake
_WORDS, _LONGEST = 6, 40  # words of the text that begin a name, and the most characters of them
_QUOTES = str.maketrans("‘’“”", "''\"\"")
_STOPS = ".!。！… "
_SPAN = later.pattern(r"(\d{1,6})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Version:
    """A text of an entry, and when it was written, in milliseconds."""

    written_at: int
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory or a piece of knowledge. Times are in milliseconds, 0 is now."""

    kind: str
    collection: str
    path: str | None  # None is made from the text, as is the title
    title: str | None
    tags: tuple[str, ...]
    created_at: int
    updated_at: int
    text: str
    history: tuple[Version, ...] = ()  # earlier texts, newest first


def make_entry(
    kind: str,
    text: str,
    *,
    collection: str | None = None,
    title: str | None = None,
    tags: Iterable[str] = (),
    name: str | None = None,
    created_at: int = 0,
    updated_at: int = 0,
    history: Iterable[Version] = (),
) -> Entry:
    """An entry. Raises SettingError if it has no text."""
    text = text.encode("utf-8", "replace").decode()
    if not has_text(text, 0, len(text)):
        raise SettingError("text", "is empty: there is nothing to remember")
    path = (name or "").strip() or None
    heading = " ".join((title or "").split()) or None
    kept = tuple(sorted({tag.strip() for tag in tags} - {""}))
    times = created_at, updated_at
    return Entry(kind, collection or kind, path, heading, kept, *times, text, tuple(history))


def check_kinds(kinds: Iterable[str]) -> None:
    """Raise SettingError for a kind that is neither memory nor knowledge."""
    for kind in kinds:
        if kind not in KINDS:
            raise SettingError("kind", f"{kind!r} is not of what is remembered. {nearest(kind, KINDS)}")


def entry_title(text: str) -> str:
    """The title of an entry: its first level 1 heading, else its first line."""
    return Tree(Document.from_text(text)).title


def named(text: str, day: date) -> str:
    """A name: the day, the first words, and a hash of what the text says."""
    words = re.sub(r"\W+", "-", " ".join(text.split()[:_WORDS]).lower())[:_LONGEST].strip("-_")
    return f"{day}-{words or 'entry'}{ending(text)}"


def ending(text: str) -> str:
    """The end of a text's name, which does not depend on the day, nor on how the text is spelled."""
    return _ending(normal(text))


def endings(text: str) -> tuple[str, ...]:
    """The ends that the name of a text may have: earlier versions of Quire minded how it is spelled."""
    return ending(text), _ending(text)


def _ending(text: str) -> str:
    return f"-{hashlib.sha256(text.encode()).hexdigest()[:12]}.md"


def normal(text: str) -> str:
    """What a text says, whatever its case, Unicode form, kind of quotes, and spaces and stop at the end.

    Spaces between words count only in a text of several lines, which may be code.
    """
    lines = [line.rstrip() for line in normalize("NFC", text).translate(_QUOTES).strip().splitlines()]
    said = "\n".join(lines) if len(lines) > 1 else " ".join(text for line in lines for text in line.split())
    return (said.rstrip(_STOPS) or said).casefold()


# ------------------------------------------------------------------------------------- JSON lines


def to_line(entry: Entry, id: str) -> str:
    """An entry as a line of JSON, in ASCII: there are line ends and controls beyond it."""
    return json.dumps({"id": id, **asdict(entry)}) + "\n"


def from_line(line: str | bytes) -> Entry:
    """The entry in a line of JSON. Raises SettingError if the line is not an entry."""
    found = _object(line)
    _check(found)
    return make_entry(
        found["kind"],
        found["text"],
        collection=found.get("collection"),
        title=found.get("title"),
        tags=found.get("tags") or (),
        name=found.get("path"),
        created_at=found.get("created_at") or 0,
        updated_at=found.get("updated_at") or 0,
        history=[Version(one["written_at"], one["text"]) for one in found.get("history") or ()],
    )


def _object(line: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise SettingError("line", f"is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise SettingError("line", "is not an object with a kind and a text")
    return found


def _check(found: dict[str, Any]) -> None:
    """Refuse a line without kind or text, or with a value of the wrong type."""
    check_kinds([str(found.get("kind"))])
    if not isinstance(found.get("text"), str):
        raise SettingError("text", "is missing")
    for name in ("collection", "path", "title"):
        if not isinstance(found.get(name), str | None):
            raise SettingError(name, f"must be a string, not {found[name]!r}")
    tags = found.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise SettingError("tags", f"must be a list of strings, not {tags!r}")
    for name in ("created_at", "updated_at"):
        _check_time(name, found.get(name) or 0)
    _check_history(found.get("history") or [])


def _check_history(history: Any) -> None:
    if not isinstance(history, list) or not all(isinstance(one, dict) for one in history):
        raise SettingError("history", f"must be a list of objects, not {history!r}")
    for one in history:
        _check_time("written_at", one.get("written_at"))
        if not isinstance(text := one.get("text"), str) or "\0" in text:
            raise SettingError("history", "has an entry without text, or with NUL bytes")


def _check_time(name: str, when: Any) -> None:
    if type(when) is not int or not 0 <= when <= _LATEST:
        raise SettingError(name, f"must be milliseconds since 1970, not {when!r}")


# ------------------------------------------------------------------------------------------ times


def moment(name: str, said: str | datetime | None, *, end: bool = False, ahead: bool = False) -> int | None:
    """A time in milliseconds: a date, a date and time, or an age (12h, 7d, 2w).

    A day means its beginning, or its end if `end` is set. An age is one in the past, or if `ahead` is set so
    long from now. Raises SettingError for the setting `name`.
    """
    if said is None:
        return None
    if isinstance(said, datetime):
        when = said
    elif span := _SPAN.fullmatch(said.strip()):
        when = _away(name, int(span[1]) * (1 if ahead else -1), _UNITS[span[2]])
    else:
        when = _written(name, said.strip(), end)
    return int(when.timestamp() * 1000)


def _away(name: str, number: int, unit: str) -> datetime:
    try:
        return datetime.now(UTC) + timedelta(**{unit: number})
    except OverflowError:
        raise SettingError(name, f"{abs(number):,} {unit} is too long") from None


def _written(name: str, said: str, end: bool) -> datetime:
    try:
        when = datetime.fromisoformat(said)
        is_day = len(said) <= len("2026-01-31") and "T" not in said
        return (when + timedelta(days=1 if end and is_day else 0)).astimezone()
    except (ValueError, OverflowError, OSError):
        raise SettingError(name, f"{said!r} is no time. Type 2026-01-31, 2026-01-31T12:00 or 7d") from None
