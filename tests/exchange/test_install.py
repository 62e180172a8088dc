"""Skills are put where agents look: one copy and links to it, all at once or not at all."""

import errno
import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress

import pytest

from registry.api import SkillRegistry
from registry.disk import atomic
from registry.errors import AgentNotFound, LockFileInvalid, LockMissing, PullRefused, UsageProblem
from registry.exchange import placing, several
from registry.exchange.lockfile import read_lock
from registry.exchange.pull import How, check, pull, put_back, remove, update
from registry.exchange.targets import Target
from registry.settings import Settings
from tests.changes import faults
from tests.conftest import write_skill

BOTH = ("claude-code", "codex")


@pytest.fixture
def library(registry, root, skill):
    folder = skill("alpha", description="One.")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    skill("beta")
    registry.sync(str(root), name="mine")
    return registry


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


class Place:
    """A project, or this user's own folders, and what is pulled there."""

    def __init__(self, library, target):
        self.library = library
        self.core = library.core
        self.target = target

    def pull(self, *names, agents=BOTH, **how):
        skills = [self.library.resolve(name) for name in names]
        return self.told(pull(self.core, skills, self.target, How(agents=agents, **how)))

    def update(self, names=None, **how):
        return self.told(update(self.core, self.target, names, How(**how)))

    def remove(self, *names, **how):
        return self.told(remove(self.core, self.target, names, How(**how)))

    def check(self):
        return {one.ref: one.state for one in check(self.core, None, self.target)}

    @staticmethod
    def told(found):
        return [(one.ref, one.state) for one in found]

    @property
    def locked(self):
        return read_lock(self.target.path)


@pytest.fixture
def place(library, project):
    return Place(library, Target.project(str(project)))


