"""Forget what skills were long ago."""

from registry.core import Core
from registry.db.read.sources import is_admin
from registry.sync.sources import check_admin


def prune(
    core: Core, *, keep: int = 20, before: str | None = None, as_admin: bool = False
) -> tuple[int, int]:
    """Forget revisions beyond the newest ``keep`` of each skill, seen before a time.

    The current one stays. On a server only those of this role's sources on this host are forgotten,
    and contents, which all share, by an admin only; ``as_admin``: those of all. Returns how many
    revisions, and contents that only they had, went. Raises `AdminNeeded`.
    """
    from registry.db.write.history import prune

    if as_admin:
        check_admin(core)
    host = None if as_admin or not core.host else core.host
    contents_too = host is None or is_admin(core.reader)
    with core.writer.transaction() as connection:
        return prune(connection, keep=keep, before=before, host=host, contents_too=contents_too)
