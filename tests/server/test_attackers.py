"""What a writer tries that speaks to the server by itself: the server refuses, whatever it says.

Each attempt is made with nothing of ours in between. Afterwards everything is as it was.
"""

import psycopg
import pytest

from tests.conftest import write_skill
from tests.server.roles import World

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def world(databases, tmp_path_factory):
    made = World(databases, tmp_path_factory.mktemp("skills"))
    for role in ("alice", "mallory"):
        made.add(role, "write")
    made.add("reader", "read")
    made.add("stranger")
    write_skill(made.folder / "hers" / "pdf")
    (made.folder / "hers" / "pdf" / "run.sh").write_text("echo\n")
    write_skill(made.folder / "hers" / "gone")
    write_skill(made.folder / "his" / "csv")
    # Not on the machine that all tests are: their home is another one in each.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(made.folder / "data"))
        alice = made.open("alice")
        alice.sync(str(made.folder / "hers"), name="hers")
        alice.delete("gone")
        alice.update("pdf", body="# Second\n")
        alice.tokens().create("door")
        made.open("mallory").sync(str(made.folder / "his"), name="his")
    yield made
    made.close()


HERS = "(SELECT id FROM sources WHERE name = 'hers')"
PDF = "(SELECT id FROM skills WHERE name = 'pdf' AND live = 1)"
UID = "(SELECT uid FROM skills WHERE name = 'pdf' AND live = 1)"
HIS_UID = "(SELECT uid FROM skills WHERE name = 'csv' AND live = 1)"
REVISION = (
    "INSERT INTO revisions (uid, number, name, tree_hash, seen_at, files{more}) "
    "VALUES ({uid}, 99, 'x', 'sha256:x', '2026-01-01T00:00:00Z', '[]'{values})"
)
SKILL = (
    "INSERT INTO skills (id, uid, live, source_id, folder, position, name, name_key, description, "
    "created_at, updated_at, indexed_at, bytes, file_count, fingerprint, racy, status) VALUES "
    "(900001, {uid}, 0, {source}, 'x', 'x', 'x', 'x', 'x', '', '', '', 0, 0, '', 0, 'ok')"
)
SOURCE = (
    "INSERT INTO sources (name, path, scope, strength, host, added_at, owner) VALUES "
    "('new', '/new', 'personal', 1, '{host}', '2026-01-01T00:00:00Z', {owner})"
)

