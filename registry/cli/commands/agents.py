"""`skill-registry agents`."""

import os
from collections.abc import Sequence
from typing import Any, Final

from registry.cli import options
from registry.cli.column import Column
from registry.cli.group import session_command
from registry.cli.listing import emit
from registry.cli.session import Session
from registry.disk.agents import Agent, agents, installed_agents

COLUMNS: Final[Sequence[Column[Agent]]] = (
    Column("AGENT", lambda one: one.id),
    Column("NAME", lambda one: one.name),
    Column("IN A PROJECT", lambda one: one.project),
    Column("FOR ALL PROJECTS", lambda one: one.personal),
)


@session_command(
    "skill-registry agents",
    "skill-registry pull haiku --agent codex",
    "skill-registry list --agent codex",
    starts_new=True,
)
@options.format_options
def command(session: Session) -> None:
    """List the agents that skills can be installed for, and their folders.

    "pull NAME --agent AGENT" writes into the folder shown; agents that are installed on this
    machine come first. Some agents also read other folders: --json lists them under "reads".
    """
    found = {one.id for one in installed_agents(os.getcwd())}
    every = sorted(agents().values(), key=lambda one: (one.id not in found, one.id))

    def to_record(one: Agent) -> dict[str, Any]:
        return {
            "agent": one.id,
            "name": one.name,
            "project": one.project,
            "global": one.personal or None,
            "reads": one.project_places + one.personal_places,
            "installed": one.id in found,
        }

    emit(session, every, COLUMNS, to_record=to_record)
