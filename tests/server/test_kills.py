"""The server, or the client, dies in the middle of a change: all or nothing, and nothing is lost.

Each change is stopped at its effects, which are found by running it once. That the server or the
connection to it is gone shows when a transaction begins or ends, and so at each of these.
"""

import signal
from contextlib import closing
from functools import partial
from itertools import count

import pytest

from registry.changes import commit
from registry.errors import DatabaseUnreachable
from tests.changes import faults
from tests.changes.faults import (
    CHANGES,
    EFFECTS,
    TRANSACTIONS,
    at_step,
    broken_promises,
    run_in_child,
)
from tests.databases import Databases
from tests.server.test_server import end_connections
from tests.servers import Server

pytestmark = pytest.mark.server

PUBLISHING = {"rename", "renameat2", "replace"}

# In between a server is told by the others what it is told by one of these, too.
SOME = {*CHANGES} - {"update", "delete_copies"}
every_change = pytest.mark.parametrize("change", sorted(CHANGES if faults.every_step else SOME))
numbers = count()


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Let a client whose server is away ask again as often as ever, but soon."""
    monkeypatch.setattr(commit, "PAUSES", [0.01] * len(commit.PAUSES))


def make_world(place, url, change):
    return faults.make_world(place / f"world-{next(numbers)}" / "w", before=change, database=url)


def worlds(databases, place, change, kinds=TRANSACTIONS):
    """Yield steps, each with the world as it was."""
    url = databases.new()
    world = make_world(place, url, change)
    saved = databases.saved(url)
    for step in around_what_tells(faults.steps_of(world, CHANGES[change], kinds)):
        databases.put(url, saved)
        yield step, world.reset()
    databases.drop(url)


def around_what_tells(steps):
    """Return the steps just before and after which a server knows something else, or readers do.

    At each of the others it is in the state of one of these, and the disk is as with a file, with
    which all are tried (`tests.changes.test_faults`).
    """
    told = [step.number for step in steps if step.name in PUBLISHING | TRANSACTIONS]
    assert told
    return [step for step in steps if faults.every_step or {step.number, step.number - 1} & {*told}]


@every_change
def test_a_client_killed_leaves_all_or_nothing(databases, tmp_path, change):
    for step, world in worlds(databases, tmp_path, change, EFFECTS):

        def work(world=world, step=step):
            with world.open() as registry, at_step(step.number, faults.kill):
                CHANGES[change](registry)

        assert run_in_child(work) == -signal.SIGKILL
        faults.recover(world)
        assert broken_promises(world, change) == [], step


@every_change
def test_a_client_whose_connections_end_leaves_all_or_nothing(databases, tmp_path, change):
    for step, world in worlds(databases, tmp_path, change):

        def work(world=world, step=step):
            end = partial(end_connections, world.database)
            with world.open() as registry, at_step(step.number, end, TRANSACTIONS):
                CHANGES[change](registry)

        assert run_in_child(work) in {0, 1}, step
        faults.recover(world)
        assert broken_promises(world, change) == [], step


@pytest.fixture(scope="module")
def crashing():
    """A server of our own that writes through to the disk, to be killed and started again."""
    server = Server(durable=True).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def there(crashing):
    """Databases on that server."""
    with closing(Databases(crashing.url)) as databases:
        yield databases


@pytest.mark.parametrize("change", ["create", "delete", "update_many"])
def test_a_server_killed_and_started_again_leaves_all_or_nothing(crashing, there, tmp_path, change):
    for step, world in worlds(there, tmp_path, change):

        def work(world=world, step=step):
            with (
                world.open() as registry,
                at_step(step.number, crashing.kill_by_file, TRANSACTIONS),
            ):
                CHANGES[change](registry)

        status = run_in_child(work)
        crashing.gone()
        assert status in {0, 1}, step
        crashing.start()
        faults.recover(world)
        assert broken_promises(world, change) == [], step


def test_while_the_server_is_away_everything_says_so_and_works_again_later(
    crashing, there, tmp_path
):
    world = make_world(tmp_path, there.new(), "update")
    with world.open() as registry:
        crashing.kill()
        with pytest.raises(DatabaseUnreachable, match="can't be reached"):
            registry.list()
        with pytest.raises(DatabaseUnreachable):
            CHANGES["update"](registry)
        with pytest.raises(DatabaseUnreachable):
            registry.sync()
        crashing.start()
        CHANGES["update"](registry)
        assert registry.get("alpha").description == "New."
    assert broken_promises(world, "update") == []
