"""The MCP server's calls and resources.

Always: nothing is opened, and no model is loaded, before a call needs it; local files are read only
within the roots, or where a source is that the library already has; cancelled work keeps what it wrote
before, whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as Told

from quire import redact, tokens
from quire.address import of_document, of_section
from quire.config import Config
from quire.errors import NoResults, QuireError, SettingError, SourceError, nearest
from quire.progress import Stopped
from quire.sources.entries import KINDS
from quire.surfaces.jobs import CAN_GO_ON, Job, Nothing
from quire.surfaces.mcp import reading, text, writing
from quire.surfaces.mcp.arguments import MOST_TOKENS
from quire.surfaces.mcp.protocol import RequestContext, server_of
from quire.surfaces.mcp.results import RESULTS
from quire.surfaces.mcp.text import Answer, Page
from quire.surfaces.mcp.tools import TOOLS, Tool
from quire.surfaces.mcp.writing import Add, Refresh
from quire.surfaces.roots import allowed
from quire.surfaces.threads import Deepening, Threads, Watching

if TYPE_CHECKING:
    from quire.ingest.report import Report
    from quire.library import Library

ERROR = "quire/error"  # the key of an error in `_meta`
_OTHERS = (
    "The library of the documents has memories too. To recall those, a person must start it with: "
    "quire mcp --here"
)
_NO_ROOTS = "Hand in content, or a URL with https://; or a person must start it with: quire mcp --root FOLDER"
log = logging.getLogger("quire")
_RESOURCES = 100  # in one list
_CUT = 50  # tokens to say that a resource was cut
_LONGEST_URI = 1000  # characters in an error
_BY_ADDRESS = ("read", "toc", "promote", "remove")  # tools for documents that take memories, too
_TICK = 0.1  # seconds between checks of an add's progress


class _Call(Job):
    """A job that ends with an answer for a model."""

    def succeeded(self, value: Answer) -> None:
        """Remember the answer."""
        self.state, self.result = "failed" if value.error else "done", value.text


class Answers:
    """Answers the calls of a caller who may see and do what it was made for."""

    def __init__(
        self, threads: Threads, memories: Threads, *, read_only: bool, roots: Iterable[Path] = ()
    ) -> None:
        self.threads, self.memories, self.read_only = threads, memories, read_only
        self.config, self.roots = threads.config, [root.resolve() for root in roots]
        self.tools = {tool.name: tool for tool in TOOLS if not (tool.writes and read_only)}

    # ------------------------------------------------------------------------------------- tools

    async def list_tools(self, _: RequestContext, __: PaginatedRequestParams | None) -> ListToolsResult:
        """The tools that the caller may use."""
        return ListToolsResult(tools=[_told(tool) for tool in self.tools.values()])

    async def call_tool(self, context: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        """What a tool answers."""
        tool = self.tools.get(params.name)
        if tool is None:
            raise MCPError(
                INVALID_PARAMS, f"No tool {params.name!r:.100}. {nearest(params.name, self.tools)}"
            )
        try:
            answer = await self._answer(tool, params.arguments or {}, context)
        except QuireError as error:
            answer = text.failure(error, of_entries=tool.of_entries)
        except Exception:
            log.exception("%s failed", tool.name)
            answer = text.internal_failure(tool.name)
        return _result(answer)

    async def _answer(self, tool: Tool, given: dict[str, Any], context: RequestContext) -> Answer:
        asked = self._within_scope(tool, tool.arguments.checked(given))
        if isinstance(asked, Add):
            return await self._add(asked, context)
        if isinstance(asked, Refresh):
            return await self._work("refresh", asked, context, partial(_refresh, asked))
        if isinstance(asked, reading.Status):
            return await self._status(asked)
        is_of_entries = tool.of_entries or (isinstance(asked, reading.List) and asked.kind in KINDS)
        note = await self._other_entries() if tool.name == "recall" else ""
        if note:
            tool = replace(tool, run=partial(reading.recall, note=note))
        try:
            return await self._run(tool, asked, self.memories if is_of_entries else self.threads)
        except Nothing:
            return text.nothing(is_of_entries, self.read_only, is_answer=tool.name == "recall", note=note)

    def _within_scope(self, tool: Tool, asked: Any) -> Any:
        """Arguments for a caller with one collection: what it adds without naming one goes there."""
        scope = self.threads.scope
        if tool.name in ("add", "remember") and scope and len(scope) == 1 and not asked.collection:
            return asked.model_copy(update={"collection": scope[0]})
        return asked

    async def _other_entries(self) -> str:
        """A note that the library of the documents has memories that recall does not look at; else ""."""
        if self.memories is not self.threads:
            with suppress(Nothing, QuireError):
                if await self.threads.read(lambda library: library.store.kinds() & set(KINDS)):
                    return _OTHERS
        return ""

    async def _run(self, tool: Tool, asked: Any, threads: Threads) -> Answer:
        """What a tool answers. An address that the documents do not have may be that of a memory."""
        try:
            return await _in_thread(threads, tool, partial(_run, tool, asked))
        except (Nothing, NoResults) as problem:
            if threads is self.memories or tool.name not in _BY_ADDRESS:
                raise
            name = problem.details.get("name") if isinstance(problem, NoResults) else None
            with suppress(Nothing, NoResults):
                return await _in_thread(self.memories, tool, partial(_run_on_entry, tool, asked, name))
            raise

    async def _status(self, asked: reading.Status) -> Answer:
        jobs = [job.told() for job in self.threads.jobs.all() if job.is_listed]
        roots, settings = list(map(str, self.roots)), self.config.tokens
        library = redact.url(self.threads.url)
        about = {"library": library, "memories": redact.url(self.memories.url), "read_only": self.read_only}
        about |= {"roots": roots, "jobs": jobs}
        try:
            return await self.threads.read(lambda library: reading.status(library, asked, about, settings))
        except Nothing:
            return reading.status(None, asked, about, settings)

    def _cancel(self, name: str) -> Answer:
        """Stop a job between two transactions."""
        job = self.threads.jobs.find(name)
        if job is None:
            raise SettingError("cancel", f"there is no job {name!r}. {nearest(name, self.threads.jobs.ids)}")
        if not job.is_over:
            job.stop.set()
        how = job.state if job.is_over else "stops soon. What it has written is whole"
        return Answer(f"Job {job.id}: {how}.")

    async def _add(self, asked: Add, context: RequestContext) -> Answer:
        if asked.cancel:
            return self._cancel(asked.cancel)
        if bool(asked.content) == bool(asked.sources):
            raise SettingError("add", "needs either sources, or content, perhaps with a path and a title")
        for name in ("path", "title") if asked.sources else ():
            if getattr(asked, name):
                raise SettingError(name, "is for content alone. Leave it out: sources have their own")
        sources = [self._allowed(source) for source in asked.sources]
        what = asked.path or ", ".join(asked.sources) or "content"
        return await self._work(what, asked, context, partial(_index, asked, sources), create=True)

    async def _work(
        self,
        what: str,
        asked: Add | Refresh,
        context: RequestContext,
        do: Callable[[Job, Library], Answer],
        *,
        create: bool = False,
    ) -> Answer:
        """Do work that takes long as a job, whose end is awaited unless it is to run in the background."""
        job = self.threads.jobs.remember(_Call(what, is_awaited=not asked.background))
        work = self.threads.write(partial(do, job), create=create)
        work.add_done_callback(job.ended)
        if asked.background:
            how = f'status shows how it is getting on; add with cancel="{job.id}" stops it'
            return Answer(f"Job {job.id} has begun: {how}.")
        try:
            return await _watched(job, work, context)
        except Nothing:
            return text.nothing(False, self.read_only)
        except Stopped:  # by another call
            return Answer(f"Stopped. {CAN_GO_ON}")
        finally:
            job.stop.set()  # the call was cancelled

    def _allowed(self, source: str) -> str:
        """A source that agents may add: a URL, or a path that leads into one of the roots."""
        return allowed(source, self.roots, _NO_ROOTS)

    # --------------------------------------------------------------------------------- resources

    async def list_resources(
        self, _: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """The documents, a hundred at a time."""
        try:
            return await self.threads.read(partial(_resources, (params and params.cursor) or ""))
        except Nothing:
            return ListResourcesResult(resources=[])
        except QuireError as error:
            raise MCPError(INVALID_PARAMS, str(error), _error(text.failure(error))) from None

    async def list_templates(
        self, _: RequestContext, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """How documents are named."""
        template = ResourceTemplate(
            uri_template="quire://{collection}/{+path}",
            name="document",
            description="An indexed document, or with #section one section of it.",
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, _: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult:
        """A document or a section."""
        try:
            return await self.threads.read(partial(_resource, params.uri))
        except Nothing:
            answer = text.nothing(False, self.read_only)
        except QuireError as error:
            answer = text.failure(error)
        raise MCPError(INVALID_PARAMS, answer.text, {"uri": params.uri[:_LONGEST_URI], **_error(answer)})


class Service(Answers):
    """A library for one client or for all: its answers, its server, and what goes on in the background."""

    def __init__(
        self,
        url: str,
        config: Config,
        *,
        read_only: bool,
        roots: Iterable[Path] = (),
        watch: bool = False,
        memory_url: str = "",
    ) -> None:
        if url == ":memory:":
            raise SettingError("library", "a server needs one in a file: its threads could not share this")
        config = replace(config, search=replace(config.search, fresh=_is_fresh(url, config, read_only)))
        deepening = Deepening(url, config)
        watching = [Watching(url, config)] if watch else []
        self.background: list[Watching | Deepening] = [] if read_only else [deepening, *watching]
        threads = Threads(url, config, deepening.wake)
        deepening.show = threads.jobs.remember
        memories = Threads(memory_url, config) if memory_url not in ("", url) else threads
        super().__init__(threads, memories, read_only=read_only, roots=roots)
        self.server = server_of(self)

    def close(self) -> None:
        """Stop the running jobs and what goes on in the background, and close the library."""
        for one in self.background:
            one.stop()
        self.threads.jobs.stop()
        self.threads.close()
        if self.memories is not self.threads:
            self.memories.close()


def _is_fresh(url: str, config: Config, read_only: bool) -> bool:
    """Whether changed files are read again before an answer; in a shared library only if that is set."""
    wanted = config.search.fresh
    return not read_only and ("://" not in url if wanted is None else wanted)


def _result(answer: Answer) -> CallToolResult:
    """An answer as the protocol has it; programs find results and errors in `_meta`."""
    content, error = TextContent(type="text", text=answer.text), _error(answer)
    meta = error or ({RESULTS: answer.results} if answer.results else None)
    return CallToolResult(content=[content], structured_content=answer.data, is_error=bool(error), _meta=meta)


def _error(answer: Answer) -> dict[str, Any]:
    return {ERROR: text.visible_error(answer.error)} if answer.error else {}


def _told(tool: Tool) -> Told:
    """A tool as clients see it."""
    return Told(
        name=tool.name,
        description=tool.arguments.__doc__,
        input_schema=tool.arguments.schema_of(),
        annotations=_hints(tool),
    )


def _hints(tool: Tool) -> ToolAnnotations:
    """What differs from the protocol's defaults: only what writes can destroy or be repeated."""
    near = None if tool.open_world else False
    if not tool.writes:
        return ToolAnnotations(read_only_hint=True, open_world_hint=near)
    destructive = None if tool.destructive else False
    return ToolAnnotations(destructive_hint=destructive, idempotent_hint=True, open_world_hint=near)


