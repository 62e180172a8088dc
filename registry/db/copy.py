"""Copy a registry from one database to another, for example from a file to a server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from registry.db.interface import Backend, State
from registry.db.read.summary import is_filled, registered
from registry.errors import DatabaseBehind, UsageProblem

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

PAGE: Final = 500
"""Maximum number of rows in memory.

File contents can have 16 MiB each, so at most a tenth of this number of contents is in memory.
"""

_LIVE: Final = "(SELECT id FROM skills WHERE live = 1)"


_NOTING: Final = (("sources", "tell"), ("labels", "tell"), ("proposals", "guard"))
"""The triggers of a server that would note each copied row in the audit log, as if it were new."""


@dataclass(frozen=True, slots=True)
class CopyCounts:
    """How many sources, skills, revisions and contents were copied."""

    sources: int
    skills: int
    revisions: int
    contents: int


def copy(
    source: Backend,
    target: Backend,
    progress: Callable[[str, int, int | None], None] = lambda _doing, _done, _total: None,
) -> CopyCounts:
    """Copy the registry and its history from one snapshot; if an error occurs, copy nothing.

    In the copy, the sources of this machine get this machine's host name in the target (an empty
    name in a file). Unfinished changes, sync locks and signatures are not copied. Without
    signatures, the copy can't undo changes that were made before.

    Raises `UsageProblem` if there is no registry to copy, or if the target already contains a
    registry. Raises `DatabaseProblem` if a database can't be used.
    """
    for backend in (source, target):
        backend.reader.empty = backend.reader.state() is State.EMPTY
    if source.reader.empty:
        raise UsageProblem(message=f"there is no registry at {source.path}")
    if source.reader.state() is State.BEHIND:
        if source.shared:
            raise DatabaseBehind(path=source.path, revision=registered(source.reader)[0])
        source.make_current()
    target.make_current()
    target.reader.empty = False
    if is_filled(target.reader):
        raise UsageProblem(message=f"{target.path} holds a registry already; choose another")
    with source.reader.snapshot(), target.open_writer().transaction() as connection:
        return _Copy(source, target, connection, progress).run()


class _Copy:
    def __init__(
        self,
        source: Backend,
        target: Backend,
        connection: "Connection",
        progress: Callable[[str, int, int | None], None],
    ) -> None:
        self._source, self._target = source, target
        self._connection, self._progress = connection, progress

    def run(self) -> CopyCounts:
        from registry.db import schema
        from registry.db.write.names import refresh_names

        is_server = self._connection.dialect.name == "postgresql"
        if is_server:
            self._note_changes("DISABLE")
        self._whole(schema.audit, "id", self._numbered_anew)
        sources = self._whole(schema.sources, "id", self._placed)
        skills = self._whole(schema.skills, "id", condition="live = 1")
        theirs = f"skill_id IN {_LIVE}"
        self._whole(schema.documents, "skill_id", condition=theirs)
        self._whole(schema.skill_files, "skill_id, path", condition=theirs)
        self._whole(schema.skill_tags, "tag, skill_id", condition=theirs)
        self._index()
        notices = f"(skill_id IS NULL OR {theirs})"
        self._whole(schema.diagnostics, "id", condition=notices)
        contents = self._whole(schema.contents, "hash", size=PAGE // 10)
        revisions = self._whole(schema.revisions, "id")
        self._whole(schema.labels, "id")
        self._whole(schema.entries, "id")
        self._whole(schema.usage, "uid")
        self._whole(schema.usage_days, "day, uid")
        self._whole(schema.gone, "uid")
        self._whole(schema.proposals, "id", size=PAGE // 10)
        # The target may have other rules for shadowing, so decide again which skills are shadowed.
        refresh_names(self._connection, None)
        if is_server:
            self._note_changes("ENABLE")
            self._connection.exec_driver_sql(
                "SELECT registry_note('registry copied', %s, NULL)", (self._source.path,)
            )
            self._connection.exec_driver_sql("SELECT registry_count_totals()")
            for table in ("sources", "skills", "diagnostics", "revisions", "labels", "entries"):
                self._connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), "
                    f"(SELECT coalesce(max(id), 0) + 1 FROM {table}), false)"
                )
        return CopyCounts(sources, skills, revisions, contents)

    def _note_changes(self, state: str) -> None:
        """Enable or disable the triggers `_NOTING` until the transaction ends.

        Only an admin may do this. Others never see it, because it is part of the transaction.
        """
        for table, trigger in _NOTING:
            self._connection.exec_driver_sql(f"ALTER TABLE {table} {state} TRIGGER {trigger}")

    @staticmethod
    def _numbered_anew(row: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in row.items() if key != "id"}

    def _placed(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["host"] == self._source.host:
            row["host"] = self._target.host
        return row

    def _whole(
        self,
        table: "Table",
        key: str,
        change: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: row,
        *,
        condition: str = "1 = 1",
        size: int | None = None,
    ) -> int:
        from registry.db.write.statements import insert_rows

        marks = ", ".join("?" for _ in key.split(", "))
        ending = f"ORDER BY {key} LIMIT {size or PAGE}"
        total = self._source.reader.rows(f"SELECT count(*) FROM {table.name} WHERE {condition}")
        copied = 0
        rows = self._rows(table, f"{condition} {ending}")
        while rows:
            last = [rows[-1][column] for column in key.split(", ")]
            insert_rows(self._connection, table, [change(row) for row in rows])
            copied += len(rows)
            self._progress(f"copying {table.name}", copied, int(total[0][0]))
            rows = self._rows(table, f"{condition} AND ({key}) > ({marks}) {ending}", last)
        return copied

    def _rows(
        self, table: "Table", which: str, values: Sequence[object] = ()
    ) -> list[dict[str, Any]]:
        columns = [column.name for column in table.columns]
        sql = f"SELECT {', '.join(columns)} FROM {table.name} WHERE {which}"
        return [
            dict(zip(columns, row, strict=True)) for row in self._source.reader.rows(sql, values)
        ]

    def _index(self) -> None:
        from registry.db.versions import UNINDEXED, Indexed
        from registry.db.write.statements import dialect_of

        sql = (
            "SELECT s.id, s.name, s.tags, s.description, substr(d.text, d.body_start + 1) "
            "FROM documents d JOIN skills s ON s.id = d.skill_id WHERE s.live = 1 "
            f"AND d.indexed <> {UNINDEXED} AND s.id > ? ORDER BY s.id LIMIT ?"
        )
        last = 0
        while rows := self._source.reader.rows(sql, (last, PAGE)):
            indexed = list(map(Indexed._make, rows))
            dialect_of(self._connection).add_to_index(self._connection, indexed)
            last = indexed[-1].id
