"""The options that several commands share."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click

from registry.cli import completion, escape
from registry.cli.session import Session
from registry.db.read.listing import Filters
from registry.model import SCOPES, SECURITY_LEVELS, STATUSES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from registry.api import SkillRegistry
    from registry.disk.agents import Agent
    from registry.install.targets import InstallTarget
    from registry.toolsets.view import View

    Choice: TypeAlias = click.Choice[str]
    ParamType: TypeAlias = click.ParamType[str]
else:  # the types of older Click versions aren't generic
    Choice, ParamType = click.Choice, click.ParamType

PUBLIC: Final = re.compile(r"https?://[^/?#@\s]+(/(?!\.{1,2}(/|$))[a-z0-9._~-]+)*/?", re.IGNORECASE)
"""Matches a public URL, which may have a path."""

FORMATS: Final = ("table", "json", "jsonl", "names")


F = TypeVar("F", bound=Callable[..., Any])


class StatusChoice(Choice):
    """The type of an option for a status; its words may be separated by "_", "-" or a space."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept ``no-document`` and ``no document`` for ``no_document``."""
        joined = "_".join(str(value).replace("-", " ").split()).lower()
        if joined == "quarantined":
            self.fail("To list quarantined skills, use --all --format table.", param, ctx)
        return str(super().convert(joined, param, ctx))


class Parsed(ParamType):
    """The type of an option with a custom parser.

    If it raises ValueError, the message is printed.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the text of the option with the custom parser."""
        try:
            return self._parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _when(text: str, *, end: bool = False) -> str:
    """Return the UTC timestamp of a date, a timestamp or an age."""
    from registry.document.dates import moment

    return moment(text, end=end)


NEVER: Final = "1970-01-01T00:00:00Z"


def _unused(text: str) -> str:
    """Return the UTC timestamp of a date, a timestamp or an age; ``never`` means the earliest."""
    return NEVER if text.strip().casefold() == "never" else _when(text)


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Combine options into one decorator; the help lists them in this order."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


when_option: Final = partial(click.option, metavar="WHEN", type=Parsed("when", _when))
since_option: Final = when_option(
    "--since", help="Only changes since this time: 2026-01-31, a timestamp, or an age such as 7d."
)
last_option: Final = partial(
    click.option,
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
)
until_option: Final = partial(when_option, type=Parsed("when", partial(_when, end=True)))
tag_option: Final = partial(
    click.option, metavar="TAG", multiple=True, shell_complete=completion.tags
)
source_option: Final = partial(
    click.option, "--source", metavar="NAME", shell_complete=completion.sources
)


def _dates(what: str, meaning: str) -> Callable[[F], F]:
    since = f"{meaning} at this time or later: 2026-01-31, a timestamp, or an age such as 7d."
    return stack(
        when_option(f"--{what}-since", help=since),
        until_option(f"--{what}-until", help=f"{meaning} at this time or earlier."),
    )


