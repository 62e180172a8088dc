"""Record revisions, tombstones, and the last changes for `undo`.

This module uses plain SQL, because its statements create rows from other rows and take an array of
ids as one value.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence

from sqlalchemy import Connection, delete, func, select, text, update

from registry.db.audit_context import current_context
from registry.db.interface import MAX_INTEGER
from registry.db.read.history import GROUP_DIGITS, UNDOABLE_COMMANDS, RecordedChange
from registry.db.read.skills import REMOTE_ORIGIN, UNSTORED
from registry.db.schema import changes, contents, gone, revisions
from registry.db.versions import Packed, pack
from registry.db.write.access import record_audit
from registry.db.write.labels import record_labels
from registry.db.write.repository import record_entries
from registry.db.write.statements import dialect_of, execute, insert_rows
from registry.text import utc_now

_RECORD_REVISIONS = """
INSERT INTO revisions
  (uid, number, name, document, content_hash, tree_hash, seen_at, files, origin, host, tool, client)
SELECT s.uid,
  1 + coalesce((SELECT max(coalesce(r.turn, r.number)) FROM revisions r WHERE r.uid = s.uid), 0),
  s.name, s.document, s.content_hash, s.tree_hash, s.indexed_at, (SELECT {files}
   FROM skill_files f WHERE f.skill_id = s.id), {origin}, src.host, ?, ?
FROM skills s JOIN sources src ON src.id = s.source_id
WHERE s.id {{in_array}} AND s.tree_hash IS NOT NULL AND s.status <> 'no_document' AND NOT EXISTS
  (SELECT 1 FROM revisions r WHERE r.uid = s.uid AND r.tree_hash = s.tree_hash)
ON CONFLICT DO NOTHING
"""

# If a skill gets the files of an old revision again, that revision gets the next turn. All
# revisions after that also get the next turn.
_TURN = """
UPDATE revisions SET turn = 1 + (SELECT max(coalesce(x.turn, x.number)) FROM revisions x
  WHERE x.uid = revisions.uid)
WHERE id IN (SELECT r.id FROM skills s JOIN revisions r ON r.uid = s.uid
  AND r.tree_hash = s.tree_hash WHERE s.id {in_array} AND EXISTS (SELECT 1 FROM revisions x
  WHERE x.uid = r.uid AND x.id <> r.id
  AND coalesce(x.turn, x.number) >= coalesce(r.turn, r.number)))
