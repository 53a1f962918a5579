"""Files to a store: what is new or changed is read, cut and written; the rest costs one stat.

Always: a document is written whole or not at all; one that fails keeps its old version and is
named in the report; a folder that is suddenly empty loses nothing, even when pruning is asked for.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quire import chunkers
from quire.config import Config
from quire.document import Document
from quire.errors import QuireError, SourceError
from quire.progress import Progress, Silent
from quire.sources import files
from quire.sources.files import Found, Skipped
from quire.stores.base import Filters, Store
from quire.stores.rows import (
    DocumentRow,
    Prepared,
    chunk_rows,
    digest_of,
    embedded,
    section_rows,
    words_of,
)
from quire.tokens import counter
from quire.tree import Tree

log = logging.getLogger("quire")
_BATCH_BYTES = 4_000_000  # of text in one transaction
_BATCH_FILES = 256
_PARALLEL_FROM = 64  # files: for fewer, starting workers costs more than they save


@dataclass(slots=True)
class Report:
    """What an indexing run did."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # addresses of files that are gone but not removed
    warnings: list[str] = field(default_factory=list)
    documents: int = 0
    sections: int = 0
    chunks: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def count(self, prepared: Prepared, replaced: bool) -> None:
        """Note a document that was written."""
        self.updated += replaced
        self.added += not replaced
        self.documents += 1
        self.sections += len(prepared.sections)
        self.chunks += len(prepared.chunks)
        self.bytes += len(prepared.source)
        self.warnings += [f"{prepared.path}: {warning}" for warning in prepared.warnings]

    def join(self, more: Report) -> None:
        """Add what another run did."""
        for counted in ("added", "updated", "unchanged", "removed", "documents", "sections", "chunks"):
            setattr(self, counted, getattr(self, counted) + getattr(more, counted))
        for listed in ("skipped", "failed", "missing", "warnings"):
            getattr(self, listed).extend(getattr(more, listed))
        self.bytes += more.bytes
        self.seconds += more.seconds


@dataclass(frozen=True, slots=True)
class Job:
    """A file to be read: where, and what it will be called."""

    found: Found
    collection: str
    kind: str
    root: str


def made_by(config: Config) -> str:
    """What chunks depend on besides the text: when it changes, a document is cut anew."""
    chunk = config.chunk
    return f"{chunk.strategy} {chunk.named(chunk.strategy)} {config.tree} {config.tokens}"


def prepare(document: Document, config: Config, kind: str = "document", **origin: object) -> Prepared:
    """A document read, cut and analysed."""
    tree = Tree(document, config.tree)
    strategy = config.chunk.strategy
    chunks = chunkers.split(tree, strategy, config.chunk.named(strategy), config.tokens)
    count = counter(config.tokens).count
    tokens = {s.position: count(document.text, s.start, s.end) for s in tree.sections}
    facts = {"url": None, "root": None, "size": len(document.source), "mtime_ns": 0, **origin}
    return Prepared(
        collection=document.collection,
        kind=kind,
        path=document.path,
        format=document.format,
        title=tree.title,
        source=document.source,
        checksum=document.checksum,
        made_by=made_by(config),
        sections=section_rows(tree, tokens),
        chunks=chunk_rows(chunks),
        words=tuple(words_of(chunk.trail, chunk.text) for chunk in chunks),
        digests=tuple(digest_of(embedded(chunk.trail, chunk.context, chunk.text)) for chunk in chunks),
        warnings=document.warnings,
        **facts,  # type: ignore[arg-type]
    )


