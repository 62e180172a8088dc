"""The key with which a user signs: made once, for nobody else, and refused where it is not."""

import os

import pytest

from registry.changes.signer import Signer
from registry.disk.atomic import Place
from registry.disk.beneath import Folder
from registry.errors import OwnFileUnusable
from tests.program import Script


@pytest.fixture
def key():
    return os.path.expanduser("~/.local/share/skill-registry/state.key")


def test_the_key_is_made_once_and_for_its_user_alone(registry, alpha, key):
    assert not os.path.exists(key)
    registry.update("alpha", description="One.")
    facts = os.stat(key)
    assert (facts.st_size, facts.st_mode & 0o777, facts.st_nlink) == (32, 0o600, 1)
    registry.update("alpha", description="Two.")
    assert os.stat(key).st_ino == facts.st_ino
    assert set(os.listdir(os.path.dirname(key))) - {"sources"} == {"state.key"}


@pytest.mark.file
def test_the_key_follows_the_platforms_data_folder(registry, alpha, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    registry.update("alpha", description="One.")
    assert (tmp_path / "data" / "skill-registry" / "state.key").stat().st_size == 32


def linked(key):
    os.rename(key, f"{key}.real")
    os.symlink(f"{key}.real", key)


def linked_twice(key):
    os.link(key, f"{key}.other")


def readable(key):
    os.chmod(key, 0o640)


def short(key):
    os.truncate(key, 5)


def folder(key):
    os.unlink(key)
    os.mkdir(key)


def pipe(key):
    os.unlink(key)
    os.mkfifo(key, 0o600)


@pytest.mark.parametrize("change", [linked, linked_twice, readable, short, folder, pipe])
def test_a_key_that_others_could_have_made_is_refused_in_words(registry, alpha, key, change):
    registry.update("alpha", description="One.")
    change(key)
    with pytest.raises(OwnFileUnusable) as refused:
        registry.update("alpha", description="Two.")
    assert refused.value.path == key
    assert registry.list()[0].description == "One."  # and reading goes on
    registry.sync()
    os.rename(key, f"{key}.away")
    assert registry.update("alpha", description="Two.").description == "Two."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_user_is_refused(registry, alpha, key):
    registry.update("alpha", description="One.")
    os.chown(key, 65534, -1)
    with pytest.raises(OwnFileUnusable, match="this registry did not create it for you"):
        registry.update("alpha", description="Two.")


MAKER = """
from registry.changes import signer
print(signer._key(make=True).hex())
"""


def test_of_many_processes_that_make_a_key_all_have_the_same():
    running = [Script(MAKER) for _ in range(6)]
    keys = {script.end(60).out for script in running}
    assert len(keys) == 1
    assert len(keys.pop().strip()) == 64


@pytest.fixture
def here(tmp_path):
    with Folder.open(str(tmp_path)) as folder:
        yield Place(folder, "record")


FACTS = {"a": "b", "c": [1, None]}


def test_a_record_is_known_again_by_what_it_was_signed_for_and_nothing_else(here, tmp_path):
    seal = Signer(b"k" * 32, "database", "/root")
    seal.write(here, "change", "1", FACTS)
    assert seal.read(here, "change", "1") == FACTS
    for other in (
        Signer(b"l" * 32, "database", "/root"),
        Signer(b"k" * 32, "another", "/root"),
        Signer(b"k" * 32, "database", "/other"),
    ):
        assert other.read(here, "change", "1") is None
    assert seal.read(here, "trash", "1") is None
    assert seal.read(here, "change", "2") is None
    path = tmp_path / "record"
    signed = path.read_text()
    for text in (
        signed.replace('"b"', '"c"'),
        signed.replace("signature", "sign"),
        signed[:-1],
        "[]",
        "{}",
        '{"record": 1, "signature": 2}',
        '{"record": {}, "signature": "\udc80"}',
        "[" * 100_000,
        "",
    ):
        path.write_text(text, errors="surrogateescape")
        assert seal.read(here, "change", "1") is None
    path.write_text(signed)
    assert seal.read(here, "change", "1") == FACTS
    path.chmod(0o644)
    assert seal.read(here, "change", "1") is None
