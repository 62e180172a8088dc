import shutil

import pytest

from registry.api import SkillRegistry
from registry.errors import (
    FileNotFoundInSkill,
    FileTooLarge,
    NotUtf8,
    OutsideSkill,
    SkillInvalid,
    SkillMissing,
)
from registry.settings import Limits, Settings
from tests.conftest import OLD, edit_without_a_trace, write_skill


@pytest.fixture
def alpha(registry, root, skill):
    folder = skill("alpha", extra="license: MIT\ntags: [b, a]\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "run.sh").write_text("true\n")
    (folder / "scripts" / "run.sh").chmod(0o755)
    registry.sync(str(root))
    return folder


def test_a_skill_is_shown_with_everything_that_is_known_of_it(registry, alpha):
    found = registry.get("alpha")
    assert found.body.strip() == "# How\n\nStep by step."
    assert [(f.path, f.executable) for f in found.files] == [
        ("SKILL.md", False),
        ("scripts/run.sh", True),
    ]
    assert found.front_matter["license"] == found.license == "MIT"
    assert found.location == str(alpha / "SKILL.md")
    assert found.content_hash == found.files[0].hash
    assert found.tree_hash.startswith("sha256:")


@pytest.mark.both
def test_a_name_is_found_however_its_accents_are_written(registry, root, skill):
    # An archive made on a Mac has letters and accents apart; who types them has them in one.
    whole, apart = "\u00fcbung", "u\u0308bung"
    skill(apart, name="")
    registry.sync(str(root), name="mine")
    for handle in (whole, apart, f"mine/{whole}"):
        assert registry.get(handle).name == apart
        assert (
            "Step by step"
            in registry.toolset("ethos").call("skill_view", {"name": handle})["value"]
        )
    skill("other", name=whole)
    registry.sync()
    assert [registry.get(handle).name for handle in (whole, apart)] == [whole, apart]


@pytest.mark.both
def test_an_edited_skill_is_never_shown_stale(registry, alpha):
    write_skill(alpha, description="Edited by hand.", age=OLD + 7)
    assert registry.get("alpha").description == "Edited by hand."
    assert registry.list()[0].description == "Edited by hand."
    assert registry.sync().unchanged == 1
    assert registry.check_database() == []


def test_an_edit_without_a_trace_in_the_times_is_seen_while_the_file_is_young(
    registry, root, skill
):
    folder = skill("beta", description="one", age=None)
    registry.sync(str(root))
    edit_without_a_trace(folder / "SKILL.md", b"one", b"two")
    assert registry.get("beta").description == "two"


@pytest.mark.both
def test_a_skill_that_breaks_is_not_served_from_memory(registry, alpha):
    (alpha / "SKILL.md").write_bytes(b"---\nname: alpha\n---\n\xff\n")
    assert registry.get("alpha").status == "invalid"
    assert "Step by step" not in (registry.get("alpha").body or "")
    with pytest.raises(NotUtf8):
        registry.read("alpha")
    assert registry.search("step").total == 0


def test_a_skill_that_is_gone_says_so(registry, alpha):
    shutil.rmtree(alpha)
    with pytest.raises(SkillMissing):
        registry.get("alpha")


def test_the_text_and_the_bytes_are_those_on_disk(registry, alpha):
    text = (alpha / "SKILL.md").read_text()
    assert registry.read("alpha") == text
    assert registry.read_bytes("alpha") == text.encode()


def test_a_document_that_may_not_be_read_is_never_followed(registry, root):
    (root / "trap").mkdir()
    (root / "trap" / "SKILL.md").symlink_to("/etc/passwd")
    registry.sync(str(root))
    with pytest.raises(SkillInvalid):
        registry.read_bytes("trap")


class TestSupportingFiles:
    def test_a_file_is_read_by_its_relative_path(self, registry, alpha):
        assert registry.read_file("alpha", "scripts/run.sh") == b"true\n"

    def test_a_path_that_could_lead_outside_is_refused(self, registry, alpha):
        for path in ["../secret", "/etc/passwd", "a\\b", "a\0b", "scripts/../../secret", "", "C:x"]:
            with pytest.raises(OutsideSkill):
                registry.read_file("alpha", path)

    def test_a_link_that_leads_outside_is_refused(self, registry, alpha):
        (alpha / "out").symlink_to("/etc/hostname")
        with pytest.raises(OutsideSkill):
            registry.read_file("alpha", "out")

    def test_a_missing_file_is_named(self, registry, alpha):
        with pytest.raises(FileNotFoundInSkill):
            registry.read_file("alpha", "scripts/none.sh")

    def test_a_folder_is_no_file(self, registry, alpha):
        with pytest.raises(Exception, match="not a regular file"):
            registry.read_file("alpha", "scripts")

    def test_a_file_over_the_limit_is_refused(self, database, root, skill):
        folder = skill("big")
        (folder / "data").write_bytes(b"x" * 2000)
        settings = Settings(limits=Limits(document_bytes=1000))
        with SkillRegistry.open(database, settings=settings) as registry:
            registry.sync(str(root))
            with pytest.raises(FileTooLarge):
                registry.read_file("big", "data")


@pytest.mark.both
def test_a_copy_on_disk_is_read_where_the_one_that_is_listed_is_gone(registry, tmp_path):
    """A drive that is away keeps its rows; who asks by name means any of the copies."""
    for name in ("one", "two"):
        write_skill(tmp_path / name / "pdf")
        registry.sync(str(tmp_path / name), name=name)
    (tmp_path / "one").rename(tmp_path / "away")
    assert registry.get("pdf").path == str(tmp_path / "two" / "pdf")
    assert registry.read("pdf")
    assert "error" not in registry.toolset("native").call("read_skill", {"name": "pdf"})
    assert "skill" in registry.toolset("wave").call("Skill", {"skill": "pdf"})["content"].lower()
    [exact] = [one.skills for one in registry.copies("pdf") if one.relation == "identical"]
    gone = next(skill for skill in exact if skill.source == "one")
    with pytest.raises(SkillMissing):
        registry.get(f"one/{gone.folder}")
