"""Add, change and remove sources."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from registry.db.schema import diagnostics, gone, skills, sources
from registry.db.visibility import IMPORTING, RESOLVING
from registry.db.write.access import record_audit
from registry.db.write.history import record_tombstones, store_documents
from registry.db.write.labels import record_labels, withdraw_yanked
from registry.db.write.names import refresh_names, refresh_names_below
from registry.db.write.skills import delete_retired
from registry.errors import SourceExists, TrustOutdated
from registry.model import SCOPES, SECURITY_CODES, Remote, Scope, Source

_RANGE = 1_000_000
"""Size of the range of priorities; half of the range is below 0."""


def strength(scope: Scope, priority: int) -> int:
    """Return scope and priority as one number.

    The source with the lowest number has the highest precedence.
    """
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
    project: str | None = None,
    remote: Remote | None = None,
) -> int:
    """Register a source and return its id.

    ``project`` is the folder in which the source's skills are visible; None if its scope is not
    project. Raises `SourceExists` if a source with the name exists, even if this user can't see
    that source.
    """
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
        "project": project,
        "added_at": now,
        **_facts(remote),
    }
    with _unless_taken(name):
        added = connection.execute(insert(sources).values(values))
    (new_id,) = added.inserted_primary_key or (0,)
    record_audit(connection, "source added", name, path=path)
    refresh_names_below(connection, name)
    return int(new_id)


def change_source(
    connection: Connection,
    source_id: int,
    scope: Scope,
    priority: int,
    project: str | None,
    precedence: int | None,
) -> None:
    """Change the scope and priority of a source.

    ``project`` has the same meaning as in `add_source`. ``precedence`` is an admin's decision about
    the order of all owners' sources. If it is None, the stored value stays.
    """
    columns = sources.c.name, sources.c.scope, sources.c.priority
    name, *old = connection.execute(select(*columns).where(sources.c.id == source_id)).one()
    values = {
        "scope": scope,
        "priority": priority,
        "strength": strength(scope, priority),
        "project": project,
    }
    if precedence is not None:
        values["precedence"] = max(-_RANGE // 2, min(_RANGE // 2, precedence))
    connection.execute(update(sources).where(sources.c.id == source_id).values(values))
    told = zip(("scope", "priority"), old, (scope, priority), strict=True)
    changed = {key: [before, after] for key, before, after in told if before != after}
    if changed:
        record_audit(connection, "source changed", name, **changed)
    refresh_names(connection, None)


def rename_source(connection: Connection, source_id: int, before: str, name: str) -> None:
    """Rename a source; then call `change_source` to update the refs of its skills.

    Raises `SourceExists` if a source that this user can't see has the name ``name``.
    """
    renamed = update(sources).where(sources.c.id == source_id).values(name=name)
    # the driver raises the error at once only if the statement returns rows
    with _unless_taken(name):
        connection.execute(renamed.returning(sources.c.id)).one()
    connection.execute(update(gone).where(gone.c.source == before).values(source=name))
    record_audit(connection, "source changed", before, name=[before, name])


def move_source(connection: Connection, source: Source, path: str) -> None:
    """Change the folder of a source; its skills keep their history."""
    connection.execute(update(sources).where(sources.c.id == source.id).values(path=path))
    record_audit(connection, "source changed", source.name, path=[source.path, path])


def set_team(connection: Connection, source_id: int, team: str | None) -> None:
    """Set the team that sees a source.

    Then call `change_source` to update the refs of its skills.
    """
    connection.execute(update(sources).where(sources.c.id == source_id).values(team=team))


def set_owner(connection: Connection, source_id: int, owner: str | None) -> None:
    """Set the owner of a source on a server; None means the current role."""
    given = text("CAST(session_user AS text)") if owner is None else owner
    connection.execute(update(sources).where(sources.c.id == source_id).values(owner=given))


def remove_source(connection: Connection, source_id: int, *, with_tombstones: bool = True) -> None:
    """Delete a source and its skills, but neither their history nor the files on disk.

    If ``with_tombstones``, record a tombstone for each skill.
    """
    known = select(sources.c.name, sources.c.path).where(sources.c.id == source_id)
    for name, path in connection.execute(known):
        record_audit(connection, "source removed", name, path=path)
    live = select(skills.c.id).where(skills.c.source_id == source_id, skills.c.live == 1)
    versions = list(connection.scalars(live))
    store_documents(connection, versions)
    if with_tombstones:
        record_tombstones(connection, versions)
    while delete_retired(connection, source_id=source_id):
        pass
    connection.execute(sources.delete().where(sources.c.id == source_id))
    refresh_names(connection, None)


@contextmanager
def _unless_taken(name: str) -> Iterator[None]:
    """Turn the database's error for a duplicate name into `SourceExists`.

    Another team's source has this name, and this user can't see that source.
    """
    try:
        yield
    except IntegrityError as error:
        if "uq_sources_name" not in str(error.orig):
            raise
        raise SourceExists(name=name, path="") from error


def _facts(remote: Remote | None) -> dict[str, str | None]:
    if remote is None:
        return {}
    only = "\n".join(remote.only) or None
    facts = {"kind": remote.kind, "url": remote.url, "pin": remote.ref, "part": remote.part}
    return facts | {"chosen": only, "version": remote.version, "fetched_at": remote.fetched_at}


def record_remote(connection: Connection, source_id: int, remote: Remote) -> None:
    """Record the address of a remote source, and the last fetched version."""
    connection.execute(update(sources).where(sources.c.id == source_id).values(**_facts(remote)))


def trust_source(
    connection: Connection,
    source_id: int,
    shown: Collection[str | None] | None = None,
    refs: Collection[str] | None = None,
) -> int:
    """Trust the quarantined skills of a source, and return the number of these skills.

    If ``refs`` is given, trust only these skills. ``shown`` holds the tree hashes that the user has
    seen. Raises `TrustOutdated` if the quarantined skills have other files now.
    """
    quarantined = [skills.c.held == 1, *_among(source_id, refs)]
    if shown is not None:
        waiting = set(connection.scalars(select(skills.c.tree_hash).where(*quarantined)))
        if waiting != set(shown):
            name = connection.scalar(select(sources.c.name).where(sources.c.id == source_id))
            raise TrustOutdated(name=name)
    names = _told(connection, "skill trusted", quarantined)
    ids = list(connection.scalars(select(skills.c.id).where(*quarantined)))
    connection.execute(update(skills).where(*quarantined).values(held=0))
    record_labels(connection, ids)
    withdraw_yanked(connection, ids)
    refresh_names(connection, names)
    return len(names)


def distrust_source(connection: Connection, source_id: int, refs: Collection[str] | None) -> int:
    """Quarantine the skills of a source that have security errors; return their number.

    If ``refs`` is given, quarantine only these skills.
    """
    grave = select(diagnostics.c.skill_id).where(
        diagnostics.c.severity == "error", diagnostics.c.code.in_(sorted(SECURITY_CODES))
    )
    found = [skills.c.held != 1, skills.c.id.in_(grave), *_among(source_id, refs)]
    names = _told(connection, "skill held back", found)
    connection.execute(update(skills).where(*found).values(held=1))
    refresh_names(connection, names)
    return len(names)


def _among(source_id: int, refs: Collection[str] | None) -> list[ColumnElement[bool]]:
    """Return the conditions for a source's current skills, or for those of them in ``refs``."""
    only = [] if refs is None else [skills.c.ref.in_(list(refs))]
    return [skills.c.source_id == source_id, skills.c.live == 1, *only]


