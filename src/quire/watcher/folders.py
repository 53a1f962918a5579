"""The folders of sources: where they really are, and which part of a source a changed path belongs to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from quire import disks
from quire.sources import files
from quire.sources.ignore import IGNORE_FILES
from quire.stores import SourceRow


class Folders:
    """The folders of some sources. What belongs to the library itself is no change."""

    def __init__(self, sources: Iterable[SourceRow], library: str) -> None:
        self._own = {f"{os.path.realpath(library)}{end}" for end in ("", "-wal", "-shm", "-journal")}
        folders = [source for source in sources if source.type == "folder"]
        self._real = [(os.path.realpath(files.unprintable(source.place)), source) for source in folders]

    def outermost(self) -> list[str]:
        """The folders that exist, without those inside another."""
        found = sorted({real for real, _ in self._real if os.path.isdir(real)})  # noqa: PTH112
        return [one for one in found if not any(_below(one, other) for other in found)]

    def remote(self) -> dict[int, str]:
        """The sources on file systems that may not report changes, and what these are."""
        kinds = {source.seq: disks.network(real) for real, source in self._real}
        return {number: kind for number, kind in kinds.items() if kind}

    def places(self, path: str) -> Iterator[tuple[int, str]]:
        """The sources that a changed path belongs to, each with the path from its root; "" is all of it."""
        if path in self._own:
            return
        for real, source in self._real:
            if path == real:
                yield source.seq, ""
            elif below := _below(path, real):
                names = _to_compare(path, below.split("/"), source)
                if names is not None:
                    yield source.seq, "/".join((*_way(source), *names)) if names else ""


def _below(path: str, folder: str) -> str:
    """The path from a folder to what is in it; "" if it is not."""
    start = f"{folder.rstrip('/')}/"
    return path[len(start) :] if path.startswith(start) else ""


def _way(source: SourceRow) -> list[str]:
    """The names that lead from the root of a source to its place."""
    root, place = (files.unprintable(name) for name in (source.root or source.place, source.place))
    return [] if root == place else os.path.relpath(place, root).split("/")


def _to_compare(path: str, names: list[str], source: SourceRow) -> list[str] | None:
    """The names that lead to what is to be compared; [] is all, None if no document can have changed."""
    *folders, name = names
    if any(map(_is_unwanted, folders)):
        return None
    if name in IGNORE_FILES:  # other rules for all in its folder
        return folders
    if _is_unwanted(name) or _is_other_kind(path, source):
        return None
    if "\ufffd" in path:  # a name that is not UTF-8 was lost
        return names[: next(place for place, one in enumerate(names) if "\ufffd" in one)]
    return [] if os.path.islink(path) else names  # noqa: PTH114


def _is_unwanted(name: str) -> bool:
    return name.startswith(".") or name in files.UNWANTED_FOLDERS


def _is_other_kind(path: str, source: SourceRow) -> bool:
    """Whether a path is a file of a kind that is not read."""
    if source.options.include or path.lower().endswith(files.ENDINGS):
        return False
    return os.path.isfile(path)  # noqa: PTH113
