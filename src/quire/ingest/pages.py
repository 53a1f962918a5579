"""Pages and sites to a store: cut new and changed pages, and write a whole site at once.

Always: a page that fails keeps its old version and is named in the report; a page never replaces another
document; a page is removed only if the crawl went far enough to know that it is gone; a crawl that finds
nothing new writes nothing.
"""

from __future__ import annotations

import logging
import pickle
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from quire import location, readers
from quire.address import of_document
from quire.config import Config
from quire.document import Document
from quire.errors import LibraryError, NotFound, Refused
from quire.fingerprint import why_remade
from quire.ingest import named, repositories
from quire.ingest.plan import ADD, KEEP, REMAKE, REMOVE, SKIP, UPDATE, Item, Plan
from quire.ingest.prepare import failed_by, made_by, prepare
from quire.ingest.report import Report
from quire.ingest.spool import Spool
from quire.plural import counted
from quire.progress import DocumentChange, Progress, Silent
from quire.sources import contents, ignore, names
from quire.sources.files import Skipped
from quire.stores import DocumentRow, Filters, Prepared, Sighting, SourceRow, Store

if TYPE_CHECKING:
    from quire.sources import web

T = TypeVar("T")
log = logging.getLogger("quire")
_MUST_BE_BOUNDED = 1 << 62  # more bytes than may be read without a worker
_NOTHING = (None, None)  # the validators of a page that has none
_MORE = re.compile(r" and [\d,]+ more\Z|web\.max_pages")  # a problem of more than the page that it names


def web_source(
    known: Iterable[SourceRow], url: str, collection: str | None, kind: str, *, site: bool = False
) -> SourceRow:
    """The source of a page or a site. With `site`, it is all that is under the URL, without llms.txt.

    A site that was named before is found by its URL alone. Raises Refused for a URL that Quire does not
    request.
    """
    from quire.sources import web  # loads the HTML parser, which a search does not need

    by_index = names.names_index(url) or (names.is_site(url) and not site)
    place = web.index_of(url) if by_index else web.normalise_url(url)
    name = collection or named.collection_of(web.target_of(url).host)
    whole = SourceRow("site", place, place, name, kind)
    is_whole = site or by_index or any(source.seq == whole.seq for source in known)
    return whole if is_whole else replace(whole, type="page")


