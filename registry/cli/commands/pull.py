"""`skill-registry pull`."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import complete, escape, options
from registry.cli.column import Column
from registry.cli.group import session_command
from registry.cli.listing import emit
from registry.cli.progress import waiting
from registry.cli.run import Status
from registry.cli.session import Session
from registry.db.queries.filters import Filters

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.exchange.told import Pulled
    from registry.model import Skill

CHOOSE: Final = "Choose skills by name, by --tag, or --all of them."

choosing_options: Final = options.stack(
    click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete.names),
    options.tag_option(
        "--tag", "tags", help="All skills with this tag. Given several times: with all of them."
    ),
    click.option("--all", "every", is_flag=True, help="All skills that are listed."),
    options.personality_option,
)


def chosen_skills(
    session: Session,
    *,
    names: Sequence[str],
    tags: Sequence[str],
    personality: str | None,
    every: bool,
) -> "list[Skill] | None":
    """Return the chosen skills; None if no option chooses any.

    Raises as `SkillRegistry.resolve`, and `SkillNotVisible` for what the personality does not see.
    """
    ways = sum(map(bool, (names, tags, every)))
    if ways > 1 or (not ways and personality is not None):
        raise click.UsageError(CHOOSE)
    if not ways:
        return None
    registry = session.registry
    if names:
        return [_named(registry, name, personality) for name in names]
    chosen = Filters(tags=tags)
    if personality is not None:
        chosen = registry.seen_by(personality, chosen)
    return list(registry.list(chosen))


def _named(registry: "SkillRegistry", name: str, personality: str | None) -> "Skill":
    if personality is None:
        return registry.resolve(name)
    return options.view_of(registry, personality).resolve(name).skill


@session_command(
    "skill-registry pull code-review release-notes --to ./.claude/skills",
    "skill-registry pull --tag git --to ~/project/skills",
    "skill-registry pull --check --to ./.claude/skills    # what is behind?",
)
@choosing_options
@click.option("--to", metavar="DIR", required=True, help="The folder to put them into.")
@click.option(
    "--force", is_flag=True, help="Also over folders that were edited, or made by somebody else."
)
@click.option(
    "--check", is_flag=True, help="Write nothing; say what is behind, and exit with 1 if anything."
)
@options.format_options
def command(
    session: Session, /, *, to: str, force: bool, check: bool, style: str | None, **choice: Any
) -> None:
    """Put skills into a folder, as they are now.

    Each gets a folder of its name, at once or not at all; what is equal is left alone, and so is
    what was edited there. DIR/skills.lock.json says what was pulled from where: commit it with the
    skills, and --check tells others what is behind.

    Exit status: 1 where something was left alone, can't be had, or is behind, and for --check where
    nothing was ever pulled.
    """
    registry = session.registry
    wanted = chosen_skills(session, **choice)
    if check:
        if wanted is None:
            _check_lock(session, to)
        with waiting(session.console, "comparing"):
            done = registry.check_pulled(to, wanted)
    elif wanted is None:
        raise click.UsageError(CHOOSE)
    else:
        with waiting(session.console, "pulling"):
            done = registry.pull(wanted, to, force=force)
    emit(session.console, style, done, COLUMNS, name=lambda one: one.ref)
    for one in done:
        if one.reason is not None:
            reason = escape.text(one.reason)
            session.console.note(f"{escape.line(one.ref)} was not pulled: {reason}")
    if not check and any(one.state == "edited" for one in done):
        session.console.note("What was edited there is left alone; --force replaces it.")
    if any(one.state not in DONE for one in done):
        raise click.exceptions.Exit(Status.FAILED)


def _check_lock(session: Session, to: str) -> None:
    """Fail where nothing was pulled: that nothing is behind there says nothing."""
    from registry.exchange.lockfile import NAME

    path = os.path.join(os.path.abspath(os.path.expanduser(to)), NAME)
    if not os.path.lexists(path):
        session.console.error(
            f"There is no {path}: nothing was pulled there. "
            "'skill-registry pull NAME --to DIR' pulls a skill and writes it."
        )
        raise click.exceptions.Exit(Status.FAILED)


DONE: Final = frozenset({"added", "updated", "unchanged"})


COLUMNS: Final[Sequence[Column["Pulled"]]] = (
    Column("STATE", lambda one: one.state, cut="middle"),
    Column("SKILL", lambda one: one.ref, cut="middle"),
    Column("FOLDER", lambda one: one.path, cut="middle", drop=1),
)
