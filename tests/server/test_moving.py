"""Moving to a server, and to another address of it: the commands on the pages work as they stand."""

import json
import os
import re
import subprocess
import sysconfig
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import make_url

from benchmarks.proxy import Proxy
from registry.api import SkillRegistry
from registry.db.adopted import adopt_copied
from registry.db.copy import copy
from registry.db.open import open_backend
from registry.errors import SourceNotAdopted
from registry.settings import Settings
from tests.conftest import REPOSITORY, write_skill
from tests.program import run
from tests.servers import Server, programs

pytestmark = pytest.mark.server


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Somebody's home, with two sources in a file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("mine", "work"):
        write_skill(tmp_path / name / f"{name}-skill")
        assert call(tmp_path / "skills.db", "sync", str(tmp_path / name)).status == 0
    return tmp_path


@pytest.fixture
def target(databases):
    """The address of a database without a schema."""
    url = databases.empty()
    yield url
    databases.drop(url)


def call(database, *arguments, **more):
    environ = {**os.environ, "SKILL_REGISTRY_HOST": "laptop", **more}
    return run(["--db", str(database), *arguments], environ=environ)


def test_the_first_sync_after_a_copy_to_a_server_works(home, target):
    ran = run(["db", "copy", str(home / "skills.db"), target], environ=laptop())
    assert ran.status == 0
    assert f"Adopted for the next sync: mine ({home}/mine), work ({home}/work)." in ran.err
    assert "\nexport SKILL_REGISTRY_DB=" in ran.err
    write_skill(home / "mine" / "later")
    ran = call(target, "sync")
    assert (ran.status, ran.err) == (0, "")
    assert "+ later" in ran.out
    assert call(target, "update", "later", "--description", "New.").status == 0


def laptop():
    return {**os.environ, "SKILL_REGISTRY_HOST": "laptop"}


def test_a_copy_says_first_whose_the_tables_will_be_and_are(home, target, databases):
    user = make_url(target).username
    ran = run(["db", "copy", str(home / "skills.db"), target, "--json"], environ=laptop())
    assert f"The tables will belong to the role {user};" in ran.err
    assert json.loads(ran.out)["sources"] == 2
    ran = run(["db", "copy", str(home / "skills.db"), target], environ=laptop())
    assert (ran.status, "holds a registry already" in ran.err) == (2, True)
    assert f"The tables belong to the role {user};" in ran.err


def test_the_tables_belong_to_the_group_that_an_admin_made_them_as(home, world):
    ada = world.add("ada", "admin")
    url, owner = world.url("ada"), world.name("owner")
    ran = run(["db", "copy", str(home / "skills.db"), url], environ=laptop())
    assert f"The tables belong to the role {owner};" in ran.err
    assert call(url, "sync").status == 0
    assert {one.owner for one in world.open("ada").sources()} == {ada}


def test_sources_of_another_role_are_named_with_the_command_for_an_admin(home, target, world):
    """As in a backup of a server that another role filled."""
    world.add("alice", "write")
    run(["db", "copy", str(home / "skills.db"), target], environ=laptop())
    with closing(psycopg.connect(target.replace("+psycopg", ""), autocommit=True)) as line:
        for name, role in (("mine", "owner"), ("work", "alice")):
            line.execute(f"UPDATE sources SET owner = '{world.name(role)}' WHERE name = '{name}'")
    assert call(target, "db", "backup", str(home / "backup.db")).status == 0
    ran = run(["db", "copy", str(home / "backup.db"), world.url("owner")], environ=laptop())
    assert "Adopted for the next sync: mine (" in ran.err
    adopt = "skill-registry source adopt work --as-admin"
    assert f"Not synced: work, owned by the role {world.name('alice')}." in ran.err
    assert adopt in ran.err
    ran = call(world.url("owner"), "sync")
    assert adopt in ran.err
    assert call(world.url("owner"), *adopt.split()[1:], "--yes").status == 0
    assert call(world.url("owner"), "sync").err == ""


def test_between_servers_only_what_was_adopted_here_is_adopted_there(
    home, target, server_database, monkeypatch
):
    settings = Settings(host="laptop")
    with SkillRegistry.open(server_database, settings=settings) as registry:
        registry.add_source(str(home / "mine"), name="mine")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "of-a-stranger"))
    with SkillRegistry.open(server_database, settings=settings) as registry:
        registry.add_source(str(home / "work"), name="work")
    monkeypatch.delenv("XDG_DATA_HOME")
    with (
        closing(open_backend(server_database, settings)) as before,
        closing(open_backend(target, settings)) as after,
    ):
        copy(before, after)
        assert [one.name for one in adopt_copied(before, after)] == ["mine"]
    with SkillRegistry.open(target, settings=settings) as registry:
        assert [one.name for one in registry.own_sources()] == ["mine"]


def test_the_sources_of_a_file_that_others_may_write_are_not_adopted(home, target):
    os.chmod(home / "skills.db", 0o666)
    ran = run(["db", "copy", str(home / "skills.db"), target], environ=laptop())
    assert (ran.status, "Adopted" in ran.err) == (0, False)
    ran = call(target, "sync")
    assert (ran.status, "source adopt mine" in ran.err) == (1, True)


