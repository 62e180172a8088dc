"""A PostgreSQL server with a replica that confirms each commit, and two PgBouncers before them."""

import signal
import time
from contextlib import closing, suppress
from typing import Any, Final

import psycopg
from sqlalchemy import make_url

from tests.databases import Databases
from tests.pooler import Pooler, program
from tests.servers import FAST, START_SECONDS, Server

REPLICATED: Final = (
    "wal_level=replica max_wal_senders=4 wal_retrieve_retry_interval=100ms max_connections=60 "
    # What is acknowledged was written; that a machine loses its power is tried elsewhere.
    "synchronous_commit=on"
).split()

WRITING: Final = """
SELECT a.application_name FROM pg_stat_activity a JOIN pg_locks l USING (pid)
WHERE l.relation IN (SELECT oid FROM pg_class WHERE relname = 'data_version')
AND l.mode = 'ExclusiveLock' AND l.granted AND a.state = 'idle in transaction'
"""
"""Who holds the lock of all writers, with nothing under way."""


WAITING: Final = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
"""Whose commit waits for the replica."""


class Member(Server):
    """A server that others may follow; ``of``: the one that it copies and follows itself."""

    def __init__(self, of: "Member | None" = None) -> None:
        self._of = of
        super().__init__(options=[one for one in FAST if "commit" not in one] + REPLICATED)

    def _fill(self) -> None:
        if self._of is None:
            super()._fill()
            return
        where = ["-h", "127.0.0.1", "-p", str(self._of.port), "-U", "tests"]
        command = ["pg_basebackup", "-D", str(self.data), *where, "-c", "fast", "-X", "stream"]
        self._run([*command, "-R", "--no-sync"])

    def end(self, how: signal.Signals) -> None:
        """Stop it, as ``pg_ctl stop`` does: SIGQUIT immediately, SIGINT fast."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(START_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def promote(self) -> None:
        """Let it be the one that is written to."""
        assert self.ask("SELECT pg_promote(true, 60)") == [(True,)]

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Return what the server answers."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


class Cluster:
    """What is written to, what follows it, and the addresses by which both are found.

    ``confirming``: what follows has each commit before that is acknowledged.
    """

    def __init__(self, *, replicated: bool = True, confirming: bool = True) -> None:
        self._confirming = confirming
        self._ports: list[int] = []
        self.poolers: dict[str, Pooler] = {}
        self.replica: Member | None = None
        self.primary = Member()
        try:
            self.primary.start()
            with closing(Databases(self.primary.url)) as databases:
                self.url = databases.new()
            for mode in ("session", "transaction") if program() else ():
                self.poolers[mode] = Pooler(self.url, mode)
            if replicated:
                self._ports = [self.primary.port, self.follow().port]
        except BaseException:
            self.stop()
            raise

    def follow(self) -> Member:
        """Start a replica."""
        free = [port for port in self._ports if port != self.primary.port]
        self.replica = Member(of=self.primary)
        self.replica.port = free[0] if free else 0
        self.replica.start()
        # Not before: a copy of this setting would wait for a replica of its own.
        if self._confirming:
            self.primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.primary.ask("SELECT pg_reload_conf()")
        state = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        expected = "sync" if self._confirming else "async"
        deadline = time.monotonic() + START_SECONDS
        while self.primary.ask(state) != [(expected,)]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return self.replica

    def address(self, way: str) -> str:
        """Return the address of the database: ``direct``, or by a pooler of a mode."""
        if way in self.poolers:
            return self.poolers[way].address(self.url)
        if not self._ports:
            return self.url
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        given = make_url(self.url)
        query = f"host={hosts}&target_session_attrs=read-write"
        return f"postgresql+psycopg://tests@/{given.database}?{query}"

    @property
    def url_now(self) -> str:
        """The address of the database on the server that is written to."""
        return str(make_url(self.url).set(port=self.primary.port))

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Return what the registry's database answers, or nothing while it is away."""
        there = self.url_now.replace("+psycopg", "")
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(there, autocommit=True) as connection,
        ):
            return connection.execute(sql).fetchall()
        return []

    def fail_over(self) -> None:
        """Kill what is written to, and write to its replica from now on, which may be down."""
        assert self.replica is not None
        self.primary.end(signal.SIGQUIT)
        fallen, self.primary, self.replica = self.primary, self.replica, None
        if not self.primary.is_running:
            self.primary.start()
        self.primary.promote()
        for pooler in self.poolers.values():
            pooler.point_to(self.url_now)
        fallen.stop()

    def stop(self) -> None:
        """Stop all of it."""
        for one in (*self.poolers.values(), self.replica, self.primary):
            if one is not None:
                one.stop()
