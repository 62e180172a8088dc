"""One Python client of MCP, run through the steps of the table in docs/reference/mcp.md.

    VENV/bin/python adapters.py NAME TARGET

NAME is a function of this file, TARGET the URL of a server or JSON of the command that starts one.
Prints JSON: each step and what came of it. It runs in an environment of the client's own, where
only the client is installed, so that it imports nothing of the registry.
"""

import asyncio
import contextlib
import json
import sys
import time

NONE = "–"
"""The client has no such thing."""


class Client:
    """What a client can do; a test of a client is a subclass that says how it does it."""

    async def tools(self):
        """Return the tools' names."""
        raise NotImplementedError

    async def call(self, tool, arguments):
        """Return what the caller gets to see, as text; an exception's is what it says."""
        raise NotImplementedError

    async def resources(self):
        """Return URIs."""
        raise NotImplementedError

    async def read(self, uri):
        """Return a resource's text."""
        raise NotImplementedError

    async def prompts(self):
        """Return the prompts there are: none."""
        raise NotImplementedError


def want(part, text):
    assert part in str(text), f"{part!r} is not in {str(text)[:200]!r}"


async def expect(client, tool, arguments, part):
    want(part, await client.call(tool, arguments))


async def tools(client):
    found = await client.tools()
    assert len(found) == 9, found
    assert "search_skills" in found, found


async def resources(client):
    found = await client.resources()
    assert "skill://mine/pdf-forms/SKILL.md" in found, found


async def told(client, tool, arguments, part):
    """As `expect`; an exception that says it is as good as an answer that does."""
    try:
        answer = await client.call(tool, arguments)
    except NotImplementedError:
        raise
    except Exception as error:
        answer = f"{error} {getattr(error, 'error', '')}"
    want(part, answer)


async def read_resource(client):
    want("# Forms", await client.read("skill://mine/pdf-forms/SKILL.md"))


async def prompts(client):
    assert list(await client.prompts()) == []


STEPS = {
    "list tools": tools,
    "search": lambda one: expect(one, "search_skills", {"query": "fill a form"}, "pdf-forms"),
    "read": lambda one: expect(one, "read_skill", {"name": "pdf-forms"}, "# Forms"),
    "create": lambda one: expect(
        one, "create_skill", {"name": sys.argv[3], "description": "New."}, sys.argv[3]
    ),
    # A skill of this name is there: the caller has to hear why it is refused.
    "refused call": lambda one: told(
        one, "create_skill", {"name": "haiku", "description": "New."}, "skill_exists"
    ),
    "null for optionals": lambda one: expect(
        one, "list_skills", {"limit": None, "tags": None, "scope": None}, "haiku"
    ),
    "unknown tool": lambda one: told(one, "no_such_tool", {}, "no_such_tool"),
    "list resources": resources,
    "read resource": read_resource,
    "prompts": prompts,
}


async def main(connect, target):
    done = {}
    try:
        async with connect(target):
            pass  # what it takes to import the client is not the server's
        started = time.perf_counter()
        async with connect(target) as client:
            done["connect"] = f"{(time.perf_counter() - started) * 1000:.0f} ms"
            for name, step in STEPS.items():
                try:
                    async with asyncio.timeout(30):
                        await step(client)
                    done[name] = "yes"
                except NotImplementedError:
                    done[name] = NONE
                except Exception as error:
                    done[name] = f"no: {type(error).__name__}: {error}"[:300]
    except Exception as error:
        done.setdefault("connect", f"no: {type(error).__name__}: {error}"[:300])
    return done


# The clients


def _texts(content):
    return "".join(getattr(part, "text", "") for part in content)


class Session(Client):
    """A client with the methods of the SDK's session, or nearly so."""

    def __init__(self, session):
        self.session = session

    async def tools(self):
        found = await self.session.list_tools()
        return [tool.name for tool in getattr(found, "tools", found)]

    async def call(self, tool, arguments):
        return _texts((await self.session.call_tool(tool, arguments)).content)

    async def resources(self):
        found = await self.session.list_resources()
        return [str(one.uri) for one in getattr(found, "resources", found)]

    async def read(self, uri):
        found = await self.session.read_resource(uri)
        return _texts(getattr(found, "contents", found))

    async def prompts(self):
        found = await self.session.list_prompts()
        return getattr(found, "prompts", found)


@contextlib.asynccontextmanager
async def mcp(target):
    from mcp.client import Client as Sdk
    from mcp.client.stdio import StdioServerParameters

    server = target if isinstance(target, str) else StdioServerParameters(**target)
    async with Sdk(server) as session:
        yield Session(session)