def add_pages(
    store: Store,
    source: SourceRow,
    config: Config,
    *,
    keeps: bool = False,
    prune: bool = False,
    remake: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Update a page or a site in a store.

    With `keeps`, nothing is removed; with `prune`, also pages of a site that their server says are gone.
    Raises SourceError if nothing is there.
    """
    started, report, told = time.monotonic(), Report(), progress or Silent()
    found = look_at_pages(store, source, config, prune=prune, remake=remake, progress=progress)
    store.put_sources([source])
    gone = [] if keeps else [row.seq for row in found.gone]
    number, members = source.seq, store.members(source.collection, source.kind, source) if gone else []
    shared = {member.document for member in members if member.source != number}
    if found.new or gone:
        written = store.write(found.new, source, gone)
        for prepared, replaced in zip(found.new, written, strict=True):
            report.count(prepared, replaced)
            address = of_document(source.collection, prepared.path)
            told.changed(DocumentChange(UPDATE if replaced else ADD, address))
        for row in found.gone if gone else ():
            if row.seq not in shared:
                told.changed(DocumentChange(REMOVE, row.address))
    if found.joined:
        store.sight(source, [Sighting(row.seq, row.size, row.mtime_ns, 0) for row in found.joined])
    if found.validators:
        store.note_fetched(found.validators)
    report.unchanged, report.removed = found.unchanged, len(set(gone) - shared)
    report.missing = [row.address for row in found.gone] if keeps else []
    report.failed, report.warnings = found.failed, [*found.notes, *report.warnings]
    report.seconds = time.monotonic() - started
    report.log_end(source.place)
    return report


def plan_pages(
    store: Store,
    source: SourceRow,
    config: Config,
    *,
    keeps: bool = False,
    prune: bool = False,
    remake: bool = False,
) -> Plan:
    """The changes that a page or a site would make. Raises SourceError if nothing is there."""
    found = look_at_pages(store, source, config, prune=prune, remake=remake)
    old = {row.path: row for row in store.documents(Filters(source.collection, (source.kind,)))}
    items = [_item(new, old.get(new.path)) for new in found.new]
    gone = KEEP if keeps else REMOVE
    items += [Item(gone, row.path, _why_gone(row, found), row=row) for row in found.gone]
    items += [Item(SKIP, failed.source, failed.reason, code=failed.code) for failed in found.failed]
    return Plan(source, tuple(sorted(items, key=lambda item: item.path)), found.unchanged)


def _why_gone(row: DocumentRow, found: Looked) -> str:
    return "the server has no such page" if row.url in found.missing else "the site no longer links it"


def _item(new: Prepared, old: DocumentRow | None) -> Item:
    if old is None:
        return Item(ADD, new.path, "new")
    if old.checksum == new.checksum:
        return Item(REMAKE, new.path, why_remade(old.made_by, new.made_by, shared=False), row=old)
    return Item(UPDATE, new.path, "the page has changed", row=old)


@dataclass(frozen=True, slots=True)
class Looked:
    """How a page or a site differs from its stored documents."""

    new: Sequence[Prepared]  # pages that are new or have changed, or are to be cut again
    gone: list[DocumentRow]  # documents whose pages a site no longer links
    missing: set[str]  # URLs of pages that do not exist or are not shown
    validators: dict[int, web.Validators]  # new validators of unchanged documents
    joined: list[DocumentRow]  # unchanged documents that only another source held before
    unchanged: int
    failed: list[Skipped]
    notes: list[str]


def look_at_pages(
    store: Store,
    source: SourceRow,
    config: Config,
    *,
    prune: bool = False,
    remake: bool = False,
    progress: Progress | None = None,
) -> Looked:
    """Read a page or a site and compare it, writing nothing. Raises SourceError if nothing is there."""
    rows = store.documents(Filters(source.collection, (source.kind,)))
    members = store.members(source.collection, source.kind)
    held = {member.document for member in members if member.source == source.seq}
    pages = _Pages(rows, source, config, shared=store.is_shared and not remake)
    validators = store.fetched(row.seq for row in pages.known.values())
    known = {url: validators.get(row.seq, _NOTHING) for url, row in pages.known.items()}
    own = [row for row in rows if row.seq in held]
    asked = {row.url for row in _asked_with_validators(rows, own, source)}
    seen = {url: known[url] if url in asked and pages.is_current(url) else _NOTHING for url in known}
    visit = _visit(source, seen, pages, config, {row.url for row in own if row.url}, progress)
    gone = _gone(own, source, pages, visit, prune) if source.type == "site" else []
    lost = {row.url for row in gone}
    pages.new.drop({row.path for row in gone} | pages.unlinked(visit))
    same = {**pages.unchanged, **visit.unchanged}
    same = {url: said for url, said in same.items() if pages.is_wanted(pages.known[url].path)}
    same = {url: said for url, said in same.items() if url not in lost}
    failed = {**pages.failed, **visit.failed}
    for url in same:
        log.debug("skipped %s: unchanged", pages.known[url].address)
    failed = {url: why for url, why in failed.items() if url not in lost}
    return Looked(
        pages.new.sorted(),
        gone,
        visit.missing,
        {pages.known[url].seq: now for url, now in same.items() if now != known[url]},
        [pages.known[url] for url in same if pages.known[url].seq not in held],
        len(same),
        [failed[url] for url in sorted(failed)],
        visit.notes,
    )


def _asked_with_validators(
    rows: Sequence[DocumentRow], own: Sequence[DocumentRow], source: SourceRow
) -> Sequence[DocumentRow]:
    """The documents that need not be sent again if they are unchanged.

    A crawled site needs the links of pages that it does not hold yet, and of all pages if it may lack some:
    the last crawl was cut off, or a page failed that is not held.
    """
    if source.type != "site" or names.is_site(source.place):  # an llms.txt is always sent
        return rows
    known = any(source.problem.startswith(f"{row.url}: ") for row in own)
    is_whole = not source.problem or (known and not _MORE.search(source.problem))
    return own if is_whole else []


def _gone(
    own: Sequence[DocumentRow], source: SourceRow, pages: _Pages, visit: web.Visit, prune: bool
) -> list[DocumentRow]:
    """The documents to remove: unwanted ones, and missing ones unless the crawl is unsure of them.

    Pages that the site still links but does not have any more go only when pruning.
    """
    unwanted = [row for row in own if not pages.is_wanted(row.path)]
    wanted = [row for row in own if pages.is_wanted(row.path)]
    gone = [row for row in wanted if row.url not in visit.present]
    sure = [row for row in wanted if prune and row.url in visit.gone]
    if gone and (unsure := visit.unsure or _many_gone(gone, own, source, prune)):
        if kept := {row.seq for row in gone} - {row.seq for row in sure}:
            what = counted(len(kept), "document that may be gone was", "documents that may be gone were")
            visit.notes.append(f"{what} kept: {unsure}.")
        gone = []
    return list({row.seq: row for row in (*unwanted, *gone, *sure)}.values())


def _many_gone(
    gone: Sequence[DocumentRow], own: Sequence[DocumentRow], source: SourceRow, prune: bool
) -> str:
    """Why a crawled site is not believed: its links may be made by a script now."""
    if prune or names.is_site(source.place) or 2 * len(gone) < len(own):
        return ""
    return "half of the pages or more have no link any more. To remove them: quire refresh --prune"


def _visit(
    source: SourceRow,
    seen: Mapping[str, web.Validators],
    pages: _Pages,
    config: Config,
    held: Set[str],
    progress: Progress | None,
) -> web.Visit:
    from quire.sources import web

    given: Any = {"whole": source.type == "site", "held": held, "progress": progress}
    try:
        return _run(partial(web.read_web, source.place, seen, pages.take, config, **given))
    except NotFound as problem:
        if not source.checked_at:
            raise
        raise web.not_typed(problem, repositories.how_to_remove(source)) from None
    except ExceptionGroup as problems:  # from pages read in parallel
        if found := problems.subgroup(LibraryError):
            raise _first(found) from None
        raise


def _first(problem: Exception) -> Exception:
    """The first of a group of errors."""
    return _first(problem.exceptions[0]) if isinstance(problem, ExceptionGroup) else problem


def _run(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end, in a new thread if an event loop is already running."""
    import asyncio

    import anyio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(work)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, work).result()


