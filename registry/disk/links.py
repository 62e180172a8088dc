"""Symbolic links: where they lead, decided without trusting them."""

import errno
import os
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from registry.disk.paths import is_below
from registry.model import Diagnostic, Severity


class Leads(Enum):
    """Where a link leads."""

    INSIDE = "inside"  # stays in the skill's own folder
    KNOWN = "known"  # to a place below a registered source
    OUTSIDE = "outside"  # out of every source
    NOWHERE = "nowhere"
    ROUND = "round"  # in a circle
    CLOSED = "closed"  # to a place that may not be looked at


class Link(NamedTuple):
    """A link looked at: ``target`` is its real path ('' where there is none)."""

    leads: Leads
    target: str
    facts: os.stat_result | None


def follow(path: str, home: str | None, roots: Iterable[str]) -> Link:
    """Say where the link at ``path`` leads, for a skill in ``home`` and sources at ``roots``."""
    try:
        target = os.path.realpath(path, strict=True)
        facts = os.stat(target)
    except FileNotFoundError:
        return Link(Leads.NOWHERE, "", None)
    except OSError as error:
        round_about = error.errno == errno.ELOOP
        return Link(Leads.ROUND if round_about else Leads.CLOSED, "", None)
    if home is not None and is_below(target, home):
        return Link(Leads.INSIDE, target, facts)
    known = any(is_below(target, root) for root in roots)
    return Link(Leads.KNOWN if known else Leads.OUTSIDE, target, facts)


def finding(link: Link, path: str | None, *, fatal: bool) -> Diagnostic:
    """Describe a link that can't be used; ``fatal``: the skill can't be used without it."""
    severity: Severity = (
        "error" if fatal or link.leads in {Leads.KNOWN, Leads.OUTSIDE} else "warning"
    )
    code, message, fix = {
        Leads.NOWHERE: ("link-broken", "the link leads nowhere", "point it at a file or remove it"),
        Leads.ROUND: ("link-loop", "the link leads in a circle", "remove the link"),
        Leads.CLOSED: ("link-broken", "the link's target can't be looked at", "grant access to it"),
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
        Leads.INSIDE: ("link-inside", "the link leads to no file", "link to a file"),
    }[link.leads]
    return Diagnostic(code, severity, message, fix=fix, path=path)
