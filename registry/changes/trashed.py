"""List the trash: the folders of deleted skills, each with its signed record."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from registry.changes.signer import Signer
from registry.changes.state import META, StateFolder, open_if_there
from registry.core import Core
from registry.disk.atomic import Place, is_gone
from registry.disk.beneath import Folder
from registry.disk.paths import is_safe_relative
from registry.disk.swap import TREE
from registry.errors import NotInTrash, RegistryError
from registry.model import Source, Value
from registry.sync.sources import own_sources

NOTED: Final = ("name", "folder", "deleted_at", "created_at", "uid")
"""Names of the signed values of a deleted skill.

All other values are computed from the path of the skill's folder in the trash.
"""


@dataclass(frozen=True, slots=True)
class Trashed(Value):
    """A deleted skill in the trash; ``path`` is the path of its folder there."""

    id: str
    name: str
    source: str
    folder: str
    deleted_at: str
    created_at: str
    uid: str
    path: str

    @property
    def place(self) -> str:
        """The source and the folder from which the skill was deleted, as source/folder."""
        return f"{self.source}/{self.folder}"

    def is_called(self, name: str) -> bool:
        """Tell whether ``name`` is this skill's name, trash id or source/folder."""
        return name in {self.name, self.id, self.place}


def find_trashed(
    in_trash: Iterable[Trashed],
    name: str,
    *,
    source: str | None,
    among: Collection[str] | None,
    skipped_uids: Collection[str],
) -> Trashed:
    """Return the newest deleted skill in ``in_trash`` with this name, trash id or source/folder.

    Raises `NotInTrash` if there is none.
    """
    for one in in_trash:
        if (
            one.is_called(name)
            and source in {None, one.source}
            and (among is None or one.source in among)
            and one.uid not in skipped_uids
        ):
            return one
    raise NotInTrash(name[:200])


def list_trash(core: Core) -> list[Trashed]:
    """Return the skills in the trash that this user deleted.

    The last deleted skill comes first. Each skill comes before the copies that were deleted
    together with it.
    """
    found = [one for source in own_sources(core) for one in _kept(core, source)[0]]
    # The signed time has only whole seconds, so skills that were deleted in the same second are
    # sorted by the time of the file.
    found.sort(key=lambda one: (one[1].deleted_at, one[0], one[1].id), reverse=True)
    return [trashed for _, trashed in found]


def foreign_trash(core: Core) -> list[str]:
    """Return the paths of folders in the trash for which this user didn't sign a deletion."""
    return sorted(path for source in own_sources(core) for path in _kept(core, source)[1])


def _kept(core: Core, source: Source) -> tuple[list[tuple[int, Trashed]], list[str]]:
    """Return the restorable skills in a source's trash with their times.

    Also return all other paths. The times are in nanoseconds.
    """
    ours: list[tuple[int, Trashed]] = []
    foreign: list[str] = []
    with suppress(RegistryError, OSError):
        state = StateFolder.open(source.path)
        if state is None:
            return ours, foreign
        with state:
            signer = Signer.known(core, source.path)
            for entry in state.trash.entries():
                facts = None if signer is None else note_of(signer, state.trash, entry.name)
                path = state.trash.path_of(entry.name)
                if facts is not None:
                    more = {"id": entry.name, "source": source.name, "path": f"{path}/{TREE}"}
                    moment = entry.stat(follow_symlinks=False).st_mtime_ns
                    ours.append((moment, Trashed(**facts, **more)))
                else:
                    foreign.append(path)
    return ours, foreign


def note_of(signer: Signer, trash: Folder, number: str) -> dict[str, str] | None:
    """Return the signed record of a deleted folder; None if this user did not sign one."""
    kept = open_if_there(trash, number)
    if kept is None:
        return None
    with kept:
        facts = signer.read(Place(kept, META), "trash", number)
        if facts is None or is_gone(Place(kept, TREE)) or facts.keys() != set(NOTED):
            return None
    return dict(facts) if is_safe_relative(facts["folder"]) else None
