"""The one resolver: a name or ref in, one skill out.

A handle is tried as ``source/folder/path``, then ``source/name``, then as a name.
`db.write.names` gives each skill the shortest handle that this order answers with exactly it.
"""

from typing import Final

from registry.catalog.similar import near
from registry.db.interface import Reader
from registry.db.read.history import Tombstone, latest_tombstone
from registry.db.read.skills import StoredSkill, by_handle
from registry.errors import SkillAmbiguous, SkillGone, SkillInTrash, SkillNotFound
from registry.text import spellings

MAX_HANDLE: Final = 1 << 16
MAX_TOLD: Final = 200
"""Characters of a handle that are repeated."""


def resolve(reader: Reader, handle: str) -> StoredSkill:
    """Return the skill that ``handle`` names, as the database knows it; one query.

    One with accents that finds nothing is tried as it may be written, too: letter and accent as one
    character, or as two. Raises `SkillAmbiguous` with the refs to choose from, and what `not_found`
    says.
    """
    for spelling in spellings(handle) if is_storable(handle) else ():
        for found in _attempts(reader, spelling):
            if len(found) == 1:
                return found[0]
            if found:
                raise SkillAmbiguous(handle, sorted(one.skill.ref for one in found))
    raise not_found(reader, handle)


def not_found(reader: Reader, handle: str) -> SkillNotFound:
    """Return what is to be said of a handle without a skill.

    `SkillInTrash` or `SkillGone` where there was one, else `SkillNotFound` with near names.
    """
    handle = handle.rstrip("/") or handle
    gone = latest_tombstone(reader, handle) if is_storable(handle) else None
    return (
        SkillNotFound(handle[:MAX_TOLD], near(reader, handle))
        if gone is None
        else lost(handle, gone)
    )


def lost(handle: str, gone: Tombstone) -> SkillGone:
    """Return the error of a skill that is gone."""
    kind = SkillGone if gone.trash is None else SkillInTrash
    return kind(handle[:MAX_TOLD], gone.since, gone.source, gone.place)


def is_storable(handle: str) -> bool:
    """Tell whether a text may be a handle at all."""
    return 0 < len(handle) <= MAX_HANDLE and "\0" not in handle


def _attempts(reader: Reader, handle: str) -> list[list[StoredSkill]]:
    """Return what each way to read the handle finds, in their order."""
    placed, named = by_handle(reader, handle)
    source, slash, rest = handle.partition("/")
    whole = [one for one in named if one.skill.name == handle]
    usable = [one for one in whole if one.is_usable and not one.skill.shadowed]
    # What is seen from here, else what is seen in some project, else any.
    meant = [one for one in usable if one.within] or usable or whole
    if len(meant) > 1:  # A bare name means the skill without a team.
        meant = [one for one in meant if one.team is None] or meant
    if len(meant) > 1:  # An installed copy is what is in force here; its original waits.
        meant = [one for one in meant if not any(copy.is_copy_of(one) for copy in meant)]
    return [
        placed,
        [one for one in named if slash and (one.skill.source, one.skill.name) == (source, rest)],
        meant,
    ]
