"""What lies where agents look: whose it is, who edited it, and what the lock says of it."""

import json
import os
import shutil
import subprocess

import pytest

from registry.api import SkillRegistry
from registry.disk import swap
from registry.errors import LockFileInvalid
from registry.install.pull import check, pull, remove, restore_from_lock, update
from registry.install.targets import InstallOptions, InstallTarget
from registry.settings import Settings
from tests.conftest import write_skill
from tests.install.places import BOTH, Place, tree


class TestWhose:
    def test_a_skill_is_never_pulled_onto_itself(self, registry, project):
        write_skill(project / ".claude" / "skills" / "own")
        registry.sync(str(project / ".claude" / "skills"), scope="project")
        place = Place(registry, InstallTarget.project(str(project)))
        skills = [registry.resolve("own")]
        how = InstallOptions(agents=["claude-code"], force=True)
        (told,) = pull(registry.core, skills, place.target, how)
        assert (told.state, "is there already" in told.reason) == ("failed", True)
        assert place.pull("own", agents=BOTH) == [("own", "added")]
        assert place.pull("own", agents=["codex"]) == [("own", "unchanged")]
        (told,) = registry.pull(skills, str(project / ".claude"), force=True)
        assert told.state == "failed"

    def test_a_skill_is_never_pulled_into_itself(self, registry, project):
        write_skill(project, name="root")
        registry.sync(str(project))
        (told,) = pull(
            registry.core,
            [registry.resolve("root")],
            InstallTarget.project(str(project)),
            InstallOptions(agents=BOTH, force=True),
        )
        assert (told.state, "its own folder" in told.reason) == ("failed", True)

    def test_what_was_pulled_from_one_source_stays_its_own(self, place, root, tmp_path):
        place.pull("alpha")
        before = place.locked["alpha"]
        other = tmp_path / "other"
        write_skill(other / "alpha", description="Another.")
        place.library.sync(str(other), scope="project")
        newer = place.library.resolve("alpha")
        assert newer.source == "other"
        (told,) = pull(place.core, [newer], place.target, InstallOptions(agents=BOTH))
        assert told.state == "failed"
        assert "is already installed from mine/alpha. To replace it" in told.reason
        assert place.locked["alpha"] == before
        assert place.update() == [("mine/alpha", "unchanged")]
        place.library.update("mine/alpha", description="Two.")
        assert place.update() == [("mine/alpha", "updated")]
        place.library.remove_source("mine")
        assert place.update() == [("mine/alpha", "gone")]
        (told,) = pull(place.core, [newer], place.target, InstallOptions(agents=BOTH))
        assert "which this registry doesn't have" in told.reason
        assert place.pull("alpha", force=True) == [("alpha", "updated")]
        assert place.locked["alpha"].source == "other"

    def test_what_came_from_a_repository_is_found_by_its_origin_whatever_its_source_is_called(
        self, registry, project, tmp_path
    ):
        repository = tmp_path / "repository"
        write_skill(repository / "skills" / "alpha", description="Remote.")
        git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
            subprocess.run([*git, *arguments], check=True)
        registry.sync(f"file://{repository}", name="far")
        place = Place(registry, InstallTarget.project(str(project)))
        place.pull("alpha")
        origin = place.locked["alpha"].origin
        assert origin["url"] == f"file://{repository}"
        assert (origin["path"], len(origin["commit"])) == ("skills/alpha", 40)
        registry.remove_source("far")
        write_skill(tmp_path / "near" / "skills" / "alpha", description="A namesake.")
        registry.sync(str(tmp_path / "near"), scope="project", name="far")
        (told,) = update(registry.core, place.target)
        assert (told.state, told.reason) == (
            "unchanged",
            f"file://{repository} is not a source here",
        )
        registry.sync(f"file://{repository}", name="again")
        assert place.update() == [("again/alpha", "unchanged")]
        assert place.locked["alpha"].source == "again"

    def test_a_copy_pulled_into_a_source_is_no_namesake_of_its_own_origin(self, place, project):
        place.pull("alpha")
        place.library.sync(str(project / ".agents" / "skills"), scope="project")
        assert place.library.resolve("alpha").copies
        assert place.update() == [("alpha", "unchanged")]
        assert place.locked["alpha"].source == "mine"


