"""The official client, in both generations of the protocol, over both transports."""

import json

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from registry.errors import UsageProblem
from registry.mcp.server import ServerOptions, SkillServer


async def tool(client, called, /, **arguments):
    """Call a tool; return its structured answer, checked against its schema."""
    answer = await client.call_tool(called, arguments)
    listed = {one.name: one for one in (await client.list_tools()).tools}
    assert answer.structured_content == json.loads(answer.content[0].text)
    schema = listed[called].output_schema
    if schema is not None:
        jsonschema.validate(answer.structured_content, schema)
    assert answer.is_error == ("error" in answer.structured_content)
    return answer.structured_content


@pytest.mark.both
def test_a_client_lists_searches_reads_creates_updates_deletes_and_restores(talk, library, way):
    async def conversation(client):
        assert (await tool(client, "list_skills"))["total"] == 11
        found = await tool(client, "search_skills", query="fill pdf forms")
        assert found["skills"][0]["ref"] == "pdf-forms"
        read = await tool(client, "read_skill", name="pdf-forms")
        assert read["body"] == "\n# Forms\n"
        file = await tool(client, "read_skill_file", name="pdf-forms", path="scripts/fill.py")
        assert file["content"] == "print(1)\n"
        binary = await tool(client, "read_skill_file", name="pdf-forms", path="logo.png")
        assert binary["encoding"] == "base64"
        made = (await tool(client, "create_skill", name="fresh", description="New."))["skill"]
        assert (library / "fresh" / "SKILL.md").exists()
        changed = await tool(
            client, "update_skill", name="fresh", description="Two.", if_hash=made["content_hash"]
        )
        stale = await tool(
            client, "update_skill", name="fresh", description="3", if_hash=made["content_hash"]
        )
        assert stale["error"]["code"] == "skill_changed_on_disk"
        assert "Two." in (library / "fresh" / "SKILL.md").read_text()
        gone = await tool(
            client, "delete_skill", name="fresh", if_hash=changed["skill"]["content_hash"]
        )
        assert not (library / "fresh").exists()
        back = await tool(client, "restore_skill", name=gone["deleted"]["trash_id"])
        assert back["skill"]["ref"] == "fresh"
        assert (await tool(client, "sync_skills"))["complete"]

    talk(conversation, way)


@pytest.mark.both
def test_what_a_client_changes_is_kept_with_its_name(talk, library, registry, way):
    async def conversation(client):
        await tool(client, "create_skill", name="fresh", description="New.")

    talk(conversation, way)
    (first,) = registry.history("fresh")
    assert first.tool == "native create_skill"
    assert first.client.startswith("mcp ")


@pytest.mark.reads
def test_the_annotations_are_truthful(talk, library):
    async def conversation(client):
        tools = {one.name: one.annotations for one in (await client.list_tools()).tools}
        assert {n for n, a in tools.items() if a.read_only_hint} == {
            "list_skills",
            "search_skills",
            "read_skill",
            "read_skill_file",
        }
        assert {n for n, a in tools.items() if a.destructive_hint} == {
            "update_skill",
            "delete_skill",
        }
        assert not any(a.open_world_hint for a in tools.values())
        assert "search_skills" in client.instructions
        assert client.server_info.name == "skill-registry"

    talk(conversation)


@pytest.mark.reads
def test_who_asks_for_prompts_hears_that_there_are_none(talk, library, mode):
    async def conversation(client):
        assert (await client.list_prompts()).prompts == []
        with pytest.raises(MCPError, match="No prompt 'haiku'") as caught:
            await client.get_prompt("haiku")
        assert caught.value.code == -32602

    talk(conversation, ("http", mode))


@pytest.mark.reads
def test_a_read_only_server_has_no_tool_that_writes(talk, library):
    async def conversation(client):
        names = {one.name for one in (await client.list_tools()).tools}
        assert names == {"list_skills", "search_skills", "read_skill", "read_skill_file"}
        with pytest.raises(MCPError, match="No tool 'create_skill'"):
            await client.call_tool("create_skill", {"name": "x", "description": "D."})

    talk(conversation, ("http", "auto"), "--read-only")
    assert not (library / "x").exists()


