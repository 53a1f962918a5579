"""The part of Library that adds, refreshes and removes documents."""

from __future__ import annotations

import logging
import math
import os
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from quire import later
from quire.address import is_in_collection
from quire.document import Document, format_of_type, text_of
from quire.errors import NoResults, SettingError, nearest, no_collection
from quire.library.base import given_names, reads, writes
from quire.library.embeddings import Embeddings
from quire.progress import DocumentChange, Progress
from quire.sources import entries
from quire.stores import DocumentRow, Filters, SourceRow, Store, storable
from quire.tree import Tree

if TYPE_CHECKING:
    from quire import fingerprint, memory, sync
    from quire.ingest import named, prepare, removing, writing
    from quire.ingest import report as reports
    from quire.ingest.plan import Plan
    from quire.ingest.report import Report
    from quire.ingest.writing import Elsewhere, Machines
    from quire.sync import Changes, Named
else:
    memory, sync, fingerprint = map(later.module, ("quire.memory", "quire.sync", "quire.fingerprint"))
    named, prepare = later.module("quire.ingest.named"), later.module("quire.ingest.prepare")
    removing, reports = later.module("quire.ingest.removing"), later.module("quire.ingest.report")
    writing = later.module("quire.ingest.writing")

log = logging.getLogger("quire")
PROMOTIONS = ("standard", "important", "critical")


