"""A library to what is wrong with it, and to a sound one.

Always: a repair writes a new file from all that can be read and is what was written; the old file is kept;
what cannot be taken over is named, and its bytes are saved beside the library.
"""

from __future__ import annotations

import os
import platform
import secrets
import shlex
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire import copying, disks
from quire.address import id_of
from quire.config import Config
from quire.document import Document
from quire.errors import Damaged, LibraryError, NoResults, QuireError
from quire.freshness import other_words
from quire.ingest.prepare import made_by, prepare
from quire.library import Library
from quire.library.backups import remove, swap
from quire.links import ALIASES, link_names
from quire.location import Places
from quire.plural import counted
from quire.progress import Progress, Silent
from quire.sources.contents import is_converted
from quire.sources.entries import KINDS
from quire.sources.names import REPOSITORY
from quire.stores import MAX_CHUNKS, DocumentRow, Filters, Prepared, Store, Version, active_model
from quire.stores.checks import is_intact, row_check
from quire.stores.rows import ChunkRow, LinkRow, SectionRow, source_row
from quire.version import VERSION

if TYPE_CHECKING:
    from quire.stores.sqlite import SqliteStore

_REPAIR = "quire doctor --repair"
# What a document keeps when its text is cut again.
_KEPT = ("url", "root", "size", "mtime_ns", "promotion", "created_at", "updated_at")
_SALVAGED = ("collection", "kind", "path", "format", "title", "source", "checksum", *_KEPT)
_VACUUMING = (52, 64)  # where the header of a file says that it can give back pages
_LARGEST = 1 << 40  # bytes of a library: a damaged header may say anything
_MOST_TRIED = 100_000  # numbers of documents, where the highest cannot be read
_FAULTS = (QuireError, sqlite3.Error, LookupError, TypeError, ValueError)  # of what is damaged
# The values of a row that its text gives: many times faster than astuple.
_SECTION, _CHUNK, _LINK = (
    attrgetter(*[one.name for one in fields(kind)][own:])
    for kind, own in ((SectionRow, 1), (ChunkRow, 2), (LinkRow, 1))
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a library."""

    part: str  # file, document, words, vectors, sources or disk
    problem: str
    fix: str  # what to type


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did."""

    kept: str  # where the old library is
    documents: int  # that were taken over as they are
    again: int  # that were read again from their sources
    lost: tuple[str, ...]  # addresses of those that were not, because they have no source
    saved: str  # the folder with what could be read of those; "" if there are none
    notes: tuple[str, ...] = ()  # what a person should know or do


def examine(library: Library, progress: Progress | None = None) -> list[Problem]:
    """What is wrong with a library: its file, indexes, texts, spans, vectors, sources and disk."""
    store, found = library.store, list[Problem]()
    try:
        found += [Problem("file", problem, _REPAIR) for problem in store.check()]
        found += _documents(store, library.config, progress or Silent())
        found += _outdated(library)
    except _FAULTS as problem:
        found.append(Problem("file", str(problem), _REPAIR))
    return found + list(_disk(library))


def versions(library: Library) -> dict[str, str]:
    """The versions of what works on a library."""
    return {
        "quire": VERSION,
        "python": platform.python_version(),
        "database": library.store.versions(),
        "platform": platform.platform(),
    }


def _documents(store: Store, config: Config, progress: Progress) -> Iterator[Problem]:
    """Documents whose text, sections or chunks are not what was written."""
    rows = store.documents(Filters())
    progress.begin("checking", len(rows), "documents")
    for row in rows:
        with store.reading():
            try:
                problem = _difference(store, row, config)
            except _FAULTS as error:
                problem = str(error)
        if problem:
            yield Problem("document", f"{row.address}: {problem}", _REPAIR)
        progress.advance(1)


def _difference(store: Store, row: DocumentRow, config: Config) -> str:
    """How the stored parts of a document differ from those that its text gives; "" if they do not."""
    source, sections = store.source(row.seq), store.sections(row.seq)
    first = row.seq * MAX_CHUNKS
    chunks = [one for _, one in sorted(store.chunks(range(first, first + row.chunk_count)).items())]
    if len(chunks) != row.chunk_count:
        return f"{counted(row.chunk_count - len(chunks), 'chunk is', 'chunks are')} missing"
    if row.made_by != made_by(config):
        return ""  # other rules cut it: what they gave is not known
    document = Document.restored(
        source, row.path, collection=row.collection, format=row.format, title=row.title
    )
    fresh = prepare(document, config, row.kind, is_searched=bool(chunks), url=row.url)
    same = list(map(_SECTION, sections)) == list(map(tuple, fresh.sections))
    same = same and list(map(_CHUNK, chunks)) == list(map(tuple, fresh.chunks))
    wrong = [*([] if same else ["sections or chunks"]), *_other_parts(store, row, fresh)]
    if wrong:
        return f"its {', '.join(wrong)} are not those that its text gives"
    return "" if _has_its_original(store, row) else "what it was converted from is not known"


def _other_parts(store: Store, row: DocumentRow, fresh: Prepared) -> Iterator[str]:
    """The other parts of a document that are not those that its text gives."""
    given = set(map(tuple, fresh.fields))
    aliases = {value for name, value, *_ in given if name == ALIASES}
    if list(map(_LINK, store.links(row.seq))) != list(map(tuple, fresh.links)):
        yield "links"
    if row.kind not in KINDS and set(store.tags([row.seq]).get(row.seq, ())) != set(fresh.tags):
        yield "tags"  # an entry was given its own
    if set(map(tuple, store.fields(row.seq))) != given:
        yield "front-matter fields"
    elif set(store.names(row.seq)) != {*link_names(row.path), *aliases}:
        yield "names"


def _has_its_original(store: Store, row: DocumentRow) -> bool:
    """Whether a document that was converted from a file has the checksum of that file."""
    return not _is_of_original(row) or row.seq in store.original_checksums([row.seq])


def _is_of_original(row: DocumentRow) -> bool:
    is_file = row.root is not None and (row.url is None or row.root.startswith(REPOSITORY))
    return is_file and is_converted(row.path)


def _outdated(library: Library) -> Iterator[Problem]:
    """What works, and should be brought up to date."""
    store = library.store
    if other := other_words(store):
        yield Problem("words", f"were made by other rules: {other}", "quire refresh")
    active = active_model(store.models())
    for model in store.models():
        if model.active and (missing := store.count_unembedded(model)):
            what = f"of {model.name} are missing for {counted(missing, 'chunk')}"
            yield Problem("vectors", what, "quire embed")
    if active and (problem := library.model_problem()):
        instant = active_model(store.models(), instant=True)
        serves = instant.name if instant and not store.count_unembedded(instant) else "words alone"
        yield Problem("model", problem, f"Searches use {serves} until it works")
    for source in store.sources():
        if source.type in ("file", "folder") and not os.path.lexists(source.place):
            problem = f"{source.place} is gone; its documents are kept"
            yield Problem("sources", problem, f"quire sources remove {shlex.quote(source.place)}")


def _disk(library: Library) -> Iterator[Problem]:
    path = Path(library.url)
    if library.store.is_shared or not path.exists():
        return
    size, free = path.stat().st_size, shutil.disk_usage(path.absolute().parent).free
    if free < 2 * size:
        problem = f"has {free:,} bytes left; a backup or repair needs {size:,}"
        yield Problem("disk", problem, "Make room, then go on")
    if why := disks.why_unsafe(str(path)):
        problem, _, fix = why.partition(". ")
        yield Problem("disk", problem, fix)
    if not os.access(path, os.W_OK):
        yield Problem("disk", f"{path} is read-only", f"chmod u+w {path}")


# -------------------------------------------------------------------------------------------- repairing


def repair(url: str, config: Config, progress: Progress | None = None) -> Repaired:
    """Write a sound library from all that can be read of a damaged one, and put it in its place.

    Documents whose text is what was written are cut again if the rest of them is damaged; others are read
    again from their sources. Raises LibraryError if it is on a server, or nothing of it can be read.
    """
    from quire.stores.sqlite import SqliteStore

    if "://" in url:
        how = "Restore it from a backup of the server, then type: quire refresh --remake"
        raise LibraryError(url, f"is on a server, which repairs its own files. {how}")
    new, progress = f"{url}.new-{secrets.token_hex(4)}", progress or Silent()
    try:
        with closing(SqliteStore(new, create=True)) as target:
            taken = _taken_from(url, target, config, progress)
        kept = swap(url, new, "before-repair")
    except (OSError, sqlite3.Error) as problem:
        raise LibraryError(url, f"cannot be repaired: {problem}. It was left as it is") from problem
    finally:
        remove(new)
    with Library.open(url, config=config) as library:
        library.refresh(progress=progress)
        there = {row.address for row in library.documents()}
    lost = tuple(sorted(taken.bad - there))
    again = len(taken.bad) - len(lost) + taken.cut
    return Repaired(str(kept), taken.good, again, lost, taken.saved, tuple(taken.notes))


@dataclass(slots=True)
class _Taken:
    """What was taken over from a damaged library."""

    good: int = 0  # documents
    cut: int = 0  # those of them that were cut again
    bad: set[str] = field(default_factory=set)  # addresses of the others
    saved: str = ""  # the folder with what could be read of those
    notes: list[str] = field(default_factory=list)


def _taken_from(url: str, target: SqliteStore, config: Config, progress: Progress) -> _Taken:
    from quire.stores.sqlite import SqliteStore

    try:
        old = SqliteStore(url)
    except NoResults:
        raise
    except _FAULTS as problem:
        return _salvaged(url, target, config, str(problem))
    with closing(old):
        work = _Copy(old, target, config)
        work.all(progress)
        saved = _save(old, work.bad, url) if work.bad else ""
    bad = {row.address for row in work.bad}
    return _Taken(len(work.good), work.cut, bad, saved, work.notes)


def _salvaged(url: str, target: SqliteStore, config: Config, problem: str) -> _Taken:
    """Take over the texts and sources of a library that cannot be opened. Raises LibraryError."""
    taken = _Taken(notes=["The library could not be opened. Texts were taken over; vectors are made again."])
    roots = set[str]()
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(_padded(url, folder))) as old:
        for found in _found_texts(old):
            with suppress(*_FAULTS):
                target.write([_prepared_from(found, config)])
                taken.good += 1
            roots |= {str(place) for place in (found["url"] or found["root"],) if place}
        try:
            target.put_sources([source_row((*row, 0)) for row in old.execute("SELECT * FROM sources")])
        except _FAULTS:
            taken.notes.append(f"The sources cannot be read. Add them again: {', '.join(sorted(roots))}")
    if not taken.good:
        how = "Put a backup in its place with: quire restore FILE. Without one, move it away and add again"
        raise LibraryError(url, f"nothing of it can be read: {problem}. {how}")
    return taken


