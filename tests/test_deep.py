"""Paths thousands of folders deep, longer than the system takes: an answer or a clear refusal."""

import os
import subprocess

import pytest

from registry.disk.beneath import FOLDER, WRITE_NEW
from registry.errors import FileNotFoundInSkill, FolderMissing, SkillNotFound, SourceInvalid
from tests.conftest import write_skill

DEPTH = 3_000
DEEP = "/".join(["d"] * DEPTH)


@pytest.fixture
def deepen(tmp_path):
    """Make folders that deep, with a SKILL.md at their end."""
    made = []

    def deepen(folder):
        made.append(folder / "d")
        held = os.open(folder, FOLDER)
        for _ in range(DEPTH):
            os.mkdir("d", dir_fd=held)
            inner = os.open("d", FOLDER, dir_fd=held)
            os.close(held)
            held = inner
        os.close(os.open("SKILL.md", WRITE_NEW, 0o644, dir_fd=held))
        os.close(held)

    yield deepen
    for folder in made:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_a_skill_that_is_deeper_than_is_looked_is_invalid_and_never_copied(
    registry, root, deepen, tmp_path
):
    deepen(write_skill(root / "alpha"))
    for _ in range(2):
        report = registry.sync(str(root), verify=True)
        assert (report.complete, report.invalid) == (True, 1)
    (checked,) = registry.check([str(root)])
    assert [(one.code, one.severity) for one in checked.findings] == [("too-deep", "error")]
    skill = registry.resolve("alpha")
    assert skill.status == "invalid"
    (pulled,) = registry.pull([skill], str(tmp_path / "to"))
    assert (pulled.state, "deeper" in pulled.reason) == ("failed", True)
    assert "Step by step" in registry.read("alpha")
    (explained,) = registry.why(str(root / "alpha" / DEEP))
    assert not explained.listed


def test_folders_without_skills_are_looked_into_to_a_depth_and_that_is_said(
    registry, root, skill, deepen
):
    skill("alpha")
    deepen(root)
    report = registry.sync(str(root))
    assert report.added == ("alpha",)
    assert [notice.code for _, notice in report.sources[0].notices] == ["too-deep"]
    (explained,) = registry.why(str(root / DEEP))
    assert [one.code for one in explained.reasons] == ["too-deep"]


def test_a_path_that_deep_is_refused_clearly(registry, root, skill):
    skill("alpha")
    registry.sync(str(root), name="mine")
    for path in (DEEP, f"{DEEP}/SKILL.md", "x" * 300, "SKILL.md/below", "\ud800"):
        with pytest.raises(FileNotFoundInSkill):
            registry.read_file("alpha", path)
    for operation in (registry.read, registry.get, registry.resolve):
        with pytest.raises(SkillNotFound):
            operation(f"mine/{DEEP}")
    with pytest.raises(FolderMissing):
        registry.check([str(root / DEEP)])
    with pytest.raises(SourceInvalid):
        registry.sync(str(root / DEEP))
    (explained,) = registry.why(str(root / DEEP))
    assert [one.code for one in explained.reasons] == ["missing"]
    native = registry.toolset("native")
    answer = native.call("read_skill_file", {"name": "alpha", "path": DEEP})
    assert answer["error"]["code"] == "file_not_found"
    assert (
        "not found"
        in registry.toolset("basic").call("get_skill", {"skill_name": "x" * 300})["error"]
    )
