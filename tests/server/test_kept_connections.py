"""Connections that outlast a test: the next one is given what is as good as new, and nothing else."""

import psycopg
import pytest

from registry.db.postgres.dialect import parse_url
from registry.db.postgres.session import READING, WRITING, Session

pytestmark = pytest.mark.server


@pytest.fixture
def connect(server_database):
    def open_(settings=READING, more=""):
        return Session.open(parse_url(server_database + more), settings)

    return open_


def process(session):
    return session.ask([("SELECT pg_backend_pid()", None)])[0][0][0]


def test_what_is_closed_is_closed_for_who_had_it_and_kept_for_the_next(connect):
    first = connect()
    served = process(first)
    first.close()
    assert first.closed
    with pytest.raises(psycopg.OperationalError):
        process(first)
    second = connect(WRITING)
    assert process(second) == served
    # It is told what its own transactions depend on, not what those of the first did.
    asked = "SELECT current_setting('transaction_read_only')"
    assert second.ask([(asked, None)]) == [[("off",)]]
    other = connect()
    assert process(other) != served
    for session in (other, second):
        session.close()


def test_what_was_ended_or_is_amid_a_transaction_is_not_kept(connect):
    ended, amid, killer = connect(), connect(), connect()
    amid.ask([("BEGIN", None)])
    gone = {process(ended), process(amid)}
    killer.ask([(f"SELECT pg_terminate_backend({process(ended)}, 5000)", None)])
    for session in (ended, amid, killer):
        session.close()
    three = [connect() for _ in range(3)]
    assert not gone & {process(one) for one in three}
    for session in three:
        session.close()


def test_what_has_options_of_its_own_or_belongs_to_a_test_of_connections_ends(connect, databases):
    def after(more=""):
        session = connect(more=more)
        served = process(session)
        session.close()
        return served

    kept = after()
    assert after() == kept
    named = after("?application_name=other")
    assert named not in {kept, after("?application_name=other")}
    with databases.connections.unused():
        new = after()
    assert new not in {kept, named}
    assert after() == kept
