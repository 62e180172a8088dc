"""Twenty MCP clients at once beside the SDK's own echo tool, in the same run.

    python benchmarks/mcp_clients.py DATABASE

Prints rows of a Markdown table: p50 and p99 of each tool, and what p50 adds to the echo's.
"""

import contextlib
import itertools
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import anyio
from mcp.client import Client

CLIENTS = 20
CALLS = 50

ECHO = """
import sys, uvicorn
import mcp_types as types
from mcp.server.lowlevel import Server
async def tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])
async def call(context, params):
    content = [types.TextContent(text=str(params.arguments))]
    return types.CallToolResult(content=content, structured_content=params.arguments)
server = Server("echo", version="1", on_list_tools=tools, on_call_tool=call)
app = server.streamable_http_app(json_response=True)
uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
"""

QUERIES = ["pdf", "deploy a docker service", '"release notes"', "chart excel", "sql", "email"]

Arguments = Callable[[], dict[str, object]]


@contextlib.contextmanager
def serving(*command: str) -> Iterator[str]:
    """Start a server on a free port (the last argument, or behind HOST:) and wait for it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([part.replace("PORT", str(port)) for part in command])
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


async def load(url: str, tool: str, arguments: Arguments, clients: int) -> list[float]:
    """Return the times in seconds of `CALLS` calls by each client, all at once."""
    times: list[float] = []

    async def work(client: Client) -> None:
        for _ in range(CALLS):
            started = time.perf_counter()
            answer = await client.call_tool(tool, arguments())
            times.append(time.perf_counter() - started)
            assert not answer.is_error, answer

    async with contextlib.AsyncExitStack() as stack:
        connected = [await stack.enter_async_context(Client(url)) for _ in range(clients)]
        for client in connected:
            await client.list_tools()
        async with anyio.create_task_group() as group:
            for client in connected:
                group.start_soon(work, client)
    return times


async def names(url: str) -> list[str]:
    async with Client(url) as client:
        answer = await client.call_tool("list_skills", {"limit": 200})
        return [skill["ref"] for skill in answer.structured_content["skills"]]


def rows(database: str) -> Iterator[tuple[str, float, float]]:
    """Yield what was called, its median and the echo's, for one client and for twenty."""
    with (
        serving(sys.executable, "-c", ECHO, "PORT") as echo,
        serving(
            sys.executable, "-m", "registry", "--db", database, "mcp", "--http", "127.0.0.1:PORT"
        ) as ours,
    ):
        refs = itertools.cycle(anyio.run(names, ours))
        queries = itertools.cycle(QUERIES)
        numbers = itertools.count()
        tools: list[tuple[str, Arguments]] = [
            ("list_skills", dict),
            ("search_skills (repeated query)", lambda: {"query": next(queries)}),
            ("search_skills (new query)", lambda: {"query": f"{next(queries)} q{next(numbers)}x"}),
            ("read_skill", lambda: {"name": next(refs)}),
        ]
        for clients in (1, CLIENTS):
            floor = statistics.median(anyio.run(load, echo, "echo", lambda: {"text": "a"}, clients))
            for tool, arguments in tools:
                times = anyio.run(load, ours, tool.partition(" ")[0], arguments, clients)
                who = "one client" if clients == 1 else f"{clients} clients at once"
                yield f"{tool} over HTTP, {who}, p50", statistics.median(times), floor
                if clients > 1:
                    worst = statistics.quantiles(times, n=100)[98]
                    yield f"{tool} over HTTP, {who}, p99", worst, floor


if __name__ == "__main__":
    for what, figure, floor in rows(sys.argv[1]):
        added = (figure - floor) * 1000
        print(f"| {what} | {figure * 1000:.1f} ms | {floor * 1000:.1f} ms | +{added:.1f} ms |")
