"""Whatever breaks a change at whichever step: it happened whole or not at all, nothing is lost."""

import errno
import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

import pytest

from registry.changes import commit, unfinished
from registry.db import interface as transactions
from registry.db.sqlite import writer
from registry.disk import atomic, swap
from registry.disk.swap import Swap
from registry.errors import ChangePending, DatabaseProblem, RegistryError
from tests.changes import faults
from tests.changes.faults import (
    CHANGES,
    DISK,
    EDITABLE,
    EFFECTS,
    FSYNC,
    LOOK,
    World,
    at_step,
    broken_promises,
    run_in_child,
)


@pytest.fixture(scope="module")
def made():
    """Make the world before a change, once for all tests; its home, whose key signs what is there.

    In memory where the machine has a place for that: it is set up hundreds of times, and what is
    tested does not depend on the disk's speed.
    """
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as base:
        home = Path(base, "home")
        home.mkdir()
        yield home, cache(lambda change: faults.make_world(Path(base, change, "w"), before=change))


@pytest.fixture
def world(request, made, monkeypatch):
    """One world an experiment, as it is before the change."""
    # An engine holds no connection to a file; to keep it spares compiling each statement anew.
    monkeypatch.setattr(writer, "make_engine", cache(writer.make_engine))
    home, make = made
    monkeypatch.setenv("HOME", str(home))
    return make(request.node.callspec.params["change"]).reset()


every_change = pytest.mark.parametrize("change", sorted(CHANGES))


def killed(world: World, change: str, step) -> bool:
    """Do a change in a child that is killed at a step; False: it came to its end."""

    def work():
        with world.open() as registry, at_step(step.number, faults.kill):
            CHANGES[change](registry)

    status = run_in_child(work)
    assert status in {0, -signal.SIGKILL}
    return status != 0


def disturbed(world: World, change: str, step, act, kinds, edited=None) -> RegistryError | None:
    """Do a change, with something else done at a step; return the answer, if it is an error."""
    with world.open() as registry:
        registry.core.on_warning = lambda _: None
        with at_step(step.number, act, kinds, edited) as passed:
            try:
                CHANGES[change](registry)
            except RegistryError as error:
                answer = error
            else:
                answer = None
    assert len(passed) >= step.number
    return answer


def each_step(world, change, kinds=EFFECTS, edited=None):
    """Yield the steps that are tried, each with the world as it was."""
    steps = faults.steps_of(world, CHANGES[change], kinds, edited)
    for step in faults.some(steps, f"{change} {sorted(kinds)}"):
        yield step, world.reset()


def killed_at_each_step(world, change):
    """Yield the steps at which a change is killed, and what the next open leaves broken of it."""
    for step, here in each_step(world, change):
        assert killed(here, change, step)
        faults.recover(here)
        yield step, broken_promises(here, change)


KILLED = sorted(CHANGES) if faults.every_step or faults.every_line else ["create", "delete_copies"]
"""Changes whose process is really killed; for the others a picture stands for that, see below."""


@pytest.mark.parametrize("change", KILLED)
def test_killed_at_every_step_the_next_open_leaves_all_or_nothing(world, change):
    for step, broken in killed_at_each_step(world, change):
        assert broken == [], step


@pytest.mark.parametrize("change", ["update_copies", "update_many"])
def test_killed_at_every_step_of_two_renames_it_holds_too(world, change, monkeypatch):
    monkeypatch.setattr(atomic, "renameat2", lambda: None)
    for step, broken in killed_at_each_step(world, change):
        assert broken == [], step


@every_change
def test_killed_again_inside_recovery_it_still_holds(world, change):
    strides = (9, 11) if faults.every_line else (1, 1) if faults.every_step else (1, 5)
    recoveries = 0
    first = faults.pictures(world, partial(faults.do, change=change), strides[0])
    judged = set(faults.some([step for step, _ in first], f"{change} recovered"))
    for number, (step, crashed) in enumerate(first):
        again = faults.pictures(world.put(crashed), faults.recover, strides[1], number)
        if step in judged:
            assert broken_promises(world, change) == [], step
        recoveries += bool(again)
        for second, crashed_again in again:
            faults.recover(world.put(crashed_again))
            assert broken_promises(world, change) == [], (step, second)
    assert recoveries > 2


