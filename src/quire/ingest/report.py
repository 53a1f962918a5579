"""What an indexing run did."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field

from quire import redact
from quire.sources.files import Skipped
from quire.stores import Prepared

log = logging.getLogger("quire")
EMBEDDING = "embedding"  # what failed, if all documents are there but the model could not be used


@dataclass(frozen=True, slots=True)
class Written:
    """What a report counts of a document that was written."""

    path: str
    replaced: bool  # an earlier version of it
    sections: int
    chunks: int
    bytes: int
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, new: Prepared, replaced: bool) -> Written:
        """What is counted of a document."""
        return cls(
            new.path, replaced, len(new.sections), len(new.chunks), len(new.source), tuple(new.warnings)
        )


@dataclass(slots=True)
class Report:
    """What an indexing run did. Runs can be added up."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    moved: int = 0  # renamed; they count as updated, too
    removed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # addresses of files that are gone but not removed
    warnings: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)  # files that are not read, such as {".pdf": 14}
    documents: int = 0
    sections: int = 0
    chunks: int = 0
    bytes: int = 0
    seconds: float = 0.0
    addresses: list[str] = field(default_factory=list)  # of single documents: texts, files, pages
    collections: dict[str, int] = field(default_factory=dict)  # documents of larger sources, by collection
    pending: int = 0  # chunks left to `quire embed`: they can be searched, and could be understood better
    pending_seconds: float = 0.0  # that this would take; 0 if that is not known

    def count(self, prepared: Prepared, replaced: bool) -> None:
        """Count a written document."""
        self.count_written(Written.of(prepared, replaced))

    def count_written(self, written: Written) -> None:
        """Count a document that was written, here or on another machine."""
        self.updated += written.replaced
        self.added += not written.replaced
        self.documents += 1
        self.sections += written.sections
        self.chunks += written.chunks
        self.bytes += written.bytes
        self.warnings += [f"{written.path}: {warning}" for warning in written.warnings]

    def sort(self) -> None:
        """Sort what was listed as it came, from several machines at once."""
        self.failed.sort(key=lambda one: one.source)
        self.skipped.sort(key=lambda one: one.source)
        self.warnings.sort()

    def log_end(self, place: str) -> None:
        """Log the end of a run."""
        wrote = f"{self.added} added, {self.updated} updated, {self.removed} removed"
        passed = f"{self.unchanged} unchanged, {len(self.failed)} failed"
        log.info("indexed %s in %.0f ms: %s, %s", redact.url(place), self.seconds * 1000, wrote, passed)

    def join(self, more: Report) -> None:
        """Add the report of another run."""
        for counted in (
            *("added", "updated", "unchanged", "moved", "removed"),
            *("documents", "sections", "chunks", "bytes", "seconds"),
        ):
            setattr(self, counted, getattr(self, counted) + getattr(more, counted))
        for listed in ("skipped", "failed", "missing", "warnings", "addresses"):
            getattr(self, listed).extend(getattr(more, listed))
        self.pending, self.pending_seconds = more.pending, more.pending_seconds  # the last run knows best
        self.kinds = dict(Counter(self.kinds) + Counter(more.kinds))
        self.collections = dict(Counter(self.collections) + Counter(more.collections))
