"""The last change is taken back: what this user did, while it is as that left it."""

import shutil
from functools import partial

import pytest

from registry.api import SkillRegistry
from registry.changes import commit, trash
from registry.changes.undo import Undo
from registry.db.audit_context import audit_context
from registry.db.write import history
from registry.errors import ChangeNotUndone, NothingToUndo, SkillChangedOnDisk, SkillExists
from registry.settings import Settings
from tests.changes.dying import dies, slipping_in
from tests.conftest import write_skill


@pytest.fixture
def alpha(registry, root):
    folder = write_skill(root / "alpha", description="One.")
    (folder / "run.sh").write_text("echo 1\n")
    registry.sync(str(root), name="mine")
    return folder


def undo(registry):
    found = Undo.of(registry.core)
    found.carry_out()
    return found.change.kind


def names(registry):
    return sorted(skill.name for skill in registry.list())


def test_a_created_skill_goes_to_the_trash(registry, alpha):
    registry.create("beta", description="New.")
    assert undo(registry) == "create"
    assert names(registry) == ["alpha"]
    assert [one.name for one in registry.trash()] == ["beta"]


@pytest.mark.both
def test_a_program_undoes_its_calls_one_by_one(registry, alpha, tmp_path):
    registry.create("beta", description="New.")
    registry.update("alpha", description="Two.")
    registry.pull([registry.resolve("alpha")], str(tmp_path / "to"))
    assert [one.kind for one in registry.undo()] == ["pull"]
    assert not (tmp_path / "to" / "alpha").exists()
    assert [(one.kind, one.name) for one in registry.undo()] == [("update", "alpha")]
    assert registry.get("alpha").description == "One."
    assert [(one.kind, one.name) for one in registry.undo()] == [("create", "beta")]
    assert names(registry) == ["alpha"]
    with pytest.raises(NothingToUndo):
        registry.undo()


@pytest.mark.both
def test_calls_of_tools_in_one_run_of_a_server_are_taken_back_one_by_one(registry, alpha):
    with audit_context("mcp", command="0123456789abcdef"):
        tools = registry.toolset("native")
        for text in ("Two.", "Three."):
            tools.call("update_skill", {"name": "alpha", "description": text})
    registry.undo()
    assert registry.get("alpha").description == "Two."


def test_an_update_of_several_files_is_taken_back(registry, alpha):
    before = {path.name: path.read_bytes() for path in alpha.iterdir()}
    registry.update("alpha", description="Two.", files={"run.sh": None, "new.txt": b"new"})
    found = Undo.of(registry.core)
    assert "-description: Two.\n+description: One.\n" in found.diff()
    found.carry_out()
    assert {path.name: path.read_bytes() for path in alpha.iterdir()} == before


def test_an_update_of_one_file_is_an_update_also_where_the_file_is_new_or_removed(registry, alpha):
    registry.update("alpha", files={"new.txt": b"new"})
    assert undo(registry) == "update"
    assert not (alpha / "new.txt").exists()
    registry.update("alpha", files={"run.sh": None})
    assert undo(registry) == "update"
    assert (alpha / "run.sh").read_text() == "echo 1\n"


@pytest.mark.both
def test_a_deleted_skill_comes_back_and_a_restored_one_goes_again(registry, alpha):
    registry.delete("alpha")
    assert undo(registry) == "delete"
    assert names(registry) == ["alpha"]
    registry.delete("alpha")
    registry.restore("alpha")
    assert undo(registry) == "restore"
    assert names(registry) == []
    assert undo(registry) == "delete"
    assert names(registry) == ["alpha"]


def test_going_back_to_a_revision_is_taken_back(registry, alpha):
    registry.update("alpha", description="Two.")
    registry.restore_revision("alpha", 1)
    assert undo(registry) == "update"
    assert registry.get("alpha").description == "Two."


def test_a_skill_written_back_from_the_history_goes_to_the_trash(registry, alpha, root):
    write_skill(root / "beta")
    registry.sync()
    shutil.rmtree(alpha)
    registry.restore("alpha")
    assert undo(registry) == "restore"
    assert names(registry) == ["beta"]


def test_each_call_takes_back_the_change_before(registry, alpha):
    registry.update("alpha", description="Two.")
    registry.create("beta", description="New.")
    registry.update("alpha", description="Three.")
    assert [undo(registry) for _ in range(3)] == ["update", "create", "update"]
    assert registry.get("alpha").description == "One."
    with pytest.raises(NothingToUndo):
        Undo.of(registry.core)


@pytest.mark.parametrize("is_synced", [True, False])
def test_an_edit_made_by_hand_since_then_is_left_alone(registry, alpha, is_synced):
    registry.update("alpha", description="Two.")
    with (alpha / "SKILL.md").open("a") as document:
        document.write("By hand.\n")
    edited = (alpha / "SKILL.md").read_bytes()
    if is_synced:
        registry.sync()
    with pytest.raises(ChangeNotUndone, match="it was changed since"):
        undo(registry)
    assert (alpha / "SKILL.md").read_bytes() == edited


