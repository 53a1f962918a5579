"""The part of Library that keeps memories and knowledge."""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from quire import later, searcher
from quire.config import SearchSettings
from quire.errors import NoResults, SettingError, SourceError, Unreadable, nearest, no_collection
from quire.library.base import reads, writes
from quire.library.finding import Finding
from quire.meaning import serving
from quire.searcher import Found
from quire.sources import entries
from quire.sources.entries import Entry, Version
from quire.stores import DocumentRow, Filters, Model

if TYPE_CHECKING:
    from quire import memory
    from quire.ingest import report as reports
    from quire.ingest.report import Report
    from quire.memory import Kept, Recalled, Similar
    from quire.sources import files
else:
    files, memory = later.module("quire.sources.files"), later.module("quire.memory")
    reports = later.module("quire.ingest.report")

log = logging.getLogger("quire")
_APART = 2.0  # of the best score: no section of an entry has that, so none is merged with another
_PER_ENTRY = 5  # sections to examine for each result of a recall


class Memories(Finding):
    """Remembering, recalling and forgetting."""

    def remember(
        self,
        text: str,
        *,
        collection: str = "memory",
        title: str | None = None,
        tags: Iterable[str] = (),
        name: str | None = None,
    ) -> Kept:
        """Keep a memory. A text is kept once, however it is spelled.

        Another text under the same name replaces it, and `history` has the earlier one. What is returned
        names other entries that say nearly the same. An entry that cannot be cut or embedded is kept anyway,
        and a warning is logged.
        """
        return self._keep(
            entries.make_entry("memory", text, collection=collection, title=title, tags=tags, name=name)
        )

    def learn(
        self,
        text: str,
        *,
        collection: str = "knowledge",
        title: str | None = None,
        tags: Iterable[str] = (),
        name: str | None = None,
    ) -> Kept:
        """Keep a piece of knowledge, as `remember` keeps a memory."""
        return self._keep(
            entries.make_entry("knowledge", text, collection=collection, title=title, tags=tags, name=name)
        )

    def recall(
        self,
        query: str,
        *,
        kinds: Iterable[str] = entries.KINDS,
        collection: str | None = None,
        tags: Iterable[str] = (),
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
        mode: str | None = None,
        group: bool = False,
    ) -> Found:
        """The chunks of memories and knowledge that answer a query, best first; never documents.

        `group` gives the best chunk of each entry. Entries have all of the `tags` and were last written
        in the given time: a date, a date and time, or an age (7d). What says the same is told once, and the
        later of two that say nearly the same comes first.
        """
        wanted = tuple(kinds)
        entries.check_kinds(wanted)
        settings = self._search_settings(limit, mode)
        first, last = entries.moment("since", since), entries.moment("until", until, end=True)
        filters = Filters(collection, wanted, tags=tuple(tags), since=first, until=last)
        with self.store.reading():
            if not self.store.kinds() & set(wanted):
                return Found(query, settings.mode, (), ("Nothing is remembered yet.",))
            found = self._recalled(query, filters, settings)
            results = [chunk for result in found.results for chunk in memory.by_chunk(self.store, result)]
            best: dict[str, Recalled] = {}
            for one in memory.no_less_sure(sorted(results, key=lambda one: -one.result.score)):
                best.setdefault(one.result.document_id if group else one.result.chunk_ids[0], one)
            told = memory.each_once(self.store, best.values(), self._similar_by(filters), settings.limit)
        return self._bound(replace(found, results=tuple(told)))

    def _recalled(self, query: str, filters: Filters, settings: SearchSettings) -> Found:
        """Sections of entries, each apart. In short texts, meaning tells more than words."""
        fusion = "meaning" if settings.fusion == "sum" else settings.fusion
        limit = min(1000, _PER_ENTRY * settings.limit)
        more = replace(settings, limit=limit, merge_from=_APART, fusion=fusion)
        cross = self._cross if more.rerank else None
        return searcher.search(
            self.store,
            query,
            filters,
            more,
            self._meaning(settings.mode),
            cross,
            explain=True,
            tokens=self.config.tokens,
        )

    def _similar_by(self, filters: Filters) -> tuple[Model, float] | None:
        """The model that tells which entries say nearly the same, and the least cosine of such."""
        meaning = serving(self.store, self._meaning("hybrid"), filters)
        least = self.config.memory.least_cosine(meaning.model.name) if meaning else None
        return (meaning.model, least) if meaning and least else None

    @reads
    def history(self, address: str) -> list[Version]:
        """The texts of an entry, by its name, address or id: the current one, then earlier ones."""
        row = self._remembered(address)
        current = Version(row.updated_at, self.store.source(row.seq).decode())
        return [current, *self.store.earlier_versions(row.seq)]

    @writes
    def forget(
        self,
        *addresses: str,
        collection: str | None = None,
        tags: Iterable[str] = (),
        before: str | datetime | None = None,
        dry_run: bool = False,
    ) -> list[DocumentRow]:
        """Delete memories and knowledge by address or id, or by collection, tags and time; returns them.

        `dry_run` only returns them. Raises SettingError for a document.
        """
        filters = Filters(collection, entries.KINDS, tags=tuple(tags), until=entries.moment("before", before))
        if bool(addresses) == (filters != Filters(kinds=entries.KINDS)):
            raise SettingError("forget", "Name what to forget: addresses, or a collection, tags or a time")
        with self.store.reading():
            named = dict.fromkeys(map(self._remembered, addresses))
            rows = list(named) if addresses else self._filtered(filters)
        if not dry_run:
            self.store.remove([row.seq for row in rows])
            if rows:
                self._purge()
        return rows

    def export(self, target: str | os.PathLike[str] | TextIO) -> int:
        """Write all memories and knowledge as JSON lines; returns how many. A file is replaced at the end."""
        if not isinstance(target, str | os.PathLike):
            return memory.export(self.store, target)
        part = Path(f"{os.fspath(target)}.part")
        try:
            with part.open("w", encoding="utf-8", newline="\n") as file:
                number = memory.export(self.store, file)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        return number

    @writes
    def import_(self, source: str | os.PathLike[str] | Iterable[str | bytes]) -> Report:
        """Import JSON lines, as `export` writes them. A bad line is reported, and the others go on.

        An entry that exists already is left unchanged; another text of the same name replaces it.
        """
        if isinstance(source, str | os.PathLike):
            try:
                with Path(source).open("rb") as file:
                    return self.import_(file)
            except OSError as problem:
                raise Unreadable(os.fspath(source), (problem.strerror or str(problem)).lower()) from None
        report, since = reports.Report(), time.time_ns() // 1_000_000
        for number, line in enumerate(source, 1):
            try:
                if line.strip():
                    memory.keep(self.store, entries.from_line(line), self.config, report)
            except (SettingError, SourceError) as problem:
                report.failed.append(files.Skipped(f"line {number}", str(problem), problem.code))
        self._embed_new(report, None, since=since)
        return report

    @writes
    def _keep(self, entry: Entry) -> Kept:
        report = reports.Report()
        row, outcome = memory.keep(self.store, entry, self.config, report, confirm=True)
        self._embed_new(report, None, [row])
        for failed in report.failed:
            log.warning("%s is kept, but %s failed: %s", row.address, failed.source, failed.reason)
        return memory.Kept(**asdict(row), outcome=outcome, similar=self._similar(row, entry.text))

    @reads
    def _similar(self, row: DocumentRow, text: str) -> tuple[Similar, ...]:
        """The other entries that say the same as one, or nearly."""
        within = Filters(kinds=entries.KINDS)
        same = [one for one in memory.same(self.store, text, within) if one.seq != row.seq]
        found = {one.address: memory.similar(self.store, one) for one in same}
        if by := self._similar_by(within):
            found = {one.address: one for one in memory.near(self.store, row, *by)} | found
        return tuple(found.values())

    def _filtered(self, filters: Filters) -> list[DocumentRow]:
        """The entries that match a filter. Raises for a collection that has none."""
        rows, name = self.store.documents(filters), filters.collection
        if rows or name is None or self.store.documents(Filters(name, entries.KINDS)):
            return rows
        if name in self.store.collections():
            remove = f"To remove it: quire remove --collection {shlex.quote(name)}"
            raise SettingError("forget", f"{name} is a collection of documents. {remove}")
        raise no_collection(name, self.store.collections())

    def _addressed(self, address: str) -> DocumentRow:
        try:
            return self._document(address)[0]
        except NoResults:
            names = [row.path for row in self.store.documents(Filters(kinds=entries.KINDS))]
            said = f"Nothing is remembered as {address!r}. {nearest(address, names)}".strip()
            raise NoResults(said, missing="document", name=address) from None

    def _remembered(self, address: str) -> DocumentRow:
        """The entry of a name, an address or an id. Raises SettingError for one that several have."""
        if named := self.store.documents(Filters(kinds=entries.KINDS, paths=(address,))):
            named = [row for row in named if row.path == address]
        if len(named) > 1:
            several = " or ".join(row.address for row in named)
            raise SettingError("name", f"{address!r} is the name of several entries. Say which: {several}")
        row = named[0] if named else self._addressed(address)
        if row.kind not in entries.KINDS:
            remove = f"To remove it: quire remove {shlex.quote(row.address)}"
            raise SettingError("address", f"{row.address} is not a memory but of kind {row.kind}. {remove}")
        return row
