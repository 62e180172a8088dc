"""A source that lies inside a skill of another one."""

import pytest

from registry.errors import ChangeRefused
from tests.conftest import write_skill


@pytest.fixture
def nested(registry, root):
    """The skill ``alpha``, and in its folder a source with the skill ``beta``."""
    inner = root / "alpha" / "inner"
    write_skill(root / "alpha")
    write_skill(inner / "beta")
    (inner / "notes.txt").write_text("no part of alpha")
    registry.add_source(str(root), name="mine")
    registry.add_source(str(inner), name="inner")
    registry.sync()
    return inner


def test_a_change_of_a_skill_is_none_of_the_source_inside_it(registry, nested):
    assert [file.path for file in registry.get("alpha").files] == ["SKILL.md"]
    (nested / "notes.txt").write_text("edited by hand")
    registry.update("alpha", description="New.")
    registry.update("alpha", files={"a.txt": b"a", "b.txt": b"b"})
    assert registry.get("alpha").description == "New."
    assert (nested / "notes.txt").read_text() == "edited by hand"
    report = registry.sync(verify=True)
    assert (report.added, report.updated, report.removed, report.unchanged) == ((), (), (), 2)


def test_a_skill_is_not_deleted_with_the_source_inside_it(registry, nested):
    with pytest.raises(ChangeRefused, match="it contains another source"):
        registry.delete("alpha")
    assert (nested / "beta" / "SKILL.md").exists()
    registry.remove_source("inner")
    with pytest.raises(ChangeRefused, match="it contains other skills"):
        registry.delete("alpha")
    assert (nested / "beta" / "SKILL.md").exists()
