"""The official client of MCP at the address of the catalogue."""

from itertools import count

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from registry.web.auth import Auth
from tests.mcp.conftest import until_told
from tests.program import INITIALIZE
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


@pytest.mark.parametrize("narrowed", [{}, {"write": True}, {"source": "mine"}])
def test_whoever_listens_is_told_whatever_the_token_is_for(registry, library, skill, narrowed):
    _, shown = registry.tokens().create("agent", **narrowed)
    numbers, events = count(), []

    async def conversation(base):
        headers = {"Authorization": f"Bearer {shown}"}
        async with (
            httpx2.AsyncClient(headers=headers) as sent,
            Client(streamable_http_client(f"{base}/mcp", http_client=sent)) as client,
            client.listen(resources_list_changed=True) as stream,
            anyio.create_task_group() as group,
        ):

            async def collect():
                async for event in stream:
                    events.append(event)  # noqa: PERF401  # seen one by one

            group.start_soon(collect)
            await until_told(lambda: skill(f"fresh-{next(numbers)}"), lambda: events)
            group.cancel_scope.cancel()

    with serving(registry, mcp=True, watch=True) as site:
        anyio.run(conversation, site.base)


def test_a_stream_ends_with_its_token(registry, library, monkeypatch):
    monkeypatch.setattr(Auth, "look_again", 0.1)
    tokens = registry.tokens()
    token, shown = tokens.create("agent")
    headers = {
        "Authorization": f"Bearer {shown}",
        "Accept": "application/json, text/event-stream",
    }
    with (
        serving(registry, mcp=True) as site,
        httpx2.Client(headers=headers, timeout=30) as client,
    ):
        begun = client.post(f"{site.base}/mcp", json=INITIALIZE)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        with client.stream("GET", f"{site.base}/mcp", headers=session) as stream:
            assert stream.status_code == 200
            tokens.revoke(token.number)
            assert b"".join(stream.iter_raw()) == b""  # to its end
        assert client.post(f"{site.base}/mcp", json=INITIALIZE).status_code == 401
