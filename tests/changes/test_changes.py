import os
import shutil
from functools import partial

import pytest

from registry.catalog.resolve import resolve
from registry.changes.create import create_files
from registry.changes.update import update_files
from registry.db.read.listing import Filters
from registry.disk import atomic as change_files
from registry.disk.beneath import Folder
from registry.errors import (
    ChangeRefused,
    NotInTrash,
    OutsideSkill,
    SkillChangedOnDisk,
    SkillExists,
    SkillNotFound,
)
from tests.changes.dying import dies, slipping_in
from tests.conftest import OLD, write_skill

DOCUMENT = b"---\nname: alpha\ndescription: One.\ncreated_at: 2024-05-06\n---\n\n# Alpha\n"


@pytest.fixture
def source(registry, root):
    (root / "keep").mkdir()
    registry.sync(str(root), name="mine")
    return registry.sources()[0]


@pytest.fixture(params=["exchange", "two renames"])
def _swap(request, monkeypatch):
    """Updates work with and without the system call that swaps two names."""
    if request.param == "two renames":
        monkeypatch.setattr(change_files, "renameat2", lambda: None)


@pytest.fixture
def alpha(registry, source, root):
    create_files(registry.core, source, "alpha", "alpha", {"SKILL.md": DOCUMENT, "a/b.txt": b"b"})
    return root / "alpha"


def state(root):
    return root.parent / f".{root.name}.skill-registry"


def digest_at(path):
    with Folder.open(str(path.parent)) as folder:
        return change_files.digest_of(change_files.Place(folder, path.name))


def settled(registry, root):
    """Disk and database agree, and nothing is left over."""
    assert registry.check_database() == []
    assert registry.core.reader.rows("SELECT count(*) FROM journal") == [(0,)]
    assert registry.core.reader.rows("SELECT count(*) FROM skills WHERE live = 0") == [(0,)]
    assert list((state(root) / "ops").iterdir()) == []
    report = registry.sync(verify=True)
    assert (report.added, report.updated, report.moved, report.removed) == ((), (), (), ())


def test_a_created_skill_is_on_disk_and_listed_at_once(registry, root, alpha):
    assert (alpha / "SKILL.md").read_bytes() == DOCUMENT
    assert (alpha / "a" / "b.txt").read_bytes() == b"b"
    (listed,) = registry.list()
    assert (listed.ref, listed.created_at) == ("alpha", "2024-05-06T00:00:00Z")
    settled(registry, root)


def test_what_is_staged_or_deleted_lies_outside_the_skills_folder(registry, root, alpha):
    registry.delete("alpha")
    assert sorted(path.name for path in root.iterdir()) == ["keep"]
    assert (state(root) / ".gitignore").read_text() == "*\n"


def test_a_folder_or_name_that_is_taken_is_refused_and_left_alone(registry, source, root, alpha):
    with pytest.raises(SkillExists):
        create_files(registry.core, source, "alpha", "other", {"SKILL.md": b"x"})
    with pytest.raises(SkillExists):
        create_files(registry.core, source, "elsewhere", "alpha", {"SKILL.md": b"x"})
    with pytest.raises(SkillExists):
        create_files(registry.core, source, "keep", "keep", {"SKILL.md": b"x"})
    assert (alpha / "SKILL.md").read_bytes() == DOCUMENT
    settled(registry, root)


@pytest.mark.parametrize("step", ["ftruncate", "pwrite"])
def test_a_lock_that_cannot_be_signed_is_refused_and_given_back(
    registry, source, alpha, monkeypatch, step
):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(ChangeRefused, match="No space left"):
        registry.delete("alpha")
    monkeypatch.undo()
    assert registry.delete("alpha").name == "alpha"


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "", "a\0b"])
def test_no_change_leads_out_of_the_skills_folder(registry, source, alpha, path):
    with pytest.raises(OutsideSkill):
        create_files(registry.core, source, path, "beta", {"SKILL.md": b"x"})
    with pytest.raises(OutsideSkill):
        update_files(registry.core, resolve(registry.core.reader, "alpha"), {path: b"x"})


