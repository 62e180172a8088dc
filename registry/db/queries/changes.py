"""The last changes by the registry, as far as they are read.

Whoever may write to the database may write here: what is not signed is a hint, never an order.
"""

from typing import Any, Final, NamedTuple

from registry.db.interface import Reader


class MadeChange(NamedTuple):
    """A change that was made.

    ``kind`` is create, update, delete or restore; ``before`` and ``after`` are tree hashes, None
    for nothing; ``number`` is that of the operation. A pull is one, too, of no source: see
    `exchange.remembered`.
    """

    id: int
    number: str
    kind: str
    uid: str
    name: str
    source: str
    folder: str
    before: str | None
    after: str | None
    made_at: str
    signature: str


SIGNED: Final = "kind uid name folder before after made_at".split()
"""What is signed of a change; for which source and database, the signature knows itself."""


REMEMBERED: Final = 101
"""Changes of a host that can be asked for: 100, and the one that takes the last of them back."""


def facts_of(change: MadeChange) -> dict[str, Any]:
    """Return what is signed of a change."""
    return {key: getattr(change, key) for key in SIGNED}


def last_changes(reader: Reader, host: str) -> list[MadeChange]:
    """Return what is written down of the changes on a host, the latest first."""
    columns = ", ".join(MadeChange._fields)
    sql = f"SELECT {columns} FROM changes WHERE host = ? ORDER BY id DESC LIMIT ?"
    return list(map(MadeChange._make, reader.rows(sql, (host, REMEMBERED))))


def is_elsewhere(reader: Reader, change: MadeChange) -> bool:
    """Tell whether a skill is live, and not where a change left it."""
    sql = (
        "SELECT 1 FROM skills s JOIN sources src ON src.id = s.source_id "
        "WHERE s.uid = ? AND s.live = 1 AND NOT (src.name = ? AND s.folder = ?) LIMIT 1"
    )
    return bool(reader.rows(sql, (change.uid, change.source, change.folder)))


def content_before(reader: Reader, uid: str, tree_hash: str) -> str | None:
    """Return the tree hash that the last change of a skill, to this one, took the place of."""
    rows = reader.rows(
        "SELECT before, after FROM changes WHERE uid = ? ORDER BY id DESC LIMIT 1", (uid,)
    )
    return rows[0][0] if rows and rows[0][1] == tree_hash else None
