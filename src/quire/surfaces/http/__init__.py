"""`quire serve`: a library over HTTP, with an API, a web page and the MCP server on one port."""