@contextlib.asynccontextmanager
async def fastmcp(target):
    from fastmcp import Client as Fast
    from fastmcp.client.transports import StdioTransport

    server = target if isinstance(target, str) else StdioTransport(**target, keep_alive=False)
    async with Fast(server) as session:
        yield Session(session)


@contextlib.asynccontextmanager
async def langchain_mcp_adapters(target):
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.resources import load_mcp_resources
    from langchain_mcp_adapters.tools import load_mcp_tools

    server = (
        {"transport": "streamable_http", "url": target}
        if isinstance(target, str)
        else {"transport": "stdio", **target}
    )

    class Adapter(Session):
        async def tools(self):
            self.loaded = {tool.name: tool for tool in await load_mcp_tools(self.session)}
            return list(self.loaded)

        async def call(self, tool, arguments):
            if tool not in self.loaded:
                raise NotImplementedError  # an agent knows only those that were listed
            return await self.loaded[tool].ainvoke(arguments)

        async def read(self, uri):
            [found] = await load_mcp_resources(self.session, uris=[uri])
            return found.as_string()

    async with MultiServerMCPClient({"skills": server}).session("skills") as session:
        yield Adapter(session)


@contextlib.asynccontextmanager
async def mcp_use(target):
    from mcp_use import MCPClient

    server = {"url": target} if isinstance(target, str) else target
    client = MCPClient.from_dict({"mcpServers": {"skills": server}})
    session = await client.create_session("skills")
    try:
        yield Session(session)
    finally:
        await client.close_all_sessions()


@contextlib.asynccontextmanager
async def openai_agents(target):
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    made = (
        MCPServerStreamableHttp(params={"url": target})
        if isinstance(target, str)
        else MCPServerStdio(params=target)
    )
    async with made as session:
        yield Session(session)


@contextlib.asynccontextmanager
async def pydantic_ai_slim(target):
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    server = target if isinstance(target, str) else StdioTransport(**target, keep_alive=False)

    class Toolset(Session):
        async def call(self, tool, arguments):
            return await self.session.direct_call_tool(tool, arguments)

        async def read(self, uri):
            return await self.session.read_resource(uri)

    async with MCPToolset(server) as session:
        yield Toolset(session)


@contextlib.asynccontextmanager
async def llama_index_tools_mcp(target):
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    client = (
        BasicMCPClient(target)
        if isinstance(target, str)
        else BasicMCPClient(target["command"], args=target["args"], env=target["env"])
    )

    class Spec(Session):
        async def tools(self):
            found = await McpToolSpec(self.session).to_tool_list_async()
            self.loaded = {tool.metadata.name: tool for tool in found}
            return list(self.loaded)

        async def call(self, tool, arguments):
            if tool not in self.loaded:
                raise NotImplementedError  # an agent knows only those that were listed
            return await self.loaded[tool].acall(**arguments)

    # A connection is made for each request: the first says how long it takes.
    await client.list_tools()
    yield Spec(client)


@contextlib.asynccontextmanager
async def inspector(target):
    """The command line of the MCP Inspector: a connection for each step."""
    where = (
        [target]
        if isinstance(target, str)
        else [*(f"-e{key}={value}" for key, value in target["env"].items()), target["command"]]
    )
    arguments = [] if isinstance(target, str) else ["--", *target["args"]]

    async def run(method, *more):
        process = await asyncio.create_subprocess_exec(
            *("mcp-inspector", "--cli", *where, "--method", method, *more, *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        try:
            return json.loads(out)
        except ValueError:
            raise RuntimeError((out + err).decode()) from None

    class Inspector(Client):
        async def tools(self):
            return [tool["name"] for tool in (await run("tools/list"))["tools"]]

        async def call(self, tool, arguments):
            given = [f"--tool-arg={key}={json.dumps(one)}" for key, one in arguments.items()]
            return await run("tools/call", "--tool-name", tool, *given)

        async def resources(self):
            return [one["uri"] for one in (await run("resources/list"))["resources"]]

        async def read(self, uri):
            return await run("resources/read", "--uri", uri)

        async def prompts(self):
            return (await run("prompts/list"))["prompts"]

    await run("tools/list")
    yield Inspector()


if __name__ == "__main__":
    name, given, _ = sys.argv[1:]
    target = json.loads(given) if given.startswith("{") else given
    found = asyncio.run(main(globals()[name.replace("-", "_")], target))
    print(json.dumps(found), flush=True)
