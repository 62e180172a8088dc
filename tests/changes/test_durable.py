"""What is published is on the disk before, and that it is published is right after."""

import os

import pytest

from registry.changes import commit
from registry.disk import atomic, swap
from registry.errors import SkillChangedOnDisk
from tests.conftest import write_skill


class Watch:
    """Which files and folders were made durable, before and after the rename that publishes."""

    def __init__(self, monkeypatch):
        self.before, self.after = set(), set()
        self.staged, self.folders, self.renames = set(), set(), 0
        real = os.fsync

        def fsync(descriptor):
            number = os.fstat(descriptor).st_ino
            (self.after if self.renames else self.before).add(number)
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        for name in ("rename_new", "exchange"):
            monkeypatch.setattr(swap, name, self.seen(getattr(swap, name)))

    def seen(self, rename):
        def renamed(one, other):
            is_staged = os.path.lexists(one.path) and "/ops/" in one.path
            staged = one.path if is_staged else os.path.dirname(other.path)
            if not self.staged:
                self.staged = {os.stat(os.path.dirname(staged)).st_ino, *below(staged)}
            rename(one, other)
            self.renames += 1
            self.folders |= {os.fstat(place.folder.fd).st_ino for place in (one, other)}

        return renamed


def below(path):
    yield os.stat(path).st_ino
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            yield os.stat(os.path.join(folder, name)).st_ino


def create(registry):
    registry.create("beta", description="New.", files={"a/b/c.txt": b"c", "d.txt": b"d"})


def update_a_file(registry):
    registry.update("alpha", files={"new.txt": b"new"})


def update_a_document(registry):
    registry.update("alpha", description="New.")


def update_files(registry):
    registry.update("alpha", description="New.", files={"a/b.txt": b"b"})


def delete(registry):
    registry.delete("alpha")


UPDATES = [update_a_file, update_a_document, update_files]


@pytest.mark.parametrize(
    ("change", "swaps"),
    [
        *((change, True) for change in (create, *UPDATES, delete)),
        *((change, False) for change in UPDATES[1:]),
    ],
)
def test_a_change_is_on_the_disk_before_and_after_it_is_published(
    registry, root, monkeypatch, change, swaps
):
    write_skill(root / "alpha")
    registry.sync(str(root), name="mine")
    registry.update("alpha", kind="prompt")  # the state folder is there
    if not swaps:
        monkeypatch.setattr(atomic, "renameat2", lambda: None)
    watch = Watch(monkeypatch)
    change(registry)
    assert watch.renames == (1 if swaps else 2)
    assert watch.staged - watch.before == set()
    assert watch.folders - watch.after == set()


def test_the_folders_of_a_first_change_are_on_the_disk(registry, root, tmp_path, monkeypatch):
    write_skill(root / "alpha")
    registry.sync(str(root), name="mine")
    watch = Watch(monkeypatch)
    update_files(registry)
    state = tmp_path / ".skills.skill-registry"
    made = {os.stat(path).st_ino for path in (tmp_path, state)}
    assert made - watch.before == set()


@pytest.mark.both
def test_an_edit_that_is_put_aside_is_on_the_disk(registry, root, tmp_path, monkeypatch):
    """It slipped in before the rename, and its place is taken after it."""
    alpha, synced = write_skill(root / "alpha"), set()
    registry.sync(str(root), name="mine")
    add, rename, real = commit.add_entry, swap.rename_new, os.fsync

    def add_entry(connection, entry):
        (alpha / "late.txt").write_text("late")
        add(connection, entry)

    def renamed(one, other):
        rename(one, other)
        write_skill(alpha, description="Another.")

    def fsync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(commit, "add_entry", add_entry)
    monkeypatch.setattr(swap, "rename_new", renamed)
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(SkillChangedOnDisk):
        registry.delete("alpha")
    conflict = tmp_path / ".skills.skill-registry" / "conflict"
    (kept,) = conflict.iterdir()
    assert (kept / "late.txt").read_text() == "late"
    assert conflict.stat().st_ino in synced
    assert registry.list()[0].description == "Another."
