"""Keep the bytes of skills in the database, so that what they were can be had again.

Bytes are read once more after a version was stored, and only kept where they still have its hash.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import groupby, islice
from operator import itemgetter
from typing import Final

from registry.core import Core
from registry.db.read.corruption import mismatched_contents
from registry.db.read.history import missing_contents
from registry.db.read.sources import is_admin
from registry.db.versions import Packed, pack
from registry.disk.files import digest, open_home, read_inside
from registry.errors import RegistryError
from registry.sync.sources import is_here

BATCH: Final = 400
"""Files that are stored in one transaction."""


def store_contents(core: Core) -> None:
    """Store the bytes of all files of all live versions that are not stored yet.

    Stored bytes that don't match their hash are stored again; on a server this needs the right to
    delete them. Does nothing if the settings switch it off.
    """
    if not core.settings.store_files:
        return
    from registry.db.write.history import add_contents

    mismatched: frozenset[str] = frozenset()
    if not core.host or is_admin(core.reader):
        mismatched = frozenset(mismatched_contents(core.reader, core.settings.limits))
    found = _readable(core, mismatched)
    while batch := list(islice(found, BATCH)):
        # Compressing and reading are done; only the insert holds up other writers.
        with core.writer.transaction() as connection:
            add_contents(connection, batch, mismatched)


def _readable(core: Core, mismatched: Collection[str]) -> Iterator[Packed]:
    limit = core.settings.limits.skill_bytes
    done: set[str] = set()
    missing = missing_contents(core.reader, core.host, mismatched)
    for (root, folder), files in groupby(missing, key=itemgetter(1, 2)):
        if not is_here(core, core.host, root):
            continue
        # If a file became unreadable a moment ago, the skill's next version stores it.
        with suppress(RegistryError, OSError), open_home(root, folder) as home:
            for content_hash, _, _, path in files:
                if content_hash in done:
                    continue
                with suppress(RegistryError, OSError):
                    data = read_inside(home, path, limit, root).data
                    if digest(data) == content_hash:
                        done.add(content_hash)
                        yield pack(content_hash, data)
