"""Who changed what of sources, rights, trust, tokens and the past."""

import json
from dataclasses import dataclass
from typing import Any

from registry.db.interface import Reader
from registry.model import Value


@dataclass(frozen=True, slots=True)
class Audited(Value):
    """One change; ``role`` is a server's word, the rest of who it was they said of themselves.

    ``detail``: of what was changed the value before and after, else what it was.
    """

    at: str
    role: str | None
    host: str | None
    tool: str | None
    client: str | None
    what: str
    subject: str | None
    detail: Any


def audited(reader: Reader, limit: int) -> list[Audited]:
    """Return the last changes, the latest first: all for an admin, else those of who asks."""
    rows = reader.rows(
        "SELECT at, role, host, tool, client, what, subject, detail FROM audit "
        "ORDER BY id DESC LIMIT ?",
        (limit,),
    )
    return [Audited(*(*facts, _read(detail))) for *facts, detail in rows]


def _read(detail: str | None) -> Any:
    try:
        return None if detail is None else json.loads(detail)
    except ValueError:  # somebody else wrote it
        return detail
