"""What a sync says of itself, and what it knows of each skill, is exact."""

import os
import shutil

import pytest

from registry.db.read.listing import Filters
from registry.sync import apply, reading, run
from tests.conftest import OLD, write_skill
from tests.refusing import refuse


@pytest.fixture
def library(registry, root, skill):
    """Four skills, one of them invalid, an empty folder and a dead link."""
    for name in ("alpha", "beta", "gamma"):
        skill(name)
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff")
    (root / "empty").mkdir()
    (root / "dead").symlink_to("nowhere")
    registry.sync(str(root), name="mine")
    return registry


def source(report):
    (one,) = report.sources
    return one.outcome, one.skills, one.kept, [folder for folder, _ in one.notices]


@pytest.mark.usefixtures("settled")
@pytest.mark.both
def test_what_stays_what_changes_and_what_is_invalid_is_counted(library, root, skill):
    report = library.sync()
    assert (report.unchanged, report.invalid, source(report)) == (4, 1, ("ok", 4, 0, ["dead"]))
    skill("delta")
    write_skill(root / "alpha", description="Changed.", age=OLD + 5)
    (root / "beta" / "SKILL.md").write_bytes(b"\xff")
    for dry_run in (True, False):
        report = library.sync(dry_run=dry_run)
        assert (report.unchanged, report.dry_run, report.complete) == (2, dry_run, True)
        assert sorted(report.updated) == ["alpha", "beta"]
        assert source(report) == ("ok", 5, 0, ["dead"])
        assert report.invalid == (1 if dry_run else 2)


def test_an_invalid_skill_that_is_only_touched_stays_invalid(library, root):
    os.utime(root / "broken" / "SKILL.md", (OLD + 9, OLD + 9))
    report = library.sync()
    assert (report.unchanged, report.invalid) == (4, 1)


@pytest.mark.usefixtures("settled")
def test_a_sync_that_finds_nothing_new_is_still_the_last_sync(library, monkeypatch):
    for module in (run, apply):
        monkeypatch.setattr(module, "utc_now", lambda: "2030-01-02T03:04:05Z")
    library.sync()
    (stored,) = library.sources()
    assert (stored.last_sync_at, stored.last_result) == ("2030-01-02T03:04:05Z", "ok")


@pytest.mark.both
def test_a_source_that_comes_back_is_well_again(library, root):
    root.rename(root.with_name("away"))
    report = library.sync()
    assert source(report) == ("missing", 4, 4, [])
    assert report.sources[0].message == "the folder does not exist"
    assert library.sources()[0].last_result == "missing"
    root.with_name("away").rename(root)
    assert source(library.sync()) == ("ok", 4, 0, ["dead"])
    assert library.sources()[0].last_result == "ok"


def test_a_folder_that_can_not_be_listed_keeps_its_skills_even_if_pruning_is_allowed(
    library, root, monkeypatch
):
    refused = refuse(monkeypatch, root, PermissionError(13, "Permission denied"), "scandir")
    report = library.sync(allow_prune=True)
    assert refused
    assert source(report) == ("unreadable", 4, 4, [])
    assert report.sources[0].message == "the folder can't be read: Permission denied"


@pytest.mark.parametrize("closed", ["writing", "."])
def test_skills_below_a_folder_that_can_not_be_listed_stay_and_others_go(
    registry, root, skill, monkeypatch, closed
):
    for name in ("writing/haiku", "writing-tools", "alpha"):
        skill(name)
    (root / "writing" / "empty").mkdir()
    registry.sync(str(root), name="mine")
    shutil.rmtree(root / "writing-tools")
    # The root is looked at once more before the walk begins.
    refused = refuse(
        monkeypatch,
        root / closed,
        PermissionError(13, "Permission denied"),
        "scandir",
        when=lambda number: closed != "." or number == 2,
    )
    report = registry.sync()
    assert report.removed == (() if closed == "." else ("writing-tools",))
    assert refused == ["scandir"]
    assert report.unchanged == (3 if closed == "." else 2)
    assert len(registry.list()) == report.unchanged


class TestTheBrake:
    def make(self, registry, root, skill, number):
        for one in range(number):
            skill(f"skill-{one:02}", body=f"number {one}")
        registry.sync(str(root), name="mine")

    def lose(self, root, number):
        for one in range(number):
            shutil.rmtree(root / f"skill-{one:02}")

    @pytest.mark.parametrize(("had", "lost"), [(12, 10), (22, 11)])
    def test_ten_skills_or_half_of_them_may_go_at_once(self, registry, root, skill, had, lost):
        self.make(registry, root, skill, had)
        self.lose(root, lost)
        report = registry.sync()
        assert (report.complete, len(report.removed)) == (True, lost)

    def test_one_more_is_held_and_said_and_can_be_allowed(self, registry, root, skill):
        self.make(registry, root, skill, 21)
        self.lose(root, 11)
        write_skill(root / "skill-20", description="Changed.", age=OLD + 5)
        report = registry.sync()
        assert source(report) == ("shrunk", 21, 11, [])
        assert report.sources[0].message == "11 of 21 skills are gone from the folder"
        assert (report.updated, report.unchanged) == (("skill-20",), 9)
        report = registry.sync(allow_prune=True)
        assert (source(report), len(report.removed)) == (("ok", 10, 0, []), 11)

    def test_what_moved_away_is_not_lost(self, registry, root, skill, tmp_path):
        self.make(registry, root, skill, 12)
        other = tmp_path / "other"
        other.mkdir()
        registry.sync(str(other), name="other")
        for folder in root.iterdir():
            folder.rename(other / folder.name)
        report = registry.sync()
        assert [one.outcome for one in report.sources] == ["ok", "ok"]
        assert (len(report.moved), report.removed) == (12, ())

    def test_a_source_that_never_held_a_skill_may_be_empty(self, registry, root):
        (root / "folder").mkdir()
        assert registry.sync(str(root)).complete
        (root / "folder").rmdir()
        report = registry.sync()
        assert (source(report), report.sources[0].message) == (("ok", 0, 0, []), None)


