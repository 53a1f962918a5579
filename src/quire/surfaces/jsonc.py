"""Put one block into a section of a JSON file, with or without comments, and take it out again.

Always: outside the block the text stays as it is, character by character, and the result parses to what was
there and the block. Taking out a block gives the text before it was put in.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from quire.surfaces.insertions import CHANGED, Insertion, is_blank, line_end

_SPACE = " \t\r\n"
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TOKEN = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# The comma of `{,}` stays, so that it is refused.
_COMMA = re.compile(rf"{_STRING}|[\[{{][{_SPACE}]*,|,(?=[{_SPACE}]*[\]}}])", re.DOTALL)
_COMMENTS = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*.*?\*/))*", re.DOTALL)
_GAP = re.compile(rf"[{_SPACE}]*")
_INDENT = re.compile(r'[\r\n]([ \t]+)"')


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """A named value in a section: `"mcpServers": {"quire": {…}}`."""

    section: str
    name: str
    value: dict[str, Any]

    def is_in(self, text: str) -> bool:
        """Whether the section has this value, however it is written."""
        return _section(_parsed(text), self.section).get(self.name) == self.value

    def insertion(self, text: str) -> Insertion:
        """How the block goes into a text. Raises ValueError if another value has its name."""
        block = {self.name: self.value}
        if is_blank(text):
            return Insertion(
                len(text), f"{json.dumps({self.section: block}, indent=2, ensure_ascii=False)}\n"
            )
        parsed = _parsed(text)
        if self.name in _section(parsed, self.section):
            raise ValueError(f'has another "{self.name}" in "{self.section}"')
        found, (section, _) = _Text(text), self._places(text)
        if section:
            made = found.insertion(section.value, self.name, self.value)
        else:
            made = found.insertion(found.root, self.section, block)
        parsed[self.section] = parsed.get(self.section, {}) | block
        return _checked(made, text, parsed)

    def without(self, text: str, inserted: str) -> str:
        """The text without a block that was inserted, and without a section that came with it."""
        parsed = _parsed(text)
        if self.name not in _section(parsed, self.section):
            return text
        if parsed[self.section][self.name] != _inserted_value(inserted, self.section, self.name):
            raise ValueError(CHANGED)
        cut = self._exact_cut(text, inserted)
        return self._careful_cut(text, inserted) if cut is None else cut

    def _places(self, text: str) -> tuple[_Member | None, _Member | None]:
        """Where the section and the block are."""
        found = _Text(text)
        section = _only(found.members(found.root), self.section)
        return section, section and _only(found.members(section.value), self.name)

    def _exact_cut(self, text: str, inserted: str) -> str | None:
        """The text without the very characters that were inserted; None if others are there now."""
        section, block = self._places(text)
        bare, name = inserted.lstrip(_SPACE), json.dumps(self.name)
        found = block if bare.startswith(name) else section
        anchor = _Text(text).root if bare.startswith("{") or found is None else found.start
        start = anchor - (len(inserted) - len(bare))
        if start < 0 or not text.startswith(inserted, start):
            return None
        cut = text[:start] + text[start + len(inserted) :]
        return cut if _parses_to(cut, self._rest(text, not bare.startswith(name))) else None

    def _rest(self, text: str, is_section_made: bool) -> dict[str, Any]:
        """What a text parses to without the block."""
        rest = copy.deepcopy(_parsed(text))
        rest[self.section].pop(self.name)
        if is_section_made and not rest[self.section]:
            rest.pop(self.section)
        return rest

    def _careful_cut(self, text: str, inserted: str) -> str:
        """The text without the block, wherever it is and however it is written now. No comment is lost."""
        bare = inserted.lstrip(_SPACE)
        text = _without_member(text, self._rest(text, False), self.section, self.name)
        section, _ = self._places(text)
        if bare.startswith(json.dumps(self.name)) or not section or not _is_empty(text, section):
            return text
        text = _without_member(text, self._rest_of_root(text), self.section)
        return "" if bare.startswith("{") and _is_bare(text) else text

    def _rest_of_root(self, text: str) -> dict[str, Any]:
        return {name: value for name, value in _parsed(text).items() if name != self.section}


class _Member(NamedTuple):
    name: str
    start: int
    value: int  # where its value begins
    end: int


class _Text:
    """A text of JSON with comments, and two of the same length: without comments, and plain JSON."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = _TOKEN.sub(_blanked, text)
        if self.bare.startswith("\ufeff"):
            self.bare = f" {self.bare[1:]}"
        self.plain = _COMMA.sub(lambda found: " " if found[0] == "," else found[0], self.bare)
        self.root = self.skip(0)

    def skip(self, place: int) -> int:
        """The next place that is no white space and no comment."""
        found = _GAP.match(self.bare, place)
        return found.end() if found else place

    def members(self, brace: int) -> list[_Member]:
        """The members of the object that begins at a place."""
        return list(self._members(brace)) if self.plain[brace : brace + 1] == "{" else []

    def _members(self, brace: int) -> Iterator[_Member]:
        decoder, place = json.JSONDecoder(), self.skip(brace + 1)
        while self.plain[place] != "}":
            name, end = decoder.raw_decode(self.plain, place)
            value = self.skip(self.skip(end) + 1)
            _, end = decoder.raw_decode(self.plain, value)
            yield _Member(name, place, value, end)
            place = self.skip(end)
            if self.bare[place] == ",":
                place = self.skip(place + 1)

    def insertion(self, brace: int, name: str, value: Any) -> Insertion:
        """How a member becomes the first of the object that begins at a place."""
        at, members = self._after_comments(brace), self.members(brace)
        if not members:
            rest, end = self.bare[at : self.skip(brace + 1)], line_end(self.text)
            tail = "" if _has_line_end(rest) else end + self._indent_at(brace)
            return Insertion(at, self._on_lines(name, value, self._indent_at(brace) + self._unit()) + tail)
        first = members[0].start
        if _has_line_end(self.bare[at:first]):
            return Insertion(at, f"{self._on_lines(name, value, self._indent_of(first, brace))},")
        return Insertion(first, f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}, ")

    def _after_comments(self, brace: int) -> int:
        """The place after a brace and the comments on its line."""
        found = _COMMENTS.match(self.text, brace + 1)
        return found.end() if found else brace + 1

    def _on_lines(self, name: str, value: Any, indent: str) -> str:
        end = line_end(self.text) + indent
        lines = json.dumps(value, indent=self._unit(), ensure_ascii=False).split("\n")
        return f"{end}{json.dumps(name)}: {end.join(lines)}"

    def _unit(self) -> str:
        found = _INDENT.search(self.text)
        return found[1] if found else "  "

    def _indent_at(self, place: int) -> str:
        """The indentation of the line of a place."""
        line = self.text[self._line_start(place) : place]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _indent_of(self, first: int, brace: int) -> str:
        """The indentation of the members of an object."""
        before = self.text[self._line_start(first) : first]
        return self._indent_at(brace) + self._unit() if before.strip(" \t") else before

    def _line_start(self, place: int) -> int:
        return max(self.text.rfind("\n", 0, place), self.text.rfind("\r", 0, place)) + 1

    def cuts(self, brace: int, name: str) -> Iterator[str]:
        """The text without a member of an object: first without the white space before it, then with that."""
        members = self.members(brace)
        at = next(number for number, member in enumerate(members) if member.name == name)
        if _has_comments(self.text, members[at]):
            raise ValueError(CHANGED)
        before = len(self.text[: members[at].start].rstrip(_SPACE))
        for start in (before, members[at].start):
            yield self._cut(members, at, start)

    def _cut(self, members: list[_Member], at: int, start: int) -> str:
        """The text without a member, from a place on, and without the comma after it, or else before it."""
        text, end = self.text, members[at].end
        comma = self.skip(end)
        if self.bare[comma] == ",":
            return text[:start] + text[end:comma] + text[comma + 1 :]
        if at == 0:
            return text[:start] + text[end:]
        comma = self.skip(members[at - 1].end)
        return text[:comma] + text[comma + 1 : max(start, comma + 1)] + text[end:]


