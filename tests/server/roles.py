"""A registry of several roles on the real server, each of which connects as itself."""

import secrets
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import make_url

from registry.api import SkillRegistry
from registry.changes.rights import carry_out, granting
from registry.settings import Settings
from tests.databases import Databases


class World:
    """The tables belong to ``owner``, a role without other rights on the server.

    Names of roles are the server's, for all of its databases: here each has an ending of its own.
    """

    def __init__(self, databases: Databases, folder: Path, owner: str = "owner") -> None:
        self._databases, self.folder, self.owner = databases, folder, owner
        self._base, self._owner = databases.owned(owner)
        self._ending = secrets.token_hex(4)
        self._made: list[str] = []
        self._opened = ExitStack()
        self._lines: dict[str, psycopg.Connection] = {}

    def name(self, role: str) -> str:
        """Return what the server calls a role."""
        return self._owner if role == self.owner else f"{role}_{self._ending}"

    def add(self, role: str, may: str | None = None, team: str | None = None) -> str:
        """Make a role that may log in, with rights; an admin is made by who may make members."""
        self.as_dba(f"CREATE ROLE {self.name(role)} LOGIN")
        self._made.append(self.name(role))
        if may is not None:
            self.grant(role, may, team)
        return self.name(role)

    def grant(self, role: str, may: str, team: str | None = None) -> None:
        """Give a role rights, as the command does."""
        core = self.open(self.owner).core
        statements = granting(core, self.name(role), may, team)
        if may == "admin":
            self.as_dba("; ".join(statements))
        else:
            carry_out(core, statements)

    def url(self, role: str) -> str:
        """Return the address of the registry for a role."""
        url = make_url(self._base).set(username=self.name(role))
        return url.render_as_string(hide_password=False)

    def open(self, role: str, host: str | None = None, **settings: object) -> SkillRegistry:
        """Open the registry as a role, on a machine of its own unless it is named."""
        opened = SkillRegistry.open(
            self.url(role), settings=Settings(host=host or f"{role}-pc", **settings)
        )
        return self._opened.enter_context(opened)

    def sql(self, role: str, *statements: str) -> list[tuple[object, ...]]:
        """Say something to the server as a role does by itself; return what the last one did."""
        cursor = self._told(self.url(role), statements)
        return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]

    def as_dba(self, statement: str) -> list[tuple[object, ...]]:
        """Run statements as the server's superuser."""
        cursor = self._told(self._base, [statement])
        return cursor.fetchall() if cursor.description else []

    def _told(self, url: str, statements: Iterable[str]) -> psycopg.Cursor:
        """Say something on a connection that then is as it was when it was new."""
        if url not in self._lines:
            told = {"autocommit": True, "prepare_threshold": None}
            self._lines[url] = self._opened.enter_context(
                closing(psycopg.connect(self._plain(url), **told))
            )
        connection = self._lines[url]
        connection.execute("BEGIN")
        try:
            for one in statements:
                cursor = connection.execute(one)
            connection.execute("COMMIT")
        finally:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
            connection.execute("DISCARD ALL")
        return cursor

    def close(self) -> None:
        self._opened.close()
        self._databases.drop(self._base)
        if self._made:
            self._databases.do(f"DROP ROLE {', '.join(self._made)}")

    @staticmethod
    def _plain(url: str) -> str:
        return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
