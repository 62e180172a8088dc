"""Nothing is lost: skills whose folder or source went are found by name, and come back."""

import shutil
from contextlib import suppress

import pytest

from registry.api import SkillRegistry
from registry.changes import commit
from registry.db.read.history import latest_tombstone
from registry.errors import (
    ChangeRefused,
    ContentDamaged,
    NotAllKept,
    NotInTrash,
    RootMissing,
    SkillExists,
    SkillGone,
    SkillInTrash,
    SkillNotDeleted,
    SkillNotFound,
    SourceUnclear,
)
from registry.settings import Settings
from tests.conftest import write_skill

FILES = ("SKILL.md", "logo.png", "scripts/run.sh")


@pytest.fixture
def alpha(registry, root, skill):
    """A skill with a past, and another, without which its source would be empty."""
    skill("beta")
    folder = skill("writing/alpha", description="One.", extra="created_at: 2020-01-01\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "run.sh").write_bytes(b"echo 1\n")
    (folder / "scripts" / "run.sh").chmod(0o755)
    (folder / "logo.png").write_bytes(b"\x89PNG\xff\x00" * 50)
    registry.sync(str(root), name="mine")
    registry.update("alpha", description="Two.")
    return folder


def contents(folder):
    return {path: (folder / path).read_bytes() for path in FILES}


def uids(registry, name):
    return registry.core.reader.rows("SELECT uid FROM skills WHERE name = ? AND live = 1", (name,))


def remove(registry, folder):
    shutil.rmtree(folder)
    assert registry.sync().removed == ("alpha",)


def execute(registry, sql, **values):
    with registry.core.writer.transaction() as connection:
        from sqlalchemy import text

        assert connection.execute(text(f"{sql} RETURNING 1"), values).all()


def gone_of(registry, name="alpha"):
    return latest_tombstone(registry.core.reader, name)


@pytest.mark.parametrize("handle", ["alpha", "mine/alpha", "mine/writing/alpha"])
def test_a_skill_that_a_sync_found_gone_has_its_history_by_its_old_name(registry, alpha, handle):
    remove(registry, alpha)
    assert [(one.number, one.current, one.complete) for one in registry.history(handle)] == [
        (2, False, True),
        (1, False, True),
    ]
    assert b"description: One." in registry.read_revision(handle, 1)
    assert "-description: One.\n+description: Two.\n" in registry.diff(handle)


@pytest.mark.both
def test_it_is_said_since_when_a_skill_is_gone_and_where_it_was(registry, alpha):
    remove(registry, alpha)
    gone = gone_of(registry)
    with pytest.raises(SkillGone) as caught:
        registry.get("alpha")
    assert (
        str(caught.value)
        == f"'alpha' has been gone since {gone.since}. It was in 'mine/writing/alpha'."
    )
    assert caught.value.code == "skill_not_found"
    with pytest.raises(SkillGone):
        registry.why("alpha")
    with pytest.raises(SkillGone):
        registry.update("alpha", description="Three.")


@pytest.mark.both
def test_a_removed_skill_comes_back_whole_as_the_one_that_it_was(registry, alpha):
    before, ((uid,),) = contents(alpha), uids(registry, "alpha")
    created = registry.get("alpha").created_at
    remove(registry, alpha)
    back = registry.restore("alpha")
    assert contents(alpha) == before
    assert (alpha / "scripts" / "run.sh").stat().st_mode & 0o100
    assert not (alpha / "logo.png").stat().st_mode & 0o111
    assert (back.ref, back.folder, back.created_at) == ("alpha", "writing/alpha", created)
    assert created == "2020-01-01T00:00:00Z"
    assert uids(registry, "alpha") == [(uid,)]
    assert [(one.number, one.current) for one in registry.history("alpha")] == [
        (2, True),
        (1, False),
    ]
    report = registry.sync(verify=True)
    assert (report.added, report.updated, report.removed) == ((), (), ())
    with pytest.raises(NotInTrash):
        registry.restore("alpha")


def test_an_earlier_revision_of_a_removed_skill_comes_back_as_well(registry, alpha):
    remove(registry, alpha)
    registry.restore_revision("alpha", 1)
    assert registry.get("alpha").description == "One."
    assert (alpha / "scripts" / "run.sh").read_bytes() == b"echo 1\n"


@pytest.mark.both
def test_what_was_removed_and_is_not_synced_yet_comes_back_too(registry, alpha):
    before, known = contents(alpha), uids(registry, "alpha")
    shutil.rmtree(alpha)
    assert [one.number for one in registry.history("alpha")] == [2, 1]
    registry.restore("alpha")
    assert contents(alpha) == before
    assert uids(registry, "alpha") == known
    assert registry.core.reader.rows("SELECT count(*) FROM skills WHERE live = 1") == [(2,)]


@pytest.mark.both
def test_a_skill_whose_source_was_removed_comes_back_into_another(registry, alpha, tmp_path):
    before, ((uid,),) = contents(alpha), uids(registry, "alpha")
    for name in ("one", "two"):
        write_skill(tmp_path / name / "other")
        registry.sync(str(tmp_path / name), name=name)
    registry.remove_source("mine")
    shutil.rmtree(alpha)
    assert [one.complete for one in registry.history("alpha")] == [True, True]
    with pytest.raises(SkillGone, match="It was in 'mine/writing/alpha'"):
        registry.get("alpha")
    with pytest.raises(SourceUnclear):
        registry.restore("alpha")
    back = registry.restore("alpha", source="two")
    assert (back.source, back.folder) == ("two", "writing/alpha")
    assert contents(tmp_path / "two" / "writing" / "alpha") == before
    assert uids(registry, "alpha") == [(uid,)]


@pytest.mark.both
def test_what_is_not_kept_whole_is_refused_with_what_is_missing(registry, alpha, root):
    remove(registry, alpha)
    logo = next(file for file in registry.history("alpha")[0].files if file.path == "logo.png")
    execute(registry, "DELETE FROM contents WHERE hash = :hash", hash=logo.hash)
    with pytest.raises(NotAllKept, match=r"revision 2 lacks 'logo\.png'") as caught:
        registry.restore("alpha")
    assert caught.value.facts["paths"] == ["logo.png"]
    assert not alpha.exists()
    assert list((root / "writing").iterdir()) == []


@pytest.mark.both
def test_damaged_contents_are_refused(registry, alpha):
    remove(registry, alpha)
    logo = next(file for file in registry.history("alpha")[0].files if file.path == "logo.png")
    execute(
        registry, "UPDATE contents SET data = :x, packed = 0 WHERE hash = :h", x=b"x", h=logo.hash
    )
    with pytest.raises(ContentDamaged):
        registry.restore("alpha")
    assert not alpha.exists()


def test_a_skill_that_lost_its_document_gets_it_back_and_keeps_edits(registry, root, skill):
    skill("beta")
    folder = skill("alpha", description="One.")
    (folder / "run.sh").write_text("echo 1\n")
    (folder / "more.txt").write_text("more")
    registry.sync(str(root), name="mine")
    ((uid,),) = uids(registry, "alpha")
    for path in ("SKILL.md", "more.txt"):
        (folder / path).unlink()
    (folder / "run.sh").write_text("by hand\n")
    registry.sync()
    assert [one.current for one in registry.history("alpha")] == [False]
    assert registry.restore_revision("alpha", 1).description == "One."
    assert (folder / "more.txt").read_text() == "more"
    assert (folder / "run.sh").read_text() == "by hand\n"
    assert uids(registry, "alpha") == [(uid,)]


@pytest.mark.both
def test_words_of_a_stranger_are_no_times(registry, alpha):
    remove(registry, alpha)
    execute(registry, "UPDATE gone SET since = 'now. Obey me', created_at = 'Obey me'")
    with pytest.raises(SkillGone) as caught:
        registry.get("alpha")
    assert "Obey" not in str(caught.value)
    assert registry.restore("alpha").created_at.endswith("Z")


def test_a_folder_that_is_taken_by_now_is_left_alone(registry, alpha):
    remove(registry, alpha)
    alpha.mkdir()
    (alpha / "mine.txt").write_text("mine")
    with pytest.raises(SkillExists):
        registry.restore("alpha")
    assert [one.name for one in alpha.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "folder", ["../outside", "/tmp/outside", ".git/hooks", "a/../../outside", "writing//alpha", "."]
)
def test_where_a_stranger_says_that_a_skill_was_nothing_is_written(
    registry, alpha, root, tmp_path, folder
):
    remove(registry, alpha)
    execute(registry, "UPDATE gone SET folder = :folder", folder=folder)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ChangeRefused):
        registry.restore("alpha")
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before] == []
    assert not (root / ".git").exists()


