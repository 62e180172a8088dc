"""A skill is renamed on disk and in the database as one change, and keeps its history."""

import pytest

from registry.changes.undo import Undo
from registry.errors import ChangeRefused, InvalidName, SkillChangedOnDisk, SkillExists
from tests.conftest import write_skill


@pytest.fixture
def alpha(registry, root):
    folder = write_skill(root / "group" / "alpha", description="One.")
    (folder / "run.sh").write_text("echo 1\n")
    registry.sync(str(root), name="mine")
    return folder


@pytest.mark.both
def test_the_folder_and_the_name_change_together_and_the_history_stays(registry, alpha):
    before = registry.get("alpha")
    registry.update("alpha", description="Two.")
    renamed = registry.rename("alpha", "beta")
    folder = alpha.with_name("beta")
    assert (renamed.name, renamed.ref, renamed.path) == ("beta", "beta", str(folder))
    assert renamed.created_at == before.created_at
    assert "name: beta\n" in (folder / "SKILL.md").read_text()
    assert (folder / "run.sh").read_text() == "echo 1\n"
    assert not alpha.exists()
    assert [one.name for one in registry.list()] == ["beta"]
    assert len(registry.history("beta")) == 3
    assert registry.trash() == []
    report = registry.sync()
    assert (report.unchanged, report.added, report.removed) == (1, (), ())


@pytest.mark.both
def test_a_rename_is_undone_to_the_byte(registry, alpha):
    before = {path.name: path.read_bytes() for path in alpha.iterdir()}
    registry.rename("alpha", "beta")
    found = Undo.of(registry.core)
    assert found.change.kind == "rename"
    found.carry_out()
    assert {path.name: path.read_bytes() for path in alpha.iterdir()} == before
    assert not alpha.with_name("beta").exists()
    assert registry.get("alpha").name == "alpha"


def test_what_is_in_the_way_is_refused_and_nothing_changes(registry, alpha, root):
    write_skill(root / "taken")
    registry.sync()
    with pytest.raises(SkillExists):
        registry.rename("alpha", "taken")
    alpha.with_name("blocked").mkdir()
    with pytest.raises(SkillExists):
        registry.rename("alpha", "blocked")
    with pytest.raises(InvalidName):
        registry.rename("alpha", "Not Valid")
    write_skill(alpha / "inner")
    registry.sync()
    with pytest.raises((ChangeRefused, SkillChangedOnDisk)):
        registry.rename("alpha", "beta")
    assert alpha.is_dir()
    assert not alpha.with_name("beta").exists()


def test_an_edit_by_hand_since_the_last_sync_is_not_renamed_away(registry, alpha):
    with (alpha / "SKILL.md").open("a") as document:
        document.write("By hand.\n")
    with pytest.raises(SkillChangedOnDisk):
        registry.rename("alpha", "beta")
    assert (alpha / "SKILL.md").read_text().endswith("By hand.\n")