def _padded(url: str, folder: str) -> str:
    """A copy of a library, as long as its header says: SQLite reads nothing of a file that was cut short."""
    path = Path(folder) / "library.db"
    shutil.copy(url, path)
    with suppress(OSError):
        shutil.copy(f"{url}-wal", f"{path}-wal")
    with path.open("r+b") as file:
        head = file.read(100)
        size = int.from_bytes(head[16:18], "big") * int.from_bytes(head[28:32], "big")
        if path.stat().st_size < size < _LARGEST:
            file.truncate(size)
        for place in _VACUUMING:  # without this, SQLite reads no long text if its map of the pages is lost
            file.seek(place)
            file.write(bytes(4))
    return str(path)


def _found_texts(old: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """The documents whose rows can be read, each with its tags."""
    wanted = f"SELECT {', '.join(_SALVAGED)} FROM documents WHERE seq = ?"  # noqa: S608 - names from here
    for seq in range(1, _MOST_TRIED):
        tags: list[str] = []
        with suppress(*_FAULTS):
            tags = [row[0] for row in old.execute("SELECT tag FROM tags WHERE document = ?", (seq,))]
        also = {"versions": _sound_versions(old, seq), **_sound_original(old, seq)}
        with suppress(*_FAULTS):
            if row := old.execute(wanted, (seq,)).fetchone():
                yield {**dict(zip(_SALVAGED, row, strict=True)), "tags": tuple(sorted(tags)), **also}


def _sound_versions(old: sqlite3.Connection, document: int) -> tuple[Version, ...]:
    """The earlier texts of an entry that are what was written."""
    found = list[Version]()
    with suppress(*_FAULTS):
        for *told, crc in old.execute(
            "SELECT document, written_at, text, crc FROM versions WHERE document = ?", (document,)
        ):
            found += [Version(*told[1:])] if row_check(*told) == crc else []
    return tuple(found)


def _sound_original(old: sqlite3.Connection, document: int) -> dict[str, Any]:
    """What is known of a document's original, as far as it can be read."""
    checksum, places = "", None
    with suppress(*_FAULTS):
        for told, packed in old.execute(
            "SELECT checksum, places FROM originals WHERE document = ?", (document,)
        ):
            checksum = told
            places = Places.unpack(packed) if packed else None
    return {"original": checksum, "places": places}


def _prepared_from(found: dict[str, Any], config: Config) -> Prepared:
    """A document from its row. Raises ValueError if it is not what was written."""
    if not is_intact(found["source"], found["checksum"]):
        raise ValueError(found["path"])
    names = {"collection": found["collection"], "format": found["format"], "title": found["title"]}
    document = Document.restored(found["source"], found["path"], **names)
    given = ("tags",) if found["kind"] in KINDS else ()  # those of others are in their texts
    kept = {name: found[name] for name in (*_KEPT, *given, "versions", "original", "places")}
    return replace(prepare(document, config, found["kind"], url=found["url"]), **kept)


class _Copy:
    """Takes over what is sound in a library that can be opened."""

    def __init__(self, old: SqliteStore, target: SqliteStore, config: Config) -> None:
        self.old, self.target, self.config = old, target, config
        self.good, self.bad = list[DocumentRow](), list[DocumentRow]()
        self.cut = 0  # documents of the good ones that were cut again
        self.notes: list[str] = []

    def all(self, progress: Progress) -> None:
        """Take over documents, sources and vectors, each as far as it can be read."""
        rows = self._rows()
        progress.begin("taking over", len(rows), "documents")
        for row in rows:
            try:
                self._document(row)
                self.good.append(row)
            except _FAULTS:
                self.bad.append(row)
            progress.advance(1)
        self._sources()
        with suppress(*_FAULTS):
            for key in self.old.access_keys():
                self.target.put_key(key)
        with suppress(*_FAULTS):
            copying.copy_vectors(self.old, self.target, self.good, progress)

    def _rows(self) -> list[DocumentRow]:
        """The documents that can be found, one by one if some of their rows cannot be read."""
        try:
            return self.old.documents(Filters())
        except _FAULTS:
            found = list[DocumentRow]()
            for seq in range(1, self._last() + 1):
                with suppress(*_FAULTS):
                    found += self.old.documents_by_row([seq]).values()
            self.notes.append("Some documents may be missing, because the list of documents is damaged.")
            return found

    def _last(self) -> int:
        """The highest number that a document may have."""
        for place in ("max(seq) FROM documents", "max(document) FROM sections", "max(document) FROM chunks"):
            with suppress(*_FAULTS):
                return int(self.old.db.execute(f"SELECT {place}").fetchone()[0])
        return _MOST_TRIED

    def _document(self, row: DocumentRow) -> None:
        """Take over a document as it is, or cut its text again. Raises one of _FAULTS if it is damaged."""
        if row.id != id_of(row.kind, row.address):
            raise Damaged(self.old.path, row.address)  # its name is not what was written
        with self.old.reading():
            source = self.old.source(row.seq)
            whole, title = self._as_it_is(row), row.title if self._has_its_title(row) else None
        if whole is None:
            document = Document.restored(
                source, row.path, collection=row.collection, format=row.format, title=title
            )
            cut = prepare(document, self.config, row.kind, is_searched=bool(row.chunk_count), url=row.url)
            whole = replace(cut, versions=_sound_versions(self.old.db, row.seq), **self._kept(row))
            self.cut += 1
        self.target.write([whole])

    def _kept(self, row: DocumentRow) -> dict[str, Any]:
        """What a document keeps when its text is cut again."""
        kept = {name: getattr(row, name) for name in _KEPT} | _sound_original(self.old.db, row.seq)
        if _is_of_original(row) and not kept["original"]:
            kept["mtime_ns"] = 0  # so its file is read again
        if row.kind in KINDS:
            with suppress(*_FAULTS):
                kept["tags"] = self.old.tags([row.seq]).get(row.seq, ())
        return kept

    def _as_it_is(self, row: DocumentRow) -> Prepared | None:
        """A document as it is stored; None if its parts are not those that its text gives."""
        try:
            if _difference(self.old, row, self.config) or not self._has_its_title(row):
                return None
            return copying.prepared_again(self.old, row)
        except _FAULTS:
            return None

    def _has_its_title(self, row: DocumentRow) -> bool:
        statement = "SELECT title_crc FROM documents WHERE seq = ?"
        found = self.old.db.execute(statement, (row.seq,)).fetchone()
        return found is not None and found[0] == row_check(row.checksum, row.title)

    def _sources(self) -> None:
        try:
            sources = self.old.sources()
        except _FAULTS:
            roots = sorted({place for row in [*self.good, *self.bad] if (place := _place_of(row))})
            self.notes.append(f"The sources cannot be read. Add them again: {', '.join(roots)}")
            return
        known = {source.place for source in sources}
        self.target.put_sources(sources)
        try:
            copying.copy_sources(self.old, self.target, self.good)
        except _FAULTS:
            self.notes.append(
                "It is not known which source each document came from. To find out: quire refresh"
            )
        unknown = sorted({row.root for row in [*self.good, *self.bad] if row.root} - known)
        if not known and unknown:
            self.notes.append(f"No source is left. Add them again: {', '.join(unknown)}")


def _place_of(row: DocumentRow) -> str | None:
    """What to add again to have a document: its page, its repository or its folder."""
    is_in_repository = row.root is not None and row.root.startswith(REPOSITORY)
    return row.root if is_in_repository else row.url or row.root


def _save(old: SqliteStore, bad: Sequence[DocumentRow], url: str) -> str:
    """Write what can be read of damaged documents into a folder beside the library."""
    folder = Path(f"{url}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}")
    folder.mkdir()
    for row in bad:
        with suppress(*_FAULTS, OSError):
            source = old.db.execute("SELECT source FROM documents WHERE seq = ?", (row.seq,)).fetchone()[0]
            (folder / f"{row.id}-{Path(row.path).name[-100:]}").write_bytes(source)
    return str(folder)
