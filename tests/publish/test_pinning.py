"""Install a version: a lock that pins it, newer versions, deprecated and yanked ones."""

import json
from shutil import rmtree
from types import SimpleNamespace

import pytest

from registry.errors import SkillNotFound, VersionNotFound, VersionNotStored, VersionYanked
from registry.install import pull as pulling
from registry.install.lockfile import read_lock
from registry.install.targets import InstallOptions, InstallTarget
from tests.cli.conftest import run
from tests.conftest import write_skill


class Project:
    """A folder into which skills are pulled, and what the last pull said."""

    def __init__(self, registry, folder):
        self.registry, self.target = registry, InstallTarget.folder(str(folder))
        self.folder = folder

    def pull(self, *handles, **how):
        skills = [self.registry.resolve(one) for one in handles]
        return pulling.pull(self.registry.core, skills, self.target, InstallOptions(**how))

    def update(self, *names, **how):
        asked = pulling.folders_of(self.target, names) if names else None
        return pulling.update(self.registry.core, self.target, asked, InstallOptions(**how))

    def check(self, *names):
        asked = pulling.folders_of(self.target, names) if names else None
        return pulling.check(self.registry.core, None, self.target, asked)

    def frozen(self):
        return pulling.restore_from_lock(self.registry.core, self.target)

    @property
    def text(self):
        return (self.folder / "tea" / "SKILL.md").read_text().split()[-1]

    @property
    def pin(self):
        return read_lock(self.target.path)["tea"].pin


@pytest.fixture
def tea(mine, root, tmp_path):
    """A skill that has the versions 1.9 and 1.10, the second one now; and a project."""

    def release(version):
        extra = f"metadata:\n  version: '{version}'\n" if version else ""
        folder = write_skill(root / "tea", body=f"Brew {version}\n", extra=extra, age=None)
        (folder / "pot.txt").write_text(f"pot {version}")
        mine.sync()

    release("1.9")
    release("1.10")
    (tmp_path / "project").mkdir()
    project = Project(mine, tmp_path / "project")
    return SimpleNamespace(registry=mine, release=release, project=project, folder=root / "tea")


def only(results):
    assert len(results) == 1, results
    return results[0]


def test_a_version_is_installed_and_stays(tea):
    told = only(tea.project.pull("tea@1.9"))
    assert (told.state, told.pin, told.newer) == ("added", "1.9", "1.10")
    assert (tea.project.text, tea.project.pin) == ("1.9", "1.9")
    assert (tea.project.folder / "tea" / "pot.txt").read_text() == "pot 1.9"
    tea.release("1.11")
    for told in (only(tea.project.update()), only(tea.project.check())):
        assert (told.state, told.pin, told.newer) == ("unchanged", "1.9", "1.11")
    assert tea.project.text == "1.9"


def test_without_a_label_the_skill_follows_its_source(tea):
    tea.project.pull("tea")
    tea.release("1.11")
    assert only(tea.project.check()).state == "behind"
    assert only(tea.project.update()).state == "updated"
    assert (tea.project.text, tea.project.pin) == ("1.11", None)


def test_a_name_pins_another_version_or_none(tea):
    tea.project.pull("tea@1.9")
    assert only(tea.project.update("tea@1.10")).pin == "1.10"
    assert (tea.project.text, tea.project.pin) == ("1.10", "1.10")
    told = only(tea.project.update("tea@3"))
    assert (told.state, tea.project.pin) == ("failed", "1.10")
    tea.release("1.11")
    assert only(tea.project.update("tea")).pin is None
    assert (tea.project.text, tea.project.pin) == ("1.11", None)


def test_a_pin_restores_what_is_missing_and_keeps_edits(tea):
    tea.project.pull("tea@1.9")
    installed = tea.project.folder / "tea"
    (installed / "pot.txt").write_text("mine")
    assert only(tea.project.update()).state == "edited"
    assert (installed / "pot.txt").read_text() == "mine"
    assert only(tea.project.update(theirs=True)).state == "updated"
    assert (installed / "pot.txt").read_text() == "pot 1.9"
    rmtree(installed)
    assert only(tea.project.check()).state == "missing"
    assert only(tea.project.frozen()).state == "added"
    assert (tea.project.text, tea.project.pin) == ("1.9", "1.9")


def test_a_version_that_has_no_content_is_not_installed(tea):
    with pytest.raises(VersionNotFound):
        tea.project.pull("tea@3")
    tea.registry.core.reader.rows("SELECT 1")
    with tea.registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM revisions WHERE number = 1")
    with pytest.raises(VersionNotStored):
        tea.project.pull("tea@1.9")
    assert not (tea.project.folder / "tea").exists()


