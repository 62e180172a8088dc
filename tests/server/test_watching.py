"""Who holds a catalogue of a server asks for what is other than what it holds."""

import time
from contextlib import closing
from queue import Queue

import psycopg
import pytest

from registry.api import SkillRegistry
from registry.db.read.listing import PARTS, TreeHashes
from registry.settings import Settings
from registry.sync import watch
from tests.conftest import write_skill
from tests.pooler import Pooler, program

pytestmark = pytest.mark.server

SKILLS = 3 * PARTS


def test_after_a_change_what_is_held_is_what_is_there(numbered, server_database, root):
    library = numbered(SKILLS)
    write_skill(root.parent / "weak" / "one-7", description="A weaker one.")
    changes = (
        lambda: library.create("new", description="New."),
        lambda: library.update("one-5", description="Other."),
        lambda: library.delete("one-6"),
        lambda: library.sync(str(root.parent / "weak"), name="weak"),
        lambda: library.update_source("weak", scope="project"),
        lambda: library.update_source("mine", scope="team"),
        lambda: None,
        lambda: library.remove_source("mine"),
    )
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        reader, held = registry.core.reader, TreeHashes()
        assert len(held.read(reader)) == SKILLS
        for number, change in enumerate(changes):
            change()
            found = held.read(reader)
            assert found == TreeHashes().read(reader)
            assert found == {one.ref: one.tree_hash for one in registry.list()}, number


def test_who_watches_a_server_that_nobody_changes_asks_it_seldom(
    server_database, root, monkeypatch
):
    monkeypatch.setattr(watch, "IDLE_AFTER_SECONDS", 0.0)
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
