"""The schema at revision 0015, from which the others go on: nothing older was ever released.

`0015_tables.sql` has the tables and views of both databases, `0015_server.sql` what only a server
has. What only a SQLite file has, and who may do what on a server, is here.

On a server the database refuses and hides, whatever a client says: by policies of its rows, by
triggers, and by functions that run as the owner of the tables. That owner and its members are
admins, whom no policy binds. A table that a later migration makes gets its policies there, and a
line in `db.postgres.rights`.

Revision ID: 0015
Revises:
"""

import re
from pathlib import Path

from alembic import op

from registry.db.write.names import procedure, procedure_below

revision = "0015"
down_revision = None
branch_labels = None
depends_on = None

# Texts are compared byte by byte on both databases, so that both keep the same order.
IN_POSTGRES = {
    r"\bTEXT\b": 'TEXT COLLATE "C"',
    r"\bBLOB\b": "BYTEA",
    r"\bid INTEGER\b": "id SERIAL",
    r" WITHOUT ROWID\b": "",
}

WORDS = "content='', tokenize='porter unicode61 remove_diacritics 2'"
SEARCH_IN_FILE = (
    f"CREATE VIRTUAL TABLE search_heads USING fts5(name, tags, description, {WORDS})",
    f"CREATE VIRTUAL TABLE search_bodies USING fts5(body, {WORDS})",
    "CREATE VIRTUAL TABLE search_words USING fts5vocab(search_heads, 'row')",
)

# Who asks; once for a statement, not once for a row.
ME = "(SELECT CAST(session_user AS text))"
ALL_SEEN = "(SELECT registry_sees_all())"
TEAMS = "CAST((SELECT registry_teams()) AS text[])"
TEAM_SEEN = f"{ALL_SEEN} OR team IS NULL OR owner = {ME} OR team = ANY ({TEAMS})"
SOURCE_SEEN = f"{ALL_SEEN} OR source_id IN (SELECT id FROM sources)"
SOURCE_OWN = f"source_id IN (SELECT id FROM sources WHERE owner = {ME})"
SKILL_SEEN = f"{ALL_SEEN} OR EXISTS (SELECT 1 FROM skills s WHERE s.id = {{table}}.skill_id)"
SKILL_OWN = f"EXISTS (SELECT 1 FROM skills s WHERE s.id = {{table}}.skill_id AND s.{SOURCE_OWN})"
UID_KNOWN = (
    "EXISTS (SELECT 1 FROM skills s WHERE s.uid = {table}.uid) "
    "OR EXISTS (SELECT 1 FROM gone g WHERE g.uid = {table}.uid)"
)
UID_SEEN = f"{ALL_SEEN} OR {UID_KNOWN}"
SKILLS_UID_OWN = f"EXISTS (SELECT 1 FROM skills s WHERE s.uid = {{table}}.uid AND s.{SOURCE_OWN})"
UID_OWN = (
    f"({SKILLS_UID_OWN} "
    f"OR EXISTS (SELECT 1 FROM gone g WHERE g.uid = {{table}}.uid AND g.owner = {ME}))"
)
UID_OF_OTHERS = (
    "EXISTS (SELECT 1 FROM skills s JOIN sources o ON o.id = s.source_id "
    f"WHERE s.uid = {{table}}.uid AND o.owner <> {ME})"
)
MINE = f"role = {ME}"

# Of each table which rows are seen, and which are added, changed and removed by who is no admin.
POLICIES = {
    "sources": (TEAM_SEEN, f"owner = {ME}", f"owner = {ME}", f"owner = {ME}"),
    "skills": (SOURCE_SEEN, SOURCE_OWN, SOURCE_OWN, SOURCE_OWN),
    "diagnostics": (SOURCE_SEEN, SOURCE_OWN, SOURCE_OWN, SOURCE_OWN),
    "journal": (SOURCE_SEEN, SOURCE_OWN, SOURCE_OWN, SOURCE_OWN),
    **dict.fromkeys(
        ("documents", "sketches", "skill_files", "skill_tags", "search_texts"),
        (SKILL_SEEN, SKILL_OWN, SKILL_OWN, SKILL_OWN),
    ),
    "revisions": (
        UID_SEEN,
        f"{MINE} AND {UID_OWN}",
        UID_OWN,
        # What nobody can ask for any more belongs to who wrote it.
        f"{UID_OWN} OR ({MINE} AND NOT ({UID_KNOWN}))",
    ),
    "gone": (
        TEAM_SEEN,
        f"owner = {ME} AND {SKILLS_UID_OWN}",
        f"owner = {ME}",
        f"owner = {ME}",
    ),
    "changes": (f"{UID_SEEN} OR {MINE}", f"{MINE} AND NOT ({UID_OF_OTHERS})", None, MINE),
    # Counts are hints, which whoever reads may add to.
    "usage": (UID_SEEN, UID_SEEN, UID_SEEN, None),
    "usage_days": (UID_SEEN, UID_SEEN, UID_SEEN, UID_OWN),
    "contents": (
        f"{ALL_SEEN} OR EXISTS (SELECT 1 FROM content_uses u WHERE u.hash = contents.hash)",
        "true",
        None,
        None,
    ),
    "content_uses": (UID_SEEN, None, None, None),
    "tokens": (MINE, MINE, MINE, MINE),
    "audit": (MINE, None, None, None),
    "hosts": (None, None, None, None),
    "teams": (None, None, None, None),
}
LEASES_POLICY = "USING (role = session_user) WITH CHECK (role = session_user)"


def upgrade() -> None:
    connection = op.get_bind()
    tables = _read("tables")
    if connection.dialect.name == "sqlite":
        for statement in (*tables.split(";\n"), *SEARCH_IN_FILE):
            connection.exec_driver_sql(statement)
        return
    for word, other in IN_POSTGRES.items():
        tables = re.sub(word, other, tables)
    _run(tables)
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    _run(procedure(schema))
    _run(procedure_below(schema))
    _run(_read("server").replace(":schema", schema))
    for table, conditions in POLICIES.items():
        _protect(table, *(one and one.format(table=table) for one in conditions))
    _run("ALTER TABLE leases ENABLE ROW LEVEL SECURITY")
    _run(f"CREATE POLICY own ON leases {LEASES_POLICY}")


def _read(name: str) -> str:
    return Path(__file__).with_name(f"0015_{name}.sql").read_text(encoding="utf-8")


def _protect(
    table: str, seen: str | None, added: str | None, changed: str | None, removed: str | None
) -> None:
    """Enable the policies of a table; None: nobody but an admin."""
    _run(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    for name, command, condition in (
        ("seen", f"FOR SELECT USING ({seen})", seen),
        ("added", f"FOR INSERT WITH CHECK ({added})", added),
        ("changed", f"FOR UPDATE USING ({changed}) WITH CHECK ({changed})", changed),
        ("removed", f"FOR DELETE USING ({removed})", removed),
    ):
        if condition is not None:
            _run(f"CREATE POLICY {name} ON {table} {command}")


def _run(sql: str) -> None:
    """Run statements as they are: a percent sign, a colon or a question mark mean nothing."""
    connection = op.get_bind().connection.driver_connection
    connection.execute(sql.encode())