def tree(folder):
    """Return what lies below a folder: what links say, contents, and who can be executed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith(".git/") or name == "skills.lock.json":
            continue
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes(), os.access(path, os.X_OK)
    return found


class TestWhere:
    def test_one_copy_lies_in_the_shared_folder_and_others_have_relative_links(
        self, place, project, root
    ):
        assert place.pull("alpha") == [("alpha", "added")]
        assert tree(project / ".agents" / "skills" / "alpha") == tree(root / "alpha")
        link = project / ".claude" / "skills" / "alpha"
        assert os.readlink(link) == "../../.agents/skills/alpha"
        assert (link / "SKILL.md").read_bytes() == (root / "alpha" / "SKILL.md").read_bytes()
        assert place.pull("alpha") == [("alpha", "unchanged")]
        assert sorted(os.listdir(project)) == [".agents", ".claude", ".git", "skills.lock.json"]

    @pytest.mark.parametrize(("agent", "folder"), [("claude-code", ".claude"), ("zed", ".agents")])
    def test_one_folder_alone_gets_a_plain_copy(self, place, project, root, agent, folder):
        assert place.pull("alpha", agents=[agent]) == [("alpha", "added")]
        assert tree(project / folder / "skills" / "alpha") == tree(root / "alpha")
        assert [name for name in os.listdir(project) if name in {".agents", ".claude"}] == [folder]
        assert place.locked["alpha"].mode == "copy"

    def test_copies_everywhere_where_that_is_asked_for_and_links_for_one_alone(
        self, place, project, root
    ):
        place.pull("alpha", mode="copy")
        for folder in (".agents", ".claude"):
            assert tree(project / folder / "skills" / "alpha") == tree(root / "alpha")
        place.pull("beta", agents=["claude-code"], mode="link")
        assert (project / ".claude" / "skills" / "beta").is_symlink()
        assert (project / ".agents" / "skills" / "beta" / "SKILL.md").is_file()

    def test_for_all_projects_it_is_the_home_folder_and_the_lock_lies_in_the_data_folder(
        self, library, tmp_path, monkeypatch
    ):
        place = Place(library, Target.everywhere())
        assert place.pull("alpha", agents=["claude-code", "opencode", "windsurf"]) == [
            ("alpha", "added")
        ]
        home = tmp_path / "home"
        assert (home / ".agents" / "skills" / "alpha" / "run").is_file()
        assert os.readlink(home / ".claude/skills/alpha") == "../../.agents/skills/alpha"
        windsurf = home / ".codeium/windsurf/skills/alpha"
        assert os.readlink(windsurf) == "../../../.agents/skills/alpha"
        assert not (home / ".config" / "opencode").exists()  # universal: it reads the shared one
        lock = home / ".local" / "share" / "skill-registry" / "skills.lock.json"
        assert str(home) not in lock.read_text()
        assert place.check() == {"alpha": "unchanged"}
        with pytest.raises(UsageProblem, match="Eve has skills in projects only"):
            place.pull("alpha", agents=["eve"])

    def test_a_moved_home_of_an_agent_is_written_to_and_linked_from(
        self, library, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
        Place(library, Target.everywhere()).pull("alpha")
        assert os.readlink(tmp_path / "moved/skills/alpha") == "../../home/.agents/skills/alpha"

    def test_folders_of_agents_that_are_one_and_the_same_get_one_copy(self, place, project, root):
        (project / ".agents" / "skills").mkdir(parents=True)
        (project / ".claude").symlink_to(".agents")
        assert place.pull("alpha") == [("alpha", "added")]
        assert tree(project / ".agents" / "skills" / "alpha") == tree(root / "alpha")
        assert place.check() == {"alpha": "unchanged"}

    def test_links_are_right_from_where_a_linked_folder_really_is(self, place, project):
        (project / "deep" / "er").mkdir(parents=True)
        (project / ".claude").symlink_to("deep/er")
        place.pull("alpha")
        link = project / "deep" / "er" / "skills" / "alpha"
        assert os.readlink(link) == "../../../.agents/skills/alpha"
        assert (link / "SKILL.md").is_file()

    def test_a_link_out_of_the_project_is_not_followed(self, place, project, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        for name in (".claude", ".agents"):
            shutil.rmtree(project / name, ignore_errors=True)
            (project / name).symlink_to(outside)
            with pytest.raises(PullRefused, match="a link on it leads to"):
                place.pull("alpha")
            (project / name).unlink()
            assert os.listdir(outside) == []
        (project / ".claude").symlink_to(".")
        shutil.rmtree(project / "skills", ignore_errors=True)
        (project / "skills").symlink_to(".")
        with pytest.raises(PullRefused, match="a link on it leads to"):
            place.pull("alpha")

    def test_a_link_that_can_not_be_made_becomes_a_copy(self, place, project, root, monkeypatch):
        asked = []

        def refused(*arguments, **_):
            asked.append(arguments)
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "symlink", refused)
        assert place.pull("alpha") == [("alpha", "added")]
        assert asked
        for folder in (".agents", ".claude"):
            assert tree(project / folder / "skills" / "alpha") == tree(root / "alpha")
        assert place.check() == {"alpha": "unchanged"}
        assert place.pull("alpha") == [("alpha", "unchanged")]
        place.library.update("alpha", description="Two.")
        assert place.update() == [("alpha", "updated")]
        for folder in (".agents", ".claude"):
            assert tree(project / folder / "skills" / "alpha") == tree(root / "alpha")

    def test_a_folder_is_named_as_other_installers_name_it(self, place, project, root):
        write_skill(root / "odd", name="My Skill/\u00dcn\u00ef_x")
        write_skill(root / "\u7f16\u8f91", name="\u7f16\u8f91")
        place.library.sync()
        assert place.pull("mine/odd")[0][1] == "added"
        assert (project / ".agents/skills/my-skill-n-_x/SKILL.md").is_file()
        assert place.pull("mine/\u7f16\u8f91")[0][1] == "added"
        assert (project / ".agents/skills/unnamed-skill").is_dir()

    def test_agents_are_added_to_those_that_have_it(self, place, project):
        place.pull("alpha", agents=["codex"])
        assert place.pull("alpha", agents=["roo"], mode="link") == [("alpha", "updated")]
        assert place.locked["alpha"].agents == ("codex", "roo")
        assert (project / ".roo" / "skills" / "alpha").is_symlink()

    def test_from_copies_to_links_and_back(self, place, project, root):
        place.pull("alpha", agents=["claude-code"])
        assert place.pull("alpha", agents=["claude-code"], mode="link") == [("alpha", "updated")]
        assert (project / ".claude" / "skills" / "alpha").is_symlink()
        assert place.check() == {"alpha": "unchanged"}
        assert place.pull("alpha", agents=["claude-code"], mode="copy") == [("alpha", "updated")]
        assert tree(project / ".claude" / "skills") == {
            f"alpha/{name}": facts for name, facts in tree(root / "alpha").items()
        }
        assert os.listdir(project / ".agents" / "skills") == []

    def test_the_project_is_the_checkout_around_the_folder_if_it_is_ones_own(
        self, project, tmp_path, monkeypatch
    ):
        inner = project / "a" / "b"
        inner.mkdir(parents=True)
        assert Target.project(str(inner)).path == str(project)
        alone = tmp_path / "alone"
        alone.mkdir()
        (tmp_path / "home" / ".git").mkdir()
        below_home = tmp_path / "home" / "work"
        below_home.mkdir()
        assert Target.project(str(alone)).path == str(alone)
        assert Target.project(str(below_home)).path == str(below_home)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert Target.project(str(inner)).path == str(inner)

    def test_an_unknown_agent_is_named_with_the_nearest(self, place, project):
        with pytest.raises(AgentNotFound, match="codex"):
            place.pull("alpha", agents=["codx"])
        assert os.listdir(project) == [".git"]


class TestWhose:
    def test_a_skill_is_never_pulled_onto_itself(self, registry, project):
        write_skill(project / ".claude" / "skills" / "own")
        registry.sync(str(project / ".claude" / "skills"), scope="project")
        place = Place(registry, Target.project(str(project)))
        skills = [registry.resolve("own")]
        for agents in (["claude-code"], list(BOTH)):
            (told,) = pull(registry.core, skills, place.target, How(agents=agents, force=True))
            assert (told.state, "lies there already" in told.reason) == ("failed", True)
        assert place.pull("own", agents=["codex"]) == [("own", "added")]
        (told,) = registry.pull(skills, str(project / ".claude"), force=True)
        assert told.state == "failed"

    def test_a_skill_is_never_pulled_into_itself(self, registry, project):
        write_skill(project, name="root")
        registry.sync(str(project))
        (told,) = pull(
            registry.core,
            [registry.resolve("root")],
            Target.project(str(project)),
            How(agents=BOTH, force=True),
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
        (told,) = pull(place.core, [newer], place.target, How(agents=BOTH))
        assert told.state == "failed"
        assert "was pulled from mine/alpha, and stays that" in told.reason
        assert place.locked["alpha"] == before
        assert place.update() == [("mine/alpha", "unchanged")]
        place.library.update("mine/alpha", description="Two.")
        assert place.update() == [("mine/alpha", "updated")]
        place.library.remove_source("mine")
        assert place.update() == [("mine/alpha", "gone")]
        (told,) = pull(place.core, [newer], place.target, How(agents=BOTH))
        assert "which is not known any more" in told.reason
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
        place = Place(registry, Target.project(str(project)))
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
            f"file://{repository} is no source here",
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


class TestSecondAgent:
    def test_one_that_comes_later_is_given_a_link_to_the_shared_copy(self, place, project):
        place.pull("alpha", agents=["codex"])
        assert place.locked["alpha"].mode == "copy"
        assert place.pull("alpha", agents=["windsurf"]) == [("alpha", "updated")]
        assert (project / ".windsurf" / "skills" / "alpha").is_symlink()
        assert not (project / ".agents" / "skills" / "alpha").is_symlink()
        assert place.locked["alpha"].mode == "link"
        assert place.check() == {"alpha": "unchanged"}

    def test_copies_that_were_asked_for_stay_copies(self, place, project):
        place.pull("alpha", agents=["codex", "windsurf"], mode="copy")
        place.pull("alpha", agents=["claude-code"])
        assert not (project / ".claude" / "skills" / "alpha").is_symlink()


def test_how_far_it_is_is_told(place):
    told = []
    place.pull("alpha", "beta", progress=lambda *one: told.append(one))
    assert told == [("pulling", 0, 2), ("pulling", 1, 2)]
    place.update(progress=lambda *one: told.append(one))
    assert told[2:] == told[:2]


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
        (told,) = pull(place.core, skills, place.target, How(agents=BOTH))
        assert told.state == "edited"
        assert "SKILL.md differs (+1 -8)" in told.reason
        assert tree(project) == before
        assert place.check() == {"alpha": "edited"}
        assert place.remove("alpha") == [("alpha", "edited")]
        assert tree(project) == before
        by_theirs = [("alpha", "updated" if ".agents" in str(edited) else "edited")]
        assert place.update(theirs=True) == by_theirs
        (told,) = update(place.core, place.target, how=How(force=True))
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
        assert (told.state, told.reason) == ("edited", "SKILL.md differs (+1 -0)")
        (told,) = check(place.core, None, place.target)
        assert (told.state, told.reason) == (
            "edited",
            "SKILL.md differs (+1 -0); it is behind, too",
        )
        (told,) = remove(place.core, place.target, ["alpha"])
        assert (told.state, told.reason) == ("edited", "SKILL.md differs (+1 -0)")
        (told,) = remove(place.core, place.target, ["alpha"], How(force=True))
        assert (told.state, told.reason) == ("removed", "SKILL.md differs (+1 -0)")

    def test_by_its_hashes_alone_a_lock_tells_what_was_edited(self, place, project, tmp_path):
        place.pull("alpha", agents=["codex"])
        folder = project / ".agents" / "skills" / "alpha"
        (folder / "SKILL.md").write_text("Mine.")
        (folder / "run").unlink()
        (folder / "notes.md").write_text("Mine.")
        with SkillRegistry.open(tmp_path / "other.db") as registry:
            (told,) = remove(registry.core, place.target, ["alpha"])
        assert told.reason == "SKILL.md differs, notes.md is there alone, run is not there"

    def test_theirs_is_not_for_what_no_pull_made(self, place, project):
        foreign = project / ".agents" / "skills" / "alpha"
        foreign.mkdir(parents=True)
        (foreign / "notes.txt").write_text("Mine.")
        assert place.pull("alpha", theirs=True) == [("alpha", "edited")]
        assert os.listdir(foreign) == ["notes.txt"]
        assert not (project / ".claude" / "skills" / "alpha").exists()
        assert place.pull("alpha", force=True) == [("alpha", "updated")]

    def test_a_folder_with_the_same_files_is_taken_as_it_is(self, place, project, root):
        shutil.copytree(root / "alpha", project / ".agents" / "skills" / "alpha")
        node = (project / ".agents/skills/alpha/SKILL.md").stat().st_ino
        assert place.pull("alpha") == [("alpha", "updated")]  # by its link
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
        before, swap, swapped = tree(project), placing._swap, []

        def edit_before_the_last(one, other, aside):
            swapped.append(other.path)
            if other.path == str(edited.parent) and swapped.count(other.path) == 1:
                edited.write_text("Mine now.")
            swap(one, other, aside)

        monkeypatch.setattr(placing, "_swap", edit_before_the_last)
        assert place.update() == [("alpha", "edited")]
        assert str(edited.parent) in swapped
        before[str(edited.relative_to(project))] = (b"Mine now.", False)
        assert tree(project) == before


class TestRemoving:
    def test_the_copy_and_its_links_go_and_nothing_else(self, place, project):
        place.pull("alpha", "beta")
        assert place.remove("alpha") == [("alpha", "removed")]
        assert os.listdir(project / ".agents" / "skills") == ["beta"]
        assert os.listdir(project / ".claude" / "skills") == ["beta"]
        assert list(place.locked) == ["beta"]

    def test_an_edited_one_goes_by_force_alone(self, place, project):
        place.pull("alpha")
        (project / ".agents" / "skills" / "alpha" / "mine.txt").write_text("x")
        assert place.remove("alpha") == [("alpha", "edited")]
        assert place.remove("alpha", force=True) == [("alpha", "removed")]
        assert os.listdir(project / ".agents" / "skills") == []

    def test_what_was_pulled_into_a_folder_is_removed_there(self, library, tmp_path):
        library.pull([library.resolve("alpha"), library.resolve("beta")], str(tmp_path / "to"))
        place = Place(library, Target.folder(str(tmp_path / "to")))
        assert place.remove("alpha") == [("alpha", "removed")]
        assert sorted(os.listdir(tmp_path / "to")) == ["beta", "skills.lock.json"]

    def test_what_is_gone_already_is_forgotten(self, place, project):
        place.pull("alpha")
        shutil.rmtree(project / ".agents")
        assert place.remove("alpha") == [("alpha", "removed")]
        assert os.listdir(project / ".claude" / "skills") == []


class TestLock:
    def test_it_is_the_same_on_another_machine(self, place, project, tmp_path, root, database):
        place.pull("alpha", "beta")
        (tmp_path / "elsewhere").mkdir()
        shutil.copytree(root, tmp_path / "elsewhere" / "skills")
        other = tmp_path / "elsewhere" / "project"
        (other / ".git").mkdir(parents=True)
        with SkillRegistry.open(tmp_path / "other.db", settings=Settings()) as registry:
            registry.sync(str(tmp_path / "elsewhere" / "skills"), name="mine")
            Place(registry, Target.project(str(other))).pull("beta", "alpha")
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
        place = Place(library, Target.folder(str(to)))
        assert place.check() == {"alpha": "unchanged"}
        assert place.update() == [("alpha", "unchanged")]
        assert json.loads(lock.read_text())["version"] == 1
        library.update("alpha", description="Two.")
        assert place.update() == [("alpha", "updated")]
        assert json.loads(lock.read_text())["version"] == 2

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


class TestDryRun:
    def test_what_would_be_done_is_told_and_nothing_is_written(self, place, project, root):
        assert place.pull("alpha", dry_run=True) == [("alpha", "added")]
        assert os.listdir(project) == [".git"]
        place.pull("alpha", "beta")
        place.library.update("alpha", description="Two.")
        (project / ".agents" / "skills" / "beta" / "x").write_text("x")
        before, lock = tree(project), (project / "skills.lock.json").read_bytes()
        assert place.update(dry_run=True) == [("alpha", "updated"), ("beta", "edited")]
        assert place.update(dry_run=True, theirs=True)[1] == ("beta", "updated")
        assert place.remove("alpha", "beta", dry_run=True) == [
            ("alpha", "removed"),
            ("beta", "edited"),
        ]
        assert (tree(project), (project / "skills.lock.json").read_bytes()) == (before, lock)
        library = place.library
        shown = pull(
            library.core,
            [library.resolve("alpha")],
            Target.folder(str(project / "new")),
            How(dry_run=True),
        )
        assert [one.state for one in shown] == ["added"]
        assert not (project / "new").exists()


class Killed:
    """A project before something is done to it, which a child is killed doing."""

    def __init__(self, library, database, project):
        self.library, self.database, self.project = library, database, project
        self.place = Place(library, Target.project(str(project)))

    def begin(self, work):
        self.work = work
        self.old = tree(self.project)
        shutil.copytree(self.project, self.project.with_name("saved"), symlinks=True)
        work(self.place)
        self.new = tree(self.project)

    def reset(self):
        shutil.rmtree(self.project)
        shutil.copytree(self.project.with_name("saved"), self.project, symlinks=True)

    def kill(self, step):
        """Do it in a child that is killed at a step; tell whether it came to its end."""
        self.reset()

        def work():
            with SkillRegistry.open(self.database, settings=Settings()) as registry:
                place = Place(registry, Target.project(str(self.project)))
                with faults.at_step(step, faults.kill):
                    self.work(place)

        code = faults.run_in_child(work)
        assert code in {0, -signal.SIGKILL}
        return code == 0

    def steps(self):
        step = 1
        while not self.kill(step):
            yield step
            step += faults.stride()

    def seen(self):
        """Return what agents see: folders of skills with a document, through links."""
        found = {}
        for agent in (".agents", ".claude", ".roo"):
            for path in sorted((self.project / agent / "skills").glob("[!.]*/SKILL.md")):
                found[agent, path.parent.name] = path.read_bytes()
        return found


WORK = {
    "added": (lambda _: None, lambda place: place.pull("alpha", agents=(*BOTH, "roo"))),
    "updated": (
        lambda place: place.pull("alpha", agents=(*BOTH, "roo")),
        lambda place: place.update(),
    ),
    "removed": (
        lambda place: place.pull("alpha", agents=(*BOTH, "roo")),
        lambda place: place.remove("alpha"),
    ),
}


@pytest.fixture
def killed(library, database, project):
    return Killed(library, database, project)


@pytest.mark.parametrize("what", WORK)
def test_killed_at_each_step_all_agents_see_the_old_or_all_the_new_and_the_next_pull_mends(
    killed, what
):
    before, work = WORK[what]
    before(killed.place)
    if what == "updated":
        killed.library.update("alpha", description="Two.")
    old = killed.seen()
    killed.begin(work)
    new = killed.seen()
    assert old != new
    steps, states = 0, set()
    for step in killed.steps():
        seen = killed.seen()
        assert seen in (old, new), step
        states.add(seen == new)
        with suppress(LockMissing):  # whatever it is about, it clears up
            killed.place.update()
        mended = killed.seen()
        assert mended in (old, new) if what != "updated" else mended == new, step
        assert tree(killed.project) in (killed.old, killed.new), step
        again = work(killed.place) if what != "removed" or mended == old else []
        assert {state for _, state in again} <= {"added", "updated", "unchanged", "removed"}, step
        assert tree(killed.project) == killed.new, step
        steps += 1
    assert steps > 20 // faults.stride()
    assert states == {False, True}  # killed before it counted, and after


def test_killed_while_it_removes_from_a_folder_the_skill_is_whole_or_gone(killed, library, project):
    to = project / "to"
    library.pull([library.resolve("alpha"), library.resolve("beta")], str(to))
    target = Target.folder(str(to))
    killed.begin(lambda place: remove(place.core, target, ["alpha"]))
    seen = set()
    for step in killed.steps():
        alpha = tree(to / "alpha")
        assert alpha in ({}, tree(project.with_name("saved") / "to" / "alpha")), step
        update(library.core, target)
        assert tree(project) in (killed.old, killed.new), step
        seen.add(tree(project) == killed.new)
    assert seen == {False, True}


def test_killed_while_copies_are_put_into_several_folders_the_next_pull_mends(killed):
    killed.place.pull("alpha", mode="copy")
    killed.library.update("alpha", description="Two.")
    killed.begin(lambda place: place.update())
    for step in killed.steps():
        update(killed.library.core, killed.place.target)
        assert tree(killed.project) == killed.new, step
        assert killed.place.check() == {"alpha": "unchanged"}


def test_killed_between_copies_and_links_either_is_whole(killed):
    killed.place.pull("alpha", agents=["claude-code"])
    work = lambda place: place.pull("alpha", agents=["claude-code"], mode="link")  # noqa: E731
    killed.begin(work)
    for step in killed.steps():
        work(killed.place)
        assert tree(killed.project) == killed.new, step


def test_killed_where_names_can_not_be_swapped_nothing_is_lost(killed, monkeypatch):
    monkeypatch.setattr(atomic, "_renameat2", lambda: None)
    killed.place.pull("alpha")
    killed.library.update("alpha", description="Two.")
    killed.begin(lambda place: place.update())
    for step in killed.steps():
        update(killed.library.core, killed.place.target)
        assert tree(killed.project) == killed.new, step


def test_these_experiments_see_what_is_missing(killed, monkeypatch):
    monkeypatch.setattr(faults, "every_line", False)
    killed.begin(lambda place: place.pull("alpha"))
    with monkeypatch.context() as patch:
        patch.setattr(several, "in_order", lambda parts: sorted(parts, key=lambda one: one.label))
        seen = [killed.seen() for _ in killed.steps()]
        assert any(len(one) == 1 for one in seen)  # one agent has it, and the other has not
    monkeypatch.setattr(several.Several, "found", classmethod(lambda *_: None))
    left = False
    for _ in killed.steps():
        with suppress(LockMissing):
            killed.place.update()
        left = left or tree(killed.project) not in (killed.old, killed.new)
    assert left


@pytest.mark.parametrize(
    ("labels", "folder"),
    [
        ([".ssh/skills"], "alpha"),
        (["/etc"], "alpha"),
        (["."], "../../evil"),
        ([".agents/skills"], "../../../evil"),
    ],
)
def test_what_a_stranger_left_as_unfinished_leads_nowhere(place, project, labels, folder):
    place.pull("alpha")
    outside = project.parent / "evil"
    outside.mkdir()
    before = tree(project.parent)
    planted = project / ".exchange-0123456789abcdef.skill-registry"
    planted.mkdir(mode=0o700)
    record = {"folder": folder, "labels": labels, "deciding": labels[0]}
    note = {"folder": folder, "base": digest_of_folder(outside), "new": None, "entry": None}
    (planted / several.RECORD).write_text(json.dumps(record))
    (planted / several.ENTRY).write_text("null")
    (planted / placing.NOTE).write_text(json.dumps(note))
    assert place.check() == {"alpha": "unchanged"}
    assert place.update() == [("alpha", "unchanged")]
    shutil.rmtree(planted, ignore_errors=True)
    assert tree(project.parent) == before
    assert outside.is_dir()


def digest_of_folder(path):
    with atomic.open_named(str(path.parent)) as folder:
        return atomic.digest_of(atomic.Place(folder, path.name))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("what", WORK)
def test_failing_at_each_step_all_agents_see_the_old_or_all_the_new_and_nothing_is_left(
    killed, what, code
):
    before, work = WORK[what]
    before(killed.place)
    if what == "updated":
        killed.library.update("alpha", description="Two.")
    old = killed.seen()
    killed.begin(work)
    new, step, failed = killed.seen(), 1, 0
    kinds = faults.EFFECTS if code == errno.ENOSPC else faults.EFFECTS | {faults.FSYNC}
    while True:
        killed.reset()
        with faults.at_step(step, faults.fail(code), kinds) as passed:
            try:
                work(killed.place)
            except PullRefused:
                failed += 1
        if len(passed) < step:
            break
        assert killed.seen() in (old, new), (step, passed[-1])
        with suppress(LockMissing):
            killed.place.update()
        assert tree(killed.project) in (killed.old, killed.new), (step, passed[-1])
        step += faults.stride()
    assert failed > 10 // faults.stride()


@pytest.mark.both
def test_what_a_lock_says_is_had_from_a_revision_and_from_a_skill_of_another_source(
    library, project, root, tmp_path
):
    place = Place(library, Target.project(str(project)))
    place.pull("alpha", "beta")
    lock, whole = (project / "skills.lock.json").read_bytes(), tree(project)
    library.update("alpha", description="Two.")
    shutil.copytree(root / "beta", tmp_path / "other" / "beta")
    library.sync(str(tmp_path / "other"))
    library.delete("mine/beta")
    shutil.rmtree(project / ".agents")
    shutil.rmtree(project / ".claude")
    assert {one.state for one in put_back(library.core, place.target)} == {"added"}
    assert tree(project) == whole
    assert (project / "skills.lock.json").read_bytes() == lock
