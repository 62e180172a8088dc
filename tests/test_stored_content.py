"""Stored bytes are believed only as far as their hash: a database may be anybody's."""

import tracemalloc
import zlib

import pytest

from registry.api import SkillRegistry
from registry.disk.files import digest
from registry.errors import ContentDamaged, FileTooLarge, RegistryError
from registry.settings import Limits, Settings
from tests.conftest import write_skill

MEGABYTE = 1 << 20


@pytest.fixture
def library(database, root, skill):
    """A library of two skills whose folders are, for the database, on another machine."""
    (skill("alpha") / "data.bin").write_bytes(b"all of it\n" * 1000)
    skill("beta")
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        yield registry


@pytest.fixture
def abroad(library):
    write(library, "UPDATE sources SET host = 'elsewhere'")
    return library


def write(registry, sql, values=()):
    with registry.core.writer.transaction() as connection:
        marks = sql if connection.dialect.name == "sqlite" else sql.replace("?", "%s")
        assert connection.exec_driver_sql(f"{marks} RETURNING 1", tuple(values)).all()


def store(registry, data, *, size=None, packed=1):
    """Put other bytes in the place of those of ``data.bin``."""
    content_hash = next(f.hash for f in registry.get("alpha").files if f.path == "data.bin")
    write(
        registry,
        "UPDATE contents SET data = ?, size = ?, packed = ? WHERE hash = ?",
        (data, len(data) if size is None else size, packed, content_hash),
    )


DAMAGED = {
    "other bytes": (zlib.compress(b"another"), 7, 1),
    "other bytes, as they are": (b"another", 7, 0),
    "no zlib": (b"\x00garbage", 10_000, 1),
    "cut off": (zlib.compress(b"all of it\n" * 1000)[:-20], 10_000, 1),
    "empty": (b"", 10_000, 1),
    "far more than it says": (zlib.compress(bytes(64 * MEGABYTE)), 10_000, 1),
}


@pytest.mark.both
@pytest.mark.parametrize("stored", DAMAGED.values(), ids=DAMAGED)
def test_bytes_without_their_hash_are_handed_to_nobody_and_other_skills_come(
    abroad, stored, tmp_path
):
    data, size, packed = stored
    store(abroad, data, size=size, packed=packed)
    for read in (
        lambda: abroad.read_file("alpha", "data.bin"),
        lambda: abroad.read_revision("alpha", 1, "data.bin"),
    ):
        with pytest.raises(ContentDamaged, match=r"The stored content of 'data\.bin' is damaged\."):
            read()
    pulled = abroad.pull(abroad.list().items, str(tmp_path / "pulled"))
    assert [(one.ref, one.state) for one in pulled] == [("alpha", "failed"), ("beta", "added")]
    assert "is damaged" in pulled[0].reason
    assert not (tmp_path / "pulled" / "alpha").exists()
    exported = abroad.export(abroad.list().items, str(tmp_path / "site"))
    assert [one.name for one in exported.skills] == ["beta"]
    assert "is damaged" in dict(exported.left_out)["alpha"]


def test_a_revision_with_damaged_bytes_is_not_restored_and_the_folder_stays(library, root):
    (root / "alpha" / "data.bin").write_bytes(b"new")
    library.sync()
    before = {one.hash for one in library.history("alpha")[-1].files}
    for content_hash in before:
        write_all = "UPDATE contents SET data = ?, packed = 0, size = 3 WHERE hash = ?"
        if library.core.reader.rows("SELECT 1 FROM contents WHERE hash = ?", (content_hash,)):
            write(library, write_all, (b"bad", content_hash))
    with pytest.raises(ContentDamaged):
        library.restore_revision("alpha", 1)
    with pytest.raises(ContentDamaged):
        library.diff("alpha", 1)
    assert (root / "alpha" / "data.bin").read_bytes() == b"new"


def test_what_is_damaged_in_the_database_is_pulled_from_the_disk_where_that_is_here(
    library, root, tmp_path
):
    store(library, zlib.compress(b"another"))
    library.pull(library.list().items, str(tmp_path / "pulled"))
    pulled = tmp_path / "pulled" / "alpha" / "data.bin"
    assert pulled.read_bytes() == (root / "alpha" / "data.bin").read_bytes()


@pytest.mark.both
def test_little_that_unpacks_to_very_much_takes_little_memory(abroad, tmp_path):
    bomb = zlib.compress(bytes(256 * MEGABYTE), 9)
    assert len(bomb) < MEGABYTE
    store(abroad, bomb, size=10_000)
    tracemalloc.start()
    try:
        with pytest.raises(ContentDamaged):
            abroad.read_file("alpha", "data.bin")
        with pytest.raises(ContentDamaged):
            abroad.read_revision("alpha", 1, "data.bin")
        abroad.pull(abroad.list().items, str(tmp_path / "pulled"))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 64 * MEGABYTE


@pytest.mark.both
def test_a_file_over_the_limit_is_refused_by_its_size_unseen(abroad):
    data = bytes(20 * MEGABYTE)
    store(abroad, zlib.compress(data), size=len(data))
    with pytest.raises(FileTooLarge, match="20971520 bytes, 1048576 are allowed"):
        abroad.read_file("alpha", "data.bin")
    with pytest.raises(FileTooLarge, match="16777216 are allowed"):
        abroad.read_revision("alpha", 1, "data.bin")


def test_a_skill_from_elsewhere_is_no_larger_than_one_from_here_may_be(database, root, skill):
    folder = skill("alpha")
    for number in range(4):
        (folder / f"{number}.bin").write_bytes(bytes([number]) * 1000)
    write_skill(root / "beta")
    to = str(root.with_name("pulled"))
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync(str(root))
        write(registry, "UPDATE sources SET host = 'elsewhere'")
    for limits, reason in (
        (Limits(files=3), "it has 5 files, 3 are allowed"),
        (Limits(skill_bytes=3500), "has 1000 bytes, "),
    ):
        with SkillRegistry.open(database, settings=Settings(limits=limits)) as registry:
            pulled = registry.pull(registry.list().items, to)
        states = {one.ref: one.state for one in pulled}
        assert states["alpha"] == "failed"
        assert states["beta"] in {"added", "unchanged"}
        assert reason in pulled[0].reason


def test_every_stored_byte_string_is_what_a_refusal_names(abroad):
    """The error is one of ours, with a code that stays."""
    store(abroad, b"x")
    with pytest.raises(RegistryError) as refused:
        abroad.read_file("alpha", "data.bin")
    assert (refused.value.code, refused.value.facts) == ("content_damaged", {"path": "data.bin"})
    assert digest(b"x") not in str(refused.value)
