"""Read the history of skills: revisions, stored bytes, tombstones.

Any user with write access can add rows. Don't trust a change without a valid signature.
"""

import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from registry.db.interface import Reader
from registry.db.read.labels import versions
from registry.db.read.skills import StoredSkill, origin_of, select
from registry.disk.files import digest
from registry.errors import ContentDamaged, FileTooLarge
from registry.model import Origin, SkillFile, SkillVersion, Value
from registry.text import is_utc_text, utc_now


@dataclass(frozen=True, slots=True)
class Revision(Value):
    """The files that a skill had at one time; ``number`` counts the revisions of a skill from 1.

    ``current`` tells whether the skill has these files now. ``origin`` is the remote source of the
    files, if any.

    ``role``, ``host``, ``tool`` and ``client`` describe the author of the change. The server itself
    records only the role. ``document`` is the path of the skill file among ``files``. ``complete``
    tells whether the bytes of all files are stored. ``versions`` are the versions with exactly
    these files.
    """

    uid: str
    number: int
    name: str
    document: str | None
    content_hash: str | None
    tree_hash: str
    seen_at: str
    files: tuple[SkillFile, ...]
    current: bool
    complete: bool
    origin: Origin | None = None
    role: str | None = None
    host: str | None = None
    tool: str | None = None
    client: str | None = None
    versions: tuple[SkillVersion, ...] = ()


def revisions(reader: Reader, uid: str) -> list[Revision]:
    """Return the revisions of a skill, the newest first, and the versions with their files."""
    found = _select(reader, "r.uid = ? ORDER BY r.number DESC", uid)
    labelled: dict[str, tuple[SkillVersion, ...]] = {}
    for one in versions(reader, uid) if found else ():
        labelled[one.tree_hash] = (*labelled.get(one.tree_hash, ()), one)
    return [replace(one, versions=labelled.get(one.tree_hash, ())) for one in found]


def revision_with(reader: Reader, uid: str, tree_hash: str) -> Revision | None:
    """Return the revision of a skill with these files; None if it isn't stored."""
    found = _select(reader, "r.uid = ? AND r.tree_hash = ?", uid, tree_hash)
    return next(iter(found), None)


def revisions_with_files(reader: Reader, tree_hash: str) -> list[Revision]:
    """Return the revisions with these files, of all skills that aren't quarantined."""
    held = "SELECT 1 FROM skills s WHERE s.uid = r.uid AND s.live = 1 AND s.held = 1"
    return _select(reader, f"r.tree_hash = ? AND NOT EXISTS ({held}) ORDER BY r.id", tree_hash)


def skills_that_had(reader: Reader, source: str, tree_hash: str) -> list[StoredSkill]:
    """Return the current skills of a source that have these files, now or in an older revision."""
    had = "SELECT 1 FROM revisions r WHERE r.uid = s.uid AND r.tree_hash = ?"
    condition = f"src.name = ? AND EXISTS ({had}) ORDER BY s.position"
    return select(reader, condition, source, tree_hash)


def has_revision_with(reader: Reader, tree_hash: str) -> bool:
    """Tell whether any skill, current or removed, has or had these files."""
    return bool(reader.rows("SELECT 1 FROM revisions WHERE tree_hash = ? LIMIT 1", (tree_hash,)))


def _select(reader: Reader, condition: str, *values: str) -> list[Revision]:
    file_hash = reader.json_item.format(3)
    rows = reader.rows(
        "SELECT r.uid, r.number, r.name, r.document, r.content_hash, r.tree_hash, r.seen_at, "
        "r.origin, r.files, EXISTS (SELECT 1 FROM skills s WHERE s.uid = r.uid AND s.live = 1 "
        "AND s.tree_hash = r.tree_hash), "
        # Look each file up by its hash, because a list of all stored contents would be very long.
        # The OFFSET keeps the server from building that list for roles with row policies.
        f"NOT EXISTS (SELECT 1 FROM {reader.json_each.format('r.files')} e "
        f"WHERE NOT EXISTS (SELECT 1 FROM contents c WHERE c.hash = {file_hash} "
        "LIMIT 1 OFFSET 0) "
        "AND NOT EXISTS (SELECT 1 FROM skills s "
        f"WHERE s.uid = r.uid AND s.live = 1 AND s.content_hash = {file_hash})), "
        "r.role, r.host, r.tool, r.client "
        f"FROM revisions r WHERE {condition}",
        values,
    )
    found = []
    for *facts, origin, files, current, complete, role, host, tool, client in rows:
        listed = tuple(
            SkillFile(path, size, content_hash, bool(executable))
            for path, executable, size, content_hash in sorted(json.loads(files))
        )
        came = origin_of(origin) if origin else None
        who = (role, host or None, tool, client)
        found.append(Revision(*(*facts, listed, current == 1, complete == 1, came, *who)))
    return found


