"""Prepared documents, kept on disk until a whole site is written in one transaction."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from typing import IO, Self, overload
from weakref import finalize

from quire.errors import LibraryError
from quire.stores import Prepared

_IN_MEMORY = 1 << 18  # bytes of packed documents: a page, or a small site, needs no file


class Spool(Sequence[Prepared]):
    """Documents to write, packed in a temporary file that is deleted with it, and read one at a time."""

    def __init__(self) -> None:
        from tempfile import SpooledTemporaryFile  # slow to load, and a search does not need it

        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed with its last reference
        finalize(self, _close, self._file)
        self._places: list[tuple[str, int, int]] = []  # path, offset and size in bytes of each
        self._size = 0

    def add(self, path: str, packed: bytes) -> None:
        """Add a document. Raises LibraryError if the disk is full."""
        with _room():
            self._file.seek(self._size)
            self._file.write(packed)
        self._places.append((path, self._size, len(packed)))
        self._size += len(packed)

    def paths(self) -> list[str]:
        """The paths of the documents."""
        return [path for path, _, _ in self._places]

    def drop(self, paths: Set[str]) -> None:
        """Leave out the documents with these paths."""
        self._places = [place for place in self._places if place[0] not in paths]

    def sorted(self) -> Self:
        """Sort by path; returns itself."""
        self._places.sort()
        return self

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Prepared: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Prepared]: ...
    def __getitem__(self, index: int | slice) -> Prepared | Sequence[Prepared]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        _, start, size = self._places[index]
        with _room():
            self._file.seek(start)
            packed = self._file.read(size)
        prepared: Prepared = pickle.loads(packed)  # noqa: S301  this process wrote it
        return prepared


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        import tempfile

        what = f"cannot keep pages until all are read, so nothing was written: {problem.strerror}"
        where = tempfile.tempdir or "the folder for temporary files"
        raise LibraryError(where, f"{what}. Make room there, or name another folder in TMPDIR") from problem


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # what did not fit before does not fit now
        file.close()