@pytest.mark.usefixtures("_swap")
class TestUpdates:
    def test_one_file_is_changed_and_everything_else_stays(self, registry, root, alpha):
        before = registry.list()[0]
        (alpha / "SKILL.md").chmod(0o640)
        registry.sync()
        update_files(
            registry.core,
            resolve(registry.core.reader, "alpha"),
            {"SKILL.md": DOCUMENT.replace(b"One.", b"Two.")},
        )
        after = registry.list()[0]
        assert (after.description, after.created_at) == ("Two.", before.created_at)
        assert (alpha / "a" / "b.txt").read_bytes() == b"b"
        assert (alpha / "SKILL.md").stat().st_mode & 0o777 == 0o640
        settled(registry, root)

    def test_several_files_change_in_one_step(self, registry, root, alpha):
        update_files(
            registry.core,
            resolve(registry.core.reader, "alpha"),
            {"a/b.txt": None, "c.txt": b"c", "SKILL.md": DOCUMENT + b"x"},
        )
        assert not (alpha / "a" / "b.txt").exists()
        assert (alpha / "c.txt").read_bytes() == b"c"
        settled(registry, root)

    def test_a_file_is_added_and_removed(self, registry, root, alpha):
        update_files(registry.core, resolve(registry.core.reader, "alpha"), {"new.txt": b"n"})
        assert (alpha / "new.txt").read_bytes() == b"n"
        update_files(registry.core, resolve(registry.core.reader, "alpha"), {"new.txt": None})
        assert not (alpha / "new.txt").exists()
        settled(registry, root)

    def test_an_edit_made_by_hand_is_never_overwritten(self, registry, root, alpha):
        (alpha / "SKILL.md").write_bytes(b"by hand")
        with pytest.raises(SkillChangedOnDisk):
            update_files(
                registry.core, resolve(registry.core.reader, "alpha"), {"SKILL.md": DOCUMENT}
            )
        assert (alpha / "SKILL.md").read_bytes() == b"by hand"

    @pytest.mark.parametrize("several", [False, True])
    def test_an_edit_between_the_comparison_and_the_rename_wins(
        self, registry, root, alpha, several
    ):
        edit = partial((alpha / "SKILL.md").write_bytes, DOCUMENT.replace(b"One.", b"By hand."))
        edits = {"SKILL.md": b"mine"} | ({"x": b"x"} if several else {})
        with slipping_in(edit), pytest.raises(SkillChangedOnDisk):
            update_files(registry.core, resolve(registry.core.reader, "alpha"), edits)
        assert b"By hand." in (alpha / "SKILL.md").read_bytes()
        assert registry.list()[0].description == "By hand."
        settled(registry, root)


@pytest.mark.both
def test_compare_and_swap_refuses_a_stale_hash(registry, root, alpha):
    seen = registry.list()[0].content_hash
    update_files(
        registry.core,
        resolve(registry.core.reader, "alpha"),
        {"SKILL.md": DOCUMENT + b"1"},
        if_hash=seen,
    )
    with pytest.raises(SkillChangedOnDisk):
        update_files(
            registry.core,
            resolve(registry.core.reader, "alpha"),
            {"SKILL.md": DOCUMENT + b"2"},
            if_hash=seen,
        )
    assert (alpha / "SKILL.md").read_bytes() == DOCUMENT + b"1"


def test_force_changes_what_is_on_disk_now(registry, root, alpha):
    (alpha / "SKILL.md").write_bytes(DOCUMENT + b"by hand")
    update_files(
        registry.core,
        resolve(registry.core.reader, "alpha"),
        {"SKILL.md": DOCUMENT + b"forced"},
        force=True,
    )
    assert (alpha / "SKILL.md").read_bytes() == DOCUMENT + b"forced"
    settled(registry, root)


