"""Read the versions of skills: each version is a label, such as ``1.2``, for one set of files.

Any user with write access can add rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from registry.db.interface import Reader, Select
from registry.db.read.skills import near_places
from registry.document.labels import is_label, ordered
from registry.model import VERSION_STATES, Scope, Skill, SkillVersion, VersionChange

_SELECT: Final = (
    "SELECT l.uid, l.label, l.tree_hash, EXISTS (SELECT 1 FROM skills s WHERE s.uid = l.uid "
    "AND s.live = 1 AND s.tree_hash = l.tree_hash), l.state, l.at, l.reason, l.replacement, "
    "l.role, l.host, l.tool, l.client FROM labels l WHERE {} ORDER BY l.uid, l.label, l.number"
)


def versions(reader: Reader, uid: str) -> list[SkillVersion]:
    """Return the versions of a skill in the order of their labels, the highest first."""
    return _newest_first(_versions(reader.rows(_SELECT.format("l.uid = ?"), (uid,))))


def _newest_first(found: Iterable[SkillVersion]) -> list[SkillVersion]:
    return ordered(found, lambda one: one.label, lambda one: one.created_at)[::-1]


def version(reader: Reader, uid: str, label: str) -> SkillVersion | None:
    """Return the version of a skill with this label; None if there is none."""
    rows = reader.rows(_SELECT.format("l.uid = ? AND l.label = ?"), (uid, label))
    return next(_versions(rows), None)


def version_hashes(
    reader: Reader, source_id: int, folder: str | None
) -> dict[tuple[str, str], str]:
    """Return the tree hash of each version of a source's skills, by folder and label.

    If ``folder`` is given, only the versions of this skill are returned.
    """
    rows = reader.rows(
        "SELECT s.folder, l.label, l.tree_hash FROM labels l "
        "JOIN skills s ON s.uid = l.uid AND s.live = 1 WHERE s.source_id = ? AND l.number = 0"
        + (" AND s.folder = ?" if folder is not None else ""),
        (source_id,) if folder is None else (source_id, folder),
    )
    return {(folder, label): tree for folder, label, tree in rows}


_INSTALLED: Final = (
    "SELECT EXISTS (SELECT 1 FROM skills s JOIN sources src ON src.id = s.source_id "
    "WHERE s.uid = l.uid AND s.live = 1 AND src.name = ? AND s.folder = ?), "
    + _SELECT.removeprefix("SELECT ").format(
        "l.uid IN (SELECT s.uid FROM skills s JOIN sources src ON src.id = s.source_id "
        "WHERE src.name = ? AND s.folder = ? AND s.live = 1 AND EXISTS (SELECT 1 FROM revisions r "
        "WHERE r.uid = s.uid AND r.tree_hash = ?)) "
        "OR l.uid IN (SELECT x.uid FROM labels x WHERE x.tree_hash = ?)"
    )
)


def versions_of_installed(
    reader: Reader, source: str, folder: str, tree_hash: str
) -> list[SkillVersion]:
    """Return the versions of an installed skill's files, the newest first.

    The versions belong to the skill in this folder of this source, if it has or had the files.
    Otherwise they belong to the only skill that has a version with these files. Yanked versions are
    included.
    """
    place = source, folder
    rows = reader.rows(_INSTALLED, (*place, *place, tree_hash, tree_hash))
    here = [row[1:] for row in rows if row[0] == 1]
    found = here or [row[1:] for row in rows]
    if len({row[0] for row in found}) > 1:
        return []
    return _newest_first(_versions(found))


class InactiveVersion(NamedTuple):
    """A deprecated or yanked version of a skill; ``held`` is `skills.held`."""

    uid: str
    name: str
    source: str
    scope: Scope
    folder: str
    tags: str
    held: int
    version: SkillVersion


def inactive_versions(reader: Reader) -> list[InactiveVersion]:
    """Return the deprecated and yanked versions of the usable skills that this reader sees.

    Skills are included even if their current files are a yanked version.
    """
    visibility = reader.visibility
    rows = reader.rows(
        "SELECT s.name, src.name, src.scope, s.folder, s.tags, s.held, l.uid, l.label, "
        "l.tree_hash, CASE WHEN s.tree_hash = l.tree_hash THEN 1 ELSE 0 END, l.state, l.at, "
        "l.reason, l.replacement, l.role, l.host, l.tool, l.client FROM labels l "
        "JOIN skills s ON s.uid = l.uid AND s.live = 1 JOIN sources src ON src.id = s.source_id "
        "WHERE l.state <> 'active' AND l.number = (SELECT max(m.number) FROM labels m "
        "WHERE m.uid = l.uid AND m.label = l.label) AND src.enabled = 1 AND s.held <> 1 "
        f"AND s.status IN ('ok', 'warning') AND {visibility.within} "
        "ORDER BY l.uid, l.label"
    )
    return [
        InactiveVersion(uid, name, source, scope, folder, tags, held, one)
        for name, source, scope, folder, tags, held, uid, *facts in rows
        for one in _versions([(uid, *facts)])
    ]


_CURRENT_DEPRECATED: Final = (
    "SELECT src.name, s.folder, l.uid, l.label, l.tree_hash, 1, l.state, l.at, l.reason, "
    "l.replacement, l.role, l.host, l.tool, l.client FROM labels l "
    "JOIN skills s ON s.uid = l.uid AND s.tree_hash = l.tree_hash AND s.live = 1 "
    "JOIN sources src ON src.id = s.source_id WHERE l.state = 'deprecated' AND l.number = "
    "(SELECT max(m.number) FROM labels m WHERE m.uid = l.uid AND m.label = l.label)"
)


def deprecated(reader: Reader, skills: Sequence[Skill] | None = None) -> dict[tuple[str, str], str]:
    """Return the deprecation warnings of skills, by source and folder.

    A skill has a warning if its current version is deprecated. If you need only the warnings of a
    few skills, pass these skills as ``skills``, which is faster.
    """
    return deprecated_ahead(reader, skills)()


def deprecated_ahead(
    reader: Reader, skills: Sequence[Skill] | None = None
) -> Callable[[], dict[tuple[str, str], str]]:
    """Queue the SELECT of `deprecated` (see `Reader.pipeline`).

    Return a function for its result.
    """
    sql, values = _CURRENT_DEPRECATED, list[str]()
    if skills is not None:
        condition, values = near_places(skills)
        sql += f" AND {condition}"
    rows = reader.pipeline((sql, values))

    def result() -> dict[tuple[str, str], str]:
        found = ((row[:2], one.warning) for row in rows() for one in _versions([row[2:]]))
        return {place: warning for place, warning in found if warning is not None}

    return result


def shows_yanked(reader: Reader, source_id: int) -> bool:
    """Tell whether this reader shows the yanked skills and versions of a source."""
    sql = f"SELECT {reader.own_yanked} FROM sources src WHERE src.id = ?"
    return reader.rows(sql, (source_id,)) == [(1,)]


def select_with_files(skill_id: int) -> Select:
    """Return the SELECT for the versions with the same files as row ``skill_id`` of ``skills``."""
    column = "(SELECT s.{} FROM skills s WHERE s.id = ?)"
    condition = f"l.uid = {column.format('uid')} AND l.tree_hash = {column.format('tree_hash')}"
    return _SELECT.format(condition), (skill_id, skill_id)


def versions_of(rows: Sequence[tuple[Any, ...]]) -> tuple[SkillVersion, ...]:
    """Return the versions that the rows of `select_with_files` describe."""
    return tuple(_versions(rows))


def _versions(rows: Sequence[tuple[Any, ...]]) -> Iterator[SkillVersion]:
    for (uid, label), some in groupby(rows, lambda row: row[:2]):
        changes = list(some)
        if is_label(label) and all(
            row[4] in VERSION_STATES for row in changes
        ):  # otherwise another program forged the row
            history = tuple(VersionChange(*row[4:]) for row in changes)
            yield SkillVersion(uid, label, changes[0][2], changes[0][3] == 1, history)
