"""Keep the bytes of skills in the database, so that what they were can be had again.

Bytes are read once more after a version was stored, and only kept where they still have its hash.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from registry.core import Core
from registry.db.queries.revisions import missing_contents
from registry.disk.files import digest, read_inside
from registry.disk.paths import join
from registry.errors import RegistryError
from registry.sync.sources import is_here

if TYPE_CHECKING:
    from registry.db.writes.revisions import Packed

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


def _readable(core: Core, versions: Sequence[int] | None) -> "Iterator[Packed]":
    from registry.db.writes.revisions import pack

    limit = core.settings.limits.skill_bytes
    done: set[str] = set()
    for content_hash, root, folder, path in missing_contents(core.reader, versions, core.host):
        if content_hash in done or not is_here(core, core.host, root):
            continue
        home = join(root, folder)
        try:
            data = read_inside(f"{home}/{path}", limit, home, root).data
        except (RegistryError, OSError):
            continue  # it was readable a moment ago; the next version of the skill brings it back
        if digest(data) == content_hash:
            done.add(content_hash)
            yield pack(content_hash, data)
