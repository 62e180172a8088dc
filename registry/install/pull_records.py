"""Record pulls: a signed record for `undo`, and a note for the next sync while a pull runs.

A pull has one row in the `changes` table, for any number of skills. In this row, ``folder`` is the
folder of the lock file. ``before`` and ``after`` are the entries of each skill in the lock file
before and after the pull.

The pull writes the note before its first change and removes it at the end. The name of the note's
file comes from the lock file's folder. The file has mode 0600 and is in a folder of mode 0700 in
this user's data folder.
"""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from registry.changes.signer import Signer, new_numbers, signed
from registry.core import Core
from registry.db.read.history import RecordedChange, facts_of, last_changes
from registry.disk.atomic import Place, copy_tree, digest_of, remove_tree, rename_new, write_file
from registry.disk.beneath import Folder
from registry.disk.private import open_data_folder, read_own_file
from registry.errors import RegistryError
from registry.install.content import FileContent, local_content, local_files
from registry.install.lockfile import LockEntry
from registry.install.targets import InstallTarget
from registry.text import is_encodable, utc_now

KIND: Final = "pull"
MAX_NAMED: Final = 10

_DIGEST: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class InstallRecord:
    """The change that a pull made to one skill, in one of the target's folders.

    ``before`` is the skill's entry in the lock file before the pull, without the hashes of its
    files; None if there was no entry. ``state`` and ``left`` are the `state_of` the entry before
    and after the pull. ``edits`` has the digests of the replaced edits and folders that `keep_edit`
    stored, by the id of their folder. ``missing`` has the ids of the folders in which an
    installed skill was missing before the pull. ``is_kept`` is True if the pull replaced no other
    files. ``made`` has the real paths of the folders, and of the lock file, that the pull created.
    """

    name: str
    before: Mapping[str, Any] | None
    state: list[Any] | None
    left: list[Any] | None
    is_kept: bool
    edits: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    made: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        was: LockEntry | None,
        now: LockEntry | None,
        edits: Mapping[str, str],
        missing: Sequence[str],
        made: Sequence[str],
        *,
        is_kept: bool,
    ) -> Self:
        """Return the record of a pull that changed a lock entry from ``was`` to ``now``.

        ``was`` and ``now`` are None if there is no entry.
        """
        known = was or now
        assert known is not None  # noqa: S101  # one of them is set
        before, gone = None, tuple[str, ...]()
        if was is not None:
            before = {key: value for key, value in asdict(was).items() if key != "files"}
            gone = tuple(missing)
        return cls(known.name, before, state_of(was), state_of(now), is_kept, edits, gone, made)

    @property
    def is_changed(self) -> bool:
        """Whether the pull changed files of the skill, and not only the entry in the lock file."""
        has_files = bool(self.edits or self.missing) or not self.is_kept
        return self.state != self.left or has_files


def state_of(entry: LockEntry | None) -> list[Any] | None:
    """Return an entry's tree hash, agents and mode; two entries are compared by these values."""
    return None if entry is None else [entry.tree_hash, list(entry.agents), entry.mode]


def remember(core: Core, target: InstallTarget, made: Mapping[str, InstallRecord]) -> None:
    """Record a pull, so that `undo` can undo it.

    ``made`` has the changes of the pull, by the folders of the skills. If a pull changed no files,
    it isn't recorded.
    """
    names = [one.name for one in made.values() if one.is_changed]
    if not names or core.reader.empty or not is_encodable(target.path):
        return
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    number = new_numbers()[0]
    before = {folder: asdict(one) for folder, one in made.items()}
    after = {folder: facts.pop("left") for folder, facts in before.items()}
    # Import this only here, because most pulls change no files and don't write to the database.
    from registry.db.write.history import add_change, drop_old_changes

    with suppress(RegistryError):
        change = signed(
            Signer.of(core),
            number=number,
            kind=KIND,
            uid=number,  # a pull doesn't change a skill in a source, so its row gets a separate uid
            name=", ".join(names[:MAX_NAMED]) + more,
            source="",
            folder=target.path,
            before=json.dumps(before),
            after=json.dumps(after),
            made_at=utc_now(),
        )
        with core.writer.transaction() as connection:
            add_change(connection, change, core.host)
            drop_old_changes(connection, core.host)


