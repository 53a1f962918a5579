"""The OpenAPI document, made from the routes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from quire.surfaces.http import answers
from quire.surfaces.http.routes import ROUTES, Route
from quire.version import VERSION

_REF = "#/components/schemas/{model}"
_FAILED = "What went wrong, and what to do next."
_EVENTS = "Events `progress`, then `done`, `failed` or `stopped`, each with the job as data."
_JOB = ("/api/jobs/{id}", "/api/jobs/{id}/events")


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    known: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    paths |= _jobs(known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Quire",
            "version": VERSION,
            "description": "Search, read and keep the documents of a library.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": known,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schema(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; what it refers to joins the known ones."""
    made = TypeAdapter(kind).json_schema(ref_template=_REF)
    known |= made.pop("$defs", {})
    return made


def _operation(route: Route, known: dict[str, Any]) -> dict[str, Any]:
    schema = TypeAdapter(route.asked).json_schema(ref_template=_REF)
    known |= schema.pop("$defs", {})
    shown: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.path.removeprefix("/api/").replace("/", "_"),
        "description": f"Needs the level {route.level}.",
        "responses": _responses(route, known),
    }
    if route.takes_json:
        body = {key: value for key, value in schema.items() if key not in ("title", "description")}
        shown["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    else:
        shown["parameters"] = list(_parameters(schema))
    if route.takes_file:
        file = {"schema": {"type": "string", "format": "binary"}}
        shown["requestBody"] = {"required": True, "content": {"application/octet-stream": file}}
    return shown


def _parameters(schema: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for name, about in schema.get("properties", {}).items():
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": about.get("description", ""),
            "schema": _one_of(about),
        }


def _one_of(about: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter. One that is null is left out of a query."""
    given = [one for one in about.get("anyOf", ()) if one != {"type": "null"}]
    return given[0] if len(given) == 1 else about


def _responses(route: Route, known: dict[str, Any]) -> dict[str, Any]:
    if route.answer is bytes:
        told: dict[str, Any] = {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
        }
    else:
        told = {"application/json": {"schema": _schema(route.answer, known)}}
    found: dict[str, Any] = {"200": {"description": "Done.", "content": told}, "default": _failure(known)}
    if route.is_work:
        told["text/event-stream"] = {"schema": {"type": "string", "description": _EVENTS}}
        job = {"application/json": {"schema": _schema(answers.JobStateForm, known)}}
        found["202"] = {"description": "A job has begun.", "content": job}
    return found


def _failure(known: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": _FAILED,
        "content": {"application/json": {"schema": _schema(answers.ErrorForm, known)}},
    }


def _jobs(known: dict[str, Any]) -> dict[str, Any]:
    """The routes of one job."""
    name = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    job = {"application/json": {"schema": _schema(answers.JobStateForm, known)}}
    events = {"text/event-stream": {"schema": {"type": "string", "description": _EVENTS}}}

    def told(summary: str, content: dict[str, Any]) -> dict[str, Any]:
        responses = {"200": {"description": "Done.", "content": content}, "default": _failure(known)}
        return {"summary": summary, "parameters": [name], "responses": responses}

    return {
        _JOB[0]: {"get": told("Say how a job is getting on.", job), "delete": told("Stop a job.", job)},
        _JOB[1]: {"get": told("Follow a job.", events)},
    }
