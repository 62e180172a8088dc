"""How often somebody waits for the server: each time costs the way there and back.

A proxy between the registry and the server counts. What is counted does not depend on the clock.
"""

import os
from collections.abc import Iterator

import pytest

from benchmarks.proxy import under_lock
from registry.api import SkillRegistry
from registry.settings import Settings
from tests.conftest import write_skill
from tests.program import run

pytestmark = pytest.mark.server

CHANGE = 6
UNDER_LOCK = 3


@pytest.fixture
def library(address: str, root) -> Iterator[SkillRegistry]:
    """Twenty skills, and what is made at the first change and the first read."""
    for number in range(20):
        write_skill(root / f"skill-{number}", description=f"Does number {number} well.")
    with SkillRegistry.open(address, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        registry.update("skill-1", tags=["first"])
        yield registry


CHANGES = {
    "create": lambda registry: registry.create("new", description="New."),
    "update": lambda registry: registry.update("skill-2", body="Other.\n"),
    "update tags": lambda registry: registry.update("skill-2", tags=["second"]),
    "delete": lambda registry: registry.delete("skill-3"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_waits_for_few_answers_and_holds_up_others_for_fewer(library, proxy, change):
    with proxy.counting() as said:
        CHANGES[change](library)
    assert 0 < under_lock(said) <= UNDER_LOCK
    assert len(said) <= CHANGE, said
    assert library.check_database() == []


READS = {
    "list": (lambda registry: registry.list(), 1),
    "the first page": (lambda registry: registry.list(limit=5), 1),
    "show": (lambda registry: registry.get("skill-4"), 2),
    "read": (lambda registry: registry.read("skill-4"), 1),
    "search again": (lambda registry: registry.search("number"), 2),
}
NEW_SEARCHES = {
    "words": ("does well", 2),
    "a name": ("skill-4", 2),
    "the beginning of a word": ("does numb", 2),
    "a sentence": ("which one of them does number 4 well", 2),
}


@pytest.mark.parametrize("read", READS)
def test_a_read_waits_for_few_answers(library, proxy, read):
    work, most = READS[read]
    work(library)
    with proxy.counting() as said:
        work(library)
    assert 0 < len(said) <= most, said


@pytest.mark.parametrize("search", NEW_SEARCHES)
def test_a_search_never_asked_before_waits_for_few_answers(library, proxy, search):
    query, most = NEW_SEARCHES[search]
    library.search("number")
    with proxy.counting() as said:
        found = library.search(query)
    assert found.total > 0
    assert 0 < len(said) <= most, said
    assert b"COMMIT" in said[-1]


COMMANDS = {"list": 7, "show": 8, "search": 7}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_waits_for_few_answers_from_its_connection_on(library, proxy, address, command):
    arguments = [command] if command == "list" else [command, "skill-4"]
    with proxy.counting() as said:
        ran = run(["--db", address, *arguments], environ=dict(os.environ))
    assert "skill-4" in ran.out, ran
    assert 0 < len(said) <= COMMANDS[command], said


def test_the_proxy_counts_what_is_waited_for(proxy, address):
    """Not statements: what is sent together is answered together."""
    import psycopg

    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        with proxy.counting() as said:
            for _ in range(3):
                connection.execute("SELECT 1")
        assert len(said) == 3
        with proxy.counting() as said, connection.pipeline() as pipeline:
            for _ in range(3):
                connection.execute("SELECT 1")
            pipeline.sync()
            together = proxy.round_trips
        assert len(said) >= 1
        assert together - proxy.round_trips + len(said) == 1
