"""One holder at a time, who can be named, and nothing left open behind it."""

import os

import pytest

from registry.disk.beneath import Folder
from registry.disk.locks import FileLock, FolderLock, NotALock


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


@pytest.mark.parametrize("left", [b"", b"\0" * 30, b'{"pid"', b'{"pid": 12\0\0\0: "sync"}'])
def test_what_a_power_cut_left_of_a_note_is_signed_over(tmp_path, left):
    (tmp_path / "lock").write_bytes(left)
    with FileLock(str(tmp_path / "lock")) as lock:
        assert lock.owner() == "another process"
        assert lock.acquire(0)
        lock.sign("sync")
        assert lock.owner() == f"process {os.getpid()} (sync)"


@pytest.mark.parametrize(
    "text",
    [b"notes", b"{}", b'{"pids": 1}', b'{"pid": ' + b"x" * 2000, b"\0" * 2000],
    ids=["words", "empty", "near", "long", "zeros"],
)
def test_what_is_no_note_is_not_signed_over(tmp_path, text):
    (tmp_path / "lock").write_bytes(text)
    with FileLock(str(tmp_path / "lock")) as lock:
        assert lock.acquire(0)
        with pytest.raises(NotALock, match="not a lock file"):
            lock.sign("sync")
    assert (tmp_path / "lock").read_bytes() == text


def test_who_holds_a_lock_is_said_in_nobody_elses_words(tmp_path):
    for note in ('{"pid": "\\u001b[2J", "doing": "x"}', '{"pid": 1, "doing": "\\u001b[2J"}'):
        (tmp_path / "lock").write_text(note)
        assert FileLock(str(tmp_path / "lock")).owner() == "another process"


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
