"""Files and folders to a store: list, plan, then apply the plan in batches.

Always: a document is written whole or not at all; each item fails alone; all new documents are written
before any is removed.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from quire.address import of_document
from quire.config import Config
from quire.errors import SourceError
from quire.fingerprint import why_remade
from quire.ingest import plan as planning
from quire.ingest.plan import (
    ADD,
    IGNORE,
    KEEP,
    MOVE,
    REFUSE,
    REMAKE,
    REMOVE,
    SKIP,
    TOUCH,
    UPDATE,
    WRITES,
    Held,
    Item,
    Plan,
    Rules,
    is_cut_anew,
)
from quire.ingest.prepare import FileJob, Outcome, Same, examined, made_by, prepared
from quire.ingest.report import Report, Written
from quire.ingest.writing import Done, Elsewhere, written_each
from quire.plural import counted
from quire.progress import DocumentChange, Progress, Silent
from quire.sources import contents, files
from quire.sources.files import FoundFile, Seen, Skipped, Wanted
from quire.stores import BATCH_BYTES, DocumentRow, Filters, Prepared, Sighting, SourceRow, Store

if TYPE_CHECKING:
    from quire.sources.git import Checkout

log = logging.getLogger("quire")
_BATCH_FILES = 256


def plan(
    store: Store,
    source: SourceRow,
    config: Config,
    *,
    gone: str = planning.AUTO,
    why_kept: str = "",
    thorough: bool = False,
    remake: bool = False,
    before: Iterable[Plan] = (),
    within: frozenset[str] = frozenset(),
    checkout: Checkout | None = None,
) -> Plan:
    """The changes that a file, a folder or the checkout of a repository would make.

    `thorough` reads every new or changed file. `remake` remakes documents that other versions made, in a
    shared library too. The result assumes that the plans in `before` have been applied. `within` are paths
    from the root: only these files, and all in these folders, are compared.
    """
    if checkout:
        listing, problem = checkout.listing(wanted_of(source, config))
        source = replace(source, options=replace(source.options, commit=checkout.commit))
    else:
        listing, problem = _listing(source, config, within)
    with store.reading():
        held = _held(store, source, within)
    for other in before:
        if (other.source.collection, other.source.kind) == (source.collection, source.kind):
            held = planning.after(held, other, made_by(config))
    if checkout:
        listing = checkout.with_texts(listing, partial(_is_read, held, made_by(config)))
    wanted = planning.to_read(listing, held)
    if thorough:
        wanted |= {seen.path for seen in listing if isinstance(seen, FoundFile) and _may_differ(held, seen)}
    is_named = source.type == "file"
    known = [
        examined(seen, config, named=is_named)
        if isinstance(seen, FoundFile) and seen.path in wanted
        else seen
        for seen in listing
    ]
    shared = store.is_shared and not remake
    members = _count_members(store, source) if within else 0
    rules = Rules(made_by(config), gone, problem or why_kept, shared, members)
    made = planning.make_plan(source, known, held, rules)
    if log.isEnabledFor(logging.DEBUG):
        _log_skipped(made, held)
    return made


def _log_skipped(plan: Plan, held: Mapping[str, Held]) -> None:
    """Log each document that is unchanged, and each file that is not read."""
    changed = {path for item in plan.items if item.action != TOUCH for path in (item.path, item.old_path)}
    for path, one in held.items():
        if one.seen is not None and path not in changed:
            log.debug("skipped %s: unchanged", one.row.address)
    for item in plan.of(SKIP, IGNORE):
        log.debug("skipped %s: %s", of_document(plan.source.collection, item.path), item.reason)


def _may_differ(held: dict[str, Held], found: FoundFile) -> bool:
    known = held.get(found.path)
    return known is None or not planning.is_unchanged(known, found)


def _is_read(held: dict[str, Held], maker: str, found: FoundFile) -> bool:
    """Whether a plan may read a file: it is new or changed, or its document may be made again."""
    return _may_differ(held, found) or held[found.path].row.made_by != maker


def _listing(source: SourceRow, config: Config, within: frozenset[str]) -> tuple[list[Seen], str]:
    """What a source has now, and why it may be incomplete: its root is gone or empty."""
    place, root = files.unprintable(source.place), files.unprintable(source.root or source.place)
    if source.type == "file":
        found = files.look(place, root)
        return ([found], "") if isinstance(found, FoundFile) else ([], f"{source.place}: {found.reason}")
    try:
        options: Any = {"wanted": wanted_of(source, config), "within": within}
        listing = list(files.walk(place, root=root, **options, max_bytes=config.document.max_bytes))
    except SourceError as error:
        if _is_gone(place):
            return [], f"{source.place}: {error.reason}"
        path = files.printable(os.path.relpath(place, root))
        return [Skipped(path, error.reason, error.code)], f"{source.place}: {error.reason}"
    is_empty = not listing and not (within and _has_entries(place))
    return listing, f"{source.place} is empty" if is_empty else ""


def _has_entries(place: str) -> bool:
    try:
        with os.scandir(place) as entries:
            return any(True for _ in entries)
    except OSError:
        return False


def _is_gone(place: str) -> bool:
    """Whether nothing exists at a place. An unreadable place is not gone."""
    try:
        os.stat(place)  # noqa: PTH116  a link that leads nowhere is gone, too
    except OSError as problem:
        return isinstance(problem, FileNotFoundError | NotADirectoryError)
    return False


def wanted_of(source: SourceRow, config: Config) -> Wanted:
    """Which files of a folder are wanted, by its own options and the settings of its project or user."""
    options = source.options
    narrowed = (options.project, options.only, options.never)
    if config.project is None and not options.project:
        narrowed = ("", config.files.include, config.files.exclude)
    return Wanted(options.include, options.exclude, frozenset(options.without), *narrowed)


def _held(store: Store, source: SourceRow, within: frozenset[str]) -> dict[str, Held]:
    """The documents of a source's collection, by path; of a file, its own and the one at its path."""
    if source.type == "file":
        return _held_by_file(store, source)
    if within:
        rows = _rows_within(store, source, within)
        members = store.holders(row.seq for row in rows)
    else:
        rows = store.documents(Filters(source.collection, (source.kind,)))
        members = store.members(source.collection, source.kind)
    number, seen, others = source.seq, dict[int, int](), defaultdict[int, list[int]](list)
    for member in members:
        if member.source == number:
            seen[member.document] = member.seen
        else:
            others[member.document].append(member.source)
    known = {other.seq: other for other in store.sources()} if others else {}
    originals = _originals(store, rows)
    return {
        row.path: Held(
            row, seen.get(row.seq), tuple(map(known.get, others.get(row.seq, ()))), originals.get(row.seq, "")
        )
        for row in rows
    }


