"""Databases on a server of the tests, which go from one test to the next."""

import secrets
from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy import make_url

# Each definition in a database, with the transaction that made it what it is.
DEFINITIONS = f"""
    SELECT md5(string_agg(one, ' ' ORDER BY one)) FROM (
        {
    " UNION ALL ".join(
        f"SELECT concat('{table}', {key}, ':', xmin) AS one FROM pg_{table} WHERE {owner} >= 16384"
        for table, key, owner in (
            ("attribute", "attrelid, '.', attnum", "attrelid"),
            ("index", "indexrelid", "indexrelid"),
            *(
                (table, "oid", "oid")
                for table in "attrdef class constraint extension namespace proc rewrite trigger type".split()
            ),
        )
    )
}
        UNION ALL SELECT concat('public:', xmin) FROM pg_namespace WHERE nspname = 'public'
        UNION ALL SELECT setconfig::text FROM pg_db_role_setting JOIN pg_database AS here
            ON here.oid = setdatabase AND here.datname = current_database()
    ) AS definitions
"""
OTHERS = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
COUNTERS = """
    SELECT string_agg(format('setval(%L, %s, %L)', format('%I.%I', schemaname, sequencename),
        coalesce(last_value, start_value), last_value IS NOT NULL), ', ') FROM pg_sequences
"""
END = "SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid"
LARGE = 1 << 20
"""Bytes of tables from which on a database is not worth to be emptied."""
SIZE = (
    "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE oid >= 16384 AND relkind IN ('r', 'i')"
)


@dataclass(frozen=True)
class Rows:
    """All that the tables of a database hold, and where its counters stand."""

    tables: dict[str, bytes]
    counters: str

    @classmethod
    def of(cls, connection: psycopg.Connection) -> "Rows":
        tables = {}
        for (table,) in connection.execute(TABLES).fetchall():
            with connection.cursor().copy(f"COPY {table} TO STDOUT") as rows:
                tables[table] = b"".join(rows)
        return cls(tables, _value(connection, COUNTERS))

    def put(self, connection: psycopg.Connection) -> None:
        """Let a database with the same tables hold these and no others."""
        with connection.transaction():
            # Without triggers and references, in whichever order.
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute("; ".join(f"DELETE FROM {table}" for table in self.tables))
            for table, rows in self.tables.items():
                if rows:
                    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                        copy.write(rows)
            connection.execute(f"SELECT {self.counters}")


class Databases:
    """Makes empty databases on a server, each a copy of one that was migrated once.

    What is given back is emptied and used again, which takes a tenth of the time.
    """

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql")
        self.server = self._url.render_as_string(hide_password=False)
        self._template: str | None = None
        self._as_made = ""
        self._filled: Rows | None = None
        self._free: list[str] = []
        self._owned: dict[str, tuple[str, str]] = {}
        self._own: dict[str, psycopg.Connection] = {}

    def new(self) -> str:
        """Return the address of a database of its own, with the schema in place."""
        if self._template is None:
            self._template = self.empty()
            _make_current(self._template)
            self._remember(self._template)
        if self._free:
            return self._free.pop()
        return self.empty(make_url(self._template).database)

    def empty(self, template: str | None = None) -> str:
        """Return the address of a database without a schema."""
        name = f"registry_{secrets.token_hex(6)}"
        self._create(name, template or "template0")
        return (
            self._url.set(database=name)
            .set(drivername="postgresql+psycopg")
            .render_as_string(hide_password=False)
        )

    def owned(self, owner: str) -> tuple[str, str]:
        """Return the address of a new database whose schema a role made, and the role's name.

        The role has no other rights, and a name that begins like this.
        """
        if owner not in self._owned:
            role, made = f"{owner}_{secrets.token_hex(4)}", self.empty()
            self.do(f"CREATE ROLE {role} LOGIN")
            self.do(f"ALTER DATABASE {make_url(made).database} OWNER TO {role}")
            _make_current(make_url(made).set(username=role).render_as_string(hide_password=False))
            self._owned[owner] = made, role
        made, role = self._owned[owner]
        url = self.empty(make_url(made).database)
        self.do(f"ALTER DATABASE {make_url(url).database} OWNER TO {role}")
        return url, role

    def saved(self, url: str) -> Rows:
        """Return what a database holds."""
        return Rows.of(self._connected(url))

    def put(self, url: str, saved: Rows) -> None:
        """Let a database hold what was saved of it, and nobody else be in it."""
        connection = self._connected(url)
        connection.execute(END, [[*self._others(connection)]])
        saved.put(connection)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still in it."""
        self._leave(url)
        self.do(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")

    def give_back(self, url: str) -> None:
        """Keep a database of ``new`` for the next who asks for one, if it can be made as it was."""
        try:
            usable = self._empty_again(self._connected(url))
        except psycopg.Error:  # a test has broken it, or ended its connections
            usable = False
        if usable:
            self._free.append(url)
        else:
            self.drop(url)

    def remove(self) -> None:
        """Leave nothing on a server that stays."""
        for url in (*self._free, *filter(None, [self._template])):
            self.drop(url)
        for url, role in self._owned.values():
            self.drop(url)
            self.do(f"DROP ROLE {role}")

    def close(self) -> None:
        """End our connections."""
        for url in [*self._own]:
            self._leave(url)

    def _connected(self, url: str) -> psycopg.Connection:
        """Return our own connection to a database, a new one where a test has ended it."""
        try:
            self._own[url].execute("")
        except (KeyError, psycopg.Error):
            if url in self._own:
                self._own.pop(url).close()
            address = make_url(url).set(drivername="postgresql")
            self._own[url] = psycopg.connect(
                address.render_as_string(hide_password=False), autocommit=True
            )
        return self._own[url]

    def _others(self, connection: psycopg.Connection) -> set[int]:
        """Return the processes that serve others than ourselves."""
        return {pid for (pid,) in connection.execute(OTHERS)}

    def _leave(self, url: str) -> None:
        if url in self._own:
            self._own.pop(url).close()

    def _remember(self, url: str) -> None:
        connection = self._connected(url)
        self._as_made = _value(connection, DEFINITIONS)
        self._filled = Rows.of(connection)
        self._leave(url)  # to be copied

    def _empty_again(self, connection: psycopg.Connection) -> bool:
        """Remove all rows but those of a new database; False: it is something else by now."""
        if (
            self._others(connection)
            or _value(connection, SIZE) > LARGE
            or _value(connection, DEFINITIONS) != self._as_made
        ):
            return False
        assert self._filled is not None
        self._filled.put(connection)
        return True

    def _create(self, name: str | None, template: str | None) -> None:
        self.do(
            f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8' "
            "STRATEGY FILE_COPY"  # nothing of a few megabytes need be in the log
        )

    def do(self, sql: str) -> None:
        """Say something to the server that is about no database."""
        self._connected(self.server).execute(sql)


def _make_current(url: str) -> None:
    from registry.db.postgres.dialect import parse_url
    from registry.db.postgres.writer import ensure_current

    ensure_current(parse_url(url))


def _value(connection: psycopg.Connection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]