class TestEdits:
    @pytest.fixture(params=["the skill", "a folder in the place of the link"])
    def edited(self, request, place, project):
        place.pull("alpha")
        path = project / ".agents" / "skills" / "alpha" / "SKILL.md"
        if request.param != "the skill":
            path = project / ".claude" / "skills" / "alpha"
            path.unlink()
            path.mkdir()
            path /= "SKILL.md"
        path.write_text("Mine now.\n")
        return path

    def test_an_edit_anywhere_leaves_the_whole_skill_alone_unless_theirs_is_taken(
        self, place, project, edited
    ):
        place.library.update("alpha", description="Two.")
        before = tree(project)
        skills = [place.library.resolve("alpha")]
        (told,) = pull(place.core, skills, place.target, InstallOptions(agents=BOTH))
        assert told.state == "edited"
        assert "SKILL.md differs (+1 -8)" in told.reason
        assert tree(project) == before
        assert place.check() == {"alpha": "edited"}
        assert place.remove("alpha") == [("alpha", "edited")]
        assert tree(project) == before
        by_theirs = [("alpha", "updated" if ".agents" in str(edited) else "edited")]
        assert place.update(theirs=True) == by_theirs
        (told,) = update(place.core, place.target, options=InstallOptions(force=True))
        if ".claude" in str(edited):  # a folder that no pull made
            assert (told.state, "SKILL.md differs (+1 -8)" in told.reason) == ("updated", True)
        assert place.check() == {"alpha": "unchanged"}
        assert (project / ".claude" / "skills" / "alpha").is_symlink()

    def test_what_was_edited_is_told_as_it_was_pulled_and_not_as_it_would_come(
        self, place, project, root
    ):
        place.pull("alpha", agents=["codex"])
        document = project / ".agents" / "skills" / "alpha" / "SKILL.md"
        document.write_text(document.read_text() + "One line more.\n")
        write_skill(root / "alpha", body="# All is new.\n\nNow.\n", age=None)
        place.library.sync()
        (told,) = update(place.core, place.target)
        assert (told.state, told.reason) == (
            "edited",
            "SKILL.md differs (+1 -0); an update is available",
        )
        (told,) = check(place.core, None, place.target)
        assert (told.state, told.reason) == (
            "edited",
            "SKILL.md differs (+1 -0); an update is available",
        )
        (told,) = remove(place.core, place.target, ["alpha"])
        assert (told.state, told.reason) == ("edited", "SKILL.md differs (+1 -0)")
        (told,) = remove(place.core, place.target, ["alpha"], InstallOptions(force=True))
        assert (told.state, told.reason) == ("removed", "SKILL.md differs (+1 -0)")

    def test_by_its_hashes_alone_a_lock_tells_what_was_edited(self, place, project, tmp_path):
        place.pull("alpha", agents=["codex"])
        folder = project / ".agents" / "skills" / "alpha"
        (folder / "SKILL.md").write_text("Mine.")
        (folder / "run").unlink()
        (folder / "notes.md").write_text("Mine.")
        with SkillRegistry.open(tmp_path / "other.db") as registry:
            (told,) = remove(registry.core, place.target, ["alpha"])
        assert told.reason == "SKILL.md differs, notes.md exists only here, run is missing"

    def test_theirs_is_not_for_what_no_pull_made(self, place, project):
        foreign = project / ".agents" / "skills" / "alpha"
        foreign.mkdir(parents=True)
        (foreign / "notes.txt").write_text("Mine.")
        assert place.pull("alpha", theirs=True) == [("alpha", "edited")]
        assert os.listdir(foreign) == ["notes.txt"]
        assert not (project / ".claude" / "skills" / "alpha").exists()
        assert place.pull("alpha", force=True) == [("alpha", "updated")]

    def test_a_folder_with_the_same_files_that_no_pull_made_is_left_alone(
        self, place, project, root
    ):
        mine = project / ".agents" / "skills" / "alpha"
        shutil.copytree(root / "alpha", mine)
        assert place.pull("alpha") == [("alpha", "edited")]
        assert not (project / ".claude/skills/alpha").is_symlink()
        assert not (project / "skills.lock.json").exists()

    def test_adopt_records_a_folder_with_the_same_files_as_installed(self, place, project, root):
        shutil.copytree(root / "alpha", project / ".agents" / "skills" / "alpha")
        node = (project / ".agents/skills/alpha/SKILL.md").stat().st_ino
        assert place.pull("alpha", adopt=True) == [("alpha", "updated")]  # by its link
        assert (project / ".agents/skills/alpha/SKILL.md").stat().st_ino == node
        assert place.check() == {"alpha": "unchanged"}

    def test_a_missing_link_is_told_and_made_again(self, place, project):
        place.pull("alpha")
        (project / ".claude" / "skills" / "alpha").unlink()
        assert place.check() == {"alpha": "missing"}
        assert place.update() == [("alpha", "updated")]
        assert place.check() == {"alpha": "unchanged"}

    @pytest.mark.parametrize("mode", ["link", "copy"])
    def test_an_edit_in_the_moment_of_the_change_undoes_all_of_it(
        self, place, project, monkeypatch, mode
    ):
        place.pull("alpha", mode=mode)
        place.library.update("alpha", description="Two.")
        edited = project / (".agents" if mode == "link" else ".claude") / "skills/alpha/SKILL.md"
        before, put_in_place, swapped = tree(project), swap.put_in_place, []

        def edit_before_the_last(one, other):
            swapped.append(other.path)
            if other.path == str(edited.parent) and swapped.count(other.path) == 1:
                edited.write_text("Mine now.")
            return put_in_place(one, other)

        monkeypatch.setattr(swap, "put_in_place", edit_before_the_last)
        assert place.update() == [("alpha", "edited")]
        assert str(edited.parent) in swapped
        before[str(edited.relative_to(project))] = (b"Mine now.", False)
        assert tree(project) == before