@dataclass(frozen=True, slots=True)
class _PageJob:
    """A page to cut and analyse, and its name."""

    page: web.WebPage
    path: str
    collection: str
    kind: str
    root: str | None
    known: str | None  # the stored checksum, if the stored document matches the settings
    config: Config


def _packed(job: _PageJob) -> bytes | None:
    """A page cut, analysed and packed for the spool; None if it is unchanged."""
    document, origin = _file(job) if job.page.is_file else (_document(job), {})
    if job.known == document.checksum:
        return None
    etag, last_modified = job.page.validators
    prepared = prepare(
        document,
        job.config,
        job.kind,
        is_searched=job.page.is_searched,
        url=job.page.url,
        root=job.root,
        etag=etag,
        last_modified=last_modified,
        **{"places": location.anchors(job.page.anchors), **origin},
    )
    prepared = replace(prepared, warnings=(*job.page.warnings, *prepared.warnings))
    return pickle.dumps(prepared)


def _file(job: _PageJob) -> tuple[Document, dict[str, Any]]:
    """The document in a file from the web, and what is known of the file."""
    page, settings = job.page, job.config.document
    assert isinstance(page.content, bytes)  # noqa: S101
    found = readers.convert(page.content, f"{job.path}{page.format}", settings)
    named: Any = {"collection": job.collection, "format": "markdown", "title": found.title or None}
    document = Document.from_text(found.text, job.path, **named, settings=settings)
    origin = {"places": found.places, "original": contents.digest_of_file(page.content)}
    return document, origin