def _originals(store: Store, rows: Iterable[DocumentRow]) -> dict[int, str]:
    """The checksums of the files of documents that were converted."""
    return store.original_checksums(row.seq for row in rows if contents.is_converted(row.path))


def _count_members(store: Store, source: SourceRow) -> int:
    return next((known.documents for known in store.sources() if known.seq == source.seq), 0)


def _rows_within(store: Store, source: SourceRow, within: frozenset[str]) -> list[DocumentRow]:
    """The documents at some paths, and below them."""
    paths = tuple(map(files.printable, within))
    starts = tuple(f"{path}/" for path in paths)
    wanted = () if any("*" in path for path in paths) else paths  # to a filter, a * is no letter
    rows = store.documents(Filters(source.collection, (source.kind,), wanted))
    return [row for row in rows if row.path in paths or row.path.startswith(starts)]


def _held_by_file(store: Store, source: SourceRow) -> dict[str, Held]:
    number, members = source.seq, store.members(source.collection, source.kind, source)
    seen = {member.document: member.seen for member in members if member.source == number}
    shared = {member.document for member in members if member.source != number}
    path = source.place[len((source.root or "").rstrip("/")) + 1 :]
    rows = [*store.documents_by_row(seen).values()]
    at_path = store.documents(Filters(source.collection, (source.kind,), (path,)))
    rows += [row for row in at_path if row.path == path and row.seq not in seen]
    originals = _originals(store, rows)
    return {
        row.path: Held(
            row, seen.get(row.seq), (None,) if row.seq in shared else (), originals.get(row.seq, "")
        )
        for row in rows
    }


