"""Names that people give, to sources: find or make the source, choose its collection, follow its moves.

Always: a source that was named before is found again by its place; a file or folder inside a folder that
the library holds belongs to that folder's collection, under the path it has there.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from quire import address, redact
from quire.config import Config
from quire.errors import NoResults, SettingError, SourceError, SourceMoved, Unreadable, nearest
from quire.ingest import repositories
from quire.ingest.prepare import examined
from quire.sources import entries, files, names
from quire.sources.files import FoundFile
from quire.stores import DocumentRow, Filters, Member, SourceOptions, SourceRow, Store

_ON_DISK = ("file", "folder")
_COMPARED = 8  # documents to read when checking whether a folder is one that moved


def path_source(
    store: Store,
    known: Iterable[SourceRow],
    path: str | Path,
    collection: str | None,
    kind: str,
    config: Config,
) -> SourceRow:
    """The source of a file or folder: the one that was named before, or a new one. Raises Unreadable."""
    place, type = _place(path)
    on_disk = [s for s in known if s.type in _ON_DISK and s.kind == kind]
    wanted = [s for s in on_disk if collection in (None, s.collection)]
    if same := next((s for s in wanted if (s.type, s.place) == (type, place)), None):
        return same
    outer = [s for s in wanted if s.type == "folder" and _is_inside(place, s.place)]
    if outer:
        around = max(outer, key=lambda s: len(s.place))
        return SourceRow(type, place, around.root, around.collection, kind, _inherited(around, place, type))
    root = place if type == "folder" else place.rpartition("/")[0] or "/"
    name = collection or _project_collection(store, place, config) or collection_of(root)
    return SourceRow(type, place, root, name, kind)


def _inherited(around: SourceRow, place: str, type: str) -> SourceOptions:
    """The options that a folder inherits from one around it: documents removed there stay removed."""
    if type == "file":
        return SourceOptions()
    inside = tuple(path for path in around.options.without if _is_inside(f"{around.root}/{path}", place))
    return SourceOptions(without=inside)


def _place(path: str | Path) -> tuple[str, str]:
    """The absolute place of a file or folder, and which of the two it is."""
    try:
        if not os.path.lexists(path):
            raise Unreadable(files.printable(path), "no such file or folder")
        found = Path(path).absolute()
        is_folder = found.is_dir()
        if is_folder and not found.is_symlink():  # a source named by a link follows that link
            return files.printable(found.resolve()), "folder"
        return files.printable(found.parent.resolve() / found.name), "folder" if is_folder else "file"
    except OSError as problem:
        raise Unreadable(files.printable(path), (problem.strerror or str(problem)).lower()) from None
    except ValueError:  # a NUL in the name
        raise Unreadable(files.printable(path), "is not a valid file name") from None


def _is_inside(place: str, folder: str) -> bool:
    return place.startswith(f"{folder.rstrip('/')}/")


def collection_of(place: str) -> str:
    """The default collection of a folder or host."""
    return place.rstrip("/").rpartition("/")[2].replace(":", "-") or "files"


def _project_collection(store: Store, place: str, config: Config) -> str:
    """The collection that settings name: a project's are for what is inside its folder, where they may."""
    if ignored_collection(store, place, config):
        return ""
    return config.collection if config.project is None or is_in_project(place, config) else ""


def is_in_project(place: str, config: Config) -> bool:
    """Whether a place is inside the folder of the active project."""
    return config.project is not None and _is_within(place, files.printable(config.project.folder))


def ignored_collection(store: Store, place: str, config: Config) -> str:
    """Why a project's collection is not used, as a line for people; empty if it is used.

    Until a project is trusted, its collection must be new or hold only the project's own documents.
    """
    project, name = config.project, config.collection
    if not name or project is None or project.trusted or name not in store.collections():
        return ""
    folder = files.printable(project.folder)
    if not _is_within(place, folder) or _is_own(store, name, folder):
        return ""
    return (
        f"The quire.toml in {folder} names the collection {name!r}, which holds other documents, so that is"
        " ignored. Accept it with: quire trust"
    )


def held_twice(store: Store, source: SourceRow) -> str:
    """A warning for a new folder that contains sources whose documents have other addresses."""
    if source.type != "folder" or store.source_now(source):
        return ""
    inside = [s for s in store.sources() if s.type in _ON_DISK and _is_inside(s.place, source.place)]
    apart = [s.place for s in inside if (s.collection, s.root) != (source.collection, source.root)]
    if not apart:
        return ""
    more = f" and {len(apart) - 1:,} more" if len(apart) > 1 else ""
    return (
        f"{apart[0]}{more} inside {source.place} is a source of its own: its documents are in the library"
        f" twice now. To remove the smaller one: quire sources remove {shlex.quote(apart[0])}"
    )


