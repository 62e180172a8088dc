"""Rights are given and taken by commands: shown first, asked for, quoted by the driver."""

import hashlib
import os

import psycopg
import pytest
from sqlalchemy import make_url

from registry.api import SkillRegistry
from registry.changes.rights import carry_out, granting, revoking
from registry.errors import AdminNeeded, RightMissing, RoleNotFound, UsageProblem
from registry.settings import Settings
from tests.conftest import write_skill
from tests.older import move
from tests.program import run

pytestmark = pytest.mark.server


def acl(world):
    return world.as_dba(
        "SELECT relname, CAST(relacl AS text) FROM pg_class WHERE relnamespace = "
        "CAST('public' AS regnamespace) ORDER BY relname"
    )


def test_a_right_is_given_by_a_command_and_taken_by_another(world, command, root):
    alice = world.add("alice")
    write_skill(root / "alpha")
    assert command("alice", "list").status == 3
    assert command("owner", "db", "grant", alice, "--write", "--yes").out == (
        f"{alice} sees: everything; writes: own sources.\n"
    )
    assert command("alice", "sync", str(root), "--name", "hers").status == 0
    assert command("owner", "db", "revoke", alice, "--yes").status == 0
    ran = command("alice", "list")
    assert (ran.status, "permission denied" in ran.err, "db grant" in ran.err) == (3, True, True)
    listed = command("owner", "source", "list", "--json").out
    assert f'"owner": "{alice}"' in listed
    noted = command("owner", "db", "audit").out
    assert "right granted" in noted
    assert "right revoked" in noted


def test_who_may_read_and_wants_to_write_learns_which_right_is_missing(world, command, root):
    world.add("alice", "read")
    said = command("alice", "sync", str(root)).err
    assert "An admin can give it: skill-registry db grant ROLE --write (--print" in said


def test_who_gives_a_source_to_a_team_that_is_not_theirs_learns_which_right_is_missing(
    world, command, root
):
    world.add("alice", "write", "red")
    assert command("alice", "sync", str(root), "--name", "hers").status == 0
    said = command("alice", "source", "update", "hers", "--team", "my team").err
    assert "not of the team my team" in said
    assert "An admin can give it: skill-registry db grant ROLE --write --team 'my team' (" in said


def test_whose_machine_has_sources_of_others_alone_learns_how_to_add_one(world, root):
    for role in ("alice", "bob"):
        world.add(role, "write")
    shared = {**os.environ, "SKILL_REGISTRY_HOST": "shared-pc"}
    write_skill(root / "alpha")
    run(["--db", world.url("alice"), "sync", str(root), "--name", "hers"], environ=shared)
    ran = run(["--db", world.url("bob"), "sync"], environ=shared)
    assert (ran.status, "owned by the role" in ran.err) == (1, True)
    assert (
        "Error: None of this machine's sources is yours. To register a folder, run: skill-registry sync FOLDER"
        in ran.err
    )


def test_who_wrote_and_is_to_read_has_a_readers_rights(world, command, root):
    alice = world.add("alice", "read")
    rights = (
        "SELECT relname, privilege_type FROM pg_class CROSS JOIN aclexplode(relacl) "
        f"WHERE grantee = CAST('{alice}' AS regrole) ORDER BY 1, 2"
    )
    reading = world.as_dba(rights)
    world.grant("alice", "write")
    assert world.as_dba(rights) != reading
    ran = command("owner", "db", "grant", alice, "--read", "--yes")
    assert ran.out == f"{alice} sees: everything; writes: nothing.\n"
    assert world.as_dba(rights) == reading
    assert command("alice", "source", "add", str(root)).status == 3


@pytest.mark.parametrize("may", ["read", "write"])
def test_a_pull_is_taken_back_by_who_may_write_it_down_alone(world, command, root, may, tmp_path):
    write_skill(root / "alpha")
    assert command("owner", "sync", str(root)).status == 0
    world.add("alice", may)
    to = tmp_path / "to"
    assert command("alice", "pull", "alpha", "--to", str(to)).status == 0
    assert command("owner", "undo", "--yes").status == 1
    assert (to / "alpha").exists()
    done = command("alice", "undo", "--yes")
    assert (done.status, (to / "alpha").exists()) == ((0, False) if may == "write" else (1, True))


def test_rights_that_are_left_by_a_group_are_told(world, command):
    """Taking a role's own rights shuts out nobody who is a member of one that has some."""
    writers, alice = world.add("writers", "write"), world.add("alice", "read")
    world.as_dba(f"GRANT {writers} TO {alice}")
    ran = command("owner", "db", "revoke", alice, "--yes")
    assert ran.out == f"{alice} sees: everything; writes: own sources (through {writers}).\n"
    assert command("alice", "list").status == 0
    world.as_dba(f"REVOKE {writers} FROM {alice}")
    ran = command("owner", "db", "revoke", alice, "--yes")
    assert ran.out == f"{alice} sees: nothing; writes: nothing.\n"
    assert command("alice", "list").status == 3