def content(reader: Reader, uid: str, file: SkillFile, limit: int) -> bytes | None:
    """Return the bytes of a file of a revision; None if they are not stored.

    The bytes always match the file's hash. At most ``limit`` bytes are unpacked, because the
    database may come from an untrusted source. Raises `ContentDamaged` if the stored bytes don't
    match the hash, and `FileTooLarge` if they exceed the limit.
    """
    rows = reader.rows(
        "SELECT size, packed, CASE WHEN length(data) <= ? THEN data END FROM contents "
        "WHERE hash = ?",
        (limit, file.hash),
    )
    if rows:
        size, packed, stored = rows[0]
        if isinstance(size, int) and size > limit:
            raise FileTooLarge(path=file.path, size=size, limit=limit)
        data = unpacked(stored, limit) if packed else stored
        if not isinstance(data, bytes) or digest(data) != file.hash:
            raise ContentDamaged(path=file.path)
        return data
    # For the SKILL.md of a current version, only the version's text is stored.
    for (text,) in reader.rows(
        "SELECT d.text FROM skills s JOIN documents d ON d.skill_id = s.id "
        "WHERE s.uid = ? AND s.live = 1 AND s.content_hash = ?",
        (uid, file.hash),
    ):
        data = text.encode()
        if digest(data) == file.hash:
            return bytes(data)
    return None


def stored_files(reader: Reader, revision: Revision, limit: int) -> dict[str, bytes]:
    """Return the stored bytes of a revision's files by path; at most ``limit`` bytes in total.

    Files whose bytes aren't stored are left out. Raises the errors of `content`.
    """
    found: dict[str, bytes] = {}
    for file in revision.files:
        data = None if file.hash is None else content(reader, revision.uid, file, limit)
        if data is not None:
            found[file.path] = data
            limit -= len(data)
    return found


def unpacked(packed: object, most: int) -> bytes | None:
    """Return the unpacked bytes; None if the data is invalid or has more than ``most`` bytes."""
    if not isinstance(packed, bytes):
        return None
    try:
        return zlib.decompressobj().decompress(packed, most + 1)
    except zlib.error:
        return None


def missing_contents(
    reader: Reader, host: str, mismatched: Collection[str]
) -> list[tuple[str, ...]]:
    """Return (hash, root, folder, path) of a host's supporting files whose bytes are not stored.

    ``root`` is the path of the source. The files of one skill follow each other. ``mismatched``
    holds the hashes of corrupt stored bytes. Those bytes count as not stored.
    """
    values: list[object] = [host]
    others = ""
    if mismatched:
        wrong = f"SELECT {reader.json_item.format(0)} FROM {reader.json_each.format('?')} e"
        others = f" OR f.hash IN ({wrong})"
        values.append(json.dumps([[one] for one in mismatched]))
    return reader.rows(
        "SELECT f.hash, min(src.path), min(s.folder), min(f.path) FROM skills s "
        "JOIN sources src ON src.id = s.source_id JOIN skill_files f ON f.skill_id = s.id "
        "WHERE s.live = 1 AND src.host = ? AND f.hash IS NOT NULL AND (f.path <> s.document "
        f"AND NOT EXISTS (SELECT 1 FROM contents c WHERE c.hash = f.hash){others}) "
        "GROUP BY f.hash, s.id ORDER BY s.id",
        values,
    )


def stored_hashes(reader: Reader, source_id: int, folder: str) -> list[str]:
    """Return the hashes of the current files in a skill's folder, if their bytes are stored."""
    rows = reader.rows(
        "SELECT c.hash FROM skills s JOIN skill_files f ON f.skill_id = s.id "
        "JOIN contents c ON c.hash = f.hash "
        "WHERE s.source_id = ? AND s.folder = ? AND s.live = 1",
        (source_id, folder),
    )
    return [row[0] for row in rows]


class CurrentTurn(NamedTuple):
    """Files that a skill had, and when they last became current.

    Whenever a skill gets other files, it gets the next ``turn``, a number. ``number`` is the number
    of the files' revision. ``current`` tells whether the skill has these files now.
    """

    turn: int
    number: int
    seen_at: str
    current: bool


def turns(reader: Reader, uid: str) -> list[CurrentTurn]:
    """Return the revisions of a skill, ordered by when each was last current, newest first."""
    rows = reader.rows(
        "SELECT coalesce(r.turn, r.number), r.number, r.seen_at, EXISTS (SELECT 1 FROM skills s "
        "WHERE s.uid = r.uid AND s.live = 1 AND s.tree_hash = r.tree_hash) "
        "FROM revisions r WHERE r.uid = ? ORDER BY 1 DESC",
        (uid,),
    )
    return [CurrentTurn(turn, number, at, current == 1) for turn, number, at, current in rows]


def last_turns(reader: Reader, ids: Sequence[int]) -> dict[int, int]:
    """Return for each version the ``turn`` of its files (see `CurrentTurn`)."""
    rows = reader.rows(
        "SELECT s.id, coalesce(r.turn, r.number) FROM skills s "
        "JOIN revisions r ON r.uid = s.uid AND r.tree_hash = s.tree_hash "
        f"WHERE s.id {reader.in_json_array}",
        [json.dumps(list(ids))],
    )
    return dict(rows)


