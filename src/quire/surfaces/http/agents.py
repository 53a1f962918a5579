"""The MCP server of `quire serve`: each caller has the tools and documents that its key allows."""

from __future__ import annotations

from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from starlette.applications import Starlette
from starlette.routing import Route

from quire.surfaces.http.access import Access
from quire.surfaces.http.libraries import Libraries
from quire.surfaces.mcp import Answers, RequestContext, mending, server_of


class Agents:
    """One MCP server for callers with several keys. The request that a call came with says whose it is."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries

    def app(self) -> Starlette:
        """The application. Names and origins are checked before it is reached."""
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = server_of(self).streamable_http_app(transport_security=security)
        for route in app.routes:
            if isinstance(route, Route):
                route.app = mending(route.app)
        return app

    def _answers(self, context: RequestContext) -> Answers:
        access: Access = context.request.state.access  # type: ignore[union-attr]
        documents, memories = self._libraries.of(access)
        is_reader = access.level == "read" or self._libraries.read_only
        return Answers(documents, memories, read_only=is_reader, roots=self._libraries.roots)

    async def list_tools(
        self, context: RequestContext, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """The tools that the caller may use."""
        return await self._answers(context).list_tools(context, params)

    async def call_tool(self, context: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        """What a tool answers."""
        return await self._answers(context).call_tool(context, params)

    async def list_resources(
        self, context: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """The documents that the caller may see."""
        return await self._answers(context).list_resources(context, params)

    async def list_templates(
        self, context: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """How documents are named."""
        return await self._answers(context).list_templates(context, params)

    async def read_resource(
        self, context: RequestContext, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """A document or a section."""
        return await self._answers(context).read_resource(context, params)
