"""The rights of a server's roles in a registry, and the SQL that grants and revokes them.

Which rows a role sees and changes is decided by the policies of the tables (migration 0015): even
with all rights of a writer, a role can't change another role's source. An admin is a member of the
role that owns the tables; policies don't apply to that role.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from psycopg import sql

from registry.db.read.skills import Rows
from registry.model import Value

Right: TypeAlias = Literal["read", "write", "admin"]

_ALL: Final = "INSERT, UPDATE, DELETE"

_WRITTEN: Final = {
    **dict.fromkeys(
        "sources skills documents sketches skill_files skill_tags search_texts diagnostics journal "
        "revisions gone tokens".split(),
        _ALL,
    ),
    # All roles share these rows, so a writer can't change or delete them.
    "contents": "INSERT",
    "changes": "INSERT, DELETE",
    "usage_days": "DELETE",
    "data_version": "UPDATE",
    "leases": _ALL,
}
"""The rights of a writer on each table, besides SELECT."""

_COUNTED: Final = {
    "usage": "listed, found, read, last_listed_at, last_found_at, last_read_at",
    "usage_days": "listed, found, read",
}
"""The counts to which a reader adds: how often skills are listed, found and read.

A reader may update these columns only: a right to update the table is a right to lock it.
"""

_ONLY_READ: Final = ("usage", "content_uses", "audit", "alembic_version")

TABLES: Final = (*_WRITTEN, *_ONLY_READ)
"""All tables that a reader may read; the tables of teams and hosts are excluded."""

VIEWS: Final = ("skill", "skill_tag", "revision", "usage_by_day", "source", "finding")

INVOKED_FROM: Final = 150000
"""The lowest server version in which views can apply the policies of the current role."""

SEQUENCES: Final = ("sources_id_seq", "diagnostics_id_seq", "revisions_id_seq", "changes_id_seq")

NUMBERS: Final = "skills_id_seq"
"""The sequence that a writer sets to reserve ids of versions."""

ASKED: Final = (
    "registry_is_admin()",
    "registry_sees_all()",
    "registry_teams()",
    "registry_find(text, tsquery, bigint)",
    "registry_common_words()",
)

_REFRESHED: Final = ("registry_refresh_names(text[])", "registry_refresh_names_below(text)")
"""Procedures that update names, which all roles share, on behalf of a writer."""

_FACTS: Final = (
    "SELECT current_schema(), r.rolname, current_setting('server_version_num') "
    "FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner "
    "WHERE c.oid = CAST('skills' AS regclass)"
)

_GRANTED: Final = """
SELECT r.rolname, bool_or(a.privilege_type = 'INSERT') FROM pg_class c
CROSS JOIN aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE c.oid = CAST('skills' AS regclass) AND a.grantee <> c.relowner
AND a.privilege_type IN ('SELECT', 'INSERT') GROUP BY r.rolname ORDER BY r.rolname
"""

_IN_FORCE: Final = """
SELECT CAST(r.rolname AS text), CASE WHEN pg_has_role(r.oid, c.relowner, 'USAGE') THEN 'admin'
    WHEN has_table_privilege(r.oid, c.oid, 'INSERT') THEN 'write' ELSE 'read' END,
    (SELECT array_agg(DISTINCT t.team ORDER BY t.team) FROM teams t
        JOIN pg_roles m ON m.rolname = t.role WHERE pg_has_role(r.oid, m.oid, 'MEMBER')
        AND NOT r.rolbypassrls AND NOT pg_has_role(r.oid, c.relowner, 'USAGE')),
    r.rolcanlogin,
    ARRAY(SELECT coalesce(CAST(g.rolname AS text), 'PUBLIC') FROM (
            SELECT grantee FROM aclexplode(c.relacl) WHERE privilege_type = 'SELECT'
            UNION SELECT c.relowner
            UNION SELECT m.oid FROM teams t JOIN pg_roles m ON m.rolname = t.role
        ) h LEFT JOIN pg_roles g ON g.oid = h.grantee
        WHERE NOT r.rolsuper AND h.grantee <> r.oid
        AND (g.oid IS NULL OR pg_has_role(r.oid, g.oid, 'MEMBER')) ORDER BY 1)
