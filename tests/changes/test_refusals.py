"""What a change refuses, and that nothing happened then."""

import errno
import os
from functools import partial

import pytest

from registry.api import SkillRegistry
from registry.changes import commit
from registry.changes.state import state_path
from registry.disk import swap
from registry.disk.locks import FileLock
from registry.errors import (
    ChangePending,
    ChangeRefused,
    InvalidName,
    NotInTrash,
    NotUtf8,
    SkillChangedOnDisk,
    SkillExists,
    SkillMissing,
    SourceElsewhere,
    UsageProblem,
)
from registry.settings import Settings
from tests.changes.dying import slipping_in
from tests.changes.planted import rows
from tests.changes.planted import state_of as state
from tests.conftest import OLD, write_skill
from tests.refusing import refuse


@pytest.fixture
def alpha(registry, root):
    folder = write_skill(root / "alpha")
    (folder / "run.sh").write_text("echo\n")
    (folder / "run.sh").chmod(0o750)
    registry.sync(str(root), name="mine")
    return folder


def untouched(registry, root):
    assert rows(registry) == 0
    if state(root).exists():
        assert list(state(root, "ops").iterdir()) == []
    report = registry.sync(verify=True)
    return (report.added, report.updated, report.removed) == ((), (), ())


@pytest.mark.both
def test_a_source_that_another_process_changes_is_refused_with_its_name(
    registry, root, alpha, monkeypatch
):
    monkeypatch.setattr("registry.changes.state.LOCK_SECONDS", 0)
    registry.update("alpha", description="One.")
    with FileLock(str(state(root, "lock"))) as lock:
        assert lock.acquire(0)
        lock.sign("change")
        with pytest.raises(ChangeRefused, match=f"process {os.getpid()}"):
            registry.update("alpha", description="Two.")
    assert registry.update("alpha", description="Two.").description == "Two."


@pytest.mark.parametrize("files", [{"link": b"x"}, {"folder": b"x"}, {"in/x": b"x"}])
@pytest.mark.parametrize("more", [{}, {"other.txt": b"x"}], ids=["one", "several"])
def test_no_change_goes_through_a_link_or_over_a_folder(
    registry, root, alpha, tmp_path, files, more
):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside.txt").write_text("mine")
    (alpha / "link").symlink_to(tmp_path / "outside.txt")
    (alpha / "in").symlink_to(tmp_path / "outside")
    (alpha / "folder").mkdir()
    (alpha / "folder" / "file.txt").write_text("x")
    registry.sync()
    with pytest.raises(ChangeRefused, match=r"it is a link|not a regular file"):
        registry.update("alpha", files=files | more)
    assert (tmp_path / "outside.txt").read_text() == "mine"
    assert list((tmp_path / "outside").iterdir()) == []
    assert untouched(registry, root)


def test_a_file_that_is_not_there_can_not_be_removed(registry, root, alpha):
    with pytest.raises(ChangeRefused, match="no such file"):
        registry.update("alpha", files={"nothing.txt": None})
    assert untouched(registry, root)


def test_files_keep_their_permissions_and_new_ones_have_the_usual(registry, alpha):
    registry.update("alpha", files={"run.sh": b"echo 2\n"})
    assert (alpha / "run.sh").stat().st_mode & 0o777 == 0o750
    registry.update("alpha", files={"run.sh": b"echo 3\n", "new.txt": b"n"})
    assert (alpha / "run.sh").stat().st_mode & 0o777 == 0o750
    assert (alpha / "new.txt").stat().st_mode & 0o777 == 0o644
    registry.update("alpha", files={"b.txt": b"n"})
    assert (alpha / "b.txt").stat().st_mode & 0o777 == 0o644


def test_the_root_of_a_source_is_changed_one_file_at_a_time(registry, tmp_path):
    write_skill(tmp_path / "whole")
    registry.sync(str(tmp_path / "whole"))
    with pytest.raises(ChangeRefused, match="one at a time"):
        registry.update("whole", files={"a": b"a", "b": b"b"})
    registry.update("whole", files={"a": b"a"})
    assert (tmp_path / "whole" / "a").read_bytes() == b"a"


