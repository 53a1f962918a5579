"""Files to their bytes, and folders to the files in them.

`read_bytes` returns the bytes of a file, and raises a SourceError if it is no regular, readable file. `walk`
yields, for a folder, a FoundFile for every file to read, a Skipped for one that cannot be read, and a
PassedOver for one that nobody asked for. Always: a walk opens only ignore files, enters nothing
outside its folder and no folder twice, and yields the same files of the same tree in the same order, by
name and depth first. Folders that only a link leads to come last.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict, deque
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from quire import readers
from quire.config import DEFAULT, DocumentSettings
from quire.document import BOM
from quire.errors import TooLarge, Unreadable
from quire.sources import ignore
from quire.sources.contents import WEB_PAGES
from quire.sources.ignore import IGNORE_FILES, Rule
from quire.sources.paths import printable as printable
from quire.sources.paths import printed
from quire.sources.paths import unprintable as unprintable

ENDINGS = (
    *(".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".asciidoc", ".org", ".csv", ".tsv"),
    *(*WEB_PAGES, *readers.CONVERTED),
)
UNWANTED_FOLDERS = frozenset({"node_modules", "__pycache__"})
SECRETS = "may hold secrets"
_CONVERTED = tuple(readers.CONVERTED)
NO_ENDING = "without an ending"
_LOCKS = "~$"  # of Office programs, beside a file that is open

_MOST = 2**63 - 1  # nanoseconds that a database takes: until 2262
_ALSO = {
    stat.S_IFDIR: "is a folder; name the files in it",
    stat.S_IFIFO: "is a pipe, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
}


def read_bytes(path: str | Path, *, settings: DocumentSettings = DEFAULT.document) -> bytes:
    """The bytes of a regular file within the size limit."""
    name = printable(path)
    try:
        _check(os.stat(path), name, settings)  # noqa: PTH116  a stat never blocks on a pipe
        return Path(path).read_bytes()
    except OSError as problem:
        raise Unreadable(name, _why(problem)) from None
    except ValueError:  # a NUL in the name
        raise Unreadable(name, "is not a valid file name") from None


def is_document(path: Path) -> bool:
    """Whether Quire reads files with this name."""
    return path.suffix.lower() in ENDINGS


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
class Skipped:
    """A file or folder that was skipped though its name is wanted."""

    source: str  # its path from the root, printable
    reason: str
    code: str = ""  # of the error, if it could not be examined; see quire.errors.CODES
    kind: str = ""  # what it is counted as: SECRETS, or nothing


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read, with its state at the time of the walk."""

    absolute: str  # opens the file whatever its name is: os.fsencode gives its bytes
    path: str  # from the root, with forward slashes and printable
    size: int  # bytes
    mtime_ns: int
    ctime_ns: int = field(default=0, compare=False)  # changes when a file is renamed, too
    checksum: str | None = None  # of its document; None if it was not read
    problem: Skipped | None = None  # why it cannot be added, if it was read
    seen: int = 0  # its ctime when it was read, below 0 if it may have changed since; 0 if it was not read
    url: str | None = None  # the page that shows it, if it is in a repository


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file or folder that nobody asked for: a rule excludes it, or Quire does not read its kind."""

    path: str  # from the root, printable
    reason: str
    kind: str = ""  # what it is counted as, such as `.pdf`; "" if a rule excludes it
    is_asked: bool = False  # the options of its source exclude it


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files of a folder are wanted. Patterns are as in .gitignore, relative to the folder."""

    include: tuple[str, ...] = ()  # take only these, whatever their ending; () is every kind that is read
    exclude: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()  # paths that were removed one by one
    project: str = ""  # a folder whose settings narrow this further
    only: tuple[str, ...] = ()  # patterns relative to the project's folder: only these
    never: tuple[str, ...] = ()  # and none of these


EVERYTHING = Wanted()
Seen = FoundFile | Skipped | PassedOver


