"""What a skill was like, and two of its contents side by side."""

from collections.abc import Iterator, Sequence
from typing import Final

from registry.db.read.history import Revision
from registry.errors import (
    ContentMissing,
    FileTooLarge,
    RevisionNotFound,
    SkillMissing,
    SkillNotFound,
)
from registry.model.values import record
from registry.web.answers import Told, Visit
from registry.web.asked import number_of
from registry.web.diffs import NO_ROOM, FileDiff, NoRoom, Room, compare
from registry.web.skill import ref_in

FILES: Final = 50
"""Files that are compared on a page."""


def history(visit: Visit) -> Told:
    """Say what a skill was like; who sees all may ask of one that is gone."""
    ref = ref_in(visit, "/history/")
    try:
        skill = visit.look.locate(ref).skill
        handle, named = f"{skill.source}/{skill.folder}", {"name": skill.name, "ref": skill.ref}
    except (SkillMissing, SkillNotFound):
        if not visit.look.is_whole:
            raise
        handle, named = ref, {"name": ref, "ref": ref}
    revisions = visit.desk.registry.history(handle)
    query = visit.request.query_params
    new = number_of(query, "new") or next(
        (one.number for one in revisions if one.current),
        revisions[0].number if revisions else None,
    )
    older = (one.number for one in revisions if new is not None and one.number < new)
    old = number_of(query, "old") or next(older, None)
    diffs = []
    if old is not None:
        pair = [_revision(named["ref"], revisions, number) for number in (old, new)]
        diffs = list(_diffs(visit, handle, *pair))
    return Told(
        "history.html",
        lambda: {
            "title": f"History of {named['name']}",
            "skill": named,
            "revisions": revisions,
            "old": old,
            "new": new,
            "diffs": diffs,
        },
        lambda: {
            **named,
            "revisions": record(list(revisions)),
            "old": old,
            "new": new,
            "diffs": record(diffs),
        },
    )


def _revision(ref: str, revisions: Sequence[Revision], number: int | None) -> Revision:
    for one in revisions:
        if one.number == number:
            return one
    raise RevisionNotFound(name=ref, number=number, known=[one.number for one in revisions])


def _diffs(visit: Visit, handle: str, old: Revision, new: Revision) -> Iterator[FileDiff]:
    was, now = ({file.path: file for file in one.files} for one in (old, new))
    changed = [
        path
        for path in sorted(was | now)
        if path not in was or path not in now or was[path].hash != now[path].hash
    ]
    room = Room()
    for path in changed[:FILES]:
        try:
            room.take()
            before = _content(visit, handle, old, path) if path in was else None
            after = _content(visit, handle, new, path) if path in now else None
            room.take(size=len(before or b"") + len(after or b""))
        except (ContentMissing, FileTooLarge) as error:
            yield FileDiff(path, (), str(error))
            continue
        except NoRoom:
            yield FileDiff(path, (), NO_ROOM)
            continue
        yield compare(path, before, after, room)
    if len(changed) > FILES:
        yield FileDiff(f"{len(changed) - FILES} more files", (), "They have changed, too.")


def _content(visit: Visit, handle: str, of: Revision, path: str) -> bytes:
    return visit.desk.registry.read_revision(handle, of.number, path)
