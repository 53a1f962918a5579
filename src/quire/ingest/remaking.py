"""Remake what other versions of Quire made: the words of all documents, and texts without a file.

The plans of their sources remake files and pages.
"""

from __future__ import annotations

from quire.config import Config
from quire.document import Document
from quire.errors import QuireError
from quire.fingerprint import why_remade
from quire.freshness import other_words
from quire.ingest import named
from quire.ingest.plan import REMAKE, Item, Plan
from quire.ingest.prepare import failed_by, made_by, prepare_alone
from quire.ingest.report import Report
from quire.plural import counted
from quire.progress import Progress
from quire.sources import entries
from quire.stores import DocumentRow, Filters, SourceRow, Store


def remake_words(store: Store, remake: bool, progress: Progress | None) -> list[str]:
    """Remake the words of documents if another analyzer made them; returns a note about it."""
    because = other_words(store)
    if not because:
        return []
    if store.is_shared and not remake:
        return [f"Words are not remade, though {because}. To remake them: quire refresh --remake"]
    return [
        f"The words of {counted(store.remake_words(progress), 'document')} were remade, because {because}."
    ]


def remake_texts(store: Store, config: Config, remake: bool) -> Report:
    """Cut texts without a file again if other settings or versions cut them."""
    report = Report()
    for row, _ in _texts(store, config, remake):
        try:
            document = Document.restored(
                store.source(row.seq), row.path, collection=row.collection, format=row.format, title=row.title
            )
            kept = {"original": store.original_checksums([row.seq]).get(row.seq, "")}
            places = store.places([row.seq]).get(row.seq)
            new = prepare_alone(document, config, row.kind, **kept, places=places)
            report.count(new, store.write([new])[0])
        except QuireError as error:
            report.failed.append(failed_by(row.address, error))
    return report


def remake_plans(store: Store, config: Config, remake: bool) -> list[Plan]:
    """Plans for what would be remade besides files and pages."""
    found = list[Plan]()
    because = "" if store.is_shared and not remake else other_words(store)
    if because:
        rows = store.documents(Filters())
        items = tuple(Item(REMAKE, row.address, f"its words: {because}", row=row) for row in rows)
        found.append(Plan(SourceRow("words", "words", None, "", ""), items))
    for row, why in _texts(store, config, remake):
        source = named.text_source(row.path, row.collection, row.kind)
        found.append(Plan(source, (Item(REMAKE, row.path, why, row=row),)))
    return found


def _texts(store: Store, config: Config, remake: bool) -> list[tuple[DocumentRow, str]]:
    """The texts without a file to cut again, and why."""
    rows = store.documents(Filters(kinds=entries.DOCUMENTS))
    shared, now = store.is_shared and not remake, made_by(config)
    own = [row for row in rows if row.root is None and row.url is None]
    return [(row, why) for row in own if (why := why_remade(row.made_by, now, shared=shared))]
