"""Skills come in from archives with many of them, and from repositories, as one's own."""

import io
import shutil
import subprocess
import tarfile

import pytest

from registry.errors import (
    ArchiveRefused,
    RemoteInvalid,
    SeveralSkills,
    SkillExists,
    SkillInvalid,
    UsageProblem,
)
from tests.conftest import write_skill


@pytest.fixture
def repository(tmp_path):
    """A repository of three skills, one with a program."""
    home = tmp_path / "repo"
    for name in ("alpha", "beta", "gamma"):
        write_skill(home / "skills" / name)
    program = home / "skills" / "alpha" / "run.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (home / "README.md").write_text("Not a skill's.\n")
    return home


@pytest.fixture
def tarball(repository, tmp_path):
    """What a host of repositories gives out: all in one folder."""
    path = tmp_path / "repo-main.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(repository, arcname="repo-main")
    return path


def commit(repository):
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], check=True)


def test_of_several_skills_none_is_taken_unless_it_is_chosen(mine, tarball, root):
    with pytest.raises(SeveralSkills, match="holds 3 skills: alpha, beta, gamma") as refused:
        mine.import_skills(str(tarball))
    assert refused.value.names == ("alpha", "beta", "gamma")
    assert list(root.iterdir()) == []


def test_chosen_skills_come_with_their_files_and_nothing_else(mine, tarball, root):
    made = mine.import_skills(str(tarball), skills=["ALPHA", "gamma"])
    assert [one.ref for one in made] == ["alpha", "gamma"]
    assert {path.name for path in root.iterdir()} == {"alpha", "gamma"}
    assert (root / "alpha" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert made[0].origin is None
    assert mine.get("gamma").status == "ok"


def test_all_come_or_none_does(mine, tarball, root, repository, skill):
    skill("beta", description="Mine.")
    mine.sync()
    with pytest.raises(SkillExists):
        mine.import_skills(str(tarball), every=True)
    assert {path.name for path in root.iterdir()} == {"beta"}
    mine.delete("beta")
    assert len(mine.import_skills(str(tarball), every=True)) == 3


def test_a_folder_that_is_in_the_way_of_one_keeps_all_away(mine, tarball, root):
    (root / "gamma").mkdir()
    with pytest.raises(SkillExists):
        mine.import_skills(str(tarball), every=True)
    assert {path.name for path in root.iterdir()} == {"gamma"}


def test_what_lies_in_the_folders_of_several_agents_is_one_skill(mine, repository, root):
    shutil.copytree(repository / "skills", repository / ".claude" / "skills")
    commit(repository)
    made = mine.import_skills(f"file://{repository}", skills=["alpha"])
    assert [one.ref for one in made] == ["alpha"]
    mine.delete("alpha")
    assert len(mine.import_skills(f"file://{repository}", every=True)) == 3
    for name in ("beta", "gamma"):
        shutil.rmtree(repository / "skills" / name)
        shutil.rmtree(repository / ".claude" / "skills" / name)
    commit(repository)
    mine.delete("alpha")
    assert [one.ref for one in mine.import_skills(f"file://{repository}")] == ["alpha"]


def test_of_several_of_one_name_none_is_created_and_no_other(mine, repository, root):
    write_skill(repository / "skills" / "other" / "beta", description="Another.")
    commit(repository)
    with pytest.raises(ArchiveRefused, match=r"several skills .* 'beta'"):
        mine.import_skills(f"file://{repository}", every=True)
    assert list(root.iterdir()) == []


def test_one_that_cannot_be_used_keeps_all_away(mine, tmp_path, repository, root):
    write_skill(repository / "skills" / "broken", description="", body="")
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.add(repository, arcname="x")
    with pytest.raises(SkillInvalid):
        mine.import_skills(str(tmp_path / "x.tar"), every=True)
    assert list(root.iterdir()) == []


def test_a_repository_can_be_taken_from_by_its_address(mine, repository, root):
    commit(repository)
    (made,) = mine.import_skills(f"file://{repository}", skills=["beta"])
    assert (made.source, made.path) == ("mine", str(root / "beta"))
    with pytest.raises(RemoteInvalid, match="no skill of the name nothing"):
        mine.import_skills(f"file://{repository}", skills=["nothing"])


def test_a_name_goes_with_a_single_skill(mine, tarball, root):
    with pytest.raises(UsageProblem, match="single"):
        mine.import_skills(str(tarball), every=True, name="other")
    (made,) = mine.import_skills(str(tarball), skills=["beta"], name="other")
    assert made.path == str(root / "other")


def test_what_is_neither_a_file_nor_an_address_is_said_to_be_missing(mine, tmp_path):
    with pytest.raises(ArchiveRefused, match="no such file"):
        mine.import_skills(str(tmp_path / "none.zip"))


def test_a_member_that_leads_out_of_the_archive_comes_nowhere(mine, tmp_path, root):
    hostile = tmp_path / "hostile.tar"
    with tarfile.open(hostile, "w") as tar:
        for name in ("x/skills/a/SKILL.md", "x/skills/a/../../../../out", "/x/skills/a/abs"):
            data = b"---\nname: a\ndescription: Does a thing.\n---\nBody\n"
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    mine.import_skills(str(hostile), every=True)
    assert [path.name for path in (root / "a").iterdir()] == ["SKILL.md"]
    assert not any(path.name in {"out", "abs"} for path in tmp_path.rglob("*"))
