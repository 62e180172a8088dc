"""Versions of skills: stage them unseen, make them live at once, clear away the dead.

Readers see only rows with ``live`` 1. A sync stages its new versions in many short transactions
and publishes them in one, so it is seen whole or not at all, and a killed sync leaves only rows
that nobody sees.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    and_,
    bindparam,
    column,
    delete,
    func,
    insert,
    select,
    table,
    update,
)

from registry.db.schema import diagnostics, documents, skill_files, skill_tags, skills, sources
from registry.db.writes.bulk import fill_temporary, insert_rows
from registry.db.writes.fulltext import UNINDEXED, Indexed, add_to_index, forget_dying, how_indexed
from registry.db.writes.names import refresh_names
from registry.db.writes.revisions import Packed, add_contents, keep_documents, record_revisions
from registry.model import Diagnostic


@dataclass(slots=True)
class NewVersion:
    """One version to be stored: ``columns`` of skills, and what hangs on it.

    ``text`` is None where there is no readable document; ``contents`` are bytes of files to be
    kept.
    """

    columns: dict[str, Any]
    tags: Sequence[str] = ()
    files: Sequence[dict[str, Any]] = ()
    findings: Sequence[Diagnostic] = ()
    text: str | None = None
    contents: Sequence[Packed] = ()
    body_start: int = 0
    front_matter: str = "{}"


_DEAD_AT_ONCE = 500
_dying = table("dying", column("id"))


def stage(connection: Connection, versions: Iterable[NewVersion], live: int = 0) -> list[int]:
    """Store new versions, unseen by readers unless ``live`` is 1, and return their ids."""
    batch = list(versions)
    if not batch:
        return []
    first = (connection.execute(select(func.max(skills.c.id))).scalar() or 0) + 1
    found: list[Indexed] = []
    rows: dict[str, list[dict[str, Any]]] = {"d": [], "f": [], "t": [], "x": [], "s": []}
    for number, version in enumerate(batch, first):
        columns = version.columns
        columns["id"], columns["live"] = number, live
        rows["s"].append(columns)
        rows["t"].extend({"tag": tag, "skill_id": number} for tag in version.tags)
        for file in version.files:
            file["skill_id"] = number
        rows["f"].extend(version.files)
        rows["x"].extend(
            _finding(finding, columns["source_id"], number, columns["folder"])
            for finding in version.findings
        )
        if version.text is not None:
            texts = (columns["name"], columns["tags"], columns["description"])
            how = how_indexed(columns["status"], (version.text, *texts))
            rows["d"].append(
                {
                    "skill_id": number,
                    "text": version.text,
                    "body_start": version.body_start,
                    "front_matter": version.front_matter,
                    "indexed": how,
                }
            )
            if how != UNINDEXED:
                found.append(Indexed(number, *texts, version.text[version.body_start :], how))
    tables = ((skills, "s"), (documents, "d"), (skill_files, "f"), (skill_tags, "t"))
    for into, key in (*tables, (diagnostics, "x")):
        insert_rows(connection, into, rows[key])
    add_contents(connection, [packed for version in batch for packed in version.contents])
    add_to_index(connection, found)
    return [row["id"] for row in rows["s"]]


def publish(connection: Connection, staged: Sequence[int], removed: Sequence[int]) -> list[int]:
    """Make staged versions live in the place of those they replace, and retire ``removed``.

    A staged version whose predecessor is live no more, or whose folder has a live version by now,
    lost to a change made meanwhile and is left out. Returns the ids that went live.
    """
    fill_temporary(connection, "outgoing", "id INTEGER", removed)
    fill_temporary(connection, "incoming", "id INTEGER", staged)
    connection.exec_driver_sql(
        "DELETE FROM incoming WHERE id IN (SELECT n.id FROM incoming i CROSS JOIN skills n "
        "WHERE n.id = i.id AND n.replaces IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM skills o WHERE o.id = n.replaces AND o.live = 1))"
    )
    connection.exec_driver_sql(
        # CROSS JOIN keeps SQLite's planner, which knows nothing of the small table, in this order.
        "INSERT INTO outgoing SELECT n.replaces FROM incoming i CROSS JOIN skills n "
        "WHERE n.id = i.id AND n.replaces IS NOT NULL ON CONFLICT DO NOTHING"
    )
    connection.exec_driver_sql(
        "DELETE FROM incoming WHERE id IN (SELECT n.id FROM incoming i CROSS JOIN skills n "
        "CROSS JOIN skills o WHERE n.id = i.id AND o.source_id = n.source_id "
        "AND o.folder = n.folder AND o.live = 1 AND o.id NOT IN (SELECT id FROM outgoing))"
    )
    both = "(SELECT id FROM incoming UNION SELECT id FROM outgoing)"
    # A folder may stand in the way of another skill's ref, so folders count as names here.
    names = {
        name
        for row in connection.exec_driver_sql(f"SELECT name, folder FROM skills WHERE id IN {both}")
        for name in row
    }
    keep_documents(connection)
    connection.exec_driver_sql("UPDATE skills SET live = 0 WHERE id IN (SELECT id FROM outgoing)")
    connection.exec_driver_sql("UPDATE skills SET live = 1 WHERE id IN (SELECT id FROM incoming)")
    refresh_names(connection, names)
    record_revisions(connection)
    return [row[0] for row in connection.exec_driver_sql("SELECT id FROM incoming")]


def bury(
    connection: Connection,
    *,
    host: str = "",
    source_id: int | None = None,
    version: int | None = None,
) -> int:
    """Delete a batch of dead versions of a host's sources, or of a source's, or one dead version.

    Returns how many were deleted; call it until that is 0. Versions that are dead because they
    are staged are spared only by the sync lock of their host: without it, name the ``version``.
    """
    if source_id is not None:
        which = skills.c.source_id == source_id
    elif version is not None:
        which = and_(skills.c.id == version, skills.c.live == 0)
    else:
        ours = select(sources.c.id).where(sources.c.host == host)
        which = and_(skills.c.live == 0, skills.c.source_id.in_(ours))
    chosen = list(connection.scalars(select(skills.c.id).where(which).limit(_DEAD_AT_ONCE)))
    if not chosen:
        return 0
    fill_temporary(connection, "dying", "id INTEGER", chosen)
    forget_dying(connection)
    connection.execute(delete(skills).where(skills.c.id.in_(select(_dying.c.id))))
    return len(chosen)


def refresh_fingerprints(
    connection: Connection, rows: Sequence[dict[str, Any]], files: Sequence[dict[str, Any]]
) -> None:
    """Store new stat facts of versions whose content is unchanged.

    ``rows``: known (the version's id), new_fingerprint, new_racy; ``files``: known, at (the path)
    and the stat columns of skill_files.
    """
    connection.execute(
        update(skills)
        .where(skills.c.id == bindparam("known"), skills.c.live == 1)
        .values(fingerprint=bindparam("new_fingerprint"), racy=bindparam("new_racy")),
        rows,
    )
    if files:
        facts: dict[str, BindParameter[int]] = {
            name: bindparam(f"new_{name}")
            for name in ("mode", "size", "mtime_ns", "ctime_ns", "inode")
        }
        connection.execute(
            update(skill_files)
            .where(skill_files.c.skill_id == bindparam("known"))
            .where(skill_files.c.path == bindparam("at"))
            .values(facts),
            files,
        )


def replace_notices(
    connection: Connection, source_id: int, notices: Iterable[tuple[str, Diagnostic]]
) -> None:
    """Store the findings about places of a source that are no skills, instead of the old ones."""
    connection.execute(
        delete(diagnostics).where(
            diagnostics.c.source_id == source_id, diagnostics.c.skill_id.is_(None)
        )
    )
    rows = [_finding(finding, source_id, None, folder) for folder, finding in notices]
    if rows:
        connection.execute(insert(diagnostics), rows)


def _finding(
    finding: Diagnostic, source_id: int, skill_id: int | None, folder: str
) -> dict[str, Any]:
    return {
        "source_id": source_id,
        "skill_id": skill_id,
        "folder": folder,
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "path": finding.path,
        "line": finding.line,
        "fix": finding.fix,
    }


def dump(value: object) -> str:
    """Return ``value`` as the JSON text that is stored."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