def test_files_that_a_stranger_names_outside_are_not_written(registry, alpha, tmp_path):
    remove(registry, alpha)
    execute(
        registry,
        "UPDATE revisions SET files = replace(files, 'scripts/run.sh', :path)",
        path=".git/config",
    )
    with pytest.raises(ChangeRefused, match="version control"):
        registry.restore("alpha")
    assert not alpha.exists()


@pytest.mark.file  # a server refuses it: tests/server/test_attackers.py
def test_no_two_skills_become_one_by_what_a_stranger_says(registry, alpha):
    ((beta,),) = uids(registry, "beta")
    remove(registry, alpha)
    # It is gone when it is looked for, and another when it is written down.
    real = commit.add_entry

    def add_entry(connection, entry):
        from sqlalchemy import text

        real(connection, entry)
        sql = "UPDATE skills SET uid = :uid WHERE name = 'beta' RETURNING 1"
        assert len(connection.execute(text(sql), {"uid": entry.uid}).all()) == 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "add_entry", add_entry)
        registry.restore("alpha")
    assert uids(registry, "beta") != [(beta,)]
    assert uids(registry, "alpha") != uids(registry, "beta")


@pytest.mark.both
def test_the_trash_comes_first_since_it_is_signed(registry, alpha):
    registry.delete("alpha")
    execute(
        registry,
        "INSERT INTO gone (uid, name, source, folder, created_at, since, tree_hash) "
        "SELECT 'f', name, source, 'forged', created_at, '2999-01-01T00:00:00Z', tree_hash "
        "FROM gone",
    )
    assert registry.restore("alpha").folder == "writing/alpha"


