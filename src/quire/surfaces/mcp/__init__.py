"""The MCP server: a library's tools and documents, for agents."""

from quire.surfaces.mcp.server import Service
from quire.surfaces.mcp.transport import serve, serve_http

__all__ = ["Service", "serve", "serve_http"]
