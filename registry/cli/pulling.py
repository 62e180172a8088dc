"""Where `pull` and `list --agent` look, and which agents are meant."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from registry.cli import escape, options
from registry.cli.session import Session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from registry.install.targets import Target

F = TypeVar("F", bound=Callable[..., Any])

ALL_AGENTS = frozenset({"all", "*"})


def _agents(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    from registry.disk.agents import agents

    known = agents().values()
    return [CompletionItem(one.id, help=one.name) for one in known if one.id.startswith(incomplete)]


def agent_option(**more: Any) -> Callable[[F], F]:
    """Return the option that names agents."""
    return click.option("--agent", "-a", metavar="NAME", shell_complete=_agents, **more)


global_option = click.option(
    "--global", "-g", "is_global", is_flag=True, help="For all projects: in your home folder."
)

where_options = options.stack(
    click.option("--to", metavar="DIR", help="The folder to put them into."),
    agent_option(
        multiple=True,
        help="Where this agent looks, in the project of the current folder. Repeatable; all: those "
        "that are installed.",
    ),
    global_option,
)


def target_of(to: str | None, *, is_global: bool) -> "Target":
    """Return where skills are pulled to."""
    from registry.install.targets import Target

    if to is not None:
        return Target.folder(to)
    if is_global:
        return Target.everywhere()
    return Target.project(_here())


def tell_project(session: Session, target: "Target", to: str | None = None) -> None:
    """Say which project a command is about, unless it is about all, or the folder ``to``."""
    if to is None and not target.is_global:
        session.console.note(f"Project: {escape.line(target.path)}", "dim")


def agents_of(names: Sequence[str]) -> list[str]:
    """Return the ids of the agents that are meant. Raises `AgentNotFound`."""
    from registry.disk.agents import find_agent, installed_agents

    found: list[str] = []
    for name in (one.strip() for each in names for one in each.split(",")):
        if name in ALL_AGENTS:
            found += [one.id for one in installed_agents(_here())]
            if not found:
                raise click.UsageError("No agent is installed here that is known: name one.")
        else:
            found.append(find_agent(name).id)
    return found


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise click.UsageError("The current folder is gone: go to another one.") from None
