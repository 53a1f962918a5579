"""Sources and a store: add sources, refresh them, and remove them.

Always: refreshing, checking and pruning follow sources only; a source that fails is named with its
problem, and the others go on; a document that a person removed stays removed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire import memory, redact
from quire.address import is_in_collection, of_document
from quire.config import Config
from quire.errors import NoResults, NotFound, SettingError, SourceError, Unreadable
from quire.ingest import apply, named, pages, remaking, removing, repositories
from quire.ingest.plan import ADD, AUTO, KEEP, MOVE, NEVER, PRUNE, REMAKE, REMOVE, UPDATE, Item, Plan
from quire.ingest.report import Report
from quire.ingest.writing import Elsewhere
from quire.plural import counted
from quire.progress import Progress
from quire.sources import files, names
from quire.sources.files import Skipped
from quire.stores import DocumentRow, SourceRow, Store

if TYPE_CHECKING:
    from quire.sources.git import Checkout

log = logging.getLogger("quire")
_ADDING_REMOVES_NOTHING = "adding removes nothing; quire refresh does, and so does --prune"
_GONE_WHOLE = ("page", "repository")  # sources whose documents are gone when their server does not have them


@dataclass(frozen=True, slots=True)
class Changes:
    """How files and pages differ from the stored documents."""

    changed: tuple[DocumentRow, ...]
    missing: tuple[DocumentRow, ...]
    new: tuple[str, ...] = ()  # the addresses of new documents
    remade: tuple[DocumentRow, ...] = ()  # unchanged, but to be cut again
    failed: tuple[Skipped, ...] = ()  # what could not be looked at
    kept: frozenset[int] = frozenset()  # missing documents that a refresh would keep

    def __bool__(self) -> bool:
        gone = any(row.seq not in self.kept for row in self.missing)
        return bool(self.changed or gone or self.new or self.remade)


@dataclass(frozen=True, slots=True)
class Named:
    """What a person asks to add, with its options. None leaves an option unchanged."""

    place: str
    collection: str | None = None
    kind: str = "document"
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    keep: bool | None = None
    site: bool = False  # all that is under a URL, without llms.txt


# ---------------------------------------------------------------------------------------- adding


def source_of(store: Store, wanted: Named, config: Config) -> SourceRow:
    """The source that a name means: a file or folder if one has this name, else a repository, page or site.

    Raises SourceError if there is none, and SourceMoved if it has the documents of a source whose place
    is gone.
    """
    all_known = store.sources()
    named_so = (wanted.place, wanted.collection, wanted.kind)
    if is_web(wanted.place) and repositories.is_named(wanted.place) and not wanted.site:
        source = repositories.source_of_name(*named_so)
    elif is_web(wanted.place) or (wanted.site and not Path(wanted.place).exists()):
        source = pages.web_source(all_known, *named_so, site=wanted.site)
    elif wanted.site:
        raise SettingError("site", f"{wanted.place} is a file or folder. Sites are on the web")
    else:
        source = named.path_source(store, all_known, *named_so, config)
    memory.check_collection(store, source.collection, source.kind)
    known = next((s for s in all_known if s.seq == source.seq), None)
    if known is None and source.type in ("file", "folder"):
        others = [s for s in all_known if wanted.collection in (None, s.collection)]
        named.check_moved(store, others, source, config)
    source = known or replace(source, added_at=named.now())
    return _narrowed(named.with_options(source, wanted.include, wanted.exclude, wanted.keep), config)


def _narrowed(source: SourceRow, config: Config) -> SourceRow:
    """A source with its project's include and exclude patterns, stored so that they apply from anywhere."""
    if source.type != "folder" or not named.is_in_project(source.place, config):
        return source
    assert config.project  # noqa: S101
    narrowed = (config.project.folder, config.files.include, config.files.exclude)
    options = source.options
    known = (options.project, options.only, options.never)
    if known == narrowed or not (any(narrowed[1:]) or options.project):
        return source
    return replace(source, options=replace(options, project=narrowed[0], only=narrowed[1], never=narrowed[2]))


def is_web(place: str) -> bool:
    """Whether a place is a page, a site or a repository: no file or folder has that name."""
    path = Path(place)
    try:
        # .md is also a domain.
        is_file = path.exists() or (path.name == place.rstrip("/") and files.is_document(path))
    except (OSError, ValueError):  # too long for a file name, or no file name at all
        is_file = False
    return names.is_url(place) or (not is_file and (names.is_site(place) or repositories.is_named(place)))