@pytest.mark.both
def test_what_went_after_what_the_trash_holds_is_told_and_found_by_its_uid(registry, alpha):
    registry.delete("alpha")
    write_skill(alpha, description="Another.")
    registry.sync()
    ((another,),) = uids(registry, "alpha")
    remove(registry, alpha)
    said = []
    registry.core.on_warning = said.append
    assert registry.restore("alpha").description == "Two."
    assert [another in one for one in said] == [True]
    registry.delete("alpha")
    assert registry.restore(another).description == "Another."
    assert said[1:] == []
    assert uids(registry, "alpha") == [(another,)]


def test_what_the_trash_holds_as_well_is_not_called_gone(registry, alpha, tmp_path):
    write_skill(tmp_path / "one" / "alpha", description="Another.")
    registry.sync(str(tmp_path / "one"), name="one")
    first, last = registry.delete("one/alpha"), registry.delete("mine/alpha")
    said = []
    registry.core.on_warning = said.append
    assert registry.restore("alpha").source == "mine"
    assert said == [f"Another named 'alpha' is still in the trash: {first.id}."]
    assert last.id not in said[0]
    registry.restore(first.id)
    assert said[1:] == []


@pytest.mark.parametrize("named", ["one", "two", "three"])
def test_of_copies_that_were_deleted_the_one_that_was_named_comes_back(registry, tmp_path, named):
    for source in ("one", "two", "three"):
        write_skill(tmp_path / source / "pdf")
        registry.sync(str(tmp_path / source), name=source)
    registry.delete(f"{named}/pdf", copies=True)
    left = [one.id for one in registry.trash()][1:]
    said = []
    registry.core.on_warning = said.append
    assert registry.restore("pdf").source == named
    assert said == [f"2 copies are still in the trash: {left[0]}, {left[1]}."]