@pytest.mark.parametrize("change", ["update", "update_many", "update_copies", "delete"])
def test_an_edit_made_by_hand_at_any_step_is_never_lost(world, change):
    for step, here in each_edit(world, change):
        assert edit_survives(here), step
        with here.open() as registry:
            registry.sync(allow_prune=True)
        assert broken_promises(here, change, whole=False) == [], step


def each_edit(world, change):
    """Do a change with an edit made by hand at each of its steps; yield them, with what is left."""
    for step, here in each_step(world, change, EDITABLE, world.edited):
        disturbed(here, change, step, partial(faults.edit, here), EDITABLE, here.edited)
        yield step, here


def edit_survives(world: World) -> bool:
    kept = [state / name for state in world.states for name in ("conflict", "trash")]
    found = [world.content(), *map(faults.snapshot, kept)]
    return any(faults.EDIT in one.values() for one in found)


WRITTEN, SEEN = frozenset({DISK, FSYNC}), frozenset({LOOK})
ERRORS = [
    *((change, errno.ENOSPC, WRITTEN) for change in sorted(CHANGES)),
    # At the same steps, and told apart from a full disk at the database's lock alone.
    *((change, errno.EACCES, WRITTEN) for change in ("create", "update_many")),
    # What is looked at is the same for one skill as for its copies.
    *((change, errno.EIO, SEEN) for change in sorted(CHANGES) if not change.endswith("_copies")),
]


@pytest.mark.parametrize(
    ("change", "code", "kinds"),
    ERRORS,
    ids=[f"{errno.errorcode[code]}-{change}" for change, code, _ in ERRORS],
)
def test_an_error_of_the_disk_at_any_step_is_answered_and_undone(
    world, change, code, kinds, monkeypatch
):
    monkeypatch.setattr(faults, "every_line", False)  # it comes of a call, not between two lines
    for step, here in each_step(world, change, kinds):
        answer = disturbed(here, change, step, faults.fail(code), kinds)
        if not isinstance(answer, ChangePending):  # which says that it may be done
            expected = faults.AFTER if answer is None else faults.BEFORE
            assert here.content() == expected[change], (step, answer)
        faults.recover(here)
        if LOOK in kinds:  # what could not be read is known by what a sync finds next
            with here.open() as registry:
                registry.sync()
        assert broken_promises(here, change) == [], step


COMMITS = ("journal", "result")


