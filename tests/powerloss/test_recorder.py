"""Every effect on files is recorded: done again in order, the calls give the same files."""

import ctypes
import os
import sqlite3
import subprocess
import threading
from collections import Counter
from contextlib import closing

import pytest

from tests.powerloss.model import History
from tests.powerloss.recorder import NotUnderstood, record
from tests.powerloss.states import Cut
from tests.powerloss.tracer import CannotTrace
from tests.powerloss.tree import read_tree

OPENAT2 = 437


@pytest.fixture
def recorded(tmp_path):
    """Record a piece of work in an empty folder; its calls, done again, leave what it left."""

    def run(work):
        base = str(tmp_path)
        start = read_tree(base)
        try:
            calls = record(work, base)
        except CannotTrace as error:
            pytest.skip(str(error))
        again = Cut(History(base, start, calls), len(calls)).whole()
        assert again.tree() == read_tree(base)
        return [(call.kind, os.path.relpath(call.path, base)) for call in calls]

    return run


def write(path, data, flags=0, **more):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o640, **more)
    os.write(descriptor, data)
    os.close(descriptor)


def test_contents_are_recorded_however_they_are_written(recorded, tmp_path):
    def work(_):
        write(tmp_path / "one", b"12345678")
        write(tmp_path / "one", b"end", os.O_APPEND)
        descriptor = os.open(tmp_path / "one", os.O_RDWR)
        os.pwrite(descriptor, b"abc", 20)
        os.writev(descriptor, [b"x", b"yz"])
        os.pwritev(descriptor, [b"p", b"q"], 40)
        os.pwritev(descriptor, [b"r"], 44, os.RWF_HIPRI)
        os.ftruncate(descriptor, 41)
        os.posix_fallocate(descriptor, 0, 50)
        copy = os.open(tmp_path / "two", os.O_RDWR | os.O_CREAT)
        os.copy_file_range(descriptor, copy, 10, 0, 3)
        os.copy_file_range(descriptor, copy, 5, 0)
        os.sendfile(copy, descriptor, 0, 7)
        os.fdatasync(copy)
        os.truncate(tmp_path / "one", 45)
        write(tmp_path / "two", b"new", os.O_TRUNC)
        os.fsync(descriptor)

    kinds = Counter(recorded(work))
    assert kinds == {
        ("create", "one"): 1,
        ("write", "one"): 6,
        ("truncate", "one"): 3,
        ("fsync", "one"): 1,
        ("create", "two"): 1,
        ("write", "two"): 4,
        ("fdatasync", "two"): 1,
        ("truncate", "two"): 1,
    }


def test_names_are_recorded_by_path_and_by_the_handle_of_a_folder(recorded, tmp_path):
    def work(_):
        os.makedirs(tmp_path / "a" / "b")
        a = os.open(tmp_path / "a", os.O_RDONLY)
        os.mkdir("c", dir_fd=a)
        os.rename(tmp_path / "a", tmp_path / "moved")  # a handle stays with its folder
        write("f", b"1", dir_fd=a)
        os.link("f", "g", src_dir_fd=a, dst_dir_fd=a)
        os.symlink("f", "s", dir_fd=a)
        os.chdir(tmp_path / "moved" / "b")
        write("here", b"2")
        os.rename("here", "../there")
        write(tmp_path / "moved" / "s", b"through")
        os.chmod("f", 0o755, dir_fd=a)
        exchange("c", a, "f", a)
        exchange("g", a, "g2", a, flags=1)
        os.unlink("s", dir_fd=a)
        os.rmdir("f", dir_fd=a)
        os.unlink("g2", dir_fd=a)
        os.fsync(a)

    assert recorded(work) == [
        ("mkdir", "a"),
        ("mkdir", "a/b"),
        ("mkdir", "a/c"),
        ("rename", "a"),
        ("create", "moved/f"),
        ("write", "moved/f"),
        ("link", "moved/f"),
        ("symlink", "moved/s"),
        ("create", "moved/b/here"),
        ("write", "moved/b/here"),
        ("rename", "moved/b/here"),
        ("write", "moved/f"),
        ("chmod", "moved/f"),
        ("exchange", "moved/c"),
        ("rename", "moved/g"),
        ("unlink", "moved/s"),
        ("rmdir", "moved/f"),
        ("unlink", "moved/g2"),
        ("fsync", "moved"),
    ]


