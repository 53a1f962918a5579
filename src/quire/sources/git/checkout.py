"""The documents of a repository, as files that a plan compares and reads.

Always: nothing is checked out: a listing comes from git's own tree, and the texts that are wanted are written
under the ids of their contents, to a folder that is gone afterwards; links, submodules and Git LFS are never
followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from quire.config import Config
from quire.errors import TooLarge
from quire.progress import Progress, Silent
from quire.sources.files import (
    Chooser,
    FoundFile,
    PassedOver,
    Seen,
    Skipped,
    Wanted,
    printable,
    without_extra,
)
from quire.sources.git.clone import Clone, TreeFile, clone_folder, opened_clone, writes_clone
from quire.sources.git.repository import repository_of

_SPECIAL = _LINK, _SUBMODULE = "120000", "160000"  # modes of entries that are no files
# What they are counted as: after a number, for one as for several.
_LINKS, _SUBMODULES, _LFS = "behind symbolic links", "in submodules", "in Git LFS"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_IGNORE_FILE = ".quireignore"
_MARK = 1 << 62  # beyond every time: no file has it
_MOST_IGNORE = 1_000_000  # bytes of an ignore file


class Checkout:
    """A commit of a repository: its files, and their texts where they are wanted."""

    def __init__(self, clone: Clone, texts: Path, config: Config, release: Callable[[], None]) -> None:
        self._clone, self._texts, self._config, self.release = clone, texts, config, release
        self._entries = clone.repaired(clone.entries)
        self._ids = dict[str, str]()  # of found files, by path
        self.commit = clone.head.commit

    def listing(self, wanted: Wanted) -> tuple[list[Seen], str]:
        """What the repository has, and why it may be incomplete: it is empty, or a folder of it is gone."""
        repository = self._clone.repository
        if not self._entries:
            return [], f"{repository.place} is not there any more" if repository.folder else "it is empty"
        if [entry.path for entry in self._entries] == [repository.folder]:  # named by itself
            return [self._seen(self._entries[0], printable(repository.folder))], ""
        chooser = Chooser(wanted, repository.folder, self._ignore_files())
        return list({_path(seen): seen for seen in self._chosen(chooser)}.values()), ""

    def with_texts(self, listing: Iterable[Seen], is_read: Callable[[FoundFile], bool]) -> list[Seen]:
        """A listing whose files can be opened, where they are to be read. Others may have the clone now."""
        listing = list(listing)
        needed = {seen.path: seen for seen in listing if isinstance(seen, FoundFile) and is_read(seen)}
        if sum({self._ids[path]: seen.size for path, seen in needed.items()}.values()) > self._most:
            raise TooLarge(
                self._clone.repository.place, f"its documents are over git.max_bytes = {self._most:,}"
            )
        with writes_clone(self._clone.repository.place):
            kept = self._clone.repaired(lambda: self._write(needed.values()))
        self.release()
        return [_in_lfs(seen) if _path(seen) in kept else seen for seen in listing]

    @property
    def has_files(self) -> bool:
        """Whether there is anything in the repository, or in the folder that is named."""
        return bool(self._entries)

    @property
    def _most(self) -> int:
        return self._config.git.max_bytes

    def _write(self, found: Iterable[FoundFile]) -> set[str]:
        """Write the contents of files; returns the paths of those that are kept elsewhere, in Git LFS."""
        files = {self._ids[one.path] + one.absolute: one for one in found}
        ids, sizes = [self._ids[one.path] for one in files.values()], [one.size for one in files.values()]
        pointers = set[str]()
        for one, content in zip(files.values(), self._clone.git.blobs(ids, sizes), strict=True):
            Path(one.absolute).write_bytes(content)
            if content.startswith(_LFS_POINTER):
                pointers.add(one.absolute)
        return {one.path for one in found if one.absolute in pointers}

    def _chosen(self, chooser: Chooser) -> Iterator[Seen]:
        for entry in self._entries:
            if _is_ignore_file(entry):
                continue
            left = chooser.left_out(entry.path)
            if left and entry.mode in _SPECIAL and left.kind:  # its ending says nothing
                left = None
            yield left or self._seen(entry, printable(entry.path))

    def _seen(self, entry: TreeFile, path: str) -> Seen:
        """A file of the commit, or why it is not read."""
        if entry.mode == _LINK:
            return PassedOver(path, "is a symbolic link, which is not followed in a repository", _LINKS)
        if entry.mode == _SUBMODULE:
            return PassedOver(path, "is a submodule, which is not read", _SUBMODULES)
        if entry.size > self._config.document.max_bytes:
            return Skipped(path, self._config.document.over_cap(entry.size))
        if lacking := without_extra(path):
            return lacking
        self._ids[path] = entry.id
        # A blob never changes: its id takes the place of the time at which a file changed.
        mark = _MARK | int(entry.id[:15], 16)
        return FoundFile(str(self._text_of(entry)), path, entry.size, 0, mark, url=self._url(entry))

    def _text_of(self, entry: TreeFile) -> Path:
        ending = PurePosixPath(entry.path).suffix.lower()
        return self._texts / f"{entry.id}{ending if re.fullmatch(r'[.][a-z0-9_+-]{1,20}', ending) else ''}"

    def _url(self, entry: TreeFile) -> str | None:
        head = self._clone.head
        return self._clone.repository.link(printable(entry.path), head.short, head.kind)

    def _ignore_files(self) -> dict[str, str]:
        """The texts of ignore files, by their folders."""
        found = [one for one in self._entries if _is_ignore_file(one) and one.size <= _MOST_IGNORE]
        ids, sizes = [one.id for one in found], [one.size for one in found]
        texts = self._clone.repaired(lambda: list(self._clone.git.blobs(ids, sizes))) if found else []
        named = zip(found, texts, strict=True)
        return {one.path.rpartition("/")[0]: text.decode("utf-8", "surrogateescape") for one, text in named}


def _is_ignore_file(entry: TreeFile) -> bool:
    return entry.mode not in _SPECIAL and entry.path.rpartition("/")[2] == _IGNORE_FILE


def _path(seen: Seen) -> str:
    return seen.source if isinstance(seen, Skipped) else seen.path


def _in_lfs(seen: Seen) -> Seen:
    return PassedOver(_path(seen), "is in Git LFS, which is not read", _LFS)


@contextmanager
def checkout(place: str, config: Config, progress: Progress | None = None) -> Iterator[Checkout]:
    """A repository as it is on its server now. Its texts are gone when the block ends. Raises SourceError."""
    repository, told = repository_of(place), progress or Silent()
    what = "fetching" if clone_folder(repository.clone).exists() else "cloning"
    told.begin(f"{what} {repository.name}", 1, "repository")
    with ExitStack() as stack:
        with writes_clone(repository.place):
            opened = opened_clone(repository, config, lambda: told.advance(0))
            clone, texts, release = stack.enter_context(opened)
            clone.update()
            found = Checkout(clone, texts, config, release)
        told.advance(1)
        yield found
