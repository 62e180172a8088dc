"""Versions of skills: stage new versions, publish them together, delete retired versions.

Readers see only rows with ``live`` 1. A sync first stores its new versions without it ("staged"),
in many short transactions. Then it publishes them in one transaction. So readers see all changes of
the sync or none, and a killed sync leaves only rows that readers don't see.

Statements for many rows are plain SQL, which takes an array of ids as one value. SQLAlchemy Core
would compile a new statement for each number of ids.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, and_, delete, insert, literal_column, select

from registry.db.schema import diagnostics, documents, skill_files, skill_tags, skills, sources
from registry.db.versions import UNINDEXED, Indexed, NewVersion, how_indexed
from registry.db.write.history import (
    add_contents,
    packed_texts,
    record_revisions,
    record_tombstones,
    store_documents,
)
from registry.db.write.labels import HAS_YANKED_FILES
from registry.db.write.names import refresh_names
from registry.db.write.statements import dialect_of, execute, execute_many, insert_rows
from registry.model import Diagnostic

_USABLE: Final = "({0}.status IN ('ok', 'warning') AND {0}.held = 0)"

# A server without statistics about the rows may choose a bad index. So the conditions also contain
# the position, which depends only on the folder, and the name key, which depends only on the name.
_STAGED: Final = (
    "SELECT n.id, n.replaces, n.name, n.folder, o.live, o.name AS old, o.folder AS old_folder, "
    "(SELECT h.id FROM skills h WHERE h.source_id = n.source_id AND h.folder = n.folder "
    "AND h.position = n.position AND h.live = 1) AS holder, "
    "CASE WHEN o.name = n.name AND o.folder = n.folder AND o.source_id = n.source_id "
    f"AND {_USABLE.format('n')} = {_USABLE.format('o')} THEN (SELECT count(*) FROM skills t "
    "WHERE t.name_key = n.name_key AND t.name = n.name AND t.live = 1) END AS namesakes "
    "FROM skills n LEFT JOIN skills o ON o.id = n.replaces WHERE n.id {in_array}"
)

_RETIRE: Final = (
    "UPDATE skills SET live = 0 FROM skills n WHERE n.id {in_array} AND skills.id = n.replaces "
    "AND skills.live = 1 AND skills.source_id = n.source_id AND skills.folder = n.folder "
    "RETURNING skills.id"
)
"""Statement that retires the current versions of folders for which staged versions exist."""

_INHERIT: Final = (
    "UPDATE skills SET live = 1, ref = known.ref, bare = known.bare, shadowed = known.shadowed, "
    "copies = known.copies, held = known.held FROM (SELECT n.id, coalesce(o.ref, '') AS ref, "
    "coalesce(o.bare, 0) AS bare, coalesce(o.shadowed, 0) AS shadowed, "
    "coalesce(o.copies, '') AS copies, "
    f"CASE WHEN n.held = 0 AND {HAS_YANKED_FILES.format('n')} THEN 2 ELSE n.held END AS held "
    "FROM skills n LEFT JOIN skills o ON o.id = n.replaces WHERE n.id {in_array}) known "
    "WHERE skills.id = known.id"
)
"""Statement that publishes versions with the refs and shadowing of the versions that they replace.