def remembered_pulls(core: Core) -> list[RecordedChange]:
    """Return this user's recorded pulls, the latest first. Raises `OwnFileUnusable`."""
    found = [one for one in last_changes(core.reader, core.host) if one.kind == KIND]
    signer = Signer.known(core) if found else None
    if signer is None:
        return []
    return [one for one in found if signer.signed("undo", one.number, facts_of(one), one.signature)]


def records_of(change: RecordedChange) -> dict[str, InstallRecord]:
    """Return the changes of a pull from `remembered_pulls`, by the folders of the skills."""
    before, after = json.loads(change.before or "{}"), json.loads(change.after or "{}")
    for facts in before.values():
        facts.pop("client", None)  # a field from earlier versions of this program
    return {folder: InstallRecord(**facts, left=after[folder]) for folder, facts in before.items()}


EDITS: Final = "edits"
EDIT_DAYS: Final = 90
"""Number of days for which `undo` can restore an edit that a pull replaced."""


def keep_edit(place: Place, digest: str) -> bool:
    """Copy a folder before a pull replaces it, so that `undo` can restore it.

    Returns False if the folder has links or special files, or can't be copied completely.
    """
    with suppress(OSError, RegistryError):
        if not all(hashed for hashed, _ in local_files(place).values()):
            return False
        with open_data_folder(EDITS, make=True) as folder:
            for old in folder.entries():
                if time.time() - old.stat().st_ctime > EDIT_DAYS * 86400:
                    remove_tree(Place(folder, old.name))
            draft = Place(folder, secrets.token_hex(8))
            try:
                copy_tree(place, draft)
                if digest_of(draft) != digest:
                    return False
                remove_tree(Place(folder, digest))
                rename_new(draft, Place(folder, digest))
                folder.sync()
                return True
            finally:
                remove_tree(draft)
    return False


def kept_edit(core: Core, digest: str) -> list[FileContent] | None:
    """Return the files that `keep_edit` copied; None if the copy no longer exists."""
    with suppress(OSError, RegistryError), open_data_folder(EDITS) as folder:
        place = Place(folder, digest)
        if _DIGEST.fullmatch(digest) and digest_of(place) == digest:
            return local_content(core, place)
    return None


FOLDER: Final = "pulls"
MAX_NOTE_BYTES: Final = 1 << 16


def note_begun(target: InstallTarget) -> None:
    """Write the note that a pull has begun to change a target.

    The next sync reads this note and finishes an interrupted pull. Without the note, only the next
    pull into the same target would finish it.
    """
    # ValueError is raised if the path isn't valid UTF-8.
    with suppress(OSError, ValueError), open_data_folder(FOLDER, make=True) as folder:
        write_file(_note_place(folder, target), _data(target), 0o600)


def note_ended(target: InstallTarget) -> None:
    """Remove the note of a target, because no pull into this target is unfinished any more."""
    with suppress(OSError, ValueError), open_data_folder(FOLDER) as folder:
        os.unlink(_note_place(folder, target).name, dir_fd=folder.fd)


def interrupted_targets() -> list[InstallTarget]:
    """Return the targets that have a note, because a pull is running or was interrupted."""
    try:
        with open_data_folder(FOLDER) as folder:
            return [one for name in os.listdir(folder.fd) for one in _noted(folder, name)]
    except OSError:
        return []


def _noted(folder: Folder, name: str) -> Iterator[InstallTarget]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads(read_own_file(Place(folder, name), MAX_NOTE_BYTES))
        target = InstallTarget(str(facts["path"]), is_global=facts["is_global"] is True)
        if os.path.isabs(target.path) and _note_place(folder, target).name == name:
            yield target


def _note_place(folder: Folder, target: InstallTarget) -> Place:
    return Place(folder, hashlib.sha256(_data(target)).hexdigest())


def _data(target: InstallTarget) -> bytes:
    facts = {"path": target.path, "is_global": target.is_global}
    return json.dumps(facts, sort_keys=True, ensure_ascii=False).encode()
