"""One version in the place of another: what a change by the registry itself writes.

A sync asks as it goes on; here all that has to be known is asked at once, and what is written needs
no answer, so that on a server it travels in one go.
"""

from typing import Final, NamedTuple

from sqlalchemy import Connection

from registry.db.versions import NewVersion
from registry.db.writes.gone import record_gone
from registry.db.writes.revisions import store_texts
from registry.db.writes.statements import dialect_of, execute
from registry.db.writes.versions import stage, switch

_STANDING: Final = """
SELECT {next_ids},
       (SELECT count(*) FROM skills b WHERE b.uid = ? AND b.live = 1),
       s.id, s.uid, s.name, s.folder, s.created_at, s.content_hash, s.tree_hash,
       CASE WHEN NOT EXISTS (SELECT 1 FROM contents c WHERE c.hash = s.content_hash)
            THEN d.text END
FROM (SELECT 1 AS one) o
LEFT JOIN skills s ON s.source_id = ? AND s.folder = ? AND s.live = 1
LEFT JOIN documents d ON d.skill_id = s.id
"""


class LiveVersion(NamedTuple):
    """What a change needs to know of the live version in a folder.

    ``text``: of its document, where the bytes of that are not stored yet.
    """

    id: int
    uid: str
    name: str
    folder: str
    created_at: str
    content_hash: str | None
    tree_hash: str | None
    text: str | None


class Standing(NamedTuple):
    """How things stand where something is about to be written.

    ``free``: the lowest number of a version that is free; ``is_back``: the skill that was asked for
    is live, wherever it is; ``live``: what is live in the folder.
    """

    free: int
    is_back: bool
    live: LiveVersion | None


def standing_in(connection: Connection, source_id: int, folder: str, uid: str | None) -> Standing:
    """Return how things stand in a folder; ``uid``: of a skill that may be back."""
    sql = _STANDING.format(next_ids=dialect_of(connection).NEXT_IDS.format(count=1))
    row = tuple(execute(connection, sql, uid, source_id, folder).one())
    return Standing(row[0], row[1] > 0, None if row[2] is None else LiveVersion(*row[2:]))


def put_in_place(connection: Connection, standing: Standing, version: NewVersion | None) -> None:
    """Let a version (None: none) be live instead of what is."""
    live = standing.live
    if live is None and version is None:
        return
    incoming = [] if version is None else stage(connection, [version], first=standing.free)
    names = set() if version is None else {version.columns["name"], version.columns["folder"]}
    if live is not None:
        names |= {live.name, live.folder}
        if version is None:
            record_gone(connection, [live.id])
        if live.text is not None and live.content_hash is not None:
            store_texts(connection, [(live.content_hash, live.text)])
    switch(connection, incoming, [] if live is None else [live.id], names)