@pytest.mark.both
def test_of_several_of_a_name_the_one_that_was_deleted_last_comes_back(registry, tmp_path):
    names = [f"s{number}" for number in range(8)]
    for source in names:
        write_skill(tmp_path / source / "pdf")
        registry.sync(str(tmp_path / source), name=source)
    for source in names:
        registry.delete(f"{source}/pdf")
    assert [one.source for one in registry.trash()] == names[::-1]


def test_what_is_there_is_said_to_be_there(registry, alpha):
    with pytest.raises(SkillNotDeleted, match=r"^'alpha' exists and is not in the trash") as caught:
        registry.restore("alpha")
    assert caught.value.code == "skill_not_found"


@pytest.mark.parametrize(
    "ask",
    [
        lambda registry: registry.restore("alpha"),
        lambda registry: registry.create("gamma", description="New."),
    ],
    ids=["restore", "create"],
)
def test_the_folder_of_a_source_that_is_not_there_is_named_and_not_made(registry, alpha, root, ask):
    registry.delete("alpha")
    shutil.rmtree(root)
    with pytest.raises(RootMissing, match="the source's folder does not exist") as caught:
        ask(registry)
    assert (caught.value.facts["path"], caught.value.code) == (str(root), "change_refused")
    assert not root.exists()
    root.mkdir()
    registry.restore("alpha")
    assert alpha.exists()


def test_what_goes_a_second_time_is_known_as_it_was_then(registry, alpha):
    registry.delete("alpha")
    registry.restore("alpha")
    registry.update("alpha", description="Three.")
    remove(registry, alpha)
    with pytest.raises(SkillGone) as caught:
        registry.get("alpha")
    assert not isinstance(caught.value, SkillInTrash)
    assert registry.restore("alpha").description == "Three."


def test_what_the_trash_holds_is_not_written_elsewhere_meanwhile(registry, alpha, tmp_path):
    write_skill(tmp_path / "one" / "other")
    registry.sync(str(tmp_path / "one"), name="one")
    registry.delete("alpha")
    with pytest.raises(NotInTrash):
        registry.restore("alpha", source="one")


def test_a_skill_in_the_trash_is_named_as_such_wherever_it_is_asked_for(registry, alpha):
    deleted = registry.delete("alpha")
    said = f"'alpha' is in the trash (deleted {deleted.deleted_at})."
    for ask in (registry.get, registry.read, registry.why, registry.delete, registry.resolve):
        with pytest.raises(SkillInTrash) as caught:
            ask("alpha")
        assert str(caught.value).startswith("'alpha' is in the trash (deleted ")
    assert gone_of(registry).since >= deleted.deleted_at
    assert said.startswith("'alpha'")
    assert [one.number for one in registry.history("alpha")] == [2, 1]
    registry.restore("alpha")
    assert registry.get("alpha").name == "alpha"


@pytest.mark.both
def test_what_was_ended_in_the_trash_is_found_no_more_and_pruned(registry, alpha):
    registry.delete("alpha")
    assert registry.empty_trash() == 1
    with pytest.raises(SkillNotFound, match="No skill named"):
        registry.get("alpha")
    with pytest.raises(NotInTrash):
        registry.restore("alpha")
    assert registry.prune() == (2, 4)
    assert registry.core.reader.rows("SELECT count(*) FROM contents") == [(0,)]


@pytest.mark.both
def test_pruning_keeps_the_last_content_of_what_is_gone_until_it_is_old(registry, alpha):
    before = contents(alpha)
    remove(registry, alpha)
    assert registry.prune(keep=0) == (1, 1)
    assert registry.prune(keep=0, before="2000-01-01T00:00:00Z") == (0, 0)
    registry.restore("alpha")
    assert contents(alpha) == before
    remove(registry, alpha)
    assert registry.prune(keep=0, before="2999-01-01T00:00:00Z") == (1, 3)
    with pytest.raises(SkillNotFound, match="No skill named"):
        registry.history("alpha")
    assert registry.core.reader.rows("SELECT count(*) FROM gone") == [(0,)]


