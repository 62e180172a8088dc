"""A client says where it works, and sees the skills of the project that is there."""

import mcp_types as types
import pytest

from registry.mcp.server import folders
from tests.conftest import write_skill
from tests.mcp.conftest import until_told
from tests.mcp.test_notices import heard

WAVE = ("--toolset", "wave", "--no-watch")


@pytest.fixture
def projects(registry, library, tmp_path):
    """Two projects, with a skill of the same name in them."""
    for project in ("one", "two"):
        for name in ("release", f"{project}-plan"):
            write_skill(tmp_path / project / ".claude" / "skills" / name)
        home = tmp_path / project / ".claude" / "skills"
        registry.sync(str(home), name=project, scope="project")
    return tmp_path


class Roots:
    """What a client answers; it counts how often it was asked."""

    def __init__(self, *paths):
        self.uris, self.asked = [path.as_uri() for path in paths], 0

    async def __call__(self, _context):
        self.asked += 1
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in self.uris])


async def described(client):
    (tool,) = (await client.list_tools()).tools
    return {
        name for name in ("one-plan", "two-plan", "skill-0") if f"**{name}**" in tool.description
    }


def test_the_roots_of_a_client_decide_which_projects_it_sees(talk, projects):
    (projects / "one" / "a folder").mkdir()
    roots = Roots(projects / "one" / "a folder")

    async def conversation(client):
        assert await described(client) == {"one-plan", "skill-0"}
        uris = {str(one.uri) for one in (await client.list_resources()).resources}
        assert "skill://one/release/SKILL.md" in uris
        assert "skill://two/release/SKILL.md" not in uris
        answer = await client.call_tool("Skill", {"skill_name": "release"})
        assert str(projects / "one") in answer.content[0].text
        assert (await client.call_tool("Skill", {"skill_name": "two-plan"})).is_error

    talk(
        conversation,
        ("stdio", "legacy"),
        *WAVE,
        "--workdir",
        str(projects / "two"),
        list_roots_callback=roots,
    )
    assert roots.asked == 1


@pytest.mark.filterwarnings("ignore:The roots capability is deprecated")
def test_other_roots_are_asked_for_when_the_client_says_so_and_lists_are_told_to_have_changed(
    talk, projects
):
    roots, messages = Roots(projects / "one"), []

    async def handler(message):
        messages.append(message)

    async def conversation(client):
        assert await described(client) == {"one-plan", "skill-0"}
        roots.uris = [(projects / "two").as_uri()]
        await client.send_roots_list_changed()
        wanted = {"ToolListChangedNotification", "ResourceListChangedNotification"}
        await until_told(lambda: None, lambda: wanted <= set(heard(messages)))
        assert await described(client) == {"two-plan", "skill-0"}

    talk(conversation, ("stdio", "legacy"), *WAVE, handler=handler, list_roots_callback=roots)
    assert roots.asked == 2


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
def test_changes_in_the_project_are_told_that_its_roots_lead_to(talk, projects):
    roots, messages = Roots(projects / "one"), []
    document = projects / "one" / ".claude" / "skills" / "release" / "SKILL.md"

    async def handler(message):
        messages.append(message)

    def change():
        with document.open("a") as file:
            file.write("By hand.\n")

    async def conversation(client):
        await client.subscribe_resource("skill://one/release/SKILL.md")
        await until_told(change, lambda: "ResourceUpdatedNotification" in heard(messages))

    talk(conversation, ("stdio", "legacy"), handler=handler, list_roots_callback=roots)


@pytest.mark.parametrize("callback", [None, "empty", "failing"])
def test_a_client_without_roots_sees_from_where_the_server_was_told_to(talk, projects, callback):
    asked = []

    async def fail(_context):
        asked.append("failing")
        raise RuntimeError("no")

    empty = Roots()
    more = {"empty": {"list_roots_callback": empty}, "failing": {"list_roots_callback": fail}}

    async def conversation(client):
        assert await described(client) == {"two-plan", "skill-0"}

    arguments = (*WAVE, "--workdir", str(projects / "two"))
    talk(conversation, ("stdio", "legacy"), *arguments, **more.get(callback, {}))
    assert (empty.asked, len(asked)) == (callback == "empty", callback == "failing")


def test_a_client_over_http_may_be_anywhere_and_is_not_asked(talk, projects):
    roots = Roots(projects / "one")

    async def conversation(client):
        assert await described(client) == {"two-plan", "skill-0"}

    arguments = (*WAVE, "--workdir", str(projects / "two"))
    talk(conversation, ("http", "legacy"), *arguments, list_roots_callback=roots)
    assert roots.asked == 0


def test_only_folders_of_this_machine_are_roots():
    uris = [
        "file:///work/a%20b",
        "file://localhost/work",
        "file://other/share",
        "https://example.org/work",
        "file:relative",
        "file:///nul%00l",
        "file://[broken",
    ]
    assert folders(uris) == ["/work/a b", "/work"]
