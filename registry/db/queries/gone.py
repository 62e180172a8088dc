"""Skills that are no longer live, as they are asked for: by the name or place that they had."""

from collections.abc import Collection
from typing import NamedTuple

from registry.db.interface import Reader
from registry.text import is_utc_text, utc_now


class Gone(NamedTuple):
    """A skill that is no longer live; a row may be anybody's, so it is a hint.

    ``source`` and ``folder`` are where it was, empty where that is not known; ``since`` is when
    that was noticed; ``tree_hash`` is of its last content; ``trash`` is its number there, where the
    registry deleted it.
    """

    uid: str
    name: str
    source: str
    folder: str
    created_at: str
    since: str
    tree_hash: str | None
    trash: str | None

    @property
    def place(self) -> str:
        """Where it was, source/folder; empty where that is not known."""
        return f"{self.source}/{self.folder}" if self.source else ""


def latest_gone(
    reader: Reader,
    handle: str,
    sources: Collection[str] | None = None,
    *,
    without: Collection[str] = (),
    trash: Collection[str] = (),
) -> Gone | None:
    """Return the skill of this name, source/name, source/folder or uid that went last.

    ``sources``: only what was in one of these; None: wherever it was. None is meant that is
    ``without`` (uids), or lies in the ``trash`` (numbers).
    """
    source, _, rest = handle.partition("/")
    rows = reader.rows(
        "SELECT g.uid, g.name, g.source, g.folder, g.created_at, g.since, g.tree_hash, g.trash "
        "FROM gone g WHERE (g.name = ? OR g.uid = ? "
        "OR (g.source = ? AND (g.folder = ? OR g.name = ?))) "
        "AND NOT EXISTS (SELECT 1 FROM skills s WHERE s.uid = g.uid AND s.live = 1) "
        "ORDER BY g.since DESC, g.uid",
        (handle, handle, source, rest, rest),
    )
    now = utc_now()
    for row in rows:
        one = Gone._make(row)
        if one.uid in without or one.trash in trash:
            continue
        if sources is None or one.source in sources:
            # Words of a stranger are told nobody in the place of a time.
            created, since = (
                time if is_utc_text(time) else now for time in (one.created_at, one.since)
            )
            return one._replace(created_at=created, since=since)
    return None