class TestDeleteAndRestore:
    @pytest.mark.both
    def test_a_restored_skill_is_the_deleted_one_byte_for_byte(self, registry, root, alpha):
        (alpha / "a" / "b.txt").chmod(0o755)
        write_skill(alpha, description="No date.", age=OLD)
        registry.sync()
        before = registry.list()[0]
        digest = digest_at(alpha)
        registry.delete("alpha")
        assert (len(registry.list()), alpha.exists()) == (0, False)
        registry.restore("alpha")
        after = registry.list()[0]
        assert digest_at(alpha) == digest
        assert (after.created_at, after.tree_hash) == (before.created_at, before.tree_hash)
        assert registry.trash() == []
        settled(registry, root)

    @pytest.mark.both
    def test_a_skill_deleted_by_its_ref_is_restored_by_its_name(self, registry, alpha):
        assert registry.delete("mine/alpha").name == "alpha"
        assert registry.restore("alpha").ref == "alpha"

    def test_what_the_trash_does_not_hold_is_said_to_be_missing_there(self, registry, alpha):
        with pytest.raises(NotInTrash, match="The trash has no skill"):
            registry.restore("nothing")

    def test_of_several_the_latest_is_restored(self, registry, source, root, alpha):
        registry.delete("alpha")
        create_files(registry.core, source, "alpha", "alpha", {"SKILL.md": DOCUMENT + b"second"})
        registry.delete("alpha")
        assert len(registry.trash()) == 2
        names = {t.id: t for t in registry.trash()}
        registry.restore(next(iter(names)))
        settled(registry, root)

    def test_a_place_that_is_taken_stays_taken(self, registry, root, alpha):
        registry.delete("alpha")
        write_skill(alpha, description="Another.")
        with pytest.raises(SkillExists):
            registry.restore("alpha")
        assert len(registry.trash()) == 1

    def test_an_edit_made_by_hand_is_never_deleted(self, registry, root, alpha):
        (alpha / "notes.txt").write_text("mine")
        with pytest.raises(SkillChangedOnDisk):
            registry.delete("alpha")
        assert (alpha / "notes.txt").read_text() == "mine"

    def test_an_edit_between_the_comparison_and_the_rename_is_given_back(
        self, registry, root, alpha
    ):
        edit = partial((alpha / "late.txt").write_text, "late")
        with slipping_in(edit), pytest.raises(SkillChangedOnDisk):
            registry.delete("alpha")
        assert (alpha / "late.txt").read_text() == "late"
        assert registry.trash() == []
        settled(registry, root)

    def test_a_folder_that_holds_other_skills_is_not_deleted_with_them(self, registry, root, alpha):
        write_skill(alpha / "inner")
        registry.sync()
        with pytest.raises(ChangeRefused, match="other skills"):
            registry.delete("alpha")
        assert (alpha / "inner" / "SKILL.md").exists()

    @pytest.mark.both
    def test_emptying_the_trash_ends_it(self, registry, root, alpha):
        registry.delete("alpha")
        assert registry.empty_trash() == 1
        with pytest.raises(SkillNotFound):
            registry.restore("alpha")
        settled(registry, root)

    def test_a_skill_at_the_root_of_a_source_is_not_deleted(self, registry, tmp_path):
        write_skill(tmp_path / "whole")
        registry.sync(str(tmp_path / "whole"))
        with pytest.raises(ChangeRefused):
            registry.delete("whole")
        update_files(registry.core, resolve(registry.core.reader, "whole"), {"SKILL.md": DOCUMENT})
        assert registry.get("alpha").description == "One."


def test_a_source_that_may_not_be_written_says_so_and_nothing_happens(
    registry, source, root, alpha, monkeypatch
):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("registry.disk.swap.rename_new", refuse)
    with pytest.raises(ChangeRefused, match="Permission denied"):
        create_files(registry.core, source, "beta", "beta", {"SKILL.md": DOCUMENT})
    monkeypatch.undo()
    assert not (root / "beta").exists()
    settled(registry, root)


def test_where_beside_is_another_file_system_the_state_lies_inside(
    registry, source, root, monkeypatch
):
    from registry.disk import swap

    real = swap.rename_new

    def rename(staged, live):
        if not staged.path.startswith(str(root)):
            raise OSError(18, "Invalid cross-device link")
        real(staged, live)

    monkeypatch.setattr(swap, "rename_new", rename)
    create_files(registry.core, source, "beta", "beta", {"SKILL.md": DOCUMENT})
    monkeypatch.undo()
    assert (root / ".skill-registry" / "lock").exists()
    registry.delete("alpha")
    assert os.listdir(root / ".skill-registry" / "trash")
    assert registry.sync(verify=True).unchanged == 0
    assert registry.list(Filters(all=True)).total == 0


@pytest.mark.both
def test_opening_the_registry_finishes_what_a_dead_process_left(
    registry, source, root, alpha, database
):
    from registry.api import SkillRegistry
    from registry.settings import Settings

    dies(registry, lambda it: it.delete("alpha"))
    with SkillRegistry.open(database, settings=Settings()) as opened:
        assert opened.list().total == 0
        settled(opened, root)


@pytest.mark.both
def test_the_trash_survives_a_new_database(registry, source, root, alpha, database):
    registry.delete("alpha")
    registry.remove_source("mine")
    registry.sync(str(root))
    registry.restore("alpha")
    assert alpha.exists()
    shutil.rmtree(alpha)
