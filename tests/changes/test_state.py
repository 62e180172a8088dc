"""The state folder and the trash of a source may lie in a clone: what is not ours is refused."""

import json
import os
import re
import shutil
import sqlite3
import subprocess

import pytest

from registry.api import SkillRegistry
from registry.changes import commit
from registry.db.sqlite.writer import ensure_current  # the real one
from registry.disk import swap
from registry.errors import ChangeRefused, DatabaseProblem, NotInTrash
from registry.settings import Settings
from tests.changes.planted import NUMBER, seen, state_of
from tests.conftest import write_skill


@pytest.fixture
def precious(tmp_path):
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "file").write_text("do not touch")
    return folder


def changes(registry):
    return (
        lambda: registry.update("alpha", description="New."),
        lambda: registry.create("beta", description="New."),
        lambda: registry.delete("alpha"),
    )


def make_state(root):
    """Make a state folder as this user's own."""
    for name in ("", "ops", "trash", "conflict"):
        state_of(root, name).mkdir(mode=0o700)
    state_of(root, ".gitignore").write_text("*\n")


def refused(registry, root, precious, match):
    """Every change is refused in words, and nothing became different."""
    before = seen(root.parent, without=(root.parent / "state", root.parent / "home"))
    for change in changes(registry):
        with pytest.raises(ChangeRefused, match=match):
            change()
    assert seen(root.parent, without=(root.parent / "state", root.parent / "home")) == before
    assert registry.trash() == []
    assert registry.empty_trash() == 0


MOVE, CLOSE = "this registry did not create it for you; move it away", "chmod -R go-rwx "


@pytest.mark.parametrize("name", ["", "ops", "trash", "conflict"])
@pytest.mark.parametrize("made", ["link", "file", "open to all"])
def test_a_state_folder_that_is_not_ours_is_refused(registry, root, alpha, precious, name, made):
    if name:
        make_state(root)
        shutil.rmtree(state_of(root, name))
    place = state_of(root, name)
    if made == "link":
        place.symlink_to(precious)
    elif made == "file":
        place.write_text("x")
    else:
        place.mkdir()
        place.chmod(0o755)
    refused(registry, root, precious, CLOSE if made == "open to all" else MOVE)
    place.rename(root.parent / "away")
    for change in changes(registry):
        change()


def test_what_was_opened_to_others_is_closed_by_the_command_that_the_refusal_names(registry, root):
    home = root.rename(root.with_name("our skills"))
    write_skill(home / "alpha")
    registry.sync(str(home), name="ours")
    number = registry.delete("alpha").id
    for place in [state_of(home), *state_of(home).rglob("*")]:
        place.chmod(place.stat().st_mode | (0o055 if place.is_dir() else 0o044))
    with pytest.raises(ChangeRefused, match="others may open it; if this registry made it") as no:
        registry.create("beta", description="New.")
    command = re.search(r"chmod -R go-rwx \S.* (?=closes it)", str(no.value))[0]
    subprocess.run(command, shell=True, check=True)
    assert registry.create("beta", description="New.").name == "beta"
    assert registry.restore(number).ref == "alpha"  # and nothing of the trash is lost


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_state_folder_of_another_user_is_refused(registry, root, alpha, precious):
    state_of(root).mkdir(mode=0o700)
    os.chown(state_of(root), 65534, -1)
    refused(registry, root, precious, MOVE)


@pytest.mark.parametrize("made", ["link", "dangling", "second name", "text", "pipe", "folder"])
def test_what_lies_in_the_place_of_a_lock_is_neither_followed_nor_emptied(
    registry, root, alpha, precious, made
):
    make_state(root)
    lock = state_of(root, "lock")
    plant(lock, made, precious)
    refused(registry, root, precious, "move it away|Is a directory")
    assert (precious / "file").read_text() == "do not touch"
    lock.rename(root.parent / "away")
    for change in changes(registry):
        change()


