"""Links to a skill: the other places at which programs find it, though it is counted once."""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from registry.core import Core
from registry.db.read.findings import links_known
from registry.db.read.skills import StoredSkill
from registry.disk.links import known, real_path
from registry.disk.paths import is_below, is_safe_relative, join, storable
from registry.model import DOCUMENT_NAMES, Diagnostic
from registry.sync.sources import is_here

MAX_LINKS: Final = 50
"""Links that are looked at for one skill."""


class LinkTo(NamedTuple):
    """A place where a skill is found, too, and the link that leads there: it, or one around it."""

    path: str
    link: str

    @property
    def notice(self) -> Diagnostic:
        """What is said of the skill that it leads to."""
        return Diagnostic("link-known", "info", f"also in {self.path}, by a link")


def links_to(core: Core, stored: StoredSkill) -> list[LinkTo]:
    """Return the links in this machine's sources by which a skill's folder is found, by path.

    They are those that the last syncs saw, where the disk still has them.
    """
    if not is_here(core, stored.host, stored.root):
        return []
    document = join(stored.path, stored.document or DOCUMENT_NAMES[0])
    places = [document, stored.path]
    # A row may say anything of the root: it ends at the top, too.
    while (above := os.path.dirname(places[-1])) != places[-1] and is_below(above, stored.root):
        places.append(above)
    messages = {known(storable(place)).message: place for place in places}
    return sorted(
        link
        for root, folder, message in links_known(core.reader, core.host, list(messages), MAX_LINKS)
        if is_here(core, core.host, root) and is_safe_relative(folder)
        for link in _checked(stored.path, join(root, folder), messages[message])
    )


def _checked(skill: str, path: str, target: str) -> Iterator[LinkTo]:
    """Yield the link at ``path`` to ``target``, which is the skill's or around it, if it is so."""
    if is_below(target, skill) and target != skill:  # its document, which another folder links to
        for name in DOCUMENT_NAMES:
            link = join(path, name)
            if os.path.islink(link) and real_path(link) == target:
                yield LinkTo(path, link)
    elif os.path.islink(path) and real_path(path) == target:
        below = os.path.relpath(skill, target)
        yield LinkTo(join(path, below), path)
