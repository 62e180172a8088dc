"""The lock file of a folder that skills were pulled into: what each was, and from where."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from registry.disk.atomic import Place
from registry.disk.beneath import Folder
from registry.disk.files import read_file
from registry.document.names import check_folder_name
from registry.errors import LockFileInvalid, RegistryError
from registry.exchange.staging import replace_file

NAME: Final = "skills.lock.json"
VERSION: Final = 1
MAX_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class Locked:
    """One pulled skill: its origin, its hashes, and the hash of each of its files by path.

    ``digest`` is that of the folder that was written (`disk.atomic.digest_of`).
    """

    name: str
    ref: str
    source: str
    folder: str
    content_hash: str
    tree_hash: str
    digest: str
    files: Mapping[str, str]


def read_lock(to: str) -> dict[str, Locked]:
    """Return the pulled skills by the name of their folder. Raises `LockFileInvalid`."""
    path = os.path.join(to, NAME)
    try:
        data = json.loads(read_file(path, MAX_BYTES).data)
        if data["version"] != VERSION:
            raise ValueError(f"its version is {data['version']!r}, {VERSION} is known")  # noqa: TRY301
        return {safe_folder(name): locked_from(entry) for name, entry in data["skills"].items()}
    except FileNotFoundError:
        return {}
    except KeyError as error:
        raise LockFileInvalid(path=path, reason=f"it has no {error}") from error
    except RegistryError as error:
        raise LockFileInvalid(path=path, reason=str(error).rstrip(".")) from error
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise LockFileInvalid(path=path, reason=str(error)) from error


def write_lock(to: Folder, locked: Mapping[str, Locked]) -> None:
    """Replace the lock file in one step; equal contents give equal bytes."""
    skills = {
        folder: {**asdict(locked[folder]), "files": dict(sorted(locked[folder].files.items()))}
        for folder in sorted(locked)
    }
    text = json.dumps({"version": VERSION, "skills": skills}, indent=2, ensure_ascii=False) + "\n"
    replace_file(Place(to, NAME), text.encode("utf-8", "backslashreplace"))


def locked_from(record: Any) -> Locked:
    """Return an entry from its JSON. Raises KeyError, TypeError, AttributeError."""
    entry = Locked(**{field.name: record[field.name] for field in fields(Locked)})
    texts = [getattr(entry, field.name) for field in fields(Locked) if field.name != "files"]
    if not all(isinstance(text, str) for text in (*texts, *entry.files.values())):
        raise TypeError("hashes and names must be texts")
    return entry


def safe_folder(name: str) -> str:
    """Return the name of a folder, which may come from anywhere. Raises ValueError."""
    reason = check_folder_name(name)
    if reason is not None:
        raise ValueError(f"{name[:100]!r} can't be a folder: {reason}")
    return name