def test_an_edit_that_slips_in_is_left_alone(registry, alpha):
    registry.update("alpha", description="Two.")
    found = Undo.of(registry.core)
    edit = partial((alpha / "SKILL.md").write_text, "By hand.\n")
    with slipping_in(edit), pytest.raises(SkillChangedOnDisk):
        found.carry_out()
    assert (alpha / "SKILL.md").read_text() == "By hand.\n"


def test_what_is_gone_or_elsewhere_by_now_is_said(registry, alpha, root):
    registry.update("alpha", description="Two.")
    alpha.rename(root / "moved")
    with pytest.raises(ChangeNotUndone, match="no longer exists"):
        undo(registry)
    registry.sync()
    with pytest.raises(ChangeNotUndone, match="no longer exists"):
        undo(registry)


def test_what_left_the_trash_or_is_there_again_is_said(registry, alpha):
    registry.delete("alpha")
    write_skill(alpha, description="Another.")
    with pytest.raises(ChangeNotUndone, match=r"alpha exists again"):
        undo(registry)
    shutil.rmtree(alpha)
    assert undo(registry) == "delete"
    assert registry.get("alpha").description == "One."


def test_what_the_trash_holds_no_more_is_passed_over_and_forgotten(registry, alpha):
    registry.update("alpha", description="Two.")
    registry.create("beta", description="New.")
    registry.delete("beta")
    registry.empty_trash()
    said = []
    registry.core.on_warning = said.append
    assert undo(registry) == "update"
    assert [one.split(" (")[0] for one in said] == [
        "Can't undo the delete of 'beta'",
        "Can't undo the create of 'beta'",
    ]
    assert "it is no longer in the trash" in said[0]
    with pytest.raises(NothingToUndo):
        undo(registry)
    assert said[2:] == []


@pytest.mark.both
def test_the_creation_of_what_was_removed_by_hand_is_passed_over(registry, alpha, root):
    registry.update("alpha", description="Two.")
    registry.create("beta", description="New.")
    shutil.rmtree(root / "beta")
    assert undo(registry) == "update"


def test_the_update_of_what_is_gone_for_good_is_passed_over(registry, alpha, root):
    registry.create("beta", description="New.")
    registry.update("alpha", description="Two.")
    registry.delete("alpha")
    registry.empty_trash()
    assert undo(registry) == "create"


def test_an_update_whose_earlier_content_was_pruned_is_passed_over(registry, alpha):
    registry.update("alpha", description="Two.")
    registry.update("alpha", description="Three.")
    registry.prune(keep=0)
    with pytest.raises(NothingToUndo):
        undo(registry)


def test_what_may_come_back_is_not_forgotten(registry, alpha, root, tmp_path):
    registry.create("beta", description="New.")
    registry.delete("alpha")
    # As where a drive is not mounted.
    state = next(tmp_path.glob(".*.skill-registry"))
    for path in (root, state):
        path.rename(path.with_name(f"{path.name}.away"))
    with pytest.raises(ChangeNotUndone, match="it is no longer in the trash"):
        undo(registry)
    for path in (root, state):
        path.with_name(f"{path.name}.away").rename(path)
    assert [undo(registry), undo(registry)] == ["delete", "create"]


def test_what_was_moved_is_not_forgotten(registry, alpha, root):
    registry.create("beta", description="New.")
    (root / "beta").rename(root / "moved")
    registry.sync()
    with pytest.raises(ChangeNotUndone, match="no longer exists"):
        undo(registry)
    (root / "moved").rename(root / "beta")
    registry.sync()
    assert undo(registry) == "create"


def test_a_change_can_be_forgotten_and_stays_made(registry, alpha):
    registry.create("beta", description="New.")
    registry.update("alpha", description="Two.")
    registry.update("alpha", description="Three.")
    Undo.of(registry.core).forget()
    assert registry.get("alpha").description == "Three."
    with pytest.raises(ChangeNotUndone, match="changed since") as caught:
        undo(registry)
    assert (caught.value.facts["place"], caught.value.facts["revision"]) == ("mine/alpha", 1)
    Undo.of(registry.core).forget()
    assert undo(registry) == "create"


@pytest.fixture
def copies(registry, tmp_path):
    """Three copies of ``pdf`` in three sources."""
    folders = [tmp_path / name / "pdf" for name in ("one", "two", "three")]
    for folder in folders:
        write_skill(folder, name="pdf", description="One.")
        registry.sync(str(folder.parent), name=folder.parent.name)
    return folders


def texts(folders):
    return {(one / "SKILL.md").read_text().split("description: ")[1][:4] for one in folders}


@pytest.mark.both
def test_copies_that_were_updated_together_are_taken_back_together(registry, copies):
    registry.update("two/pdf", description="Two.", copies=True)
    found = Undo.of(registry.core)
    assert found.change.source == "two"
    assert {one.source for one in found.changes} == {"one", "two", "three"}
    found.carry_out()
    assert texts(copies) == {"One."}
    with pytest.raises(NothingToUndo):
        undo(registry)


