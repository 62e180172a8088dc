"""Record the names and version numbers under which a git repository publishes skills.

The statements are plain SQL, because they create rows from other rows.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from registry.db.write.statements import execute

# A new skill gets the next free slot among the skills of its source with the same name. If a skill
# is removed, its slot becomes free. The next skill in the slot continues its version numbers.
_RECORD: Final = """
INSERT INTO entries (uid, name, source, owner, slot, base, number)
SELECT n.uid, n.name, n.source, n.owner, n.slot, n.base, n.base + n.turn FROM (
  SELECT m.*, coalesce((SELECT max(e.number) FROM entries e WHERE e.name = m.name
    AND e.source = m.source AND e.slot = m.slot
    AND coalesce(e.owner, '') = coalesce(m.owner, '')), 0) AS base
  FROM (
    SELECT s.uid, s.name, src.name AS source, src.owner, coalesce(r.turn, r.number) AS turn,
      row_number() OVER (PARTITION BY s.source_id, s.name ORDER BY s.position)
      + coalesce((SELECT max(e.slot) FROM entries e JOIN skills l ON l.uid = e.uid
        WHERE e.name = s.name AND l.name = s.name AND l.live = 1
        AND l.source_id = s.source_id AND l.uid <> s.uid), 0) AS slot
    FROM skills s JOIN sources src ON src.id = s.source_id
    JOIN revisions r ON r.uid = s.uid AND r.tree_hash = s.tree_hash
    WHERE s.id {in_array}
  ) m
) n WHERE 1 = 1 ORDER BY n.source, n.name, n.slot
ON CONFLICT (uid, name) DO UPDATE SET number = entries.base + excluded.number - excluded.base
"""


def record_entries(connection: Connection, versions: Sequence[int]) -> None:
    """Record the names and numbers of versions that have just become live.

    The revisions of these versions must be recorded already.
    """
    execute(connection, _RECORD, list(versions))