def _blanked(found: re.Match[str]) -> str:
    """Spaces for a comment; what is not closed stays, so that it is refused."""
    token = found[0]
    is_comment = token.startswith("//") or (
        token.startswith("/*") and token.endswith("*/") and len(token) > 3
    )
    return " " * len(token) if is_comment else token


def _has_line_end(text: str) -> bool:
    return "\n" in text or "\r" in text


def _is_bare(text: str) -> bool:
    """Whether an object has neither members nor comments."""
    return not text.strip("\ufeff{}" + _SPACE)


def _is_empty(text: str, member: _Member) -> bool:
    """Whether the object of a member has no members, and nobody has put a comment there."""
    return _is_bare(text[member.value : member.end]) and not _has_comments(text, member)


def _has_comments(text: str, member: _Member) -> bool:
    return _Text(text).bare[member.start : member.end] != text[member.start : member.end]


def _parsed(text: str) -> dict[str, Any]:
    """The object that a text is. Raises ValueError for all else."""
    if is_blank(text):
        return {}
    try:
        parsed = json.loads(_Text(text).plain, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as problem:
        raise ValueError(f"is not JSON: {problem}") from None
    if not isinstance(parsed, dict):
        raise ValueError("is not a JSON object")
    return parsed


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _section(parsed: dict[str, Any], name: str) -> dict[str, Any]:
    section = parsed.get(name, {})
    if not isinstance(section, dict):
        raise ValueError(f'has a "{name}" that is not an object')
    return section


def _only(members: list[_Member], name: str) -> _Member | None:
    """The member with a name. Raises ValueError if there are several."""
    found = [member for member in members if member.name == name]
    if len(found) > 1:
        raise ValueError(f'has "{name}" twice')
    return found[0] if found else None


def _parses_to(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return _parsed(text) == wanted
    except ValueError:
        return False


def _checked(made: Insertion, text: str, wanted: dict[str, Any]) -> Insertion:
    if not _parses_to(made.into(text), wanted):
        raise ValueError("has a form that Quire cannot write to")
    return made


def _without_member(text: str, wanted: dict[str, Any], *path: str) -> str:
    """The text without a member, given by its names from the root on. Raises ValueError if commented."""
    found = _Text(text)
    brace = found.root
    for name in path[:-1]:
        brace = next(member.value for member in found.members(brace) if member.name == name)
    for cut in found.cuts(brace, path[-1]):
        if _parses_to(cut, wanted):
            return cut
    raise ValueError(CHANGED)


def _inserted_value(inserted: str, section: str, name: str) -> Any:
    """The value in a text that was inserted."""
    bare = inserted.strip(_SPACE).removesuffix(",")
    parsed = json.loads(bare if bare.startswith("{") else f"{{{bare}}}")
    return parsed.get(section, parsed).get(name)
