import os
import shutil

import pytest

from registry.db.read.listing import Filters
from registry.disk.locks import FileLock
from registry.errors import SourceInvalid, SourceNotFound, SyncRunning, UsageProblem
from tests.conftest import OLD, edit_without_a_trace, write_skill

EVERYTHING = Filters(all=True)


@pytest.fixture(autouse=True, params=["young", "settled"])
def _age(request):
    """Everything holds for files that were just written and for those that were not."""
    if request.param == "settled":
        request.getfixturevalue("settled")


def names(registry, filters=None):
    return [skill.name for skill in registry.list(filters)]


def counts(report):
    return (
        list(report.added),
        list(report.updated),
        [move.ref for move in report.moved],
        list(report.removed),
        report.unchanged,
    )


@pytest.fixture
def synced(registry, root, skill):
    for name in ("alpha", "beta", "gamma"):
        skill(name)
    registry.sync(str(root))
    return registry


def test_the_first_sync_registers_the_folder_and_adds_its_skills(registry, root, skill):
    skill("alpha")
    skill("writing/haiku")
    report = registry.sync(str(root))
    assert counts(report) == (["alpha", "haiku"], [], [], [], 0)
    assert [(s.name, s.scope, s.path, s.skills) for s in registry.sources()] == [
        (registry.sources()[0].name, "personal", os.path.realpath(root), 2)
    ]


def test_a_second_sync_changes_nothing(synced):
    assert counts(synced.sync()) == ([], [], [], [], 3)


def test_a_second_sync_changes_nothing_of_a_folder_whose_name_is_no_utf8(synced, root):
    folder = os.fsencode(root) + b"/alph\xff"
    os.mkdir(folder)
    with open(folder + b"/SKILL.md", "w") as file:
        file.write("---\nname: alph\ndescription: A test.\n---\nText.\n")
    assert counts(synced.sync()) == (["alph\\xff"], [], [], [], 3)
    assert counts(synced.sync()) == ([], [], [], [], 4)
    assert counts(synced.sync(verify=True)) == ([], [], [], [], 4)


def test_a_name_that_looks_like_one_that_is_no_utf8_is_another(synced, root):
    for name in (b"delta\xff", b"delta\\xff"):
        folder = os.fsencode(root) + b"/" + name
        os.mkdir(folder)
        with open(folder + b"/SKILL.md", "w") as file:
            file.write("---\nname: delta\ndescription: A test.\n---\nText.\n")
    assert len(synced.sync().added) == 2
    assert counts(synced.sync()) == ([], [], [], [], 5)


def test_a_file_whose_name_is_no_utf8_is_read_and_told_to_be_renamed(synced, root):
    with open(os.fsencode(root / "alpha") + b"/caf\xe9", "w") as file:
        file.write("Text.\n")
    assert synced.sync().invalid == 1
    (finding,) = synced.get("alpha").diagnostics
    assert (finding.code, finding.path, finding.fix) == (
        "path-not-utf8",
        "caf\\xe9",
        "rename the file",
    )


@pytest.mark.both
def test_one_edit_one_addition_one_renaming_and_one_deletion_are_reported_exactly(
    synced, root, skill
):
    skill("delta")
    synced.sync()
    before = synced.get("beta")
    write_skill(root / "alpha", description="Something else.", age=OLD + 5)
    skill("epsilon")
    (root / "beta").rename(root / "moved")
    shutil.rmtree(root / "gamma")
    report = synced.sync()
    assert counts(report) == (["epsilon"], ["alpha"], ["beta"], ["gamma"], 1)
    assert (report.moved[0].before, report.moved[0].after) == ("beta", "moved")
    after = synced.get("beta")
    assert (after.created_at, after.folder) == (before.created_at, "moved")
    assert counts(synced.sync()) == ([], [], [], [], 4)


def test_a_touched_file_is_no_change(synced, root):
    os.utime(root / "alpha" / "SKILL.md", (OLD + 9, OLD + 9))
    assert counts(synced.sync()) == ([], [], [], [], 3)


def test_an_edit_that_keeps_size_and_time_is_seen(registry, root, skill):
    folder = skill("alpha", description="one", age=None)
    registry.sync(str(root))
    edit_without_a_trace(folder / "SKILL.md", b"one", b"two")
    assert registry.sync().updated == ("alpha",)
    assert registry.list()[0].description == "two"


@pytest.mark.both
def test_verify_reads_every_file_and_finds_nothing_new(synced):
    assert counts(synced.sync(verify=True)) == ([], [], [], [], 3)


@pytest.mark.both
def test_a_change_of_a_supporting_file_is_an_update(synced, root):
    (root / "alpha" / "notes.md").write_text("x")
    assert synced.sync().updated == ("alpha",)
    (root / "alpha" / "notes.md").chmod(0o755)
    assert synced.sync().updated == ("alpha",)


def test_created_at_stays_when_the_front_matter_changes_its_mind(registry, root, skill):
    skill("alpha", extra="created_at: 2024-05-06\n")
    registry.sync(str(root))
    assert registry.list()[0].created_at == "2024-05-06T00:00:00Z"
    skill("alpha", extra="created_at: 2025-01-01\n", age=OLD + 5)
    registry.sync()
    assert registry.list()[0].created_at == "2024-05-06T00:00:00Z"


def test_without_a_date_a_skill_is_as_old_as_its_oldest_file(registry, root, skill):
    skill("alpha")
    registry.sync(str(root))
    assert registry.list()[0].created_at == "2023-11-14T22:13:20Z"


