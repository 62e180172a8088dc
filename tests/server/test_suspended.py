"""A client that stands still in the middle of a change: others go on, and so does it later."""

import os
import signal
import subprocess
import sys

import psycopg
import pytest

from registry.api import SkillRegistry
from registry.db.postgres import session
from registry.settings import Settings
from tests.conftest import REPOSITORY, write_skill

pytestmark = pytest.mark.server

# It stops itself where it holds the lock of all writers: the server has answered, and what comes
# next is its to say.
STOPPED = """
import os, signal, sys
from registry import Settings, SkillRegistry
from registry.changes import finish
from registry.db.postgres import session
session.WRITING["idle_in_transaction_session_timeout"] = "500ms"
real, stopped = finish.replace_version, []
def put_in_place(*given):
    if not stopped:
        stopped.append(True)
        os.kill(os.getpid(), signal.SIGSTOP)
    return real(*given)
finish.replace_version = put_in_place
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    registry.create("slow", description="Made by who stood still.")
    assert stopped
    print(registry.resolve("slow").description)
"""


def test_a_suspended_writer_holds_others_up_for_a_moment_and_ends_its_change_when_it_wakes(
    server_database, root
):
    write_skill(root / "alpha")
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        other = root.with_name("others")
        write_skill(other / "beta")
        client = subprocess.Popen(
            [sys.executable, "-c", STOPPED, server_database],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
        )
        try:
            _, status = os.waitpid(client.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            with psycopg.connect(server_database.replace("+psycopg", "")) as looking:
                held = looking.execute(
                    "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE "
                    "l.relation = CAST('data_version' AS regclass) AND l.mode = 'ExclusiveLock' "
                    "AND l.granted AND a.state = 'idle in transaction'"
                ).fetchone()
            registry.sync(str(other), name="theirs")  # which waits until the server ends the other
            assert registry.resolve("beta").ref == "beta"
        finally:
            os.kill(client.pid, signal.SIGCONT)
        printed, errors = client.communicate(timeout=60)
        assert (client.returncode, printed) == (0, b"Made by who stood still.\n"), errors
        assert held == (1,)
        assert (root / "slow" / "SKILL.md").exists()
        assert registry.resolve("slow").ref == "slow"
        assert registry.check_database() == []


def test_a_transaction_that_does_nothing_is_ended_sooner_than_others_give_up(registry, root):
    from registry.db import interface

    write_skill(root / "alpha")
    registry.sync(str(root), name="mine")
    assert session.IDLE_SECONDS < interface.WRITE_SECONDS
    with registry.core.writer.transaction() as connection:
        shown = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
    assert shown == f"{session.IDLE_SECONDS}s"


def test_a_transaction_that_nobody_waits_for_may_stand_still_for_longer(registry, root):
    write_skill(root / "alpha")
    registry.sync(str(root), name="mine")
    with registry.core.writer.transaction(quiet=True) as connection:
        shown = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
    assert shown == "2min"
