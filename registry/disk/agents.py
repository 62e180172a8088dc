"""The agents that read skills from folders, their folders, and how to detect each agent.

`agents.tsv` has a line for each agent, with the names and folders of the ``skills`` command line
tool (npm). ``~`` is the home folder, ``$NAME`` an environment variable, and ``./`` the project.
``|`` separates choices, and ``&`` joins conditions. ``FILE#NAME`` is true if a package.json depends
on NAME. The last column has more folders that the agent reads, according to its documentation.
"""

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from registry.disk.files import read_file
from registry.errors import AgentNotFound, RegistryError

SHARED: Final = ".agents/skills"
"""The folder that most agents read.

For an agent that doesn't read it, a pull creates links to this folder in the agent's own folder.
"""

OTHER_FOLDERS: Final = tuple(
    f"{agent}/skills"
    for agent in (
        *(".codex", ".copilot", ".cursor", ".ethos", ".gemini", ".hermes", ".openclaw"),
        *(".wave", ".miniclaw/workspace"),
    )
)
"""More folders with skills, in the home folder and in projects.

Older versions of agents read them, or agents that the table doesn't have.
"""

_DEFAULTS: Final = {
    "XDG_CONFIG_HOME": "~/.config",
    "CLAUDE_CONFIG_DIR": "~/.claude",
    "CODEX_HOME": "~/.codex",
    "VIBE_HOME": "~/.vibe",
    "HERMES_HOME": "~/.hermes",
    "AUTOHAND_HOME": "~/.autohand",
    "GROK_HOME": "~/.grok",
    "SARVAM_HOME": "~/.sarvam",
}
VARIABLES: Final = (*_DEFAULTS, "APPDATA", "FLATPAK_XDG_CONFIG_HOME")
"""Environment variables that change the folders of agents; the last two have no default."""

_MANIFEST_BYTES: Final = 1 << 20


class Agent(NamedTuple):
    """An agent: its folders, and how to detect it.

    ``everywhere`` is the folder for all projects; it is empty if the agent has skills only in
    projects. ``installed`` is the condition for detecting the agent; it is empty if the agent can't
    be detected. ``reads`` has more folders that the agent reads, but to which no pull writes. All
    folders have the form of `agents.tsv`.
    """

    id: str
    name: str
    project: str
    everywhere: str
    installed: str
    reads: str = ""

    @property
    def is_universal(self) -> bool:
        """Whether the agent reads its own folder and also `SHARED` in the home folder."""
        return self.project == SHARED and self.id not in {"replit", "universal"}

    @property
    def project_places(self) -> list[str]:
        """The folders in a project that the agent reads; pulls write to the first one."""
        below = [one[2:] for one in self.reads.split(" | ") if one.startswith("./")]
        return list(dict.fromkeys([self.project, *below]))

    @property
    def personal_places(self) -> list[str]:
        """The folders for all projects that the agent reads; pulls write to the first one."""
        others = [one for one in self.reads.split(" | ") if not one.startswith("./")]
        return list(dict.fromkeys(filter(None, [self.personal, self.everywhere, *others])))

    @property
    def personal(self) -> str:
        """The folder to which a pull for all projects writes, in the form of `agents.tsv`."""
        return f"~/{SHARED}" if self.is_universal else self.everywhere


@cache
def agents() -> Mapping[str, Agent]:
    """Return all agents by their ids."""
    text = Path(__file__).with_name("agents.tsv").read_text("utf-8")
    found = [Agent(*line.split("\t")) for line in text.splitlines()[1:]]
    return {one.id: one for one in found}


def find_agent(name: str) -> Agent:
    """Return the agent with this id.

    Raises `AgentNotFound`, with similar ids and all ids, if there is none.
    """
    known = agents()
    found = known.get(name.strip().casefold())
    if found is None:
        from difflib import get_close_matches

        named = {one.name.casefold(): one.id for one in known.values()}
        plain = name.strip().casefold()
        near = [named[plain]] if plain in named else get_close_matches(plain, known, n=3)
        near += [one for one in known if plain and plain in one and one not in near]
        raise AgentNotFound(name=name, similar=near[:3], known=sorted(known))
    return found


def installed_agents(project: str) -> list[Agent]:
    """Return the agents that are installed for a user who works in ``project``."""
    return [
        one
        for one in agents().values()
        if any(
            all(_holds(each, project) for each in way.split(" & "))
            for way in filter(None, one.installed.split(" | "))
        )
    ]


def expand(place: str) -> str | None:
    """Return the path of a folder in `agents.tsv`.

    If the folder has several choices, the first choice with an existing parent folder is used. If
    no parent exists, the first choice is used. Returns None if all choices depend on the project,
    or on variables that aren't set.
    """
    choices = filter(None, place.split(" | "))
    found = [path for one in choices if (path := _path(one, None)) is not None]
    there = [path for path in found if os.path.isdir(os.path.dirname(path))]
    return next(iter(there or found), None)


@cache
def project_folders() -> tuple[str, ...]:
    """Return the agents' skill folders in a project with names that begin with a dot."""
    known = {place for one in agents().values() for place in one.project_places}
    known |= {*OTHER_FOLDERS, ".github/skills"}
    return tuple(sorted(one for one in known if one.startswith(".")))


def personal_folders(home: str) -> list[str]:
    """Return the agents' skill folders in a home folder.

    An environment variable can replace the path of such a folder.
    """
    known = dict.fromkeys(os.path.join(home, one) for one in OTHER_FOLDERS)
    for one in agents().values():
        for place in one.personal_places:
            if place.startswith("/"):
                continue  # an administrator owns this system folder
            for choice in filter(None, place.split(" | ")):
                path = _path(choice, None, home)
                if path is not None:
                    known[path] = None
    return sorted(known)


def shared_folder(root: str) -> str | None:
    """Return the shared folder to which the links in an agent's folder ``root`` lead.

    Returns None if ``root`` isn't the folder of an agent.
    """
    for below in project_folders():
        if root.endswith(f"{os.sep}{below}"):
            return os.path.join(root[: -len(below) - 1], SHARED)
    home = os.path.expanduser("~")
    return os.path.join(home, SHARED) if root in personal_folders(home) else None


def _holds(condition: str, project: str) -> bool:
    place, _, package = condition.partition("#")
    path = _path(place, project)
    if path is None or not package:
        return path is not None and os.path.exists(path)
    try:
        manifest = json.loads(read_file(path, _MANIFEST_BYTES).data)
        wanted = [manifest.get(key) or {} for key in ("dependencies", "devDependencies")]
        return any(package in one for one in wanted)
    except (RegistryError, OSError, ValueError, AttributeError, TypeError, RecursionError):
        return False


def _path(place: str, project: str | None, home: str | None = None) -> str | None:
    if place.startswith("$"):
        name, _, rest = place[1:].partition("/")
        given = os.environ.get(name, "")
        # Ignore a relative path, because its meaning depends on the working folder.
        base = given if os.path.isabs(given) else _DEFAULTS.get(name)
        if base is None:
            return None
        place = f"{base}/{rest}" if rest else base
    if place.startswith("./"):
        return None if project is None else os.path.join(project, place[2:])
    if place.startswith("~/"):
        return os.path.join(home or os.path.expanduser("~"), place[2:])
    return os.path.normpath(place)
