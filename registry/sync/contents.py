"""Store the files of skills in the database, so that older revisions can be restored.

After a version is stored, this module reads its files a second time. The module stores the bytes of
a file only if they still have the hash in the version.
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
"""Number of files that one transaction stores."""


def store_contents(core: Core) -> None:
    """Store the files of all current versions, except files that are stored already.

    Stored bytes that don't match their hash are replaced. On a server, this needs the right to
    delete rows of ``contents``. If the setting for file storage is off, nothing is stored.
    """
    if not core.settings.store_files:
        return
    from registry.db.write.history import add_contents

    mismatched: frozenset[str] = frozenset()
    if not core.host or is_admin(core.reader):
        mismatched = frozenset(mismatched_contents(core.reader, core.settings.limits))
    found = _readable(core, mismatched)
    while batch := list(islice(found, BATCH)):
        # The files are already read and compressed, so other writers wait only for the insertion.
        with core.writer.transaction() as connection:
            add_contents(connection, batch, mismatched)


def _readable(core: Core, mismatched: Collection[str]) -> Iterator[Packed]:
    limit = core.settings.limits.skill_bytes
    done: set[str] = set()
    missing = missing_contents(core.reader, core.host, mismatched)
    for (root, folder), files in groupby(missing, key=itemgetter(1, 2)):
        if not is_here(core, core.host, root):
            continue
        # If a file can't be read now, it is stored with the next version of the skill.
        with suppress(RegistryError, OSError), open_home(root, folder) as home:
            for content_hash, _, _, path in files:
                if content_hash in done:
                    continue
                with suppress(RegistryError, OSError):
                    data = read_inside(home, path, limit, root).data
                    if digest(data) == content_hash:
                        done.add(content_hash)
                        yield pack(content_hash, data)
