"""Put skills of a registry into a folder, each at once, and never over an edit made there."""

import errno
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from registry.catalog.resolve import resolve
from registry.core import Core
from registry.disk.atomic import Place, digest_of, open_named, remove_tree
from registry.disk.beneath import Folder
from registry.disk.files import digest
from registry.document.names import check_folder_name
from registry.errors import (
    DatabaseProblem,
    PullClash,
    PullRefused,
    RegistryError,
    SkillAmbiguous,
    SkillNotFound,
)
from registry.exchange import lockfile, placing
from registry.exchange.content import Entry, content_of, tree_hash
from registry.exchange.lockfile import Locked
from registry.exchange.staging import alone_in, staging_dirs, stale_drafts, where
from registry.model import DOCUMENT_NAMES, Skill, Value
from registry.text import folded, name_key

State: TypeAlias = Literal[
    "added", "updated", "unchanged", "behind", "missing", "edited", "gone", "failed"
]

_NO_FOLDER: Final = "Neither its name nor its folder's can be the name of a folder on every system."

BATCH: Final = 100
"""Skills after which the lock file is written; until then staging directories tell the state."""


_UNWRITABLE_NAME: Final = {errno.EILSEQ, errno.EINVAL, errno.ENAMETOOLONG}
"""What a file system answers that can't hold a file of this name; others it can."""


@dataclass(frozen=True, slots=True)
class Pulled(Value):
    """What became of one skill, or by ``check`` would: ``path`` is its folder.

    ``edited``: it was changed there, or made by somebody else, and was left alone; ``gone``: the
    registry has it no more; ``failed``: it can't be had, and ``reason`` says why.
    """

    ref: str
    path: str
    state: State
    reason: str | None = None


def pull(core: Core, skills: Sequence[Skill], to: str, *, force: bool) -> list[Pulled]:
    """Write skills into folders of their names below ``to``; what is equal is left alone.

    A folder that was edited since it was pulled, or that no pull made, is left alone, too, unless
    ``force``. A skill that can't be had, or has no folder of its own there, keeps no other from
    coming. Raises `PullClash` where all of them would have one folder, `PullRefused` where the
    folder can't be written, `LockFileInvalid`.
    """
    to = os.path.abspath(os.path.expanduser(to))
    places, refused = _places(skills, to)
    try:
        with alone_in(to) as home:
            run = _Run(core, home, force=force)
            try:
                return [run.pull(folder, skill) for folder, skill in places.items()] + refused
            finally:
                run.flush()
    except OSError as error:
        raise PullRefused(path=where(to, error), reason=error.strerror or str(error)) from error


def check(core: Core, skills: Sequence[Skill] | None, to: str) -> list[Pulled]:
    """Say how ``to`` differs from the registry, for these skills or (None) all that were pulled.

    Raises `PullClash`, `PullRefused` and `LockFileInvalid` as `pull`.
    """
    to = os.path.abspath(os.path.expanduser(to))
    locked = lockfile.read_lock(to)
    try:
        with ExitStack() as stack:
            home = stack.enter_context(open_named(to)) if os.path.isdir(to) else None
            if home is not None:
                notes = (placing.in_place(home, one) for one in staging_dirs(home))
                locked.update({note.folder: note.entry for note in notes if note is not None})
            if skills is not None:
                places, refused = _places(skills, to)
                return [
                    _compare(skill, to, home, folder, locked.get(folder))
                    for folder, skill in places.items()
                ] + refused
            return [_find(core, to, home, *entry) for entry in sorted(locked.items())]
    except OSError as error:
        raise PullRefused(path=where(to, error), reason=error.strerror or str(error)) from error


