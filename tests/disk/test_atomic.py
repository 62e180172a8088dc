"""Renames that replace nothing, contents that reach the disk, digests that miss nothing."""

import ctypes
import errno
import os
import sys
from contextlib import ExitStack

import pytest

from registry.disk import atomic
from registry.disk.beneath import Folder


@pytest.fixture
def descriptors():
    """Files that are open must be as many after the test as before it."""
    before = os.listdir("/dev/fd")
    yield
    assert os.listdir("/dev/fd") == before


@pytest.fixture
def at(tmp_path, descriptors):
    """Return the place of a name: ``at("file")``, or of a path's last part."""
    with ExitStack() as stack:

        def place(path):
            whole = tmp_path / path
            return atomic.Place(stack.enter_context(Folder.open(str(whole.parent))), whole.name)

        yield place


@pytest.fixture
def steps(monkeypatch):
    """Note in which order names and contents are made durable."""
    noted = []
    fsync, rename = os.fsync, os.rename

    def note_fsync(descriptor):
        noted.append(("fsync", os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))))
        fsync(descriptor)

    def note_rename(old, new, **folders):
        noted.append(("rename", os.path.basename(new)))
        rename(old, new, **folders)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "rename", note_rename)
    return noted


@pytest.mark.skipif(sys.platform != "linux", reason="asks for Linux's renameat2")
def test_two_folders_change_places_in_one_step(tmp_path, at):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    atomic.exchange(at("one"), at("other"))
    assert os.listdir(tmp_path / "one") == ["other"]
    assert os.listdir(tmp_path / "other") == ["one"]


@pytest.fixture(params=["no call", "no flags", "all there"])
def system(request, monkeypatch):
    """A system without the call, one whose file system does not know its flags, and this one."""

    def refuse(*_):
        ctypes.set_errno(errno.EINVAL)
        return -1

    answers = {"no call": lambda: None, "no flags": lambda: refuse}
    if request.param in answers:
        monkeypatch.setattr(atomic, "renameat2", answers[request.param])
    return request.param


def test_a_name_that_is_free_is_taken_and_one_that_is_not_is_left_alone(tmp_path, system, at):
    (tmp_path / "staged").mkdir()
    atomic.rename_new(at("staged"), at("live"))
    assert ((tmp_path / "live").is_dir(), (tmp_path / "staged").exists()) == (True, False)
    (tmp_path / "staged").write_text("new")
    (tmp_path / "taken").write_text("old")
    with pytest.raises(FileExistsError):
        atomic.rename_new(at("staged"), at("taken"))
    assert (tmp_path / "taken").read_text() == "old"


def test_what_can_not_be_exchanged_is_said_to_be_so_and_left_alone(tmp_path, system, at):
    if system == "all there":
        with pytest.raises(FileNotFoundError) as caught:
            atomic.exchange(at("one"), at("other"))
        assert caught.value.filename == str(tmp_path / "one")
        return
    for name in ("one", "other"):
        (tmp_path / name).write_text(name)
    with pytest.raises(atomic.ExchangeUnsupported):
        atomic.exchange(at("one"), at("other"))
    assert (tmp_path / "one").read_text() == "one"


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is written")
def test_a_file_and_a_folder_are_on_the_disk_when_they_are_said_to_be(tmp_path, steps, at):
    atomic.write_file(at("file"), b"x" * 100_000, 0o640)
    atomic.sync_folder(at("file").folder)
    assert steps == [("fsync", "file"), ("fsync", tmp_path.name)]
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "file").read_bytes() == b"x" * 100_000


def test_a_file_that_is_there_is_not_written_over(tmp_path, at):
    (tmp_path / "file").write_text("old")
    with pytest.raises(FileExistsError):
        atomic.write_file(at("file"), b"new")
    assert (tmp_path / "file").read_text() == "old"


@pytest.fixture
def tree(tmp_path):
    """A folder with one of each kind."""
    folder = tmp_path / "tree"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "run").write_text("#!/bin/sh\n")
    (folder / "inner" / "run").chmod(0o750)
    (folder / "link").symlink_to("inner/run")
    os.utime(folder / "inner" / "run", ns=(10**18, 10**18 + 1))
    (folder / "inner").chmod(0o700)
    return folder


def test_a_copied_folder_has_the_contents_modes_times_and_links_of_the_first(tree, at):
    to = tree.with_name("copy")
    atomic.copy_tree(at(tree), at(to))
    assert atomic.digest_of(at(to)) == atomic.digest_of(at(tree))
    assert os.readlink(to / "link") == "inner/run"
    for inner in ("inner", "inner/run"):
        assert (to / inner).stat().st_mode == (tree / inner).stat().st_mode
    assert (to / "inner" / "run").stat().st_mtime_ns == 10**18 + 1
    atomic.remove_tree(at(to))
    atomic.remove_tree(at(to))
    assert (to.exists(), tree.exists()) == (False, True)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is written")
def test_a_copied_folder_is_on_the_disk_from_the_innermost_outwards(tree, steps, at):
    atomic.copy_tree(at(tree), at("copy"))
    assert steps == [("fsync", "run"), ("fsync", "inner"), ("fsync", "copy")]


def test_a_pipe_is_not_copied(tree, at):
    os.mkfifo(tree / "pipe")
    with pytest.raises(OSError, match="special file can't be copied"):
        atomic.copy_tree(at(tree), at("copy"))


def test_a_digest_follows_everything_that_may_be_lost(tree, at):
    """What it vouches for may be removed: so nothing may be there that it did not see."""
    seen = [atomic.digest_of(at(tree))]

    def see():
        seen.append(atomic.digest_of(at(tree)))

    (tree / "link").unlink()
    (tree / "link").symlink_to("inner")
    see()
    (tree / "inner" / "run").chmod(0o650)
    see()
    (tree / "inner" / "run").write_text("#!/bin/bash\n")
    see()
    os.mkfifo(tree / "pipe")
    see()
    (tree / "pipe").rename(tree / "tube")
    see()
    (tree / "empty").mkdir()
    see()
    (tree / "empty").rename(tree / "inner" / "empty")
    see()
    assert len(set(seen)) == len(seen) == 8
    assert atomic.digest_of(at(tree / "nothing")) is None


def test_a_digest_is_of_contents_not_of_times_or_of_where_they_lie(tree, at):
    before = atomic.digest_of(at(tree))
    os.utime(tree / "inner" / "run", (1, 1))
    tree.rename(tree.with_name("elsewhere"))
    assert atomic.digest_of(at("elsewhere")) == before
