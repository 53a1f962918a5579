"""Answers for agents: Markdown in which everything from documents is quoted.

Always: text of documents is only on lines that begin with `> ` or in a fence that it cannot close;
invisible characters are written as their codes; an answer has at most max_tokens; an answer that was cut
says so and has a cursor, which is valid in any process until the content changes.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quire import sentences
from quire.config import DEFAULT, TokenSettings
from quire.errors import (
    EmbeddingError,
    InternalError,
    LibraryError,
    NoResults,
    QuireError,
    SettingError,
    SourceError,
)
from quire.surfaces import render
from quire.surfaces.mcp.results import as_data
from quire.tokens import Counter, budget_counter

if TYPE_CHECKING:
    from quire.library import Library
    from quire.surfaces.mcp.arguments import Arguments

# Besides those of render.safe: invisible hyphens, joiners and fillers, shorthand and music formats.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
_LONGEST_ERROR = 400  # characters: one may name every heading of a document
_ERROR_TOKENS = 150  # with the advice, less than the least max_tokens
_MOST_VALUES = 20  # of a list in an error
_DOTS = 4  # tokens that the mark of a cut can take
# What only a person can type.
_BY_HAND = r"quire (?:add|backup|copy|doctor|embed|refresh|remove|restore|sources|trust)\b"
# Commands and options in the library's messages, and what agents do instead.
_FOR_AGENTS = (
    (re.compile(r"\bSee what there is with: quire list"), "Call list to see what there is"),
    (re.compile(r"\bquire (add) (?:\./docs|https://example\.com/guide)"), r"the tool \1"),
    (re.compile(r"\bquire (add) --(site) \S+"), r"the tool \1, with \2"),
    (
        re.compile(r"\bquire (remember) TEXT|\bquire (recall) QUERY|\bquire (list|refresh)\b(?! --)"),
        r"the tool \1\2\3",
    ),
    (re.compile(r"\bquire (forget|remove) (?!--purge).+"), r"the tool \1"),
    (re.compile(r"\bquire chunks ADDRESS"), "the tool read, with chunks"),
    (re.compile(r": -c NAME"), ""),
    (re.compile(rf"(?<!must )\btype: (?={_BY_HAND})|(?<!type: )\b(?={_BY_HAND})"), "a person must type: "),
)
_ADVICE: dict[type[QuireError], str] = {
    NoResults: "Nothing of that name. Call list for documents, toc for headings, add for what is missing.",
    SettingError: "An argument is wrong. Put it right and call again.",
    SourceError: "That source cannot be read.",
    EmbeddingError: 'The model cannot be used. mode="keyword" works without it.',
    LibraryError: "The library cannot be used. Tell the person who runs it.",
    QuireError: "That cannot be done.",
}
_NO_ENTRY = "Nothing of that name. Call recall for what was remembered, remember to keep what is missing."


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a tool: text for models, and the same as data."""

    text: str
    data: dict[str, Any] | None = None  # for clients that show it to models, some of them instead of the text
    error: dict[str, Any] | None = None  # for programs: code, message and details
    results: dict[str, Any] | None = None  # for programs: see `results.py`


