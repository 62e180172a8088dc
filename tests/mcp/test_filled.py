"""A server of a registry with nothing in it, or of none yet, sees what another process puts there."""

import anyio
import pytest

from tests import program
from tests.conftest import write_skill

TOOLS = {"native": "list_skills", "ethos": "skills_list", "miniclaw": "list_skills"}


@pytest.fixture
def filled(root, environment):
    """Register a folder with a skill, as another process."""

    def fill():
        write_skill(root / "late-comer", description="Comes late.")
        ran = program.run(["sync", str(root), "--name", "mine"], environ=environment)
        assert ran.status == 0, ran.err

    return fill


@pytest.fixture
def nothing(kind, database, environment, tmp_path):
    """A registry with nothing in it."""
    if kind == "an empty one":
        (tmp_path / "empty").mkdir()
        ran = program.run(["sync", str(tmp_path / "empty")], environ=environment)
        assert ran.status == 0, ran.err
    return kind


@pytest.mark.both
@pytest.mark.parametrize(
    ("kind", "transport", "toolset", "more"),
    [
        ("no database", "stdio", "native", []),
        pytest.param("an empty one", "http", "native", [], marks=pytest.mark.file),
        pytest.param("an empty one", "stdio", "ethos", ["--no-watch"], marks=pytest.mark.file),
        ("no database", "http", "miniclaw", ["--no-watch"]),
    ],
)
def test_what_another_process_puts_there_is_seen_at_once(
    talk, nothing, filled, transport, toolset, more
):
    async def conversation(client):
        before = await client.call_tool(TOOLS[toolset], {})
        await anyio.to_thread.run_sync(filled)
        after = await client.call_tool(TOOLS[toolset], {})
        return str(before.content), str(after.content)

    before, after = talk(conversation, (transport, "auto"), "--toolset", toolset, *more)
    assert "late-comer" not in before
    assert "late-comer" in after


@pytest.mark.parametrize(
    ("kind", "transport"), [("no database", "http"), ("an empty one", "stdio")]
)
def test_clients_are_told_of_the_first_skills(talk, nothing, filled, transport):
    told = anyio.Event()

    async def handler(message):
        if "ResourceListChanged" in type(getattr(message, "root", message)).__name__:
            told.set()

    async def conversation(client):
        assert (await client.list_resources()).resources == []
        await anyio.to_thread.run_sync(filled)
        with anyio.fail_after(60):
            await told.wait()
        return [one.name for one in (await client.list_resources()).resources]

    (listed,) = [talk(conversation, (transport, "legacy"), handler=handler)]
    assert any("late-comer" in name for name in listed)


def test_a_server_of_no_database_makes_none(talk, database, tmp_path):
    async def conversation(client):
        return await client.call_tool("list_skills", {})

    assert not talk(conversation, ("stdio", "auto")).is_error
    assert not (tmp_path / "state").exists()
