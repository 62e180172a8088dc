"""Copies of a skill that are changed together with it: all of them, or none."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from registry.catalog.copies import Fate, copies_of, fate
from registry.catalog.resolve import resolve
from registry.changes import commit
from registry.changes.commit import under_locks
from registry.changes.update import update_files
from registry.db.read.listing import Filters
from registry.disk.swap import Swap
from registry.errors import (
    ChangePending,
    ChangeRefused,
    DatabaseUnreachable,
    SkillChangedOnDisk,
    SkillMissing,
    UsageProblem,
)
from tests.changes.dying import Dead, die
from tests.conftest import write_skill

BEFORE, AFTER = "Does one thing well.", "Does another."


@pytest.fixture
def places(registry, tmp_path):
    """Three copies of ``pdf`` in two sources."""
    folders = [
        tmp_path / "one" / "pdf",
        tmp_path / "one" / "zoo" / "pdf",
        tmp_path / "two" / "pdf",
    ]
    for folder in folders:
        write_skill(folder)
    for name in ("one", "two"):
        registry.sync(str(tmp_path / name), name=name)
    assert len(registry.resolve("pdf").copies) == 2
    return folders


def others(registry):
    stored = resolve(registry.core.reader, "pdf")
    return stored, copies_of(registry.core.reader, stored)


def says(folder):
    text = (folder / "SKILL.md").read_text() if folder.exists() else None
    return next((one for one in (BEFORE, AFTER) if text and one in text), text)


def left_over(registry, tmp_path):
    """What a change left in the journal and in state folders, and what is not stored as it is."""
    journal = registry.core.reader.rows("SELECT id FROM journal")
    ops = list(tmp_path.glob(".*.skill-registry/ops/*"))
    report = registry.sync(verify=True, dry_run=True)
    return [*journal, *ops, *report.added, *report.updated, *report.removed, *report.moved]


def update(registry, **more):
    return registry.update("pdf", description=AFTER, copies=True, **more)


def delete(registry):
    return registry.delete("pdf", copies=True)


def test_a_change_leaves_copies_unless_it_is_told_otherwise(registry, places):
    stored, before = others(registry)
    registry.update("pdf", description=AFTER)
    assert [says(one) for one in places] == [AFTER, BEFORE, BEFORE]
    # By the refs that they have now: the first of them stands for both.
    assert fate(registry.core.reader, stored, before) == Fate(("one/zoo/pdf", "two/pdf"), ())


@pytest.mark.both
def test_all_copies_are_changed_at_once(registry, places, tmp_path, swap):
    created = {one.path: one.created_at for one in registry.list(Filters(all=True))}
    stored, before = others(registry)
    update(registry)
    assert [says(one) for one in places] == [AFTER] * 3
    assert fate(registry.core.reader, stored, before) == Fate((), ("one/zoo/pdf", "two/pdf"))
    assert len(registry.resolve("pdf").copies) == 2
    assert {one.path: one.created_at for one in registry.list(Filters(all=True))} == created
    assert left_over(registry, tmp_path) == []


@pytest.mark.both
def test_all_copies_are_deleted_at_once_and_come_back_one_by_one(registry, places, tmp_path):
    stored, before = others(registry)
    delete(registry)
    assert fate(registry.core.reader, stored, before) == Fate((), ("one/zoo/pdf", "two/pdf"))
    assert [says(one) for one in places] == [None] * 3
    assert left_over(registry, tmp_path) == []
    for trashed in registry.trash():
        registry.restore(trashed.id)
    assert [says(one) for one in places] == [BEFORE] * 3
    assert left_over(registry, tmp_path) == []


def test_a_revision_comes_back_in_all_copies(registry, places):
    update(registry)
    registry.restore_revision("pdf", 1, copies=True)
    assert [says(one) for one in places] == [BEFORE] * 3


@pytest.mark.parametrize("change", [update, delete])
def test_a_copy_that_was_edited_by_hand_stops_the_change_of_all(registry, places, tmp_path, change):
    write_skill(places[2], description="By hand.", age=None)
    with pytest.raises(SkillChangedOnDisk, match="two/pdf"):
        change(registry)
    assert [says(one) for one in places[:2]] == [BEFORE, BEFORE]
    assert "By hand." in says(places[2])
    registry.sync()
    assert left_over(registry, tmp_path) == []


@pytest.mark.parametrize("change", [update, delete])
def test_a_copy_that_was_removed_by_hand_is_said_to_be_missing(registry, places, tmp_path, change):
    shutil.rmtree(places[2])
    with pytest.raises(SkillMissing, match=r"'two/pdf' is no longer on disk"):
        change(registry)
    assert [says(one) for one in places] == [BEFORE, BEFORE, None]
    registry.sync()
    assert left_over(registry, tmp_path) == []


def test_more_copies_than_can_be_changed_together_are_refused(registry, places, monkeypatch):
    monkeypatch.setattr(commit, "MAX_TOGETHER", 2)
    with pytest.raises(ChangeRefused, match="these are more than 2 copies"):
        update(registry)
    assert [says(one) for one in places] == [BEFORE] * 3


@pytest.mark.parametrize("change", [update, delete])
def test_an_edit_in_the_last_moment_takes_all_back(
    registry, places, tmp_path, monkeypatch, change, swap
):
    real, edited = commit.publish, []

    def publish(entry, at, name):
        if (entry.root, entry.folder) == (str(places[0].parent), "pdf"):
            edited.append([says(one) for one in places[1:]])
            write_skill(places[0], description="By hand.", age=None)
        real(entry, at, name)

    monkeypatch.setattr(commit, "publish", publish)
    with pytest.raises(SkillChangedOnDisk):
        change(registry)
    assert edited == [[AFTER if change is update else None] * 2]  # these were published by then
    assert [says(one) for one in places[1:]] == [BEFORE, BEFORE]
    assert "By hand." in says(places[0])
    registry.sync()
    assert left_over(registry, tmp_path) == []
    assert registry.trash() == []


def die_at(monkeypatch, number):
    """Let the process die before the rename of the ``number``-th copy (from 0), and not go on."""
    real, passed = commit.publish, []

    def publish(entry, at, name):
        if len(passed) == number:
            raise Dead
        passed.append(entry)
        real(entry, at, name)

    with monkeypatch.context() as patch:
        patch.setattr(commit, "publish", publish)
        patch.setattr(commit, "roll_forward_or_back", die)
        yield
    assert len(passed) == number


@pytest.mark.parametrize(
    "number",
    [*(pytest.param(number, marks=pytest.mark.both) for number in (0, 3)), 1, 2],
)
@pytest.mark.parametrize("change", [update, delete])
def test_what_the_journal_holds_is_gone_on_with_in_all(
    registry, places, tmp_path, monkeypatch, change, number, swap
):
    for _ in die_at(monkeypatch, number):
        with pytest.raises(Dead):
            change(registry)
    assert registry.core.reader.rows("SELECT count(*) FROM journal") == [(3,)]
    assert registry.finish_changes() == 3
    assert [says(one) for one in places] == [AFTER if change is update else None] * 3
    assert left_over(registry, tmp_path) == []
    assert len(registry.trash()) == (3 if change is delete else 0)


@pytest.mark.parametrize("change", [update, delete])
def test_a_source_that_is_away_is_gone_on_with_when_it_is_back(
    registry, places, tmp_path, monkeypatch, change
):
    for _ in die_at(monkeypatch, 1):
        with pytest.raises(Dead):
            change(registry)
    for name in ("two", ".two.skill-registry"):
        (tmp_path / name).rename(tmp_path / f"away{name}")
    assert registry.finish_changes() == 2
    assert [says(one) for one in places[:2]] == [AFTER if change is update else None] * 2
    registry.create("other", description="The first source is in nobody's way.", source="one")
    for name in ("two", ".two.skill-registry"):
        (tmp_path / f"away{name}").rename(tmp_path / name)
    assert registry.finish_changes() == 1
    assert says(places[2]) == (AFTER if change is update else None)
    assert left_over(registry, tmp_path) == []


def test_an_edit_after_the_crash_is_kept(registry, places, tmp_path, monkeypatch):
    for _ in die_at(monkeypatch, 1):
        with pytest.raises(Dead):
            update(registry)
    write_skill(places[2], description="By hand.", age=None)
    registry.finish_changes()
    assert [says(one) for one in places[:2]] == [AFTER, AFTER]
    assert "By hand." in says(places[2])
    registry.sync()
    assert left_over(registry, tmp_path) == []


@pytest.mark.both
def test_a_row_that_somebody_struck_out_is_not_gone_on_with(
    registry, places, tmp_path, monkeypatch
):
    """Who may write the database may so keep a copy from being changed, and no more than that."""
    for _ in die_at(monkeypatch, 0):
        with pytest.raises(Dead):
            update(registry)
    with registry.core.writer.transaction() as connection:
        gone = connection.exec_driver_sql(
            "DELETE FROM journal WHERE source_id IN (SELECT id FROM sources WHERE name = 'two') "
            "RETURNING 1"
        )
        assert len(gone.all()) == 1
    assert registry.finish_changes() == 2
    assert [says(one) for one in places] == [AFTER, AFTER, BEFORE]
    registry.update("two/pdf", kind="prompt")  # which clears away what was staged there
    assert left_over(registry, tmp_path) == []


@pytest.mark.both
@pytest.mark.parametrize("kind", ["update", "delete together"])
def test_a_row_that_somebody_altered_is_left_alone(registry, places, monkeypatch, kind):
    for _ in die_at(monkeypatch, 0):
        with pytest.raises(Dead):
            update(registry)
    with registry.core.writer.transaction() as connection:
        altered = connection.exec_driver_sql(f"UPDATE journal SET kind = '{kind}' RETURNING 1")
        assert len(altered.all()) == 3
    assert registry.finish_changes() == 0
    assert [says(one) for one in places] == [BEFORE] * 3
    assert len([one for one in registry.check_database() if "left alone" in one]) == 3


@pytest.mark.both
@pytest.mark.parametrize("arrived", [True, False])
def test_a_journal_whose_commit_was_not_answered_is_struck_out(
    registry, places, tmp_path, monkeypatch, arrived
):
    real, lost = commit.add_entry, []

    def add_entry(connection, entry):
        real(connection, entry)
        if entry.root.endswith("two"):
            lost.append(entry)
            if arrived:
                connection.commit()
            raise DatabaseUnreachable(path="x", reason="server closed the connection")

    with monkeypatch.context() as patch:
        patch.setattr(commit, "add_entry", add_entry)
        with pytest.raises(DatabaseUnreachable):
            update(registry)
    assert len(lost) == 1
    assert registry.finish_changes() == 0
    assert [says(one) for one in places] == [BEFORE] * 3
    assert left_over(registry, tmp_path) == []


def test_where_taking_back_fails_the_outcome_is_said_to_be_open(
    registry, places, tmp_path, monkeypatch
):
    real, failed = commit.publish, []

    def publish(entry, at, name):
        if entry.root.endswith("two"):
            raise OSError(5, "Input/output error")
        real(entry, at, name)

    def roll_back(*_):
        failed.append(1)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(commit, "publish", publish)
        patch.setattr(Swap, "roll_back", roll_back)
        with pytest.raises(ChangePending):
            update(registry)
    assert failed
    registry.finish_changes()
    assert [says(one) for one in places] == [AFTER] * 3
    assert left_over(registry, tmp_path) == []


def test_a_forced_change_is_one_of_a_single_skill(registry, places):
    with pytest.raises(UsageProblem):
        update(registry, force=True)
    assert [says(one) for one in places] == [BEFORE] * 3


def test_copies_that_lie_in_each_other_are_changed_one_by_one(registry, places):
    shutil.copytree(places[0], places[0] / "inner")
    registry.sync()
    assert registry.resolve("one/pdf/inner").copies
    with pytest.raises(ChangeRefused, match="one by one"):
        update(registry)
    assert [says(one) for one in (*places, places[0] / "inner")] == [BEFORE] * 4


def test_a_source_that_is_a_copy_itself_is_not_changed_together(registry, places, tmp_path):
    write_skill(tmp_path / "pdf")
    shutil.copytree(places[0], tmp_path / "roots" / "pdf")
    registry.sync(str(tmp_path / "roots" / "pdf"), name="root")
    with pytest.raises(ChangeRefused, match="source's root"):
        update(registry)
    assert [says(one) for one in places] == [BEFORE] * 3


def test_only_the_copies_that_are_meant_are_changed(registry, places):
    stored = resolve(registry.core.reader, "pdf")
    text = (places[0] / "SKILL.md").read_bytes().replace(BEFORE.encode(), AFTER.encode())
    update_files(
        registry.core, stored, {"SKILL.md": text}, copies=lambda one: one.skill.source == "two"
    )
    assert [says(one) for one in places] == [AFTER, BEFORE, AFTER]


def test_without_going_on_a_crash_would_leave_half(registry, places, monkeypatch):
    """The control of the tests above."""
    real = Swap.roll_forward
    monkeypatch.setattr(Swap, "roll_forward", lambda *_: None)
    for _ in die_at(monkeypatch, 1):
        with pytest.raises(Dead):
            update(registry)
    registry.finish_changes()
    assert sorted(map(says, places)) == [AFTER, BEFORE, BEFORE]
    assert Swap.roll_forward is not real


def test_a_change_that_changes_nothing_has_nothing_to_say_of_copies(registry, places):
    stored, before = others(registry)
    registry.update("pdf", description=BEFORE)
    assert fate(registry.core.reader, stored, before) == Fate()


@pytest.mark.both
def test_who_wants_the_locks_of_several_sources_takes_them_in_one_order(registry, places):
    """In the order that they are asked for, two would wait for each other."""
    roots = {one.id: one.path for one in registry.sources()}
    orders = [dict(roots.items()), dict(reversed(roots.items()))]
    together = threading.Barrier(2)

    def change(order):
        together.wait()
        for _ in range(20):
            under_locks(registry.core, order, len)
        return True

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(change, orders))