def visible(text: str) -> str:
    """Text with every invisible character written as its code, and one kind of line end."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _INVISIBLE.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", render.safe(text))


def source_offset(text: str, offset: int) -> int:
    """Where a place of a text made visible is in the text; before the character whose code it is in."""
    if visible(text) == text:
        return offset
    return bisect_right(range(len(text) + 1), offset, key=lambda end: len(visible(text[:end]))) - 1


def on_one_line(text: str) -> str:
    """A name or a title: visible, with line ends written as codes too."""
    return visible(text).replace("\n", "\\u{a}")


def quoted(text: str) -> str:
    """Text in a block quote, with no line outside it."""
    return "\n".join(f"> {line}" for line in visible(text).split("\n"))


def fenced(text: str) -> str:
    """Visible text in a fence that is longer than any in it."""
    longest = {mark: max(map(len, re.findall(f"{mark}+", text)), default=0) for mark in "`~"}
    mark = "`" if longest["`"] <= max(2, longest["~"]) else "~"
    fence = mark * max(3, longest[mark] + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}\n{text}{end}{fence}"


def for_agents(text: str) -> str:
    """A message of the library with tools in place of commands."""
    for command, instead in _FOR_AGENTS:
        text = command.sub(instead, text)
    return text


def quoted_note(text: str) -> str:
    """A note of the library for agents, quoted because it may name headings."""
    return quoted(for_agents(text))


def item(text: str) -> str:
    """A message of the library for agents, as one of a list."""
    return f"> - {on_one_line(for_agents(text))}"


def failure(error: QuireError, *, of_entries: bool = False) -> Answer:
    """What went wrong and what to do next, in a few lines; `of_entries` if that was about memories."""
    advice = next(_ADVICE[kind] for kind in type(error).__mro__ if kind in _ADVICE)
    advice = _NO_ENTRY if of_entries and isinstance(error, NoResults) else advice
    said, counter = quoted_note(str(error)), budget_counter(DEFAULT.tokens)
    end = min(_LONGEST_ERROR, counter.reach(said, 0, len(said), _ERROR_TOKENS))
    said = said if len(said) <= end else f"{said[:end]}…"
    return Answer(f"{advice}\n\n{said}", error=_told(error.to_json()))


def _told(value: Any) -> Any:
    """Data with tools in place of commands in all its texts."""
    if isinstance(value, str):
        return for_agents(value)
    if isinstance(value, dict):
        return {name: _told(one) for name, one in value.items()}
    return [_told(one) for one in value] if isinstance(value, list) else value


def internal_failure(tool: str) -> Answer:
    """What to say of a bug."""
    said = f"{tool} failed inside Quire; the server's log says why."
    return Answer(said, error=InternalError(said).to_json())


def nothing(of_entries: bool, read_only: bool, *, is_answer: bool = False, note: str = "") -> Answer:
    """What to do if there is no library, or nothing in it. To recall nothing is an answer, not an error."""
    what, tool, command = ("indexed", "add", "quire add ./docs")
    if of_entries:
        what, tool, command = ("remembered", "remember", "quire remember TEXT")
    how = f"a person must type: {command}" if read_only else f"call {tool}"
    said = f"Nothing is {what} yet: {how}."
    if is_answer:
        notes = [note] if note else []
        told = as_data("recall", (), total=0, cursor=None, notes=notes)
        return Answer("\n\n".join((said, *map(quoted_note, notes))), results=told)
    missing = "memories" if of_entries else "documents"
    return Answer(said, error=NoResults(said, missing=missing).to_json())


def visible_error(error: dict[str, Any]) -> dict[str, Any]:
    """An error as data for a client: its texts are visible and not too long."""
    return {name: _visible(value) for name, value in error.items()}


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        said = visible(value)
        return said if len(said) <= _LONGEST_ERROR else f"{said[:_LONGEST_ERROR]}…"
    if isinstance(value, dict):
        return visible_error(value)
    return [_visible(one) for one in value[:_MOST_VALUES]] if isinstance(value, list) else value


def short_digest(*values: object) -> str:
    """A digest of eight characters."""
    told = json.dumps(values, sort_keys=True, default=str)
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


class Page:
    """Where an answer begins, how long it may be, and the cursor for the next one.

    `version` changes with the content: then a cursor is stale. A cursor holds no secret and grants
    nothing: its digests guard against mistakes, and everything else is queried again.
    """

    def __init__(
        self, tool: str, arguments: Mapping[str, Any], version: object, settings: TokenSettings
    ) -> None:
        asked = {name: value for name, value in arguments.items() if name not in ("cursor", "max_tokens")}
        self.tool = tool
        self.max_tokens: int = arguments["max_tokens"]
        self._asked, self._version = short_digest(tool, asked), short_digest(version)
        self._counter: Counter = budget_counter(settings)
        self.start = self._read(arguments.get("cursor", ""))

    def cursor(self, place: int) -> str:
        """The cursor that continues from a place."""
        told = f"{place}.{self._asked}.{self._version}"
        return f"{told}.{short_digest(told)}"

    def _read(self, cursor: str) -> int:
        if not cursor:
            return 0
        told, _, check = cursor.rpartition(".")
        place, _, rest = told.partition(".")
        asked, _, version = rest.partition(".")
        if check != short_digest(told) or not place.isdecimal():
            raise SettingError("cursor", "is not one that was given out. Call again without it.")
        if asked != self._asked:
            raise SettingError(
                "cursor", "belongs to other arguments. Repeat those, or call again without it."
            )
        if version != self._version:
            raise SettingError("cursor", "the library has changed since. Call again without it.")
        return int(place)

    def count(self, text: str) -> int:
        """The number of tokens in a text."""
        return self._counter.count(text, 0, len(text))

    def clip(self, text: str, tokens: int) -> str:
        """The beginning of a text, within so many tokens."""
        if self._counter.fits(text, 0, len(text), tokens):
            return text
        end = self._counter.reach(text, 0, len(text), tokens - _DOTS)
        return f"{text[:end]}…" if end else ""

    def rows(
        self,
        head: str,
        rows: Iterable[str],
        total: int,
        *,
        tail: Sequence[str] = (),
        gap: str = "\n",
        cursors: bool = True,
    ) -> tuple[str, int]:
        """As many rows as fit, from the page's start on, and where they end; the first is cut if needed."""
        said = [self.clip(line, self.max_tokens // 5) for line in tail]
        kept = self._kept(rows, gap, self.max_tokens - self.count("\n\n".join((head, *said))))
        while True:
            end = self.start + len(kept)
            more = [self._more(end, total, cursors)] if end < total else []
            text = "\n\n".join(filter(None, (head, gap.join(kept), *said, *more)))
            over = self.count(text) - self.max_tokens
            if over <= 0 or not (kept or said):
                return text, end
            if len(kept) > 1:
                kept.pop()
            elif kept:
                left = self.count(kept[0]) - over - 1
                kept = [self.clip(kept[0], left)] if left > 0 else []
            else:
                said.pop()

    def _kept(self, rows: Iterable[str], gap: str, most: int) -> list[str]:
        """As many rows as fit, at least one. Together they have fewer tokens than one by one."""
        kept, room = list[str](), most
        for row in rows:
            room -= self.count(gap + row)
            if room < 0 and kept:
                room = most - self.count(gap.join((*kept, row)))
                if room < 0:
                    break
            kept.append(row)
        return kept

    def rest(self, end: int, total: int) -> str | None:
        """The cursor for what is left; None if nothing is."""
        return self.cursor(end) if end < total else None

    def _more(self, end: int, total: int, cursors: bool) -> str:
        if not cursors:
            return f"{total - end:,} more are not shown."
        first = f"{self.start + 1:,}–" if end > self.start + 1 else ""
        shown = f"Cut at max_tokens: {first}{end:,} of {total:,} shown."
        return f"{shown} {self._go_on(end)}"

    def _go_on(self, place: int) -> str:
        return f'For the rest, call {self.tool} with the same arguments and cursor="{self.cursor(place)}"'

    def passage(self, head: str, text: str, first_line: int, about: str = "") -> tuple[str, int]:
        """As much of a visible text as fits, from the page's start on, and where it ends.

        It is in a fence under its citation: the head, its lines, and what is said about it.
        """
        start, room = self.start, self.max_tokens
        line = first_line + text.count("\n", 0, start)
        while True:
            end = self._edge(text, start, room)
            piece = text[start:end]
            where = f"> {render.line_range(line, line + piece[:-1].count(chr(10)))}{about}"
            parts = [self.clip(head, self.max_tokens // 3), where, "", fenced(piece)]
            if end < len(text):
                last = line + text.count("\n", start, len(text) - 1)
                parts += ["", f"Cut at max_tokens; it goes on to line {last:,}. {self._go_on(end)}"]
            answer = "\n".join(parts)
            over = self.count(answer) - self.max_tokens
            if over <= 0 or room <= 1:
                return self.clip(answer, self.max_tokens), end
            room -= min(over, room // 2)

    def _edge(self, text: str, start: int, room: int) -> int:
        """Where to stop: after a line if one ends in the second half, else after a word."""
        reach = self._counter.reach(text, start, len(text), room)
        if reach >= len(text):
            return len(text)
        line = text.rfind("\n", start, reach) + 1
        if line > (start + reach) // 2:
            return line
        return max(start + 1, sentences.word_edge(text, start, max(reach, start + 1)))


def page_of(name: str, asked: Arguments, library: Library, version: object) -> Page:
    """The page that answers a call. Its cursors are valid for one version of what is listed."""
    return Page(name, asked.model_dump(), (library.url, version), library.config.tokens)
