"""The routes of the API: their paths, what they take and answer, who may use them, and what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire.config import Config
from quire.surfaces.http import answers, reading, writing
from quire.surfaces.http import asked as ask
from quire.surfaces.http.access import Access
from quire.surfaces.jobs import Job

if TYPE_CHECKING:
    from quire.library import Library


@dataclass(frozen=True, slots=True)
class Call:
    """One request: what it asks, for whom, and what the server has for it."""

    asked: Any
    access: Access
    config: Config
    roots: Sequence[Path] = ()
    body: bytes = b""
    job: Job | None = None


Run = Callable[["Library", Call], Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One route."""

    method: str
    path: str
    summary: str
    asked: type[ask.Asked]
    answer: Any
    run: Run | None = None  # the application itself does the others
    level: str = "read"
    writes: bool = False
    creates: bool = False  # it makes the library if there is none
    is_slow: bool = False  # it reads for long, and keeps nobody waiting
    is_plan: bool = False  # it reads files and pages of others, which may take long
    is_work: bool = False  # it may take long: it is a job
    of_entries: bool = False  # it is about what was remembered, not about documents
    by_address: bool = False  # what no document is may be a memory
    of_nothing: Callable[[Call], Any] | None = None  # what it answers if there is no library yet
    takes_file: bool = False  # its body is a file, and its arguments are in the query

    @property
    def takes_json(self) -> bool:
        """Whether its arguments are in a body of JSON."""
        return self.method == "POST" and not self.takes_file


def _plain(run: Callable[[Library, Any], Any]) -> Run:
    """What needs nothing but its arguments."""
    return lambda library, call: run(library, call.asked)


def _for_caller(run: Callable[[Library, Any, Access], Any]) -> Run:
    return lambda library, call: run(library, call.asked, call.access)


def _plan(library: Library, call: Call) -> Any:
    return writing.plan_sources(library, call.asked, call.access, call.roots)


def _job(call: Call) -> Job:
    return call.job or Job("")


def _get(path: str, summary: str, asked: type[ask.Asked], answer: Any, run: Any, **more: Any) -> Route:
    return Route("GET", path, summary, asked, answer, run and _plain(run), **more)


def _post(
    path: str, summary: str, asked: type[ask.Asked], answer: Any, run: Run | None, **more: Any
) -> Route:
    given: Any = {"level": "write", "writes": True} | more
    return Route("POST", path, summary, asked, answer, run, **given)


_AT: Any = {"by_address": True}
_ENTRIES: Any = {"of_entries": True}

ROUTES = (
    _get(
        "/api/search",
        "Find the sections that answer a question.",
        ask.Searching,
        answers.ResultsForm,
        reading.search,
    ),
    _get(
        "/api/recall",
        "Find memories and knowledge.",
        ask.Recalling,
        answers.ResultsForm,
        reading.recall,
        **_ENTRIES,
    ),
    _get(
        "/api/context", "Gather the passages worth reading.", ask.Packing, answers.PackForm, reading.context
    ),
    _get(
        "/api/read", "Read a document or a section.", ask.ReadingAt, answers.ReadingForm, reading.read, **_AT
    ),
    _get(
        "/api/render",
        "Get a document as safe HTML.",
        ask.At,
        answers.RenderedForm,
        reading.rendered_document,
        is_slow=True,
        **_AT,
    ),
    _get(
        "/api/source",
        "Download what is stored of a document, byte for byte.",
        ask.At,
        bytes,
        reading.source,
        **_AT,
    ),
    _get("/api/toc", "Get the outline of a document.", ask.At, answers.OutlineForm, reading.toc, **_AT),
    _get("/api/chunks", "List the chunks of a document.", ask.At, answers.ChunksForm, reading.chunks, **_AT),
    _get(
        "/api/links",
        "List the links of a document, and those to it.",
        ask.At,
        answers.LinkedForm,
        reading.links,
        **_AT,
    ),
    _get(
        "/api/documents",
        "List documents.",
        ask.ListingDocuments,
        answers.ListedForm,
        reading.list_documents,
        of_nothing=lambda call: reading.no_documents(call.asked),
    ),
    _get(
        "/api/sources",
        "List sources.",
        ask.NoArguments,
        answers.SourcesForm,
        reading.sources,
        of_nothing=lambda _: {"sources": []},
    ),
    _get("/api/status", "Say what is in the library.", ask.Looking, answers.StateForm, None),
    _get(
        "/api/map",
        "Place documents by meaning.",
        ask.Area,
        answers.PictureForm,
        reading.map_documents,
        is_slow=True,
        of_nothing=lambda _: reading.no_map(),
    ),
    _get(
        "/api/history",
        "List the texts of a memory.",
        ask.At,
        answers.VersionsForm,
        reading.history,
        **_ENTRIES,
    ),
    _get("/api/jobs", "List jobs.", ask.NoArguments, answers.JobListForm, None),
    _post(
        "/api/chunk",
        "Show how strategies would cut a text.",
        ask.Chunking,
        answers.CutsForm,
        None,
        level="read",
        writes=False,
    ),
    Route(
        "POST",
        "/api/chunk/file",
        "Show how strategies would cut a file.",
        ask.Cutting,
        answers.CutsForm,
        takes_file=True,
    ),
    _post(
        "/api/plan",
        "Show what adding would change, or bringing all sources up to date.",
        ask.Planning,
        answers.PlansForm,
        _plan,
        writes=False,
        is_plan=True,
        of_nothing=lambda call: reading.on_empty(call.config, lambda library: _plan(library, call)),
    ),
    _post(
        "/api/add",
        "Add sources or a text.",
        ask.Adding,
        answers.ReportedForm,
        lambda library, call: writing.add(library, call.asked, call.access, call.roots, _job(call)),
        is_work=True,
        creates=True,
    ),
    _post(
        "/api/upload",
        "Add a file.",
        ask.Uploading,
        answers.ReportedForm,
        lambda library, call: writing.upload(library, call.body, call.asked, call.access, _job(call)),
        is_work=True,
        creates=True,
        takes_file=True,
    ),
    _post(
        "/api/refresh",
        "Bring all sources up to date.",
        ask.Refreshing,
        answers.ReportedForm,
        lambda library, call: writing.refresh(library, call.asked, _job(call)),
        is_work=True,
    ),
    _post("/api/remove", "Remove documents.", ask.Removing, answers.RemovedForm, _plain(writing.remove)),
    _post(
        "/api/sources/remove",
        "Remove a source.",
        ask.RemovingSource,
        answers.RemovedForm,
        _plain(writing.remove_source),
    ),
    _post(
        "/api/promote",
        "Promote a document.",
        ask.Promoting,
        answers.DocumentForm,
        _plain(writing.promote),
        **_AT,
    ),
    _post(
        "/api/remember",
        "Keep a memory.",
        ask.Remembering,
        answers.RememberedForm,
        _for_caller(writing.remember),
        creates=True,
        **_ENTRIES,
    ),
    _post(
        "/api/forget",
        "Delete memories.",
        ask.Forgetting,
        answers.RemovedForm,
        _plain(writing.forget),
        **_ENTRIES,
    ),
    _post(
        "/api/doctor",
        "Look for all that can be wrong with the library.",
        ask.Examining,
        answers.FindingsForm,
        lambda library, call: writing.run_doctor(library, _job(call)),
        level="admin",
        writes=False,
        is_work=True,
    ),
)
