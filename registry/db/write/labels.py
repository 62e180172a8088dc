"""Record the versions of skills, and the changes of their states.

A sync records the versions of all its skills with a few statements. These statements are plain SQL,
which creates rows from other rows.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection

from registry.db.audit_context import current_context
from registry.db.schema import labels
from registry.db.write.access import record_audit
from registry.db.write.names import refresh_names
from registry.db.write.statements import dialect_of, execute
from registry.document.labels import REUSED, REUSED_FINDING
from registry.model import BY_REMOTE, RemoteState, VersionState
from registry.text import utc_now

_RECORD: Final = """
INSERT INTO labels (uid, label, number, tree_hash, state, at, host, tool, client)
SELECT s.uid, s.version, 0, s.tree_hash, 'active', s.indexed_at, nullif(src.host, ''), ?, ?
FROM skills s JOIN sources src ON src.id = s.source_id
WHERE s.id {{in_array}} AND s.version IS NOT NULL AND s.tree_hash IS NOT NULL
AND s.status IN ('ok', 'warning') AND s.held <> 1 AND {is_label}
AND NOT EXISTS (SELECT 1 FROM labels l WHERE l.uid = s.uid AND l.label = s.version)
ON CONFLICT DO NOTHING
"""

_NOTE_REUSED: Final = f"""
INSERT INTO diagnostics (source_id, skill_id, folder, code, severity, message, path, fix)
SELECT s.source_id, s.id, s.folder, '{REUSED}', ?, replace(?, '@', s.version), s.document, ?
FROM skills s JOIN labels l ON l.uid = s.uid AND l.label = s.version AND l.number = 0
WHERE s.id {{in_array}} AND s.tree_hash <> l.tree_hash AND s.status IN ('ok', 'warning')
"""

HAS_YANKED_FILES: Final = """
EXISTS (SELECT 1 FROM labels l WHERE l.uid = {0}.uid AND l.tree_hash = {0}.tree_hash
  AND l.state = 'yanked' AND NOT EXISTS (SELECT 1 FROM labels x
    WHERE x.uid = l.uid AND x.label = l.label AND x.number > l.number))
