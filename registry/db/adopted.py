"""The sources that this user added or adopted on this machine.

The list is in the user's data folder.

On a server, the stored host of a source can't be trusted. Any user with write access can register
any folder under the name of any machine. The next sync on that machine would then upload the
folder. So this machine reads, syncs and changes a server's source only if this user added or
adopted the source here.

Each such source has one small file (mode 0600, in a folder of mode 0700). The file's name is a hash
of the database's address, the host and the path. If the path in the database changes, the hash no
longer matches, and the source no longer counts as adopted.
"""

import hashlib
import json
import os
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from registry.db.interface import Backend
from registry.db.read.sources import list_sources
from registry.disk.atomic import Place
from registry.disk.private import is_ours_alone, open_data_folder, read_own_file, write_own_file
from registry.errors import OwnFileUnusable
from registry.model import Source
from registry.settings import data_folder
from registry.text import masked

FOLDER: Final = "sources"
MAX_BYTES: Final = 1 << 16


def is_adopted(backend: Backend, path: str) -> bool:
    """Tell whether this user added or adopted the source at ``path`` here, in this database."""
    try:
        with _place(backend, path) as (place, data):
            return read_own_file(place, MAX_BYTES) == data
    except OSError:
        return False  # if the folder is unreadable, `remember` reports it


def remember(backend: Backend, path: str) -> None:
    """Record that this user added or adopted the source at ``path``.

    Raises `OwnFileUnusable` if the record can't be written.
    """
    home = str(data_folder())
    try:
        with _place(backend, path, make=True) as (place, data), suppress(FileExistsError):
            write_own_file(place, data)
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else FOLDER
        reason = error.strerror or str(error)
        raise OwnFileUnusable(path=os.path.join(home, where), reason=reason) from error


def forget(backend: Backend, path: str) -> None:
    """Delete the record that this user added or adopted the source at ``path``."""
    with suppress(OSError), _place(backend, path) as (place, _):
        os.unlink(place.name, dir_fd=place.folder.fd)


def former_addresses(backend: Backend) -> dict[str, str]:
    """Return the folders that this user recorded while the database had another address.

    The result maps each folder to the last such address, without passwords.
    """
    found: list[tuple[int, str, str]] = []
    with suppress(OSError), open_data_folder(FOLDER) as folder:
        for name in os.listdir(folder.fd):
            with suppress(OSError, ValueError, KeyError, TypeError):
                facts = json.loads(read_own_file(Place(folder, name), MAX_BYTES))
                if facts["host"] == backend.host and facts["database"] != backend.identity:
                    at = os.stat(name, dir_fd=folder.fd).st_mtime_ns
                    found.append((at, facts["path"], address_of(facts["database"])))
    return {path: address for _, path, address in sorted(found)}


def address_of(identity: str) -> str:
    """Return the address of a server's database from `Backend.identity`, without its password."""
    address, _, where = identity.rpartition(" [")
    further = ", ".join(f"{key}={value}" for key, value in literal_eval(f"[{where}"))
    return masked(f"{address} ({further})" if further else address)


def adopt_copied(source: Backend, target: Backend) -> list[Source]:
    """Mark this user's sources on this machine as adopted in a copied registry, and return them.

    If the original is on a server, these are the sources that this user added or adopted on this
    machine. If the original is a file, these are all sources, or none if other users can write the
    file. Raises `OwnFileUnusable` if a record can't be written.
    """
    if not target.host or not (source.host or is_ours_alone(source.path)):
        return []
    found = [
        one
        for one in list_sources(target.reader, counted=False)
        if one.host == target.host
        and one.own
        and os.path.isabs(one.path)
        and (not source.host or is_adopted(source, one.path))
    ]
    for one in found:
        remember(target, one.path)
    return found


@contextmanager
def _place(backend: Backend, path: str, *, make: bool = False) -> Iterator[tuple[Place, bytes]]:
    """Open the folder of the records.

    Yield the file for ``path`` and the text that it must contain.
    """
    facts = {"database": backend.identity, "host": backend.host, "path": path}
    data = json.dumps(facts, sort_keys=True).encode()
    name = hashlib.sha256(data).hexdigest()
    with open_data_folder(FOLDER, make=make) as folder:
        yield Place(folder, name), data
