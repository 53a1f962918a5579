"""Files to documents, and folders to the files in them.

`read` takes a path and gives its document; a path that is no regular, readable text file raises a
SourceError. `walk` takes a folder and gives, for every file worth reading, a Found, and for every
one that must be left out, a Skipped with its reason. Always: no file but an ignore file is opened
by a walk, nothing outside the root is entered, no folder is entered twice, and the same tree gives
the same files in the same order, by name and depth first. Folders that only a link leads to come last.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from quire.config import DEFAULT, DocumentSettings
from quire.document import BOM, Document, encoding_of
from quire.errors import TooLarge, Unreadable

WEB_PAGES = (".html", ".htm")
ENDINGS = (".md", ".markdown", ".mdx", ".txt", ".rst", *WEB_PAGES)
IGNORE_FILES = (".gitignore", ".quireignore")  # of one folder, the second has the last word
UNWANTED_FOLDERS = frozenset({"node_modules", "__pycache__"})
_MAX_IGNORE_BYTES = 1_000_000

_ALSO = {
    stat.S_IFDIR: "is a folder; name the files in it",
    stat.S_IFIFO: "is a pipe, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
}


def read(path: str | Path, *, settings: DocumentSettings = DEFAULT.document) -> Document:
    """The document in a file, whose path is as given, with forward slashes and printable."""
    return Document.from_bytes(load(path, settings=settings), printable(path), settings=settings)


def load(path: str | Path, *, settings: DocumentSettings = DEFAULT.document) -> bytes:
    """The bytes of a regular file within the cap; of a web page, those of its markdown."""
    name = printable(path)
    try:
        _check(os.stat(path), name, settings)  # noqa: PTH116  a stat never blocks on a pipe
        source = Path(path).read_bytes()
        return _markdown(source) if name.lower().endswith(WEB_PAGES) else source
    except OSError as problem:
        raise Unreadable(name, _why(problem)) from None
    except ValueError:  # a NUL in the name
        raise Unreadable(name, "is no file name") from None


def _markdown(page: bytes) -> bytes:
    if b"\0" in page[:8192] and encoding_of(page) == "utf-8":
        return page  # binary, whatever its name says: it is refused as such
    from quire import html
    from quire.sources.page import declared_charset, likely_charset

    charset = declared_charset(page, {}) or likely_charset(page, "html")[0]
    return html.to_markdown(page.decode(charset, "replace"), links=False).text.encode()


def is_document(path: Path) -> bool:
    """Whether a file's name is one of those that are read."""
    return path.suffix.lower() in ENDINGS


def printable(path: str | Path) -> str:
    r"""A path as text: bytes of its name that are not UTF-8 are written `\\xNN`."""
    return Path(path).as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _check(found: os.stat_result, name: str, settings: DocumentSettings) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable(name, _kind(found))
    if found.st_size > settings.max_bytes:
        raise TooLarge(name, settings.over_cap(found.st_size))


def _kind(found: os.stat_result) -> str:
    return _ALSO.get(stat.S_IFMT(found.st_mode), "is not a regular file")


def _why(problem: OSError) -> str:
    return (problem.strerror or str(problem)).lower()