ATTEMPTS = {
    # Sources
    "take a source": f"UPDATE sources SET owner = session_user WHERE id = {HERS}",
    "give one away": "UPDATE sources SET owner = '{alice}' WHERE name = 'his'",
    "add a source in another's name": SOURCE.format(host="mallory-pc", owner="'{alice}'"),
    "use another's machine": SOURCE.format(host="alice-pc", owner="session_user"),
    "move to another's machine": "UPDATE sources SET host = 'alice-pc' WHERE name = 'his'",
    "rename another's": f"UPDATE sources SET name = 'mine' WHERE id = {HERS}",
    "turn another's off": f"UPDATE sources SET enabled = 0 WHERE id = {HERS}",
    "remove another's": f"DELETE FROM sources WHERE id = {HERS}",
    "make another's a team's": f"UPDATE sources SET team = 'mine' WHERE id = {HERS}",
    "free a machine's name": "DELETE FROM hosts",
    "take a machine's name": "UPDATE hosts SET role = session_user",
    # Skills and what hangs on them
    "add a skill to another's source": SKILL.format(uid="'new'", source=HERS),
    "move one's own into it": f"UPDATE skills SET source_id = {HERS} WHERE name = 'csv'",
    "change a skill": f"UPDATE skills SET description = 'mine' WHERE id = {PDF}",
    "hide a skill": f"UPDATE skills SET shadowed = 1 WHERE id = {PDF}",
    "remove a skill": f"DELETE FROM skills WHERE id = {PDF}",
    "take a skill's history": SKILL.format(
        uid=UID, source="(SELECT id FROM sources WHERE name = 'his')"
    ),
    "take it later": f"UPDATE skills SET uid = {UID} WHERE name = 'csv'",
    "take what is gone": SKILL.format(
        uid="(SELECT uid FROM gone)", source="(SELECT id FROM sources WHERE name = 'his')"
    ),
    "change a text": f"UPDATE documents SET text = 'mine' WHERE skill_id = {PDF}",
    "remove a text": f"DELETE FROM documents WHERE skill_id = {PDF}",
    "hang a text on it": f"INSERT INTO documents VALUES ({PDF}, 'mine', 0, '{{}}', 1)",
    "change a file": f"UPDATE skill_files SET hash = 'sha256:x' WHERE skill_id = {PDF}",
    "add a file": f"INSERT INTO skill_files VALUES ({PDF}, 'x', 0, 0, 0, 0, 0, 'sha256:x')",
    "tag it": f"INSERT INTO skill_tags VALUES ('mine', {PDF})",
    "let it be found by other words": (
        f"UPDATE search_texts SET head = to_tsvector('mine') WHERE skill_id = {PDF}"
    ),
    "let it not be found": f"DELETE FROM search_texts WHERE skill_id = {PDF}",
    "let it not be counted": "UPDATE totals SET listed = 0",
    "let its source have a word": (
        f"INSERT INTO search_words SELECT source_id, 'mine' FROM skills WHERE id = {PDF}"
    ),
    "find fault with it": (
        "INSERT INTO diagnostics (source_id, skill_id, folder, code, severity, message) "
        f"VALUES ({HERS}, {PDF}, 'pdf', 'x', 'error', 'x')"
    ),
    "clear what is found": f"DELETE FROM diagnostics WHERE source_id = {HERS}",
    "write into its journal": (
        "INSERT INTO journal (id, host, source_id, root, kind, folder, target, staged, exchange, "
        f"started_at) VALUES ('x', 'alice-pc', {HERS}, '/', 'delete', 'pdf', 'pdf', 'x', 1, '')"
    ),
    # The past
    "add a revision to another's history": REVISION.format(uid=UID, more="", values=""),
    "add one in another's name": REVISION.format(uid=HIS_UID, more=", role", values=", '{alice}'"),
    "change a revision": f"UPDATE revisions SET document = 'x' WHERE uid = {UID}",
    "give a revision another's name": f"UPDATE revisions SET role = 'x' WHERE uid = {UID}",
    "forget a revision": f"DELETE FROM revisions WHERE uid = {UID}",
    "bring it to its own history": f"UPDATE revisions SET uid = {HIS_UID} WHERE uid = {UID}",
    "forget what is gone": "DELETE FROM gone WHERE name = 'gone'",
    "say that a skill is gone": (
        f"INSERT INTO gone SELECT {UID}, 'pdf', 'his', 'pdf', '', '', NULL, NULL, session_user"
    ),
    "change a content": "UPDATE contents SET data = 'x'",
    "remove a content": "DELETE FROM contents",
    "claim the use of a content": "INSERT INTO content_uses VALUES ('sha256:x', 'x')",
    "make a change in another's name": (
        "INSERT INTO changes (number, host, kind, uid, name, source, folder, made_at, signature, "
        f"role) VALUES ('x', 'x', 'update', {HIS_UID}, 'x', 'x', 'x', '', '', '{{alice}}')"
    ),
    "make a change of another's skill": (
        "INSERT INTO changes (number, host, kind, uid, name, source, folder, made_at, signature) "
        f"VALUES ('x', 'x', 'update', {UID}, 'x', 'x', 'x', '', '')"
    ),
    "forget a change": f"DELETE FROM changes WHERE uid = {UID}",
    # Who did what, and who may
    "add to the audit": "INSERT INTO audit (what) VALUES ('x')",
    "change the audit": "UPDATE audit SET role = 'x'",
    "forget the audit": "DELETE FROM audit",
    "empty the audit": "TRUNCATE audit",
    "note something": "SELECT registry_note('right granted', 'mallory', NULL)",
    "join a team": "INSERT INTO teams VALUES (session_user, 'red')",
    "take a token away": "DELETE FROM tokens",
    "prolong a token": "UPDATE tokens SET expires_at = NULL",
    "let time stand still": "UPDATE data_version SET number = number",
    "turn time back": "UPDATE data_version SET number = 0",
    # The walls themselves
    "switch policies off": "ALTER TABLE sources DISABLE ROW LEVEL SECURITY",
    "drop a policy": "DROP POLICY changed ON sources",
    "switch triggers off": "ALTER TABLE audit DISABLE TRIGGER ALL",
    "play a replica": "SET session_replication_role = replica",
    "pass by": "SET row_security = off; UPDATE sources SET priority = 9",
    "become the owner": "SET ROLE {owner}",
    "be somebody else": "SET SESSION AUTHORIZATION {alice}",
    "take the rights": "GRANT {owner} TO {mallory}",
    "grant them": "GRANT ALL ON sources TO {mallory}",
    "replace a function": (
        "CREATE OR REPLACE FUNCTION registry_is_admin() RETURNS boolean LANGUAGE sql AS 'SELECT "
        "true'"
    ),
    "put a function before it": "CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE sql "
    "AS 'SELECT $1'",
}

