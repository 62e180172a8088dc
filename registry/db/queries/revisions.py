"""What a skill was like, and the stored bytes of files."""

import json
import zlib
from collections.abc import Collection
from dataclasses import dataclass

from registry.db.interface import Reader
from registry.db.queries.rows import origin_of
from registry.db.queries.skills import StoredSkill, select
from registry.disk.files import digest
from registry.errors import ContentDamaged, FileTooLarge
from registry.model import Origin, SkillFile, Value


@dataclass(frozen=True, slots=True)
class Revision(Value):
    """One content that a skill had; ``number`` counts from 1, ``current``: it has it now.

    ``origin``: where it came from, when that was read from a remote source. ``role``, ``host``,
    ``tool`` and ``client``: who brought it about; the role is a server's word.

    ``document`` is the path of the skill file among ``files``; ``complete``: all bytes are stored.
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


def revisions(reader: Reader, uid: str) -> list[Revision]:
    """Return the revisions of a skill, the newest first."""
    return _select(reader, "r.uid = ? ORDER BY r.number DESC", uid)


def kept_as(reader: Reader, tree_hash: str) -> list[Revision]:
    """Return the revisions of any skill with these files, but of those that wait to be trusted."""
    held = "SELECT 1 FROM skills s WHERE s.uid = r.uid AND s.live = 1 AND s.held = 1"
    return _select(reader, f"r.tree_hash = ? AND NOT EXISTS ({held}) ORDER BY r.id", tree_hash)


def once_with(reader: Reader, source: str, tree_hash: str) -> list[StoredSkill]:
    """Return the skills of a source that have or had these files, wherever they are by now."""
    had = "SELECT 1 FROM revisions r WHERE r.uid = s.uid AND r.tree_hash = ?"
    condition = f"src.name = ? AND EXISTS ({had}) ORDER BY s.position"
    return select(reader, condition, source, tree_hash)


def _select(reader: Reader, condition: str, value: str) -> list[Revision]:
    file_hash = reader.json_item.format(3)
    rows = reader.rows(
        "SELECT r.uid, r.number, r.name, r.document, r.content_hash, r.tree_hash, r.seen_at, "
        "r.origin, r.files, EXISTS (SELECT 1 FROM skills s WHERE s.uid = r.uid AND s.live = 1 "
        "AND s.tree_hash = r.tree_hash), "
        # Each is looked up by its hash: a list of all contents would be as long as the registry. An
        # offset keeps a server from making one, for who is bound by policies.
        f"NOT EXISTS (SELECT 1 FROM {reader.json_each.format('r.files')} e "
        f"WHERE NOT EXISTS (SELECT 1 FROM contents c WHERE c.hash = {file_hash} "
        "LIMIT 1 OFFSET 0) "
        "AND NOT EXISTS (SELECT 1 FROM skills s "
        f"WHERE s.uid = r.uid AND s.live = 1 AND s.content_hash = {file_hash})), "
        "r.role, r.host, r.tool, r.client "
        f"FROM revisions r WHERE {condition}",
        (value,),
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
    """Return the bytes of a file that a skill has or had; None: they are not stored.

    They have the file's hash, and no more than ``limit`` of them are unpacked, whatever is stored:
    a database may be anybody's. Raises `ContentDamaged`, `FileTooLarge`.
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
    # What is live is not stored twice.
    for (text,) in reader.rows(
        "SELECT d.text FROM skills s JOIN documents d ON d.skill_id = s.id "
        "WHERE s.uid = ? AND s.live = 1 AND s.content_hash = ?",
        (uid, file.hash),
    ):
        data = text.encode()
        if digest(data) == file.hash:
            return bytes(data)
    return None


def unpacked(packed: object, most: int) -> bytes | None:
    """Return what was compressed; None: it can't be unpacked, or has more than ``most`` bytes."""
    if not isinstance(packed, bytes):
        return None
    try:
        return zlib.decompressobj().decompress(packed, most + 1)
    except zlib.error:
        return None


def missing_contents(reader: Reader, host: str, unfit: Collection[str]) -> list[tuple[str, ...]]:
    """Return (hash, source's root, folder, path) of a host's supporting files that are not stored.

    Those of one skill come one after the other. ``unfit``: hashes of which other bytes are stored;
    they count as not stored.
    """
    values: list[object] = [host]
    others = ""
    if unfit:
        wrong = f"SELECT {reader.json_item.format(0)} FROM {reader.json_each.format('?')} e"
        others = f" OR f.hash IN ({wrong})"
        values.append(json.dumps([[one] for one in unfit]))
    return reader.rows(
        "SELECT f.hash, min(src.path), min(s.folder), min(f.path) FROM skills s "
        "JOIN sources src ON src.id = s.source_id JOIN skill_files f ON f.skill_id = s.id "
        "WHERE s.live = 1 AND src.host = ? AND f.hash IS NOT NULL AND (f.path <> s.document "
        f"AND NOT EXISTS (SELECT 1 FROM contents c WHERE c.hash = f.hash){others}) "
        "GROUP BY f.hash, s.id ORDER BY s.id",
        values,
    )


def stored_hashes(reader: Reader, source_id: int, folder: str) -> list[str]:
    """Return the hashes of the live files in a skill's folder of which the bytes are stored."""
    rows = reader.rows(
        "SELECT c.hash FROM skills s JOIN skill_files f ON f.skill_id = s.id "
        "JOIN contents c ON c.hash = f.hash "
        "WHERE s.source_id = ? AND s.folder = ? AND s.live = 1",
        (source_id, folder),
    )
    return [row[0] for row in rows]
