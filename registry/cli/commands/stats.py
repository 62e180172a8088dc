"""`skill-registry stats`, `tags`, `kinds`, `categories` and `copies`."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.group import session_command
from registry.cli.listing import Column, draw_facts, emit
from registry.cli.progress import waiting
from registry.cli.session import Console, Session, Style
from registry.disk.links import real_path
from registry.model import Skill, record

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.catalog.copies import Copies
    from registry.db.read.listing import Facet
    from registry.db.read.summary import Stats
    from registry.db.read.usage import UsageCount


@session_command(
    "skill-registry stats",
    "skill-registry stats --json | jq .by_status",
    "skill-registry stats --usage",
)
@click.option(
    "--usage",
    is_flag=True,
    help="Print instead which skills tools listed, found and read, and when last.",
)
@options.json_option
def stats(session: Session, *, usage: bool) -> None:
    """Print counts, sizes and the age of the last sync.

    With --usage, print how often tools listed, found and read each skill, the most read first. The
    counts are stored in the database; the setting "usage: false" switches them off.
    """
    if usage:
        counts = session.registry.usage_counts()
        nothing = "No tool has listed, found or read a skill yet."
        if emit(session, counts, USAGE, nothing=nothing) and counts:
            session.console.note(formatting.count(len(counts), "skill"), "dim")
        elif counts and session.style is None:
            columns = ", ".join(column.title.lower() for column in USAGE)
            session.console.note(f"The columns: {columns}.")
        return
    stats = session.registry.stats()
    session.answer(stats, draw_facts(session.console, _facts(session, stats)))


def _facts(session: Session, stats: "Stats") -> Iterator[tuple[str, str]]:
    yield "Skills", f"{stats.skills:,} in {formatting.count(stats.sources, 'source')}"
    yield "Listed", f"{stats.visible:,}"
    yield "Shadowed", f"{stats.shadowed:,}"
    if left := session.registry.left_out():
        yield "Left out", f"{left:,} of other projects"
    if held := stats.by_status.get("quarantined"):
        yield "Quarantined", f"{held:,} (to see which: skill-registry list --all --format table)"
    yield "Hidden from models", f"{stats.hidden:,}"
    yield "Status", _counts(stats.by_status)
    yield "Scopes", _counts(stats.by_scope)
    if stats.by_origin:
        listed = ", ".join(f"{number:,} {url}" for url, number in stats.by_origin.items())
        yield "Remote", listed
    yield "Different names", f"{stats.names:,}"
    yield "Tags", f"{stats.tags:,}"
    yield "Kinds", f"{stats.kinds:,}"
    yield "Categories", f"{stats.categories:,}"
    yield "Files", f"{stats.files:,}, {formatting.size(stats.bytes)}"
    oldest, newest = (
        formatting.moment(stamp, local=session.console.is_terminal)
        for stamp in (stats.oldest_sync, stats.newest_sync)
    )
    yield "Synced", newest if oldest == newest else f"{oldest} to {newest}"


def _counts(counts: Mapping[str, int]) -> str:
    return (
        ", ".join(f"{number:,} {formatting.state(name)}" for name, number in counts.items())
        or "none"
    )


USAGE: Final[Sequence[Column["UsageCount"]]] = (
    Column("SKILL", lambda one: one.ref, cut="middle"),
    Column("READ", lambda one: str(one.read), right=True, drop=1),
    Column("FOUND", lambda one: str(one.found), right=True, drop=2),
    Column("LISTED", lambda one: str(one.listed), right=True, drop=3),
    Column("LAST READ", lambda one: one.last_read_at, time=True, drop=4),
)


def _counting(
    what: str,
    count: "Callable[[SkillRegistry], Sequence[Facet]]",
    examples: Sequence[str],
    about: str,
) -> click.Command:
    """Create the command that counts skills for each value of ``what``."""
    columns: Sequence[Column[Facet]] = (
        Column(what.upper(), lambda facet: facet.value),
        Column("SKILLS", lambda facet: facet.count, right=True),
    )

    @session_command(*examples, help=f"Count the skills of each {what}.\n\n{about}")
    @options.format_options
    def command(session: Session) -> None:
        emit(
            session,
            count(session.registry),
            columns,
            to_record=lambda facet: {what: facet.value, "count": facet.count},
            nothing=f"No skill has a {what}.",
        )

    return command


tags = _counting(
    "tag",
    lambda registry: registry.tags(),
    ("skill-registry tags", "skill-registry tags --format names | head -20"),
    "The most frequent come first. In a pipe each line is a tag, a tab and the count.",
)
kinds = _counting(
    "kind",
    lambda registry: registry.kinds(),
    ("skill-registry kinds", "skill-registry list --kind workflow"),
    "Skills state their kind in the front matter; skills without a kind are not counted.",
)
categories = _counting(
    "category",
    lambda registry: registry.categories(),
    ("skill-registry categories", "skill-registry list --category documents"),
    "The category is taken from the front matter; without it, from the folder around the skill.",
)


SAYS: Final = {
    "identical": "the same files",
    "differing": "the files differ",
    "alike": "near-duplicates under other names",
}
STYLES: Final[dict[str, Style]] = {"identical": "green", "differing": "yellow", "alike": "dim"}


@session_command(
    "skill-registry copies",
    "skill-registry copies pdf-forms",
    "skill-registry copies --json | jq -r '.[] | select(.relation == \"differing\") | .name'",
)
@click.argument("name", required=False, shell_complete=completion.names)
@options.format_options
def copies(session: Session, *, name: str | None) -> None:
    """List copies: skills in several places, and near-duplicates under other names.

    "list" shows copies with the same name and files as one. Skills with the same name but different
    files are sorted by date, newest first. Two skills are near-duplicates if their
    descriptions are equal, or if most lines, and most words of the descriptions, are the same. If
    one has only a few lines, only the descriptions are compared. With NAME, only copies of that
    skill are listed, also those that "pull" installed in this project or for all projects. "diff
    REF REF" compares two copies.
    """
    with waiting(session.console, "comparing"):
        found = session.registry.copies(name)
    alone = "No copies: the skill is in one source, and no other skill is similar." if name else ""
    emit(
        session,
        found,
        COLUMNS,
        to_record=_record,
        draw=partial(_draw, elsewhere=_elsewhere(session)),
        name=lambda one: one.name,
        nothing=alone or "No copies: every name is in one place, and no two skills are similar.",
    )
    if name:
        namesakes = [skill for one in found if one.relation != "alike" for skill in one.skills]
        _report_installed(session, namesakes or [session.registry.resolve(name)])


def _report_installed(session: Session, skills: "Sequence[Skill]") -> None:
    """Print where `pull` installed these skills, except paths that are skills of a source."""
    from registry.cli.hints import installed_copies

    listed = {real_path(skill.path) for skill in skills}
    for skill in skills:
        ref = escape.line(skill.ref)
        for path, _ in installed_copies(skill):
            if not os.path.islink(path) and real_path(path) not in listed:
                session.console.note(f"{ref} is installed in {escape.line(path)}")


def _record(one: "Copies") -> dict[str, Any]:
    return {"name": one.name, "relation": one.relation, "skills": record(one.skills)}


def _elsewhere(session: Session) -> set[str]:
    """Return the names of the sources whose projects don't contain the current folder."""
    registry = session.registry
    shows = registry.core.reader.visibility.shows
    sources = registry.sources(counted=False)
    return {source.name for source in sources if not shows(source.id, source.scope)}


