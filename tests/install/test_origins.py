"""Skills are pulled from an address in one go, and a lock is enough to have them elsewhere."""

import json
import os
import shutil

import pytest

from registry.api import SkillRegistry
from registry.errors import (
    ChangeNotUndone,
    LockNotMet,
    SeveralSkills,
    SkillHeld,
    SkillNotFound,
    UsageProblem,
)
from registry.install.lockfile import read_lock
from registry.install.provenance import strange_addresses
from registry.install.pull import restore_from_lock
from registry.install.targets import InstallOptions, InstallTarget
from registry.install.undo import last_change
from registry.settings import Settings, data_folder
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.home import git, make_upstream


@pytest.fixture(scope="module")
def _office(tmp_path_factory):
    made = tmp_path_factory.mktemp("office")
    make_upstream(made)
    return made / "upstream" / "office"


@pytest.fixture
def office(tmp_path, _office):
    """A repository with two skills, and a third that is held back."""
    return shutil.copytree(_office, tmp_path / "upstream" / "office")


@pytest.fixture
def project(tmp_path, registry, office):
    """A project into which two skills were pulled from their address."""
    folder = tmp_path / "project"
    folder.mkdir()
    chosen = registry.skills_at(f"file://{office}", every=True)
    registry.pull(chosen, str(folder))
    return folder


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Another home, with a registry that knows nothing, and the lock of the project."""
    home = tmp_path / "other-home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with SkillRegistry.open(home / "registry.db", settings=Settings()) as registry:
        yield registry


@pytest.fixture
def trusting(elsewhere, office):
    """The other registry has a source of the repository's address, which lacks the lock's skills."""
    elsewhere.sync(f"file://{office}#main@mailer")


@pytest.fixture
def clone(tmp_path, project):
    """A clone of the project, of which only the lock was committed."""
    folder = tmp_path / "clone"
    folder.mkdir()
    shutil.copy(project / "skills.lock.json", folder)
    return folder


def contents(folder):
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_address_becomes_a_source_of_which_skills_are_chosen(registry, office):
    address = f"file://{office}"
    assert registry.is_address(address)
    with pytest.raises(SeveralSkills, match=r"3 skills: mailer \(quarantined\), minutes, slides"):
        registry.skills_at(address)
    assert registry.sources() == []
    assert [one.ref for one in registry.skills_at(address, skills=["Slides"])] == ["slides"]
    assert [one.name for one in registry.skills_at(address, every=True)] == ["minutes", "slides"]
    assert [source.name for source in registry.sources()] == ["office"]


def test_what_is_not_offered_is_told_with_the_nearest_and_why(registry, office):
    with pytest.raises(SkillHeld, match="'mailer' comes from a remote source"):
        registry.skills_at(f"file://{office}", skills=["mailer"])
    with pytest.raises(SkillNotFound, match="minutes"):
        registry.skills_at(f"file://{office}", skills=["minute"])
    registry.sync(f"file://{office}")
    registry.trust_source("office")
    assert registry.skills_at(f"file://{office}", skills=["mailer"])[0].name == "mailer"


@pytest.mark.parametrize(
    ("skills", "error"), [([], SeveralSkills), (["x"], SkillNotFound), (["mailer"], SkillHeld)]
)
def test_a_choice_that_fails_leaves_no_source_that_was_not_there(registry, office, skills, error):
    with pytest.raises(error):
        registry.skills_at(f"file://{office}", skills=skills)
    assert registry.sources() == []
    assert os.listdir(data_folder() / "checkouts") == []
    registry.sync(f"file://{office}")
    with pytest.raises(error):
        registry.skills_at(f"file://{office}", skills=skills)
    assert [source.name for source in registry.sources()] == ["office"]


def test_what_lies_in_the_folders_of_several_agents_is_one_skill(registry, office, tmp_path):
    shutil.copytree(office / "skills", office / ".claude" / "skills")
    git(office, "add", "-A")
    git(office, "commit", "-qm", "for an agent, too")
    found = registry.skills_at(f"file://{office}", every=True)
    assert [one.name for one in found] == ["minutes", "slides"]
    done = registry.pull(found, str(tmp_path / "to"))
    assert [one.state for one in done] == ["added", "added"]
    assert not any(one.shadowed for one in found)


def test_where_all_is_held_back_that_is_told_and_nothing_is_pulled(registry, office):
    with pytest.raises(SkillHeld, match="'mailer'"):
        registry.skills_at(f"file://{office}#main@mailer")
    assert registry.sources() == []


def test_without_writing_an_address_has_to_be_a_source(registry, office):
    address = f"file://{office}"
    with pytest.raises(UsageProblem, match="--dry-run and --check fetch nothing"):
        registry.skills_at(address, every=True, dry_run=True)
    assert registry.sources() == []
    registry.sync(address)
    office.rename(office.with_name("away"))  # it is not asked, either
    found = registry.skills_at(address, every=True, dry_run=True)
    assert [one.name for one in found] == ["minutes", "slides"]


def test_what_has_the_whole_repository_is_the_source_of_one_skill_of_it(registry, office):
    registry.sync(f"file://{office}#main")
    (slides,) = registry.skills_at(f"file://{office}#main@slides")
    assert (slides.source, slides.name) == ("office", "slides")
    assert [one.name for one in registry.skills_at(f"file://{office}/skills/minutes#main")] == [
        "minutes"
    ]
    assert [source.name for source in registry.sources()] == ["office"]
    (slides,) = registry.skills_at(f"file://{office}#v1@slides")  # of another ref
    assert (slides.source, slides.pin, slides.origin.ref) == ("office", "v1", "v1")
    assert [source.name for source in registry.sources()] == ["office"]


def test_of_two_sources_with_one_origin_either_is_taken(registry, office, tmp_path):
    to = tmp_path / "to"
    for number, ref in enumerate(("main", "v1")):
        registry.sync(f"file://{office}#{ref}", name=ref)
        (slides,) = registry.skills_at(f"file://{office}#{ref}", skills=["slides"])
        (told,) = registry.pull([slides], str(to))
        assert told.state == ("added", "updated")[number], told.reason
        assert read_lock(str(to))["slides"].source == ref


@pytest.mark.both
class TestMoved:
    @pytest.fixture
    def moved(self, registry, office, project):
        """The repository after one of its skills was moved, and changed with it."""
        (office / "skills" / "docs").mkdir()
        git(office, "mv", "skills/slides", "skills/docs/slides")
        git(office, "commit", "-qam", "moved")
        return office

    def states(self, found):
        return {one.ref: one.state for one in found}

    def test_the_lock_follows_it(self, registry, project, moved):
        assert [one.after for one in registry.sync().moved] == ["skills/docs/slides"]
        assert self.states(registry.check_pulled(str(project)))["slides"] == "unchanged"
        assert self.states(registry.update_pulled(str(project)))["slides"] == "unchanged"
        entry = read_lock(str(project))["slides"]
        assert (entry.folder, entry.origin["path"]) == ("skills/docs/slides",) * 2

    def test_with_what_was_changed_afterwards(self, registry, project, moved):
        registry.sync()
        with (moved / "skills" / "docs" / "slides" / "SKILL.md").open("a") as document:
            document.write("Newer.\n")
        git(moved, "commit", "-qam", "newer")
        registry.sync()
        assert self.states(registry.update_pulled(str(project)))["slides"] == "updated"
        assert "Newer." in (project / "slides" / "SKILL.md").read_text()

    def test_the_same_content_elsewhere_is_no_reason_to_go_there(
        self, registry, project, office, tmp_path
    ):
        shutil.copytree(office / "skills" / "slides", tmp_path / "mine" / "slides")
        git(office, "rm", "-qr", "skills/slides")
        git(office, "commit", "-qam", "removed")
        registry.sync(str(tmp_path / "mine"))
        registry.sync()
        (told,) = (one for one in registry.update_pulled(str(project)) if one.state == "gone")
        assert told.ref == "office/skills/slides"
        assert told.reason == (
            f"its source office (file://{office}) no longer has a skill in skills/slides"
        )

    def test_in_a_folder_of_ones_own_it_is_followed_too(self, registry, root, skill, tmp_path):
        skill("memo")
        registry.sync(str(root), name="mine")
        registry.pull([registry.resolve("memo")], str(tmp_path / "to"))
        (root / "docs").mkdir()
        (root / "memo").rename(root / "docs" / "memo")
        registry.sync()
        assert self.states(registry.update_pulled(str(tmp_path / "to"))) == {"memo": "unchanged"}
        assert read_lock(str(tmp_path / "to"))["memo"].folder == "docs/memo"


class TestNoSource:
    """A project was cloned with its skills, and nobody has synced where they are from."""

    @pytest.fixture
    def clone(self, tmp_path, project):
        return shutil.copytree(project, tmp_path / "clone")

    def check(self, elsewhere, clone):
        return {one.ref: (one.state, one.reason) for one in elsewhere.check_pulled(str(clone))}

    def test_what_is_there_is_compared_with_the_lock(self, clone, elsewhere, office):
        no_source = f"file://{office} is not a source here"
        assert self.check(elsewhere, clone) == {
            "minutes": ("unchanged", no_source),
            "slides": ("unchanged", no_source),
        }
        (clone / "slides" / "SKILL.md").write_text("Mine.")
        shutil.rmtree(clone / "minutes")
        assert self.check(elsewhere, clone) == {
            "minutes": ("missing", no_source),
            "slides": ("edited", "SKILL.md differs"),
        }

    def test_one_of_them_is_compared_by_its_name(self, clone, elsewhere):
        elsewhere.core.create_database()
        asked = "--db", elsewhere.core.backend.path, "pull", "--check", "--to", str(clone)
        told = run(*asked, "slides", "--json")
        assert told.exit_code == 0, told.stderr
        assert [(one["ref"], one["state"]) for one in json.loads(told.stdout)] == [
            ("slides", "unchanged")
        ]
        (clone / "slides" / "SKILL.md").write_text("Mine.")
        assert run(*asked, "slides").exit_code == 1
        assert "no skill" in run(*asked, "nothing").stderr.lower()

    def test_a_source_of_one_skill_tells_nothing_of_the_others(self, clone, elsewhere, office):
        elsewhere.sync(f"file://{office}#main@slides", name="one")
        assert self.check(elsewhere, clone) == {
            "minutes": ("unchanged", f"file://{office} is not a source here"),
            "slides": ("unchanged", None),
        }

    @pytest.mark.usefixtures("trusting")
    def test_what_is_missing_is_put_back_and_what_was_edited_is_left(
        self, project, clone, elsewhere
    ):
        (clone / "slides" / "SKILL.md").write_text("Mine.")
        shutil.rmtree(clone / "minutes")
        lock = (clone / "skills.lock.json").read_bytes()
        done = elsewhere.update_pulled(str(clone))
        assert [(one.ref, one.state) for one in done] == [
            ("minutes", "added"),
            ("slides", "edited"),
        ]
        assert contents(clone / "minutes") == contents(project / "minutes")
        assert (clone / "slides" / "SKILL.md").read_text() == "Mine."
        assert (clone / "skills.lock.json").read_bytes() == lock
        assert [one.name for one in elsewhere.sources()] == ["office"]

    def test_what_is_not_to_be_had_is_told_and_keeps_no_other(self, clone, elsewhere, office):
        shutil.rmtree(clone / "minutes")
        office.rename(office.with_name("away"))
        done = elsewhere.update_pulled(str(clone))
        assert [(one.ref, one.state) for one in done] == [
            ("minutes", "failed"),
            ("slides", "unchanged"),
        ]

    @pytest.mark.parametrize(
        "change",
        [
            {"url": "ext::sh -c x"},
            {"url": "--exec=x"},
            {"ref": "--x"},
            {"url": "file://x\x1b[2J"},
            {"url": "owner/repo"},
        ],
    )
    def test_what_a_stranger_calls_an_address_is_not_advised(self, clone, elsewhere, change):
        lock = json.loads((clone / "skills.lock.json").read_text())
        lock["skills"]["minutes"]["origin"] |= change
        (clone / "skills.lock.json").write_text(json.dumps(lock))
        told = strange_addresses(elsewhere.core, InstallTarget.folder(str(clone)))
        assert told == [read_lock(str(clone))["slides"].origin["url"]]


def test_for_agents_a_program_names_a_project(registry, root, skill, tmp_path):
    skill("memo")
    registry.sync(str(root), name="mine")
    registry.pull([registry.resolve("memo")], str(tmp_path), agents=["claude-code", "codex"])
    assert (tmp_path / ".claude" / "skills" / "memo").is_symlink()
    assert [one.state for one in registry.remove_pulled(str(tmp_path), ["memo"])] == ["removed"]
    assert not os.path.lexists(tmp_path / ".claude" / "skills" / "memo")


def test_a_ref_with_a_slash_is_no_address(registry, root, skill):
    skill("deep/one")
    registry.sync(str(root), name="mine")
    assert not registry.is_address("mine/one")
    assert not registry.is_address("mine/deep/one")
    assert not registry.is_address("one")
    assert registry.is_address("owner/repo")


@pytest.mark.usefixtures("trusting")
def test_a_lock_gives_the_same_bytes_on_another_machine(project, clone, elsewhere):
    done = restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    assert [(one.ref, one.state) for one in done] == [("minutes", "added"), ("slides", "added")]
    assert contents(clone) == contents(project)
    assert [one.name for one in elsewhere.sources()] == ["office"]


@pytest.mark.usefixtures("trusting")
def test_a_lock_gives_what_it_says_and_not_what_there_is_by_now(project, clone, elsewhere, office):
    with (office / "skills" / "slides" / "SKILL.md").open("a") as document:
        document.write("Newer.\n")
    git(office, "commit", "-qam", "newer")
    restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    assert contents(clone) == contents(project)


@pytest.mark.usefixtures("trusting")
def test_where_a_lock_says_a_ref_and_no_commit_it_is_what_the_ref_means(
    project, clone, elsewhere, office
):
    git(office, "tag", "pulled")
    with (office / "skills" / "slides" / "SKILL.md").open("a") as document:
        document.write("Newer.\n")
    git(office, "commit", "-qam", "newer")
    lock = json.loads((clone / "skills.lock.json").read_text())
    for one in lock["skills"].values():  # as what another installer put in place is taken over
        one["origin"] |= {"commit": None, "ref": "pulled"}
    (clone / "skills.lock.json").write_text(json.dumps(lock))
    restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    for name in ("minutes", "slides"):
        assert contents(clone / name) == contents(project / name)


@pytest.mark.usefixtures("trusting")
def test_what_was_fetched_once_is_had_without_the_remote(project, clone, elsewhere, office):
    restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    shutil.rmtree(office)
    for name in ("minutes", "slides"):
        shutil.rmtree(clone / name)
    restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    assert contents(clone) == contents(project)
    shutil.rmtree(clone / "slides")
    restore_from_lock(
        elsewhere.core, InstallTarget.folder(str(clone)), InstallOptions(offline=True)
    )
    assert contents(clone) == contents(project)


@pytest.fixture
def mixed(registry, project, office, tmp_path):
    """A clone of the project after one of its skills alone was brought up to date."""
    for name in ("minutes", "slides"):
        with (office / "skills" / name / "SKILL.md").open("a") as document:
            document.write("Newer.\n")
    git(office, "commit", "-qam", "newer")
    registry.sync()
    registry.pull([registry.resolve("slides")], str(project))
    folder = tmp_path / "mixed"
    folder.mkdir()
    shutil.copy(project / "skills.lock.json", folder)
    return folder


@pytest.mark.usefixtures("trusting")
def test_skills_of_several_commits_of_one_repository_are_had_together(
    project, mixed, elsewhere, office
):
    commits = {one.origin["commit"] for one in read_lock(str(mixed)).values()}
    assert len(commits) == 2
    restore_from_lock(elsewhere.core, InstallTarget.folder(str(mixed)))
    assert contents(mixed) == contents(project)
    shutil.rmtree(office)
    for name in ("minutes", "slides"):
        shutil.rmtree(mixed / name)
    restore_from_lock(
        elsewhere.core, InstallTarget.folder(str(mixed)), InstallOptions(offline=True)
    )
    assert contents(mixed) == contents(project)


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("is_frozen", [True, False])
def test_all_skills_of_a_lock_are_fetched_together_and_kept(
    registry, office, tmp_path, elsewhere, monkeypatch, is_frozen
):
    for number in range(40):
        write_skill(office / "skills" / f"one-{number}")
    git(office, "add", "-A")
    git(office, "commit", "-qm", "more")
    registry.pull(registry.skills_at(f"file://{office}", every=True), str(tmp_path / "to"))
    folder = tmp_path / "clone"
    folder.mkdir()
    shutil.copy(tmp_path / "to" / "skills.lock.json", folder)
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    if is_frozen:
        restore_from_lock(elsewhere.core, InstallTarget.folder(str(folder)))
    else:
        elsewhere.update_pulled(str(folder))
    assert contents(folder) == contents(tmp_path / "to")
    assert (tmp_path / "trace").read_text().count("built-in: git upload-pack") == 2
    shutil.rmtree(office)
    for one in read_lock(str(folder)):
        shutil.rmtree(folder / one)
    restore_from_lock(
        elsewhere.core, InstallTarget.folder(str(folder)), InstallOptions(offline=True)
    )
    assert contents(folder) == contents(tmp_path / "to")


@pytest.mark.usefixtures("trusting")
def test_what_could_not_be_had_takes_nothing_from_what_was_fetched(mixed, elsewhere, office):
    text = (mixed / "skills.lock.json").read_text()
    lock = json.loads(text)
    lock["skills"]["slides"]["origin"]["commit"] = "0" * 40
    (mixed / "skills.lock.json").write_text(json.dumps(lock))
    with pytest.raises(LockNotMet, match="slides"):
        restore_from_lock(elsewhere.core, InstallTarget.folder(str(mixed)))
    shutil.rmtree(office)
    del lock["skills"]["slides"]
    (mixed / "skills.lock.json").write_text(json.dumps(lock))
    (told,) = restore_from_lock(
        elsewhere.core, InstallTarget.folder(str(mixed)), InstallOptions(offline=True)
    )
    assert (told.ref, told.state) == ("minutes", "added")


@pytest.mark.usefixtures("trusting")
def test_a_remote_that_is_away_is_asked_once_for_all_of_its_skills(
    clone, elsewhere, office, tmp_path, monkeypatch
):
    office.rename(office.with_name("away"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    with pytest.raises(LockNotMet, match=r"minutes, slides \("):
        restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    assert (tmp_path / "trace").read_text().count("built-in: git fetch") == 1


def test_offline_nothing_is_asked_of_the_remote(clone, elsewhere):
    with pytest.raises(LockNotMet, match="that version was never fetched here"):
        restore_from_lock(
            elsewhere.core, InstallTarget.folder(str(clone)), InstallOptions(offline=True)
        )
    assert [path.name for path in clone.iterdir()] == ["skills.lock.json"]


@pytest.mark.usefixtures("trusting")
def test_a_remote_that_is_gone_is_a_clear_refusal_and_nothing_is_written(clone, elsewhere, office):
    shutil.rmtree(office)
    with pytest.raises(
        LockNotMet, match=r"minutes, slides \(.*does not appear to be a git repository"
    ):
        restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    assert [path.name for path in clone.iterdir()] == ["skills.lock.json"]


LEADING = [
    ({"url": "ext::sh -c touch% /tmp/x"}, "must begin with https"),
    ({"url": "--upload-pack=touch"}, "must name a full address"),
    ({"url": "office/slides"}, "must name a full address"),
    ({"commit": "--output=x"}, "."),
    ({"commit": "0" * 40}, "."),
    ({"path": "../../etc"}, "is not a folder in it"),
    ({"path": "/etc"}, "is not a folder in it"),
    ({"path": "skills/slides"}, "has changed there"),
]


@pytest.mark.usefixtures("trusting")
def test_a_lock_of_a_strangers_leads_nowhere(clone, elsewhere):
    text = (clone / "skills.lock.json").read_text()
    for change, said in LEADING:
        lock = json.loads(text)
        lock["skills"]["minutes"]["origin"] |= change
        (clone / "skills.lock.json").write_text(json.dumps(lock))
        with pytest.raises(LockNotMet, match=rf"minutes \(.*{said}"):
            restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
        assert [path.name for path in clone.iterdir()] == ["skills.lock.json"]


@pytest.mark.usefixtures("trusting")
def test_the_cache_is_this_users_alone(project, clone, elsewhere):
    restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    cache = os.path.join(os.environ["HOME"], ".cache", "skill-registry", "origins")
    (kept,) = os.listdir(cache)
    assert os.stat(os.path.join(cache, kept)).st_mode & 0o777 == 0o700


def test_skills_of_ones_own_without_an_origin_are_told_to_be_missing(registry, tmp_path, elsewhere):
    write_skill(tmp_path / "mine" / "own")
    registry.sync(str(tmp_path / "mine"))
    folder = tmp_path / "to"
    folder.mkdir()
    registry.pull([registry.resolve("own")], str(folder))
    shutil.rmtree(folder / "own")
    with pytest.raises(LockNotMet, match="own"):
        restore_from_lock(elsewhere.core, InstallTarget.folder(str(folder)))


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("is_fetched", [True, False])
def test_what_a_pull_replaced_comes_back_from_what_was_fetched_of_the_locks_commit(
    project, clone, elsewhere, office, is_fetched
):
    if is_fetched:
        restore_from_lock(elsewhere.core, InstallTarget.folder(str(clone)))
    else:
        for name in ("minutes", "slides"):
            shutil.copytree(project / name, clone / name)
    before = contents(clone)
    with (office / "skills" / "slides" / "SKILL.md").open("a") as document:
        document.write("Newer.\n")
    git(office, "commit", "-qam", "newer")
    elsewhere.sync(f"file://{office}")
    elsewhere.update_pulled(str(clone))
    after = contents(clone)
    assert after != before
    found = last_change(elsewhere.core)
    if is_fetched:
        found.carry_out()
        assert contents(clone) == before
    else:
        with pytest.raises(ChangeNotUndone, match="files that slides had before are not kept"):
            found.carry_out()
        assert contents(clone) == after