class TestLock:
    def test_it_is_the_same_on_another_machine(self, place, project, tmp_path, root, database):
        place.pull("alpha", "beta")
        (tmp_path / "elsewhere").mkdir()
        shutil.copytree(root, tmp_path / "elsewhere" / "skills")
        other = tmp_path / "elsewhere" / "project"
        (other / ".git").mkdir(parents=True)
        with SkillRegistry.open(tmp_path / "other.db", settings=Settings()) as registry:
            registry.sync(str(tmp_path / "elsewhere" / "skills"), name="mine")
            Place(registry, InstallTarget.project(str(other))).pull("beta", "alpha")
        mine, theirs = ((one / "skills.lock.json").read_bytes() for one in (project, other))
        assert mine == theirs
        assert str(tmp_path).encode() not in mine
        entry = json.loads(mine)["skills"]["alpha"]
        assert (entry["agents"], entry["mode"], entry["origin"]) == (list(BOTH), "link", None)

    def test_one_of_the_first_version_is_read(self, library, tmp_path):
        to = tmp_path / "to"
        library.pull([library.resolve("alpha")], str(to))
        lock = to / "skills.lock.json"
        data = json.loads(lock.read_text())
        for key in ("origin", "agents", "mode"):
            del data["skills"]["alpha"][key]
        lock.write_text(json.dumps({"version": 1, "skills": data["skills"]}))
        place = Place(library, InstallTarget.folder(str(to)))
        assert place.check() == {"alpha": "unchanged"}
        assert place.update() == [("alpha", "unchanged")]
        assert json.loads(lock.read_text())["version"] == 1
        library.update("alpha", description="Two.")
        assert place.update() == [("alpha", "updated")]
        assert json.loads(lock.read_text())["version"] == 3

    def test_what_a_stranger_wrote_into_it_leads_nowhere(self, place, project):
        place.pull("alpha")
        lock = project / "skills.lock.json"
        good = lock.read_text()
        for before, after in (
            ('"alpha": {', '"/tmp/evil": {'),
            ('"alpha": {', '"..": {'),
            ('"claude-code"', '"../../evil"'),
            ('"link"', '"hard"'),
        ):
            assert before in good
            lock.write_text(good.replace(before, after))
            with pytest.raises(LockFileInvalid):
                place.update()
            with pytest.raises(LockFileInvalid):
                place.remove("alpha")


@pytest.mark.both
def test_what_a_lock_says_is_had_from_a_revision_and_from_a_skill_of_another_source(
    library, project, root, tmp_path
):
    place = Place(library, InstallTarget.project(str(project)))
    place.pull("alpha", "beta")
    lock, whole = (project / "skills.lock.json").read_bytes(), tree(project)
    library.update("alpha", description="Two.")
    shutil.copytree(root / "beta", tmp_path / "other" / "beta")
    library.sync(str(tmp_path / "other"))
    library.delete("mine/beta")
    shutil.rmtree(project / ".agents")
    shutil.rmtree(project / ".claude")
    assert {one.state for one in restore_from_lock(library.core, place.target)} == {"added"}
    assert tree(project) == whole
    assert (project / "skills.lock.json").read_bytes() == lock
