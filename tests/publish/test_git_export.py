"""``export --git`` writes a repository that git and the clients of agents read."""

import json
import subprocess
from contextlib import closing

import pytest

from registry import Settings, SkillRegistry
from registry.db import copy as copying
from registry.db.open import open_backend
from registry.errors import ExportRefused
from tests.install.places import tree


def git(*arguments, cwd=None):
    done = subprocess.run(
        ["git", "-c", "protocol.version=2", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cloned(repository, to):
    git("clone", "-q", repository, to)
    return to


def marketplace(clone):
    return json.loads((clone / ".claude-plugin" / "marketplace.json").read_text())


def versions(clone):
    return {one["name"]: one["version"] for one in marketplace(clone)["plugins"]}


@pytest.fixture
def library(registry, root, skill):
    skill("alpha", description="One file.")
    folder = skill("beta", description="Several files.")
    (folder / "bin").mkdir()
    (folder / "bin" / "run").write_bytes(b"#!/bin/sh\r\n")
    (folder / "bin" / "run").chmod(0o755)
    (folder / "picture.png").write_bytes(bytes(range(256)))
    registry.sync(str(root), name="mine")
    return registry


@pytest.mark.both
def test_each_skill_is_a_plugin_with_its_exact_files(library, root, tmp_path):
    done = library.export_git(str(tmp_path / "skills.git"))
    assert dict(done.skills) == {"alpha": "alpha", "beta": "beta"}
    git("fsck", "--strict", cwd=tmp_path / "skills.git")
    clone = cloned(tmp_path / "skills.git", tmp_path / "clone")
    assert git("rev-parse", "HEAD", cwd=clone).strip() == done.commit
    for name in ("alpha", "beta"):
        assert tree(clone / "plugins" / name / "skills" / name) == tree(root / name)
    assert (clone / "plugins/beta/skills/beta/bin/run").stat().st_mode & 0o111
    assert not (clone / "plugins/beta/skills/beta/SKILL.md").stat().st_mode & 0o111
    assert marketplace(clone) == {
        "name": "skill-registry",
        "owner": {"name": "skill-registry"},
        "plugins": [
            {
                "name": name,
                "description": description,
                "source": f"./plugins/{name}",
                "strict": False,
                "version": "0.0.1",
            }
            for name, description in (("alpha", "One file."), ("beta", "Several files."))
        ],
    }


@pytest.mark.both
def test_the_same_state_gives_the_same_commit_and_a_change_raises_one_version(
    library, root, tmp_path
):
    first = library.export_git(str(tmp_path / "one.git")).commit
    assert library.export_git(str(tmp_path / "two.git")).commit == first
    document = root / "alpha" / "SKILL.md"
    before = document.read_text()
    document.write_text(before + "\nMore.\n")
    library.sync()
    assert library.export_git(str(tmp_path / "one.git")).commit != first
    assert versions(cloned(tmp_path / "one.git", tmp_path / "a")) == {
        "alpha": "0.0.2",
        "beta": "0.0.1",
    }
    document.write_text(before)
    library.sync()
    library.export_git(str(tmp_path / "one.git"))
    assert versions(cloned(tmp_path / "one.git", tmp_path / "b")) == {
        "alpha": "0.0.3",
        "beta": "0.0.1",
    }


def test_a_clone_of_an_earlier_export_can_fetch_the_next(library, root, skill, tmp_path):
    library.export_git(str(tmp_path / "one.git"))
    clone = cloned(tmp_path / "one.git", tmp_path / "clone")
    skill("gamma")
    library.sync()
    commit = library.export_git(str(tmp_path / "one.git")).commit
    git("fetch", "-q", cwd=clone)
    assert git("rev-parse", "origin/main", cwd=clone).strip() == commit
    assert len(list((tmp_path / "one.git" / "objects" / "pack").iterdir())) == 2


def test_a_folder_with_other_files_is_left_alone(library, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ExportRefused, match="it has other files"):
        library.export_git(str(tmp_path))
    assert not (tmp_path / "HEAD").exists()


def test_namesakes_of_other_sources_get_the_name_of_their_source(library, registry, tmp_path, root):
    other = tmp_path / "team"
    folder = other / "alpha"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: alpha\ndescription: Another.\n---\nText.\n")
    registry.sync(str(other), name="Team B")
    done = library.export_git(str(tmp_path / "one.git"))
    assert sorted(done.skills) == [
        ("alpha", "mine/alpha"),
        ("beta", "beta"),
        ("team-b--alpha", "Team B/alpha"),
    ]


def test_quarantined_and_invalid_skills_are_not_in_the_pack(library, skill, root, tmp_path):
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_text("---\nname: broken\n---\n")
    library.sync()
    done = library.export_git(str(tmp_path / "one.git"))
    assert [name for name, _ in done.skills] == ["alpha", "beta"]


def test_a_tag_and_a_skill_have_repositories_of_their_own(library, skill, tmp_path):
    skill("gamma", extra="tags: [git]\n")
    library.sync()
    done = library.export_git(str(tmp_path / "tag.git"), "tag", "git")
    assert done.skills == (("gamma", "gamma"),)
    done = library.export_git(str(tmp_path / "skill.git"), "skill", "beta")
    assert done.skills == (("beta", "beta"),)
    clone = cloned(tmp_path / "skill.git", tmp_path / "clone")
    assert marketplace(clone)["name"] == "skill-beta"


@pytest.mark.both
def test_the_tag_of_a_version_stays_when_its_files_come_back(library, root, tmp_path):
    document = root / "alpha" / "SKILL.md"

    def write(text):
        document.write_text(document.read_text() + text)
        library.sync()

    def tags():
        place = tmp_path / f"{len(list(tmp_path.iterdir()))}.git"
        library.export_git(str(place), "skill", "alpha")
        told = git("for-each-ref", "refs/tags", "--format=%(refname) %(objectname)", cwd=place)
        shown = git("show", "alpha/1.1:.claude-plugin/marketplace.json", cwd=place)
        return dict(line.split() for line in told.splitlines()), json.loads(shown)["plugins"]

    library.add_version("alpha", "1.0")
    write("One.\n")
    library.add_version("alpha", "1.1")
    before, plugins = tags()
    write("Two.\n")
    library.add_version("alpha", "1.2")
    library.restore_revision("alpha", 2)
    write("Three.\n")
    library.add_version("alpha", "1.3")
    after, same = tags()
    assert {name: commit for name, commit in after.items() if name in before} == before
    assert same == plugins
    numbers = [one["version"] for one in same]
    assert numbers == ["0.0.2"]
    assert names_and_versions(library, tmp_path)["alpha"] == "0.0.5"


def names_and_versions(library, tmp_path):
    library.export_git(str(tmp_path / "state.git"))
    where = tmp_path / f"clone-{len(list(tmp_path.iterdir()))}"
    return versions(cloned(tmp_path / "state.git", where))


@pytest.mark.both
def test_a_skill_that_is_made_again_keeps_its_name_and_its_version_never_falls(
    library, root, skill, tmp_path
):
    document = root / "alpha" / "SKILL.md"
    for number in range(3):
        document.write_text(document.read_text() + f"{number}\n")
        library.sync()
    assert names_and_versions(library, tmp_path)["alpha"] == "0.0.4"
    library.delete("alpha")
    library.empty_trash()
    library.prune(keep=0)
    assert "alpha" not in names_and_versions(library, tmp_path)
    skill("writing/alpha", description="Written again, in another folder.")
    library.sync()
    assert names_and_versions(library, tmp_path)["alpha"] == "0.0.5"


@pytest.mark.both
def test_a_name_that_became_free_is_not_given_to_another_source(library, registry, root, tmp_path):
    other = tmp_path / "team"
    (other / "alpha").mkdir(parents=True)
    (other / "alpha" / "SKILL.md").write_text("---\nname: alpha\ndescription: D.\n---\nText.\n")
    library.delete("alpha")
    library.empty_trash()
    library.prune(keep=0)
    registry.sync(str(other), name="team")
    assert set(names_and_versions(library, tmp_path)) == {"beta", "team--alpha"}


def test_namesakes_in_one_source_keep_their_names_when_one_is_removed(library, skill, tmp_path):
    skill("more/alpha", description="A second one.")
    skill("more/deeper/alpha", description="A third one.")
    library.sync()
    assert set(names_and_versions(library, tmp_path)) == {
        "alpha",
        "beta",
        "mine--alpha",
        "mine--alpha--2",
    }
    library.delete("mine/alpha")
    assert set(names_and_versions(library, tmp_path)) == {"beta", "mine--alpha", "mine--alpha--2"}


def test_pruned_history_changes_neither_names_nor_versions_nor_the_commit(
    library, root, skill, tmp_path
):
    skill("more/alpha", description="A second one.")
    library.sync()
    document = root / "alpha" / "SKILL.md"
    for number in range(3):
        document.write_text(document.read_text() + f"{number}\n")
        library.sync()
    before = library.export_git(str(tmp_path / "state.git"))
    library.prune(keep=1)
    assert library.export_git(str(tmp_path / "state.git")) == before


def changed(library, root):
    document = root / "alpha" / "SKILL.md"
    document.write_text(document.read_text() + "More.\n")
    library.sync()
    library.delete("beta")
    return library


@pytest.mark.both
def test_a_copy_of_the_database_gives_the_same_commit(library, root, tmp_path):
    commit = changed(library, root).export_git(str(tmp_path / "one.git")).commit
    with closing(open_backend(tmp_path / "copy.db", Settings())) as target:
        copying.copy(library.core.backend, target)
    with SkillRegistry.open(tmp_path / "copy.db") as copied:
        assert copied.export_git(str(tmp_path / "two.git")).commit == commit


def test_a_backup_gives_the_same_commit(library, root, tmp_path):
    commit = changed(library, root).export_git(str(tmp_path / "one.git")).commit
    library.backup(str(tmp_path / "backup.db"))
    with SkillRegistry.open(tmp_path / "backup.db") as copied:
        assert copied.export_git(str(tmp_path / "two.git")).commit == commit


def test_odd_names_become_names_that_every_client_accepts(library, skill, tmp_path):
    skill("aux")
    skill("odd", name="Größe & Farbe/2")
    skill("long", name="x" * 90)
    library.sync()
    found = set(names_and_versions(library, tmp_path)) - {"alpha", "beta"}
    assert "aux--skill" in found
    assert all(len(one) <= 64 for one in found)
    assert len(found) == 3
