"""Put a folder in the place of another: whole, also when killed, and never over somebody's edit.

A staging directory holds the new folder, and a note of what it is to replace, until the lock file
says what is in place. The rename is the turning point; whoever comes next finishes what a note
tells of.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from registry.disk.atomic import (
    ExchangeUnsupported,
    Place,
    digest_of,
    exchange,
    is_gone,
    make_folder,
    remove_tree,
    rename_new,
    sync_folder,
    sync_tree,
    write_below,
    write_file,
)
from registry.disk.beneath import Folder
from registry.disk.files import read_below
from registry.disk.private import open_own_folder
from registry.errors import RegistryError
from registry.install.content import Entry
from registry.install.lockfile import MAX_BYTES, Locked, locked_from, safe_folder
from registry.install.staging import make_staging_dir

TREE: Final = "tree"
"""What is to be put in place, and after an exchange what was there."""

OLD: Final = "old"
"""What was there, where the system knows no exchange."""

NEW: Final = "new"
"""What was put in place and had to give way to an edit."""

NOTE: Final = "note.json"


@dataclass(frozen=True, slots=True)
class Note:
    """What a staging directory is for: what is, and what is to be, in a place, by their digests.

    None: nothing. ``entry`` is what the lock is to say where this place is all of it; of one
    among several `several.Several` knows.
    """

    folder: str
    base: str | None
    new: str | None
    entry: Locked | None = None


def stage(to: Folder, entries: Sequence[Entry], staging_dir: str = "") -> tuple[str, str]:
    """Write files durably into a new staging directory; return its name and the folder's digest."""
    staging_dir = make_staging_dir(to, staging_dir)
    try:
        with open_own_folder(Place(to, staging_dir)) as staging:
            tree = Place(staging, TREE)
            with make_folder(tree) as folder:
                for entry in entries:
                    mode = 0o755 if entry.executable else 0o644
                    write_below(folder, entry.path, entry.data, mode)
            sync_tree(tree)
            return staging_dir, digest_of(tree) or ""
    except BaseException:
        remove_tree(Place(to, staging_dir))
        raise


def stage_link(to: Folder, target: str, staging_dir: str) -> str:
    """Make a link in a new staging directory; return its digest. Raises OSError where none can be.

    What was made is removed then.
    """
    make_staging_dir(to, staging_dir)
    try:
        with open_own_folder(Place(to, staging_dir)) as staging:
            os.symlink(target, TREE, dir_fd=staging.fd)
            return digest_of(Place(staging, TREE)) or ""
    except BaseException:
        remove_tree(Place(to, staging_dir))
        raise


def write_note(to: Folder, staging_dir: str, note: Note) -> None:
    """Say durably what a staging directory is for."""
    with open_own_folder(Place(to, staging_dir)) as staging:
        write_file(Place(staging, NOTE), json.dumps(asdict(note)).encode())
        sync_folder(staging)


def place(to: Folder, staging_dir: str, note: Note) -> bool:
    """Put what is staged in its place. False: somebody was there meanwhile, and is left alone."""
    write_note(to, staging_dir, note)
    return put(to, staging_dir)


def put(to: Folder, staging_dir: str) -> bool:
    """Do what the note of a staging directory says; False as `place`."""
    with open_own_folder(Place(to, staging_dir)) as staging:
        note = read_note(staging)
        if note is None:
            return False
        target, tree = Place(to, note.folder), Place(staging, TREE)
        try:
            if note.new is None:
                rename_new(target, Place(staging, OLD))
            elif note.base is None:
                rename_new(tree, target)
            else:
                _swap(tree, target, Place(staging, OLD))
        except (FileExistsError, FileNotFoundError):
            pass  # made or removed in this moment
    return repair(to, staging_dir) is not None


def repair(to: Folder, staging_dir: str) -> Note | None:
    """Finish an interrupted place: what was displaced is what was expected, or is put back.

    Returns the note if what was staged is in place. Does the same again when it was killed.
    """
    with open_own_folder(Place(to, staging_dir)) as staging:
        note = read_note(staging)
        if note is None:
            return None  # nothing was moved yet
        target, new = Place(to, note.folder), note.new
        displaced = _displaced(staging)
        found, live = digest_of(displaced), digest_of(target)
        if new is None:
            if live is None and found not in {None, note.base}:  # an edit slipped in: it wins
                rename_new(displaced, target)
                live = found
        elif found not in {None, new}:
            if live is None:
                rename_new(displaced, target)
                live = found
            elif live == new and found != note.base:
                _swap(displaced, target, Place(staging, NEW))
                live = found
    sync_folder(to)
    return note if live == new else None


def take_back(to: Folder, staging_dir: str) -> None:
    """Let a place be as it was before `put`, unless it was edited meanwhile."""
    note = repair(to, staging_dir)
    if note is None:
        return
    with open_own_folder(Place(to, staging_dir)) as staging:
        target, given_up = Place(to, note.folder), Place(staging, NEW)
        displaced = _displaced(staging)
        if note.new is None:
            if digest_of(displaced) == note.base:
                rename_new(displaced, target)
        elif note.base is None:
            rename_new(target, given_up)
            if digest_of(given_up) != note.new:  # an edit slipped in
                rename_new(given_up, target)
        elif digest_of(displaced) == note.base:
            _swap(displaced, target, given_up)
    sync_folder(to)


def _displaced(staging: Folder) -> Place:
    """Return where what was in the place is, if it was moved."""
    old = Place(staging, OLD)
    return Place(staging, TREE) if is_gone(old) else old


def is_in_place(to: Folder, staging_dir: str) -> Note | None:
    """Return the note of a staging directory if what it describes is in place; change nothing."""
    note = note_in(to, staging_dir)
    if note is None or digest_of(Place(to, note.folder)) != note.new:
        return None
    return note


def clear(to: Folder, staging_dir: str) -> None:
    """Remove a staging directory that the lock file covers; what may be an edit stays in it."""
    with open_own_folder(Place(to, staging_dir)) as staging:
        note = read_note(staging)
        if note is not None:
            known = {None, note.base, note.new}
            if any(digest_of(Place(staging, name)) not in known for name in (TREE, OLD, NEW)):
                return
            # First of all: what is removed by half would look like an edit.
            remove_tree(Place(staging, NOTE))
            sync_folder(staging)
    remove_tree(Place(to, staging_dir))


def _swap(one: Place, other: Place, aside: Place) -> None:
    """Put ``one`` in the place of ``other``, in one step where the system can."""
    try:
        exchange(one, other)
    except ExchangeUnsupported:
        rename_new(other, aside)
        rename_new(one, other)


def note_in(to: Folder, staging_dir: str) -> Note | None:
    """Return the note of a staging directory, as `read_note`."""
    with open_own_folder(Place(to, staging_dir)) as staging:
        return read_note(staging)


def read_note(staging: Folder) -> Note | None:
    """Return the note in a staging directory; None: there is none, or not to its end."""
    try:
        data = json.loads(read_below(staging, NOTE, MAX_BYTES).data)
        # What lies in a folder that others can write to must not lead out of it.
        entry = None if data["entry"] is None else locked_from(data["entry"])
        return Note(safe_folder(data["folder"]), data["base"], data["new"], entry)
    except UNREADABLE:
        return None  # the renames come after it


UNREADABLE: Final = (
    *(RegistryError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError),
)
"""What is raised for notes that were not written to their end, or by somebody else."""
