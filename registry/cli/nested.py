"""Say of a new source what its place means: inside another one, around it, in a checkout."""

import os
from collections.abc import Iterable

from registry.cli import escape, words
from registry.cli.session import Session
from registry.errors import SourceNotFound


def tell_nesting(session: Session, targets: Iterable[str]) -> None:
    """Write to stderr which skills another source has in folders that become sources now."""
    from registry.sync.sources import nesting

    registry = session.registry
    counts = {one.name: one.skills for one in registry.sources()} if targets else {}
    for target in targets:
        for found in nesting(registry.core, target):
            folder, other = escape.line(target), escape.line(found.source.name)
            held = words.count(found.skills, "skill")
            if not found.inside:
                note = f"{folder} holds the source {other}, which keeps its {held}."
            elif found.skills:
                now = counts.get(found.source.name, 0)
                note = (
                    f"{folder} lies inside the source {other}: with the next sync of {other}, "
                    f"{held} of it belong to the new source alone ({other} has {now:,} now, then "
                    f"{now - found.skills:,})."
                )
            else:
                note = f"{folder} lies inside the source {other}, which has no skills there."
            session.console.note(note)


def tell_project(session: Session, targets: Iterable[str]) -> None:
    """Write to stderr which folders, that become sources without a scope, look like a project's."""
    from registry.sync.places import project_of, resolved
    from registry.sync.sources import find

    for target in targets:
        path = resolved(target)
        folder = project_of("project", path) or ""
        if not os.path.isdir(path) or not os.path.lexists(os.path.join(folder, ".git")):
            continue
        try:
            find(session.registry.core, target)
        except SourceNotFound:
            if folder != resolved("~") and os.path.basename(os.path.dirname(path)).startswith("."):
                session.console.note(
                    f"{escape.line(target)} lies in the checkout {escape.line(folder)}, and its "
                    "skills are listed everywhere; with --scope project only there."
                )
