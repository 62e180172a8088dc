"""An agent's process that only reads starts fast and stays small: it imports nothing heavy."""

import json

import pytest

from tests.conftest import interpreted

HEAVY = ["sqlalchemy", "alembic", "rich", "mcp", "yaml"]

SCRIPT = """
import json, sys
from registry import Settings, SkillRegistry
database, toolset, calls, heavy = sys.argv[1:]
with SkillRegistry.open(database, settings=Settings()) as registry:
    tools = registry.toolset(toolset)
    tools.tools()
    for name, arguments, expected in json.loads(calls):
        answer = json.dumps(tools.call(name, arguments))
        assert expected in answer, answer
print([name for name in heavy.split(",") if name in sys.modules])
"""

IDLE_SYNC = """
import sys
from registry import SkillRegistry
with SkillRegistry.open(sys.argv[1]) as registry:
    registry.list(); registry.search("alpha"); registry.get("alpha"); registry.tags()
    registry.stats(); registry.sources(); registry.why("alpha")
    report = registry.sync()
assert report.unchanged == 1
print([name for name in sys.argv[2:] if name in sys.modules])
"""

READS = {
    "native": [
        ["list_skills", {}, "alpha"],
        ["search_skills", {"query": "step"}, "alpha"],
        ["read_skill", {"name": "alpha"}, "Step by step."],
    ],
    "basic": [
        ["list_skills", {}, "alpha"],
        ["get_skill", {"skill_name": "alpha"}, "Step by step."],
    ],
    "miniclaw": [
        ["list_skills", {}, "alpha"],
        ["read_skill", {"name": "alpha"}, "Step by step."],
    ],
    "ethos": [
        ["skills_list", {}, "alpha"],
        ["skill_view", {"name": "alpha"}, "Step by step."],
    ],
    "wave": [["Skill", {"skill_name": "alpha"}, "Step by step."]],
}


def heavy_imports(database, toolset):
    """Return what a process of its own imports to read through a toolset, of what is heavy."""
    arguments = [database, toolset, json.dumps(READS[toolset]), ",".join(HEAVY)]
    run = interpreted("-c", SCRIPT, *arguments)
    assert run.stderr == ""
    return run.stdout.strip()


@pytest.mark.file
def test_reading_and_an_idle_sync_import_nothing_heavy(registry, root, skill, database, settled):
    skill("alpha")
    registry.sync(str(root))
    run = interpreted("-c", IDLE_SYNC, database, *HEAVY)
    assert run.stdout.strip() == "[]", run.stderr


@pytest.mark.file
@pytest.mark.parametrize("toolset", list(READS))
def test_reading_through_a_toolset_imports_nothing_heavy(
    registry, root, skill, database, settled, toolset
):
    skill("alpha")
    registry.sync(str(root))
    assert heavy_imports(str(database), toolset) == "[]"


@pytest.mark.server
@pytest.mark.parametrize("toolset", ["native", "miniclaw"])
def test_reading_from_a_server_imports_no_more(server_database, root, skill, toolset):
    from registry import Settings, SkillRegistry

    skill("alpha")
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
    assert heavy_imports(server_database, toolset) == "[]"
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        # What was read was counted, too.
        assert registry.core.reader.rows("SELECT read FROM usage") == [(1,)]