@pytest.mark.both
def test_a_skill_moved_to_another_source_keeps_its_identity(registry, tmp_path):
    write_skill(tmp_path / "one" / "alpha", extra="created_at: 2020-01-01\n")
    write_skill(tmp_path / "one" / "beta")
    (tmp_path / "two").mkdir()
    registry.sync(str(tmp_path / "one"), str(tmp_path / "two"))
    (tmp_path / "one" / "alpha").rename(tmp_path / "two" / "alpha")
    report = registry.sync()
    assert [move.ref for move in report.moved] == ["alpha"]
    assert (report.added, report.removed) == ((), ())


class TestTheBrake:
    def test_a_missing_root_keeps_its_skills_and_says_so(self, synced, root):
        root.rename(root.with_name("elsewhere"))
        report = synced.sync()
        assert not report.complete
        assert (report.sources[0].outcome, report.sources[0].kept) == ("missing", 3)
        assert len(synced.list()) == 3

    def test_an_empty_root_keeps_its_skills(self, synced, root):
        for folder in list(root.iterdir()):
            shutil.rmtree(folder)
        assert synced.sync().sources[0].outcome == "empty"
        assert len(synced.list()) == 3

    def test_pruning_must_be_allowed(self, synced, root):
        for folder in list(root.iterdir()):
            shutil.rmtree(folder)
        report = synced.sync(allow_prune=True)
        assert (len(report.removed), report.complete, len(synced.list())) == (3, True, 0)

    def test_losing_more_than_half_and_more_than_ten_holds_the_rows(self, registry, root, skill):
        for number in range(20):
            skill(f"skill-{number:02}")
        registry.sync(str(root))
        for number in range(11):
            shutil.rmtree(root / f"skill-{number:02}")
        report = registry.sync()
        assert (report.sources[0].outcome, report.removed) == ("shrunk", ())
        assert len(registry.list()) == 20
        skill("skill-00", age=OLD + 3)
        report = registry.sync()
        assert len(report.removed) == 10
        assert len(registry.list()) == 10

    def test_moving_everything_loses_nothing(self, registry, root, skill):
        for number in range(20):
            skill(f"skill-{number:02}", body=f"number {number}")
        registry.sync(str(root))
        (root / "category").mkdir()
        for number in range(20):
            (root / f"skill-{number:02}").rename(root / "category" / f"skill-{number:02}")
        report = registry.sync()
        assert (len(report.moved), report.added, report.removed) == (20, (), ())


class TestDryRun:
    def test_a_plan_is_told_and_nothing_is_written(self, synced, root, skill):
        skill("delta")
        shutil.rmtree(root / "beta")
        report = synced.sync(dry_run=True)
        source = synced.sources()[0].name
        assert counts(report) == ([f"{source}/delta"], [], [], ["beta"], 2)
        assert names(synced) == ["alpha", "beta", "gamma"]

    @pytest.mark.file
    def test_no_database_is_made_for_a_folder_that_is_only_looked_at(
        self, registry, root, skill, database
    ):
        skill("alpha")
        assert len(registry.sync(str(root), dry_run=True).added) == 1
        assert not database.exists()


class TestTargets:
    def test_an_unknown_name_is_no_source(self, registry):
        with pytest.raises(SourceNotFound):
            registry.sync("nothing")

    def test_a_path_that_is_no_folder_is_refused(self, registry, tmp_path):
        with pytest.raises(SourceInvalid):
            registry.sync(str(tmp_path / "nowhere"))
        (tmp_path / "file").write_text("")
        with pytest.raises(SourceInvalid):
            registry.sync(str(tmp_path / "file"))

    def test_a_source_can_be_named_and_given_a_scope(self, registry, root, skill):
        skill("alpha")
        registry.sync(str(root), name="mine", scope="team")
        assert [(s.name, s.scope) for s in registry.sources()] == [("mine", "team")]
        assert counts(registry.sync("mine"))[4] == 1

    def test_a_skill_folder_inside_a_source_means_that_source(self, synced, root):
        synced.sync(str(root / "alpha"))
        assert len(synced.sources()) == 1

    def test_a_name_with_a_slash_is_refused(self, registry, root):
        with pytest.raises(UsageProblem):
            registry.sync(str(root), name="a/b")


@pytest.mark.file
def test_a_second_sync_at_the_same_time_says_who_is_running(synced):
    with FileLock(f"{synced.path}.sync.lock") as lock:
        assert lock.acquire(0)
        lock.sign("sync")
        with pytest.raises(SyncRunning) as caught:
            synced.sync()
        assert str(os.getpid()) in str(caught.value)


@pytest.mark.file
def test_the_source_folder_is_never_written_to(synced, root):
    before = sorted(str(path) for path in root.rglob("*"))
    synced.sync(verify=True)
    assert sorted(str(path) for path in root.rglob("*")) == before
    assert sorted(path.name for path in root.parent.iterdir()) == ["home", "skills", "state"]


def test_nothing_is_half_seen_when_a_sync_is_interrupted(synced, root, skill):
    for number in range(300):
        skill(f"more-{number}")

    def interrupt(doing, done, total):
        if doing == "importing" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synced.sync(progress=interrupt)
    assert names(synced) == ["alpha", "beta", "gamma"]
    assert synced.check_database() == []
    assert len(synced.sync().added) == 300
    assert synced.check_database() == []


@pytest.mark.both
def test_removing_a_source_forgets_its_skills_and_leaves_the_disk_alone(synced, root):
    synced.remove_source(synced.sources()[0].name)
    assert (len(synced.list()), len(synced.sources())) == (0, 0)
    assert (root / "alpha" / "SKILL.md").exists()
    assert synced.check_database() == []
