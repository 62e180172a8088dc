"""Skills are put where agents look: one copy and links to it."""

import os
import shutil

import pytest

from registry.errors import AgentNotFound, PullRefused, UsageProblem
from registry.install.pull import pull
from registry.install.targets import InstallOptions, InstallTarget
from tests.conftest import write_skill
from tests.install.places import Place, tree


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
        place = Place(library, InstallTarget.everywhere())
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
        Place(library, InstallTarget.everywhere()).pull("alpha")
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
            with pytest.raises(PullRefused, match="its path has a link to"):
                place.pull("alpha")
            (project / name).unlink()
            assert os.listdir(outside) == []
        (project / ".claude").symlink_to(".")
        shutil.rmtree(project / "skills", ignore_errors=True)
        (project / "skills").symlink_to(".")
        with pytest.raises(PullRefused, match="its path has a link to"):
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
        assert InstallTarget.project(str(inner)).path == str(project)
        alone = tmp_path / "alone"
        alone.mkdir()
        (tmp_path / "home" / ".git").mkdir()
        below_home = tmp_path / "home" / "work"
        below_home.mkdir()
        assert InstallTarget.project(str(alone)).path == str(alone)
        assert InstallTarget.project(str(below_home)).path == str(below_home)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert InstallTarget.project(str(inner)).path == str(inner)

    def test_an_unknown_agent_is_named_with_the_nearest(self, place, project):
        with pytest.raises(AgentNotFound, match="codex"):
            place.pull("alpha", agents=["codx"])
        assert os.listdir(project) == [".git"]


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
        place = Place(library, InstallTarget.folder(str(tmp_path / "to")))
        assert place.remove("alpha") == [("alpha", "removed")]
        assert sorted(os.listdir(tmp_path / "to")) == ["beta", "skills.lock.json"]

    def test_what_is_gone_already_is_forgotten(self, place, project):
        place.pull("alpha")
        shutil.rmtree(project / ".agents")
        assert place.remove("alpha") == [("alpha", "removed")]
        assert os.listdir(project / ".claude" / "skills") == []


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
            InstallTarget.folder(str(project / "new")),
            InstallOptions(dry_run=True),
        )
        assert [one.state for one in shown] == ["added"]
        assert not (project / "new").exists()
