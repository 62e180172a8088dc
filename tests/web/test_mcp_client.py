"""The official client of MCP at the address of the catalogue."""

import anyio
import pytest
from mcp.client import Client

from tests.web.conftest import serving


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_finds_and_reads_a_skill_beside_the_pages(registry, library, mode):
    async def conversation(base):
        with anyio.fail_after(60):
            async with Client(f"{base}/mcp", mode=mode) as client:
                offered = {one.name for one in (await client.list_tools()).tools}
                found = await client.call_tool("search_skills", {"queries": ["sum of a table"]})
                read = await client.call_tool("read_skill", {"name": "sums"})
                listed = (await client.list_resources()).resources
                return offered, found, read, listed

    with serving(registry, mcp=True) as site:
        offered, found, read, listed = anyio.run(conversation, site.base)
        assert "search_skills" in offered
        assert found.structured_content["skills"][0]["ref"] == "sums"
        assert read.structured_content["body"].startswith("\n# Sums")
        assert any("sums" in str(one.uri) for one in listed)
        assert site.get("/index.json", q="sums").json["total"] == 1