class _Run:
    """One pull: what is locked, and the staging directories that the lock file does not cover yet.

    Begins with what killed pulls left unfinished.
    """

    def __init__(self, core: Core, to: Folder, *, force: bool) -> None:
        self._core = core
        self._to = to
        self._force = force
        self._written = lockfile.read_lock(to.path)
        self._locked = dict(self._written)
        for draft in stale_drafts(to):
            remove_tree(Place(to, draft))
        self._staging_dirs = staging_dirs(to)
        for staging_dir in self._staging_dirs:
            note = placing.repair(to, staging_dir)
            if note is not None:
                self._locked[note.folder] = note.entry
        self.flush()

    def pull(self, folder: str, skill: Skill) -> Pulled:
        target = self._to.path_of(folder)
        try:
            state = self._put(folder, skill, content_of(self._core, skill))
        except DatabaseProblem:
            raise
        except RegistryError as error:
            return Pulled(skill.ref, target, "failed", str(error))
        except OSError as error:
            if error.errno not in _UNWRITABLE_NAME:
                raise
            return Pulled(skill.ref, target, "failed", error.strerror)
        if len(self._staging_dirs) >= BATCH:
            self.flush()
        return Pulled(skill.ref, target, state)

    def flush(self) -> None:
        """Write down what is in place, and clear up behind it."""
        if self._locked != self._written:
            lockfile.write_lock(self._to, self._locked)
            self._written = dict(self._locked)
        while self._staging_dirs:
            placing.clear(self._to, self._staging_dirs.pop())

    def _put(self, folder: str, skill: Skill, entries: Sequence[Entry]) -> State:
        found = digest_of(Place(self._to, folder))
        known = self._locked.get(folder)
        ours = known is not None and known.digest == found
        if known is not None and ours and known.tree_hash == tree_hash(entries):
            self._locked[folder] = _locked(skill, entries, known.digest)
            return "unchanged"
        staging_dir, new = placing.stage(self._to, entries)
        note = placing.Note(folder, found, _locked(skill, entries, new))
        if found == new:
            placing.clear(self._to, staging_dir)
            self._locked[folder] = note.entry
            return "unchanged"
        if found is not None and not ours and not self._force:
            placing.clear(self._to, staging_dir)
            return "edited"
        if not self._place(staging_dir, note):
            return "edited"
        return "added" if found is None else "updated"

    def _place(self, staging_dir: str, note: placing.Note) -> bool:
        """Put a staged folder in its place; its staging directory stays until the next `flush`."""
        try:
            placed = placing.place(self._to, staging_dir, note)
        except BaseException:
            with suppress(OSError):
                if placing.repair(self._to, staging_dir) is None:
                    placing.clear(self._to, staging_dir)
            raise
        if placed:
            self._locked[note.folder] = note.entry
            self._staging_dirs.append(staging_dir)
        else:
            placing.clear(self._to, staging_dir)
        return placed


def _locked(skill: Skill, entries: Sequence[Entry], folder_digest: str) -> Locked:
    hashes = {one.path: digest(one.data) for one in entries}
    return Locked(
        name=skill.name,
        ref=skill.ref,
        source=skill.source,
        folder=skill.folder,
        content_hash=next((hashes[name] for name in DOCUMENT_NAMES if name in hashes), ""),
        tree_hash=tree_hash(entries),
        digest=folder_digest,
        files=hashes,
    )


def _places(skills: Sequence[Skill], to: str) -> tuple[dict[str, Skill], list[Pulled]]:
    """Return each skill by the folder it gets (its name, else its folder's own), and the others.

    Of skills that would have one folder none gets it: nobody but who pulls them can tell which.
    Raises `PullClash` where that is so of all.
    """
    refused: list[Pulled] = []
    wanted: dict[str, dict[tuple[str, str], tuple[str, Skill]]] = {}
    for skill in skills:
        folder = next(filter(_is_safe, (skill.name, os.path.basename(skill.path))), None)
        if folder is None:
            refused.append(Pulled(skill.ref, to, "failed", _NO_FOLDER))
        else:
            found = wanted.setdefault(name_key(folded(folder)), {})
            found[skill.source, skill.folder] = folder, skill
    places = dict(next(iter(found.values())) for found in wanted.values() if len(found) == 1)
    for found in wanted.values():
        if len(found) > 1:
            folder = next(iter(found.values()))[0]
            clash = PullClash(folder=folder, refs=[skill.ref for _, skill in found.values()])
            if not places:
                raise clash
            refused += [
                Pulled(skill.ref, os.path.join(to, name), "failed", str(clash))
                for name, skill in found.values()
            ]
    return places, refused


def _is_safe(folder: str) -> bool:
    return check_folder_name(folder) is None and name_key(folder) != lockfile.NAME


def _find(core: Core, to: str, home: Folder | None, folder: str, entry: Locked) -> Pulled:
    """Compare a pulled skill with what the registry has in the place that it came from."""
    place = f"{entry.source}/{entry.folder}"
    try:
        skill = resolve(core.reader, place).skill
    except (SkillNotFound, SkillAmbiguous):
        return Pulled(place, os.path.join(to, folder), "gone")
    return _compare(skill, to, home, folder, entry)


def _compare(
    skill: Skill, to: str, home: Folder | None, folder: str, entry: Locked | None
) -> Pulled:
    """Compare a skill with its folder in ``home``, which is ``to``, open; None: it is missing."""
    target = os.path.join(to, folder)
    found = None if home is None else digest_of(Place(home, folder))
    state: State = "unchanged"
    if found is None:
        state = "missing"
    elif entry is None or found != entry.digest:
        state = "edited"
    elif entry.tree_hash != skill.tree_hash:
        state = "behind"
    return Pulled(skill.ref, target, state)