def plant(place, made, precious):
    if made == "link":
        place.symlink_to(precious / "file")
    elif made == "dangling":
        place.symlink_to(precious / "new")
    elif made == "second name":
        os.link(precious / "file", place)
    elif made == "text":
        place.write_text("somebody's notes")
    elif made == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()


def test_an_ignore_file_that_leads_elsewhere_makes_nothing_there(registry, root, alpha, precious):
    state_of(root).mkdir(mode=0o700)
    state_of(root, ".gitignore").symlink_to(precious / "new")
    registry.update("alpha", description="New.")
    assert os.listdir(precious) == ["file"]


@pytest.mark.parametrize("made", ["link", "dangling", "second name", "pipe", "folder"])
@pytest.mark.parametrize("ending", [".lock", ".sync.lock"])
@pytest.mark.file
def test_what_lies_beside_a_database_is_no_lock_unless_it_is_one(
    registry, root, alpha, precious, database, made, ending
):
    """A repository can bring a database, and anything beside it."""
    lock = database.with_name(database.name + ending)
    registry.close()
    lock.unlink(missing_ok=True)
    plant(lock, made, precious)
    write_skill(root / "beta")
    before = seen(precious)
    with SkillRegistry.open(database, settings=Settings()) as other:
        with pytest.raises(DatabaseProblem, match="lock"):
            other.sync()
        assert [one.name for one in other.list()] == ["alpha"]
    assert seen(precious) == before
    if made != "folder":
        lock.unlink()
    else:
        lock.rmdir()
    with SkillRegistry.open(database, settings=Settings()) as other:
        assert other.sync().added == ("beta",)


@pytest.mark.file
def test_a_text_in_the_place_of_a_lock_of_a_sync_stays(registry, root, alpha, database):
    lock = database.with_name(database.name + ".sync.lock")
    lock.write_text("somebody's notes")
    write_skill(root / "beta")
    with pytest.raises(DatabaseProblem, match="not a lock file of skill-registry"):
        registry.sync()
    assert lock.read_text() == "somebody's notes"


@pytest.mark.file
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is another user than all others")
def test_a_database_of_another_user_brings_its_own_locks(registry, root, alpha, database):
    registry.sync()
    for path in (database, *database.parent.glob("*.lock")):
        os.chown(path, 65534, -1)
    write_skill(root / "beta")
    assert registry.sync().added == ("beta",)


@pytest.mark.file
def test_a_copy_goes_through_no_link(registry, root, alpha, precious, tmp_path):
    """The one that is kept before an upgrade lies beside the database, too."""
    from registry.db.sqlite.dialect import copy_file

    target = tmp_path / "copy.db"
    target.symlink_to(precious / "file")
    with sqlite3.connect(registry.path) as connection:
        copy_file(connection, str(target))
    connection.close()
    assert not target.is_symlink()
    assert (precious / "file").read_text() == "do not touch"
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]


