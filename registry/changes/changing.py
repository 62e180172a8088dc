"""The operations that change skills, on disk and in the database together."""

import os
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from registry.catalog.reading import keep, locate
from registry.changes import operations
from registry.changes import trash as trash_can
from registry.changes.protocol import Ground, locked
from registry.changes.recovery import recover
from registry.changes.state import StateFolder
from registry.changes.trash import Trashed
from registry.db.queries import detail
from registry.db.queries.detail import Version
from registry.disk.paths import is_safe_relative
from registry.errors import (
    NotInTrash,
    OutsideSkill,
    SkillChangedOnDisk,
    SkillExists,
    SkillNotFound,
    SourceElsewhere,
    SourceUnclear,
)
from registry.model import Skill, SkillDetail, Source

if TYPE_CHECKING:
    from registry.api import SkillRegistry


def ground_of(registry: "SkillRegistry", source: Source) -> Ground:
    """Return all that a change of a source's skills needs. Raises `SourceElsewhere`."""
    check_own(registry, source)
    return Ground(
        reader=registry.reader,
        writer=registry.writer,
        source=source,
        roots=tuple(one.path for one in registry.own_sources()),
        limits=registry.settings.limits,
        host=registry.backend.host,
        state=StateFolder(source.path),
    )


def check_own(registry: "SkillRegistry", source: Source) -> None:
    """Raise `SourceElsewhere` for a source whose folder is on another machine."""
    if source.host != registry.backend.host:
        raise SourceElsewhere(name=source.name, host=source.host)


def target_source(registry: "SkillRegistry", name: str | None, *, to_read: bool = False) -> Source:
    """Return the source to write to: the one named, else the only one, else the setting's.

    ``to_read``: a source of another machine will do where there is none here. Raises
    `SourceNotFound`, `SourceUnclear`.
    """
    from registry.sync.sources import find

    known = registry.own_sources() or (registry.sources(counted=False) if to_read else [])
    if name is None and len(known) == 1:
        return known[0]
    name = name or registry.settings.default_source
    if name is None:
        raise SourceUnclear(known=[source.name for source in known])
    return find(registry, name)


def create(
    registry: "SkillRegistry",
    source: Source,
    folder: str,
    name: str,
    files: Mapping[str, bytes],
    executable: Collection[str] = (),
) -> Skill:
    """Make a skill of these files in ``folder`` of a source, and return it.

    Raises `SkillExists` where the source has a skill of that name, or the folder is taken.
    """
    for path in (folder, *files):
        if not is_safe_relative(path):
            raise OutsideSkill(path=path)
    _refuse_namesake(registry, source, name)
    operations.create(ground_of(registry, source), folder, name, files, executable)
    return _stored(registry, source, folder, name)


def update(
    registry: "SkillRegistry",
    name: str,
    edits: Mapping[str, bytes | None],
    *,
    if_hash: str | None = None,
    force: bool = False,
    executable: Mapping[str, bool] = MappingProxyType({}),
) -> Skill:
    """Write or (None) remove files of a skill; see `operations.update`.

    ``if_hash``: the content hash the caller has seen; any other content is refused with
    `SkillChangedOnDisk`, as is an edit made by hand since the last sync unless ``force``.
    """
    for path in edits:
        if not is_safe_relative(path):
            raise OutsideSkill(path=path)
    version = _version(registry, name, if_hash, force=force)
    source = source_of(registry, version)
    operations.update(
        ground_of(registry, source), version, name, edits, force=force, executable=executable
    )
    return _stored(registry, source, version.folder, name)


def delete(
    registry: "SkillRegistry", name: str, *, if_hash: str | None = None, force: bool = False
) -> Trashed:
    """Move a skill to the trash; see `trash.delete`."""
    version = _version(registry, name, if_hash, force=force)
    source = source_of(registry, version)
    rows = registry.reader.rows("SELECT name FROM skills WHERE id = ?", (version.id,))
    own_name = rows[0][0] if rows else name
    return trash_can.delete(ground_of(registry, source), version, own_name, force=force)


