"""`skill-registry agents`."""

import os
from collections.abc import Sequence
from typing import Any, Final

from registry.cli import options
from registry.cli.group import session_command
from registry.cli.listing import Column, emit
from registry.cli.session import Session
from registry.disk.agents import Agent, agents, expand, installed_agents


def _shown(place: str) -> str:
    """Return the path of a place of all projects, short in the home folder."""
    path, home = expand(place) or "", os.path.expanduser("~")
    return path.replace(home, "~", 1) if path.startswith(f"{home}/") else path


def _others(one: Agent) -> str:
    """Return the further folders that an agent reads."""
    personal = filter(None, map(_shown, one.personal_places))
    places = dict.fromkeys([*one.project_places, *personal])
    return ", ".join(place for place in places if place not in {one.project, _shown(one.personal)})


COLUMNS: Final[Sequence[Column[Agent]]] = (
    Column("AGENT", lambda one: one.id),
    Column("NAME", lambda one: one.name, drop=2),
    Column("IN A PROJECT", lambda one: one.project, drop=1),
    Column("FOR ALL PROJECTS", lambda one: _shown(one.personal)),
    Column("ALSO READS", _others, only="table", flexible=True, drop=3),
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
