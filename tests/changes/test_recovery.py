"""What becomes of changes whose process died: all or nothing, and nobody's edit is lost."""

import os
from functools import partial

import pytest

from registry.api import SkillRegistry
from registry.changes import commit, finish
from registry.db.sqlite.dialect import WriterLock
from registry.disk import swap as disk_swap
from registry.disk.locks import FileLock
from registry.errors import DatabaseBusy
from registry.settings import Settings
from tests.changes.dying import Dead, die, dies, dies_between_two_renames
from tests.changes.planted import rows
from tests.changes.planted import state_of as state
from tests.conftest import OLD, write_skill

BEFORE = "Does one thing well."


@pytest.fixture
def alpha(registry, root):
    folder = write_skill(root / "alpha", extra="created_at: 2020-01-01\n")
    registry.sync(str(root), name="mine")
    return folder


def describe(folder, description):
    write_skill(folder, description=description, age=OLD + 9)


def kept(root):
    """What was put aside because it may be somebody's only copy."""
    found = state(root, "conflict").iterdir()
    return sorted(
        path.read_text() if path.is_file() else (path / "SKILL.md").read_text() for path in found
    )


def recovered(registry, root):
    """Finish everything; return what is listed. Nothing may be left over."""
    assert registry.finish_changes() == 1
    assert registry.finish_changes() == 0
    assert rows(registry) == 0
    assert registry.core.reader.rows("SELECT count(*) FROM skills WHERE live = 0") == [(0,)]
    assert list(state(root, "ops").iterdir()) == []
    assert registry.check_database() == []
    report = registry.sync(verify=True, allow_prune=True)
    assert (report.added, report.updated, report.removed) == ((), (), ())
    return {skill.folder: skill.description for skill in registry.list()}


def update(registry):
    registry.update("alpha", description="New.", files={"more.txt": b"more"})


def update_one_file(registry):
    registry.update("alpha", description="New.")


def before_the_swap(swap):
    return (disk_swap, "exchange") if swap == "exchange" else (disk_swap, "rename_new")


@pytest.mark.parametrize("change", [update, update_one_file])
class TestUpdate:
    def test_before_the_swap_nothing_happened(self, registry, root, alpha, swap, change):
        dies(registry, change, at=before_the_swap(swap))
        assert recovered(registry, root) == {"alpha": BEFORE}
        assert not (alpha / "more.txt").exists()

    @pytest.mark.both
    def test_after_the_swap_it_is_made(self, registry, root, alpha, swap, change):
        dies(registry, change)
        assert recovered(registry, root) == {"alpha": "New."}
        assert (alpha / "more.txt").exists() == (change is update)
        assert kept(root) == []

    def test_between_two_renames_it_is_made(self, registry, root, alpha, monkeypatch, change):
        dies_between_two_renames(monkeypatch, registry, change)
        assert recovered(registry, root) == {"alpha": "New."}

    def test_an_edit_between_two_renames_is_given_back(
        self, registry, root, alpha, monkeypatch, change
    ):
        edit = partial(describe, alpha, "By hand.")
        dies_between_two_renames(monkeypatch, registry, change, edit=edit)
        assert recovered(registry, root) == {"alpha": "By hand."}
        assert kept(root) == []

    def test_an_edit_that_it_displaced_wins(self, registry, root, alpha, swap, change):
        dies(registry, change, edit=partial(describe, alpha, "By hand."))
        assert recovered(registry, root) == {"alpha": "By hand."}
        assert kept(root) == []

    def test_of_two_edits_the_later_is_live_and_the_other_kept(
        self, registry, root, alpha, swap, change
    ):
        dies(registry, change, edit=partial(describe, alpha, "First."))
        describe(alpha, "Second.")
        assert recovered(registry, root) == {"alpha": "Second."}
        (first,) = kept(root)
        assert "First." in first


class TestDelete:
    def test_before_the_rename_nothing_happened(self, registry, root, alpha):
        dies(registry, lambda it: it.delete("alpha"), at=(disk_swap, "rename_new"))
        assert recovered(registry, root) == {"alpha": BEFORE}
        assert registry.trash() == []
        assert list(state(root, "trash").iterdir()) == []

    def test_after_the_rename_it_is_in_the_trash(self, registry, root, alpha):
        dies(registry, lambda it: it.delete("alpha"))
        assert recovered(registry, root) == {}
        (trashed,) = registry.trash()
        assert (trashed.name, trashed.source, trashed.folder) == ("alpha", "mine", "alpha")
        assert registry.restore("alpha").created_at == "2020-01-01T00:00:00Z"

    def test_an_edit_that_it_displaced_is_given_back(self, registry, root, alpha):
        edit = partial(describe, alpha, "By hand.")
        dies(registry, lambda it: it.delete("alpha"), edit=edit)
        assert recovered(registry, root) == {"alpha": "By hand."}
        assert (registry.trash(), kept(root)) == ([], [])

    def test_an_edit_whose_place_is_taken_is_kept(self, registry, root, alpha):
        edit = partial(describe, alpha, "By hand.")
        dies(registry, lambda it: it.delete("alpha"), edit=edit)
        describe(alpha, "Another.")
        assert recovered(registry, root) == {"alpha": "Another."}
        (first,) = kept(root)
        assert "By hand." in first

    def test_what_is_put_in_its_place_is_listed(self, registry, root, alpha):
        dies(registry, lambda it: it.delete("alpha"))
        describe(alpha, "Another.")
        assert recovered(registry, root) == {"alpha": "Another."}
        assert len(registry.trash()) == 1


