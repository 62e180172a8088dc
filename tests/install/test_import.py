"""An archive brings one skill in, or nothing at all."""

import contextlib
import io
import os
import stat
import tarfile
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.api import SkillRegistry
from registry.errors import ArchiveRefused, InvalidName, RegistryError, SkillExists, SkillInvalid
from registry.install import imports as bringing
from registry.settings import Limits, Settings
from tests.remotes import packed

DOCUMENT = b"---\nname: packed\ndescription: Came in a box.\n---\n\n# Packed\n"
FILES = {"SKILL.md": DOCUMENT, "scripts/run.py": b"print(1)\n"}


def zipped(path, files):
    path.write_bytes(packed.zipped(files))
    return str(path)


def tarred(path, files):
    path.write_bytes(packed.tarred(files))
    return str(path)


@pytest.fixture
def refused(mine, root):
    """Return why an archive is refused; nothing is left of it."""

    def run(path):
        with pytest.raises(ArchiveRefused) as caught:
            mine.import_archive(path)
        assert list(root.iterdir()) == []
        assert mine.list().total == 0
        return caught.value.facts["reason"]

    return run


@pytest.mark.parametrize("wrap", ["", "folder/", "./", "./folder/"])
@pytest.mark.parametrize(
    ("pack", "suffix"), [(zipped, "skill"), (zipped, "zip"), (tarred, "tar.gz"), (tarred, "tgz")]
)
def test_both_layouts_of_all_kinds_are_accepted(mine, root, tmp_path, pack, suffix, wrap):
    files = {wrap + name: data for name, data in FILES.items()}
    made = mine.import_archive(pack(tmp_path / f"box.{suffix}", files))
    assert (made.ref, made.description) == ("packed", "Came in a box.")
    for name, data in FILES.items():
        assert (root / "packed" / name).read_bytes() == data


@pytest.mark.both
def test_the_folder_may_have_another_name(mine, root, tmp_path):
    mine.import_archive(zipped(tmp_path / "a.zip", FILES), name="elsewhere")
    assert (root / "elsewhere" / "SKILL.md").exists()


def test_a_skill_that_is_there_is_left_alone(mine, root, tmp_path):
    mine.import_archive(zipped(tmp_path / "a.zip", FILES))
    with pytest.raises(SkillExists):
        mine.import_archive(zipped(tmp_path / "b.zip", {"SKILL.md": DOCUMENT + b"Other.\n"}))
    assert (root / "packed" / "SKILL.md").read_bytes() == DOCUMENT


def test_paths_that_lead_out_are_refused(refused, tmp_path):
    for pack in [zipped, tarred]:
        for name in ["../evil.txt", "/etc/evil", "a/../../evil", "a\\b", "C:/evil", ".git/config"]:
            assert "can't be in a skill's folder" in refused(
                pack(tmp_path / "a.bin", {**FILES, name: b"x"})
            )
            assert not (tmp_path.parent / "evil.txt").exists()


def test_links_and_devices_are_refused(refused, tmp_path):
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        path = tarred(tmp_path / "a.tar.gz", FILES)
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo("SKILL.md")
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        assert "not a plain file" in refused(path)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("SKILL.md")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    assert "not a plain file" in refused(str(path))


def test_members_that_are_there_twice_are_refused(refused, tmp_path):
    path = tarred(tmp_path / "a.tar.gz", {**FILES, "Scripts/RUN.py": b"x"})
    assert "is there twice" in refused(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_two_of_one_name_is_refused(refused, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("SKILL.md", DOCUMENT)
        archive.writestr("SKILL.md", DOCUMENT + b"x")
    assert "is there twice" in refused(str(path))


def test_bombs_are_not_unpacked(database, root, tmp_path):
    limits = Limits(skill_bytes=100_000, files=10)
    with SkillRegistry.open(database, settings=Settings(limits=limits)) as registry:
        registry.sync(str(root))
        for pack in (zipped, tarred):
            bomb = pack(tmp_path / "bomb", {**FILES, "zeros": bytes(5_000_000)})
            with pytest.raises(
                ArchiveRefused, match=r"larger than a skill may be|when it is unpacked"
            ):
                registry.import_archive(bomb)
            many = pack(tmp_path / "many", FILES | {f"f{n}": b"" for n in range(20)})
            with pytest.raises(ArchiveRefused, match="more than 10 files"):
                registry.import_archive(many)
        assert list(root.iterdir()) == []


def test_a_header_that_holds_a_bomb_is_not_read(refused, tmp_path):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("SKILL.md")
        member.pax_headers = {"comment": "x" * 20_000_000}
        member.size = len(DOCUMENT)
        archive.addfile(member, io.BytesIO(DOCUMENT))
    assert "when it is unpacked" in refused(str(path))


def test_a_name_is_not_cut_off_at_a_nul(refused, tmp_path):
    path = tmp_path / "a.zip"
    zipped(path, {**FILES, "ok-name.txt": b"x"})
    path.write_bytes(path.read_bytes().replace(b"ok-name.txt", b"ok\0name.txt"))
    assert "is not the name of a file" in refused(str(path))


def test_what_macos_adds_to_a_zip_is_passed_over(mine, root, tmp_path):
    mine.import_archive(zipped(tmp_path / "a.zip", {**FILES, "__MACOSX/._SKILL.md": b"x"}))
    assert sorted(path.name for path in (root / "packed").iterdir()) == ["SKILL.md", "scripts"]


def test_an_archive_that_is_too_large_is_not_read(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(bringing, "MAX_PACKED", 100)
    assert "are allowed" in refused(zipped(tmp_path / "a.zip", FILES))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no SKILL.md"),
        ({"README.md": b"x"}, "no SKILL.md"),
        ({"a/SKILL.md": DOCUMENT, "b/SKILL.md": DOCUMENT}, "no SKILL.md at its top"),
        ({"SKILL.md": DOCUMENT, "SKILL.MD": DOCUMENT}, "twice"),
    ],
)
def test_an_archive_holds_exactly_one_skill(refused, tmp_path, files, words):
    assert words in refused(zipped(tmp_path / "a.zip", files))


def test_what_is_no_archive_or_not_there_is_said(refused, tmp_path):
    (tmp_path / "text.zip").write_text("no archive")
    assert "can't be unpacked" in refused(str(tmp_path / "text.zip"))
    assert "no such file" in refused(str(tmp_path / "nothing.zip"))
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in refused(str(tmp_path / "fifo"))
    whole = (tmp_path / "cut.zip", zipped(tmp_path / "cut.zip", FILES))[0]
    whole.write_bytes(whole.read_bytes()[:-30])
    assert "can't be unpacked" in refused(str(whole))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.integers(0, 400), byte=st.integers(0, 255), kind=st.sampled_from(["zip", "tgz"]))
