"""Real processes: syncs that meet, readers beside a sync, a sync that is killed."""

import os
import signal

import pytest

from registry.db.read.listing import Filters
from tests.conftest import write_skill
from tests.program import Script

SYNC = """
import sys
from registry import SkillRegistry, Settings
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    report = registry.sync(*sys.argv[2:], wait=True)
    print(len(report.added), len(report.updated), len(report.removed), report.unchanged)
"""

IN_PARTS = """
from registry.sync import apply
apply.BATCH = 40
"""

# Kills itself in the middle of its work: at the nth time that something is stored.
KILLED = """
import os, signal, sys
from registry import SkillRegistry, Settings
from registry.sync import apply
def wrap(name):
    real = getattr(apply, name)
    def step(*args, **more):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **more)
    setattr(apply, name, step)
left = int(sys.argv[2])
apply.BATCH = 10
for name in ("stage", "publish", "delete_retired", "record_sync"):
    wrap(name)
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    registry.sync()
"""


def test_syncs_at_the_same_time_neither_fail_nor_duplicate(registry, root, skill):
    for number in range(60):
        skill(f"skill-{number}")
    registry.create_database()
    running = [Script(SYNC, registry.path, root) for _ in range(4)]
    results = []
    for script in running:
        ran = script.end()
        assert (ran.status, ran.err) == (0, "")
        results.append(ran.out.split())
    assert sorted(int(result[0]) for result in results) == [0, 0, 0, 60]
    assert len(registry.list()) == 60
    assert len(registry.sources()) == 1
    assert registry.check_database() == []


def test_readers_see_a_sync_whole_or_not_at_all(registry, root, skill):
    for number in range(300):
        skill(f"skill-{number:03}", description="before")
    registry.sync(str(root))
    for number in range(300):
        skill(f"skill-{number:03}", description="after", age=1_700_000_500)
    seen = set()
    syncing = Script(IN_PARTS + SYNC, registry.path)
    while syncing.process.is_alive():
        seen.add(frozenset((skill.description, True) for skill in registry.list()))
        assert registry.list().total == 300
    ran = syncing.end()
    assert (ran.out.split()[1], ran.err) == ("300", "")
    assert seen <= {frozenset({("before", True)}), frozenset({("after", True)})}
    assert {skill.description for skill in registry.list()} == {"after"}


@pytest.mark.parametrize("step", [1, 2, 4, 6, 7, 8, 9, 10])
def test_a_killed_sync_leaves_the_last_complete_state_and_the_next_one_finishes(
    registry, root, skill, step
):
    for number in range(15):
        skill(f"old-{number}")
    registry.sync(str(root))
    for number in range(25):
        skill(f"new-{number}")
    write_skill(root / "old-0", description="Changed.", age=1_700_000_900)
    assert Script(KILLED, registry.path, step).end().status in (-signal.SIGKILL, 0)
    names = {skill.name for skill in registry.list()}
    assert len(names) in (15, 40)
    assert registry.check_database() == []
    skill("last")  # what was left is cleared away by the next sync that writes
    registry.sync()
    assert len(registry.list(Filters(all=True))) == 41
    assert registry.get("old-0").description == "Changed."
    left = registry.core.reader.rows("SELECT count(*) FROM skills WHERE live = 0")
    assert left == [(0,)]
    assert registry.check_database() == []


@pytest.mark.file
def test_the_last_step_of_the_killed_sync_is_after_its_end(registry, root, skill):
    """The steps above are all of them: with one more the sync is not killed any longer."""
    for number in range(15):
        skill(f"old-{number}")
    registry.sync(str(root))
    for number in range(25):
        skill(f"new-{number}")
    assert Script(KILLED, registry.path, 1000).end().status == 0
    assert os.path.exists(registry.path)
