"""The deprecated and yanked versions of the skills that a view shows, for other registries."""

import os
from collections.abc import Callable

from registry.catalog.browse import Browse
from registry.catalog.visibility.rules import Host
from registry.db.read import repository as stored
from registry.db.read.labels import InactiveVersion, inactive_versions
from registry.db.read.listing import Filters
from registry.db.read.repository import Claim
from registry.model import RemoteState
from registry.publish.git.names import was_shown
from registry.remotes.states import MAX_STATES
from registry.text import tag_key


def states_of(
    view: Browse, kind: str, name: str, folder_of: Callable[[InactiveVersion], str]
) -> list[RemoteState]:
    """Return the states of the versions that a repository or an index of a view tells.

    ``kind`` and ``name`` are as in `repository.choose`; for kind skill, ``name`` is the uid.
    ``folder_of`` returns the folder of a skill in the repository or index.
    """
    found = [
        RemoteState(
            folder_of(one),
            one.version.label,
            one.version.tree_hash,
            one.version.state,
            one.version.reason,
            one.version.replacement,
        )
        for one in _seen(view)
        if _is_chosen(one, kind, name)
    ]
    return sorted(found, key=lambda one: (one.folder, one.label))[:MAX_STATES]


def yanked_skill(view: Browse, ref: str) -> InactiveVersion | None:
    """Return the skill with a ref that the view hides only because its files are yanked."""
    found = [
        one
        for one in _seen(view)
        if one.held and one.version.current
        if ref in {one.name, f"{one.source}/{one.name}", f"{one.source}/{one.folder}"}
    ]
    return found[0] if len({one.uid for one in found}) == 1 else None


def _is_chosen(one: InactiveVersion, kind: str, name: str) -> bool:
    """Tell whether a repository of this kind and name has a skill, if it isn't yanked."""
    if kind == "source":
        return one.source == name
    if kind == "tag":
        return tag_key(name) in map(tag_key, one.tags.split("\n"))
    return kind != "skill" or one.uid == name


def _seen(view: Browse) -> list[InactiveVersion]:
    """Return the deprecated and yanked versions of the skills that the view shows.

    A skill also counts if the view hides it only because its current files are a yanked version.
    """
    core, limits = view.core, view.limits
    found = inactive_versions(core.reader)
    if limits.source is not None:
        found = [one for one in found if one.source == limits.source]
    if not found or limits.personality is None:
        return found
    shown = stored.uids(core.reader, view.condition(view.filters(Filters())))
    personality, host = limits.personality, Host(os.environ)

    def would_show(one: InactiveVersion) -> bool:
        claim = Claim(one.uid, one.name, one.source, "", one.scope, 1, 0, live=True)
        return bool(one.held) and was_shown(core, claim, personality, host)

    return [one for one in found if one.uid in shown or would_show(one)]
