"""What is stored is compared with its hash: `db check` tells, a sync that verifies mends."""

import codecs
import json
import os
import tracemalloc
import zlib

import pytest

from registry.api import SkillRegistry
from registry.settings import Settings
from tests.program import run
from tests.test_stored_content import DAMAGED, MEGABYTE, store, write

pytestmark = pytest.mark.both

BODY = "Nothing but what is said here, and it is said at some length. " * 20


@pytest.fixture
def library(database, root, skill):
    (skill("alpha", body=BODY) / "data.bin").write_bytes(b"all of it\n" * 1000)
    (skill("beta") / "copied.bin").write_bytes(b"all of it\n" * 1000)
    skill("gamma", description="用于查询天气预报。", body="天气预报。\n")
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        assert registry.check_database() == []
        yield registry


def altered(registry, name, change):
    """Run an UPDATE of the text of a skill, behind everybody's back."""
    ids = registry.core.reader.rows("SELECT id FROM skills WHERE name = ? AND live = 1", (name,))
    write(registry, f"UPDATE documents SET {change} WHERE skill_id = ?", ids[0])


@pytest.mark.parametrize("name", ["alpha", pytest.param("beta", marks=pytest.mark.file), "gamma"])
@pytest.mark.parametrize(
    "change",
    [
        "text = 'Something else.'",
        "text = text || ' And more of it, as much as there was before.'",
        "text = ''",
        "text = upper(text), body_start = 0",
    ],
)
def test_an_altered_text_is_named_and_a_verifying_sync_stores_the_skill_again(
    library, root, name, change
):
    before = library.read(name)
    altered(library, name, change)
    assert library.check_database() == [f"the stored text of skill {name} does not fit its hash"]
    assert library.check_database(contents=False) == []
    assert library.sync().updated == ()
    assert len(library.check_database()) == 1
    assert library.sync(verify=True, dry_run=True).updated == (name,)
    assert library.sync(verify=True).updated == (name,)
    assert library.check_database() == []
    assert library.read(name) == before
    assert [one.number for one in library.history(name)] == [1]
    assert library.sync(verify=True).updated == ()
    for query in ("length", "天气"):
        found = library.search(query)
        assert found.total == 1
    library.delete(name)
    assert library.check_database() == []


def test_a_text_that_is_gone_is_named_and_comes_back(library):
    ids = library.core.reader.rows("SELECT id FROM skills WHERE name = 'alpha'")
    write(library, "DELETE FROM documents WHERE skill_id = ?", ids[0])
    assert library.check_database() == ["the stored text of skill alpha does not fit its hash"]
    assert library.sync(verify=True).updated == ("alpha",)
    assert BODY.strip() in library.read("alpha")
    assert library.check_database() == []


@pytest.mark.parametrize("stored", DAMAGED.values(), ids=DAMAGED)
def test_altered_bytes_are_named_with_all_they_are_of_and_come_back_from_the_disk(library, stored):
    data, size, packed = stored
    store(library, data, size=size, packed=packed)
    said = "the stored bytes of data.bin of skills alpha, beta do not fit their hash"
    assert library.check_database() == [said]
    report = library.sync(verify=True)
    assert (report.updated, report.unchanged) == ((), 3)
    assert library.check_database() == []


def test_bytes_of_the_past_are_named_by_whose_they_were_and_left_alone(library, root):
    store(library, b"another", packed=0)
    for name in ("alpha/data.bin", "beta/copied.bin"):
        (root / name).write_bytes(b"new")
    library.sync()
    said = "the stored bytes of what was once a file of alpha, beta do not fit their hash"
    assert library.check_database() == [said]
    library.sync(verify=True)
    assert library.check_database() == [said]
    library.prune(keep=0)
    assert library.check_database() == []


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        codecs.BOM_UTF8 + b"---\nname: odd\ndescription: Odd.\n---\nBody.\n",
        b"---\nname: odd\ndescription: Odd.\n---\nBo\0dy.\n",
        b"---\nname: odd\ndescription: Odd.\n---\nB\xf6dy.\n",
        b"---\r\nname: odd\r\ndescription: Odd.\r\n---\r\nBody.\r\n",
        b"",
    ],
)
def test_a_document_that_is_not_its_text_alone_is_sound(database, root, data, keeps):
    (root / "odd").mkdir()
    (root / "odd" / "SKILL.md").write_bytes(data)
    with SkillRegistry.open(database, settings=Settings(store_files=keeps)) as registry:
        registry.sync(str(root), name="mine")
        assert registry.check_database() == []
        assert registry.sync(verify=True).updated == ()


def test_such_a_document_is_compared_with_its_stored_bytes(database, root):
    (root / "odd").mkdir()
    text = b"---\nname: odd\ndescription: Odd.\n---\nBody.\n"
    (root / "odd" / "SKILL.md").write_bytes(codecs.BOM_UTF8 + text)
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        altered(registry, "odd", "text = 'Other.'")
        assert registry.check_database() == ["the stored text of skill odd does not fit its hash"]
        write(registry, "UPDATE contents SET data = ?, packed = 0", (b"x",))
        assert registry.sync(verify=True).updated == ("odd",)
        assert registry.check_database() == []


def test_the_command_says_so_by_its_exit_status(library, database):
    altered(library, "alpha", "text = 'Other.'")
    program = ["--db", str(database)]
    ran = run([*program, "db", "check", "--json"], environ=dict(os.environ))
    assert ran.status == 1, ran
    said = ["the stored text of skill alpha does not fit its hash"]
    assert json.loads(ran.out) == {"path": library.path, "problems": said}
    assert "sync --verify" in ran.err
    for arguments in (["sync", "--verify"], ["db", "check"]):
        ran = run([*program, *arguments], environ=dict(os.environ))
        assert ran.status == 0, ran


def test_many_are_counted(database, root, skill):
    for number in range(25):
        (skill(f"one-{number:02}") / "data.bin").write_bytes(b"%d" % number)
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        write(registry, "UPDATE documents SET text = 'Other.'")
        write(registry, "UPDATE contents SET data = ?, size = 1, packed = 0", (b"x",))
        said = registry.check_database()
        assert len(said) == 42
        assert said[20] == "the stored text of 5 more skills does not fit its hash"
        assert said[41] == "the stored bytes of 5 more files do not fit their hash"
        assert len(registry.sync(verify=True).updated) == 25
        assert registry.check_database() == []


def test_what_is_far_too_large_is_not_read(library):
    data = bytes(200 * MEGABYTE)
    store(library, zlib.compress(data, 9), size=10_000)
    altered(library, "alpha", "text = 'Other.'")
    tracemalloc.start()
    try:
        assert len(library.check_database()) == 2
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 32 * MEGABYTE