class TestTrash:
    def plant(self, root, folder, number=NUMBER, **facts):
        """Lay a folder into the trash as a deleted skill with the note of an older version."""
        kept = state_of(root, "trash", number)
        write_skill(kept / "tree", name="evil")
        note = {
            "name": "evil",
            "folder": folder,
            "deleted_at": "2999-01-01T00:00:00Z",
            "created_at": "2020-01-01T00:00:00Z",
            "uid": "u",
            "database": "x",
        }
        (kept / "meta.json").write_text(json.dumps(note | facts))
        kept.chmod(0o700)
        return kept

    @pytest.mark.parametrize("folder", ["../../home/evil", "/tmp/evil", "evil", "\x1b[2Jevil"])
    def test_what_nobody_signed_is_neither_listed_nor_restored(
        self, registry, root, alpha, tmp_path, folder
    ):
        registry.delete("alpha")
        kept = self.plant(root, folder)
        before = seen(tmp_path, without=(tmp_path / "state",))
        assert [one.name for one in registry.trash()] == ["alpha"]
        for handle in ("evil", NUMBER, f"mine/{folder}"):
            with pytest.raises(NotInTrash):
                registry.restore(handle)
        assert seen(tmp_path, without=(tmp_path / "state",)) == before
        assert registry.restore("alpha").name == "alpha"
        assert registry.empty_trash() == 0
        assert (kept / "tree" / "SKILL.md").exists()

    def test_a_note_that_was_altered_or_copied_is_no_note(self, registry, root, alpha):
        trashed = registry.delete("alpha")
        meta = state_of(root, "trash", trashed.id, "meta.json")
        copied = self.plant(root, "x")
        (copied / "meta.json").write_bytes(meta.read_bytes())
        (copied / "meta.json").chmod(0o600)
        assert [one.id for one in registry.trash()] == [trashed.id]
        signed = meta.read_text()
        meta.write_text(signed.replace('"folder": "alpha"', '"folder": "../alpha"'))
        assert "../alpha" in meta.read_text()
        assert registry.trash() == []
        meta.write_text(signed)
        assert registry.restore(trashed.id).folder == "alpha"

    @pytest.mark.both
    def test_what_is_not_listed_is_counted_and_said_where_it_lies(
        self, registry, root, alpha, database
    ):
        from click.testing import CliRunner

        from registry.cli.app import root as program

        registry.delete("alpha")
        self.plant(root, "evil", name="\x1b[2Jevil")
        ran = CliRunner().invoke(program, ["--db", str(database), "trash", "list"])
        assert ran.exit_code == 0
        assert "alpha" in ran.stdout
        assert "evil" not in ran.output
        assert "\x1b" not in ran.output
        assert "1 folder in the trash can't be restored by this registry" in ran.stderr
        assert str(state_of(root, "trash")) in ran.stderr

    @pytest.mark.both
    def test_what_one_database_deleted_another_of_this_user_restores(
        self, registry, root, alpha, tmp_path
    ):
        """So that a registry that was copied, moved or built anew has its trash."""
        registry.delete("alpha")
        with SkillRegistry.open(tmp_path / "another.db", settings=Settings()) as other:
            other.sync(str(root), name="mine", allow_prune=True)
            assert [one.name for one in other.trash()] == ["alpha"]
            assert other.restore("alpha").folder == "alpha"
        assert registry.trash() == []


def synced(monkeypatch):
    """Note the folders that are made durable, in their order."""
    noted, real = [], os.fsync

    def fsync(descriptor):
        noted.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return noted


@pytest.mark.both
def test_a_deleted_skill_is_on_the_disk_in_the_trash_before_it_is_gone_from_its_source(
    registry, root, alpha, monkeypatch
):
    registry.update("alpha", kind="prompt")
    noted, real = synced(monkeypatch), swap.rename_new

    def renamed(one, other):
        noted.clear()
        real(one, other)

    monkeypatch.setattr(swap, "rename_new", renamed)
    trashed = registry.delete("alpha")
    kept = str(state_of(root, "trash", trashed.id))
    assert noted.index(kept) < noted.index(str(root))


@pytest.mark.file
def test_the_folder_of_a_new_database_is_on_the_disk(tmp_path, monkeypatch):
    noted = synced(monkeypatch)
    ensure_current(str(tmp_path / "a" / "b" / "registry.db"))
    assert noted[:2] == [str(tmp_path), str(tmp_path / "a")]


def test_the_folder_of_a_change_is_on_the_disk_before_the_journal_tells_of_it(
    registry, root, alpha, monkeypatch
):
    noted, real = synced(monkeypatch), commit.add_entry
    told = []

    def add_entry(connection, entry):
        told.extend(noted)
        real(connection, entry)

    monkeypatch.setattr(commit, "add_entry", add_entry)
    registry.update("alpha", description="New.")
    ops = str(state_of(root, "ops"))
    assert ops in told
    assert [path for path in told if path.startswith(f"{ops}/") and path.endswith("/record")]