def _drop_first_page(store: Store, site: SourceRow) -> None:
    """Drop the source of a page that has become the first page of a site: the site holds it now."""
    page = store.source_now(replace(site, type="page"))
    if page and not removing.goes_with(store, page):
        store.drop_sources([page])


def add(
    store: Store,
    wanted: Named,
    config: Config,
    *,
    prune: bool = False,
    progress: Progress | None = None,
    elsewhere: Elsewhere | None = None,
) -> Report:
    """Add a source and update its documents. Those whose files are gone stay, unless pruning.

    If `elsewhere` is given, other machines read files and write their documents; pages are read here.
    """
    source = source_of(store, wanted, config)
    _log_start(source)
    if source.type in ("page", "site"):
        report = pages.add_pages(store, source, config, prune=prune, progress=progress)
        if source.type == "site":
            _drop_first_page(store, source)
        _note([_checked(source, report, "")], store)
        return _with_places(report, source, store)
    with repositories.tried(store, source, config, progress) as checkout:
        plan = _plan_added(store, source, config, prune, checkout=checkout)
        twice = named.held_twice(store, source)
        ignored = named.ignored_collection(store, source.place, config) if wanted.collection is None else ""
        store.put_sources([plan.source])
        report = apply.apply(store, plan, config, progress, elsewhere)
    report.warnings += [told for told in (ignored, twice) if told]
    if report.failed and not store.members(source.collection, source.kind, source):
        removing.drop_sources(store, [source])  # adding failed: there is nothing to follow
    else:
        _note([_checked(source, report, plan.problem if prune else "")], store)
    return _with_places(report, source, store)


def _with_places(report: Report, source: SourceRow, store: Store) -> Report:
    """A report that says where the documents of a source are: the address of one, else their collection."""
    number = next((known.documents for known in store.sources() if known.seq == source.seq), 0)
    if number == 1:
        held = {member.document for member in store.members(source.collection, source.kind, source)}
        report.addresses += [row.address for row in store.documents_by_row(held).values()]
    elif number:
        report.collections[source.collection] = number
    return report


def _log_start(source: SourceRow) -> None:
    log.info("indexing %s as %s", redact.url(source.place), source.collection)


def plan_added(
    store: Store, wanted: Named, config: Config, *, prune: bool = False, before: Iterable[Plan] = ()
) -> Plan:
    """The changes that adding a source would make after the earlier plans were applied."""
    source = source_of(store, wanted, config)
    if source.type in ("page", "site"):
        return pages.plan_pages(store, source, config, prune=prune)
    with repositories.tried(store, source, config) as checkout:
        return _plan_added(store, source, config, prune, thorough=True, before=before, checkout=checkout)


def _plan_added(
    store: Store,
    source: SourceRow,
    config: Config,
    prune: bool,
    *,
    thorough: bool = False,
    before: Iterable[Plan] = (),
    checkout: Checkout | None = None,
) -> Plan:
    given: Any = {"gone": PRUNE if prune else NEVER, "why_kept": _ADDING_REMOVES_NOTHING}
    plan = apply.plan(store, source, config, **given, thorough=thorough, before=before, checkout=checkout)
    if checkout and not checkout.has_files:
        raise NotFound(source.place, "there is no such file or folder in the repository", 404)
    if source.type == "file" and not plan.items and not plan.unchanged:
        found = files.look(files.unprintable(source.place), "/")
        raise Unreadable(source.place, found.reason if isinstance(found, Skipped) else "cannot be read")
    return plan


# ------------------------------------------------------------------------------------ refreshing


