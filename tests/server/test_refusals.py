"""What a server says that lets nobody in: each cause has its own sentence and its own way out."""

from contextlib import ExitStack, suppress
from threading import Thread
from time import monotonic, sleep

import psycopg
import pytest
from click.testing import CliRunner
from sqlalchemy import make_url

from registry.api import SkillRegistry
from registry.cli.app import root as program
from registry.db.postgres import reader as postgres_reader
from registry.errors import ServerFull
from tests.servers import Server

pytestmark = pytest.mark.server

ADMITS = "host all locked all scram-sha-256\nhost all rejected all reject\n"


def wait_until(ask):
    """Ask until the answer is true: a server ends a closed connection's process a moment later."""
    deadline = monotonic() + 60
    while not ask():
        assert monotonic() < deadline
        sleep(0.01)


def connected(url, held):
    """Tell whether the server had a connection for us, which is then held."""
    with suppress(psycopg.OperationalError):
        held.enter_context(psycopg.connect(url))
        return True
    return False


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
            connection.execute("CREATE ROLE many LOGIN CONNECTION LIMIT 0")
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
        (
            {"username": "many"},
            "has no free connection: the role 'many' has used up its own limit",
            "Try again later",
        ),
        ({"port": 1}, "nothing listens on 127.0.0.1, port 1", "Try again"),
        ({"host": "nowhere.invalid"}, "no host named 'nowhere.invalid' is known", "Try again"),
        (
            {"host": None, "query": {"host": "/nowhere"}},
            "no server runs here: there is no /nowhere/",
            "Try again",
        ),
    ],
    ids="database role password no-password hba nologin privilege limit port host socket".split(),
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


def test_a_server_that_is_full_says_so_and_serves_again_when_a_connection_is_free():
    server = Server(options=["max_connections=5", "superuser_reserved_connections=1"])
    try:
        server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE ROLE plain LOGIN SUPERUSER")
            SkillRegistry.open(server.url.replace("tests@", "plain@")).close()
            connection.execute("ALTER ROLE plain NOSUPERUSER")
        url = make_url(server.url).set(username="plain").render_as_string(hide_password=False)
        with ExitStack() as held:
            for _ in range(4):  # the fifth is reserved
                wait_until(lambda: connected(url, held))
            ran = CliRunner().invoke(program, ["--db", url, "list"])
            assert (ran.exit_code, ran.stdout) == (3, "")
            assert "has no free connection: all that max_connections allows are" in ran.stderr
            with pytest.raises(ServerFull), SkillRegistry.open(url):
                pass
        wait_until(lambda: CliRunner().invoke(program, ["--db", url, "list"]).exit_code == 0)
    finally:
        server.stop()


@pytest.mark.parametrize("given", ["address", "environment"])
def test_a_service_is_named_in_messages(databases, tmp_path, monkeypatch, given):
    url = make_url(databases.new())
    lines = f"[skills]\nhost={url.host}\nport={url.port}\ndbname={url.database}\nuser=tests\n"
    (tmp_path / "services").write_text(lines)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    address = "postgresql://"
    if given == "address":
        address += "?service=skills"
    else:
        monkeypatch.setenv("PGSERVICE", "skills")
    with SkillRegistry.open(address) as registry:
        info = registry.database_info()
        assert info.path == "postgresql+psycopg://?service=skills"
        assert info.server_version


def test_connections_that_are_not_needed_any_more_are_closed(databases, monkeypatch):
    with SkillRegistry.open(databases.new()) as registry:
        reader = registry.core.backend.reader
        others = [Thread(target=registry.list) for _ in range(4)]
        with reader.snapshot():
            registry.list()
            for one in others:
                one.start()
            for one in others:
                one.join()
        count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        before = reader.rows(count)[0][0]
        monkeypatch.setattr(postgres_reader, "IDLE_SECONDS", 0)
        reader.rows("SELECT 1")
        assert len(reader._open) == 1
        wait_until(lambda: reader.rows(count)[0][0] < before)
