"""Connections that end in the middle of something: told in words, and got over."""

import threading
import time

import pytest

from registry.api import SkillRegistry
from registry.db.postgres.session import Session
from registry.errors import DatabaseUnreachable
from registry.settings import Settings
from tests.conftest import write_skill
from tests.server.test_server import driver, end_connections

pytestmark = pytest.mark.server


def until_ended(url, application):
    """Return when the server has ended the connections that call themselves so."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    with driver(url) as connection:
        while connection.execute(query, (application,)).fetchone() != (0,):
            time.sleep(0.02)


@pytest.fixture
def filled(registry, root):
    write_skill(root / "alpha")
    registry.sync(str(root), name="mine")
    return registry


def test_each_read_of_a_snapshot_whose_connection_was_lost_is_told_and_the_next_works(
    filled, server_database
):
    with filled.core.reader.snapshot():
        assert filled.list().total == 1
        end_connections(server_database)
        for _ in range(2):
            with pytest.raises(DatabaseUnreachable):
                filled.list()
    assert filled.list().total == 1
    with filled.core.reader.snapshot():
        assert filled.list().total == 1


def test_a_connection_lost_after_the_last_read_of_a_snapshot_harms_nobody(filled, server_database):
    with filled.core.reader.snapshot():
        assert filled.list().total == 1
        end_connections(server_database)
    assert filled.list().total == 1


def test_a_new_connection_that_the_server_ends_at_once_is_told_to_who_writes(
    filled, server_database, monkeypatch
):
    """As one does that is about to stop, or a pooler that has lost its server."""
    real, opened = Session.open, []

    def end_at_once(*given):
        opened.append(real(*given))
        end_connections(server_database)
        return opened[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Session, "open", end_at_once)
        end_connections(server_database)
        with pytest.raises(DatabaseUnreachable), filled.core.writer.transaction() as connection:
            connection.exec_driver_sql("SELECT 1")
    assert len(opened) == 1
    filled.create("beta", description="Made by a connection that lasts.")
    assert filled.list().total == 2


def test_the_callers_own_error_is_not_hidden_by_a_lost_connection(filled, server_database):
    def fail():
        with filled.core.reader.snapshot():
            end_connections(server_database)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert filled.list().total == 1


def test_a_snapshot_that_the_server_ended_for_idleness_is_told(filled, server_database):
    url = f"{server_database}?application_name=idler&options=-cidle_in_transaction_session_timeout%3D100"
    with SkillRegistry.open(url, settings=Settings()) as other:
        with other.core.reader.snapshot():
            assert other.list().total == 1
            until_ended(server_database, "idler")
            with pytest.raises(DatabaseUnreachable):
                other.list()
        assert other.list().total == 1


def test_a_connection_that_the_server_ended_for_idleness_is_replaced(filled, server_database):
    url = f"{server_database}?application_name=idler&options=-cidle_session_timeout%3D100"
    with SkillRegistry.open(url, settings=Settings()) as other:
        assert other.list().total == 1
        until_ended(server_database, "idler")
        assert other.list().total == 1


def test_many_ended_connections_are_replaced_at_the_first_read(filled, server_database):
    together = threading.Barrier(4)

    def read():
        with filled.core.reader.snapshot():
            filled.list()
            together.wait(30)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end_connections(server_database)
    assert filled.list().total == 1
    end_connections(server_database)
    with filled.core.reader.snapshot():
        assert filled.list().total == 1
