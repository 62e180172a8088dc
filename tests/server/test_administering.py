"""What the page for administrators says works as it stands."""

import re
import shlex

import psycopg
import pytest
from click.testing import CliRunner
from sqlalchemy import make_url

from registry.cli.app import root as program
from tests.conftest import REPOSITORY, write_skill

pytestmark = pytest.mark.server

PAGE = (REPOSITORY / "docs/how-to/run-the-database-server.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def commands(word):
    (block,) = [one for one in blocks("sh") if word in one]
    return [shlex.split(line)[1:] for line in block.splitlines()]


def call(url, arguments):
    ran = CliRunner().invoke(program, [*(["--db", url] if url else []), *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_a_service_file_is_enough(server_database, tmp_path, monkeypatch):
    url = make_url(server_database)
    (service,) = blocks("ini")
    here = service.replace("host=db", f"host={url.host}\nport={url.port}")
    here = here.replace("dbname=skills", f"dbname={url.database}").replace("user=ada", "user=tests")
    (tmp_path / "services").write_text(re.sub("(?m)^ssl.*\n", "", here))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    (arguments,) = commands("?service=skills")
    call(None, arguments)


def test_a_monitor_sees_what_it_asks_for(world, tmp_path):
    write_skill(tmp_path / "skills" / "one")
    world.open("owner").sync(str(tmp_path / "skills"), name="one")
    (block,) = [one for one in blocks("sql") if "pg_stat_activity" in one]
    with psycopg.connect(
        make_url(world.url("owner"))
        .set(drivername="postgresql")
        .render_as_string(hide_password=False)
    ) as line:
        sessions, tables, leases = (
            line.execute(one).fetchall() for one in block.strip().split(";")[:3]
        )
    assert sessions[0][0] >= 1
    assert "skills" in {row[0] for row in tables}
    assert leases == []


def test_a_person_is_removed_and_the_skills_stay(world, tmp_path):
    for role in ("alice", "bob"):
        world.add(role, "write")
    world.add("ada", "admin")
    write_skill(tmp_path / "skills" / "one")
    world.open("alice").sync(str(tmp_path / "skills"), name="alices")
    for arguments in commands("db revoke"):
        names = {role: world.name(role) for role in ("alice", "bob")}
        call(world.url("ada"), [names.get(one, one) for one in arguments])
    (drop,) = [one for one in blocks("sql") if "DROP ROLE" in one]
    world.as_dba(drop.replace("alice", world.name("alice")))
    bob = world.open("bob")
    assert {(one.name, one.owner) for one in bob.sources()} == {("alices", world.name("bob"))}
    assert bob.get("one").name == "one"
    world.as_dba(f"CREATE ROLE {world.name('alice')}")  # as it was for the end of the test


def test_a_source_of_a_machine_that_is_gone_is_removed_and_a_backup_is_made(
    world, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    world.add("alice", "write")
    world.add("ada", "admin")
    write_skill(tmp_path / "skills" / "one")
    world.open("alice").sync(str(tmp_path / "skills"), name="work")
    (backup,) = commands("db backup")
    call(world.url("ada"), [one.replace("~", str(tmp_path)) for one in backup])
    assert (tmp_path / "skills-backup.db").exists()
    (remove,) = commands("source remove")
    call(world.url("ada"), remove)
    assert not world.open("ada").sources()