def refresh(
    store: Store,
    config: Config,
    *,
    prune: bool = False,
    keep: bool = False,
    remake: bool = False,
    only: Container[int] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Update every source, or only some. Sources that cannot be read are named, and the others go on."""
    started = time.monotonic()
    total, checked = Report(), list[SourceRow]()
    total.warnings += remaking.remake_words(store, remake, progress)
    total.join(remaking.remake_texts(store, config, remake))
    for known in _followed(store):
        source = _current(store, known, config) if only is None or known.seq in only else None
        if source is None:
            continue
        gone = _gone(source, prune, keep)
        _log_start(source)
        report, problem = _refresh_one(store, source, config, gone, remake, progress)
        total.join(report)
        checked.append(_checked(source, report, problem))
    total.missing = list(dict.fromkeys(total.missing))
    _note(checked, store)
    log.info("refreshed %d sources in %.0f ms", len(checked), (time.monotonic() - started) * 1000)
    return total


def refresh_source(
    store: Store,
    known: SourceRow,
    config: Config,
    within: frozenset[str] = frozenset(),
    progress: Progress | None = None,
) -> Report:
    """Update a file or folder, or only some places in a folder: paths from its root, with all below them.

    Whether a source is healthy is judged by the files that are gone in these places. Unlike `refresh`, this
    does not store when the source was checked.
    """
    source = _current(store, known, config)
    if source is None:
        return Report()
    gone = _gone(source, prune=False, keep=False)
    return _refresh_one(store, source, config, gone, False, progress, within)[0]


def _current(store: Store, known: SourceRow, config: Config) -> SourceRow | None:
    """A source as it is now, with its project's patterns; None if it was removed meanwhile."""
    now = store.source_now(known)
    if now is None:
        return None
    source = _narrowed(now, config)
    if source != now:
        store.put_sources([source])
    return source


def _followed(store: Store) -> list[SourceRow]:
    """The sources that may have changed: all but texts."""
    return [source for source in store.sources() if source.type != "text"]


def _gone(source: SourceRow, prune: bool, keep: bool) -> str:
    if keep or (source.options.keep and not prune):
        return NEVER
    return PRUNE if prune else AUTO


def _refresh_one(
    store: Store,
    source: SourceRow,
    config: Config,
    gone: str,
    remake: bool,
    progress: Progress | None,
    within: frozenset[str] = frozenset(),
) -> tuple[Report, str]:
    try:
        if source.type in ("page", "site"):
            given = {"keeps": gone == NEVER, "prune": gone == PRUNE, "remake": remake}
            return pages.add_pages(store, source, config, **given, progress=progress), ""
        options: Any = {"gone": gone, "why_kept": _why_kept(gone), "remake": remake}
        with repositories.opened(source, config, progress) as checkout:
            plan = apply.plan(store, source, config, **options, within=within, checkout=checkout)
            report = apply.apply(store, plan, config, progress)
        _note_commit(store, plan.source)
        if plan.problem and gone == AUTO and report.missing:
            report.warnings.append(_kept_line(plan))
        return report, plan.problem if gone == AUTO else ""
    except SourceError as problem:
        if gone == PRUNE and source.type in _GONE_WHOLE and _is_gone(problem):
            rows = [row.seq for row in named.members_of(store, source)]
            return Report(removed=store.leave(source, rows)), problem.reason
        return Report(failed=[Skipped(problem.source, problem.reason, problem.code)]), problem.reason
    except NoResults as problem:  # the source was removed meanwhile
        return Report(warnings=[str(problem)]), ""


def _is_gone(problem: SourceError) -> bool:
    """Whether a page is gone by its server's word. One that is only not shown is not."""
    return isinstance(problem, NotFound) and problem.is_gone


def _note_commit(store: Store, source: SourceRow) -> None:
    """Store the commit that a repository is at; its other options may have changed meanwhile."""
    now = store.source_now(source) if source.options.commit else None
    if now and now.options.commit != source.options.commit:
        store.put_sources([replace(now, options=replace(now.options, commit=source.options.commit))])


def _why_kept(gone: str) -> str:
    return "you asked to keep documents whose files are gone" if gone == NEVER else ""


def _kept_line(plan: Plan) -> str:
    number = len(plan.of(KEEP))
    stay = counted(number, "document is no longer in its source", "documents are no longer in their source")
    them = "it" if number == 1 else "them"
    return f"{stay}, but kept, because {plan.problem}. To remove {them}: quire refresh --prune"


def plans(
    store: Store, config: Config, *, prune: bool = False, keep: bool = False, remake: bool = False
) -> list[Plan]:
    """The changes that refreshing would make, source by source, writing nothing."""
    found = remaking.remake_plans(store, config, remake)
    for known in _followed(store):
        source = _narrowed(known, config)
        gone = _gone(source, prune, keep)
        try:
            if source.type in ("page", "site"):
                how = {"keeps": gone == NEVER, "prune": gone == PRUNE, "remake": remake}
                found.append(pages.plan_pages(store, source, config, **how))
            else:
                given: Any = {"gone": gone, "why_kept": _why_kept(gone), "remake": remake, "before": found}
                with repositories.opened(source, config) as checkout:
                    plan = apply.plan(store, source, config, **given, thorough=True, checkout=checkout)
                found.append(plan)
        except SourceError as problem:
            found.append(_plan_failed(store, source, problem, gone))
    return found


def _plan_failed(store: Store, source: SourceRow, problem: SourceError, gone: str) -> Plan:
    """The plan of a page or site that cannot be read. If it is gone, pruning removes it."""
    told = f"{problem.source}: {problem.reason}"
    if source.type in _GONE_WHOLE and _is_gone(problem):
        action = REMOVE if gone == PRUNE else KEEP
        rows = named.members_of(store, source)
        return Plan(
            source, tuple(Item(action, row.path, problem.reason, row=row) for row in rows), problem=told
        )
    return Plan(source, (), problem=told)


def _checked(source: SourceRow, report: Report, problem: str) -> SourceRow:
    """A source with the outcome of its last read."""
    failed = next((f"{one.source}: {one.reason}" for one in report.failed), "")
    more = f" and {len(report.failed) - 1:,} more" if len(report.failed) > 1 else ""
    return replace(source, checked_at=named.now(), problem=problem or f"{failed}{more}")


def _note(sources: list[SourceRow], store: Store) -> None:
    if sources:
        store.note_checked(sources)


# -------------------------------------------------------------------------------------- checking


def check(store: Store, config: Config, collection: str | None = None) -> Changes:
    """Files and pages that are new, changed or gone; writes nothing."""
    started = time.monotonic()
    log.info("checking for updates")
    changed, missing = list[DocumentRow](), list[DocumentRow]()
    new, remade, kept = list[str](), list[DocumentRow](), set[int]()
    failed = list[Skipped]()
    for plan in remaking.remake_plans(store, config, remake=False):
        rows = [item.row for item in plan.items if item.row]
        remade += [row for row in rows if collection is None or is_in_collection(row.collection, collection)]
    for source in _followed(store):
        if collection is not None and not is_in_collection(source.collection, collection):
            continue
        if source.type in ("page", "site"):
            more = _check_web(store, source, config)
        else:
            more = _check_files(store, source, config)
        changed += more.changed
        missing += more.missing
        new += more.new
        remade += more.remade
        kept |= more.kept
        failed += more.failed
    found = _unique(changed), _unique(missing), tuple(sorted(set(new))), _unique(remade)
    spent = (time.monotonic() - started) * 1000
    told = "checked for updates in %.0f ms: %d changed, %d missing, %d new, %d to remake"
    log.info(told, spent, *map(len, found))
    return Changes(*found, tuple(failed), frozenset(kept))


def _unique(rows: Iterable[DocumentRow]) -> tuple[DocumentRow, ...]:
    """Rows by address, each once: two sources may hold one."""
    return tuple(sorted({row.seq: row for row in rows}.values(), key=lambda row: (row.collection, row.path)))


def _check_files(store: Store, source: SourceRow, config: Config) -> Changes:
    """How files differ. A repository that cannot be reached is neither changed nor gone."""
    gone = _gone(source, prune=False, keep=False)
    try:
        with repositories.opened(source, config) as checkout:
            return _changes(apply.plan(store, source, config, gone=gone, thorough=True, checkout=checkout))
    except SourceError as problem:
        return Changes((), (), failed=(Skipped(problem.source, problem.reason, problem.code),))


def _changes(plan: Plan) -> Changes:
    rows = {action: tuple(i.row for i in plan.of(action) if i.row) for action in (UPDATE, REMAKE)}
    gone = tuple(item.row for item in plan.of(REMOVE, KEEP, MOVE) if item.row)
    new = tuple(of_document(plan.source.collection, item.path) for item in plan.of(ADD, MOVE))
    kept = frozenset(item.row.seq for item in plan.of(KEEP) if item.row and not item.leaves)
    failed = tuple(Skipped(item.path, item.reason, item.code) for item in plan.items if item.code)
    return Changes(rows[UPDATE], gone, new, rows[REMAKE], failed, kept)


def _check_web(store: Store, source: SourceRow, config: Config) -> Changes:
    """How pages differ. An unreachable page is neither changed nor gone."""
    rows = {row.url: row for row in named.members_of(store, source)}
    try:
        looked = pages.look_at_pages(store, source, config)
    except NotFound:
        return Changes((), tuple(rows.values()), kept=frozenset(row.seq for row in rows.values()))
    except SourceError as problem:
        log.warning("%s: %s", problem.source, problem.reason)
        return Changes((), ())
    read = {page.url: page.checksum for page in looked.new}
    changed = [row for url, row in rows.items() if read.get(url, row.checksum) != row.checksum]
    unlinked = frozenset(row.seq for row in looked.gone)
    gone = unlinked | {rows[url].seq for url in looked.missing & rows.keys()}
    kept = gone if source.options.keep else gone - unlinked
    new = (of_document(source.collection, page.path) for page in looked.new if page.url not in rows)
    missing = tuple(row for row in rows.values() if row.seq in gone)
    return Changes(tuple(changed), missing, tuple(new), kept=kept)