def begin_importing(connection: Connection, source_ids: Sequence[int]) -> set[int]:
    """During their first import, hide the sources without visible skills; return their ids.

    Their new skills become visible when `begin_resolving` and then `finish_importing` are called.
    """
    nothing = ~exists().where(skills.c.source_id == sources.c.id, skills.c.live == 1)
    unseen = or_(sources.c.enabled == RESOLVING, and_(sources.c.enabled == 1, nothing))
    connection.execute(
        update(sources).where(sources.c.id.in_(source_ids), unseen).values(enabled=IMPORTING)
    )
    hidden = select(sources.c.id).where(
        sources.c.id.in_(source_ids), sources.c.enabled == IMPORTING
    )
    return set(connection.scalars(hidden))


def begin_resolving(connection: Connection, source_ids: Sequence[int]) -> list[int]:
    """Begin to update refs and shadowing of imported sources, which stay hidden; return their ids.

    Before `finish_importing`, the caller must update the names that their skills share with other
    skills (`shared_names`), in any number of transactions. From now on, each change by another
    client also updates the refs and shadowing of skills in these sources.
    """
    ours = sources.c.id.in_(source_ids)
    connection.execute(
        update(sources).where(ours, sources.c.enabled == IMPORTING).values(enabled=RESOLVING)
    )
    return list(
        connection.scalars(select(sources.c.id).where(ours, sources.c.enabled == RESOLVING))
    )