def apply(
    store: Store,
    plan: Plan,
    config: Config,
    progress: Progress | None = None,
    elsewhere: Elsewhere | None = None,
) -> Report:
    """Apply a plan. If `elsewhere` is given, other machines read, prepare and write its documents."""
    return _Run(store, plan, config, progress or Silent(), elsewhere).run()


class _Run:
    """One application of a plan."""

    def __init__(
        self, store: Store, plan: Plan, config: Config, progress: Progress, elsewhere: Elsewhere | None
    ) -> None:
        self.store, self.plan, self.config, self.progress = store, plan, config, progress
        self.elsewhere = elsewhere
        self.report, self.seen = Report(unchanged=plan.unchanged), list[Sighting]()

    def run(self) -> Report:
        started, source, report = time.monotonic(), self.plan.source, self.report
        self._tell()
        moved = self._move(self.plan.of(MOVE))
        self._write_all([*self.plan.of(*WRITES), *moved])
        self._sight(self.plan.of(TOUCH))
        gone = [item for item in self.plan.of(REMOVE, KEEP) if item.action == REMOVE or item.leaves]
        if gone:
            report.removed = self.store.leave(source, [_row(item).seq for item in gone])
        for item in self.plan.of(REMOVE):
            self._tell_of(REMOVE, item.path)
        report.seconds = time.monotonic() - started
        report.log_end(source.place)
        return report

    def _tell(self) -> None:
        """Report the items that stay unchanged."""
        skipped = self.plan.of(SKIP)
        self.report.kinds = dict(Counter(item.kind for item in skipped if item.kind))
        plain = [item for item in skipped if item.is_named]
        failed = [item for item in plain if item.code]
        self.report.skipped = [Skipped(item.path, item.reason) for item in plain if not item.code]
        refused = self.plan.of(REFUSE)
        self.report.failed = [Skipped(item.path, item.reason, item.code) for item in (*failed, *refused)]
        self.report.missing = [_row(item).address for item in self.plan.of(KEEP) if not item.leaves]

    def _move(self, items: list[Item]) -> list[Item]:
        """Rename documents. Those titled after their files are cut again."""
        if not items or self.store.source_now(self.plan.source) is None:
            return []
        refused = set[int]()
        for start in range(0, len(items), _BATCH_FILES):
            renamed = [_sighting(item, item.path) for item in items[start : start + _BATCH_FILES]]
            refused |= set(self.store.sight(self.plan.source, renamed))
        moved = [item for item in items if _row(item).seq not in refused]
        self.report.moved = len(moved)
        for item in moved:
            self._tell_of(MOVE, item.path, item.old_path)
        again = [item for item in moved if is_cut_anew(_row(item), item.path) or _has_other_url(item)]
        self.report.updated += len(moved) - len(again)
        new = [Item(ADD, item.path, found=item.found) for item in items if _row(item).seq in refused]
        return [*again, *new]

    def _sight(self, items: list[Item]) -> None:
        self.report.unchanged += len(items)
        self.seen += [_sighting(item) for item in items]
        if self.seen and self.store.source_now(self.plan.source):
            self.store.sight(self.plan.source, self.seen)

    def _write_all(self, items: list[Item]) -> None:
        """Read, cut and write documents in batches."""
        originals = _originals(self.store, [item.row for item in items if item.row])
        jobs = [self._job(item, originals) for item in items]
        rows = {item.path: item.row for item in items}
        what = f"indexing {counted(len(jobs), 'file')}"
        self.progress.begin(what, sum(job.found.size for job in jobs), "bytes")
        if self.elsewhere:
            self._follow(self.elsewhere(jobs, self.plan.source, self.config), rows)
        else:
            self._write_here(jobs, rows)

    def _follow(self, done: Iterable[tuple[FileJob, Done]], rows: Mapping[str, DocumentRow | None]) -> None:
        """Count what other machines do."""
        for job, outcome in done:
            if isinstance(outcome, Written):
                self._count(outcome)
            elif outcome:
                self._taken(job, outcome, rows[job.found.path])
            self.progress.advance(job.found.size)
        self.report.sort()

    def _write_here(self, jobs: Sequence[FileJob], rows: Mapping[str, DocumentRow | None]) -> None:
        batch, size = list[Prepared](), 0
        for job, outcome in prepared(jobs, self.config):
            new = self._taken(job, outcome, rows[job.found.path])
            if new:
                batch.append(new)
                size += len(new.source)
            if size >= BATCH_BYTES or len(batch) >= _BATCH_FILES:
                self._write(batch)
                batch, size = [], 0
            self.progress.advance(job.found.size)
        self._write(batch)

    def _job(self, item: Item, originals: Mapping[int, str]) -> FileJob:
        source, row, found = self.plan.source, item.row, item.found
        assert found is not None  # noqa: S101
        known = None
        if row and item.action not in (MOVE, REMAKE):
            known = originals.get(row.seq, row.checksum), self._maker(row)
        named = source.type == "file"
        about = source.collection, source.kind, source.root or "", named, known
        return FileJob(found, *about, replaces=row is not None)

    def _maker(self, row: DocumentRow) -> str:
        """The `made_by` to compare with: the current one, unless the document must be remade."""
        now = made_by(self.config)
        return row.made_by if why_remade(row.made_by, now, shared=self.store.is_shared) else now

    def _taken(self, job: FileJob, outcome: Outcome, row: DocumentRow | None) -> Prepared | None:
        """The document to write. If there is none, record why and return None."""
        if isinstance(outcome, Prepared):
            return outcome
        if isinstance(outcome, Same):
            assert row is not None  # noqa: S101
            self.report.unchanged += 1
            log.debug("skipped %s: unchanged", row.address)
            found = job.found
            self.seen.append(
                Sighting(row.seq, found.size, found.mtime_ns, outcome.seen, checksum=row.checksum)
            )
        elif outcome.code:
            self.report.failed.append(outcome)
        else:
            self.report.skipped.append(outcome)
            self.report.kinds[outcome.kind] = self.report.kinds.get(outcome.kind, 0) + 1
        return None

    def _write(self, batch: Sequence[Prepared]) -> None:
        """Write a batch, and count what came of it."""
        for done in written_each(self.store, batch, self.plan.source):
            if isinstance(done, Written):
                self._count(done)
            else:
                self.report.failed.append(done)

    def _count(self, done: Written) -> None:
        self.report.count_written(done)
        self._tell_of(UPDATE if done.replaced else ADD, done.path)

    def _tell_of(self, action: str, path: str, old_path: str = "") -> None:
        collection = self.plan.source.collection
        old = of_document(collection, old_path) if old_path else ""
        self.progress.changed(DocumentChange(action, of_document(collection, path), old))


def _row(item: Item) -> DocumentRow:
    assert item.row is not None  # noqa: S101
    return item.row


def _has_other_url(item: Item) -> bool:
    return item.found is not None and item.found.url != _row(item).url


def _sighting(item: Item, path: str = "") -> Sighting:
    found = item.found
    assert found is not None  # noqa: S101
    row = _row(item)
    return Sighting(row.seq, found.size, found.mtime_ns, found.seen, path, row.checksum)