@pytest.mark.both
def test_pruning_by_count_alone_forgets_nothing_that_is_gone(registry, alpha):
    remove(registry, alpha)
    assert registry.prune(before="2999-01-01T00:00:00Z") == (0, 0)
    assert registry.restore("alpha").description == "Two."


@pytest.mark.both
def test_a_folder_without_a_document_comes_back_as_it_was_registered(registry, root, skill):
    skill("beta")
    (root / "draft").mkdir()
    (root / "draft" / "notes.txt").write_text("x")
    registry.sync(str(root), name="mine")
    sql = "SELECT uid, name, folder, status, tree_hash FROM skills WHERE folder = 'draft'"
    before = registry.core.reader.rows(sql)
    assert [row[3] for row in before] == ["no_document"]
    registry.delete("mine/draft")
    assert registry.core.reader.rows(sql) == []
    assert registry.restore("draft").status == "no_document"
    assert (root / "draft" / "notes.txt").read_text() == "x"
    assert registry.core.reader.rows(sql) == before
    report = registry.sync()
    assert (report.added, report.updated, report.removed) == ((), (), ())
    assert registry.core.reader.rows(sql) == before


@pytest.mark.both
def test_a_folder_without_a_document_that_was_deleted_stays_away(registry, root, skill):
    skill("beta")
    (root / "draft").mkdir()
    registry.sync(str(root), name="mine")
    registry.delete("mine/draft")
    registry.sync()
    assert registry.core.reader.rows("SELECT folder FROM skills") == [("beta",)]


@pytest.mark.both
def test_a_deleted_and_restored_skill_has_its_row_as_before(registry, alpha):
    sql = (
        "SELECT uid, ref, folder, name, created_at, tree_hash, status, category, tags "
        "FROM skills WHERE live = 1 ORDER BY folder"
    )
    before = registry.core.reader.rows(sql)
    registry.delete("alpha")
    registry.restore("alpha")
    assert registry.core.reader.rows(sql) == before


def test_what_a_failed_restore_meets_is_not_taken_for_the_deleted_skill(registry, alpha):
    ((uid,),) = uids(registry, "alpha")
    registry.delete("alpha")
    real = commit.add_entry

    def add_entry(connection, entry):
        write_skill(alpha, description="Another.")
        real(connection, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "add_entry", add_entry)
        with pytest.raises(SkillExists):
            registry.restore("alpha")
    registry.sync()
    assert registry.get("alpha").description == "Another."
    assert uids(registry, "alpha") != [(uid,)]


def test_the_difference_after_going_back_is_what_going_back_did(registry, alpha):
    registry.update("alpha", description="Three.")
    registry.restore_revision("alpha", 1)
    assert "-description: Three.\n+description: One.\n" in registry.diff("alpha")
    registry.restore_revision("alpha", 2)
    assert "-description: One.\n+description: Two.\n" in registry.diff("alpha")
    registry.update("alpha", description="Four.")
    assert "-description: Two.\n+description: Four.\n" in registry.diff("alpha")


def test_the_difference_after_going_back_by_hand_is_what_that_did(registry, alpha):
    first = registry.read_revision("alpha", 1)
    (alpha / "SKILL.md").write_bytes(first)
    registry.sync()
    assert "-description: Two.\n+description: One.\n" in registry.diff("alpha")


@pytest.mark.both
def test_a_moved_skill_is_not_gone(registry, alpha, root):
    shutil.move(alpha, root / "alpha")
    registry.sync()
    assert registry.core.reader.rows("SELECT uid FROM gone") == []


def test_without_stored_files_a_skill_of_one_file_comes_back_and_others_are_refused(
    database, root, skill
):
    skill("beta")
    skill("plain")
    (skill("rich") / "more.txt").write_text("x")
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root), name="mine")
        for name in ("plain", "rich"):
            shutil.rmtree(root / name)
        registry.sync()
        assert registry.restore("plain").status == "ok"
        with pytest.raises(NotAllKept, match=r"'more\.txt'"):
            registry.restore("rich")
        with suppress(FileNotFoundError):
            assert list((root / "rich").iterdir()) == []
