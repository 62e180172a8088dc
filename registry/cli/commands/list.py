"""`skill-registry list`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from registry.catalog.listing import opened
from registry.cli import escape, formatting, options
from registry.cli.group import session_command
from registry.cli.listing import (
    FIRST_SHARE,
    Column,
    emit,
    report_left_out,
    report_nothing_found,
    report_quarantined,
)
from registry.cli.options import agent_of, agent_option, global_option, report_project, target_of
from registry.cli.session import Session
from registry.db.interface import Reader
from registry.db.read.labels import deprecated_ahead
from registry.db.read.listing import Filters
from registry.db.read.skills import SORTS, Sort, quarantined, yanked
from registry.model import Skill, record

if TYPE_CHECKING:
    from registry.install.inventory import AgentSkill


Held: TypeAlias = Callable[[], Mapping[tuple[str, str], str]]
"""Returns which skills are deprecated, quarantined or yanked, by source and folder."""


def _columns(sort: str, held: Held) -> Sequence[Column[Skill]]:
    """Return the columns of the list."""

    def status(skill: Skill) -> str:
        state = formatting.state(skill.status, shadowed=skill.shadowed)
        marked = held().get((skill.source, skill.folder))
        # If a deprecated skill is also invalid or shadowed, show that state, because it matters
        # more.
        if marked is None or (marked == "deprecated" and state not in {"ok", "warning"}):
            return state
        return marked

    time = attrgetter("created_at" if sort == "created" else "updated_at")
    return (
        Column("SKILL", lambda skill: skill.ref, style="bold", share=FIRST_SHARE, cut="middle"),
        Column(
            "STATUS",
            status,
            only="table",
            style=formatting.STATUS_STYLES,
            when=lambda states: not states <= {"ok", "warning"},
            drop=1,
        ),
        Column("KIND", lambda skill: skill.kind, only="table", drop=5, max_width=16),
        Column(
            "SOURCE",
            lambda skill: skill.source,
            only="table",
            when=lambda sources: len(sources) > 1,
            drop=3,
            max_width=20,
        ),
        Column("TAGS", lambda skill: ", ".join(skill.tags), only="table", drop=6, max_width=24),
        Column(
            "CREATED" if sort == "created" else "UPDATED", time, only="table", time=True, drop=4
        ),
        Column("DESCRIPTION", lambda one: one.description, prose=True, flexible=True, min_width=40),
    )


class _Counted(Iterable[Skill]):
    """An iterable of skills that counts its items during the iteration."""

    def __init__(self, skills: Iterable[Skill]) -> None:
        self.many = 0
        self._skills = skills

    def __iter__(self) -> Iterator[Skill]:
        self.many = 0
        for skill in self._skills:
            self.many += 1
            yield skill


@session_command(
    "skill-registry list",
    "skill-registry list --tag pdf --tag forms --updated-since 30d",
    "skill-registry list --status invalid",
    'skill-registry show "$(skill-registry list --format names | fzf)"',
    "skill-registry list --all --json | jq -r '.[] | select(.shadowed) | .ref'",
    "skill-registry list --agent codex",
)
@options.filter_options
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="name",
    show_default=True,
    help="Sort by this; dates come newest first.",
)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option("--limit", metavar="N", type=click.IntRange(min=0), help="Show at most N skills.")
@click.option(
    "--offset", metavar="N", type=click.IntRange(min=0), default=0, help="Skip the first N skills."
)
@agent_option(
    help=(
        "List the skills that this agent reads from disk instead, in this project and in "
        "your home folder."
    )
)
@global_option
@options.format_options
def command(session: Session, /, *, agent: str | None, is_global: bool, **given: Any) -> None:
    """List skills.

    Without --all the list leaves out skills that are invalid or yanked, skills that are shadowed by
    a skill of the same name in a stronger source, and skills of projects that you are not in. In a
    pipe each line is a ref, a tab and the description. The exit status is also 0 if no skill
    matches, or if nothing was registered yet.
    """
    chosen = options.filters(session, given)
    if agent is not None:
        if chosen != Filters() or given != _PLAIN:
            raise click.UsageError(
                "--agent lists everything on disk and can't be combined with filters."
            )
        _show_seen(session, agent, is_global=is_global)
        return
    if is_global:
        raise click.UsageError("--global requires --agent.")
    show_list(session, chosen, **given)


def show_list(
    session: Session,
    chosen: Filters,
    *,
    sort: Sort = "name",
    reverse: bool = False,
    limit: int | None,
    offset: int,
) -> None:
    """Print the skills that match these filters."""
    is_mixed = chosen.all or chosen.status is not None
    with opened(
        session.registry.core, chosen, sort=sort, reverse=reverse, limit=limit, offset=offset
    ) as found:
        skills = _Counted(found)
        held = _held(session.registry.core.reader, is_mixed=is_mixed)
        in_json = partial(_record, held=held, is_mixed=is_mixed)
        is_table = emit(session, skills, _columns(sort, held), to_record=in_json)
        # Count the other skills only if the command will print their number.
        shown = skills.many
        total = found.total if (is_table or not shown) and not found.is_whole else shown
        if not total:
            report_nothing_found(session, chosen)
        elif is_table:
            many = formatting.count(total, "skill")
            message = many if shown == total else f"{shown:,} of {many}"
            session.console.note(message, "dim")
        report_left_out(session, chosen)
        report_quarantined(session, chosen)


def _held(reader: Reader, *, is_mixed: bool) -> Held:
    """Queue the SELECT for deprecated skills.

    A server returns its rows together with the first skills. Unless ``is_mixed`` (with --all or
    --status), the list has no quarantined or yanked skills.
    """
    warnings = deprecated_ahead(reader)

    @cache
    def held() -> Mapping[tuple[str, str], str]:
        marked = dict.fromkeys(warnings(), "deprecated")
        if is_mixed:
            marked |= dict.fromkeys(yanked(reader), "yanked")
            marked |= dict.fromkeys(quarantined(reader), "quarantined")
        return marked

    return held


def _record(skill: Skill, held: Held, *, is_mixed: bool) -> dict[str, Any]:
    """Return a skill as JSON.

    A deprecated skill has the key ``deprecated``. If ``is_mixed``, each skill has the keys
    ``quarantined`` and ``yanked``.
    """
    state = held().get((skill.source, skill.folder))
    states = {one: state == one for one in ("quarantined", "yanked")} if is_mixed else {}
    return {**record(skill), **states, **({"deprecated": True} if state == "deprecated" else {})}


_PLAIN: Final = {"sort": "name", "reverse": False, "limit": None, "offset": 0}

SEEN: Final[Sequence[Column["AgentSkill"]]] = (
    Column(
        "STATE",
        lambda one: formatting.INSTALL_STATES.get(one.state, one.state),
        style={"installed": "green", "edited": "yellow"},
    ),
    Column("SKILL", lambda one: one.name, style="bold", share=FIRST_SHARE, cut="middle"),
    Column("WHERE", lambda one: one.where, when=lambda places: len(places) > 1),
    Column("FOLDER", lambda one: one.place, cut="start", drop=1, flexible=True),
)


def _show_seen(session: Session, name: str, *, is_global: bool) -> None:
    """List the skills that an agent sees; the project's skills come first."""
    from registry.install.inventory import seen_by, told_of_namesakes

    agent = agent_of(name)
    project = None if is_global else target_of(None, is_global=False)
    if project is not None:
        report_project(session, project)
    found = seen_by(session.registry.core, agent, project)
    emit(
        session,
        found,
        SEEN,
        name=lambda one: one.name,
        to_record=lambda one: one.to_dict(),
        nothing=f"{agent.name} sees no skills there.",
    )
    for text, _ in told_of_namesakes(agent, found):
        session.console.note(escape.line(text))