class TestCreate:
    def test_before_the_rename_nothing_happened(self, registry, root, alpha):
        dies(
            registry,
            lambda it: it.create("beta", description="New."),
            at=(disk_swap, "rename_new"),
        )
        assert recovered(registry, root) == {"alpha": BEFORE}
        assert not (root / "beta").exists()

    def test_after_the_rename_it_is_made(self, registry, root, alpha):
        dies(registry, lambda it: it.create("beta", description="New."))
        assert recovered(registry, root) == {"alpha": BEFORE, "beta": "New."}

    @pytest.mark.parametrize("at", ["rename_new", "roll_forward_or_back"])
    def test_what_is_restored_is_in_the_trash_or_back_as_it_was(self, registry, root, alpha, at):
        before = registry.get("alpha")
        registry.delete("alpha")
        dies(
            registry,
            lambda it: it.restore("alpha"),
            at=(disk_swap if at == "rename_new" else commit, at),
        )
        if at == "rename_new":
            assert recovered(registry, root) == {}
            registry.restore("alpha")
        else:
            assert recovered(registry, root) == {"alpha": BEFORE}
        assert registry.trash() == []
        after = registry.get("alpha")
        assert (after.created_at, after.tree_hash) == (before.created_at, before.tree_hash)
        assert [one.number for one in registry.history("alpha")] == [1]


def test_what_a_living_process_does_is_left_to_it(registry, root, alpha, database):
    dies(registry, update)
    with FileLock(str(state(root, "lock"))) as lock:
        assert lock.acquire(0)
        with SkillRegistry.open(database, settings=Settings()) as other:
            assert other.finish_changes() == 0
    assert recovered(registry, root) == {"alpha": "New."}


@pytest.mark.both
def test_the_next_change_ends_what_is_unfinished_first(registry, root, alpha):
    dies(registry, update)
    registry.create("beta", description="Second.")
    assert {skill.description for skill in registry.list()} == {"New.", "Second."}
    assert registry.finish_changes() == 0


@pytest.mark.both
def test_only_what_a_change_of_this_database_staged_is_cleared_away(
    registry, root, alpha, tmp_path
):
    def dies_while_staging(of, name):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("registry.disk.swap.sync_tree", die)
            with pytest.raises(Dead):
                of.create(name, description="New.")
        return next(iter(set(os.listdir(ops)) - known))

    ops, known = state(root, "ops"), set()
    with SkillRegistry.open(tmp_path / "another.db", settings=Settings()) as other:
        other.sync(str(root), name="mine")
        theirs = dies_while_staging(other, "beta")
        known = {theirs}
        ours = dies_while_staging(registry, "beta")
        (ops / "0123456789abcdef" / "tree").mkdir(parents=True)  # nobody's
        known = {theirs, "0123456789abcdef"}
        assert set(os.listdir(ops)) == known | {ours}
        registry.create("gamma", description="New.")
        assert set(os.listdir(ops)) == known
        other.create("delta", description="New.")
        assert os.listdir(ops) == ["0123456789abcdef"]


def test_what_can_not_be_removed_now_is_removed_when_recovery_comes_by(
    registry, root, alpha, monkeypatch
):
    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(finish, "remove_tree", refuse)
    update(registry)
    assert len(list(state(root, "ops").iterdir())) == 1
    assert registry.list()[0].description == "New."
    monkeypatch.undo()
    registry.create("beta", description="New.")
    assert list(state(root, "ops").iterdir()) == []


@pytest.mark.file
@pytest.mark.parametrize("change", [update, lambda registry: registry.delete("alpha")])
@pytest.mark.parametrize("is_left", [False, True])
def test_a_change_waits_once_for_a_database_that_is_locked(
    registry, root, alpha, monkeypatch, change, is_left
):
    if is_left:
        dies(registry, update, at=before_the_swap("exchange"))
    waits, acquire = [], WriterLock.acquire

    def counted(lock, wait):
        waits.append(wait)
        return acquire(lock, wait)

    monkeypatch.setattr(WriterLock, "acquire", counted)
    monkeypatch.setattr("registry.db.interface.WRITE_SECONDS", 0.0)
    with FileLock(f"{registry.path}.lock") as lock:
        assert lock.acquire(0)
        with pytest.raises(DatabaseBusy):
            change(registry)
        assert waits == [0.0]
    change(registry)
    assert list(state(root, "ops").iterdir()) == []
    assert kept(root) == []