def restore(registry: "SkillRegistry", name: str, *, source: str | None = None) -> Skill:
    """Bring back the latest deleted skill of this name (or trash id, or source/folder).

    Raises `NotInTrash` where there is none, `SkillExists` where its folder is taken.
    """
    for trashed in trash(registry):
        place = f"{trashed.source}/{trashed.folder}"
        if name in {trashed.name, trashed.id, place} and source in {None, trashed.source}:
            home = next(one for one in registry.own_sources() if one.name == trashed.source)
            trash_can.restore(ground_of(registry, home), trashed)
            return _stored(registry, home, trashed.folder, name)
    raise NotInTrash(name[:200])


def trash(registry: "SkillRegistry") -> list[Trashed]:
    """Return what can be restored, the latest first."""
    found = [
        trashed
        for source in registry.own_sources()
        for trashed in trash_can.list_trash(source.name, StateFolder(source.path))
    ]
    return sorted(found, key=lambda one: (one.deleted_at, one.id), reverse=True)


def empty_trash(registry: "SkillRegistry", chosen: Sequence[Trashed] | None = None) -> int:
    """Remove deleted skills (None: all) for good; return how many."""
    chosen = trash(registry) if chosen is None else chosen
    homes = {source.name: source for source in registry.own_sources()}
    for trashed in chosen:
        trash_can.empty_trash(ground_of(registry, homes[trashed.source]), trashed)
    return len(chosen)


def recover_all(registry: "SkillRegistry") -> int:
    """Finish or undo what dead processes left unfinished; return how much that was."""
    rows = registry.reader.rows(
        "SELECT DISTINCT source_id FROM journal WHERE host = ?", (registry.backend.host,)
    )
    waiting = {row[0] for row in rows}
    finished = 0
    for source in registry.own_sources():
        state = StateFolder(source.path)
        if source.id not in waiting or not state.exists:
            continue
        with state.lock() as probe:
            if not probe.acquire(0):
                continue  # its owner lives, and ends its change itself
        ground = ground_of(registry, source)
        with locked(ground):
            finished += recover(ground)
    return finished


def _version(registry: "SkillRegistry", name: str, if_hash: str | None, *, force: bool) -> Version:
    """Return the stored version that a change is based on.

    Without a hash to compare, the change is based on what the database knew: an edit made by hand
    since then is refused later, under the lock. With one, what is on disk now counts.
    """
    if if_hash is None and not force:
        from registry.catalog import resolve

        version = detail.version(registry.reader, resolve.find(registry.reader, name)[0])
        if version is None:
            raise SkillChangedOnDisk(name=name, path=name)
        return version
    version, _ = locate(registry, name)
    if if_hash is not None:
        rows = registry.reader.rows("SELECT content_hash FROM skills WHERE id = ?", (version.id,))
        if not rows or rows[0][0] != if_hash:
            raise SkillChangedOnDisk(name=name, path=os.path.join(version.root, version.folder))
    return version


def source_of(registry: "SkillRegistry", version: Version) -> Source:
    """Return the source that a skill is in."""
    return next(one for one in registry.sources(counted=False) if one.id == version.source_id)


def _refuse_namesake(registry: "SkillRegistry", source: Source, name: str) -> None:
    rows = registry.reader.rows(
        # The plus keeps SQLite from the index by source, which leads through the whole source.
        "SELECT folder FROM skills WHERE +source_id = ? AND name = ? AND live = 1 "
        "AND status <> 'no_document'",
        (source.id, name),
    )
    if rows:
        raise SkillExists(name=name, path=os.path.join(source.path, rows[0][0]))


def _stored(registry: "SkillRegistry", source: Source, folder: str, name: str) -> Skill:
    from registry.db.queries.rows import skills

    row = detail.row_of(registry.reader, source.id, folder)
    if row is None:
        raise SkillNotFound(name)
    keep(registry, [row[0]])
    return skills([row[1]])[0]


def detail_of(registry: "SkillRegistry", skill: Skill) -> SkillDetail:
    """Return everything of a skill that was just changed."""
    return registry.get(f"{skill.source}/{skill.folder}")