def _draw(console: Console, found: "Sequence[Copies]", elsewhere: Collection[str]) -> Iterator[str]:
    now = time() if console.is_terminal else None
    for index, one in enumerate(found):
        if index:
            yield ""
        says = console.style(SAYS[one.relation], STYLES[one.relation])
        yield f"{console.style(escape.line(one.name), 'bold')}: {says}"
        for skill in one.skills:
            mark = _mark(one, skill)
            changed = skill.updated_at if now is None else formatting.ago(skill.updated_at, now)
            listed = "" if skill.shadowed else "listed"
            where = "of another project" if skill.source in elsewhere else listed
            facts = [changed, mark, where]
            message = ", ".join(fact for fact in facts if fact)
            yield f"  {escape.line(skill.ref)}  {console.style(message, 'dim')}"
            yield f"    {escape.line(skill.path)}"


def _mark(one: "Copies", skill: Skill) -> str:
    """Return how the files of a skill differ from those of the skills above it in the list."""
    if one.relation != "differing":
        return ""
    if skill is one.skills[0]:
        return "newest"
    same = next(other for other in one.skills if other.tree_hash == skill.tree_hash)
    if same is skill:
        return "differs"
    return "same as the newest" if same is one.skills[0] else f"same as {escape.line(same.ref)}"


COLUMNS: Final[Sequence[Column["Copies"]]] = (
    Column("NAME", lambda one: one.name),
    Column("RELATION", lambda one: one.relation),
    Column("SKILLS", lambda one: " ".join(skill.ref for skill in one.skills)),
)
