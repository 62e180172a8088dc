"""The last changes by the registry, as far as they are read.

Whoever may write to the database may write here: what is not signed is a hint, never an order.
"""

from typing import Any, Final, NamedTuple

from registry.db.interface import Reader


class MadeChange(NamedTuple):
    """A change that the registry made to one skill.

    ``kind`` is create, update, delete or restore; ``before`` and ``after`` are tree hashes, None
    if there was no skill; ``number`` is the number of the operation. A pull is also a change, of
    no source: see `exchange.remembered`. ``command`` is shared by all changes of one run of the
    program, None for a change that belongs to no run. ``tool`` is not signed: a hint for people.
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
    command: str | None = None
    tool: str | None = None


SIGNED: Final = "kind uid name folder before after made_at".split()
"""The signed columns. The signature itself covers the source and the database."""


GROUP_DIGITS: Final = 12
"""Number of leading hex digits that the numbers of changes made together share."""

REMEMBERED: Final = 101
"""Number of commands that are kept for `undo` on a host: 100, and the `undo` of the oldest."""

MAX_CHANGES: Final = 20_000
"""Number of changes that `undo` reads at most."""


def facts_of(change: MadeChange) -> dict[str, Any]:
    """Return what is signed of a change. Changes made before there were commands have none."""
    facts = {key: getattr(change, key) for key in SIGNED}
    return facts if change.command is None else {**facts, "command": change.command}


def last_changes(reader: Reader, host: str) -> list[MadeChange]:
    """Return the recorded changes of a host, the latest first, at most `MAX_CHANGES`."""
    columns = ", ".join(MadeChange._fields)
    sql = f"SELECT {columns} FROM changes WHERE host = ? ORDER BY id DESC LIMIT ?"
    return list(map(MadeChange._make, reader.rows(sql, (host, MAX_CHANGES))))


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
