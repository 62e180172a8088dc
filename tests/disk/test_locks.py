"""One holder at a time, who can be named, and nothing left open behind it."""

import os

import pytest

from registry.disk.beneath import Folder
from registry.disk.locks import FileLock, FolderLock


def test_a_lock_is_held_by_one_and_given_back(tmp_path):
    path, before = str(tmp_path / "lock"), os.listdir("/dev/fd")
    with FileLock(path) as one:
        assert one.acquire(0)
        assert not FileLock(path).acquire(0)
        assert not FileLock(path).acquire(0.01)
    with FileLock(path) as other:
        assert other.acquire(0)
    other.release()
    assert os.listdir("/dev/fd") == before


def test_a_lock_that_fails_leaves_nothing_open(tmp_path, monkeypatch):
    before = os.listdir("/dev/fd")

    def refuse(*_):
        raise OSError(37, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", refuse)
        with pytest.raises(OSError, match="No locks"):
            FileLock(str(tmp_path / "lock")).acquire(0)
    assert os.listdir("/dev/fd") == before


def test_the_last_who_signed_is_named_and_no_rest_of_a_longer_name(tmp_path):
    path = str(tmp_path / "lock")
    with FileLock(path) as lock:
        assert lock.acquire(0)
        assert FileLock(path).owner() == "another process"
        lock.sign("something that takes long to say")
        lock.sign("sync")
        assert FileLock(path).owner() == f"process {os.getpid()} (sync)"
        assert lock.now_ns() == os.stat(path).st_mtime_ns
    assert FileLock(str(tmp_path / "none")).owner() == "another process"


def test_a_folder_is_locked_without_a_trace(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Folder.open(str(folder)) as one, Folder.open(str(folder)) as other:
        with FolderLock(one) as lock:
            assert lock.acquire(0)
            assert not FolderLock(other).acquire(0)
            assert not FolderLock(one).acquire(0)
        with FolderLock(other) as lock:
            assert lock.acquire(0)
    assert list(folder.iterdir()) == []
