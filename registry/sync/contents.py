"""Keep the bytes of skills in the database, so that what they were can be had again.

Bytes are read once more after a version was stored, and only kept where they still have its hash.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from operator import itemgetter
from typing import Final

from registry.core import Core
from registry.db.queries.revisions import missing_contents
from registry.db.versions import Packed, pack
from registry.disk.files import digest, open_home, read_inside
from registry.errors import RegistryError
from registry.sync.owned import is_here

BATCH: Final = 400
"""Files that are stored in one transaction."""


def store_contents(core: Core, versions: Sequence[int] | None) -> None:
    """Store the bytes of all files of these versions (None: of all live ones) that are not yet.

    Nothing is done where that is switched off in the settings.
    """
    if not core.settings.store_files:
        return
    from registry.db.writes.revisions import add_contents

    found = _readable(core, versions)
    while batch := list(islice(found, BATCH)):
        # Compressing and reading are done; only the insert holds up other writers.
        with core.writer.transaction() as connection:
            add_contents(connection, batch)


def _readable(core: Core, versions: Sequence[int] | None) -> Iterator[Packed]:
    limit = core.settings.limits.skill_bytes
    done: set[str] = set()
    missing = missing_contents(core.reader, versions, core.host)
    for (root, folder), files in groupby(missing, key=itemgetter(1, 2)):
        if not is_here(core, core.host, root):
            continue
        # What was readable a moment ago and is no more, the next version of the skill brings back.
        with suppress(RegistryError, OSError), open_home(root, folder) as home:
            for content_hash, _, _, path in files:
                if content_hash in done:
                    continue
                with suppress(RegistryError, OSError):
                    data = read_inside(home, path, limit, root).data
                    if digest(data) == content_hash:
                        done.add(content_hash)
                        yield pack(content_hash, data)
