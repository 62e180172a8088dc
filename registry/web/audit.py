"""Record downloads in the audit log, and show the log to visitors with an admin's token."""

import json
import logging
import time
from typing import Final

from starlette.responses import Response

from registry.db.read.access import audit_records
from registry.errors import DatabaseProblem
from registry.model import record
from registry.web.answers import Visit
from registry.web.query_params import number_of
from registry.web.rendering import refused

log = logging.getLogger(__name__)

DOWNLOADED: Final = "skill downloaded"

AGAIN_SECONDS: Final = 600.0
"""Time during which a repeated download isn't recorded again, in seconds.

A download is a repetition if it has the same visitor, the same skill and the same files.
"""

WAIT_SECONDS: Final = 2.0
"""Maximum time to wait for the database, in seconds; after this, the download is not recorded."""

MAX_RECORDS: Final = 10_000
USUAL: Final = 1000


def record_download(visit: Visit, place: str, tree_hash: str | None) -> None:
    """Record in the audit log that a visitor with a token, or from a proxy, downloaded a skill.

    ``place`` is the skill as source/folder. Downloads by users of this machine are not recorded.
    """
    visitor = visit.visitor
    if visitor.is_local:
        return
    by = f"token {visitor.name} ({visitor.token})" if visitor.token else visitor.name
    key, now = ("downloaded", by, place, tree_hash), time.monotonic()
    known = visit.state.facts.get(key)
    if known is not None and now - known < AGAIN_SECONDS:
        return
    from registry.db.write.access import record_event

    try:
        with visit.state.registry.core.writer.transaction(WAIT_SECONDS, quiet=True) as connection:
            record_event(connection, DOWNLOADED, place, tree_hash=tree_hash, by=by)
    except DatabaseProblem as error:
        log.warning("Can't record that %s downloaded %s: %s", by, place, error)
        return
    visit.state.facts.put(key, now)


def audit(visit: Visit) -> Response:
    """Answer ``/audit``: the last records of the audit log as JSON lines, the latest first."""
    if not visit.visitor.is_admin:
        needed = 401 if visit.visitor.token is None else 403
        headers = {"www-authenticate": "Bearer"} if needed == 401 else {}  # noqa: PLR2004
        headers["cache-control"] = "no-store"
        text = "This needs the token of an admin"
        return refused(visit.request.headers, needed, text, headers, "admin_needed")
    limit = min(number_of(visit.request.query_params, "limit") or USUAL, MAX_RECORDS)
    found = audit_records(visit.state.registry.core.reader, limit)
    lines = (f"{json.dumps(record(one))}\n" for one in found)
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response("".join(lines), headers=headers, media_type="application/x-ndjson")
