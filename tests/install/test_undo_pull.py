"""A pull is taken back: what came goes, what it replaced or removed comes back, or nothing is."""

import json
import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from registry.db.read.history import last_changes
from registry.errors import ChangeNotUndone, NothingToUndo
from registry.install.adopt import adopt
from registry.install.plan import InstallPlan, InstallTransaction
from registry.install.pull import pull, restore_from_lock
from registry.install.targets import InstallOptions, InstallTarget
from registry.install.undo import last_change
from tests.install.places import Place, tree


def undo(library):
    found = last_change(library.core)
    found.carry_out()
    return found.change.kind


def changes(library):
    return [one.kind for one in last_changes(library.core.reader, library.core.host)]


def lock(project):
    path = project / "skills.lock.json"
    return path.read_bytes() if path.exists() else None


@pytest.mark.both
def test_a_pull_of_several_skills_is_one_change_and_all_that_came_goes(library, place, project):
    place.pull("alpha", "beta")
    found = last_change(library.core)
    assert (found.change.kind, found.change.name) == ("pull", "alpha, beta")
    assert found.change.folder == str(project)
    assert found.effects == [("alpha", "removed", 2), ("beta", "removed", 2)]
    found.carry_out()
    assert tree(project) == {}
    assert place.locked == {}
    with pytest.raises(NothingToUndo):
        last_change(library.core)


@pytest.mark.both
def test_what_a_pull_replaced_comes_back_and_the_lock_with_it(library, place, project):
    place.pull("alpha", "beta")
    before = tree(project), lock(project)
    library.update("alpha", description="Two.", files={"run": None, "new": b"new"})
    assert place.update() == [("alpha", "updated"), ("beta", "unchanged")]
    found = last_change(library.core)
    assert found.effects == [("alpha", "replaced", 2)]
    found.carry_out()
    assert (tree(project), lock(project)) == before
    assert [undo(library), undo(library)] == ["update", "pull"]
    assert tree(project) == {}


def test_what_was_removed_comes_back(library, place, project):
    place.pull("alpha")
    before = tree(project), lock(project)
    place.remove("alpha")
    assert last_change(library.core).effects == [("alpha", "returned", 2)]
    assert undo(library) == "pull"
    assert (tree(project), lock(project)) == before


def test_agents_that_were_added_lose_it_again(library, place, project):
    place.pull("alpha", agents=["codex"])
    before = tree(project), lock(project)
    assert place.pull("alpha", agents=["claude-code", "windsurf"]) == [("alpha", "updated")]
    assert (project / ".claude/skills/alpha").is_symlink()
    undo(library)
    assert (tree(project), lock(project)) == before


def test_for_all_projects_it_is_the_home_folder(library, tmp_path):
    Place(library, InstallTarget.everywhere()).pull("alpha")
    assert (tmp_path / "home/.claude/skills/alpha").is_symlink()
    undo(library)
    assert not os.path.lexists(tmp_path / "home/.claude/skills/alpha")
    assert not (tmp_path / "home/.agents/skills/alpha").exists()


def test_into_a_folder_it_is_that_folder(library, tmp_path):
    library.pull([library.resolve("alpha")], str(tmp_path / "to"))
    undo(library)
    assert not (tmp_path / "to").exists()


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.both
def test_the_folders_and_the_lock_file_that_a_pull_created_are_removed(library, place, project):
    (project / ".claude").mkdir()
    before = everything(project)
    place.pull("alpha", agents=["claude-code"])
    first = everything(project)
    place.pull("alpha", "beta", agents=["claude-code", "codex"])
    undo(library)
    assert everything(project) == first
    undo(library)
    assert everything(project) == before


def test_created_folders_with_other_files_and_an_earlier_lock_file_stay(library, place, project):
    place.pull("alpha")
    place.remove("alpha")
    shutil.rmtree(project / ".claude")
    place.pull("beta")
    (project / ".claude/settings.json").touch()
    undo(library)
    assert os.listdir(project / ".claude") == ["settings.json"]
    assert json.loads(lock(project))["skills"] == {}


def test_an_undo_removes_no_folder_behind_a_link(library, place, project):
    place.pull("alpha", agents=["claude-code"])
    (project / ".claude").rename(project / "moved")
    (project / ".claude").symlink_to("moved")
    undo(library)
    assert os.listdir(project / "moved/skills") == []
    assert (project / ".claude").is_symlink()


def test_an_undo_keeps_the_lock_file_of_later_pulls(library, place, project):
    place.pull("alpha", agents=["claude-code"])
    place.pull("beta", agents=["claude-code"])
    last_change(library.core).forget()
    undo(library)
    assert list(place.locked) == ["beta"]
    assert os.listdir(project / ".claude/skills") == ["beta"]