def test_no_broken_byte_fails_unspoken(mine, root, tmp_path, place, byte, kind):
    path = tmp_path / f"a.{kind}"
    (zipped if kind == "zip" else tarred)(path, FILES)
    data = bytearray(path.read_bytes())
    data[place % len(data)] = byte
    path.write_bytes(data)
    with contextlib.suppress(RegistryError):
        mine.delete(mine.import_archive(str(path)).ref)
    assert list(root.iterdir()) == []


def test_a_skill_that_cannot_be_used_is_refused_with_its_problems(mine, root, tmp_path):
    with pytest.raises(SkillInvalid, match="empty"):
        mine.import_archive(zipped(tmp_path / "a.zip", {"SKILL.md": b""}))
    bad = b"---\nname: ../evil\ndescription: D.\n---\n"
    with pytest.raises(InvalidName, match="--name"):
        mine.import_archive(zipped(tmp_path / "a.zip", {"SKILL.md": bad}))
    assert list(root.iterdir()) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(names=st.lists(st.text(min_size=1, max_size=30), max_size=4, unique=True))
def test_no_name_of_a_member_gets_out_or_fails_unspoken(mine, root, tmp_path, names):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("SKILL.md", DOCUMENT)
        for name in names:
            try:
                archive.writestr(name, "x")
            except (ValueError, IndexError, UserWarning):
                return
    before = set(tmp_path.iterdir())
    try:
        mine.import_archive(str(path))
        mine.delete("packed")
    except RegistryError:
        pass
    assert set(tmp_path.iterdir()) - before <= {tmp_path / ".skills.skill-registry"}
    assert list(root.iterdir()) == []


def test_what_could_be_executed_still_can(mine, root, tmp_path):
    path = tmp_path / "packed.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in FILES.items():
            member = tarfile.TarInfo(f"packed/{name}")
            member.size, member.mode = len(data), 0o755 if name.endswith(".py") else 0o600
            archive.addfile(member, io.BytesIO(data))
    mine.import_archive(str(path))
    modes = {name: stat.S_IMODE((root / "packed" / name).stat().st_mode) for name in FILES}
    assert modes == {"SKILL.md": 0o644, "scripts/run.py": 0o755}
    box = tmp_path / "boxed.zip"
    with zipfile.ZipFile(box, "w") as archive:
        for name, data in FILES.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFREG | 0o755) << 16
            archive.writestr(info, data.replace(b"packed", b"boxed"))
    mine.import_archive(str(box))
    assert os.access(root / "boxed" / "scripts" / "run.py", os.X_OK)


@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_zip_that_is_packed_in_unusual_ways_is_refused(refused, tmp_path, way):
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w", way) as archive:
        archive.writestr("SKILL.md", DOCUMENT)
    assert "packed in a way that is not taken" in refused(str(path))


def test_an_encrypted_zip_is_said_to_be_so(refused, tmp_path):
    path = tmp_path / "secret.zip"
    zipped(path, FILES)
    data = bytearray(path.read_bytes())
    at = data.find(b"PK\x01\x02")
    while at >= 0:  # the flag in each entry of the directory
        data[at + 8] |= 1
        at = data.find(b"PK\x01\x02", at + 4)
    path.write_bytes(data)
    assert "is encrypted" in refused(str(path))


def test_a_file_that_is_also_a_folder_is_refused(refused, tmp_path):
    files = {"SKILL.md": DOCUMENT, "a": b"", "a/b/c": b""}
    assert "'a/b/c' is both a file and a folder" in refused(zipped(tmp_path / "odd.zip", files))


def test_an_archive_may_be_reached_through_a_link(mine, tmp_path):
    (tmp_path / "link.skill").symlink_to(zipped(tmp_path / "real.skill", FILES))
    assert mine.import_archive(str(tmp_path / "link.skill")).name == "packed"
