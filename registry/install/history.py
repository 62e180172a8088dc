"""Records of pulls: a signed one for `undo`, and a note for the next sync while a pull runs.

A pull is one row of the `changes` table, however many skills it installs: ``folder`` is the folder
of the lock, ``before`` and ``after`` are the lock's entries of each skill. While a pull runs, there
is a small note file, named after the folder of the lock (0600, in a folder of 0700 in this user's
data folder). The pull writes the note before its first change and removes it at its end.
"""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from registry.changes.signer import Signer, new_numbers, signed
from registry.core import Core
from registry.db.read.history import RecordedChange, facts_of, last_changes
from registry.disk.atomic import (
    OWN,
    Place,
    copy_tree,
    digest_of,
    make_path,
    open_named,
    remove_tree,
    rename_new,
    write_file,
)
from registry.disk.beneath import Folder
from registry.disk.private import open_own_folder, read_own_file
from registry.errors import RegistryError
from registry.install.content import Entry, local_content, local_files
from registry.install.lockfile import Locked
from registry.install.targets import Target
from registry.settings import data_folder
from registry.text import is_encodable, utc_now

KIND: Final = "pull"
MAX_NAMED: Final = 10

_DIGEST: Final = re.compile("[0-9a-f]{64}")
_FROM_FILES: Final = frozenset({"files", "digest"})
"""Fields of an entry that follow from its files."""


@dataclass(frozen=True, slots=True)
class InstallRecord:
    """The change that a pull made to the skill in one folder.

    ``before``: the lock's entry without the fields that follow from the files, or None; ``state``
    and ``left``: the `state_of` its entries before and after. ``edits``: the kept edits and folders
    that no pull made (`keep_edit`), as digests by the label of their folder. ``is_kept``: no other
    files were replaced.
    """

    name: str
    before: Mapping[str, Any] | None
    state: list[Any] | None
    left: list[Any] | None
    is_kept: bool
    edits: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, was: Locked | None, now: Locked | None, edits: Mapping[str, str], *, is_kept: bool
    ) -> Self:
        """Return the record of a change from one entry of the lock to another (None: nothing)."""
        known = was or now
        assert known is not None  # noqa: S101  # what was changed is, or was, in the lock
        before = None
        if was is not None:
            before = {key: value for key, value in asdict(was).items() if key not in _FROM_FILES}
        return cls(known.name, before, state_of(was), state_of(now), is_kept, edits)

    @property
    def is_changed(self) -> bool:
        """True if the pull changed files of the skill, not only the lock's entry."""
        return self.state != self.left or bool(self.edits) or not self.is_kept


def state_of(entry: Locked | None) -> list[Any] | None:
    """Return what tells two states of a pulled skill apart: its files, for whom, and how."""
    return None if entry is None else [entry.tree_hash, list(entry.agents), entry.mode]


def remember(core: Core, target: Target, made: Mapping[str, InstallRecord]) -> None:
    """Write a pull down for `undo`, by the folders of its skills; nothing where it changed none."""
    names = [one.name for one in made.values() if one.is_changed]
    if not names or core.reader.empty or not is_encodable(target.path):
        return
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    number = new_numbers()[0]
    before = {folder: asdict(one) for folder, one in made.items()}
    after = {folder: facts.pop("left") for folder, facts in before.items()}
    # Most pulls change nothing: import the code that writes only for the others.
    from registry.db.write.history import add_change, drop_old_changes

    with suppress(RegistryError):
        change = signed(
            Signer.of(core),
            number=number,
            kind=KIND,
            uid=number,  # it is about no skill of a source
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
    """Return what a pull that is `remembered_pulls` did, by the folders."""
    before, after = json.loads(change.before or "{}"), json.loads(change.after or "{}")
    for facts in before.values():
        facts.pop("client", None)  # which earlier pulls wrote
    return {folder: InstallRecord(**facts, left=after[folder]) for folder, facts in before.items()}


EDITS: Final = "edits"
EDIT_DAYS: Final = 90
"""After so many days without an undo, an edit that a pull replaced is no longer kept."""


def keep_edit(place: Place, digest: str) -> bool:
    """Copy a folder of plain files that a pull is about to replace; False: it can't be put back."""
    with suppress(OSError, RegistryError):
        if not all(hashed for hashed, _ in local_files(place).values()):
            return False
        make_path(str(data_folder()), OWN)
        with _own(EDITS, make=True) as folder:
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


def kept_edit(core: Core, digest: str) -> list[Entry] | None:
    """Return the files that `keep_edit` kept; None: they are not kept any more."""
    with suppress(OSError, RegistryError), _own(EDITS) as folder:
        place = Place(folder, digest)
        if _DIGEST.fullmatch(digest) and digest_of(place) == digest:
            return local_content(core, place)
    return None


FOLDER: Final = "pulls"
MAX_NOTE_BYTES: Final = 1 << 16


def note_begun(target: Target) -> None:
    """Note that a pull changes a target. Without a note only the next pull there clears up."""
    with suppress(OSError, ValueError):  # ValueError: a path that is not UTF-8 text
        make_path(str(data_folder()), OWN)
        with _own(FOLDER, make=True) as folder, suppress(FileExistsError):
            write_file(_note_place(folder, target), _data(target), 0o600)


def note_ended(target: Target) -> None:
    """Remove the note of a target: no unfinished pull is left there."""
    with suppress(OSError, ValueError), _own(FOLDER) as folder:
        os.unlink(_note_place(folder, target).name, dir_fd=folder.fd)


def interrupted_targets() -> list[Target]:
    """Return the targets that pulls change now, or were killed changing."""
    try:
        with _own(FOLDER) as folder:
            return [one for name in os.listdir(folder.fd) for one in _noted(folder, name)]
    except OSError:
        return []


def _noted(folder: Folder, name: str) -> Iterator[Target]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads(read_own_file(Place(folder, name), MAX_NOTE_BYTES))
        target = Target(str(facts["path"]), is_global=facts["is_global"] is True)
        if os.path.isabs(target.path) and _note_place(folder, target).name == name:
            yield target


def _note_place(folder: Folder, target: Target) -> Place:
    return Place(folder, hashlib.sha256(_data(target)).hexdigest())


def _data(target: Target) -> bytes:
    facts = {"path": target.path, "is_global": target.is_global}
    return json.dumps(facts, sort_keys=True, ensure_ascii=False).encode()


@contextmanager
def _own(name: str, *, make: bool = False) -> Iterator[Folder]:
    """Open a folder in the user's data folder that belongs to this user only."""
    with (
        open_named(str(data_folder())) as home,
        open_own_folder(Place(home, name), make=make) as folder,
    ):
        yield folder
