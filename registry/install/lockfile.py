"""Read and write the lock file: the versions, origins and agents of installed skills.

Users commit lock files and merge those of other people, so each field is checked before its use.
The same pulls write the same bytes on every machine, so the file has no times and no absolute
paths.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, TypeAlias, get_args

from registry.disk.agents import find_agent
from registry.disk.atomic import Place
from registry.disk.beneath import Folder
from registry.disk.swap import replace_file
from registry.document.labels import is_label
from registry.document.names import check_folder_name
from registry.errors import LockFileInvalid, RegistryError
from registry.sync.installed import LOCK, VERSION, read_entries
from registry.text import masked, utc_text, without_secrets

NAME: Final = LOCK

Mode: TypeAlias = Literal["link", "copy"]
ORIGIN: Final = ("commit", "path", "ref", "url")


@dataclass(frozen=True, slots=True)
class LockEntry:
    """The entry of an installed skill in a lock file.

    It has the skill's origin, its hashes, and the hash of each of its files by path. ``digest`` is
    the digest of the folder that `pull` wrote (`disk.atomic.digest_of`). ``source`` and ``folder``
    identify the skill in the registry. ``origin`` is the address of the skill, with the keys
    `ORIGIN`, or None. ``agents`` has the ids of the agents for which the skill is installed, as
    links or copies (``mode``). If ``agents`` is empty, the skill is in the folder of the lock file.
    ``pin`` is the label of the version that stays installed; None if the skill follows its source.
    """

    name: str
    ref: str
    source: str
    folder: str
    content_hash: str
    tree_hash: str
    digest: str
    files: Mapping[str, str]
    origin: Mapping[str, str | None] | None = None
    agents: tuple[str, ...] = ()
    mode: Mode = "copy"
    pin: str | None = None


_TEXTS: Final = [one.name for one in fields(LockEntry) if one.type is str]


def read_lock(to: str) -> dict[str, LockEntry]:
    """Return the installed skills by the names of their folders. Raises `LockFileInvalid`."""
    path = os.path.join(to, NAME)
    try:
        return {safe_folder(name): locked_from(entry) for name, entry in read_entries(path).items()}
    except FileNotFoundError:
        return {}
    except KeyError as error:
        raise LockFileInvalid(path=path, reason=f"the key {error} is missing") from error
    except RegistryError as error:
        raise LockFileInvalid(path=path, reason=str(error).rstrip(".")) from error
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise LockFileInvalid(path=path, reason=str(error)) from error


def pulled_at(to: str) -> str | None:
    """Return the lock file's modification time as UTC text: about the time of the last pull."""
    with suppress(OSError, LockFileInvalid):
        if read_lock(to):
            return utc_text(os.stat(os.path.join(to, NAME)).st_mtime_ns)
    return None


def write_lock(to: Folder, locked: Mapping[str, LockEntry]) -> None:
    """Replace the lock file atomically; for the same entries, its bytes are the same."""
    data = {"version": VERSION, "skills": {name: asdict(one) for name, one in locked.items()}}
    replace_file(Place(to, NAME), encoded(data, sort=True))


def encoded(data: object, *, sort: bool) -> bytes:
    """Return JSON in the style of lock files: indented by two spaces, with a final line break."""
    text = json.dumps(data, indent=2, ensure_ascii=False, sort_keys=sort) + "\n"
    return text.encode("utf-8", "backslashreplace")


def locked_from(record: Any) -> LockEntry:
    """Check each field of an entry's JSON, and return the entry.

    Raises KeyError, TypeError or AttributeError if a field is missing or has a wrong type, and
    `AgentNotFound`.
    """
    files, origin, mode = record["files"], record.get("origin"), record.get("mode", "copy")
    texts = {name: record[name] for name in _TEXTS}
    if not all(isinstance(text, str) for text in (*texts.values(), *files.values())):
        raise TypeError("hashes and names must be text")
    if mode not in get_args(Mode):
        raise TypeError("a mode is link or copy")
    pin = record.get("pin")
    if pin is not None and not is_label(pin):
        raise TypeError("a pin is the label of a version")
    return LockEntry(
        **texts,
        files=dict(files),
        origin=None if origin is None else origin_from(origin),
        agents=tuple(find_agent(str(one)).id for one in record.get("agents", ())),
        mode=mode,
        pin=pin,
    )


def origin_from(record: Mapping[str, Any]) -> dict[str, str | None]:
    """Return an origin with exactly the keys `ORIGIN`, and without the password in its address.

    Raises TypeError if a field has a wrong type.
    """
    origin = {key: record.get(key) for key in ORIGIN}
    if not all(one is None or isinstance(one, str) for one in origin.values()):
        raise TypeError("the values of an origin must be text")
    if (url := origin["url"]) is not None:
        origin["url"] = without_secrets(url)
    return origin


def has_secrets(to: str) -> list[str]:
    """Return the addresses in a lock file that contain a password or token, which is masked."""
    with suppress(OSError, RegistryError, ValueError, LookupError, TypeError, AttributeError):
        entries = read_entries(os.path.join(to, NAME)).values()
        urls = {one["origin"]["url"] for one in entries if one.get("origin")}
        return sorted(masked(url) for url in urls if without_secrets(url) != url)
    return []


def safe_folder(name: str) -> str:
    """Return a folder's name from an untrusted file. Raises ValueError if the name isn't safe."""
    reason = check_folder_name(name)
    if reason is not None:
        raise ValueError(f"{name[:100]!r} can't be a folder: {reason}")
    return name
