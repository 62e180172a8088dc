"""Keep the bytes of skills in the database, so that what they were can be had again.

Bytes are read once more after a version was stored, and only kept where they still have its hash.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from registry.db.interface import Reader, Writer
from registry.db.queries.revisions import missing_contents
from registry.db.writes.revisions import Packed, add_contents, pack
from registry.disk.files import digest, read_inside
from registry.disk.paths import join
from registry.errors import RegistryError

BATCH: Final = 400
"""Files that are stored in one transaction."""


def store_missing(
    reader: Reader, writer: Writer, limit: int, versions: Sequence[int] | None = None
) -> int:
    """Store the bytes of all files of these versions (None: of all live ones) that are not yet.

    ``limit``: bytes of one file. Returns how many files were stored.
    """
    found = _readable(reader, limit, versions, writer.host)
    stored = 0
    while batch := list(islice(found, BATCH)):
        stored += len(batch)
        # Compressing and reading are done; only the insert holds up other writers.
        with writer.transaction() as connection:
            add_contents(connection, batch)
    return stored


def _readable(
    reader: Reader, limit: int, versions: Sequence[int] | None, host: str
) -> Iterator[Packed]:
    done: set[str] = set()
    for content_hash, root, folder, path in missing_contents(reader, versions, host):
        if content_hash in done:
            continue
        home = join(root, folder)
        try:
            data = read_inside(f"{home}/{path}", limit, home, root).data
        except (RegistryError, OSError):
            continue  # it was readable a moment ago; the next version of the skill brings it back
        if digest(data) == content_hash:
            done.add(content_hash)
            yield pack(content_hash, data)
