"""The rights of a server's roles in a registry, and the SQL that grants and revokes them.

Policies of the tables (migration 0015) decide which rows a role can see and change. So a role can't
change another role's source, even if it may write to all tables. An admin is a member of the role
that owns the tables. The policies don't apply to this role.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from psycopg import sql

from registry.errors import RoleNotFound
from registry.model import Value

Right: TypeAlias = Literal["read", "write", "admin"]

Ask: TypeAlias = Callable[..., list[tuple[Any, ...]]]
"""A function that runs a SELECT with values, and returns the rows."""

_ALL: Final = "INSERT, UPDATE, DELETE"

_WRITTEN: Final = {
    **dict.fromkeys(
        "sources skills documents sketches skill_files skill_tags search_texts diagnostics journal "
        "revisions gone tokens".split(),
        _ALL,
    ),
    # All roles share the stored file contents, so a writer may add rows but not change or delete
    # them.
    "contents": "INSERT",
    "search_words": "INSERT",
    "changes": "INSERT, DELETE",
    "labels": "INSERT, DELETE",
    "entries": "INSERT, UPDATE",
    "usage_days": "DELETE",
    "data_version": "UPDATE",
    "leases": _ALL,
    "proposals": "INSERT, DELETE",
}
"""The rights of a writer on each table, in addition to SELECT."""

_DECISION: Final = "state, decided_by, decided_at, reason"
"""The columns of a proposal that a decision changes."""

_OWNED: Final = f"{_DECISION}, archive"
"""The columns of a proposal that the owner of the proposal's source may update."""

_APPROVER: Final = "role"
"""A column that no statement updates; the right to update it is the right to approve proposals."""

_COUNTED: Final = {
    "usage": "listed, found, read, last_listed_at, last_found_at, last_read_at",
    "usage_days": "listed, found, read",
}
"""The columns in which a reader counts how often skills are listed, found and read.

A reader may update only these columns. A right to update the whole table would also let a reader
lock the table.
"""

_ONLY_READ: Final = (
    "usage",
    "totals",
    "content_uses",
    "audit",
    "commits",
    "commit_skills",
    "alembic_version",
)

TABLES: Final = (*_WRITTEN, *_ONLY_READ)
"""All tables that a reader may read, without the tables of teams and hosts."""

VIEWS: Final = ("skill", "skill_tag", "revision", "usage_by_day", "source", "finding")

INVOKED_FROM: Final = 150000
"""Lowest server version in which a view can apply the policies of the role that queries it."""

SEQUENCES: Final = (
    "sources_id_seq",
    "diagnostics_id_seq",
    "revisions_id_seq",
    "changes_id_seq",
    "labels_id_seq",
    "entries_id_seq",
)

NUMBERS: Final = "skills_id_seq"
"""Name of the sequence from which a writer takes ids for new versions."""

ASKED: Final = (
    "registry_is_admin()",
    "registry_sees_all()",
    "registry_teams()",
    "registry_match(text, tsquery, double precision, bigint)",
    "registry_count(text, tsquery, bigint)",
    "registry_may_approve()",
    "registry_note_use(text, text, text)",
)

_REFRESHED: Final = ("registry_refresh_names(text[])", "registry_refresh_names_below(text)")
"""Procedures with which a writer updates names, refs and shadowing of the skills of all roles."""

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
    has_column_privilege(r.oid, CAST('proposals' AS regclass), 'role', 'UPDATE'),
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
"""SELECT for the rights of each role.

The SELECT and the functions `registry_sees_all` and `registry_teams` must have the same rules.
"""


@dataclass(frozen=True, slots=True)
class RoleRights(Value):
    """The rights of a role.

    ``teams`` holds the teams whose sources the role sees; None if it sees all sources. All roles
    see the sources without a team. ``through`` holds the groups from which the role has rights or
    teams.
    """

    role: str
    may: Right
    teams: tuple[str, ...] | None
    login: bool
    through: tuple[str, ...]
    approve: bool = False


