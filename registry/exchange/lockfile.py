"""The lock file of a folder that skills were pulled into: what each was, and from where."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final

from registry.changes.files import sync_folder, write_file
from registry.errors import LockFileInvalid

NAME: Final = "skills.lock.json"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Locked:
    """One pulled skill: its origin, its hashes, and the digest of the folder that was written."""

    name: str
    source: str
    folder: str
    content_hash: str | None
    tree_hash: str | None
    digest: str


def read_lock(to: str) -> dict[str, Locked]:
    """Return the pulled skills by the name of their folder. Raises `LockFileInvalid`."""
    path = os.path.join(to, NAME)
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        keys = {field.name for field in fields(Locked)}
        return {
            str(folder): Locked(**{key: entry.get(key) for key in keys})
            for folder, entry in data["skills"].items()
        }
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise LockFileInvalid(path=path, reason=str(error)) from error


def write_lock(to: str, locked: Mapping[str, Locked]) -> None:
    """Replace the lock file in one step; equal contents give equal bytes."""
    value = {
        "version": VERSION,
        "skills": {folder: asdict(locked[folder]) for folder in sorted(locked)},
    }
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path = os.path.join(to, NAME)
    new = f"{path}.{os.getpid()}.new"
    try:
        write_file(new, text.encode("utf-8", "replace"))
        os.rename(new, path)
        sync_folder(to)
    finally:
        if os.path.lexists(new):
            os.unlink(new)
