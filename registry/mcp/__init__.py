"""The MCP server: toolsets and skills for any client, over stdio and HTTP (extra ``mcp``)."""
