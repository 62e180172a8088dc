"""Messages about sources: new ones that overlap with others, and those with newer tags."""

import os
import shlex
from collections.abc import Collection, Container, Iterable, Sequence

from registry.cli import escape, formatting
from registry.cli.progress import waiting
from registry.cli.session import Session
from registry.model import Source


def report_nesting(session: Session, targets: Iterable[str]) -> None:
    """Print on stderr the skills of other sources that are inside the new sources."""
    from registry.sync.sources import nesting

    registry = session.registry
    counts = {one.name: one.skills for one in registry.sources()} if targets else {}
    for target in targets:
        for found in nesting(registry.core, target):
            folder, other = escape.line(target), escape.line(found.source.name)
            held = formatting.count(found.skills, "skill")
            if not found.inside:
                note = f"{folder} contains the source {other}, which keeps its {held}."
            elif found.skills:
                now = counts.get(found.source.name, 0)
                note = (
                    f"{folder} is inside the source {other}. At the next sync of {other}, the new "
                    f"source takes over {held}, and {other} keeps {now - found.skills:,}."
                )
                if now == found.skills:
                    remove = f"skill-registry source remove {shlex.quote(other)}"
                    note += f" To remove {other}, run: {remove}"
            else:
                note = f"{folder} is inside the source {other}, which has no skills there."
            session.console.note(note)


def report_project(session: Session, targets: Collection[str], before: Collection[str]) -> None:
    """Print on stderr the new sources (not in ``before``) that look like sources of a project."""
    from registry.sync.sources import project_of, resolved

    known = {one.path: one.name for one in session.registry.own_sources()} if targets else {}
    for target in targets:
        path, shown = resolved(target), escape.line(target)
        folder = project_of("project", path) or ""
        if path in before or path not in known or not os.path.lexists(os.path.join(folder, ".git")):
            continue
        for below in _agent_folders(path, known):
            place = escape.line(os.path.normpath(os.path.join(target, below)))
            session.console.note(
                f"{shown} is a git checkout, and its skills are listed in all projects. To list "
                f"those in {place} only in this project, run: skill-registry sync "
                f"{shlex.quote(place)} --scope project"
            )
        if folder != resolved("~") and os.path.basename(os.path.dirname(path)).startswith("."):
            session.console.note(
                f"{shown} is in the git checkout {escape.line(folder)}, and its skills are listed "
                "in all projects. To list them only there, run: skill-registry source update "
                f"{shlex.quote(escape.line(known[path]))} --scope project"
            )


def report_newer_tags(session: Session, sources: Sequence[Source]) -> None:
    """Ask which sources are pinned to a tag although there are tags of newer versions; print them.

    The message names the command that moves the source to the newest tag.
    """
    from registry.remotes.sources import newer_tags
    from registry.sync.report import newer_notice

    with waiting(session.console, "asking"):
        found = newer_tags(sources)
    for source, tags in zip(sources, found, strict=True):
        if tags and source.remote is not None and source.remote.ref is not None:
            told = f"{source.name} is {newer_notice(source.name, source.remote.ref, tags)}"
            session.console.note(escape.line(told))


def _agent_folders(path: str, known: Container[str]) -> list[str]:
    """Return the agents' skill folders in a checkout that aren't sources, without duplicates."""
    from registry.disk.agents import project_folders

    if not os.path.lexists(os.path.join(path, ".git")):
        return []
    found = {os.path.realpath(os.path.join(path, one)): one for one in reversed(project_folders())}
    return sorted(one for real, one in found.items() if os.path.isdir(real) and real not in known)
