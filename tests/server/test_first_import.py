"""A first import is published in parts, which nobody sees until the last: others wait for a part."""

import itertools
import os
import signal
import threading

import psycopg
import pytest

from registry.api import SkillRegistry
from registry.db.read.access import audit_records
from registry.db.read.listing import Filters
from registry.db.visibility import RESOLVING
from registry.errors import DatabaseProblem, SkillNotFound
from registry.settings import Settings
from registry.sync import apply
from tests.changes.faults import run_in_child
from tests.conftest import write_skill

pytestmark = pytest.mark.server

SKILLS = 23


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(apply, "BATCH", 10)
    monkeypatch.setattr(apply, "PART", 4)


@pytest.fixture
def large(root):
    """Some that are alone, some copies of one another, and some that a stronger source has."""
    folder = root.parent / "large"
    for number in range(SKILLS):
        write_skill(folder / f"one-{number}", description=f"Number {number}.")
    write_skill(folder / "twin" / "one-1", description="Number 1.")
    write_skill(folder / "other" / "one-2", description="Another one.")
    write_skill(folder / "beta", description="A weaker one.")
    return folder


@pytest.fixture
def library(server_database, root):
    for name in ("alpha", "beta", "one-3"):
        write_skill(root / name, description="The stronger one.")
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine", scope="team")
        yield registry


def seen(registry):
    return {(skill.ref, skill.shadowed, skill.copies) for skill in registry.list(Filters(all=True))}


def each_part(monkeypatch, work):
    """Do something after each part is published; return how many versions each had."""
    real, sizes = apply.publish, []

    def publish(connection, staged, *rest):
        found = real(connection, staged, *rest)
        sizes.append(len(staged))
        return found

    monkeypatch.setattr(apply, "publish", publish)
    monkeypatch.setattr(apply, "publish", publish)
    stored = apply.Store.add

    def add(self, batch, first):
        found = stored(self, batch, first)
        work()
        return found

    monkeypatch.setattr(apply.Store, "add", add)
    return sizes


def test_nothing_of_it_is_seen_until_all_is_there(library, large, monkeypatch, databases, root):
    before, looked = seen(library), []

    def look():
        looked.append(seen(library))
        assert [one.skills for one in library.sources() if one.name == "large"] == [0]
        assert library.search("number").total == 0
        assert library.resolve("one-3").source == "mine"
        with pytest.raises(SkillNotFound):
            library.resolve("one-4")
        assert library.check_database() == []
        assert library.database_info().skills == 3
        live = "SELECT count(*) FROM skills WHERE live = 1"
        assert library.core.reader.rows(live)[0][0] > 3

    sizes = each_part(monkeypatch, look)
    report = library.sync(str(large), name="large")
    assert len(report.added) == SKILLS + 3
    assert looked == [before] * len(looked) != []
    assert max(sizes) <= 4
    assert library.check_database() == []
    monkeypatch.undo()  # now in one piece
    with SkillRegistry.open(databases.new(), settings=Settings()) as whole:
        whole.sync(str(root), name="mine", scope="team")
        whole.sync(str(large), name="large")
        assert seen(whole) == seen(library) > before


def test_that_it_is_hidden_for_a_while_is_no_change_of_the_source(library, large, monkeypatch):
    sizes = each_part(monkeypatch, lambda: None)
    library.sync(str(large), name="large")
    assert len(sizes) > 1
    assert {line.what for line in audit_records(library.core.reader, 99)} == {"source added"}


def test_the_server_knows_what_is_there_from_the_first_part_on(
    library, server_database, large, monkeypatch
):
    """Else it looks each folder up by going over the whole source."""
    with psycopg.connect(server_database.replace("+psycopg", "")) as connection:
        connection.execute("DELETE FROM pg_statistic WHERE starelid = 'skills'::regclass")
    counted = "SELECT 1 FROM pg_stats WHERE tablename = 'skills' AND attname = 'source_id'"
    assert library.core.reader.rows(counted) == []
    known = []
    each_part(monkeypatch, lambda: known.append(library.core.reader.rows(counted)))
    library.sync(str(large), name="large")
    assert known == [[(1,)]] * 3


def test_one_batch_is_made_ready_while_another_is_stored(library, large, monkeypatch):
    both, stored = threading.Barrier(2, timeout=60), apply.Store.add
    met, calls = [], itertools.count()

    def add(self, batch, first):
        if next(calls) < 2:
            met.append(both.wait())
        return stored(self, batch, first)

    monkeypatch.setattr(apply.Store, "add", add)
    report = library.sync(str(large), name="large")
    assert sorted(met) == [0, 1]
    assert len(report.added) == SKILLS + 3
    assert library.check_database() == []


