"""Git repositories as sources: their names, their checkouts, and the clones in the cache.

A checkout is planned and applied as a folder is: see apply.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from quire.config import Config
from quire.errors import NotFound, SourceError
from quire.progress import Progress
from quire.stores import SourceRow, Store

if TYPE_CHECKING:
    from quire.sources.git import Checkout

TYPE = "repository"


def is_named(place: str) -> bool:
    """Whether a place is a repository, if no file or folder has this name."""
    from quire.sources.git import is_repository  # loads subprocess, which a search does not need

    return is_repository(place)


def source_of_name(name: str, collection: str | None, kind: str) -> SourceRow:
    """The source of a repository. Raises Refused for one that Quire does not ask for."""
    from quire.sources.git import repository_of

    found = repository_of(name)
    return SourceRow(TYPE, found.place, found.root, collection or found.collection, kind)


@contextmanager
def opened(source: SourceRow, config: Config, progress: Progress | None = None) -> Iterator[Checkout | None]:
    """The checkout of a repository, brought up to date; None for any other source. Raises SourceError."""
    if source.type != TYPE:
        yield None
        return
    from quire.sources.git import checkout

    with _told_gone(source), checkout(source.place, config, progress) as found:
        yield found


@contextmanager
def _told_gone(source: SourceRow) -> Iterator[None]:
    """Say what to do about a repository that was there before, or its tag or branch."""
    try:
        yield
    except NotFound as problem:
        if not source.checked_at or not problem.is_gone:
            raise
        reason = problem.reason if problem.reason.endswith((".", "?")) else f"{problem.reason}."
        raise NotFound(problem.source, f"{reason} {how_to_remove(source)}", problem.status) from None


def how_to_remove(source: SourceRow) -> str:
    """What to do about a page, site or repository that its server does not have any more."""
    remove = f"quire sources remove {shlex.quote(source.place)}"
    return f"To remove its documents: quire refresh --prune. To remove the source too: {remove}"


@contextmanager
def tried(
    store: Store, source: SourceRow, config: Config, progress: Progress | None = None
) -> Iterator[Checkout | None]:
    """As `opened`, for a source that may not stay: then a clone that was made for it goes, too."""
    had_clone = _has_clone(source)
    try:
        with opened(source, config, progress) as found:
            yield found
    finally:
        if source.type == TYPE and not had_clone:
            remove_unused([source], store.sources())


def _has_clone(source: SourceRow) -> bool:
    if source.type != TYPE:
        return False
    from quire.sources.git import clone_folder

    return clone_folder(_clone(source)).exists()


def remove_unused(removed: Iterable[SourceRow], kept: Iterable[SourceRow]) -> None:
    """Remove the clones of sources that were removed, unless others of this library need them."""
    gone = {clone for source in removed if (clone := _clone(source))}
    if unused := gone - {_clone(source) for source in kept} if gone else set():
        from quire.sources.git import remove_clones

        with suppress(SourceError):  # there is no cache
            remove_clones(sorted(unused))


def _clone(source: SourceRow) -> str:
    """What the clone of a source is for; "" if it has none."""
    if source.type != TYPE:
        return ""
    from quire.sources.git import repository_of

    try:
        return repository_of(source.place).clone
    except SourceError:
        return ""