FROM pg_class c CROSS JOIN pg_roles r
WHERE c.oid = CAST('skills' AS regclass) AND left(r.rolname, 3) <> 'pg_'
AND has_table_privilege(r.oid, c.oid, 'SELECT')
AND has_schema_privilege(r.oid, c.relnamespace, 'USAGE') ORDER BY r.rolname
"""
"""The rights of each role, by the same rules as `registry_sees_all` and `registry_teams`."""


@dataclass(frozen=True, slots=True)
class RoleRights(Value):
    """The rights that a role has.

    ``teams``: the role sees their sources and those without a team; None: it sees all. ``through``:
    the groups with rights or teams that the role is a member of.
    """

    role: str
    may: Right
    teams: tuple[str, ...] | None
    login: bool
    through: tuple[str, ...]


class _Facts(NamedTuple):
    schema: str
    owner: str
    version: int

    def table(self, name: str) -> sql.Identifier:
        return sql.Identifier(self.schema, name)

    def function(self, signature: str) -> sql.Composable:
        name, _, arguments = signature.partition("(")
        return sql.SQL("{}({})").format(
            sql.Identifier(self.schema, name),
            sql.SQL(arguments.removesuffix(")")),
        )


def is_role(rows: Rows, role: str) -> bool:
    """Tell whether a role exists on the server."""
    return bool(rows.rows("SELECT 1 FROM pg_roles WHERE rolname = ?", (role,)))


def owner_of_tables(rows: Rows) -> tuple[str, bool]:
    """Return the role that owns the tables (or would own new ones), and whether they exist."""
    ((name, exists),) = rows.rows(
        "SELECT CAST(coalesce((SELECT r.rolname FROM pg_class c JOIN pg_roles r "
        "ON r.oid = c.relowner WHERE c.oid = to_regclass('skills')), current_user) AS text), "
        "to_regclass('skills') IS NOT NULL"
    )
    return name, exists


def granting(rows: Rows, role: str, may: Right, team: str | None = None) -> list[str]:
    """Return the statements that grant a role the right to read, write its own sources, or all.

    They may run again without harm. If a writer becomes a reader, it loses the right to write,
    unless it has the right through a group. ``team``: the role sees the sources of this team, of
    the teams that it already belongs to, and those without a team; None: the sources of all teams.
    """
    facts = _facts(rows)
    who = sql.Identifier(role)
    made = list(_granted(facts, who, may))
    if may == "read" and (role, True) in rows.rows(_GRANTED):
        made = [*_unwritten(facts, who), *made]
    members, name = facts.table("teams"), sql.Literal(role)
    if team is None:
        made.append(sql.SQL("DELETE FROM {} WHERE role = {}").format(members, name))
    else:
        insert = "INSERT INTO {} (role, team) VALUES ({}, {}) ON CONFLICT DO NOTHING"
        made.append(sql.SQL(insert).format(members, name, sql.Literal(team)))
    detail = sql.SQL("CAST(json_build_object('may', {}, 'team', {}) AS text)").format(
        sql.Literal(may), sql.Literal(team)
    )
    made.append(_noted(facts, "right granted", role, detail))
    return [one.as_string() for one in made]


def revoking(rows: Rows, role: str) -> list[str]:
    """Return the statements that revoke all rights of a role, and free its hosts' names.

    Its sources remain, and it remains their owner.
    """
    facts = _facts(rows)
    who = sql.Identifier(role)
    made = [
        sql.SQL("REVOKE ALL ON {} FROM {}").format(_tables(facts, (*TABLES, *VIEWS)), who),
        *_unwritten(facts, who),
        *(
            sql.SQL("REVOKE ALL ON ROUTINE {} FROM {}").format(facts.function(one), who)
            for one in ASKED
        ),
        sql.SQL("REVOKE ALL ON SCHEMA {} FROM {}").format(sql.Identifier(facts.schema), who),
    ]
    member = "SELECT 1 FROM pg_auth_members WHERE roleid = CAST(? AS regrole) AND member = "
    known = sql.Identifier(facts.owner).as_string(), who.as_string()
    if rows.rows(f"{member}CAST(? AS regrole)", known):
        made.append(sql.SQL("REVOKE {} FROM {}").format(sql.Identifier(facts.owner), who))
    made += [
        sql.SQL("DELETE FROM {} WHERE role = {}").format(facts.table(one), sql.Literal(role))
        for one in ("teams", "hosts")
    ]
    made.append(_noted(facts, "right revoked", role, sql.SQL("NULL")))
    return [one.as_string() for one in made]


def in_force(rows: Rows) -> dict[str, RoleRights]:
    """Return the rights of all roles that have any, by name."""
    return {
        role: RoleRights(role, may, None if teams is None else tuple(teams), login, tuple(through))
        for role, may, teams, login, through in rows.rows(_IN_FORCE)
    }


def granting_again(rows: Rows) -> list[str]:
    """Return the statements that extend the rights of all roles to newer tables."""
    facts = _facts(rows)
    return [
        one.as_string()
        for role, writes in rows.rows(_GRANTED)
        for one in _granted(facts, sql.Identifier(role), "write" if writes else "read")
    ]


def _facts(rows: Rows) -> _Facts:
    ((schema, owner, version),) = rows.rows(_FACTS)
    return _Facts(schema, owner, int(version))


def _granted(facts: _Facts, who: sql.Identifier, may: Right) -> Iterator[sql.Composed]:
    if may == "admin":
        yield sql.SQL("GRANT {} TO {}").format(sql.Identifier(facts.owner), who)
        return
    yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(facts.schema), who)
    names = TABLES
    if facts.version >= INVOKED_FROM:
        for view in VIEWS:
            yield sql.SQL("ALTER VIEW {} SET (security_invoker = true)").format(facts.table(view))
        names = (*TABLES, *VIEWS)
    yield sql.SQL("GRANT SELECT ON {} TO {}").format(_tables(facts, names), who)
    counts = _tables(facts, tuple(_COUNTED))
    yield sql.SQL("REVOKE UPDATE ON {} FROM {}").format(counts, who)
    yield sql.SQL("GRANT INSERT ON {} TO {}").format(counts, who)
    for table, columns in _COUNTED.items():
        yield sql.SQL("GRANT UPDATE ({}) ON {} TO {}").format(
            sql.SQL(columns), facts.table(table), who
        )
    for function in ASKED:
        yield _called(facts, function, who)
    if may == "write":
        for rights in dict.fromkeys(_WRITTEN.values()):
            some = [table for table, one in _WRITTEN.items() if one == rights]
            yield sql.SQL("GRANT {} ON {} TO {}").format(
                sql.SQL(rights),
                _tables(facts, some),
                who,
            )
        yield sql.SQL("GRANT USAGE ON SEQUENCE {} TO {}").format(_tables(facts, SEQUENCES), who)
        number = facts.table(NUMBERS)
        yield sql.SQL("GRANT SELECT, UPDATE ON SEQUENCE {} TO {}").format(number, who)
        for procedure in _REFRESHED:
            yield _called(facts, procedure, who)


def _unwritten(facts: _Facts, who: sql.Identifier) -> Iterator[sql.Composed]:
    """Yield the statements that revoke a writer's rights beyond a reader's."""
    tables = _tables(facts, tuple(_WRITTEN))
    yield sql.SQL("REVOKE {} ON {} FROM {}").format(sql.SQL(_ALL), tables, who)
    numbers = _tables(facts, (*SEQUENCES, NUMBERS))
    yield sql.SQL("REVOKE ALL ON SEQUENCE {} FROM {}").format(numbers, who)
    for one in _REFRESHED:
        yield sql.SQL("REVOKE ALL ON ROUTINE {} FROM {}").format(facts.function(one), who)


def _tables(facts: _Facts, names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(facts.table, names))


def _called(facts: _Facts, signature: str, who: sql.Identifier) -> sql.Composed:
    return sql.SQL("GRANT EXECUTE ON ROUTINE {} TO {}").format(facts.function(signature), who)


def _noted(facts: _Facts, what: str, role: str, detail: sql.Composable) -> sql.Composed:
    return sql.SQL("INSERT INTO {} (what, subject, detail) VALUES ({}, {}, {})").format(
        facts.table("audit"), sql.Literal(what), sql.Literal(role), detail
    )