def _run(tool: Tool, asked: Any, library: Library) -> Answer:
    if not tool.creates and not library.collections():
        raise Nothing
    assert tool.run is not None  # noqa: S101
    if tool.writes:
        return tool.run(library, asked)
    try:
        return tool.run(library, asked)
    except NoResults as problem:
        if tool.of_entries and problem.details.get("missing") == "memories":
            raise Nothing from None
        raise


def _in_thread(threads: Threads, tool: Tool, run: Callable[[Library], Answer]) -> asyncio.Future[Answer]:
    return threads.write(run, create=tool.creates) if tool.writes else threads.read(run)


def _run_on_entry(tool: Tool, asked: Any, name: str | None, library: Library) -> Answer:
    """What a tool does with an entry in a library of its own, whose documents are left as they are.

    Raises Nothing if it is no entry, and SettingError if entries are not removed so.
    """
    if isinstance(asked, writing.Remove):
        named = {"addresses": [name] if asked.addresses and name else asked.addresses, "dry_run": True}
        writing.remove(library, asked.model_copy(update=named))
        raise Nothing
    row = library.document(asked.address) if tool.writes else None
    if tool.writes and (row is None or row.kind not in KINDS):
        raise Nothing
    return _run(tool, asked, library)


def _refresh(asked: Refresh, job: Job, library: Library) -> Answer:
    """Bring all sources up to date, or say what that would change."""
    job.start()
    if not library.collections():
        raise Nothing
    if asked.check:
        return writing.checked(asked, library.check(), library.config.tokens)
    return _indexed(asked, library.refresh(embed=False, progress=job), library)


