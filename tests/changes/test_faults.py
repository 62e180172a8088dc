"""Whatever breaks a change at whichever step: it happened whole or not at all, nothing is lost."""

import errno
import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from registry.changes import protocol, recovery
from registry.db import interface as transactions
from registry.errors import ChangePending, DatabaseProblem, RegistryError
from tests.changes import faults
from tests.changes.faults import CHANGES, TRACED, World, at_step, broken_promises, run_in_child


@pytest.fixture
def world(request):
    """One world an experiment, in memory where the machine has a place for that: it is set up
    hundreds of times, and what is tested does not depend on the disk's speed."""
    change = request.node.callspec.params.get("change", "")
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as base:
        yield faults.make_world(Path(base) / "world", deleted=change == "restore")


every_change = pytest.mark.parametrize("change", sorted(CHANGES))


def experiment(world: World, change: str, step: int, act, traced=TRACED) -> int:
    def work():
        with world.open() as registry:
            at_step(step, act, traced)
            CHANGES[change](registry)

    return run_in_child(work)


def each_step(world, change, traced=TRACED, stride=1):
    total = faults.steps_of(world, CHANGES[change], traced)
    assert total > 5
    for step in range(1, total + 1, stride):
        yield step, world.reset()


@every_change
def test_killed_at_every_step_the_next_open_leaves_all_or_nothing(world, change):
    for step, here in each_step(world, change):
        assert experiment(here, change, step, faults.kill) == -signal.SIGKILL
        faults.recover(here)
        assert broken_promises(here, change) == [], f"step {step}"


@every_change
def test_killed_again_inside_recovery_it_still_holds(world, change):
    for step, here in each_step(world, change, stride=9):
        experiment(here, change, step, faults.kill)
        here.save("crashed")
        again = 1
        while True:
            here.reset("crashed")

            def work(here=here, again=again):
                at_step(again, faults.kill)
                faults.recover(here)

            if run_in_child(work) == 0:
                break
            faults.recover(here)
            assert broken_promises(here, change) == [], f"step {step}, recovery step {again}"
            again += 11
        here.forget("crashed")


@pytest.mark.parametrize("change", ["update", "update_many", "delete"])
def test_an_edit_made_by_hand_at_any_step_is_never_lost(world, change):
    for step, here in each_step(world, change):
        code = experiment(here, change, step, lambda here=here: faults.edit(here))
        assert code in (0, 1), f"step {step}"
        assert edit_survives(here), f"step {step}"
        with here.open() as registry:
            registry.sync(allow_prune=True)
        assert broken_promises(here, change, whole=False) == [], f"step {step}"


def edit_survives(world: World) -> bool:
    places = [world.root, world.state / "conflict", world.state / "trash"]
    return any(faults.EDIT in faults.snapshot(place).values() for place in places)


@every_change
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO], ids=errno.errorcode.get)
def test_an_error_of_the_disk_at_any_step_is_answered_and_undone(world, change, code):
    for step, here in each_step(world, change, traced=faults.DISK, stride=2):
        result = experiment(here, change, step, faults.fail(code), faults.DISK)
        assert result in (0, 1), f"step {step}"
        faults.recover(here)
        assert broken_promises(here, change) == [], f"step {step}"


@every_change
@pytest.mark.parametrize("commit", [1, 2, 3, 4])
def test_a_failed_commit_leaves_all_or_nothing(world, change, commit, monkeypatch):
    real = transactions.Writer.transaction
    count = [0]

    @contextmanager
    def failing(writer):
        with real(writer) as connection:
            yield connection
            count[0] += 1
            if count[0] == commit:
                raise DatabaseProblem(path="x", reason="database or disk is full")

    monkeypatch.setattr(transactions.Writer, "transaction", failing)
    with world.open() as registry, suppress(DatabaseProblem, ChangePending):
        CHANGES[change](registry)
    monkeypatch.undo()
    faults.recover(world)
    assert broken_promises(world, change) == []


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

    @pytest.mark.parametrize("change", ["update"])
    def test_without_recovery_some_kill_breaks_the_promise(self, world, change, monkeypatch):
        monkeypatch.setattr(changing, "recover_all", lambda _: 0)
        assert any(
            experiment(here, change, step, faults.kill) and broken_promises(here, change)
            for step, here in each_step(world, change)
        )

    @pytest.mark.parametrize("change", ["update"])
    def test_without_a_journal_some_kill_breaks_the_promise(self, world, change, monkeypatch):
        monkeypatch.setattr(protocol, "add_entry", lambda *_: None)

        def fails(step, here):
            experiment(here, change, step, faults.kill)
            faults.recover(here)
            return broken_promises(here, change)

        assert any(fails(step, here) for step, here in each_step(world, change))

    @pytest.mark.parametrize("change", ["update"])
    def test_without_the_check_after_the_rename_some_edit_is_lost(self, world, change, monkeypatch):
        def blind(ground, path, *_):
            from registry.disk.atomic import remove_tree

            remove_tree(path)

        monkeypatch.setattr(recovery, "discard", blind)
        monkeypatch.setattr(recovery, "_mend_exchange", lambda _, entry, __: [(entry.staged, None)])
        monkeypatch.setattr(protocol, "publish", blind_publish)

        def loses(step, here):
            experiment(here, change, step, lambda: faults.edit(here))
            return not edit_survives(here)

        assert any(loses(step, here) for step, here in each_step(world, change))

    @pytest.mark.parametrize("change", ["create"])
    def test_without_fsync_what_is_renamed_may_not_be_on_the_disk(self, world, change, monkeypatch):
        assert unsynced_at_the_rename(world, change, monkeypatch) == set()
        monkeypatch.setattr(os, "fsync", lambda _: None)
        second = world
        with second.open() as registry:
            faults.registry.delete("beta")
        assert unsynced_at_the_rename(second, change, monkeypatch, real=False) != set()


def blind_publish(ground, entry, name):
    from registry.disk.atomic import exchange
    from registry.disk.paths import join

    exchange(entry.staged, join(entry.root, entry.target))
    return entry


def unsynced_at_the_rename(world, change, monkeypatch, *, real=True):
    """Return the files and folders of the staged tree that nobody had synced before the rename."""
    synced: set[int] = set()
    missing: set[str] = set()
    fsync, rename = os.fsync, protocol.rename_new

    def noted(descriptor):
        if real:
            synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def renamed(source, target):
        for folder, _, files in os.walk(source):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                if os.stat(path).st_ino not in synced:
                    missing.add(path)
        rename(source, target)

    with monkeypatch.context() as patch, world.open() as registry:
        patch.setattr(os, "fsync", noted)
        patch.setattr(protocol, "rename_new", renamed)
        CHANGES[change](registry)
    return missing