def _document(job: _PageJob) -> Document:
    page = job.page
    make: Any = Document.from_bytes if isinstance(page.content, bytes) else Document.from_text
    document: Document = make(
        page.content,
        job.path,
        collection=job.collection,
        format=page.format,
        title=page.title,
        settings=job.config.document,
    )
    return document


class _Pages:
    """Pages as they arrive. New ones are cut and analysed while others are fetched."""

    def __init__(
        self, rows: Sequence[DocumentRow], source: SourceRow, config: Config, *, shared: bool
    ) -> None:
        self.shared = shared  # see Rules
        self.root, self.collection, self.kind, self.config = (
            *(source.place, source.collection, source.kind),
            config,
        )
        self._options = source.options
        self._include = ignore.patterns(source.options.include, 0, "include")
        self._exclude = ignore.patterns(source.options.exclude, 0, "exclude")
        self.known = {row.url: row for row in rows if row.url}
        self.places = {row.path: row.url or row.root or "elsewhere" for row in rows}  # the owner of each path
        self.new = Spool()
        self.unchanged: dict[str, web.Validators] = {}
        self.failed: dict[str, Skipped] = {}

    def is_current(self, url: str) -> bool:
        """Whether a stored page matches the settings."""
        return not why_remade(self.known[url].made_by, made_by(self.config), shared=self.shared)

    def is_wanted(self, path: str) -> bool:
        """Whether the source's options allow a path."""
        names = tuple(path.split("/"))
        if path in self._options.without or ignore.covers(self._exclude, names, 0):
            return False
        return not self._include or ignore.covers(self._include, names, 0) is not None

    def unlinked(self, visit: web.Visit) -> set[str]:
        """The paths of new pages that only pages link which nothing links any more."""
        if visit.unsure:
            return set()
        return {
            path
            for path in self.new.paths()
            if (url := self.places.get(path)) not in visit.present and url not in self.known
        }

    async def take(self, pool: web.PagePool, page: web.WebPage) -> None:
        """Prepare a page, unless it is unchanged. Raises LibraryError if it cannot be kept."""
        try:
            job = self._job(page)
            if not self.is_wanted(job.path):
                return
            size = _MUST_BE_BOUNDED if page.is_file else len(page.content)
            packed = await pool.do(page.url, size, _packed, job)
        except LibraryError:
            raise
        except Exception as error:  # any parser error belongs to this page alone
            self.failed[page.url] = failed_by(page.url, error)
            return
        if packed is None:
            self.unchanged[page.url] = page.validators
        else:
            self.new.add(job.path, packed)

    def _job(self, page: web.WebPage) -> _PageJob:
        row = self.known.get(page.url)
        return _PageJob(
            page,
            self._path(page.url),
            self.collection,
            self.kind,
            root=row.root if row else self.root,  # the first to add it keeps it
            known=row.checksum if row and self.is_current(page.url) else None,
            config=self.config,
        )

    def _path(self, url: str) -> str:
        """The page's current path, or a free one. Raises Refused if there is none."""
        if url in self.known:
            return self.known[url].path
        path, host = names.path_of(url, self.root), urlsplit(url).netloc
        other = self.places.get(path, "")
        if names.is_url(other) and urlsplit(other).netloc != host:
            path = f"{host}/{path}"
            other = self.places.get(path, "")
        if other:
            has = f"{self.collection} already has {path} from {other}"
            raise Refused(url, f"{has}. Name another collection: -c NAME")
        self.places[path] = url
        return path
