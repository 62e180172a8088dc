"""What fits a limit exactly comes in, and one more of anything does not."""

import io
import os
import stat
import zipfile

import pytest

from registry.api import SkillRegistry
from registry.errors import ArchiveRefused, SkillExists
from registry.install import imports
from registry.remotes import unpacking
from registry.settings import Limits, Settings
from tests.remotes.packed import tarred, zipped

DOCUMENT = b"---\nname: packed\ndescription: Came in a box.\n---\n\n# Packed\n"
MORE = b"x" * 100


@pytest.fixture
def bring(database, root, tmp_path):
    """Import an archive under some limits; the reason, where it is refused."""

    def run(data, name=None, **limits):
        box = tmp_path / "box"
        box.write_bytes(data)
        settings = Settings(limits=Limits(**limits))
        with SkillRegistry.open(database, settings=settings) as registry:
            if not registry.sources():
                registry.add_source(str(root), name="mine")
            try:
                return registry.import_archive(str(box), name=name)
            except ArchiveRefused as error:
                assert list(root.iterdir()) == []
                return str(error.facts["reason"])

    return run


FILES = {"SKILL.md": DOCUMENT, "more": MORE}
SIZE = len(DOCUMENT) + len(MORE)


@pytest.mark.parametrize("pack", [zipped, tarred])
class TestExactly:
    def test_so_many_bytes(self, bring, pack):
        refused = bring(pack(FILES), skill_bytes=SIZE - 1)
        assert refused == "its files are larger than a skill may be"
        assert bring(pack(FILES), skill_bytes=SIZE).status == "ok"

    def test_so_many_files(self, bring, pack):
        assert bring(pack(FILES), files=1) == "it has more than 1 files"
        assert bring(pack(FILES), files=2).status == "ok"

    def test_a_document_of_so_many_bytes(self, bring, pack):
        size = len(DOCUMENT)
        refused = bring(pack(FILES), document_bytes=size - 1)
        assert refused == f"its SKILL.md has {size} bytes, {size - 1} are allowed"
        assert bring(pack(FILES), document_bytes=size).status == "ok"

    def test_an_archive_of_so_many_bytes(self, bring, pack, monkeypatch):
        data = pack(FILES)
        monkeypatch.setattr(imports, "MAX_PACKED", len(data) - 1)
        assert bring(data) == f"it has {len(data)} bytes, {len(data) - 1} are allowed"
        monkeypatch.setattr(imports, "MAX_PACKED", len(data))
        assert bring(data).status == "ok"

    def test_folders_are_no_files_and_count_for_nothing(self, bring, pack, root):
        files = {"packed/": b"", "packed/sub/": b"", "packed/empty/": b""}
        files |= {"packed/SKILL.md": DOCUMENT, "packed/sub/more": MORE}
        assert bring(pack(files), files=2).status == "ok"
        assert sorted(path.name for path in root.rglob("*")) == [
            "SKILL.md",
            "more",
            "packed",
            "sub",
        ]

    def test_a_skill_without_a_name_gets_the_one_that_is_given(self, bring, pack, root):
        document = b"---\ndescription: D.\n---\n\nText.\n"
        assert bring(pack({"SKILL.md": document}), name="given").name == "given"
        assert (root / "given" / "SKILL.md").read_bytes() == document
        with pytest.raises(SkillExists):
            bring(pack({"SKILL.md": DOCUMENT.replace(b"packed", b"given")}), name="other")

    def test_that_name_may_not_be_another_skills(self, bring, pack, root):
        bring(pack({"SKILL.md": DOCUMENT.replace(b"packed", b"given")}), name="folder")
        with pytest.raises(SkillExists):
            bring(pack({"SKILL.md": b"---\ndescription: D.\n---\n\nText.\n"}), name="given")
        assert not (root / "given").exists()


def test_a_packed_tar_is_unpacked_up_to_what_its_files_and_headers_need(bring, monkeypatch):
    import gzip

    data = tarred(FILES, packed=False)
    monkeypatch.setattr(unpacking, "TAR_HEADERS", (len(data) - SIZE) // 4 - 1)
    fits = len(data) - 4 * unpacking.TAR_HEADERS
    refused = bring(gzip.compress(data), skill_bytes=fits - 1, files=4)
    assert refused == f"it has more than {len(data) - 1} bytes when it is unpacked"
    assert bring(gzip.compress(data), skill_bytes=fits, files=4).status == "ok"


def test_an_encrypted_file_is_refused_before_it_is_opened(bring):
    data = bytearray(zipped(FILES))
    data[data.find(b"PK\x01\x02") + 8] |= 1
    assert bring(bytes(data)) == "'SKILL.md' is encrypted"


@pytest.mark.parametrize("mode", [0, 0o644, stat.S_IFREG | 0o644, stat.S_IFREG | 0o755])
def test_plain_files_of_all_systems_are_taken_with_their_right_to_be_executed(bring, root, mode):
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr("SKILL.md", DOCUMENT)
        info = zipfile.ZipInfo("run")
        info.external_attr = mode << 16
        archive.writestr(info, "x")
    assert bring(box.getvalue()).status == "ok"
    assert os.access(root / "packed" / "run", os.X_OK) == bool(mode & 0o100)


def test_of_two_folders_at_the_top_neither_is_taken_off(bring):
    refused = bring(zipped({"a/SKILL.md": DOCUMENT, "b/x": b""}))
    assert refused == "it has no SKILL.md at its top or in a single top folder"


def test_a_folder_named_like_those_of_tools_is_refused_at_any_depth(bring):
    refused = bring(zipped({**FILES, "a/node_modules/x.js": b""}))
    assert refused == "'a/node_modules/x.js' can't be in a skill's folder"
