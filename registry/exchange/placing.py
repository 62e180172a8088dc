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
    digest_path,
    exchange,
    is_gone,
    remove_tree,
    rename_new,
    sync_folder,
    sync_tree,
    write_below,
    write_file,
)
from registry.exchange.content import Entry
from registry.exchange.lockfile import Locked, locked_from, safe_folder
from registry.exchange.staging import make_staging_dir

TREE: Final = "tree"
"""What is to be put in place, and after an exchange what was there."""

OLD: Final = "old"
"""What was there, where the system knows no exchange."""

NEW: Final = "new"
"""What was put in place and had to give way to an edit."""

NOTE: Final = "note.json"


@dataclass(frozen=True, slots=True)
class Note:
    """What a staging directory is for: a folder and the digest of what is there (None: nothing)."""

    folder: str
    base: str | None
    entry: Locked


def stage(to: str, entries: Sequence[Entry]) -> tuple[str, str]:
    """Write files durably into a new staging directory; return its path and the folder's digest."""
    staging_dir = make_staging_dir(to)
    tree = f"{staging_dir}/{TREE}"
    try:
        for entry in entries:
            write_below(tree, entry.path, entry.data, 0o755 if entry.executable else 0o644)
        sync_tree(tree)
        return staging_dir, digest_path(tree) or ""
    except BaseException:
        remove_tree(staging_dir)
        raise


def place(to: str, staging_dir: str, note: Note) -> bool:
    """Put what is staged in its place. False: somebody was there meanwhile, and is left alone."""
    write_file(f"{staging_dir}/{NOTE}", json.dumps(asdict(note)).encode())
    sync_folder(staging_dir)
    target, tree = os.path.join(to, note.folder), f"{staging_dir}/{TREE}"
    try:
        if note.base is None:
            rename_new(tree, target)
        else:
            _swap(tree, target, f"{staging_dir}/{OLD}")
    except (FileExistsError, FileNotFoundError):
        pass  # made or removed in this moment
    return repair(to, staging_dir) is not None


def repair(to: str, staging_dir: str) -> Note | None:
    """Finish an interrupted place: what was displaced is what was expected, or is put back.

    Returns the note if what was staged is in place. Does the same again when it was killed.
    """
    note = _read_note(staging_dir)
    if note is None:
        return None  # nothing was moved yet
    target, new = os.path.join(to, note.folder), note.entry.digest
    displaced = f"{staging_dir}/{OLD}"
    if is_gone(displaced):
        displaced = f"{staging_dir}/{TREE}"
    found, live = digest_path(displaced), digest_path(target)
    if found not in {None, new}:
        if live is None:
            rename_new(displaced, target)
            live = found
        elif live == new and found != note.base:  # an edit slipped in before the rename: it wins
            _swap(displaced, target, f"{staging_dir}/{NEW}")
            live = found
    sync_folder(to)
    return note if live == new else None


def in_place(to: str, staging_dir: str) -> Note | None:
    """Return the note of a staging directory if what it describes is in place; change nothing."""
    note = _read_note(staging_dir)
    if note is None or digest_path(os.path.join(to, note.folder)) != note.entry.digest:
        return None
    return note


def clear(staging_dir: str) -> None:
    """Remove a staging directory that the lock file covers; what may be an edit stays in it."""
    note = _read_note(staging_dir)
    if note is not None:
        known = {None, note.base, note.entry.digest}
        if any(digest_path(f"{staging_dir}/{name}") not in known for name in (TREE, OLD, NEW)):
            return
        # First of all: what is removed by half would look like an edit.
        os.unlink(f"{staging_dir}/{NOTE}")
        sync_folder(staging_dir)
    remove_tree(staging_dir)


def _swap(one: str, other: str, aside: str) -> None:
    """Put ``one`` in the place of ``other``, in one step where the system can."""
    try:
        exchange(one, other)
    except ExchangeUnsupported:
        rename_new(other, aside)
        rename_new(one, other)


def _read_note(staging_dir: str) -> Note | None:
    try:
        with open(f"{staging_dir}/{NOTE}", encoding="utf-8") as file:
            data = json.load(file)
        # What lies in a folder that others can write to must not lead out of it.
        return Note(safe_folder(data["folder"]), data["base"], locked_from(data["entry"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # not written to its end: the renames come after it