def walk(
    place: str | Path,
    *,
    root: str | Path | None = None,
    wanted: Wanted = EVERYTHING,
    within: Collection[str] = (),
    max_bytes: int,
) -> Iterator[Seen]:
    """The wanted files under a folder, and those left out, with the reason.

    Paths are relative to `root`, which is the folder itself or one above it. `within` names files and
    folders below it: then nothing else is looked at. Ignore files of the folder, and of its repository,
    apply. Raises Unreadable at once if the folder is missing, forbidden or not a folder.
    """
    try:
        os.scandir(place).close()
        settings = DocumentSettings(max_bytes=max_bytes)
        return _Walk(Path(place), Path(root or place), wanted, settings, within).run()
    except NotADirectoryError:
        raise Unreadable(printable(place), "is not a folder") from None
    except OSError as problem:
        raise Unreadable(printable(place), _why(problem)) from None
    except ValueError:  # a NUL in the name
        raise Unreadable(printable(place), "is not a valid file name") from None


def look(path: str | Path, root: str | Path) -> FoundFile | Skipped:
    """One file that a person named, whatever its name is."""
    absolute = Path(path).absolute()
    name = printable(absolute.relative_to(Path(root).absolute()))
    try:
        found = os.stat(absolute)  # noqa: PTH116
    except OSError as problem:
        return Skipped(name, _why(problem))
    if not stat.S_ISREG(found.st_mode):
        return Skipped(name, _kind(found))
    return _found(str(absolute), name, found)


def _found(absolute: str, path: str, found: os.stat_result) -> FoundFile:
    return FoundFile(absolute, path, found.st_size, _time(found.st_mtime_ns), _time(found.st_ctime_ns))


def _time(nanoseconds: int) -> int:
    return max(-_MOST, min(_MOST, nanoseconds))


class _Place(NamedTuple):
    """A file or folder: its path, its names from the base down, and the rules that apply to it."""

    absolute: str
    names: tuple[str, ...]
    depth: int  # how many names lead to the root, which paths start from
    rules: tuple[Rule, ...]

    def child(self, entry: os.DirEntry[str]) -> _Place:
        return _Place(entry.path, (*self.names, entry.name), self.depth, self.rules)

    @property
    def path(self) -> str:
        return printed("/".join(self.names[self.depth :])) or "."


class _Selection:
    """Which files are wanted, and why others are not."""

    def __init__(self, wanted: Wanted, depth: int, above: int) -> None:
        self.without, self.depth = wanted.without, depth
        self.include = ignore.patterns(wanted.include, depth, "not in include")
        self.asked = self.exclude = ignore.patterns(wanted.exclude, depth, "exclude")
        self.only = ignore.patterns(wanted.only, above, "files.include")
        self.exclude += ignore.patterns(wanted.never, above, "files.exclude")

    def _left_out(self, place: _Place, *, is_folder: bool) -> PassedOver | None:
        """Why something is not read; None if it is."""
        name = place.names[-1]
        if name in UNWANTED_FOLDERS if is_folder else ignore.may_hold_secrets(name):
            return PassedOver(
                place.path, "never read" if is_folder else SECRETS, "" if is_folder else SECRETS
            )
        if name[0] == "." or name.startswith(_LOCKS):
            return PassedOver(place.path, "hidden")
        rule = ignore.last_fit(place.rules, place.names, is_folder=is_folder) if place.rules else None
        if rule and not rule.negated:
            return PassedOver(place.path, f"ignored by {rule.origin}")
        return None if is_folder else self._unwanted(place)

    def _unwanted(self, place: _Place) -> PassedOver | None:
        """Why a file that no rule ignores is not wanted; None if it is."""
        if self.exclude and (rule := ignore.covers(self.exclude, place.names, self.depth)):
            return PassedOver(place.path, f"left out by {rule.origin}", is_asked=rule in self.asked)
        if self.without and place.path in self.without:
            return PassedOver(place.path, "removed from the library; to have it again, add it by its name")
        if self.only and not ignore.covers(self.only, place.names, 0):
            return PassedOver(place.path, "not in files.include")
        if self.include:
            found = ignore.covers(self.include, place.names, self.depth)
            return None if found else PassedOver(place.path, "not in include", is_asked=True)
        if place.names[-1].lower().endswith(ENDINGS):
            return None
        kind = os.path.splitext(place.names[-1])[1].lower() or NO_ENDING  # noqa: PTH122  five times as fast
        return PassedOver(place.path, _not_read(kind), kind)


