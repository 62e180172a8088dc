"""Add, change and remove sources."""

from sqlalchemy import Connection, insert, select, update

from registry.db.schema import skills, sources
from registry.db.writes.gone import record_gone
from registry.db.writes.names import refresh_names
from registry.db.writes.revisions import store_documents
from registry.db.writes.versions import delete_retired
from registry.errors import SourceExists
from registry.model import SCOPES, Scope

_RANGE = 1_000_000
"""Priorities lie between minus and plus half of this."""


def strength(scope: Scope, priority: int) -> int:
    """Return the rank of a source in one number; the lowest is the strongest."""
    bounded = max(-_RANGE // 2, min(_RANGE // 2, priority))
    return SCOPES.index(scope) * _RANGE * 2 - bounded


def add_source(
    connection: Connection,
    name: str,
    path: str,
    scope: Scope,
    priority: int,
    now: str,
    *,
    host: str = "",
) -> int:
    """Register a source and return its id. Raises `SourceExists`."""
    clash = connection.execute(
        select(sources.c.name, sources.c.path).where(
            (sources.c.name == name) | ((sources.c.path == path) & (sources.c.host == host))
        )
    ).first()
    if clash:
        raise SourceExists(name=clash.name, path=clash.path)
    values = {
        "name": name,
        "path": path,
        "scope": scope,
        "priority": priority,
        "strength": strength(scope, priority),
        "host": host,
        "added_at": now,
    }
    (new_id,) = connection.execute(insert(sources).values(values)).inserted_primary_key or (0,)
    # Names that begin with the new source's name and a slash are not refs any more.
    refresh_names(connection, None)
    return int(new_id)


def change_source(connection: Connection, source_id: int, scope: Scope, priority: int) -> None:
    """Give a source another scope and priority."""
    connection.execute(
        update(sources)
        .where(sources.c.id == source_id)
        .values(scope=scope, priority=priority, strength=strength(scope, priority))
    )
    refresh_names(connection, None)


def remove_source(connection: Connection, source_id: int) -> None:
    """Forget a source and its skills, but for their history; the disk is not touched."""
    live = select(skills.c.id).where(skills.c.source_id == source_id, skills.c.live == 1)
    versions = list(connection.scalars(live))
    store_documents(connection, versions)
    record_gone(connection, versions)
    while delete_retired(connection, source_id=source_id):
        pass
    connection.execute(sources.delete().where(sources.c.id == source_id))
    refresh_names(connection, None)


def record_sync(connection: Connection, source_id: int, now: str, result: str) -> None:
    """Write down when a source was synced, and with what result."""
    connection.execute(
        update(sources)
        .where(sources.c.id == source_id)
        .values(last_sync_at=now, last_result=result)
    )
