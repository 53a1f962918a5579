"""Library: the Python API, and all that surfaces call.

with Library.open("docs.db", create=True) as library:
    library.add("./docs")
    for result in library.search("how do I install it").results:
        print(result.address, result.snippet)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, TextIO, TypeVar

from quire import copying, embedding, memory, places, reading, searcher, sync
from quire import embed as models
from quire.config import DEFAULT, Config, SearchSettings
from quire.context import Context, Match, Source, pack
from quire.copying import Copied
from quire.document import Document, text_of
from quire.embed.base import Embedder
from quire.embedding import Embedded
from quire.errors import (
    EmbeddingError,
    LibraryError,
    NoResults,
    SettingError,
    SourceError,
    Unreadable,
    nearest,
)
from quire.ingest import named
from quire.ingest.plan import Plan
from quire.ingest.prepare import made_by, prepare_alone
from quire.ingest.report import Report
from quire.progress import Progress
from quire.reading import Reading
from quire.result import Result
from quire.searcher import Found, Meaning
from quire.sources import entries
from quire.sources.entries import Entry
from quire.sources.files import Skipped
from quire.stores import Counts, DocumentRow, Filters, Model, SourceRow, Store, open_store, storable
from quire.sync import Changes, Named
from quire.tokens import counter
from quire.tree import Tree

log = logging.getLogger("quire")
P = ParamSpec("P")
T = TypeVar("T")
PROMOTIONS = ("standard", "important", "critical")
_WEIGHED = 30  # results that a context pack is made of, at most
_APART = 2.0  # of the best score: no section of an entry has that, so none is merged with another
_PER_ENTRY = 5  # sections that are looked at for each result of a recall


def _writes(method: Callable[Concatenate[Library, P], T]) -> Callable[Concatenate[Library, P], T]:
    """Do all that a method does to one library, though its file may be replaced meanwhile."""

    @wraps(method)
    def wrapped(self: Library, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.store.writing():
            return method(self, *args, **kwargs)

    return wrapped


class Library:
    """One index of documents: a SQLite file, or a PostgreSQL database."""

    def __init__(self, store: Store, url: str, config: Config = DEFAULT) -> None:
        self.store, self.url, self.config = store, url, config
        self._embedders: dict[str, Embedder | None] = {}
        self._critical_rows: tuple[object, list[DocumentRow]] = None, []

    @classmethod
    def open(cls, url: str | os.PathLike[str], *, create: bool = False, config: Config = DEFAULT) -> Library:
        """The library at a path or postgresql:// URL. Raises NoResults if there is none to open."""
        return cls(open_store(os.fspath(url), create=create), os.fspath(url), config)

    def close(self) -> None:
        """Let go of the database and the model."""
        for embedder in self._embedders.values():
            if embedder:
                embedder.close()
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------------ adding

    @_writes
    def add(
        self,
        *paths: str | os.PathLike[str],
        content: str | bytes | None = None,
        path: str | None = None,
        collection: str | None = None,
        title: str | None = None,
        external: bool = False,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        keep: bool | None = None,
        prune: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """Hold files, folders, pages and sites, or content under a path of its own. Content wins over paths.

        The library remembers what was named: `refresh` follows it. Content without a path is named by its
        text. `external` documents are other people's: they are found as all are, and cannot be promoted.
        `include` and `exclude` are patterns as in .gitignore; `keep` lets documents stay when their files
        are gone. These three are remembered; None leaves them as they were. `prune` removes documents
        whose files are gone, now.
        """
        self._adopt()
        report, kind = Report(), _kind(external)
        if content is not None:
            report.join(self._add_content(content, path, collection or "content", title, kind))
        for wanted in () if content is not None else _named(paths, collection, kind, include, exclude, keep):
            report.join(sync.add(self.store, wanted, self.config, prune=prune, progress=progress))
        self._embed_new(report, progress)
        return report

    def plan(
        self,
        *paths: str | os.PathLike[str],
        collection: str | None = None,
        external: bool = False,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        keep: bool | None = None,
        prune: bool = False,
        after: Iterable[Plan] = (),
    ) -> list[Plan]:
        """What `add` of these would change, or `refresh` where none is named. Nothing is written.

        The plans that it comes `after` are taken to have been carried out.
        """
        self._adopt()
        if not paths:
            return sync.plans(self.store, self.config, prune=prune, keep=bool(keep))
        before, found = list(after), list[Plan]()
        for wanted in _named(paths, collection, _kind(external), include, exclude, keep):
            done = [*before, *found]
            found.append(sync.plan_added(self.store, wanted, self.config, prune=prune, before=done))
        return found

    def _add_content(
        self, content: str | bytes, path: str | None, collection: str, title: str | None, kind: str
    ) -> Report:
        for name, given in (("path", path or ""), ("collection", collection)):
            if storable(given) != given:
                raise SettingError(name, "holds NUL or half a character. Name another")
        memory.check_collection(self.store, collection, kind)
        if isinstance(content, str):  # as the file would be that it stands for, with its limits
            content = Document.from_text(content).source
        path = path or self._name_of(content, collection, kind)
        document = Document.from_bytes(
            content, path, collection=collection, title=title, settings=self.config.document
        )
        report, old = Report(addresses=[document.address]), self.store.document(collection, path)
        if old and (old.root or old.url):
            has = f"{collection} already has {path} from {old.url or old.root}"
            raise SettingError("path", f"{has}. Name another path or collection")
        if old and old.checksum == document.checksum and old.made_by == made_by(self.config):
            report.unchanged = 1
            return report
        prepared, source = (
            prepare_alone(document, self.config, kind),
            named.text_source(path, collection, kind),
        )
        self.store.put_sources([source])
        report.count(prepared, self.store.write([prepared], source)[0])
        return report

    def _name_of(self, content: bytes, collection: str, kind: str) -> str:
        """The name of content that was given without one: the one that it has, or a new one."""
        text = text_of(content)
        known = self.store.documents(Filters(collection, (kind,), (f"*{entries.ending(text)}",)))
        return known[0].path if known else entries.named(text, datetime.now(UTC).date())

    @_writes
    def refresh(self, *, prune: bool = False, keep: bool = False, progress: Progress | None = None) -> Report:
        """Bring every source up to date.

        Documents whose files are gone are removed while their source is healthy: its root is there and not
        empty, and less than half of its documents are missing at once. `prune` removes them all the same,
        `keep` removes none.
        """
        self._adopt()
        report = sync.refresh(self.store, self.config, prune=prune, keep=keep, progress=progress)
        self._embed_new(report, progress)
        return report

    def check(self, collection: str | None = None) -> Changes:
        """Files and pages that are new, have changed or are gone. Content of its own is passed over."""
        self._adopt()
        return sync.check(self.store, self.config, collection)

    # ----------------------------------------------------------------------------------- sources

    def sources(self) -> list[SourceRow]:
        """What was named to be held: files, folders, pages, sites and texts."""
        self._adopt()
        return self.store.sources()

    def _adopt(self) -> None:
        """Give a library of before the sources that its documents came from."""
        if not self.store.adopted():
            with self.store.writing():
                named.adopt(self.store)

    @_writes
    def remove_source(
        self, place: str, *, collection: str | None = None, dry_run: bool = False
    ) -> list[DocumentRow]:
        """Let go of a source; the documents that went with it: those that no other source holds.

        With `dry_run` they are those that would go. Raises NoResults for what is no source.
        """
        self._adopt()
        source = named.find(self.store, place, collection)
        rows = sync.goes_with(self.store, source)
        if not dry_run:
            self.store.drop_sources([source])
        return rows

    @_writes
    def move_source(self, old: str, new: str, *, dry_run: bool = False) -> list[tuple[SourceRow, SourceRow]]:
        """Follow a file or folder that moved, with every source under it; each source before and after.

        Documents keep their ids, promotions and vectors. Raises NoResults for what is no source.
        """
        self._adopt()
        moved = named.moves(self.store, old, new)
        for before, after in () if dry_run else moved:
            sync.follow(self.store, before, after)
        return moved

    # ---------------------------------------------------------------------------------- removing

    @_writes
    def remove(
        self,
        *addresses: str,
        collection: str | None = None,
        paths: Iterable[str] = (),
        dry_run: bool = False,
    ) -> list[DocumentRow]:
        """Remove documents by address, or a collection, or some paths of it; those that were removed.

        They stay removed: a refresh does not bring them back, adding them by name does. With `dry_run`
        they are those that would be removed.
        """
        self._adopt()
        within = tuple(paths)
        if addresses and (within or collection is not None):
            raise SettingError("remove", "Name addresses, or a collection and its paths, not both")
        if addresses:
            rows = [self._document(address)[0] for address in dict.fromkeys(addresses)]
        elif collection is not None:
            rows = self._rows_of(collection, within)
        elif within:
            raise SettingError("remove", "Name the collection that these paths are of")
        else:
            raise SettingError("remove", "Name what to remove: addresses, or a collection")
        if not dry_run and collection is not None and not within:
            sync.remove_collection(self.store, collection, rows)
        elif not dry_run:
            sync.remove_documents(self.store, rows)
        return rows

    def _rows_of(self, collection: str, within: tuple[str, ...]) -> list[DocumentRow]:
        """The documents of a collection, or of some paths of it. Raises NoResults where there are none."""
        rows = self.store.documents(Filters(collection, paths=within))
        if not rows and collection not in self.store.collections():
            raise NoResults(self._no_collection(collection))
        if not rows:
            raise NoResults(f"No document of {collection} is in {', '.join(within)}.")
        return rows

    @_writes
    def promote(self, address: str, level: str) -> DocumentRow:
        """Make a document standard, important or critical; a section cannot be promoted alone."""
        if level not in PROMOTIONS:
            raise SettingError("promotion", f"there is no {level!r}. {nearest(level, PROMOTIONS)}")
        document, rest = self._document(address)
        if rest:
            raise SettingError("promotion", f"is of whole documents: {document.address}")
        if document.kind == "external":
            raise SettingError("promotion", f"{document.address} is external, and those have none")
        self.store.promote(document.seq, level)
        return self._document(address)[0]

    def copy(self, to: str | os.PathLike[str], *, progress: Progress | None = None) -> Copied:
        """Copy everything to another library, made if need be; what is there already is not copied again.

        Raises LibraryError if what arrived is not what was sent.
        """
        self._adopt()
        opened = Library.open(to, create=True, config=self.config)
        with opened as target, self.store.reading(), target.store.writing():
            return copying.copy(self.store, target.store, target.url, progress)

    def grant(self, role: str, collections: Iterable[str]) -> None:
        """Let a role of a PostgreSQL server see and write these collections and no others."""
        grant = getattr(self.store, "grant", None)
        if grant is None:
            raise LibraryError(self.url, "is a file: whoever can read it sees all. Roles need PostgreSQL")
        grant(role, collections)

    # --------------------------------------------------------------------------------- embedding

    @_writes
    def embed(self, model: str | None = None, *, progress: Progress | None = None) -> Embedded:
        """Embed what has no vector yet. Another model's vectors serve only once it has them all.

        Raises EmbeddingError where the model cannot be used; what was embedded before is kept.
        """
        embedder = self._embedder(model or self._model_name())
        if embedder is None:
            raise SettingError(
                "embed.model", "is none, so nothing is embedded. Name one: quire embed --model minilm"
            )
        return embedding.embed(self.store, embedder, progress)

    def unembeddable(self) -> dict[str, str]:
        """Documents that the model refused when it was last asked, and why."""
        failures = self.store.embedding_failures()
        rows = self.store.documents_by_row(failures)
        return {rows[row].address: reason for row, reason in failures.items()}

    def _embed_new(self, report: Report, progress: Progress | None) -> None:
        """Embed what was added; where that fails, say so: searching by words works all the same."""
        try:
            self._check_model()
            if self._model_name() == models.NONE or not self.store.counts().chunks:
                return
            self._check_dimension()
            done = self.embed(progress=progress)
        except (EmbeddingError, SettingError) as problem:
            report.failed.append(Skipped("embedding", str(problem)))
            return
        rows = self.store.documents_by_row(done.failed)
        report.failed += [Skipped(rows[row].address, reason) for row, reason in done.failed.items()]
        report.seconds += done.seconds

    def _embedder(self, name: str) -> Embedder | None:
        if name not in self._embedders:
            self._embedders[name] = models.open_embedder(name, self.config.embed)
        return self._embedders[name]

    def _active(self) -> Model | None:
        return next((model for model in self.store.models() if model.active), None)

    def _model_name(self) -> str:
        """The model to embed with: the one that is set, else the library's own."""
        active = self._active()
        return self.config.embed.model or (active.name if active else models.DEFAULT)

    def _check_model(self) -> None:
        """Refuse to mix the vectors of two models."""
        active, wanted = self._active(), self.config.embed.model
        set_to = self._embedder(wanted) if wanted else None
        if active and set_to and set_to.name != active.name:
            raise SettingError(
                "embed.model",
                f"this library is embedded with {active.name}. To change that: quire embed --model {wanted}",
            )

    def _check_dimension(self) -> None:
        """Refuse a model that is not what it was; to embed everything anew takes a word from its owner."""
        active = self._active()
        embedder = self._embedder(active.name) if active else None
        if active and embedder and embedder.dimension != active.dimension:
            raise EmbeddingError(
                active.name,
                f"makes {embedder.dimension} numbers now, and made {active.dimension} of this library. "
                f"Embed it anew: quire embed --model {active.name}",
            )

    def _meaning(self, mode: str) -> Meaning | None:
        """How to search by meaning: not at all where words are asked for or nothing is embedded."""
        active = self._active()
        if mode == "keyword" or self.config.embed.model == models.NONE or active is None:
            if mode == "semantic":
                off = "embed.model is none" if self.config.embed.model else "Nothing is embedded yet"
                raise NoResults(f"{off}. Embed the library with: quire embed --model {models.DEFAULT}")
            return None
        try:
            self._check_model()
            embedder = self._embedder(active.name)
        except (EmbeddingError, SettingError) as problem:
            return Meaning(active, None, str(problem))
        return Meaning(active, embedder, "")

    # ----------------------------------------------------------------------------------- finding

    def search(
        self,
        query: str,
        *,
        collection: str | None = None,
        paths: Iterable[str] = (),
        limit: int | None = None,
        mode: str | None = None,
        explain: bool = False,
    ) -> Found:
        """The best sections for a query. Raises NoResults for a collection that is not there.

        `mode` is hybrid, keyword or semantic.
        """
        settings = self._search_settings(limit, mode)
        with self.store.reading():
            apart = self.store.kinds() - set(
                named.DOCUMENTS
            )  # a filter that leaves nothing out only costs time
            filters = Filters(collection, named.DOCUMENTS if apart else (), tuple(paths))
            meaning = self._meaning(settings.mode)
            return searcher.search(self.store, query, filters, settings, meaning, explain=explain)

    def _search_settings(self, limit: int | None, mode: str | None) -> SearchSettings:
        given = {"limit": limit, "mode": mode}
        changes = {name: value for name, value in given.items() if value is not None}
        return replace(self.config.search, **changes)  # type: ignore[arg-type]

    def documents(self, collection: str | None = None) -> list[DocumentRow]:
        """The documents of a collection, or all."""
        return self.store.documents(Filters(collection))

    def document(self, address: str) -> DocumentRow | None:
        """One document by its address or path; None if there is none."""
        try:
            return self._document(address)[0]
        except NoResults:
            return None

    def status(self) -> Counts:
        """What is in the library."""
        with self.store.reading():
            return self.store.counts()

    # ----------------------------------------------------------------------------------- context

    def context(
        self,
        query: str,
        *,
        max_tokens: int | None = None,
        collection: str | None = None,
        paths: Iterable[str] = (),
        mode: str | None = None,
        include: str = "sections",
    ) -> Context:
        """What is worth reading before answering a query, within a number of tokens, with citations.

        Critical documents of the collections come first. `include` is sections, chunks (only those that
        match) or documents (whole). Raises NoResults for a collection that is not there.
        """
        settings = self.config.context
        if max_tokens is not None:
            settings = replace(settings, max_tokens=max_tokens)
        with self.store.reading():
            found = self.search(
                query, collection=collection, paths=paths, limit=_WEIGHED, mode=mode, explain=True
            )
            sources: dict[int, Source] = {}
            critical = [self._pack_source(row, sources) for row in self._critical(collection)]
            matches = self._matches(found, sources)
        counted = counter(self.config.tokens)
        return pack(found.query, critical, matches, settings, counted, include=include, notes=found.notes)

    def _critical(self, collection: str | None) -> list[DocumentRow]:
        """The critical documents of a collection, or of all, looked for once in each generation."""
        key = self.store.version(), collection
        if self._critical_rows[0] != key:
            rows = self.store.documents(Filters(collection, named.DOCUMENTS))
            self._critical_rows = key, [row for row in rows if row.promotion == "critical"]
        return self._critical_rows[1]

    def _matches(self, found: Found, sources: dict[int, Source]) -> list[Match]:
        """Results with the spans of the chunks that they stand for."""
        hits = [[hit["chunk"] for hit in result.explain["hits"]] for result in found.results]
        chunks = self.store.chunks(chunk for ids in hits for chunk in ids)
        rows = self.store.documents_by_row({chunk.document for chunk in chunks.values()})
        matches = []
        for result, ids in zip(found.results, hits, strict=True):
            source = self._pack_source(rows[chunks[ids[0]].document], sources)
            spans = tuple((chunks[chunk].start, chunks[chunk].end) for chunk in ids)
            matches.append(Match(source, result.address, result.start, result.end, spans, result.score))
        return matches

    def _pack_source(self, row: DocumentRow, known: dict[int, Source]) -> Source:
        if row.seq not in known:
            known[row.seq] = Source(reading.tree(self.store, row, self.config), row.url, row.promotion)
        return known[row.seq]

    # ---------------------------------------------------------------------- memory and knowledge

    def remember(
        self,
        text: str,
        *,
        collection: str = "memory",
        title: str | None = None,
        tags: Iterable[str] = (),
        name: str | None = None,
    ) -> DocumentRow:
        """Keep a memory. The same text is kept once; another text under the same name replaces it.

        What cannot be cut or embedded is kept all the same, and a warning is logged.
        """
        return self._keep(
            entries.make("memory", text, collection=collection, title=title, tags=tags, name=name)
        )

    def learn(
        self,
        text: str,
        *,
        collection: str = "knowledge",
        title: str | None = None,
        tags: Iterable[str] = (),
        name: str | None = None,
    ) -> DocumentRow:
        """Keep a piece of knowledge, as `remember` keeps a memory."""
        return self._keep(
            entries.make("knowledge", text, collection=collection, title=title, tags=tags, name=name)
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
        in the time given: a date, a date and time, or so long ago (7d). Raises NoResults where nothing
        is remembered.
        """
        wanted = tuple(kinds)
        entries.check_kinds(wanted)
        settings = self._search_settings(limit, mode)
        first, last = entries.moment("since", since), entries.moment("until", until, end=True)
        filters = Filters(collection, wanted, tags=tuple(tags), since=first, until=last)
        with self.store.reading():
            if not self.store.kinds() & set(wanted):
                raise NoResults("Nothing is remembered yet. Remember with: quire remember TEXT")
            meaning = self._meaning(settings.mode)
            more = replace(settings, limit=min(1000, _PER_ENTRY * settings.limit), merge_from=_APART)
            found = searcher.search(self.store, query, filters, more, meaning, explain=True)
            results = [chunk for result in found.results for chunk in memory.by_chunk(self.store, result)]
        best: dict[str, Result] = {}
        for result in sorted(results, key=lambda result: -result.score):
            best.setdefault(result.document_id if group else result.chunk_ids[0], result)
        return replace(found, results=tuple(best.values())[: settings.limit])

    @_writes
    def forget(
        self,
        *addresses: str,
        collection: str | None = None,
        tags: Iterable[str] = (),
        before: str | datetime | None = None,
        dry_run: bool = False,
    ) -> list[DocumentRow]:
        """Delete memories and knowledge by address, or by collection, tags and time; those that went.

        With `dry_run` they are those that would go. Raises SettingError for a document.
        """
        filters = Filters(collection, entries.KINDS, tags=tuple(tags), until=entries.moment("before", before))
        if bool(addresses) == (filters != Filters(kinds=entries.KINDS)):
            raise SettingError("forget", "Name what to forget: addresses, or a collection, tags or a time")
        with self.store.reading():
            named = dict.fromkeys(map(self._remembered, addresses))
            rows = list(named) if addresses else self._filtered(filters)
        if not dry_run:
            self.store.remove([row.seq for row in rows])
        return rows

    def export(self, target: str | os.PathLike[str] | TextIO) -> int:
        """Write all memories and knowledge as JSON lines; how many. A file changes once all is written."""
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

    @_writes
    def import_(self, source: str | os.PathLike[str] | Iterable[str | bytes]) -> Report:
        """Take in JSON lines, as `export` writes them. A line that cannot be is reported; the rest goes on.

        An entry that is here already is left as it is; another text of the same name replaces it.
        """
        if isinstance(source, str | os.PathLike):
            try:
                with Path(source).open("rb") as file:
                    return self.import_(file)
            except OSError as problem:
                raise Unreadable(os.fspath(source), (problem.strerror or str(problem)).lower()) from None
        report = Report()
        for number, line in enumerate(source, 1):
            try:
                if line.strip():
                    memory.keep(self.store, entries.from_line(line), self.config, report)
            except (SettingError, SourceError) as problem:
                report.failed.append(Skipped(f"line {number}", str(problem)))
        self._embed_new(report, None)
        return report

    @_writes
    def _keep(self, entry: Entry) -> DocumentRow:
        report = Report()
        row = memory.keep(self.store, entry, self.config, report)
        self._embed_new(report, None)
        for failed in report.failed:
            log.warning("%s is kept, but %s failed: %s", row.address, failed.source, failed.reason)
        return row

    def _filtered(self, filters: Filters) -> list[DocumentRow]:
        """The entries of a filter. Raises for a collection that has none."""
        rows, name = self.store.documents(filters), filters.collection
        if rows or name is None or self.store.documents(Filters(name, entries.KINDS)):
            return rows
        if name in self.store.collections():
            remove = f"To remove it: quire remove --collection {name}"
            raise SettingError("forget", f"{name} is a collection of documents. {remove}")
        raise NoResults(self._no_collection(name))

    def _remembered(self, address: str) -> DocumentRow:
        row = self._document(address)[0]
        if row.kind not in entries.KINDS:
            remove = f"To remove it: quire remove {row.address}"
            raise SettingError("forget", f"{row.address} is not a memory but of kind {row.kind}. {remove}")
        return row

    # ----------------------------------------------------------------------------------- reading

    def read(self, address: str, heading: str | None = None, *, max_tokens: int | None = None) -> Reading:
        """A document or a section of it, exactly as it stands; by address, slug, heading or path `A > B`."""
        with self.store.reading():
            document, rest = self._document(address)
            return reading.read(self.store, document, heading or rest, self.config, max_tokens)

    def source(self, address: str) -> bytes:
        """The exact bytes of a document."""
        with self.store.reading():
            return self.store.source(self._document(address)[0].seq)

    def toc(self, address: str) -> Tree:
        """The tree of a document."""
        with self.store.reading():
            return reading.tree(self.store, self._document(address)[0], self.config)

    def _document(self, address: str) -> tuple[DocumentRow, str]:
        """The document an address names, and what follows its #. Raises NoResults, naming the nearest."""
        for collection, path, rest in _ways_to_read(address):
            if found := self.store.document(collection, path):
                return found, rest
        known = [row.address for row in self.documents()]
        if not known:
            raise NoResults("The library is empty. Add documents with: quire add ./docs")
        wanted = address.partition("#")[0]
        names = known + [name.partition(":")[2] for name in known]
        close = nearest(wanted, names) if len(known) < 5000 else ""
        said = close if close.startswith("Did") else "See what there is with: quire list"
        raise NoResults(f"No document {wanted!r} is indexed. {said}")

    def _no_collection(self, name: str) -> str:
        return f"No collection {name!r}. {nearest(name, self.store.collections())}"


def _kind(external: bool) -> str:
    return "external" if external else "document"


def _named(
    places: Iterable[str | os.PathLike[str]],
    collection: str | None,
    kind: str,
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
    keep: bool | None,
) -> list[Named]:
    """What is to be held. Raises SettingError if nothing is named."""
    options = {
        name: None if some is None else tuple(some)
        for name, some in (("include", include), ("exclude", exclude))
    }
    found = [Named(os.fspath(place), collection, kind, keep=keep, **options) for place in places]
    if not found:
        raise SettingError("add", "Must provide path, url, or content")
    return found


def _ways_to_read(address: str) -> list[tuple[str | None, str, str]]:
    """Collection, path and rest of an address, the likeliest reading first; a path may hold : and #."""
    ways: list[tuple[str | None, str, str]] = []
    places = [len(address), *(i for i, char in enumerate(address) if char == "#")]
    for place in places:
        before, rest = address[:place], address[place + 1 :]
        collection, colon, path = before.partition(":")
        if colon:
            ways.append((collection, path, rest))
        ways.append((None, before, rest))
    return ways


def default_url(*, create: bool = False) -> str:
    """The nearest .quire/library.db upward; else a new one here, or the user's own."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        found = folder / ".quire" / "library.db"
        if found.exists():
            _check_inside(found, folder)
            return str(found)
    if create:
        return str(here / ".quire" / "library.db")
    data = places.data()
    if data is None:
        raise SettingError("HOME", "is not set, so you have no library of your own. Name one with -L")
    return str(data / "library.db")


def _check_inside(found: Path, folder: Path) -> None:
    """Refuse a library that a folder only leads to: a project that was cloned may name anyone's."""
    real = found.resolve()
    if not real.is_relative_to(folder.resolve()):
        raise SettingError("library", f"{found} leads to {real}. If you mean that one, name it: -L {real}")