@pytest.mark.parametrize("how", ["new", "replaced"])
def test_an_edit_made_since_is_refused_and_nothing_happens(library, place, project, how):
    place.pull("alpha", "beta")
    if how == "replaced":
        library.update("alpha", description="Two.")
        library.update("beta", description="Two.")
        place.update()
    (project / ".agents/skills/beta/SKILL.md").write_text("By hand.\n")
    before = tree(project), lock(project)
    found = last_change(library.core)
    for attempt in (found.diff, found.carry_out):
        with pytest.raises(ChangeNotUndone, match=r"beta was edited since \(SKILL.md differs"):
            attempt()
    assert (tree(project), lock(project)) == before
    assert changes(library)[0] == "pull"


def test_an_edit_in_a_place_that_came_is_refused(library, place, project):
    place.pull("alpha", agents=["codex"])
    place.pull("alpha", agents=["claude-code"], mode="copy")
    document = project / ".claude/skills/alpha/SKILL.md"
    document.write_text("By hand.\n")
    with pytest.raises(ChangeNotUndone, match="edited since"):
        undo(library)
    assert document.read_text() == "By hand.\n"


def test_something_in_the_way_of_what_comes_back_is_refused(library, place, project):
    place.pull("alpha")
    place.remove("alpha")
    (project / ".agents/skills/alpha").mkdir()
    before = tree(project), lock(project)
    with pytest.raises(ChangeNotUndone, match="edited since"):
        undo(library)
    assert (tree(project), lock(project)) == before


def test_what_was_pulled_or_removed_since_is_refused(library, place, project):
    place.pull("alpha")
    library.update("alpha", description="Two.")
    place.update()
    last_change(library.core).forget()
    last_change(library.core).forget()
    with pytest.raises(ChangeNotUndone, match="alpha was pulled or removed there since"):
        undo(library)
    shutil.rmtree(project)
    with pytest.raises(ChangeNotUndone, match="no lock in"):
        undo(library)
    assert not project.exists()


def test_where_the_files_of_before_are_not_kept_nothing_happens(library, place, project):
    place.pull("alpha", "beta")
    library.update("alpha", description="Two.")
    library.update("beta", description="Two.")
    place.update()
    library.prune(keep=1)
    before = tree(project), lock(project)
    with pytest.raises(ChangeNotUndone, match="files that alpha had before are not kept"):
        undo(library)
    assert (tree(project), lock(project)) == before


@pytest.mark.parametrize("how", ["theirs", "force"])
def test_an_edit_or_a_folder_of_ones_own_that_a_pull_replaced_comes_back(
    library, place, project, how
):
    document = project / ".agents/skills/alpha/SKILL.md"
    if how == "theirs":
        place.pull("alpha")
    else:
        document.parent.mkdir(parents=True)
    document.write_text("By hand.\n")
    before = tree(project), place.locked
    library.update("alpha", description="Two.")
    place.pull("alpha", **{how: True})
    assert tree(project) != before[0]
    undo(library)
    assert (tree(project), place.locked) == before


def test_an_edit_in_a_folder_without_agents_comes_back(library, place, project):
    place.pull("alpha", agents=())
    (project / "alpha/SKILL.md").write_text("By hand.\n")
    before = tree(project), lock(project)
    place.update(theirs=True)
    assert tree(project) != before[0]
    undo(library)
    assert (tree(project), lock(project)) == before


def test_an_edit_that_was_removed_comes_back_in_each_place(library, place, project):
    place.pull("alpha", mode="copy")
    for agent in (".agents", ".claude"):
        (project / agent / "skills/alpha/SKILL.md").write_text(f"{agent} by hand.\n")
    before = tree(project), lock(project)
    place.remove("alpha", force=True)
    assert tree(project) == {}
    shutil.rmtree(project / ".agents")
    undo(library)
    assert (tree(project), lock(project)) == before


def test_a_link_in_an_edit_is_not_kept_and_so_nothing_happens(library, place, project):
    place.pull("alpha")
    (project / ".agents/skills/alpha/link").symlink_to("SKILL.md")
    place.update(theirs=True)
    with pytest.raises(ChangeNotUndone, match="the replaced files of alpha are not kept"):
        undo(library)


def test_the_same_files_that_lay_there_before_a_pull_stay(library, place, project, root):
    shutil.copytree(root / "alpha", project / ".agents/skills/alpha")
    place.pull("alpha", adopt=True)
    with pytest.raises(ChangeNotUndone, match="not kept"):
        undo(library)
    assert (project / ".agents/skills/alpha/SKILL.md").exists()


