"""The set-up snippets of the page about agents, each read as its client does, and started."""

import json
import re
import sys
import tomllib

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "how-to" / "connect-an-agent.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def configurations():
    for text in blocks("json"):
        data = json.loads(text)
        yield from (data.get("mcpServers") or data.get("servers")).values()
    for text in blocks("toml"):
        yield from tomllib.loads(text)["mcp_servers"].values()


@pytest.fixture
def environment(registry, root, skill, database):
    skill("code-review", description="Review a pull request.")
    registry.sync(str(root))
    return {
        "SKILL_REGISTRY_DB": str(database),
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(root.parent / "home"),
    }


def test_there_is_a_snippet_for_each_client():
    assert len(list(configurations())) == 3
    assert {one["command"] for one in configurations()} == {"skill-registry"}
    assert len(blocks("python")) == 1


@pytest.mark.parametrize(
    "arguments", sorted({tuple(one["args"]) for one in configurations()}), ids=" ".join
)
def test_the_command_of_a_configuration_serves_the_skills(arguments, environment):
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "registry", *arguments], env=environment
    )

    async def names():
        async with Client(server) as client:
            answer = await client.call_tool("list_skills", {})
            return [skill["ref"] for skill in answer.structured_content["skills"]]

    assert anyio.run(names) == ["code-review"]


def test_the_python_client_finds_skills_of_the_database_in_the_environment(
    environment, capsys, monkeypatch
):
    # The SDK passes none of these variables on to the server.
    monkeypatch.setenv("SKILL_REGISTRY_DB", environment.pop("SKILL_REGISTRY_DB"))
    (snippet,) = blocks("python")
    started = 'command="skill-registry", args=['
    assert started in snippet
    script = snippet.replace(
        started, f"env={environment!r}, command={sys.executable!r}, args=['-m', 'registry', "
    )
    exec(script, {"__name__": "__main__"})  # its imports are here
    assert capsys.readouterr().out == "code-review Review a pull request.\n"