class Chooser(_Selection):
    """Which of the paths of a tree are wanted, where there are no folders to walk through."""

    def __init__(self, wanted: Wanted, named: str, ignore_files: Mapping[str, str]) -> None:
        super().__init__(wanted, 0, 0)
        self._named = named  # a folder that a person named: no rule ignores it
        self._ignore_files = ignore_files  # their texts, by their folders; "" is the root
        self._folders = dict[tuple[str, ...], tuple[PassedOver | None, tuple[Rule, ...]]]()

    def left_out(self, path: str) -> PassedOver | None:
        """Why a file, or a folder above it, is not read; None if it is."""
        names, left, rules = tuple(path.split("/")), None, tuple[Rule, ...]()
        for size in range(len(names)):
            here = names[:size]
            if here not in self._folders:
                left = left or self._left_out_folder(here, rules)
                self._folders[here] = left, (*rules, *self._rules_in("/".join(here)))
            left, rules = self._folders[here]
        return left or self._left_out(_Place("", names, 0, rules), is_folder=False)

    def _left_out_folder(self, names: tuple[str, ...], rules: tuple[Rule, ...]) -> PassedOver | None:
        if f"{self._named}/".startswith("/".join((*names, ""))):
            return None
        return self._left_out(_Place("", names, 0, rules), is_folder=True)

    def _rules_in(self, folder: str) -> list[Rule]:
        text, depth = self._ignore_files.get(folder, ""), len(folder.split("/")) if folder else 0
        origin = printable(f"{folder}/{IGNORE_FILES[-1]}".removeprefix("/"))
        return ignore.parse_rules(text.removeprefix(BOM).split("\n"), depth, origin)


class _Walk(_Selection):
    """One walk: what is still to visit, and which folders were entered."""

    def __init__(
        self, place: Path, root: Path, wanted: Wanted, settings: DocumentSettings, within: Collection[str]
    ) -> None:
        self.within, self.near = frozenset(within), _ways(within)
        self.start, self.real_start = place.absolute(), place.resolve()
        self.settings = settings
        self.entered: set[tuple[int, int]] = set()
        self.stack: list[tuple[os.DirEntry[str], _Place]] = []
        # A folder keeps its own name, and its own rules, when a link to it sorts before it.
        self.linked: deque[_Place] = deque()
        root, project = root.absolute(), Path(wanted.project or os.sep)
        narrowed = bool(wanted.project) and self.start.is_relative_to(project)
        self.base = _base(self.start, root, project if narrowed else root)
        depth = len(root.relative_to(self.base).parts)
        super().__init__(wanted, depth, len(project.relative_to(self.base).parts) if narrowed else depth)

    def run(self) -> Iterator[Seen]:
        names = self.start.relative_to(self.base).parts
        rules = yield from self._rules_above(names)
        yield from self._enter(_Place(str(self.start), names, self.depth, rules))
        while self.stack or self.linked:
            if not self.stack:
                yield from self._enter(self.linked.popleft())
                continue
            entry, folder = self.stack.pop()
            yield from self._look(entry, folder.child(entry))

    def _rules_above(self, names: tuple[str, ...]) -> Generator[Seen, None, tuple[Rule, ...]]:
        """The rules of the folders above. They do not ignore what a person named."""
        rules: list[Rule] = []
        for depth in range(len(names)):
            folder = self.base.joinpath(*names[:depth])
            place = _Place(str(folder), names[:depth], self.depth, ())
            rules += yield from _rules({name: str(folder / name) for name in IGNORE_FILES}, place)
        itself = [names[: size + 1] for size in range(len(names))]
        return tuple(rule for rule in rules if not any(rule.fits(some, True) for some in itself))

    def _look(self, entry: os.DirEntry[str], place: _Place) -> Iterator[Seen]:
        try:
            if entry.is_symlink():
                yield from self._follow(place)
            elif entry.is_dir(follow_symlinks=False):
                if left := self._left_out(place, is_folder=True):
                    yield left
                else:
                    yield from self._enter(place)
            elif left := self._left_out(place, is_folder=False):
                yield left
            else:
                yield self._checked(place, entry.stat(follow_symlinks=False))
        except FileNotFoundError:  # it vanished since its folder was listed
            return
        except OSError as problem:
            yield Skipped(place.path, _why(problem), Unreadable.code)

    def _enter(self, place: _Place) -> Iterator[Seen]:
        """Put the content of a folder on the stack, unless the folder was entered before."""
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
            yield Skipped(place.path, _why(problem), Unreadable.code)
            return
        here = {entry.name: entry.path for entry in entries if entry.name in IGNORE_FILES}
        rules = yield from _rules(here, place)
        inside = _Place(place.absolute, place.names, place.depth, (*place.rules, *rules))
        near = self._near(place)
        self.stack.extend(
            (entry, inside)
            for entry in reversed(entries)
            if entry.name not in IGNORE_FILES and (near is None or entry.name in near)
        )

    def _near(self, place: _Place) -> set[str] | None:
        """The names in a folder to look at; None for all."""
        names = place.names[place.depth :]
        ways = ("/".join(names[:size]) for size in range(1, len(names) + 1))
        if not self.within or any(way in self.within for way in ways):
            return None
        return self.near["/".join(names)]

    def _follow(self, place: _Place) -> Iterator[Seen]:
        """The target of a link, if it is inside the folder."""
        try:
            target = os.stat(place.absolute)  # noqa: PTH116
            real = Path(place.absolute).resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: a loop, before Python 3.13
            left = self._left_out(place, is_folder=False)
            yield left or Skipped(place.path, "is a link that leads nowhere")
            return
        is_folder = stat.S_ISDIR(target.st_mode)
        if left := self._left_out(place, is_folder=is_folder):
            yield left
        elif not real.is_relative_to(self.real_start):
            where = printable(self.start.name or self.start)
            yield Skipped(place.path, f"links to a place outside {where}")
        elif is_folder:
            self.linked.append(place)
        else:
            yield self._checked(place, target)

    def _checked(self, place: _Place, found: os.stat_result) -> FoundFile | Skipped:
        if not stat.S_ISREG(found.st_mode):
            return Skipped(place.path, _kind(found))
        path = place.path
        if lacking := without_extra(path):
            return lacking
        if found.st_size > self.settings.max_bytes:
            return Skipped(path, self.settings.over_cap(found.st_size))
        return _found(place.absolute, path, found)


