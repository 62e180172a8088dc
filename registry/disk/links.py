"""Resolve symbolic links, and find out where they lead.

The result comes from open folders and not from names.
"""

import errno
import os
from collections.abc import Iterable
from enum import Enum
from stat import S_ISDIR
from typing import Final, NamedTuple

from registry.disk.beneath import GONE, Folder
from registry.disk.paths import is_below
from registry.model import Diagnostic, Severity


class Leads(Enum):
    """The places to which a link can lead."""

    INSIDE = "inside"  # to a file or folder in the skill's own folder
    KNOWN = "known"  # to a file or folder below a registered source
    OUTSIDE = "outside"  # to a file or folder outside all sources
    NOWHERE = "nowhere"
    ROUND = "round"  # to itself, through other links
    CLOSED = "closed"  # to a file or folder that this user may not read


class Link(NamedTuple):
    """A resolved link.

    ``target`` is its real path; "" if this is unknown. ``facts`` is the stat result of the target;
    None if the target is outside all sources.
    """

    leads: Leads
    target: str
    facts: os.stat_result | None

    @property
    def is_folder(self) -> bool:
        """Whether the link leads to a folder.

        For targets outside the sources, this checks only the path.
        """
        if self.facts is None:
            return self.leads is Leads.OUTSIDE and os.path.isdir(self.target)
        return S_ISDIR(self.facts.st_mode)


def follow(path: str, home: str | None, roots: Iterable[str]) -> Link:
    """Resolve the link at ``path`` in the skill ``home``.

    ``roots`` are the real paths of the sources.
    """
    try:
        target = os.path.realpath(path, strict=True)
    except OSError as error:
        return _unresolved(path, error, roots)
    holding = _holding(target, roots)
    if holding is None:
        return Link(Leads.OUTSIDE, target, None)
    try:
        with Folder.passing(holding) as root:
            facts = root.lstat(os.path.relpath(target, holding))
    except OSError as error:
        # the target changed after its name was resolved
        return Link(Leads.NOWHERE if error.errno in GONE else Leads.CLOSED, target, None)
    inside = home is not None and is_below(target, home)
    return Link(Leads.INSIDE if inside else Leads.KNOWN, target, facts)


def _unresolved(path: str, error: OSError, roots: Iterable[str]) -> Link:
    if error.errno in GONE:
        return Link(Leads.NOWHERE, "", None)
    if error.errno == errno.ELOOP:
        return Link(Leads.ROUND, "", None)
    target = real_path(path)  # the path is resolved as far as possible
    return Link(Leads.CLOSED, target if _holding(target, roots) else "", None)


def real_path(path: str) -> str:
    """Return the path with all links replaced by their targets, as far as possible.

    The result is only a hint, because links can change at any time.
    """
    try:
        return os.path.realpath(path)
    except OSError:  # another process is replacing a link
        return os.path.abspath(path)


def is_dangling(path: str) -> bool:
    """Tell whether ``path`` is a link to a missing file or folder, or to itself."""
    return os.path.islink(path) and not os.path.exists(path)


def _holding(target: str, roots: Iterable[str]) -> str | None:
    return next((root for root in roots if is_below(target, root)), None)


LINK_KNOWN: Final = "link-known"


def known(target: str, unread: str | None = None, *, in_project: bool = False) -> Diagnostic:
    """Return the finding about a link that leads to another skill.

    ``target`` is the path to which the link leads, in its stored form. ``unread`` is a folder that
    must be synced before that skill is known, or None. ``in_project`` is True if ``unread`` belongs
    to a project.
    """
    message = f"a link to {target}; its files count as part of that skill"
    scope = " --scope project" if in_project else ""
    fix = None if unread is None else f"run: skill-registry sync {unread}{scope}"
    return Diagnostic(LINK_KNOWN, "info", message, fix=fix)


def finding(link: Link, path: str | None, *, fatal: bool) -> Diagnostic:
    """Return the finding about an unusable link; if ``fatal``, the skill is also unusable."""
    severity: Severity = (
        "error" if fatal or link.leads in {Leads.KNOWN, Leads.OUTSIDE} else "warning"
    )
    code, message, fix = {
        Leads.NOWHERE: (
            "link-broken",
            "the link leads nowhere",
            "replace it by a link to a file, or remove it",
        ),
        Leads.ROUND: ("link-loop", "the link leads in a circle", "remove the link"),
        Leads.CLOSED: ("link-broken", "the link's target can't be read", "grant access to it"),
        Leads.KNOWN: (
            "link-outside",
            "the link leaves the skill's folder",
            "put a copy of the file into the skill's folder",
        ),
        Leads.OUTSIDE: (
            "link-outside",
            f"the link leaves every source, to {link.target}",
            "replace it by a copy, or register the folder it leads to as a source",
        ),
        Leads.INSIDE: ("link-inside", "the link does not lead to a file", "link to a file"),
    }[link.leads]
    return Diagnostic(code, severity, message, fix=fix, path=path)