@pytest.mark.both
def test_a_hash_that_was_seen_is_compared_with_the_disk_as_it_is(registry, root, alpha):
    seen = registry.get("alpha").content_hash
    write_skill(alpha, description="By hand.", age=OLD + 9)
    for change in (
        lambda: registry.update("alpha", description="New.", if_hash=seen),
        lambda: registry.update("alpha", files={"x": b"x"}, if_hash=seen),
        lambda: registry.delete("alpha", if_hash=seen),
    ):
        with pytest.raises(SkillChangedOnDisk):
            change()
    now = registry.get("alpha").content_hash
    assert registry.update("alpha", description="New.", if_hash=now).description == "New."
    write_skill(alpha, description="By hand.", age=OLD + 19)
    now = registry.get("alpha").content_hash
    assert registry.delete("alpha", if_hash=now).name == "alpha"


def test_an_edit_that_only_the_disk_knows_stops_a_change_unless_forced(registry, root, alpha):
    write_skill(alpha, description="By hand.", age=OLD + 9)
    for change in ({"description": "New."}, {"files": {"x": b"x"}}, {"files": {"run.sh": None}}):
        with pytest.raises(SkillChangedOnDisk):
            registry.update("alpha", **change)
    assert registry.list()[0].description == "Does one thing well."
    (alpha / "new.txt").write_text("by hand")
    with pytest.raises(SkillChangedOnDisk):
        registry.delete("alpha")
    registry.update("alpha", tags=["x"], force=True)
    assert registry.get("alpha").description == "By hand."
    assert registry.delete("alpha", force=True).folder == "alpha"


def test_an_update_of_nothing_changes_nothing(registry, alpha):
    before = (alpha / "SKILL.md").stat()
    assert registry.update("alpha").name == "alpha"
    assert registry.update("alpha", description="Does one thing well.").name == "alpha"
    assert (alpha / "SKILL.md").stat() == before
    assert len(registry.history("alpha")) == 1


def test_a_document_that_can_not_be_edited_is_said_and_left(registry, root, alpha):
    write_skill(root / "gone")
    (root / "latin").mkdir()
    (root / "latin" / "SKILL.md").write_bytes(b"---\nname: latin\ndescription: \xe9\n---\n")
    registry.sync()
    (root / "gone" / "SKILL.md").unlink()
    with pytest.raises(SkillMissing):
        registry.update("gone", description="New.")
    with pytest.raises(NotUtf8):
        registry.update("latin", description="New.")
    assert (root / "latin" / "SKILL.md").read_bytes().startswith(b"---\nname: latin")


def test_a_new_skill_has_a_name_a_place_and_a_document_that_can_be_written(registry, root, alpha):
    with pytest.raises(InvalidName):
        registry.create("No Name!", description="x")
    with pytest.raises(UsageProblem):
        registry.create("beta", description="")
    with pytest.raises(SkillExists):
        registry.create("alpha", description="x")
    made = registry.create("beta", description="Second.", files={"a/b.txt": b"b"})
    assert (made.ref, made.folder) == ("beta", "beta")
    assert (root / "beta" / "a" / "b.txt").stat().st_mode & 0o777 == 0o644
    (revision,) = registry.history("beta")
    assert revision.complete
    assert registry.read_revision("beta", 1, "a/b.txt") == b"b"


def test_the_trash_is_searched_by_name_place_and_number(registry, tmp_path):
    for source in ("one", "two"):
        write_skill(tmp_path / source / "a" / "alpha", description=f"Of {source}.")
        registry.sync(str(tmp_path / source), name=source)
    deleted = [registry.delete(f"{source}/alpha") for source in ("one", "two")]
    assert {one.id for one in registry.trash()} == {one.id for one in deleted}
    with pytest.raises(NotInTrash):
        registry.restore("alpha", source="three")
    assert registry.restore("alpha", source="one").source == "one"
    with pytest.raises(NotInTrash):
        registry.restore("one/a/alpha")
    assert registry.restore("two/a/alpha").description == "Of two."
    first, second = (registry.delete(f"{source}/alpha") for source in ("two", "one"))
    assert registry.restore(first.id).source == "two"
    assert registry.empty_trash([second]) == 1
    assert registry.trash() == []
    assert registry.empty_trash() == 0


def test_what_is_in_the_trash_but_no_skill_of_ours_is_passed_over(registry, root, alpha):
    registry.delete("alpha")
    (kept,) = state(root, "trash").iterdir()
    (state(root, "trash") / "stray").mkdir()
    (state(root, "trash") / "listed").mkdir()
    (state(root, "trash") / "listed" / "meta.json").write_text("[]")
    (state(root, "trash") / "listed" / "tree").mkdir()
    assert [one.id for one in registry.trash()] == [kept.name]
    assert kept.stat().st_mode & 0o777 == 0o700


