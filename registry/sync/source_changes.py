"""Change, remove and adopt a source that is registered."""

from typing import TypedDict, Unpack

from registry.core import Core
from registry.db.adopted import forget, remember
from registry.db.read.sources import list_sources
from registry.errors import RoleNotFound, SourceElsewhere, SourceNotYours, UsageProblem
from registry.model import Scope, Source
from registry.sync.owned import check_admin, check_ours, check_owner
from registry.sync.places import project_of
from registry.sync.sources import check_name, find, found_in


class Change(TypedDict, total=False):
    """What of a source is to be different.

    ``team``: who sees it, empty for everybody; ``owner``: whose it is, which an admin alone says;
    ``as_admin``: though it is another role's, or elsewhere. On a server ``priority`` then also
    counts among the sources of all owners; else it counts among the owner's own.
    """

    new_name: str | None
    scope: Scope | None
    priority: int | None
    team: str | None
    owner: str | None
    as_admin: bool


def update(core: Core, name: str, **change: Unpack[Change]) -> Source:
    """Change what a source is called, how strong it is, or whose; see `Change`."""
    from registry.db.write.sources import change_source, rename_source, set_owner, set_team

    known = list_sources(core.reader, counted=False)
    source = found_in(core, known, name)
    check_ours(core, source, as_admin=change.get("as_admin", False))
    new_name, team, owner = (change.get("new_name"), change.get("team"), change.get("owner"))
    if not core.host and (team is not None or owner is not None):
        raise UsageProblem(message="owners and teams are of a server; a file has neither")
    if owner is not None:
        from registry.db.postgres.rights import is_role

        check_admin(core)
        if not is_role(core.reader, owner):
            raise RoleNotFound(name=owner)
    if new_name is not None and new_name != source.name:
        check_name(new_name, [one for one in known if one.id != source.id])
    scope, priority = change.get("scope") or source.scope, change.get("priority")
    priority = source.priority if priority is None else priority
    # An admin's decision counts between owners. A file without owners has one order only.
    decided = change.get("as_admin", False) and source.owner is not None
    precedence = change.get("priority") if decided else None
    with core.writer.transaction() as connection:
        if new_name is not None:
            rename_source(connection, source.id, source.name, new_name)
        if team is not None:
            set_team(connection, source.id, team or None)
        if owner is not None:
            set_owner(connection, source.id, owner)
        project = project_of(scope, source.path)
        change_source(connection, source.id, scope, priority, project, precedence)
    return next(one for one in list_sources(core.reader) if one.id == source.id)


def remove(
    core: Core, name: str, *, as_admin: bool = False, with_tombstones: bool = True
) -> Source:
    """Forget a source; see `remotes.sources.remove`."""
    from registry.db.write.sources import remove_source

    wanted = find(core, name)
    if as_admin:
        check_admin(core)
    elif core.host and (wanted.host != core.host or not wanted.own):
        raise SourceNotYours(name=wanted.name, owner=wanted.owner, host=wanted.host)
    source = next(one for one in list_sources(core.reader) if one.id == wanted.id)
    with core.writer.transaction() as connection:
        remove_source(connection, source.id, with_tombstones=with_tombstones)
    if source.host == core.host:
        forget(core.backend, source.path)
    return source


def adopt(core: Core, name: str, *, as_admin: bool = False) -> Source:
    """Take a source under this host's name as one's own; see `SkillRegistry.adopt_source`."""
    source = find(core, name)
    if source.host != core.host:
        raise SourceElsewhere(name=source.name, host=source.host)
    if core.host:
        if as_admin:
            from registry.db.write.sources import set_owner

            check_admin(core)
            with core.writer.transaction() as connection:
                set_owner(connection, source.id, None)
            source = find(core, name)
        check_owner(core, source)
        remember(core.backend, source.path)
    return source