def _remember_style(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value:
        ctx.ensure_object(Session).style = value


_style_option: Final = partial(click.option, expose_value=False, callback=_remember_style)

format_options: Final = stack(
    _style_option(
        "--format",
        type=click.Choice(FORMATS),
        help="The output format (default: a table on a terminal, tab-separated lines in a pipe).",
    ),
    _style_option("--json", flag_value="json", help="Same as --format json."),
)
json_option: Final = _style_option("--json", flag_value="json", help="Print JSON.")
as_admin_option: Final = click.option(
    "--as-admin",
    is_flag=True,
    help=(
        "Allow changes to sources of other roles and hosts. Requires admin rights on the server."
    ),
)
yes_option: Final = click.option("-y", "--yes", is_flag=True, help="Skip the confirmation.")
yes_fetch: Final = partial(click.option, "-y", "--yes", is_flag=True)
yes_fetch_option: Final = yes_fetch(
    help="Skip the confirmation before fetching owner/repo from GitHub."
)
rights_options: Final = stack(
    yes_option,
    click.option("--print", "printed", is_flag=True, help="Print the SQL and don't run it."),
)
personality_option: Final = click.option(
    "--personality",
    metavar="NAME",
    shell_complete=completion.personalities,
    help="Only skills that this personality from the settings can see.",
)
home_option: Final = source_option(
    help="The source to write to (default: your only source, or the setting default_source).",
)
guard_options: Final = stack(
    click.option(
        "--if-hash",
        metavar="HASH",
        help="Proceed only if the SKILL.md still has this content hash.",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Proceed even if the skill was edited by hand since the last sync.",
    ),
)
narrowing_options: Final = stack(
    tag_option("--tag", "tags", help="Only skills with this tag; repeat it to require several."),
    tag_option(
        "--any-tag",
        "any_tags",
        help="Only skills with this tag. If you repeat it, skills with at least one of the tags.",
    ),
    click.option(
        "--kind", metavar="KIND", shell_complete=completion.kinds, help="Only skills of this kind."
    ),
    click.option(
        "--category",
        metavar="CATEGORY",
        shell_complete=completion.categories,
        help="Only skills of this category.",
    ),
    click.option(
        "--scope", type=click.Choice(SCOPES), help="Only skills from sources of this scope."
    ),
    source_option(metavar="SOURCE", help="Only skills from this source."),
    click.option(
        "--status",
        type=StatusChoice(STATUSES),
        help="Only skills with this status at the last sync.",
    ),
    click.option(
        "--security",
        type=click.Choice(SECURITY_LEVELS),
        help="Only skills whose worst security finding is an error or a warning, or with neither.",
    ),
    _dates("created", "Created"),
    _dates("updated", "Updated"),
    when_option(
        "--unused-since",
        type=Parsed("when", _unused),
        help=(
            'Only skills that no tool has read since this time. With "never": skills that no tool '
            "has ever read."
        ),
    ),
)
filter_options: Final = stack(
    narrowing_options,
    personality_option,
    click.option(
        "--all",
        "all",
        is_flag=True,
        help="Include shadowed, invalid and yanked skills, and skills of other projects.",
    ),
)


def filters(session: Session, given: dict[str, Any]) -> Filters:
    """Remove the values of `filter_options` from ``given``, and return them as filters.

    Raises `SourceNotFound` or `PersonalityNotFound`.
    """
    personality = given.pop("personality")
    known = {one.name for one in fields(Filters)}
    wanted = {key: given.pop(key) for key in list(given) if key in known}
    if wanted["source"] is not None:
        from registry.sync.sources import find

        wanted["source"] = find(session.registry.core, wanted["source"]).name
    found = Filters(**wanted)
    if personality is None:
        return found
    seen = session.registry.seen_by(personality, found)
    from registry.cli.listing import report_personality

    report_personality(session, personality, sees_some=bool(seen.ids))
    return seen


def named(registry: "SkillRegistry", given: str) -> str:
    """Return the ref of the skill with this name, ref or folder path.

    An unknown path is returned unchanged, so that the caller reports it like an unknown name.
    Raises `FolderMissing`.
    """
    from registry.errors import FolderMissing, SkillNotFound
    from registry.text import is_path

    is_folder = given.endswith(os.sep) and os.path.isdir(given)
    if not is_path(given) and not is_folder:
        if os.sep not in given or not os.path.lexists(given):
            return given
        with suppress(SkillNotFound):
            return registry.resolve(given).ref
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.lexists(path):
        raise FolderMissing(path=path)
    skill = registry.why(path)[0].skill
    if skill is None:
        return path if is_folder else given
    return f"{skill.source}/{skill.folder}"


def view_of(registry: "SkillRegistry", personality: str) -> "View":
    """Return the view of a personality; its errors name the rule that hides a skill.

    Raises `PersonalityNotFound`.
    """
    from registry.toolsets.base import Context
    from registry.toolsets.view import View

    return View(Context(registry.core, personality=personality), explains=True)


ALL_AGENTS = frozenset({"all", "*"})


def _agents(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    from registry.disk.agents import agents

    known = agents().values()
    return [CompletionItem(one.id, help=one.name) for one in known if one.id.startswith(incomplete)]


def agent_option(**more: Any) -> Callable[[F], F]:
    """Return the option ``--agent``, which names agents."""
    return click.option("--agent", "-a", metavar="NAME", shell_complete=_agents, **more)


global_option = click.option(
    "--global",
    "-g",
    "is_global",
    is_flag=True,
    help="Use your home folder instead of this project, for all projects.",
)

where_options = stack(
    click.option("--to", metavar="DIR", help="The folder to install into."),
    agent_option(
        multiple=True,
        help=(
            "Install for this agent, in the current project. Repeatable; 'all' means every "
            "installed agent."
        ),
    ),
    global_option,
)


def target_of(to: str | None, *, is_global: bool) -> "InstallTarget":
    """Return the target for the options ``--to`` and ``--global``."""
    from registry.install.targets import InstallTarget

    if to is not None:
        return InstallTarget.folder(to)
    if is_global:
        return InstallTarget.everywhere()
    return InstallTarget.project(_here())


def report_project(session: Session, target: "InstallTarget", to: str | None = None) -> None:
    """Print the project that a command uses, unless it uses all projects or the folder ``to``."""
    if to is None and not target.is_global:
        session.console.note(f"Project: {escape.line(target.path)}", "dim")


def agent_of(name: str) -> "Agent":
    """Return the agent with the name in an option. Raises `AgentNotFound`."""
    from registry.disk.agents import find_agent

    if name in ALL_AGENTS:
        raise click.UsageError(
            "--agent requires one agent. To list them, run: skill-registry agents"
        )
    return find_agent(name)


def agents_of(names: Sequence[str]) -> list[str]:
    """Return the ids of the named agents. Raises `AgentNotFound`."""
    from registry.disk.agents import find_agent, installed_agents

    found: list[str] = []
    for name in (one.strip() for each in names for one in each.split(",")):
        if name in ALL_AGENTS:
            found += [one.id for one in installed_agents(_here())]
            if not found:
                raise click.UsageError(
                    "No known agent is installed on this machine. Name one with --agent."
                )
        else:
            found.append(find_agent(name).id)
    return found


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise click.UsageError(
            "The current folder no longer exists; change to another folder."
        ) from None
