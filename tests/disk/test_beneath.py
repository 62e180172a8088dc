"""What lies below a folder is opened by handles: no link on the way, nothing outside."""

import errno
import os
from contextlib import suppress

import pytest

from registry.disk import beneath
from registry.disk.beneath import READ, WRITE_NEW, Folder, open_beneath


@pytest.fixture
def home(opening, tmp_path):
    inside = tmp_path / "home"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "c.txt").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "c.txt").write_text("outside")
    with Folder.open(str(inside)) as folder:
        yield folder


def content(folder, path):
    descriptor = folder.open_file(path)
    try:
        return os.read(descriptor, 100)
    finally:
        os.close(descriptor)


def test_a_file_is_read_by_its_relative_path(home):
    assert content(home, "a/b/c.txt") == b"inside"
    assert home.lstat("a/b/c.txt").st_size == 6
    with home.folder("a") as inner, inner.folder("b") as innermost:
        assert content(innermost, "c.txt") == b"inside"
        assert innermost.path == f"{home.path}/a/b"
        assert [entry.name for entry in innermost.entries()] == ["c.txt"]


@pytest.mark.parametrize("path", ["a/l/c.txt", "l/c.txt", "l", "a/b/f"])
def test_no_link_is_followed_wherever_it_stands(home, path):
    os.symlink("../../outside", f"{home.path}/a/l")
    os.symlink("../outside", f"{home.path}/l")
    os.symlink("c.txt", f"{home.path}/a/b/f")
    with pytest.raises(OSError, match="levels of symbolic links") as refused:
        os.close(home.open_file(path))
    assert refused.value.errno == errno.ELOOP


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside/c.txt", "a/../../outside/c.txt", ".."])
def test_no_path_leads_out(home, path):
    with pytest.raises(OSError, match=r".") as refused:
        os.close(home.open_file(path))
    assert refused.value.errno == errno.EXDEV


def test_what_is_missing_is_missing_and_a_file_is_no_folder(home):
    with pytest.raises(FileNotFoundError):
        home.lstat("a/x/y")
    with pytest.raises(NotADirectoryError):
        home.open_file("a/b/c.txt/d")


def test_a_new_file_is_new(home):
    os.close(home.open_file("a/new", WRITE_NEW, 0o640))
    assert home.lstat("a/new").st_mode & 0o777 == 0o640
    with pytest.raises(FileExistsError):
        home.open_file("a/new", WRITE_NEW)


def test_a_path_longer_than_the_system_takes_is_walked(home):
    name, depth = "d" * 20, 250
    held = os.dup(home.fd)
    for _ in range(depth):
        os.mkdir(name, dir_fd=held)
        inner = os.open(name, beneath.FOLDER, dir_fd=held)
        os.close(held)
        held = inner
    os.close(os.open("end", WRITE_NEW, dir_fd=held))
    os.close(held)
    assert home.lstat(f"{name}/" * depth + "end").st_size == 0


def test_no_handle_is_left_open(home, tmp_path):
    def handles():
        return len(os.listdir("/proc/self/fd"))

    os.symlink("../outside", f"{home.path}/l")
    before = handles()
    for path in ("a/b/c.txt", "l/c.txt", "a/x/y", "a/b/c.txt/d", "../outside"):
        with suppress(OSError):
            os.close(open_beneath(home.fd, path, READ))
    home.folder("a").close()
    assert handles() == before