If the files are a yanked version, it hides the skill. For most versions, refs and shadowing don't
change, so no later statement writes their rows again.
"""


def stage(
    connection: Connection,
    versions: Iterable[NewVersion],
    first: int | None = None,
    mismatched: Collection[int] = (),
) -> list[int]:
    """Store new versions, which readers don't see yet, and return their ids.

    ``first`` is the lowest free id, if known. ``mismatched`` holds versions to be replaced whose
    stored text is corrupt. Their text is stored again, so that the full-text index can remove its
    words.
    """
    batch = list(versions)
    if not batch:
        return []
    if first is None:
        first = next_ids(connection, len(batch))
    files: list[dict[str, Any]] = []
    tags: list[dict[str, Any]] = []
    findings: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    again: list[dict[str, Any]] = []
    found: list[Indexed] = []
    for number, version in enumerate(batch, first):
        columns = version.columns
        columns["id"], columns["live"] = number, 0
        tags.extend({"tag": tag, "skill_id": number} for tag in version.tags)
        files.extend({"skill_id": number, **file} for file in version.files)
        findings.extend(
            _finding(finding, columns["source_id"], number, columns["folder"])
            for finding in version.findings
        )
        if version.text is not None:
            said = (columns["name"], columns["tags"], columns["description"])
            how = how_indexed(columns["status"], (version.text, *said))
            texts.append(
                {
                    "skill_id": number,
                    "text": version.text,
                    "body_start": version.body_start,
                    "front_matter": version.front_matter,
                    "indexed": how,
                }
            )
            if columns["replaces"] in mismatched:
                again.append({**texts[-1], "skill_id": columns["replaces"]})
            if how != UNINDEXED:
                found.append(Indexed(number, *said, version.text[version.body_start :]))
    insert_rows(connection, skills, [version.columns for version in batch])
    if again:
        sql = "DELETE FROM documents WHERE skill_id {in_array}"
        execute(connection, sql, [one["skill_id"] for one in again])
    insert_rows(connection, documents, [*texts, *again])
    insert_rows(connection, skill_files, files)
    insert_rows(connection, skill_tags, tags)
    insert_rows(connection, diagnostics, findings)
    if found:
        dialect_of(connection).add_to_index(connection, found)
    # Store the contents last: on a server, another writer of the same bytes waits from here until
    # this transaction ends.
    add_contents(connection, [packed for version in batch for packed in version.contents])
    return [version.columns["id"] for version in batch]


def next_ids(connection: Connection, count: int) -> int:
    """Return the first of ``count`` free ids for new versions.

    The caller must hold the lock of writers.
    """
    sql = f"SELECT {dialect_of(connection).NEXT_IDS.format(count=count)}"
    return int(execute(connection, sql).scalar_one())


def exchange(connection: Connection, staged: Mapping[int, int]) -> list[int]:
    """Replace current versions with staged versions of the same folders.

    Returns the ids of the staged versions that became current. ``staged`` maps the id of a version
    to the id of the staged version that replaces it. Versions that another client has replaced are
    left out. The rows stay locked until the transaction ends, so this function doesn't need the
    lock of writers. The caller then takes that lock and calls `publish`, which updates shadowing,
    copies and refs.
    """
    retired = execute(connection, _RETIRE, list(staged.values())).scalars()
    exchanged = [staged[one] for one in retired]
    if exchanged:
        execute(connection, _INHERIT, exchanged)
        record_revisions(connection, exchanged)
    return exchanged


def publish(
    connection: Connection,
    staged: Sequence[int],
    removed: Sequence[int],
    became_links: Sequence[int] = (),
    exchanged: Collection[int] = (),
) -> list[int]:
    """Publish the ``staged`` versions; retire the ``removed`` versions and all replaced versions.

    ``became_links`` versions are retired without a tombstone, because another source has their
    skills. A staged version is left out if another client changed the skill in the meantime. Then
    the version to replace is no longer current, or its folder has a current version. Returns the
    ids of the versions that became current, including the ids that `exchange` returned.
    """
    holders: list[tuple[int, int | None]] = []
    replaced: list[int] = []
    done = set(exchanged)
    names: set[str] = set()
    for row in execute(
        connection, _STAGED, list(staged)
    ):  # one by one, because memory may not be large enough for all rows
        if row.id not in done:
            if row.replaces is not None and row.live != 1:
                continue
            holders.append((row.id, row.holder))
            if row.replaces is not None:
                replaced.append(row.replaces)
        # If a name is unique, its skill keeps its ref unless name or folder changed. A folder may
        # be equal to another skill's ref, so the folders are also added to the names.
        if row.namesakes != 1:
            known = (row.name, row.folder, row.old, row.old_folder)
            names.update(name for name in known if name is not None)
    record_tombstones(connection, removed)
    removed = [*removed, *became_links]
    outgoing = [*removed, *replaced]
    leaving = {None, *outgoing}
    incoming = [one for one, holder in holders if holder in leaving]
    if removed:
        sql = "SELECT name, folder FROM skills WHERE id {in_array}"
        names.update(name for row in execute(connection, sql, list(removed)) for name in row)
    if outgoing:
        store_documents(connection, outgoing)
    switch(connection, incoming, outgoing, names)
    return [*exchanged, *incoming]


def switch(
    connection: Connection, incoming: Sequence[int], outgoing: Sequence[int], names: Iterable[str]
) -> None:
    """Publish the versions ``incoming`` and retire the versions ``outgoing``.

    ``names`` holds all skill names for which this changes shadowing, copies or refs.
    """
    if outgoing:
        execute(connection, "UPDATE skills SET live = 0 WHERE id {in_array}", list(outgoing))
    if incoming:
        execute(connection, _INHERIT, list(incoming))
    refresh_names(connection, names)
    record_revisions(connection, incoming)


def delete_version(connection: Connection, version: int) -> None:
    """Delete a version that this transaction has retired or staged."""
    dialect_of(connection).remove_from_index(connection, [version])
    connection.execute(delete(skills).where(skills.c.id == version, skills.c.live == 0))


def delete_retired(connection: Connection, *, host: str = "", source_id: int | None = None) -> bool:
    """Delete a batch of versions that aren't current; return whether there may be more of them.

    If ``source_id`` is given, delete all versions of this source, including current versions.
    Otherwise delete the versions of the host's sources that aren't current. Some of them may be
    staged, so the caller must hold the sync lock of the host.
    """
    if source_id is not None:
        which = skills.c.source_id == source_id
    else:
        ours = select(sources.c.id).where(sources.c.host == host)
        # Use a literal, because SQLite doesn't use a partial index if the value is a parameter.
        which = and_(skills.c.live == literal_column("0"), skills.c.source_id.in_(ours))
    most = dialect_of(connection).RETIRED_AT_ONCE
    chosen = list(connection.scalars(select(skills.c.id).where(which).limit(most)))
    if chosen:
        dialect_of(connection).remove_from_index(connection, chosen)
        execute(connection, "DELETE FROM skills WHERE id {in_array}", chosen)
    return len(chosen) == int(most)


def set_installed(connection: Connection, origins: Sequence[tuple[int, str | None]]) -> None:
    """Store the origins of installed copies by version id.

    If a version isn't an installed copy, its origin is None.
    """
    sql = "UPDATE skills SET installed = ? WHERE id = ? AND live = 1"
    execute_many(connection, sql, [(origin, number) for number, origin in origins])


def replace_notices(
    connection: Connection, source_id: int, notices: Iterable[tuple[str, Diagnostic]]
) -> None:
    """Replace all stored findings of a source about paths that aren't skills."""
    connection.execute(
        delete(diagnostics).where(
            diagnostics.c.source_id == source_id, diagnostics.c.skill_id.is_(None)
        )
    )
    add_notices(connection, [(source_id, *notice) for notice in notices])