@dataclass(frozen=True, slots=True)
class Found:
    """A file worth reading, as it was when the walk came by."""

    absolute: str  # opens the file whatever its name is: os.fsencode gives its bytes
    path: str  # from the root, with forward slashes and printable
    size: int  # bytes
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that was left out though its name is wanted."""

    source: str  # its path from the root, printable
    reason: str


def walk(
    root: str | Path, *, endings: tuple[str, ...] = ENDINGS, max_bytes: int
) -> Iterator[Found | Skipped]:
    """The files under a folder that have one of the endings, in any case, and are not ignored.

    Raises Unreadable at once if the root is absent, forbidden or not a folder.
    """
    try:
        os.scandir(root).close()
        return _Walk(Path(root), endings, DocumentSettings(max_bytes=max_bytes)).run()
    except NotADirectoryError:
        raise Unreadable(printable(root), "is not a folder") from None
    except OSError as problem:
        raise Unreadable(printable(root), _why(problem)) from None
    except ValueError:  # a NUL in the name
        raise Unreadable(printable(root), "is no file name") from None


@dataclass(frozen=True, slots=True)
class _Place:
    """A file or folder: where it is, its names from the root down, and the rules it is under."""

    absolute: str
    names: tuple[str, ...]
    rules: tuple[_Rule, ...]

    def child(self, entry: os.DirEntry[str]) -> _Place:
        return _Place(entry.path, (*self.names, entry.name), self.rules)

    @property
    def path(self) -> str:
        return printable("/".join(self.names))

    def is_ignored(self, *, as_folder: bool) -> bool:
        """Whether the last rule that fits says so."""
        for rule in reversed(self.rules):
            if rule.fits(self.names, as_folder):
                return not rule.negated
        return False


class _Walk:
    """One walk: what is still to be looked at, and which folders were entered."""

    def __init__(self, root: Path, endings: tuple[str, ...], settings: DocumentSettings) -> None:
        self.root, self.real_root = root.absolute(), root.resolve()
        self.endings = tuple(ending.lower() for ending in endings)
        self.settings = settings
        self.entered: set[tuple[int, int]] = set()
        self.stack: list[tuple[os.DirEntry[str], _Place]] = []
        # A folder keeps its own name, and its own rules, when a link to it sorts before it.
        self.linked: deque[_Place] = deque()

    def run(self) -> Iterator[Found | Skipped]:
        yield from self._enter(_Place(str(self.root), (), ()))
        while self.stack or self.linked:
            if not self.stack:
                yield from self._enter(self.linked.popleft())
                continue
            entry, folder = self.stack.pop()
            if not entry.name.startswith("."):
                yield from self._look(entry, folder.child(entry))

    def _look(self, entry: os.DirEntry[str], place: _Place) -> Iterator[Found | Skipped]:
        try:
            if entry.is_symlink():
                yield from self._follow(place)
            elif entry.is_dir(follow_symlinks=False):
                if self._is_wanted_folder(place):
                    yield from self._enter(place)
            elif self._is_wanted_file(place):
                yield self._weigh(place, entry.stat(follow_symlinks=False))
        except FileNotFoundError:  # it vanished since its folder was listed
            return
        except OSError as problem:
            yield Skipped(place.path, _why(problem))

    def _enter(self, place: _Place) -> Iterator[Skipped]:
        """Put what a folder holds on the stack, unless it was there before."""
        try:
            found = os.stat(place.absolute)  # noqa: PTH116  an entry's own has no st_ino on Windows
            if (found.st_dev, found.st_ino) in self.entered:
                return
            self.entered.add((found.st_dev, found.st_ino))
            with os.scandir(place.absolute) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError as problem:
            yield Skipped(place.path, _why(problem))
            return
        rules = yield from _rules(entries, place)
        inside = _Place(place.absolute, place.names, (*place.rules, *rules))
        self.stack.extend((entry, inside) for entry in reversed(entries))

    def _follow(self, place: _Place) -> Iterator[Found | Skipped]:
        """What a link leads to, if it stays inside the root."""
        named_so = self._is_wanted_file(place)
        try:
            target = os.stat(place.absolute)  # noqa: PTH116
            real = Path(place.absolute).resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: a loop, before Python 3.13
            if named_so:
                yield Skipped(place.path, "is a link that leads nowhere")
            return
        is_folder = stat.S_ISDIR(target.st_mode)
        if not (self._is_wanted_folder(place) if is_folder else named_so):
            return
        if not real.is_relative_to(self.real_root):
            where = printable(self.root.name or self.root)
            yield Skipped(place.path, f"links to a place outside {where}")
        elif is_folder:
            self.linked.append(place)
        else:
            yield self._weigh(place, target)

    def _weigh(self, place: _Place, found: os.stat_result) -> Found | Skipped:
        if not stat.S_ISREG(found.st_mode):
            return Skipped(place.path, _kind(found))
        if found.st_size > self.settings.max_bytes:
            return Skipped(place.path, self.settings.over_cap(found.st_size))
        return Found(place.absolute, place.path, found.st_size, found.st_mtime_ns)

    def _is_wanted_file(self, place: _Place) -> bool:
        return place.names[-1].lower().endswith(self.endings) and not place.is_ignored(as_folder=False)

    def _is_wanted_folder(self, place: _Place) -> bool:
        return place.names[-1] not in UNWANTED_FOLDERS and not place.is_ignored(as_folder=True)


# Ignore files. Each path is judged by itself, name by name, as git does: a matcher that also takes
# what lies below a match cannot tell `!keep/` from `!keep/**`. No step backtracks without bound,
# so a pattern from a stranger's folder cannot stall a walk.


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line of an ignore file. A segment is what one name must match; None is `**`."""

    segments: tuple[re.Pattern[str] | None, ...]
    first: int  # the name its segments start at: -1 for a pattern without a slash
    negated: bool
    only_folders: bool

    def fits(self, names: tuple[str, ...], is_folder: bool) -> bool:
        return (is_folder or not self.only_folders) and _fits(self.segments, names[self.first :])