def test_a_copy_to_a_file_adopts_nothing_and_says_how_to_use_it(home):
    copy = home / "copy.db"
    ran = run(["db", "copy", str(home / "skills.db"), str(copy)], environ=laptop())
    assert ran.status == 0
    told = "Commands still use the database that they used before. To make them use the copy, "
    way = f"export SKILL_REGISTRY_DB={copy}"
    where = "write this into your shell's profile, for example ~/.profile:"
    assert ran.err == f"{told}{where}\n{way}\n"
    assert call(home / "copy.db", "sync").status == 0


def other_addresses(url):
    """Yield other addresses of a database: another name of the machine, and a pooler's."""
    yield make_url(url).set(host="localhost").render_as_string(hide_password=False)
    with closing(Proxy(make_url(url).host, make_url(url).port)) as proxy:
        yield make_url(url).set(port=proxy.port).render_as_string(hide_password=False)


@pytest.mark.parametrize("which", ["another name", "a pooler"])
def test_at_another_address_the_command_that_is_printed_helps(home, target, which):
    run(["db", "copy", str(home / "skills.db"), target], environ=laptop())
    addresses = other_addresses(target)
    moved = next(addresses)
    if which == "a pooler":
        moved = next(addresses)
    ran = call(moved, "sync")
    assert ran.status == 1
    assert (
        f"Not synced: mine and work. You added them when the registry's address was {target}"
        in ran.err
    )
    assert f"now it is {moved}." in ran.err
    assert "added elsewhere" not in ran.err
    (told,) = re.findall(r"run: skill-registry (source adopt .*)$", ran.err, re.MULTILINE)
    with (
        SkillRegistry.open(moved, settings=Settings(host="laptop")) as registry,
        pytest.raises(SourceNotAdopted, match="You added it when the address"),
    ):
        registry.sync("mine")
    ran = call(moved, "create", "new", "--description", "x", "--source", "mine")
    assert "skill-registry source adopt mine" in ran.err
    assert call(moved, *told.split(), "--yes").out.splitlines() == [
        f"Adopted the source mine (personal): {home}/mine",
        f"Adopted the source work (personal): {home}/work",
    ]
    write_skill(home / "mine" / "later")
    ran = call(moved, "sync")
    assert (ran.status, ran.err, "+ later" in ran.out) == (0, "", True)
    assert call(target, "sync").err == ""  # the former address holds still
    addresses.close()


def test_several_sources_are_adopted_all_or_none(home, target):
    run(["db", "copy", str(home / "skills.db"), target], environ=laptop())
    moved = next(other_addresses(target))
    assert call(moved, "source", "adopt", "mine", "nowhere", "--yes").status == 1
    assert "mine and work" in call(moved, "sync").err
    assert call(moved, "source", "adopt", "mine", "work").err.endswith(
        "Error: Not a terminal; pass --yes to confirm.\n"
    )
    found = call(moved, "source", "adopt", "mine", "work", "--yes", "--json")
    assert [one["name"] for one in json.loads(found.out)] == ["mine", "work"]


def test_a_strangers_source_is_not_taken_for_one_of_a_former_address(home, target):
    """The same folder was never added here, by whatever address."""
    run(["db", "copy", str(home / "skills.db"), target], environ=laptop())
    write_skill(home / "private" / "diary")
    call(target, "source", "add", str(home / "private"), XDG_DATA_HOME=str(home / "stranger"))
    ran = call(target, "sync")
    assert "private: not synced, because another user or machine added it" in ran.err
    assert "Not synced" not in ran.err


@pytest.fixture(scope="module")
def named_server():
    """A server that this machine finds by whatever name a page has for it."""
    server = Server()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture
def shell(named_server, tmp_path):
    """Run a script in a home with skills; no part of it may fail."""
    write_skill(tmp_path / "team" / "skills" / "check-pr", extra="tags: [review]\n")

    def do(script, user="tests"):
        environ = {
            "HOME": str(tmp_path),
            "PATH": f"{sysconfig.get_path('scripts')}:{programs()}:/usr/bin:/bin",
            "PYTHONPATH": str(REPOSITORY),
            "PGHOSTADDR": "127.0.0.1",  # of whatever name
            "PGPORT": str(named_server.port),
            "PGUSER": user,
            "PGDATABASE": "postgres",
        }
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environ,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return do


@pytest.fixture
def role(named_server):
    with closing(psycopg.connect(named_server.url, autocommit=True)) as line:

        def make(name):
            line.execute(f"CREATE ROLE {name} LOGIN CREATEDB")

        yield make
        line.execute("DROP DATABASE skills WITH (FORCE)")


def test_the_page_about_servers_moves_a_registry(shell, role):
    role("me")
    shell("skill-registry sync ~/team/skills")
    script = commands("docs/how-to/share-with-a-team.md", "db copy")
    assert "source adopt" not in script
    done = shell(script, "me")
    assert "Adopted for the next sync: " in done.stderr
    assert "not synced" not in done.stderr.lower()


def commands(page, word):
    """Return the first block of commands on a page that has a word, but what installs packages."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    block = next(one for one in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if word in one)
    return "".join(line for line in block.splitlines(True) if not line.startswith("pip install"))
