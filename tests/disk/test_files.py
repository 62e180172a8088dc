"""A file is read whole, as it was at one moment, or not at all."""

import os

import pytest

from registry.disk import files
from registry.disk.files import open_home, read_file, read_inside
from registry.errors import FileChanging, FileTooLarge, SkillInaccessible


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    return path


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not(file):
    assert read_file(str(file), 5).data == b"12345"
    with pytest.raises(FileTooLarge) as caught:
        read_file(str(file), 4)
    assert (caught.value.facts["size"], caught.value.facts["limit"]) == (5, 4)


def test_reading_leaves_no_file_open(file):
    before = os.listdir("/dev/fd")
    read_file(str(file), 5)
    with pytest.raises(FileTooLarge):
        read_file(str(file), 4)
    with pytest.raises(SkillInaccessible):
        read_file(str(file.parent), 4)
    assert os.listdir("/dev/fd") == before


@pytest.fixture
def meanwhile(monkeypatch):
    """Do something while a file is read: between its bytes and the second look."""

    def arrange(*doings):
        left, read = list(doings), os.read

        def reading(descriptor, count):
            data = read(descriptor, count)
            if left:
                left.pop(0)()
            return data

        monkeypatch.setattr(files.os, "read", reading)

    return arrange


def test_a_file_that_is_replaced_or_grows_while_it_is_read_is_read_again(file, meanwhile):
    def replace():
        file.with_name("new").write_bytes(b"newer")
        os.replace(file.with_name("new"), file)

    def grow():
        with file.open("ab") as more:
            more.write(b"!")

    meanwhile(replace, grow)
    assert read_file(str(file), 100).data == b"newer!"


def test_a_file_that_goes_and_comes_back_while_it_is_read_is_read_again(file, meanwhile):
    away = file.with_name("away")
    meanwhile(lambda: file.rename(away), lambda: None)
    with pytest.raises(FileNotFoundError):
        read_file(str(file), 100)


def test_a_file_that_never_rests_is_given_up(file, meanwhile):
    def touch():
        os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))

    meanwhile(*[touch] * 50)
    with pytest.raises(FileChanging):
        read_file(str(file), 100)


def test_a_link_is_followed_inside_the_skill_and_to_its_source_and_nowhere_else(tmp_path):
    home, root = tmp_path / "root" / "home", tmp_path / "root"
    home.mkdir(parents=True)
    for place in (home / "own", root / "shared", tmp_path / "foreign"):
        place.write_text(place.name)
        (home / f"to-{place.name}").symlink_to(place)

    def read(name):
        with open_home(str(root), "home") as folder:
            return read_inside(folder, f"to-{name}", 100, str(root)).data

    assert (read("own"), read("shared")) == (b"own", b"shared")
    with pytest.raises(SkillInaccessible, match="is a link"):
        read("foreign")
