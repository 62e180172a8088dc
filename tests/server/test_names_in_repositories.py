"""Names in git repositories belong to who had them first, whatever another role writes by itself."""

import psycopg
import pytest

from registry.publish.git.repository import build
from tests.conftest import write_skill

pytestmark = pytest.mark.server

NAME = "charts-tool"


@pytest.fixture
def world(world):
    for role in ("alice", "mallory"):
        world.add(role, "write")
    return world


def add(world, role, source, *names):
    for name in names:
        write_skill(world.folder / source / name, description=f"Draws for {source}, as {name}.")
    opened = world.open(role)
    opened.sync(str(world.folder / source), name=source)
    return opened


FORGED = {
    "an older row": ["UPDATE entries SET id = -1 WHERE source = 'mine' AND name = 'charts-tool'"],
    "an older row under another name": [
        "UPDATE entries SET name = 'x' WHERE source = 'mine' AND name = 'charts-tool'",
        "UPDATE entries SET name = 'charts-tool' WHERE source = 'mine' AND name = 'early'",
        (
            "UPDATE entries SET uid = (SELECT uid FROM skills WHERE name = 'charts-tool' AND source_id "
            "= (SELECT id FROM sources WHERE name = 'mine')) WHERE source = 'mine' AND name = "
            "'charts-tool'"
        ),
    ],
    "a row for a name without a skill": [
        (
            "INSERT INTO entries (id, uid, name, source, owner, slot, base, number) SELECT -1, uid, "
            "'later', 'mine', session_user, 1, 0, 1 FROM entries WHERE source = 'mine' LIMIT 1"
        ),
    ],
    "the owner": ["UPDATE entries SET owner = 'x', source = 'office' WHERE source = 'mine'"],
    "the slot": ["UPDATE entries SET slot = 9, base = 99 WHERE source = 'mine'"],
}


@pytest.mark.parametrize("what", FORGED)
def test_a_writer_takes_no_name_by_changing_its_own_rows(world, what):
    add(world, "mallory", "mine", "early")
    alice = add(world, "alice", "office", NAME)
    add(world, "mallory", "mine", NAME)
    before = sorted(build(alice.browse()).entries)
    assert before == [
        (NAME, f"office/{NAME}"),
        ("early", "early"),
        (f"mine--{NAME}", f"mine/{NAME}"),
    ]
    with pytest.raises(psycopg.Error):
        world.sql("mallory", *FORGED[what])
    assert sorted(build(alice.browse()).entries) == before