@every_change
@pytest.mark.parametrize("commit", COMMITS)
def test_a_failed_commit_leaves_all_or_nothing(world, change, commit, monkeypatch):
    real = transactions.Writer.transaction
    failing = COMMITS.index(commit)
    ended = 0

    @contextmanager
    def transaction(writer, **more):
        nonlocal ended
        with real(writer, **more) as connection:
            yield connection
            ended += 1
            if ended == failing + 1:
                raise DatabaseProblem(path="x", reason="database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(transactions.Writer, "transaction", transaction)
        with world.open() as registry, pytest.raises((DatabaseProblem, ChangePending)):
            CHANGES[change](registry)
    assert ended > failing  # one more may look whether the row is there
    faults.recover(world)
    assert broken_promises(world, change) == []


@every_change
def test_a_change_commits_as_often_as_commits_are_failed(world, change, monkeypatch):
    monkeypatch.setattr(faults, "every_line", False)
    names = [step.name for step in faults.steps_of(world, CHANGES[change])]
    assert names.count("commit") == len(COMMITS)


@pytest.mark.parametrize("change", ["create", "update_many"])
def test_on_a_full_disk_a_change_is_refused_and_nothing_happens(change, tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs rights this user does not have")
    try:
        world = faults.make_world(mount / "world", database=tmp_path / "registry.db")
        filler = mount / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        with world.open() as registry, pytest.raises(RegistryError):
            CHANGES[change](registry)
        filler.unlink()
        faults.recover(world)
        assert broken_promises(world, change) == []
        with world.open() as registry:
            CHANGES[change](registry)
        assert broken_promises(world, change) == []
    finally:
        subprocess.run(["umount", str(mount)], check=True)


class TestControls:
    """A crash test that can't fail proves nothing: without its safeguards each one fails."""

    @every_change
    def test_nothing_is_written_beside_the_steps(self, world, change, monkeypatch):
        """What Python itself says is written happens at a step that is known."""
        monkeypatch.setattr(faults, "every_line", False)
        assert run_in_child(lambda: faults.listen(world, CHANGES[change])) == 0

    @pytest.mark.parametrize("change", ["delete", "update"])
    def test_a_picture_shows_what_a_kill_leaves(self, world, change, monkeypatch):
        monkeypatch.setattr(faults, "every_line", False)
        monkeypatch.setattr(faults, "every_step", True)
        taken = faults.pictures(world, partial(faults.do, change=change))
        for (_, picture), (step, here) in zip(taken, each_step(world.reset(), change), strict=True):
            assert killed(here, change, step)
            assert faults.shown(here.base) == faults.shown(picture), step

    @pytest.mark.parametrize("change", ["update"])
    def test_without_recovery_some_kill_breaks_the_promise(self, world, change, monkeypatch):
        monkeypatch.setattr(unfinished, "recover_all", lambda _: 0)
        assert any(
            killed(here, change, step) and broken_promises(here, change)
            for step, here in each_step(world, change)
        )

    @pytest.mark.parametrize("change", ["update_copies"])
    def test_without_going_on_some_kill_leaves_copies_by_half(self, world, change, monkeypatch):
        monkeypatch.setattr(Swap, "roll_forward", lambda *_: None)
        assert any(broken for _, broken in killed_at_each_step(world, change))

    @pytest.mark.parametrize("change", ["update_copies"])
    def test_without_taking_back_some_error_leaves_copies_by_half(self, world, change, monkeypatch):
        monkeypatch.setattr(faults, "every_line", False)
        monkeypatch.setattr(Swap, "roll_back", lambda *_: None)
        kinds = frozenset({DISK, FSYNC})

        def fails(step, here):
            answer = disturbed(here, change, step, faults.fail(errno.EACCES), kinds)
            return answer and here.content() not in (faults.BEFORE[change], faults.AFTER[change])

        assert any(fails(step, here) for step, here in each_step(world, change, kinds))

    @pytest.mark.parametrize("change", ["update"])
    def test_without_a_journal_some_kill_breaks_the_promise(self, world, change, monkeypatch):
        monkeypatch.setattr(commit, "add_entry", lambda *_: None)
        assert any(broken for _, broken in killed_at_each_step(world, change))

    @pytest.mark.parametrize("change", ["update"])
    def test_without_the_check_after_the_rename_some_edit_is_lost(self, world, change, monkeypatch):
        monkeypatch.setattr(Swap, "unknown", lambda _: [])
        monkeypatch.setattr(Swap, "_finish_exchange", lambda *_: None)
        monkeypatch.setattr(commit, "publish", blind_publish)

        assert any(not edit_survives(here) for _, here in each_edit(world, change))

    @pytest.mark.parametrize("change", ["create"])
    def test_without_fsync_what_is_renamed_may_not_be_on_the_disk(self, world, change, monkeypatch):
        assert unsynced_at_the_rename(world, change, monkeypatch) == set()
        monkeypatch.setattr(os, "fsync", lambda _: None)
        second = world
        with second.open() as registry:
            registry.delete("beta")
        assert unsynced_at_the_rename(second, change, monkeypatch, real=False) != set()


def blind_publish(_entry, at, _name):
    atomic.exchange(at.staged, at.live)


def unsynced_at_the_rename(world, change, monkeypatch, *, real=True):
    """Return the files and folders of the staged tree that nobody had synced before the rename."""
    synced: set[int] = set()
    missing: set[str] = set()
    fsync, rename = os.fsync, swap.rename_new

    def noted(descriptor):
        if real:
            synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def renamed(source, target):
        for folder, _, files in os.walk(source.path):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                if os.stat(path).st_ino not in synced:
                    missing.add(path)
        rename(source, target)

    with monkeypatch.context() as patch, world.open() as registry:
        patch.setattr(os, "fsync", noted)
        patch.setattr(swap, "rename_new", renamed)
        CHANGES[change](registry)
    return missing