def _rules(entries: list[os.DirEntry[str]], place: _Place) -> Generator[Skipped, None, list[_Rule]]:
    """The rules a folder adds; an ignore file that cannot be used is told of."""
    rules: list[_Rule] = []
    by_name = {entry.name: entry for entry in entries if entry.name in IGNORE_FILES}
    for name in IGNORE_FILES:
        if name in by_name:
            try:
                rules += _parse(_ignore_text(by_name[name]), len(place.names))
            except OSError as problem:
                path = place.child(by_name[name]).path
                yield Skipped(path, f"{_why(problem)}; its patterns are not applied")
    return rules


def _ignore_text(entry: os.DirEntry[str]) -> str:
    found = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise OSError("is not a regular file")
    if found.st_size > _MAX_IGNORE_BYTES:
        raise OSError(f"{found.st_size:,} bytes is over {_MAX_IGNORE_BYTES:,}")
    return Path(entry.path).read_bytes().decode("utf-8", "surrogateescape").removeprefix(BOM)


def _parse(text: str, depth: int) -> list[_Rule]:
    """The rules in an ignore file that lies so many folders below the root."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [_rule(glob, depth) for line in lines if (glob := _trimmed(line)) and glob[0] != "#"]


def _trimmed(line: str) -> str:
    r"""A line without the spaces at its end; `\ ` is not one."""
    characters = re.findall(r"\\.|.", line, re.DOTALL)
    while characters and characters[-1] == " ":
        characters.pop()
    return "".join(characters)


def _rule(line: str, depth: int) -> _Rule:
    glob = line.removeprefix("!")
    path = glob.removesuffix("/")
    negated, only_folders = glob != line, path != glob
    if "/" not in path:
        return _Rule((_segment(path),), -1, negated, only_folders)
    segments = path.removeprefix("/").split("/")
    return _Rule(
        tuple(None if re.fullmatch(r"\*{2,}", segment) else _segment(segment) for segment in segments),
        depth,
        negated,
        only_folders,
    )


_NEVER = re.compile("(?!)")  # matches nothing
_GLOB = re.compile(
    r"(?P<star>\*+)|(?P<any>\?)|\\(?P<escaped>.)|(?P<plain>[^\\\[])"
    r"|\[(?P<not>[!^]?+)(?P<set>\]?+(?:\[:[^\[\]:]*:\]|\\.|[^\]\\])*+)\]|(?P<broken>.)",
    re.DOTALL,
)
_SET = re.compile(r"\[:(?P<name>[^\[\]:]*):\]|(?P<low>\\?.)-(?P<high>\\?.)|\\?(?P<one>.)", re.DOTALL)
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
    """The expression for one name; what git finds malformed matches nothing."""
    runs: list[list[str]] = [[]]  # what stands between stars
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
    # Every star but the last takes the least it can, for good: so nothing is tried over and over.
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
    # git looks at the low end by itself first, so a range that runs backwards still holds it
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
