"""The MCP server: a library's tools and documents, for agents."""

from quire.surfaces.mcp.protocol import RequestContext, server_of
from quire.surfaces.mcp.server import Answers, Service
from quire.surfaces.mcp.transport import listen, log_to_stderr, mending, serve, serve_http

__all__ = [
    "Answers",
    "RequestContext",
    "Service",
    "listen",
    "log_to_stderr",
    "mending",
    "serve",
    "serve_http",
    "server_of",
]