def test_what_changes_nothing_is_no_change(library, place, project):
    place.pull("alpha")
    assert changes(library) == ["pull"]
    place.pull("alpha")
    place.pull("beta", dry_run=True)
    restore_from_lock(library.core, place.target)
    place.update()
    assert changes(library) == ["pull"]


def repair(library, place, how):
    if how == "frozen":
        return place.told(restore_from_lock(library.core, place.target))
    return place.update() if how == "update" else place.pull("alpha", "beta")


@pytest.mark.both
@pytest.mark.parametrize("how", ["frozen", "update", "named"])
def test_a_pull_that_restores_a_missing_skill_is_undone_and_no_earlier_pull(
    library, place, project, how
):
    place.pull("alpha", "beta")
    shutil.rmtree(project / ".agents/skills/alpha")
    (project / ".claude/skills/alpha").unlink()
    before = tree(project), lock(project)
    assert repair(library, place, how) == [("alpha", "added"), ("beta", "unchanged")]
    assert changes(library) == ["pull", "pull"]
    found = last_change(library.core)
    assert (found.change.name, found.effects) == ("alpha", [("alpha", "removed", 2)])
    found.carry_out()
    assert (tree(project), lock(project)) == before
    assert undo(library) == "pull"
    assert tree(project) == {}


@pytest.mark.parametrize("gone", [".claude/skills/alpha", ".agents/skills/alpha"])
@pytest.mark.parametrize("mode", ["link", "copy"])
def test_only_the_restored_folder_or_link_is_removed_again(library, place, project, gone, mode):
    place.pull("alpha", mode=mode)
    if (project / gone).is_symlink():
        (project / gone).unlink()
    else:
        shutil.rmtree(project / gone)
    before = tree(project), lock(project)
    assert tree(project) != {}
    place.update()
    assert last_change(library.core).effects == [("alpha", "removed", 1)]
    undo(library)
    assert (tree(project), lock(project)) == before


def test_an_edit_of_a_restored_skill_is_kept(library, place, project):
    place.pull("alpha")
    shutil.rmtree(project / ".agents/skills/alpha")
    place.update()
    document = project / ".agents/skills/alpha/SKILL.md"
    document.write_text("By hand.\n")
    with pytest.raises(ChangeNotUndone, match="edited since"):
        undo(library)
    assert document.read_text() == "By hand.\n"


def test_a_restored_skill_that_is_missing_again_needs_no_undo(library, place, project):
    place.pull("alpha")
    shutil.rmtree(project / ".agents/skills/alpha")
    place.update()
    shutil.rmtree(project / ".agents/skills/alpha")
    before = tree(project), lock(project)
    assert last_change(library.core).effects == []
    undo(library)
    assert (tree(project), lock(project)) == before


def test_the_undo_of_a_restored_skill_needs_no_stored_files(library, place, project, root):
    place.pull("alpha")
    shutil.rmtree(project / ".agents/skills/alpha")
    before = tree(project), lock(project)
    place.update()
    library.update("alpha", description="Two.")
    library.prune(keep=1)
    assert undo(library) == "pull"
    assert (tree(project), lock(project)) == before


@pytest.mark.both
@pytest.mark.parametrize("how", ["link", "copy"])
def test_a_newer_version_in_place_of_a_missing_one_leaves_no_folder(library, place, project, how):
    place.pull("alpha", mode=how)
    shutil.rmtree(project / ".agents/skills/alpha")
    before = tree(project), lock(project)
    library.update("alpha", description="Two.")
    place.update()
    fates = [("alpha", "removed", 1)] + [("alpha", "replaced", 1)] * (how == "copy")
    assert last_change(library.core).effects == fates
    undo(library)
    assert (tree(project), lock(project)) == before


def test_a_newer_version_where_all_was_missing_is_removed(library, place, project):
    place.pull("alpha", agents=["codex"])
    shutil.rmtree(project / ".agents/skills/alpha")
    before = tree(project), lock(project)
    library.update("alpha", description="Two.")
    place.update()
    assert last_change(library.core).effects == [("alpha", "removed", 1)]
    undo(library)
    assert (tree(project), lock(project)) == before == ({}, before[1])


def test_the_removal_of_a_missing_skill_gives_its_entry_back_and_no_folder(library, place, project):
    place.pull("alpha")
    shutil.rmtree(project / ".agents")
    (project / ".claude/skills/alpha").unlink()
    before = tree(project), lock(project)
    place.remove("alpha")
    assert last_change(library.core).effects == [("alpha", "replaced", 0)]
    undo(library)
    assert (tree(project), lock(project)) == before


