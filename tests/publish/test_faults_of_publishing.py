"""Whatever breaks publishing or approving at whichever step: it happened whole or not at all."""

import errno
import os
import signal
import tempfile
from functools import cache, partial
from pathlib import Path

import pytest

from registry.db.read.access import audit_records
from registry.db.sqlite import writer
from registry.errors import RegistryError
from registry.publish import proposals, publishing
from registry.publish.packages import package
from registry.publish.proposals import Person
from registry.sync.sources import find
from tests.changes import faults
from tests.changes.faults import DISK, FSYNC, NEW, OLD, at_step, run_in_child

pytestmark = pytest.mark.file

FILES = {"SKILL.md": NEW, "c.txt": b"c"}
AFTER = {"alpha/SKILL.md": NEW, "alpha/c.txt": b"c"}
BEFORE = {"alpha/SKILL.md": OLD, "alpha/a/b.txt": b"b"}


def publish(registry):
    core = registry.core
    home = find(core, registry.sources()[0].name)
    planned = publishing.plan(core, package(core, FILES, frozenset()), home)
    publishing.publish(core, planned, planned.replaces)


def approve(registry):
    (one,) = proposals.listed(registry.core)
    proposals.approve(registry.core, one.id, one.tree_hash, Person("reviewer"))


CHANGES = {"publish": publish, "approve": approve, "propose": publish}


@pytest.fixture(scope="module")
def made():
    """Make the world before a change, once for all tests."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as base:
        home = Path(base, "home")
        home.mkdir()

        def make(change):
            world = faults.make_world(Path(base, change, "w"))
            if change != "publish":
                with world.open() as registry:
                    registry.update_source(registry.sources()[0].name, review=True)
                    if change == "approve":
                        publish(registry)
                world.base.with_name("saved").rename(world.base.with_name("first"))
                world.save()
            return world

        yield home, cache(make)


@pytest.fixture
def world(request, made, monkeypatch):
    monkeypatch.setattr(writer, "make_engine", cache(writer.make_engine))
    home, make = made
    monkeypatch.setenv("HOME", str(home))
    return make(request.node.callspec.params["change"]).reset()


every_change = pytest.mark.parametrize("change", sorted(CHANGES))


def outcome(world, change):
    """Return whether the change happened, after the next open; fail if it is between the two."""
    with world.open() as registry:
        registry.sync()
        core = registry.core
        content = {path: data for path, data in world.content().items() if path != "other"}
        assert content in (BEFORE, AFTER)
        is_new = content == AFTER
        stored = registry.get("alpha")
        assert (stored.description == "New.") is is_new
        assert registry.check_database() == []
        found = proposals.listed(core, None)
        events = [one.what for one in audit_records(core.reader, 100)]
        if change == "publish":
            assert ("skill published" in events) is is_new
            return is_new
        if change == "propose":
            assert not is_new
            assert events.count("skill proposed") == len(found)
            for one in found:
                assert proposals.proposed_package(core, one).files == FILES
            return bool(found)
        (one,) = found
        assert one.state == ("applied" if is_new else "pending")
        assert ("proposal applied" in events) is is_new
        assert proposals.proposed_package(core, one).files == FILES
        return is_new


@every_change
def test_killed_at_every_step_the_next_open_finds_it_done_or_not_begun(world, change):
    steps = faults.steps_of(world, CHANGES[change])
    assert outcome(world, change)
    seen = set()
    for step in faults.some(steps, change):
        here = world.reset()

        def work(here=here, step=step):
            with here.open() as registry, at_step(step.number, faults.kill):
                CHANGES[change](registry)

        assert run_in_child(work) == -signal.SIGKILL
        seen.add(outcome(here, change))
    # A proposal is one transaction: no step follows it.
    assert seen == ({False} if change == "propose" else {True, False})


@every_change
def test_a_full_disk_at_every_step_is_answered_and_leaves_all_or_nothing(world, change):
    kinds = frozenset({DISK, FSYNC})
    steps = faults.steps_of(world, CHANGES[change], kinds)
    failed = 0
    for step in faults.some(steps, f"full {change}"):
        here = world.reset()
        with here.open() as registry:
            registry.core.on_warning = lambda _: None
            with at_step(step.number, faults.fail(errno.ENOSPC), kinds) as passed:
                try:
                    CHANGES[change](registry)
                except RegistryError:
                    failed += 1
            assert len(passed) >= step.number
        outcome(here, change)
    assert failed


def test_a_kill_inside_the_recovery_of_an_approval_is_recovered_again(made, monkeypatch):
    home, make = made
    monkeypatch.setenv("HOME", str(home))
    world = make("approve").reset()
    steps = faults.steps_of(world, approve)
    commits = [step for step in steps if step.name == "commit"]
    tried = 0
    for step in commits:

        def work(here, act, step=step):
            with here.open() as registry, at_step(step.number, act):
                approve(registry)

        def recover(number, here):
            with here.open() as registry, at_step(number, faults.kill):
                registry.sync()

        for second in (2, 9, 25):
            here = world.reset()
            assert run_in_child(partial(work, here, faults.kill)) == -signal.SIGKILL
            tried += run_in_child(partial(recover, second, here)) == -signal.SIGKILL
            outcome(here, "approve")
    assert tried
