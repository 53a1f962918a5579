"""The routes that write: what each does, and what it answers.

Always: who may see only some collections must name one of them, unless there is only one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire.errors import SettingError, SourceError
from quire.sources.entries import KINDS
from quire.surfaces import render
from quire.surfaces.http import asked as ask
from quire.surfaces.http.access import Access
from quire.surfaces.roots import allowed

if TYPE_CHECKING:
    from quire.ingest.report import Report
    from quire.library import Library
    from quire.stores import DocumentRow
    from quire.surfaces.jobs import Job

_NO_ROOTS = "Drop the files here, name a URL, or start the server with: quire serve --root FOLDER"


def target(access: Access, collection: str | None) -> str | None:
    """The collection to write to. Raises SettingError if a scoped caller must choose one."""
    if collection is not None or access.scope is None:
        return collection
    if len(access.scope) == 1:
        return access.scope[0]
    raise SettingError("collection", f"name one of those that this key is for: {', '.join(access.scope)}")


def options_of(asked: ask.Planning, access: Access) -> dict[str, Any]:
    """The options of what is to be added."""
    return {
        "collection": target(access, asked.collection),
        "external": asked.external,
        "include": asked.include,
        "exclude": asked.exclude,
        "site": asked.site,
        "prune": asked.prune,
    }


def plan_sources(
    library: Library, asked: ask.Planning, access: Access, roots: Sequence[Path]
) -> dict[str, Any]:
    """What adding would change, or bringing all sources up to date."""
    if not asked.sources:
        found = library.plan(prune=asked.prune)
    else:
        found, given = [], options_of(asked, access)
        for source in asked.sources:
            found += library.plan(allowed(source, roots, _NO_ROOTS), after=found, **given)
    return {"plans": [one.to_json() for one in found]}


def add(
    library: Library, asked: ask.Adding, access: Access, roots: Sequence[Path], job: Job
) -> dict[str, Any]:
    """Add sources one by one, or a text. A source that cannot be read is reported, and the others go on."""
    job.start()
    given = options_of(asked, access)
    if asked.content is not None:
        about: Any = {name: given[name] for name in ("collection", "external")}
        about |= {"path": asked.path or None, "title": asked.title or None}
        return reported(library.add(content=asked.content, embed=False, progress=job, **about))
    return reported(_add_each(library, [allowed(one, roots, _NO_ROOTS) for one in asked.sources], given, job))


def _add_each(library: Library, sources: list[str], given: dict[str, Any], job: Job) -> Report:
    from quire.ingest.report import Report
    from quire.sources.files import Skipped

    report = Report()
    for source in sources:
        try:
            report.join(library.add(source, embed=False, progress=job, **given))
        except SourceError as error:
            report.failed.append(Skipped(error.source, error.reason, error.code))
    return report


def upload(
    library: Library, content: bytes, asked: ask.Uploading, access: Access, job: Job
) -> dict[str, Any]:
    """Add a file that was sent."""
    job.start()
    collection = target(access, asked.collection or None)
    given: Any = {"path": asked.path, "collection": collection, "title": asked.title or None}
    return reported(library.add(content=content, embed=False, progress=job, **given))


def refresh(library: Library, asked: ask.Refreshing, job: Job) -> dict[str, Any]:
    """Bring all sources up to date."""
    job.start()
    return reported(library.refresh(prune=asked.prune, keep=asked.keep, embed=False, progress=job))


def reported(report: Report) -> dict[str, Any]:
    """A report. Raises SourceError if nothing in it succeeded."""
    if render.report_code(report) == render.FAILED:
        first, *others = report.failed
        error = SourceError(
            first.source, f"{first.reason}{f' ({len(others):,} more failed)' if others else ''}"
        )
        error.details["failed"] = render.failed_json(report.failed)
        raise error
    return render.report_json(report)


def run_doctor(library: Library, job: Job) -> dict[str, Any]:
    """Look for all that can be wrong with the library."""
    from quire import doctor

    job.start()
    findings = [asdict(one) for one in doctor.examine(library, job)]
    return {"findings": findings, "versions": doctor.versions(library)}


def remove(library: Library, asked: ask.Removing) -> dict[str, Any]:
    """Remove documents; files are never touched."""
    rows = library.remove(
        *asked.addresses, collection=asked.collection, paths=asked.paths, dry_run=asked.dry_run
    )
    return gone(rows, asked.dry_run)


def remove_source(library: Library, asked: ask.RemovingSource) -> dict[str, Any]:
    """Remove a source and its documents."""
    rows = library.remove_source(asked.place, collection=asked.collection, dry_run=asked.dry_run)
    return gone(rows, asked.dry_run)


def gone(rows: Sequence[DocumentRow], dry_run: bool) -> dict[str, Any]:
    """What was removed, or would be."""
    return {"removed": [render.document_json(row) for row in rows], "dry_run": dry_run}


def promote(library: Library, asked: ask.Promoting) -> dict[str, Any]:
    """Make a document standard, important or critical."""
    return render.document_json(library.promote(asked.address, asked.level))


def remember(library: Library, asked: ask.Remembering, access: Access) -> dict[str, Any]:
    """Keep a memory or a piece of knowledge."""
    keep = library.remember if asked.kind == "memory" else library.learn
    given = {
        "collection": asked.collection or _own_entries(library, asked.kind, access),
        "title": asked.title,
        "name": asked.name,
    }
    row = keep(asked.text, tags=asked.tags, **{name: value for name, value in given.items() if value})
    similar = [asdict(one) for one in row.similar]
    return {**render.document_json(row), "outcome": row.outcome, "similar": similar}


def _own_entries(library: Library, kind: str, access: Access) -> str | None:
    """The collection for what a scoped caller remembers. Raises SettingError if it has none."""
    if access.scope is None or kind in access.scope:
        return None if access.scope is None else kind
    of_documents = {row.collection for row in library.documents() if row.kind not in KINDS}
    others = [name for name in access.scope if name not in of_documents]
    if len(others) == 1:
        return others[0]
    how = f"Whoever runs the server can make a key that has one: quire keys make NAME -c docs -c {kind}"
    named = f"name one of these: {', '.join(others)}" if others else f"this key has none for memories. {how}"
    raise SettingError("collection", named)


def forget(library: Library, asked: ask.Forgetting) -> dict[str, Any]:
    """Delete memories and knowledge."""
    rows = library.forget(
        *asked.addresses,
        collection=asked.collection,
        tags=asked.tags,
        before=asked.before,
        dry_run=asked.dry_run,
    )
    return gone(rows, asked.dry_run)
