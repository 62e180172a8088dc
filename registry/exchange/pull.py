"""Put skills of a registry into a folder, each at once, and never over an edit made there."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from registry.changes.files import (
    ExchangeUnsupported,
    digest_path,
    exchange,
    remove_tree,
    rename_new,
    sync_folder,
    write_file,
)
from registry.document.names import check_folder_name
from registry.errors import PullClash, PullRefused, SkillNotFound
from registry.exchange.content import content_of
from registry.exchange.lockfile import Locked, read_lock, write_lock
from registry.model import Skill

if TYPE_CHECKING:
    from registry.service import SkillRegistry

State: TypeAlias = Literal["added", "updated", "unchanged", "behind", "missing", "edited", "gone"]

STAGING: Final = ".skills-pull-"
"""How the folders begin in which skills are put together; a killed pull may leave one."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """What became of one skill, or by ``check`` would: ``path`` is its folder.

    ``edited``: it was changed there, or made by somebody else, and was left alone; ``gone``: the
    registry has it no more.
    """

    ref: str
    path: str
    state: State


def pull(
    registry: "SkillRegistry", skills: Sequence[Skill], to: str, *, force: bool = False
) -> list[Pulled]:
    """Write skills into folders of their names below ``to``; what is equal is left alone.

    A folder that was edited since it was pulled, or that no pull made, is left alone, too, unless
    ``force``. Raises `PullClash` where two skills would have one folder, `PullRefused` where the
    folder can't be written, `LockFileInvalid`, and what `content_of` raises.
    """
    places = _places(skills)
    to = os.path.abspath(os.path.expanduser(to))
    locked = read_lock(to)
    done = []
    try:
        os.makedirs(to, exist_ok=True)
        _clear(to)
        for folder, skill in places.items():
            done.append(_pull_one(registry, skill, to, folder, locked, force=force))
            write_lock(to, locked)
    except OSError as error:
        raise PullRefused(path=error.filename or to, reason=error.strerror or str(error)) from error
    return done


def check(registry: "SkillRegistry", skills: Sequence[Skill] | None, to: str) -> list[Pulled]:
    """Say how ``to`` differs from the registry, for these skills or (None) all that were pulled."""
    to = os.path.abspath(os.path.expanduser(to))
    locked = read_lock(to)
    if skills is not None:
        return [
            _compare(skill, to, folder, locked.get(folder))
            for folder, skill in _places(skills).items()
        ]
    found = []
    for folder, entry in locked.items():
        try:
            skill = registry.resolve(f"{entry.source}/{entry.folder}")
        except SkillNotFound:
            place = f"{entry.source}/{entry.folder}"
            found.append(Pulled(place, os.path.join(to, folder), "gone"))
        else:
            found.append(_compare(skill, to, folder, entry))
    return found


def _places(skills: Sequence[Skill]) -> dict[str, Skill]:
    """Return each skill by the folder it gets: its name, where a folder can have it."""
    places: dict[str, Skill] = {}
    for skill in skills:
        safe = check_folder_name(skill.name) is None
        folder = skill.name if safe else os.path.basename(skill.path)
        taken = next((name for name in places if name.casefold() == folder.casefold()), None)
        if taken is not None:
            raise PullClash(folder=folder, refs=[places[taken].ref, skill.ref])
        places[folder] = skill
    return places


def _compare(skill: Skill, to: str, folder: str, entry: Locked | None) -> Pulled:
    target = os.path.join(to, folder)
    state: State = "unchanged"
    digest = digest_path(target)
    if digest is None:
        state = "missing"
    elif entry is None or digest != entry.digest:
        state = "edited"
    elif entry.tree_hash != skill.tree_hash:
        state = "behind"
    return Pulled(skill.ref, target, state)


def _pull_one(
    registry: "SkillRegistry",
    skill: Skill,
    to: str,
    folder: str,
    locked: dict[str, Locked],
    *,
    force: bool,
) -> Pulled:
    target = os.path.join(to, folder)
    room = tempfile.mkdtemp(prefix=STAGING, dir=to)
    try:
        staged = os.path.join(room, "tree")
        os.mkdir(staged)
        for entry in content_of(registry, skill):
            path = os.path.join(staged, entry.path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_file(path, entry.data, 0o755 if entry.executable else 0o644)
        for place, _, _ in os.walk(staged, topdown=False):
            sync_folder(place)
        new, old = digest_path(staged), digest_path(target)
        state: State = "unchanged"
        if old is None:
            rename_new(staged, target)
            state = "added"
        elif old != new:
            known = locked.get(folder)
            if not force and (known is None or known.digest != old):
                return Pulled(skill.ref, target, "edited")
            _replace(staged, target, room)
            state = "updated"
        sync_folder(to)
    finally:
        remove_tree(room)
    skill = registry.resolve(f"{skill.source}/{skill.folder}")
    locked[folder] = Locked(
        skill.name, skill.source, skill.folder, skill.content_hash, skill.tree_hash, new or ""
    )
    return Pulled(skill.ref, target, state)


def _replace(staged: str, target: str, room: str) -> None:
    """Put ``staged`` in the place of ``target``, in one step where the system can."""
    try:
        exchange(staged, target)
    except ExchangeUnsupported:
        os.rename(target, os.path.join(room, "old"))
        os.rename(staged, target)


def _clear(to: str) -> None:
    """Remove what a killed pull left."""
    with os.scandir(to) as listing:
        left = [entry.path for entry in listing if entry.name.startswith(STAGING)]
    for path in left:
        remove_tree(path)
