"""Skills are pulled from an address in one go, and a lock is enough to have them elsewhere."""

import json
import os
import shutil

import pytest

from registry.api import SkillRegistry
from registry.errors import LockNotMet, SeveralSkills, SkillHeld, SkillNotFound
from registry.exchange.pull import How, put_back
from registry.exchange.targets import Target
from registry.settings import Settings
from tests.conftest import write_skill
from tests.home import git, make_upstream


@pytest.fixture
def office(tmp_path):
    """A repository with two skills, and a third that is held back."""
    make_upstream(tmp_path)
    return tmp_path / "upstream" / "office"


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
    with pytest.raises(SeveralSkills, match="holds 2 skills: minutes, slides"):
        registry.skills_at(address)
    assert [one.ref for one in registry.skills_at(address, skills=["Slides"])] == ["slides"]
    assert [one.name for one in registry.skills_at(address, every=True)] == ["minutes", "slides"]
    assert [source.name for source in registry.sources()] == ["office"]


def test_what_is_not_offered_is_told_with_the_nearest_and_why(registry, office):
    with pytest.raises(SkillHeld, match="'mailer' comes from elsewhere"):
        registry.skills_at(f"file://{office}", skills=["mailer"])
    with pytest.raises(SkillNotFound, match="minutes"):
        registry.skills_at(f"file://{office}", skills=["minute"])
    registry.trust_source("office")
    assert registry.skills_at(f"file://{office}", skills=["mailer"])[0].name == "mailer"


def test_a_ref_with_a_slash_is_no_address(registry, root, skill):
    skill("deep/one")
    registry.sync(str(root), name="mine")
    assert not registry.is_address("mine/one")
    assert not registry.is_address("mine/deep/one")
    assert not registry.is_address("one")
    assert registry.is_address("owner/repo")


def test_a_lock_gives_the_same_bytes_on_another_machine(project, clone, elsewhere):
    done = put_back(elsewhere.core, Target.folder(str(clone)))
    assert [(one.ref, one.state) for one in done] == [("minutes", "added"), ("slides", "added")]
    assert contents(clone) == contents(project)
    assert elsewhere.sources() == []


def test_a_lock_gives_what_it_says_and_not_what_there_is_by_now(project, clone, elsewhere, office):
    with (office / "skills" / "slides" / "SKILL.md").open("a") as document:
        document.write("Newer.\n")
    git(office, "commit", "-qam", "newer")
    put_back(elsewhere.core, Target.folder(str(clone)))
    assert contents(clone) == contents(project)


def test_what_was_fetched_once_is_had_without_the_remote(project, clone, elsewhere, office):
    put_back(elsewhere.core, Target.folder(str(clone)))
    shutil.rmtree(office)
    for name in ("minutes", "slides"):
        shutil.rmtree(clone / name)
    put_back(elsewhere.core, Target.folder(str(clone)))
    assert contents(clone) == contents(project)
    shutil.rmtree(clone / "slides")
    put_back(elsewhere.core, Target.folder(str(clone)), How(offline=True))
    assert contents(clone) == contents(project)


def test_offline_nothing_is_asked_of_the_remote(clone, elsewhere):
    with pytest.raises(LockNotMet, match="nothing of that version was fetched here before"):
        put_back(elsewhere.core, Target.folder(str(clone)), How(offline=True))
    assert [path.name for path in clone.iterdir()] == ["skills.lock.json"]


def test_a_remote_that_is_gone_is_a_clear_refusal_and_nothing_is_written(clone, elsewhere, office):
    shutil.rmtree(office)
    with pytest.raises(LockNotMet, match=r"minutes \(.*does not appear to be a git repository"):
        put_back(elsewhere.core, Target.folder(str(clone)))
    assert [path.name for path in clone.iterdir()] == ["skills.lock.json"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"url": "ext::sh -c touch% /tmp/x"}, "has to begin with https"),
        ({"url": "--upload-pack=touch"}, "it is none"),
        ({"path": "../../etc"}, "is no folder in it"),
        ({"path": "/etc"}, "is no folder in it"),
        ({"path": "skills/slides"}, "is not the same there"),
        ({"commit": "--output=x"}, "."),
        ({"commit": "0" * 40}, "."),
    ],
)
def test_a_lock_of_a_strangers_leads_nowhere(clone, elsewhere, change, said):
    lock = json.loads((clone / "skills.lock.json").read_text())
    lock["skills"]["minutes"]["origin"] |= change
    (clone / "skills.lock.json").write_text(json.dumps(lock))
    with pytest.raises(LockNotMet, match=rf"minutes \(.*{said}"):
        put_back(elsewhere.core, Target.folder(str(clone)))
    assert [path.name for path in clone.iterdir()] == ["skills.lock.json"]


def test_the_cache_is_this_users_alone(project, clone, elsewhere):
    put_back(elsewhere.core, Target.folder(str(clone)))
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
        put_back(elsewhere.core, Target.folder(str(folder)))