def _index(asked: Add, sources: list[str], job: Job, library: Library) -> Answer:
    """Add sources one by one. A source that cannot be read is reported, and the others go on.

    A thread of the server embeds them: other writes need not wait for that.
    """
    from quire.ingest.report import Report
    from quire.sources.files import Skipped

    job.start()
    report = Report()
    given: dict[str, Any] = {"collection": asked.collection or None, "external": asked.external}
    if asked.content:
        title = asked.title or None
        report = library.add(
            content=asked.content, path=asked.path or None, title=title, progress=job, **given
        )
    for source in sources:
        try:
            report.join(library.add(source, site=asked.site, embed=False, progress=job, **given))
        except SourceError as error:
            report.failed.append(Skipped(error.source, error.reason, error.code))
    return _indexed(asked, report, library)


def _indexed(asked: Add | Refresh, report: Report, library: Library) -> Answer:
    return writing.indexed(asked, report, library.config.tokens, follows=library.status().goes_on)


async def _watched(job: Job, work: asyncio.Future[Answer], context: RequestContext) -> Answer:
    """Wait for work and report its progress to the client."""
    told = 0
    while not work.done():
        await asyncio.wait([work], timeout=_TICK)
        so_far, total, said = job.before + job.done, job.before + job.total, job.so_far
        if so_far > told:
            await context.session.report_progress(so_far, total, said)
            told = so_far
    return work.result()


