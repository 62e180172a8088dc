"""Who holds a catalogue of a server asks for what is other than what it holds."""

import re
import time
from queue import Queue

import pytest

from benchmarks.proxy import Proxy
from registry.api import SkillRegistry
from registry.db.read.listing import PARTS, TreeHashes
from registry.settings import Settings
from tests.conftest import write_skill
from tests.pooler import Pooler, program
from tests.server.numbered import numbered

pytestmark = pytest.mark.server

SKILLS = 3 * PARTS


class Counting(Proxy):
    """A proxy that knows how many bytes the server has said."""

    heard = 0

    def _pass(self, end, other, note):
        def count(data):
            if end.getpeername()[1] == self._to[1]:
                self.heard += len(data)
            note(data)

        super()._pass(end, other, count)


@pytest.fixture
def library(server_database, root):
    with numbered(server_database, root, SKILLS) as registry:
        yield registry


def test_after_a_change_little_is_read_again_and_all_that_changed(library, server_database, root):
    host, port = re.search(r"@([^:/]+):(\d+)/", server_database).groups()
    proxy = Counting(host, int(port))
    address = re.sub(r"@[^/]+/", f"@127.0.0.1:{proxy.port}/", server_database)
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
    try:
        with SkillRegistry.open(address, settings=Settings()) as registry:
            reader, held = registry.core.reader, TreeHashes()
            before = proxy.heard
            assert len(held.read(reader)) == SKILLS
            whole = proxy.heard - before
            for number, change in enumerate(changes):
                change()
                before = proxy.heard
                found = held.read(reader)
                if number < 3:
                    assert 0 < proxy.heard - before < whole / 2
                assert found == TreeHashes().read(reader)
                seen = {one.ref: one.tree_hash for one in registry.list()}
                assert found == seen, number
    finally:
        proxy.close()


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
