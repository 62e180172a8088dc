"""Say that a new source lies inside another one, or around it, and what that means."""

from collections.abc import Iterable

from registry.cli import escape, words
from registry.cli.session import Session


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