def shared_names(connection: Connection, source_ids: Sequence[int]) -> list[str]:
    """Return the names that skills of these sources share with skills of other sources."""
    # This statement reads a whole index once. For single lookups, a server without statistics would
    # choose the wrong index.
    shared = (
        select(skills.c.name)
        .where(skills.c.live == 1)
        .group_by(skills.c.name)
        .having(
            func.min(skills.c.source_id) != func.max(skills.c.source_id),
            func.max(case((skills.c.source_id.in_(source_ids), 1), else_=0)) == 1,
        )
    )
    return list(connection.scalars(shared))


def finish_importing(connection: Connection, source_ids: Sequence[int]) -> None:
    """Make imported sources visible, and update the names of skills that they shadow."""
    for source_id in source_ids:
        one = sources.c.id == source_id
        owner = func.coalesce(sources.c.owner, "")
        state = select(sources.c.enabled, sources.c.strength, sources.c.precedence, owner)
        was, own, precedence, whose = connection.execute(state.where(one)).one()
        if was not in {IMPORTING, RESOLVING}:
            continue
        connection.execute(update(sources).where(one).values(enabled=1))
        # this import skipped the resolving step, as in a copy of a server's database
        if was == IMPORTING:
            refresh_names(connection, shared_names(connection, [source_id]))
            continue
        # These are the sources with skills that the imported source may shadow: copies of other
        # owners, or weaker sources by an admin's decision. They also include sources that were
        # expected to shadow the imported source but aren't visible yet.
        weaker = tuple_(sources.c.strength, sources.c.id) > tuple_(own, source_id)
        after = or_(
            sources.c.precedence < precedence,
            and_(
                sources.c.precedence == precedence,
                or_(and_(owner == whose, weaker), and_(owner != whose, sources.c.id > source_id)),
            ),
        )
        others = select(sources.c.id).where(
            ~one,
            or_(and_(sources.c.enabled == 1, after), and_(sources.c.enabled == RESOLVING, ~after)),
        )
        if concerned := list(connection.scalars(others)):
            live = select(skills.c.name).where(skills.c.live == 1)
            shared = live.where(skills.c.source_id == source_id).intersect(
                live.where(skills.c.source_id.in_(concerned))
            )
            refresh_names(connection, list(connection.scalars(shared)))


def _told(connection: Connection, what: str, which: Sequence[ColumnElement[bool]]) -> list[str]:
    """Return the names of the skills whose trust will change, and add each to the audit log."""
    told = select(skills.c.name, sources.c.name, skills.c.folder).join(sources).where(*which)
    rows = connection.execute(told).all()
    for _, source, folder in rows:
        record_audit(connection, what, f"{source}/{folder}")
    return [row[0] for row in rows]


def record_sync(connection: Connection, source_id: int, now: str, result: str) -> None:
    """Record the time and the result of a source's sync."""
    connection.execute(
        update(sources)
        .where(sources.c.id == source_id)
        .values(last_sync_at=now, last_result=result)
    )