"""
"""SQL condition: the files of the row ``{0}`` of ``skills`` are a yanked version."""

_YANKED: Final = HAS_YANKED_FILES.format("skills")

_WITHDRAW: Final = f"UPDATE skills SET held = 2 WHERE id {{in_array}} AND held = 0 AND {_YANKED}"

_OFFER: Final = f"UPDATE skills SET held = 0 WHERE id {{in_array}} AND held = 2 AND NOT {_YANKED}"


def record_labels(connection: Connection, ids: Sequence[int]) -> None:
    """Record the versions that the front matter of these skills names, if they are new.

    ``ids`` are the ids of the rows in `skills`. If a label already belongs to other files, the
    skill gets a finding.
    """
    if not ids:
        return
    who = current_context()
    sql = _RECORD.format(is_label=dialect_of(connection).IS_LABEL.format("s.version"))
    execute(connection, sql, who.tool, who.client, list(ids))
    execute(connection, _NOTE_REUSED, *REUSED_FINDING, list(ids))


def withdraw_yanked(connection: Connection, ids: Sequence[int]) -> None:
    """Hide the current skills among these whose files are a yanked version.

    ``ids`` are the ids of the rows in `skills`. The caller must update the shadowing of the skills'
    names.
    """
    execute(connection, _WITHDRAW, list(ids))


def add_label(connection: Connection, uid: str, label: str, tree_hash: str, host: str) -> None:
    """Create a version for the files with this tree hash; the caller has checked that it is new."""
    _add(connection, uid, label, 0, tree_hash, "active", host)


def change_state(
    connection: Connection,
    uid: str,
    label: str,
    state: VersionState,
    *,
    place: str,
    host: str,
    reason: str | None = None,
    replacement: str | None = None,
) -> None:
    """Change the state of a version.

    If the skill has the version's files, also hide or show the skill. ``place`` is the skill's
    source/folder, for the audit log.
    """
    known = (labels.c.uid == uid) & (labels.c.label == label)
    rows = connection.execute(labels.select().where(known).order_by(labels.c.number)).all()
    last = rows[-1]
    told = {"reason": reason, "replacement": replacement}
    _add(connection, uid, label, last.number + 1, last.tree_hash, state, host, **told)
    what = "version active again" if state == "active" else f"version {state}"
    record_audit(connection, what, f"{place}@{label}", **told)
    rows = execute(connection, "SELECT id, name FROM skills WHERE uid = ? AND live = 1", uid).all()
    _hide_or_show(connection, rows)


def _hide_or_show(connection: Connection, rows: Sequence[Any]) -> None:
    """Hide the skills whose files are a yanked version; show the others. Rows have id and name."""
    ids = [row.id for row in rows]
    withdraw_yanked(connection, ids)
    execute(connection, _OFFER, ids)
    refresh_names(connection, {row.name for row in rows})


def follow_remote(
    connection: Connection, source_id: int, host: str, states: Sequence[RemoteState]
) -> list[tuple[str, RemoteState]]:
    """Give the versions of a remote source's skills the states that the source tells.

    ``states`` are all deprecated and yanked versions. A version that it no longer names is active
    again, unless a user of this registry changed its state. A label that has other files here is
    skipped. Return the name of the skill and the new state for each change.
    """
    rows = execute(
        connection,
        "SELECT s.id, s.uid, s.folder, s.name FROM skills s WHERE s.source_id = ? AND s.live = 1 "
        "AND (s.folder {in_array} OR s.uid IN (SELECT l.uid FROM labels l WHERE l.tool = ?))",
        source_id,
        [one.folder for one in states],
        BY_REMOTE,
    ).all()
    places = {row.folder: row for row in rows}
    uids = [row.uid for row in rows]
    known: dict[tuple[str, str], Any] = {}
    for label in execute(
        connection,
        "SELECT uid, label, number, tree_hash, state, reason, replacement, tool FROM labels "
        "WHERE uid {in_array} ORDER BY number",
        uids,
    ).all():
        known[label.uid, label.label] = label
    changed: list[tuple[str, RemoteState]] = []

    def add(key: tuple[str, str], number: int, tree: str, state: VersionState) -> None:
        _add(connection, *key, number, tree, state, host, tool=BY_REMOTE)

    named = set()
    for one in states:
        place = places.get(one.folder)
        if place is None:
            continue
        key = place.uid, one.label
        named.add(key)
        last = known.get(key)
        if last is None:
            add(key, 0, one.tree_hash, "active")
        elif last.tree_hash != one.tree_hash or one[3:] == (
            last.state,
            last.reason,
            last.replacement,
        ):
            continue
        number = 1 if last is None else last.number + 1
        _add(connection, *key, number, one.tree_hash, one.state, host, *one[4:], tool=BY_REMOTE)
        changed.append((place.name, one))
    for key, last in known.items():
        if key not in named and last.state != "active" and last.tool == BY_REMOTE:
            add(key, last.number + 1, last.tree_hash, "active")
    if rows:
        _hide_or_show(connection, rows)
    return changed


def _add(
    connection: Connection,
    uid: str,
    label: str,
    number: int,
    tree_hash: str,
    state: VersionState,
    host: str,
    reason: str | None = None,
    replacement: str | None = None,
    tool: str | None = None,
) -> None:
    who = current_context()
    row = {
        "uid": uid,
        "label": label,
        "number": number,
        "tree_hash": tree_hash,
        "state": state,
        "at": utc_now(),
        "reason": reason,
        "replacement": replacement,
        "host": host or None,
        "tool": tool or who.tool,
        "client": who.client,
    }
    connection.execute(labels.insert().values(row))
