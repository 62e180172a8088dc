"""`skill-registry eval`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.group import session_command
from registry.cli.listing import FIRST_SHARE, Column, emit
from registry.cli.progress import waiting
from registry.cli.session import Session, Status

if TYPE_CHECKING:
    from registry.catalog.evals.run import Answer, Evaluation, Score, SkillScore

EVERY: Final = 100
"""Percent of all."""


class _Failed(NamedTuple):
    """A prompt that failed, and whose it is."""

    ref: str
    answer: "Answer"


@session_command(
    "skill-registry eval",
    "skill-registry eval pdf-forms ./my-skill --failed",
    "skill-registry eval --source mine --min 80   # in a build",
    "skill-registry eval --json | jq '.skills[] | {ref, hits: .score.hit_at_5}'",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.names_or_paths)
@options.source_option(help="Only the prompts of this source's skills.")
@click.option("--failed", is_flag=True, help="Show each prompt that failed, and what won.")
@click.option(
    "--min",
    "least",
    metavar="PERCENT",
    type=click.FloatRange(0, EVERY),
    help="Fail where fewer of all prompts find their skill among the first five.",
)
@options.json_option
def command(
    session: Session,
    *,
    names: tuple[str, ...],
    source: str | None,
    failed: bool,
    least: float | None,
) -> None:
    """Ask the prompts that skills ship, and say how often each skill is found.

    A skill's prompts are those in its evals folder, or in files like evals.json,
    trigger-eval.json or tests/test-triggers.json (JSON, JSON lines, YAML or CSV). Each is asked
    of the search as it is, among all that is listed: HIT@1 says how many found the skill first,
    HIT@5 how many among the first five; one that is alike it counts as well. WON BY names what
    came first instead. Prompts that are not meant for a skill fail where it comes first and
    seems to fit (FALSE).

    Exit status: 1 where fewer found their skill than --min says, or there are no prompts.
    """
    console = session.console
    with waiting(console, "asking"):
        skills = [options.named(session.registry, name) for name in names]
        found = session.registry.evaluate(skills, source=source)
    if session.as_json:
        console.json(_told(found, failed=failed))
    elif failed:
        emit(session, list(_failures(found)), FAILED)
    else:
        emit(session, found.skills, SKILLS)
    if not session.as_json:
        for line in _summary(found, named=failed or session.verbose):
            console.note(line)
    total = found.total
    reached = total.prompts and _percent(total.hit_at_5, total.prompts) >= (least or 0)
    if least is not None and not reached:
        raise click.exceptions.Exit(Status.FAILED)


def _told(found: "Evaluation", *, failed: bool) -> dict[str, object]:
    if failed:
        skills = (
            replace(one, answers=tuple(answer for answer in one.answers if not answer.passed))
            for one in found.skills
        )
        found = replace(found, skills=tuple(one for one in skills if one.answers))
    return found.to_dict()


def _failures(found: "Evaluation") -> Iterator[_Failed]:
    for one in found.skills:
        yield from (_Failed(one.ref, answer) for answer in one.answers if not answer.passed)


def _summary(found: "Evaluation", *, named: bool) -> Iterator[str]:
    total = found.total
    if not found.skills:
        yield "No skill here ships prompts; 'eval --help' says in which files they are looked for."
    else:
        asked = formatting.count(total.prompts, "prompt")
        skills = formatting.count(len(found.skills), "skill")
        first, five = (
            f"{_percent(hits, total.prompts):.0f}%" for hits in (total.hit_at_1, total.hit_at_5)
        )
        told = f"{first} found their skill first, {five} among the first five"
        if total.negatives:
            told += f"; of {total.negatives:,} for others {total.false_alarms:,} found it, too"
        yield f"{asked} of {skills}: {told}"
    if total.competitors:
        won = ", ".join(f"{escape.line(one.ref)} ({one.wins:,})" for one in total.competitors)
        yield f"Most won by: {won}"
    if named:
        for one in found.problems:
            where = f"{one.ref}: {one.path}" if one.path else one.ref
            yield f"{escape.line(where)}: {escape.prose(one.reason)}"
    elif found.problems:
        files = formatting.count(len(found.problems), "file")
        yield f"{files} of prompts could not be used whole; --failed says why."


def _percent(number: int, of: int) -> float:
    return EVERY * number / of if of else 0.0


def _share(number: int, of: int) -> str | None:
    return f"{_percent(number, of):.0f}%" if of else None


def _rivals(score: "Score") -> str:
    return ", ".join(
        one.ref if one.wins == 1 else f"{one.ref} ({one.wins})" for one in score.competitors
    )


def _place(answer: "Answer") -> str:
    return f"{answer.place or 'none'}" + ("" if answer.wanted else ", not meant")


def _alarms(score: "Score") -> str | None:
    return f"{score.false_alarms} of {score.negatives}" if score.negatives else None


SKILLS: Final[Sequence[Column["SkillScore"]]] = (
    Column("SKILL", lambda one: one.ref, style="bold", share=FIRST_SHARE, cut="middle"),
    Column("PROMPTS", lambda one: one.score.prompts, right=True),
    Column("HIT@1", lambda one: _share(one.score.hit_at_1, one.score.prompts), right=True),
    Column("HIT@5", lambda one: _share(one.score.hit_at_5, one.score.prompts), right=True),
    Column("FALSE", lambda one: _alarms(one.score), right=True, drop=2),
    Column("WON BY", lambda one: _rivals(one.score), flexible=True, drop=1),
)

FAILED: Final[Sequence[Column[_Failed]]] = (
    Column("SKILL", lambda one: one.ref, style="bold", share=0.3, cut="middle"),
    Column("PLACE", lambda one: _place(one.answer), right=True),
    Column("FIRST", lambda one: one.answer.first, share=0.3, cut="middle"),
    Column("PROMPT", lambda one: one.answer.prompt, prose=True, flexible=True),
)
