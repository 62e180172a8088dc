"""The source that something new is written to."""

import os
from collections.abc import Sequence

from registry.core import Core
from registry.db.read.skills import places_of_name
from registry.db.read.sources import list_sources, sources_and
from registry.errors import SkillExists, SourceUnclear
from registry.model import Source
from registry.sync.owned import is_ours, not_adopted
from registry.sync.sources import found_in


def target_source(core: Core, name: str | None, *, to_read: bool = False) -> Source:
    """Return the source to write to: the one named, else the only one, else the setting's.

    ``to_read``: a source of another machine will do where there is none here. Raises
    `SourceNotFound`, `SourceUnclear`, `SourceNotAdopted`.
    """
    return _target(core, list_sources(core.reader, counted=False), name, to_read=to_read)


def target_of_new(core: Core, source: str | None, name: str) -> Source:
    """Return the source to write a new skill to, as `target_source`.

    Raises `SkillExists` where it has one of this ``name``.
    """
    every, found = sources_and(core.reader, places_of_name(name))
    target = _target(core, every, source)
    if (folder := dict(found).get(target.id)) is not None:
        raise SkillExists(name=name, path=os.path.join(target.path, folder))
    return target


def _target(
    core: Core, every: Sequence[Source], name: str | None, *, to_read: bool = False
) -> Source:
    known = [one for one in every if is_ours(core, one)]
    known = known or (list(every) if to_read else [])
    foreign = [] if to_read else [one.name for one in known if one.remote is not None]
    if not to_read:
        known = [one for one in known if one.remote is None]
    claimed = sorted((one for one in every if one.host == core.host), key=lambda one: not one.own)
    if name is None and not known and foreign and core.settings.default_source is None:
        raise SourceUnclear(known=[], foreign=foreign)
    if name is None and not known and not foreign and claimed:
        raise not_adopted(core, claimed[0].name, claimed[0].path)
    if name is None and len(known) == 1:
        return known[0]
    name = name or core.settings.default_source
    if name is None:
        own = [source.name for source in known]
        elsewhere = bool(every) and not own
        raise SourceUnclear(known=own, elsewhere=elsewhere, to_read=to_read)
    return found_in(core, every, name)