def _resources(cursor: str, library: Library) -> ListResourcesResult:
    """Documents, a hundred at a time, without titles: these are text of documents."""
    from quire.sources.entries import DOCUMENTS

    with library.store.reading():
        version = library.url, library.store.version()
        rows = [row for row in library.documents() if row.kind in DOCUMENTS]
    page = Page("resources/list", {"cursor": cursor, "max_tokens": 0}, version, library.config.tokens)
    end = page.start + _RESOURCES
    shown = [
        Resource(
            uri=f"quire://{quote(row.collection, safe='')}/{quote(row.path)}",
            name=text.on_one_line(row.address),
            mime_type=_mime_type(row.format),
            size=row.length,
        )
        for row in rows[page.start : end]
    ]
    return ListResourcesResult(resources=shown, next_cursor=page.cursor(end) if end < len(rows) else None)


def _resource(uri: str, library: Library) -> ReadResourceResult:
    """A document or a section, with invisible characters made visible."""
    address = _address(uri)
    found, row = library.read(address), library.document(address)
    said = text.visible(found.text)
    counter = tokens.budget_counter(library.config.tokens)
    if not counter.fits(said, 0, len(said), MOST_TOKENS):
        end = counter.reach(said, 0, len(said), MOST_TOKENS - _CUT)
        said = f"{said[:end]}\n\n[Cut at {MOST_TOKENS:,} tokens. The tool read goes on from there.]\n"
    contents = TextResourceContents(uri=uri, text=said, mime_type=_mime_type(row.format if row else ""))
    return ReadResourceResult(contents=[contents])


def _address(uri: str) -> str:
    try:
        place = urlsplit(uri)
    except ValueError:
        place = urlsplit("")
    if place.scheme != "quire" or place.query:
        said = f"No resource {uri!r}. Resources are named quire://collection/path"
        raise NoResults(said, missing="resource", name=uri)
    document = of_document(unquote(place.netloc), unquote(place.path[1:]))
    return of_section(document, unquote(place.fragment))


def _mime_type(format: str) -> str:
    return {"markdown": "text/markdown", "rst": "text/x-rst"}.get(format, "text/plain")