"""

_OWN = """
AND (uid IN (SELECT s.uid FROM skills s JOIN sources src ON src.id = s.source_id
  WHERE src.host = :host AND src.owner = session_user)
OR uid IN (SELECT uid FROM gone WHERE owner = session_user AND source NOT IN
  (SELECT name FROM sources WHERE host <> :host))
OR role = session_user AND host = :host AND uid NOT IN (SELECT uid FROM gone UNION
  SELECT uid FROM skills)) """

_UNUSED = """
DELETE FROM content_uses u WHERE NOT EXISTS (SELECT 1 FROM revisions r WHERE r.uid = u.uid)
"""

BATCH = 500
"""Maximum number of SKILL.md files in memory at once."""


def record_revisions(connection: Connection, versions: Sequence[int]) -> None:
    """Record revisions for versions that have just become live, with the author of the change."""
    if not versions:
        return
    sql = _RECORD_REVISIONS.format(
        files=dialect_of(connection).REVISION_FILES, origin=REMOTE_ORIGIN
    )
    who = current_context()
    execute(connection, sql, who.tool, who.client, list(versions))
    execute(connection, _TURN, list(versions))
    record_entries(connection, versions)
    record_labels(connection, versions)


def add_revision(connection: Connection, *, uid: str, tree_hash: str, **facts: str | None) -> None:
    """Add a revision of a skill that this registry never had, unless it has these files already."""
    numbers = select(func.max(revisions.c.number)).where(revisions.c.uid == uid)
    last = connection.execute(numbers).scalar() or 0
    who = current_context()
    row = {"uid": uid, "number": last + 1, "tree_hash": tree_hash, **facts}
    row |= {"tool": who.tool, "client": who.client}
    known = (revisions.c.uid == uid) & (revisions.c.tree_hash == tree_hash)
    if connection.execute(select(revisions.c.id).where(known)).first() is None:
        connection.execute(revisions.insert().values(row))


def add_contents(
    connection: Connection, files: Sequence[Packed], mismatched: Collection[str] = ()
) -> None:
    """Store the bytes of files, and skip hashes that are stored already.

    ``mismatched`` holds the hashes of corrupt stored bytes; these bytes are replaced.
    """
    if wrong := [file.hash for file in files if file.hash in mismatched]:
        execute(connection, "DELETE FROM contents WHERE hash {in_array}", wrong)
    rows = {file.hash: file._asdict() | {"packed": int(file.packed)} for file in files}
    # All writers use the same order, so that two writers of the same contents can't deadlock.
    ordered = [rows[key] for key in sorted(rows)]
    insert_rows(connection, contents, ordered, ignore_known=True)


def store_documents(connection: Connection, versions: Sequence[int]) -> None:
    """Store the SKILL.md files of current versions in history before the versions are retired.

    The text of a current version is stored with the version. If the bytes of SKILL.md differ from
    its text (byte order mark, NUL characters), they were stored when SKILL.md was read.
    """
    for start in range(0, len(versions), BATCH):
        some = list(versions[start : start + BATCH])
        rows = execute(connection, f"{UNSTORED} AND s.id {{in_array}}", some)
        add_contents(connection, list(packed_texts((row.content_hash, row.text) for row in rows)))


def packed_texts(texts: Iterable[tuple[str, str]]) -> Iterator[Packed]:
    """Yield the contents of SKILL.md files if their encoded text has the given hash.

    Skip the others.
    """
    for content_hash, found in texts:
        data = found.encode()
        if f"sha256:{hashlib.sha256(data).hexdigest()}" == content_hash:
            yield pack(content_hash, data)


def prune(
    connection: Connection,
    *,
    keep: int,
    before: str | None,
    host: str | None = None,
    contents_too: bool = True,
) -> tuple[int, int]:
    """Delete old revisions, and contents that no revision needs; return both numbers.

    For each skill, keep the newest ``keep`` revisions, the current revision, the revisions of its
    versions, and the revisions from ``before`` or later. If ``before`` is None, the age of a
    revision doesn't matter. For a removed skill, keep the last revision, unless the skill was
    removed before ``before``.

    Revisions of skills that are neither live nor have a tombstone are always deleted. On a server,
    ``host`` limits the deletion to this host's sources that the current role owns. Contents are
    deleted only if ``contents_too``.
    """
    values = {"keep": min(keep, MAX_INTEGER), "before": before}
    deleted = connection.execute(
        text(
            "DELETE FROM revisions WHERE (id IN (SELECT id FROM ("
            "SELECT id, uid, tree_hash, seen_at, "
            "row_number() OVER (PARTITION BY uid ORDER BY number DESC) AS age FROM revisions) r "
            "WHERE r.age > :keep AND (CAST(:before AS TEXT) IS NULL OR r.seen_at < :before) "
            "AND NOT EXISTS (SELECT 1 FROM skills s WHERE s.uid = r.uid AND s.live = 1 "
            "AND s.tree_hash = r.tree_hash) "
            "AND NOT EXISTS (SELECT 1 FROM labels l WHERE l.uid = r.uid "
            "AND l.tree_hash = r.tree_hash) "
            "AND NOT EXISTS (SELECT 1 FROM gone g WHERE g.uid = r.uid "
            "AND (CAST(:before AS TEXT) IS NULL OR g.since >= :before) "
            "AND (g.tree_hash = r.tree_hash OR (g.tree_hash IS NULL AND r.age = 1)))) "
            "OR uid NOT IN (SELECT uid FROM gone UNION SELECT uid FROM skills WHERE live = 1)) "
            f"{'' if host is None else _OWN}RETURNING 1"
        ),
        values if host is None else values | {"host": host},
    ).all()
    # Keep the decisions, because `check` must still recognise the approved files.
    connection.exec_driver_sql(
        "UPDATE proposals SET archive = NULL WHERE archive IS NOT NULL "
        "AND state IN ('applied', 'rejected')"
        + ("" if host is None else " AND role = session_user")
    )
    connection.exec_driver_sql(
        "DELETE FROM gone WHERE (uid NOT IN (SELECT uid FROM revisions) "
        "OR uid IN (SELECT uid FROM skills WHERE live = 1))"
        + ("" if host is None else " AND owner = session_user")
    )
    connection.exec_driver_sql("DELETE FROM labels WHERE uid NOT IN (SELECT uid FROM revisions)")
    if deleted:
        record_audit(connection, "history pruned", None, revisions=len(deleted))
    if not contents_too:
        return len(deleted), 0
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_UNUSED)
    freed = connection.exec_driver_sql(
        f"DELETE FROM contents WHERE hash NOT IN (SELECT n.hash FROM "
        f"({dialect_of(connection).REVISION_HASHES}) n WHERE n.hash IS NOT NULL) RETURNING 1"
    ).all()
    return len(deleted), len(freed)


_RECORD_TOMBSTONES = """
INSERT INTO gone (uid, name, source, folder, created_at, since, tree_hash, owner, team)
SELECT s.uid, s.name, src.name, s.folder, s.created_at, ?, s.tree_hash, src.owner, src.team
FROM skills s JOIN sources src ON src.id = s.source_id
WHERE s.id {in_array} AND s.status <> 'no_document'
ON CONFLICT DO NOTHING
"""


def record_tombstones(connection: Connection, versions: Sequence[int]) -> None:
    """Record tombstones for the skills of these versions before the versions are retired."""
    if not versions:
        return
    which = list(versions)
    sql = "DELETE FROM gone WHERE uid IN (SELECT uid FROM skills WHERE id {in_array})"
    execute(connection, sql, which)
    execute(connection, _RECORD_TOMBSTONES, utc_now(), which)


def note_trash(connection: Connection, uid: str, number: str) -> None:
    """Record the number that a deleted skill has in the trash."""
    connection.execute(update(gone).where(gone.c.uid == uid).values(trash=number))


def drop_tombstones(connection: Connection, numbers: Sequence[str]) -> None:
    """Delete the tombstones of skills that were removed from the trash permanently."""
    connection.execute(gone.delete().where(gone.c.trash.in_(numbers)))


def add_change(connection: Connection, change: RecordedChange, host: str) -> None:
    """Record a change if it isn't recorded yet; the database assigns the ``id``."""
    facts = {key: value for key, value in change._asdict().items() if key != "id"}
    row = {**facts, "host": host, "client": current_context().client}
    insert_rows(connection, changes, [row], ignore_known=True)


def drop_old_changes(connection: Connection, host: str) -> None:
    """Delete the recorded changes of a host, except for its last `UNDOABLE_COMMANDS` commands."""
    command = func.coalesce(changes.c.command, func.substr(changes.c.number, 1, GROUP_DIGITS))
    latest = (
        select(func.max(changes.c.id))
        .where(changes.c.host == host)
        .group_by(command)
        .order_by(func.max(changes.c.id).desc())
    )
    too_old = latest.offset(UNDOABLE_COMMANDS).limit(1).scalar_subquery()
    connection.execute(delete(changes).where(changes.c.host == host, changes.c.id <= too_old))


def drop_change(connection: Connection, change: RecordedChange) -> None:
    """Delete a single recorded change."""
    connection.execute(delete(changes).where(changes.c.id == change.id))


def drop_changes(connection: Connection, first: RecordedChange) -> None:
    """Delete a recorded change and all later changes of the same skill."""
    connection.execute(delete(changes).where(changes.c.uid == first.uid, changes.c.id >= first.id))