def test_of_a_batch_that_fails_beside_another_nothing_is_seen_and_the_next_sync_goes_on(
    library, large, monkeypatch
):
    before, stored, seen_batches = seen(library), apply.Store.add, []

    def add(self, batch, first):
        seen_batches.append(len(batch))
        if len(seen_batches) == 2:
            raise DatabaseProblem(path="x", reason="no room")
        return stored(self, batch, first)

    monkeypatch.setattr(apply.Store, "add", add)
    with pytest.raises(DatabaseProblem, match="no room"):
        library.sync(str(large), name="large")
    assert len(seen_batches) >= 2
    assert seen(library) == before
    monkeypatch.undo()
    library.sync("large")
    assert library.list().total == SKILLS + 3
    assert library.check_database() == []


def test_what_others_change_meanwhile_is_told_apart_as_if_it_had_come_at_once(
    library, server_database, large, monkeypatch
):
    with SkillRegistry.open(server_database, settings=Settings()) as other:
        numbers = iter(range(5, 20))
        each_part(
            monkeypatch,
            lambda: other.create(f"one-{next(numbers)}", description="A.", source="mine"),
        )
        library.sync(str(large), name="large")
    assert {"one-5", "large/one-5", "one-6", "large/one-6"} <= {one[0] for one in seen(library)}
    assert library.resolve("one-5").source == "mine"
    stored = seen(library)
    library.update_source("large", priority=1)
    library.update_source("large", priority=0)  # which works everything out anew
    assert seen(library) == stored


def test_a_killed_first_import_is_not_seen_and_the_next_sync_goes_on(
    library, server_database, large, monkeypatch
):
    before = seen(library)

    def work():
        with SkillRegistry.open(server_database, settings=Settings()) as registry:
            left = iter((1, 0))
            each_part(monkeypatch, lambda: next(left) or os.kill(os.getpid(), signal.SIGKILL))
            registry.sync(str(large), name="large")

    assert run_in_child(work) == -signal.SIGKILL
    monkeypatch.undo()
    assert seen(library) == before
    kept = library.core.reader.rows("SELECT count(*) FROM skills WHERE live = 1")[0][0]
    assert kept > 3
    assert library.list().total == 3
    library.sync("large")
    assert library.list().total == SKILLS + 3
    assert library.check_database() == []


def test_what_was_killed_before_it_was_shown_is_shown_by_a_sync_that_finds_nothing_new(
    library, server_database, large, monkeypatch
):
    def work():
        with SkillRegistry.open(server_database, settings=Settings()) as registry:
            monkeypatch.setattr(
                apply, "finish_importing", lambda *_: os.kill(os.getpid(), signal.SIGKILL)
            )
            registry.sync(str(large), name="large")

    assert run_in_child(work) == -signal.SIGKILL
    monkeypatch.undo()
    assert library.list().total == 3
    report = library.sync("large")
    assert report.added == ()
    assert library.list().total == SKILLS + 3


@pytest.mark.parametrize("goes_on", [True, False])
def test_killed_while_it_is_told_apart_from_others_it_hides_nothing(
    library, server_database, large, monkeypatch, goes_on
):
    before = seen(library)

    def work():
        left, real = iter((1, 0)), apply.refresh_names

        def refresh_names(*given):
            next(left) or os.kill(os.getpid(), signal.SIGKILL)
            real(*given)

        with SkillRegistry.open(server_database, settings=Settings()) as registry:
            registry.update_source("mine", scope="personal", priority=-1)  # it will be hidden
            monkeypatch.setattr(apply, "PART", 1)
            monkeypatch.setattr(apply, "refresh_names", refresh_names)
            registry.sync(str(large), name="large")

    assert run_in_child(work) == -signal.SIGKILL
    monkeypatch.undo()
    (state,) = library.core.reader.rows("SELECT enabled FROM sources WHERE name = 'large'")
    assert state == (RESOLVING,)
    assert {one.name for one in library.list()} == {"alpha", "beta", "one-3"}
    assert library.resolve("one-3").source == "mine"
    assert [one.skills for one in library.sources() if one.name == "large"] == [0]
    if goes_on:
        library.sync("large")
        assert library.resolve("one-3").source == "large"
        assert library.list().total == SKILLS + 3
    else:
        library.remove_source("large")
        assert seen(library) == before
    assert library.check_database() == []


def test_what_is_seen_of_a_source_before_its_first_sync_stays_seen(library, large, monkeypatch):
    library.add_source(str(large), name="large")
    library.create("gamma", description="Made before the first sync.", source="large")
    sizes = each_part(monkeypatch, lambda: library.get("gamma"))
    library.sync("large")
    assert max(sizes) > 4
    assert library.get("gamma").ref == "gamma"
