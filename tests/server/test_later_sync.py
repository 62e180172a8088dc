"""What a later sync can do before it publishes, all at once, is done before others wait for it."""

import hashlib
import threading
import time

import pytest

from registry.api import SkillRegistry
from registry.settings import Settings
from registry.sync import apply, plan
from tests.conftest import OLD, write_skill

pytestmark = pytest.mark.server

SKILLS = 9
MOST = 20


@pytest.fixture
def library(numbered):
    return numbered(SKILLS)


def edit(root):
    for number in range(SKILLS - 2):
        write_skill(root / f"one-{number}", description=f"Changed {number}.", age=OLD + 9)
    for number in range(SKILLS - 2, SKILLS):
        (root / f"one-{number}" / "SKILL.md").unlink()
        (root / f"one-{number}").rmdir()


def test_the_documents_of_what_leaves_are_kept_before_others_wait(library, root, monkeypatch):
    documents = [one.read_bytes() for one in sorted(root.glob("*/SKILL.md"))]
    left = {f"sha256:{hashlib.sha256(one).hexdigest()}" for one in documents}
    edit(root)
    monkeypatch.setattr(apply, "BATCH", 4)
    real, kept = apply.publish, []

    def publish(connection, *what):
        rows = library.core.reader.rows("SELECT hash FROM contents")
        kept.append({one for (one,) in rows})
        return real(connection, *what)

    monkeypatch.setattr(apply, "publish", publish)
    report = library.sync(allow_prune=True)
    assert (len(report.updated), len(report.removed)) == (SKILLS - 2, 2)
    assert len(kept) == 1
    assert len(left) == SKILLS
    assert left <= kept[0]
    assert library.check_database() == []


@pytest.fixture
def clashing(library, root, machine, tmp_path, monkeypatch):
    """Edit all skills; while they are exchanged, another host adds a skill with the same name."""
    edit(root)
    write_skill(tmp_path / "theirs" / "one-0", description="Theirs.")
    other, running, published = machine("other"), [], []
    exchange, publish = apply.exchange, apply.publish

    def exchanged(connection, staged):
        found = exchange(connection, staged)
        connection.exec_driver_sql("SELECT 1")  # sends what is queued: the rows are locked
        running.append(threading.Thread(target=other.sync, args=(str(tmp_path / "theirs"),)))
        running[0].start()
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
        until = time.monotonic() + 30
        while not library.core.reader.rows(waiting) and time.monotonic() < until:
            time.sleep(0.01)
        return found

    def counted(*what):
        live = publish(*what)  # does not return if the lock of writers is not to be had
        published.append(what)
        return live

    monkeypatch.setattr(apply, "exchange", exchanged)
    monkeypatch.setattr(apply, "publish", counted)
    yield published
    assert running
    running[0].join()
    assert sorted(one.ref for one in library.list() if one.name == "one-0") == [
        "mine/one-0",
        "theirs/one-0",
    ]


def test_if_another_writer_waits_for_its_skills_a_sync_gives_way_and_then_publishes(
    library, clashing
):
    report = library.sync(allow_prune=True)
    assert (len(report.updated), len(report.removed)) == (SKILLS - 2, 2)
    assert [len(exchanged) for *_, exchanged in clashing] == [0, 0]  # theirs and ours
    assert {one.description for one in library.list() if one.source == "mine"} == {
        f"Changed {number}." for number in range(SKILLS - 2)
    }
    assert {len(library.history(f"mine/one-{number}")) for number in range(1, SKILLS - 2)} == {2}
    assert library.check_database() == []


def round_trips(address, root, proxy, counts):
    """Sync edits of these numbers of skills, one after the other; return each sync's round trips."""
    waited = []
    with SkillRegistry.open(address, settings=Settings()) as registry:
        for age, count in enumerate(counts, 4):
            for number in range(count):
                write_skill(root / f"one-{number}", description=f"Edit {age}.", age=OLD + age)
            with proxy.counting() as said:
                report = registry.sync(*([] if waited else [str(root)]))
            assert len(report.added) + len(report.updated) == count
            waited.append(len(said))
    return waited


def test_a_sync_waits_as_often_for_many_edits_as_for_few(address, root, proxy):
    waited = round_trips(address, root, proxy, (SKILLS, 1, 1, SKILLS))
    assert waited[3] <= waited[2] <= MOST, waited


def test_each_further_batch_of_edits_takes_three_round_trips(address, root, proxy, monkeypatch):
    monkeypatch.setattr(apply, "BATCH", 3)
    monkeypatch.setattr(plan, "BATCH", 3)
    waited = round_trips(address, root, proxy, (SKILLS, 3, 9))
    assert waited[1] < waited[2] <= waited[1] + 6, waited
