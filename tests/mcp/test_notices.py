"""Whoever changes a skill, clients hear of it."""

from itertools import count

import anyio
import pytest

from tests import program
from tests.mcp.conftest import until_told


def heard(messages):
    return [type(getattr(message, "root", message)).__name__ for message in messages]


@pytest.fixture
def change(library, environment):
    """Change something by hand, or as another process; something else each time."""
    numbers = count()

    def run(how):
        name = f"fresh-{next(numbers)}"
        document = library / "skill-0" / "SKILL.md"
        if how == "edit":
            with document.open("a") as file:
                file.write("By hand.\n")
        elif how == "add":
            (library / name).mkdir()
            (library / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: New.\n---\n")
        else:
            ran = program.run(["create", name, "--description", "New."], environ=environment)
            assert ran.status == 0, ran.err

    return run


@pytest.mark.both
@pytest.mark.parametrize("how", ["add", "other process"])
@pytest.mark.parametrize("transport", [pytest.param("stdio", marks=pytest.mark.file), "http"])
def test_older_clients_are_told_of_new_skills_and_of_the_tools_new_description(
    talk, library, change, how, transport
):
    messages = []

    async def handler(message):
        messages.append(message)

    async def conversation(client):
        await client.list_tools()
        wanted = {"ToolListChangedNotification", "ResourceListChangedNotification"}
        await until_told(lambda: change(how), lambda: wanted <= set(heard(messages)))
        assert "**fresh-0**" in (await client.list_tools()).tools[0].description

    talk(conversation, (transport, "legacy"), "--toolset", "wave", handler=handler)


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_older_clients_are_told_of_the_skills_they_subscribed_to(talk, library, change, transport):
    messages = []

    async def handler(message):
        messages.append(message)

    async def conversation(client):
        uri = "skill://mine/skill-0/SKILL.md"
        await client.subscribe_resource(uri)
        await until_told(
            lambda: change("edit"), lambda: "ResourceUpdatedNotification" in heard(messages)
        )
        (part,) = (await client.read_resource(uri)).contents
        assert part.text.endswith("By hand.\n")

    talk(conversation, (transport, "legacy"), handler=handler)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_clients_that_listen_are_told(talk, library, change, transport):
    async def conversation(client):
        uri = "skill://mine/skill-0/SKILL.md"
        events = []
        async with client.listen(
            tools_list_changed=True, resources_list_changed=True, resource_subscriptions=[uri]
        ) as stream:

            async def collect():
                async for event in stream:
                    events.append(type(event).__name__)  # noqa: PERF401  # seen one by one

            async with anyio.create_task_group() as group:
                group.start_soon(collect)

                def both():
                    change("edit")
                    change("add")

                await until_told(both, lambda: len(set(events)) >= 3)
                group.cancel_scope.cancel()

    talk(conversation, (transport, "auto"), "--toolset", "wave")


def test_without_watching_a_read_still_is_what_is_on_disk(talk, library, change):
    async def conversation(client):
        change("edit")
        answer = await client.call_tool("read_skill", {"name": "skill-0"})
        assert answer.structured_content["body"].endswith("By hand.\n")

    talk(conversation, ("http", "auto"), "--no-watch")