class _Schema(NamedTuple):
    """The registry's schema, the role that owns its tables, and the version of the server."""

    name: str
    owner: str
    version: int

    @classmethod
    def of(cls, ask: Ask) -> Self:
        ((name, owner, version),) = ask(_FACTS)
        return cls(name, owner, int(version))

    def within(self, *names: str) -> str:
        """Return names of tables, sequences or routines as SQL: quoted, with the schema's name."""
        return ", ".join(f"{_quoted(self.name)}.{_quoted(name)}" for name in names)

    def routine(self, signature: str) -> str:
        name, _, arguments = signature.partition("(")
        return f"{self.within(name)}({arguments}"


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string()


def _text(value: str | None) -> str:
    return sql.Literal(value).as_string()


def check_role(ask: Ask, role: str) -> None:
    """Raise `RoleNotFound` if a role doesn't exist on the server."""
    if not ask("SELECT 1 FROM pg_roles WHERE rolname = ?", (role,)):
        raise RoleNotFound(name=role)


def owner_of_tables(ask: Ask) -> tuple[str, bool]:
    """Return the role that owns the tables, and whether the tables exist.

    If there are no tables, return the current role, which would own new tables.
    """
    ((name, exists),) = ask(
        "SELECT CAST(coalesce((SELECT r.rolname FROM pg_class c JOIN pg_roles r "
        "ON r.oid = c.relowner WHERE c.oid = to_regclass('skills')), current_user) AS text), "
        "to_regclass('skills') IS NOT NULL"
    )
    return name, exists


def granting(
    ask: Ask, role: str, may: Right, team: str | None = None, *, approve: bool = False
) -> list[str]:
    """Return the statements that let a role read, write its own sources, or do everything.

    Running the statements again is safe. If a writer becomes a reader, it loses the right to write,
    unless a group gives it this right.

    With ``approve``, the role may also decide on proposals; without it, the role loses this right.

    If ``team`` is given, the role sees the sources of this team, of its other teams, and sources
    without a team. If ``team`` is None, the role sees the sources of all teams.
    """
    schema, who = _Schema.of(ask), _quoted(role)
    made = list(_granted(schema, who, may))
    if may != "admin":
        made += _deciding(schema, who, approve=approve)
    if may == "read" and (role, True) in ask(_GRANTED):
        made = [*_unwritten(schema, who), *made]
    members, name = schema.within("teams"), _text(role)
    if team is None:
        made.append(f"DELETE FROM {members} WHERE role = {name}")
    else:
        values = f"({name}, {_text(team)})"
        made.append(f"INSERT INTO {members} (role, team) VALUES {values} ON CONFLICT DO NOTHING")
    told = f"'may', {_text(may)}, 'team', {_text(team)}, 'approve', {str(approve).lower()}"
    detail = f"CAST(json_build_object({told}) AS text)"
    return [*made, _noted(schema, "right granted", role, detail)]


def revoking(ask: Ask, role: str) -> list[str]:
    """Return the statements that revoke all rights of a role.

    The statements also release the host names that the role has used. The role still owns its
    sources, which stay in the catalogue.
    """
    schema, who = _Schema.of(ask), _quoted(role)
    made = [
        f"REVOKE ALL ON {schema.within(*TABLES, *VIEWS)} FROM {who}",
        f"REVOKE ALL ({_OWNED}, {_APPROVER}) ON {schema.within('proposals')} FROM {who}",
        *_unwritten(schema, who),
        *(f"REVOKE ALL ON ROUTINE {schema.routine(one)} FROM {who}" for one in ASKED),
        f"REVOKE ALL ON SCHEMA {_quoted(schema.name)} FROM {who}",
    ]
    owner = _quoted(schema.owner)
    member = "SELECT 1 FROM pg_auth_members WHERE roleid = CAST(? AS regrole) AND member = "
    if ask(f"{member}CAST(? AS regrole)", (owner, who)):
        made.append(f"REVOKE {owner} FROM {who}")
    made += [
        f"DELETE FROM {schema.within(one)} WHERE role = {_text(role)}" for one in ("teams", "hosts")
    ]
    return [*made, _noted(schema, "right revoked", role, "NULL")]


