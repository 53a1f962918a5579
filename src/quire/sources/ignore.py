"""Ignore rules: which paths under a folder are left out, and by which line of which file.

Input: patterns as in .gitignore, and names from a base folder down. Output: the last rule that matches.
Always: each path is matched alone, name by name, as in git; no step backtracks without bound, so a
pattern from a stranger's folder cannot stall a walk.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quire import later
from quire.document import BOM

IGNORE_FILES = (".gitignore", ".quireignore")  # in one folder, the second overrides the first
_MAX_BYTES = 1_000_000  # of an ignore file
# Files that usually hold secrets: environments, private keys, credentials. A page about them is not one.
_SECRET = later.pattern(
    r"""
    \.env(?:\..*)? | .*\.(?:pem|key|ppk|p12|pfx|jks|keystore|kdbx) | id_(?:rsa|dsa|ecdsa|ed25519)(?:\..*)?
    | \.(?:netrc|pgpass|npmrc|pypirc|htpasswd|git-credentials)
    | (?:credentials?|secrets?|passwords?)(?:\.(?:txt|csv|json|ya?ml|toml|ini|env|cfg))?
    """,
    re.VERBOSE | re.IGNORECASE,
)


def may_hold_secrets(name: str) -> bool:
    """Whether a file of this name usually holds secrets."""
    return _SECRET.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of an ignore file. A segment is what one name must match; None is `**`."""

    segments: tuple[re.Pattern[str] | None, ...]
    first: int  # index of the name its segments start at: -1 for a pattern without a slash
    negated: bool
    only_folders: bool
    origin: str  # its file and line: `.gitignore:3`

    def fits(self, names: tuple[str, ...], is_folder: bool) -> bool:
        """Whether it matches a file or folder, given by its names from the base down."""
        return (is_folder or not self.only_folders) and _fits(self.segments, names[self.first :])


def last_fit(rules: Sequence[Rule], names: tuple[str, ...], *, is_folder: bool) -> Rule | None:
    """The last rule that matches a path."""
    return next((rule for rule in reversed(rules) if rule.fits(names, is_folder)), None)


def covers(rules: Sequence[Rule], names: tuple[str, ...], depth: int) -> Rule | None:
    """The rule that matches a file or a folder above it; None if there is none.

    The first `depth` names are folders that the rules do not apply to.
    """
    for size in range(len(names), depth, -1):
        rule = last_fit(rules, names[:size], is_folder=size < len(names))
        if rule is not None:
            return None if rule.negated else rule
    return None


def parse_rules(lines: Iterable[str], depth: int, origin: str) -> list[Rule]:
    """The rules in the lines of a file that is `depth` folders below the base."""
    found = []
    for number, line in enumerate(lines, 1):
        pattern = _trimmed(line.removesuffix("\r"))
        if pattern and pattern[0] != "#":
            found.append(_rule(pattern, depth, f"{origin}:{number}"))
    return found


def patterns(given: Iterable[str], depth: int, origin: str) -> tuple[Rule, ...]:
    """The rules of a list of patterns."""
    return tuple(_rule(pattern, depth, f"{origin} {pattern}") for pattern in given if pattern.strip("!/ "))


def read_rules(path: str, depth: int, origin: str) -> list[Rule]:
    """The rules in an ignore file. Raises OSError if it cannot be used."""
    return parse_rules(_text(path).split("\n"), depth, origin)


def _text(path: str) -> str:
    found = os.stat(path, follow_symlinks=False)  # noqa: PTH116
    if not stat.S_ISREG(found.st_mode):
        raise OSError("is not a regular file")
    if found.st_size > _MAX_BYTES:
        raise OSError(f"{found.st_size:,} bytes is over {_MAX_BYTES:,}")
    return Path(path).read_bytes().decode("utf-8", "surrogateescape").removeprefix(BOM)


def _trimmed(line: str) -> str:
    r"""A line without trailing spaces; `\ ` is not one."""
    characters = re.findall(r"\\.|.", line, re.DOTALL)
    while characters and characters[-1] == " ":
        characters.pop()
    return "".join(characters)


def _rule(line: str, depth: int, origin: str) -> Rule:
    glob = line.removeprefix("!")
    path = glob.removesuffix("/")
    negated, only_folders = glob != line, path != glob
    if "/" not in path:
        return Rule((_segment(path),), -1, negated, only_folders, origin)
    segments = path.removeprefix("/").split("/")
    return Rule(
        tuple(None if re.fullmatch(r"\*{2,}", segment) else _segment(segment) for segment in segments),
        depth,
        negated,
        only_folders,
        origin,
    )


_NEVER = later.pattern("(?!)")  # matches nothing
_GLOB = later.pattern(
    r"(?P<star>\*+)|(?P<any>\?)|\\(?P<escaped>.)|(?P<plain>[^\\\[])"
    r"|\[(?P<not>[!^]?+)(?P<set>\]?+(?:\[:[^\[\]:]*:\]|\\.|[^\]\\])*+)\]|(?P<broken>.)",
    re.DOTALL,
)
_SET = later.pattern(r"\[:(?P<name>[^\[\]:]*):\]|(?P<low>\\?.)-(?P<high>\\?.)|\\?(?P<one>.)", re.DOTALL)
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


def _segment(glob: str) -> re.Pattern[str]:
    """The expression for one name. A pattern that is malformed to git matches nothing."""
    runs: list[list[str]] = [[]]  # the text between stars
    for token in _GLOB.finditer(glob):
        if token["broken"]:
            return _NEVER
        if token["star"]:
            runs.append([])
        else:
            runs[-1].append(_one(token))
    first, *rest = map("".join, runs)
    if not rest:
        return re.compile(first, re.DOTALL)
    # Every star but the last matches as little as it can, without backtracking.
    found = "".join(f"(?>.*?{run})" for run in rest[:-1])
    return re.compile(f"{first}{found}.*{rest[-1]}", re.DOTALL)


def _one(token: re.Match[str]) -> str:
    """The expression for one character."""
    if token["any"]:
        return "."
    if token["set"] is None:
        return re.escape(token["escaped"] or token["plain"])
    items = [_item(item) for item in _SET.finditer(token["set"])]
    if None in items:
        return _NEVER.pattern
    return f"[{'^' if token['not'] else ''}{''.join(item for item in items if item)}]"


def _item(item: re.Match[str]) -> str | None:
    """A part of a set; None for a class that does not exist."""
    if item["name"] is not None:
        return _CLASSES.get(item["name"])
    if item["one"]:
        return re.escape(item["one"])
    low, high = item["low"][-1], item["high"][-1]
    # git checks the low end alone first, so a backward range still contains it
    return f"{re.escape(low)}-{re.escape(max(low, high))}"


def _fits(segments: tuple[re.Pattern[str] | None, ...], names: tuple[str, ...]) -> bool:
    """Whether names match segments; on a mismatch the last `**` takes one more name.

    A `**` at the end takes at least one, since it is only reached while there is one.
    """
    at = name = taken = 0
    after = -1  # the segment after the last `**`
    while name < len(names):
        segment = segments[at] if at < len(segments) else _NEVER
        if segment is None:
            at, after, taken = at + 1, at + 1, name
        elif segment.fullmatch(names[name]):
            at, name = at + 1, name + 1
        elif after >= 0:
            taken += 1
            at, name = after, taken
        else:
            return False
    return at == len(segments)
