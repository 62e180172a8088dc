"""A database on a PostgreSQL server, in which many machines share one catalogue."""

import os
import secrets
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from registry.db.interface import NO_UPDATES, Backend, DatabaseInfo, StatUpdates, SyncLock, UsageRow
from registry.db.postgres.dialect import load_driver, parse_url, to_pyformat, translate
from registry.db.postgres.reader import PostgresReader
from registry.db.read.summary import problems, registered, staged
from registry.db.sqlite.dialect import copy_target, unwritable
from registry.db.write.usage import statements
from registry.errors import DatabaseBusy

if TYPE_CHECKING:
    from registry.db.postgres.writer import PostgresWriter

_WHERE: Final = ("host", "hostaddr", "port", "dbname", "service")
"""Query parameters of an address that determine the server or the database."""


class PostgresBackend(Backend):
    """The PostgreSQL database at ``url``, in which this machine has the name ``host``."""

    def __init__(self, url: str, host: str) -> None:
        self._address = parse_url(url)
        load_driver(self._address)
        self.host = host
        self.reader: PostgresReader = PostgresReader(self._address)
        where = {key: self._address.query[key] for key in _WHERE if key in self._address.query}
        self.identity = f"{self.path} {sorted(where.items())}"
        self._writer: PostgresWriter | None = None

    @property
    def shared(self) -> bool:
        return True

    def make_current(self) -> None:
        from registry.db.postgres.writer import ensure_current

        ensure_current(self._address)

    def open_writer(self) -> "PostgresWriter":
        if self._writer is None:
            from registry.db.postgres.writer import PostgresWriter

            self._writer = PostgresWriter(self._address, self.host)
        return self._writer

    def sync_lock(self) -> SyncLock:
        """Return the lock for syncs of this host.

        Only processes with the same host name may publish the same source, so they share this lock.
        """
        from registry.db.postgres.lock import ServerLock

        doing = f"the sync of process {os.getpid()} on {self.host}"
        return ServerLock(self.open_writer(), doing)

    def mark_unchanged(
        self, source_ids: Sequence[int], now: str, updates: StatUpdates = NO_UPDATES
    ) -> None:
        from registry.db.write.sources import record_sync
        from registry.db.write.statements import execute

        if not source_ids:  # with nothing to store, don't write: this role may have no right to
            return
        with self.open_writer().transaction() as connection:
            for sql, values in updates.statements(self.reader):
                execute(connection, sql, *values)
            for source_id in source_ids:
                record_sync(connection, source_id, now, "ok")

    def add_usage(self, rows: Sequence[UsageRow], wait: float) -> bool:
        import psycopg

        from registry.db.postgres.session import Session

        try:
            # Use a session and not a writer: the writer imports SQLAlchemy, which readers must not
            # import.
            with closing(Session.open(self._address, {})) as session:
                session.begin(["BEGIN", f"SET LOCAL lock_timeout = {max(1, round(wait * 1000))}"])
                for sql, values in statements(self.reader, rows):
                    session.keep(to_pyformat(sql), list(values))
                session.commit()
        except psycopg.Error as error:
            problem = translate(error, self.path, wait)
            if isinstance(problem, DatabaseBusy):
                return False
            raise problem from error
        return True

    def info(self) -> DatabaseInfo:
        version = self.reader.rows("SHOW server_version")
        size = self.reader.rows("SELECT pg_database_size(current_database())")
        revision, sources, skills = registered(self.reader)
        unseen, unseen_bytes = staged(self.reader)
        return DatabaseInfo(
            path=self.path,
            exists=not self.reader.empty,
            bytes=int(size[0][0]) if size else 0,
            revision=revision,
            sources=sources,
            skills=skills,
            staged=unseen,
            staged_bytes=unseen_bytes,
            server_version=version[0][0] if version else None,
            host=self.host,
        )

    def check(self) -> Sequence[str]:
        return list(problems(self.reader.rows, "SELECT skill_id FROM search_texts"))

    def backup(self, target: str, *, overwrite: bool) -> None:
        from registry.db.copy import copy
        from registry.db.sqlite.backend import SqliteBackend

        target = copy_target(target, overwrite=overwrite)
        draft = SqliteBackend(f"{target}.{secrets.token_hex(8)}.part")
        try:
            copy(self, draft)
            draft.close()
            os.replace(draft.path, target)
        except OSError as error:
            raise unwritable(target, error) from error
        finally:
            draft.close()
            _remove(draft.path)

    def close(self) -> None:
        super().close()
        if self._writer is not None:
            self._writer.close()


def _remove(path: str) -> None:
    for ending in ("", "-wal", "-shm", ".lock"):
        with suppress(OSError):
            os.unlink(path + ending)
