"""Before a stored skill is shown, compare it with its folder; if it changed, store it again."""

import time
from collections.abc import Sequence

from registry.core import Core
from registry.db.read.skills import StoredSkill, by_place, files_and_findings
from registry.disk.walk import ScannedFolder, Walk, inaccessible
from registry.errors import SkillMissing
from registry.model import Diagnostic
from registry.sync.reading import content_now, is_same
from registry.sync.sources import walk_of
from registry.text import utc_text


def refresh(core: Core, stored: StoredSkill) -> tuple[StoredSkill, ScannedFolder, bool] | None:
    """Compare a stored skill with its folder, and store the skill again if the folder changed.

    Returns the skill, the scanned folder, and whether the stored skill is still out of date. The
    stored skill stays out of date if the database can't be written, or if a part of the folder
    can't be read (see ``unread`` of the folder).

    Returns None if another process replaced the skill in the meantime. Raises `SkillMissing` if the
    folder is gone, and `SkillInaccessible` if the folder or its SKILL.md can't be read.
    """
    # the roots were read together with the skill
    walk = walk_of(core, stored.root, core.reader.last_roots())
    found = walk.one(stored.folder)
    if found is None:
        for notice in walk.notices:
            if notice.lost:
                raise inaccessible(stored.path, notice.diagnostic)
        raise SkillMissing(name=stored.skill.ref, path=stored.path)
    # If the file times were too close to the scan, equal times prove nothing, so compare the files.
    if is_same(stored.fingerprint, found) and (
        not stored.racy or content_now(stored.root, found, walk.limits) == stored.skill.tree_hash
    ):
        return stored, found, False
    if not core.backend.writable:  # the user gets the current SKILL.md, but the stored metadata
        return stored, found, True
    unread = _reimport(core, walk, stored, found)
    if unread:
        return stored, found.with_unread(unread), True
    newer = by_place(core.reader, stored.source_id, stored.folder)
    return None if newer is None else (newer, found, False)


def _reimport(
    core: Core, walk: Walk, stored: StoredSkill, found: ScannedFolder
) -> Sequence[Diagnostic]:
    """Read a folder and store it as a new version, unless another client changes the skill first.

    Returns the findings about unreadable parts of the folder. If a part is unreadable, the stored
    version stays. Raises `SkillInaccessible` if SKILL.md can't be read.
    """
    from registry.db.write.skills import delete_version, publish, stage
    from registry.sync.apply import Unread, read_version
    from registry.sync.installed import mark_installed

    now = time.time_ns()
    from_remote = bool(stored.remote)
    known = files_and_findings(core.reader, [stored.id])[stored.id]
    what = (walk, found, stored, known, stored.source_id, now, utc_text(now))
    new = read_version(core, *what, from_remote=from_remote)
    if isinstance(new, Unread):
        if not new.has_document:
            about = (one for one in new.findings if one.path == found.document)
            raise inaccessible(stored.path, next(about, new.findings[0]))
        return new.findings
    if not from_remote:
        mark_installed(new, stored.root)
    with core.writer.transaction() as connection:
        staged = stage(connection, [new])
        live = publish(connection, staged, [])
        delete_version(connection, stored.id if live else staged[0])
    return ()
