"""Grant rights in the registry to roles of a database server, and revoke them."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from registry.core import Core
from registry.errors import UsageProblem
from registry.sync.sources import check_admin

if TYPE_CHECKING:
    from registry.db.postgres.rights import Right, RoleRights


def granting(
    core: Core, role: str, may: "Right", team: str | None = None, *, approve: bool = False
) -> list[str]:
    """Return SQL statements that let a role read, write or administer.

    With ``approve``, the role may also decide on proposals.

    Raises `RoleNotFound`, `UsageProblem`.
    """
    from registry.db.postgres import rights

    _check_role(core, role)
    if may == "admin" and team is not None:
        raise UsageProblem(message="an admin sees all teams: --admin goes without --team")
    return rights.granting(core.reader.rows, role, may, team, approve=approve)


def right_now(core: Core, role: str) -> "Right":
    """Return whether a role may write or only read. Raises the errors of `granting`."""
    from registry.db.postgres import rights

    _check_role(core, role)
    found = rights.in_force(core.reader.rows).get(role)
    return "read" if found is None or found.may == "read" else "write"


def revoking(core: Core, role: str) -> list[str]:
    """Return SQL statements that revoke all rights of a role. Raises the errors of `granting`."""
    from registry.db.postgres import rights

    _check_role(core, role)
    return rights.revoking(core.reader.rows, role)


def listed(core: Core) -> "list[RoleRights]":
    """Return the rights of each role that has rights in the registry.

    Raises `AdminNeeded`, `UsageProblem`.
    """
    from registry.db.postgres import rights

    _check_server(core)
    check_admin(core)
    return list(rights.in_force(core.reader.rows).values())


def carry_out(
    core: Core, statements: Sequence[str], *, rehearse: bool = False
) -> "tuple[dict[str, RoleRights], dict[str, RoleRights]]":
    """Run SQL statements, and return the rights of all roles before and after.

    If ``rehearse``, roll the statements back afterwards.
    """
    from registry.db.postgres.rights import in_force
    from registry.db.write.statements import select_rows

    check_admin(core)
    with suppress(_Rehearsed), core.writer.transaction() as connection:
        ask = partial(select_rows, connection)
        before = in_force(ask)
        for one in statements:
            # Pass the statement on unchanged, because a percent sign in a name is not a parameter.
            connection.exec_driver_sql(one, execution_options={"no_parameters": True})
        after = in_force(ask)
        if rehearse:
            raise _Rehearsed
    return before, after


class _Rehearsed(Exception):
    """The exception that rolls a transaction back."""


def _check_server(core: Core) -> None:
    if not core.host:
        raise UsageProblem(message="rights need PostgreSQL; for SQLite, use file permissions")
    if core.reader.empty:
        raise UsageProblem(message="there is no registry there yet; run: skill-registry db upgrade")


def _check_role(core: Core, role: str) -> None:
    from registry.db.postgres.rights import check_role

    _check_server(core)
    check_role(core.reader.rows, role)