def add_notices(connection: Connection, notices: Iterable[tuple[int, str, Diagnostic]]) -> None:
    """Add findings about paths that are not skills: source id, path, finding."""
    rows = [_finding(finding, source_id, None, folder) for source_id, folder, finding in notices]
    if rows:
        connection.execute(insert(diagnostics), rows)


def replace_findings(
    connection: Connection,
    source_id: int,
    code: str,
    unread: Mapping[int, tuple[str, Sequence[Diagnostic]]],
) -> None:
    """Replace the findings with this ``code`` about current versions.

    ``unread`` maps the id of a version to its folder and its new findings. Findings with other
    codes stay.
    """
    live = execute(
        connection, "SELECT id FROM skills WHERE live = 1 AND id {in_array}", list(unread)
    ).all()
    rows = [
        _finding(finding, source_id, version, unread[version][0])
        for (version,) in live
        for finding in unread[version][1]
    ]
    sql = "DELETE FROM diagnostics WHERE code = ? AND skill_id {in_array}"
    execute(connection, sql, code, list(unread))
    insert_rows(connection, diagnostics, rows)


_FINDING: Final = ("code", "severity", "message", "path", "line", "fix")
"""The stored columns of a finding.

There is no column for the category, because the category depends only on the code.
"""


def _finding(
    finding: Diagnostic, source_id: int, skill_id: int | None, folder: str
) -> dict[str, Any]:
    return {
        "source_id": source_id,
        "skill_id": skill_id,
        "folder": folder,
        **{key: getattr(finding, key) for key in _FINDING},
    }


_CURRENT: Final = """
SELECT {next_ids},
       (SELECT count(*) FROM skills b WHERE b.uid = ? AND b.live = 1),
       s.id, s.uid, s.name, s.folder, s.created_at, s.content_hash, s.tree_hash,
       CASE WHEN NOT EXISTS (SELECT 1 FROM contents c WHERE c.hash = s.content_hash)
            THEN d.text END
FROM (SELECT 1 AS one) o
LEFT JOIN skills s ON s.source_id = ? AND s.folder = ? AND s.live = 1
LEFT JOIN documents d ON d.skill_id = s.id
"""


class LiveVersion(NamedTuple):
    """The current version in a folder, with the values that are needed to change the folder.

    ``text`` is the text of SKILL.md; it is None if the bytes of SKILL.md are stored.
    """

    id: int
    uid: str
    name: str
    folder: str
    created_at: str
    content_hash: str | None
    tree_hash: str | None
    text: str | None


class CurrentState(NamedTuple):
    """The stored state of a folder before a change.

    ``free`` is the lowest free version id. ``live`` is the current version in the folder.
    ``is_back`` tells whether the skill to restore already exists, in this folder or another folder.
    """

    free: int
    is_back: bool
    live: LiveVersion | None


def load_current(
    connection: Connection, source_id: int, folder: str, uid: str | None
) -> CurrentState:
    """Return the stored state of a folder; ``uid`` is the skill that a restore may put there."""
    sql = _CURRENT.format(next_ids=dialect_of(connection).NEXT_IDS.format(count=1))
    row = tuple(execute(connection, sql, uid, source_id, folder).one())
    return CurrentState(row[0], row[1] > 0, None if row[2] is None else LiveVersion(*row[2:]))


def replace_version(
    connection: Connection, standing: CurrentState, version: NewVersion | None
) -> None:
    """Replace the current version of a folder with ``version``.

    If ``version`` is None, remove it.
    """
    live = standing.live
    if live is None and version is None:
        return
    incoming = [] if version is None else stage(connection, [version], first=standing.free)
    names = set() if version is None else {version.columns["name"], version.columns["folder"]}
    if live is not None:
        names |= {live.name, live.folder}
        if version is None:
            record_tombstones(connection, [live.id])
        if live.text is not None and live.content_hash is not None:
            add_contents(connection, [*packed_texts([(live.content_hash, live.text)])])
    switch(connection, incoming, [] if live is None else [live.id], names)


def store_vectors(connection: Connection, rows: Sequence[tuple[bytes, int]]) -> None:
    """Store sentence vectors (`catalog.search.meaning`), each with its version."""
    execute_many(connection, "UPDATE sketches SET vector = ? WHERE skill_id = ?", rows)