class Indexing(Embeddings):
    """Adding, refreshing, promoting and removing documents, and keeping their sources."""

    @writes
    def add(
        self,
        *paths: str | os.PathLike[str],
        content: str | bytes | None = None,
        path: str | None = None,
        collection: str | None = None,
        title: str | None = None,
        source_type: str | None = None,
        external: bool = False,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        keep: bool | None = None,
        site: bool = False,
        prune: bool = False,
        embed: bool = True,
        fleet: Machines | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Add files, folders, repositories, pages and sites, or content under its own path.

        Content wins over paths.

        The library remembers these sources, and `refresh` follows them. Content without a path is named by
        its text. Its `source_type` is md, rst or txt; None leaves that to its path and its text. `external`
        documents are other people's: searches find them, but they cannot be promoted.
        `include` and `exclude` are patterns as in .gitignore; `keep` keeps documents whose files are gone.
        These three are remembered; None leaves them unchanged. `site` takes all pages under a URL, by its
        sitemaps and links, without llms.txt. `prune` removes documents whose files are gone, now. What is new
        can be searched by words and meaning at once. Then `embed` deepens that, unless it would take longer
        than a minute: `Library.embed` does the rest. A `quire.fleet.Fleet` reads and writes the documents of
        files, folders and repositories, and embeds all that is new, however long that takes.
        """
        self._adopt()
        elsewhere = self._elsewhere(fleet) if fleet else None
        report, kind, since = reports.Report(), _kind(external), time.time_ns() // 1_000_000
        if content is not None:
            format = format_of_type(source_type) if source_type else None
            report.join(self._add_content(content, path, collection or "content", title, kind, format))
        given = (collection, kind, include, exclude, keep, site)
        for wanted in () if content is not None else _named(paths, *given):
            given_how: Any = {"prune": prune, "progress": progress, "elsewhere": elsewhere}
            report.join(sync.add(self.store, wanted, self.config, **given_how))
        if embed:
            self._embed_new(report, progress, since=since, fleet=fleet)
        return report

    def _elsewhere(self, fleet: Machines) -> Elsewhere:
        """How other machines write to this library. Raises SettingError if they cannot."""
        if not self.store.is_shared:
            raise SettingError("fleet", writing.NEEDS_SERVER)
        return partial(fleet.ingested, writing.SharedLibrary(self.url, self._scope, self.store.library_id()))

    def plan(
        self,
        *paths: str | os.PathLike[str],
        collection: str | None = None,
        external: bool = False,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        keep: bool | None = None,
        site: bool = False,
        prune: bool = False,
        remake: bool = False,
        after: Iterable[Plan] = (),
    ) -> list[Plan]:
        """The changes that `add` would make, or `refresh` if nothing is named. Nothing is written.

        The result assumes that the plans in `after` have been applied.
        """
        self._adopt()
        if not paths:
            return sync.plans(self.store, self.config, prune=prune, keep=bool(keep), remake=remake)
        before, found = list(after), list["Plan"]()
        for wanted in _named(paths, collection, _kind(external), include, exclude, keep, site):
            done = [*before, *found]
            found.append(sync.plan_added(self.store, wanted, self.config, prune=prune, before=done))
        return found

    def _add_content(
        self,
        content: str | bytes,
        path: str | None,
        collection: str,
        title: str | None,
        kind: str,
        format: str | None,
    ) -> Report:
        for name, given in (("path", path or ""), ("collection", collection)):
            if storable(given) != given:
                raise SettingError(name, "holds a NUL or an incomplete character. Name another")
        started = time.monotonic()
        log.info("indexing text as %s", collection)
        memory.check_collection(self.store, collection, kind)
        is_file = isinstance(content, bytes)
        if isinstance(content, str):  # with the same limits as a file
            content = Document.from_text(content).source
        if not path:
            unnamed = Document.from_bytes(content, format=format, settings=self.config.document)
            title = title or Tree(unnamed, self.config.tree).title
            path = self._name_of(content, collection, kind)
        origin: dict[str, Any] = {}
        if is_file and format is None:
            found = prepare.read_alone(content, path, self.config, collection=collection, title=title)
            document, origin = found.document, {"original": found.original, "places": found.places}
        else:
            about: Any = {"collection": collection, "format": format, "title": title}
            document = Document.from_bytes(content, path, **about, settings=self.config.document)
        report, old = reports.Report(addresses=[document.address]), self.store.document(collection, path)
        if old and (old.root or old.url):
            has = f"{collection} already has {path} from {old.url or old.root}"
            raise SettingError("path", f"{has}. Name another path or collection")
        if old and old.checksum == document.checksum and not self._is_remade(old):
            log.debug("skipped %s: unchanged", old.address)
            report.unchanged, report.seconds = 1, time.monotonic() - started
            report.log_end(old.address)
            return report
        prepared, source = (
            prepare.prepare_alone(document, self.config, kind, **origin),
            named.text_source(path, collection, kind),
        )
        self.store.put_sources([source])
        report.count(prepared, self.store.write([prepared], source)[0])
        report.seconds = time.monotonic() - started
        report.log_end(document.address)
        return report

    def _is_remade(self, row: DocumentRow) -> bool:
        now = prepare.made_by(self.config)
        return bool(fingerprint.why_remade(row.made_by, now, shared=self.store.is_shared))

    def _name_of(self, content: bytes, collection: str, kind: str) -> str:
        """The name of content given without one: its stored name, or a new one."""
        text = text_of(content)
        known = self.store.documents(Filters(collection, (kind,), (f"*{entries.ending(text)}",)))
        return known[0].path if known else entries.named(text, datetime.now(UTC).date())

    @writes
    def refresh(
        self,
        *,
        prune: bool = False,
        keep: bool = False,
        remake: bool = False,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> Report:
        """Update every source.

        Documents whose files are gone are removed if their source is healthy: its root exists and is not
        empty, and less than half of its documents are missing at once. `prune` removes them anyway,
        `keep` removes none. Documents made by other versions of Quire or its stemmer are remade: in a shared
        library only if `remake` is set. `embed` embeds what is new, if that is quick.
        """
        self._adopt()
        given: Any = {"prune": prune, "keep": keep, "remake": remake}
        report = sync.refresh(self.store, self.config, **given, progress=progress)
        if embed:
            self._embed_new(report, progress)
        return report

    def watch(
        self,
        on_change: Callable[[DocumentChange], None] | None = None,
        *,
        on_note: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Keep the library up to date until `stop` is set: what changes in its sources is read soon after.

        `on_change` receives each change to a document, `on_note` what a person should know; without them,
        the log does. One process at a time watches a library; others wait until it is gone. Pages, sites and
        repositories are read again after `watch.pages` seconds. Closing the library does not end it.
        """
        from quire import watcher

        if self.url == ":memory:":
            raise SettingError("library", "is in memory. Only one in a file or a database can be watched")
        self._connections.call(self._adopt)
        told = on_change or _log_change, on_note or log.warning
        with type(self).open(self.url, config=self.config, collections=self._scope) as own:
            watched = watcher.Watched(own.store, self.url, self.config, self._another, *told)
            watcher.watch(watched, stop or threading.Event())

    @contextmanager
    def _another(self) -> Iterator[tuple[Store, Callable[[Report, Progress], None]]]:
        """The library opened once more, for another thread: its store, and how it embeds what is new."""
        with type(self).open(self.url, config=self.config, collections=self._scope) as other:
            yield other.store, partial(other._embed_new, within=math.inf)

    def check(self, collection: str | None = None) -> Changes:
        """Files and pages that are new, changed or gone. Content added as text is skipped."""
        self._adopt()
        return sync.check(self.store, self.config, collection)

    def sources(self) -> list[SourceRow]:
        """The sources that people added: files, folders, repositories, pages, sites and texts."""
        self._adopt()
        return self._stored_sources()

    @reads
    def _stored_sources(self) -> list[SourceRow]:
        return self.store.sources()

    def _adopt(self) -> None:
        """Create the missing sources of a library that is older than sources."""
        if not self.store.adopted():
            with self.store.writing():
                named.adopt(self.store)

    @writes
    def remove_source(
        self, place: str, *, collection: str | None = None, dry_run: bool = False
    ) -> list[DocumentRow]:
        """Remove a source and the documents that no other source holds; returns these documents.

        `dry_run` only returns them. Raises NoResults if there is no such source.
        """
        self._adopt()
        source = named.find(self.store, place, collection)
        rows = removing.goes_with(self.store, source)
        if not dry_run:
            removing.drop_sources(self.store, [source])
        return rows

    @writes
    def move_source(self, old: str, new: str, *, dry_run: bool = False) -> list[tuple[SourceRow, SourceRow]]:
        """Follow a file or folder that moved, with every source under it; returns each before and after.

        Documents keep their ids, promotions and vectors. Raises NoResults if there is no such source.
        """
        self._adopt()
        moved = named.moves(self.store, old, new)
        if not dry_run:
            removing.follow(self.store, moved)
        return moved

    @writes
    def remove(
        self,
        *addresses: str,
        collection: str | None = None,
        paths: Iterable[str] = (),
        purge: bool = False,
        dry_run: bool = False,
    ) -> list[DocumentRow]:
        """Remove documents by address or id, or a collection, or some paths of it; returns what was removed.

        A branch of a project is the collection `project@branch`; `project@*` are all its branches. What is
        removed stays removed: a refresh does not bring it back, adding it by name does. Memories and
        knowledge are refused: `forget` deletes them. `purge` also erases what is left of removed documents
        in the library's files, also alone. `dry_run` only returns what would go.
        """
        self._adopt()
        within = given_names(paths, "paths")
        if addresses and (within or collection is not None):
            raise SettingError("remove", "Name addresses, or a collection and its paths, not both")
        if addresses:
            rows = list(dict.fromkeys(map(self._whole, addresses)))
        elif collection is not None:
            rows = self._rows_of(collection, within)
        elif within:
            raise SettingError("remove", "Name the collection that these paths are of")
        elif purge and not dry_run:
            rows = []
        else:
            raise SettingError("remove", "Name what to remove: addresses, or a collection")
        _check_removable(rows, collection)
        if not dry_run and collection is not None and not within:
            removing.remove_collection(self.store, collection, rows)
        elif not dry_run:
            removing.remove_documents(self.store, rows)
        if purge and not dry_run:
            self._purge()
        return rows

    def _whole(self, address: str) -> DocumentRow:
        """The document of an address. Raises SettingError for a section: removing it would remove all."""
        row, section = self._document(address)
        if section:
            part = f"{address} is only part of {row.address}, and documents are removed whole"
            remove = f"To remove it: quire remove {shlex.quote(row.address)}"
            raise SettingError("remove", f"{part}. {remove}")
        return row

    def _rows_of(self, collection: str, within: tuple[str, ...]) -> list[DocumentRow]:
        """The documents of a collection, or of some paths of it. Raises NoResults if there are none."""
        rows = self.store.documents(Filters(collection, paths=within))
        if not rows and not any(is_in_collection(name, collection) for name in self.store.collections()):
            raise no_collection(collection, self.store.collections())
        if not rows:
            paths = ", ".join(within)
            raise NoResults(f"No document of {collection} is in {paths}.", missing="path", name=paths)
        return rows

    @writes
    def promote(self, address: str, level: str) -> DocumentRow:
        """Make a document standard, important or critical, by address or id; no section alone."""
        if level not in PROMOTIONS:
            raise SettingError("promotion", f"there is no {level!r}. {nearest(level, PROMOTIONS)}")
        document, rest = self._document(address)
        if rest:
            raise SettingError("promotion", f"applies to whole documents: {document.address}")
        if document.kind == "external":
            raise SettingError("promotion", f"{document.address} is external: only your own have one")
        self.store.promote(document.seq, level)
        return self._document(address)[0]


def _check_removable(rows: Iterable[DocumentRow], collection: str | None) -> None:
    """Raise SettingError for memories and knowledge: they are forgotten, which leaves nothing of them."""
    for row in rows:
        if row.kind in entries.KINDS:
            name = f"--collection {shlex.quote(row.collection)}" if collection else shlex.quote(row.address)
            is_kept = f"{row.address} is of kind {row.kind}"
            raise SettingError("remove", f"{is_kept}. To delete it: quire forget {name}")


def _log_change(change: DocumentChange) -> None:
    log.info("%s %s", change.action, change.address)


def _kind(external: bool) -> str:
    return "external" if external else "document"


def _named(
    places: Iterable[str | os.PathLike[str]],
    collection: str | None,
    kind: str,
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
    keep: bool | None,
    site: bool,
) -> list[Named]:
    """What to add. Raises SettingError if nothing is named."""
    options = {
        name: None if some is None else tuple(some)
        for name, some in (("include", include), ("exclude", exclude))
    }
    about: Any = {"keep": keep, "site": site, **options}
    found = [sync.Named(os.fspath(place), collection, kind, **about) for place in places]
    if not found:
        raise SettingError("add", "Must provide path, url, or content")
    return found