def test_the_state_lies_inside_where_nothing_may_be_made_beside(tmp_path, monkeypatch):
    root = tmp_path / "skills"
    root.mkdir()
    beside, within = str(tmp_path / ".skills.skill-registry"), str(root / ".skill-registry")
    assert state_path(str(root)) == beside
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert state_path(str(root)) == within
    os.mkdir(beside)
    assert state_path(str(root)) == beside
    monkeypatch.undo()
    os.mkdir(within)
    assert state_path(str(root)) == beside  # which others may write to, as those in a clone
    os.chmod(within, 0o700)
    assert state_path(str(root)) == within
    assert state_path(str(root), inside=False) == beside


def test_a_state_folder_that_can_not_be_made_is_a_refusal(registry, root, alpha):
    state(root).touch()
    with pytest.raises(
        ChangeRefused, match="this registry did not create it for you; move it away"
    ):
        registry.update("alpha", description="New.")
    state(root).unlink()
    assert registry.update("alpha", description="New.").description == "New."
    assert state(root).stat().st_mode & 0o777 == 0o700


def test_a_folder_that_holds_another_file_system_says_so(registry, root, alpha, monkeypatch):
    def refuse(*_):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(swap, "rename_new", refuse)
    with pytest.raises(ChangeRefused, match="a mounted file system"):
        registry.create("beta", description="x")
    monkeypatch.undo()
    assert not (root / "beta").exists()


@pytest.mark.both
def test_what_the_disk_neither_confirms_nor_denies_is_not_called_undone(
    registry, root, alpha, monkeypatch
):
    def fail(_):
        raise OSError(5, "Input/output error")

    real = swap.digest_of
    monkeypatch.setattr(commit, "sync_folder", fail)
    monkeypatch.setattr(
        swap,
        "digest_of",
        lambda place: fail(place) if place.path.startswith(str(alpha)) else real(place),
    )
    with pytest.raises(ChangePending, match="Input/output"):
        registry.create("beta", description="New.")
    monkeypatch.undo()
    assert registry.get("beta").description == "New."
    assert untouched(registry, root)


def test_a_folder_that_somebody_makes_in_this_moment_is_theirs(registry, root, alpha):
    edit = partial(write_skill, root / "beta", description="By hand.")
    with slipping_in(edit), pytest.raises(SkillExists):
        registry.create("beta", description="New.")
    assert {skill.description for skill in registry.list()} >= {"By hand."}
    assert untouched(registry, root)


def test_a_change_in_folders_that_are_not_there_yet_makes_them(registry, root, alpha, database):
    from registry.changes.create import create_files

    with SkillRegistry.open(database, settings=Settings()) as other:
        document = b"---\nname: deep\ndescription: Deep.\n---\n"
        source = other.sources()[0]
        create_files(other.core, source, "x/y/deep", "deep", {"SKILL.md": document, "a": b"a"}, "a")
    assert registry.get("deep").folder == "x/y/deep"
    assert (root / "x" / "y" / "deep" / "a").stat().st_mode & 0o777 == 0o755
    assert untouched(registry, root)


@pytest.mark.both
def test_what_another_machine_has_is_not_changed_here(registry, root, alpha):
    with registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE sources SET host = 'elsewhere'")
    for change in (
        lambda: registry.delete("alpha"),
        lambda: registry.update("alpha", files={"x": b"x"}),
        lambda: registry.update("alpha", description="New."),
    ):
        with pytest.raises(SourceElsewhere):
            change()
    assert sorted(os.listdir(alpha)) == ["SKILL.md", "run.sh"]
    assert not state(root).exists()


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_what_cannot_be_written_is_not_called_unreadable(registry, root, alpha, monkeypatch, code):
    """The folder for changes can't be made: nothing is wrong with reading."""
    refused = refuse(monkeypatch, state(root), OSError(code, os.strerror(code)), "mkdir")
    for change in (
        lambda: registry.update("alpha", description="New."),
        lambda: registry.delete("alpha"),
        lambda: registry.create("beta", description="New."),
    ):
        with pytest.raises(ChangeRefused) as caught:
            change()
        assert "read" not in str(caught.value).replace("Read-only", "")
        assert os.strerror(code) in str(caught.value)
    assert len(refused) == 3