def in_force(ask: Ask) -> dict[str, RoleRights]:
    """Return the rights of each role that has any, by role name."""
    return {
        role: RoleRights(
            role, may, None if teams is None else tuple(teams), login, tuple(through), approve
        )
        for role, may, teams, login, approve, through in ask(_IN_FORCE)
    }


def granting_again(ask: Ask) -> list[str]:
    """Return the statements that give all roles their rights in newly added tables."""
    schema = _Schema.of(ask)
    return [
        one
        for role, writes in ask(_GRANTED)
        for one in _granted(schema, _quoted(role), "write" if writes else "read")
    ]


def _granted(schema: _Schema, who: str, may: Right) -> Iterator[str]:
    if may == "admin":
        yield f"GRANT {_quoted(schema.owner)} TO {who}"
        return
    yield f"GRANT USAGE ON SCHEMA {_quoted(schema.name)} TO {who}"
    names = TABLES
    if schema.version >= INVOKED_FROM:
        for view in VIEWS:
            yield f"ALTER VIEW {schema.within(view)} SET (security_invoker = true)"
        names = (*TABLES, *VIEWS)
    yield f"GRANT SELECT ON {schema.within(*names)} TO {who}"
    counts = schema.within(*_COUNTED)
    yield f"REVOKE UPDATE ON {counts} FROM {who}"
    yield f"GRANT INSERT ON {counts} TO {who}"
    for table, columns in _COUNTED.items():
        yield f"GRANT UPDATE ({columns}) ON {schema.within(table)} TO {who}"
    routines: Sequence[str] = ASKED
    if may == "write":
        for rights in dict.fromkeys(_WRITTEN.values()):
            some = [table for table, one in _WRITTEN.items() if one == rights]
            yield f"GRANT {rights} ON {schema.within(*some)} TO {who}"
        yield f"GRANT UPDATE ({_OWNED}) ON {schema.within('proposals')} TO {who}"
        yield f"GRANT USAGE ON SEQUENCE {schema.within(*SEQUENCES)} TO {who}"
        yield f"GRANT SELECT, UPDATE ON SEQUENCE {schema.within(NUMBERS)} TO {who}"
        routines = (*ASKED, *_REFRESHED)
    for one in routines:
        yield f"GRANT EXECUTE ON ROUTINE {schema.routine(one)} TO {who}"


def _deciding(schema: _Schema, who: str, *, approve: bool) -> Iterator[str]:
    """Yield the statements that grant or revoke a role's right to approve."""
    table = schema.within("proposals")
    if approve:
        yield f"GRANT UPDATE ({_DECISION}, {_APPROVER}) ON {table} TO {who}"
    else:
        yield f"REVOKE UPDATE ({_APPROVER}) ON {table} FROM {who}"


def _unwritten(schema: _Schema, who: str) -> Iterator[str]:
    """Yield the statements that revoke all rights of a writer that a reader doesn't have."""
    yield f"REVOKE {_ALL} ON {schema.within(*_WRITTEN)} FROM {who}"
    yield f"REVOKE UPDATE ({_OWNED}) ON {schema.within('proposals')} FROM {who}"
    yield f"REVOKE ALL ON SEQUENCE {schema.within(*SEQUENCES, NUMBERS)} FROM {who}"
    for one in _REFRESHED:
        yield f"REVOKE ALL ON ROUTINE {schema.routine(one)} FROM {who}"


def _noted(schema: _Schema, what: str, role: str, detail: str) -> str:
    values = f"({_text(what)}, {_text(role)}, {detail})"
    return f"INSERT INTO {schema.within('audit')} (what, subject, detail) VALUES {values}"
