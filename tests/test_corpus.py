"""Many real skills, malformed ones among them: nothing is lost, nothing is repeated."""

import os
import shutil

import pytest

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.model import DOCUMENT_NAMES
from registry.settings import Limits, Settings
from registry.sync import reading

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def real(corpus, tmp_path_factory, new_database):
    """A copy that may be edited, in a registry that looks deep enough for all of it."""
    root = tmp_path_factory.mktemp("real") / "skills"
    shutil.copytree(corpus, root, symlinks=True)
    settings = Settings(limits=Limits(depth=12))
    with SkillRegistry.open(new_database(), settings=settings) as registry:
        yield registry, root, registry.sync(str(root))


@pytest.fixture(autouse=True)
def _adopted(request, real):
    """Each test has a home of its own, which is to remember the source of a server."""
    if request.config.getoption("--backend") == "postgresql":
        registry, *_ = real
        registry.adopt_source(registry.sources()[0].name)


def folders_with_a_document(root):
    found = set()
    for place, _, files in os.walk(root):
        links = [name for name in os.listdir(place) if os.path.islink(os.path.join(place, name))]
        if any(name in DOCUMENT_NAMES for name in [*files, *links]):
            found.add(os.path.relpath(place, root))
    return found


def test_every_document_is_stored_or_explained(real):
    registry, root, report = real
    stored = {skill.folder for skill in registry.list(Filters(all=True))}
    noticed = {folder for folder, _ in report.sources[0].notices}
    expected = folders_with_a_document(root)
    assert len(expected) > 200
    assert expected - stored - noticed == set()
    assert len(report.added) == len(stored)
    assert registry.check_database() == []


def test_what_a_person_can_read_off_a_file_is_usable(real):
    registry, *_ = real
    everything = registry.list(Filters(all=True))
    unusable = [skill for skill in everything if skill.status == "invalid"]
    share = 0.01 if len(everything) > 2500 else 0.02  # a part may have more than its share
    assert len(unusable) <= len(everything) * share
    for skill in unusable:
        assert any(reason.severity == "error" for reason in registry.why(skill.path)[0].reasons)


def test_every_listed_skill_is_found_by_its_ref(real):
    registry, *_ = real
    everything = registry.list(Filters(all=True))
    assert len({skill.ref for skill in everything}) == len(everything)
    for skill in everything[::7]:
        assert registry.get(skill.ref).path == skill.path


@pytest.mark.file
def test_a_check_says_the_same_whether_a_sync_has_looked_at_a_skill_or_not(
    real, tmp_path, monkeypatch
):
    registry, root, _ = real
    looked, real_look = [], reading.check_security

    def look(document, **others):
        looked.append(document.name)
        return real_look(document, **others)

    monkeypatch.setattr(reading, "check_security", look)
    with SkillRegistry.open(tmp_path / "none.db", settings=registry.core.settings) as other:
        anew = other.check([str(root)])
    every = len(looked)
    assert registry.check() == anew
    assert len(looked) - every < every / 100


def test_a_second_sync_changes_nothing_and_a_third_reports_just_what_was_done(real):
    registry, root, first = real
    second = registry.sync()
    assert (second.added, second.updated, second.moved, second.removed) == ((), (), (), ())
    assert (second.unchanged, second.invalid) == (len(first.added), first.invalid)

    alone = [s for s in registry.list() if "/" in s.folder and s.tree_hash]
    hashes = [skill.tree_hash for skill in alone]
    edited, renamed, deleted = [s for s in alone if hashes.count(s.tree_hash) == 1][:30:10]
    with open(os.path.join(edited.path, os.listdir(edited.path)[0]), "a") as file:
        file.write("\nOne more line.\n")
    os.rename(renamed.path, renamed.path + "-renamed")
    shutil.rmtree(deleted.path)
    new = root / "brand-new"
    new.mkdir()
    (new / "SKILL.md").write_text("---\nname: brand-new-here\ndescription: New.\n---\n")

    third = registry.sync()
    assert third.added == ("brand-new-here",)
    assert len(third.updated) == 1
    assert [move.after for move in third.moved] == [renamed.folder + "-renamed"]
    assert third.removed == (deleted.ref,)
    assert third.unchanged == len(first.added) - 3
    assert registry.check_database() == []