def exchange(one, one_folder, other, other_folder, flags=2):
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.renameat2(one_folder, one.encode(), other_folder, other.encode(), flags) == 0


def test_a_file_opened_by_openat2_is_recorded(recorded, tmp_path):
    def work(_):
        folder = os.open(tmp_path, os.O_RDONLY)
        how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o600, 0)
        made = ctypes.CDLL(None).syscall(OPENAT2, folder, b"new", how, ctypes.sizeof(how))
        assert made >= 0
        os.write(made, b"data")

    assert recorded(work) == [("create", "new"), ("write", "new")]


def test_what_fails_has_no_effect(recorded, tmp_path):
    def work(_):
        write(tmp_path / "one", b"1")
        for call in (os.rmdir, os.mkdir, os.listdir):
            with pytest.raises(OSError, match="one"):
                call(tmp_path / "one")
        with pytest.raises(FileNotFoundError):
            os.rename(tmp_path / "none", tmp_path / "one")

    assert recorded(work) == [("create", "one"), ("write", "one")]


def test_threads_and_children_are_followed(recorded, tmp_path):
    def work(_):
        names = [f"{number}" for number in range(4)]
        threads = [threading.Thread(target=fill, args=[tmp_path / name]) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        subprocess.run(["/bin/sh", "-c", 'echo child > "$0"', tmp_path / "9"], check=True)

    def fill(path):
        for part in range(50):
            write(path, b"%d" % part, os.O_APPEND)

    kinds = Counter(recorded(work))
    assert kinds == {
        **{("create", str(number)): 1 for number in (0, 1, 2, 3, 9)},
        **{("write", str(number)): 50 for number in range(4)},
        ("write", "9"): 1,
    }


@pytest.mark.parametrize("journal", ["WAL", "TRUNCATE", "DELETE"])
def test_what_sqlite_writes_is_recorded(recorded, tmp_path, journal):
    def work(_):
        with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
            connection.execute("CREATE TABLE t (x)")
            connection.executemany("INSERT INTO t VALUES (?)", [(b"x" * 5000,)] * 5)

    calls = recorded(work)
    log = "db-wal" if journal == "WAL" else "db-journal"
    assert {("write", "db"), ("fdatasync", "db"), ("write", log), ("fdatasync", log)} <= set(calls)


def test_what_was_acknowledged_is_known(recorded, tmp_path):
    def work(done):
        write(tmp_path / "one", b"1")
        done()
        os.unlink(tmp_path / "one")

    assert [kind for kind, _ in recorded(work)] == ["create", "write", "done", "unlink"]


def test_a_way_to_write_that_is_not_understood_ends_the_recording(recorded, tmp_path):
    def work(_):
        import mmap

        with open(tmp_path / "one", "w+b") as file:
            file.write(b"1234")
            file.flush()
            mmap.mmap(file.fileno(), 4)

    with pytest.raises(NotUnderstood, match="one is mapped"):
        recorded(work)


def test_where_nothing_can_be_watched_that_is_said(recorded, tmp_path):
    def work(_):  # what is watched already can't be watched by another
        with pytest.raises(CannotTrace, match="ptrace"):
            record(lambda _: None, str(tmp_path))

    assert recorded(work) == []


def test_work_that_fails_is_not_recorded(recorded, tmp_path, capfd):
    with pytest.raises(AssertionError, match="ended with 1"):
        recorded(lambda _: (tmp_path / "none").read_bytes())
    assert "FileNotFoundError" in capfd.readouterr().err