def test_the_name_of_a_machine_is_free_when_its_role_has_no_rights_any_more(world, tmp_path):
    for role in ("alice", "bob"):
        world.add(role, "write")
        write_skill(tmp_path / role / role)
    world.open("alice", host="shared").add_source(str(tmp_path / "alice"))
    core = world.open("owner").core
    carry_out(core, revoking(core, world.name("alice")))
    assert world.open("bob", host="shared").add_source(str(tmp_path / "bob")).own


def test_nothing_is_done_unasked_and_printed_sql_does_the_same(world, command):
    alice = world.add("alice")
    before = acl(world)
    ran = command("owner", "db", "grant", alice, "--write", "--team", "red")
    assert ran.status == 1
    assert ran.err.splitlines() == [
        f"{alice} now sees: nothing; writes: nothing.",
        f"After this {alice} sees: red and sources without a team; writes: own sources.",
        "Error: Not a terminal; pass --yes to confirm.",
    ]
    printed = command("owner", "db", "grant", alice, "--write", "--team", "red", "--print")
    assert acl(world) == before
    assert world.as_dba("SELECT * FROM teams") == []
    world.as_dba(printed.out)
    by_hand = acl(world), world.as_dba("SELECT * FROM teams")
    assert by_hand[0] != before
    for _ in range(2):  # once more changes nothing
        done = command("owner", "db", "grant", alice, "--write", "--team", "red", "--yes")
        assert done.status == 0
        assert (acl(world), world.as_dba("SELECT * FROM teams")) == by_hand


def test_a_role_without_rights_is_no_grantor_and_says_who_is(world, command):
    world.add("alice", "write")
    bob = world.add("bob")
    ran = command("alice", "db", "grant", bob, "--read", "--yes")
    assert (ran.status, "Only an admin" in ran.err) == (1, True)
    core = world.open("alice").core
    with pytest.raises(AdminNeeded):
        carry_out(core, granting(core, bob, "admin"))


def test_an_admin_is_made_by_who_may_make_members(world):
    ada, bob = world.add("ada"), world.add("bob")
    core = world.open("owner").core
    # In the words of PostgreSQL 16 and later, and of earlier ones.
    with pytest.raises(RightMissing, match=r"denied to grant role|must have admin option"):
        carry_out(core, granting(core, ada, "admin"))
    world.grant("ada", "admin")
    core = world.open("ada").core
    carry_out(core, granting(core, bob, "read"))
    assert world.open("bob").list().total == 0
    with pytest.raises(UsageProblem, match="all teams"):
        granting(core, ada, "admin", "red")
    world.as_dba("; ".join(revoking(core, ada)))
    with pytest.raises(RightMissing):
        world.open("ada", host="other").list()


@pytest.mark.parametrize("name", ['o"; DROP TABLE audit; --', "o'; DROP TABLE audit; --", "a b%s?"])
def test_a_name_is_a_name_whatever_is_in_it(world, name):
    named = f"{name}{world.name('x')}"
    quoted = '"' + named.replace('"', '""') + '"'
    world.as_dba(f"CREATE ROLE {quoted}")
    core = world.open("owner").core
    try:
        carry_out(core, granting(core, named, "write", named))
        assert world.as_dba("SELECT role, team FROM teams") == [(named, named)]
        (granted,) = world.as_dba(
            "SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r "
            f"ON r.oid = a.grantee WHERE relname = 'skills' AND rolname = $${named}$$"
        )
        assert granted == (4,)
        carry_out(core, revoking(core, named))
        assert world.as_dba("SELECT role, team FROM teams") == []
    finally:
        world.as_dba(f"DROP OWNED BY {quoted}; DROP ROLE {quoted}")


def test_a_role_that_there_is_not_is_named(world, command):
    core = world.open("owner").core
    for ask in (lambda: granting(core, "nobody-there", "read"), lambda: revoking(core, "nobody")):
        with pytest.raises(RoleNotFound, match="has no role"):
            ask()
    assert "createuser" in command("owner", "db", "grant", "nobody-there", "--read").err
    assert command("owner", "db", "grant", "nobody-there").status == 2


@pytest.mark.parametrize("may", ["read", "write"])
def test_an_upgrade_gives_rights_to_what_is_new_and_nobody_more(world, may):
    """As a table that a later version has: without its rights, as after a migration."""
    world.add("alice", may)
    world.add("bob")
    before = acl(world)
    world.as_dba(f"REVOKE ALL ON content_uses, audit, gone FROM {world.name('alice')}")
    world.as_dba("UPDATE alembic_version SET version_num = '0015'")
    from registry.db.postgres import writer
    from registry.db.postgres.dialect import parse_url

    with pytest.MonkeyPatch.context() as patch:
        done = []
        patch.setattr(
            writer,
            "run_migrations",
            lambda connection: done.append(
                connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0016'")
            ),
        )
        writer.ensure_current(parse_url(world.url("owner")))
    assert done
    assert acl(world) == before