def first_seen(reader: Reader, ids: Sequence[int]) -> list[int]:
    """Return the versions sorted by the time at which their skills were first seen."""
    rows = reader.rows(
        "SELECT s.id FROM skills s LEFT JOIN revisions r ON r.uid = s.uid "
        f"WHERE s.id {reader.in_json_array} GROUP BY s.id ORDER BY min(r.id), s.id",
        [json.dumps(list(ids))],
    )
    return [row[0] for row in rows]


class Tombstone(NamedTuple):
    """The record of a removed skill.

    Don't trust it: any user with write access can add rows. ``source`` and ``folder`` are the last
    source and folder of the skill; they are empty if unknown. ``since`` is the time at which a sync
    or command noticed the removal.

    ``tree_hash`` is the hash of the skill's last files. ``trash`` is the skill's number in the
    trash, if the registry deleted the skill.
    """

    uid: str
    name: str
    source: str
    folder: str
    created_at: str
    since: str
    tree_hash: str | None
    trash: str | None

    @property
    def place(self) -> str:
        """The last source and folder of the skill, in the form source/folder; empty if unknown."""
        return f"{self.source}/{self.folder}" if self.source else ""


def latest_tombstone(
    reader: Reader,
    handle: str,
    sources: Collection[str] | None = None,
    skipped_uids: Collection[str] = (),
    *,
    trash: Collection[str] = (),
) -> Tombstone | None:
    """Return the newest tombstone with this name, source/name, source/folder or uid.

    If ``sources`` is given, consider only skills of these sources. Skip the skills with
    ``skipped_uids`` or a number in ``trash``, and skills that exist again.
    """
    source, _, rest = handle.partition("/")
    rows = reader.rows(
        "SELECT g.uid, g.name, g.source, g.folder, g.created_at, g.since, g.tree_hash, g.trash "
        "FROM gone g WHERE (g.name = ? OR g.uid = ? "
        "OR (g.source = ? AND (g.folder = ? OR g.name = ?))) "
        "AND NOT EXISTS (SELECT 1 FROM skills s WHERE s.uid = g.uid AND s.live = 1) "
        "ORDER BY g.since DESC, g.uid",
        (handle, handle, source, rest, rest),
    )
    now = utc_now()
    for row in rows:
        one = Tombstone._make(row)
        if one.uid in skipped_uids or one.trash in trash:
            continue
        if sources is None or one.source in sources:
            # The row may be forged, so replace invalid times.
            created, since = (
                time if is_utc_text(time) else now for time in (one.created_at, one.since)
            )
            return one._replace(created_at=created, since=since)
    return None


class RecordedChange(NamedTuple):
    """A change of one skill by the registry.

    ``kind`` is create, update, delete or restore. ``before`` and ``after`` are tree hashes; None if
    there was no skill. ``number`` is the number of the operation. A pull is also recorded as a
    change, but without a source (see `install.pull_records`).

    ``command`` is equal for all changes of one run of the program; None if the change belongs to no
    run. ``tool`` is not signed and is only for information.
    """

    id: int
    number: str
    kind: str
    uid: str
    name: str
    source: str
    folder: str
    before: str | None
    after: str | None
    made_at: str
    signature: str
    command: str | None = None
    tool: str | None = None


SIGNED: Final = "kind uid name folder before after made_at".split()
"""The columns of a change that its signature covers.

The signature also covers the source and the database.
"""

GROUP_DIGITS: Final = 12
"""Number of hex digits at the start of a change's number that all changes of a group share."""

UNDOABLE_COMMANDS: Final = 101
"""Number of commands of a host whose changes `undo` can use.

These are the last 100 commands, and one more for the `undo` of the oldest command.
"""

MAX_CHANGES: Final = 20_000
"""Maximum number of changes that `undo` reads from the database."""


def facts_of(change: RecordedChange) -> dict[str, Any]:
    """Return the facts about a change that its signature covers.

    Old changes were signed without a command, so their facts have no command.
    """
    facts = {key: getattr(change, key) for key in SIGNED}
    return facts if change.command is None else {**facts, "command": change.command}


def last_changes(reader: Reader, host: str) -> list[RecordedChange]:
    """Return the recorded changes of a host, the newest first, at most `MAX_CHANGES`."""
    columns = ", ".join(RecordedChange._fields)
    sql = f"SELECT {columns} FROM changes WHERE host = ? ORDER BY id DESC LIMIT ?"
    return list(map(RecordedChange._make, reader.rows(sql, (host, MAX_CHANGES))))


def was_moved(reader: Reader, change: RecordedChange) -> bool:
    """Tell whether the skill has left the source and folder in which the change put it."""
    sql = (
        "SELECT 1 FROM skills s JOIN sources src ON src.id = s.source_id "
        "WHERE s.uid = ? AND s.live = 1 AND NOT (src.name = ? AND s.folder = ?) LIMIT 1"
    )
    return bool(reader.rows(sql, (change.uid, change.source, change.folder)))