def _is_own(store: Store, collection: str, folder: str) -> bool:
    """Whether all documents of a collection come from inside a folder."""
    rows = store.documents(Filters(collection))
    return all(row.url is None and row.root is not None and _is_within(row.root, folder) for row in rows)


def _is_within(place: str, folder: str) -> bool:
    return place == folder or _is_inside(place, folder)


def with_options(
    source: SourceRow,
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
    keep: bool | None,
) -> SourceRow:
    """A source with the given options. None leaves an option unchanged."""
    given: dict[str, Any] = {"include": _tuple(include), "exclude": _tuple(exclude), "keep": keep}
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(source, options=replace(source.options, **changes)) if changes else source


def _tuple(values: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def now() -> int:
    """The time in milliseconds."""
    return time.time_ns() // 1_000_000


# ---------------------------------------------------------------------------- sources that are known


def find(store: Store, name: str, collection: str | None = None) -> SourceRow:
    """The source with this name: its place, or the address or id of a text. Raises NoResults."""
    known = [s for s in store.sources() if collection in (None, s.collection)]
    wanted = {name, files.printable(Path(name).absolute()), files.printable(Path(name).resolve())}
    wanted |= _urls(name)
    found = [s for s in known if wanted & {s.name, s.place, redact.url(s.place)}]
    if not found and (belongs_to := _address_of(store, name)):
        found = [s for s in known if s.name == belongs_to]
    if len({s.collection for s in found}) > 1:
        listed = ", ".join(sorted(s.collection for s in found))
        raise SettingError("source", f"{name} is in several collections: {listed}. Name one: -c NAME")
    if not found:
        close = nearest(name, [s.name for s in known])
        raise NoResults(
            f"No source {name!r}. {close} See them with: quire sources", missing="source", name=name
        )
    return found[0]


def _address_of(store: Store, name: str) -> str | None:
    """The address that an id belongs to; None if a name is no id, or nothing has it."""
    id = address.parse_id(name)
    found = store.by_id(id) if id else None
    return address.of_section(found[0].address, found[1]) if found else None


def _urls(name: str) -> set[str]:
    """The names that a repository, a URL or a site can have among the sources."""
    try:
        if repositories.is_named(name):
            return {repositories.source_of_name(name, "", "").place}
        if not (names.is_url(name) or names.is_site(name)):
            return set()
        from quire.sources.web import index_of, normalise_url

        return {index_of(name), normalise_url(name)} if names.is_site(name) else {normalise_url(name)}
    except SourceError:
        return set()


def members_of(store: Store, source: SourceRow) -> list[DocumentRow]:
    """The documents that a source holds, by path."""
    number = source.seq
    held = {m.document for m in store.members(source.collection, source.kind, source) if m.source == number}
    return sorted(store.documents_by_row(held).values(), key=lambda row: row.path)


# -------------------------------------------------------------------------------- sources that moved


def check_moved(store: Store, others: Iterable[SourceRow], source: SourceRow, config: Config) -> None:
    """Raise SourceMoved if a new source has the documents of a source whose place is gone."""
    for other in others:
        same = (other.type, other.kind) == (source.type, source.kind)
        if not same or not other.documents or _exists(other.place):
            continue
        if _are_there(store, members_of(store, other), source, other, config):
            raise SourceMoved(files.unprintable(other.place), files.unprintable(source.place))


def _exists(place: str) -> bool:
    """Whether something is at a place. A link that leads nowhere is not; what cannot be looked at is."""
    try:
        os.stat(files.unprintable(place))  # noqa: PTH116
    except OSError as problem:
        return not isinstance(problem, FileNotFoundError | NotADirectoryError)
    return True


def _are_there(store: Store, rows: list[DocumentRow], new: SourceRow, old: SourceRow, config: Config) -> bool:
    """Whether most of the documents are at a new place, with the same paths and content."""
    alike = [(row, found) for row in rows if (found := _moved_file(row, new, old))]
    if 2 * len(alike) <= len(rows):
        return False
    some = alike[:: max(1, len(alike) // _COMPARED)]
    originals = store.original_checksums(row.seq for row, _ in some)
    same = [
        examined(found, config, named=True).checksum == originals.get(row.seq, row.checksum)
        for row, found in some
    ]
    return 2 * sum(same) > len(same)


def _moved_file(row: DocumentRow, new: SourceRow, old: SourceRow) -> FoundFile | None:
    """The file of a document at its source's new place, if it exists and has the same size."""
    place = moved_place(f"{row.root}/{row.path}", old.place, new.place)
    found = files.look(files.unprintable(place), "/") if place else None
    return found if isinstance(found, FoundFile) and found.size == row.size else None


def moved_place(place: str, old: str, new: str) -> str | None:
    """The new path of a place after `old` moved to `new`; None if the place is not at or under `old`."""
    if place == old:
        return new
    return f"{new.rstrip('/')}/{place[len(old.rstrip('/')) + 1 :]}" if _is_inside(place, old) else None


def moves(store: Store, old: str, new: str) -> list[tuple[SourceRow, SourceRow]]:
    """Every source at or under a place that moved, and what it becomes. Raises NoResults or SettingError."""
    old_place = _old_place(store, old)
    new_place, new_type = _place(new)
    found = []
    known = store.sources()
    _check_move(known, old_place, new_place, new_type)
    for source in known:
        place = moved_place(source.place, old_place, new_place) if source.type in _ON_DISK else None
        if place is None:
            continue
        root = moved_place(source.root or "", old_place, new_place)
        if root is None:  # a file or folder inside a larger source
            root = place if source.type == "folder" else place.rpartition("/")[0] or "/"
        found.append((source, replace(source, place=place, root=root, problem="")))
    return found


def _check_move(known: list[SourceRow], old: str, new: str, type: str) -> None:
    """Raise SettingError if this is no move: the old place exists, types differ, or the new one is held."""
    if _exists(old):
        raise SettingError("sources", f"{old} is still there, so it has not moved. To hold both, add {new}")
    of_file = any(s.place == old and s.type == "file" for s in known)
    if type != ("file" if of_file else "folder"):
        was = "a file" if of_file else "a folder"
        raise SettingError("sources", f"{new} is a {type}, and {old} was {was}")
    if any(s.place == new and s.type in _ON_DISK for s in known):
        remove = f"To remove it: quire sources remove {shlex.quote(new)}"
        raise SettingError("sources", f"{new} is a source already. {remove}")


def _old_place(store: Store, old: str) -> str:
    """The old place of sources that moved. It may be gone. Raises NoResults."""
    places = [s.place for s in store.sources() if s.type in _ON_DISK]
    for wanted in (files.printable(Path(old).absolute()), files.printable(Path(old).resolve())):
        if any(place == wanted or _is_inside(place, wanted) for place in places):
            return wanted
    said = f"No source at {old!r}. {nearest(old, places)} See them with: quire sources"
    raise NoResults(said, missing="source", name=old)


# ------------------------------------------------------------------------------ older libraries


def adopt(store: Store) -> None:
    """Create sources for documents that have none, once for each library.

    If a document may have been added as one file, its source is that file: a refresh must not add files
    that nobody named.
    """
    if store.adopted():
        return
    rows = [row for row in store.documents(Filters()) if row.kind in entries.DOCUMENTS]
    rows.sort(key=_origin)
    found = [pair for _, same in groupby(rows, _origin) for pair in _sources_of(list(same))]
    known = {source.seq for source in store.sources()}
    new = [(source, min(row.created_at for row in held)) for source, held in found if source.seq not in known]
    store.put_sources([replace(source, added_at=first) for source, first in new])
    numbered = [(source.seq, held) for source, held in found]
    store.join([Member(row.seq, number, 0) for number, held in numbered for row in held])
    store.note_adopted()


def _origin(row: DocumentRow) -> tuple[str, str, str]:
    return row.collection, row.kind, row.root or ""


def _sources_of(rows: list[DocumentRow]) -> Iterator[tuple[SourceRow, list[DocumentRow]]]:
    """The sources of documents with the same root, each with what it holds."""
    first = rows[0]
    root, about = first.root, (first.collection, first.kind)
    if root is None:
        yield from ((SourceRow("text", row.path, None, *about), [row]) for row in rows)
    elif root.startswith(names.REPOSITORY):
        yield repositories.source_of_name(root, *about), rows
    elif names.is_url(root):
        yield SourceRow("site" if names.is_site(root) else "page", root, root, *about), rows
    elif _was_folder(root, rows):
        yield SourceRow("folder", root, root, *about), rows
    else:
        yield from ((SourceRow("file", f"{root}/{row.path}", root, *about), [row]) for row in rows)


def _was_folder(root: str, rows: list[DocumentRow]) -> bool:
    """Whether documents were added as a folder: files named one by one have no folder in their paths.

    If that does not decide, it was a folder if a refresh would add nothing else from it.
    """
    if any("/" in row.path for row in rows):
        return True
    if len(rows) == 1:
        return False
    try:
        known, seen = {row.path for row in rows}, files.walk(files.unprintable(root), max_bytes=2**40)
        return all(one.path in known for one in seen if isinstance(one, FoundFile))
    except SourceError:
        return False


def text_source(path: str, collection: str, kind: str) -> SourceRow:
    """The source of a text given with its path."""
    return SourceRow("text", path, None, collection, kind, SourceOptions(), now(), now())
