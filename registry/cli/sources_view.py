"""Sources as they are listed."""

import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from registry.cli import escape, formatting
from registry.cli.listing import Column
from registry.model import Remote, Source

if TYPE_CHECKING:
    from registry.sync.places import Discovered


def place_of(source: Source) -> str:
    """Return where a source lies, escaped: of a remote one, its address."""
    remote = source.remote
    return escape.line(source.path if remote is None else _address(remote))


def _address(remote: Remote) -> str:
    return formatting.address(remote.url, remote.ref, remote.part, remote.only)


def _commit(source: Source) -> str | None:
    remote = source.remote
    return formatting.commit(remote.version) if remote and remote.version else None


def _behind(source: Source, here: Collection[int]) -> str | None:
    if source.remote is None or source.id not in here:
        return None
    return {True: "behind", False: "newest", None: "away"}[source.remote.behind]


def columns_of(sources: Sequence[Source]) -> Sequence[Column[Source]]:
    """Return the columns of a list: owners, teams and precedence only if sources differ in them."""
    owner = Column[Source]("OWNER", lambda one: one.owner, only="table", drop=3)
    team = Column[Source]("TEAM", lambda one: one.team, only="table", drop=3)
    first = Column[Source](
        "PRECEDENCE", lambda one: str(one.precedence or ""), only="table", right=True, drop=3
    )
    columns = {"owner": owner, "team": team, "precedence": first}
    added = [
        column
        for fact, column in columns.items()
        if len({getattr(one, fact) for one in sources}) > 1
    ]
    return [*SOURCES[:OWNER_AT], *added, *SOURCES[OWNER_AT:]]


def asked_columns(sources: Sequence[Source], here: Collection[int]) -> Sequence[Column[Source]]:
    """Return the columns where the remotes of these sources were asked."""
    columns = columns_of(sources)
    return [
        *columns[:REMOTE_AT],
        Column("REMOTE", lambda one: _behind(one, here), only="table"),
        *columns[REMOTE_AT:],
        Column("ADDRESS", lambda one: _address(one.remote) if one.remote else "-", only="plain"),
        Column("REMOTE", lambda one: _behind(one, here) or "-", only="plain"),
    ]


def _result(source: Source) -> str | None:
    if not source.enabled:
        return "off"
    return None if source.last_result == "ok" else source.last_result


SOURCES: Final[Sequence[Column[Source]]] = (
    Column("SOURCE", lambda source: source.name, style="bold"),
    Column("SCOPE", lambda source: source.scope, drop=1),
    Column("PRIORITY", lambda source: str(source.priority or ""), only="table", right=True, drop=5),
    Column("SKILLS", lambda source: source.skills, right=True, drop=2),
    Column("HOST", lambda source: source.host, only="table", drop=3),
    Column(
        "SYNCED", lambda source: source.last_sync_at or "never", only="table", time=True, drop=4
    ),
    Column("RESULT", _result, only="table", drop=4),
    Column("COMMIT", _commit, only="table", drop=4),
    Column("FOLDER", place_of, only="table", flexible=True, cut="start"),
    Column("FOLDER", lambda source: source.path, only="plain"),
)

OWNER_AT: Final = 5
"""After which columns it is told whose they are."""

REMOTE_AT: Final = 2
"""After which columns it is told what the remotes said."""

DISCOVERED: Final[Sequence[Column["Discovered"]]] = (
    Column("FOLDER", lambda one: one.path, max_width=1000, cut="start"),
    Column("SCOPE", lambda one: one.scope, drop=2),
    Column("SOURCE", lambda one: one.source or "(new)", only="table", drop=1),
    Column("SOURCE", lambda one: one.source or "-", only="plain"),
)


def of_others(sources: Sequence[Source]) -> str:
    """Say that sources under this host's name belong to other roles, and what an admin does."""
    names = [escape.line(one.name) for one in sources]
    owners = escape.line(formatting.listed(sorted({one.owner or "" for one in sources})))
    return (
        f"Not synced: {formatting.listed(names)}, of the role {owners}. "
        f"An admin takes over with: skill-registry source adopt {shlex.join(names)} --as-admin"
    )