def test_what_an_upgrade_by_an_admin_makes_belongs_to_the_owner_of_the_tables(world, command, root):
    """Whoever types the command that an older schema is answered with, as its own role."""
    write_skill(root / "alpha")
    world.add("ada", "admin")
    world.open("owner").sync(str(root), name="mine")
    move(world.url("owner"), "0015")
    assert "from schema 0015" in command("ada", "db", "upgrade").out
    owners = world.as_dba(
        "SELECT DISTINCT pg_get_userbyid(owner) FROM (SELECT relowner, relnamespace FROM pg_class "
        "UNION SELECT proowner, pronamespace FROM pg_proc) made (owner, place) "
        "WHERE place = CAST('public' AS regnamespace)"
    )
    assert owners == [(world.name("owner"),)]
    world.add("bob", "read")
    assert world.open("bob").search("alpha").total == 1


def test_tables_belong_to_a_group_when_an_admin_makes_them_as_that(world, tmp_path):
    """As the document says; who opens it then is an admin by membership alone."""
    ada = world.add("ada")
    for statement in (
        f"CREATE SCHEMA group_of AUTHORIZATION {world.name('owner')}",
        f"GRANT {world.name('owner')} TO {ada}",
    ):
        world.as_dba(statement)
    path = "-csearch_path%3Dgroup_of"
    url = f"{world.url('ada')}?options={path}"
    with SkillRegistry.open(f"{url}%20-crole%3D{world.name('owner')}") as registry:
        registry.create_database()
    owners = world.as_dba("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'group_of'")
    assert owners == [(world.name("owner"),)]
    bob = world.add("bob")
    with SkillRegistry.open(url, settings=Settings(host="ada-pc")) as registry:
        core = registry.core
        carry_out(core, granting(core, bob, "write"))
        write_skill(tmp_path / "skills" / "alpha")
        registry.sync(str(tmp_path / "skills"), name="mine")
        assert [(source.owner, source.own) for source in registry.sources()] == [(ada, True)]
    theirs = make_url(url).set(username=bob).render_as_string(hide_password=False)
    with SkillRegistry.open(theirs, settings=Settings(host="bob-pc")) as registry:
        assert registry.list().total == 1
        assert registry.search("alpha").total == 1


def test_a_file_has_no_rights_to_give(registry, tmp_path):
    with SkillRegistry.open(tmp_path / "file.db") as other:
        for ask in (
            lambda: granting(other.core, "x", "read"),
            lambda: other.update_source("x", team="red"),
        ):
            with pytest.raises((UsageProblem, LookupError)):
                ask()


def test_the_procedures_for_names_are_those_of_their_migration():
    """A server keeps them: when this text changes, a migration has to make the procedures anew.

    Then write the new digest here.
    """
    from registry.db.write.names import procedure, procedure_below

    text = (procedure("x") + procedure_below("x")).encode()
    assert hashlib.sha256(text).hexdigest()[:16] == "733b4da18a760a1f"


def test_a_writer_needs_no_more_than_it_is_given(world, root):
    """Rights that no test needs would be in nobody's way: each of them is used."""
    world.add("alice", "write")
    write_skill(root / "alpha")
    alice = world.open("alice")
    alice.sync(str(root), name="hers")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.sql("alice", "CREATE TABLE mine (x int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.sql("alice", "UPDATE alembic_version SET version_num = '9999'")


def test_an_upgrade_removes_tokens_from_stored_addresses(world, caplog):
    """Run by the role that owns the tables: also from what the server noted of them."""
    from registry.db.postgres.dialect import parse_url
    from registry.db.postgres.writer import ensure_current

    world.as_dba(
        "INSERT INTO sources (name, path, scope, strength, added_at, kind, url) VALUES ('made', "
        "'/made', 'community', 1, '2026-01-01T00:00:00Z', 'archive', 'https://h.example/old.zip')"
    )
    secret = "https://h.example/x.zip?raw=1&token=s3cretW0rd"
    world.as_dba(f"UPDATE sources SET url = '{secret}'")
    move(world.url("owner"), "0016")
    noted = "SELECT count(*) FROM audit WHERE detail LIKE '%s3cretW0rd%'"
    assert world.as_dba(noted) == [(1,)]
    ensure_current(parse_url(world.url("owner")))
    assert world.as_dba("SELECT url FROM sources") == [("https://h.example/x.zip?raw=1",)]
    assert world.as_dba(noted) == [(0,)]
    assert "Revoke it" in caplog.text
    assert "s3cretW0rd" not in caplog.text
    enabled = "SELECT tgname, tgenabled FROM pg_trigger WHERE tgname IN ('tell', 'keep')"
    assert {one for _, one in world.as_dba(enabled)} == {"O"}
