"""The tools that write: their arguments, and what each does and says.

The docstring of a class of arguments is what a model reads of its tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from quire.config import TokenSettings
from quire.surfaces import recalled, render
from quire.surfaces.mcp.arguments import (
    MAX_TOKENS,
    Address,
    Arguments,
    Background,
    MaxTokens,
    NameList,
    NewTags,
    Paths,
    Tags,
)
from quire.surfaces.mcp.text import Answer, Page, item, on_one_line, page_of

if TYPE_CHECKING:  # a server that nobody has asked anything yet loads no library
    from quire.ingest.report import Report
    from quire.library import Library
    from quire.stores import DocumentRow
    from quire.sync import Changes


class Add(Arguments):
    """Index a file, folder, web page, git repository or text, or update it; then search finds it."""

    sources: Annotated[NameList, Field(description="Paths of files or folders, or URLs.")] = []
    content: Annotated[str, Field(description="Text to index instead of sources.")] = ""
    path: Annotated[
        str, Field(max_length=1000, description="What to call the content, as in notes/a.md.")
    ] = ""
    title: Annotated[str, Field(max_length=500, description="The title of the content.")] = ""
    collection: Annotated[str, Field(max_length=500, description="What to file it under.")] = ""
    site: Annotated[bool, Field(description="All pages under a URL, not one.")] = False
    external: Annotated[bool, Field(description="Other people's: cannot be promoted.")] = False
    background: Background = False
    cancel: Annotated[
        str, Field(max_length=50, description="Instead, stop this job, as status names it.")
    ] = ""
    max_tokens: MaxTokens = MAX_TOKENS


class Refresh(Arguments):
    """Bring the documents up to date with their files and pages, or check which have changed."""

    check: Annotated[bool, Field(description="Only list what is new, changed or gone.")] = False
    background: Background = False
    max_tokens: MaxTokens = MAX_TOKENS


def checked(asked: Refresh, changes: Changes, settings: TokenSettings) -> Answer:
    """What is new, changed or gone."""
    page = Page("refresh", asked.model_dump(), "", settings)
    lines = [*render.changes_lines(changes)]
    lines += [f"failed: {one.source}: {one.reason}" for one in changes.failed]
    head = f"{render.counted(len(lines), 'document')} to bring up to date." if lines else "All is up to date."
    rows = list(map(item, lines))
    return Answer(page.rows(head, rows, len(rows), cursors=False)[0])


def indexed(asked: Add | Refresh, report: Report, settings: TokenSettings, *, follows: bool) -> Answer:
    """What an indexing run did, and whether a thread of the server has something left to embed."""
    page = Page(type(asked).__name__.lower(), asked.model_dump(), "", settings)
    lines = [f"failed: {one.source}: {one.reason}" for one in report.failed]
    lines += [f"skipped: {one.source}: {one.reason}" for one in report.skipped]
    lines += [f"warning: {said}" for said in report.warnings]
    lines += [f"kept, though its file is gone: {address}" for address in report.missing]
    lines += [f"its address: {address}" for address in report.addresses]
    lines += [f"{render.counted(n, 'document')} in {name}" for name, n in report.collections.items()]
    lines += ["searchable now; deeper meaning follows"] if follows else []
    rows = list(map(item, lines))
    text, _ = page.rows(f"{render.report_line(report)}.", rows, len(rows), cursors=False)
    failed = render.report_code(report) == render.FAILED
    return Answer(text, error=render.report_error(report) if failed else None)


class Promote(Arguments):
    """Make a document important, so that it ranks higher, critical, so that context has it, or standard."""

    address: Annotated[Address, Field(description="collection:path, or an id.")]
    level: Annotated[Literal["standard", "important", "critical"], Field(description="Its new level.")]
    max_tokens: MaxTokens = MAX_TOKENS


def promote(library: Library, asked: Promote) -> Answer:
    """The document and its new level."""
    row = library.promote(asked.address, asked.level)
    return _named(f"It is {row.promotion} now.", page_of("promote", asked, library, ""), row)


class Remove(Arguments):
    """Take documents out of the library, by address or a whole collection; files are never touched."""

    addresses: Annotated[NameList, Field(description="Documents, as collection:path, or their ids.")] = []
    collection: Annotated[
        str, Field(max_length=500, description="A collection instead: project@branch, or project@* for all.")
    ] = ""
    paths: Paths = []
    dry_run: Annotated[bool, Field(description="Only say what would be removed.")] = False
    max_tokens: MaxTokens = MAX_TOKENS


def remove(library: Library, asked: Remove) -> Answer:
    """What was removed."""
    rows = library.remove(
        *asked.addresses, collection=asked.collection or None, paths=asked.paths, dry_run=asked.dry_run
    )
    what = f"{'Would remove' if asked.dry_run else 'Removed'} {render.counted(len(rows), 'document')}."
    return _gone("remove", asked, library, rows, what)


class Remember(Arguments):
    """Keep a fact, a decision or a preference for later, where recall finds it; one text is kept once."""

    text: Annotated[str, Field(min_length=1, max_length=100_000, description="What to keep, in full words.")]
    kind: Annotated[
        Literal["memory", "knowledge"], Field(description="Something that happened, or something that holds.")
    ] = "memory"
    name: Annotated[
        str, Field(max_length=500, description="To correct it later: the same name replaces the text.")
    ] = ""
    title: Annotated[str, Field(max_length=500, description="A short title for people.")] = ""
    tags: NewTags = []
    collection: Annotated[
        str, Field(max_length=500, description="What to file it under; else memory or knowledge.")
    ] = ""
    max_tokens: MaxTokens = MAX_TOKENS


def remember(library: Library, asked: Remember) -> Answer:
    """The address that an entry is kept under, and entries that say nearly the same."""
    keep = library.remember if asked.kind == "memory" else library.learn
    given = {"collection": asked.collection, "title": asked.title, "name": asked.name}
    row = keep(asked.text, tags=asked.tags, **{name: value for name, value in given.items() if value})
    page, head = page_of("remember", asked, library, ""), recalled.OUTCOMES[row.outcome]
    similar = [f"> Similar: {on_one_line(recalled.similar_line(one))}" for one in row.similar]
    rows = [f"> {on_one_line(row.address)}", *similar]
    return Answer(page.rows(head, rows, len(rows), cursors=False)[0])


class Forget(Arguments):
    """Delete what was kept with remember, by address, or by collection, tags and time; never documents."""

    addresses: Annotated[NameList, Field(description="Names, addresses or ids of entries.")] = []
    collection: Annotated[str, Field(max_length=500, description="All of this collection.")] = ""
    tags: Tags = []
    before: Annotated[
        str, Field(max_length=50, description="All that was written before: 2026-01-31, or 7d for days ago.")
    ] = ""
    dry_run: Annotated[bool, Field(description="Only say what would be deleted.")] = False
    max_tokens: MaxTokens = MAX_TOKENS


def forget(library: Library, asked: Forget) -> Answer:
    """What was deleted."""
    rows = library.forget(
        *asked.addresses,
        collection=asked.collection or None,
        tags=asked.tags,
        before=asked.before or None,
        dry_run=asked.dry_run,
    )
    number = f"{len(rows):,} {'entry' if len(rows) == 1 else 'entries'}"
    what = f"{'Would forget' if asked.dry_run else 'Forgot'} {number}."
    return _gone("forget", asked, library, rows, what)


def _named(head: str, page: Page, row: DocumentRow) -> Answer:
    return Answer(page.rows(head, [f"> {on_one_line(row.address)}"], 1, cursors=False)[0])


def _gone(name: str, asked: Arguments, library: Library, rows: list[DocumentRow], head: str) -> Answer:
    lines = (f"> - {on_one_line(row.address)}" for row in rows)
    return Answer(page_of(name, asked, library, "").rows(head, lines, len(rows), cursors=False)[0])