def test_a_folder_that_the_pull_added_is_removed_and_the_other_is_not_counted(
    library, place, project
):
    place.pull("alpha", agents=["claude-code"])
    before = tree(project), lock(project)
    place.pull("alpha", agents=["windsurf"])
    assert last_change(library.core).effects == [("alpha", "removed", 1)]
    undo(library)
    assert (tree(project), lock(project)) == before


def test_what_is_adopted_is_no_pull(library, place, project, root):
    shutil.copytree(root / "alpha", project / ".agents/skills/alpha")
    facts = {"source": "./x", "sourceType": "local", "computedHash": "0" * 64}
    (project / "skills-lock.json").write_text(
        json.dumps({"version": 1, "skills": {"alpha": facts}})
    )
    assert [one.state for one in adopt(library.core, place.target)] == ["added"]
    assert changes(library) == []


def test_the_later_of_a_pull_and_another_change_comes_first(library, place):
    place.pull("alpha")
    library.update("alpha", description="Two.")
    place.pull("beta")
    assert [undo(library) for _ in range(3)] == ["pull", "update", "pull"]


@pytest.mark.both
def test_what_a_stranger_writes_down_is_no_pull_of_ours(library, place, tmp_path):
    place.pull("alpha")
    with library.core.writer.transaction() as connection:
        sql = f"UPDATE changes SET folder = '{tmp_path}' RETURNING 1"
        assert len(connection.exec_driver_sql(sql).all()) == 1
    with pytest.raises(NothingToUndo):
        last_change(library.core)


def test_a_pull_is_made_also_where_it_can_not_be_written_down(
    library, place, database, monkeypatch
):
    for module in ("backend", "dialect"):
        monkeypatch.setattr(f"registry.db.sqlite.{module}.BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert place.pull("alpha") == [("alpha", "added")]
    assert changes(library) == []
    assert place.check() == {"alpha": "unchanged"}


def test_an_undo_that_was_killed_is_gone_on_with(library, place, project, monkeypatch):
    place.pull("alpha", "beta")

    class Killed(BaseException):
        pass

    real = InstallPlan.remove

    def remove(self, folder):
        if folder == "beta" and isinstance(self, InstallTransaction):
            raise Killed
        return real(self, folder)

    with monkeypatch.context() as patch:
        patch.setattr(InstallPlan, "remove", remove)
        with pytest.raises(Killed):
            undo(library)
    assert list(place.locked) == ["beta"]
    assert undo(library) == "pull"
    assert (tree(project), changes(library)) == ({}, [])


def test_of_a_pull_that_failed_in_the_middle_what_came_is_taken_back(
    library, place, project, monkeypatch
):
    real = InstallPlan.pull

    def fail(self, folder, *more):
        if folder == "beta":
            raise OSError(28, "No space left on device")
        return real(self, folder, *more)

    with monkeypatch.context() as patch:
        patch.setattr(InstallPlan, "pull", fail)
        skills = [library.resolve(name) for name in ("alpha", "beta")]
        with pytest.raises(Exception, match="No space left"):
            pull(library.core, skills, place.target, InstallOptions(agents=["codex"]))
    assert last_change(library.core).effects == [("alpha", "removed", 1)]
    undo(library)
    assert tree(project) == {}


def test_an_edit_of_a_skill_of_which_the_lock_alone_changed_is_no_hindrance(
    library, place, project, root
):
    place.pull("alpha", "beta")
    first = place.locked
    (root / "deep").mkdir()
    (root / "beta").rename(root / "deep" / "beta")
    library.sync()
    library.update("alpha", description="Two.")
    assert place.update() == [("alpha", "updated"), ("beta", "unchanged")]
    assert place.locked["beta"] != first["beta"]
    (project / ".agents/skills/beta/SKILL.md").write_text("By hand.\n")
    found = last_change(library.core)
    assert (found.change.name, found.effects) == ("alpha", [("alpha", "replaced", 2)])
    found.carry_out()
    assert place.locked == first
    assert (project / ".agents/skills/beta/SKILL.md").read_text() == "By hand.\n"


def test_an_edit_that_gave_way_to_what_was_pulled_before_is_not_passed_over(
    library, place, project
):
    place.pull("alpha")
    document = project / ".agents/skills/alpha/SKILL.md"
    document.write_text("By hand.\n")
    assert place.update(theirs=True) == [("alpha", "updated")]
    assert last_change(library.core).effects == [("alpha", "replaced", 2)]
    undo(library)
    assert document.read_text() == "By hand.\n"
    assert place.check() == {"alpha": "edited"}
