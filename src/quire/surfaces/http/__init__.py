"""`quire serve`: a library over HTTP, with an API, a web page and the MCP server on one port."""

from quire.surfaces.http.libraries import Libraries
from quire.surfaces.http.server import guarded_app, serve

__all__ = ["Libraries", "guarded_app", "serve"]