def index_folder(
    store: Store,
    root: Path,
    collection: str,
    config: Config,
    *,
    kind: str = "document",
    prune: bool = False,
    only: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Bring what a store knows of a folder, or of one file in it, up to date."""
    started, report = time.monotonic(), Report()
    folder = root.resolve().as_posix()
    known = {row.path: row for row in store.documents(Filters(collection, (kind,)), root=folder)}
    log.info("indexing %s as %s", folder, collection)
    wanted, present = list[Found](), set[str]()
    for found in _listing(root, only, config):
        if isinstance(found, Skipped):
            report.skipped.append(found)
            present.add(found.source)
        else:
            present.add(found.path)
            row = known.get(found.path)
            if row and _same(row, found) and row.made_by == made_by(config):
                report.unchanged += 1
            else:
                wanted.append(found)
    gone = {} if only else {path: row for path, row in known.items() if path not in present}
    wanted = _clear_of_others(store, wanted, collection, kind, folder, report)
    jobs = [Job(found, collection, kind, folder) for found in _moved(store, wanted, gone, config, report)]
    _write_all(store, jobs, known, config, report, progress or Silent())
    _forget(store, gone, present, prune, report)
    report.seconds = time.monotonic() - started
    log.info("indexed %s in %.0f ms: %d written", folder, report.seconds * 1000, report.documents)
    return report


def _listing(root: Path, only: Path | None, config: Config) -> Iterator[Found | Skipped]:
    if only is None:
        yield from files.walk(root, max_bytes=config.document.max_bytes)
        return
    name = files.printable(only.name)
    try:
        status = only.stat()
    except OSError as problem:
        yield Skipped(name, (problem.strerror or str(problem)).lower())
        return
    yield Found(str(only.absolute()), name, status.st_size, status.st_mtime_ns)


def _same(row: DocumentRow, found: Found) -> bool:
    return (row.size, row.mtime_ns) == (found.size, found.mtime_ns)


def _clear_of_others(
    store: Store, wanted: list[Found], collection: str, kind: str, folder: str, report: Report
) -> list[Found]:
    """Leave out paths that the collection already has from another folder."""
    others = {
        row.path: row.root for row in store.documents(Filters(collection, (kind,))) if row.root != folder
    }
    for found in wanted:
        if found.path in others:
            where = others[found.path] or "elsewhere"
            reason = f"{collection} already has this path from {where}. Name another collection: -c NAME"
            report.failed.append(Skipped(found.path, reason))
    return [found for found in wanted if found.path not in others]


def _moved(
    store: Store, wanted: list[Found], gone: dict[str, DocumentRow], config: Config, report: Report
) -> Iterator[Found]:
    """Files that are to be read; one that is a vanished file under a new name is only renamed."""
    by_size = {row.size: path for path, row in gone.items()}
    for found in wanted:
        old = gone.get(by_size.get(found.size, ""))
        named_after_file = old and old.title == Path(old.path).stem
        if old and not named_after_file and checksum_of(found.absolute, config) == old.checksum:
            store.move(old.seq, found.path, found.mtime_ns)
            del gone[old.path]
            report.updated += 1
        else:
            yield found


def checksum_of(path: str, config: Config) -> str | None:
    """The checksum of a file as it is now; None if it cannot be read."""
    try:
        return hashlib.sha256(files.load(path, settings=config.document)).hexdigest()
    except SourceError:
        return None


def _write_all(
    store: Store,
    jobs: list[Job],
    known: dict[str, DocumentRow],
    config: Config,
    report: Report,
    progress: Progress,
) -> None:
    """Read, cut and write, a batch at a time."""
    progress.begin(f"indexing {len(jobs):,} files", sum(job.found.size for job in jobs), "bytes")
    touched: list[tuple[int, int, int]] = []
    batch: list[Prepared] = []
    size = 0
    for job, done in _prepared(jobs, known, config):
        row = known.get(job.found.path)
        if isinstance(done, Skipped):
            report.failed.append(done)
        elif done is None:
            report.unchanged += 1
            assert row is not None  # noqa: S101
            touched.append((row.seq, job.found.size, job.found.mtime_ns))
        else:
            batch.append(done)
            size += len(done.source)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            _write(store, batch, report)
            batch, size = [], 0
        progress.advance(job.found.size)
    _write(store, batch, report)
    if touched:
        store.touch(touched)


def _write(store: Store, batch: Sequence[Prepared], report: Report) -> None:
    if batch:
        for prepared, replaced in zip(batch, store.write(batch), strict=True):
            report.count(prepared, replaced)


def _prepared(
    jobs: list[Job], known: dict[str, DocumentRow], config: Config
) -> Iterator[tuple[Job, Prepared | Skipped | None]]:
    """Each job with its document, with why not, or with None where nothing has changed."""
    old = {path: (row.checksum, row.made_by) for path, row in known.items()}
    work = [(job, old.get(job.found.path), config) for job in jobs]
    if len(jobs) < _PARALLEL_FROM:
        yield from zip(jobs, map(_prepare_file, work), strict=True)
        return
    from quire.workers import spread  # 6 ms that a search need not wait for

    yield from zip(jobs, spread(_prepare_file, work, _lost), strict=True)


def _lost(work: tuple[Job, tuple[str, str] | None, Config], error: QuireError) -> Skipped:
    return Skipped(work[0].found.path, str(error))


def _prepare_file(work: tuple[Job, tuple[str, str] | None, Config]) -> Prepared | Skipped | None:
    job, old, config = work
    try:
        source = files.load(job.found.absolute, settings=config.document)
        document = Document.from_bytes(
            source, job.found.path, collection=job.collection, settings=config.document
        )
        if old == (document.checksum, made_by(config)):
            return None
        found = job.found
        return prepare(document, config, job.kind, root=job.root, size=found.size, mtime_ns=found.mtime_ns)
    except QuireError as error:
        reason = error.reason if isinstance(error, SourceError) else str(error)
        return Skipped(job.found.path, reason)


def _forget(
    store: Store, gone: dict[str, DocumentRow], present: Iterable[str], prune: bool, report: Report
) -> None:
    """Remove documents whose files are gone, if asked to and the folder is not empty."""
    if not gone:
        return
    if prune and any(True for _ in present):
        store.remove([row.seq for row in gone.values()])
        report.removed += len(gone)
    else:
        report.missing += [row.address for row in gone.values()]
