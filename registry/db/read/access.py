"""Read tokens and the audit log.

Any user with write access can add or change these rows.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from registry.db.interface import Reader
from registry.model import Value


class StoredToken(NamedTuple):
    """A stored row of a token; don't trust it until you have checked its signature."""

    number: str
    hash: str
    name: str
    personality: str | None
    source: str | None
    write: int
    created_at: str
    expires_at: str | None
    used_at: str | None
    signature: str
    publish: int
    approve: int


SIGNED: Final = "hash name personality source write created_at expires_at".split()
"""The columns of a token that its signature covers."""

SIGNED_RIGHTS: Final = ("publish", "approve")
"""Columns that the signature covers only if they are set.

So the signatures of tokens from before these columns existed stay valid.
"""


def all_tokens(reader: Reader) -> list[StoredToken]:
    """Return the stored rows of all tokens, the oldest first."""
    return _select(reader, "ORDER BY created_at, number")


def by_hash(reader: Reader, hashed: str) -> StoredToken | None:
    """Return the stored row of the token with this hash; None if there is none."""
    return next(iter(_select(reader, "WHERE hash = ?", hashed)), None)


def _select(reader: Reader, rest: str, *values: object) -> list[StoredToken]:
    sql = f"SELECT {', '.join(StoredToken._fields)} FROM tokens {rest}"
    return list(map(StoredToken._make, reader.rows(sql, values)))


@dataclass(frozen=True, slots=True)
class AuditRecord(Value):
    """One row of the audit log; the server records ``role``, and the client sends all other values.

    ``detail`` holds the values before and after a change, or only one value.
    """

    at: str
    role: str | None
    host: str | None
    tool: str | None
    client: str | None
    what: str
    subject: str | None
    detail: Any


def audit_records(
    reader: Reader, limit: int, *, since: str = "", what: str = ""
) -> list[AuditRecord]:
    """Return the newest rows of the audit log, the newest first.

    ``since`` is the earliest time, and ``what`` is a part of the change, such as ``yanked``.
    On a server, an admin gets the rows of all roles, and every other role gets only its own rows.
    """
    word = re.sub("[!%_]", r"!\g<0>", what.lower())
    rows = reader.rows(
        "SELECT at, role, host, tool, client, what, subject, detail FROM audit "
        "WHERE at >= ? AND what LIKE ? ESCAPE '!' ORDER BY id DESC LIMIT ?",
        (since, f"%{word}%", limit),
    )
    return [AuditRecord(*(*facts, _read(detail))) for *facts, detail in rows]


def trusted_at(reader: Reader, place: str) -> str | None:
    """Return when the skill at ``source/folder`` was last trusted; None if no row records this."""
    rows = reader.rows(
        "SELECT at FROM audit WHERE what = 'skill trusted' AND subject = ? "
        "ORDER BY id DESC LIMIT 1",
        (place,),
    )
    return next((at for (at,) in rows), None)


def _read(detail: str | None) -> Any:
    try:
        return None if detail is None else json.loads(detail)
    except ValueError:  # another program wrote this row
        return detail