def without_extra(path: str) -> Skipped | None:
    """Why a file is not read, if an optional part of Quire is missing. It is not gone: what is held stays."""
    if not path.lower().endswith(_CONVERTED):
        return None
    ending = os.path.splitext(path)[1].lower()  # noqa: PTH122  five times as fast
    how = readers.missing_extra(ending) if ending in readers.CONVERTED else ""
    return Skipped(path, f"{ending} files need: {how}", kind=ending) if how else None


def _ways(within: Collection[str]) -> defaultdict[str, set[str]]:
    """The names that lead from each folder to the places that are wanted."""
    near = defaultdict[str, set[str]](set)
    for path in within:
        names = path.split("/")
        for size, name in enumerate(names):
            near["/".join(names[:size])].add(name)
    return near


def _not_read(kind: str) -> str:
    return f"files {kind} are not read" if kind == NO_ENDING else f"{kind} files are not read"


def _base(place: Path, root: Path, project: Path) -> Path:
    """The folder that rules are read from: the repository's, the project's or the root, the topmost."""
    return min((_top(place), root, project), key=lambda folder: len(folder.parts))


def _top(place: Path) -> Path:
    """The repository that a folder is in; without one, the highest folder above that has an ignore file."""
    top, home = place, Path(os.path.expanduser("~"))  # noqa: PTH111  Path.home() may raise
    for folder in (place, *place.parents):
        if (folder / ".git").exists():
            return folder
        if folder in (home, home.parent) or folder == folder.parent:
            break
        if any((folder / name).exists() for name in IGNORE_FILES):
            top = folder
    return top


def _rules(files: Mapping[str, str], place: _Place) -> Generator[Seen, None, list[Rule]]:
    """The rules that a folder adds. An ignore file that cannot be used is reported."""
    rules: list[Rule] = []
    for name in IGNORE_FILES:
        if name not in files:
            continue
        above = (os.pardir,) * (place.depth - len(place.names))
        origin = printable("/".join((*above, *place.names[place.depth :], name)))
        try:
            rules += ignore.read_rules(files[name], len(place.names), origin)
        except FileNotFoundError:
            continue
        except OSError as problem:
            yield Skipped(origin, f"{_why(problem)}; its patterns are not applied")
    return rules