def test_a_deprecated_version_warns_at_each_pull(tea):
    tea.registry.deprecate_version("tea@1.9", "old", replacement="tea@1.10")
    warning = "Version 1.9 is deprecated: old. Use tea@1.10 instead."
    told = only(tea.project.pull("tea@1.9"))
    assert (told.state, told.warning) == ("added", warning)
    for told in (*tea.project.update(), *tea.project.check(), *tea.project.frozen()):
        assert (told.state, told.warning) == ("unchanged", warning)
    tea.registry.deprecate_version("tea@1.10", "also old")
    assert "also old" in only(tea.project.update("tea")).warning
    tea.registry.reactivate_version("tea@1.10")
    assert only(tea.project.update()).warning is None


def test_a_yanked_version_is_only_served_to_a_lock_that_names_it(tea, tmp_path):
    tea.project.pull("tea@1.9")
    tea.registry.yank_version("tea@1.9", "bad")
    with pytest.raises(VersionYanked, match="bad"):
        tea.project.pull("tea@1.9")
    for told in (*tea.project.update(), *tea.project.check()):
        assert (told.state, told.warning) == ("unchanged", "Version 1.9 is yanked: bad.")
    rmtree(tea.project.folder / "tea")
    told = only(tea.project.frozen())
    assert (told.state, told.warning) == ("added", "Version 1.9 is yanked: bad.")
    assert tea.project.text == "1.9"


def test_a_check_fails_if_an_installed_version_is_yanked(tea, database):
    tea.project.pull("tea@1.9")
    where = ("--to", str(tea.project.folder))
    tea.registry.deprecate_version("tea@1.9", "old")
    assert run("--db", str(database), "pull", "--check", *where).exit_code == 0
    tea.registry.yank_version("tea@1.9", "bad")
    checked = run("--db", str(database), "pull", "--check", *where)
    assert checked.exit_code == 1
    assert "Version 1.9 is yanked: bad." in checked.stderr
    assert run("--db", str(database), "pull", *where).exit_code == 0


@pytest.mark.parametrize("who", ["owner", "another"])
def test_a_lock_keeps_files_whose_skill_is_yanked_now(tea, tmp_path, who):
    tea.project.pull("tea")
    (tmp_path / "earlier").mkdir()
    earlier = Project(tea.registry, tmp_path / "earlier")
    earlier.pull("tea@1.9")
    earlier.update("tea")
    tea.release("2.0")  # which the projects don't have
    earlier.update()
    tea.registry.yank_version("tea@2.0", "bad")
    registry = tea.registry if who == "owner" else tea.registry.answering_others()
    for project, text, warning in (
        (tea.project, "1.10", None),
        (earlier, "2.0", "Version 2.0 is yanked: bad."),
    ):
        project.registry = registry
        for told in (*project.check(), *project.update(), *project.frozen()):
            assert (told.state, told.warning) == ("unchanged", warning)
        assert project.text == text
    if who == "owner":
        told = only(Project(registry, tmp_path / "earlier").pull("tea"))
        assert (told.state, "yanked: bad" in told.reason) == ("failed", True)
    else:
        with pytest.raises(SkillNotFound):
            registry.resolve("tea")
    tea.release("2.1")
    assert [one.state for one in (*earlier.update(), *tea.project.update())] == ["updated"] * 2


def test_a_newer_version_that_is_yanked_is_not_named(tea):
    tea.project.pull("tea@1.9")
    tea.release("1.11")
    tea.registry.yank_version("tea@1.11", "bad")
    assert only(tea.project.check()).newer == "1.10"


@pytest.mark.parametrize(
    ("version", "later"), [(2, ["pin"]), (1, ["pin", "agents", "mode", "origin"])]
)
def test_a_lock_of_an_older_program_is_read_and_written_again(tea, version, later):
    tea.project.pull("tea")
    lock = tea.project.folder / "skills.lock.json"
    data = json.loads(lock.read_text())
    assert data["version"] == 3
    data["version"] = version
    for key in later:
        del data["skills"]["tea"][key]
    lock.write_text(json.dumps(data))
    assert only(tea.project.update()).state == "unchanged"
    tea.release("1.11")
    tea.project.update()
    assert json.loads(lock.read_text())["version"] == 3


@pytest.mark.parametrize("pin", [1, "a b", "../x", "x" * 65])
def test_a_pin_that_no_pull_wrote_is_refused(tea, pin):
    from registry.errors import LockFileInvalid

    tea.project.pull("tea")
    lock = tea.project.folder / "skills.lock.json"
    data = json.loads(lock.read_text())
    data["skills"]["tea"]["pin"] = pin
    lock.write_text(json.dumps(data))
    with pytest.raises(LockFileInvalid):
        tea.project.update()


def test_a_version_is_exported(tea, tmp_path):
    tea.registry.export([tea.registry.resolve("tea@1.9")], str(tmp_path / "site"))
    files = [*(tmp_path / "site").rglob("*")]
    assert any("tea" in one.name for one in files)
    with pytest.raises(VersionNotFound):
        tea.registry.resolve("tea@0")


def test_a_known_source_comes_before_an_address(tea):
    for handle in ("mine/tea@1.9", "mine/tea"):
        assert not tea.registry.is_address(handle)
    assert tea.registry.is_address("owner/repo@skill")
    assert tea.registry.resolve("mine/tea@1.9").pin == "1.9"
