"""Behind PgBouncer, which lends its connections for a session or for a transaction."""

import os
import signal
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import make_url

from benchmarks.proxy import Proxy
from registry.api import SkillRegistry
from registry.db.postgres import lock as leases
from registry.db.postgres.dialect import translate
from registry.db.postgres.session import Session
from registry.errors import DatabaseUnreachable, SyncRunning
from registry.settings import Settings
from tests.conftest import REPOSITORY, write_skill
from tests.pooler import Pooler, program

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(
        program() is None, reason="there is no pgbouncer: apt-get install pgbouncer"
    ),
]

MODES = ("session", "transaction")


both_modes = pytest.mark.parametrize("pooler", MODES, indirect=True)


@pytest.fixture
def pooler(request, databases):
    """One that lends its connections for a transaction, unless a test asks for more."""
    pooler = Pooler(databases.server, getattr(request, "param", "transaction"))
    yield pooler
    pooler.stop()


@pytest.fixture
def narrow(databases):
    """One connection for all, lent for a transaction."""
    pooler = Pooler(databases.server, "transaction", size=1)
    yield pooler
    pooler.stop()


@pytest.fixture
def address(server_database, pooler):  # which goes first, and nobody is in the database
    return pooler.address(server_database)


@pytest.fixture
def library(address, root):
    for name in ("alpha", "beta"):
        write_skill(root / name)
    with SkillRegistry.open(address, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        yield registry


@both_modes
def test_all_that_a_server_is_used_for_works_behind_a_pooler(library, root):
    assert library.list().total == 2
    assert [hit.ref for hit in library.search("alpha")] == ["alpha"]
    library.create("gamma", description="New.")
    library.update("alpha", description="Other.")
    library.delete("beta")
    write_skill(root / "delta")
    assert library.sync().added == ("delta",)
    with library.core.reader.snapshot():
        before = library.list().total
        library.create("epsilon", description="Not seen yet.")
        assert library.list().total == before == 3
    assert [skill.name for skill in library.list()] == ["alpha", "delta", "epsilon", "gamma"]
    assert library.check_database() == []


WAITING = """
import sys
from registry import Settings, SkillRegistry
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    print("ready", flush=True)
    print(registry.sync(wait=True).added)
"""


@both_modes
def test_two_publishers_exclude_each_other_and_the_second_waits(library, address, root):
    with SkillRegistry.open(address, settings=Settings()) as twin:
        with library.core.backend.sync_lock() as lock:
            assert lock.acquire(0)
            with pytest.raises(SyncRunning, match=f"process {os.getpid()} on "):
                twin.sync()
            waiting = subprocess.Popen(
                [sys.executable, "-c", WAITING, address],
                stdout=subprocess.PIPE,
                text=True,
                cwd=REPOSITORY,
            )
            assert waiting.stdout.readline() == "ready\n"
            write_skill(root / "gamma")
        printed, _ = waiting.communicate(timeout=60)
        assert printed == "('gamma',)\n"


STOPPED = """
import os, signal, sys
from registry import Settings, SkillRegistry
from registry.sync import apply
real = apply.FUNCTION
def stop(*given):
    os.kill(os.getpid(), signal.SIGNAL)
    return real(*given)
apply.FUNCTION = stop
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    registry.sync()
"""


def stopped(address, function, how):
    """Return a publisher that is stopped, or killed, when a sync comes to a function."""
    script = STOPPED.replace("FUNCTION", function).replace("SIGNAL", how)
    return subprocess.Popen(
        [sys.executable, "-c", script, address], stderr=subprocess.PIPE, cwd=REPOSITORY
    )


def test_a_killed_publisher_holds_nobody_up(library, address, root):
    write_skill(root / "gamma")
    client = stopped(address, "publish", "SIGKILL")
    client.communicate(timeout=60)
    assert client.returncode == -signal.SIGKILL
    assert library.core.reader.rows("SELECT count(*) FROM leases") == [(1,)]
    assert library.sync().added == ("gamma",)
    assert library.core.reader.rows("SELECT count(*) FROM leases") == [(0,)]
    assert library.check_database() == []


def test_who_stood_still_until_another_took_the_lease_publishes_nothing(library, address, root):
    write_skill(root / "gamma", description="As the first one saw it.")
    client = stopped(address, "_touch", "SIGSTOP")
    try:
        _, status = os.waitpid(client.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        with pytest.raises(SyncRunning, match=f"process {client.pid} on "):
            library.sync()
        with library.core.writer.transaction() as connection:  # the time goes by
            connection.exec_driver_sql("UPDATE leases SET until = now()")
        write_skill(root / "gamma", description="As it is.")
        assert library.sync().added == ("gamma",)
    finally:
        os.kill(client.pid, signal.SIGCONT)
    _, errors = client.communicate(timeout=60)
    assert client.returncode == 1
    assert b"the lock of this sync was lost" in errors
    assert library.get("gamma").description == "As it is."
    assert library.check_database() == []


def test_a_lease_that_could_not_be_given_back_keeps_its_own_process_out_of_nothing(library, pooler):
    with library.core.backend.sync_lock() as lock:
        assert lock.acquire(0)
        pooler.kill()
    pooler.start()
    assert library.core.reader.rows("SELECT count(*) FROM leases") == [(1,)]
    assert library.sync().unchanged == 2
    assert library.core.reader.rows("SELECT count(*) FROM leases") == [(0,)]


def test_a_lease_whose_taking_was_never_answered_keeps_its_own_process_out_of_nothing(
    library, monkeypatch
):
    real = Session.ask

    def lose_the_answer(session, questions):
        answers = real(session, questions)
        if "INSERT INTO leases" in questions[-1][0]:
            assert answers[-1] == [(1,)]
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return answers

    with monkeypatch.context() as patch:
        patch.setattr(Session, "ask", lose_the_answer)
        with pytest.raises(DatabaseUnreachable):
            library.sync()
    assert library.core.reader.rows("SELECT count(*) FROM leases") == [(1,)]
    assert library.sync().unchanged == 2
    assert library.core.reader.rows("SELECT count(*) FROM leases") == [(0,)]


def test_a_lease_is_renewed_while_the_sync_runs(server_database, root, monkeypatch):
    monkeypatch.setattr(leases, "RENEWALS", 1000)
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        registry.create_database()
        asked = "SELECT until FROM leases"
        with registry.core.backend.sync_lock() as lock:
            assert lock.acquire(0)
            first = until = registry.core.reader.rows(asked)
            while until == first:
                until = registry.core.reader.rows(asked)
            assert until > first


def test_a_lease_that_another_took_in_the_moment_of_publishing_waits_for_that(
    server_database, root
):
    """Who publishes has the row; who wants it then is told that another runs."""
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        registry.create_database()
        with registry.core.backend.sync_lock() as lock, registry.core.backend.sync_lock() as late:
            assert lock.acquire(0)
            with registry.core.writer.transaction() as connection:
                lock.assert_held(connection)
                connection.exec_driver_sql("UPDATE leases SET until = now() RETURNING 1")
                assert late.acquire(0) is False
            assert late.acquire(5)
            with (
                pytest.raises(DatabaseUnreachable, match="lock of this sync was lost"),
                registry.core.writer.transaction() as connection,
            ):
                lock.assert_held(connection)


def test_a_pooler_that_lost_its_server_is_no_other_than_a_lost_server():
    """It says so as an error of the protocol, having no better one; who hears it is chance."""
    said = psycopg.errors.ProtocolViolation("server conn crashed?")
    told = translate(said, "postgresql+psycopg://db/skills", 0)
    assert isinstance(told, DatabaseUnreachable)
    assert "Try again" in str(told)


def test_a_read_waits_for_a_server_behind_a_pooler_no_more_often_than_for_one_connection(
    server_database, monkeypatch
):
    """Each wait may take minutes, and one by a new connection says it all."""
    proxy = Proxy("127.0.0.1", make_url(server_database).port)
    there = make_url(server_database).set(port=proxy.port)
    pooler = Pooler(there, "transaction", more="query_wait_timeout = 1")
    real, opened = Session.open, []
    try:
        with SkillRegistry.open(pooler.address(server_database), settings=Settings()) as registry:
            assert registry.list().total == 0
            proxy.close()
            monkeypatch.setattr(
                Session, "open", lambda *given: opened.append(given) or real(*given)
            )
            with pytest.raises(DatabaseUnreachable):
                registry.list()
            assert len(opened) == 1
    finally:
        pooler.stop()
        proxy.close()


LEFT = """
SELECT current_setting('enable_seqscan'), current_setting('jit'), current_setting('lock_timeout'),
  current_setting('transaction_read_only'), current_setting('search_path'),
  current_setting('idle_in_transaction_session_timeout'),
  (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
  (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors),
  pg_backend_pid()
"""


def test_nothing_of_ours_is_left_for_the_next_client_of_a_connection(server_database, narrow, root):
    address = narrow.address(server_database)

    def ask():
        with closing(psycopg.connect(address.replace("+psycopg", ""), autocommit=True)) as other:
            return other.execute(LEFT).fetchone()

    first = ask()
    write_skill(root / "alpha")
    with SkillRegistry.open(
        f"{address}?options=-csearch_path%3Dpublic", settings=Settings(usage=True)
    ) as registry:
        assert registry.core.reader.rows("SHOW enable_seqscan") == [("off",)]
        assert registry.core.reader.rows("SHOW search_path") == [("public",)]
        with registry.core.reader.snapshot():
            assert registry.core.reader.rows("SHOW transaction_read_only") == [("on",)]
        assert ask() == first
        work = (
            lambda: registry.sync(str(root), name="mine"),
            registry.list,
            lambda: registry.search("alpha"),
            lambda: list(registry.iter()),
            lambda: registry.create("beta", description="New."),
            lambda: registry.toolset("native").call("read_skill", {"name": "alpha"}),
            registry.core.usage.write,
            lambda: registry.delete("beta"),
        )
        for one in work:
            one()
            assert ask() == first
    assert ask() == first


def test_a_search_path_in_the_address_chooses_the_schema_behind_a_pooler(
    server_database, narrow, root
):
    with psycopg.connect(server_database.replace("+psycopg", ""), autocommit=True) as other:
        other.execute("CREATE SCHEMA team_a")
    write_skill(root / "alpha")
    place = narrow.address(server_database)
    with SkillRegistry.open(
        f"{place}?options=-csearch_path%3Dteam_a", settings=Settings()
    ) as registry:
        registry.sync(str(root), name="mine")
        registry.core.writer.update_statistics()
        assert registry.list().total == 1
    with SkillRegistry.open(place, settings=Settings()) as registry:
        assert registry.list().total == 0
