"""Who holds a catalogue of a server asks for what is other than what it holds."""

import time
from contextlib import closing
from queue import Queue

import psycopg
import pytest

from registry.api import SkillRegistry
from registry.db.read.listing import TreeHashes
from registry.settings import Settings
from registry.sync import watch
from tests.conftest import write_skill
from tests.pooler import Pooler, program

pytestmark = pytest.mark.server


class Following:
    """The list of skills as a watching process knows it."""

    def __init__(self, registry):
        self.reader, self.hashes, self.known = registry.core.reader, TreeHashes(), {}

    def read(self):
        """Bring the list up to date; return it and the number of skills that were read."""
        before, now = self.hashes.read(self.reader)
        self.known = {ref: found for ref, found in self.known.items() if ref not in before} | now
        return self.known, len(now)


def visible(registry):
    return {one.ref: one.tree_hash for one in registry.list()}


def test_a_watching_process_reads_only_what_changed(numbered, server_database, root):
    library = numbered(30)
    weak = root.parent / "weak"
    write_skill(weak / "one-7", description="A weaker one.")
    everything = 100
    changes = (
        (lambda: library.create("new", description="New."), 1),
        (lambda: library.update("one-5", description="Other."), 1),
        (lambda: library.delete("one-6"), 0),
        (lambda: library.rename("one-8", "other"), 1),
        (lambda: library.sync(str(weak), name="weak"), everything),
        (lambda: library.delete("mine/one-7"), 2),
        (library.undo, 3),
        (lambda: library.update_source("weak", scope="project"), everything),
        (lambda: library.update_source("mine", scope="team"), everything),
        (lambda: None, 0),
        (lambda: library.remove_source("mine"), 0),
    )
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        following = Following(registry)
        assert following.read() == (visible(registry), 30)
        for number, (change, most) in enumerate(changes):
            change()
            known, count = following.read()
            assert known == visible(registry), number
            assert count <= most, number


def test_a_change_of_a_projects_skill_is_seen_with_the_skills_that_it_shadows(
    server_database, root
):
    project = root.parent / "project"
    shadowing = project / "skills" / "alpha"
    write_skill(root / "alpha")
    write_skill(root / "beta")
    write_skill(shadowing, description="Of the project.")
    with SkillRegistry.open(server_database, settings=Settings(), workdir=project) as registry:
        registry.sync(str(root), name="mine")
        registry.sync(str(project / "skills"), name="here", scope="project")
        following = Following(registry)
        assert following.read() == (visible(registry), 2)
        changes = (
            lambda: registry.delete("alpha"),
            lambda: write_skill(shadowing, extra="disable-model-invocation: true\n"),
            lambda: write_skill(shadowing, description="Edited.", age=None),
        )
        for number, change in enumerate(changes):
            change()
            registry.sync()
            known, count = following.read()
            _, everything = TreeHashes().read(registry.core.reader)
            assert (known, count <= 1) == (everything, True), number


def test_a_change_that_ends_after_a_later_one_is_not_missed(numbered, server_database):
    """The transactions of two clients don't end in the order in which they began."""
    numbered(3)
    plain = server_database.replace("+psycopg", "")
    status = "UPDATE skills SET status = 'error' WHERE name = %s AND live = 1"
    with (
        SkillRegistry.open(server_database, settings=Settings()) as registry,
        closing(psycopg.connect(plain)) as first,
        closing(psycopg.connect(plain)) as second,
    ):
        following = Following(registry)
        following.read()
        first.execute(status, ("one-0",))
        second.execute(status, ("one-1",))
        second.commit()
        assert following.read() == ({ref: visible(registry)[ref] for ref in ("one-0", "one-2")}, 0)
        first.commit()
        assert following.read() == (visible(registry), 0)
        assert list(visible(registry)) == ["one-2"]


def test_a_watching_process_that_was_away_for_long_reads_everything(numbered, server_database):
    library = numbered(3)
    plain = server_database.replace("+psycopg", "")
    with (
        SkillRegistry.open(server_database, settings=Settings()) as registry,
        closing(psycopg.connect(plain, autocommit=True)) as administrator,
    ):
        following = Following(registry)
        following.read()
        library.delete("one-1")
        for _ in range(1300):
            administrator.execute("UPDATE data_version SET number = number + 1")
        assert administrator.execute("SELECT count(*) FROM commits").fetchone()[0] <= 1100
        assert following.read() == (visible(registry), 2)
        assert following.read() == (visible(registry), 0)


def test_a_watching_process_notices_that_the_server_was_restored(
    numbered, server_database, databases
):
    library = numbered(3)
    saved = databases.saved(server_database)
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        following = Following(registry)
        library.update("one-1", description="Lost when the server is restored.")
        lost, _ = following.read()
        databases.put(server_database, saved)
        assert following.read() == (visible(registry), 3)
        assert following.known != lost


def test_who_watches_a_server_that_nobody_changes_asks_it_seldom(
    server_database, root, monkeypatch
):
    monkeypatch.setattr(watch, "IDLE_SHARE", 1e-6)
    monkeypatch.setattr(watch, "IDLE_LOOK_SECONDS", 3600.0)
    write_skill(root / "alpha")
    told, plain = Queue(), server_database.replace("+psycopg", "")
    with (
        SkillRegistry.open(server_database, settings=Settings()) as registry,
        closing(psycopg.connect(plain, autocommit=True)) as administrator,
    ):
        registry.sync(str(root), name="mine")
        with registry.watch(told.put):
            asked_at, before = _last_question(administrator), None
            until = time.monotonic() + 120
            while asked_at != before and time.monotonic() < until:
                time.sleep(4 * watch.LOOK_SECONDS)
                asked_at, before = _last_question(administrator), asked_at
            assert asked_at == before
            write_skill(root / "alpha", description="Edited.", age=None)
            assert told.get(timeout=60).updated == ("alpha",)
            assert _last_question(administrator) > asked_at


def _last_question(administrator):
    """When a session of the registry was last given a statement."""
    return administrator.execute(
        "SELECT max(query_start) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    ).fetchone()[0]


@pytest.mark.skipif(program() is None, reason="there is no pgbouncer: apt-get install pgbouncer")
def test_an_edit_made_while_the_server_is_away_is_seen_when_it_is_back(server_database, root):
    write_skill(root / "alpha")
    pooler = Pooler(server_database, "session")
    told, notes = Queue(), Queue()
    try:
        with SkillRegistry.open(pooler.address(server_database), settings=Settings()) as registry:
            registry.core.on_warning = notes.put
            registry.sync(str(root), name="mine")
            with registry.watch(told.put) as watching:
                while not watching._next_full:  # when all is synced whatever was seen
                    time.sleep(0.02)
                write_skill(root / "alpha", description="Before.", age=None)
                assert told.get(timeout=60).updated == ("alpha",)
                pooler.kill()
                assert "can't be reached" in notes.get(timeout=60)
                write_skill(root / "alpha", description="Edited.", age=None)
                pooler.start()
                assert told.get(timeout=60).updated == ("alpha",)
            assert registry.resolve("alpha").description == "Edited."
    finally:
        pooler.stop()