STATE = "SELECT '{0}' AS name, md5(string_agg(CAST(x AS text), ' ' ORDER BY CAST(x AS text))) FROM {0} x"
TABLES = (
    "sources skills documents skill_files skill_tags search_texts search_words totals diagnostics "
    "journal revisions gone contents content_uses changes audit hosts teams tokens data_version"
).split()


RIGHTS = "(SELECT relname, relacl, relrowsecurity FROM pg_class WHERE relname !~ '^pg_')"


def state(world):
    """Return a mark of each table, and of who may do what with them."""
    return world.as_dba(
        " UNION ALL ".join(map(STATE.format, (*TABLES, RIGHTS))).replace(f"'{RIGHTS}'", "'rights'")
    )


@pytest.mark.parametrize("who", ["mallory", "reader", "stranger"])
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_an_attempt_is_refused_or_does_nothing(world, attempt, who):
    names = {role: world.name(role) for role in ("alice", "mallory", "owner")}
    sql = ATTEMPTS[attempt].replace("{{", "{").replace("}}", "}")
    for role, name in names.items():
        sql = sql.replace(f"{{{role}}}", name)
    before = state(world)
    refused = ""
    try:
        done = world.sql(who, *sql.split("; "))
    except psycopg.Error as error:
        refused = error.sqlstate or str(error)
    else:
        assert done in ([(0,)], [(-1,)])  # of rows, or a command that is about none
    # Refused for what it wants, not for how it is said.
    assert refused in {"", "42501", "SR001", "SR002", "SR003"}
    assert state(world) == before


def test_the_same_is_done_by_who_may(world):
    """The attempts are ones that work: each of them does, as the owner of the tables."""
    names = {"alice": world.name("alice"), "mallory": world.name("mallory")}
    names["owner"] = world.name("owner")
    refused = {}
    for attempt, said in ATTEMPTS.items():
        sql = said.replace("{{", "{").replace("}}", "}")
        for role, name in names.items():
            sql = sql.replace(f"{{{role}}}", name)
        try:
            done = world.sql("owner", *sql.split("; "), "ROLLBACK", "SELECT 1")
        except psycopg.Error as error:
            refused[attempt] = error.sqlstate
        else:
            assert done == [(1,)]
    # Of these even the owner is refused some: by the triggers that keep what is noted, the server's
    # own rules for superusers, and keys that are there.
    assert set(refused.values()) <= {"SR003", "42501", "23505"}, refused
    assert {name for name, state in refused.items() if state == "SR003"} == {
        *("change the audit", "forget the audit", "empty the audit", "take it later"),
        *("let time stand still", "turn time back"),
    }


def test_a_function_of_a_temporary_schema_is_not_taken_for_the_systems(world):
    """What runs as the owner looks only where the owner alone can put something."""
    world.sql(
        "mallory",
        "CREATE FUNCTION pg_temp.pg_has_role(name, oid, text) RETURNS boolean LANGUAGE sql AS "
        "'SELECT true'",
        "CREATE TEMPORARY TABLE teams (role text, team text)",
        "CREATE TEMPORARY TABLE sources (id int, owner text, team text)",
        "SET search_path = pg_temp, public",
        "SELECT 1",
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.sql(
            "mallory",
            "CREATE TEMPORARY TABLE teams (role text, team text)",
            "SET search_path = pg_temp, public",
            "INSERT INTO public.audit (what) VALUES ('x')",
        )
    answered = world.sql(
        "mallory", "SET search_path = pg_temp, public", "SELECT public.registry_is_admin()"
    )
    assert answered == [(False,)]


def test_a_packed_lie_in_the_place_of_a_content_is_not_believed(world, tmp_path):
    """Whoever writes may store bytes under a hash that are not of it: they are never handed out."""
    from registry.disk.files import digest
    from registry.errors import ContentDamaged
    from registry.model import SkillFile

    wanted = digest(b"true\n")
    world.sql("mallory", f"INSERT INTO contents VALUES ('{wanted}', 5, 0, 'false')")
    reader = world.open("alice").core.reader
    from registry.db.read.history import content

    with pytest.raises(ContentDamaged):
        content(reader, "any", SkillFile("x", 5, wanted, False), 1 << 20)