@pytest.mark.reads
def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(talk, library, mode):
    async def conversation(client):
        for name in ("nothing", "", "x" * 10_000):
            with pytest.raises(MCPError, match="No tool") as caught:
                await client.call_tool(name, {})
            assert caught.value.code == -32602
            assert "search_skills" in caught.value.message
            assert len(caught.value.message) < 1000

    talk(conversation, ("http", mode))


@pytest.mark.parametrize(
    ("toolset", "name", "arguments", "words"),
    [
        ("basic", "get_skill", {"skill_name": "pdf-forms"}, "# Forms"),
        ("miniclaw", "read_skill", {"name": "pdf-forms"}, "# Forms"),
        ("ethos", "skill_view", {"name": "pdf-forms"}, "# Forms"),
        ("wave", "Skill", {"skill_name": "pdf-forms"}, "# Forms"),
    ],
)
def test_the_other_toolsets_are_served_too(talk, library, toolset, name, arguments, words):
    async def conversation(client):
        answer = await client.call_tool(name, arguments)
        assert not answer.is_error
        assert words in answer.content[0].text
        wrong = await client.call_tool(name, {})
        assert wrong.is_error

    talk(conversation, ("http", "auto"), "--toolset", toolset)


def test_what_a_contract_says_of_its_tools_reaches_the_client(talk, library):
    async def conversation(client):
        meta = {one.name: one.meta for one in (await client.list_tools()).tools}
        for name, most in (("skills_list", 10_000), ("skill_view", 30_000)):
            said = {"toolset": "skills", "maxResultChars": most, "capabilities": {}}
            assert said.items() <= meta[name].items()

    talk(conversation, ("stdio", "auto"), "--toolset", "ethos")
    talk(conversation, ("stdio", "legacy"), "--toolset", "ethos")


def test_toolsets_are_served_together_where_their_names_do_not_clash(talk, registry, library):
    async def conversation(client):
        names = {one.name for one in (await client.list_tools()).tools}
        assert {"Skill", "skill_view", "search_skills"} <= names

    talk(
        conversation,
        ("http", "auto"),
        "--toolset",
        "native",
        "--toolset",
        "wave",
        "--toolset",
        "ethos",
    )
    with pytest.raises(UsageProblem, match="both have a tool list_skills"):
        SkillServer(registry, ServerOptions(toolsets=("native", "basic")))


def test_the_skills_of_other_projects_are_not_served(talk, registry, library, tmp_path):
    from tests.conftest import write_skill

    for project in ("one", "two"):
        write_skill(tmp_path / project / "skills" / f"{project}-plan")
        registry.sync(str(tmp_path / project / "skills"), name=project, scope="project")

    async def conversation(client):
        (skill,) = (await client.list_tools()).tools
        assert "one-plan" in skill.description
        assert "two-plan" not in skill.description
        uris = {str(one.uri) for one in (await client.list_resources()).resources}
        assert "skill://one/one-plan/SKILL.md" in uris
        assert "skill://two/two-plan/SKILL.md" not in uris

    arguments = ("--toolset", "wave", "--workdir", str(tmp_path / "one"))
    talk(conversation, ("stdio", "auto"), *arguments)


def test_limits_hold_for_tools_and_resources_alike(talk, registry, library, tmp_path, skill):
    from tests.conftest import write_skill

    write_skill(tmp_path / "team" / "theirs")
    registry.sync(str(tmp_path / "team"), name="team", scope="team")

    async def conversation(client):
        assert (await tool(client, "list_skills"))["total"] == 1
        assert (await tool(client, "read_skill", name="pdf-forms"))["error"]["code"] == (
            "skill_not_found"
        )
        uris = [str(one.uri) for one in (await client.list_resources()).resources]
        assert uris == ["skill://team/theirs/SKILL.md"]
        with pytest.raises(Exception, match="No resource"):
            await client.read_resource("skill://mine/pdf-forms/SKILL.md")

    talk(conversation, ("http", "auto"), "--source", "team")
    talk(conversation, ("http", "auto"), "--scope", "team")
