"""Skills of one name and several owners are both listed, by every way to ask for them."""

import pytest

from registry.errors import SkillAmbiguous
from tests.conftest import write_skill
from tests.server.roles import World

pytestmark = pytest.mark.server


@pytest.fixture
def world(databases, tmp_path):
    """Alice and Mallory are writers who each have another skill named charts-tool."""
    made = World(databases, tmp_path)
    for role in ("alice", "mallory"):
        made.add(role, "write")
    made.add("reader", "read")
    made.add("boss", "admin")
    for role, source in (("alice", "hers"), ("mallory", "his")):
        write_skill(tmp_path / source / "charts-tool", description=f"Charts of {source}.")
        made.open(role).sync(str(tmp_path / source), name=source)
    yield made
    made.close()


def both_are_seen(world, refs=("hers/charts-tool", "his/charts-tool")):
    for role in ("alice", "mallory", "reader", "boss"):
        registry = world.open(role)
        assert sorted(skill.ref for skill in registry.list()) == sorted(refs), role
        with pytest.raises(SkillAmbiguous):
            registry.get("charts-tool")
        native = registry.toolset("native")
        assert native.call("read_skill", {"name": "charts-tool"})["error"]["code"] == (
            "skill_ambiguous"
        )
        assert sorted(hit.ref for hit in registry.search("charts")) == sorted(refs), role


def test_a_source_added_with_a_strong_setting_hides_no_skill_of_another_owner(world, tmp_path):
    mallory = world.open("mallory")
    mallory.remove_source("his")
    mallory.sync(str(tmp_path / "his"), name="his", scope="team")
    mallory.update_source("his", priority=5)
    both_are_seen(world)
