"""Read proposals. Don't trust the rows: any user with write access can add or change them."""

from dataclasses import dataclass
from typing import ClassVar, Final

from registry.db.interface import Reader
from registry.model import Value

PENDING: Final = "pending"
APPROVED: Final = "approved"
APPLIED: Final = "applied"
REJECTED: Final = "rejected"


@dataclass(frozen=True, slots=True)
class Proposal(Value):
    """A proposed change of a skill, which waits for review or has been decided.

    ``base`` is the tree hash of the files that the proposal replaces; None if it creates the skill.
    ``tree_hash`` is the tree hash of the new files. For a deletion, both hashes are equal.
    ``token`` is the number of the author's token. ``state`` is pending, approved (decided, but not
    carried out yet), applied or rejected.
    """

    KEYS: ClassVar = tuple(
        "id kind skill source author tree_hash created_at base state decided_by decided_at "
        "reason".split()
    )

    id: str
    kind: str
    skill: str
    source: str
    author: str
    tree_hash: str
    created_at: str
    base: str | None
    state: str
    decided_by: str | None
    decided_at: str | None
    reason: str | None
    source_id: int
    folder: str
    uid: str | None
    token: str | None


_SQL: Final = """
SELECT p.id, p.kind, p.name, src.name, p.author, p.tree_hash, p.created_at, p.base, p.state,
    p.decided_by, p.decided_at, p.reason, p.source_id, p.folder, p.uid, p.token
FROM proposals p JOIN sources src ON src.id = p.source_id {rest}
"""

MAX_LISTED: Final = 1000
"""Maximum number of proposals in a list."""


def list_proposals(
    reader: Reader, *, state: str | None = PENDING, token: str | None = None
) -> list[Proposal]:
    """Return the proposals with a state, the oldest first; None means all states.

    If ``token`` is given, also return the proposals of this token in other states. If there are too
    many decided proposals, the newest are returned.
    """
    is_plain = state is not None and token is None
    rest = "WHERE p.state = ? OR p.token = ?" if state is not None else ""
    values = (state, token or "", MAX_LISTED) if state is not None else (MAX_LISTED,)
    order = "p.created_at, p.id" if is_plain else "p.created_at DESC, p.id DESC"
    rows = reader.rows(_SQL.format(rest=f"{rest} ORDER BY {order} LIMIT ?"), values)
    found = [Proposal(*row) for row in rows]
    return found if is_plain else found[::-1]


def has_approved(reader: Reader) -> bool:
    """Tell whether there is a proposal that is approved but not carried out yet."""
    return bool(reader.rows("SELECT 1 FROM proposals WHERE state = 'approved' LIMIT 1"))


def find_proposal(reader: Reader, number: str) -> Proposal | None:
    """Return the proposal with this id; None if there is none."""
    rows = reader.rows(_SQL.format(rest="WHERE p.id = ?"), (number,))
    return Proposal(*rows[0]) if rows else None


def archive_of(reader: Reader, number: str, limit: int) -> bytes | None:
    """Return the archive of a proposal; None if it has none or more than ``limit`` bytes."""
    sql = "SELECT archive FROM proposals WHERE id = ? AND length(archive) <= ?"
    rows = reader.rows(sql, (number, limit))
    return None if not rows or rows[0][0] is None else bytes(rows[0][0])


def same_proposal(
    reader: Reader, source_id: int, name: str, kind: str, tree_hash: str, author: str
) -> str | None:
    """Return the id of the author's pending proposal of the same change; None if there is none."""
    rows = reader.rows(
        "SELECT id FROM proposals WHERE source_id = ? AND name = ? AND kind = ? AND tree_hash = ? "
        "AND author = ? AND state = 'pending' ORDER BY id LIMIT 1",
        (source_id, name, kind, tree_hash, author),
    )
    return next((number for (number,) in rows), None)


def count_pending(reader: Reader, source_id: int, author: str) -> int:
    """Count the proposals of an author that wait for review in a source."""
    sql = "SELECT count(*) FROM proposals WHERE source_id = ? AND author = ? AND state = 'pending'"
    return int(reader.rows(sql, (source_id, author))[0][0])


def may_approve(reader: Reader) -> bool:
    """Tell whether the current role of the server's database may decide on proposals."""
    rows = reader.rows("SELECT registry_may_approve() OR registry_is_admin()")
    return bool(rows and rows[0][0])


def current_role(reader: Reader) -> str:
    """Return the name of the current role of the server's database."""
    return str(reader.rows("SELECT CAST(session_user AS text)")[0][0])


def unreviewed(reader: Reader, source_id: int) -> set[str]:
    """Return the folders of skills that were changed by hand although their source is under review.

    Their current files are newer than the start of the review, and no approved proposal contains
    them.
    """
    rows = reader.rows(
        "SELECT s.folder FROM skills s JOIN sources src ON src.id = s.source_id "
        "JOIN revisions r ON r.uid = s.uid AND r.tree_hash = s.tree_hash "
        "WHERE s.source_id = ? AND s.live = 1 AND src.review > 0 AND r.id >= src.review "
        "AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.source_id = s.source_id "
        "AND p.state IN ('applied', 'approved') AND p.tree_hash = s.tree_hash AND p.name = s.name)",
        (source_id,),
    )
    return {folder for (folder,) in rows}
