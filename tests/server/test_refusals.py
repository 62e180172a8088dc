"""What a server says that lets nobody in: each cause has its own sentence and its own way out."""

import psycopg
import pytest
from click.testing import CliRunner
from sqlalchemy import make_url

from registry.api import SkillRegistry
from registry.cli.app import root as program
from tests.servers import Server

pytestmark = pytest.mark.server

ADMITS = "host all locked all scram-sha-256\nhost all rejected all reject\n"


@pytest.fixture(scope="module")
def guarded():
    """A server with a user who has a password, and one whom it admits from nowhere."""
    server = Server()
    try:
        rules = server.data / "pg_hba.conf"
        rules.write_text(ADMITS + rules.read_text())
        server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
            connection.execute("CREATE ROLE plain LOGIN")
            connection.execute("CREATE ROLE closed NOLOGIN")
            connection.execute("CREATE DATABASE private")
            connection.execute("REVOKE CONNECT ON DATABASE private FROM public")
        yield make_url(server.url)
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("address", "words", "next_step"),
    [
        ({"database": "skills"}, "has no database 'skills'", "createdb skills"),
        ({"username": "stranger"}, "its server knows no user 'stranger'", "createuser stranger"),
        (
            {"username": "locked", "password": "wrong"},
            "does not take this password for the user 'locked'",
            "PGPASSWORD",
        ),
        ({"username": "locked"}, "asks for a password, and none was given", "PGPASSWORD"),
        ({"username": "rejected"}, "admits no user 'rejected' from this machine", ""),
        ({"username": "closed"}, "can't be used: its server lets the role 'closed' not log in", ""),
        (
            {"username": "plain", "database": "private"},
            "may not connect to the database 'private'",
            "",
        ),
        ({"port": 1}, "nothing listens on 127.0.0.1, port 1", "Try again"),
        ({"host": "nowhere.invalid"}, "no host named 'nowhere.invalid' is known", "Try again"),
        (
            {"host": None, "query": {"host": "/nowhere"}},
            "no server runs here: there is no /nowhere/",
            "Try again",
        ),
    ],
    ids="database role password no-password hba nologin privilege port host socket".split(),
)
def test_each_way_to_be_turned_away_has_its_own_sentence(guarded, address, words, next_step):
    url = guarded.set(drivername="postgresql", **address).render_as_string(hide_password=False)
    ran = CliRunner().invoke(program, ["--db", url, "list"])
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert words in ran.stderr
    assert next_step in ran.stderr
    assert "wrong" not in ran.stderr


def test_a_server_that_only_reads_says_so_of_a_change(databases):
    """As a replica does, whose error is the same."""
    url = databases.new()
    SkillRegistry.open(url).close()
    url += "?options=-cdefault_transaction_read_only%3Don"
    ran = CliRunner().invoke(program, ["--db", url, "token", "create", "ci", "--read"])
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert "can't be written: its server only reads, as a replica does" in ran.stderr
    assert CliRunner().invoke(program, ["--db", url, "list"]).exit_code == 0
