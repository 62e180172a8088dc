"""Who has no right to write holds no writer up, whichever locks that role takes."""

from contextlib import ExitStack, closing

import psycopg
import pytest

from tests.conftest import write_skill
from tests.server.roles import World

pytestmark = pytest.mark.server

MODES = (
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
)
RELATIONS = (
    "SELECT relname, relkind FROM pg_class WHERE relkind IN ('r', 'v') "
    "AND relnamespace = CAST('public' AS regnamespace) ORDER BY relname"
)
NUMBERS = (0x736B7731, 0x736B7533)
"""The numbers of advisory locks that the registry took once."""


@pytest.fixture
def world(world):
    world.add("alice", "write")
    world.add("reader", "read")
    world.add("stranger")
    return world


def locks(world):
    """Yield the statements that take each lock there is, the weakest last."""
    yield from (f"SELECT pg_advisory_lock({one}, hashtext('public'))" for one in NUMBERS)
    tables = world.as_dba(RELATIONS)
    for name, kind in tables:
        if kind == "r":
            yield f"SELECT * FROM {name} FOR UPDATE"
            yield f"SELECT * FROM {name} FOR KEY SHARE"
        for mode in reversed(MODES):
            yield f"LOCK TABLE {name} IN {mode} MODE"


@pytest.mark.parametrize("who", ["stranger", "reader"])
def test_a_role_that_can_not_write_takes_every_lock_it_can_and_a_writer_still_writes(
    world, root, who
):
    write_skill(root / "alpha")
    alice = world.open("alice")
    alice.sync(str(root), name="hers")
    carol = world.open("reader")
    carol.toolset("native").call("read_skill", {"name": "alpha"})
    carol.core.usage.write()
    world.as_dba("INSERT INTO usage_days SELECT '2001-01-01', uid, 1, 1, 1 FROM usage")
    statements = list(locks(world))
    taken = []
    with ExitStack() as held:
        connection = held.enter_context(closing(psycopg.connect(world._plain(world.url(who)))))
        for one in statements:
            try:
                with connection.transaction():
                    connection.execute("SET LOCAL lock_timeout = '1s'")
                    connection.execute(one)
            except psycopg.errors.InsufficientPrivilege:
                continue
            taken.append(one)
        # One transaction that holds all of them at once.
        with connection.transaction():
            for one in taken:
                connection.execute(one)
            write_skill(root / "beta")
            assert alice.sync().added == ("beta",)
            alice.update("alpha", body="# Second\n")
            alice.delete("beta")
            alice.prune(keep=0)
            alice.update_source("hers", priority=2)
    assert len(taken) >= len(NUMBERS)
    assert bool([one for one in taken if "skills IN ACCESS SHARE" in one]) == (who == "reader")
    assert alice.read("alpha").endswith("# Second\n")


def test_a_role_without_rights_holds_no_upgrade_up(world, databases):
    from registry.db.postgres.dialect import parse_url
    from registry.db.postgres.writer import ensure_current

    url = databases.empty()
    plain = World._plain(url)
    with closing(psycopg.connect(plain, autocommit=True)) as connection:
        connection.execute(f"SET SESSION AUTHORIZATION {world.name('stranger')}")
        for one in NUMBERS:
            connection.execute(f"SELECT pg_advisory_lock({one}, hashtext('public'))")
        ensure_current(parse_url(url))
    databases.drop(url)


def test_two_that_make_a_new_schema_at_the_same_time_wait_for_each_other(databases):
    from concurrent.futures import ThreadPoolExecutor

    from registry.db.postgres.dialect import parse_url
    from registry.db.postgres.writer import ensure_current

    url = databases.empty()
    with (
        closing(psycopg.connect(World._plain(url))) as first,
        closing(psycopg.connect(World._plain(url), autocommit=True)) as looking,
        ThreadPoolExecutor(1) as pool,
    ):
        first.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
            "AND datname = current_database()"
        )
        second = pool.submit(ensure_current, parse_url(url))
        while looking.execute(waiting).fetchone() == (0,):
            assert not second.done(), second.result()
        first.commit()
        second.result()
        assert looking.execute("SELECT count(*) FROM sources").fetchone() == (0,)
    databases.drop(url)
