"""The web page: static files that come with Quire.

Always: the page loads nothing from elsewhere and runs no script but its own.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from quire.errors import NoResults

VIEWS = ("/", "/read", "/cuts", "/library", "/map")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """The files of the page, each with its etag."""
    found = {}
    for one in (resources.files("quire") / "surfaces" / "page").iterdir():
        if one.name.rpartition(".")[2] in _TYPES:
            content = one.read_bytes()
            found[one.name] = content, f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    return found


def answer(name: str, request: Request) -> Response:
    """A file of the page. Raises NoResults."""
    if name not in files():
        raise NoResults(f"The page has no file {name[:100]!r}.", missing="file", name=name)
    content, etag = files()[name]
    headers = {"ETag": etag, "Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)
