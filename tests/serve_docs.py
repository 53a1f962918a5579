"""Writes the table of routes in docs/serve.md: python -m tests.serve_docs"""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from quire.surfaces.http.routes import ROUTES, Route

PAGE = Path(__file__).parents[1] / "docs" / "serve.md"
_HEAD = "| route | what it does | arguments | level |"


def arguments(route: Route) -> str:
    """The names of what a route takes; those that may be left out in brackets."""
    schema = TypeAdapter(route.asked).json_schema()
    needed = schema.get("required", ())
    return " ".join(name if name in needed else f"[{name}]" for name in schema.get("properties", ()))


def table() -> str:
    """A row for each route."""
    rows = [_HEAD, "|---|---|---|---|"]
    for route in ROUTES:
        told = f"{route.summary} | {arguments(route)} | {route.level}"
        rows.append(f"| `{route.method} {route.path}` | {told} |")
    return "\n".join(rows)


def written(page: str) -> str:
    """The page with the table in it."""
    start = page.index(_HEAD)
    return page[:start] + table() + page[page.index("\n\n", start) :]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