def test_copies_are_taken_back_all_or_none(registry, copies):
    registry.update("two/pdf", description="Two.", copies=True)
    (copies[0] / "SKILL.md").write_text("By hand.\n")
    with pytest.raises(ChangeNotUndone, match="changed since"):
        undo(registry)
    assert texts(copies[1:]) == {"Two."}


def test_copies_that_an_edit_in_the_last_moment_holds_are_all_held(registry, copies):
    registry.update("two/pdf", description="Two.", copies=True)
    real, edits = commit.publish, []

    def publish(entry, at, name):
        if entry.root.endswith("two"):  # the last of them
            edits.append(texts(copies[::2]))
            (copies[1] / "SKILL.md").write_text("By hand.\n")
        real(entry, at, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "publish", publish)
        with pytest.raises(SkillChangedOnDisk):
            undo(registry)
    assert edits == [{"One."}]
    assert texts(copies[::2]) == {"Two."}


def test_copies_that_were_deleted_together_come_back_together_and_go_again(registry, copies):
    registry.delete("two/pdf", copies=True)
    assert undo(registry) == "delete"
    assert texts(copies) == {"One."}
    registry.delete("two/pdf", copies=True)
    trash.restore_all(
        registry.core, trash.with_deleted_copies(registry.core, [find(registry, "pdf")])
    )
    assert texts(copies) == {"One."}
    assert undo(registry) == "restore"
    assert len(registry.trash()) == 3
    assert undo(registry) == "delete"
    assert texts(copies) == {"One."}


def test_no_copy_comes_back_where_the_place_of_one_is_taken(registry, copies):
    registry.delete("two/pdf", copies=True)
    copies[0].mkdir()
    with pytest.raises(ChangeNotUndone, match=r"one/pdf exists again"):
        undo(registry)
    with pytest.raises(SkillExists):
        trash.with_deleted_copies(registry.core, [find(registry, "pdf")])
    assert [one.exists() for one in copies] == [True, False, False]


def test_a_copy_that_left_the_trash_for_good_does_not_hold_the_others(registry, copies):
    registry.delete("two/pdf", copies=True)
    registry.empty_trash([find(registry, "one/pdf")])
    assert undo(registry) == "delete"
    assert [one.exists() for one in copies] == [False, True, True]


def test_changes_made_one_after_the_other_are_taken_back_one_by_one(registry, copies):
    for name in ("one", "two", "three"):
        registry.delete(f"{name}/pdf")
    assert [len(Undo.of(registry.core).changes), undo(registry)] == [1, "delete"]
    assert [one.exists() for one in copies] == [False, False, True]


@pytest.mark.both
def test_a_stranger_adds_nothing_to_what_was_made_together(registry, copies):
    registry.create("beta", description="New.", source="one")
    registry.update("two/pdf", description="Two.", copies=True)
    number = Undo.of(registry.core).change.number
    with registry.core.writer.transaction() as connection:
        sql = f"UPDATE changes SET number = '{number[:12]}ffff' WHERE kind = 'create'"
        assert len(connection.exec_driver_sql(f"{sql} RETURNING 1").all()) == 1
    assert len(Undo.of(registry.core).changes) == 3


def find(registry, name):
    return trash.find_deleted(registry.core, name)


@pytest.mark.both
def test_what_a_stranger_writes_down_is_no_change_of_ours(registry, alpha):
    registry.update("alpha", description="Two.")
    with registry.core.writer.transaction() as connection:
        found = Undo.of(registry.core).change
        forged = found._replace(kind="create", number="0" * 16)
        history.add_change(connection, forged, registry.core.host)
    assert len(registry.core.reader.rows("SELECT id FROM changes")) == 2
    assert Undo.of(registry.core).change == found
    with registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE changes SET kind = 'create'")
    with pytest.raises(NothingToUndo):
        Undo.of(registry.core)


@pytest.mark.both
def test_a_sync_forgets_all_but_the_last_hundred(registry, root, alpha, monkeypatch):
    monkeypatch.setattr(history, "UNDOABLE_COMMANDS", 4)
    for number in range(6):
        registry.update("alpha", description=f"{number}.")
    write_skill(root / "beta")
    registry.sync()
    assert [undo(registry) for _ in range(4)] == ["update"] * 4
    with pytest.raises(NothingToUndo):
        undo(registry)
    assert registry.get("alpha").description == "1."


def test_a_change_that_was_refused_or_undone_is_not_remembered(registry, alpha):
    registry.update("alpha", description="Two.")
    edit = partial((alpha / "SKILL.md").write_text, "By hand.\n")
    with slipping_in(edit), pytest.raises(SkillChangedOnDisk):
        registry.update("alpha", description="Three.")
    assert len(registry.core.reader.rows("SELECT id FROM changes")) == 1


@pytest.mark.both
def test_a_change_whose_process_died_is_remembered_when_it_is_finished(registry, alpha, database):
    dies(registry, lambda it: it.update("alpha", description="Two."))
    assert registry.core.reader.rows("SELECT id FROM changes") == []
    with SkillRegistry.open(database, settings=Settings()) as opened:
        assert opened.get("alpha").description == "Two."
        assert undo(opened) == "update"
        assert opened.get("alpha").description == "One."