def test_a_dry_run_tells_moves_apart_from_what_is_new_and_gone(library, root, skill):
    (root / "writing").mkdir()
    (root / "alpha").rename(root / "writing" / "alpha")
    shutil.rmtree(root / "beta")
    write_skill(root / "delta", body="Longer than the others are.\n")
    report = library.sync(dry_run=True)
    assert (report.added, report.removed) == (("mine/delta",), ("beta",))
    assert [(one.ref, one.before, one.after) for one in report.moved] == [
        ("mine/writing/alpha", "alpha", "writing/alpha")
    ]


def test_a_folder_that_became_empty_and_one_that_got_a_skill_change_places(library, root):
    (root / "alpha" / "SKILL.md").unlink()
    write_skill(root / "empty", body="Not empty any more.\n")
    report = library.sync()
    assert (len(report.updated), report.added, report.removed) == (2, (), ())
    assert {one.name: one.status for one in library.list(Filters(all=True))} == {
        "beta": "ok",
        "broken": "invalid",
        "empty": "ok",
        "gamma": "ok",
    }
    assert source(library.sync()) == ("ok", 4, 0, ["dead"])


@pytest.mark.parametrize(
    ("folder", "category"),
    [
        ("haiku", None),
        ("writing/haiku", "writing"),
        ("art/writing/haiku", "art/writing"),
        ("my-skills/haiku", "my-skills"),
        # folders that only hold the skills of a repository, an agent or a plugin
        ("skills/haiku", None),
        ("skills/writing/haiku", "writing"),
        ("writing/skills/haiku", "writing"),
        (".claude/skills/haiku", None),
        (".agents/skills/writing/haiku", "writing"),
        ("plugins/poems/skills/haiku", None),
        ("art/plugins/poems/skills/haiku", "art"),
    ],
)
def test_the_folders_above_a_skill_are_its_category_unless_it_names_one(
    registry, root, skill, folder, category
):
    skill(folder)
    skill("named/one", extra="category: mine\n")
    registry.sync(str(root))
    assert registry.get("haiku").category == category
    assert registry.get("one").category == "mine"


@pytest.mark.parametrize("age", [None, OLD], ids=["just written", "older"])
def test_skills_that_newer_rules_read_again_are_unchanged(registry, root, skill, monkeypatch, age):
    skill("skills/haiku", age=age)
    registry.sync(str(root))
    monkeypatch.setattr(reading, "RULES_VERSION", "newer")
    monkeypatch.setattr(reading, "_category_of", lambda folder: f"in {folder}")
    report = registry.sync()
    assert (report.updated, report.unchanged) == ((), 1)
    assert registry.get("haiku").category == "in skills/haiku"
    skill("skills/haiku", body="Other words.\n", age=None)
    monkeypatch.setattr(reading, "RULES_VERSION", "newest")
    assert registry.sync().updated == ("haiku",)


@pytest.mark.both
def test_findings_say_in_which_file_and_line_they_are(registry, root):
    (root / "alpha").mkdir()
    (root / "alpha" / "SKILL.md").write_text("---\nname: alpha\ndescription: [\n---\n\nText.\n")
    registry.sync(str(root))
    found = registry.get("alpha").diagnostics
    assert {one.path for one in found if one.line is not None} == {"SKILL.md"}


def test_times_are_those_of_the_oldest_and_the_newest_file(registry, root, skill):
    folder = skill("alpha")
    for number, name in ((100, "young"), (-100, "old")):
        (folder / name).write_text("")
        os.utime(folder / name, (OLD + number, OLD + number))
    registry.sync(str(root))
    found = registry.get("alpha")
    assert (found.created_at, found.updated_at) == ("2023-11-14T22:11:40Z", "2023-11-14T22:15:00Z")


@pytest.mark.usefixtures("settled")
def test_notices_are_told_by_folder_and_are_no_change_by_themselves(registry, root, skill):
    skill("alpha")
    for name in ("zulu", "bravo", "mike"):
        (root / name).symlink_to(name if name == "bravo" else "nowhere")
    for _ in range(2):
        report = registry.sync(str(root))
        assert source(report) == ("ok", 1, 0, ["bravo", "mike", "zulu"])
