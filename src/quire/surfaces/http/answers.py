"""What each route answers, as types that a JSON schema is made of. Tests compare answers with them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

from pydantic import ConfigDict, create_model

from quire.context import Passage
from quire.ingest.report import Report
from quire.linking import LinkBack, LinkOut
from quire.mapping import Point
from quire.records import StoredChunk
from quire.regions import Label
from quire.result import Reading, Result
from quire.stores import Counts, DocumentRow, SourceOptions, SourceRow

_CONFIG = ConfigDict(extra="forbid", protected_namespaces=())


def _object(name: str, /, **kinds: Any) -> Any:
    """An object with these fields; those with a default may be missing."""
    given = {field: kind if isinstance(kind, tuple) else (kind, ...) for field, kind in kinds.items()}
    return create_model(name, __config__=_CONFIG, **given)  # type: ignore[call-overload]


def _like(name: str, kind: type[Any], /, *without: str, **more: Any) -> Any:
    """The JSON of a dataclass: its fields but for some, and more."""
    hints = get_type_hints(kind)
    return _object(
        name, **{one.name: hints[one.name] for one in fields(kind) if one.name not in without} | more
    )


def _many(kind: Any) -> Any:
    return list[kind]


_Any = dict[str, Any]
_AboutDocument: Any = {"address": str, "tokens": int, "source_type": str, "is_chunked": bool}

ErrorForm = _object("Error", code=str, message=str, details=_Any)
DocumentForm = _like("Document", DocumentRow, "seq", **_AboutDocument)
ReadingForm = _like("Reading", Reading)

_Found = _like("Result", Result, "checksum", "explain", explain=(_Any, {}))
ResultsForm = _object(
    "Results", query=str, mode=str, model=str, good_match=bool, results=_many(_Found), notes=list[str]
)
PackForm = _object(
    "Pack",
    query=str,
    text=str,
    tokens=int,
    max_tokens=int,
    passages=_many(_like("Passage", Passage)),
    left_out=list[str],
    notes=list[str],
    good_match=bool,
)
OutlineForm = _object("Outline", address=str, title=str, depth=int, tokens=int, children=list[_Any])

_LINES: Any = {"start_line": int, "end_line": int}
_Focus = _object("Focus", address=str, anchor=str, location=str | None, **_LINES)
_Section = _object("Section", address=str, title=str, depth=int, anchor=str, tokens=int, **_LINES)
RenderedForm = _object(
    "Rendered",
    document=DocumentForm,
    html=str,
    sections=_many(_Section),
    focus=_Focus | None,
    stale=bool,
    location_unit=str | None,
)
ListedForm = _object("Listed", documents=_many(DocumentForm), total=int, offset=int)
ChunksForm = _object("Chunks", chunks=_many(_like("Chunk", StoredChunk)))
LinkedForm = _object(
    "Linked", address=str, out=_many(_like("LinkOut", LinkOut)), back=_many(_like("LinkBack", LinkBack))
)
_Source = _like("Source", SourceRow, "options", **get_type_hints(SourceOptions))
SourcesForm = _object("Sources", sources=_many(_Source))

JobStateForm = _object(
    "Job",
    job=str,
    what=str,
    state=str,
    work=str,
    unit=str,
    done=int,
    total=int,
    failed=int,
    result=_Any | None,
    error=ErrorForm | None,
)
JobListForm = _object("Jobs", jobs=_many(JobStateForm))
_Access = _object("Access", level=str, collections=list[str] | None, name=str)
StateForm = _like(
    "Status",
    Counts,
    library=str,
    not_embedded=dict[str, str],
    checked=bool,
    problems=list[str],
    version=str,
    read_only=bool,
    roots=list[str],
    jobs=_many(JobStateForm),
    access=_Access,
)
PictureForm = _object(
    "Map", points=_many(_like("Point", Point)), labels=_many(_like("Label", Label)), notes=list[str]
)
VersionsForm = _object(
    "History", address=str, versions=_many(_object("EarlierText", written_at=int, text=str))
)

_CutDocument = _object(
    "CutDocument",
    path=str,
    title=str,
    bytes=int,
    lines=int,
    characters=int,
    checksum=str,
    warnings=list[str],
)
_CutBy = _object("CutBy", strategy=str, chunks=list[_Any], error=ErrorForm | None)
CutsForm = _object("Cuts", document=_CutDocument, text=str, strategies=_many(_CutBy))
PlansForm = _object("Plans", plans=list[_Any])

_SKIP: Any = {"source": str, "reason": str}
_Skipped, _Failed = _object("Skipped", **_SKIP), _object("Failed", **_SKIP, code=str)
ReportedForm = _like("Report", Report, "skipped", "failed", skipped=_many(_Skipped), failed=_many(_Failed))
RemovedForm = _object("Removed", removed=_many(DocumentForm), dry_run=bool)
RememberedForm = _like("Remembered", DocumentRow, "seq", **_AboutDocument, outcome=str, similar=list[_Any])
_Finding = _object("Finding", part=str, problem=str, fix=str)
FindingsForm = _object("Findings", findings=_many(_Finding), versions=dict[str, str])
